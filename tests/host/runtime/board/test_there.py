# SPDX-License-Identifier: Apache-2.0
"""`compare` and `diagnose` with a target: its bytes are those of this PC."""

import pytest

from neon8.cli.main import main
from neon8.errors import ModelError
from neon8.evaluate.compare import compare
from neon8.pipeline import observe_model
from neon8.refine.diagnosis import diagnose_model
from neon8.runtime.board.model import BoardModel, same_bytes

DATA = {"limit": 3}
TRIED = {"methods": ("mse",), "schemes": ("auto", "symmetric")}


@pytest.fixture
def looked_at(monkeypatch):
    """The names of what was compared, by who is asked for it."""
    seen = []

    def look(what, *rest):
        seen.append(what)
        same_bytes(what, *rest)

    monkeypatch.setattr("neon8.runtime.board.model.same_bytes", look)
    return seen


def test_diagnosis_looks_at_every_tensor(tiny, looked_at):
    found = diagnose_model(
        tiny.onnx, tiny.table, tiny.data, top=0, target="armv7", **DATA
    )
    plain = diagnose_model(tiny.onnx, tiny.table, tiny.data, top=0, **DATA)
    assert found == plain
    names = {what.split("'")[1] for what in looked_at}
    assert {each.name for each in found.tensors} - names <= {"x", "input", "image"}
    assert len(names) >= len(found.tensors)


def test_comparison_runs_every_setting_there(tiny, looked_at):
    observed = observe_model(tiny.onnx, tiny.data, **DATA)
    found = compare(observed, tiny.onnx, tiny.data, target="aarch64", **TRIED, **DATA)
    assert found == compare(observed, tiny.onnx, tiny.data, **TRIED, **DATA)
    outputs = len(found.rows) * 3
    assert len(looked_at) == outputs


def test_commands_say_so(tiny, adb_board, tmp_path, capsys):
    where = ["--limit", "1", "--target", adb_board.target]
    words = ["diagnose", tiny.onnx, tiny.table, "--data", tiny.data, "--top", "0"]
    assert main([*map(str, words), *where]) == 0
    said = "adb:board: all tensors of all samples have the bytes of this PC\n"
    assert capsys.readouterr().out.endswith(said)
    calib = tmp_path / "x.calib"
    assert (
        main(["observe", str(tiny.onnx), "--data", str(tiny.data), "-o", str(calib)])
        == 0
    )
    words = ["compare", calib, tiny.onnx, "--data", tiny.data, "--methods", "mse"]
    assert main([*map(str, words), "--schemes", "auto", *where]) == 0
    said = "adb:board: the outputs of all settings have the bytes of this PC\n"
    assert capsys.readouterr().out.endswith(said)


def test_first_tensor_that_differs_is_named(tiny, monkeypatch):
    ran = BoardModel._run_there

    def changed(self, arrays):
        found = ran(self, arrays)
        found[[*found][1]].flat[0] += 1
        return found

    monkeypatch.setattr(BoardModel, "_run_there", changed)
    with pytest.raises(ModelError, match=r"output '.*' of aarch64 differs from that"):
        diagnose_model(
            tiny.onnx, tiny.table, tiny.data, top=0, limit=1, target="aarch64"
        )
