# SPDX-License-Identifier: Apache-2.0
"""The normalised network: what import makes of an ONNX file and all later stages read.

A tensor has the dimensions that ONNX gives it, and is computed as four, N C H W: one of
lower rank is filled up with ones on the right, so a vector (N, C) is (N, C, 1, 1); of a
higher rank the last dimensions are one. BatchNormalization is
folded, activations are fused into the node before them, Gemm and MatMul are
convolutions, and constants are gone. A tensor keeps the name it has in the ONNX file,
so that onnxruntime can be asked for it; a tensor that is only another arrangement of
one in the file says of which.

What neon8 cannot run is an Opaque node: its tensors are observed, and tables and other
tools' files have them; only the compiler refuses it.
"""

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]


IndexArray = npt.NDArray[np.int32]


Shape = tuple[int, int, int, int]


MAX_RANK = 8
"""Dimensions of a tensor, and of the views in which values are rearranged."""


FLOATS = ("float32", "float16", "float64")
"""The types of tensors that have real values; all are computed as float32."""


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
    that is not fixed, or not of FLOATS, is read and made by Opaque nodes only.
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
    def runs(self) -> bool:
        """False of what neon8 cannot run; only other tools have it."""
        return True

    @property
    def follows(self) -> bool:
        """True if it moves or maps values, in whichever type it finds them."""
        return False

    @property
    def keeps_values(self) -> bool:
        """True if an output holds values of the inputs only."""
        return False

    @property
    def shares_scale(self) -> bool:
        """True if an output holds values of the inputs only, or between them."""
        return self.keeps_values

    @property
    def keeps_sign(self) -> bool:
        """True if nothing below 0 comes out where nothing below 0 goes in."""
        return self.keeps_values

    @property
    def activation(self) -> Activation:
        """What follows in the same step."""
        return Activation()

    @property
    def sign(self) -> int:
        """Of a sum of two tensors that of the second one, 1 or -1; else 0."""
        return 0

    @property
    def leaky_slopes(self) -> FloatArray | None:
        """(C,), of what is only a slope below zero for each channel."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
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
