# SPDX-License-Identifier: Apache-2.0
"""Operators replaced by others that do the same, before the network is imported.

They are those with a row in a family's `compositions`, and those that ONNX itself
defines by a function of other operators.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
import onnx.inliner
from onnx import helper

from neon8.arrays import Array
from neon8.graph.expansion import check_size
from neon8.graph.inference import take_branches
from neon8.graph.onnx_file import OnnxFile
from neon8.graph.protos import (
    LARGE,
    STANDARD,
    graphs_of,
    initializer,
    inner_nodes,
    nodes_of,
    pin_batch,
    store,
    with_defaults,
)
from neon8.graph.reader import read
from neon8.operators.composition import Parts
from neon8.operators.registry import COMPOSITIONS, IMPORTS
from neon8.operators.source import OnnxNode, Source, UnsupportedError

MAX_ROUNDS = 16
"""How deep operators may consist of others."""

IMAGE = 2
"""Spatial dimensions. Nearly every network has windows over images, and needs no more
than one look.
"""

IR = 8
"""The version of a model that onnx's inliner sees."""


def composed(file: OnnxFile) -> OnnxFile:
    """The file with such operators replaced; the same one if it has none.

    An operator that would become others which neon8 does not know stays as it is.
    The new file has the batch size 1 where the old one leaves it open.  GraphError.
    """
    kept: set[str] = set()
    while True:
        made = _Composed(file, kept)
        made.run()
        unknown = made.unknown()
        if not unknown:
            return made.file
        kept |= unknown


@dataclass(slots=True)
class _Composed:
    """The file as it changes.

    kept: the first outputs of nodes that stay.  origins: first output of a node that is
    not in the file -> that of the node there.
    """

    file: OnnxFile
    kept: set[str]
    origins: dict[str, str] = field(default_factory=dict)

    def run(self) -> None:
        """Replaces until nothing is left."""
        original = self.file
        for _ in range(MAX_ROUNDS):
            model = onnx.ModelProto.FromString(self.file.model)
            if not any(map(self._candidate, model.graph.node)):
                break
            if not self._replace(model, read(self.file)):
                break
        if self.origins:
            self.file = replace(self.file, original=original)

    def unknown(self) -> set[str]:
        """The first outputs of nodes that became what neon8 does not know."""
        if not self.origins:
            return set()
        return {
            self.origins[_key(node.outputs)]
            for node in read(self.file).nodes
            if _key(node.outputs) in self.origins
            and (node.fault or node.operator not in {*IMPORTS, *COMPOSITIONS})
        }

    def _candidate(self, node: onnx.NodeProto) -> bool:
        if node.domain not in STANDARD or _key(node.output) in self.kept:
            return False
        if node.op_type in COMPOSITIONS and node.op_type in IMPORTS:
            kernel = next((a for a in node.attribute if a.name == "kernel_shape"), None)
            more = any(node.output[1:])
            return more or kernel is None or len(kernel.ints) > IMAGE
        if node.op_type in COMPOSITIONS:
            return True
        only = not any(node.output[1:])  # neon8's own operators make one tensor
        if (node.op_type in IMPORTS and only) or not onnx.defs.has(node.op_type):
            return False
        schema: Any = onnx.defs.get_schema(node.op_type)
        return bool(schema.has_function or schema.has_context_dependent_function)

    def _replace(self, model: onnx.ModelProto, source: Source) -> bool:
        """True if something was."""
        live = {_key(node.outputs): node for node in source.nodes}
        taken = {v.name for v in (*model.graph.input, *model.graph.initializer)}
        for each in nodes_of(model.graph):
            taken.update((*each.input, *each.output))
        nodes: list[onnx.NodeProto] = []
        weights, hidden = dict(self.file.weights), self.file.hidden
        changed = False
        for proto in model.graph.node:
            node = live.get(_key(proto.output))
            made = None
            if node is not None and not node.fault and self._candidate(proto):
                made = _replacement(source, proto, node, taken)
            if made is None:
                nodes.append(proto)
                continue
            changed = True
            origin = self.origins.get(_key(proto.output), _key(proto.output))
            inner = nodes_of(onnx.GraphProto(node=made.nodes))
            self.origins |= {_key(each.output): origin for each in inner}
            nodes += made.nodes
            hidden |= made.hidden
            store(model.graph, made.constants, weights)
        if changed:
            del model.graph.node[:]
            model.graph.node.extend(nodes)
            pin_batch(model.graph)
            check_size(self.file.path, model)
            data = model.SerializeToString()
            left = take_branches(self.file.path, data, weights)
            self.file = replace(
                self.file, model=left or data, weights=weights, hidden=hidden
            )
        return changed


@dataclass(frozen=True, slots=True, kw_only=True)
class _Replacement:
    nodes: list[onnx.NodeProto]
    constants: dict[str, Array] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()


def _key(outputs: Iterable[str]) -> str:
    """What identifies a node: its first output."""
    return next(filter(None, outputs), "")


def _replacement(
    source: Source, proto: onnx.NodeProto, node: OnnxNode, taken: set[str]
) -> _Replacement | None:
    """What stands for a node; None: it stays."""
    parts = Parts(source=source, node=node, taken=taken)
    compose = COMPOSITIONS.get(proto.op_type)
    if compose is None:
        return _function(proto, parts)
    try:
        if not compose(parts):
            return None
    except UnsupportedError:  # and the importer says why
        return None
    inside = {name for part in parts.nodes for name in part.outputs}
    return _Replacement(
        nodes=list(map(_proto, parts.nodes)),
        constants=parts.constants,
        hidden=frozenset(
            (inside if parts.in_float else parts.hidden) - {*node.outputs}
        ),
    )


def _proto(node: OnnxNode) -> onnx.NodeProto:
    made: onnx.NodeProto = helper.make_node(
        node.operator, node.inputs, node.outputs, node.name
    )
    for name, value in node.attributes.items():
        if value not in (None, ()):  # as onnx cannot tell of what an empty list is
            made.attribute.append(helper.make_attribute(name, value))
    return made


def _function(proto: onnx.NodeProto, parts: Parts) -> _Replacement | None:
    """The nodes by which ONNX defines one; None if it does not, or not at this opset.

    They are those of onnx's own inliner, which sees nothing but the node.
    """
    source = parts.source
    names = [name for name in dict.fromkeys(proto.input) if name]
    if any(inner_nodes(proto)) or not all(_is_known(source, name) for name in names):
        return None  # it crashes
    graph = onnx.GraphProto(
        name="node",
        node=[with_defaults(proto)],
        input=[onnx.ValueInfoProto(name=n, type=_type(source, n)) for n in names],
        output=[onnx.ValueInfoProto(name=name) for name in proto.output if name],
        initializer=[
            initializer(name, source.constants[name])
            for name in names
            if name in source.constants and source.constants[name].nbytes <= LARGE
        ],
    )
    opset = helper.make_opsetid("", source.opset)
    model = onnx.ModelProto(ir_version=IR, graph=graph, opset_import=[opset])
    try:
        made = onnx.inliner.inline_selected_functions(
            model, [("", proto.op_type)], inline_schema_functions=True
        )
    except Exception:  # noqa: BLE001 - it raises all sorts; an old one has no such function
        return None
    opsets = [(entry.domain, entry.version) for entry in made.opset_import]
    if opsets != [("", source.opset)]:
        return None
    nodes = list(made.graph.node)
    if any(node.op_type == proto.op_type for node in nodes):
        return None
    kept = {*proto.input, *proto.output}
    _rename(nodes, _fresh(nodes, kept, parts), parts)
    return _Replacement(nodes=nodes)


def _is_known(source: Source, name: str) -> bool:
    """True if type and shape of a tensor are."""
    return name in source.shapes and source.types.get(name, "str") != "str"


def _type(source: Source, name: str) -> onnx.TypeProto:
    """The type of a tensor."""
    kind, shape = source.types[name], source.shapes[name]
    number = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    made: onnx.TypeProto = helper.make_tensor_type_proto(number, shape)
    return made


def _fresh(nodes: list[onnx.NodeProto], kept: set[str], parts: Parts) -> dict[str, str]:
    """New names for all tensors in `nodes` but those in `kept`."""
    graph = onnx.GraphProto(node=nodes)
    names = (n for each in nodes_of(graph) for n in (*each.input, *each.output))
    output = parts.node.outputs[0]
    return {
        name: parts.fresh(f"{output}_{name}")
        for name in dict.fromkeys(names)
        if name and name not in kept
    }


def _rename(
    nodes: Iterable[onnx.NodeProto], names: Mapping[str, str], parts: Parts
) -> None:
    """Changes the names of tensors, in branches too, and makes those of nodes new."""
    for node in nodes:
        for which in (node.input, node.output):
            for at, name in enumerate(which):
                which[at] = names.get(name, name)
        node.name = f"{parts.node.name}:{_key(node.output)}"
        for graph in graphs_of(node):
            for value in (*graph.input, *graph.output, *graph.initializer):
                value.name = names.get(value.name, value.name)
            _rename(graph.node, names, parts)
