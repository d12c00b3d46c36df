# SPDX-License-Identifier: Apache-2.0
"""ResizeLinear: values between four others, in the type that they have."""

import numpy as np

from neon8.compile import program
from neon8.compile.build import INT8, Build, Lower, ratio
from neon8.graph.graph import Node, ResizeLinear


def lower_resize(b: Build, node: ResizeLinear) -> None:
    """(17), from one scale to another where the table has two."""
    dtype = b.type_of(node)
    source = b.take(node.inputs[0], dtype)
    out = b.declare(node.output, dtype)
    scale = np.float32(1) if dtype != INT8 else ratio(node.name, source, out)
    b.ops.append(
        program.ResizeLinear(
            name=node.name,
            inputs=(source.name,),
            output=out.name,
            scale=scale,
            indices=np.concatenate([node.rows, node.columns]).reshape(-1),
            values=np.concatenate([node.row_weights, node.column_weights]).reshape(-1),
        )
    )


LOWER: dict[type[Node], Lower] = {ResizeLinear: lower_resize}
