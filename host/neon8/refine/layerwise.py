# SPDX-License-Identifier: Apache-2.0
"""Weights and biases chosen on samples, one layer after another.

Each convolution sees the inputs that it gets in the int8 network, after layers chosen
already. Its weights are rounded so that their errors cancel on these inputs
(rounding.py). Then its bias corrects the means that rounded weights shift and, if
wanted, shifts that earlier layers caused, as far as the samples establish them: a ReLU
that rectifies noise shifts means, and so do clipped values.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from neon8.arrays import AnyArray, DoubleArray, FloatArray
from neon8.calibrate.recipe.bias import CORRECTED
from neon8.compile.lower import lower
from neon8.data.arrays import Arrays
from neon8.ir.graph import Graph
from neon8.ir.program import Op, Program, Tensor
from neon8.operators.convolution import (
    Conv2d,
    Conv2dOp,
    convolutions,
    int8_layers,
    with_proved,
)
from neon8.quant.lattice import quantizer
from neon8.quant.scale_table import (
    BALANCED,
    CHOSEN,
    NARROW,
    NEAREST,
    LayerScale,
    ScaleTable,
)
from neon8.quant.weights import ACC_LIMIT, Integers, channel_scales, sums
from neon8.refine.inputs import mean_row, some_rows
from neon8.refine.lockstep import Values, in_lockstep, peak
from neon8.refine.rounding import ONE, descend, parts
from neon8.rewrite.bias import corrected
from neon8.rewrite.equalization import equalized
from neon8.rewrite.rounding import packed, rounded

BUDGET = 1 << 28
"""Bytes of values, of all samples, in memory at once."""
MEAN_BITS = {"int8": 14, "int16": 6}
"""Fraction bits of the means of inputs: with K inputs and errors of ERROR_BITS, no sum
of products reaches K * 2**39."""

Watch = Callable[[], None]
"""Called for each layer that is chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A sample, and what its pre-activations are in float.

    digest: SHA-256, hex.  inputs: as oracle.run() takes them.  means: of channels,
    (C,).  pixels: values at some_pixels(), (n, C).
    """

    digest: str
    inputs: Arrays
    means: Mapping[str, DoubleArray]
    pixels: Mapping[str, FloatArray]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What to choose.  rounding: integer weights.  means: biases for all shifts."""

    rounding: bool
    means: bool


def layers_of(graph: Graph, table: ScaleTable) -> dict[str, "Layer"]:
    """The layers that can be chosen, by the tensor that each makes.

    Left out are transposed convolutions, layers in float32, and those whose weight
    scales the compiler must enlarge.  CompileError.
    """
    lowered = lower(graph, table)
    nodes = {node.name: node for node in convolutions(equalized(graph, table))}
    found = {}
    for op in int8_layers(lowered):
        if op.name in nodes:
            layer = Layer(lowered, op, nodes[op.name], table)
            if layer.known:
                found[op.output] = layer
    return found


def chosen(
    layers: Mapping[str, "Layer"],
    table: ScaleTable,
    samples: Sequence[Seen],
    choice: Choice,
    *,
    watch: Watch,
) -> ScaleTable:
    """Choose integer weights and bias corrections on `samples`.

    layers: from layers_of(), one or more. If tensors are large, only the first samples
    are used, as many as BUDGET holds.  ModelError.
    """
    entries = dict(table.layers)

    def visit(op: Op, values: Values) -> Op:
        layer = layers.get(op.output)
        if layer is None:
            return op
        watch()
        entry = _chosen(layer, values, samples[: len(values)], choice)
        step = layer.step(entry)
        if step is None:
            return op
        entries[op.name] = entry
        return step

    lowered = next(iter(layers.values())).lowered
    outputs = [op.output for op in lowered.ops]
    steps = 1 + max(map(outputs.index, layers))
    count = max(1, BUDGET // peak(lowered, steps))
    inputs = [each.inputs for each in samples[:count]]
    in_lockstep(lowered, inputs, visit, steps=steps)
    return replace(table, layers=entries)


@dataclass(frozen=True, slots=True)
class Layer:
    """A step of the lowered network, and its equalized node."""

    lowered: Program
    op: Conv2dOp
    node: Conv2d
    table: ScaleTable

    @property
    def entry(self) -> LayerScale:
        """The entry of the table, before anything is chosen."""
        return self.table.layers[self.node.name]

    @property
    def source(self) -> Tensor:
        """The tensor that it reads."""
        return self.lowered.tensors[self.op.inputs[0]]

    @property
    def out(self) -> Tensor:
        """The tensor that it makes."""
        return self.lowered.tensors[self.op.output]

    @property
    def scales(self) -> DoubleArray:
        """Weight scales, (O,)."""
        return channel_scales(self.node.name, self.entry, len(self.node.weight))

    @property
    def factors(self) -> DoubleArray:
        """Factors of its output channels, (O,), or (1,) without any."""
        made = self.table.tensors.get(self.node.output)
        return np.array(made.factors if made is not None and made.factors else [1.0])

    @property
    def offsets(self) -> DoubleArray:
        """Offsets of its output channels, (O,), or (1,) without any."""
        made = self.table.tensors.get(self.node.output)
        return np.array(made.offsets if made is not None and made.offsets else [0.0])

    @property
    def known(self) -> bool:
        """True if the step has the weights and scales of the table unchanged."""
        node = self.node
        wide = self.entry.bits != NARROW
        if wide or node.transposed or node.weight_scales is not None:
            return False
        weights = self.integers(self.entry).transpose(0, 2, 3, 1)
        if not np.array_equal(weights, self.op.weights):
            return False
        return np.array_equal(self._multiplied(self.op).multiplier, self.op.multiplier)

    def _multiplied(self, op: Conv2dOp) -> Conv2dOp:
        """A step with other integers, with the multipliers that lower() gives it."""
        ratio = np.float64(self.source.scale) * self.scales / np.float64(self.out.scale)
        own = replace(op, multiplier=ratio.astype(np.float32))
        return with_proved(own, self.lowered.tensors)

    def by_group(self, values: AnyArray) -> AnyArray:
        """Reshape (O, ...) to (G, O / G, K)."""
        return values.reshape(self.op.groups, len(values) // self.op.groups, -1)

    def integers(self, entry: LayerScale) -> Integers:
        """The weights that `entry` gives, (O, I / groups, kh, kw)."""
        rounds = quantizer(entry.rounding, entry.bits)
        return rounds(self._node(entry).weight, self.scales)

    def step(self, entry: LayerScale) -> Conv2dOp | None:
        """The step with the integers of `entry`; None if int32 may overflow."""
        weights, bias = self.integers(entry), self._node(entry).bias
        real = self.op.bias_f32 is not None
        found = sums(
            self.node.weight,
            np.zeros(bias.shape) if real else bias.astype(np.float64),
            self.scales,
            scale_in=float(self.source.scale),
            zero_point_in=self.source.zero_point,
            reach=self.source.reach,
            quantize=lambda _weight, _scales: weights,
        )
        if found.bound.max() >= ACC_LIMIT:
            return None
        step = replace(
            self.op,
            weights=np.ascontiguousarray(weights.transpose(0, 2, 3, 1)),
            bias=found.bias.astype(np.int32),
            bias_f32=bias if real else None,
            acc_bound=int(found.bound.max()),
            int16_depth=2,
            winograd="",
        )
        return self._multiplied(step)

    def _node(self, entry: LayerScale) -> Conv2d:
        """The node as lower() rewrites it."""
        table = replace(self.table, layers={self.node.name: entry})
        alone = Graph(
            name="", digest="", tensors={}, nodes=(self.node,), inputs=(), outputs=()
        )
        (node,) = convolutions(rounded(corrected(alone, table), table))
        return node


def _chosen(
    layer: Layer, values: Values, samples: Sequence[Seen], choice: Choice
) -> LayerScale:
    """Choose the entry of a layer that reads `values`."""
    entry = layer.entry
    if choice.rounding and entry.rounding in (NEAREST, BALANCED):
        entry = _with_integers(layer, values, samples)
    if choice.means:
        found = [each.means.get(layer.node.pre_activation) for each in samples]
        wanted = _wanted(layer, found)
        if wanted is not None:
            return _with_bias(layer, entry, values, wanted)
    if entry.rounding != layer.entry.rounding:
        return _with_bias(layer, entry, values, None)
    return entry


def _wanted(layer: Layer, found: Sequence[AnyArray | None]) -> DoubleArray | None:
    """What a layer should make, each (..., C), under one another, (n, O).

    None: unknown, or not finite.
    """
    known = [each for each in found if each is not None and np.isfinite(each).all()]
    if len(known) < len(found):
        return None
    return (np.vstack(known) - layer.offsets) / layer.factors


def _with_integers(layer: Layer, values: Values, samples: Sequence[Seen]) -> LayerScale:
    """The entry with the integer weights that are best on rows of `values`."""
    found = [each.pixels.get(layer.node.pre_activation) for each in samples]
    wanted = _wanted(layer, found)
    if wanted is None:
        return layer.entry
    rows = [
        some_rows(layer.op, layer.out, layer.source, q, digest=each.digest)
        for q, each in zip(values, samples, strict=True)
    ]
    sums = (wanted - layer.node.bias) / (layer.scales * float(layer.source.scale))
    flips = descend(
        layer.by_group(layer.node.weight),
        layer.by_group(layer.scales)[..., 0],
        np.concatenate(rows),
        layer.by_group(sums.T).transpose(2, 0, 1),
        samples=len(samples),
    )
    if not flips.any():
        return layer.entry
    reasons = (*layer.entry.reasons, CHOSEN)
    return replace(layer.entry, rounding=CHOSEN, levels=packed(flips), reasons=reasons)


def _with_bias(
    layer: Layer, entry: LayerScale, values: Values, wanted: DoubleArray | None
) -> LayerScale:
    """The entry with a bias that gives the channels the means they should have.

    wanted: the means in float, (samples, O); None: those of float weights on `values`.
    """
    means = [mean_row(layer.op, layer.out, layer.source, q) for q in values]
    fixed = 2.0 ** MEAN_BITS[layer.source.dtype]
    rows = np.rint(np.stack(means, axis=2) * fixed)  # (G, K, samples)
    step = float(layer.source.scale) / fixed
    weights, real, units = map(
        layer.by_group, (layer.integers(entry), layer.node.weight, layer.scales)
    )
    lost, kept = np.empty((2, *weights.shape[:2], len(values)))
    for part in parts(weights.shape):
        scales, q = units[:, part], weights[:, part].astype(np.float64)
        errors = np.rint((real[:, part] / scales - q) * ONE)
        # Both products are exact.
        lost[:, part] = errors @ rows * (step / ONE) * scales
        kept[:, part] = q @ rows * step * scales
    correction = _mean(lost.reshape(-1, len(values)))
    if wanted is not None:
        exact = (kept + lost).reshape(-1, len(values)) + layer.node.bias[:, np.newaxis]
        correction += _sure(wanted.T - exact)
    reasons = entry.reasons
    if CORRECTED not in reasons:
        reasons = (*reasons, CORRECTED)
    numbers = correction.astype(np.float32).tolist()
    return replace(entry, bias_correction=tuple(numbers), reasons=reasons)


def _mean(values: DoubleArray) -> DoubleArray:
    """Means over samples, (O, samples) to (O,), summed in order."""
    result: DoubleArray = np.add.accumulate(values, axis=1)[:, -1] / values.shape[1]
    return result


def _sure(differences: DoubleArray) -> DoubleArray:
    """Mean error of each channel, (O,), shrunk by what may be chance.

    differences: (O, samples).  By the estimator of James and Stein: a mean no larger
    than its standard error becomes 0, and a large one stays.
    """
    mean = _mean(differences)
    spread = _mean(np.square(differences - mean[:, np.newaxis]))
    error = spread / max(differences.shape[1] - 1, 1)
    share = 1 - error / np.maximum(np.square(mean), np.finfo(np.float64).tiny)
    result: DoubleArray = mean * np.clip(share, 0, 1)
    return result
