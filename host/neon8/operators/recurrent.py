# SPDX-License-Identifier: Apache-2.0
"""GRU, LSTM and RNN."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from neon8.arrays import Array, DoubleArray, FloatArray, Int8Array, Int32Array
from neon8.errors import CompileError
from neon8.ir.graph import Graph, Node
from neon8.ir.program import Op, Tensor
from neon8.operators.build import FLOAT, Build
from neon8.operators.composition import Parts
from neon8.operators.constants import append_constant
from neon8.operators.family import Family
from neon8.operators.floats import clip
from neon8.operators.functions import COMPUTE, FUNCTIONS
from neon8.operators.qdq import Nodes
from neon8.operators.reference import Operand, one_nan
from neon8.operators.selection import append_gather
from neon8.operators.source import OnnxNode, Source
from neon8.quant.elementary import sigmoid_floats as sigmoid
from neon8.quant.elementary import tanh_floats as tanh
from neon8.quant.limits import SMALLEST_SCALE


@dataclass(frozen=True, slots=True)
class GateFunction:
    """min(max(f(factor * x + shift), lo), hi).  name: of f: "x", "sigmoid", "tanh"."""

    name: str
    factor: float = 1.0
    shift: float = 0.0
    lo: float = -np.inf
    hi: float = np.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrent(Node):
    """GRU, LSTM or RNN: (T, B, I) to (T, D, B, H), and any later first states.

    kind: "gru", "lstm" or "rnn", with G = 3, 4 or 1 gates in the order of ONNX.
    weight: (D, G * H, I).  recurrence: (D, G * H, H).  bias: (D, G * H, 2), of both.
    initial: the states that the sequence begins with, (D, B, H), each None if it is
    the next one of the inputs; () for zeros.
    direction: "forward", "reverse" or "bidirectional".
    functions: f, g and h of ONNX, as many as the kind has; () for its own.
    clip: of what f and g are given, +-clip; infinite for none.
    peepholes: (D, 3, H), of an LSTM, for its gates i, o and f, or None.
    gives: what the output is: -1 for all states of the sequence, or as LastState.state.
    """

    kind: str
    gives: int = -1
    weight: FloatArray
    recurrence: FloatArray
    bias: FloatArray
    initial: tuple[FloatArray | None, ...] = ()
    direction: str = "forward"
    functions: tuple[GateFunction, ...] = ()
    clip: float = np.inf
    peepholes: FloatArray | None = None
    linear_before_reset: bool = False

    reads_dims = True

    def macs(self, graph: Graph) -> int:
        """Both matrices, for each step of each sequence."""
        steps, batch, _ = graph.tensors[self.inputs[0]].dims
        return steps * batch * (self.weight.size + self.recurrence.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class LastState(Node):
    """(D, B, H): what the Recurrent node that makes its input ends with.

    state: 0, or 1 for the cell of an LSTM.
    """

    state: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrentOp(Op):
    """GRU, LSTM or RNN in float32 with int8 matrices  (21).

    inputs: (T, B, I), then no states or all, (D, B, H) each. The output is
    (T, D, B, H), or goes on with the last state and, of an LSTM, the last cell.
    kind: "gru", "lstm", "rnn".  weights: (D, G * H, I + H), of W and of R.  multiplier,
    bias_f32: (D, G * H, 2), the scales and the biases of W and of R.
    reverse: with one direction, from the last step on.
    indices: (3,), numbers in FUNCTIONS of f, g and h, or None for those of ONNX.
    values: with indices, the clip; factor, shift, lo and hi of each of the three; then,
    of an LSTM, peepholes (D, 3, H).
    """

    kind: str
    weights: Int8Array
    multiplier: FloatArray
    bias_f32: FloatArray
    indices: Int32Array | None = None
    values: FloatArray | None = None
    reverse: bool = False
    linear_before_reset: bool = False

    @property
    def operation(self) -> str:
        """GRU, LSTM or RNN."""
        return self.kind.upper()


GATES = {"gru": 3, "lstm": 4, "rnn": 1}


ACTIVATIONS = {
    "gru": ("sigmoid", "tanh"),
    "lstm": ("sigmoid", "tanh", "tanh"),
    "rnn": ("tanh",),
}


GATE_FUNCTIONS = {
    "sigmoid": GateFunction("sigmoid"),
    "tanh": GateFunction("tanh"),
    "relu": GateFunction("x", lo=0.0),
    "hardsigmoid": GateFunction("x", 0.2, 0.5, 0.0, 1.0),
}
"""Activations by their names in lower case, with the parameters of ONNX."""


STATES = {"gru": 1, "lstm": 2, "rnn": 1}


W, R, B, SEQUENCE_LENS, INITIAL_H, INITIAL_C, PEEPHOLE = range(1, 8)


def import_recurrent(source: Source, node: OnnxNode) -> tuple[Node, ...]:
    """The layer, which gives the first of its outputs, and a node for each other."""
    kind = node.operator.lower()
    x = source.shape_of(node, node.inputs[0])
    w, r = source.required(node, W), source.required(node, R)
    direction = node.text("direction", "forward")
    directions = 2 if direction == "bidirectional" else 1
    hidden = r.shape[-1]
    rows = GATES[kind] * hidden
    if (
        len(x) != 3
        or w.shape != (directions, rows, x[2])
        or r.shape != (directions, rows, hidden)
        or direction not in ("forward", "reverse", "bidirectional")
        or node.integer("hidden_size", hidden) != hidden
    ):
        found = f"W {list(w.shape)} and R {list(r.shape)} do not fit {list(x)}"
        raise source.failure(node, f"{found} in direction {direction!r}")
    check_attributes(source, node)
    check_lengths(source, node, steps=x[0])
    names, initial = states(source, node, kind, (directions, x[1], hidden))
    (gives, output), *others = (
        (state, name) for state, name in enumerate(node.outputs, start=-1) if name
    )
    layer = Recurrent(
        name=node.name,
        inputs=(node.inputs[0], *names),
        output=output,
        kind=kind,
        gives=gives,
        weight=w,
        recurrence=r,
        bias=biases(source, node, (directions, 2, rows)),
        initial=initial,
        direction=direction,
        functions=gate_functions(source, node, kind, directions),
        clip=clip_of(source, node),
        peepholes=peepholes(source, node, (directions, 3, hidden)),
        linear_before_reset=bool(node.integer("linear_before_reset", 0)),
    )
    last = (
        LastState(
            name=f"{node.name}_state{state}",
            inputs=(layer.output,),
            output=name,
            state=state,
        )
        for state, name in others
    )
    return (layer, *last)


def check_attributes(source: Source, node: OnnxNode) -> None:
    """GraphError for attributes that no layer here has."""
    if node.attributes.get("layout"):
        text = "layout 1 is not supported, and onnxruntime does not run it; export with"
        raise source.failure(node, f"{text} layout 0, with Transposes around it")
    if node.attributes.get("input_forget"):
        text = "input_forget is not supported; export gates that are not coupled"
        raise source.failure(node, text)


def gate_functions(
    source: Source, node: OnnxNode, kind: str, directions: int
) -> tuple[GateFunction, ...]:
    """Those that the file names, () if they are the ones of ONNX by default."""
    given = node.attributes.get("activations")
    if not isinstance(given, tuple) or not given:
        return ()
    named = tuple(str(name).lower() for name in given)
    if named == ACTIVATIONS[kind] * directions:
        return ()
    alphas, betas = (
        node.attributes.get(f"activation_{name}") for name in ("alpha", "beta")
    )
    if len(named) != len(ACTIVATIONS[kind]) * directions or alphas or betas:
        text = f"activations {', '.join(named)} with parameters, or not as many as its"
        raise source.failure(node, f"{text} gates need, are not supported")
    each = named[: len(ACTIVATIONS[kind])]
    if named != each * directions or any(name not in GATE_FUNCTIONS for name in each):
        text = f"activations {', '.join(named)}: only {', '.join(GATE_FUNCTIONS)} are"
        raise source.failure(node, f"{text} supported, the same in both directions")
    return tuple(GATE_FUNCTIONS[name] for name in each)


def clip_of(source: Source, node: OnnxNode) -> float:
    """The bound of the sums, infinite if there is none."""
    clip = node.real("clip", 0.0)
    if not clip >= 0:
        raise source.failure(node, f"clip {clip:.4g} is negative")
    return clip if clip > 0 else np.inf


def peepholes(
    source: Source, node: OnnxNode, shape: tuple[int, int, int]
) -> FloatArray | None:
    """(D, 3, H), None if there are none."""
    value = source.weights(node, PEEPHOLE)
    if value is None or not value.any():
        return None
    if value.size != np.prod(shape) or value.shape[0] != shape[0]:
        raise source.failure(node, f"its peepholes are {list(value.shape)}")
    return value.reshape(shape)


def check_lengths(source: Source, node: OnnxNode, *, steps: int) -> None:
    """GraphError for sequences that are cut short."""
    lengths = source.constant(node, SEQUENCE_LENS)
    if lengths is not None and (lengths != steps).any():
        text = "sequences of different lengths are not supported; leave out"
        raise source.failure(node, f"{text} sequence_lens, and pad or cut the input")


def biases(source: Source, node: OnnxNode, shape: tuple[int, int, int]) -> FloatArray:
    """Those of W and of R, (D, rows, 2); shape: (D, 2, rows)."""
    value = source.weights(node, B)
    if value is None:
        return np.zeros((shape[0], shape[2], 2), np.float32)
    if value.shape != (shape[0], 2 * shape[2]):
        raise source.failure(node, f"its biases are {list(value.shape)}")
    return np.ascontiguousarray(value.reshape(shape).transpose(0, 2, 1))


def states(
    source: Source, node: OnnxNode, kind: str, shape: tuple[int, int, int]
) -> tuple[tuple[str, ...], tuple[FloatArray | None, ...]]:
    """The tensors that are first states, and all of them as Recurrent.initial."""
    names = []
    initial: list[FloatArray | None] = []
    for index in (INITIAL_H, INITIAL_C)[: STATES[kind]]:
        name = node.inputs[index] if index < len(node.inputs) else ""
        if name and name not in source.constants:
            found = source.shape_of(node, name)
            names.append(name)
            initial.append(None)
        else:
            value = source.weights(node, index)
            value = np.zeros(shape, np.float32) if value is None else value
            found = value.shape
            initial.append(value)
        if found != shape:
            text = f"first state {name!r} is {list(found)}, not {list(shape)}"
            raise source.failure(node, text)
    if all(value is not None and not value.any() for value in initial):
        return (), ()
    return tuple(names), tuple(initial)


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
        else append_constant(b, node.name, value, x)
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
    b.step(
        RecurrentOp,
        node.name,
        (x, *states),
        full,
        kind=node.kind,
        weights=np.concatenate([w, r], axis=2),
        multiplier=np.stack([w_scales, r_scales], axis=2),
        bias_f32=node.bias,
        **options(node),
        reverse=node.direction == "reverse",
        linear_before_reset=node.linear_before_reset,
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
    given = node.functions or tuple(map(GateFunction, ACTIVATIONS[node.kind]))
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
    append_gather(b, layer, source, out, (rows, *map(range, source.dims[1:])))


FORMS = 3


LARGEST = np.finfo(np.float32).max


SMALLEST_SCALED = np.float32(1e-30)


LEVELS = np.float32(127)


def quantize_vector(v: FloatArray) -> tuple[Int8Array, np.float32]:
    """(21): by the largest magnitude; NaN counts as 0, and the infinite as finite."""
    v = np.clip(np.where(np.isnan(v), np.float32(0), v), -LARGEST, LARGEST)
    most = np.abs(v).max()
    if most < SMALLEST_SCALED:
        return np.zeros(v.shape, np.int8), np.float32(0)
    levels = np.rint(v * (LEVELS / most))
    scale: np.float32 = most / LEVELS
    return np.clip(levels, -LEVELS, LEVELS).astype(np.int8), scale


Gate = Callable[[FloatArray], FloatArray]


CLIPPED = 2
"""f and g are, the cell before h is not."""


class Sequence:
    """One sequence of the batch in one direction  (21)."""

    def __init__(self, op: RecurrentOp, direction: int, hidden: int) -> None:
        self.op = op
        self.weights = op.weights[direction].astype(np.int64)
        self.scales = op.multiplier[direction]
        self.bias = op.bias_f32[direction]
        self.functions: list[tuple[str, DoubleArray]] = []
        self.clip = np.inf
        self.peepholes: FloatArray | None = None
        if op.indices is not None and op.values is not None:
            self.clip = float(op.values[0])
            forms = op.values[1:13].reshape(3, 4).astype(np.float64)
            names = [FUNCTIONS[number] for number in op.indices]
            self.functions = list(zip(names, forms, strict=True))
            if op.kind == "lstm":
                self.peepholes = op.values[13:].reshape(-1, 3, hidden)[direction]
        self.split = self.weights.shape[1] - hidden

    def product(self, which: int, v: FloatArray) -> FloatArray:
        """W v + b, or R v + b: exact in integers, then two float32 operations."""
        q, scale = quantize_vector(v)
        columns = slice(0, self.split) if which == 0 else slice(self.split, None)
        acc = (self.weights[:, columns] @ q.astype(np.int64)).astype(np.int32)
        real = acc.astype(np.float32) * (scale * self.scales[:, which])
        total: FloatArray = real + self.bias[:, which]
        return total

    def gate(self, which: int, x: FloatArray, plain: Gate) -> FloatArray:
        """f, g or h: of the options, else `plain`."""
        if not self.functions:
            return plain(x)
        name, (factor, shift, lo, hi) = self.functions[which]
        v = x.astype(np.float64)
        if which < CLIPPED:
            v = clip(v, -self.clip, self.clip)
        v = factor * v + shift
        if name != "x":
            v = COMPUTE[name](v)
        return clip(v, lo, hi).astype(np.float32)

    def peeped(self, gate: int, x: FloatArray, c: FloatArray) -> FloatArray:
        """What the peephole of gate 0, 1 or 2, i, o or f, adds to its sum."""
        return x if self.peepholes is None else x + self.peepholes[gate] * c

    def step(
        self, x: FloatArray, h: FloatArray, c: FloatArray
    ) -> tuple[FloatArray, ...]:
        """The next state and cell."""
        a, r = self.product(0, x), self.product(1, h)
        if self.op.kind == "lstm":
            i, o, f, made = np.split(a + r, 4)
            i = self.gate(0, self.peeped(0, i, c), sigmoid)
            f = self.gate(0, self.peeped(2, f, c), sigmoid)
            c = f * c + i * self.gate(1, made, tanh)
            o = self.gate(0, self.peeped(1, o, c), sigmoid)
            return o * self.gate(2, c, tanh), c
        if self.op.kind == "rnn":
            return self.gate(0, a + r, tanh), c
        (za, ra, ha), (zr, rr, hr) = np.split(a, 3), np.split(r, 3)
        update, reset = self.gate(0, za + zr, sigmoid), self.gate(0, ra + rr, sigmoid)
        if self.op.linear_before_reset:
            inner = reset * hr
        else:
            inner = np.split(self.product(1, reset * h), 3)[2]
        made = self.gate(1, ha + inner, tanh)
        return (np.float32(1) - update) * made + update * h, c


def compute_recurrent(op: RecurrentOp, out: Tensor, *operands: Operand) -> Array:
    """(21): (T, D, B, H), and the last states where the output has room for them."""
    x, *given = (operand.real for operand in operands)
    rows, directions, batch, hidden = out.dims
    y = np.zeros(out.dims, np.float32)
    with np.errstate(all="ignore"):
        for direction in range(directions):
            sequence = Sequence(op, direction, hidden)
            backwards = direction == 1 or op.reverse
            order = range(len(x))[:: -1 if backwards else 1]
            for b in range(batch):
                h, c = np.zeros((2, hidden), np.float32)
                if given:
                    h = given[0][direction, b]
                if len(given) > 1:
                    c = given[1][direction, b]
                for t in order:
                    h, c = sequence.step(x[t, b], h, c)
                    y[t, direction, b] = h
                if rows > len(x):
                    y[len(x), direction, b] = h
                if rows > len(x) + 1:
                    y[len(x) + 1, direction, b] = c
    return one_nan(y)


def write_recurrent(n: Nodes, op: RecurrentOp) -> None:
    """GRU, LSTM or RNN with the float weights of `node`, of the network.

    Whoever reads it makes of these the same integers. The step's output goes on with
    the last states.
    """
    node = n.layers[op.name]
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


def batch_second(p: Parts) -> bool:
    """Layout 1, which has the batch first: layout 0 between Transposes."""
    node = p.node
    if node.integer("layout", 0) != 1:
        return False
    swap = (1, 0, 2)
    inputs = [
        p.add("Transpose", name, perm=swap)
        if name and at in (0, INITIAL_H, INITIAL_C)
        else name
        for at, name in enumerate(node.inputs)
    ]
    made = [name and p.result(node.operator) for name in node.outputs]
    kept = {name: value for name, value in node.attributes.items() if name != "layout"}
    p.append(node.operator, inputs, made, kept, layer=True)
    for at, (name, output) in enumerate(zip(made, node.outputs, strict=True)):
        if output:
            perm = (2, 0, 1, 3) if at == 0 else swap
            p.add("Transpose", name, output=output, perm=perm)
    return True


FAMILY = Family(
    compositions=dict.fromkeys(("GRU", "LSTM", "RNN"), batch_second),
    imports=dict.fromkeys(("GRU", "LSTM", "RNN"), import_recurrent),
    lower_float={Recurrent: lower_recurrent},
    steps={RecurrentOp: compute_recurrent},
    qdq={RecurrentOp: write_recurrent},
)
