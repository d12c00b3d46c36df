# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C is heard while onnxruntime is busy for ever."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnx_nets import net, node, save

SHAPE = (1, 2)
BUSY = 200
"""Hundredths of a second of processor time after which a command is in the loop."""


@pytest.fixture(scope="module")
def endless(tmp_path_factory):
    """A network that ends where max(x) < 0, and samples for which it never does."""
    folder = tmp_path_factory.mktemp("endless")
    ends = (("i", TensorProto.INT64, []), ("go", TensorProto.BOOL, []),
            ("v", TensorProto.FLOAT, SHAPE), ("more", TensorProto.BOOL, []),
            ("out", TensorProto.FLOAT, SHAPE))  # fmt: skip
    i, go, v, more, out = (helper.make_tensor_value_info(*end) for end in ends)
    nodes = [
        node("Relu", "v", "out"),
        node("ReduceMax", "v", "max", keepdims=0),
        node("GreaterOrEqual", "max zero", "more"),
    ]
    body = helper.make_graph(nodes, "body", [i, go, v], [more, out])
    nodes = [node("Relu", "x", "r"), node("Loop", "m t r", "y", "loop", body=body)]
    weights = {"m": np.array(2**62), "t": np.array(True), "zero": np.float32(0)}
    path = save(folder, net(nodes, {"x": SHAPE}, "y", weights))
    onnx.checker.check_model(path)
    np.save(folder / "x.npy", np.ones((4, *SHAPE[1:]), np.float32))
    return folder


@pytest.mark.parametrize(
    ("words", "times", "said"),
    [
        (
            ("calibrate", "net.onnx", "--data", "x.npy", "-o", "net.json"),
            2,
            ": net.json was not written",
        ),
        (("evaluate", "net.onnx", "--data", "x.npy", "--workers", "2"), 1, ""),
        (("evaluate", "net.onnx", "--data", "x.npy", "--workers", "1"), 1, ""),
    ],
)
def test_ctrl_c_ends_it(endless, words, times, said):
    """calibrate finishes what is under way at the first, and stops at the second."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        [sys.executable, "-m", "neon8", *words],
        cwd=endless,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    signal.signal(signal.SIGINT, before)
    stat = Path(f"/proc/{process.pid}/stat")
    limit = time.monotonic() + 300
    while sum(map(int, stat.read_text().split()[13:15])) < BUSY:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < limit
        time.sleep(0.05)
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
    try:
        out, error = process.communicate(timeout=20)
    except subprocess.TimeoutExpired:  # two at once are one on a loaded machine
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=60 if times > 1 else 0)
    assert (process.returncode, out) == (130, "")
    assert error == f"neon8: interrupted{said}\n"
