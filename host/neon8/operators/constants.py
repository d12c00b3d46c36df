# SPDX-License-Identifier: Apache-2.0
"""Operands that are the same in every run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from neon8.arrays import AnyArray, Array, FloatArray
from neon8.ir.graph import Graph, Node
from neon8.ir.program import Bounds, Op, Tensor
from neon8.operators.build import FLOAT, Build
from neon8.operators.family import Family
from neon8.operators.qdq import QUANTIZED, Nodes
from neon8.operators.reference import Levels


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixed(Node):
    """Base of nodes of which operands may be the same in every run.

    inputs: the tensors.  constants: place among all operands -> what stands there, in
    the dimensions of ONNX.  chooser: the place of what is no value, such as indices.
    """

    constants: Mapping[int, AnyArray] = field(default_factory=dict)

    chooser = -1

    @property
    def values(self) -> tuple[AnyArray, ...]:
        """The constants that are values."""
        return tuple(v for place, v in self.constants.items() if place != self.chooser)

    @property
    def keeps_sign(self) -> bool:
        """True if no constant is below 0."""
        return all(value.min() >= 0 for value in self.values)

    @property
    def finite(self) -> bool:
        """True if all constants are."""
        return all(np.isfinite(value).all() for value in self.values)

    def fits_int8(self, graph: Graph) -> bool:
        """False where the scale of a constant of a quantized file is not known."""
        return not (graph.quantized and self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantOp(Op):
    """The same in every run, in N C H W order.

    values: of a float32 tensor.  levels: of one of int8, int16 or int32, (count,).
    """

    values: FloatArray | None = None
    levels: Levels | None = None

    def bounds(self, given: Sequence[Bounds]) -> Bounds | None:
        """The smallest and the largest of its integers."""
        if self.levels is None or not self.levels.size:
            return None
        return int(self.levels.min()), int(self.levels.max())


def append_constant(b: Build, layer: str, values: AnyArray, like: Tensor) -> Tensor:
    """A tensor with these values and the dimensions that they have.

    Where `like` is quantized, it is on the grid of that.
    """
    out = b.temporary(replace(like, dims=values.shape), "constant")
    if out.dtype == FLOAT:
        b.step(ConstantOp, layer, (), out, values=values.astype(np.float32).reshape(-1))
        return out
    levels = values
    if out.dtype in QUANTIZED:
        q = np.rint(values / np.float64(out.scale)) + out.zero_point
        levels = np.clip(q, out.lo, out.hi)
    levels = levels.astype(np.dtype(out.dtype))
    b.step(ConstantOp, layer, (), out, levels=levels.reshape(-1))
    return out


def compute_constant(op: ConstantOp, out: Tensor) -> Array:
    """What it is in every run."""
    values = op.values if op.levels is None else op.levels
    result: Array = np.asarray(values).reshape(out.shape)
    return result


def write_constant(n: Nodes, op: ConstantOp) -> None:
    """An initializer; of int8 one that DequantizeLinear reads."""
    out = n.tensors[op.output]
    if op.levels is not None and out.dtype not in QUANTIZED:
        n.arrays[op.output] = op.levels.reshape(out.dims)
    elif op.levels is not None:
        n.int8_constant(op.output, op.levels.reshape(out.dims))
    elif op.values is not None:
        n.arrays[op.output] = op.values.reshape(out.dims)


FAMILY = Family(steps={ConstantOp: compute_constant}, qdq={ConstantOp: write_constant})
