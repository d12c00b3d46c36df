# SPDX-License-Identifier: Apache-2.0
"""Program: the lowered int8 network, as values.

lower.py makes it from a Graph and a ScaleTable, writer.py puts it into a .n8 file and
oracle.py runs it in numpy. It mirrors runtime/include/neon8_format.h; every
number that the runtime uses is already here, so nothing is left to decide on the board.
Equation numbers refer to docs/numerics.md.
"""

import re
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from neon8.compile.int16_fit import Fit
from neon8.graph.graph import Shape, nchw

Int8Array = npt.NDArray[np.int8]
Int32Array = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float32]

WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")
"""Where another word begins in the name of a class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """dims: as in ONNX; dtype "int8", "int16" or "float32", or "uint8" for an image.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """Base of all steps.  name: of its layer; inputs, output: tensor names."""

    name: str
    inputs: tuple[str, ...]
    output: str

    @property
    def operation(self) -> str:
        """What enum n8_op calls it, N8_OP_... without the prefix."""
        return WORD.sub("_", type(self).__name__).upper()


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantize(Op):
    """float32 to int8 or int16, with the output's scale, zero point, lo, hi  (2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dequantize(Op):
    """int8 or int16 to float32  (1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conv2d(Op):
    """Convolution with its fused epilogue; inputs[1], if any, is the residual.

    weights: (O, kh, kw, I / groups) int8 in [-127, 127].
    Input, residual and output may be int16  (24).
    Quantized output: bias is B and multiplier M of (5), slopes of (5b) or None,
    residual_scale R of (6), lo and hi the clamp with the activation in it.
    float32 output: bias is -zero_point * sum(w), multiplier S, bias_f32 the float bias
    (4).
    indices: (O, 2), M0 and n of (10), in place of the multiplier.
    acc_bound: max over channels of sum|w| * 128 + |bias|, below 2**31  (12); of int16
    the largest |q| of the input stands for 128  (24).
    int16_depth: products of a channel that fit int16, whichever they are  (11).
    winograd: "whole" or "half", the form of (23) that its weights serve, or "".
    """

    weights: Int8Array
    bias: Int32Array
    multiplier: FloatArray | None = None
    indices: Int32Array | None = None
    bias_f32: FloatArray | None = None
    slopes: FloatArray | None = None
    residual_scale: np.float32 = np.float32(0)
    strides: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilations: tuple[int, int] = (1, 1)
    groups: int = 1
    lo: int = -128
    hi: int = 127
    acc_bound: int = 0
    int16_depth: int = 2
    winograd: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Add(Op):
    """clamp(rne(leaky(v)) + zp)  (6).

    v = fadd(fmul(a - zp_a, scale), fmul(b - zp_b, residual_scale)).
    A difference has a negative residual_scale. Operands are broadcast, by N C H W.
    Any of the three may be int16  (24).
    """

    scale: np.float32
    residual_scale: np.float32
    slope: np.float32 = np.float32(1)
    lo: int = -128
    hi: int = 127


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiply(Op):
    """clamp(rne(leaky(fmul((a - zp_a) * (b - zp_b), scale))) + zp)  (16)."""

    scale: np.float32
    slope: np.float32 = np.float32(1)
    lo: int = -128
    hi: int = 127


@dataclass(frozen=True, slots=True, kw_only=True)
class Divide(Op):
    """clamp(rne(leaky(fmul(fdiv(a - zp_a, b - zp_b), scale))) + zp)  (16)."""

    scale: np.float32
    slope: np.float32 = np.float32(1)
    lo: int = -128
    hi: int = 127


@dataclass(frozen=True, slots=True, kw_only=True)
class Maximum(Op):
    """The larger of a and b, which share scale and zero point with it  (9)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Minimum(Op):
    """The smaller of a and b, which share scale and zero point with it  (9)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum(Op):
    """clamp(rne(leaky(sum of fmul(x - zp_x, values[x]))) + zp)  (6).

    values: for each input, all of one shape, its scale over that of the output.
    """

    values: FloatArray
    slope: np.float32 = np.float32(1)
    lo: int = -128
    hi: int = 127


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Op):
    """table[q + 128]  (8).  table: (256,) int8."""

    table: Int8Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Image(Op):
    """table[c, byte]  (8) of an input that is uint8, N H W C.  table: (C, 256)."""

    table: Int8Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Lrn(Op):
    """(18).  values: size, alpha, beta, bias."""

    values: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceNorm(Op):
    """(19).  values: gamma of all channels, beta of all channels, epsilon."""

    values: FloatArray
    slope: np.float32 = np.float32(1)
    lo: int = -128
    hi: int = 127


@dataclass(frozen=True, slots=True, kw_only=True)
class Requantize(Op):
    """clamp(rne(leaky(fmul(a - zp_a, scale))) + zp): a new scale, a lone activation.

    From and to int8 or int16.
    """

    scale: np.float32
    slope: np.float32 = np.float32(1)
    lo: int = -128
    hi: int = 127


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool(Op):
    """(9).  Max: an exact move of values. Average: over the taps that count.

    From int8 to int8 or from int16 to int16; an average from either to float32, too.
    """

    kind: str
    """"max" or "average"."""
    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    pads: tuple[int, int, int, int]
    count_pad: bool = False
    lo: int = -128
    hi: int = 127

    @property
    def operation(self) -> str:
        """MAX_POOL or AVERAGE_POOL."""
        return f"{self.kind.upper()}_POOL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Concat(Op):
    """Moves values; inputs and output share scale and zero point.  axis: 0 to 3."""

    axis: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reshape(Op):
    """Moves values of one type; their N C H W order is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permute(Op):
    """Moves values: taken in N C H W order as an array of 8 axes, and these turned.

    indices: (2, 8), the sizes of the axes; then, for each axis of the result, which one
    it is. The values of the result are those of the output in N C H W order.
    """

    indices: Int32Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Gather(Op):
    """Moves values: for each axis of the output, where in the input they are.

    indices: (N + C + H + W,) of the output, one list after another. Where one of the
    four is -1 the value is `fill`: a level q of the output, or a float.
    """

    indices: Int32Array
    fill: np.float32 = np.float32(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeLinear(Op):
    """Each pixel between two rows and two columns  (17).

    indices: (2 * H + 2 * W,), two rows for each row of the output, then two columns for
    each of its columns.  values: their weights, of the same shape.  scale: of the input
    over that of the output, 1 between floats.
    """

    scale: np.float32
    indices: Int32Array
    values: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Softmax(Op):
    """float32 along `axis` of the dimensions that ONNX knows  (14).

    function: "log" for the logarithm of it, else "none".
    """

    axis: int
    function: str = "none"


FUNCTIONS = (
    *("none", "x", "constant", "add", "subtract", "multiply", "divide", "absolute"),
    *("exp", "log", "sqrt", "power", "erf", "sigmoid", "tanh", "softplus", "elu"),
    *("leaky", "clip", "threshold", "floor", "ceil", "round"),
    *("minimum", "maximum", "prelu"),
)
"""enum n8_function, by number."""

MOST_FUNCTIONS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant(Op):
    """The same in every run, in N C H W order.

    values: of a float32 tensor.  levels: of an int8 one, (count,).
    """

    values: FloatArray | None = None
    levels: Int8Array | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unary(Op):
    """A function of each float32  (22).

    indices: (64,), numbers in FUNCTIONS in postfix order, then zeros.  values: (64, 2),
    their parameters.
    """

    indices: Int32Array
    values: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary(Op):
    """Arithmetic of two float32 tensors, broadcast as ONNX does  (22).

    function: a name of FUNCTIONS that takes two values.
    """

    function: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Conv2dF32(Op):
    """Convolution in float32  (20).

    bias_f32: (O,).  values: the weights, (O, kh, kw, I / groups).
    """

    bias_f32: FloatArray
    values: FloatArray
    kernel: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilations: tuple[int, int] = (1, 1)
    groups: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolF32(Op):
    """Pool in float32  (20)."""

    kind: str
    """"max" or "average"."""
    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    pads: tuple[int, int, int, int]
    count_pad: bool = False

    @property
    def operation(self) -> str:
        """MAX_POOL_F32 or AVERAGE_POOL_F32."""
        return f"{self.kind.upper()}_POOL_F32"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrent(Op):
    """GRU, LSTM or RNN in float32 with int8 matrices  (21).

    inputs: (T, B, I), then no states or all, (D, B, H) each. The output is
    (T, D, B, H), or goes on with the last state and, of an LSTM, the last cell.
    kind: "gru", "lstm", "rnn".  weights: (D, G * H, I + H), of W and of R.  multiplier,
    bias_f32: (D, G * H, 2), the scales and the biases of W and of R.
    reverse: with one direction, from the last step on.
    indices: (3,), numbers in FUNCTIONS of f, g and h, or None for those of ONNX.
    values: with indices, the clip; factor, shift, lo and hi of each of the three; then,
    of an LSTM, peepholes (D, 3, H).
    """

    kind: str
    weights: Int8Array
    multiplier: FloatArray
    bias_f32: FloatArray
    indices: Int32Array | None = None
    values: FloatArray | None = None
    reverse: bool = False
    linear_before_reset: bool = False

    @property
    def operation(self) -> str:
        """GRU, LSTM or RNN."""
        return self.kind.upper()


@dataclass(frozen=True, slots=True, kw_only=True)
class Opaque(Op):
    """An ONNX node as it is, for files that hold such: no .n8 file does.

    more: its outputs but the first.  reads, makes: what the network calls its inputs
    and outputs.
    """

    more: tuple[str, ...]
    reads: tuple[str, ...]
    makes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """ops are in order of execution; tensors in a fixed, deterministic order.

    islands: the layers that run in float32, by name, each with the reason.
    fits: the layers whose weight scales grew or might have, see int16_fit.py.
    """

    source_digest: str
    tensors: dict[str, Tensor]
    ops: tuple[Op, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    islands: dict[str, str] = field(default_factory=dict)
    fits: tuple[Fit, ...] = ()
