# SPDX-License-Identifier: Apache-2.0
"""The oracle's steps in float32: (20) to (22) of docs/numerics.md.

As in oracle.py each float32 operation is on float32 arrays and rounded once, in the one
order that is written there; a NaN that is computed has the bits of np.nan.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from neon8.compile.program import (
    FUNCTIONS,
    Binary,
    Constant,
    Conv2dF32,
    FloatArray,
    Int8Array,
    Op,
    PoolF32,
    Recurrent,
    Tensor,
    Unary,
)
from neon8.quant import elementary
from neon8.quant.elementary import Doubles
from neon8.quant.functions import COMPUTE

Array = npt.NDArray[np.generic]

LARGEST = np.finfo(np.float32).max
SMALLEST_SCALED = np.float32(1e-30)
LEVELS = np.float32(127)


def one_nan(y: Array) -> FloatArray:
    """float32 with one NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        y32 = y.astype(np.float32)
    return np.where(np.isnan(y32), np.float32(np.nan), y32)


def constant(
    op: Constant, out: Tensor, _sources: list[Tensor], _operands: list[Array]
) -> Array:
    """What it is in every run."""
    values = op.values if op.levels is None else op.levels
    result: Array = np.asarray(values).reshape(out.shape)
    return result


def clip(x: Doubles, lo: float, hi: float) -> Doubles:
    """x < lo ? lo : x > hi ? hi : x, which keeps -0 and NaN."""
    return np.where(x < lo, lo, np.where(x > hi, hi, x))


ONE_VALUE: dict[str, Callable[..., Doubles]] = {**COMPUTE, "clip": clip}
PARAMETERS = {"power": 1, "elu": 1, "leaky": 1, "threshold": 1, "clip": 2}


def unary(
    op: Unary, _out: Tensor, _sources: list[Tensor], operands: list[Array]
) -> Array:
    """(22): in double, rounded to float32 once."""
    x = operands[0].astype(np.float64)
    stack: list[Doubles] = []
    with np.errstate(all="ignore"):
        for number, parameters in zip(op.indices, op.values, strict=True):
            name = FUNCTIONS[number]
            if name == "none":
                break
            if name in ("x", "constant"):
                value = x if name == "x" else np.full_like(x, parameters[0])
            elif name in ("add", "subtract", "multiply", "divide"):
                second = stack.pop()
                value = COMPUTE[name](stack.pop(), second)
            else:
                given = [float(p) for p in parameters[: PARAMETERS.get(name, 0)]]
                value = ONE_VALUE[name](stack.pop(), *given)
            stack.append(value)
    return one_nan(stack[0])


def smaller(a: FloatArray, b: FloatArray) -> FloatArray:
    """a if it is NaN or below b, else b."""
    return np.where(np.isnan(a) | (a < b), a, b)


def larger(a: FloatArray, b: FloatArray) -> FloatArray:
    """a if it is NaN or above b, else b."""
    return np.where(np.isnan(a) | (a > b), a, b)


TWO_VALUES: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "minimum": smaller,
    "maximum": larger,
    "prelu": lambda a, b: np.where(a < 0, a * b, a),
}


def binary(
    op: Binary, out: Tensor, sources: list[Tensor], operands: list[Array]
) -> Array:
    """(22) in float32, on the dimensions that ONNX knows."""
    a, b = (
        operand.reshape(source.dims).astype(np.float32)
        for operand, source in zip(operands, sources, strict=True)
    )
    with np.errstate(all="ignore"):
        y = TWO_VALUES[op.function](a, b)
    return one_nan(np.broadcast_to(y, out.dims).reshape(out.shape))


def windows(
    op: Conv2dF32 | PoolF32, axis: int, tap: int, size: int, count: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Along one axis: where tap `tap` of each window lies, and if that is inside."""
    start = np.arange(count) * op.strides[axis] - op.pads[axis]
    at = start + tap * op.dilations[axis]
    return np.clip(at, 0, size - 1), (at >= 0) & (at < size)


def taps(
    op: Conv2dF32 | PoolF32, out: Tensor, x: FloatArray, y_tap: int, x_tap: int
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """What lies under one tap of every window, N C H W, and where there is anything."""
    rows, row_inside = windows(op, 0, y_tap, x.shape[2], out.shape[2])
    columns, column_inside = windows(op, 1, x_tap, x.shape[3], out.shape[3])
    inside = row_inside[:, None] & column_inside[None, :]
    return x[:, :, rows[:, None], columns[None, :]], inside


def conv2d(
    op: Conv2dF32, out: Tensor, _sources: list[Tensor], operands: list[Array]
) -> Array:
    """(20): bias, then tap after tap, the channels of the group one after another."""
    x = operands[0].astype(np.float32)
    outputs = out.shape[1] // op.groups
    depth = op.values.shape[3]
    group = np.arange(out.shape[1]) // outputs  # of each output channel
    acc = np.broadcast_to(op.bias_f32[:, None, None], out.shape).astype(np.float32)
    with np.errstate(all="ignore"):
        for y_tap in range(op.kernel[0]):
            for x_tap in range(op.kernel[1]):
                seen, inside = taps(op, out, x, y_tap, x_tap)
                for k in range(depth):
                    weights = op.values[:, y_tap, x_tap, k, None, None]
                    product = seen[:, group * depth + k] * weights
                    acc = np.where(inside, acc + product, acc)
    return one_nan(acc)


def pool(
    op: PoolF32, out: Tensor, _sources: list[Tensor], operands: list[Array]
) -> Array:
    """(20): the largest tap, or their sum one after another by their number."""
    x = operands[0].astype(np.float32)
    acc = np.full(out.shape, -np.inf if op.kind == "max" else 0.0, np.float32)
    with np.errstate(all="ignore"):
        for y_tap in range(op.kernel[0]):
            for x_tap in range(op.kernel[1]):
                seen, inside = taps(op, out, x, y_tap, x_tap)
                new = larger(acc, seen) if op.kind == "max" else acc + seen
                acc = np.where(inside, new, acc)
        if op.kind == "average":
            rows, columns = (counted(op, axis, x.shape, out.shape) for axis in (0, 1))
            count = (rows[:, None] * columns[None, :]).astype(np.float32)
            acc = np.divide(acc, count, dtype=np.float32)
    return one_nan(acc)


def counted(
    op: PoolF32, axis: int, in_shape: tuple[int, ...], out_shape: tuple[int, ...]
) -> npt.NDArray[np.int64]:
    """Along one axis: how many taps of each window count."""
    before, after = (op.pads[axis], op.pads[2 + axis]) if op.count_pad else (0, 0)
    start = np.arange(out_shape[2 + axis]) * op.strides[axis] - op.pads[axis]
    at = start[:, None] + np.arange(op.kernel[axis]) * op.dilations[axis]
    counts: npt.NDArray[np.int64] = (
        (at >= -before) & (at < in_shape[2 + axis] + after)
    ).sum(axis=1)
    return counts


def quantize_vector(v: FloatArray) -> tuple[Int8Array, np.float32]:
    """(21): by the largest magnitude; NaN counts as 0, and the infinite as finite."""
    v = np.clip(np.where(np.isnan(v), np.float32(0), v), -LARGEST, LARGEST)
    most = np.abs(v).max()
    if most < SMALLEST_SCALED:
        return np.zeros(v.shape, np.int8), np.float32(0)
    levels = np.rint(v * (LEVELS / most))
    scale: np.float32 = most / LEVELS
    return np.clip(levels, -LEVELS, LEVELS).astype(np.int8), scale


def sigmoid(x: FloatArray) -> FloatArray:
    """(15), rounded to float32."""
    return elementary.sigmoid(x.astype(np.float64)).astype(np.float32)


def tanh(x: FloatArray) -> FloatArray:
    """(15), rounded to float32."""
    return elementary.tanh(x.astype(np.float64)).astype(np.float32)


Gate = Callable[[FloatArray], FloatArray]

CLIPPED = 2
"""f and g are, the cell before h is not."""


class Sequence:
    """One sequence of the batch in one direction  (21)."""

    def __init__(self, op: Recurrent, direction: int, hidden: int) -> None:
        self.op = op
        self.weights = op.weights[direction].astype(np.int64)
        self.scales = op.multiplier[direction]
        self.bias = op.bias_f32[direction]
        self.functions: list[tuple[str, Doubles]] = []
        self.clip = np.inf
        self.peepholes: FloatArray | None = None
        if op.indices is not None and op.values is not None:
            self.clip = float(op.values[0])
            forms = op.values[1:13].reshape(3, 4).astype(np.float64)
            names = [FUNCTIONS[number] for number in op.indices]
            self.functions = list(zip(names, forms, strict=True))
            if op.kind == "lstm":
                self.peepholes = op.values[13:].reshape(-1, 3, hidden)[direction]
        self.split = self.weights.shape[1] - hidden

    def product(self, which: int, v: FloatArray) -> FloatArray:
        """W v + b, or R v + b: exact in integers, then two float32 operations."""
        q, scale = quantize_vector(v)
        columns = slice(0, self.split) if which == 0 else slice(self.split, None)
        acc = (self.weights[:, columns] @ q.astype(np.int64)).astype(np.int32)
        real = acc.astype(np.float32) * (scale * self.scales[:, which])
        total: FloatArray = real + self.bias[:, which]
        return total

    def gate(self, which: int, x: FloatArray, plain: Gate) -> FloatArray:
        """f, g or h: of the options, else `plain`."""
        if not self.functions:
            return plain(x)
        name, (factor, shift, lo, hi) = self.functions[which]
        v = x.astype(np.float64)
        if which < CLIPPED:
            v = clip(v, -self.clip, self.clip)
        v = factor * v + shift
        if name != "x":
            v = COMPUTE[name](v)
        return clip(v, lo, hi).astype(np.float32)

    def peeped(self, gate: int, x: FloatArray, c: FloatArray) -> FloatArray:
        """What the peephole of gate 0, 1 or 2, i, o or f, adds to its sum."""
        return x if self.peepholes is None else x + self.peepholes[gate] * c

    def step(
        self, x: FloatArray, h: FloatArray, c: FloatArray
    ) -> tuple[FloatArray, ...]:
        """The next state and cell."""
        a, r = self.product(0, x), self.product(1, h)
        if self.op.kind == "lstm":
            i, o, f, made = np.split(a + r, 4)
            i = self.gate(0, self.peeped(0, i, c), sigmoid)
            f = self.gate(0, self.peeped(2, f, c), sigmoid)
            c = f * c + i * self.gate(1, made, tanh)
            o = self.gate(0, self.peeped(1, o, c), sigmoid)
            return o * self.gate(2, c, tanh), c
        if self.op.kind == "rnn":
            return self.gate(0, a + r, tanh), c
        (za, ra, ha), (zr, rr, hr) = np.split(a, 3), np.split(r, 3)
        update, reset = self.gate(0, za + zr, sigmoid), self.gate(0, ra + rr, sigmoid)
        if self.op.linear_before_reset:
            inner = reset * hr
        else:
            inner = np.split(self.product(1, reset * h), 3)[2]
        made = self.gate(1, ha + inner, tanh)
        return (np.float32(1) - update) * made + update * h, c


def recurrent(
    op: Recurrent, out: Tensor, sources: list[Tensor], operands: list[Array]
) -> Array:
    """(21): (T, D, B, H), and the last states where the output has room for them."""
    x, *given = (
        operand.reshape(source.dims).astype(np.float32)
        for operand, source in zip(operands, sources, strict=True)
    )
    rows, directions, batch, hidden = out.dims
    y = np.zeros(out.dims, np.float32)
    with np.errstate(all="ignore"):
        for direction in range(directions):
            sequence = Sequence(op, direction, hidden)
            backwards = direction == 1 or op.reverse
            order = range(len(x))[:: -1 if backwards else 1]
            for b in range(batch):
                h, c = np.zeros((2, hidden), np.float32)
                if given:
                    h = given[0][direction, b]
                if len(given) > 1:
                    c = given[1][direction, b]
                for t in order:
                    h, c = sequence.step(x[t, b], h, c)
                    y[t, direction, b] = h
                if rows > len(x):
                    y[len(x), direction, b] = h
                if rows > len(x) + 1:
                    y[len(x) + 1, direction, b] = c
    return one_nan(y)


STEPS: dict[type[Op], Callable[[Any, Tensor, list[Tensor], list[Array]], Array]] = {
    Binary: binary,
    Constant: constant,
    Conv2dF32: conv2d,
    PoolF32: pool,
    Recurrent: recurrent,
    Unary: unary,
}
"""As in oracle.py."""
