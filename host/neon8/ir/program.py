# SPDX-License-Identifier: Apache-2.0
"""Program: the lowered int8 network, as values.

lower.py makes it from a Graph and a ScaleTable, writer.py puts it into a .n8 file and
oracle.py runs it in numpy. It mirrors runtime/include/neon8_format.h; every
number that the runtime uses is already here, so nothing is left to decide on the board.
Equation numbers refer to docs/numerics.md.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from neon8.ir.graph import Shape, nchw
from neon8.ir.sizes import Sizes
from neon8.quant.int16_fit import Fit

WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")
"""Where another word begins in the name of a class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """A value between steps.

    dims: as in ONNX.  dtype: "int8", "int16" or "float32"; "uint8" of an image, "int32"
    of integers that are no quantized values  (27).
    real = scale * (q - zero_point)  (1).  lo, hi: the range of q, [-127, 127] for the
    symmetric scheme, else [-128, 127], and of int16 as its bits say  (24).  Other
    tensors have scale 1, zero point 0, -128 and 127.  reason: why the layer that makes
    it runs in float32, or "".
    """

    name: str
    dims: tuple[int, ...]
    dtype: str = "int8"
    scale: np.float32 = np.float32(1)
    zero_point: int = 0
    lo: int = -128
    hi: int = 127
    reason: str = ""

    @property
    def shape(self) -> Shape:
        """N C H W."""
        return nchw(self.dims)

    @property
    def rank(self) -> int:
        """How many dimensions ONNX knows."""
        return len(self.dims)

    @property
    def reach(self) -> int:
        """The largest |q| for which (12) is proved: of int8 any byte's."""
        return 128 if self.dtype == "int8" else max(-self.lo, self.hi)


Bounds = tuple[int, int]
"""The least and the largest integer of a tensor, or of what it would be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """Base of all steps.  name: of its layer; inputs, output: tensor names."""

    name: str
    inputs: tuple[str, ...]
    output: str

    converts: ClassVar[bool] = False
    """True if it only makes integers of floats, or floats of integers."""
    moves: ClassVar[bool] = False
    """True if its result has values of its inputs only."""
    listed: ClassVar[tuple[int, ...]] = ()
    """The axes of N C H W for each value of which `indices` says what is read.

    One list after another, as long as the output, of places in the input.
    """

    def bounds(self, given: Sequence[Bounds]) -> Bounds | None:
        """The bounds of its result, before that is int32; None if nothing is known.

        given: of its inputs.
        """
        if not self.moves:
            return None
        return min(low for low, _ in given), max(high for _, high in given)

    @property
    def operation(self) -> str:
        """What enum n8_op calls it, N8_OP_... without the prefix."""
        return WORD.sub("_", type(self).__name__.removesuffix("Op")).upper()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished(Op):
    """Base of steps that end with a slope below zero and a clamp to lo .. hi  (5b)."""

    slope: np.float32 = np.float32(1)
    lo: int = -128
    hi: int = 127


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """ops are in order of execution; tensors in a fixed, deterministic order.

    islands: the layers that run in float32, by name, each with the reason.
    fits: the layers whose weight scales grew or might have, see int16_fit.py.
    open: sizes for which negative numbers stand among the dims of tensors and the
    windows of steps, and forms of arrays; None if all shapes are fixed.
    """

    source_digest: str
    tensors: dict[str, Tensor]
    ops: tuple[Op, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    islands: dict[str, str] = field(default_factory=dict)
    fits: tuple[Fit, ...] = ()
    open: Sizes | None = None
