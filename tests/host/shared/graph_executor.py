# SPDX-License-Identifier: Apache-2.0
"""A Graph in float32, by the steps that it becomes: what the importer means.

Only what has no exact step in float32 is computed here, in double.
"""

import functools
from dataclasses import replace

import numpy as np

from neon8.compile import oracle
from neon8.compile.domains import NO_SCALES
from neon8.compile.lower import lower
from neon8.ir.graph import nchw
from neon8.operators.matmul import MatMul, taken
from neon8.operators.matmul import given as placed
from neon8.operators.recurrent import ACTIVATIONS, GateFunction, LastState, Recurrent


def run(graph, inputs):
    """All tensors of `graph` by name, in the shapes that ONNX has.

    inputs: by name.
    """
    values = {
        name: np.asarray(value, kind(graph, name)).reshape(graph.tensors[name].dims)
        for name, value in inputs.items()
    }
    nodes = []
    for node in graph.nodes:
        if type(node) not in BY_HAND:
            nodes.append(node)
            continue
        values |= steps(graph, nodes, values)
        nodes = []
        made = BY_HAND[type(node)](graph, node, values)
        dims = graph.tensors[node.output].dims
        values[node.output] = made.reshape(dims).astype(np.float32)
    return values | steps(graph, nodes, values)


def kind(graph, name):
    """The type of its values in the library."""
    return np.float32 if graph.tensors[name].real else np.int32


def steps(graph, nodes, values):
    """What these nodes make of the values that are there."""
    if not nodes:
        return {}
    made = tuple(node.output for node in nodes)
    read = dict.fromkeys(name for node in nodes for name in node.inputs)
    inputs = tuple(name for name in read if name in values)
    part = replace(graph, nodes=tuple(nodes), inputs=inputs, outputs=made)
    table = replace(NO_SCALES, model_digest=graph.digest)
    program = lower(part, table, partial=True)
    found = oracle.run(program, {name: values[name] for name in inputs})
    return {name: found[name].reshape(graph.tensors[name].dims) for name in made}


FUNCTIONS = {
    "x": lambda x: x,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}


def gate(function, x):
    """A GateFunction."""
    y = FUNCTIONS[function.name](function.factor * x + function.shift)
    return np.clip(y, function.lo, function.hi)


def sequence(node, direction, x, h, c):
    """All states of one direction, (T, B, H), and the last cell."""
    gates = {"gru": 3, "lstm": 4, "rnn": 1}[node.kind]
    given = node.functions or [GateFunction(f) for f in ACTIVATIONS[node.kind]]
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


def everything(node, values):
    """What a Recurrent node may give: the last state, the last cell, all states."""
    x = values[node.inputs[0]].astype(np.float64)
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


def recurrent(_graph, node, values):
    return everything(node, values)[node.gives]


def last_state(graph, node, values):
    (layer,) = (each for each in graph.nodes if each.output == node.inputs[0])
    return everything(layer, values)[node.state]


def matmul(graph, node, values):
    """The product of the views, in double."""
    given = [values[n].reshape(graph.tensors[n].shape) for n in node.inputs]
    if node.constant is not None:
        given.insert(node.side, node.constant.reshape(nchw(node.constant.shape)))
    views = (node.first, node.second)
    pair = (taken(v.astype(np.float64), s) for v, s in zip(given, views, strict=True))
    y = node.factor * np.matmul(*pair)
    y = np.clip(y, node.activation.lo, node.activation.hi)
    return placed(y, node.result, graph.tensors[node.output].shape)


BY_HAND = {
    LastState: last_state,
    MatMul: matmul,
    Recurrent: recurrent,
}
"""Nodes without a step in float32 that is exact."""
