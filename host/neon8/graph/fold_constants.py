# SPDX-License-Identifier: Apache-2.0
"""Folding of constants: nodes that do not depend on the network's input.

Exporters write weights through Constant, Reshape and Transpose nodes and shapes through
Shape, Gather and Concat; all of them become initializers here. onnx's own reference
implementation computes them, in the semantics of the file's opset.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from neon8.errors import GraphError
from neon8.graph.onnx_file import initializer
from neon8.graph.source import Array

FOLDABLE = frozenset({
    *("Add", "Cast", "Concat", "Constant", "ConstantOfShape", "Div", "Flatten"),
    *("Gather", "Identity", "Mul", "Neg", "ReduceProd", "Reshape", "Shape", "Slice"),
    *("Sqrt", "Squeeze", "Sub", "Transpose", "Unsqueeze"),
})  # fmt: skip
MAX_ELEMENTS = 1 << 27
"""A constant larger than this is not made: a tiny file could ask for terabytes."""


def fold_constants(
    path: Path,
    model: onnx.ModelProto,
    shapes: dict[str, tuple[int, ...]],
    constants: dict[str, Array],
) -> bool:
    """Replace constant nodes by initializers, in `model`; True if there were any.

    shapes: what shape inference knows, name -> dimensions.  constants: the values of
    all initializers, name -> array; is added to.
    """
    opsets = {entry.domain: entry.version for entry in model.opset_import}
    kept = []
    for node in model.graph.node:
        constant = all(not name or name in constants for name in node.input)
        if node.op_type == "Shape" and node.input[0] in shapes:
            stand_in = np.broadcast_to(np.float32(0), shapes[node.input[0]])
            result = _evaluate(path, node, {node.input[0]: stand_in}, opsets)
        elif constant and _is_cheap(node, shapes):
            feeds = {name: constants[name] for name in node.input if name}
            result = _evaluate(path, node, feeds, opsets)
        else:
            kept.append(node)
            continue
        constants[node.output[0]] = result
        model.graph.initializer.append(initializer(node.output[0], result))
    changed = len(kept) < len(model.graph.node)
    if changed:
        kept = [onnx.NodeProto.FromString(node.SerializeToString()) for node in kept]
        del model.graph.node[:]
        model.graph.node.extend(kept)
    return changed


def _is_cheap(node: onnx.NodeProto, shapes: dict[str, tuple[int, ...]]) -> bool:
    if node.domain not in ("", "ai.onnx") or node.op_type not in FOLDABLE:
        return False
    if node.op_type == "Constant":
        return True
    shape = shapes.get(node.output[0])
    return shape is not None and math.prod(shape) <= MAX_ELEMENTS


def _evaluate(
    path: Path,
    node: onnx.NodeProto,
    feeds: dict[str, Array],
    opsets: dict[str, int],
) -> Array:
    # Loading it takes as long as all else here, and most files have nothing to fold.
    from onnx.reference import ReferenceEvaluator  # noqa: PLC0415

    try:
        outputs: Any = ReferenceEvaluator(node, opsets=opsets).run(None, feeds)
        return np.asarray(outputs[0], order="C")
    except Exception as error:  # the reference implementation raises all sorts
        text = f"node {node.name or node.output[0]!r} (operator {node.op_type})"
        raise GraphError(f"{path}: {text}: cannot be computed") from error
