# SPDX-License-Identifier: Apache-2.0
"""The peer is measured at what it can do."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnxruntime.quantization.calibrate import HistogramCollector

from bench.accuracy import peer

LEVELS = 128

DRAWN = {
    "normal": lambda rng: rng.normal(0, 1, 20000),
    "never negative": lambda rng: np.maximum(rng.normal(0, 1, 20000), 0),
    "long tails": lambda rng: rng.laplace(size=20000) ** 3,
    "few values": lambda rng: rng.random(40),
    "zeros": lambda _: np.zeros(50),
}


@pytest.mark.parametrize("drawn", DRAWN.values(), ids=DRAWN)
@pytest.mark.parametrize("bins", [256, 301])
def test_the_threshold_is_that_of_onnxruntime(drawn, bins):
    values = drawn(np.random.default_rng(5)).astype(np.float32)
    reach = np.abs(values).max()
    counts, edges = np.histogram(values, bins, range=(-reach, reach))
    histogram = (counts, edges, values.min(), values.max(), reach)
    collector = HistogramCollector("entropy", False, bins, LEVELS, 99, "same")
    wanted = collector.get_entropy_threshold(histogram, LEVELS)
    assert peer.entropy_threshold(collector, histogram, LEVELS) == wanted


@pytest.mark.parametrize("method", peer.METHODS)
def test_a_network_is_quantized_with_weights_per_channel(tiny, tmp_path, method, capfd):
    samples = ({"image": x[None]} for x in np.load(tiny.data)["x"])
    made = tmp_path / "quantized.onnx"
    peer.quantized(tiny.onnx, samples, method, made)
    steps = {one.name: list(one.dims) for one in onnx.load(made).graph.initializer}
    assert steps["w1_scale"] == [8]
    image = np.load(tiny.data)["x"][:1]
    wanted, got = (
        onnxruntime.InferenceSession(path).run(None, {"image": image})[0]
        for path in (tiny.onnx, made)
    )
    assert 0 < np.abs(got - wanted).max() < 0.2 * np.abs(wanted).max()
    assert capfd.readouterr().out == ""
