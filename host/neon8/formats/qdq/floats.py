# SPDX-License-Identifier: Apache-2.0
"""Steps in float32 as ONNX nodes."""

from typing import Any

import numpy as np

from neon8.compile import program
from neon8.compile.program import FUNCTIONS
from neon8.errors import CompileError
from neon8.formats.qdq import functions
from neon8.formats.qdq.nodes import Nodes
from neon8.formats.qdq.windows import convolve, pool
from neon8.graph.functions import FUNCTIONS as ARGUMENTS
from neon8.graph.functions import Function, X, call
from neon8.graph.graph import Recurrent


def constant(n: Nodes, op: program.Constant) -> None:
    """An initializer; of int8 one that DequantizeLinear reads."""
    out = n.tensors[op.output]
    if op.levels is not None:
        n.int8_constant(op.output, op.levels.reshape(out.dims))
    elif op.values is not None:
        n.arrays[op.output] = op.values.reshape(out.dims)


def unary(n: Nodes, op: program.Unary) -> None:
    """The operators of its functions."""
    value = functions.append(n, _tree(op), op.inputs[0], op.name)
    n.named(value, op.output)


def _tree(op: program.Unary) -> Function:
    stack: list[Function] = []
    for number, row in zip(op.indices.tolist(), op.values.tolist(), strict=True):
        name = FUNCTIONS[number]
        if name == "none":
            break
        count = ARGUMENTS[name]
        arguments = stack[len(stack) - count :]
        del stack[len(stack) - count :]
        parameters = tuple(row[: PARAMETERS.get(name, 0)])
        stack.append(call(name, *arguments, parameters=parameters))
    (tree,) = stack or [X]
    return tree


PARAMETERS = {"constant": 1, "power": 1, "elu": 1, "leaky": 1, "threshold": 1}
PARAMETERS["clip"] = 2


def binary(n: Nodes, op: program.Binary) -> None:
    """One operator."""
    value = functions.step(n, op.function, (), list(op.inputs), op.name)
    n.named(value, op.output)


def conv(n: Nodes, op: program.Conv2dF32) -> None:
    """A Conv with float weights."""
    w = n.array(f"{op.name}_weight", op.values.transpose(0, 3, 1, 2))
    b = n.array(f"{op.name}_bias", op.bias_f32)
    n.named(convolve(n, op, op.inputs[0], (w, b)), op.output)


def pool_f32(n: Nodes, op: program.PoolF32) -> None:
    """A pool."""
    n.named(pool(n, op, op.inputs[0]), op.output)


def softmax(n: Nodes, op: program.Softmax) -> None:
    """Softmax or LogSoftmax."""
    kind = "LogSoftmax" if op.function == "log" else "Softmax"
    n.node(kind, [op.inputs[0]], name=op.name, output=op.output, axis=op.axis)


def recurrent(n: Nodes, op: program.Recurrent, node: Recurrent) -> None:
    """GRU, LSTM or RNN with the float weights of `node`, of the network.

    Whoever reads it makes of these the same integers. The step's output goes on with
    the last states.
    """
    if node.functions:
        text = "activations of its own have no Q/DQ form; keep to those of ONNX"
        raise CompileError(f"layer {op.name!r}: {text}")
    steps, directions, batch, hidden = n.tensors[op.output].dims
    steps = n.tensors[op.inputs[0]].dims[0]
    arrays = {
        "weight": node.weight,
        "recurrence": node.recurrence,
        "bias": node.bias.transpose(0, 2, 1).reshape(directions, -1),
    }
    names = [n.array(f"{op.name}_{what}", array) for what, array in arrays.items()]
    states = list(op.inputs[1:])
    inputs = [op.inputs[0], *names, *(["", *states] if states else [])]
    if node.peepholes is not None:
        inputs += [""] * (7 - len(inputs))
        values = node.peepholes.reshape(directions, -1)
        inputs.append(n.array(f"{op.name}_peepholes", values))
    made = [n.fresh(f"{op.name}_{what}") for what in ("all", "state", "cell")]
    made = made[: 3 if op.kind == "lstm" else 2]
    more: dict[str, Any] = {}
    if op.kind == "gru":
        more["linear_before_reset"] = int(op.linear_before_reset)
    if np.isfinite(node.clip):
        more["clip"] = float(node.clip)
    n.several(
        op.kind.upper(),
        inputs,
        made,
        name=op.name,
        hidden_size=hidden,
        direction=node.direction,
        **more,
    )
    value = made[0]
    if n.tensors[op.output].dims[0] > steps:
        dims = np.array((1, directions, batch, hidden), np.int64)
        shape = n.array(f"{op.name}_shape", dims)
        rows = [n.node("Reshape", [state, shape]) for state in made[1:]]
        value = n.node("Concat", [value, *rows], axis=0)
    n.named(value, op.output)
