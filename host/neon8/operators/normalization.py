# SPDX-License-Identifier: Apache-2.0
"""BatchNormalization, InstanceNormalization and LRN."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from neon8.arrays import Array, FloatArray
from neon8.ir.graph import Activated, Node
from neon8.ir.program import Finished, Op, Tensor
from neon8.operators.build import FLOAT, INT8, Build
from neon8.operators.constants import append_constant
from neon8.operators.convolution import make_affine
from neon8.operators.family import Family
from neon8.operators.floats import (
    append_activation,
    append_binary,
    append_unary,
    before,
    in_dims_of,
)
from neon8.operators.functions import X, affine, call, number
from neon8.operators.movement import append_reshape
from neon8.operators.pooling import PoolF32Op
from neon8.operators.qdq import Nodes, finish
from neon8.operators.reference import Operand, leaky, rounded
from neon8.operators.scales import finish_of
from neon8.operators.source import OnnxNode, Source
from neon8.quant import elementary


@dataclass(frozen=True, slots=True, kw_only=True)
class Lrn(Node):
    """y = x / (bias + alpha / size * sum of x^2 over `size` channels around it)^beta.

    size: odd.
    """

    size: int
    alpha: float
    beta: float
    bias: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalized(Activated):
    """Base of y = activation(gamma (x - mean) / sqrt(variance + epsilon) + beta).

    gamma, beta: (C,).
    """

    gamma: FloatArray
    beta: FloatArray
    epsilon: float


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceNorm(Normalized):
    """Mean and variance are those of a channel of an image."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LrnOp(Op):
    """(18).  values: size, alpha, beta, bias."""

    values: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceNormOp(Finished):
    """(19).  values: gamma of all channels, beta of all channels, epsilon."""

    values: FloatArray


LARGEST_SIZE = 1 << 20


def batch_normalization(source: Source, node: OnnxNode) -> Node:
    """BatchNormalization with the statistics of training."""
    shape = source.shape_of(node, node.inputs[0])
    if node.integer("training_mode", 0):
        text = "training_mode is not supported; export for inference"
        raise source.failure(node, text)
    scale, shift, mean, variance = (
        source.required(node, index).astype(np.float64) for index in (1, 2, 3, 4)
    )
    if not node.integer("spatial", 1) and scale.ndim > 1:
        text = f"has parameters {list(scale.shape)}, not one for each channel"
        text += " (spatial=0); export it as Mul and Add"
        raise source.failure(node, text)
    channels = shape[1] if len(shape) > 1 else 1
    if any(value.shape != (channels,) for value in (scale, shift, mean, variance)):
        raise source.failure(node, f"its constants are not ({channels},)")
    deviation = variance + node.real("epsilon", 1e-5)
    if deviation.min() <= 0:
        raise source.failure(node, "variance + epsilon is not positive")
    factor = scale / np.sqrt(deviation)
    return make_affine(source, node, 0, factor, shift - mean * factor)


def instance_normalization(source: Source, node: OnnxNode) -> Node:
    """InstanceNormalization: mean and variance are those of the image itself."""
    shape = source.shape_of(node, node.inputs[0])
    gamma, beta = (source.required(node, index) for index in (1, 2))
    if len(shape) < 3 or any(value.shape != (shape[1],) for value in (gamma, beta)):
        text = f"scale and B are not one value per channel of {list(shape)}"
        raise source.failure(node, text)
    epsilon = node.real("epsilon", 1e-5)
    if not 1e-30 <= epsilon <= 1e30:
        raise source.failure(node, f"epsilon {epsilon:.4g} is outside 1e-30 .. 1e30")
    return node.made(InstanceNorm, gamma=gamma, beta=beta, epsilon=epsilon)


def lrn(source: Source, node: OnnxNode) -> Node:
    """LRN, as in AlexNet and GoogLeNet."""
    source.shape_of(node, node.inputs[0])
    size = node.integer("size", 0)
    alpha, beta = node.real("alpha", 1e-4), node.real("beta", 0.75)
    bias = node.real("bias", 1.0)
    if size % 2 == 0 or not 1 <= size <= LARGEST_SIZE:
        raise source.failure(node, f"size {size} is even or outside 1 .. 2^20")
    if not 0 <= alpha <= 1e30:
        raise source.failure(node, f"alpha {alpha:.4g} is outside 0 .. 1e30")
    if not (0 <= beta <= 16 and 1e-30 <= bias <= 1e30):
        text = f"beta {beta:.4g} is outside 0 .. 16, or bias {bias:.4g} not positive"
        raise source.failure(node, text)
    return node.made(Lrn, size=size, alpha=alpha, beta=beta, bias=bias)


def lower_lrn(b: Build, node: Lrn) -> None:
    """(18)."""
    source, out = b.int8(node.inputs[0]), b.declare(node.output, INT8)
    values = np.array([node.size, node.alpha, node.beta, node.bias], np.float32)
    b.step(LrnOp, node.name, (source,), out, values=values)


def lower_instance_norm(b: Build, node: InstanceNorm) -> None:
    """(19)."""
    source, out = b.int8(node.inputs[0]), b.declare(node.output, INT8)
    values = np.concatenate((node.gamma, node.beta, [node.epsilon]))
    b.step(
        InstanceNormOp,
        node.name,
        (source,),
        out,
        values=values.astype(np.float32),
        **finish_of(node.name, node.activation, out),
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
    append_unary(b, node.name, SQUARE, source, squares)
    as_rows = b.temporary(rows, "rows")
    append_reshape(b, node.name, squares, as_rows)
    reach = node.size // 2
    b.step(
        PoolF32Op,
        node.name,
        (as_rows,),
        means,
        kind="average",
        kernel=(node.size, 1),
        pads=(reach, 0, reach, 0),
        count_pad=True,
    )
    back = b.temporary(source, "around")
    append_reshape(b, node.name, means, back)
    base = affine(node.alpha, node.bias)
    function = call("power", base, parameters=(node.beta,))
    append_unary(b, node.name, function, back, power)
    append_binary(b, node.name, "divide", (source.name, power.name), out)


def lower_instance_norm_float(b: Build, node: InstanceNorm) -> None:
    """The mean is that of each channel of each image."""
    out = b.declare(node.output, FLOAT)
    source = in_dims_of(b, node.name, b.float32(node.inputs[0]), out)
    n, channels, *image = source.shape
    dims = (n, channels, *(1,) * (source.rank - 2))

    def mean(values: Tensor, label: str) -> Tensor:
        return mean_of(b, node.name, values, label, dims, (image[0], image[1]))

    append_gain(b, node, standardized(b, node, source, mean), source, out)


def mean_of(
    b: Build,
    layer: str,
    source: Tensor,
    label: str,
    dims: tuple[int, ...],
    kernel: tuple[int, int],
) -> Tensor:
    """Appends the mean of what windows of the size `kernel` have, in these `dims`."""
    out = b.temporary(replace(source, dims=dims), label)
    b.step(PoolF32Op, layer, (source,), out, kind="average", kernel=kernel)
    return out


def standardized(
    b: Build,
    node: Normalized,
    values: Tensor,
    mean: Callable[[Tensor, str], Tensor],
    *,
    centred: bool = True,
) -> Tensor:
    """Appends x less its mean, times 1 / sqrt(mean of its square + epsilon)."""
    if centred:
        average = mean(values, "mean")
        moved = b.temporary(values, "moved")
        append_binary(b, node.name, "subtract", (values.name, average.name), moved)
        values = moved
    squares = b.temporary(values, "squares")
    append_unary(b, node.name, SQUARE, values, squares)
    variance = mean(squares, "variance")
    factor = b.temporary(variance, "factor")
    inverse = call("divide", number(1.0), call("sqrt", affine(1.0, node.epsilon)))
    append_unary(b, node.name, inverse, variance, factor)
    scaled = b.temporary(values, "scaled")
    append_binary(b, node.name, "multiply", (values.name, factor.name), scaled)
    return scaled


def append_gain(
    b: Build, node: Normalized, value: Tensor, like: Tensor, out: Tensor
) -> None:
    """Appends value * gamma + beta and the activation -> out.  like: of the input."""
    column = (len(node.gamma), *(1,) * (like.rank - 2))
    gamma, beta = (
        append_constant(b, node.name, values.astype(np.float32).reshape(column), like)
        for values in (node.gamma, node.beta)
    )
    product = b.temporary(like, "product")
    append_binary(b, node.name, "multiply", (value.name, gamma.name), product)
    result = before(b, node.activation, out)
    append_binary(b, node.name, "add", (product.name, beta.name), result)
    append_activation(b, node.name, node.activation, out)


def compute_lrn(op: LrnOp, out: Tensor, x: Operand) -> Array:
    """(18), in double, in the order written there."""
    size, alpha, beta, bias = op.values.astype(np.float64)
    scale, moved = np.float64(x.tensor.scale), x.moved
    channels = moved.shape[1]
    reach = min(int(size) // 2, channels)
    sums = np.zeros_like(moved)
    for shift in range(-reach, reach + 1):
        low, high = max(0, -shift), channels - max(0, shift)
        sums[:, low:high] += moved[:, low + shift : high + shift] ** 2
    d = bias + alpha / size * (scale * scale) * sums.astype(np.float64)
    if beta == 0.75:
        power = np.sqrt(d) * np.sqrt(np.sqrt(d))
    elif beta == 0.5:
        power = np.sqrt(d)
    else:
        power = d if beta == 1 else elementary.exp(beta * elementary.log(d))
    v = moved.astype(np.float64) * (scale / np.float64(out.scale)) / power
    return rounded(v, out, out.lo, out.hi)


def compute_instance_norm(op: InstanceNormOp, out: Tensor, x: Operand) -> Array:
    """(19): two numbers for each channel of each image in double, then in float32."""
    moved = x.moved
    batch, channels, height, width = moved.shape
    values = op.values.astype(np.float64)
    gamma, beta, epsilon = values[:channels], values[channels:-1], values[-1]
    scale_in, scale_out = np.float64(x.tensor.scale), np.float64(out.scale)
    count = np.float64(height * width)
    mean = moved.sum(axis=(2, 3)).astype(np.float64) / count
    squares = (moved**2).sum(axis=(2, 3)).astype(np.float64)
    variance = np.maximum(squares / count - mean * mean, 0.0)
    deviation = np.sqrt(variance * (scale_in * scale_in) + epsilon)
    m = (gamma * scale_in) / (deviation * scale_out)
    with np.errstate(over="ignore", invalid="ignore"):
        multiplier = m.astype(np.float32).reshape(batch, channels, 1, 1)
        offset = (beta / scale_out - m * mean).astype(np.float32)
        v = x.centred * multiplier
        v = leaky(v + offset.reshape(batch, channels, 1, 1), op.slope)
    return rounded(v, out, op.lo, op.hi)


def write_instance_norm(n: Nodes, op: InstanceNormOp) -> None:
    """InstanceNormalization."""
    source = n.real(op.inputs[0])
    gamma, beta = (
        n.array(f"{op.name}_{what}", values)
        for what, values in zip(
            ("scale", "shift"), np.split(op.values[:-1], 2), strict=True
        )
    )
    value = n.node(
        "InstanceNormalization",
        [source, gamma, beta],
        name=op.name,
        epsilon=float(op.values[-1]),
    )
    finish(n, value, op)


def write_lrn(n: Nodes, op: LrnOp) -> None:
    """LRN."""
    size, alpha, beta, bias = op.values.tolist()
    value = n.node(
        "LRN",
        [n.real(op.inputs[0])],
        name=op.name,
        size=int(size),
        alpha=alpha,
        beta=beta,
        bias=bias,
    )
    n.finish(value, op.output)


FAMILY = Family(
    imports={
        "BatchNormalization": batch_normalization,
        "InstanceNormalization": instance_normalization,
        "LRN": lrn,
    },
    lower={InstanceNorm: lower_instance_norm, Lrn: lower_lrn},
    lower_float={
        InstanceNorm: lower_instance_norm_float,
        Lrn: lower_lrn_float,
    },
    steps={
        InstanceNormOp: compute_instance_norm,
        LrnOp: compute_lrn,
    },
    qdq={
        InstanceNormOp: write_instance_norm,
        LrnOp: write_lrn,
    },
)
