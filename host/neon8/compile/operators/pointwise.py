# SPDX-License-Identifier: Apache-2.0
"""Functions of single values: tables, and PRelu with a slope for each channel."""

import numpy as np

from neon8.compile import program
from neon8.compile.build import INT8, Build, Lower, ratio
from neon8.compile.program import Tensor
from neon8.compile.proof import int16_depth
from neon8.compile.scales import checked_slopes
from neon8.graph.functions import Function
from neon8.graph.graph import Node, Pointwise, Prelu
from neon8.quant.functions import evaluate


def lower_pointwise(b: Build, node: Pointwise) -> None:
    """(8)."""
    source = b.int8(node.inputs[0])
    out = b.declare(node.output, INT8)
    b.ops.append(
        program.Table(
            name=node.name,
            inputs=(source.name,),
            output=out.name,
            table=table_of(node.function, source, out),
        )
    )


def table_of(function: Function, source: Tensor, out: Tensor) -> program.Int8Array:
    """What each byte of `source` becomes in `out`, -128 first; (256,)."""
    levels = np.arange(-128, 128, dtype=np.float64) - source.zero_point
    real = evaluate(function, np.float64(source.scale) * levels)
    with np.errstate(over="ignore"):
        q = np.rint(np.where(np.isnan(real), 0.0, real) / np.float64(out.scale))
    table: program.Int8Array = np.clip(q + out.zero_point, out.lo, out.hi).astype(
        np.int8
    )
    return table


def lower_prelu(b: Build, node: Prelu) -> None:
    """A depthwise convolution with one tap that is 1, for its slopes  (5b)."""
    source, out = b.own(node.inputs[0]), b.result(node.output)
    channels = len(node.slopes)
    weights = np.ones((channels, 1, 1, 1), np.int8)
    b.ops.append(
        program.Conv2d(
            name=node.name,
            inputs=(source.name,),
            output=out.name,
            weights=weights,
            bias=np.full(channels, -source.zero_point, np.int32),
            multiplier=np.full(channels, ratio(node.name, source, out)),
            slopes=checked_slopes(node),
            groups=channels,
            lo=out.lo,
            hi=out.hi,
            acc_bound=source.reach + abs(source.zero_point),
            int16_depth=int16_depth(weights, source.dtype),
        )
    )


LOWER: dict[type[Node], Lower] = {Pointwise: lower_pointwise, Prelu: lower_prelu}
