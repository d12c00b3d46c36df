# SPDX-License-Identifier: Apache-2.0
"""Functions of one real value, as trees of a few named ones: what a table computes.

What the names mean stands in the table ARGUMENTS.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from neon8.arrays import DoubleArray
from neon8.ir.graph import Activation
from neon8.quant import elementary

Compute = Callable[..., DoubleArray]
"""Computes a function of its arguments and its parameters."""

MAX_SIZE = 32
"""Nodes of a tree. Exporters' longest pattern, Gelu with tanh, has less than 20; a file
could double a tree with each operator, and would soon have one beyond all memory."""


ARGUMENTS = {
    "x": 0,  # the value itself
    "constant": 0,  # its parameter
    "add": 2,
    "subtract": 2,
    "multiply": 2,
    "divide": 2,
    "absolute": 1,
    "exp": 1,
    "log": 1,
    "sqrt": 1,
    "power": 1,  # to its parameter
    "erf": 1,
    "sigmoid": 1,
    "tanh": 1,
    "softplus": 1,  # ln(1 + e^x)
    "elu": 1,  # x < 0 ? parameter * (e^x - 1) : x
    "leaky": 1,  # x < 0 ? parameter * x : x
    "clip": 1,  # min(max(x, first parameter), second)
    "threshold": 1,  # x > parameter ? x : 0
    "floor": 1,
    "ceil": 1,
    "round": 1,  # half to even
    "sine": 1,
    "arctangent": 1,
    "narrow": 1,  # to as many bits, least exponent: the parameters
}
"""Name -> how many arguments it has."""


FUNCTIONS = (
    *("none", "x", "constant", "add", "subtract", "multiply", "divide", "absolute"),
    *("exp", "log", "sqrt", "power", "erf", "sigmoid", "tanh", "softplus", "elu"),
    *("leaky", "clip", "threshold", "floor", "ceil", "round"),
    *("minimum", "maximum", "prelu", "equal", "less", "less_equal", "remainder"),
    *("modulo", "and", "or", "xor", "shift_left", "shift_right", "sine", "arctangent"),
    "narrow",
)
"""enum n8_function, by number."""


MOST_FUNCTIONS = 64


@dataclass(frozen=True, slots=True)
class Function:
    """`name`, of FUNCTIONS, of what the arguments compute.  size: nodes of the tree."""

    name: str
    arguments: tuple["Function", ...] = ()
    parameters: tuple[float, ...] = ()
    size: int = 1

    def of(self, inner: "Function") -> "Function":
        """This function of `inner`(x)."""
        if self.name == "x":
            return inner
        arguments = tuple(argument.of(inner) for argument in self.arguments)
        return call(self.name, *arguments, parameters=self.parameters)


def call(
    name: str, *arguments: Function, parameters: tuple[float, ...] = ()
) -> Function:
    """A tree with `name` at its root."""
    size = 1 + sum(argument.size for argument in arguments)
    return Function(name, arguments, parameters, size)


X = Function("x")


def number(value: float) -> Function:
    """The same value everywhere."""
    return Function("constant", parameters=(value,))


def affine(factor: float, shift: float, x: Function = X) -> Function:
    """factor * x + shift, as short as it can be."""
    scaled = x if factor == 1 else call("multiply", x, number(factor))
    return scaled if shift == 0 else call("add", scaled, number(shift))


def gated(gate: Function) -> Function:
    """x * gate(x): SiLU, HardSwish, Mish, Gelu."""
    return call("multiply", X, gate)


def postfix(function: Function) -> list[tuple[str, tuple[float, ...]]]:
    """The names of the tree, arguments first, with their parameters."""
    inner = [each for argument in function.arguments for each in postfix(argument)]
    return [*inner, (function.name, function.parameters)]


def activation_function(activation: Activation) -> Function:
    """The activation as a function of one value."""
    form = X
    if activation.slope != 1:
        form = call("leaky", form, parameters=(activation.slope,))
    if (activation.lo, activation.hi) != (-np.inf, np.inf):
        form = call("clip", form, parameters=(activation.lo, activation.hi))
    return form


LARGEST_EXPONENT = 64
"""The largest whole exponent that is computed by multiplication."""


def evaluate(
    function: Function, x: DoubleArray, table: Mapping[str, Compute] | None = None
) -> DoubleArray:
    """`function` of each x.  NaN where it is not defined, as of a negative root.

    table: what computes the functions by their names, COMPUTE unless given.
    """
    with np.errstate(all="ignore"):
        return _evaluate(function, x, table or COMPUTE)


def _evaluate(
    function: Function, x: DoubleArray, table: Mapping[str, Compute]
) -> DoubleArray:
    if function.name == "x":
        return x
    arguments = [_evaluate(argument, x, table) for argument in function.arguments]
    if function.name == "constant":
        return np.full_like(x, function.parameters[0])
    return table[function.name](*arguments, *function.parameters)


def softplus(x: DoubleArray) -> DoubleArray:
    """ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|)."""
    result: DoubleArray = np.maximum(x, 0.0) + elementary.log1p(
        elementary.exp(-np.abs(x))
    )
    return result


def elu(x: DoubleArray, alpha: float) -> DoubleArray:
    """x < 0 ? alpha * (e^x - 1) : x."""
    return np.where(x < 0, alpha * elementary.expm1(np.minimum(x, 0.0)), x)


def leaky(x: DoubleArray, slope: float) -> DoubleArray:
    """x < 0 ? slope * x : x."""
    return np.where(x < 0, x * slope, x)


def clip(x: DoubleArray, lo: float, hi: float) -> DoubleArray:
    """min(max(x, lo), hi)."""
    result: DoubleArray = np.minimum(np.maximum(x, lo), hi)
    return result


def threshold(x: DoubleArray, limit: float) -> DoubleArray:
    """x > limit ? x : 0."""
    return np.where(x > limit, x, 0.0)


def power(x: DoubleArray, exponent: float | DoubleArray) -> DoubleArray:
    """x to the power: by multiplication, by roots, else e^(exponent * ln x).

    Of a negative x only whole powers are defined.
    """
    x, size = np.broadcast_arrays(x, np.abs(exponent))
    whole = (size == np.rint(size)) & (size <= LARGEST_EXPONENT)
    result = np.ones_like(x)
    for done in range(int(size[whole].max(initial=0))):
        result = np.where(whole & (done < size), result * x, result)
    result = np.where(size == 0.5, np.sqrt(x), result)
    rest = ~whole & (size != 0.5)
    result[rest] = elementary.exp(size[rest] * elementary.log(x[rest]))
    return np.where(np.less(exponent, 0), 1.0 / result, result)


def narrow(x: DoubleArray, bits: float, least: float) -> DoubleArray:
    """The nearest, half to even, with `bits` in its significand.

    least: the exponent from which on there are fewer.
    """
    exponent = np.maximum(np.frexp(x)[1] - 1, int(least)) + 1 - int(bits)
    result = np.ldexp(np.rint(np.ldexp(x, -exponent)), exponent)
    return np.where(np.isfinite(x), result, x)


NARROW = {
    "bfloat16": (8, -126, 255 * 2.0**120, True),
    "float8_e4m3fn": (4, -6, 448.0, False),
    "float8_e4m3fnuz": (4, -7, 240.0, False),
    "float8_e5m2": (3, -14, 57344.0, True),
    "float8_e5m2fnuz": (3, -15, 57344.0, False),
    "float4_e2m1fn": (2, 0, 6.0, False),
}
"""For each type the bits of a significand, the least exponent of one with all, the
largest value, and whether it has infinity beyond.
"""


def narrowed(kind: str, *, saturates: bool) -> Function | None:
    """Rounding to a type, None where that is as float32 or more.

    What is too large becomes the largest value, or else infinity, or NaN.
    """
    if kind not in NARROW:
        return None
    bits, least, largest, infinite = NARROW[kind]
    saturates = saturates and kind != "bfloat16"
    value = call("narrow", X, parameters=(bits, least))
    if saturates or kind == "float4_e2m1fn":
        value = call("clip", value, parameters=(-largest, largest))
        if kind == "float4_e2m1fn":  # which has no NaN
            value = call("threshold", value, parameters=(-2 * largest,))
    else:
        beyond = call("threshold", call("absolute", value), parameters=(largest,))
        size = call("exp", call("multiply", beyond, number(1e38)))  # 1, or infinity
        value = call("multiply", value, size)
        if not infinite:
            value = call("add", value, call("subtract", size, size))
    return call("add", value, number(0.0)) if kind.endswith("uz") else value


COMPUTE: dict[str, Compute] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "absolute": np.abs,
    "exp": elementary.exp,
    "log": elementary.log,
    "sqrt": np.sqrt,
    "power": power,
    "erf": elementary.erf,
    "sigmoid": elementary.sigmoid,
    "tanh": elementary.tanh,
    "softplus": softplus,
    "elu": elu,
    "leaky": leaky,
    "clip": clip,
    "threshold": threshold,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "sine": elementary.sine,
    "arctangent": elementary.arctangent,
    "narrow": narrow,
}
"""Name of a function -> what computes it from its arguments and its parameters."""
