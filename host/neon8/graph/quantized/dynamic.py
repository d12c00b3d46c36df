# SPDX-License-Identifier: Apache-2.0
"""Networks that were quantized dynamically: the float network with their weights.

    x -> DynamicQuantizeLinear -> q, s, z;  (float) ConvInteger(q, w, z) * (s * s_w)
is a Conv of x with the weights s_w * w, but for the rounding of x, whose range only a
run knows.  Calibration finds one for all, and the steps of the weights in their values.
"""

from dataclasses import dataclass, replace

import numpy as np
import onnx
from onnx import helper

from neon8.graph.onnx_file import OnnxFile
from neon8.graph.protos import nodes_of
from neon8.graph.quantized.constants import FLOAT, Rewriting, input_of, integer_of
from neon8.graph.quantized.integers import Array, UnusableError, scale_values

PRODUCTS = {"ConvInteger": "Conv", "MatMulInteger": "MatMul"}

DYNAMIC = frozenset({
    *PRODUCTS,
    *("DynamicQuantizeLSTM", "DynamicQuantizeLinear", "DynamicQuantizeMatMul"),
    "MatMulIntegerToFloat",
})  # fmt: skip
"""Operators whose scales only a run knows."""

REFUSED = "in a way that neon8 cannot take over; give the network that it was made from"

FUSED = {
    "DynamicQuantizeLSTM": 12,
    "DynamicQuantizeMatMul": 3,
    "MatMulIntegerToFloat": 4,
}
"""Operators of onnxruntime, of which the checker knows nothing: their fewest inputs."""


def with_float_weights(file: OnnxFile) -> OnnxFile:
    """The float network of one that is quantized dynamically, else the same file.

    GraphError names a node that computes with what is known at run time only in a way
    of its own.
    """
    model = onnx.ModelProto.FromString(file.model)
    if all(node.op_type not in DYNAMIC for node in nodes_of(model.graph)):
        return file
    network = _Network(file, model.graph)
    for node in model.graph.node:
        network.take(node)
    for value in model.graph.output:
        if value.name in network.inside:
            network.refuse(model.graph.node[-1], f"{value.name!r} is an output")
    return network.finished(file, model, network.made)


@dataclass(frozen=True, slots=True)
class _Product:
    """An integer product of `inputs`, of which those in `scales` are still to multiply.

    levels: the weights less their zero point, or None where both are dynamic.  scale:
    what has been multiplied.
    """

    node: onnx.NodeProto
    inputs: tuple[str, ...]
    scales: tuple[str, ...]
    levels: Array | None
    scale: Array


class _Network(Rewriting):
    """What is known after the nodes so far.

    reals: integers -> the tensor that they are of.  scales: a scale -> the integers
    that it is of, and what multiplies it.  points: a zero point -> these.  products:
    tensor -> what it is.  made: new constants.
    """

    said = "the network is quantized dynamically, "

    def __init__(self, file: OnnxFile, graph: onnx.GraphProto) -> None:
        super().__init__(file, graph)
        self.reals: dict[str, str] = {}
        self.scales: dict[str, tuple[tuple[str, ...], Array]] = {}
        self.points: dict[str, str] = {}
        self.products: dict[str, _Product] = {}
        self.made: dict[str, Array] = {}

    @property
    def inside(self) -> set[str]:
        """The tensors that the float network does not have."""
        return {*self.reals, *self.scales, *self.points, *self.products}

    def take_one(self, node: onnx.NodeProto) -> None:
        """One node.  UnusableError."""
        whole = list(nodes_of(onnx.GraphProto(node=[node])))
        inner = {name for each in whole for name in each.input}
        fewest = FUSED.get(node.op_type, 0)
        if fewest and (len(node.input) < fewest or not any(node.output[:1])):
            raise UnusableError(REFUSED)
        if node.op_type == "DynamicQuantizeLinear":
            q, scale, point = (*node.output, "", "")[:3]
            self.reals[q] = node.input[0]
            self.scales[scale] = (q,), np.ones((), np.float32)
            self.points[point] = q
        elif node.op_type in PRODUCTS:
            self.product(node)
        elif node.op_type == "MatMulIntegerToFloat":
            self.fused(node)
        elif node.op_type == "DynamicQuantizeMatMul":
            levels = self.levels(node, 1, 3)
            self.emit(node, "MatMul", node.input[:1], levels, self.constant(node, 2), 4)
        elif node.op_type == "DynamicQuantizeLSTM":
            self.lstm(node)
        elif node.op_type == "Cast" and node.input[0] in self.products:
            if integer_of(node, "to", FLOAT) != FLOAT:
                raise UnusableError(REFUSED)
            self.products[node.output[0]] = self.products[node.input[0]]
        elif node.op_type == "Mul" and self.multiplied(node):
            pass
        elif node.op_type == "DequantizeLinear" and node.input[0] in self.known.tables:
            scale, point = self.constant(node, 1), input_of(node, 2)
            self.look_up(node.input[0], scale, point, node.output[0])
        elif inner & self.inside or any(n.op_type in DYNAMIC for n in whole):
            raise UnusableError(REFUSED)
        else:
            self.known.copied(node)
            self.known.looked_up(node)
            self.nodes.append(node)

    def look_up(self, name: str, scale: Array, point: str, output: str) -> None:
        """`output`: what the rows `name` of a table of integers stand for."""
        made = onnx.NodeProto()
        made.CopyFrom(self.known.tables[name])
        made.ClearField("name")  # the integers may be read as well
        levels = self.known.table(name, scale, self.known.optional(point))
        made.input[0] = self.store(f"{output}_table", levels.values)
        made.output[0] = output
        self.nodes.append(made)

    def product(self, node: onnx.NodeProto) -> None:
        """ConvInteger or MatMulInteger."""
        q, other = node.input[:2]
        one = np.ones((), np.float32)
        if q in self.known.tables:
            rows = self.fresh(f"{q}_less_zero_point")
            self.look_up(q, one, input_of(node, 2), rows)
            levels = self.levels(node, 1, 3)
            self.products[node.output[0]] = _Product(node, (rows,), (), levels, one)
            return
        if q not in self.reals or self.points.get(input_of(node, 2)) != q:
            raise UnusableError(REFUSED)
        if other in self.reals:
            if self.points.get(input_of(node, 3)) != other:
                raise UnusableError(REFUSED)
            inputs, scales = (self.reals[q], self.reals[other]), (q, other)
            made = _Product(node, inputs, scales, None, one)
        else:
            levels = self.levels(node, 1, 3)
            made = _Product(node, (self.reals[q],), (q,), levels, one)
        self.products[node.output[0]] = made

    def fused(self, node: onnx.NodeProto) -> None:
        """MatMulIntegerToFloat."""
        q = node.input[0]
        ids, factor = self.scales.get(node.input[2], ((), np.ones(())))
        fits = ids == (q,) and factor.size == 1
        if q not in self.reals or not fits or self.points.get(input_of(node, 4)) != q:
            raise UnusableError(REFUSED)
        scale = self.constant(node, 3) * factor.reshape(())
        levels = self.levels(node, 1, 5)
        self.emit(node, "MatMul", [self.reals[q]], levels, scale, 6)

    def multiplied(self, node: onnx.NodeProto) -> bool:
        """True of a Mul that is part of a scale, or of the result that has one."""
        first, second = node.input
        if first not in self.inside:
            first, second = second, first
        if first in self.scales and second not in self.products:
            ids, factor = self.scales[first]
            others, more = self.scales.get(second, ((), self.known.constant(second)))
            if more is None:
                raise UnusableError(REFUSED)
            self.scales[node.output[0]] = (*ids, *others), factor * scale_values(more)
            return True
        if first not in self.products:
            first, second = second, first
        if first not in self.products:
            return False
        made = self.products[first]
        ids, more = self.scales.get(second, ((), self.known.constant(second)))
        if more is None:
            return False
        factor = scale_values(more)
        left = list(made.scales)
        for each in ids:
            if each not in left:
                raise UnusableError(REFUSED)
            left.remove(each)
        made = replace(made, scales=tuple(left), scale=made.scale * factor)
        self.products[node.output[0]] = made
        if not left:
            del self.products[node.output[0]]
            operator = PRODUCTS[made.node.op_type]
            named = onnx.NodeProto()
            named.CopyFrom(made.node)
            named.output[:] = node.output
            if operator == "Conv" and made.scale.size > 1:
                made = replace(made, scale=_of_channels(made.scale))
            self.emit(named, operator, made.inputs, made.levels, made.scale, None)
        return True

    def emit(
        self,
        node: onnx.NodeProto,
        operator: str,
        inputs: "list[str] | tuple[str, ...]",
        levels: Array | None,
        scale: Array,
        bias: int | None,
    ) -> None:
        """The float operator, with weights levels * scale, and the sum with a bias."""
        output, names = node.output[0], list(inputs)
        bias_name = "" if bias is None else input_of(node, bias)
        made = self.fresh(f"{output}_product") if bias_name else output
        if levels is not None:
            values = _scaled(levels, scale, operator)
            names.append(self.store(f"{output}_weights", values))
        elif scale.size != 1 or scale.reshape(-1)[0] != 1:
            raise UnusableError(REFUSED)
        float_node = helper.make_node(operator, names, [made], node.name)
        if node.op_type in PRODUCTS:
            float_node.attribute.extend(node.attribute)
        self.nodes.append(float_node)
        if bias_name:
            self.nodes.append(helper.make_node("Add", [made, bias_name], [output]))

    def lstm(self, node: onnx.NodeProto) -> None:
        """DynamicQuantizeLSTM, whose matrices are (D, I, 4 H)."""
        inputs = [*node.input, *[""] * 12][:12]
        for at, scale_at, name in ((1, 8, "W"), (2, 10, "R")):
            levels = self.levels(node, at, scale_at + 1, directions=True)
            scale = scale_values(self.known.array(input_of(node, scale_at)))
            wanted = len(levels), levels.shape[-1]
            if scale.shape not in (wanted[:1], wanted) or levels.ndim != 3:
                raise UnusableError(f"its scales of {name} are {list(scale.shape)}")
            values = levels.astype(np.float32) * scale.reshape(len(scale), 1, -1)
            turned = np.ascontiguousarray(values.transpose(0, 2, 1))
            inputs[at] = self.store(f"{node.output[0]}_{name}", turned)
        given = list(inputs[:8])
        while not given[-1]:
            given.pop()
        made = helper.make_node("LSTM", given, list(node.output), node.name)
        made.attribute.extend(node.attribute)
        self.nodes.append(made)

    def levels(
        self, node: onnx.NodeProto, at: int, point_at: int, *, directions: bool = False
    ) -> Array:
        """Constant input `at` less its zero point."""
        values = self.known.array(node.input[at])
        if values.dtype not in (np.int8, np.uint8) or values.ndim < 2:
            raise UnusableError(f"{node.input[at]!r} are no weights of 8 bits")
        levels = values.astype(np.int32)
        point = self.known.optional(input_of(node, point_at))
        if point is None:
            return levels
        shift = point.astype(np.int32)
        if shift.size == 1:
            return levels - shift.reshape(())
        if directions:
            shift = shift.reshape(len(shift), 1, -1)
        elif node.op_type == "ConvInteger":
            shift = shift.reshape(-1, *[1] * (levels.ndim - 1))
        try:
            made: Array = levels - shift
        except ValueError as error:
            raise UnusableError(f"has zero points {list(point.shape)}") from error
        return made

    def constant(self, node: onnx.NodeProto, at: int) -> Array:
        """Scales that are constant."""
        return scale_values(self.known.array(input_of(node, at)))

    def store(self, name: str, values: Array) -> str:
        """The name of a new constant."""
        made = self.fresh(name)
        self.made[made] = np.ascontiguousarray(values, np.float32)
        return made


def _of_channels(scale: Array) -> Array:
    """Scales that multiply (N, O, H, W) as those of weights, (O, 1, 1, 1)."""
    if scale.ndim == 4 and len(scale) == 1:
        scale = scale[0]
    if scale.ndim != 3 or scale.shape[1:] != (1, 1):
        raise UnusableError(f"has scales {list(scale.shape)} of channels")
    return scale.reshape(-1, 1, 1, 1)


def _scaled(levels: Array, scale: Array, operator: str) -> Array:
    """As float32: (O, I, kh, kw), or (K, N) with a scale for each column."""
    fits = scale.size == 1 or (
        scale.shape == (len(levels), 1, 1, 1)
        if operator == "Conv"
        else scale.reshape(-1).shape == levels.shape[-1:]
    )
    if not fits:
        text = f"has scales {list(scale.shape)} of weights {list(levels.shape)}"
        raise UnusableError(text)
    if operator != "Conv" or scale.size == 1:
        scale = scale.reshape(-1)
    made: Array = levels.astype(np.float32) * scale.astype(np.float32)
    return made
