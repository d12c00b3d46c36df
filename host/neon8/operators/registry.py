# SPDX-License-Identifier: Apache-2.0
"""The tables of all operators, put together from those of the families."""

from neon8.ir.graph import Node
from neon8.ir.program import Op
from neon8.operators import (
    activation,
    arithmetic,
    attention,
    boxes,
    constants,
    conversion,
    convolution,
    einsum,
    floats,
    fourier,
    grid_sample,
    indexed,
    integer,
    layer_norm,
    matmul,
    matrices,
    movement,
    normalization,
    opaque,
    pointwise,
    pooling,
    quantization,
    ranking,
    recurrent,
    reduced,
    reduction,
    resize,
    selection,
    softmax,
    transposed,
    volumes,
    where,
)
from neon8.operators.composition import Compose
from neon8.operators.family import Lower, Opset, Step, Write
from neon8.operators.layout import ChangeLayout
from neon8.operators.source import Convert

FAMILIES = tuple(
    module.FAMILY
    for module in (
        constants,
        convolution,
        matrices,
        matmul,
        transposed,
        pooling,
        activation,
        pointwise,
        arithmetic,
        attention,
        normalization,
        layer_norm,
        softmax,
        reduction,
        movement,
        selection,
        indexed,
        ranking,
        boxes,
        grid_sample,
        integer,
        where,
        resize,
        recurrent,
        quantization,
        floats,
        fourier,
        conversion,
        volumes,
        einsum,
        reduced,
        opaque,
    )
)

IMPORTS: dict[str, Convert] = {k: v for f in FAMILIES for k, v in f.imports.items()}
INTEGERS: dict[str, Convert] = {k: v for f in FAMILIES for k, v in f.integers.items()}
COMPOSITIONS: dict[str, Compose] = {
    k: v for f in FAMILIES for k, v in f.compositions.items()
}
LAYOUTS: dict[str, ChangeLayout] = {
    k: v for f in FAMILIES for k, v in f.layouts.items()
}
LOWER: dict[type[Node], Lower] = {k: v for f in FAMILIES for k, v in f.lower.items()}
LOWER_FLOAT: dict[type[Node], Lower] = {
    k: v for f in FAMILIES for k, v in f.lower_float.items()
}
STEPS: dict[type[Op], Step] = {k: v for f in FAMILIES for k, v in f.steps.items()}
QDQ: dict[type[Op], Write] = {k: v for f in FAMILIES for k, v in f.qdq.items()}
OPSETS: dict[type[Op], Opset] = {k: v for f in FAMILIES for k, v in f.opsets.items()}
"""Each as in Family."""
