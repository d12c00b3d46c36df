# SPDX-License-Identifier: Apache-2.0
"""onnxruntime's calibration JSON, against onnxruntime itself."""

import json

import numpy as np
import pytest

from neon8.errors import TableError
from neon8.formats import ort
from neon8.formats.foreign_table import (
    ForeignTable,
    QuantParams,
    Range,
    symmetric_scale,
    to_params,
    to_range,
)

# onnxruntime's quantization tools use what newer onnx calls deprecated.
pytestmark = pytest.mark.filterwarnings("ignore")


def array(value, dtype="float32"):
    return {"data": value, "dtype": dtype, "CLS": "numpy.array"}


def entry(lo, hi, **more):
    return {"CLS": "TensorData", "lowest": lo, "highest": hi, **more}


FLAT = {"x": entry(array(-10.0), array(1.0)), "y": entry(0.0, array([2.5]))}
CACHE = {
    "CLS": "TensorsData",
    "data": FLAT,
    "calibration_method": {
        "CLS": "CalibrationMethod",
        "value": "CalibrationMethod.Entropy",
    },
    "smooth_quant": False,
}
STEPS = {
    "x": QuantParams(scale=float(np.float32(0.3)), zero_point=17, scheme="asymmetric"),
    "y": QuantParams(scale=float(np.float32(0.7)), zero_point=-128, scheme="unsigned"),
    "z": QuantParams(scale=float(np.float32(0.1))),
}


def loads(value):
    text = value if isinstance(value, str) else json.dumps(value, indent=0)
    return ort.loads(text.encode(), source="c")


@pytest.mark.parametrize("root", [FLAT, CACHE])
def test_both_layouts(root):
    table = loads(root)
    assert table.tensors == {"x": Range(lo=-10.0, hi=1.0), "y": Range(lo=0.0, hi=2.5)}
    # onnxruntime's own text file keeps max(lowest, highest), 1.0 of this one.
    assert symmetric_scale(table.tensors["x"]) == 10 / 127


@pytest.mark.parametrize("cache", [False, True])
def test_round_trip_of_ranges_and_steps(cache):
    table = ForeignTable(source="t", format="x", tensors=STEPS)
    back = ort.loads(ort.dumps(table, cache=cache), source="c")
    assert back.tensors == {name: to_range(step) for name, step in STEPS.items()}
    assert {name: to_params(span) for name, span in back.tensors.items()} == STEPS
    assert ort.dumps(back, cache=cache) == ort.dumps(table, cache=cache)


def test_onnxruntime_reads_the_cache(tmp_path):
    from onnxruntime.quantization.calibrate import load_tensors_data

    path = tmp_path / "cache.json"
    table = ForeignTable(source="t", format="x", tensors=STEPS)
    path.write_bytes(ort.dumps(table, cache=True))
    data = load_tensors_data(path)
    assert data.calibration_method.name == "MinMax"
    for name, step in STEPS.items():
        span = to_range(step)
        assert data[name].range_value == (np.float32(span.lo), np.float32(span.hi))
    path.write_bytes(ort.dumps(loads(CACHE), cache=True))
    assert load_tensors_data(path).calibration_method.name == "Entropy"


def test_what_onnxruntime_writes_is_read(tmp_path):
    from onnxruntime.quantization.calibrate import (
        CalibrationMethod,
        TensorData,
        TensorsData,
        save_tensors_data,
    )
    from onnxruntime.quantization.quant_utils import write_calibration_table

    f = np.float32
    values = {
        "x": TensorData(lowest=f(-10), highest=f(1)),
        "y": TensorData(lowest=np.array([0.5], f), highest=np.array([2], f)),
    }
    ranges = {"x": Range(lo=-10.0, hi=1.0), "y": Range(lo=0.5, hi=2.0)}
    save_tensors_data(TensorsData(CalibrationMethod.MinMax, values), tmp_path / "c")
    table = ort.loads((tmp_path / "c").read_bytes(), source="c")
    assert table.tensors == ranges
    write_calibration_table(values, str(tmp_path))
    table = ort.loads((tmp_path / "calibration.json").read_bytes(), source="c")
    assert table.tensors == ranges


def test_histograms_are_left_out_with_a_word():
    more = {"hist": array([1, 2], "int64"), "hist_edges": array([0.0, 1.0]), "bins": 2}
    table = loads({"x": entry(0.0, 1.0, **more)})
    assert table.tensors == {"x": Range(lo=0.0, hi=1.0)}
    assert table.notes == ("left out: the histograms of 1 tensor",)


@pytest.mark.parametrize(
    ("root", "word"),
    [
        ([1], "expected an object"),
        ({"x": 3}, "tensor 'x': expected an object with CLS"),
        ({"x": {**FLAT["x"], "CLS": "Tensor"}}, "expected an object with CLS"),
        ({"x": {**FLAT["x"], "mean": 1}}, "key 'mean' is unknown"),
        ({"x": {"CLS": "TensorData", "avg": 1, "std": 2}}, "has avg, std, and no"),
        ({"x": entry(1.0, 0.0)}, "lowest 1 is above highest 0"),
        ({"x": entry(array(1.0, "int8"), 2.0)}, "of a float dtype"),
        ({"x": entry({**array(1.0), "CLS": "x"}, 2.0)}, "CLS numpy.array"),
        ({"x": entry({**array(1.0), "x": 1}, 2.0)}, "expected CLS, dtype and data"),
        ({"x": entry(array([1.0, 2.0]), 3.0)}, "has 2 values, one for the tensor"),
        ({"x": entry(array(["1"]), 3.0)}, "'1' is not a number"),
        ({"x": entry(True, 3.0)}, "True is not a number"),
        ({"x": entry(0.0, 1e39)}, "too large for float32"),
        ({"": entry(0.0, 1.0)}, "string that is not empty"),
        ({**CACHE, "x": 1}, "key 'x' is unknown in TensorsData"),
        ({**CACHE, "data": 1}, "data: expected an object"),
        ({**CACHE, "smooth_quant": True}, "without SmoothQuant"),
        ({**CACHE, "calibration_method": "MinMax"}, "expected a CLS and one of MinMax"),
        (
            {**CACHE, "calibration_method": {"CLS": "CalibrationMethod", "value": "x"}},
            "expected a CLS and one of MinMax",
        ),
    ],
)
def test_bad_calibrations(root, word):
    with pytest.raises(TableError, match=f"^c:.*{word}"):
        loads(root)


def test_the_line_of_a_bad_tensor():
    text = json.dumps({**FLAT, "y": entry(1.0, 0.0)}, indent=1)
    line = text[: text.index('"y"')].count("\n") + 1
    with pytest.raises(TableError, match=f"^c:{line}: tensor 'y'"):
        loads(text)
