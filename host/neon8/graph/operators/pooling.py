# SPDX-License-Identifier: Apache-2.0
"""Max and average pooling, over windows or over the whole image."""

from functools import partial

from neon8.graph.graph import Node, Pool, nchw
from neon8.graph.operators.windows import window
from neon8.graph.source import (
    Convert,
    OnnxNode,
    Source,
    failure,
    integer,
    integers,
    shape_of,
)


def pool(source: Source, node: OnnxNode, *, kind: str) -> Node:
    """MaxPool and AveragePool; kind: "max" or "average"."""
    if integer(node, "storage_order", 0):
        raise failure(source, node, "storage_order is not supported")
    shape = shape_of(source, node, node.inputs[0])
    out = shape_of(source, node, node.outputs[0])
    geometry = window(
        source,
        node,
        kernel=integers(node, "kernel_shape") or (),
        image=shape[2:],
        out=out[2:],
        ceil=bool(integer(node, "ceil_mode", 0)),
    )
    pairs = zip(geometry.pads, geometry.kernel * 2, strict=True)
    if any(pad >= kernel for pad, kernel in pairs):
        text = f"pads {list(geometry.pads)} must be smaller than the kernel"
        raise failure(source, node, text)
    return Pool(
        name=node.name,
        inputs=node.inputs[:1],
        output=node.outputs[0],
        kind=kind,
        kernel=geometry.kernel,
        strides=geometry.strides,
        dilations=geometry.dilations,
        pads=geometry.pads,
        count_pad=kind == "average" and bool(integer(node, "count_include_pad", 0)),
    )


def global_pool(source: Source, node: OnnxNode, *, kind: str) -> Node:
    """GlobalMaxPool and GlobalAveragePool: one window of the size of the image."""
    shape = shape_of(source, node, node.inputs[0])
    if len(shape) < 3:
        raise failure(source, node, f"input of shape {list(shape)} is no image")
    height, width = nchw(shape)[2:]
    return Pool(
        name=node.name,
        inputs=node.inputs[:1],
        output=node.outputs[0],
        kind=kind,
        kernel=(height, width),
    )


OPERATORS: dict[str, Convert] = {
    "AveragePool": partial(pool, kind="average"),
    "GlobalAveragePool": partial(global_pool, kind="average"),
    "GlobalMaxPool": partial(global_pool, kind="max"),
    "MaxPool": partial(pool, kind="max"),
}
