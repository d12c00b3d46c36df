# SPDX-License-Identifier: Apache-2.0
"""The nodes of a Q/DQ network while they are appended, and how a step ends there."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from neon8.arrays import AnyArray, FloatArray
from neon8.ir.names import unused
from neon8.ir.program import Tensor
from neon8.quant.scale_table import ScaleTable

QUANTIZED = ("int8", "int16")
"""The types of quantized tensors of a program; uint8 there is a type of ONNX."""


@dataclass(slots=True, kw_only=True)
class Nodes:
    """Grows in order of execution.

    tensors: of the program.  offset: of activations, 0 for int8, 128 for uint8.
    arrays: the initializers.  floats: int8 tensor -> the float tensor that its
    DequantizeLinear gives.  A float tensor of the program keeps its name, and the value
    that becomes an int8 tensor takes the name of that.
    table: where the scales of weights are.  layers: the nodes of the network, by name.
    make_node: of onnx.helper.  original: appends the node that an Opaque step stands
    for.
    """

    tensors: dict[str, Tensor]
    offset: int
    table: ScaleTable
    layers: Mapping[str, Any]
    make_node: Callable[..., Any]
    original: Callable[["Nodes", Any], None]
    nodes: list[Any] = field(default_factory=list)
    arrays: dict[str, AnyArray] = field(default_factory=dict)
    floats: dict[str, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def node(
        self,
        operator: str,
        inputs: list[str],
        *,
        name: str = "",
        output: str = "",
        **attributes: Any,
    ) -> str:
        """Appends a node; the name of its output, a new one unless it is given."""
        out = output or self.fresh(f"{name or inputs[0]}_{operator}")
        self.several(operator, inputs, [out], name=name, **attributes)
        return out

    def several(
        self,
        operator: str,
        inputs: list[str],
        outputs: list[str],
        *,
        name: str,
        **attributes: Any,
    ) -> None:
        """Appends a node with these outputs."""
        label = self.fresh_node(name or outputs[0])
        self.nodes.append(
            self.make_node(operator, inputs, outputs, label, **attributes)
        )

    def array(self, name: str, values: AnyArray) -> str:
        """Adds an initializer; its name."""
        unique = self.fresh(name)
        self.arrays[unique] = np.ascontiguousarray(values).reshape(values.shape)
        return unique

    def reshape(self, value: str, shape: tuple[int, ...]) -> str:
        """`value` with other dimensions; the batch, the first one, stays."""
        dims = np.array([0, *shape[1:]], dtype=np.int64)
        return self.node("Reshape", [value, self.array(f"{value}_shape", dims)])

    def constant(self, name: str, values: AnyArray, scale: FloatArray) -> str:
        """int8 or int32 values with one scale for each along axis 0, as float."""
        arrays = {
            "quantized": values,
            "scale": scale.astype(np.float32),
            "zero_point": np.zeros(scale.shape, values.dtype),
        }
        inputs = [self.array(f"{name}_{what}", a) for what, a in arrays.items()]
        return self.node("DequantizeLinear", inputs, output=self.fresh(name), axis=0)

    def clip(self, value: str, output: str, lo: int, hi: int) -> str:
        """`value` between what levels lo and hi of int8 tensor `output` stand for."""
        tensor = self.tensors[output]
        scale = np.float64(tensor.scale)
        bounds = [
            self.array(
                f"{output}_{what}",
                np.array((q - tensor.zero_point) * scale, np.float32),
            )
            for what, q in (("min", lo), ("max", hi))
        ]
        return self.node("Clip", [value, *bounds])

    def quantize(self, value: str, output: str) -> None:
        """QuantizeLinear of float `value` into int8 tensor `output` of the program."""
        grid = self._grid(output)
        quantized = self.fresh(f"{output}_quantized")
        self.node("QuantizeLinear", [value, *grid], output=quantized)
        self._dequantized(output, quantized, grid)

    def int8_constant(self, output: str, levels: AnyArray) -> None:
        """int8 tensor `output` of the program, which is the same in every run."""
        values = self._shifted(levels.astype(np.int16))
        quantized = self.array(f"{output}_quantized", values)
        self._dequantized(output, quantized, self._grid(output))

    def _grid(self, output: str) -> list[str]:
        """Scale and zero point of int8 tensor `output`."""
        tensor = self.tensors[output]
        scale = self.array(f"{output}_scale", np.array(tensor.scale, np.float32))
        point = self._shifted(np.array(tensor.zero_point))
        return [scale, self.array(f"{output}_zero_point", point)]

    def _shifted(self, levels: AnyArray) -> AnyArray:
        """int8 levels as the type of activations has them."""
        return (levels + self.offset).astype(np.uint8 if self.offset else np.int8)

    def _dequantized(self, output: str, quantized: str, grid: list[str]) -> None:
        self.floats[output] = self.fresh(f"{output}_dequantized")
        self.node("DequantizeLinear", [quantized, *grid], output=self.floats[output])

    def dequantize(self, name: str, output: str) -> None:
        """A second DequantizeLinear, for float tensor `output` of the program."""
        first = self.floats[name]
        (made,) = (node for node in self.nodes if node.output[0] == first)
        self.node("DequantizeLinear", list(made.input), output=output)

    def real(self, name: str) -> str:
        """The float values of int8 tensor `name`."""
        return self.floats[name]

    def finish(self, value: str, output: str) -> None:
        """`value` becomes int8 tensor `output` of the program."""
        self.named(value, output)
        self.quantize(output, output)

    def named(self, value: str, output: str) -> None:
        """`value` becomes the float tensor `output`."""
        known = value in self.tensors or value in self.floats.values()
        if not known and self.nodes and self.nodes[-1].output[0] == value:
            self.nodes[-1].output[0] = output
        else:
            self.node("Identity", [value], output=output)

    def fresh(self, name: str) -> str:
        """`name`, lengthened until nothing has it."""
        while name in self.taken or name in self.tensors:
            name += "_"
        self.taken.add(name)
        return name

    def fresh_node(self, name: str) -> str:
        """`name`, lengthened until no node has it."""
        return unused(name, {node.name for node in self.nodes})


def finish(n: Nodes, value: str, op: Any) -> None:
    """Leaky slope and clamp of a step, then the Q/DQ pair of its output."""
    slopes = op.slopes if hasattr(op, "slopes") else np.array([op.slope])
    if slopes is not None and (slopes != 1).any():
        if (slopes == slopes[0]).all():
            value = n.node("LeakyRelu", [value], alpha=float(slopes[0]))
        else:
            column = slopes.reshape(-1, *(1,) * (n.tensors[op.output].rank - 2))
            slope = n.array(f"{op.name}_slope", column.astype(np.float32))
            value = n.node("PRelu", [value, slope])
    n.finish(clamp(n, value, op.output, op.lo, op.hi), op.output)


def clamp(n: Nodes, value: str, output: str, lo: int, hi: int) -> str:
    """The activation that lo and hi stand for; the ends of the scheme need none.

    QuantizeLinear ends at -128 where the symmetric scheme ends at -127: one step, for
    which a Clip would keep onnxruntime and TensorRT from using integer kernels.
    """
    out = n.tensors[output]
    if (lo, hi) == (out.zero_point, out.hi):
        return n.node("Relu", [value])
    return value if (lo, hi) == (out.lo, out.hi) else n.clip(value, output, lo, hi)


def value_of(n: Nodes, tensor: Tensor) -> str:
    """The float values of a tensor, or the values of one that is not real."""
    return n.real(tensor.name) if tensor.dtype in QUANTIZED else tensor.name


def reshaped(n: Nodes, value: str, dims: tuple[int, ...]) -> str:
    """`value` with these dimensions, the batch included."""
    shape = n.array(f"{value}_shape", np.array(dims, np.int64))
    return n.node("Reshape", [value, shape])


def shaped(n: Nodes, value: str, dims: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    """`value` of shape `dims` with other dimensions; a batch of one may be any."""
    if dims == wanted:
        return value
    if dims[:1] == wanted[:1]:
        return n.reshape(value, wanted)
    return reshaped(n, value, wanted)


def end(n: Nodes, value: str, out: Tensor) -> None:
    """`value` becomes tensor `out` of the program."""
    if out.dtype in QUANTIZED:
        n.finish(value, out.name)
    else:
        n.named(value, out.name)
