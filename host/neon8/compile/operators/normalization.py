# SPDX-License-Identifier: Apache-2.0
"""LRN and instance normalization, which look at their input before they scale it.

In float32 they are several steps: pools that take the means, and arithmetic (20), (22).
"""

from dataclasses import replace

import numpy as np

from neon8.compile import program
from neon8.compile.build import FLOAT, INT8, Build, Lower
from neon8.compile.operators import floats
from neon8.compile.operators.movement import reshape
from neon8.compile.program import Tensor
from neon8.compile.scales import clamp_of, slope_of
from neon8.graph.functions import X, affine, call, number
from neon8.graph.graph import InstanceNorm, Lrn, Node


def lower_lrn(b: Build, node: Lrn) -> None:
    """(18)."""
    inputs = (b.int8(node.inputs[0]).name,)
    out = b.declare(node.output, INT8)
    values = np.array([node.size, node.alpha, node.beta, node.bias], np.float32)
    b.ops.append(
        program.Lrn(name=node.name, inputs=inputs, output=out.name, values=values)
    )


def lower_instance_norm(b: Build, node: InstanceNorm) -> None:
    """(19)."""
    inputs = (b.int8(node.inputs[0]).name,)
    out = b.declare(node.output, INT8)
    lo, hi = clamp_of(node.activation, out)
    values = np.concatenate((node.gamma, node.beta, [node.epsilon]))
    b.ops.append(
        program.InstanceNorm(
            name=node.name,
            inputs=inputs,
            output=out.name,
            values=values.astype(np.float32),
            slope=slope_of(node.name, node.activation),
            lo=lo,
            hi=hi,
        )
    )


SQUARE = call("power", X, parameters=(2.0,))


def lower_lrn_float(b: Build, node: Lrn) -> None:
    """x / (alpha * mean of x^2 over the channels around it + bias)^beta.

    The channels become the rows of a pool whose windows have `size` of them.
    """
    source = b.float32(node.inputs[0])
    out = b.declare(node.output, FLOAT)
    n, channels, height, width = source.shape
    rows = replace(source, dims=(n, 1, channels, height * width))
    squares, means, power = (
        b.temporary(each, label)
        for each, label in ((source, "squares"), (rows, "means"), (source, "power"))
    )
    floats.unary(b, node.name, SQUARE, source, squares)
    as_rows = b.temporary(rows, "rows")
    reshape(b, node.name, squares, as_rows)
    reach = node.size // 2
    b.ops.append(
        program.PoolF32(
            name=node.name,
            inputs=(as_rows.name,),
            output=means.name,
            kind="average",
            kernel=(node.size, 1),
            strides=(1, 1),
            dilations=(1, 1),
            pads=(reach, 0, reach, 0),
            count_pad=True,
        )
    )
    back = b.temporary(source, "around")
    reshape(b, node.name, means, back)
    base = affine(node.alpha, node.bias)
    function = call("power", base, parameters=(node.beta,))
    floats.unary(b, node.name, function, back, power)
    floats.binary(b, node.name, "divide", (source.name, power.name), out)


def lower_instance_norm_float(b: Build, node: InstanceNorm) -> None:
    """(x - mean) / sqrt(mean of its square + epsilon) * gamma + beta."""
    source = b.float32(node.inputs[0])
    out = b.declare(node.output, FLOAT)
    mean = means_of(b, node, source, "mean")
    moved = b.temporary(source, "moved")
    floats.binary(b, node.name, "subtract", (source.name, mean.name), moved)
    squares = b.temporary(source, "squares")
    floats.unary(b, node.name, SQUARE, moved, squares)
    variance = means_of(b, node, squares, "variance")
    root = call("sqrt", affine(1.0, node.epsilon))
    factor = b.temporary(variance, "factor")
    inverse = call("divide", number(1.0), root)
    floats.unary(b, node.name, inverse, variance, factor)
    scaled = b.temporary(source, "scaled")
    floats.binary(b, node.name, "multiply", (moved.name, factor.name), scaled)
    column = (len(node.gamma), *(1,) * (source.rank - 2))
    gamma, beta = (
        floats.constant(b, node.name, values.astype(np.float32).reshape(column), source)
        for values in (node.gamma, node.beta)
    )
    product = b.temporary(source, "product")
    floats.binary(b, node.name, "multiply", (scaled.name, gamma.name), product)
    result = floats.before(b, node.activation, out)
    floats.binary(b, node.name, "add", (product.name, beta.name), result)
    floats.activate(b, node.name, node.activation, out)


def means_of(b: Build, node: InstanceNorm, source: Tensor, label: str) -> Tensor:
    """The mean of each channel of each image."""
    n, channels, height, width = source.shape
    dims = (n, channels, *(1,) * (source.rank - 2))
    out = b.temporary(replace(source, dims=dims), label)
    b.ops.append(
        program.PoolF32(
            name=node.name,
            inputs=(source.name,),
            output=out.name,
            kind="average",
            kernel=(height, width),
            strides=(1, 1),
            dilations=(1, 1),
            pads=(0, 0, 0, 0),
        )
    )
    return out


LOWER: dict[type[Node], Lower] = {InstanceNorm: lower_instance_norm, Lrn: lower_lrn}
LOWER_FLOAT: dict[type[Node], Lower] = {
    InstanceNorm: lower_instance_norm_float,
    Lrn: lower_lrn_float,
}
