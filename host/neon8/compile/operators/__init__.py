# SPDX-License-Identifier: Apache-2.0
"""How each node of the Graph becomes steps of the Program, one module for each family.

A node is a function, `(Build, Node) -> None`, and its row in the LOWER of its module.
It appends the ops and raises CompileError where docs/numerics.md cannot be kept. Which
nodes run in float32 is decided before, in domains.py.
"""

from neon8.compile.build import Lower
from neon8.compile.operators import (
    arithmetic,
    convolution,
    floats,
    movement,
    normalization,
    opaque,
    pointwise,
    pooling,
    recurrent,
    resize,
    rounding,
)
from neon8.graph.graph import Node

LOWER: dict[type[Node], Lower] = {
    **convolution.LOWER,
    **pooling.LOWER,
    **arithmetic.LOWER,
    **normalization.LOWER,
    **pointwise.LOWER,
    **movement.LOWER,
    **resize.LOWER,
    **rounding.LOWER,
}
"""Class of the node -> its function in int8; who is not here has no int8 form."""

LOWER_FLOAT: dict[type[Node], Lower] = {
    **floats.LOWER,
    **normalization.LOWER_FLOAT,
    **recurrent.LOWER,
    **movement.LOWER,
    **resize.LOWER,
    **opaque.LOWER,
}
"""Class of the node -> its function in float32."""

FOLLOWS = frozenset(movement.LOWER | resize.LOWER | floats.MAPS)
"""The nodes that move or map values, in whichever type they find them."""
