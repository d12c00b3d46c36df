# SPDX-License-Identifier: Apache-2.0
"""Add, Sub, Mul, Div, Max, Min, Sum and Mean, of tensors and of constants."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

import numpy as np

from neon8.arrays import Array, DoubleArray, FloatArray
from neon8.errors import CompileError
from neon8.ir.graph import (
    FLOATS,
    INTEGERS,
    Activated,
    Activation,
    Factors,
    Graph,
    Node,
    Origin,
    aligned,
    listed,
    nchw,
)
from neon8.ir.graph import Tensor as GraphTensor
from neon8.ir.program import Finished, Op, Tensor
from neon8.operators.activation import bound
from neon8.operators.build import FLOAT, INT8, INT16, Build, ratio
from neon8.operators.composition import Parts
from neon8.operators.constants import append_constant
from neon8.operators.convolution import affine_layer, make_affine
from neon8.operators.factors import (
    MultiplyOp,
    append_factors,
    multiplier,
    write_factors,
)
from neon8.operators.family import Family
from neon8.operators.floats import (
    append_activation,
    append_binary,
    append_unary,
    before,
)
from neon8.operators.functions import X, call, number
from neon8.operators.integer import ToFloat
from neon8.operators.layout import with_constants
from neon8.operators.movement import ReshapeOp, import_reshape
from neon8.operators.pointwise import make_pointwise, to_the_power
from neon8.operators.qdq import Nodes, finish
from neon8.operators.rearranged import CHANNELS_FIRST
from neon8.operators.reference import Operand, leaky, rounded
from neon8.operators.scales import SCALE_MAX, finish_of
from neon8.operators.source import OnnxNode, Source, float32
from neon8.quant.limits import SMALLEST_SCALE


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary(Activated):
    """y = activation(inputs[0] ? inputs[1]), broadcast as ONNX does.

    aligned() gives the shapes that fit.
    """

    follows = True
    by_value = True
    reads_dims = True
    precedes_activation = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Add(Binary):
    """inputs[0] + inputs[1]."""

    @property
    def sign(self) -> int:
        """That of the second operand."""
        return 1

    by_channel = True

    def with_lowest(self, value: float) -> Node:
        """It has no constants."""
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Subtract(Binary):
    """inputs[0] - inputs[1]."""

    @property
    def sign(self) -> int:
        """That of the second operand."""
        return -1

    by_channel = True

    wants_table = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiply(Binary):
    """inputs[0] * inputs[1].

    factors: of the channels, (C,), (1,) or none, those of both operands over those of
    the product, in double  (5c).
    """

    factors: Factors = ()

    wants_table = True

    def absorbs_factors(self, graph: Graph) -> bool:
        """True where the second axis of all tensors is that of the channels."""
        names = (*self.inputs, self.output)
        return len({graph.tensors[name].rank for name in names}) == 1

    def with_factors(
        self, read: Sequence[DoubleArray | None], made: DoubleArray | None
    ) -> Node:
        """With multipliers for them."""
        both = np.ones(1)
        for factors in read:
            both = both if factors is None else both * factors
        return replace(self, factors=listed(both if made is None else both / made))


@dataclass(frozen=True, slots=True, kw_only=True)
class Divide(Binary):
    """inputs[0] / inputs[1]."""

    wants_table = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Power(Binary):
    """inputs[0] to the power of inputs[1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remainder(Binary):
    """What inputs[0] / inputs[1], cut off towards 0, leaves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Modulo(Binary):
    """What inputs[0] / inputs[1], cut off towards -infinity, leaves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extreme(Node):
    """Base of two kinds, of two inputs or more, broadcast as Binary."""

    keeps_values = True
    by_channel = True
    follows = True
    by_value = True
    reads_dims = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Maximum(Extreme):
    """The largest of its inputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Minimum(Extreme):
    """The smallest of its inputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum(Activated):
    """y = activation(sum of its inputs), two or more of one shape.

    mean: their sum divided by their number.
    """

    mean: bool = False

    follows = True
    by_value = True
    by_channel = True


@dataclass(frozen=True, slots=True, kw_only=True)
class WithConstant(Activated):
    """y = activation(x ? constant), or constant ? x if `first`, broadcast as in ONNX.

    function: "add", "subtract", "multiply", "divide", "minimum" or "maximum", the last
    two without an activation; in float32 also "power", "remainder" or "modulo".  What
    has one value for all, or one for each channel, is a convolution or a Pointwise
    instead.
    """

    function: str
    constant: FloatArray
    first: bool = False

    follows = True
    reads_dims = True

    @property
    def adds(self) -> bool:
        """True of a sum."""
        return self.function in ("add", "subtract")

    def fits_int8(self, graph: Graph) -> bool:
        """The scale of a constant of a quantized file is not known any more."""
        return not (graph.quantized or self.function in ONLY_FLOAT.values())

    @property
    def lowest(self) -> float:
        """The smallest value that it adds or subtracts."""
        if self.function == "add":
            return float(self.constant.min())
        return float(-self.constant.max()) if self.function == "subtract" else 0.0

    @property
    def _scale_and_shift(self) -> tuple[DoubleArray, DoubleArray] | None:
        value = self.constant.astype(np.float64).reshape(-1)
        return scale_and_shift(self.function, value, first=self.first)

    @property
    def multiple(self) -> float | None:
        """A single factor, or 1 / divisor."""
        pair = self._scale_and_shift
        if pair is None or self.constant.size > 1 or not self.activation.identity:
            return None
        return float(pair[0][0]) if pair[1][0] == 0 else None

    def with_lowest(self, value: float) -> Node | None:
        """A sum with its constant raised to `value`; None of other functions."""
        if self.function != "add":
            return None
        return replace(self, constant=np.maximum(self.constant, np.float32(value)))

    def fused(self, then: Activation) -> Node | None:
        """With an activation, which extremes do not have: they round nothing."""
        return None if self.function in EXTREMES else Activated.fused(self, then)

    def on_rearranged(
        self, origin: Origin, dims: tuple[int, ...], moved: tuple[int, ...]
    ) -> Node | None:
        """With the constant in the same order, or as a convolution if that does it."""
        constant = self.constant
        if math.prod(dims) > MAX_REARRANGED:
            return None
        along_last = constant.size == constant.shape[-1] == nchw(moved)[1]
        if along_last and origin.label == CHANNELS_FIRST:
            pair = self._scale_and_shift
            if pair is not None and np.isfinite(float32(np.stack(pair))).all():
                return affine_layer(self, *pair)
        full = np.broadcast_to(constant, dims).reshape(origin.view)
        value = full.transpose(origin.order).reshape(moved)
        return replace(self, constant=np.ascontiguousarray(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class AddOp(Finished):
    """clamp(rne(leaky(v)) + zp)  (6).

    v = fadd(fmul(a - zp_a, scale), fmul(b - zp_b, residual_scale)).
    A difference has a negative residual_scale. Operands are broadcast, by N C H W.
    Any of the three may be int16  (24).
    """

    scale: np.float32
    residual_scale: np.float32


@dataclass(frozen=True, slots=True, kw_only=True)
class DivideOp(Finished):
    """clamp(rne(leaky(fmul(fdiv(a - zp_a, b - zp_b), scale))) + zp)  (16)."""

    scale: np.float32


@dataclass(frozen=True, slots=True, kw_only=True)
class MaximumOp(Op):
    """The larger of a and b, which share scale and zero point with it  (9)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimumOp(Op):
    """The smaller of a and b, which share scale and zero point with it  (9)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SumOp(Finished):
    """clamp(rne(leaky(sum of fmul(x - zp_x, values[x]))) + zp)  (6).

    values: for each input, all of one shape, its scale over that of the output.
    """

    values: FloatArray


def scale_and_shift(
    function: str, value: DoubleArray, *, first: bool
) -> tuple[DoubleArray, DoubleArray] | None:
    """factor and shift of each channel, if `function` of it and a constant is no more.

    first: the constant stands before it.
    """
    one, zero = np.ones_like(value), np.zeros_like(value)
    forms = {
        ("add", False): (one, value),
        ("add", True): (one, value),
        ("subtract", False): (one, -value),
        ("subtract", True): (-one, value),
        ("multiply", False): (value, zero),
        ("multiply", True): (value, zero),
    }
    if (function, first) == ("divide", False):
        return 1.0 / value, zero
    return forms.get((function, first))


def arithmetic(source: Source, node: OnnxNode, *, kind: type[Binary]) -> Node:
    """Import an operator of two tensors, or of one and a constant on either side."""
    side = _constant_side(source, node)
    if side is None:
        check_broadcast(source, node)
        return kind(name=node.name, inputs=node.inputs, output=node.outputs[0])
    function = FUNCTIONS[kind]
    given = source.constants[node.inputs[side]]
    if kind is Add and given.dtype.name in FLOATS and (given == -np.inf).any():
        mask = np.maximum(float32(given), np.finfo(np.float32).min)
        return make_with_constant(source, node, function, mask, data=1 - side)
    if not _is_layer(source, node, side):
        return with_constant(source, node, function, side)
    value = source.per_channel(node, side)
    if kind is Divide and side == 0:
        if (value != value[0]).any():
            return with_constant(source, node, function, side)
        quotient = call("divide", number(float(value[0])), X)
        return make_pointwise(source, node, quotient, data=1)
    if kind is Divide:
        _check_divisor(source, node, value)
    pair = scale_and_shift(function, value, first=side == 0)
    if pair is None:
        raise ValueError(function)
    return make_affine(source, node, 1 - side, *pair)


def _check_divisor(
    source: Source, node: OnnxNode, value: FloatArray | DoubleArray
) -> None:
    if not value.all():
        raise source.failure(node, f"divisor {node.inputs[1]!r} contains a zero")


def power(source: Source, node: OnnxNode) -> Node | tuple[Node | GraphTensor, ...]:
    """Pow, of float32 unless the exponent is one constant."""
    exponent = node.inputs[1]
    given = source.constants.get(exponent)
    if given is not None:
        value = source.fitting(node, exponent).astype(np.float32)
        if value.size == 1:
            return to_the_power(source, node, float(value.reshape(-1)[0]))
        return make_with_constant(source, node, "power", value, data=0)
    if source.types.get(exponent) not in INTEGERS or node.inputs[0] in source.constants:
        return _of_float(source, node, Power)
    real = GraphTensor(f"{node.outputs[0]}_exponent", source.dims_of(node, exponent))
    cast = ToFloat(
        name=f"{node.name}:{real.name}", inputs=(exponent,), output=real.name
    )
    both = (node.inputs[0], real.name)
    source.shape_of(node, node.inputs[0])
    last = Power(name=node.name, inputs=both, output=node.outputs[0])
    return replace(real, hidden=True), cast, last


def remainder(source: Source, node: OnnxNode) -> Node:
    """Mod, of the sign of the divisor or, with fmod, of the dividend."""
    kind = Remainder if node.integer("fmod", 0) else Modulo
    return _of_float(source, node, kind)


def _of_float(source: Source, node: OnnxNode, kind: type[Binary]) -> Node:
    """Import one of two tensors of float, or of one and a constant."""
    side = _constant_side(source, node)
    if side is None:
        for name in (*node.inputs, node.outputs[0]):
            source.shape_of(node, name)
        return kind(name=node.name, inputs=node.inputs, output=node.outputs[0])
    return with_constant(source, node, ONLY_FLOAT[kind], side)


def add_all(source: Source, node: OnnxNode, *, mean: bool) -> Node:
    """Sum and Mean of any number of tensors of one shape; Sum of two as Add."""
    if len(node.inputs) == 1:
        return import_reshape(source, node)
    if len(node.inputs) == 2 and not mean:
        return arithmetic(source, node, kind=Add)
    shapes = {name: source.shape_of(node, name) for name in node.inputs}
    if len(set(shapes.values())) > 1:
        text = f"of tensors of different shapes, {list(map(list, shapes.values()))}, is"
        raise source.failure(node, f"{text} not supported; export it as Adds of two")
    return Sum(name=node.name, inputs=node.inputs, output=node.outputs[0], mean=mean)


def extreme(source: Source, node: OnnxNode, *, upper: bool) -> Node:
    """Max and Min: of tensors; of one and of constants, which bound it.

    upper: the constants are upper bounds, as of Min.
    """
    tensors = [name for name in node.inputs if name not in source.constants]
    constants = [i for i, name in enumerate(node.inputs) if name not in tensors]
    if len(tensors) > 1:
        if constants:
            text = f"of {len(tensors)} tensors and of constants is not supported"
            raise source.failure(node, f"{text}; export two operators")
        check_broadcast(source, node)
        kind = Minimum if upper else Maximum
        return kind(name=node.name, inputs=node.inputs, output=node.outputs[0])
    values = [source.required(node, index) for index in constants]
    if all(value.size == 1 for value in values):
        return bound(source, node, upper=upper)
    function = np.minimum if upper else np.maximum
    constant: FloatArray = reduce(function, values)
    data = node.inputs.index(tensors[0])
    name = "minimum" if upper else "maximum"
    return make_with_constant(source, node, name, constant, data=data)


def check_broadcast(source: Source, node: OnnxNode) -> None:
    """GraphError if an input is broadcast in a way that N C H W does not show."""
    out = source.shape_of(node, node.outputs[0])
    for name in node.inputs:
        shape = aligned(source.shape_of(node, name), len(out))
        if any(a not in (1, b) for a, b in zip(shape, nchw(out), strict=True)):
            text = f"tensor {name!r} is broadcast along some of the axes from the"
            raise source.failure(node, f"{text} fourth on only")


def spread(p: Parts) -> bool:
    """Expand of tensors that are broadcast as N C H W does not show.

    Along the axes from the fourth on, which are one there.
    """
    out = p.source.shapes.get(p.node.outputs[0])
    inputs = list(p.node.inputs)
    for place, name in enumerate(inputs):
        dims = p.source.shapes.get(name)
        if out is None or dims is None or name in p.source.constants:
            continue
        dims = (1,) * (len(out) - len(dims)) + dims
        if nchw(dims)[3] not in (1, nchw(out)[3]):
            inputs[place] = p.add("Expand", name, [*dims[:3], *out[3:]])
    if inputs == list(p.node.inputs):
        return False
    p.append(p.node.operator, inputs, p.node.outputs, p.node.attributes, layer=True)
    return True


def with_constant(
    source: Source, node: OnnxNode, function: str, side: int
) -> WithConstant:
    """Arithmetic with a constant of any shape, input number `side`."""
    value = source.required(node, side)
    if function == "divide" and side == 1:
        _check_divisor(source, node, value)
    return make_with_constant(source, node, function, value, data=1 - side)


def make_with_constant(
    source: Source, node: OnnxNode, function: str, value: FloatArray, *, data: int
) -> WithConstant:
    """`function` of input number `data` and of a constant; before it unless it is 0."""
    for name in (node.inputs[data], node.outputs[0]):
        source.shape_of(node, name)
    return node.made(
        WithConstant, data=data, function=function, constant=value, first=data > 0
    )


def _constant_side(source: Source, node: OnnxNode) -> int | None:
    sides = [i for i in (0, 1) if node.inputs[i] in source.constants]
    return sides[0] if sides else None


def _is_layer(source: Source, node: OnnxNode, side: int) -> bool:
    """True if a layer with weights computes it; where nobody observes none does."""
    hidden = node.inputs[1 - side] in source.hidden
    return not hidden and source.fits_channels(node, side)


FUNCTIONS: dict[type[Node], str] = {
    Add: "add",
    Divide: "divide",
    Multiply: "multiply",
    Subtract: "subtract",
}


ONLY_FLOAT: dict[type[Node], str] = {
    Modulo: "modulo",
    Power: "power",
    Remainder: "remainder",
}


EXTREMES = {"maximum": MaximumOp, "minimum": MinimumOp}


SUMS = ("add", "subtract")


PRODUCTS = {"divide": DivideOp, "multiply": MultiplyOp}


MAX_REARRANGED = 1 << 24
"""Values of a constant that is rearranged, which must be written out for that."""
MAX_SPREAD = 1 << 28
"""Values of a constant that is written out."""


def lower_binary(b: Build, node: Binary) -> None:
    """(6) of a sum that no convolution took in, or a difference; (16)."""
    function = FUNCTIONS[type(node)]
    first, second = (operand(b, node, name) for name in node.inputs)
    out = b.result(node.output)
    combine(b, node, function, (first, second), out, node.activation)


def combine(
    b: Build,
    node: Node,
    function: str,
    operands: tuple[Tensor, Tensor],
    out: Tensor,
    activation: Activation = Activation(),
) -> None:
    """Appends the step that gives the `function` of two tensors."""
    first, second = operands
    finish = finish_of(node.name, activation, out)
    if function in EXTREMES:
        b.step(EXTREMES[function], node.name, operands, out)
    elif function in SUMS:
        sign = np.float32(-1 if function == "subtract" else 1)
        scales = {
            "scale": ratio(node.name, first, out),
            "residual_scale": sign * ratio(node.name, second, out),
        }
        b.step(AddOp, node.name, operands, out, **scales, **finish)
    else:
        kind = PRODUCTS[function]
        factors = node.factors if isinstance(node, Multiply) else ()
        each = [multiplier(node.name, function, operands, out, f) for f in factors]
        if len(set(each)) > 1:
            scales = {"scale": np.float32(0), "multiplier": np.array(each)}
        else:
            one = each[0] if each else multiplier(node.name, function, operands, out)
            scales = {"scale": one}
        b.step(kind, node.name, operands, out, **scales, **finish)


def lower_with_constant(b: Build, node: WithConstant) -> None:
    """As of two tensors, of which one is a constant with a scale of its own."""
    function, value = node.function, node.constant.astype(np.float64)
    source = operand(b, node, node.inputs[0])
    out = b.result(node.output)
    if function == "divide" and not node.first:  # a level 0 would be a divisor
        function, value = "multiply", 1.0 / value
    if function in EXTREMES:
        source = b.rescaled(node.name, source, out)
    constant = constant_of(b, node, value, source, out, shared=function in EXTREMES)
    operands = (constant, source) if node.first else (source, constant)
    combine(b, node, function, operands, out, node.activation)


def constant_of(
    b: Build,
    node: WithConstant,
    value: DoubleArray,
    source: Tensor,
    out: Tensor,
    *,
    shared: bool,
) -> Tensor:
    """The constant as integers, unsigned where it has no value below 0.

    They are int16 where `source` or `out` is.  shared: as those of `out`.
    """
    value = value.reshape((1,) * (out.rank - value.ndim) + value.shape)
    if aligned(value.shape, out.rank)[3] not in (1, out.shape[3]):
        # Along some of the axes from the fourth on only.
        if math.prod(value.shape[:3]) * out.shape[3] > MAX_SPREAD:
            text = f"its constant {list(value.shape)} is broadcast to too many values"
            raise CompileError(f"layer {node.name!r}: {text}")
        value = np.broadcast_to(value, (*value.shape[:3], *out.dims[3:]))
    like = replace(out, name=source.name, dims=value.shape)
    if not shared:
        dtype = INT16 if INT16 in (source.dtype, out.dtype) else INT8
        ends = np.iinfo(dtype)
        least, most = float(min(value.min(), 0)), float(max(value.max(), 0))
        unsigned = least == 0
        steps = ends.max - ends.min if unsigned else ends.max
        like = replace(
            like,
            dtype=dtype,
            scale=np.float32(
                min(max(max(most, -least) / steps, SMALLEST_SCALE), SCALE_MAX)
            ),
            zero_point=ends.min if unsigned else 0,
            lo=ends.min if unsigned else -ends.max,
            hi=ends.max,
        )
    return append_constant(b, node.name, value, like)


def lower_extreme(b: Build, node: Extreme) -> None:
    """(9), on the grid of the result, to which all operands are taken first."""
    sources = [operand(b, node, name) for name in node.inputs]
    out = b.result(node.output)
    first, *others = (b.rescaled(node.name, source, out) for source in sources)
    function = "maximum" if isinstance(node, Maximum) else "minimum"
    for i, other in enumerate(others):
        last = i == len(others) - 1
        dims = np.broadcast_shapes(first.shape, other.shape)
        result = out if last else b.temporary(replace(out, dims=dims), "extreme")
        combine(b, node, function, (first, other), result)
        first = result


def lower_sum(b: Build, node: Sum) -> None:
    """(6) of all inputs at once, so that it is rounded once."""
    sources = [b.own(name) for name in node.inputs]
    out = b.result(node.output)
    count = len(sources) if node.mean else 1
    scales = [ratio(node.name, source, out, count=count) for source in sources]
    b.step(
        SumOp,
        node.name,
        sources,
        out,
        values=np.array(scales, np.float32),
        **finish_of(node.name, node.activation, out),
    )


def operand(b: Build, node: Node, name: str) -> Tensor:
    """An input of `node`, with the ones in front of its dimensions that ONNX adds."""
    source = b.own(name)
    rank = len(b.graph.tensors[node.output].dims)
    if aligned(source.dims, rank) == source.shape:
        return source
    dims = (1,) * (rank - len(source.dims)) + source.dims
    view = b.temporary(replace(source, dims=dims), "aligned")
    b.step(ReshapeOp, node.name, (source,), view)
    return view


def lower_binary_float(b: Build, node: Binary) -> None:
    """(22)."""
    first, second = (b.float32(name).name for name in node.inputs)
    out = b.declare(node.output, FLOAT)
    result = before(b, node.activation, out)
    factors = node.factors if isinstance(node, Multiply) else ()
    made = b.temporary(out, "product") if factors else result
    function = {**FUNCTIONS, **ONLY_FLOAT}[type(node)]
    append_binary(b, node.name, function, (first, second), made)
    if factors:
        append_factors(b, node.name, factors, made, result)
    append_activation(b, node.name, node.activation, out)


def lower_extreme_float(b: Build, node: Extreme) -> None:
    """(22), two at a time."""
    function = "maximum" if isinstance(node, Maximum) else "minimum"
    fold(b, node, function, b.declare(node.output, FLOAT))


def lower_sum_float(b: Build, node: Sum) -> None:
    """(22), two at a time, and the mean by a division."""
    out = b.declare(node.output, FLOAT)
    result = before(b, node.activation, out)
    total = b.temporary(result, "total") if node.mean else result
    fold(b, node, "add", total)
    if node.mean:
        count = call("divide", X, number(float(len(node.inputs))))
        append_unary(b, node.name, count, total, result)
    append_activation(b, node.name, node.activation, out)


def fold(b: Build, node: Node, function: str, out: Tensor) -> None:
    """Appends the `function` of all inputs, from the first to the last."""
    first, *others = (b.float32(name) for name in node.inputs)
    for i, other in enumerate(others):
        result = out
        if i < len(others) - 1:
            dims = np.broadcast_shapes(first.dims, other.dims)
            result = b.temporary(replace(out, dims=dims), "part")
        append_binary(b, node.name, function, (first.name, other.name), result)
        first = result


def lower_with_constant_float(b: Build, node: WithConstant) -> None:
    """(22), with a step that gives the constant."""
    source = b.float32(node.inputs[0])
    value = append_constant(b, node.name, node.constant, source)
    out = b.declare(node.output, FLOAT)
    names = (value.name, source.name) if node.first else (source.name, value.name)
    append_binary(b, node.name, node.function, names, before(b, node.activation, out))
    append_activation(b, node.name, node.activation, out)


def compute_add(op: AddOp, out: Tensor, a: Operand, b: Operand) -> Array:
    """(6)."""
    first = a.centred * np.float32(op.scale)
    v = first + b.centred * np.float32(op.residual_scale)
    return rounded(leaky(v, op.slope), out, op.lo, op.hi)


def compute_sum(op: SumOp, out: Tensor, *operands: Operand) -> Array:
    """(6) of more than two, from the first to the last."""
    pairs = zip(operands, op.values, strict=True)
    terms = (operand.centred * np.float32(value) for operand, value in pairs)
    v: FloatArray = reduce(np.add, terms)
    return rounded(leaky(v, op.slope), out, op.lo, op.hi)


def compute_multiply(op: MultiplyOp, out: Tensor, a: Operand, b: Operand) -> Array:
    """(16)."""
    scale = np.float32(op.scale) if op.multiplier is None else op.multiplier
    v = (a.centred * b.centred) * scale.reshape(1, -1, 1, 1)
    return rounded(leaky(v, op.slope), out, op.lo, op.hi)


def compute_divide(op: DivideOp, out: Tensor, a: Operand, b: Operand) -> Array:
    """(16): by zero it is infinite, which saturates; zero by zero is zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        v = leaky((a.centred / b.centred) * np.float32(op.scale), op.slope)
    return rounded(v, out, op.lo, op.hi)


def write_binary(n: Nodes, op: Op, *, operator: str) -> None:
    """The operator on float values, the activation, and a Q/DQ pair."""
    values = [n.real(name) for name in op.inputs]
    finish(n, n.node(operator, values, name=op.name), op)


def write_multiply(n: Nodes, op: MultiplyOp) -> None:
    """Mul, twice where channels have factors."""
    layer = n.layers[op.name]
    factors = layer.factors if isinstance(layer, Multiply) else ()
    value = n.node("Mul", [n.real(name) for name in op.inputs], name=op.name)
    finish(n, write_factors(n, value, factors, op), op)


def write_add(n: Nodes, op: AddOp) -> None:
    """Add or Sub."""
    write_binary(n, op, operator="Sub" if op.residual_scale < 0 else "Add")


def write_extreme(n: Nodes, op: Op, *, operator: str) -> None:
    """Max or Min, which have no activation."""
    values = [n.real(name) for name in op.inputs]
    n.finish(n.node(operator, values, name=op.name), op.output)


def write_sum(n: Nodes, op: SumOp) -> None:
    """Sum or Mean."""
    write_binary(n, op, operator="Mean" if n.layers[op.name].mean else "Sum")


FAMILY = Family(
    imports={
        "Add": partial(arithmetic, kind=Add),
        "Div": partial(arithmetic, kind=Divide),
        "Max": partial(extreme, upper=False),
        "Mean": partial(add_all, mean=True),
        "Mod": remainder,
        "Min": partial(extreme, upper=True),
        "Mul": partial(arithmetic, kind=Multiply),
        "Pow": power,
        "Sub": partial(arithmetic, kind=Subtract),
        "Sum": partial(add_all, mean=False),
    },
    compositions=dict.fromkeys(
        ("Add", "Div", "Max", "Min", "Mul", "Pow", "Sub"), spread
    ),
    lower={
        **dict.fromkeys(FUNCTIONS, lower_binary),
        Maximum: lower_extreme,
        Minimum: lower_extreme,
        Sum: lower_sum,
        WithConstant: lower_with_constant,
    },
    lower_float={
        **dict.fromkeys((*FUNCTIONS, *ONLY_FLOAT), lower_binary_float),
        Maximum: lower_extreme_float,
        Minimum: lower_extreme_float,
        Sum: lower_sum_float,
        WithConstant: lower_with_constant_float,
    },
    steps={
        AddOp: compute_add,
        DivideOp: compute_divide,
        MaximumOp: lambda _op, _out, a, b: np.maximum(a.values, b.values),
        MinimumOp: lambda _op, _out, a, b: np.minimum(a.values, b.values),
        MultiplyOp: compute_multiply,
        SumOp: compute_sum,
    },
    qdq={
        AddOp: write_add,
        DivideOp: partial(write_binary, operator="Div"),
        MaximumOp: partial(write_extreme, operator="Max"),
        MinimumOp: partial(write_extreme, operator="Min"),
        MultiplyOp: write_multiply,
        SumOp: write_sum,
    },
    layouts=dict.fromkeys(
        ("Add", "Div", "Max", "Mean", "Min", "Mod", "Mul", "Pow", "Sub", "Sum"),
        with_constants,
    ),
)
