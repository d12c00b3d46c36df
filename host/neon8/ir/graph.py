# SPDX-License-Identifier: Apache-2.0
"""The normalised network: what import makes of an ONNX file and all later stages read.

A tensor has the dimensions that ONNX gives it, and is computed as four, N C H W: one of
lower rank is filled up with ones on the right, so a vector (N, C) is (N, C, 1, 1); of a
higher rank the last dimensions are one. BatchNormalization is
folded, activations are fused into the node before them, Gemm and MatMul with a constant
are convolutions, and constants are gone. A tensor keeps the name it has in the ONNX
file, so that onnxruntime can be asked for it; a tensor that is only another arrangement
of one in the file says of which.

What neon8 cannot run is an Opaque node: its tensors are observed, and tables and other
tools' files have them; only the compiler refuses it.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from neon8.arrays import DoubleArray, FloatArray, Int32Array
from neon8.text import Fields, Part, Showing, shapes

if TYPE_CHECKING:  # which is made of shapes
    from neon8.ir.strided import Strided

Shape = tuple[int, int, int, int]


Factors = tuple[float, ...]
"""One for each channel of a tensor, or none: (5c) of docs/numerics.md."""


def listed(factors: DoubleArray | None) -> Factors:
    """`factors` as a value."""
    return () if factors is None else tuple(factors.tolist())


MAX_RANK = 8
"""Dimensions of a tensor, and of the views in which values are rearranged."""


FLOATS = (
    *("float32", "float16", "float64", "bfloat16", "float8_e4m3fn", "float8_e4m3fnuz"),
    *("float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn"),
)
"""The types of tensors that have real values; all are computed as float32."""


INTEGERS = (
    *("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"),
    *("int4", "uint4", "int2", "uint2", "bool"),
)
"""The types of tensors that are not real; all are computed as int32  (27)."""


@dataclass(frozen=True, slots=True)
class Activation:
    """What follows a sum, in float: min(max(x, lo), hi), or a leaky slope below zero.

    ReLU is lo = 0; ReLU6 is lo = 0, hi = 6; a leaky activation has slope != 1.
    slope applies first; lo <= hi.
    """

    lo: float = -np.inf
    hi: float = np.inf
    slope: float = 1.0

    @property
    def identity(self) -> bool:
        """True if nothing happens."""
        return self.lo == -np.inf and self.hi == np.inf and self.slope == 1.0

    def then(self, last: "Activation") -> "Activation | None":
        """One activation that does both, None if there is none."""
        if self.identity:
            return last
        if last.slope != 1:
            return None
        return Activation(
            lo=min(max(self.lo, last.lo), last.hi),
            hi=min(max(self.hi, last.lo), last.hi),
            slope=self.slope,
        )


@dataclass(frozen=True, slots=True)
class Origin:
    """The values of tensor `name`, moved as Permute moves them.  label: how.

    name: of a tensor in the ONNX file, or of another one with an origin.  It is the
    tensor's own name if that is in the file, but the Graph has it only in this order.
    """

    name: str
    label: str
    view: tuple[int, ...]
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Tensor:
    """A value between nodes.

    dims: as ONNX has them, at most MAX_RANK; () where `fixed` is False because only a
    run shows them.  dtype: as numpy calls it, "" where only a run shows it. A tensor
    that is not fixed, or neither of FLOATS nor of INTEGERS, is read and made by Opaque
    nodes only.
    origin: of a tensor that the ONNX file does not have, whence its values come.
    hidden: nor are its values in the file in any order, as they are inside of one of
    its operators. So it has no scale, and who makes or reads it does so in float32.
    """

    name: str
    dims: tuple[int, ...]
    dtype: str = "float32"
    fixed: bool = True
    origin: Origin | None = None
    hidden: bool = False

    @property
    def shape(self) -> Shape:
        """N C H W."""
        return nchw(self.dims)

    @property
    def rank(self) -> int:
        """How many dimensions ONNX knows."""
        return len(self.dims)

    @property
    def real(self) -> bool:
        """True if it has real values."""
        return self.dtype in FLOATS

    @property
    def observed(self) -> bool:
        """True if it has real values that can be seen, so that it may have a scale."""
        return self.real and not self.hidden


def nchw(dims: tuple[int, ...]) -> Shape:
    """`dims` as N C H W: filled up with ones, or the last ones multiplied.

    The order of the values stays the same.
    """
    n, c, h = (*dims, 1, 1, 1)[:3]
    return n, c, h, math.prod(dims[3:])


def aligned(dims: tuple[int, ...], rank: int) -> Shape:
    """N C H W of `dims` broadcast to `rank` dimensions: ones stand first."""
    return nchw((1,) * (rank - len(dims)) + dims)


@dataclass(frozen=True, slots=True)
class Quantization:
    """real = scale * (q - zero_point), q in -128 .. 127, as a quantized file says."""

    scale: float
    zero_point: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Base of all nodes.  name: the ONNX node's name, unique and never empty.

    operator: that of the ONNX node that it was made from; what a pass takes in from
    others does not change it.
    """

    name: str
    inputs: tuple[str, ...]
    output: str
    operator: str = ""

    @property
    def outputs(self) -> tuple[str, ...]:
        """All tensors that it makes."""
        return (self.output,)

    @property
    def pre_activation(self) -> str:
        """The ONNX tensor with what the activation is of; the output if it is none."""
        return self.output

    @property
    def activation(self) -> Activation:
        """What follows in the same step."""
        return Activation()

    # What the stages ask.  An operator of which something else is true says so.
    runs: ClassVar[bool] = True
    """False of what neon8 cannot run; only other tools have it."""
    weighted: ClassVar[bool] = False
    """True of a layer with weights, which have scales in the table."""
    makes_factors: ClassVar[bool] = False
    """True if what it makes may have any factors, and what it reads none  (5c)."""
    by_channel: ClassVar[bool] = False
    """True if channels stay apart, and multiples of them give multiples."""
    by_value: ClassVar[bool] = False
    """True if it looks at single values, whatever their places."""
    reads_dims: ClassVar[bool] = False
    """True if it looks at the dimensions of ONNX, not at N C H W."""
    only_activates: ClassVar[bool] = False
    """True if it does nothing but its activation."""
    precedes_activation: ClassVar[bool] = False
    """True if an activation is better there than in a table."""
    wants_table: ClassVar[bool] = False
    """True if patterns with it are better computed by one table."""
    prefers_float: ClassVar[bool] = False
    """True if it runs in float32 unless something needs its result as integers."""
    permutes: ClassVar[bool] = False
    """True if the output is all values of the input, in some order."""
    only_reshapes: ClassVar[bool] = False
    """True if the order of the values stays, too."""
    unrounded: ClassVar[bool] = False
    """True if other tools round neither what it reads for it nor what it gives.

    Where nothing else needs that rounded.
    """

    @property
    def finite(self) -> bool:
        """True if all its weights and biases are finite."""
        return True

    @property
    def keeps_values(self) -> bool:
        """True if an output holds values of the inputs only."""
        return False

    @property
    def shares_scale(self) -> bool:
        """True if an output holds values of the inputs only, or between them."""
        return self.keeps_values

    @property
    def puts_values(self) -> bool:
        """True if constants that count for the scale come among the inputs' values."""
        return False

    @property
    def keeps_sign(self) -> bool:
        """True if nothing below 0 comes out where nothing below 0 goes in."""
        return self.keeps_values

    @property
    def fill(self) -> float | None:
        """The value that it puts between those of its input."""
        return None

    @property
    def moves(self) -> bool:
        """True if the output is values of its one input, each from a fixed place."""
        return self.permutes

    @property
    def joins(self) -> bool:
        """True if the output is the inputs one beside the other."""
        return False

    @property
    def joins_channels(self) -> bool:
        """True if they are joined along the channels."""
        return False

    @property
    def averaged(self) -> int:
        """How many values an output is the mean of, if it is one; else 1."""
        return 1

    @property
    def follows(self) -> bool:
        """True if it moves or maps values, in whichever type it finds them."""
        return False

    @property
    def ignores_low(self) -> bool:
        """True if values far below the largest ones that it reads count for nothing."""
        return False

    @property
    def tests_nan(self) -> bool:
        """True if the output is true where its one input is NaN."""
        return False

    @property
    def gives_float(self) -> bool:
        """True if its step may take integers and give float32: (4), (9)."""
        return False

    @property
    def quantization(self) -> Quantization | None:
        """To which values it rounds, if it does nothing else."""
        return None

    @property
    def sign(self) -> int:
        """1 or -1, that of the second operand of a sum of two tensors; else 0."""
        return 0

    @property
    def adds(self) -> bool:
        """True of a sum of two tensors, or of one and constants."""
        return self.sign != 0

    @property
    def leaky_slopes(self) -> FloatArray | None:
        """(C,), of what is only a slope below zero for each channel."""
        return None

    @property
    def multiple(self) -> float | None:
        """What it multiplies all values by, if it does nothing else."""
        return None

    @property
    def lowest(self) -> float:
        """The lowest of what it adds to all values, or puts in their place; 0: none."""
        return 0.0

    @property
    def symmetric(self) -> tuple[str, ...]:
        """The inputs of which it wants zero point 0."""
        return ()

    def fits_int8(self, graph: "Graph") -> bool:
        """False if constants of the node keep it from its int8 form."""
        return True

    def macs(self, graph: "Graph") -> int:
        """Multiply-accumulates of a run, of what multiplies matrices."""
        return 0

    def absorbs_factors(self, graph: "Graph") -> bool:
        """True if what it reads and what it makes may have any factors  (5c)."""
        return False

    # What passes make of it.

    def moved(self, values: Int32Array) -> Int32Array:
        """`values`, of the shape of the input, in the order of a node that `moves`.

        -1 where it puts its `fill`.
        """
        return values

    def viewed(self, source: "Strided") -> "Strided | None":
        """The output of a node that `moves`, where its input is `source`.

        None if it has no fixed steps.
        """
        return None

    def unviewed(self, made: "Strided") -> "Strided | None":
        """The input of a node that `permutes`, where its output is `made`."""
        return None

    def renamed(self, output: str) -> "Node":
        """The same node with another output."""
        return replace(self, output=output)

    def fused(self, then: Activation) -> "Node | None":
        """The node with an activation after its own, None if it cannot have it."""
        return None

    def followed_by(self, node: "Node") -> "Node | None":
        """One node that does this and then `node`, None if there is none."""
        return None

    def within(self, start: int, whole: Shape, part: Shape) -> "Node | None":
        """The node on channels from `start` on, which are `part` of its input `whole`.

        None if it reads others, or none.
        """
        return None

    def with_factors(
        self, read: Sequence[DoubleArray | None], made: DoubleArray | None
    ) -> "Node":
        """The node where channels of inputs and output are divided by factors, (C,).

        Of a node that absorbs or makes factors.
        """
        return self

    def with_lowest(self, value: float) -> "Node | None":
        """The node that adds or puts in no constant below `value`.

        None of a node that is neither a sum nor a choice of values.
        """
        return None

    def without(self, conditions: Collection[str]) -> "Node | None":
        """What is left of a choice by one of `conditions` that never holds, or None."""
        return None

    def unflattened(self, shape: Shape) -> "Node | None":
        """The node on N C H W that it reads flattened now, None if that cannot be."""
        return None

    def on_rearranged(
        self, origin: Origin, dims: tuple[int, ...], moved: tuple[int, ...]
    ) -> "Node | None":
        """The node where tensors of `dims` are moved as `origin` says, to `moved`.

        None if there is none.
        """
        return self if self.by_value else None

    def makes_rows(self, shape: Shape, count: int) -> bool:
        """True if it moves runs of `count` neighbours among channels of `shape`."""
        return False

    def in_rows(self, made: Tensor) -> "Node | None":
        """The node, which makes `made`, where tensors are rows of their last axis.

        None if there is none, as where operands may be broadcast.
        """
        alone = self.by_value and len(self.inputs) == 1
        return self if alone or self.only_reshapes else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Activated(Node):
    """Base of the nodes that can have an activation."""

    activation: Activation = Activation()

    def fused(self, then: Activation) -> Node | None:
        """The node with an activation after its own, None if it cannot have it."""
        both = self.activation.then(then)
        return None if both is None else replace(self, activation=both)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Graph(Showing):
    """A network.  nodes are in order of execution; digest: SHA-256 of the file, hex.

    quantized: it comes from a quantized file, which says of each tensor if it is int8.
    rearranged: the tensors with an origin, those among them that are only left as
    Conv2d.pre_activation.
    """

    name: str
    digest: str
    tensors: dict[str, Tensor]
    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    quantized: bool = False
    rearranged: dict[str, Tensor] = field(default_factory=dict)

    def parts(self) -> list[Part]:
        """Its inputs and outputs, and how many nodes it has."""
        pairs: list[tuple[str, object]] = [("name", self.name)]
        for key in ("inputs", "outputs"):
            dims = {name: self.tensors[name].dims for name in getattr(self, key)}
            pairs.append((key, shapes(dims)))
        return [Fields([*pairs, ("nodes", len(self.nodes))])]
