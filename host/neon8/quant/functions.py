# SPDX-License-Identifier: Apache-2.0
"""Functions of one value in double, by (15): the same bits on every machine."""

from collections.abc import Callable

import numpy as np

from neon8.graph.functions import Function
from neon8.quant import elementary
from neon8.quant.elementary import Doubles

LARGEST_EXPONENT = 64
"""The largest whole exponent that is computed by multiplication."""


def evaluate(function: Function, x: Doubles) -> Doubles:
    """`function` of each x.  NaN where it is not defined, as of a negative root."""
    with np.errstate(all="ignore"):
        return _evaluate(function, x)


def _evaluate(function: Function, x: Doubles) -> Doubles:
    if function.name == "x":
        return x
    arguments = [_evaluate(argument, x) for argument in function.arguments]
    if function.name == "constant":
        return np.full_like(x, function.parameters[0])
    return COMPUTE[function.name](*arguments, *function.parameters)


def softplus(x: Doubles) -> Doubles:
    """ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|)."""
    result: Doubles = np.maximum(x, 0.0) + elementary.log1p(elementary.exp(-np.abs(x)))
    return result


def elu(x: Doubles, alpha: float) -> Doubles:
    """x < 0 ? alpha * (e^x - 1) : x."""
    return np.where(x < 0, alpha * elementary.expm1(np.minimum(x, 0.0)), x)


def leaky(x: Doubles, slope: float) -> Doubles:
    """x < 0 ? slope * x : x."""
    return np.where(x < 0, x * slope, x)


def clip(x: Doubles, lo: float, hi: float) -> Doubles:
    """min(max(x, lo), hi)."""
    result: Doubles = np.minimum(np.maximum(x, lo), hi)
    return result


def threshold(x: Doubles, limit: float) -> Doubles:
    """x > limit ? x : 0."""
    return np.where(x > limit, x, 0.0)


def power(x: Doubles, exponent: float) -> Doubles:
    """x to the power: by multiplication, by roots, else e^(exponent * ln x).

    Of a negative x only whole powers are defined.
    """
    size = abs(exponent)
    if size == np.rint(size) and size <= LARGEST_EXPONENT:
        result = np.ones_like(x)
        for _ in range(int(size)):
            result = result * x
    elif size == 0.5:
        result = np.sqrt(x)
    else:
        result = elementary.exp(size * elementary.log(x))
    return 1.0 / result if exponent < 0 else result


COMPUTE: dict[str, Callable[..., Doubles]] = {
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
}
"""Name of a function -> what computes it from its arguments and its parameters."""
