# SPDX-License-Identifier: Apache-2.0
"""The scales in an ONNX file with QuantizeLinear and DequantizeLinear nodes."""

from dataclasses import replace
from os import PathLike

import onnx

from neon8.errors import GraphError, TableError
from neon8.formats.foreign_table import (
    ForeignTable,
    QuantParams,
    from_scale_table,
    params_from,
)
from neon8.graph.onnx_file import open_onnx
from neon8.graph.protos import STANDARD
from neon8.graph.quantized import Levels, QuantizedFile, qlinear, take_apart
from neon8.graph.quantized.constants import integer_of
from neon8.quant.checks import scale as checked_scale
from neon8.quant.weights import HIGHEST, LOWEST
from neon8.rewrite.own_scales import load_quantized
from neon8.text import counted

LAYERS = ("Conv", "Gemm", "MatMul")


def load(path: str | PathLike[str]) -> ForeignTable:
    """Scales of activations by tensor, of weights by node.  TableError."""
    try:
        file = open_onnx(path)
        graph = onnx.ModelProto.FromString(file.model).graph
        if any(node.op_type in qlinear.ROWS for node in graph.node):
            _, table = load_quantized(file, narrow=True)
            return replace(from_scale_table(table, source=str(path)), format="qdq")
        found = _table(str(path), take_apart(file))
        if found.weights.keys() <= found.reads.keys():
            return found
        _, table = load_quantized(file, narrow=True)
    except GraphError as error:
        raise TableError(str(error)) from error
    # What layers read where something is moved before that, only the network tells.
    known = from_scale_table(table, source=str(path))
    reads = {name: known.reads[name] for name in found.weights if name in known.reads}
    more = {name: known.tensors[name] for name in reads.values()}
    return replace(
        found, reads={**reads, **found.reads}, tensors={**more, **found.tensors}
    )


def _table(source: str, apart: QuantizedFile) -> ForeignTable:
    """Everything that the file says."""
    graph = onnx.ModelProto.FromString(apart.file.model).graph
    nodes = [node for node in graph.node if node.domain in STANDARD]
    copies = {n.input[0]: n.output[0] for n in nodes if n.op_type == "Identity"}
    outputs = {value.name for value in graph.output}
    tensors: dict[str, QuantParams] = {}
    called = {v.name: v.name for v in graph.input if v.name in apart.rounded}
    weights: dict[str, tuple[float, ...]] = {}
    reads: dict[str, str] = {}
    groups: dict[str, int] = {}
    left: list[str] = []
    for node in nodes:
        made = node.output[0]
        if node.op_type == "Identity":
            if made in apart.rounded:  # or else it stands for a DequantizeLinear
                end = copies.get(made, "")
                called[made] = end if end in outputs else node.input[0]
            elif node.input[0] in called:
                called[made] = called[node.input[0]]
        if node.op_type not in LAYERS:
            continue
        layer = node.name or f"{node.op_type}_{made}"
        if node.input[0] in called:
            reads[layer] = called[node.input[0]]
        levels = apart.constants.get(node.input[1])
        if levels is None:
            continue
        ends = levels.levels.min(initial=0), levels.levels.max(initial=0)
        if ends[0] < LOWEST or ends[1] > HIGHEST:
            left.append(layer)
            continue
        if layer in weights:
            text = f"two nodes have the name {layer!r}; rename one"
            raise TableError(f"{source}: {text}")
        where = f"{source}: layer {layer!r}"
        weights[layer] = _weight_scales(where, node, levels)
        groups[layer] = _groups(where, node, len(weights[layer]))
    for quantized, name in called.items():
        if quantized not in apart.rounded:
            continue
        given = apart.rounded[quantized]
        step = checked_scale(f"{source}: tensor {name!r}", given.scale)
        params = params_from(step, given.zero_point)
        if tensors.setdefault(name, params) != params:
            text = f"tensor {name!r} is quantized twice with different scales"
            raise TableError(f"{source}: {text}")
    if not tensors and not weights:
        text = "has no QuantizeLinear or DequantizeLinear nodes, so no scales"
        raise TableError(f"{source}: {text}")
    table = ForeignTable(
        source=source,
        format="qdq",
        tensors=dict(tensors),
        weights=weights,
        reads=reads,
        groups=groups,
    )
    if not left:
        return table
    layers = counted(len(left), "layer")
    text = f"left out, as int8 does not hold them: the weights of {layers}"
    return table.with_note(f"{text}, such as {left[0]!r}")


def _weight_scales(
    where: str, node: onnx.NodeProto, levels: Levels
) -> tuple[float, ...]:
    """One scale, or one for each output channel.  TableError: others."""
    axis = 0 if node.op_type == "Conv" or integer_of(node, "transB", 0) else 1
    shape = levels.levels.shape
    single = levels.scale.size == 1
    along = levels.along(axis) if not single and axis < len(shape) else None
    scales = levels.scale.reshape(1) if single else along
    if scales is None:
        text = f"has weight scales along another axis of weights {list(shape)} than"
        raise TableError(f"{where}: {text} {axis}, the output channels")
    return tuple(
        checked_scale(f"{where}: weight scale {channel}", float(scale))
        for channel, scale in enumerate(scales)
    )


def _groups(where: str, node: onnx.NodeProto, scales: int) -> int:
    """How many groups a convolution has; 1 for other layers."""
    found = integer_of(node, "group", 1)
    if found < 1 or (scales > 1 and scales % found):
        text = f"has {found} groups and {scales} weight scales"
        raise TableError(f"{where}: {text}")
    return found
