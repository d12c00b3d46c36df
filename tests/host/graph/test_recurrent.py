# SPDX-License-Identifier: Apache-2.0
"""GRU, LSTM, RNN: the imported Graph computes what onnxruntime does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import numpy_helper

from onnx_nets import assert_same, net, node, why_opaque

F = np.float32
GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
OUTPUTS = {"GRU": 2, "LSTM": 3, "RNN": 2}


def layer(
    kind,
    *,
    sizes=(5, 2, 3, 4),
    direction="forward",
    outputs="y h",
    opset=14,
    states="",
    bias=True,
    peepholes=False,
    **attributes,
):
    """A model with one layer.  sizes: T, B, I, H; states: words, see below."""
    steps, batch, inputs, hidden = sizes
    directions = 2 if direction == "bidirectional" else 1
    rows = GATES[kind] * hidden
    rng = np.random.default_rng(3)
    weights = {
        "w": rng.uniform(-1, 1, (directions, rows, inputs)).astype(F),
        "r": rng.uniform(-1, 1, (directions, rows, hidden)).astype(F),
        "b": rng.uniform(-1, 1, (directions, 2 * rows)).astype(F),
        "h0": rng.uniform(-1, 1, (directions, batch, hidden)).astype(F),
        "p": rng.uniform(-1, 1, (directions, 3 * hidden)).astype(F),
        "c0": rng.uniform(-1, 1, (directions, batch, hidden)).astype(F),
    }
    shapes = {"x": (steps, batch, inputs)}
    names = ["x", "w", "r", "b" if bias else "", ""]
    for state in states.split():
        name = state if state != "-" else ""
        names.append(name)
        if name.startswith("in"):
            shapes[name] = (directions, batch, hidden)
    if peepholes:
        names += [""] * (7 - len(names)) + ["p"]
    while names[-1] == "":
        names.pop()
    made = node(kind, "", outputs, direction=direction, hidden_size=hidden)
    made.input.extend(names)
    made.attribute.extend(node(kind, "", "", **attributes).attribute)
    del made.output[:]
    made.output.extend("" if name == "-" else name for name in outputs.split())
    used = {name: value for name, value in weights.items() if name in names}
    shown = " ".join(name for name in outputs.split() if name != "-")
    return net([made], shapes, shown, used, opset=opset)


DIRECTIONS = ("forward", "reverse", "bidirectional")


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(list(GATES)),
    sizes=st.tuples(*(st.integers(1, 5) for _ in range(4))),
    direction=st.sampled_from(DIRECTIONS),
    opset=st.sampled_from([7, 14, 22]),
    before=st.booleans(),
    bias=st.booleans(),
    state=st.sampled_from(["", "h0", "in_h"]),
    which=st.sets(st.integers(0, 2), min_size=1),
)
def test_layers(
    tmp_path_factory, kind, sizes, direction, opset, before, bias, state, which
):
    names = ["y", "h", "c"][: OUTPUTS[kind]]
    kept = [name if at in which else "-" for at, name in enumerate(names)]
    while kept and kept[-1] == "-":
        kept.pop()
    attributes = {"linear_before_reset": int(before)} if kind == "GRU" else {}
    model = layer(
        kind,
        sizes=sizes,
        direction=direction,
        outputs=" ".join(kept or ["y"]),
        opset=opset,
        states=state,
        bias=bias,
        **attributes,
    )
    assert_same(tmp_path_factory.mktemp("layer"), model)


@pytest.mark.parametrize("states", ["h0 c0", "- c0", "in_h in_c", "h0 in_c"])
def test_states_of_an_lstm(tmp_path, states):
    assert_same(tmp_path, layer("LSTM", outputs="y h c", states=states))


def test_default_activations_may_be_spelled_out(tmp_path):
    names = ["Sigmoid", "Tanh"]
    assert_same(tmp_path, layer("GRU", activations=names))


ACTIVATIONS = ("Sigmoid", "Tanh", "Relu", "HardSigmoid")


@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(list(GATES)),
    direction=st.sampled_from(DIRECTIONS),
    names=st.tuples(*[st.sampled_from(ACTIVATIONS)] * 3),
    clip=st.sampled_from([None, 0.25, 1.0]),
    before=st.booleans(),
    peepholes=st.booleans(),
)
def test_activations_clip_and_peepholes(
    tmp_path_factory, kind, direction, names, clip, before, peepholes
):
    directions = 2 if direction == "bidirectional" else 1
    count = {"GRU": 2, "LSTM": 3, "RNN": 1}[kind]
    attributes = {"activations": list(names[:count]) * directions}
    attributes |= {} if clip is None else {"clip": clip}
    attributes |= {"linear_before_reset": int(before)} if kind == "GRU" else {}
    model = layer(
        kind,
        direction=direction,
        outputs=" ".join(["y", "h", "c"][: OUTPUTS[kind]]),
        peepholes=peepholes and kind == "LSTM",
        **attributes,
    )
    assert_same(tmp_path_factory.mktemp("layer"), model)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"activations": ["Softsign", "Tanh"]}, "activations softsign, tanh"),
        ({"activations": ["Affine", "Tanh"], "activation_alpha": [2.0]}, "parameters"),
        ({"clip": -3.0}, "clip -3 is negative"),
    ],
)
def test_refused(tmp_path, options, word):
    assert word in why_opaque(tmp_path, layer("GRU", **options))


def test_lengths(tmp_path):
    model = layer("GRU")
    model.graph.node[0].input.append("lengths")
    for values, refused in (([5, 5], False), ([5, 2], True)):
        del model.graph.initializer[3:]
        lengths = numpy_helper.from_array(np.array(values, np.int32), "lengths")
        model.graph.initializer.append(lengths)
        if refused:
            assert "different lengths" in why_opaque(tmp_path, model)
        else:
            assert_same(tmp_path, model)
