# SPDX-License-Identifier: Apache-2.0
"""The committed models: their bytes and results are those of the day they were made."""

import hashlib
import json

import make_golden
import numpy as np
import pytest

from neon8.runtime import Model

DIGESTS = {
    name: json.loads(make_golden.digests_of(name).read_text(encoding="utf-8"))
    for name in make_golden.NAMES
}


@pytest.mark.parametrize("name", make_golden.NAMES)
def test_committed_file(name):
    content = make_golden.model(name).read_bytes()
    assert hashlib.sha256(content).hexdigest() == DIGESTS[name]["file"]


@pytest.mark.parametrize("name", make_golden.NAMES)
def test_compiles_to_the_same_file(name):
    content, digests = make_golden.make(name)
    assert content == make_golden.model(name).read_bytes()
    assert digests == DIGESTS[name]


def test_factors_are_in_tables_and_multipliers():
    with Model.open(make_golden.model("factors"), isa="c") as model:
        (table,) = (step for step in model.steps if step.operation == "table")
        (product,) = (step for step in model.steps if step.operation == "multiply")
    assert table.tables == 6
    assert product.packed > 0


def test_wide_takes_kernels_of_int16():
    with Model.open(make_golden.model("wide"), isa="c") as model:
        kernels = {step.kernel for step in model.steps}
    assert kernels >= {
        "n8_winograd_gemm_s32_c",
        "n8_depthwise_s16_s32_c",
        "n8_igemm_s8_s32_c",
        "n8_add_s16_c",
        "n8_dequantize_s16_f32_c",
    }


@pytest.mark.parametrize("name", make_golden.NAMES)
@pytest.mark.parametrize("isa", ["c", None])
@pytest.mark.parametrize("threads", [1, 2])
def test_results(name, isa, threads):
    inputs = make_golden.inputs()
    with Model.open(make_golden.model(name), isa=isa) as model:
        results = model.session(threads).run(inputs)
    for entry, array in inputs.items():
        assert make_golden.digest(array) == DIGESTS[name]["inputs"][entry]
    assert np.unique(results["sum"]).size > 40
    assert np.unique(results["p"]).size > 10
    for entry, array in results.items():
        assert make_golden.digest(array) == DIGESTS[name]["outputs"][entry]
