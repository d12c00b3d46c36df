# SPDX-License-Identifier: Apache-2.0
"""Where: of one tensor where a condition holds, else of another."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from neon8.arrays import AnyArray, Array
from neon8.ir.graph import Graph, Node
from neon8.ir.program import Op, Tensor
from neon8.operators.build import FLOAT, INT32, Build
from neon8.operators.constants import append_constant
from neon8.operators.family import Family
from neon8.operators.layout import with_constants
from neon8.operators.movement import Reshape
from neon8.operators.reference import Operand
from neon8.operators.source import OnnxNode, Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Where(Node):
    """inputs[1] where inputs[0] is not 0, else inputs[2], broadcast as ONNX does.

    constants: place -> operand that is the same in every run.
    """

    constants: Mapping[int, AnyArray] = field(default_factory=dict)

    follows = True
    reads_dims = True

    @property
    def keeps_values(self) -> bool:
        """True if no constant but 0, which every scale has, comes among them."""
        return not any(value.any() for value in self._values)

    @property
    def keeps_sign(self) -> bool:
        """True if no constant is below 0."""
        return all(value.min() >= 0 for value in self._values)

    @property
    def finite(self) -> bool:
        """True if no constant is NaN."""
        return not any(np.isnan(value).any() for value in self._values)

    @property
    def lowest(self) -> float:
        """The lowest value of a constant."""
        return float(min((value.min() for value in self._values), default=0))

    def with_lowest(self, value: float) -> Node:
        """In place of the lower ones."""
        lowest = np.float32(value)
        return replace(
            self,
            constants={
                place: np.maximum(each, lowest) if place > 0 else each
                for place, each in self.constants.items()
            },
        )

    def without(self, conditions: Collection[str]) -> Node | None:
        """The third operand, if it is a tensor of the same dimensions."""
        condition, *others = self.inputs
        if condition not in conditions or self.constants.keys() != {1}:
            return None
        return Reshape(name=self.name, inputs=tuple(others), output=self.output)

    @property
    def _values(self) -> list[AnyArray]:
        return [value for place, value in self.constants.items() if place > 0]

    def fits_int8(self, graph: Graph) -> bool:
        """False where the scale of a constant of a quantized file is not known."""
        return not (graph.quantized and self._values)


@dataclass(frozen=True, slots=True, kw_only=True)
class WhereOp(Op):
    """Moves values of the second and third input, as the first one, int32, says  (9).

    They share scale and zero point with the output, and are broadcast as ONNX does.
    """

    moves = True


def where(source: Source, node: OnnxNode) -> Node:
    """Where, of constants and of tensors."""
    source.dims_of(node, node.outputs[0])
    tensors = tuple(name for name in node.inputs if name not in source.constants)
    for name in tensors:
        source.dims_of(node, name)
    kinds = {source.types.get(name) for name in node.inputs[1:] if name in tensors}
    if kinds - {source.types.get(node.outputs[0])}:
        raise source.failure(node, "chooses among tensors of different types")
    return Where(
        name=node.name,
        inputs=tensors,
        output=node.outputs[0],
        constants={
            place: source.fitting(node, name)
            for place, name in enumerate(node.inputs)
            if name in source.constants
        },
    )


def lower_where(b: Build, node: Where) -> None:
    """In the type in which it runs, on the grid of the output."""
    real = b.type_of(node) == FLOAT and b.graph.tensors[node.output].real
    out = b.declare(node.output, FLOAT) if real else b.result(node.output)
    given = iter(node.inputs)
    operands = []
    for place in range(3):
        value = node.constants.get(place)
        if value is not None:
            like = Tensor(name=out.name, dims=(), dtype=INT32) if place == 0 else out
            operands.append(append_constant(b, node.name, value, like))
        elif place == 0:
            operands.append(b.take(next(given), INT32))
        elif real:
            operands.append(b.float32(next(given)))
        else:
            operands.append(b.rescaled(node.name, b.own(next(given)), out))
    b.step(WhereOp, node.name, operands, out)


def compute_where(
    _op: WhereOp, out: Tensor, condition: Operand, x: Operand, y: Operand
) -> Array:
    """(9), on the dimensions that ONNX knows."""
    holds, *both = (each.values.reshape(each.tensor.dims) for each in (condition, x, y))
    return np.broadcast_to(np.where(holds != 0, *both), out.dims).reshape(out.shape)


FAMILY = Family(
    imports={"Where": where},
    lower={Where: lower_where},
    lower_float={Where: lower_where},
    steps={WhereOp: compute_where},
    layouts={"Where": with_constants},
)
