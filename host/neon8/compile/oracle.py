# SPDX-License-Identifier: Apache-2.0
"""The oracle: docs/numerics.md in numpy, which every back end equals byte for byte.

Written for the reader who wants to check the arithmetic: one equation, one function. It
shares no code with the C side, nor with what computes the constants of a Program but
for the elementary functions (15), which stand in a module of their own. All float32
operations are on float32 arrays, one at a time, so each is rounded once.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from neon8.compile import oracle_floats
from neon8.compile.program import (
    Add,
    Concat,
    Conv2d,
    Dequantize,
    Divide,
    Gather,
    Image,
    InstanceNorm,
    Lrn,
    Maximum,
    Minimum,
    Multiply,
    Op,
    Permute,
    Pool,
    Program,
    Quantize,
    Requantize,
    Reshape,
    ResizeLinear,
    Softmax,
    Sum,
    Table,
    Tensor,
)
from neon8.errors import DataError
from neon8.quant import elementary

Array = npt.NDArray[np.generic]
Int8Array = npt.NDArray[np.int8]
Levels = npt.NDArray[np.signedinteger[Any]]
"""int8, or int16  (24)."""
Int64Array = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]

EXP_LEAST = -104.0


def run(program: Program, inputs: dict[str, Array]) -> dict[str, Array]:
    """Run once.  inputs, outputs: by name, shaped as in ONNX.

    DataError: an input is missing, or of another shape or type.
    """
    values = {name: taken(program.tensors[name], inputs) for name in program.inputs}
    for op in program.ops:
        out = program.tensors[op.output]
        result = step(program, op, out, [values[name] for name in op.inputs])
        if result.shape != out.shape or result.dtype != np.dtype(out.dtype):
            raise AssertionError(f"{op.name}: {result.dtype}{result.shape}, not {out}")
        values[op.output] = result
    return {
        name: values[name].reshape(program.tensors[name].dims)
        for name in program.outputs
    }


def taken(tensor: Tensor, inputs: dict[str, Array]) -> Array:
    """One input as N C H W, checked."""
    expected = tensor.dims
    value = inputs.get(tensor.name)
    if (
        value is None
        or value.shape != expected
        or value.dtype != np.dtype(tensor.dtype)
    ):
        given = "nothing" if value is None else f"{value.dtype} {value.shape}"
        raise DataError(
            f"input {tensor.name!r}: {given} given, {tensor.dtype} {expected} expected"
        )
    array: Array = np.reshape(value, tensor.shape)
    return array


def step(program: Program, op: Op, out: Tensor, operands: list[Array]) -> Array:
    """The result of one op, N C H W."""
    sources = [program.tensors[name] for name in op.inputs]
    return STEPS[type(op)](op, out, sources, operands)


def centred(q: Array, tensor: Tensor) -> FloatArray:
    """(float)(q - zp), exact."""
    return (q.astype(np.int32) - tensor.zero_point).astype(np.float32)


def leaky(v: FloatArray, slope: FloatArray | np.float32) -> FloatArray:
    """(5b): v < 0 ? fmul(v, slope) : v."""
    return np.where(v < 0, v * np.asarray(slope, np.float32), v).astype(np.float32)


def rounded(v: npt.NDArray[Any], out: Tensor, lo: int, hi: int) -> Levels:
    """clamp(rne(v) + zp, lo, hi) as int8 or int16, NaN as 0.

    rne of a float32 is a float32; the addition is in double, where it is exact for
    every value that the clamp does not cut.
    """
    v = np.where(np.isnan(v), 0, v)
    q = np.clip(np.rint(v).astype(np.float64) + out.zero_point, lo, hi)
    result: Levels = q.astype(np.dtype(out.dtype))
    return result


def quantize(x: FloatArray, out: Tensor) -> Levels:
    """(2), NaN becoming the zero point."""
    inverse = np.float32(1) / np.float32(out.scale)
    with np.errstate(over="ignore", invalid="ignore"):
        v = x * inverse
    return rounded(v, out, out.lo, out.hi)


def as_float(acc: Int64Array) -> FloatArray:
    """(7): int32 to float32, rounded to even; the sums are exact and fit  (3)(12)."""
    if np.abs(acc).max(initial=0) >= 2**31:
        raise AssertionError("an accumulator left int32")
    return acc.astype(np.int32).astype(np.float32)


def conv2d(
    op: Conv2d, out: Tensor, sources: list[Tensor], operands: list[Array]
) -> Array:
    """(4), (5), (5b), (6)."""
    acc = conv_sums(op, out, sources[0], operands[0])
    acc += op.bias.astype(np.int64)[:, None, None]
    if op.indices is not None:
        return requantize_fixed(acc, op.indices, out, op.lo, op.hi)
    if op.multiplier is None:
        raise AssertionError(f"{op.name} has no multipliers")
    v = as_float(acc) * op.multiplier[:, None, None]
    if out.dtype == "float32":
        bias = np.zeros_like(op.multiplier) if op.bias_f32 is None else op.bias_f32
        return v + bias[:, None, None]
    if len(operands) == 2:
        v = v + centred(operands[1], sources[1]) * np.float32(op.residual_scale)
    if op.slopes is not None:
        v = leaky(v, op.slopes[:, None, None])
    return rounded(v, out, op.lo, op.hi)


def requantize_fixed(
    acc: Int64Array, fixed: npt.NDArray[np.int32], out: Tensor, lo: int, hi: int
) -> Int8Array:
    """(10): acc * M0 * 2^-31, halves up, then 2^-n, halves away from zero."""
    m0, n = (fixed[:, at].astype(np.int64)[:, None, None] for at in (0, 1))
    ends = np.iinfo(np.int32)
    if acc.min(initial=0) < ends.min or acc.max(initial=0) > ends.max:
        raise AssertionError("an accumulator left int32")
    wide = np.clip(acc << np.maximum(-n, 0), ends.min, ends.max)
    high = (wide * m0 + (1 << 30)) >> 31  # of negative numbers it rounds down, too
    right = np.maximum(n, 0)
    half = (1 << right) >> 1
    q = np.sign(high) * ((np.abs(high) + half) >> right) + out.zero_point
    result: Int8Array = np.clip(q, lo, hi).astype(np.int8)
    return result


def conv_sums(op: Conv2d, out: Tensor, source: Tensor, q: Array) -> Int64Array:
    """(3): sum of w * q over taps and channels, padding being zp; N O H W.

    One matrix product for each tap, in double: |sum| is below 2**31 (12), and the sum
    of the sizes, too, so BLAS is exact in whatever order it adds.
    """
    batch, channels, height, width = out.shape
    padded = pad_to_windows(op, out, q, source.zero_point)
    groups = op.groups
    acc = np.zeros((batch, groups, channels // groups, height * width))
    weights = op.weights.astype(np.float64)
    for y in range(op.weights.shape[1]):
        for x in range(op.weights.shape[2]):
            taps = tap(op, padded, y, x, height, width).astype(np.float64)
            taps = taps.reshape(batch, groups, -1, height * width)
            acc += weights[:, y, x].reshape(groups, channels // groups, -1) @ taps
    return acc.reshape(out.shape).astype(np.int64)


def pad_to_windows(op: Conv2d | Pool, out: Tensor, q: Array, fill: int) -> Array:
    """q with `fill` around it, as far as the windows of `out` reach."""
    kernel = op.weights.shape[1:3] if isinstance(op, Conv2d) else op.kernel
    widths = [(0, 0), (0, 0)]
    for axis in (0, 1):
        before = op.pads[axis]
        last = (out.shape[2 + axis] - 1) * op.strides[axis]
        reach = last + (kernel[axis] - 1) * op.dilations[axis] + 1
        widths.append((before, max(0, reach - before - q.shape[2 + axis])))
    return np.pad(q, widths, constant_values=fill)


def tap(
    op: Conv2d | Pool, padded: Array, y: int, x: int, height: int, width: int
) -> Array:
    """What lies under tap (y, x) of every window: N C height width."""
    top, left = y * op.dilations[0], x * op.dilations[1]
    rows = slice(top, top + (height - 1) * op.strides[0] + 1, op.strides[0])
    columns = slice(left, left + (width - 1) * op.strides[1] + 1, op.strides[1])
    return padded[:, :, rows, columns]


def max_pool(op: Pool, out: Tensor, q: Array) -> Levels:
    """(9): the largest of the taps inside the input, within the clamp."""
    least = int(np.iinfo(out.dtype).min)
    padded = pad_to_windows(op, out, q, least)
    best = np.full(out.shape, least, q.dtype)
    for y in range(op.kernel[0]):
        for x in range(op.kernel[1]):
            best = np.maximum(best, tap(op, padded, y, x, *out.shape[2:]))
    result: Levels = np.clip(best, op.lo, op.hi)
    return result


def average_pool(op: Pool, out: Tensor, source: Tensor, q: Array) -> Array:
    """(9): M = scale_in / (scale_out * count), count being the taps that count.

    To float32 scale_out is 1, and nothing is rounded to levels.
    """
    moved = q.astype(np.int64) - source.zero_point
    padded = pad_to_windows(op, out, moved, 0)
    acc = np.zeros(out.shape, np.int64)
    for y in range(op.kernel[0]):
        for x in range(op.kernel[1]):
            acc += tap(op, padded, y, x, *out.shape[2:]).astype(np.int64)
    rows, columns = (counted(op, axis, q.shape, out.shape) for axis in (0, 1))
    count = rows[:, None] * columns[None, :]
    scale = np.float64(out.scale) * count
    multiplier = (np.float64(source.scale) / scale).astype(np.float32)
    v = as_float(acc) * multiplier
    return v if out.dtype == "float32" else rounded(v, out, op.lo, op.hi)


def counted(
    op: Pool, axis: int, in_shape: tuple[int, ...], out_shape: tuple[int, ...]
) -> Int64Array:
    """Along one axis: how many taps of each window count, (out,)."""
    size = in_shape[2 + axis]
    before, after = (op.pads[axis], op.pads[2 + axis]) if op.count_pad else (0, 0)
    start = np.arange(out_shape[2 + axis]) * op.strides[axis] - op.pads[axis]
    at = start[:, None] + np.arange(op.kernel[axis]) * op.dilations[axis]
    counts: Int64Array = ((at >= -before) & (at < size + after)).sum(axis=1)
    return counts


def softmax(op: Softmax, out: Tensor, x: Array) -> FloatArray:
    """(14), in double, in the order written there; N C H W."""
    x64 = np.moveaxis(x.reshape(out.dims), op.axis, -1).astype(np.float64)
    with np.errstate(invalid="ignore"):  # inf - inf
        d = x64 - x64.max(axis=-1, keepdims=True)
    e = np.where(d < EXP_LEAST, 0.0, elementary.exp(d))
    total = np.add.accumulate(e, axis=-1)[..., -1:]  # left to right; np.sum would pair
    y = d - elementary.log(total) if op.function == "log" else e / total
    return np.moveaxis(oracle_floats.one_nan(y), -1, op.axis).reshape(out.shape)


def add(op: Add, out: Tensor, sources: list[Tensor], operands: list[Array]) -> Array:
    """(6)."""
    a = centred(operands[0], sources[0]) * np.float32(op.scale)
    b = centred(operands[1], sources[1]) * np.float32(op.residual_scale)
    return rounded(leaky(a + b, op.slope), out, op.lo, op.hi)


def total(op: Sum, out: Tensor, sources: list[Tensor], operands: list[Array]) -> Array:
    """(6) of more than two, from the first to the last."""
    v = np.zeros(0, np.float32)
    for i, (q, source) in enumerate(zip(operands, sources, strict=True)):
        term = centred(q, source) * np.float32(op.values[i])
        v = term if i == 0 else v + term
    return rounded(leaky(v, op.slope), out, op.lo, op.hi)


def multiply(
    op: Multiply, out: Tensor, sources: list[Tensor], operands: list[Array]
) -> Array:
    """(16); the product is exact."""
    a, b = (centred(q, t) for q, t in zip(operands, sources, strict=True))
    return rounded(leaky((a * b) * np.float32(op.scale), op.slope), out, op.lo, op.hi)


def divide(
    op: Divide, out: Tensor, sources: list[Tensor], operands: list[Array]
) -> Array:
    """(16): by zero it is infinite, which saturates; zero by zero is zero."""
    a, b = (centred(q, t) for q, t in zip(operands, sources, strict=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        v = leaky((a / b) * np.float32(op.scale), op.slope)
    return rounded(v, out, op.lo, op.hi)


def table(op: Table, q: Array) -> Int8Array:
    """(8)."""
    return op.table[q.astype(np.int64) + 128]


def lrn(op: Lrn, out: Tensor, sources: list[Tensor], operands: list[Array]) -> Array:
    """(18), in double, in the order written there."""
    size, alpha, beta, bias = op.values.astype(np.float64)
    scale = np.float64(sources[0].scale)
    moved = operands[0].astype(np.int64) - sources[0].zero_point
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


def instance_norm(
    op: InstanceNorm, out: Tensor, sources: list[Tensor], operands: list[Array]
) -> Array:
    """(19): two numbers for each channel of each image in double, then in float32."""
    moved = operands[0].astype(np.int64) - sources[0].zero_point
    batch, channels, height, width = moved.shape
    values = op.values.astype(np.float64)
    gamma, beta, epsilon = values[:channels], values[channels:-1], values[-1]
    scale_in, scale_out = np.float64(sources[0].scale), np.float64(out.scale)
    count = np.float64(height * width)
    mean = moved.sum(axis=(2, 3)).astype(np.float64) / count
    squares = (moved**2).sum(axis=(2, 3)).astype(np.float64)
    variance = np.maximum(squares / count - mean * mean, 0.0)
    deviation = np.sqrt(variance * (scale_in * scale_in) + epsilon)
    m = (gamma * scale_in) / (deviation * scale_out)
    with np.errstate(over="ignore", invalid="ignore"):
        multiplier = m.astype(np.float32).reshape(batch, channels, 1, 1)
        offset = (beta / scale_out - m * mean).astype(np.float32)
        v = centred(operands[0], sources[0]) * multiplier
        v = leaky(v + offset.reshape(batch, channels, 1, 1), op.slope)
    return rounded(v, out, op.lo, op.hi)


def requantize(
    op: Requantize, out: Tensor, sources: list[Tensor], operands: list[Array]
) -> Array:
    """(6) with one operand."""
    v = centred(operands[0], sources[0]) * np.float32(op.scale)
    return rounded(leaky(v, op.slope), out, op.lo, op.hi)


def pool(op: Pool, out: Tensor, sources: list[Tensor], operands: list[Array]) -> Array:
    """(9)."""
    if op.kind == "max":
        return max_pool(op, out, operands[0])
    return average_pool(op, out, sources[0], operands[0])


def permute(
    op: Permute, out: Tensor, _sources: list[Tensor], operands: list[Array]
) -> Array:
    """(9): the same values in another order."""
    view, order = op.indices
    result: Array = operands[0].reshape(view).transpose(order).reshape(out.shape)
    return result


def gather(
    op: Gather, out: Tensor, _sources: list[Tensor], operands: list[Array]
) -> Array:
    """(9): what the lists name, or the fill where one of them says -1."""
    ends = np.cumsum(out.shape)[:-1]
    taken = np.ix_(*np.split(op.indices, ends))
    holes = (taken[0] < 0) | (taken[1] < 0) | (taken[2] < 0) | (taken[3] < 0)
    fill = np.array(op.fill).astype(operands[0].dtype)
    result: Array = np.where(holes, fill, operands[0][taken])
    return result


def resize_linear(
    op: ResizeLinear, out: Tensor, sources: list[Tensor], operands: list[Array]
) -> Array:
    """(17): columns first, then rows."""
    height = out.shape[2]
    (top, bottom), (left, right) = (
        (pairs[:, 0], pairs[:, 1])
        for pairs in np.split(op.indices.reshape(-1, 2), [height])
    )
    (above, below), (before, after) = (
        (pairs[:, 0], pairs[:, 1])
        for pairs in np.split(op.values.reshape(-1, 2), [height])
    )
    real = out.dtype == "float32"
    x = operands[0].astype(np.float32) if real else centred(operands[0], sources[0])
    across = x[..., left] * before + x[..., right] * after
    up, down = across[:, :, top] * above[:, None], across[:, :, bottom] * below[:, None]
    v: FloatArray = np.add(up, down, dtype=np.float32)
    return (
        oracle_floats.one_nan(v) if real else rounded(v * op.scale, out, out.lo, out.hi)
    )


def image(op: Image, pixels: Array) -> Int8Array:
    """N H W C to N C H W by a table for each channel."""
    planes = pixels.transpose(0, 3, 1, 2)
    channels = np.arange(len(op.table)).reshape(1, -1, 1, 1)
    result: Int8Array = op.table[channels, planes]
    return result


STEPS: dict[type[Op], Callable[[Any, Tensor, list[Tensor], list[Array]], Array]] = {
    Add: add,
    Concat: lambda op, _out, _sources, operands: np.concatenate(operands, op.axis),
    Conv2d: conv2d,
    Dequantize: lambda _op, _out, sources, operands: np.multiply(
        centred(operands[0], sources[0]), sources[0].scale
    ),
    Divide: divide,
    Gather: gather,
    Image: lambda op, _out, _sources, operands: image(op, operands[0]),
    InstanceNorm: instance_norm,
    Lrn: lrn,
    Maximum: lambda _op, _out, _sources, operands: np.maximum(*operands),
    Minimum: lambda _op, _out, _sources, operands: np.minimum(*operands),
    Multiply: multiply,
    Permute: permute,
    Pool: pool,
    Quantize: lambda _op, out, _sources, operands: quantize(
        operands[0].astype(np.float32), out
    ),
    Requantize: requantize,
    ResizeLinear: resize_linear,
    Reshape: lambda _op, out, _sources, operands: operands[0].reshape(out.shape),
    Sum: total,
    Softmax: lambda op, out, _sources, operands: softmax(op, out, operands[0]),
    Table: lambda op, _out, _sources, operands: table(op, operands[0]),
    **oracle_floats.STEPS,
}
"""Class of the op -> its arithmetic: op, output, inputs, values of the inputs, N C H W;
the values of the output."""
