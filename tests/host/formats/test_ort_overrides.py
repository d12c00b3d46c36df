# SPDX-License-Identifier: Apache-2.0
"""onnxruntime's overrides, against onnxruntime itself."""

import json

import numpy as np
import onnx
import pytest

from neon8.errors import TableError
from neon8.formats import ort_overrides, qdq
from neon8.formats.foreign_table import ForeignTable, QuantParams, Range, to_params
from onnx_nets import net, node, save
from quantized_nets import Reader

# onnxruntime's quantization tools use what newer onnx calls deprecated.
pytestmark = pytest.mark.filterwarnings("ignore")

X_STEP = QuantParams(scale=float(np.float32(0.3)), zero_point=17, scheme="asymmetric")
Z_STEP = QuantParams(scale=float(np.float32(0.1)))
OVERRIDES = {
    "x": [{"quant_type": "QUInt8", "scale": 0.5, "zero_point": 145}],
    "y": [{"quant_type": "QuantType.QInt8", "scale": 0.25, "zero_point": -128}],
    "z": [{"rmin": -1.0, "rmax": 3.0}],
    "w": [
        {"axis": 0, "quant_type": "QInt8", "scale": 0.5, "zero_point": 0},
        {"scale": 0.25, "zero_point": 0},
    ],
    "v": [
        {"axis": 1, "quant_type": "QInt8", "rmin": -127.0, "rmax": 1.0},
        {"rmin": 0.0, "rmax": 254.0},
    ],
    "u": [{"axis": 0, "symmetric": True, "quant_type": "QInt8"}],
    "t": [{"quant_type": "QInt16", "scale": 0.5, "zero_point": -32768}],
    "s": [{"quant_type": "QUInt16", "scale": 0.5, "zero_point": 32767}],
}


def overrides(value):
    return ort_overrides.loads(json.dumps(value, indent=0).encode(), source="o")


def test_overrides():
    table = overrides(OVERRIDES)
    assert table.tensors == {
        "x": QuantParams(scale=0.5, zero_point=17, scheme="asymmetric"),
        "y": QuantParams(scale=0.25, zero_point=-128, scheme="unsigned"),
        "z": Range(lo=-1.0, hi=3.0),
        "t": QuantParams(scale=0.5, zero_point=-32768, scheme="unsigned", bits=16),
        "s": QuantParams(scale=0.5, zero_point=-1, scheme="asymmetric", bits=16),
    }
    assert table.constants == {"w": (0, (0.5, 0.25)), "v": (1, (1.0, 2.0))}
    assert table.notes == ("left out, without scale or range: 'u'",)
    again = ort_overrides.loads(ort_overrides.dumps(table), source="o")
    assert again.constants == table.constants
    assert again.tensors == {**table.tensors, "z": to_params(table.tensors["z"])}


def changed(name, index, **values):
    channels = [dict(channel) for channel in OVERRIDES[name]]
    channels[index].update(values)
    channels[index] = {k: v for k, v in channels[index].items() if v is not None}
    return {name: channels}


@pytest.mark.parametrize(
    ("root", "word"),
    [
        ([], "expected an object"),
        ({"x": {}}, "expected a list"),
        ({"x": []}, "expected a list"),
        ({"x": [1]}, "expected an object"),
        (changed("x", 0, zp=1), "key 'zp' is unknown"),
        (changed("x", 0, convert={}), "second type"),
        (changed("x", 0, zero_point=None), "scale and zero_point go together"),
        (changed("z", 0, rmin=None), "rmin and rmax go together"),
        (changed("z", 0, rmin=4.0), "rmin 4 is above rmax 3"),
        (changed("x", 0, zero_point=256), "not a whole number from 0 to 255"),
        (changed("y", 0, zero_point=128), "not a whole number from -128 to 127"),
        (changed("x", 0, zero_point=1.5), "not a whole number"),
        (changed("x", 0, quant_type=None), "nothing without quant_type"),
        (changed("x", 0, quant_type="QInt4"), "'QInt4' is not supported"),
        (changed("z", 0, quant_type="QInt16"), "a range does not make the scale"),
        (
            {"w": [{**c, "quant_type": "QInt16"} for c in OVERRIDES["w"]]},
            "weights of 16 bits; ours have 8",
        ),
        (changed("x", 0, quant_type=1), "expected a string"),
        (changed("x", 0, scale=0), "a positive number"),
        (changed("x", 0, scale=-1), "a positive number"),
        (changed("x", 0, rmin=0.0, rmax=1.0), "scale does not go with rmin"),
        (changed("x", 0, symmetric=True), "scale does not go with symmetric"),
        (changed("u", 0, symmetric=1), "expected true or false"),
        (changed("u", 0, axis="a"), "'a' is not a whole number"),
        (changed("w", 1, axis=1), "axis is not that of the first"),
        (changed("w", 1, quant_type="QUInt8"), "quant_type is not that of the first"),
        (changed("w", 1, zero_point=3), "weights have zero point 0"),
        (changed("w", 1, scale=None, zero_point=None), "1 of 2 channels"),
        ({"w": [OVERRIDES["x"][0], OVERRIDES["w"][1]]}, "several entries and no axis"),
    ],
)
def test_bad_overrides(root, word):
    with pytest.raises(TableError, match=f"^o:.*{word}"):
        overrides(root)


@pytest.mark.parametrize("bits", [8, 16])
def test_onnxruntime_takes_the_overrides(tmp_path, bits):
    """The Q/DQ network that it makes with them has these very scales."""
    from onnxruntime.quantization import QuantType, quantize_static

    rng = np.random.default_rng(0)
    model = net(
        [node("Conv", "x w", "c", "n1"), node("Relu", "c", "y", "n2")],
        {"x": (1, 2, 4, 4)},
        "y",
        {"w": rng.normal(0, 1, (2, 2, 3, 3)).astype(np.float32)},
    )
    path = save(tmp_path, model)
    wide = QuantParams(scale=2.0**-12, zero_point=300, scheme="asymmetric", bits=16)
    step = Z_STEP if bits == 8 else wide
    table = ForeignTable(
        source="t",
        format="neon8",
        tensors={"x": X_STEP, "y": step},
        weights={"n1": (0.0625, 0.125)},
        weight_names={"n1": ("w", 0)},
    )
    # As docs/formats.md says.
    made = json.loads(ort_overrides.dumps(table))
    for channels in made.values():
        for channel in channels:
            kind = QuantType[channel.get("quant_type", "QInt8")]
            channel["quant_type"] = kind
            channel["scale"] = np.array(channel["scale"], np.float32)
            kind = np.int16 if channel["quant_type"] == QuantType.QInt16 else np.int8
            channel["zero_point"] = np.array(channel["zero_point"], kind)

    quantize_static(
        path,
        tmp_path / "q.onnx",
        Reader([{"x": np.ones((1, 2, 4, 4), np.float32)}]),
        per_channel=True,
        activation_type=QuantType.QInt8,
        weight_type=QuantType.QInt8,
        extra_options={"TensorQuantOverrides": made},
    )
    if bits == 16:
        graph = onnx.load(tmp_path / "q.onnx").graph
        arrays = {t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer}
        (last,) = (n for n in graph.node if n.output[0] == "y")
        assert last.op_type == "DequantizeLinear"
        scale, zero = (arrays[name] for name in last.input[1:])
        assert (scale, zero, zero.dtype) == (step.scale, step.zero_point, np.int16)
        return
    back = qdq.load(tmp_path / "q.onnx")
    assert back.tensors["x"] == X_STEP
    assert back.tensors["y"] == step
    assert back.weights["n1"] == (0.0625, 0.125)
