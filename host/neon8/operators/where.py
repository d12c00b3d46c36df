# SPDX-License-Identifier: Apache-2.0
"""Where: of one tensor where a condition holds, else of another."""

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from neon8.arrays import Array
from neon8.ir.graph import Node
from neon8.ir.program import Op, Tensor
from neon8.operators.build import Build
from neon8.operators.constants import Mixed
from neon8.operators.family import Family
from neon8.operators.layout import with_constants
from neon8.operators.movement import Reshape, operands
from neon8.operators.reference import Operand
from neon8.operators.source import OnnxNode, Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Where(Mixed):
    """The second operand where the first is not 0, else the third, broadcast."""

    chooser = 0
    follows = True
    reads_dims = True

    @property
    def keeps_values(self) -> bool:
        """True if no constant but 0, which every scale has, comes among them."""
        return not any(value.any() for value in self.values)

    @property
    def finite(self) -> bool:
        """True if no constant is NaN."""
        return not any(np.isnan(value).any() for value in self.values)

    @property
    def lowest(self) -> float:
        """The lowest value of a constant."""
        return float(min((value.min() for value in self.values), default=0))

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


@dataclass(frozen=True, slots=True, kw_only=True)
class WhereOp(Op):
    """Moves values of the second and third input, as the first one, int32, says  (9).

    They share scale and zero point with the output, and are broadcast as ONNX does.
    """

    moves = True


def where(source: Source, node: OnnxNode) -> Node:
    """Where, of constants and of tensors."""
    source.dims_of(node, node.outputs[0])
    tensors, constants = source.operands(node)
    kinds = {source.types.get(name) for name in node.inputs[1:] if name in tensors}
    if kinds - {source.types.get(node.outputs[0])}:
        raise source.failure(node, "chooses among tensors of different types")
    return Where(
        name=node.name,
        inputs=tensors,
        output=node.outputs[0],
        constants=constants,
    )


def lower_where(b: Build, node: Where) -> None:
    """In the type in which it runs, on the grid of the output."""
    out = b.made_by(node)
    b.step(WhereOp, node.name, operands(b, node, out), out)


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
