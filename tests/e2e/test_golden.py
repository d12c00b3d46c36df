# SPDX-License-Identifier: Apache-2.0
"""The committed model: its bytes and its results are those of the day it was made."""

import hashlib
import json

import make_golden
import numpy as np
import pytest

from neon8.runtime import Model

DIGESTS = json.loads(make_golden.DIGESTS.read_text(encoding="utf-8"))


def test_committed_file():
    content = make_golden.MODEL.read_bytes()
    assert hashlib.sha256(content).hexdigest() == DIGESTS["file"]


def test_compiles_to_the_same_file():
    content, digests = make_golden.make()
    assert content == make_golden.MODEL.read_bytes()
    assert digests == DIGESTS


@pytest.mark.parametrize("isa", ["c", None])
@pytest.mark.parametrize("threads", [1, 2])
def test_results(isa, threads):
    inputs = make_golden.inputs()
    with Model.open(make_golden.MODEL, isa=isa) as model:
        results = model.session(threads).run(inputs)
    for name, array in inputs.items():
        assert make_golden.digest(array) == DIGESTS["inputs"][name]
    assert np.unique(results["sum"]).size > 50
    assert np.unique(results["p"]).size > 10
    for name, array in results.items():
        assert make_golden.digest(array) == DIGESTS["outputs"][name]
