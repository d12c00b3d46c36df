# SPDX-License-Identifier: Apache-2.0
"""What follows a layer with rearranged channels is computed as the layer has them.

MatMul over tokens is a convolution between a move and a move back. What stands between
two of them, the bias and the activation, looks at single values or at single channels;
so the move back comes after it, where it often meets the next move and both go.

That is for the moves that neon8 makes. The Transposes of a file that lies channels last
are weighed before there is a Graph, in graph/layout.py, and what it decided stays.
"""

import math
from dataclasses import replace

import numpy as np

from neon8.graph.passes.compose_pointwise import is_uniform
from neon8.ir.graph import Graph, Node, Tensor
from neon8.ir.rewrite import drop_dead
from neon8.operators import rearranged
from neon8.operators.activation import Activate
from neon8.operators.arithmetic import Binary, Maximum, Minimum, Sum, WithConstant
from neon8.operators.convolution import Conv2d
from neon8.operators.movement import Permute, Reshape
from neon8.operators.pointwise import Pointwise
from neon8.operators.quantization import FakeQuantize
from neon8.operators.source import Float64Array, float32

Available = dict[tuple[str, str], Tensor]
"""(ONNX tensor, label) -> the tensor that has its values, rearranged."""

BY_VALUE = Activate | Binary | FakeQuantize | Maximum | Minimum | Pointwise | Sum
"""The nodes that look at single values, whatever their places."""

MAX_SIZE = 1 << 24
"""Values of a constant that is rearranged, which must be written out for that."""


def stay_rearranged(graph: Graph) -> Graph:
    """Each node that looks at values or channels reads what is rearranged already.

    If the plain form of one of its inputs would have to be made for it.
    """
    if not graph.rearranged:
        return graph
    tensors = dict(graph.tensors)
    nodes: list[Node] = []
    available: Available = {}
    labels: dict[str, str] = {}  # of the plain tensors that are moved back
    done: set[str] = set()
    for original in graph.nodes:
        if original.output in done:
            continue
        node = original
        label = next((labels[n] for n in node.inputs if n in labels), "")
        sources = [available.get((name, label)) for name in node.inputs]
        inner = _inside(node, [s for s in sources if s is not None], tensors)
        if inner is not None:
            tensor = tensors[inner.output]
            nodes.append(inner)
            done.add(tensor.name)
            available[node.output, label] = tensor
            labels[node.output] = label
            node = rearranged.back(node.name, tensor)
        elif isinstance(node, Permute | Reshape):
            origin = tensors[node.inputs[0]].origin
            if (
                origin is not None
                and origin.name == node.output
                and origin.label != rearranged.NCHW
            ):
                labels[node.output] = origin.label
        made = tensors[node.output]
        if made.origin is not None:
            available[made.origin.name, made.origin.label] = made
        nodes.append(node)
        done.add(node.output)
    names = (*graph.inputs, *(name for node in nodes for name in node.outputs))
    kept = {name: tensors[name] for name in names}
    return drop_dead(
        replace(
            graph,
            nodes=tuple(nodes),
            tensors=kept,
            rearranged=graph.rearranged
            | {name: t for name, t in tensors.items() if t.origin is not None},
        )
    )


def _inside(
    node: Node, sources: list[Tensor], tensors: dict[str, Tensor]
) -> Node | None:
    """`node` on rearranged tensors, or None; its output is added to `tensors`."""
    if not sources or len(sources) != len(node.inputs):
        return None
    first = sources[0]
    dims = tensors[node.output].dims
    if any(tensors[name].dims != dims for name in node.inputs):
        return None
    if any(source.dims != first.dims for source in sources):
        return None
    output = rearranged.alike(tensors[node.output], first)
    if tensors.get(output.name, output) != output:
        return None
    inputs = tuple(source.name for source in sources)
    made = _same(node, first, dims)
    if made is None:
        return None
    tensors[output.name] = output
    made = replace(made, inputs=inputs, output=output.name)
    if isinstance(made, Conv2d):
        made = replace(made, pre_activation=output.name)
    return made


def _same(node: Node, source: Tensor, dims: tuple[int, ...]) -> Node | None:
    """What `node`, of tensors of `dims`, is where they are like `source`, or None."""
    if isinstance(node, BY_VALUE):
        return node
    channels = source.shape[1]
    if isinstance(node, Conv2d) and is_uniform(node):
        factor = np.full(channels, node.weight.flat[0], np.float64)
        return _affine(node, factor, np.full(channels, node.bias[0], np.float64))
    if not isinstance(node, WithConstant):
        return None
    origin, constant = source.origin, node.constant
    if origin is None or math.prod(dims) > MAX_SIZE:
        return None
    along_last = constant.size == constant.shape[-1] == channels
    if along_last and origin.label == rearranged.CHANNELS_FIRST:
        pair = _scale_and_shift(node, constant.astype(np.float64).reshape(-1))
        if pair is not None and np.isfinite(float32(np.stack(pair))).all():
            return _affine(node, *pair)
    full = np.broadcast_to(constant, dims).reshape(origin.view)
    turned = full.transpose(origin.order).reshape(source.dims)
    return replace(node, constant=np.ascontiguousarray(turned))


def _scale_and_shift(
    node: WithConstant, value: Float64Array
) -> tuple[Float64Array, Float64Array] | None:
    """factor and shift of each channel, if the node does nothing else."""
    one, zero = np.ones_like(value), np.zeros_like(value)
    forms = {
        ("add", False): (one, value),
        ("add", True): (one, value),
        ("subtract", False): (one, -value),
        ("subtract", True): (-one, value),
        ("multiply", False): (value, zero),
        ("multiply", True): (value, zero),
    }
    if (node.function, node.first) == ("divide", False):
        return 1.0 / value, zero
    return forms.get((node.function, node.first))


def _affine(node: Node, factor: Float64Array, shift: Float64Array) -> Conv2d:
    return Conv2d(
        name=node.name,
        inputs=node.inputs,
        output=node.output,
        operator=node.operator,
        weight=float32(factor.reshape(-1, 1, 1, 1)),
        bias=float32(shift),
        groups=len(factor),
        pre_activation=node.output,
    )
