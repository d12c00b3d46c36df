# SPDX-License-Identifier: Apache-2.0
"""Integers, conditions, and what they choose: against onnxruntime."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import onnxruntime
import pytest

import neon8
from neon8.compile import oracle, writer
from neon8.compile.domains import NO_SCALES
from neon8.compile.lower import lower
from neon8.graph.importer import load
from onnx_nets import assert_same, net, node, save, why_opaque
from open_nets import Block
from whole_nets import decibels, run_once

F = np.float32
SHAPE = (1, 3, 4, 5)


def test_where_moves_int8(tmp_path):
    """What is chosen shares the scale of the tensors; a constant 0 has every scale."""
    weights = {
        "condition": np.random.default_rng(1).random((4, 1)) < 0.5,
        "zero": np.zeros((), F),
        "taps": np.ones((3, 3, 1, 1), F),
    }
    nodes = [
        node("Conv", "x taps", "a"),
        node("Conv", "a taps", "b"),
        node("Where", "condition a b", "c"),
        node("Where", "condition zero c", "d"),
        node("Conv", "d taps", "y"),
    ]
    model = net(nodes, {"x": SHAPE}, "y", weights)
    path = save(tmp_path, model)
    samples = [{"x": np.random.default_rng(s).normal(0, 1, SHAPE)} for s in range(4)]
    table = neon8.calibrate_model(path, samples, method="minmax", plain=True)
    assert len({table.tensors[name].scale for name in "abcd"}) == 1
    with neon8.Model.from_bytes(neon8.compile_model(path, table), source="net") as made:
        kinds = [step.operation for step in made.steps]
    assert kinds.count("where") == 2
    assert kinds.count("dequantize") == 0


NUMBERS = np.array([-129, -128, -7, -1, 0, 1, 5, 127, 255, 256], np.int64)
ARITHMETIC = {
    "Add": ("int32", "int64"),
    "Sub": ("int32", "int64"),
    "Mul": ("int32", "int64"),
    "Div": ("int32", "int64"),
    "Mod": ("int32", "int8", "uint8", "int16"),
    "Max": ("int32", "int8", "uint8"),
    "Min": ("int32", "int8", "uint8"),
    "And": ("bool",),
    "Or": ("bool",),
    "Xor": ("bool",),
    "BitwiseAnd": ("int32", "uint8"),
    "BitwiseOr": ("int32", "int8"),
    "BitwiseXor": ("int16", "uint8"),
}


@pytest.mark.parametrize("operator", ARITHMETIC)
def test_integers_of_every_type(tmp_path, operator):
    """Cast from x and back; the divisor is no 0."""
    nodes, outputs = [], []
    for kind in ARITHMETIC[operator]:
        number = onnx_type(kind)
        nodes += [
            node("Cast", "x", f"a_{kind}", to=number),
            node(operator, f"a_{kind} b_{kind}", f"c_{kind}"),
            node("Cast", f"c_{kind}", f"y_{kind}", to=1),
        ]
        outputs.append(f"y_{kind}")
    weights = {}
    for kind in ARITHMETIC[operator]:
        value = NUMBERS[:, None].astype(kind)
        weights[f"b_{kind}"] = np.where(value == 0, 3, value).astype(kind)
    model = net(nodes, {"x": (1, 10)}, " ".join(outputs), weights, opset=18)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    path = save(tmp_path, model)
    given = {"x": np.clip(NUMBERS, -120, 120).astype(F)[None]}
    table = neon8.calibrate_model(path, [given], plain=True)
    found = run_once(neon8.compile_model(path, table), given)
    for name, want in zip(outputs, session.run(outputs, given), strict=True):
        np.testing.assert_array_equal(found[name], want)


def onnx_type(kind):
    numbers = {"bool": 9, "int8": 3, "uint8": 2, "int16": 5, "int32": 6, "int64": 7}
    return numbers[kind]


def masked(kind, value, tokens=17, heads=3, width=8):
    """Attention whose scores are masked in one of the ways of exporters."""
    b, channels = Block(), heads * width
    inputs = {"x": (1, tokens, channels)}
    for name in ("query", "key", "value"):
        b.linear("x", name, channels, channels)
        b("Reshape", name, f"{name}_parts", np.array([1, tokens, heads, width]))
    b("Transpose", "query_parts", "q", perm=[0, 2, 1, 3])
    b("Transpose", "key_parts", "k", perm=[0, 2, 3, 1])
    b("Transpose", "value_parts", "v", perm=[0, 2, 1, 3])
    b("MatMul", "q k", "products")
    b("Mul", "products", "scores", F(width**-0.5))
    later = np.triu(np.ones((tokens, tokens), bool), 1)
    if kind == "constant":
        b("Add", "scores", "masked", np.where(later, F(value), F(0)))
    elif kind in ("where", "guarded"):
        b.weights |= {"later": later, "low": F(value)}
        b.nodes.append(node("Where", "later low scores", "masked"))
    else:  # of an input, as of text with a length
        inputs["m"] = (1, tokens)
        b("Unsqueeze", "m", "mask", np.array([1, 2]))
        b.weights["one"] = F(1)
        b.nodes.append(node("Sub", "one mask", "inverse"))
        b("Mul", "inverse", "shift", F(value))
        b("Add", "scores shift", "masked")
    b("Softmax", "masked", "p", axis=-1)
    if kind == "guarded":  # as PyTorch does where everything may be masked
        b.weights["nothing"] = F(0)
        b("IsNaN", "p", "nan")
        b.nodes.append(node("Where", "nan nothing p", "shares"))
    b("MatMul", "shares v" if kind == "guarded" else "p v", "heads")
    b("Transpose", "heads", "joined", perm=[0, 2, 1, 3])
    b("Reshape", "joined", "tokens", np.array([1, tokens, channels]))
    b.linear("tokens", "y", channels, channels)
    return net(b.nodes, inputs, "y", b.weights, opset=17)


MASKS = [
    *(("constant", value) for value in (-1e4, -1e9, -3.4e38, -np.inf)),
    *(("where", value) for value in (-1e9, -np.inf)),
    ("guarded", -np.inf),
    *(("input", value) for value in (-1e4, -3.4028235e38)),
]


@pytest.mark.parametrize(("kind", "value"), MASKS)
def test_a_mask_costs_no_accuracy(tmp_path, kind, value):
    """Whatever stands for -infinity is in no scale."""
    rng = np.random.default_rng(1)

    def sample():
        given = {"x": rng.normal(0, 1, (1, 17, 24)).astype(F)}
        if kind == "input":
            given["m"] = (np.arange(17) < rng.integers(5, 18)).astype(F)[None]
        return given

    path = save(tmp_path, masked(kind, value))
    table = neon8.calibrate_model(path, [sample() for _ in range(16)])
    assert max(entry.scale for entry in table.tensors.values()) < 1
    program = lower(load(path), table)
    floats = {"Sub_inverse", "Mul_shift", "Add_y:y"}  # what masks, and the result
    assert program.islands.keys() <= floats
    session, blob = onnxruntime.InferenceSession(path), neon8.compile_model(path, table)
    pairs = []
    for given in (sample() for _ in range(8)):
        found = run_once(blob, given)["y"]
        np.testing.assert_array_equal(found, oracle.run(program, given)["y"])
        pairs.append((found, session.run(["y"], given)[0]))
    assert decibels(*map(np.stack, zip(*pairs, strict=True))) > 28  # as without a mask


def test_an_output_is_never_hidden(tmp_path):
    weights = {"low": F(-1e9), "condition": np.eye(5, dtype=bool)}
    nodes = [node("Where", "condition low x", "y")]
    graph = load(save(tmp_path, net(nodes, {"x": (1, 5)}, "y", weights)))
    assert not graph.tensors["y"].hidden


REFUSED = {
    "strings": (
        [node("Equal", "x s", "b")],
        {"s": np.array(["a"])},
        "expected numbers",
    ),
    "bounds": (
        [node("Cast", "x", "a", to=6), node("Clip", "a low", "b")],
        {"low": np.array([1, 2], np.int32)},
        "bound 'low' is not one value",
    ),
}


@pytest.mark.parametrize(("nodes", "weights", "text"), REFUSED.values(), ids=REFUSED)
def test_refusals(tmp_path, nodes, weights, text):
    nodes = [*nodes, node("Cast", "b", "y", to=1)]
    assert text in why_opaque(tmp_path, net(nodes, {"x": (1, 2)}, "y", weights))


VALUES = np.array([-np.inf, -3.5, -1, -0.0, 0, 1e-6, 0.4, 2.5, 1e6, np.nan], F)


def computed(folder, nodes, outputs, values, weights=()):
    """What the library gives of these values, in float32, without scales."""
    model = net(nodes, {"x": values.shape}, outputs, dict(weights), opset=24)
    graph = load(save(folder, model))
    table = replace(NO_SCALES, model_digest=graph.digest)
    blob = writer.dumps(lower(graph, table, partial=True))
    return run_once(blob, {"x": values})


NARROW = {
    "bfloat16": 16,
    "float8_e4m3fn": 17,
    "float8_e4m3fnuz": 18,
    "float8_e5m2": 19,
    "float8_e5m2fnuz": 20,
}


@pytest.mark.parametrize("kind", NARROW)
def test_rounding_to_narrow_types(tmp_path, kind):
    """As ml_dtypes rounds, which does not saturate."""
    every = np.arange(0, 2**32, 2**16 - 17, dtype=np.uint32).view(F)
    values = np.concatenate([VALUES, every]).astype(F)[None]
    nodes = [
        node("Cast", "x", "narrow", to=NARROW[kind], saturate=0),
        node("Cast", "narrow", "y", to=1),
    ]
    found = computed(tmp_path, nodes, "y", values)["y"]
    with np.errstate(all="ignore"):
        wanted = values.astype(np.dtype(getattr(ml_dtypes, kind))).astype(F)
    np.testing.assert_array_equal(found, wanted)


def test_powers_and_rests(tmp_path):
    """x and constants of its shape, of one value, and of x itself."""
    exponents = np.array([[2, -1, 0.5, 0, 3], [1, 2, -2, 0.25, 1.5]], F)
    nodes = [
        node("Abs", "x", "size"),
        node("Pow", "size exponents", "a"),
        node("Pow", "x two", "b"),
        node("Pow", "size x", "c"),
        node("Mod", "x exponents", "rest", fmod=1),
        node("Mod", "x size", "d", fmod=1),
        node("Sign", "x", "e"),
    ]
    exponents = np.where(exponents == 0, F(4), exponents)
    weights = {"exponents": exponents, "two": F(2)}
    assert_same(tmp_path, net(nodes, {"x": (2, 5)}, "a b c rest d e", weights))


def test_one_hot_and_reductions(tmp_path):
    """x as indices, some negative and some beyond."""
    nodes = [
        node("Cast", "x", "i", to=7),
        node("OneHot", "i depth values", "a", axis=1),
        node("ReduceMax", "i", "most", keepdims=0),
        node("ReduceMin", "i", "least"),
        node("ReduceSum", "i axes", "sums", keepdims=0),
        *(node("Cast", n, f"{n}_f", to=1) for n in ("most", "least", "sums")),
    ]
    weights = {"depth": np.array(3), "values": F([-1, 2]), "axes": np.array([1])}
    outputs = "a most_f least_f sums_f"
    assert_same(tmp_path, net(nodes, {"x": (3, 5)}, outputs, weights, opset=18))
