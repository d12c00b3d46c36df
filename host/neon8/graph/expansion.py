# SPDX-License-Identifier: Apache-2.0
"""How many nodes a file makes onnxruntime build, and run for one sample.

A few kilobytes of functions that call each other, or of loops, can ask for more than
any machine has; onnxruntime would set to work on it.
"""

from collections import ChainMap
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path

import onnx

from neon8.errors import GraphError
from neon8.graph.protos import graphs_of
from neon8.quant.limits import MAX_TENSORS

MAX_NODES = 2 * MAX_TENSORS
"""Nodes of a file, of which many fold; onnxruntime expands so many within seconds."""
MAX_RUNS = 1 << 24
"""Nodes that are run for one sample, as far as the file tells: seconds, too."""
MAX_DEPTH = 64
"""How deep functions may call functions, and branches and loops may nest."""

ENDLESS = 1 << 63
COPIES = frozenset({("", "Identity"), ("", "Cast")})
INT64_BYTES = 8

Key = tuple[str, str]
"""Domain and name of a function."""


@dataclass(frozen=True, slots=True)
class _Size:
    """Nodes that are built, and how many are run."""

    nodes: int = 0
    runs: int = 0

    def __add__(self, other: "_Size") -> "_Size":
        return _Size(self.nodes + other.nodes, self.runs + other.runs)


def check_size(path: Path, model: onnx.ModelProto) -> None:
    """GraphError: the file makes onnxruntime build or run too many nodes."""
    functions = {(each.domain, each.name): each for each in model.functions}
    known = {tensor.name: tensor for tensor in model.graph.initializer}
    size = _Sizes(path, functions).of(model.graph.node, known)
    if size.nodes > MAX_NODES:
        text = f"has {size.nodes} nodes, those in functions, branches and loops "
        raise GraphError(f"{path}: {text}included; neon8 takes up to {MAX_NODES}")
    if size.runs > MAX_RUNS:
        text = f"its loops run {size.runs} nodes for one sample; neon8 takes up to "
        raise GraphError(f"{path}: {text}{MAX_RUNS}; export the network unrolled")


class _Sizes:
    """The sizes of parts of a model; those of functions are computed once."""

    def __init__(self, path: Path, functions: Mapping[Key, onnx.FunctionProto]) -> None:
        self._path, self._functions = path, functions
        self._known: dict[Key, _Size] = {}

    def of(
        self,
        nodes: Iterable[onnx.NodeProto],
        constants: MutableMapping[str, onnx.TensorProto],
        depth: int = 0,
    ) -> _Size:
        """constants: those that the nodes may read.  depth: how much is around them."""
        if depth > MAX_DEPTH:
            text = f"nests functions, branches and loops deeper than {MAX_DEPTH}"
            raise GraphError(f"{self._path}: {text}; export it without them")
        total, constants = _Size(), ChainMap({}, constants)
        for node in nodes:
            for item in node.attribute:
                if node.op_type == "Constant" and item.name == "value" and node.output:
                    constants[node.output[0]] = item.t
            total += _Size(1, 1) + self._inside(node, constants, depth)
        return total

    def _inside(
        self,
        node: onnx.NodeProto,
        constants: MutableMapping[str, onnx.TensorProto],
        depth: int,
    ) -> _Size:
        key = _key(node)
        if key in self._functions:
            if key not in self._known:
                nodes = self._functions[key].node
                self._known[key] = self.of(nodes, {}, depth + 1)
            return self._known[key]
        total = _Size()
        for graph in graphs_of(node):
            inner = {tensor.name: tensor for tensor in graph.initializer}
            size = self.of(graph.node, ChainMap(inner, constants), depth + 1)
            if key == ("", "Loop"):
                runs = size.runs * _trips(node, graph, constants)
                size = _Size(size.nodes, runs)
            total += size
        return total


def _key(node: onnx.NodeProto) -> Key:
    return ("" if node.domain == "ai.onnx" else node.domain), node.op_type


def _trips(
    loop: onnx.NodeProto,
    body: onnx.GraphProto,
    constants: MutableMapping[str, onnx.TensorProto],
) -> int:
    """How often the body is run; 1 where only a run can tell."""
    made = {name: node for node in body.node for name in node.output}
    if len(body.input) < 2 or not body.output:  # is not valid
        return 1
    condition = body.output[0].name
    while condition in made and _key(made[condition]) in COPIES:
        condition = made[condition].input[0]
    constant = condition in constants or (
        condition in made and not made[condition].input
    )
    if condition != body.input[1].name and not constant:
        return 1
    if not loop.input[0]:
        return ENDLESS
    return max(_integer(constants.get(loop.input[0])), 0)


def _integer(tensor: onnx.TensorProto | None) -> int:
    """The only value of a tensor; 1 if it is none of one integer."""
    if tensor is None or tensor.data_type != onnx.TensorProto.INT64:
        return 1
    if len(tensor.raw_data) == INT64_BYTES:
        return int.from_bytes(tensor.raw_data, "little", signed=True)
    return int(tensor.int64_data[0]) if len(tensor.int64_data) == 1 else 1
