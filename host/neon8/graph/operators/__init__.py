# SPDX-License-Identifier: Apache-2.0
"""How each ONNX operator becomes a node of the Graph, one module for each family.

An operator is a function, `(Source, OnnxNode) -> Node`, and its row in the OPERATORS of
its module. It raises GraphError, through source.failure(), for what neon8 cannot run.
"""

from neon8.graph.operators import (
    activation,
    arithmetic,
    convolution,
    matrices,
    movement,
    normalization,
    pointwise,
    pooling,
    recurrent,
    reduction,
    resize,
    selection,
    transposed,
)
from neon8.graph.source import Convert

OPERATORS: dict[str, Convert] = {
    **convolution.OPERATORS,
    **matrices.OPERATORS,
    **transposed.OPERATORS,
    **pooling.OPERATORS,
    **activation.OPERATORS,
    **pointwise.OPERATORS,
    **arithmetic.OPERATORS,
    **normalization.OPERATORS,
    **reduction.OPERATORS,
    **movement.OPERATORS,
    **selection.OPERATORS,
    **resize.OPERATORS,
    **recurrent.OPERATORS,
}
"""Operator -> its function; a foreign domain stands before the name, with a dot."""
