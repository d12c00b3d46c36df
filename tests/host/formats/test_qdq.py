# SPDX-License-Identifier: Apache-2.0
"""ONNX with Q/DQ nodes: what onnxruntime makes of it is what our int8 network gives."""

from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import neon8
from neon8.compile import oracle
from neon8.compile.lower import lower
from neon8.errors import CompileError
from neon8.formats import qdq
from neon8.graph.importer import load
from neon8.operators.convolution import Conv2dOp
from neon8.operators.registry import QDQ
from onnx_nets import chain, net, node, save
from table_nets import case, mixed, moving, residual

SHARE = 0.999
"""So many outputs are within one step: onnxruntime rounds its sums and products in
another order, so a value that lies on the edge of two steps falls to either side."""


MODES = ("float", "default", "int8")
"""float: nothing is fused.  int8: integer kernels for int8 activations, too."""


def session_of(data, mode, **more):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    for name, value in more.items():
        setattr(options, name, value)
    if mode == "float":
        level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.graph_optimization_level = level
    if mode == "int8":
        options.add_session_config_entry("session.qdqisint8allowed", "1")
    # Without VNNI, the sums of kernels for uint8 saturate in 16 bits; there are others.
    arrays = onnx.load_model_from_string(data).graph.initializer
    if mode != "int8" or any(a.data_type == onnx.TensorProto.UINT8 for a in arrays):
        options.add_session_config_entry("session.x64quantprecision", "1")
    return onnxruntime.InferenceSession(
        data, options, providers=["CPUExecutionProvider"]
    )


def runs(data, mode):
    """A function of inputs -> outputs by name."""
    session = session_of(data, mode)
    names = [value.name for value in session.get_outputs()]
    return lambda inputs: dict(zip(names, session.run(names, inputs), strict=True))


def assert_within_a_step(made, data, mode):
    program = lower(made.graph, made.table)
    theirs = runs(data, mode)
    close = total = 0
    for sample in made.samples:
        want = oracle.run(program, sample)
        for name, values in theirs(sample).items():
            assert values.shape == want[name].shape
            known = made.table.tensors.get(name)
            step = known.scale if known else 1 / 255
            close += int((np.abs(values - want[name]) <= 1.001 * step).sum())
            total += values.size
    assert close >= SHARE * total


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("network", [mixed, moving])
@pytest.mark.parametrize("symmetric", [False, True])
def test_every_operator(tmp_path, symmetric, network, mode):
    made = case(tmp_path, network(), symmetric=symmetric)
    data = qdq.dumps(made.table, made.graph, made.path)
    assert_within_a_step(made, data, mode)


@pytest.mark.parametrize("network", [mixed, moving, residual])
@pytest.mark.parametrize("symmetric", [False, True])
def test_every_step_alone(tmp_path, symmetric, network):
    """Each of our steps on the integers that onnxruntime has there, inside a network.

    The inputs go beyond the ranges, so that both ends of all levels are met.
    """
    made = case(tmp_path, network(), symmetric=symmetric)
    model = onnx.load_model_from_string(qdq.dumps(made.table, made.graph, made.path))
    for n in model.graph.node:
        if n.op_type == "QuantizeLinear":
            model.graph.output.add().name = n.output[0]
    theirs = runs(model.SerializeToString(), "float")
    program = lower(made.graph, made.table)
    kinds = {name: tensor.dtype for name, tensor in program.tensors.items()}
    rng = np.random.default_rng(5)
    different = {op.output: 0 for op in program.ops if kinds[op.output] == "int8"}
    sizes = dict(different)
    for _ in range(20):
        shape = made.samples[0]["x"].shape
        sample = {"x": rng.normal(0, 1.5, shape).astype(np.float32)}
        values = dict(sample)
        for name, found in theirs(sample).items():
            offset = 128 if found.dtype == np.uint8 else 0
            moved = found.astype(np.int16) - offset
            at = name.removesuffix("_quantized")
            values[at] = found if at == name else moved.astype(np.int8)
        for op in program.ops:
            if kinds[op.output] != "int8":
                continue
            tensor = program.tensors[op.output]
            operands = [
                values[name].reshape(program.tensors[name].shape) for name in op.inputs
            ]
            want = oracle.step(program, op, tensor, operands)
            # QuantizeLinear goes down to -128, whatever the scheme; moves hand it on.
            want = np.maximum(want, tensor.lo)
            got = np.maximum(values[op.output].reshape(tensor.shape), tensor.lo)
            different[op.output] += np.count_nonzero(want != got)
            sizes[op.output] += got.size
    # A value between two levels, which float32 cannot tell from the middle, is rare.
    assert {n: c for n, c in different.items() if c > 1 + 1e-4 * sizes[n]} == {}


def test_integer_kernels_without_an_option(tmp_path):
    """All convolutions but the two that a sum takes in, read by one node or by two."""
    made = case(tmp_path, residual())
    data = qdq.dumps(made.table, made.graph, made.path)
    path = tmp_path / "optimized.onnx"
    session_of(data, "default", optimized_model_filepath=str(path))
    kinds = [n.op_type for n in onnx.load(path).graph.node]
    assert kinds.count("QLinearConv") == 4
    for mode in MODES:
        assert_within_a_step(made, data, mode)


@pytest.mark.parametrize("mode", MODES)
def test_windows_of_an_average_that_end_beyond_the_image(tmp_path, mode):
    steps = [
        (
            "AveragePool",
            [],
            {"kernel_shape": [3, 3], "ceil_mode": 1, "strides": [2, 2]},
        ),
        ("Clip", [np.float32(-0.1), np.float32(0.1)], {}),
        ("Conv", [(5, 2, 2, 3)], {"strides": [1, 2], "dilations": [2, 1]}),
    ]
    made = case(tmp_path, chain(steps, (1, 2, 10, 10)), count=20)
    data = qdq.dumps(made.table, made.graph, made.path)
    assert_within_a_step(made, data, mode)


def test_what_the_standard_asks_for(tmp_path):
    made = case(tmp_path, mixed())
    model = onnx.load_model_from_string(qdq.dumps(made.table, made.graph, made.path))
    onnx.checker.check_model(model, full_check=True)
    assert [(o.domain, o.version) for o in model.opset_import] == [("", 13)]
    arrays = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    makers = {name: n for n in model.graph.node for name in n.output}
    sums = [n for n in model.graph.node if n.op_type in {"Conv", "Gemm"}]
    assert len(sums) == 6
    for layer in sums:
        x, w = (makers[name] for name in layer.input[:2])
        assert {n.op_type for n in (x, w)} == {"DequantizeLinear"}
        weights, scales, zeros = (arrays[name] for name in w.input)
        assert weights.dtype == zeros.dtype == np.int8
        assert weights.min() >= -127
        assert scales.shape == zeros.shape == (len(weights),)
        assert not zeros.any()
        if layer.name == "fc5":  # its sums are not rounded
            (node_,) = (n for n in made.graph.nodes if n.name == "fc5")
            assert np.array_equal(arrays[layer.input[2]], node_.bias)
            continue
        b = makers[layer.input[2]]
        assert b.op_type == "DequantizeLinear"
        bias, bias_scales, bias_zeros = (arrays[name] for name in b.input)
        assert bias.dtype == bias_zeros.dtype == np.int32
        assert np.array_equal(bias_scales, arrays[x.input[1]] * scales)
        for n in (w, b):
            assert helper.get_attribute_value(n.attribute[0]) == 0
    quantized = {n.input[0] for n in model.graph.node if n.op_type == "QuantizeLinear"}
    fused = {"c0", "c1", "c2", "a2", "c3", "g4", "g5"}
    assert not quantized & fused
    assert {"x", "r0", "p0", "l1", "r2", "k3", "cat", "r4"} <= quantized


def test_a_free_batch_stays_free(tmp_path):
    model = mixed()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    made = case(tmp_path, model)
    data = qdq.dumps(made.table, made.graph, made.path)
    many = {"x": np.concatenate([sample["x"] for sample in made.samples])}
    together = runs(data, "float")(many)
    for at, sample in enumerate(made.samples):
        alone = runs(data, "float")(sample)
        assert np.allclose(together["z"][at], alone["z"][0], atol=1e-6)


def test_a_table_of_another_network(tmp_path):
    made = case(tmp_path, mixed())
    other = replace(made.table, model_digest="0" * 64)
    with pytest.raises(CompileError, match="another model"):
        qdq.dumps(other, made.graph, made.path)


def test_all_that_it_cannot_hold_is_listed(tmp_path, monkeypatch):
    made = case(tmp_path, mixed())

    def refuse(_nodes, op):
        message = f"layer {op.name!r}: has no form there"
        raise CompileError(message)

    monkeypatch.setitem(QDQ, Conv2dOp, refuse)
    with pytest.raises(CompileError) as caught:
        qdq.dumps(made.table, made.graph, made.path)
    layers = [f"  layer {name!r}: has no form there" for name in made.table.layers]
    assert sorted(caught.value.details) == sorted(layers)
    said = f"{len(layers)} layers cannot be expressed in Q/DQ nodes:"
    assert caught.value.text.endswith(said)


def test_what_only_the_file_has_before_a_node_is_kept(tmp_path):
    """A Cast of conditions to conditions, which the network does not have."""
    nodes = [
        node("Greater", "x limit", "g", "greater"),
        node("Cast", "g", "same", to=TensorProto.BOOL),
        node("Where", "same x limit", "w", "where"),
        node("Conv", "w a", "y", "conv"),
    ]
    weights = {"a": np.ones((2, 3, 1, 1), np.float32), "limit": np.float32(0)}
    path = save(tmp_path, net(nodes, {"x": (1, 3, 4, 4)}, "y", weights, opset=18))
    x = {"x": np.random.default_rng(0).normal(size=(1, 3, 4, 4)).astype(np.float32)}
    graph = load(path)
    data = qdq.dumps(neon8.calibrate_model(path, [x]), graph, path)
    assert [n.op_type for n in onnx.load_from_string(data).graph.node].count(
        "Cast"
    ) == 1
    want = np.maximum(x["x"], 0).sum(axis=1, keepdims=True)
    assert np.abs(runs(data, "float")(x)["y"] - want).max() < 0.1
