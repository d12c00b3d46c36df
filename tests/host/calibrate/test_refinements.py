# SPDX-License-Identifier: Apache-2.0
"""What betters a table after it is solved: what it gets, and that nothing is lost."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from calib_nets import branchy, images
from neon8 import pipeline
from neon8.pipeline import calibrate
from neon8.quant import table_json
from neon8.refine import budget, thorough
from onnx_nets import save
from settings_kits import settings_with

THOROUGH = settings_with(thorough=True)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return save(tmp_path_factory.mktemp("refined"), branchy())


def digests(monkeypatch, path, data, samples=6, **options):
    """Digests of the samples that a refinement is given."""
    seen = []

    def look(_network, _table, kept, **_watch):
        seen.extend(kept)
        return thorough.Found(trials=(), choosing=0, judging=0)

    monkeypatch.setattr(thorough, "best_of", look)
    monkeypatch.setattr(thorough, "SAMPLES", samples)
    calibrate(path, data, settings_with(settings=THOROUGH, **options))
    return [each.digest for each in seen]


def test_the_same_samples_however_they_come(path, tmp_path, monkeypatch):
    data = images(20)
    np.save(tmp_path / "x.npy", data)
    found = partial(digests, monkeypatch, path)
    wanted = found(data)
    assert len(wanted) == 6
    assert wanted == sorted(wanted)
    assert found(data[::-1]) == wanted
    assert found(iter(data)) == wanted
    assert found(tmp_path / "x.npy") == wanted
    assert found(tmp_path / "x.npy", workers=2) == wanted
    assert len(found(data, samples=50)) == 20


def marked(table):
    return replace(table, reasons=(*table.reasons, "override"))


def test_one_after_the_other(path, tmp_path, monkeypatch):
    output = tmp_path / "net.scales.json"
    monkeypatch.setattr(thorough, "noted", lambda _found, table: marked(table))
    search = budget.more_bits

    def more_bits(*given, judge, price, watch):
        assert (judge, price) == (settings.judge, None)
        found = search(*given, judge=judge, watch=watch)
        return replace(found, table=marked(found.table))

    monkeypatch.setattr(budget, "more_bits", more_bits)
    settings = settings_with(thorough=True, max_cost=1)
    done = calibrate(path, images(9), settings, output=output)
    assert done.table.reasons[-2:] == ("override", "override")
    assert table_json.load(output) == done.table
    assert not (tmp_path / "net.scales.json.journal").exists()


@pytest.mark.parametrize("stage", ["solve", "best_of"])
def test_interrupted(path, tmp_path, caplog, monkeypatch, stage):
    """No sample is observed twice, an old table stays; the method may be another."""
    output = tmp_path / "net.scales.json"
    output.write_text("old")

    def stop(*_network, **_watch):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(pipeline if stage == "solve" else thorough, stage, stop)
        with pytest.raises(
            KeyboardInterrupt, match=r"9 samples saved in .*journal; to"
        ):
            calibrate(path, images(9), THOROUGH, output=output)
    assert output.read_text() == "old"
    other = settings_with(settings=THOROUGH, method="eq")
    done = calibrate(path, images(9), other, output=output)
    assert "continuing, 9 samples are already observed" in caplog.text
    assert done.table == calibrate(path, images(9), other).table
    assert not output.with_name(f"{output.name}.journal").exists()
