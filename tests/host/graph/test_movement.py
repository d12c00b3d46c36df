# SPDX-License-Identifier: Apache-2.0
"""Operators that move values, against onnxruntime; and how neighbours become one."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neon8.operators.convolution import Conv2d
from neon8.operators.movement import Permute, Reshape
from neon8.operators.selection import Gather
from onnx_nets import assert_same, chain, net, node, why_opaque

F = np.float32
IMAGE = (1, 6, 4, 8)


def ints(*values):
    return np.array(values, np.int64)


def reshaped(*shape):
    return ("Reshape", [ints(*shape)], {})


def turned(*order):
    return ("Transpose", [], {"perm": order})


def sliced(starts, ends, axes, steps):
    return ("Slice", [ints(*each) for each in (starts, ends, axes, steps)], {})


def padded(*pads, mode="constant", value=None):
    more = [] if value is None else [F(value)]
    return ("Pad", [ints(*pads), *more], {"mode": mode})


SHUFFLE = [reshaped(1, 2, 3, 4, 8), turned(0, 2, 1, 3, 4), reshaped(1, 6, 4, 8)]
TO_NHWC, TO_NCHW = turned(0, 2, 3, 1), turned(0, 3, 1, 2)
LOWEST = float(np.finfo(F).min)

MOVES = {
    "transpose of rank 8": (13, [reshaped(1, 2, 3, 2, 2, 2, 4, 1),
                                 turned(7, 3, 0, 6, 2, 5, 4, 1)]),
    "slice opset 9": (9, [("Slice", [], {"starts": [1, -5], "ends": [3, -1],
                                         "axes": [2, 3]})]),
    "slice without axes": (9, [("Slice", [], {"starts": [0, 1], "ends": [1, 4]})]),
    "slice of rank 5": (13, [reshaped(1, 6, 2, 2, 8),
                             sliced([1, 0], [2, 8], [3, 4], [1, 3])]),
    "pad with the lowest": (13, [padded(0, 0, 1, 1, 0, 0, 1, 1, value=LOWEST)]),
    "pad wrap": (19, [padded(0, 2, 0, 1, 0, 0, 2, 8, mode="wrap")]),
    "pad opset 9": (9, [("Pad", [], {"pads": [0, 0, 1, 2, 0, 0, 3, 4],
                                     "value": 2.0})]),
    "pad axes": (18, [("Pad", [ints(1, 2, 3, 4), None, ints(3, -3)], {})]),
    "gather int32": (13, [("Gather", [np.array([1, 3], np.int32)], {"axis": -1})]),
    "expand to a higher rank": (13, [reshaped(1, 6, 32),
                                     ("Expand", [ints(2, 3, 1, 1, 1)], {})]),
}  # fmt: skip


@pytest.mark.parametrize(("opset", "steps"), MOVES.values(), ids=MOVES)
def test_move(tmp_path, opset, steps):
    assert_same(tmp_path, chain(steps, IMAGE, opset=opset))


def test_split_by_an_attribute(tmp_path):
    split = node("Split", "x", "a b", "s", axis=1, split=[2, 4])
    graph = assert_same(tmp_path, net([split], {"x": IMAGE}, "a b", opset=11))
    assert [graph.tensors[name].dims[1] for name in "ab"] == [2, 4]
    assert len({each.name for each in graph.nodes}) == 2


def test_an_output_of_split_that_nothing_reads(tmp_path):
    nodes = [node("Split", "x", "a b", "s", axis=1), node("Relu", "b", "y", "r")]
    graph = assert_same(tmp_path, net(nodes, {"x": IMAGE}, "y", opset=11))
    assert list(graph.tensors) == ["x", "b", "y"]


@st.composite
def moves(draw):
    """A chain of moves of an image, all attributes drawn; its steps."""
    shape, steps = list(IMAGE), []
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["turn", "view", "slice", "pad", "take", "tile"]))
        rank = len(shape)
        axis = draw(st.integers(0, rank - 1))
        if kind == "turn" and rank > 1:
            order = draw(st.permutations(range(rank)))
            steps.append(turned(*order))
            shape = [shape[at] for at in order]
        elif kind == "view":
            shape = draw(views(math.prod(shape)))
            steps.append(reshaped(*shape))
        elif kind == "slice":
            step = draw(st.sampled_from([-3, -2, -1, 1, 2, 3]))
            start, end = draw(st.tuples(*[st.integers(-9, 9)] * 2))
            taken = len(range(shape[axis])[slice(start, end, step)])
            if taken:
                steps.append(sliced([start], [end], [axis], [step]))
                shape[axis] = taken
        elif kind == "pad" and math.prod(shape) < 2000:
            mode = draw(st.sampled_from(["constant", "edge", "reflect"]))
            most = shape[axis] - 1 if mode == "reflect" else 4
            before = draw(st.integers(-1, most)) if shape[axis] > 1 else 0
            after = draw(st.integers(0, most))
            if mode == "reflect" and before < 0:
                continue
            pads = [0] * (2 * rank)
            pads[axis], pads[axis + rank] = before, after
            value = draw(st.sampled_from([None, 0.5])) if mode == "constant" else None
            steps.append(padded(*pads, mode=mode, value=value))
            shape[axis] += before + after
        elif kind == "take":
            taken = draw(st.lists(st.integers(0, shape[axis] - 1), min_size=1,
                                  max_size=6))  # fmt: skip
            steps.append(("Gather", [ints(*taken)], {"axis": axis}))
            shape[axis] = len(taken)
        elif kind == "tile" and math.prod(shape) < 2000:
            repeats = [1] * rank
            repeats[axis] = draw(st.integers(1, 3))
            steps.append(("Tile", [ints(*repeats)], {}))
            shape[axis] *= repeats[axis]
    return steps or [turned(0, 2, 1, 3)]


@st.composite
def views(draw, size):
    """A shape of `size` values, of rank 1 to 8."""
    shape = []
    while len(shape) < 7 and draw(st.integers(0, 4)):
        factor = draw(st.sampled_from([f for f in range(1, 13) if size % f == 0]))
        shape.append(factor)
        size //= factor
    return [*shape, size]


@settings(max_examples=200)
@given(steps=moves())
def test_chains_of_moves(tmp_path_factory, steps):
    assert_same(tmp_path_factory.mktemp("moves"), chain(steps, IMAGE))


CONV = ("Conv", [(6, 6, 1, 1)], {})
MERGED = {
    "shuffle": (SHUFFLE, [Permute]),
    "there and back": ([CONV, TO_NHWC, TO_NCHW, CONV], [Conv2d, Conv2d]),
    "back after a view": (
        [CONV, TO_NHWC, reshaped(1, 32, 6), turned(0, 2, 1), reshaped(*IMAGE), CONV],
        [Conv2d, Conv2d],
    ),
    "turned again": ([TO_NHWC, turned(0, 2, 1, 3)], [Permute]),
    "axes of one": ([reshaped(1, 6, 1, 32), turned(0, 2, 1, 3)], [Reshape]),
    "slices": (
        [sliced([1], [4], [2], [1]), sliced([0], [8], [3], [2]), padded(*(1,) * 8)],
        [Gather],
    ),
    "padded and cropped": (
        [CONV, padded(0, 0, 1, 1, 0, 0, 1, 1), padded(0, 0, -1, -1, 0, 0, -1, -1),
         CONV],
        [Conv2d, Conv2d],
    ),
    "two constants": (
        [padded(0, 0, 1, 1, 0, 0, 1, 1), padded(0, 0, 1, 1, 0, 0, 1, 1, value=2.0)],
        [Gather, Gather],
    ),
    "a whole slice": ([CONV, sliced([0], [99], [1], [1]), CONV], [Conv2d, Conv2d]),
}  # fmt: skip


@pytest.mark.parametrize(("steps", "kinds"), MERGED.values(), ids=MERGED)
def test_neighbours_become_one(tmp_path, steps, kinds):
    graph = assert_same(tmp_path, chain(steps, IMAGE))
    assert [type(each) for each in graph.nodes] == kinds


def test_a_move_with_two_readers_stays(tmp_path):
    """Its Reshape is read from it and not moved a second time."""
    nodes = [
        node("Transpose", "x", "t", "t", perm=[0, 2, 3, 1]),
        node("Relu", "t", "y", "r"),
        node("Flatten", "t", "z", "f"),
    ]
    graph = assert_same(tmp_path, net(nodes, {"x": IMAGE}, "y z"))
    assert sum(isinstance(each, Permute) for each in graph.nodes) == 1


REFUSED = {
    "blocks of": ("DepthToSpace", [], {"blocksize": 5}),
    "neither DCR nor CRD": ("DepthToSpace", [], {"blocksize": 1, "mode": "CDR"}),
    "only what is there": padded(0, 0, 4, 0, 0, 0, 0, 0, mode="reflect"),
    "pads with NaN": padded(0, 0, 1, 0, 0, 0, 0, 0, value=np.nan),
}


@pytest.mark.parametrize(("text", "step"), REFUSED.items(), ids=REFUSED)
def test_refused(tmp_path, text, step):
    assert text in why_opaque(tmp_path, chain([step], IMAGE))


def test_a_part_without_values(tmp_path):
    """It is a constant, and joined to others it adds nothing."""
    lengths = np.array([3, 0], np.int64)
    nodes = [
        node("Split", "x lengths", "some none", axis=1),
        node("Relu", "none", "still"),
        node("Concat", "some still", "y", axis=1),
    ]
    graph = assert_same(
        tmp_path, net(nodes, {"x": (1, 3, 4, 4)}, "y", {"lengths": lengths})
    )
    assert all(name in ("x", "some", "y") for name in graph.tensors)


def to_boxes(order, *shape, outputs="y"):
    """Two convolutions, whose channels are turned and joined along the first axis."""
    nodes = []
    for name in "ab":
        nodes += [
            node("Conv", f"x w{name}", name),
            node("Transpose", name, f"{name}_turned", perm=order),
            node("Reshape", f"{name}_turned shape", f"{name}_boxes"),
            node("Sigmoid", f"{name}_boxes", f"{name}_on"),
        ]
    joined = node("Concat", "a_on b_on", "y", axis=1)
    weights = {f"w{name}": np.ones((6, 6, 1, 1), F) for name in "ab"}
    weights["shape"] = ints(*shape)
    return net([*nodes, joined], {"x": IMAGE}, outputs, weights)


ROWS = {
    "boxes": (to_boxes((0, 2, 3, 1), 1, -1, 2), True),
    "all channels": (to_boxes((0, 2, 3, 1), 1, -1, 6), True),
    "of two batches": (to_boxes((0, 2, 3, 1), 2, -1, 3), False),
    "no whole channels": (to_boxes((0, 2, 3, 1), 1, -1, 4), False),
    "pixels": (to_boxes((0, 1, 3, 2), 1, -1, 2), False),
    "read elsewhere": (
        to_boxes((0, 2, 3, 1), 1, -1, 2, outputs="y a_on"),
        False,
    ),
}


@pytest.mark.parametrize(("model", "laid"), ROWS.values(), ids=ROWS)
def test_rows_of_channels(tmp_path, model, laid):
    """They are joined as (rows, channels), which other tensors are not."""
    graph = assert_same(tmp_path, model)
    dims = graph.tensors["a_on"].dims
    assert len(dims) == (2 if laid else 3)
    assert ("y_rows" in graph.tensors) == laid
