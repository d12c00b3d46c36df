# SPDX-License-Identifier: Apache-2.0
"""A `neon8 calibrate` that is interrupted loses nothing."""

import signal
import time

import numpy as np

from calib_nets import branchy, images
from neon8.cli.main import main
from onnx_nets import save
from resume_kits import kept, start


def test_interrupted(tmp_path):
    """It continues with another method, too."""
    model, data = save(tmp_path, branchy()), tmp_path / "x.npz"
    np.savez(data, x=images(60))

    def command(method, output="got.json"):
        words = ["calibrate", model, "--data", data, "-o", tmp_path / output]
        return [*words, "--method", method]

    process = start(command("mse"), seconds=0.03)
    while not (tmp_path / "got.json.journal").exists():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "samples are saved in" in error
    _, error = start(command("eq")).communicate(timeout=60)
    assert kept(error) > 0
    assert main([str(word) for word in command("eq", "want.json")]) == 0
    got, want = (tmp_path / name for name in ("got.json", "want.json"))
    assert got.read_bytes() == want.read_bytes()
    assert not (tmp_path / "got.json.journal").exists()
