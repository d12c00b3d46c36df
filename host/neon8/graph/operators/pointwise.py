# SPDX-License-Identifier: Apache-2.0
"""Functions of single values, from Sigmoid to Gelu, which int8 computes by tables.

A pattern that stands for one of them, like the Sigmoid and the Mul of SiLU, comes
together in the pass compose_pointwise.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from neon8.graph.functions import Function, X, affine, call, gated, number
from neon8.graph.graph import Node, Pointwise
from neon8.graph.source import (
    Convert,
    OnnxNode,
    Source,
    constant,
    failure,
    real,
    shape_of,
    text,
)

SELU_ALPHA = 1.67326319217681884765625
SELU_GAMMA = 1.05070102214813232421875


def make_pointwise(
    source: Source, node: OnnxNode, function: Function, *, data: int = 0
) -> Node:
    """The node that computes `function` of input number `data`."""
    shape_of(source, node, node.inputs[data])
    parameters = _parameters(function)
    if not all(math.isfinite(value) for value in parameters):
        raise failure(source, node, "a parameter is not finite")
    return Pointwise(
        name=node.name,
        inputs=(node.inputs[data],),
        output=node.outputs[0],
        function=function,
    )


def _parameters(function: Function) -> list[float]:
    inner = [value for one in function.arguments for value in _parameters(one)]
    return [*function.parameters, *inner]


def _of(function: Callable[[OnnxNode], Function]) -> Convert:
    """The import of an operator whose attributes say all."""

    def convert(source: Source, node: OnnxNode) -> Node:
        return make_pointwise(source, node, function(node))

    return convert


def _plain(name: str) -> Convert:
    """The import of an operator without attributes."""
    return _of(lambda _node: call(name, X))


def hard_sigmoid(node: OnnxNode) -> Function:
    """min(max(alpha x + beta, 0), 1)."""
    alpha, beta = real(node, "alpha", 0.2), real(node, "beta", 0.5)
    return call("clip", affine(alpha, beta), parameters=(0.0, 1.0))


NEGATIVE = affine(-1.0, 0.0)
HARD_SWISH = gated(call("clip", affine(1 / 6, 0.5), parameters=(0.0, 1.0)))
"""x min(max(x / 6 + 1/2, 0), 1)."""


def elu(node: OnnxNode) -> Function:
    """x < 0 ? alpha (e^x - 1) : x."""
    return call("elu", X, parameters=(real(node, "alpha", 1.0),))


def selu(node: OnnxNode) -> Function:
    """Elu times gamma."""
    alpha, gamma = real(node, "alpha", SELU_ALPHA), real(node, "gamma", SELU_GAMMA)
    return affine(gamma, 0.0, call("elu", X, parameters=(alpha,)))


def celu(source: Source, node: OnnxNode) -> Node:
    """alpha Elu(x / alpha)."""
    alpha = real(node, "alpha", 1.0)
    if not alpha > 0:  # the formula of ONNX has this form for no other
        raise failure(source, node, f"alpha {alpha:.4g} is not positive")
    inner = call("divide", X, number(alpha))
    function = affine(alpha, 0.0, call("elu", inner, parameters=(1.0,)))
    return make_pointwise(source, node, function)


def softsign(_node: OnnxNode) -> Function:
    """x / (1 + |x|)."""
    return call("divide", X, call("add", number(1.0), call("absolute", X)))


def thresholded_relu(node: OnnxNode) -> Function:
    """x > alpha ? x : 0."""
    return call("threshold", X, parameters=(real(node, "alpha", 1.0),))


def mish(_node: OnnxNode) -> Function:
    """x tanh(ln(1 + e^x))."""
    return gated(call("tanh", call("softplus", X)))


def swish(node: OnnxNode) -> Function:
    """x sigmoid(alpha x); SiLU is alpha = 1."""
    return gated(call("sigmoid", affine(real(node, "alpha", 1.0), 0.0)))


def gelu(source: Source, node: OnnxNode) -> Node:
    """x / 2 (1 + erf(x / sqrt 2)), or its approximation by tanh."""
    kind = text(node, "approximate", "none")
    if kind not in GELU:
        raise failure(source, node, f"approximate {kind!r} is unknown")
    return make_pointwise(source, node, gated(affine(0.5, 0.5, GELU[kind])))


CUBE = affine(0.044715, 0.0, call("power", X, parameters=(3.0,)))
GELU = {
    "none": call("erf", affine(math.sqrt(0.5), 0.0)),
    "tanh": call("tanh", affine(math.sqrt(2 / math.pi), 0.0, call("add", X, CUBE))),
}


def power(source: Source, node: OnnxNode) -> Node:
    """Pow with one constant exponent."""
    exponent = constant(source, node, 1)
    if exponent is None or exponent.size != 1:
        raise failure(source, node, f"exponent {node.inputs[1]!r} is not one constant")
    value = float(exponent.reshape(-1)[0])
    return make_pointwise(source, node, call("power", X, parameters=(value,)))


OPERATORS: dict[str, Convert] = {
    "Abs": _plain("absolute"),
    "Ceil": _plain("ceil"),
    "Celu": celu,
    "Elu": _of(elu),
    "Erf": _plain("erf"),
    "Exp": _plain("exp"),
    "Floor": _plain("floor"),
    "Gelu": gelu,
    "HardSigmoid": _of(hard_sigmoid),
    "HardSwish": _of(lambda _node: HARD_SWISH),
    "Log": _plain("log"),
    "Mish": _of(mish),
    "Neg": _of(lambda _node: NEGATIVE),
    "Pow": power,
    "Reciprocal": _of(lambda _node: call("divide", number(1.0), X)),
    "Round": _plain("round"),
    "Selu": _of(selu),
    "Sigmoid": _plain("sigmoid"),
    "Softplus": _plain("softplus"),
    "Softsign": _of(softsign),
    "Sqrt": _plain("sqrt"),
    "Swish": _of(swish),
    "Tanh": _plain("tanh"),
    "ThresholdedRelu": _of(thresholded_relu),
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
