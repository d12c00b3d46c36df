# SPDX-License-Identifier: Apache-2.0
"""What the library reckons that steps cost, in MACs of int8."""

import pytest

from hard_nets import images, one_hard_tensor
from neon8 import calibrate_model
from neon8.compile.compiler import compile_model
from neon8.evaluate.measure import cost_of
from neon8.runtime import Model
from onnx_nets import save

PIXELS, CHANNELS = 36, 8
VALUES = PIXELS * CHANNELS
MACS = PIXELS * CHANNELS * CHANNELS


@pytest.fixture(scope="module")
def costs(tmp_path_factory):
    """Cost of each convolution, by what its input is, and of the whole network."""
    path = save(tmp_path_factory.mktemp("cost"), one_hard_tensor())
    found = {}
    for kind in ("int8", "int16", "float", "weights16"):
        precision = {"n4" if kind == "weights16" else "t3": kind}
        if kind == "int8":
            precision = {}
        table = calibrate_model(path, images(8), precision=precision)
        with Model.from_bytes(compile_model(path, table)) as model:
            step = next(s for s in model.steps if s.name == "n4")
            assert step.macs == MACS
            found[kind] = step.cost, cost_of(model)
    return found


def test_a_convolution(costs):
    assert costs["int8"][0] == MACS + 4 * (VALUES + VALUES)
    assert costs["int16"][0] == 2 * MACS + 4 * (2 * VALUES + VALUES)
    assert costs["weights16"][0] == 2 * MACS + 4 * (VALUES + VALUES)
    assert costs["float"][0] == 8 * MACS + 4 * (4 * VALUES + 4 * VALUES)


def test_a_network(costs):
    whole = {kind: cost for kind, (_, cost) in costs.items()}
    assert whole["weights16"] - whole["int8"] == MACS
    assert whole["int8"] < whole["int16"] < whole["float"]
    # One layer reads twice as many bytes and computes in int16, one writes as many.
    assert whole["int16"] - whole["int8"] == MACS + 4 * (VALUES + VALUES)
