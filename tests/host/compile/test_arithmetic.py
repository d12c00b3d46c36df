# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of tensors and of constants, from ONNX to int8 outputs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neon8.operators.arithmetic import AddOp
from neon8.operators.constants import ConstantOp
from neon8.operators.conversion import RequantizeOp
from onnx_nets import assert_same, net, node
from whole_nets import whole

SHAPE = (2, 3, 6, 5)
GOOD = 25.0
"""dB: three roundings to int8 of ranges of which little is lost."""


def behind_convolutions(nodes, weights, *, seed=0):
    """Convolutions make "a" and "b", of SHAPE; what the nodes make of them is "z"."""
    rng = np.random.default_rng(seed)
    weights = weights | {
        name: rng.uniform(-1, 1, (3, 3, 1, 1)).astype(np.float32) for name in "vwu"
    }
    first = [node("Conv", "x v", "a"), node("Conv", "x w", "b")]
    last = [node("Conv", "z u", "y")]
    return net([*first, *nodes, *last], {"x": SHAPE}, "y", weights)


def kinds(program):
    return {type(op) for op in program.ops}


@settings(max_examples=12)
@given(
    operator=st.sampled_from(["Add", "Sub", "Mul", "Div", "Max", "Min"]),
    axes=st.sets(st.integers(0, 3)),
    rank=st.integers(0, 4),
    first=st.booleans(),
    relu=st.booleans(),
    negative=st.booleans(),
)
def test_a_constant_of_any_shape(
    tmp_path_factory, operator, axes, rank, first, relu, negative
):
    folder = tmp_path_factory.mktemp("constant")
    shape = tuple(1 if a in axes else n for a, n in enumerate(SHAPE))[4 - rank :]
    value = np.random.default_rng(5).uniform(0.5, 2, shape).astype(np.float32)
    if operator == "Div":
        first = False  # by what is around zero nothing good comes
    names = "c a" if first else "a c"
    nodes = [node(operator, names, "m"), node("Relu" if relu else "Neg", "m", "z")]
    model = behind_convolutions(nodes, {"c": -value if negative else value})
    assert_same(folder, model)
    program, ratio = whole(folder, model)
    assert ratio > GOOD or operator == "Min" or negative  # which may leave nothing
    assert program.islands == {}


@pytest.mark.parametrize("operator", ["Max", "Min"])
def test_extremes_are_exact(tmp_path, operator):
    """Both convolutions and the result are on one scale, and nothing is rounded."""
    nodes = [node(operator, "a b b", "z")]
    program, _ = whole(tmp_path, behind_convolutions(nodes, {}))
    assert not kinds(program) & {RequantizeOp, AddOp}
    scales = {program.tensors[name].scale for name in ("a", "b", "z")}
    assert len(scales) == 1


@pytest.mark.parametrize(
    ("shape", "constant"),
    [
        ((2, 3, 2, 3, 5), (3, 5)),
        ((2, 3, 2, 3, 5), (3, 1)),
        ((2, 3, 6, 5, 1), (5, 4)),
    ],
)
def test_five_dimensions(tmp_path, shape, constant):
    """The last time, the tensor itself is broadcast along the last axes."""
    weights = {
        "five": np.array(shape),
        "four": np.array((2, 3, -1, 1)),
        "c": np.random.default_rng(2).normal(0, 1, constant).astype(np.float32),
    }
    nodes = [
        node("Reshape", "a five", "r"),
        node("Add", "r c", "s", "sum"),
        node("Reshape", "s four", "z"),
    ]
    model = behind_convolutions(nodes, weights)
    assert_same(tmp_path, model)
    program, ratio = whole(tmp_path, model)
    assert program.islands == {}
    assert ratio > GOOD


def test_a_mask_is_exact(tmp_path):
    """0 and 1 are levels, so a mask only sets to 0."""
    mask = np.random.default_rng(1).integers(0, 2, SHAPE[1:]).astype(np.float32)
    nodes = [node("Mul", "a m", "z")]
    program, _ = whole(tmp_path, behind_convolutions(nodes, {"m": mask}))
    (constant,) = (op for op in program.ops if isinstance(op, ConstantOp))
    assert set(np.unique(constant.levels)) == {-128, 127}
