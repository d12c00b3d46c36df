# SPDX-License-Identifier: Apache-2.0
"""Writes the models with open dimensions that fuzz_reader damages.

    PYTHONPATH=host:tests/host/shared .venv/bin/python tests/fuzz/make_models.py

Between them they have each kind of size, form and segment.  They are to be made again
when the version of the format changes; their bytes need not be the same then.
"""

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

import neon8
import open_nets
from neon8.settings.shapes import Open
from onnx_nets import save

HERE = Path(__file__).resolve().parent

# The bounds, and the shape of the samples that calibrate.
MODELS = {
    "attention": ((Open(2, 8), 10, 8), (2, 10, 8)),
    "detector": (
        (1, 3, Open(16, 256, 8), Open(16, 256, 8)),
        (1, 3, 64, 64),
    ),
    "moves": ((1, 4, Open(5, 60), Open(6, 60)), (1, 4, 12, 14)),
    "packings": ((1, 3, Open(1, 40), Open(1, 40)), (1, 3, 16, 16)),
    "resizes": ((1, 3, Open(16, 96, 8), Open(16, 96, 8)), (1, 3, 32, 32)),
    "speech": ((Open(1, 3), Open(2, 64), 6), (1, 20, 6)),
    "windows": ((1, 3, Open(13, 90), Open(11, 90)), (1, 3, 24, 24)),
}


def make(name: str, folder: Path) -> bytes:
    """The model file."""
    bounds, usual = MODELS[name]
    path = save(folder, getattr(open_nets, name)())
    chance = np.random.default_rng(5)
    samples = [{"x": chance.normal(0, 1, usual).astype(np.float32)} for _ in range(2)]
    table = neon8.calibrate_model(path, samples, shapes={"x": usual}, method="minmax")
    table = replace(table, shapes={})  # at first the least, which is quick to run
    keep = ["Add_u"] if name == "speech" else []
    return neon8.compile_model(path, table, shapes={"x": bounds}, keep_float=keep)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for each in MODELS:
            (HERE / f"{each}.n8").write_bytes(make(each, Path(folder)))
