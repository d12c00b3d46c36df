# SPDX-License-Identifier: Apache-2.0
"""Functions of single values as the ONNX operators that compute them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from neon8.errors import CompileError
from neon8.operators.functions import Function, X, affine, call, gated
from neon8.operators.qdq import Nodes

NEGATIVE = affine(-1.0, 0.0)


HARD_SWISH = gated(call("clip", affine(1 / 6, 0.5), parameters=(0.0, 1.0)))
"""x min(max(x / 6 + 1/2, 0), 1)."""


CUBE = affine(0.044715, 0.0, call("power", X, parameters=(3.0,)))


GELU = {
    "none": call("erf", affine(math.sqrt(0.5), 0.0)),
    "tanh": call("tanh", affine(math.sqrt(2 / math.pi), 0.0, call("add", X, CUBE))),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """An operator of ONNX, since `opset`, and what it computes."""

    operator: str
    opset: int
    function: Function
    attributes: Mapping[str, str] = field(default_factory=dict)


FORMS = (
    Form(operator="Neg", opset=6, function=NEGATIVE),
    Form(operator="HardSwish", opset=14, function=HARD_SWISH),
    *(
        Form(
            operator="Gelu",
            opset=20,
            function=gated(affine(0.5, 0.5, bell)),
            attributes={"approximate": kind},
        )
        for kind, bell in GELU.items()
    ),
)
"""For which several operators could not stand: a product and a sum are a convolution
where they are read, and constants that are no float32 would be others.
"""


ONNX_NAMES = {
    "add": "Add",
    "subtract": "Sub",
    "multiply": "Mul",
    "divide": "Div",
    "minimum": "Min",
    "maximum": "Max",
    "prelu": "PRelu",
    "absolute": "Abs",
    "exp": "Exp",
    "log": "Log",
    "sqrt": "Sqrt",
    "erf": "Erf",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "softplus": "Softplus",
    "floor": "Floor",
    "ceil": "Ceil",
    "round": "Round",
    "sine": "Sin",
    "arctangent": "Atan",
}
"""Functions that have no parameter."""


WITH_ALPHA = {"elu": "Elu", "leaky": "LeakyRelu", "threshold": "ThresholdedRelu"}


def append_function(n: Nodes, function: Function, value: str, layer: str) -> str:
    """The nodes that compute `function` of `value`; the name of the result."""
    if function.name == "x":
        return value
    found = _form_of(function)
    if found is not None:
        form, inner = found
        taken = append_function(n, inner, value, layer)
        return n.node(form.operator, [taken], name=layer, **form.attributes)
    hard = _hard_sigmoid(function)
    if hard is not None:
        alpha, beta, inner = hard
        taken = append_function(n, inner, value, layer)
        return n.node("HardSigmoid", [taken], name=layer, alpha=alpha, beta=beta)
    if function.name == "constant":
        return _constant(n, function.parameters[0], layer)
    arguments = [append_function(n, each, value, layer) for each in function.arguments]
    return append_call(n, function.name, function.parameters, arguments, layer)


def append_call(
    n: Nodes,
    name: str,
    parameters: tuple[float, ...],
    arguments: list[str],
    layer: str,
) -> str:
    """The node that computes the function called `name` of what has been computed."""
    if name in ONNX_NAMES:
        return n.node(ONNX_NAMES[name], arguments, name=layer)
    if name in WITH_ALPHA:
        alpha = float(parameters[0])
        return n.node(WITH_ALPHA[name], arguments, name=layer, alpha=alpha)
    if name in ("modulo", "remainder"):
        return n.node("Mod", arguments, name=layer, fmod=int(name == "remainder"))
    values = [_constant(n, parameter, layer) for parameter in parameters]
    operator = {"power": "Pow", "clip": "Clip"}.get(name)
    if operator is None:
        raise CompileError(f"layer {layer!r}: function {name} has no ONNX operator")
    return n.node(operator, [*arguments, *values], name=layer)


def function_opset(function: Function, least: int) -> int:
    """The first opset, from `least` on, that has all operators of append()."""
    found = _form_of(function)
    if found is not None:
        form, inner = found
        return function_opset(inner, max(least, form.opset))
    return max(
        (function_opset(each, least) for each in function.arguments), default=least
    )


def _constant(n: Nodes, value: float, layer: str) -> str:
    return n.array(f"{layer}_constant", np.array(value, np.float32))


def _form_of(function: Function) -> tuple[Form, Function] | None:
    """The operator that `function` is as a whole, and what it is of."""
    for form in FORMS:
        inner = _argument(form.function, function)
        if inner is not None:
            return form, inner
    return None


def _hard_sigmoid(function: Function) -> tuple[float, float, Function] | None:
    """alpha, beta and x of min(max(alpha x + beta, 0), 1)."""
    if (function.name, function.parameters) != ("clip", (0.0, 1.0)):
        return None
    (x,) = function.arguments
    beta, x = _constant_of(x, "add", 0.0)
    alpha, x = _constant_of(x, "multiply", 1.0)
    return None if (alpha, beta) == (1.0, 0.0) else (alpha, beta, x)


def _constant_of(
    function: Function, name: str, otherwise: float
) -> tuple[float, Function]:
    """What `name` adds to x, or multiplies it by, and x."""
    if function.name == name and function.arguments[1].name == "constant":
        x, constant = function.arguments
        return constant.parameters[0], x
    return otherwise, function


def _argument(form: Function, function: Function) -> Function | None:
    """What has to stand for x in `form` so that it is `function`; None: nothing."""
    if form.name == "x":
        return function
    if (form.name, form.parameters) != (function.name, function.parameters):
        return None
    found = None
    for ours, theirs in zip(form.arguments, function.arguments, strict=True):
        if ours == theirs and "x" not in _names(ours):
            continue
        inner = _argument(ours, theirs)
        if inner is None or (found is not None and inner != found):
            return None
        found = inner
    return found


def _names(function: Function) -> set[str]:
    inner = (name for each in function.arguments for name in _names(each))
    return {function.name, *inner}
