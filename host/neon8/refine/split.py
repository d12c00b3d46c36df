# SPDX-License-Identifier: Apache-2.0
"""The error of an int8 convolution by cause: rounding, clipping, weights, bias shift.

A part is the error of the accumulators, before any activation, from one cause alone.
The layer gets the float network's own input x, so that nothing before it counts:

    rounding    conv(Q(x') - x', W)   x' = x cut to the range of the scale
    clipping    conv(x' - x, W)
    weights     conv(x, Wq - W)
    total       conv(Q(x), Wq) + bq - conv(x, W) - b
    bias        bq - b and the mean of conv(x, Wq - W) over a channel, which bq is to
                take back: what is wrong with the bias itself
    bias shift  the mean of the total over a channel, which a bias can correct

The first three add up to the total but for the error of the integer bias and a product
of two errors, conv(Q(x) - x, Wq - W). Their powers do not, as errors may add or cancel.
The shift is part of the others; it shows what a bias correction would gain. In a
transposed convolution the outputs that its pads cut off count, too.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from neon8.arrays import Array, DoubleArray, FloatArray
from neon8.evaluate.metrics import sqnr_db
from neon8.ir.program import Tensor
from neon8.operators.convolution import Conv2d, Conv2dOp, convolutions, int8_layers
from neon8.operators.reference import centred, quantize
from neon8.operators.subpixel import repeated, subpixel
from neon8.operators.windows import pad_to_windows, tap
from neon8.refine.inner import Pair
from neon8.rewrite.equalization import equalized


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A convolution of the program, and its float counterpart, `node`.

    All values are those of the rewritten network, numerics (5c).  weight, rounded:
    (O, kh, kw, I / groups), in float and as the integers represent them; bias,
    rounded_bias: (O,).  factors_in, offsets_in: (I, 1, 1), and factors: (O,), convert
    channels to real values.  offset: (O,), subtracted from the outputs.  phases: of a
    transposed convolution, here a plain one with more channels.
    """

    op: Conv2dOp
    node: Conv2d
    source: Tensor
    out: Tensor
    input: str
    output: str
    weight: FloatArray
    rounded: FloatArray
    bias: DoubleArray
    rounded_bias: DoubleArray
    factors_in: FloatArray
    offsets_in: FloatArray
    factors: DoubleArray
    offset: DoubleArray
    phases: int


@dataclass(slots=True)
class Sums:
    """Sums of one layer over the samples so far, by channel, (O,).

    signal, rounding, clipping, weights, total: sums of squares.  shift: sums of the
    total error over `count` values of each channel, and bias: of what is wrong with the
    bias.  drift: sums of the error of the
    whole int8 network at this layer; a bias that removes its mean is the empirical
    correction.
    """

    signal: DoubleArray
    rounding: DoubleArray
    clipping: DoubleArray
    weights: DoubleArray
    total: DoubleArray
    shift: DoubleArray
    bias: DoubleArray
    drift: DoubleArray
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """An error of a layer.  sqnr_db: of its output with this error alone.

    share: its power relative to that of the total error; 0 without any error.
    """

    sqnr_db: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The error that a layer itself makes, by cause; see the head of split.py."""

    layer: str
    input: str
    output: str
    sqnr_db: float
    rounding: Part
    clipping: Part
    weights: Part
    bias: Part
    bias_shift: Part

    @property
    def cause(self) -> str:
        """What most of the error comes from, for people."""
        parts = {
            f"rounding {self.input!r}": self.rounding,
            f"clipping {self.input!r}": self.clipping,
            "its weights": self.weights,
            "its bias": self.bias,
        }
        return max(parts, key=lambda name: parts[name].share)


def layers(pair: Pair) -> dict[str, Layer]:
    """All convolutions in int8, by name."""
    graph = equalized(pair.graph, pair.table)
    nodes = {node.name: node for node in convolutions(graph)}
    return {
        op.name: _layer(pair, nodes[op.name], op)
        for op in int8_layers(pair.program)
        if op.name in nodes
    }


def _layer(pair: Pair, node: Conv2d, op: Conv2dOp) -> Layer:
    source, out = (pair.program.tensors[name] for name in (op.inputs[0], op.output))
    plain = subpixel(node).conv if node.transposed else node
    step = op.multiplier.astype(np.float64)  # the scale of an accumulator
    total = op.weights.astype(np.int64).sum(axis=(1, 2, 3))
    if out.dtype == "float32":
        rounded_bias = np.asarray(op.bias_f32, np.float64)
    else:
        step = step * np.float64(out.scale)
        rounded_bias = (op.bias + source.zero_point * total) * step
    scales = step / np.float64(source.scale)
    phases = len(plain.weight) // len(node.weight)
    factors = np.broadcast_to(pair.factors(node.output).reshape(-1), len(node.weight))
    factors = repeated(factors, node.groups, phases)
    return Layer(
        op=op,
        node=node,
        source=source,
        out=out,
        input=node.inputs[0],
        output=node.output,
        weight=np.ascontiguousarray(plain.weight.transpose(0, 2, 3, 1)),
        rounded=(op.weights * scales[:, None, None, None]).astype(np.float32),
        bias=plain.bias.astype(np.float64),
        rounded_bias=rounded_bias,
        factors_in=pair.factors(node.inputs[0]),
        offsets_in=pair.offsets(node.inputs[0]),
        factors=factors.astype(np.float64),
        offset=pair.offsets(node.output).reshape(-1) / factors.astype(np.float64),
        phases=phases,
    )


def empty(layer: Layer) -> Sums:
    """Sums of no samples."""
    zeros = np.zeros(len(layer.weight))
    names = [each.name for each in fields(Sums) if each.name != "count"]
    return Sums(**{name: zeros.copy() for name in names})


def add(sums: Sums, layer: Layer, x: FloatArray, q: Array) -> None:
    """Add a sample.

    x: the input of the layer in the float network, q: in the int8 network, N C H W.
    """
    x = (x - layer.offsets_in) / layer.factors_in
    source = layer.source
    lo, hi = (
        (end - source.zero_point) * source.scale for end in (source.lo, source.hi)
    )
    cut = np.clip(x, lo, hi)
    taken = centred(quantize(x, source), source) * source.scale
    seen = centred(q, source) * source.scale
    exact, by_weights = convolved(layer, x)
    rounding, more = convolved(layer, taken - cut)
    by_bias = (layer.rounded_bias - layer.bias)[:, None, None]
    total = rounding + more + by_weights + by_bias
    if (cut != x).any():
        clipping, more = convolved(layer, cut - x)
        total = total + clipping + more
        sums.clipping += squares(layer, clipping)
    sums.signal += squares(layer, exact + (layer.bias + layer.offset)[:, None, None])
    sums.rounding += squares(layer, rounding)
    sums.weights += squares(layer, by_weights)
    sums.total += squares(layer, total)
    sums.shift += layer.factors * total.sum(axis=(0, 2, 3), dtype=np.float64)
    count = total[:, 0].size
    own = by_bias[:, 0, 0] * count + by_weights.sum(axis=(0, 2, 3), dtype=np.float64)
    sums.bias += layer.factors * own
    sums.drift += layer.factors * (summed(layer, seen - x) + own)
    sums.count += count


def squares(layer: Layer, error: FloatArray | DoubleArray) -> DoubleArray:
    """Sum of squares of each channel, in real values, (O,).  error: N O H W."""
    flat = error.astype(np.float64)
    result: DoubleArray = np.einsum("nohw,nohw->o", flat, flat) * layer.factors**2
    return result


def convolved(layer: Layer, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Convolve x with W and with Wq - W; each result is N O H W.

    One matrix product for each tap, in float32, which is enough for errors.
    """
    groups, (batch, channels, height, width) = layer.op.groups, layer.out.shape
    each = channels // groups
    depthwise = layer.weight.shape[3] == each == 1
    pair = (layer.weight, layer.rounded - layer.weight)
    both = np.stack(
        [weight.reshape(groups, each, *weight.shape[1:]) for weight in pair]
    )
    both = both.swapaxes(0, 1).reshape(groups, 2 * each, *layer.weight.shape[1:])
    total = np.zeros((batch, groups, 2 * each, height * width), np.float32)
    for row, column, taps in under_taps(layer, x):
        values = taps.reshape(batch, groups, -1, height * width)
        weights = both[:, :, row, column]
        total += weights * values if depthwise else weights @ values
    total = total.reshape(batch, groups, 2, each, height * width)
    first, second = (total[:, :, at].reshape(layer.out.shape) for at in (0, 1))
    return first, second


def summed(layer: Layer, x: FloatArray) -> DoubleArray:
    """Convolve x with Wq, and add up each output channel, (O,)."""
    groups, channels = layer.op.groups, layer.out.shape[1]
    total = np.zeros((groups, channels // groups))
    for row, column, taps in under_taps(layer, x):
        values = taps.sum(axis=(0, 2, 3), dtype=np.float64).reshape(groups, -1, 1)
        each = layer.rounded[:, row, column].reshape(groups, channels // groups, -1)
        total += (each.astype(np.float64) @ values)[:, :, 0]
    return total.reshape(-1)


def under_taps(layer: Layer, x: FloatArray) -> Iterator[tuple[int, int, FloatArray]]:
    """For each tap its row, its column, and the part of x that it reads, N I H W."""
    height, width = layer.out.shape[2:]
    padded = pad_to_windows(layer.op, layer.out, x, 0)
    for row in range(layer.weight.shape[1]):
        for column in range(layer.weight.shape[2]):
            taps = tap(layer.op, padded, row, column, height, width)
            yield row, column, taps.astype(np.float32, copy=False)


def split(layer: Layer, sums: Sums) -> Split:
    """Turn the sums of a layer into errors by cause."""
    signal, total = float(sums.signal.sum()), float(sums.total.sum())
    shift, bias = (each**2 / max(sums.count, 1) for each in (sums.shift, sums.bias))

    def part(powers: DoubleArray) -> Part:
        power = float(powers.sum())
        share = power / total if total else 0.0
        return Part(sqnr_db=sqnr_db(signal, power), share=share)

    return Split(
        layer=layer.op.name,
        input=layer.input,
        output=layer.output,
        sqnr_db=sqnr_db(signal, total),
        rounding=part(sums.rounding),
        clipping=part(sums.clipping),
        weights=part(sums.weights),
        bias=part(bias),
        bias_shift=part(shift),
    )
