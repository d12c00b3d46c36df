# SPDX-License-Identifier: Apache-2.0
"""Every form in which data may come gives the same observation."""

from itertools import pairwise

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import neon8
from native_kits import facts
from neon8.calibrate import calib_file
from neon8.errors import CalibrationError, DataError
from onnx_nets import net, node, save
from quantized_nets import Reader

F = np.float32
COUNT = 14
RNG = np.random.default_rng(5)
LEFT = RNG.normal(size=(COUNT, 3, 6, 6)).astype(F)
RIGHT = RNG.normal(size=(COUNT, 4)).astype(F)


def reader(sizes):
    """The samples in batches of these sizes."""
    parts = pairwise(np.cumsum([0, *sizes]))
    return Reader([{"a": LEFT[i:j], "b": RIGHT[i:j]} for i, j in parts])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A network with two inputs and a free batch, and data for it."""
    folder = tmp_path_factory.mktemp("two")

    def weight(*shape):
        return RNG.normal(size=shape).astype(F)

    nodes = [
        node("Conv", "a w1", "s", "conv"),
        node("Relu", "s", "r", "relu"),
        node("GlobalAveragePool", "r", "g", "pool"),
        node("Flatten", "g", "f", "flat"),
        node("Concat", "f b", "c", "cat", axis=1),
        node("Gemm", "c w2", "y", "fc"),
    ]
    weights = {"w1": weight(5, 3, 3, 3), "w2": weight(9, 7)}
    model = net(nodes, {"a": ("n", 3, 6, 6), "b": ("n", 4)}, "y", weights)
    onnx.save(model, folder / "net.onnx")
    np.savez(folder / "a.npz", a=LEFT, b=RIGHT, y=np.arange(COUNT) % 7)
    return folder


@pytest.fixture(scope="module")
def want(files):
    observation = neon8.observe_model(files / "net.onnx", files / "a.npz")
    assert len(observation.samples) == COUNT
    return calib_file.dumps(observation)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("sizes", [[COUNT], [1] * COUNT, [3, 0, 4, 7]])
def test_readers_and_batches(files, want, sizes, workers):
    got = neon8.observe_model(files / "net.onnx", reader(sizes), workers=workers)
    assert calib_file.dumps(got) == want


def test_shards_of_batches_in_memory(files, want):
    data = [{"a": LEFT[:9], "b": RIGHT[:9]}, {"a": LEFT[9:], "b": RIGHT[9:]}]
    parts = [
        neon8.observe_model(files / "net.onnx", data, shard=(i, 4)) for i in range(1, 5)
    ]
    assert calib_file.dumps(neon8.merge_observations(*parts)) == want
    seen = []
    neon8.observe_model(
        files / "net.onnx", data, skip=2, limit=9, progress=lambda *at: seen.append(at)
    )
    assert seen[-1] == (9, 9)
    assert (8, 9) in seen


def test_the_whole_line_with_two_inputs(files):
    path = files / "net.onnx"
    table = neon8.calibrate_model(path, reader([5, 9]))
    neon8.save_model(neon8.compile_model(path, table), files / "net.n8")
    figures = [
        neon8.evaluate_model(files / "net.n8", data, reference=path, limit=9)
        for data in (files / "a.npz", [{"a": LEFT, "b": RIGHT}], reader([4, 10]))
    ]
    assert figures[0].top1 is not None
    assert figures[1].n == 9
    assert figures[1] == figures[2]
    assert figures[1].sqnr_db == figures[0].sqnr_db > 20


def test_readers_that_are_used_up(files):
    used = reader([COUNT])
    neon8.observe_model(files / "net.onnx", used)
    with pytest.raises(CalibrationError, match="no samples"):
        neon8.calibrate_model(files / "net.onnx", used)
    with pytest.raises(DataError, match="no samples"):
        neon8.evaluate_model(files / "net.onnx", used)


def typed(folder, batch, kind):
    """A convolution, and lengths of int64 that divide its means."""
    like = helper.tensor_dtype_to_np_dtype(kind)
    rng = np.random.default_rng(6)
    nodes = [
        node("Conv", "a w1", "s", "conv", pads=[1] * 4),
        node("Relu", "s", "r", "relu"),
        node("GlobalAveragePool", "r", "g", "pool"),
        node("Flatten", "g", "f", "flat"),
        node("Cast", "len", "l", "cast", to=kind),
        node("Div", "f l", "d", "div"),
        node("Gemm", "d w2", "y", "fc"),
    ]
    shapes = {"a": (batch, 3, 6, 6), "len": (batch, 1)}
    types = {"a": kind, "len": TensorProto.INT64, "y": kind}
    weights = {"w1": rng.normal(size=(5, 3, 3, 3)), "w2": rng.normal(size=(5, 4))}
    weights = {name: each.astype(like) for name, each in weights.items()}
    made = net(nodes, shapes, "y", weights, types=types)
    return save(folder, made, f"{batch}.onnx")


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.FLOAT16])
def test_lengths_float16_and_fixed_batches(tmp_path, caplog, kind):
    """What is no float is not observed; a batch is what its elements are."""
    data = [{"a": LEFT, "len": np.arange(1, COUNT + 1)}]
    free = neon8.observe_model(typed(tmp_path, "n", kind), data)
    four = neon8.observe_model(typed(tmp_path, 4, kind), data)
    text = "data: left out 2 samples at the end; the network takes 4 at once"
    assert caplog.messages.count(text) == 1
    alone = neon8.observe_model(tmp_path / "n.onnx", data, limit=12)
    assert (len(free.samples), len(four.samples), len(alone.samples)) == (14, 3, 12)
    assert "len" not in four.tensors
    assert {"a", "r", "y"} <= four.tensors.keys()
    for name, each in four.tensors.items():
        counts = [each.histogram.positive, each.histogram.negative]
        assert sum(int(c.sum()) for c in counts) > 0
        if name == "a":  # no sum is before it, which a batch may round otherwise
            assert facts(each.histogram) == facts(alone.tensors[name].histogram)
    assert len(four.layers["conv"].patches.keys) == 2 * 12
    if kind == TensorProto.FLOAT16:
        assert four.tensors["a"].largest.value == LEFT[:12].astype(np.float16).max()
