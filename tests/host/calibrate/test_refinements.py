# SPDX-License-Identifier: Apache-2.0
"""What betters a table after it is solved: what it gets, and that nothing is lost."""

from dataclasses import replace

import numpy as np
import pytest

from calib_nets import branchy, images
from neon8.calibrate.calibrate import Refinement, calibrate
from neon8.calibrate.run.run import Options
from neon8.quant import table_json
from onnx_nets import save


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return save(tmp_path_factory.mktemp("refined"), branchy())


def marked(settled):
    return replace(settled.table, reasons=(*settled.table.reasons, "override"))


def digests(path, data, samples=6, **options):
    """Of the samples that a refinement is given."""
    seen = []

    def look(settled):
        seen.extend(settled.samples)
        assert {each.digest for each in seen} <= set(settled.observation.samples)
        return settled.table

    refinement = Refinement(samples=samples, run=look)
    calibrate(path, data, refinements=[refinement], options=Options(**options))
    return [each.digest for each in seen]


def test_the_same_samples_however_they_come(path, tmp_path):
    data = images(20)
    np.save(tmp_path / "x.npy", data)
    wanted = digests(path, data)
    assert len(wanted) == 6
    assert wanted == sorted(wanted)
    assert digests(path, data[::-1]) == wanted
    assert digests(path, iter(data)) == wanted
    assert digests(path, tmp_path / "x.npy") == wanted
    assert digests(path, tmp_path / "x.npy", workers=2) == wanted
    assert len(digests(path, data, samples=50)) == 20


def test_one_after_the_other(path, tmp_path):
    output = tmp_path / "net.scales.json"
    steps = [Refinement(samples=0, run=marked), Refinement(samples=2, run=marked)]
    options = Options(output=output)
    done = calibrate(path, images(9), refinements=steps, options=options)
    assert done.table.reasons[-2:] == ("override", "override")
    assert table_json.load(output) == done.table
    assert not (tmp_path / "net.scales.json.journal").exists()


def test_interrupted(path, tmp_path, caplog):
    """No sample is observed twice, and an old table stays."""
    output = tmp_path / "net.scales.json"
    output.write_text("old")

    def stop(_settled):
        raise KeyboardInterrupt

    options = Options(output=output)
    with pytest.raises(
        KeyboardInterrupt, match=r"9 samples are saved in .*journal; to"
    ):
        calibrate(
            path,
            images(9),
            refinements=[Refinement(samples=2, run=stop)],
            options=options,
        )
    assert output.read_text() == "old"
    last = Refinement(samples=2, run=marked)
    done = calibrate(path, images(9), refinements=[last], options=options)
    assert "continuing, 9 samples are already observed" in caplog.text
    fresh = calibrate(path, images(9), refinements=[last])
    assert done.table == fresh.table
