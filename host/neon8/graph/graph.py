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

from neon8.graph.functions import Function

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
        """All tensors that it makes: one, but for an Opaque node."""
        return (self.output,)


@dataclass(frozen=True, slots=True)
class Quantization:
    """real = scale * (q - zero_point), q in -128 .. 127, as a quantized file says."""

    scale: float
    zero_point: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeQuantize(Node):
    """y = x rounded to the levels of `quantization`: a Q/DQ pair of a quantized file.

    Only quantized files have it, and only where no other node rounds its own output so.
    """

    quantization: Quantization


@dataclass(frozen=True, slots=True, kw_only=True)
class Conv2d(Node):
    """y = activation(conv(inputs[0]) + bias).

    weight: (O, I / groups, kh, kw); bias: (O,); pads: top, left, bottom, right.
    spread: the rows and columns of the input are so far apart, with zeros between them,
    before they are padded: a transposed convolution. Its strides are 1, and its pads
    may be negative, which crops. subpixel() makes a plain one of it.
    pre_activation: the ONNX tensor that holds conv + bias (batch norm included) before
    the activation; equal to `output` where there is none.

    Of a quantized file: weight_scales, (O,), of which the weights are whole multiples;
    exact_bias, (O,), so exact that B of numerics (5) is the integer in the file.
    """

    weight: FloatArray
    bias: FloatArray
    strides: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilations: tuple[int, int] = (1, 1)
    groups: int = 1
    spread: tuple[int, int] = (1, 1)
    activation: Activation = Activation()
    pre_activation: str
    weight_scales: FloatArray | None = None
    exact_bias: npt.NDArray[np.float64] | None = None

    @property
    def transposed(self) -> bool:
        """True if it needs subpixel()."""
        return self.spread != (1, 1) or min(self.pads) < 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary(Node):
    """y = activation(inputs[0] ? inputs[1]), broadcast as ONNX does.

    aligned() gives the shapes that fit.
    """

    activation: Activation = Activation()


@dataclass(frozen=True, slots=True, kw_only=True)
class Add(Binary):
    """inputs[0] + inputs[1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subtract(Binary):
    """inputs[0] - inputs[1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiply(Binary):
    """inputs[0] * inputs[1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Divide(Binary):
    """inputs[0] / inputs[1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Maximum(Node):
    """The largest of its inputs, two or more, broadcast as Binary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Minimum(Node):
    """The smallest of its inputs, two or more, broadcast as Binary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum(Node):
    """y = activation(sum of its inputs), two or more of one shape.

    mean: their sum divided by their number.
    """

    mean: bool = False
    activation: Activation = Activation()


@dataclass(frozen=True, slots=True, kw_only=True)
class WithConstant(Node):
    """y = activation(x ? constant), or constant ? x if `first`, broadcast as in ONNX.

    function: "add", "subtract", "multiply", "divide", "minimum" or "maximum"; the last
    two have no activation.  What has one value for all, or one for each channel, is a
    convolution or a Pointwise instead.
    """

    function: str
    constant: FloatArray
    first: bool = False
    activation: Activation = Activation()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointwise(Node):
    """y = function(x), value by value."""

    function: Function


@dataclass(frozen=True, slots=True, kw_only=True)
class Prelu(Node):
    """y = x < 0 ? slope * x : x with one slope for each channel.  slopes: (C,)."""

    slopes: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Lrn(Node):
    """y = x / (bias + alpha / size * sum of x^2 over `size` channels around it)^beta.

    size: odd.
    """

    size: int
    alpha: float
    beta: float
    bias: float


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceNorm(Node):
    """y = activation(gamma (x - mean) / sqrt(variance + epsilon) + beta).

    Mean and variance are those of a channel of an image.  gamma, beta: (C,).
    """

    gamma: FloatArray
    beta: FloatArray
    epsilon: float
    activation: Activation = Activation()


@dataclass(frozen=True, slots=True, kw_only=True)
class Activate(Node):
    """y = activation(x): one that no node could take in."""

    activation: Activation


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool(Node):
    """Max, min or average pooling.  pads: top, left, bottom, right.

    ceil_mode shows only in the output's shape: a last window may reach beyond `pads`.
    count_pad: padding counts as taps (average only). Taps beyond `pads` never count.
    """

    kind: str
    """"max", "min" or "average"."""
    kernel: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    count_pad: bool = False
    activation: Activation = Activation()

    def windows(self, source: Shape, out: Shape) -> Shape:
        """N C H W of the windows over `source`.

        It is `out`, the output's own, but where that leaves out an axis that a window
        has reduced to 1: the values and their order are the same then.
        """
        plain = self.strides == self.dilations == (1, 1) and not any(self.pads)
        if not plain:
            return out
        height, width = (source[2 + a] - self.kernel[a] + 1 for a in (0, 1))
        return source[0], source[1], height, width


@dataclass(frozen=True, slots=True, kw_only=True)
class Concat(Node):
    """Joins along `axis` of N C H W, 0 to 3.

    blocks: along W, of how many pieces of equal size each input is; the first pieces
    are joined, then the second ones, and so on.
    """

    axis: int
    blocks: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Reshape(Node):
    """The same values in N C H W order with the output's shape (Flatten ...)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permute(Node):
    """All values in another order: Transpose, and Reshape before and after it.

    The input's values are taken as an array of shape `view`, at most MAX_RANK sizes;
    axis i of the result is axis order[i] of it; its values are those of the output.
    """

    view: tuple[int, ...]
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gather(Node):
    """Some of the values, some more than once: Slice, Split, Pad, Expand and others.

    The input's values are taken as an array of shape `view`, N C H W. `indices` has a
    list for each of its axes: the value at (n, c, h, w) of the result is that at
    (indices[0][n], indices[1][c], indices[2][h], indices[3][w]), or `fill` where one
    of them is -1. The values of the result are those of the output, in this order.
    """

    view: Shape
    indices: tuple[IndexArray, IndexArray, IndexArray, IndexArray]
    fill: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeLinear(Node):
    """Each pixel between two rows and two columns of the input.

    rows: (H, 2) and columns: (W, 2), the indices of these for each row and column of
    the output.  row_weights: (H, 2) and column_weights: (W, 2), their shares, which add
    up to 1 and are not negative.
    """

    rows: IndexArray
    columns: IndexArray
    row_weights: FloatArray
    column_weights: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Softmax(Node):
    """Softmax along `axis` of `dims`, 0 and more.

    flattens: over all axes from that one on, taken as one, as before opset 13.
    log: the logarithm of it.
    """

    axis: int = 1
    flattens: bool = False
    log: bool = False


@dataclass(frozen=True, slots=True)
class GateFunction:
    """min(max(f(factor * x + shift), lo), hi).  name: of f: "x", "sigmoid", "tanh"."""

    name: str
    factor: float = 1.0
    shift: float = 0.0
    lo: float = -np.inf
    hi: float = np.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrent(Node):
    """GRU, LSTM or RNN: (T, B, I) to (T, D, B, H), and any later first states.

    kind: "gru", "lstm" or "rnn", with G = 3, 4 or 1 gates in the order of ONNX.
    weight: (D, G * H, I).  recurrence: (D, G * H, H).  bias: (D, G * H, 2), of both.
    initial: the states that the sequence begins with, (D, B, H), each None if it is
    the next one of the inputs; () for zeros.
    direction: "forward", "reverse" or "bidirectional".
    functions: f, g and h of ONNX, as many as the kind has; () for its own.
    clip: of what f and g are given, +-clip; infinite for none.
    peepholes: (D, 3, H), of an LSTM, for its gates i, o and f, or None.
    gives: what the output is: -1 for all states of the sequence, or as LastState.state.
    """

    kind: str
    gives: int = -1
    weight: FloatArray
    recurrence: FloatArray
    bias: FloatArray
    initial: tuple[FloatArray | None, ...] = ()
    direction: str = "forward"
    functions: tuple[GateFunction, ...] = ()
    clip: float = np.inf
    peepholes: FloatArray | None = None
    linear_before_reset: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LastState(Node):
    """(D, B, H): what the Recurrent node that makes its input ends with.

    state: 0, or 1 for the cell of an LSTM.
    """

    state: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Opaque(Node):
    """An ONNX node that neon8 cannot run.

    operator: a foreign domain stands before it, with a dot.  reason: why not, and the
    way round, for people.  inputs: all tensors that it reads and that are no constants,
    those of its branches and loops included.  output: the first of its outputs that are
    read; more: the others.
    """

    reason: str
    more: tuple[str, ...] = ()

    @property
    def outputs(self) -> tuple[str, ...]:
        """All tensors that it makes."""
        return (self.output, *self.more)


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
