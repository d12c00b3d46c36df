# SPDX-License-Identifier: Apache-2.0
"""GRU, LSTM and RNN."""

import numpy as np

from neon8.graph.graph import (
    FloatArray,
    GateFunction,
    LastState,
    Node,
    Recurrent,
)
from neon8.graph.source import (
    Convert,
    OnnxNode,
    Source,
    constant,
    failure,
    integer,
    real,
    required,
    shape_of,
    text,
    weights,
)

GATES = {"gru": 3, "lstm": 4, "rnn": 1}
ACTIVATIONS = {
    "gru": ("sigmoid", "tanh"),
    "lstm": ("sigmoid", "tanh", "tanh"),
    "rnn": ("tanh",),
}
FUNCTIONS = {
    "sigmoid": GateFunction("sigmoid"),
    "tanh": GateFunction("tanh"),
    "relu": GateFunction("x", lo=0.0),
    "hardsigmoid": GateFunction("x", 0.2, 0.5, 0.0, 1.0),
}
"""Activations by their names in lower case, with the parameters of ONNX."""

STATES = {"gru": 1, "lstm": 2, "rnn": 1}

W, R, B, SEQUENCE_LENS, INITIAL_H, INITIAL_C, PEEPHOLE = range(1, 8)


def recurrent(source: Source, node: OnnxNode) -> tuple[Node, ...]:
    """The layer, which gives the first of its outputs, and a node for each other."""
    kind = node.operator.lower()
    x = shape_of(source, node, node.inputs[0])
    w, r = required(source, node, W), required(source, node, R)
    direction = text(node, "direction", "forward")
    directions = 2 if direction == "bidirectional" else 1
    hidden = r.shape[-1]
    rows = GATES[kind] * hidden
    if (
        len(x) != 3
        or w.shape != (directions, rows, x[2])
        or r.shape != (directions, rows, hidden)
        or direction not in ("forward", "reverse", "bidirectional")
        or integer(node, "hidden_size", hidden) != hidden
    ):
        found = f"W {list(w.shape)} and R {list(r.shape)} do not fit {list(x)}"
        raise failure(source, node, f"{found} in direction {direction!r}")
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
        functions=functions(source, node, kind, directions),
        clip=clip_of(source, node),
        peepholes=peepholes(source, node, (directions, 3, hidden)),
        linear_before_reset=bool(integer(node, "linear_before_reset", 0)),
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
        raise failure(source, node, f"{text} layout 0, with Transposes around it")
    if node.attributes.get("input_forget"):
        text = "input_forget is not supported; export gates that are not coupled"
        raise failure(source, node, text)


def functions(
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
        raise failure(source, node, f"{text} gates need, are not supported")
    each = named[: len(ACTIVATIONS[kind])]
    if named != each * directions or any(name not in FUNCTIONS for name in each):
        text = f"activations {', '.join(named)}: only {', '.join(FUNCTIONS)} are"
        raise failure(source, node, f"{text} supported, the same in both directions")
    return tuple(FUNCTIONS[name] for name in each)


def clip_of(source: Source, node: OnnxNode) -> float:
    """The bound of the sums, infinite if there is none."""
    clip = real(node, "clip", 0.0)
    if not clip >= 0:
        raise failure(source, node, f"clip {clip:.4g} is negative")
    return clip if clip > 0 else np.inf


def peepholes(
    source: Source, node: OnnxNode, shape: tuple[int, int, int]
) -> FloatArray | None:
    """(D, 3, H), None if there are none."""
    value = weights(source, node, PEEPHOLE)
    if value is None or not value.any():
        return None
    if value.size != np.prod(shape) or value.shape[0] != shape[0]:
        raise failure(source, node, f"its peepholes are {list(value.shape)}")
    return value.reshape(shape)


def check_lengths(source: Source, node: OnnxNode, *, steps: int) -> None:
    """GraphError for sequences that are cut short."""
    lengths = constant(source, node, SEQUENCE_LENS)
    if lengths is not None and (lengths != steps).any():
        text = "sequences of different lengths are not supported; leave out"
        raise failure(source, node, f"{text} sequence_lens, and pad or cut the input")


def biases(source: Source, node: OnnxNode, shape: tuple[int, int, int]) -> FloatArray:
    """Those of W and of R, (D, rows, 2); shape: (D, 2, rows)."""
    value = weights(source, node, B)
    if value is None:
        return np.zeros((shape[0], shape[2], 2), np.float32)
    if value.shape != (shape[0], 2 * shape[2]):
        raise failure(source, node, f"its biases are {list(value.shape)}")
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
            found = shape_of(source, node, name)
            names.append(name)
            initial.append(None)
        else:
            value = weights(source, node, index)
            value = np.zeros(shape, np.float32) if value is None else value
            found = value.shape
            initial.append(value)
        if found != shape:
            text_ = f"first state {name!r} is {list(found)}, not {list(shape)}"
            raise failure(source, node, text_)
    if all(value is not None and not value.any() for value in initial):
        return (), ()
    return tuple(names), tuple(initial)


OPERATORS: dict[str, Convert] = dict.fromkeys(("GRU", "LSTM", "RNN"), recurrent)
