# SPDX-License-Identifier: Apache-2.0
"""From an ONNX file to int8 outputs: what import understood is what runs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neon8
from neon8.calibrate.run.reference import Reference
from neon8.compile import oracle
from neon8.compile.lower import lower
from neon8.data.inputs import Input, to_input
from neon8.data.preprocess import Preprocess
from neon8.errors import CompileError
from neon8.graph.importer import load
from neon8.operators.reference import centred, quantize
from neon8.runtime import Model
from onnx_nets import chain, random_inputs_of, save
from random_nets import networks
from random_program import differing_bytes
from whole_nets import run_once

F = np.float32


def calibrated(path, *, samples=4, bits=8):
    """Inputs, and the table that they give; a constant tensor is no reason to warn."""
    data = random_inputs_of(load(path), samples)
    return data, neon8.calibrate_model(path, data, method="minmax", bits=bits)


@settings(max_examples=60)
@given(model=networks(), bits=st.sampled_from([8, 8, 7]))
def test_what_imports_runs(tmp_path_factory, model, bits):
    """The runtime takes every file that compile writes, and computes as the oracle."""
    path = save(tmp_path_factory.mktemp("path"), model)
    data, table = calibrated(path, bits=bits)
    try:
        blob = neon8.compile_model(path, table)
    except CompileError as error:  # a softmax of the input, a range beyond float32 ...
        assert "layer" in str(error) or "tensor" in str(error)  # noqa: PT017
        return
    program = lower(load(path), table)
    levels = [t.hi - t.lo for t in program.tensors.values() if t.dtype == "int8"]
    assert max(levels, default=0) < 2**bits
    for inputs in data:
        found = run_once(blob, inputs)
        assert differing_bytes(found, oracle.run(program, inputs)) == {}


def channels_last(arrays):
    """Those of four dimensions as N H W C, the others as they are."""
    return {
        name: np.ascontiguousarray(each.transpose(0, 2, 3, 1))
        if each.ndim == 4
        else each
        for name, each in arrays.items()
    }


@settings(max_examples=20)
@given(model=networks(), io=st.sampled_from(["float", "int8"]))
def test_layouts_of_the_ends(tmp_path_factory, model, io):
    """The same values, whichever order they come and go in."""
    path = save(tmp_path_factory.mktemp("path"), model)
    data, table = calibrated(path, samples=1)
    try:
        files = [
            neon8.compile_model(path, table, io=io, layout=layout)
            for layout in ("nchw", "nhwc")
        ]
    except CompileError:
        return
    with Model.from_bytes(files[0]) as first, Model.from_bytes(files[1]) as last:
        (inputs,) = data
        if io == "int8":
            tensors = lower(load(path), table, io=io).tensors
            inputs = {
                name: each
                if first.inputs[name].dtype == "float32"
                else quantize(each, tensors[name])
                for name, each in inputs.items()
            }
        expected = channels_last(first.session().run(inputs))
        inputs = channels_last(inputs)
        assert {name: each.shape for name, each in last.inputs.items()} == {
            name: each.shape for name, each in inputs.items()
        }
        assert differing_bytes(last.session().run(inputs), expected) == {}


CONV = ("Conv", [(4, 3, 3, 3), (4,)], {})
WRONG_ORDER = ("Clip", [F(0.75), F(0.25)], {})
EXACT = {
    "clip min above max": [CONV, WRONG_ORDER],
    "relu then clip": [CONV, ("Relu", [], {}), WRONG_ORDER],
    "clip then relu6": [CONV, WRONG_ORDER, ("Clip", [F(0), F(6)], {})],
    "clip then leaky": [CONV, WRONG_ORDER, ("LeakyRelu", [], {})],
    "clip negative": [CONV, ("Clip", [F(0.5), F(-0.5)], {}), ("LeakyRelu", [], {})],
    "pool then clip": [("MaxPool", [], {"kernel_shape": [2, 2]}), WRONG_ORDER],
    "clip then conv": [CONV, WRONG_ORDER, ("Conv", [(2, 4, 1, 1), (2,)], {})],
}


@pytest.mark.parametrize("steps", EXACT.values(), ids=EXACT)
@pytest.mark.parametrize("io", ["float", "int8"])
def test_clip_with_min_above_max(tmp_path, steps, io):
    """max wins, in ONNX and here: every value is max, to within a step."""
    path = save(tmp_path, chain(steps, (1, 3, 8, 8)))
    data, table = calibrated(path)
    given_inputs = data[0]
    if io == "int8":
        tensors = lower(load(path), table, io=io).tensors
        given_inputs = {"x": quantize(data[0]["x"], tensors["x"])}
    got = run_once(neon8.compile_model(path, table, io=io), given_inputs)["y"]
    if io == "int8":
        got = centred(got, tensors["y"]) * tensors["y"].scale
    want = Reference(path, ["y"]).run(data[0])["y"]
    assert np.abs(got - want).max() <= table.tensors["y"].scale


@pytest.mark.parametrize("io", ["float", "int8"])
@pytest.mark.parametrize("color", ["rgb", "bgr", "gray"])
def test_images_are_preprocessed_by_tables(tmp_path, color, io):
    """Bytes N H W C give what the preprocessed floats give."""
    channels = 1 if color == "gray" else 3
    mean, std = (7.0, 110.0, 90.5)[:channels], (50.0, 60.0, 70.25)[:channels]
    preprocess = Preprocess(color=color, mean=mean, std=std, scale=0.5)
    steps = [("Conv", [(4, channels, 3, 3), (4,)], {"strides": [2, 2]})]
    path = save(tmp_path, chain(steps, (1, channels, 9, 11)))
    _, table = calibrated(path)
    pixels = np.random.default_rng(1).integers(0, 256, (1, 9, 11, channels), np.uint8)
    real = preprocess.values(pixels[0])[None]
    blob = neon8.compile_model(path, table, io=io, image=preprocess)
    with Model.from_bytes(blob) as loaded:
        info = loaded.inputs["x"]
        assert (info.dtype, info.shape) == ("uint8", pixels.shape)
        got = loaded.session().run({"x": pixels})
    plain = lower(load(path), table, io=io)
    if io == "int8":
        real = quantize(real, plain.tensors["x"])
    assert differing_bytes(got, oracle.run(plain, {"x": real})) == {}
    wanted = Input(shape=info.shape, dtype=info.dtype)
    if color != "gray":  # gray is two-dimensional there
        value, _ = to_input(pixels[0], wanted, Preprocess(color="rgb"))
        assert (value == pixels[0]).all()


def test_images_that_no_table_fits(tmp_path):
    path = save(tmp_path, chain([("Conv", [(4, 5, 3, 3), (4,)], {})], (1, 5, 9, 9)))
    _, table = calibrated(path)
    gray = Preprocess(color="gray")
    with pytest.raises(CompileError, match="no image of 3 channels"):
        neon8.compile_model(path, table, image=Preprocess())
    path = save(tmp_path, chain([("Conv", [(4, 1, 3, 3), (4,)], {})], (1, 1, 9, 9)))
    _, table = calibrated(path)
    with pytest.raises(
        CompileError, match="is an image, but a layer reads it as float"
    ):
        neon8.compile_model(path, table, image=gray, keep_float=["Conv"])
