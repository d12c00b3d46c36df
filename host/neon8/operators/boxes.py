# SPDX-License-Identifier: Apache-2.0
"""NonMaxSuppression: of boxes that overlap the one with the best score is kept  (38).

As many boxes as the values want would be rows without a number. So here, and in the
network that onnxruntime runs, the rows are as many as there can be, and -1 stands in
those that are left: padded() appends ordinary nodes that do that.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neon8.arrays import Array, FloatArray
from neon8.ir.graph import Node
from neon8.ir.program import Bounds, Op, Tensor
from neon8.operators.build import INT32, Build
from neon8.operators.composition import Parts
from neon8.operators.family import Family
from neon8.operators.reference import Operand
from neon8.operators.source import OnnxNode, Source
from neon8.operators.windows import MAX_EXTENT

CORNERS = 4
LEAST = 1e-30
"""The least overlap that is not 0, as the least of all scales."""
NOWHERE = -1
"""What stands in rows of no box."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppression(Node):
    """Batch, class and place of each box that is kept, as integers.

    inputs: boxes and their scores.  overlap: a box that overlaps one with a better
    score by more is dropped.  threshold: so is one whose score is not above that, NaN
    if any may be.  centred: boxes are centre and size.
    """

    overlap: float
    threshold: float
    centred: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NmsOp(Op):
    """(38).  scale: the overlap.  fill: the threshold, or NaN.

    function: "multiply" if boxes are centre and size, whose product is the area, else
    "none".
    """

    scale: np.float32
    fill: np.float32
    function: str

    def bounds(self, given: Sequence[Bounds]) -> Bounds:
        """Places, and -1."""
        return NOWHERE, MAX_EXTENT - 1


def rows_of(source: Source, node: OnnxNode) -> int | None:
    """How many boxes can be kept; None if only a run shows it."""
    boxes, scores = (source.shapes.get(name) for name in node.inputs[:2])
    given = node.inputs[2] if len(node.inputs) > 2 else ""
    most = source.constants.get(given)
    if boxes is None or scores is None or (given and most is None):
        return None
    if most is None or most.size != 1 or len(boxes) != len(scores) or len(boxes) != 3:
        return 0
    each = min(int(most.reshape(-1)[0]), boxes[1])
    return math.prod(scores[:2]) * max(each, 0)


def padded(p: Parts) -> bool:
    """NonMaxSuppression with as many rows as there can be."""
    node, rows = p.node, rows_of(p.source, p.node)
    if not rows or rows > MAX_EXTENT or node.outputs[0] in p.source.hidden:
        return False
    p.in_float = True
    made = p.result(node.operator)
    p.append(node.operator, node.inputs, (made,), node.attributes, layer=True)
    rest = p.add("Expand", np.array([[NOWHERE]]), [rows, 3])
    both = p.add("Concat", made, rest, axis=0)
    first = p.add("Slice", both, [0], [rows], [0])
    p.add("Reshape", first, [rows, 3], output=node.outputs[0])
    return True


def import_suppression(source: Source, node: OnnxNode) -> Node:
    """NonMaxSuppression, padded."""
    boxes, scores = (source.shape_of(node, name) for name in node.inputs[:2])
    fits = len(boxes) == len(scores) == 3 and boxes[2] == CORNERS
    if not fits or (boxes[0], boxes[1]) != (scores[0], scores[2]):
        text = f"boxes of shape {list(boxes)} and scores of shape {list(scores)}"
        raise source.failure(node, f"{text} do not fit")
    source.constant(node, 2)
    rows = rows_of(source, node)
    if not rows or rows > MAX_EXTENT:
        text = f"gives {rows or 0} rows by its max_output_boxes_per_class; neon8 takes"
        raise source.failure(node, f"{text} 1 to {MAX_EXTENT}: export it with another")
    overlap, threshold = (_real(source, node, at) for at in (3, 4))
    centred = node.integer("center_point_box", 0)
    overlap = 0.0 if overlap is None else overlap
    if not LEAST <= (overlap or LEAST) <= 1 or centred not in (0, 1):
        text = f"iou_threshold {overlap} or center_point_box {centred} is none"
        raise source.failure(node, text)
    return Suppression(
        name=node.name,
        inputs=node.inputs[:2],
        output=node.outputs[0],
        overlap=overlap,
        threshold=math.nan if threshold is None else threshold,
        centred=bool(centred),
    )


def _real(source: Source, node: OnnxNode, index: int) -> float | None:
    """Input `index`, one number that is a constant."""
    given = source.weights(node, index)
    if given is not None and given.size != 1:
        raise source.failure(node, f"{node.inputs[index]!r} is not one number")
    return None if given is None else float(given.reshape(-1)[0])


def lower_suppression(b: Build, node: Suppression) -> None:
    """Steps that work on real numbers."""
    sources = [b.float32(name) for name in node.inputs]
    b.step(
        NmsOp,
        node.name,
        sources,
        b.declare(node.output, INT32),
        scale=np.float32(node.overlap),
        fill=np.float32(node.threshold),
        function="multiply" if node.centred else "none",
    )


def compute_nms(op: NmsOp, out: Tensor, boxes: Operand, scores: Operand) -> Array:
    """(38)."""
    places, values = (x.values[..., 0].astype(np.float32) for x in (boxes, scores))
    images, classes, _ = values.shape
    wanted = out.shape[0] // (images * classes)
    rows = []
    with np.errstate(all="ignore"):
        for image in range(images):
            found = _boxes(places[image], centred=op.function == "multiply")
            for channel in range(classes):
                order = _order(values[image, channel], op.fill)
                kept = _kept(found, order, op.scale, wanted)
                rows += [(image, channel, place) for place in kept]
    made = np.full(out.shape, NOWHERE, np.int32)
    made[: len(rows), :, 0, 0] = np.array(rows, np.int32).reshape(-1, 3)
    return made


def _boxes(given: FloatArray, *, centred: bool) -> FloatArray:
    """(N, 5) of (N, 4): the least and the largest of both axes, and the area."""
    a, b = given[:, :2], given[:, 2:]
    half = b / np.float32(2)
    lo = a - half if centred else np.where(a >= b, b, a)
    hi = a + half if centred else np.where(a >= b, a, b)
    sides = b if centred else hi - lo
    some = lo < hi
    ends = np.where(some, lo, 0), np.where(some, hi, 0)
    made: FloatArray = np.hstack([*ends, sides[:, :1] * sides[:, 1:]], dtype=np.float32)
    return made


def _order(scores: FloatArray, threshold: np.float32) -> Array:
    """The places of scores above the threshold, the best first."""
    places = np.arange(len(scores))
    if not np.isnan(threshold):
        places = places[scores > threshold]
    keys = scores[places]
    order = np.lexsort((places, np.nan_to_num(-keys, nan=0), np.isnan(keys)))
    best: Array = places[order]
    return best


def _kept(boxes: FloatArray, order: Array, most: np.float32, wanted: int) -> list[int]:
    """The places that stay, `wanted` at most."""
    kept: list[int] = []
    for place in order.tolist():
        if len(kept) == wanted:
            break
        lo, hi, area = boxes[place, :2], boxes[place, 2:4], boxes[place, 4]
        los, his, areas = boxes[kept, :2], boxes[kept, 2:4], boxes[kept, 4]
        # Not minimum and maximum, which numpy on ARMv7 makes 0 of denormals.
        sides = np.where(hi < his, hi, his) - np.where(lo < los, los, lo)
        both = sides[:, 0] * sides[:, 1]
        share = both / (area + areas - both)
        if not ((sides > 0).all(axis=1) & (share > most)).any():
            kept.append(place)
    return kept


FAMILY = Family(
    imports={"NonMaxSuppression": import_suppression},
    compositions={"NonMaxSuppression": padded},
    lower_float={Suppression: lower_suppression},
    steps={NmsOp: compute_nms},
)
