# SPDX-License-Identifier: Apache-2.0
"""Factors of a table in the network: its function is kept, the rest is refused."""

from dataclasses import replace

import numpy as np
import pytest

import graph_executor
from neon8.errors import CompileError
from neon8.ir.graph import Activation
from neon8.operators.activation import Prelu
from neon8.operators.arithmetic import Add, Divide, Maximum, Multiply, Subtract
from neon8.operators.functions import X as ARGUMENT
from neon8.operators.functions import call, gated
from neon8.operators.movement import Concat, Permute, Reshape
from neon8.operators.pointwise import Pointwise
from neon8.operators.pooling import Pool
from neon8.operators.selection import Gather
from neon8.rewrite.equalization import equalized
from small_graphs import RELU, SHAPE, conv, graph_of, table_of, with_entries

RNG = np.random.default_rng(11)
LEAKY = Activation(slope=0.1)
WIDE = {"joined": (1, 8, 5, 5), "v": (4, 1, 1), **dict.fromkeys("mg", (1, 4, 1, 1))}


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
HALVES = Concat(name="join", inputs=("a", "b"), output="joined", axis=2)
PICTURES = Concat(name="join", inputs=("a", "b"), output="joined", axis=0)
PART = Concat(
    name="part",
    inputs=("a",),
    output="b",
    axis=2,
    constants={0: np.ones((1, 4, 1, 5), np.float32)},
)
MOST = Maximum(name="most", inputs=("a", "b"), output="c")
LISTS = [np.arange(size, dtype=np.int32) for size in (1, 4, 5, 5)]


def taken(axis, indices, **options):
    """A Gather of the channels, or the rows, of a."""
    lists = list(LISTS)
    lists[axis] = np.array(indices, np.int32)
    return Gather(
        name="taken",
        inputs=("a",),
        output="b",
        view=(1, 4, 5, 5),
        indices=tuple(lists),
        **options,
    )


def turned(view, order):
    return Permute(name="turned", inputs=("a",), output="b", view=view, order=order)


SHUFFLE = turned((1, 2, 2, 25), (0, 2, 1, 3))
FLAT = Reshape(name="flat", inputs=("a",), output="b")
SUM = Add(name="sum", inputs=("a", "b"), output="c", activation=RELU)
LESS = Subtract(name="less", inputs=("a", "b"), output="c")
SILU = Pointwise(
    name="silu", inputs=("a",), output="b", function=gated(call("sigmoid", ARGUMENT))
)
GATE = (
    Pool(name="mean", inputs=("a",), output="m", kind="average", kernel=(5, 5)),
    Pointwise(name="gate", inputs=("m",), output="g", function=call("tanh", ARGUMENT)),
    Multiply(name="times", inputs=("g", "a"), output="b", activation=LEAKY),
)

CASES = {
    "relu": ((replace(A, activation=RELU), reader("a")), {"a"}),
    "leaky to depthwise": (
        (replace(A, activation=LEAKY), reader("a", groups=4)),
        {"a"},
    ),
    "transposed": ((replace(A, spread=(2, 2)), reader("a")), {"a"}),
    "to transposed": ((A, reader("a", groups=2, spread=(2, 2))), {"a"}),
    "groups": ((A, reader("a", groups=2, kernel=1)), {"a"}),
    "max pool": ((A, pool("max"), reader("b")), {"a", "b"}),
    "average pool": ((A, pool("average"), reader("b")), {"a", "b"}),
    "prelu": ((A, PRELU, reader("b")), {"a", "b"}),
    "concat": ((A, B, JOIN, reader("joined", channels=8)), {"a", "b", "joined"}),
    "sum": ((A, B, SUM, reader("c")), {"a", "b", "c"}),
    "difference": ((A, B, LESS, reader("c")), {"a", "b", "c"}),
    "maximum": ((A, B, MOST, reader("c")), {"a", "b", "c"}),
    "function": ((A, SILU, reader("b")), {"a", "b"}),
    "function's input": ((A, SILU, reader("b")), {"a"}),
    "function's output": ((A, SILU, reader("b")), {"b"}),
    "gate": ((A, *GATE, reader("b")), {"a", "m", "g", "b"}),
    "gate alone": ((A, *GATE, reader("b")), {"g"}),
}
UNRELATED = {"function", "gate"}
"""Cases whose tensors have factors of their own, but for the mean."""
MOVES = {
    "rows joined": (
        (A, B, HALVES, reader("joined")),
        (1, 4, 10, 5),
        "joined",
        [0, 1, 2, 3],
    ),
    "images joined": (
        (A, B, PICTURES, reader("joined")),
        (2, 4, 5, 5),
        "joined",
        [0, 1, 2, 3],
    ),
    "slice": (
        (A, taken(1, [1, 3]), reader("b", channels=2)),
        (1, 2, 5, 5),
        "b",
        [1, 3],
    ),
    "some twice": (
        (A, taken(1, [3, 0, 3]), reader("b", channels=3)),
        (1, 3, 5, 5),
        "b",
        [3, 0, 3],
    ),
    "padded": (
        (A, taken(2, [-1, 0, 1, 2, 3, 4, -1]), reader("b")),
        (1, 4, 7, 5),
        "b",
        [0, 1, 2, 3],
    ),
    "channels put in": (
        (A, taken(1, [-1, 0, -1, 2]), reader("b")),
        SHAPE,
        "b",
        [None, 0, None, 2],
    ),
    "shuffle": ((A, SHUFFLE, reader("b")), SHAPE, "b", [0, 2, 1, 3]),
    "flattened": (
        (A, FLAT, reader("b", channels=100, kernel=1)),
        (1, 100, 1, 1),
        "b",
        np.repeat(np.arange(4), 25).tolist(),
    ),
}
"""Nodes, the shape of what the move makes, its name, the channel of a that each of its
channels has."""


def with_factors(graph, factors):
    entries = {name: {"factors": tuple(each)} for name, each in factors.items()}
    return with_entries(graph, **entries)


def factors_of(case, draw):
    """The same for all tensors of a case; a Concat has those of its two inputs."""
    _, names = CASES[case]
    one, other = draw(), draw()
    both = {"a": one, "b": other, "joined": np.concatenate([one, other])}
    if case in UNRELATED:
        both |= {"m": one, "g": draw()}
    elif case != "concat":
        both = dict.fromkeys("abcg", one)
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
        pairs = zip(found.nodes, graph.nodes, strict=True)
        assert any(node is not old for node, old in pairs)
        got = outputs(found)
        assert np.abs(got - want).max() <= tolerance * np.abs(want).max()


@pytest.mark.parametrize("case", MOVES)
def test_factors_go_where_channels_go(case):
    nodes, shape, name, channels = MOVES[case]
    made = (shape[0], 4, *shape[2:])
    graph = graph_of(*nodes, shapes={name: shape, "y": made})
    factors = np.exp2(RNG.integers(-8, 9, 4)).astype(float)
    made = [1.0 if each is None else factors[each] for each in channels]
    given = dict.fromkeys("ab", factors.tolist()) | {name: made}
    kept = {each: given[each] for each in given if each in graph.tensors}
    found = equalized(graph, with_factors(graph, kept))
    assert np.array_equal(outputs(found), outputs(graph))
    made[0 if channels[0] is not None else 1] *= 2
    with pytest.raises(CompileError, match="'a' has other factors than tensor"):
        equalized(graph, with_factors(graph, kept | {name: made}))


@pytest.mark.parametrize(
    ("node", "word"),
    [
        (taken(2, [-1, 0, 1, 2, 3], fill=1.0), "cannot have factors"),
        (PART, "cannot have factors"),
        (turned((1, 4, 5, 5), (0, 2, 1, 3)), "other factors"),
        (turned((1, 2, 2, 5, 5), (0, 1, 3, 2, 4)), "other factors"),
    ],
)
def test_moves_that_mix_channels(node, word):
    """And constants put between them; one factor for all is right."""
    shapes = {"b": (1, 5, 4, 5)} if word == "other factors" else {}
    shapes |= {"b": (1, 4, 6, 5)} if node is PART else {}
    graph = graph_of(A, node, reader("b", channels=shapes.get("b", SHAPE)[1]),
                     shapes=shapes)  # fmt: skip
    uneven = with_factors(graph, {"a": [1.0, 2.0, 3.0, 4.0]})
    with pytest.raises(CompileError, match=word):
        equalized(graph, uneven)
    if not node.fill and node is not PART:
        channels = graph.tensors["b"].shape[1]
        same = with_factors(graph, {"a": [0.5] * 4, "b": [0.5] * channels})
        assert np.array_equal(outputs(equalized(graph, same)), outputs(graph))


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
OVER = Divide(name="over", inputs=("a", "x"), output="b")
FIRST = Multiply(name="times", inputs=("a", "v"), output="b")
CLIPPED = replace(FIRST, inputs=("a", "x"), activation=Activation(lo=0.0, hi=6.0))
BEGINS = replace(A, activation=Activation(lo=-1.0))
REFUSED = {
    "few": ((A, reader("a")), {"a": [1.0, 2.0]}, "2 factors .* for 4 channels"),
    "output": ((A, reader("a")), {"y": FOUR}, "seen from outside"),
    "input": ((A, reader("a")), {"x": FOUR}, "seen from outside"),
    "quotient": ((A, OVER, reader("b")), {"a": FOUR}, "'over' .*cannot have factors"),
    "ranks": ((A, FIRST, reader("b")), {"a": FOUR}, "'times' .*cannot have factors"),
    "product's bound": ((A, CLIPPED, reader("b")), {"b": FOUR}, "bound of 6"),
    "lower bound": ((BEGINS, reader("a")), {"a": FOUR}, "activation begins at -1"),
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
