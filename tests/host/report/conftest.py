# SPDX-License-Identifier: Apache-2.0
"""A report of the tiny network with all that one can have."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import neon8
from neon8.report.facts import Report


@dataclass(frozen=True, slots=True)
class Files:
    """What the report was made of."""

    model: Path
    table: Path
    n8: Path
    data: Path
    calib: Path
    other: Path
    search: Path
    names: Path


@pytest.fixture(scope="session")
def files(tiny, tmp_path_factory) -> Files:
    """The tiny network with labels, and a table that is worse on purpose."""
    folder = tmp_path_factory.mktemp("report")
    made = Files(
        tiny.onnx,
        tiny.table,
        tiny.n8,
        folder / "test.npz",
        folder / "tiny.calib",
        folder / "other.scales.json",
        folder / "curve.json",
        folder / "labels.txt",
    )
    made.names.write_text("ant\nbee\ncat|\n<d>\neel\nfox\n")
    shutil.copy(tiny.labelled, made.data)
    neon8.observe_model(tiny.onnx, np.load(tiny.data)["x"], output=made.calib)
    worse = {"tensors": {"act1": {"threshold": 0.4}}}
    rules = folder / "ranges.json"
    rules.write_text(json.dumps(worse))
    seen = neon8.load_observation(made.calib)
    other = neon8.solve_observation(seen, tiny.onnx, method="minmax", overrides=rules)
    neon8.save_table(other, made.other)
    neon8.calibrate_model(tiny.onnx, tiny.data, max_cost=2.0, curve=made.search)
    return made


@pytest.fixture(scope="session")
def whole(files) -> Report:
    """With histograms, remedies, another table and a search."""
    return neon8.report_model(
        files.model,
        files.table,
        files.n8,
        files.data,
        top=1,
        calibration=files.calib,
        others=[files.other],
        search=files.search,
        shown=4,
        boards=["rpi3b+", "rpi5"],
        labels=files.names,
    )
