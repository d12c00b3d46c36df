# SPDX-License-Identifier: Apache-2.0
"""Functions of one real value, as trees of a few named ones: what a table computes.

What the names mean stands in the table FUNCTIONS; neon8.quant.functions computes them.
"""

from dataclasses import dataclass

MAX_SIZE = 32
"""Nodes of a tree. Exporters' longest pattern, Gelu with tanh, has less than 20; a file
could double a tree with each operator, and would soon have one beyond all memory."""

FUNCTIONS = {
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
}
"""Name -> how many arguments it has."""


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
