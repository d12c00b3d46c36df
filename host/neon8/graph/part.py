# SPDX-License-Identifier: Apache-2.0
"""Parts of an ONNX network as networks of their own, from some tensors to others."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper, numpy_helper

from neon8.errors import CompileError
from neon8.graph.onnx_file import OnnxFile
from neon8.graph.protos import inner_nodes, nodes_of, pin_batch
from neon8.graph.reader import read
from neon8.ir.graph import FLOATS, INTEGERS, Tensor

MAX_BYTES = 2**31 - 1
"""The largest message of protobuf."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """inputs, outputs: their names.  model: a ModelProto, serialised, with its weights.

    nodes: how many it has.
    """

    model: bytes
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: int


class Parts:
    """The network that parts are taken from; a free batch is 1."""

    def __init__(self, file: OnnxFile) -> None:
        """Read it.  GraphError."""
        self._file = file
        self._model = onnx.ModelProto.FromString(file.model)
        pin_batch(self._model.graph)
        self._source = read(file)
        self._stored: dict[str, onnx.TensorProto] = {
            each.name: each for each in self._model.graph.initializer
        }
        self._declared: dict[str, onnx.ValueInfoProto] = {
            value.name: value
            for value in (*self._model.graph.output, *self._model.graph.value_info)
        }
        self._makers = {
            name: at
            for at, node in enumerate(self._model.graph.node)
            for name in node.output
            if name
        }

    def has(self, tensor: Tensor) -> bool:
        """True if the file has it, with these dimensions, of numbers that neon8 has."""
        name = tensor.name
        return (
            (name in self._makers or name in self._source.inputs)
            and tensor.origin is None
            and tensor.fixed
            and self._source.shapes.get(name) == tensor.dims
            and tensor.dtype in (*FLOATS, *INTEGERS)
        )

    def typed(self, name: str) -> bool:
        """True if the type of a tensor is known, so that a part can take it."""
        return name in self._makers and self._kind(name) is not None

    def part(self, outputs: Iterable[str], known: Collection[str]) -> Part | None:
        """What makes `outputs` of tensors in `known`; None if there are no outputs.

        Only what is needed for that.  CompileError: it is too large for an ONNX file.
        """
        wanted = tuple(outputs)
        if not wanted:
            return None
        constants, source = self._source.constants, self._source
        used: dict[str, None] = {}
        stored: dict[str, None] = {}
        chosen: set[int] = set()
        waiting = list(wanted)
        while waiting:
            name = waiting.pop()
            at = self._makers.get(name)
            if name in known and name not in wanted:
                used[name] = None
            elif name in constants or name in self._stored:
                stored[name] = None
            elif at is not None and at not in chosen:
                chosen.add(at)
                node = self._model.graph.node[at]
                inner = (n for each in inner_nodes(node) for n in each.input)
                waiting += filter(None, (*node.input, *inner))
        # A constant that is an output, as onnx wants some node to make that.
        nodes = [
            helper.make_node("Constant", [], [name], value=self._constant(name))
            for name in wanted
            if name in stored
        ]
        nodes += (self._model.graph.node[at] for at in sorted(chosen))
        inside = {name for node in nodes for name in node.output}
        inputs = [name for name in known if name in used]
        graph = onnx.GraphProto(
            name=self._model.graph.name,
            node=nodes,
            input=[self._value(name) for name in inputs],
            output=[self._value(name) for name in wanted],
            initializer=[
                self._constant(name) for name in sorted(stored) if name not in inside
            ],
            value_info=[
                value
                for value in self._model.graph.value_info
                if value.name in inside and value.name not in wanted
            ],
        )
        model = onnx.ModelProto(
            ir_version=self._model.ir_version,
            producer_name="neon8",
            graph=graph,
            opset_import=self._model.opset_import,
            functions=self._functions(graph),
        )
        if model.ByteSize() > MAX_BYTES:
            text = f"a part of {model.ByteSize()} bytes is too large for an ONNX file"
            raise CompileError(f"{source.path}: {text}; store weights as float16")
        return Part(
            model=model.SerializeToString(deterministic=True),
            inputs=tuple(inputs),
            outputs=wanted,
            nodes=len(nodes),
        )

    def _kind(self, name: str) -> int | None:
        """The type of a tensor as ONNX numbers it, None if it is unknown."""
        kind = self._source.types.get(name)
        if kind == "str":
            return onnx.TensorProto.STRING
        try:
            dtype = np.dtype(kind) if kind else None
        except TypeError:  # one that numpy does not have
            dtype = None
        return None if dtype is None else helper.np_dtype_to_tensor_dtype(dtype)

    def _value(self, name: str) -> onnx.ValueInfoProto:
        """An input or output, as far as its type is known."""
        kind, shape = self._kind(name), self._source.shapes.get(name)
        declared = self._declared.get(name) or onnx.ValueInfoProto(name=name)
        said = declared.type.tensor_type.elem_type
        if kind is None or (shape is None and said == kind):
            return declared
        made: onnx.ValueInfoProto = helper.make_tensor_value_info(name, kind, shape)
        return made

    def _constant(self, name: str) -> onnx.TensorProto:
        """An initializer with its values."""
        stored, constants = self._stored.get(name), self._source.constants
        if stored is not None and name not in self._file.weights:
            return stored
        made: onnx.TensorProto = numpy_helper.from_array(constants[name], name)
        return made

    def _functions(self, graph: onnx.GraphProto) -> list[onnx.FunctionProto]:
        """The functions of the model that these nodes call."""
        called = {(n.domain, n.op_type) for n in nodes_of(graph)}
        every = {(each.domain, each.name): each for each in self._model.functions}
        waiting = list(called & every.keys())
        while waiting:
            function = every[waiting.pop()]
            inside = nodes_of(onnx.GraphProto(node=function.node))
            more = {(n.domain, n.op_type) for n in inside} - called
            called |= more
            waiting += more & every.keys()
        return [each for key, each in every.items() if key in called]
