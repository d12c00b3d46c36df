# SPDX-License-Identifier: Apache-2.0
"""Factors of a table in the network: its function is kept, the rest is refused."""

from dataclasses import replace

import numpy as np
import pytest

import graph_executor
from neon8.errors import CompileError
from neon8.ir.graph import Activation
from neon8.operators.activation import Prelu
from neon8.operators.arithmetic import Add, Multiply, Subtract
from neon8.operators.movement import Concat
from neon8.operators.pooling import Pool
from neon8.rewrite.equalization import equalized
from small_graphs import RELU, conv, graph_of, table_of, with_entries

RNG = np.random.default_rng(11)
LEAKY = Activation(slope=0.1)
WIDE = {"joined": (1, 8, 5, 5)}


def pool(kind):
    settings = {"kernel": (3, 3), "pads": (1, 1, 1, 1), "count_pad": False}
    return Pool(name="pool", inputs=("a",), output="b", kind=kind, **settings)


def maker(output, source="x", **options):
    weight = RNG.normal(size=(4, 4, 3, 3)).astype(np.float32)
    bias = RNG.normal(size=4).astype(np.float32)
    return conv(output, source, kernel=3, weight=weight, bias=bias, **options)


def reader(source, **options):
    kernel = options.pop("kernel", 3)
    channels, groups = options.get("channels", 4), options.get("groups", 1)
    shape = (4, channels // groups, kernel, kernel)
    weight = RNG.normal(size=shape).astype(np.float32)
    return conv("y", source, kernel=kernel, weight=weight, **options)


A, B = maker("a"), maker("b")
PRELU = Prelu(
    name="prelu",
    inputs=("a",),
    output="b",
    slopes=np.array([0.5, -2, 0, 3], np.float32),
)
JOIN = Concat(name="join", inputs=("a", "b"), output="joined", axis=1)
SUM = Add(name="sum", inputs=("a", "b"), output="c", activation=RELU)
LESS = Subtract(name="less", inputs=("a", "b"), output="c")

CASES = {
    "relu": ((replace(A, activation=RELU), reader("a")), {"a"}),
    "leaky to depthwise": (
        (replace(A, activation=LEAKY), reader("a", groups=4)),
        {"a"},
    ),
    "groups": ((A, reader("a", groups=2, kernel=1)), {"a"}),
    "max pool": ((A, pool("max"), reader("b")), {"a", "b"}),
    "average pool": ((A, pool("average"), reader("b")), {"a", "b"}),
    "prelu": ((A, PRELU, reader("b")), {"a", "b"}),
    "concat": ((A, B, JOIN, reader("joined", channels=8)), {"a", "b", "joined"}),
    "sum": ((A, B, SUM, reader("c")), {"a", "b", "c"}),
    "difference": ((A, B, LESS, reader("c")), {"a", "b", "c"}),
}


def with_factors(graph, factors):
    entries = {name: {"factors": tuple(each)} for name, each in factors.items()}
    return with_entries(graph, **entries)


def factors_of(case, draw):
    """The same for all tensors of a case; a Concat has those of its two inputs."""
    _, names = CASES[case]
    one, other = draw(), draw()
    both = {"a": one, "b": other, "joined": np.concatenate([one, other])}
    if case != "concat":
        both = dict.fromkeys("abc", one)
    return {name: both[name].tolist() for name in names}


def outputs(graph):
    return graph_executor.run(graph, {"x": X})["y"]


X = RNG.normal(size=(1, 4, 5, 5)).astype(np.float32)


@pytest.mark.parametrize("case", CASES)
def test_the_function_is_kept(case):
    """To the last bit with powers of two, else to rounding of the weights."""
    nodes, _ = CASES[case]
    graph = graph_of(*nodes, shapes=WIDE)
    want = outputs(graph)
    draws = (
        (lambda: np.exp2(RNG.integers(-8, 9, 4)).astype(np.float64), 0.0),
        (lambda: RNG.uniform(0.01, 9, 4).astype(np.float32).astype(float), 1e-5),
    )
    for draw, tolerance in draws:
        found = equalized(graph, with_factors(graph, factors_of(case, draw)))
        assert (found.nodes[0].weight != graph.nodes[0].weight).any()
        got = outputs(found)
        assert np.abs(got - want).max() <= tolerance * np.abs(want).max()


def test_a_table_without_factors_changes_nothing():
    graph = graph_of(A, reader("a"))
    assert equalized(graph, table_of(graph)) is graph


def test_an_upper_bound_stays_above_what_a_channel_reaches():
    capped = replace(A, activation=Activation(lo=0.0, hi=6.0))
    graph = graph_of(capped, reader("a"))
    table = with_factors(graph, {"a": [0.25, 1.0, 0.5, 1.0]})
    node = equalized(graph, table).nodes[0]
    assert (node.weight[0] == 4 * A.weight[0]).all()
    assert node.bias.tolist() == (A.bias * [4, 1, 2, 1]).astype(np.float32).tolist()
    table = with_factors(graph, {"a": [0.25, 1.0, 1.5, 1.0]})
    with pytest.raises(CompileError, match=r"factor above 1, 1\.5.*bound of 6"):
        equalized(graph, table)


FOUR = [0.5, 1.0, 2.0, 4.0]
TIMES = Multiply(name="times", inputs=("a", "x"), output="b")
BEGINS = replace(A, activation=Activation(lo=-1.0))
SPREAD = replace(A, name="up", spread=(2, 2))
REFUSED = {
    "few": ((A, reader("a")), {"a": [1.0, 2.0]}, "2 factors .* for 4 channels"),
    "output": ((A, reader("a")), {"y": FOUR}, "seen from outside"),
    "input": ((A, reader("a")), {"x": FOUR}, "seen from outside"),
    "product": ((A, TIMES, reader("b")), {"a": FOUR}, "'times' .*cannot have factors"),
    "lower bound": ((BEGINS, reader("a")), {"a": FOUR}, "activation begins at -1"),
    "transposed": ((SPREAD, reader("a")), {"a": FOUR}, "'up' .*cannot have factors"),
    "one side only": ((A, PRELU, reader("b")), {"a": FOUR}, "other factors than .*'b'"),
    "the other side": ((A, PRELU, reader("b")), {"b": FOUR}, "other factors than"),
    "one operand": ((A, B, SUM, reader("c")), {"a": FOUR, "c": FOUR}, "'b' has other"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused(case):
    nodes, factors, said = REFUSED[case]
    graph = graph_of(*nodes, shapes=WIDE)
    with pytest.raises(CompileError, match=said):
        equalized(graph, with_factors(graph, factors))


def test_a_network_of_another_tool_is_refused():
    graph = graph_of(A, reader("a"))
    table = with_factors(graph, {"a": FOUR})
    with pytest.raises(CompileError, match="quantized elsewhere"):
        equalized(replace(graph, quantized=True), table)
