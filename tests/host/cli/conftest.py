# SPDX-License-Identifier: Apache-2.0
"""A good command line for each command."""

import numpy as np
import pytest

from neon8.cli.main import main

NET = """\
from torch import nn
def build():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 6))
    return net, (3, 8, 8)
"""


@pytest.fixture(scope="package")
def words(tiny, tmp_path_factory):
    """Its words after the command, but for the output."""
    folder = tmp_path_factory.mktemp("words")
    calib, array, model = (folder / name for name in ("a.calib", "x.npy", "net.py"))
    data = ("--data", tiny.data, "--limit", 2)
    assert main([*map(str, ["observe", tiny.onnx, *data, "-o", calib])]) == 0
    np.save(array, np.load(tiny.data)["x"][:2])
    model.write_text(NET)
    one_target = ("--target", "linux-x86_64")
    found = {
        "calibrate": (tiny.onnx, *data),
        "observe": (tiny.onnx, *data),
        "merge": (calib,),
        "solve": (calib,),
        "compile": (tiny.onnx, "--scales", tiny.table),
        "run": (tiny.n8, "--input", array),
        "evaluate": (tiny.n8, *data, "--reference", tiny.onnx),
        "compare": (calib, tiny.onnx, *data, "--methods", "mse", "--schemes", "auto"),
        "diagnose": (tiny.onnx, tiny.table, *data, "--top", 1),
        "profile": (tiny.n8, "--board", "rpi4"),
        "bench": (tiny.n8, "--seconds", "0.01"),
        "report": (tiny.onnx, tiny.table, tiny.n8, *data, "--top", 1),
        "package": (tiny.n8, "--for", "cmake", *one_target, "--no-check"),
        "qat": (f"{model}:build", "--data", tiny.labelled, "--batch", 4),
        "doctor": (),
        "convert": (tiny.table, "--to", "ncnn"),
        "inspect": (tiny.n8,),
    }
    return {name: [name, *map(str, own)] for name, own in found.items()}
