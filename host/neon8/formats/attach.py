# SPDX-License-Identifier: Apache-2.0
"""What a foreign table means for a network: names resolved, gaps filled or named.

attach() brings every scale to the tensor or layer that it belongs to; fill() adds what
follows from the network; complete() and onto() make a whole ScaleTable. What does not
follow from the file, the network or a given table is an error with its name.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from neon8.errors import TableError
from neon8.formats.foreign_table import (
    ForeignTable,
    QuantParams,
    Range,
    to_params,
    weight_scales_of,
)
from neon8.graph.onnx_file import ModelLike, open_onnx
from neon8.graph.reader import read
from neon8.ir.graph import Graph
from neon8.ir.groups import scale_groups
from neon8.operators.convolution import Conv2d, convolutions, is_depthwise
from neon8.operators.opaque import opaque_nodes
from neon8.operators.source import OnnxNode
from neon8.quant.checks import float32
from neon8.quant.checks import scale as checked_scale
from neon8.quant.reasons import IMPORTED
from neon8.quant.scale_table import LayerScale, ScaleTable, TensorScale
from neon8.rewrite.own_scales import made_scales


def attach(
    table: ForeignTable, graph: Graph, names: Mapping[str, tuple[str, int]]
) -> ForeignTable:
    """`table` by the tensors and layers of `graph`, layers in its order.

    names: as weight_names() gives them.  TableError: a layer, or weights, that the
    network does not have, another number of channels.
    """
    layers = {node.name: node for node in convolutions(graph)}
    for layer in (*table.inputs, *table.weights):
        if layer not in layers:
            text = f"layer {layer!r} is not in the network {graph.name}"
            raise TableError(f"{table.source}: {text}; map names with --names")
    tensors = dict(table.tensors)
    for layer, params in table.inputs.items():
        tensor = layers[layer].inputs[0]
        if tensors.setdefault(tensor, params) != params:
            text = f"layer {layer!r} and another one read {tensor!r}"
            raise TableError(f"{table.source}: {text} with different scales")
    weights = dict(table.weights)
    used = set()
    for layer, (name, axis) in names.items():
        if name in table.constants:
            weights[layer] = _along_axis(table, name, axis)
            used.add(name)
        elif isinstance(tensors.get(name), QuantParams) and name not in graph.tensors:
            params = to_params(tensors[name])
            if params.bits != 8:
                text = f"weights {name!r} have {params.bits} bits, ours have 8"
                raise TableError(f"{table.source}: {text}")
            weights[layer] = (params.scale,)
            used.add(name)
    for name in table.constants:
        if name not in used:
            text = f"weights {name!r} are not those of a layer of {graph.name}, or"
            raise TableError(
                f"{table.source}: {text} folding changed them; map names with --names"
            )
    return replace(
        table,
        tensors={name: entry for name, entry in tensors.items() if name not in used},
        inputs={},
        weights={
            name: _channels(
                table,
                name,
                weights[name],
                channels=len(node.weight),
                groups=node.groups,
            )
            for name, node in layers.items()
            if name in weights
        },
        reads={name: node.inputs[0] for name, node in layers.items()},
        groups={name: node.groups for name, node in layers.items()},
        weight_names=dict(names),
        constants={},
    )


def _along_axis(table: ForeignTable, name: str, axis: int) -> tuple[float, ...]:
    given, scales = table.constants[name]
    if len(scales) > 1 and given not in (axis, axis - 2, axis - 4):
        text = f"weights {name!r} have scales along axis {given}, the output channels"
        raise TableError(f"{table.source}: {text} are axis {axis}")
    return scales


def _channels(
    table: ForeignTable,
    name: str,
    scales: tuple[float, ...],
    *,
    channels: int,
    groups: int,
) -> tuple[float, ...]:
    """One scale per output channel; or one per group, repeated."""
    if len(scales) in (1, channels):
        return scales * (channels // len(scales))
    if table.scales_per_group and len(scales) == groups:
        return tuple(np.repeat(scales, channels // groups).tolist())
    text = f"layer {name!r} has {len(scales)} weight scales and {channels} channels"
    raise TableError(f"{table.source}: {text}; is it of another network?")


def fill(table: ForeignTable, graph: Graph) -> ForeignTable:
    """An attached `table` with what follows from the scales that it has.

    A tensor that only moves values of others shares their scale. Where they have more
    than one, what a Concat joins has its scale, and what is moved that of the tensor
    that it comes from. Weight scales that are
    missing are absmax / 127 of each channel, as in calibration, and as TensorRT, Glow
    and onnxruntime make them.
    """
    group_of = scale_groups(graph)
    groups: dict[str, set[QuantParams | Range]] = {}
    for name, entry in table.tensors.items():
        if name in group_of:
            groups.setdefault(group_of[name], set()).add(entry)
    shared = {
        name: next(iter(groups[group]))
        for name, group in group_of.items()
        if len(groups.get(group, ())) == 1
    }
    tensors = {**shared, **table.tensors}
    moves = [node for node in graph.nodes if node.shares_scale]
    for node in reversed(moves):
        if node.output in tensors:
            missing = (n for n in node.inputs if n in group_of and n not in tensors)
            tensors |= dict.fromkeys(missing, tensors[node.output])
    for node in moves:
        first = node.inputs[0]
        if len(node.inputs) == 1 and first in tensors and node.output in group_of:
            tensors.setdefault(node.output, tensors[first])
    table = replace(table, tensors=tensors)
    weights = {}
    for node in convolutions(graph):
        if node.name in table.weights:
            weights[node.name] = table.weights[node.name]
        elif node.inputs[0] in table.tensors:
            scale = _tensor_scale(table, node.inputs[0]).scale
            weights[node.name] = weight_scales_of(_layer(table, node, scale))
    return replace(table, weights=weights)


def complete(table: ForeignTable, graph: Graph) -> ScaleTable:
    """The whole table of `graph`, from an attached `table`.

    TableError names the first tensor without a scale.
    """
    table = fill(table, graph)
    spare = stays_float(graph)
    tensors = {}
    for name, tensor in graph.tensors.items():
        if name in table.tensors:
            tensors[name] = _tensor_scale(table, name)
        elif tensor.observed and name not in spare:
            text = f"tensor {name!r} has no scale or range: it has {table.contents}"
            raise TableError(
                f"{table.source}: {text}; --onto M.scales.json gives the others"
            )
    layers = {
        node.name: _layer(table, node, tensors[node.inputs[0]].scale)
        for node in convolutions(graph)
    }
    schemes = {tensor.scheme for tensor in tensors.values()}
    return ScaleTable(
        model_name=graph.name,
        model_digest=graph.digest,
        method=IMPORTED,
        scheme="symmetric" if schemes == {"symmetric"} else "auto",
        samples=0,
        engine=f"imported from {table.format}",
        tensors=tensors,
        layers=layers,
    )


def stays_float(graph: Graph) -> set[str]:
    """The tensors that no int8 network needs a scale for: they are never rounded.

    What a softmax or an Opaque node gives, and no other reads; what a convolution
    without activation gives to those only, or to a residual sum that is computed along
    with it.
    """
    made = {node.output: at for at, node in enumerate(graph.nodes)}
    rounded = {
        name for node in graph.nodes if not node.unrounded for name in node.inputs
    }
    between = {
        node.output
        for node in graph.nodes
        if node.unrounded and node.runs and node.output in rounded
    }
    floats = {node.output for node in graph.nodes if node.unrounded and node.runs}
    floats -= between
    for opaque in opaque_nodes(graph):
        floats |= {name for name in opaque.outputs if name not in rounded}
    for node in convolutions(graph):
        if not node.activation.identity:
            continue
        readers = [other for other in graph.nodes if node.output in other.inputs]
        alone = node.transposed or is_depthwise(graph, node)
        if all(each.unrounded and each.output not in between for each in readers):
            floats.add(node.output)
        elif node.output not in graph.outputs and not alone and len(readers) == 1:
            others = [name for name in readers[0].inputs if name != node.output]
            # The later of two operands takes the sum in: the other one is there then.
            first = others and made.get(others[0], -1) < made[node.output]
            if readers[0].sign == 1 and first:
                floats.add(node.output)
    return floats


def onto(table: ForeignTable, base: ScaleTable) -> ScaleTable:
    """`base` with everything that `table` has in its place.

    TableError: a layer that the base does not have, weights known by their own name
    only.
    """
    if table.constants:
        text = f"weights {next(iter(table.constants))!r} belong to a layer that only"
        raise TableError(f"{table.source}: {text} the network tells: add --model")
    entries = dict(table.tensors)
    for layer in (*table.inputs, *table.weights):
        if layer not in base.layers:
            text = f"layer {layer!r} is not in the table of {base.model_name}"
            raise TableError(f"{table.source}: {text}; map names with --names")
    for layer, params in table.inputs.items():
        entries[base.layers[layer].input] = params
    known = replace(table, tensors=entries)
    tensors = {
        name: _tensor_scale(known, name) if name in entries else tensor
        for name, tensor in base.tensors.items()
    }
    layers = dict(base.layers)
    for name, scales in table.weights.items():
        old = base.layers[name]
        channels = len(old.weight_scales)
        whole = _channels(table, name, scales, channels=channels, groups=old.groups)
        layers[name] = _merged(table, name, whole, old)
    return replace(base, tensors=tensors, layers=layers)


def _tensor_scale(table: ForeignTable, name: str) -> TensorScale:
    where = f"{table.source}: tensor {name!r}"
    params = to_params(table.tensors[name])
    reasons: tuple[str, ...] = (IMPORTED,)
    if params.scale == 0:
        params = QuantParams(scale=1 / params.grid.highest, bits=params.bits)
        reasons = ("dead", IMPORTED)
    scale = checked_scale(where, params.scale)
    ends = (
        params.grid.lowest - params.zero_point,
        params.grid.highest - params.zero_point,
    )
    lo, hi = (float32(f"{where}: the end of its range", scale * end) for end in ends)
    return TensorScale(
        scale=scale,
        zero_point=params.zero_point,
        scheme=params.scheme,
        threshold=(lo, hi),
        min=None,
        max=None,
        bits=params.bits,
        reasons=reasons,
    )


def _layer(table: ForeignTable, node: Conv2d, input_scale: float) -> LayerScale:
    """The weight scales of the table, or those that follow from the weights."""
    own = made_scales(node, input_scale)
    if node.name not in table.weights:
        return own
    return _merged(table, node.name, table.weights[node.name], own)


def _merged(
    table: ForeignTable, name: str, scales: tuple[float, ...], own: LayerScale
) -> LayerScale:
    """The scales of the table; a channel without weights keeps its made-up one."""
    where = f"{table.source}: layer {name!r}: weight scale"
    dead = [f"dead:{channel}" for channel, scale in enumerate(scales) if scale == 0]
    for reason in dead:
        if reason not in own.reasons:
            text = f"{where} {reason[5:]} is 0, and the channel has weights"
            raise TableError(text)
    return LayerScale(
        input=own.input,
        weight_scales=tuple(
            checked_scale(f"{where} {channel}", scale or own.weight_scales[channel])
            for channel, scale in enumerate(scales)
        ),
        groups=own.groups,
        reasons=(*dead, IMPORTED),
    )


def weight_names(model: ModelLike, graph: Graph) -> dict[str, tuple[str, int]]:
    """Layer -> name of its weights, axis of the output channels.

    graph: what was imported from `model`. A layer whose weights were changed by folding
    (BatchNormalization ...) has no such initializer and is left out.
    """
    source = read(open_onnx(model))
    nodes = {node.name: node for node in source.nodes}
    found = {}
    for layer in convolutions(graph):
        node = nodes.get(layer.name)
        if node is None or len(node.inputs) < 2:
            continue
        values = source.constants.get(node.inputs[1])
        axis = _axis(node)
        if values is None or axis is None or values.ndim <= axis:
            continue
        if node.operator == "ConvTranspose":
            values = np.flip(values, tuple(range(2, values.ndim)))
        values = np.moveaxis(values, axis, 0)
        same = np.array_equal(layer.weight.ravel(), values.ravel())
        if same and len(layer.weight) == len(values):
            found[layer.name] = (node.inputs[1], axis)
    return found


def _axis(node: OnnxNode) -> int | None:
    if node.operator == "Conv":
        return 0
    if node.operator == "ConvTranspose":  # of groups, that axis has the first one's
        return 1 if node.integer("group", 1) == 1 else None
    if node.operator == "Gemm":
        return 0 if node.integer("transB", 0) else 1
    return 1 if node.operator == "MatMul" else None
