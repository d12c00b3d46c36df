# SPDX-License-Identifier: Apache-2.0
"""Functions of single values, from Sigmoid to Gelu, which int8 computes by tables.

A pattern that stands for one of them, like the Sigmoid and the Mul of SiLU, comes
together in the pass compose_pointwise.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from neon8.arrays import Array, DoubleArray, Int8Array, Int32Array
from neon8.errors import CompileError
from neon8.ir.graph import Factors, Graph, Node, listed
from neon8.ir.program import Op, Tensor
from neon8.operators.build import FLOAT, INT8, INT16, Build
from neon8.operators.convolution import Conv2d
from neon8.operators.factors import (
    append_factors,
    append_product,
    inverse,
    narrow,
    plain,
    write_factors,
)
from neon8.operators.family import Family
from neon8.operators.floats import append_unary
from neon8.operators.functions import (
    Function,
    X,
    activation_function,
    affine,
    call,
    evaluate,
    gated,
    number,
)
from neon8.operators.interpolation import InterpolateOp, compute_interpolate, lines_of
from neon8.operators.layout import by_value
from neon8.operators.onnx_functions import (
    GELU,
    HARD_SWISH,
    NEGATIVE,
    append_function,
    function_opset,
)
from neon8.operators.qdq import Nodes
from neon8.operators.reference import Operand
from neon8.operators.scales import quantized
from neon8.operators.source import Convert, OnnxNode, Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointwise(Node):
    """y = function(x), value by value.

    factors_in, factors_out: of the channels of x and of y, (C,) each or none  (5c).
    """

    function: Function
    factors_in: Factors = ()
    factors_out: Factors = ()

    follows = True
    by_value = True
    wants_table = True

    def absorbs_factors(self, graph: Graph) -> bool:
        """True."""
        return True

    def with_factors(
        self, read: Sequence[DoubleArray | None], made: DoubleArray | None
    ) -> Node:
        """With tables for them."""
        return replace(self, factors_in=listed(read[0]), factors_out=listed(made))


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOp(Op):
    """table[q + 128]  (8).  table: (256,) int8.

    indices: (C,), of each channel its table, and table: (T, 256); or None. The first of
    them is 0, and each is at most 1 more than all before it.
    """

    indices: Int32Array | None = None
    table: Int8Array


MOST_TABLES = 256
"""A limit for one step."""


SELU_ALPHA = 1.67326319217681884765625


SELU_GAMMA = 1.05070102214813232421875


def function_of(node: Node) -> Function | None:
    """The function of one tensor that a node computes, None if it is no such node."""
    if isinstance(node, Pointwise):
        return node.function
    if node.only_activates:
        return activation_function(node.activation)
    if isinstance(node, Conv2d) and node.uniform:
        return affine(float(node.weight.flat[0]), float(node.bias[0]))
    return None


def make_pointwise(
    source: Source, node: OnnxNode, function: Function, *, data: int = 0
) -> Node:
    """The node that computes `function` of input number `data`."""
    source.shape_of(node, node.inputs[data])
    parameters = _parameters(function)
    if not all(math.isfinite(value) for value in parameters):
        raise source.failure(node, "a parameter is not finite")
    return node.made(Pointwise, data=data, function=function)


def _parameters(function: Function) -> list[float]:
    inner = [value for one in function.arguments for value in _parameters(one)]
    return [*function.parameters, *inner]


def _of(function: Callable[[OnnxNode], Function]) -> Convert:
    """The import of an operator whose attributes say all."""

    def convert(source: Source, node: OnnxNode) -> Node:
        return make_pointwise(source, node, function(node))

    return convert


def _always(function: Function) -> Convert:
    """The import of an operator without attributes."""
    return _of(lambda _node: function)


def hard_sigmoid(node: OnnxNode) -> Function:
    """min(max(alpha x + beta, 0), 1)."""
    alpha, beta = node.real("alpha", 0.2), node.real("beta", 0.5)
    return call("clip", affine(alpha, beta), parameters=(0.0, 1.0))


def import_elu(node: OnnxNode) -> Function:
    """x < 0 ? alpha (e^x - 1) : x."""
    return call("elu", X, parameters=(node.real("alpha", 1.0),))


def selu(node: OnnxNode) -> Function:
    """Elu times gamma."""
    alpha, gamma = node.real("alpha", SELU_ALPHA), node.real("gamma", SELU_GAMMA)
    return affine(gamma, 0.0, call("elu", X, parameters=(alpha,)))


def celu(source: Source, node: OnnxNode) -> Node:
    """alpha Elu(x / alpha)."""
    alpha = node.real("alpha", 1.0)
    if not alpha > 0:  # the formula of ONNX has this form for no other
        raise source.failure(node, f"alpha {alpha:.4g} is not positive")
    inner = call("divide", X, number(alpha))
    function = affine(alpha, 0.0, call("elu", inner, parameters=(1.0,)))
    return make_pointwise(source, node, function)


def thresholded_relu(node: OnnxNode) -> Function:
    """x > alpha ? x : 0."""
    return call("threshold", X, parameters=(node.real("alpha", 1.0),))


def swish(node: OnnxNode) -> Function:
    """x sigmoid(alpha x); SiLU is alpha = 1."""
    return gated(call("sigmoid", affine(node.real("alpha", 1.0), 0.0)))


def gelu(source: Source, node: OnnxNode) -> Node:
    """x / 2 (1 + erf(x / sqrt 2)), or its approximation by tanh."""
    kind = node.text("approximate", "none")
    if kind not in GELU:
        raise source.failure(node, f"approximate {kind!r} is unknown")
    return make_pointwise(source, node, gated(affine(0.5, 0.5, GELU[kind])))


SQUARE = call("power", X, parameters=(2.0,))
LARGE = 3e38
SIGN = call("clip", affine(LARGE, 0.0, affine(LARGE, 0.0)), parameters=(-1.0, 1.0))
"""x times so much that it is beyond 1 if it is not 0."""


ROOT = call("sqrt", affine(-1.0, 1.0, SQUARE))
"""sqrt(1 - x^2)."""
COSINE = affine(
    -2.0, 1.0, call("power", call("sine", affine(0.5, 0.0)), parameters=(2.0,))
)
"""1 - 2 sin^2(x / 2): constants that float32 has."""
SHARE = call("divide", affine(-1.0, 1.0), affine(1.0, 1.0))
"""(1 - x) / (1 + x)."""
SIZE = call("add", call("absolute", X), call("sqrt", affine(1.0, 1.0, SQUARE)))
"""|x| + sqrt(x^2 + 1)."""


def exponentials(first: float, second: float) -> Function:
    """first e^x + second e^-x."""
    powers = call("exp", X), call("exp", affine(-1.0, 0.0))
    return call("add", affine(first, 0.0, powers[0]), affine(second, 0.0, powers[1]))


def shrink(source: Source, node: OnnxNode) -> Node:
    """x nearer to 0 by `bias`, and 0 within `lambd` of it."""
    limit, bias = node.real("lambd", 0.5), node.real("bias", 0.0)
    if limit < 0:
        raise source.failure(node, f"lambd is {limit}, below 0")
    above, below = (
        call("threshold", x, parameters=(limit,)) for x in (X, affine(-1.0, 0.0))
    )
    far = call("subtract", above, below)
    shift = affine(bias, 0.0, SIGN.of(far))
    return node.made(Pointwise, function=call("subtract", far, shift) if bias else far)


def to_the_power(source: Source, node: OnnxNode, value: float) -> Node:
    """Pow with one constant exponent."""
    return make_pointwise(source, node, call("power", X, parameters=(value,)))


def lower_pointwise(b: Build, node: Pointwise) -> None:
    """(8), or (26) where that comes near enough, of int16."""
    if INT16 in map(b.own_type, (node.inputs[0], node.output)) and lower_lines(b, node):
        return
    source = b.int8(node.inputs[0])
    out = b.declare(node.output, INT8)
    tables, indices = tables_of(node, source, out)
    if len(tables) > MOST_TABLES:
        text = f"needs {len(tables)} tables, of at most {MOST_TABLES}"
        raise CompileError(
            f"layer {node.name!r}: {text}; give more channels the same factors"
        )
    if len(tables) == 1:
        b.step(TableOp, node.name, (source,), out, table=tables[0])
    else:
        b.step(TableOp, node.name, (source,), out, indices=indices, table=tables)


def lower_lines(b: Build, node: Pointwise) -> bool:
    """(26) where that comes near enough, between products with the factors.

    Lines for each pair of factors would be large, and slow of few channels.
    """
    if not (narrow(node.factors_in) and narrow(node.factors_out)):
        return False
    source, out = b.own(node.inputs[0]), quantized(b.graph, b.table, node.output)
    given, made = plain(source, node.factors_in), plain(out, node.factors_out)
    found = lines_of(node.function, given, made)
    if found is None:
        return False
    if node.factors_in:
        given = b.temporary(given, "plain")
        append_product(b, node.name, node.factors_in, source, given)
    out = b.result(node.output)
    made = b.temporary(made, "plain") if node.factors_out else out
    fields = {"lines": found.lines, "groups": found.groups}
    b.step(InterpolateOp, node.name, (given,), made, **fields)
    if node.factors_out:
        append_product(b, node.name, inverse(node.factors_out), made, out)
    return True


def tables_of(
    node: Pointwise, source: Tensor, out: Tensor
) -> tuple[Int8Array, Int32Array]:
    """The tables of a node, (T, 256), and of each channel which one, (C,)."""
    count = max(len(node.factors_in), len(node.factors_out), 1)
    ones = (1.0,) * count
    both = node.factors_in or ones, node.factors_out or ones
    pairs = list(zip(*both, strict=True))
    made = {
        pair: table_of(node.function, source, out, *pair).tobytes()
        for pair in dict.fromkeys(pairs)
    }
    numbers = {table: at for at, table in enumerate(dict.fromkeys(made.values()))}
    tables = np.stack([np.frombuffer(table, np.int8) for table in numbers])
    return tables, np.array([numbers[made[pair]] for pair in pairs], np.int32)


def table_of(
    function: Function,
    source: Tensor,
    out: Tensor,
    factor_in: float = 1.0,
    factor_out: float = 1.0,
) -> Int8Array:
    """What each byte of `source` becomes in `out`, -128 first; (256,).

    factor_in, factor_out: those of the channel.
    """
    levels = np.arange(-128, 128, dtype=np.float64) - source.zero_point
    real = evaluate(function, np.float64(source.scale) * factor_in * levels)
    with np.errstate(over="ignore"):
        scale = np.float64(out.scale) * factor_out
        q = np.rint(np.where(np.isnan(real), 0.0, real) / scale)
    table: Int8Array = np.clip(q + out.zero_point, out.lo, out.hi).astype(np.int8)
    return table


def lower_pointwise_float(b: Build, node: Pointwise) -> None:
    """(22), between products with the factors."""
    source = b.float32(node.inputs[0])
    out = b.declare(node.output, FLOAT)
    if node.factors_in:
        source = append_factors(b, node.name, node.factors_in, source)
    made = b.temporary(out, "real") if node.factors_out else out
    append_unary(b, node.name, node.function, source, made)
    if node.factors_out:
        append_factors(b, node.name, inverse(node.factors_out), made, out)


def compute_table(op: TableOp, _out: Tensor, x: Operand) -> Array:
    """(8)."""
    at = x.values.astype(np.int64) + 128
    if op.indices is None:
        return op.table[at]
    return op.table[op.indices.astype(np.int64)[None, :, None, None], at]


def table_function(layer: Node) -> Function:
    """What a table of `layer` computes; around a pool of the least, the negative."""
    return layer.function if isinstance(layer, Pointwise) else NEGATIVE


def table_opset(_op: Op, layer: Node) -> int:
    """What the operators of its function need."""
    return function_opset(table_function(layer), 0)


def write_table(n: Nodes, op: TableOp | InterpolateOp) -> None:
    """The operators of its function, between products with the factors."""
    layer = n.layers[op.name]
    given, made = (
        (layer.factors_in, layer.factors_out)
        if isinstance(layer, Pointwise)
        else ((), ())
    )
    value = write_factors(n, n.real(op.inputs[0]), given, op)
    value = append_function(n, table_function(layer), value, op.name)
    n.finish(write_factors(n, value, inverse(made), op), op.output)


IMPORTS: dict[str, Convert] = {
    "Abs": _always(call("absolute", X)),
    "Acos": _always(affine(2.0, 0.0, call("arctangent", call("sqrt", SHARE)))),
    "Acosh": _always(
        call("log", call("add", X, call("sqrt", affine(1.0, -1.0, SQUARE))))
    ),
    "Asin": _always(call("arctangent", call("divide", X, ROOT))),
    "Asinh": _always(call("multiply", SIGN, call("log", SIZE))),
    "Atan": _always(call("arctangent", X)),
    "Atanh": _always(
        affine(
            0.5, 0.0, call("log", call("divide", affine(1.0, 1.0), affine(-1.0, 1.0)))
        )
    ),
    "Ceil": _always(call("ceil", X)),
    "Celu": celu,
    "Cos": _always(COSINE),
    "Cosh": _always(exponentials(0.5, 0.5)),
    "Elu": _of(import_elu),
    "Erf": _always(call("erf", X)),
    "Exp": _always(call("exp", X)),
    "Floor": _always(call("floor", X)),
    "Gelu": gelu,
    "HardSigmoid": _of(hard_sigmoid),
    "HardSwish": _always(HARD_SWISH),
    "Log": _always(call("log", X)),
    "Mish": _always(gated(call("tanh", call("softplus", X)))),
    "Neg": _always(NEGATIVE),
    "Reciprocal": _always(call("divide", number(1.0), X)),
    "Round": _always(call("round", X)),
    "Selu": _of(selu),
    "Sigmoid": _always(call("sigmoid", X)),
    "Shrink": shrink,
    "Sign": _always(SIGN),
    "Sin": _always(call("sine", X)),
    "Sinh": _always(exponentials(0.5, -0.5)),
    "Softplus": _always(call("softplus", X)),
    "Softsign": _always(
        call("divide", X, call("add", number(1.0), call("absolute", X)))
    ),
    "Sqrt": _always(call("sqrt", X)),
    "Swish": _of(swish),
    "Tanh": _always(call("tanh", X)),
    "ThresholdedRelu": _of(thresholded_relu),
}

FAMILY = Family(
    imports=IMPORTS,
    lower={Pointwise: lower_pointwise},
    lower_float={Pointwise: lower_pointwise_float},
    steps={TableOp: compute_table, InterpolateOp: compute_interpolate},
    qdq=dict.fromkeys((TableOp, InterpolateOp), write_table),
    opsets=dict.fromkeys((TableOp, InterpolateOp), table_opset),
    layouts=dict.fromkeys(IMPORTS, by_value),
)
