# SPDX-License-Identifier: Apache-2.0
"""A report of the tiny network with all that one can have."""

import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

import neon8
from neon8.report.facts import Report


@pytest.fixture(scope="session")
def files(tiny, tmp_path_factory) -> SimpleNamespace:
    """The tiny network with labels, and a table that is worse on purpose."""
    folder = tmp_path_factory.mktemp("report")
    made = SimpleNamespace(
        model=tiny.onnx,
        table=tiny.table,
        n8=tiny.n8,
        data=folder / "test.npz",
        calib=folder / "tiny.calib",
        other=folder / "other.scales.json",
        search=folder / "curve.json",
        names=folder / "labels.txt",
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
