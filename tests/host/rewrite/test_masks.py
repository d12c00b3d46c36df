# SPDX-License-Identifier: Apache-2.0
"""What a mask removes has probability 0 in integers, whatever the scores."""

from dataclasses import replace

import numpy as np
import pytest

from neon8.compile import oracle
from neon8.compile.lower import lower
from neon8.operators.arithmetic import Add, WithConstant
from neon8.operators.integer import NOT, Folded
from neon8.operators.reference import Operand
from neon8.operators.softmax import LogSoftmax, Softmax, SoftmaxQOp, compute_softmax_q
from neon8.operators.where import Where
from neon8.rewrite.masks import with_masks
from small_graphs import graph_of, scale, table_of

ROWS, COUNT = 6, 40
RNG = np.random.default_rng(4)
OUT = scale(1 / 255, -128, "unsigned")

WHERE = Where(
    name="mask", inputs=("c", "x"), output="s", constants={2: np.float32([-np.inf])}
)
SOFTMAX = Softmax(name="softmax", inputs=("s",), output="y", axis=1)
TWICE = Add(name="twice", inputs=("y", "y"), output="z")
SCALES = {"y": OUT, "z": scale(2 / 255, -128, "unsigned")}


def masked(*nodes):
    """A graph whose tensors "m" and "s" nobody observes, and "c" is of conditions.

    The result has the integers of the probabilities.
    """
    graph = graph_of(*nodes, TWICE, inputs=("x", "c"), outputs=("z",))
    tensors = {
        name: replace(tensor, dims=(ROWS, COUNT), hidden=name in ("s", "m"))
        for name, tensor in graph.tensors.items()
    }
    for name in tensors.keys() & {"c", "nan"}:
        tensors[name] = replace(tensors[name], dtype="bool")
    return replace(graph, tensors=tensors)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("reach", [0.01, 1.0, 25.0, 1e3, 6e4])
def test_what_is_masked_counts_for_nothing(reach, bits):
    highest = 2 ** (bits - 1) - 1
    graph = masked(WHERE, SOFTMAX)
    x = scale(float(np.float32(reach / highest)), 0, "symmetric", bits=bits)
    program = lower(graph, table_of(graph, x=x, **SCALES), io="int8")
    assert not program.islands
    q = RNG.integers(-highest, highest + 1, (ROWS, COUNT)).astype(f"int{bits}")
    q[0] = -highest  # as low as what is masked, but for the distance
    keep = RNG.random((ROWS, COUNT)) < 0.3
    keep[0, 1:] = False
    keep[0, 0], keep[1] = True, False
    given = {"x": q, "c": keep.astype(np.int32)}
    y = oracle.run(program, given)["z"].reshape(ROWS, COUNT)
    scores = next(t for name, t in program.tensors.items() if name == "s")
    assert scores.dtype == "int16"
    for row in (0, *range(2, ROWS)):
        assert (y[row, ~keep[row]] == OUT.zero_point).all()
        real = q[row, keep[row]] * np.float64(np.float32(x.scale))
        alone = np.rint(real / np.float64(scores.scale)).astype(np.int16)
        tensor = replace(scores, dims=(1, len(alone)))
        out = replace(program.tensors["y"], dims=tensor.dims)
        op = SoftmaxQOp(name="s", inputs=("s",), output="y", axis=1)
        values = alone.reshape(1, -1, 1, 1)
        want = compute_softmax_q(op, out, Operand(tensor, values)).reshape(-1)
        np.testing.assert_allclose(y[row, keep[row]], want, atol=1)
    assert (y[1] == np.rint(255 / COUNT) + OUT.zero_point).all()  # nothing is left


def test_a_test_for_nan_goes():
    nan = Folded(name="n", inputs=("y", "y"), output="nan", function="equal", then=NOT)
    safe = Where(
        name="w",
        inputs=("nan", "y"),
        output="w",
        constants={1: np.zeros(1, np.float32)},
    )
    graph = replace(masked(WHERE, SOFTMAX, nan, safe), outputs=("w",))
    changed, _ = with_masks(graph, table_of(graph, without=("s",)))
    assert [node.name for node in changed.nodes] == ["mask", "softmax", "w"]
    assert changed.nodes[-1].only_reshapes


ADD = Add(name="mask", inputs=("x", "m"), output="s")
CONSTANT = WithConstant(
    name="mask", inputs=("x",), output="s", function="add",
    constant=np.float32([[0, -3e38] * (COUNT // 2)]),
)  # fmt: skip
SHIFT = Where(
    name="shift", inputs=("c",), output="m",
    constants={1: np.float32([0]), 2: np.float32([-1e9])},
)  # fmt: skip

ISLANDS = {
    "where": ((WHERE, SOFTMAX), set()),
    "added": ((SHIFT, ADD, SOFTMAX), {"shift"}),
    "constant": ((CONSTANT, SOFTMAX), set()),
    "logarithm": (
        (WHERE, LogSoftmax(name="softmax", inputs=("s",), output="y", axis=1)),
        {"mask", "softmax"},
    ),
    "read by another": (
        (WHERE, SOFTMAX, Add(name="more", inputs=("s", "s"), output="more")),
        {"mask", "softmax", "more"},
    ),
}


@pytest.mark.parametrize("case", ISLANDS)
def test_float_islands(case):
    nodes, islands = ISLANDS[case]
    graph = masked(*nodes)
    table = table_of(graph, **SCALES, without=("s", "m"))
    program = lower(graph, table, io="int8")
    assert program.islands.keys() == islands
