# SPDX-License-Identifier: Apache-2.0
"""The scales in an ONNX file with QuantizeLinear and DequantizeLinear nodes."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper

from neon8.errors import GraphError, TableError
from neon8.formats.foreign_table import (
    ForeignTable,
    QuantParams,
    from_scale_table,
    params_from,
)
from neon8.graph.onnx_file import read_model
from neon8.graph.quantized import qlinear
from neon8.quant.checks import scale as checked_scale
from neon8.rewrite.own_scales import load_quantized
from neon8.text import counted

DOMAINS = ("", "ai.onnx", "com.microsoft")
LAYERS = ("Conv", "Gemm", "MatMul")
OFFSETS = {"int8": 0, "uint8": 128}
"""What is to be taken from a zero point to make it int8."""


COPIES = ("Identity", "Cast")
"""Copies of constants: the scale of a float16 network may be stored in float32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grid:
    """Scales and int8 zero points of one Q or DQ node, (C,) or (1,), and its axis."""

    scales: npt.NDArray[np.float32]
    zero_points: npt.NDArray[np.int64]
    axis: int


def load(path: str | PathLike[str]) -> ForeignTable:
    """Scales of activations by tensor, of weights by node.  TableError."""
    try:
        model = read_model(Path(path))
        if any(node.op_type in qlinear.ROWS for node in model.graph.node):
            _, table = load_quantized(path, narrow=True)
            return replace(from_scale_table(table, source=str(path)), format="qdq")
        found = _Reader(str(path), model).table()
        if found.weights.keys() <= found.reads.keys():
            return found
        _, table = load_quantized(path, narrow=True)
    except GraphError as error:
        raise TableError(str(error)) from error
    # What layers read where something is moved before that, only the network tells.
    known = from_scale_table(table, source=str(path))
    reads = {name: known.reads[name] for name in found.weights if name in known.reads}
    more = {name: known.tensors[name] for name in reads.values()}
    return replace(
        found, reads={**reads, **found.reads}, tensors={**more, **found.tensors}
    )


class _Reader:
    """The file by names: what makes a tensor, what a constant holds."""

    def __init__(self, source: str, model: onnx.ModelProto) -> None:
        self.source = source
        self.graph = model.graph
        self.asymmetric: list[str] = []
        self.constants = {item.name: item for item in self.graph.initializer}
        self.makers: dict[str, onnx.NodeProto] = {}
        for node in self.graph.node:
            if node.op_type == "Constant" and node.attribute:
                item = onnx.TensorProto()
                item.CopyFrom(node.attribute[0].t)
                self.constants[node.output[0]] = item
            elif node.op_type in COPIES and node.input[0] in self.constants:
                self.constants[node.output[0]] = self.constants[node.input[0]]
            elif node.op_type == "Clip" and self.made_by(
                node.input[0], "QuantizeLinear"
            ):
                self.makers[node.output[0]] = self.makers[node.input[0]]
            else:
                self.makers.update(dict.fromkeys(node.output, node))

    def table(self) -> ForeignTable:
        """Everything that the file says."""
        tensors: dict[str, QuantParams] = {}
        for node in self.nodes("QuantizeLinear", "DequantizeLinear"):
            self.check_pair(node)
            name = self.activation(node)
            if name is None:
                continue
            params = self.params(node)
            if tensors.setdefault(name, params) != params:
                text = f"tensor {name!r} is quantized twice with different scales"
                raise TableError(f"{self.source}: {text}")
        weights: dict[str, tuple[float, ...]] = {}
        reads: dict[str, str] = {}
        groups: dict[str, int] = {}
        for node in self.nodes(*LAYERS):
            layer = node.name or f"{node.op_type}_{node.output[0]}"
            maker = self.made_by(node.input[0], "DequantizeLinear")
            name = None if maker is None else self.activation_of(maker)
            if name is not None:
                reads[layer] = name
            scales = self.weight_scales(layer, node)
            if scales is not None:
                if layer in weights:
                    text = f"two nodes have the name {layer!r}; rename one"
                    raise TableError(f"{self.source}: {text}")
                weights[layer] = scales
                groups[layer] = self.groups(layer, node, len(scales))
        if not tensors and not weights:
            text = "has no QuantizeLinear or DequantizeLinear nodes, so no scales"
            raise TableError(f"{self.source}: {text}")
        table = ForeignTable(
            source=self.source,
            format="qdq",
            tensors=dict(tensors),
            weights=weights,
            reads=reads,
            groups=groups,
        )
        if not self.asymmetric:
            return table
        layers = counted(len(self.asymmetric), "layer")
        text = f"left out, as they have zero points: the weights of {layers}"
        return table.with_note(f"{text}, such as {self.asymmetric[0]!r}")

    def nodes(self, *operators: str) -> Iterable[onnx.NodeProto]:
        """In order of execution."""
        for node in self.graph.node:
            if node.op_type in operators and node.domain in DOMAINS:
                yield node

    def made_by(self, name: str, operator: str) -> onnx.NodeProto | None:
        """The node that makes a tensor, if it has this operator."""
        node = self.makers.get(name)
        right = node is not None and node.op_type == operator
        return node if right and node is not None and node.domain in DOMAINS else None

    def activation(self, node: onnx.NodeProto) -> str | None:
        """The tensor that a Q node quantizes, or a DQ node on an int8 graph input.

        None for constants, and for a DQ node that reads a Q node.
        """
        if node.op_type == "DequantizeLinear":
            inputs = {value.name for value in self.graph.input}
            fed = node.input[0] in inputs - set(self.constants)
            return node.input[0] if fed else None
        if node.input[0] in self.constants:
            return None
        return self.quantized_name(node)

    def activation_of(self, node: onnx.NodeProto) -> str | None:
        """The tensor that a DQ node gives back."""
        maker = self.made_by(node.input[0], "QuantizeLinear")
        if maker is None:
            return self.activation(node)
        return None if maker.input[0] in self.constants else self.quantized_name(maker)

    def quantized_name(self, node: onnx.NodeProto) -> str:
        """What a Q node reads, or the graph output that its values become."""
        outputs = {value.name for value in self.graph.output}
        for other in self.nodes("DequantizeLinear"):
            if other.input[0] == node.output[0] and other.output[0] in outputs:
                return str(other.output[0])
        return str(node.input[0])

    def params(self, node: onnx.NodeProto) -> QuantParams:
        """The parameters of an activation."""
        grid = self.grid(node)
        if grid.scales.size != 1:
            text = f"tensor {node.input[0]!r} has one scale per channel; activations"
            raise TableError(f"{self.source}: {text} have one")
        return params_from(float(grid.scales[0]), int(grid.zero_points[0]))

    def check_pair(self, node: onnx.NodeProto) -> None:
        """TableError: a DQ node gives back other values than its Q node took."""
        quantize = self.made_by(node.input[0], "QuantizeLinear")
        if node.op_type != "DequantizeLinear" or quantize is None:
            return
        there, back = self.grid(quantize), self.grid(node)
        facts: dict[str, tuple[npt.NDArray[Any], npt.NDArray[Any]]] = {
            "scales": (there.scales, back.scales),
            "zero points": (there.zero_points, back.zero_points),
        }
        # Without the tensor's rank, -1 may be any other axis.
        if there.scales.size > 1 and (there.axis < 0) == (back.axis < 0):
            facts["axes"] = np.array(there.axis), np.array(back.axis)
        for what, (one, other) in facts.items():
            if np.array_equal(one, other):
                continue
            names = " and ".join(repr(n.name or n.output[0]) for n in (quantize, node))
            text = f"{what} {one.tolist()} and {other.tolist()}"
            raise TableError(
                f"{self.source}: nodes {names} are a pair with different {text}; "
                "make them equal, or quantize again"
            )

    def weight_scales(
        self, layer: str, node: onnx.NodeProto
    ) -> tuple[float, ...] | None:
        """The scales of a layer; None if its weights are float or asymmetric."""
        where = f"{self.source}: layer {layer!r}"
        dequantize = self.made_by(node.input[1], "DequantizeLinear")
        if dequantize is None:
            return None
        values = self.constants.get(dequantize.input[0])
        if values is None:
            quantize = self.made_by(dequantize.input[0], "QuantizeLinear")
            values = quantize and self.constants.get(quantize.input[0])
        if values is None:
            return None
        grid = self.grid(dequantize)
        if grid.zero_points.any():
            self.asymmetric.append(layer)
            return None
        if grid.scales.size > 1:
            rank = len(values.dims)
            axis = grid.axis + (rank if grid.axis < 0 else 0)
            transposed = _attribute(node, "transB", 0)
            wanted = 0 if node.op_type == "Conv" or transposed else 1
            counts = list(values.dims)[axis : axis + 1]
            if axis != wanted or counts != [grid.scales.size]:
                text = f"has {grid.scales.size} weight scales along axis {grid.axis} of"
                shape = f"weights {list(values.dims)}, the output channels are axis"
                raise TableError(f"{where}: {text} {shape} {wanted}")
        return tuple(
            checked_scale(f"{where}: weight scale {channel}", float(scale))
            for channel, scale in enumerate(grid.scales)
        )

    def groups(self, layer: str, node: onnx.NodeProto, scales: int) -> int:
        """How many groups a convolution has; 1 for other layers."""
        found = _attribute(node, "group", 1)
        if found < 1 or (scales > 1 and scales % found):
            text = f"layer {layer!r} has {found} groups and {scales} weight scales"
            raise TableError(f"{self.source}: {text}")
        return found

    def grid(self, node: onnx.NodeProto) -> _Grid:
        """Scales and zero points, which must be constants of 8 bits."""
        where = self.where(node)
        scales = self.values(where, node.input[1])
        half = scales.dtype == np.float16
        scales = scales.astype(np.float32) if half else scales
        if str(scales.dtype) != "float32" or scales.ndim > 1 or scales.size == 0:
            raise TableError(f"{where}: expected one float32 scale, or one per channel")
        points = self.zero_points(node)
        if points is None:
            points = np.zeros(scales.shape, np.int64)
        kind = self.kind(node)
        if kind not in OFFSETS:
            raise TableError(f"{where}: is {kind}; neon8 reads int8 and uint8")
        if points.size != scales.size:
            raise TableError(f"{where}: has {scales.size} scales, {points.size} zeros")
        for scale in scales.reshape(-1):
            checked_scale(where, float(scale))
        return _Grid(
            scales=scales.reshape(-1),
            zero_points=points.reshape(-1).astype(np.int64) - OFFSETS[kind],
            axis=_attribute(node, "axis", 1),
        )

    def where(self, node: onnx.NodeProto) -> str:
        """For errors."""
        return f"{self.source}: node {node.name or node.output[0]!r}"

    def zero_points(self, node: onnx.NodeProto) -> npt.NDArray[Any] | None:
        """As the file has them; None if they are left out, which stands for zeros."""
        if len(node.input) < 3 or not node.input[2]:
            return None
        return self.values(self.where(node), node.input[2])

    def kind(self, node: onnx.NodeProto) -> str:
        """The integer type on one side of a Q or DQ node, by the standard."""
        points = self.zero_points(node)
        if points is not None:
            return str(points.dtype)
        if node.op_type == "QuantizeLinear":
            chosen = _attribute(node, "output_dtype", 0)
            return _type_name(chosen or onnx.TensorProto.UINT8)
        if node.input[0] in self.constants:
            return _type_name(self.constants[node.input[0]].data_type)
        quantize = self.made_by(node.input[0], "QuantizeLinear")
        if quantize is None:
            types = {v.name: v.type.tensor_type.elem_type for v in self.graph.input}
            return _type_name(types.get(node.input[0], 0))
        return self.kind(quantize)

    def values(self, where: str, name: str) -> npt.NDArray[Any]:
        """A constant as an array."""
        item = self.constants.get(name)
        if item is None:
            raise TableError(f"{where}: {name!r} is computed at run time")
        try:
            return np.asarray(numpy_helper.to_array(item))
        except Exception as error:  # onnx raises ValueError, TypeError, KeyError ...
            raise TableError(f"{where}: constant {name!r} is damaged") from error


def _attribute(node: onnx.NodeProto, name: str, default: int) -> int:
    return next((int(a.i) for a in node.attribute if a.name == name), default)


def _type_name(number: int) -> str:
    """'int8' of the enum's 3; the number where the standard has no name for it."""
    types = onnx.TensorProto.DataType
    return str(types.Name(number)).lower() if number in types.values() else str(number)
