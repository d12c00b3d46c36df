# SPDX-License-Identifier: Apache-2.0
"""Offsets of a table in the network: its function is kept, the rest is refused."""

from dataclasses import replace

import numpy as np
import pytest

import graph_executor
from neon8.errors import CompileError
from neon8.operators.arithmetic import Add
from neon8.operators.pooling import Pool
from neon8.rewrite.equalization import equalized
from small_graphs import RELU, conv, graph_of, with_entries

RNG = np.random.default_rng(12)
X = RNG.normal(size=(1, 4, 5, 5)).astype(np.float32)
OFFSETS = (3.0, -2.5, 0.0, 40.0)
FACTORS = (0.5, 3.0, 1.0, 0.25)
SMALLER = {"y": (1, 4, 3, 3), "b": (1, 4, 3, 3)}


def layer(output, source, *, kernel=1, pads=(0, 0, 0, 0), groups=1, **options):
    weight = RNG.normal(size=(4, 4 // groups, kernel, kernel)).astype(np.float32)
    options |= {"bias": RNG.normal(size=4).astype(np.float32), "weight": weight}
    return conv(output, source, kernel=kernel, pads=pads, groups=groups, **options)


A = layer("a", "x", kernel=3, pads=(1, 1, 1, 1))
Y = layer("y", "a")


CASES = {
    "1x1": ((A, Y), {"a": {"offsets": OFFSETS}}),
    "taps": ((A, layer("y", "a", kernel=3)), {"a": {"offsets": OFFSETS}}),
    "groups": ((A, layer("y", "a", groups=2)), {"a": {"offsets": OFFSETS}}),
    "depthwise": ((A, layer("y", "a", groups=4)), {"a": {"offsets": OFFSETS}}),
    "factors": ((A, Y), {"a": {"offsets": OFFSETS, "factors": FACTORS}}),
    "chain": (
        (A, layer("b", "a", kernel=3), layer("y", "b")),
        {"a": {"offsets": OFFSETS}, "b": {"offsets": OFFSETS[::-1]}},
    ),
    "two readers": (
        (A, layer("b", "a"), layer("c", "a"), Add(name="s", inputs=("b", "c"),
                                                 output="y")),
        {"a": {"offsets": OFFSETS}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_function_is_kept(case):
    nodes, entries = CASES[case]
    small = SMALLER if case in ("taps", "chain") else None
    graph = graph_of(*nodes, shapes=small)
    found = equalized(graph, with_entries(graph, **entries))
    want, got = (graph_executor.run(g, {"x": X})["y"] for g in (graph, found))
    assert np.abs(got - want).max() <= 2e-5 * np.abs(want).max()
    own = entries["a"]
    made = A.bias.astype(np.float64) - np.array(own["offsets"])
    wanted = made.astype(np.float32) / np.array(own.get("factors", (1.0,)))
    assert found.nodes[0].bias == pytest.approx(wanted.astype(np.float32))


POOL = Pool(name="pool", inputs=("a",), output="b", kind="max", kernel=(1, 1),
            pads=(0, 0, 0, 0), count_pad=False)  # fmt: skip
PLUS = Add(name="plus", inputs=("a", "x"), output="b")
UP = replace(A, name="up", spread=(2, 2))
REFUSED = {
    "few": ((A, Y), {"a": (1.0, 2.0)}, "2 offsets .* for 4 channels"),
    "output": ((A, Y), {"y": OFFSETS}, "seen from outside"),
    "input": ((A, Y), {"x": OFFSETS}, "seen from outside"),
    "activation": (
        (replace(A, activation=RELU), Y),
        {"a": OFFSETS},
        "'a': layer 'layer_a' makes it",
    ),
    "padding": (
        (A, layer("y", "a", kernel=3, pads=(1, 1, 1, 1))),
        {"a": OFFSETS},
        "'layer_y' reads it, .*; delete them in the table",
    ),
    "pool": ((A, POOL, layer("y", "b")), {"a": OFFSETS}, "'pool' reads it"),
    "after a pool": ((A, POOL, layer("y", "b")), {"b": OFFSETS}, "'pool' makes it"),
    "sum": ((A, PLUS, layer("y", "b")), {"a": OFFSETS}, "'plus' reads it"),
    "transposed maker": ((UP, Y), {"a": OFFSETS}, "'up' makes it"),
    "transposed reader": ((A, replace(Y, name="up", spread=(2, 2))), {"a": OFFSETS},
                          "'up' reads it"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused(case):
    nodes, offsets, said = REFUSED[case]
    graph = graph_of(*nodes)
    table = with_entries(graph, **{n: {"offsets": o} for n, o in offsets.items()})
    with pytest.raises(CompileError, match=said):
        equalized(graph, table)


def test_a_network_of_another_tool_is_refused():
    graph = graph_of(A, Y)
    table = with_entries(graph, a={"offsets": OFFSETS})
    with pytest.raises(CompileError, match=r"quantized elsewhere.*delete the offsets"):
        equalized(replace(graph, quantized=True), table)
