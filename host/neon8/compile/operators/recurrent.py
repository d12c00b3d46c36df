# SPDX-License-Identifier: Apache-2.0
"""GRU, LSTM and RNN: float32 with int8 matrices, which need no calibration  (21)."""

from typing import Any

import numpy as np

from neon8.compile import program
from neon8.compile.build import FLOAT, Build, Lower
from neon8.compile.operators import floats
from neon8.compile.operators.movement import gather
from neon8.compile.program import FUNCTIONS, Int8Array, Tensor
from neon8.errors import CompileError
from neon8.graph.graph import FloatArray, GateFunction, LastState, Node, Recurrent
from neon8.quant.limits import SMALLEST_SCALE

MOST = 1 << 17
"""2**17 * 127 * 127 < 2**31: the sums of vectors of this length fit int32."""


def lower_recurrent(b: Build, node: Recurrent) -> None:
    """(21), and each LastState that reads its output, as one step makes all of them."""
    x = b.float32(node.inputs[0])
    steps, batch, inputs = x.dims
    directions, _, hidden = node.recurrence.shape
    if max(inputs, hidden) > MOST:
        text = f"vectors of {max(inputs, hidden)} values are longer than 2**17"
        raise CompileError(f"layer {node.name!r}: {text}")
    given = iter(node.inputs[1:])
    states = [
        b.float32(next(given))
        if value is None
        else floats.constant(b, node.name, value, x)
        for value in node.initial
    ]
    readers = [each for each in b.consumers[node.output] if isinstance(each, LastState)]
    out = full = b.declare(node.output, FLOAT)
    whole = not readers and node.gives < 0
    if not whole:
        dims = (steps + STATES[node.kind], directions, batch, hidden)
        view = Tensor(name=out.name, dims=dims, dtype=FLOAT)
        full = b.temporary(view, "states")
    w, w_scales = quantized(node.weight)
    r, r_scales = quantized(node.recurrence)
    b.ops.append(
        program.Recurrent(
            name=node.name,
            inputs=(x.name, *(state.name for state in states)),
            output=full.name,
            kind=node.kind,
            weights=np.concatenate([w, r], axis=2),
            multiplier=np.stack([w_scales, r_scales], axis=2),
            bias_f32=node.bias,
            **options(node),
            reverse=node.direction == "reverse",
            linear_before_reset=node.linear_before_reset,
        )
    )
    if not whole:
        take(b, node.name, full, out, rows_of(steps, node.gives))
    for reader in readers:
        last = b.declare(reader.output, FLOAT)
        take(b, reader.name, full, last, rows_of(steps, reader.state))


def options(node: Recurrent) -> dict[str, Any]:
    """`indices` and `values` of the step where it is not what ONNX takes by default."""
    if not node.functions and np.isinf(node.clip) and node.peepholes is None:
        return {}
    given = node.functions or tuple(map(GateFunction, DEFAULT[node.kind]))
    forms = (*given, *(GateFunction("x"),) * (FORMS - len(given)))
    values = [node.clip, *(v for f in forms for v in (f.factor, f.shift, f.lo, f.hi))]
    directions, _, hidden = node.recurrence.shape
    if node.kind == "lstm":
        none = np.zeros((directions, 3, hidden), np.float32)
        values += (none if node.peepholes is None else node.peepholes).ravel().tolist()
    return {
        "indices": np.array([FUNCTIONS.index(f.name) for f in forms], np.int32),
        "values": np.array(values, np.float32),
    }


def rows_of(steps: int, state: int) -> range:
    """Where the step's output has what `state` names, as in Recurrent.gives."""
    return range(steps) if state < 0 else range(steps + state, steps + state + 1)


def quantized(weights: FloatArray) -> tuple[Int8Array, FloatArray]:
    """(D, rows, K) as int8, each row by its largest magnitude, and the scales."""
    real = weights.astype(np.float64)
    scales = (np.abs(real).max(axis=2) / 127).astype(np.float32)
    scales = np.where(scales < SMALLEST_SCALE, np.float32(0), scales)
    divisors = np.where(scales == 0, np.inf, scales.astype(np.float64))
    q = np.rint(real / divisors[:, :, np.newaxis])
    return np.clip(q, -127, 127).astype(np.int8), scales


def take(b: Build, layer: str, source: Tensor, out: Tensor, rows: range) -> None:
    """Appends source -> out, some of its first axis."""
    lists = (rows, *(range(size) for size in source.dims[1:]))
    n, c, h, w = (np.array(each, np.int32) for each in lists)
    gather(b, layer, source, out, (n, c, h, w), fill=0.0)


DEFAULT = {
    "gru": ("sigmoid", "tanh"),
    "lstm": ("sigmoid", "tanh", "tanh"),
    "rnn": ("tanh",),
}
"""f, g and h."""

FORMS = 3

STATES = {"gru": 1, "lstm": 2, "rnn": 1}
"""What a layer keeps from one step of its sequence to the next."""

LOWER: dict[type[Node], Lower] = {Recurrent: lower_recurrent}
