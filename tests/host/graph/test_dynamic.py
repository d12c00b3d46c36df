# SPDX-License-Identifier: Apache-2.0
"""Networks that onnxruntime quantized dynamically, as float ones."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

import neon8
from neon8.calibrate.run.reference import Reference
from neon8.errors import GraphError
from neon8.graph.importer import load
from onnx_nets import assert_same, net, node, save
from whole_nets import run_once

F = np.float32
RNG = np.random.default_rng(3)
IMAGE = (1, 3, 8, 8)


def weight(*shape):
    return RNG.normal(size=shape).astype(F)


def network():
    """A convolution, a MatMul and a Gemm."""
    nodes = [
        node("Conv", "x w b", "c", "conv", pads=[1] * 4, strides=[2, 2]),
        node("Relu", "c", "r", "relu"),
        node("Reshape", "r shape", "f", "flat"),
        node("MatMul", "f m", "p", "matmul"),
        node("Add", "p mb", "q", "add"),
        node("Gemm", "q g gb", "y", "gemm", transB=1),
    ]
    weights = {"w": weight(6, 3, 3, 3), "b": weight(6), "m": weight(96, 10),
               "mb": weight(10), "g": weight(5, 10), "gb": weight(5),
               "shape": np.array([1, 96])}  # fmt: skip
    return net(nodes, {"x": IMAGE}, "y", weights, opset=17)


def dynamic(folder, model, **options):
    """What onnxruntime makes of it."""
    made = folder / "dynamic.onnx"
    quantize_dynamic(save(folder, model), made, **options)
    return made


def stored(path):
    """The initializers of a file."""
    graph = onnx.load(path).graph
    return {item.name: numpy_helper.to_array(item) for item in graph.initializer}


@pytest.mark.parametrize("kind", [QuantType.QInt8, QuantType.QUInt8])
@pytest.mark.parametrize("each", [False, True])
def test_weights_and_scales_are_the_files(tmp_path, kind, each):
    path = dynamic(tmp_path, network(), weight_type=kind, per_channel=each)
    assert_same(tmp_path, onnx.load(path))
    data = [RNG.normal(size=IMAGE).astype(F) for _ in range(4)]
    table = neon8.calibrate_model(path, data)
    own = stored(path)
    if kind == QuantType.QInt8:
        for name, scale in (("conv_quant", "w"), ("gemm_MatMul_quant", "g_Transposed")):
            found = np.array(table.layers[name].weight_scales)
            scales = np.broadcast_to(own[f"{scale}_scale"], found.shape)
            assert found == pytest.approx(scales, rel=1e-6)
    found = run_once(neon8.compile_model(path, table), {"x": data[0]})["y"]
    want = onnxruntime.InferenceSession(path).run(None, {"x": data[0]})[0]
    assert np.abs(found - want).max() < 0.05 * np.abs(want).max()


@pytest.mark.parametrize("kind", [QuantType.QInt8, QuantType.QUInt8])
@pytest.mark.parametrize("between", ["", "Tanh", "read twice"])
def test_embeddings(tmp_path, kind, between):
    """The rows of a table go to MatMulInteger as they are, or to DequantizeLinear."""
    nodes = [node("Gather", "table ids", "e", "look"), node("MatMul", "e w", "y")]
    if between == "Tanh":
        nodes[1:] = [node("Tanh", "e", "t"), node("MatMul", "t w", "y")]
    elif between:
        nodes[1:] = [
            *(node("MatMul", "e w", "m"), node("Tanh", "e", "t")),
            node("Concat", "m t", "y", axis=2),
        ]
    rng = np.random.default_rng(4)
    values = {
        "table": rng.normal(size=(50, 16)).astype(F),
        "w": rng.normal(size=(16, 8)).astype(F),
    }
    model = net(nodes, {"ids": (1, 7)}, "y", values, opset=17, types={"ids": 7})
    path = dynamic(tmp_path, model, weight_type=kind)
    assert onnx.load(path).graph.node[0].input[0] == "table_quantized"
    ids = rng.integers(0, 50, (4, 1, 7))
    found = Reference(path).run({"ids": ids[0]})["y"]
    want = onnxruntime.InferenceSession(path).run(None, {"ids": ids[0]})[0]
    assert found == pytest.approx(want, abs=0.03 * float(np.abs(want).max()))
    neon8.compile_model(path, neon8.calibrate_model(path, [{"ids": x} for x in ids]))


def shared():
    """Two products of a tensor, which is quantized once."""
    nodes = [node("MatMul", "x m", "a", "one"), node("MatMul", "x n", "b", "other"),
             node("Sub", "a b", "y", "sub")]  # fmt: skip
    return net(nodes, {"x": (3, 16)}, "y", {"m": weight(16, 5), "n": weight(16, 5)})


@pytest.mark.parametrize(
    ("model", "operator"),
    [(network(), "DynamicQuantizeMatMul"), (shared(), "MatMulIntegerToFloat")],
    ids=["one", "two of a tensor"],
)
def test_fused_products(tmp_path, model, operator):
    """onnxruntime saves them for what it optimized."""
    path = dynamic(tmp_path, model, op_types_to_quantize=["MatMul", "Gemm"])
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "fused.onnx")
    level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.graph_optimization_level = level
    onnxruntime.InferenceSession(path, options)
    fused = onnx.load(options.optimized_model_filepath)
    assert operator in {each.op_type for each in fused.graph.node}
    shape = model.graph.input[0].type.tensor_type.shape.dim
    x = {"x": RNG.normal(size=[axis.dim_value for axis in shape]).astype(F)}
    plain, other = (
        Reference(each).run(x)["y"] for each in (path, options.optimized_model_filepath)
    )
    assert other == pytest.approx(plain, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("each", [False, True])
def test_lstm(tmp_path, each):
    w, r, b = weight(2, 64, 8), weight(2, 64, 16), weight(2, 128)
    made = node("LSTM", "x w r b", "s last", "lstm", hidden_size=16,
                direction="bidirectional")  # fmt: skip
    model = net([made], {"x": (5, 1, 8)}, "s last", {"w": w, "r": r, "b": b}, opset=14)
    path = dynamic(tmp_path, model, per_channel=each)
    assert "DynamicQuantizeLSTM" in {n.op_type for n in onnx.load(path).graph.node}
    x = {"x": RNG.normal(size=(5, 1, 8)).astype(F)}
    layer = next(each for each in load(path).nodes if each.name == "lstm_quant")
    assert layer.weight == pytest.approx(w, abs=float(np.abs(w).max()) / 127)
    found = Reference(path).run(x)["last"]
    want = onnxruntime.InferenceSession(path).run(None, x)[1]
    assert found == pytest.approx(want, abs=0.02)


def integers(nodes, outputs="y", kind=1):
    """A network around a MatMulInteger of q, s, z of x."""
    nodes = [node("DynamicQuantizeLinear", "x", "q s z"), *nodes]
    weights = {"w": np.ones((4, 3), np.int8), "u": np.ones((4, 3), np.uint8),
               "k": np.float32(2), "zeros": np.zeros(2, np.int8)}  # fmt: skip
    return net(nodes, {"x": (1, 4)}, outputs, weights, types={"y": kind})


PRODUCT = node("MatMulInteger", "q w z", "i")
REFUSED = {
    "an output": integers([PRODUCT], "i"),
    "another zero point": integers(
        [node("MatMulInteger", "q u", "i"), node("Cast", "i", "y", to=1)]
    ),
    "no scale": integers(
        [PRODUCT, node("Cast", "i", "f", to=1), node("Relu", "f", "y")]
    ),
    "a scale alone": integers([node("Relu", "s", "y")]),
    "zero points": integers(
        [
            node("MatMulInteger", "q w z zeros", "i"),
            node("Cast", "i", "f", to=1),
            node("Mul", "f s", "y"),
        ]
    ),
    "another type": integers([PRODUCT, node("Cast", "i", "y", to=11)], kind=11),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(tmp_path, name):
    model = REFUSED[name]
    if name == "an output":
        model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.INT32
    with pytest.raises(GraphError, match="quantized dynamically"):
        load(save(tmp_path, model))


def test_scales_may_come_one_by_one(tmp_path):
    nodes = [
        PRODUCT,
        node("Cast", "i", "f", to=1),
        node("Mul", "f s", "t"),
        node("Mul", "k t", "y"),
    ]
    assert_same(tmp_path, integers(nodes))
