# SPDX-License-Identifier: Apache-2.0
"""Integers that are no quantized values: arithmetic, comparisons, logic, casts  (27).

Tensors of every integer type of ONNX, and of bool, are int32 in a Program. What an
operator gives of a type with fewer bits is what that would hold of it.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from neon8.arrays import AnyArray, Array, Int64Array
from neon8.ir.graph import FLOATS, Node
from neon8.ir.graph import Tensor as GraphTensor
from neon8.ir.program import Bounds, Op, Tensor
from neon8.operators.build import FLOAT, INT32, Build
from neon8.operators.constants import append_constant
from neon8.operators.family import Family
from neon8.operators.functions import X, call, narrowed
from neon8.operators.layout import by_value, with_constants
from neon8.operators.movement import append_reshape, import_reshape
from neon8.operators.pointwise import Pointwise
from neon8.operators.reference import Operand
from neon8.operators.source import Convert, OnnxNode, Source

BITS = {
    "int8": 8,
    "uint8": 8,
    "int16": 16,
    "uint16": 16,
    "int4": 4,
    "uint4": 4,
    "int2": 2,
    "uint2": 2,
}
"""The bits of types that have fewer than int32."""

Then = tuple[tuple[str, int], ...]
"""Functions of INTEGERS_OF, each with its second operand."""

NOT: Then = (("xor", 1),)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToInteger(Node):
    """A float tensor cut off towards 0, as int32.  then: what follows."""

    then: Then = ()

    by_value = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ToFloat(Node):
    """An integer tensor as real numbers."""

    by_value = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded(Node):
    """A function of two operands or more, from the first to the last; integers.

    They are broadcast as ONNX does; those of a comparison may be of real numbers.
    constants: place -> operand that is the same in every run.  then: what follows.
    """

    function: str
    constants: Mapping[int, AnyArray] = field(default_factory=dict)
    then: Then = ()

    reads_dims = True

    @property
    def tests_nan(self) -> bool:
        """True of x != x."""
        same = self.inputs[1:] == self.inputs[:1]
        return same and self.function == "equal" and self.then == NOT


@dataclass(frozen=True, slots=True, kw_only=True)
class ToIntegerOp(Op):
    """float32 to int32, towards 0; NaN gives 0, what does not fit saturates  (27)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToFloatOp(Op):
    """int32 to float32, rounded half to even  (27)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerOp(Op):
    """Arithmetic of two int32 tensors, broadcast as ONNX does, modulo 2^32  (27).

    function: a name of INTEGERS_OF.
    """

    function: str

    def bounds(self, given: Sequence[Bounds]) -> Bounds | None:
        """From those of both operands; None of some functions that stay inside."""
        (a, b), (c, d) = given
        if self.function in COMPARISONS:
            return 0, 1
        if self.function == "and":
            masks = [most for least, most in given if least >= 0]
            return (0, min(masks)) if masks else None
        if self.function == "modulo":
            return (0, d) if c >= 0 else None
        if self.function == "divide":
            most = max(abs(a), abs(b))
            return (min(a, 0), max(b, 0)) if c >= 0 else (-most, most)
        if self.function in ("power", "shift_left"):
            if min(a, c) < 0 or d > MOST_SHIFTED:
                return LARGEST
            return (0, b << d) if self.function == "shift_left" else (0, max(b, 1) ** d)
        exact = EXACT.get(self.function)
        if exact is None:
            return None
        ends = [exact(x, y) for x in (a, b) for y in (c, d)]
        crosses = self.function == "absolute" and a <= d and c <= b
        return (0 if crosses else min(ends)), max(ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOp(Op):
    """1 where it holds of two float32 tensors, broadcast as ONNX does, else 0  (27).

    function: a name of COMPARISONS.
    """

    function: str

    def bounds(self, given: Sequence[Bounds]) -> Bounds:
        """0 and 1, as of every condition."""
        return 0, 1


def cast(source: Source, node: OnnxNode) -> Node:
    """Cast and CastLike.  float16 and float64 are computed as float32."""
    for name in (node.inputs[0], node.outputs[0]):
        source.dims_of(node, name)
    given, wanted = (source.types[n] for n in (node.inputs[0], node.outputs[0]))
    if given in FLOATS and wanted in FLOATS:
        if wanted == "float8_e8m0fnu" and given != wanted:
            raise source.failure(node, f"to {wanted} is not supported")
        rounding = narrowed(wanted, saturates=bool(node.integer("saturate", 1)))
        if rounding is None:
            return import_reshape(source, node)
        return node.made(Pointwise, function=rounding)
    if wanted in FLOATS:
        return node.made(ToFloat)
    if wanted == "bool" and given != "bool":
        zero = np.zeros((), np.float32 if given in FLOATS else np.int32)
        return node.made(Folded, function="equal", constants={1: zero}, then=NOT)
    if given in FLOATS:
        return node.made(ToInteger, then=wrapped(wanted))
    if _holds(wanted, given):
        return import_reshape(source, node)
    (function, mask), *then = wrapped(wanted)
    return with_number(source, node, function=function, value=mask, then=tuple(then))


def _holds(wanted: str, given: str) -> bool:
    """True if every value of the one type, as it is here, is one of the other."""
    if wanted not in BITS or given in ("bool", wanted):
        return True
    signed = wanted[0] == "i"
    fits = BITS.get(given, 32) <= BITS[wanted] - (signed and given[0] == "u")
    return fits and (signed or given[0] == "u")


def wrapped(kind: str) -> Then:
    """What leaves of an integer the bits of a type."""
    if kind not in BITS:
        return ()
    bits = BITS[kind]
    lowest: Then = (("and", (1 << bits) - 1),)
    half = 1 << (bits - 1)
    return lowest if kind[0] == "u" else (*lowest, ("xor", half), ("subtract", half))


def folded(
    source: Source,
    node: OnnxNode,
    *,
    function: str,
    backwards: bool = False,
    wraps: bool = False,
) -> Node:
    """A node of all operands.  backwards: from the last.  wraps: beyond its type."""
    names = node.inputs[::-1] if backwards else node.inputs
    source.dims_of(node, node.outputs[0])
    tensors = tuple(name for name in names if name not in source.constants)
    for name in tensors:
        source.dims_of(node, name)
    if len(names) == 1:
        return import_reshape(source, node)
    extreme = function in EXTREMES
    constants = {
        place: _limited(source, name) if extreme else source.fitting(node, name)
        for place, name in enumerate(names)
        if name in source.constants
    }
    return Folded(
        name=node.name,
        inputs=tensors,
        output=node.outputs[0],
        function=function,
        constants=constants,
        then=wrapped(source.types[node.outputs[0]]) if wraps else (),
    )


def _limited(source: Source, name: str) -> AnyArray:
    """A constant that bounds int32, as one that does."""
    limits = np.iinfo(np.int32)
    return np.clip(source.constants[name], limits.min, limits.max).astype(np.int32)


def with_number(
    source: Source,
    node: OnnxNode,
    *,
    function: str,
    value: int,
    first: bool = False,
    then: Then = (),
    wraps: bool = False,
) -> Node:
    """A node of its first input and a number.  first: that stands before it."""
    for name in (node.inputs[0], node.outputs[0]):
        source.dims_of(node, name)
    more = wrapped(source.types[node.outputs[0]]) if wraps else ()
    constants = {0 if first else 1: np.array(value, np.int32)}
    then = (*then, *more)
    return node.made(Folded, function=function, constants=constants, then=then)


def clip(source: Source, node: OnnxNode) -> Node:
    """Clip of integers, with constant bounds."""
    bounds = ((1, "maximum"), (2, "minimum"))
    found: list[tuple[str, int]] = []
    for place, function in bounds:
        value = source.constant(node, place)
        if value is not None and value.size != 1:
            raise source.failure(node, f"bound {node.inputs[place]!r} is not one value")
        if value is not None:
            limit = _limited(source, node.inputs[place])
            found.append((function, int(limit.reshape(-1)[0])))
    if not found:
        return import_reshape(source, node)
    (function, bound), *then = found
    return with_number(source, node, function=function, value=bound, then=tuple(then))


def modulo(source: Source, node: OnnxNode) -> Node:
    """Mod of integers, of the sign of the divisor or, with fmod, of the dividend."""
    function = "remainder" if node.integer("fmod", 0) else "modulo"
    return folded(source, node, function=function)


def is_nan(source: Source, node: OnnxNode) -> Node:
    """IsNaN: what is not equal to itself."""
    source.dims_of(node, node.inputs[0])
    test = node.made(Folded, function="equal", then=NOT)
    return replace(test, inputs=test.inputs * 2)


def is_infinite(
    source: Source, node: OnnxNode
) -> Folded | tuple[GraphTensor | Node, ...]:
    """IsInf: what is beyond the largest float32, on either side or on one."""
    shape = source.dims_of(node, node.inputs[0])
    upper, lower = (
        node.integer(f"detect_{name}", 1) for name in ("positive", "negative")
    )
    if not (upper or lower):
        raise source.failure(node, "detects nothing")
    largest = np.finfo(np.float32).max
    place, limit = (0, largest) if upper else (1, -largest)
    constants = {place: np.array(limit, np.float32)}
    found = node.made(Folded, function="less", constants=constants)
    if not (upper and lower):
        return found
    size = GraphTensor(f"{node.outputs[0]}_size", shape, hidden=True)
    absolute = Pointwise(
        name=f"{node.name}:{size.name}",
        inputs=node.inputs,
        output=size.name,
        function=call("absolute", X),
    )
    return size, absolute, replace(found, inputs=(size.name,))


def power(source: Source, node: OnnxNode) -> Node:
    """Pow of integers to integers."""
    exponent = node.inputs[1]
    value = source.constants.get(exponent)
    kind = source.types.get(exponent) if value is None else value.dtype.name
    if kind in FLOATS:
        raise source.failure(node, "of integers has exponents that are none")
    return folded(source, node, function="power", wraps=True)


def shift(source: Source, node: OnnxNode) -> Node:
    """BitShift."""
    direction = node.text("direction", "").lower()
    if direction not in ("left", "right"):
        raise source.failure(node, f"direction {direction!r} is neither LEFT nor RIGHT")
    return folded(source, node, function=f"shift_{direction}", wraps=True)


def lower_to_integer(b: Build, node: ToInteger) -> None:
    """Steps that round float32."""
    source, out = b.float32(node.inputs[0]), b.declare(node.output, INT32)
    whole = b.temporary(out, "whole") if node.then else out
    b.step(ToIntegerOp, node.name, (source,), whole)
    append_then(b, node.name, node.then, whole, out)


def lower_to_float(b: Build, node: ToFloat) -> None:
    """To float32."""
    source, out = b.take(node.inputs[0], INT32), b.declare(node.output, FLOAT)
    b.step(ToFloatOp, node.name, (source,), out)


def append_then(b: Build, layer: str, then: Then, value: Tensor, out: Tensor) -> None:
    """Appends value -> out, by these functions."""
    for at, (function, number) in enumerate(then):
        result = out if at == len(then) - 1 else b.temporary(out, "part")
        operand = append_constant(b, layer, np.array(number, np.int32), out)
        b.step(IntegerOp, layer, (value, operand), result, function=function)
        value = result


def lower_folded(b: Build, node: Folded) -> None:
    """(27), two operands at a time."""
    real = any(b.graph.tensors[name].real for name in node.inputs)
    dtype = FLOAT if real else INT32
    operands = [b.take(name, dtype) for name in node.inputs]
    for place, value in sorted(node.constants.items()):
        like = replace(operands[0], dims=value.shape)
        operands.insert(place, append_constant(b, node.name, value, like))
    out = b.declare(node.output, INT32)
    first, *others = operands
    for at, other in enumerate(others):
        result = out
        if at < len(others) - 1 or node.then:
            dims = np.broadcast_shapes(first.dims, other.dims)
            result = b.temporary(replace(out, dims=dims), "part")
        kind = CompareOp if real else IntegerOp
        b.step(kind, node.name, (first, other), result, function=node.function)
        first = result
    if not others:
        append_reshape(b, node.name, first, out)
    append_then(b, node.name, node.then, first, out)


def compute_to_integer(_op: ToIntegerOp, _out: Tensor, x: Operand) -> Array:
    """(27): in double, which has all int32."""
    whole = np.trunc(np.where(np.isnan(x.values), 0, x.values.astype(np.float64)))
    result: Array = np.clip(whole, -(2**31), 2**31 - 1).astype(np.int32)
    return result


def quotient(x: Int64Array, y: Int64Array) -> Int64Array:
    """Cut off towards 0; 0 where y is 0."""
    size = np.abs(x) // np.where(y == 0, 1, np.abs(y))
    return np.where(y == 0, 0, np.where((x < 0) == (y < 0), size, -size))


def whole_power(x: Int64Array, y: Int64Array) -> Int64Array:
    """x to the power of y, modulo 2^32; what is below 1 is cut off towards 0."""
    factor, exponent = (each.copy() for each in np.broadcast_arrays(x % 2**32, y))
    result = np.ones_like(factor)
    while (exponent > 0).any():
        odd = (exponent > 0) & (exponent % 2 == 1)
        result = np.where(odd, _product(result, factor), result)
        factor, exponent = _product(factor, factor), exponent // 2
    inverse = np.where(x == 1, 1, np.where(x == -1, np.where(y % 2 == 0, 1, -1), 0))
    return np.where(y < 0, inverse, result)


def _product(x: Int64Array, y: Int64Array) -> Int64Array:
    """Modulo 2^32."""
    return (x.astype(np.uint64) * y.astype(np.uint64) % 2**32).astype(np.int64)


def _shifted(x: Int64Array, y: Int64Array, *, left: bool) -> Int64Array:
    """The 32 bits of x moved, by more than all where y is below 0.

    On the left copies of the sign come in, on the right 0.
    """
    by = np.where((y < 0) | (y > 32), 32, y)
    return x << by if left else x >> by


COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "equal": np.equal,
    "less": np.less,
    "less_equal": np.less_equal,
}

EXTREMES = {"minimum": np.minimum, "maximum": np.maximum}

EXACT: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "absolute": lambda x, y: abs(x - y),
    "minimum": min,
    "maximum": max,
}
"""Functions whose least and largest values come of those of the operands."""

LARGEST: Bounds = (-(2**63), 2**63 - 1)
"""What may be anything."""
MOST_SHIFTED = 62
"""Exponents from there on are not computed."""

INTEGERS_OF: dict[str, Callable[[Int64Array, Int64Array], Array]] = {
    **COMPARISONS,
    **EXTREMES,
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": quotient,
    "absolute": lambda x, y: np.abs(x - y),
    "power": whole_power,
    "remainder": lambda x, y: np.where(y == 0, 0, x - quotient(x, y) * y),
    "modulo": lambda x, y: np.where(y == 0, 0, np.mod(x, np.where(y == 0, 1, y))),
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shift_left": partial(_shifted, left=True),
    "shift_right": partial(_shifted, left=False),
}
"""Functions of values in int64; the lower 32 bits of the result are taken."""


def compute_integer(op: IntegerOp, out: Tensor, a: Operand, b: Operand) -> Array:
    """(27), on the dimensions that ONNX knows."""
    x, y = (each.values.reshape(each.tensor.dims).astype(np.int64) for each in (a, b))
    with np.errstate(over="ignore"):
        value = INTEGERS_OF[op.function](x, y).astype(np.int64)
    return np.broadcast_to(value.astype(np.int32), out.dims).reshape(out.shape)


def compute_compare(op: CompareOp, out: Tensor, a: Operand, b: Operand) -> Array:
    """(27), on the dimensions that ONNX knows."""
    holds = COMPARISONS[op.function](a.real, b.real).astype(np.int32)
    return np.broadcast_to(holds, out.dims).reshape(out.shape)


COMPARE: dict[str, Convert] = {
    "Equal": partial(folded, function="equal"),
    "Greater": partial(folded, function="less", backwards=True),
    "GreaterOrEqual": partial(folded, function="less_equal", backwards=True),
    "Less": partial(folded, function="less"),
    "LessOrEqual": partial(folded, function="less_equal"),
}

LOGIC: dict[str, Convert] = {
    "And": partial(folded, function="and"),
    "BitShift": shift,
    "BitwiseAnd": partial(folded, function="and"),
    "BitwiseOr": partial(folded, function="or"),
    "BitwiseXor": partial(folded, function="xor"),
    "Or": partial(folded, function="or"),
    "Xor": partial(folded, function="xor"),
}

NEGATIONS: dict[str, Convert] = {
    "BitwiseNot": partial(with_number, function="xor", value=-1, wraps=True),
    "Not": partial(with_number, function="xor", value=1),
}

ARITHMETIC: dict[str, Convert] = {
    "Abs": partial(with_number, function="absolute", value=0, wraps=True),
    "Add": partial(folded, function="add", wraps=True),
    "Clip": clip,
    "Div": partial(folded, function="divide", wraps=True),
    "Max": partial(folded, function="maximum"),
    "Min": partial(folded, function="minimum"),
    "Mod": modulo,
    "Mul": partial(folded, function="multiply", wraps=True),
    "Neg": partial(with_number, function="subtract", value=0, first=True, wraps=True),
    "Pow": power,
    "Sign": partial(with_number, function="maximum", value=-1, then=(("minimum", 1),)),
    "Sub": partial(folded, function="subtract", wraps=True),
}

FAMILY = Family(
    imports={
        "Cast": cast,
        "CastLike": cast,
        "IsInf": is_infinite,
        "IsNaN": is_nan,
        **COMPARE,
        **LOGIC,
        **NEGATIONS,
    },
    integers=ARITHMETIC,
    lower_float={
        Folded: lower_folded,
        ToFloat: lower_to_float,
        ToInteger: lower_to_integer,
    },
    steps={
        CompareOp: compute_compare,
        IntegerOp: compute_integer,
        ToFloatOp: lambda _op, _out, x: x.values.astype(np.float32),
        ToIntegerOp: compute_to_integer,
    },
    layouts={
        **dict.fromkeys(("Cast", "IsInf", "IsNaN", *NEGATIONS), by_value),
        **dict.fromkeys((*COMPARE, *LOGIC), with_constants),
    },
)
