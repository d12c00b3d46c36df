# SPDX-License-Identifier: Apache-2.0
"""An ONNX file whose tensors can be rounded, each in its own way, while it runs.

A tensor x becomes s * (min(max(m * x, lo), hi) + c - c), with five numbers that the
network takes as a further input. With c = 1.5 * 2**23 the additions round a float32
half to even; with m = s = 1, c = 0 and no bounds the result is x to the last bit. A
tensor whose channels have factors is divided by them before and multiplied after. No
operator is newer than opset 8.

Convolutions can be replaced by those of a Graph, whose weights and biases are inputs,
too: so each run can have others, rounded or not.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter
from itertools import count
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from neon8.arrays import FloatArray
from neon8.errors import GraphError
from neon8.graph.onnx_file import OnnxFile
from neon8.graph.protos import STANDARD, inner_nodes, nodes_of, rename, store
from neon8.graph.reader import read
from neon8.ir.graph import Factors, Graph, Origin, Shape
from neon8.operators.convolution import Conv2d

LEAST_OPSET = 8
"""The first one in which Max and Min broadcast; all that was in 7 is there, too."""
SPLIT_TAKES_SIZES = 13
PAD_TAKES_PADS = 11
"""The first opsets in which that is an input, no attribute."""

NUMBERS = 5
"""A tensor has m, lo, hi, c and s."""
ROUNDING = 1.5 * 2.0**23
"""c where the result is a whole number, below 2**22 before s."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Roundable:
    """file: the network with more inputs and no outputs but the wanted ones.

    settings: an input, NUMBERS values for each tensor, one after another.  places:
    tensor of the graph -> which of these is its own, shared by arrangements of one
    tensor of the file.  layers: name -> the inputs for its weights, (O, I / groups, kh,
    kw), and its bias, (O,).  outputs: tensor of the graph -> output of the file.
    """

    file: OnnxFile
    settings: str
    places: dict[str, int]
    layers: dict[str, tuple[str, str]]
    outputs: dict[str, str]


def roundable(
    file: OnnxFile,
    graph: Graph,
    *,
    tensors: Sequence[str],
    layers: Iterable[Conv2d],
    outputs: Sequence[str],
    factors: Mapping[str, Factors] = MappingProxyType({}),
) -> Roundable:
    """`file`, of which `tensors` can be rounded.

    graph: of the same file.  tensors: one or more of the graph, fixed and of real
    values.  layers: convolutions of the graph whose weights and biases become inputs.
    outputs: tensors of the graph that the network gives, rounded where they can be.
    factors: of channels of some tensors of the graph, (C,), which are rounded in these
    units.
    GraphError: the file does not have one of the tensors outside of branches and loops.
    """
    edit = _Edit(file, graph)
    given = {layer.name: edit.replace_layer(layer) for layer in layers}
    roots = {name: edit.root(name) for name in tensors}
    order = {root: place for place, root in enumerate(dict.fromkeys(roots.values()))}
    units = {
        roots[name]: edit.units(name, factors[name])
        for name in tensors
        if factors.get(name)
    }
    settings = edit.round_all(tuple(order), units)
    found = {name: edit.arranged(name) for name in outputs}
    return Roundable(
        file=edit.finished(tuple(found.values())),
        settings=settings,
        places={name: order[root] for name, root in roots.items()},
        layers=given,
        outputs=found,
    )


class _Edit:
    """A copy of the file while it changes.

    Each tensor has one maker, and finished() puts the nodes in order of execution.
    """

    def __init__(self, file: OnnxFile, graph: Graph) -> None:
        self._file, self._graph = file, graph
        self._model = onnx.ModelProto.FromString(file.model)
        self._nodes: list[onnx.NodeProto] = []
        self._makers: dict[str, onnx.NodeProto] = {}
        self._add(self._model.graph.node)
        self._inputs = {value.name for value in self._model.graph.input}
        self._weights = dict(file.weights)
        self._tensors = {**graph.rearranged, **graph.tensors}
        self._source = read(file)
        self._now: dict[str, str] = {}  # inputs of the file, once they are rounded
        self._made: dict[str, str] = {}  # tensors of the graph that the file lacks
        self._taken = set(_names(self._model.graph))
        self._numbers = count()
        self._opset = 0
        for domain in self._model.opset_import:
            if domain.domain in STANDARD:
                domain.version = max(domain.version, LEAST_OPSET)
                self._opset = domain.version

    def root(self, name: str) -> str:
        """The tensor of the file with the values of `name`, in whatever order."""
        while (origin := self._origin(name)) is not None and origin.name != name:
            name = origin.name
        return name

    def arranged(self, name: str) -> str:
        """A tensor with the values of `name` of the graph, in its order."""
        origin = self._origin(name)
        if origin is None:
            return self._now.get(name, name)
        if name not in self._made:
            own = origin.name == name
            source = self._now.get(name, name) if own else self.arranged(origin.name)
            view, order, dims = origin.view, origin.order, self._tensors[name].dims
            self._made[name] = self._move(source, view, order, dims)
        return self._made[name]

    def replace_layer(self, layer: Conv2d) -> tuple[str, str]:
        """What makes its pre-activation is `layer` from now on; its new inputs."""
        source = self._graph.tensors[layer.inputs[0]]
        made, root = layer.pre_activation, self.root(layer.pre_activation)
        self._displace(root, self._fresh(f"{root}_of_file"))
        value = self.arranged(source.name)
        value = self._node("Cast", [value], to=TensorProto.FLOAT)
        value = self._reshape(value, source.shape)
        given = (
            self._new_input(f"{layer.name}_weight", layer.weight.shape),
            self._new_input(f"{layer.name}_bias", layer.bias.shape),
        )
        value = self._convolve(value, layer, source.shape, given)
        while (origin := self._origin(made)) is not None:
            view = tuple(origin.view[axis] for axis in origin.order)
            order = tuple(origin.order.index(axis) for axis in range(len(view)))
            made = "" if origin.name == made else origin.name
            inner = self._origin(made) is not None
            dims = self._tensors[made].dims if inner else self._source.shapes[root]
            value = self._move(value, view, order, dims)
        value = self._reshape(value, self._source.shapes[root])
        self._give(value, root, root)
        return given

    def units(self, name: str, factors: Factors) -> FloatArray:
        """`factors` of the channels of `name` as its root in the file has them."""
        tensor, root = self._graph.tensors[name], self.root(name)
        column = np.array(factors, np.float32).reshape(-1, 1, 1)
        values = np.broadcast_to(column, tensor.shape).reshape(tensor.dims)
        while (origin := self._origin(name)) is not None:
            turned = values.reshape([origin.view[axis] for axis in origin.order])
            values = turned.transpose(np.argsort(origin.order))
            name = "" if origin.name == name else origin.name
        values = values.reshape(self._source.shapes[root])
        for axis in range(values.ndim):
            first = values.take([0], axis)
            values = first if (values == first).all() else values
        return values

    def round_all(self, roots: Sequence[str], units: Mapping[str, FloatArray]) -> str:
        """The name of a new input by which these tensors of the file are rounded.

        units: what some of them are divided by while they are.
        """
        total = NUMBERS * len(roots)
        settings = self._new_input("settings", [total])
        numbers = [self._fresh(f"{settings}_{index}") for index in range(total)]
        for index, root in enumerate(roots):
            own = numbers[NUMBERS * index : NUMBERS * (index + 1)]
            self._round(root, own, units.get(root))
        split = helper.make_node("Split", [settings], numbers, axis=0)
        if self._opset < SPLIT_TAKES_SIZES:
            split.attribute.append(helper.make_attribute("split", [1] * total))
        else:
            split.input.append(self._integers([1] * total))
        self._add([split])
        return settings

    def finished(self, outputs: Iterable[str]) -> OnnxFile:
        """The file with these outputs, and what they need."""
        outputs = tuple(dict.fromkeys(outputs))
        nodes = self._live(outputs)
        live = set(outputs).union(*map(_reads, nodes))
        graph = self._model.graph
        gone = {*self._weights, *(t.name for t in graph.initializer)} - live
        constants = [tensor for tensor in graph.initializer if tensor.name in live]
        # Old exporters list initializers among the inputs.
        inputs = [value for value in graph.input if value.name not in gone]
        for field in ("node", "initializer", "input", "output"):
            graph.ClearField(field)
        graph.node.extend(nodes)
        graph.input.extend(inputs)
        graph.initializer.extend(constants)
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs)
        return replace(
            self._file,
            model=self._model.SerializeToString(),
            weights={n: v for n, v in self._weights.items() if n in live},
        )

    def _origin(self, name: str) -> Origin | None:
        tensor = self._tensors.get(name)
        return None if tensor is None else tensor.origin

    def _live(self, outputs: Sequence[str]) -> list[onnx.NodeProto]:
        """The nodes that `outputs` need, in order of execution."""
        order: TopologicalSorter[int] = TopologicalSorter()
        found: dict[int, onnx.NodeProto] = {}
        waiting = [self._makers[name] for name in outputs if name in self._makers]
        while waiting:
            node = waiting.pop()
            if id(node) not in found:
                found[id(node)] = node
                read = [self._makers[n] for n in _reads(node) if n in self._makers]
                order.add(id(node), *map(id, read))
                waiting += read
        return [found[each] for each in order.static_order()]

    def _add(self, nodes: Iterable[onnx.NodeProto]) -> None:
        for node in nodes:
            self._nodes.append(node)
            self._makers |= {name: node for name in node.output if name}

    def _displace(self, name: str, other: str) -> None:
        """What makes `name` makes `other`.  GraphError: there is no such node."""
        node = self._makers.pop(name, None)
        if node is None:
            text = f"tensor {name!r} is inside of a branch or loop; inline that"
            raise GraphError(f"{self._file.path}: {text}")
        node.output[:] = [other if each == name else each for each in node.output]
        self._makers[other] = node

    def _new_input(self, name: str, dims: Sequence[int]) -> str:
        """A new input of float32."""
        name = self._fresh(name)
        value = helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
        self._model.graph.input.append(value)
        return name

    def _round(
        self, root: str, numbers: list[str], unit: FloatArray | None = None
    ) -> None:
        """All that reads tensor `root` of the file reads it rounded."""
        factor, lowest, highest, shift, scale = numbers
        if root in self._inputs:
            source, result = root, self._fresh(f"{root}_rounded")
            rename(self._nodes, {root: result})
            self._now[root] = result
        else:
            source, result = self._fresh(f"{root}_unrounded"), root
            self._displace(root, source)
        value = self._node("Cast", [source], to=TensorProto.FLOAT)
        units = [] if unit is None else [self._constant(unit)]
        for operator, number in (
            *(("Div", each) for each in units),
            ("Mul", factor),
            ("Max", lowest),
            ("Min", highest),
            ("Add", shift),
            ("Sub", shift),
            ("Mul", scale),
            *(("Mul", each) for each in units),
        ):
            value = self._node(operator, [value, number])
        if not self._source.shapes[root]:  # the numbers have one dimension
            value = self._reshape(value, ())
        self._give(value, root, result)

    def _convolve(
        self, value: str, layer: Conv2d, shape: Shape, given: Sequence[str]
    ) -> str:
        """`layer` on N C H W.  given: the names of weights and bias."""
        pads = layer.pads
        if layer.transposed:
            (n, c, h, w), (down, across) = shape, layer.spread
            value = self._reshape(value, (n, c, h, 1, w, 1))
            zeros = [0] * 9 + [down - 1, 0, across - 1]
            value = self._pad(value, zeros)
            value = self._reshape(value, (n, c, h * down, w * across))
            top, left, bottom, right = pads
            ends = [0, 0, bottom - down + 1, right - across + 1]
            value = self._pad(value, [0, 0, top, left, *ends])
            pads = (0, 0, 0, 0)
        return self._node(
            "Conv",
            [value, *given],
            kernel_shape=layer.weight.shape[2:],
            strides=layer.strides,
            dilations=layer.dilations,
            pads=pads,
            group=layer.groups,
        )

    def _pad(self, value: str, pads: list[int]) -> str:
        """With zeros, or without what is negative."""
        if self._opset < PAD_TAKES_PADS:
            return self._node("Pad", [value], pads=pads)
        return self._node("Pad", [value, self._integers(pads)])

    def _move(
        self, value: str, view: Sequence[int], order: Sequence[int], dims: Sequence[int]
    ) -> str:
        """As Permute does."""
        value = self._reshape(value, view)
        value = self._node("Transpose", [value], perm=order)
        return self._reshape(value, dims)

    def _reshape(self, value: str, dims: Sequence[int]) -> str:
        return self._node("Reshape", [value, self._integers(dims)])

    def _give(self, value: str, root: str, result: str) -> None:
        """`value` of the type that tensor `root` has in the file, called `result`."""
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(self._source.types[root]))
        self._add([helper.make_node("Cast", [value], [result], to=kind)])

    def _node(self, operator: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Adds a node; its output."""
        result = self._fresh(f"{inputs[0]}_{operator}")
        self._add([helper.make_node(operator, inputs, [result], **attributes)])
        return result

    def _integers(self, values: Sequence[int]) -> str:
        name = self._fresh("integers")
        tensor = numpy_helper.from_array(np.array(values, np.int64), name)
        self._model.graph.initializer.append(tensor)
        return name

    def _constant(self, values: FloatArray) -> str:
        name = self._fresh("constant")
        store(self._model.graph, {name: values}, self._weights)
        return name

    def _fresh(self, name: str) -> str:
        unique = name
        while unique in self._taken:
            unique = f"{name}_{next(self._numbers)}"
        self._taken.add(unique)
        return unique


def _names(graph: onnx.GraphProto) -> Iterator[str]:
    """All that are in use."""
    for node in nodes_of(graph):
        yield from (*node.input, *node.output)
    for value in (*graph.input, *graph.initializer):
        yield value.name


def _reads(node: onnx.NodeProto) -> Iterator[str]:
    """What it and all nodes inside of it read."""
    for each in (node, *inner_nodes(node)):
        yield from each.input
