# SPDX-License-Identifier: Apache-2.0
"""A network that was quantized elsewhere: its Graph, and the table of its own scales.

Weights are taken over as integers of up to 8 bits and a sign, which the compiler makes
int8. For formats that have int8 alone, and where a channel has yet others, the channel
is rounded anew to a scale of its own, and a warning says so of all together.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from neon8.arrays import DoubleArray, FloatArray
from neon8.errors import LOG, GraphError
from neon8.graph.importer import convert
from neon8.graph.onnx_file import ModelLike, open_onnx
from neon8.graph.passes import PASSES
from neon8.graph.passes.drop_reshapes import drop_reshapes
from neon8.graph.passes.stay_rearranged import stay_rearranged
from neon8.graph.quantized import Levels, QuantizedFile, take_apart
from neon8.graph.reader import read
from neon8.ir.graph import Activation, Graph, Node, Quantization, Tensor
from neon8.ir.names import unused
from neon8.operators.activation import Activate
from neon8.operators.convolution import Conv2d, convolutions, with_convolutions
from neon8.operators.quantization import FakeQuantize
from neon8.operators.source import OnnxNode, Source
from neon8.quant.reasons import IMPORTED
from neon8.quant.scale_table import LayerScale, ScaleTable, TensorScale
from neon8.quant.weights import (
    HIGHEST,
    LOWEST,
    WIDEST,
    quantize_weights,
    weight_levels,
    weight_scales,
)
from neon8.rewrite import fake_quantize
from neon8.rewrite.fake_quantize import Rounded
from neon8.text import counted

ROUNDS = 2
"""Pairs that moved show what can be fused, and what is fused how far pairs can move."""

SAME_SCALE = 2.0**-20
"""Relative: products of float32 scales, rounded by whoever made the file."""


def load_quantized(
    model: ModelLike, *, narrow: bool = False
) -> tuple[Graph, ScaleTable]:
    """The network in a quantized ONNX file and its scales, ready to be compiled.

    narrow: for a format whose weights are int8: from -127 to 127, and one -128 in a
    channel.

    The table has the scales and zero points of the file, exactly; a tensor that the
    file does not round is not in it, nor is a layer whose weights are float there.
    GraphError names the node that neon8 cannot take.
    """
    file = open_onnx(model)
    apart = take_apart(file)
    source = read(apart.file)
    graph = _with_pairs(convert(source), apart)
    given = {
        name: apart.rounded[name] for name in graph.inputs if name in apart.rounded
    }
    graph = _with_levels(graph, source, apart.constants, given)
    graph = drop_reshapes(stay_rearranged(graph))
    for _ in range(ROUNDS):
        graph = fake_quantize.settle(graph, given)
        for apply in PASSES:
            graph = apply(graph)
    graph = drop_reshapes(fake_quantize.settle(graph, given))
    rounded = fake_quantize.merge(graph, given, apart.made_up)
    graph = replace(_unfused(rounded), quantized=True)
    for node in convolutions(graph):
        if not node.finite:
            text = f"node {node.name!r}: its weights are too large for float32"
            raise GraphError(f"{file.path}: {text}")
    return graph, _table(graph, source, rounded.tensors, narrow=narrow)


def _with_pairs(graph: Graph, apart: QuantizedFile) -> Graph:
    """With a FakeQuantize in place of each Identity that take_apart() put for one."""
    nodes: list[Node] = []
    for node in graph.nodes:
        rounded = apart.rounded.get(node.output)
        if rounded is None:
            nodes.append(node)
            continue
        nodes.append(
            FakeQuantize(
                name=node.name,
                inputs=node.inputs,
                output=node.output,
                quantization=rounded,
            )
        )
    return replace(graph, nodes=tuple(nodes))


def _unfused(rounded: Rounded) -> Graph:
    """Convolutions into float without their activation, which stands after them."""
    nodes: list[Node] = []
    tensors = dict(rounded.graph.tensors)
    for node in rounded.graph.nodes:
        known = node.output in rounded.tensors
        if not isinstance(node, Conv2d) or node.activation.identity or known:
            nodes.append(node)
            continue
        inner = unused(node.output, tensors)
        tensors[inner] = Tensor(inner, tensors[node.output].dims)
        plain = replace(node, output=inner, pre_activation=inner)
        nodes.append(replace(plain, activation=Activation()))
        nodes.append(
            Activate(
                name=f"{node.name}_activation",
                inputs=(inner,),
                output=node.output,
                activation=node.activation,
            )
        )
    return replace(rounded.graph, nodes=tuple(nodes), tensors=tensors)


def _with_levels(
    graph: Graph,
    source: Source,
    constants: Mapping[str, Levels],
    given: dict[str, Quantization],
) -> Graph:
    """With the scales of the weights and the integers of the biases in the layers."""
    made = {node.name: node for node in source.nodes}
    tensors = fake_quantize.on_scale(graph.nodes, given)

    def change(node: Conv2d) -> Conv2d:
        onnx_node = made.get(node.name)
        if onnx_node is None:
            return node
        weights, bias = (constants.get(n) for n in (*onnx_node.inputs, "", "")[1:3])
        layer = _with_weight_scales(node, onnx_node, weights)
        return _with_exact_bias(layer, onnx_node, bias, tensors.get(node.inputs[0]))

    return with_convolutions(graph, change)


def _with_weight_scales(
    node: Conv2d, onnx_node: OnnxNode, weights: Levels | None
) -> Conv2d:
    axis = _output_axis(onnx_node)
    scales = None if weights is None or axis is None else weights.along(axis)
    if scales is None:
        return node
    if onnx_node.operator == "Gemm":
        scales = scales * np.float32(abs(onnx_node.real("alpha", 1.0)))
    if onnx_node.operator == "ConvTranspose":  # every group has these
        scales = np.tile(scales, onnx_node.integer("group", 1))
    scales = np.broadcast_to(scales, (len(node.weight),)).astype(np.float32)
    weight = node.weight
    if weights is not None and weights.half:  # rounded to float16; they are multiples
        each = scales.reshape(-1, 1, 1, 1)
        weight = (np.rint(weight / each) * each).astype(np.float32)
    return replace(node, weight=weight, weight_scales=scales)


def _with_exact_bias(
    node: Conv2d,
    onnx_node: OnnxNode,
    bias: Levels | None,
    source: Quantization | None,
) -> Conv2d:
    """With a bias of which B of (5) is the integer in the file, if the units agree.

    The product of two float32 scales is exact in double, and with the integer it is
    rounded to 2**-53 of itself; so the quotient that (5) rounds is 2**-20 off at most.
    """
    channels = len(node.weight)
    if bias is None or source is None or node.weight_scales is None:
        return node
    if bias.levels.size != channels or onnx_node.real("beta", 1.0) != 1:
        return node
    scale = np.broadcast_to(bias.scale, bias.levels.shape).reshape(-1)
    unit = source.scale * node.weight_scales.astype(np.float64)
    if (np.abs(scale - unit) > SAME_SCALE * unit).any():
        return node
    return replace(node, exact_bias=bias.levels.reshape(-1) * unit)


def _output_axis(node: OnnxNode) -> int | None:
    """The axis of the weights that has an entry for each output channel."""
    if node.operator == "Gemm":
        return 0 if node.integer("transB", 0) else 1
    return {"Conv": 0, "ConvTranspose": 1, "MatMul": -1}.get(node.operator)


def _table(
    graph: Graph,
    source: Source,
    tensors: Mapping[str, Quantization],
    *,
    narrow: bool,
) -> ScaleTable:
    """Everything that the file says, by the tensors and layers of `graph`."""
    floats = {node.name for node in source.nodes if _output_axis(node) is not None}
    layers = {}
    anew: list[_Anew] = []
    for node in convolutions(graph):
        if node.inputs[0] not in tensors:
            continue
        scale = tensors[node.inputs[0]].scale
        if node.weight_scales is not None:
            layers[node.name], moved = _taken_over(
                node, node.weight_scales, narrow=narrow
            )
            anew += moved
        elif node.name not in floats:
            layers[node.name] = made_scales(node, scale)
    if anew:
        LOG.warning("%s", _said(anew))
    return ScaleTable(
        model_name=graph.name,
        model_digest=graph.digest,
        method=IMPORTED,
        scheme="auto",
        samples=0,
        engine="imported from the network itself",
        tensors={
            name: _tensor_scale(tensors[name])
            for name in graph.tensors
            if name in tensors
        },
        layers=layers,
    )


def _tensor_scale(given: Quantization) -> TensorScale:
    """With all levels of the type, -128 too, so zero point 0 is not symmetric here."""
    lo, hi = ((q - given.zero_point) * given.scale for q in (-128, 127))
    return TensorScale(
        scale=given.scale,
        zero_point=given.zero_point,
        scheme="unsigned" if given.zero_point == -128 else "asymmetric",
        threshold=(float(np.float32(lo)), float(np.float32(hi))),
        min=None,
        max=None,
        reasons=(IMPORTED,),
    )


def made_scales(node: Conv2d, input_scale: float) -> LayerScale:
    """Weight scales that follow from the weights."""
    return weight_scales(
        node.name,
        source=node.inputs[0],
        absmax=np.abs(node.weight).reshape(len(node.weight), -1).max(axis=1),
        bias=node.bias,
        input_scale=input_scale,
        groups=node.groups,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Anew:
    """A channel whose weights were rounded to another scale than that of the file.

    ends: the least and the largest weight; worst: how far one was moved.  Both are in
    steps of the file.  changed: how many of its `weights` were moved.
    """

    layer: str
    channel: int
    ends: tuple[float, float]
    changed: int
    weights: int
    worst: float


def _taken_over(
    node: Conv2d, scales: FloatArray, *, narrow: bool
) -> tuple[LayerScale, list[_Anew]]:
    """The scales of the file; a channel that it cannot have gets its own."""
    lowest, highest = (LOWEST, HIGHEST) if narrow else (-WIDEST, WIDEST)
    result = scales.copy()
    for channel, scale in enumerate(scales):
        weight = node.weight[channel].astype(np.float64)
        levels = np.rint(weight / np.float64(scale))
        if levels.max() > highest or levels.min() < lowest:
            result[channel] = np.abs(weight).max() / HIGHEST
    kept: npt.NDArray[np.int8 | np.int16]
    if narrow:
        kept = quantize_weights(node.weight, result.astype(np.float64), lowest=LOWEST)
    else:
        kept = weight_levels(node.weight, result.astype(np.float64))
    anew = []
    for channel, scale in enumerate(result.astype(np.float64)):
        error = np.abs(kept[channel] * scale - node.weight[channel])
        changed = error > scale * SAME_SCALE * HIGHEST
        if changed.any():
            steps = np.rint(_ends(node.weight[channel]) / np.float64(scales[channel]))
            found = _Anew(
                layer=node.name,
                channel=channel,
                ends=(float(steps[0]), float(steps[1])),
                changed=int(np.count_nonzero(changed)),
                weights=changed.size,
                worst=float(error.max() / scales[channel]),
            )
            anew.append(found)
    entry = LayerScale(
        input=node.inputs[0],
        weight_scales=tuple(float(scale) for scale in result),
        groups=node.groups,
        reasons=(IMPORTED,),
    )
    return entry, anew


def _said(anew: list[_Anew]) -> str:
    """All channels in one line, with the one that lost most."""
    one = max(anew, key=lambda each: each.worst)
    where = f"layer {one.layer!r}: channel {one.channel}: int8 cannot hold its weights"
    which = f"{one.changed} of {one.weights} were rounded anew"
    more = ""
    if len(anew) > 1:
        layers = len({each.layer for each in anew})
        more = (
            f"; so it is with {len(anew)} channels of {counted(layers, 'layer')}, of "
            "which this is the worst"
        )
    return (
        f"{where}, which reach from {one.ends[0]:g} to {one.ends[1]:g} steps; {which}, "
        f"the worst by {one.worst:.3g} steps{more}"
    )


def _ends(weight: FloatArray) -> DoubleArray:
    return np.array([weight.min(), weight.max()], np.float64)
