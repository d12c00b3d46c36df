# SPDX-License-Identifier: Apache-2.0
"""A Graph in numpy, in double, as plainly as possible: what the importer must mean."""

import functools
import itertools
import math

import numpy as np

from neon8.ir.graph import Activated, aligned
from neon8.operators.activation import Activate, Prelu
from neon8.operators.arithmetic import (
    Add,
    Binary,
    Divide,
    Maximum,
    Minimum,
    Multiply,
    Subtract,
    Sum,
    WithConstant,
)
from neon8.operators.convolution import Conv2d
from neon8.operators.movement import Concat, Permute, Reshape
from neon8.operators.normalization import InstanceNorm, Lrn, Softmax
from neon8.operators.pointwise import Pointwise
from neon8.operators.pooling import Pool
from neon8.operators.recurrent import GateFunction, LastState, Recurrent
from neon8.operators.resize import ResizeLinear
from neon8.operators.selection import Gather


def run(graph, inputs):
    """All tensors of `graph` by name, in the shapes that ONNX has.

    inputs: by name.
    """
    values = {
        name: np.asarray(value, np.float64).reshape(graph.tensors[name].shape)
        for name, value in inputs.items()
    }
    for node in graph.nodes:
        arguments = [values[name] for name in node.inputs]
        shape = graph.tensors[node.output].shape
        if isinstance(node, Binary | Maximum | Minimum):
            rank = graph.tensors[node.output].rank
            arguments = [
                value.reshape(aligned(graph.tensors[name].dims, rank))
                for name, value in zip(node.inputs, arguments, strict=True)
            ]
        if type(node) in BY_DIMS:
            result = BY_DIMS[type(node)](graph, node, values)
        else:
            result = EXECUTE[type(node)](node, arguments, shape)
        if isinstance(node, Activated):
            result = activate(node.activation, result)
        if isinstance(node, Pool):
            result = result.reshape(shape)  # without an axis that was reduced
        assert result.shape == shape, (node.name, result.shape, shape)
        values[node.output] = result
    return {
        name: value.reshape(graph.tensors[name].dims) for name, value in values.items()
    }


def activate(activation, x):
    x = np.where(x < 0, x * activation.slope, x)
    return np.minimum(np.maximum(x, activation.lo), activation.hi)


def taps(node, kernel, x, shape, fill):
    """For each tap of the window, what it sees at every output: (N, C, H, W) each."""
    top, left, bottom, right = (max(pad, 0) for pad in node.pads)
    beyond = [
        max(
            (shape[2 + a] - 1) * node.strides[a] + (kernel[a] - 1) * node.dilations[a],
            0,
        )
        for a in (0, 1)
    ]
    far = [
        max(beyond[a] + 1 - x.shape[2 + a] - (top, left)[a], (bottom, right)[a])
        for a in (0, 1)
    ]
    x = np.pad(x, ((0, 0), (0, 0), (top, far[0]), (left, far[1])), constant_values=fill)
    for i, j in itertools.product(range(kernel[0]), range(kernel[1])):
        y, x0 = i * node.dilations[0], j * node.dilations[1]
        yield (
            (i, j),
            x[
                :,
                :,
                y : y + (shape[2] - 1) * node.strides[0] + 1 : node.strides[0],
                x0 : x0 + (shape[3] - 1) * node.strides[1] + 1 : node.strides[1],
            ],
        )


def spread_out(node, x):
    """The image with zeros between its pixels, and cropped where pads are negative."""
    n, c, h, w = x.shape
    rows, columns = node.spread
    wide = np.zeros((n, c, (h - 1) * rows + 1, (w - 1) * columns + 1))
    wide[:, :, ::rows, ::columns] = x
    top, left = (max(-pad, 0) for pad in node.pads[:2])
    return wide[:, :, top:, left:]


def conv2d(node, arguments, shape):
    out = np.zeros(shape) + node.bias[:, np.newaxis, np.newaxis]
    per_out = shape[1] // node.groups
    per_in = node.weight.shape[1]
    kernel = node.weight.shape[2:]
    for (i, j), seen in taps(node, kernel, spread_out(node, arguments[0]), shape, 0.0):
        for g in range(node.groups):
            rows = slice(g * per_out, (g + 1) * per_out)
            out[:, rows] += np.einsum(
                "oi,nihw->nohw",
                node.weight[rows, :, i, j].astype(np.float64),
                seen[:, g * per_in : (g + 1) * per_in],
            )
    return out


def pool(node, arguments, shape):
    x = arguments[0]
    shape = node.windows(x.shape, shape)
    if node.kind in ("max", "min"):
        sign = 1 if node.kind == "max" else -1
        every = [t for _, t in taps(node, node.kernel, sign * x, shape, -np.inf)]
        return sign * np.max(every, axis=0)
    assert node.kind == "average"
    sums = sum(tap for _, tap in taps(node, node.kernel, x, shape, 0.0))
    counted = np.ones_like(x)
    if node.count_pad:
        top, left, bottom, right = node.pads
        counted = np.pad(
            counted, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=1
        )
        node = type(node)(
            name="", inputs=(), output="", kind="average", kernel=node.kernel,
            strides=node.strides, dilations=node.dilations,
        )  # fmt: skip
    return sums / sum(tap for _, tap in taps(node, node.kernel, counted, shape, 0.0))


def softmax(graph, node, values):
    shape = values[node.inputs[0]].shape
    dims = graph.tensors[node.output].dims
    if node.flattens:
        dims = (*dims[: node.axis], -1)
    x = values[node.inputs[0]].reshape(dims)
    d = x - x.max(axis=node.axis, keepdims=True)
    total = np.exp(d).sum(axis=node.axis, keepdims=True)
    return (d - np.log(total) if node.log else np.exp(d) / total).reshape(shape)


def with_constant(graph, node, values):
    """On the dimensions of ONNX, which the constant has."""
    x = values[node.inputs[0]].reshape(graph.tensors[node.inputs[0]].dims)
    pair = (node.constant, x) if node.first else (x, node.constant)
    return FUNCTIONS[node.function](*pair).reshape(graph.tensors[node.output].shape)


def sequence(node, direction, x, h, c):
    """All states of one direction, (T, B, H), and the last cell."""
    gates = {"gru": 3, "lstm": 4, "rnn": 1}[node.kind]
    own = {"gru": "sigmoid tanh", "lstm": "sigmoid tanh tanh", "rnn": "tanh"}
    given = node.functions or [GateFunction(f) for f in own[node.kind].split()]
    f, g, h_of = (*(functools.partial(gate, each) for each in given), None, None)[:3]
    peephole = np.zeros((3, 1)) if node.peepholes is None else node.peepholes[direction]

    def bounded(x):
        return np.clip(x, -node.clip, node.clip)

    w, r = node.weight[direction].T, node.recurrence[direction].T
    of_w, of_r = node.bias[direction].T.astype(np.float64)
    states = []
    for step in x:
        a = np.split(step @ w + of_w, gates, axis=1)
        b = np.split(h @ r + of_r, gates, axis=1)
        if node.kind == "gru":
            update, reset = f(bounded(a[0] + b[0])), f(bounded(a[1] + b[1]))
            inner = reset * b[2]
            if not node.linear_before_reset:
                inner = np.split((reset * h) @ r + of_r, gates, axis=1)[2]
            h = (1 - update) * g(bounded(a[2] + inner)) + update * h
        elif node.kind == "lstm":
            into, out, forget, made = (p + q for p, q in zip(a, b, strict=True))
            before = c
            c = f(bounded(forget + peephole[2] * c)) * c
            c += f(bounded(into + peephole[0] * before)) * g(bounded(made))
            h = f(bounded(out + peephole[1] * c)) * h_of(c)
        else:
            h = f(bounded(a[0] + b[0]))
        states.append(h)
    return np.array(states), c


def gate(function, x):
    """A GateFunction."""
    y = FUNCTIONS[function.name](function.factor * x + function.shift)
    return np.clip(y, function.lo, function.hi)


def everything(graph, node, values):
    """What a Recurrent node may give: the last state, the last cell, all states."""
    x = values[node.inputs[0]].reshape(graph.tensors[node.inputs[0]].dims)
    directions, _, hidden = node.recurrence.shape
    dims = (directions, x.shape[1], hidden)
    given = iter(node.inputs[1:])
    first = [
        values[next(given)].reshape(dims) if value is None else value
        for value in node.initial
    ]
    first += [np.zeros(dims)] * (2 - len(first))
    every, last, cells = [], [], []
    for direction in range(directions):
        back = direction == 1 or node.direction == "reverse"
        order = slice(None, None, -1 if back else 1)
        states, cell = sequence(
            node, direction, x[order], first[0][direction], first[1][direction]
        )
        every.append(states[order])
        last.append(states[-1])
        cells.append(cell)
    return np.array(last), np.array(cells), np.stack(every, axis=1)


def recurrent(graph, node, values):
    made = everything(graph, node, values)[node.gives]
    return made.reshape(graph.tensors[node.output].shape)


def last_state(graph, node, values):
    (layer,) = (each for each in graph.nodes if each.output == node.inputs[0])
    made = everything(graph, layer, values)[node.state]
    return made.reshape(graph.tensors[node.output].shape)


BY_DIMS = {
    LastState: last_state,
    Recurrent: recurrent,
    Softmax: softmax,
    WithConstant: with_constant,
}
"""Those that look at the dimensions of ONNX."""


def concat(node, arguments, shape):
    """Along an axis; along W perhaps in blocks."""
    if node.blocks == 1:
        return np.concatenate(arguments, axis=node.axis)
    pieces = [x.reshape(*x.shape[:3], node.blocks, -1) for x in arguments]
    return np.concatenate(pieces, axis=4).reshape(shape)


def permute(node, arguments, shape):
    return arguments[0].reshape(node.view).transpose(node.order).reshape(shape)


def gather(node, arguments, shape):
    x = arguments[0].reshape(node.view)
    for axis, taken in enumerate(node.indices):
        x = np.take(x, np.maximum(taken, 0), axis=axis)
    for axis, taken in enumerate(node.indices):
        hole = np.expand_dims(taken < 0, tuple(a for a in range(4) if a != axis))
        x = np.where(hole, node.fill, x)
    return x.reshape(shape)


def resize_linear(node, arguments, _shape):
    x = arguments[0]
    x = sum(
        x[:, :, node.rows[:, i]] * node.row_weights[:, i, np.newaxis] for i in (0, 1)
    )
    return sum(x[..., node.columns[:, i]] * node.column_weights[:, i] for i in (0, 1))


def function(tree, x):
    """A function of (15), by the C library's own exp and its kin."""
    arguments = [function(argument, x) for argument in tree.arguments]
    return FUNCTIONS[tree.name](*(arguments or [x]), *tree.parameters)


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


FUNCTIONS = {
    "maximum": np.maximum,
    "minimum": np.minimum,
    "x": lambda x: x,
    "constant": np.full_like,
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "absolute": np.abs,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "power": np.power,
    "erf": np.vectorize(math.erf),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "softplus": softplus,
    "elu": lambda x, alpha: np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x),
    "leaky": lambda x, slope: np.where(x < 0, x * slope, x),
    "clip": lambda x, lo, hi: np.minimum(np.maximum(x, lo), hi),
    "threshold": lambda x, limit: np.where(x > limit, x, 0),
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
}


def lrn(node, arguments, _shape):
    squares = np.zeros_like(arguments[0])
    channels = squares.shape[1]
    for c in range(channels):
        first = max(0, c - (node.size - 1) // 2)
        last = min(channels - 1, c + node.size // 2)
        squares[:, c] = (arguments[0][:, first : last + 1] ** 2).sum(axis=1)
    return arguments[0] / (node.bias + node.alpha / node.size * squares) ** node.beta


def instance_norm(node, arguments, _shape):
    x = arguments[0]
    mean = x.mean(axis=(2, 3), keepdims=True)
    deviation = np.sqrt(x.var(axis=(2, 3), keepdims=True) + node.epsilon)
    gamma, beta = (v[:, np.newaxis, np.newaxis] for v in (node.gamma, node.beta))
    return gamma * (x - mean) / deviation + beta


def prelu(node, arguments, _shape):
    x = arguments[0]
    return np.where(x < 0, x * node.slopes[:, np.newaxis, np.newaxis], x)


EXECUTE = {
    Activate: lambda _node, arguments, _shape: arguments[0],
    Add: lambda _node, arguments, _shape: arguments[0] + arguments[1],
    Concat: concat,
    Conv2d: conv2d,
    Divide: lambda _node, arguments, _shape: arguments[0] / arguments[1],
    Maximum: lambda _node, arguments, _shape: functools.reduce(np.maximum, arguments),
    Minimum: lambda _node, arguments, _shape: functools.reduce(np.minimum, arguments),
    Multiply: lambda _node, arguments, _shape: arguments[0] * arguments[1],
    Pointwise: lambda node, arguments, _shape: function(node.function, arguments[0]),
    Gather: gather,
    InstanceNorm: instance_norm,
    Lrn: lrn,
    Permute: permute,
    Pool: pool,
    ResizeLinear: resize_linear,
    Prelu: prelu,
    Reshape: lambda _node, arguments, shape: arguments[0].reshape(shape),
    Subtract: lambda _node, arguments, _shape: arguments[0] - arguments[1],
    Sum: lambda node, arguments, _shape: (
        sum(arguments) / (len(arguments) if node.mean else 1)
    ),
}
