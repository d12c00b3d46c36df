# SPDX-License-Identifier: Apache-2.0
"""neon8 qat, from a user's file to one that carries its scales."""

import numpy as np
import onnx
import onnxruntime
import pytest

from neon8.cli.main import main

NET = """\
import torch
from torch import nn

def build():
    torch.manual_seed(4)
    conv = nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8))
    return nn.Sequential(conv, nn.ReLU(), nn.Flatten(), nn.Linear(288, 4)), (3, 8, 8)

def fails():
    raise ValueError("no\\nweights here")

def other():
    return build()[0]

def softmax():
    return nn.Sequential(nn.Flatten(), nn.Softmax(1)), (3, 8, 8)

nothing = 3
"""


@pytest.fixture
def files(tmp_path):
    """A model and data that it can learn: which quarter is bright."""
    rng = np.random.default_rng(2)
    y = np.arange(160) % 4
    x = rng.normal(0, 0.3, (160, 3, 8, 8)).astype(np.float32)
    for index, label in enumerate(y):
        row, column = divmod(int(label), 2)
        x[index, :, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4] += 1
    np.savez(tmp_path / "a.npz", x_train=x[:128], y_train=y[:128], x_test=x, y_test=y)
    np.save(tmp_path / "x.npy", np.zeros((4, 3, 8, 8), np.float32))
    (tmp_path / "net.py").write_text(NET)
    return tmp_path


def run(folder, *words, function="build", data="a.npz:x_train", out="q.onnx"):
    line = [f"{folder}/net.py:{function}", "--data", f"{folder}/{data}"]
    return main(["qat", *line, "-o", f"{folder}/{out}", *map(str, words)])


def test_it_learns_and_the_file_knows_it(files, capsys):
    assert run(files, "--rate", "0.01", "--epochs", 3) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{files}/q.onnx: top-1 of the 128 samples: float ")
    float_, before, after = (
        float(words.split()[-2]) for words in out.split(": ")[-1].split(",")
    )
    assert max(float_, before) < 60
    assert after > 97
    session = onnxruntime.InferenceSession(str(files / "q.onnx"))
    unseen = np.load(files / "a.npz")
    x, y = unseen["x_test"][128:], unseen["y_test"][128:]
    (scores,) = session.run(None, {session.get_inputs()[0].name: x})
    assert (scores.argmax(1) == y).mean() > 0.95
    operators = {node.op_type for node in onnx.load(files / "q.onnx").graph.node}
    assert {"QuantizeLinear", "DequantizeLinear"} <= operators


@pytest.mark.parametrize(
    ("words", "options", "message"),
    [
        ([], {"function": "fails"}, "net.py: fails(): ValueError: no weights here"),
        ([], {"function": "missing"}, "net.py: missing(): KeyError: 'missing'"),
        ([], {"function": "nothing"}, "nothing(): TypeError"),
        ([], {"function": "other"}, "returns no model with the shape of a sample"),
        ([], {"function": "softmax"}, "neon8.qat does not support: _1 (Softmax)"),
        ([], {"function": "a b"}, "is not of the form net.py:build"),
        ([], {"data": "a.npz"}, "which of them is the input 'image'?"),
        ([], {"data": "none.npz"}, "none.npz: cannot be read"),
        ([], {"data": "x.npy"}, "x.npy[0]: has no class, and training needs them"),
        ([], {"out": "a.npz"}, "a.npz: is an input; name another file to write"),
        (["--rate", "0"], {}, "'0' is not a learning rate above 0 and up to 10"),
        (["--batch", "129"], {}, "128 samples do not fill a batch of 129"),
        (["--limit", "0"], {}, "0 is not a whole number of 1 or more"),
    ],
)
def test_bad_input(files, capsys, words, options, message):
    assert run(files, *words, **options) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (files / "q.onnx").exists()


def test_without_torch(files, capsys, monkeypatch):
    for name in ("neon8.qat", "neon8.qat.model"):
        monkeypatch.delitem(__import__("sys").modules, name, raising=False)
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    assert run(files) == 2
    assert "neon8.qat needs torch: pip install 'neon8[qat]'" in capsys.readouterr().err
