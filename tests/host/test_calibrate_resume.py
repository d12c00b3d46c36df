# SPDX-License-Identifier: Apache-2.0
"""A `neon8 calibrate` that is interrupted loses nothing."""

import signal
import time

import numpy as np
import pytest
from calib_nets import branchy, images
from onnx_nets import save
from resume_kits import kept, start

from neon8.cli import main


@pytest.mark.parametrize("methods", [("mse", "kl"), ("eq", "auto")])
def test_interrupted(tmp_path, methods):
    """It goes on with another method that reads the same, and with no other."""
    model, data = save(tmp_path, branchy()), tmp_path / "x.npz"
    np.savez(data, x=images(60))

    def command(method, output="got.json"):
        words = ["calibrate", model, "--data", data, "-o", tmp_path / output]
        return [*words, "--method", method]

    first, second = map(command, methods)
    process = start(first, seconds=0.03)
    while not (tmp_path / "got.json.journal").exists():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "samples are kept in" in error
    other = "mse" if methods[0] == "eq" else "eq"
    _, error = start(command(other)).communicate(timeout=60)
    assert "is of a run in which --method was" in error
    _, error = start(second).communicate(timeout=60)
    assert kept(error) > 0
    assert main([str(word) for word in command(methods[1], "want.json")]) == 0
    got, want = (tmp_path / name for name in ("got.json", "want.json"))
    assert got.read_bytes() == want.read_bytes()
    assert not (tmp_path / "got.json.journal").exists()
