# SPDX-License-Identifier: Apache-2.0
"""Observations do not depend on order, batches or how the work was divided."""

import platform
from dataclasses import replace
from functools import partial, reduce

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import neon8
from calib_nets import branchy, images, samples
from neon8.calibrate import calib_file
from neon8.calibrate.observation import merge
from neon8.calibrate.run.collector import Collector, open_network
from neon8.calibrate.run.reference import cpu_features
from neon8.calibrate.solve import solve
from neon8.calibrate.statistics.patches import ROWS
from neon8.errors import CalibrationError, GraphError
from neon8.operators.convolution import Conv2d
from onnx_nets import net, node, save
from refusals import refused

COUNT = 40
"""How many samples: two rows each, so the 64 that are kept are a choice."""


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    return open_network(save(tmp_path_factory.mktemp("net"), branchy()))


@pytest.fixture(scope="module")
def singles(network):
    """The observation of each sample alone."""
    return [collected(network, [sample]) for sample in samples(COUNT)]


@pytest.fixture(scope="module")
def everything(network):
    return collected(network, samples(COUNT))


def collected(network, some):
    collector = Collector(network)
    for sample in some:
        assert collector.add(sample, sample.digest)
    return collector.result()


def test_any_tree_of_merges_gives_the_same_bytes(network, singles, everything):
    want = calib_file.dumps(everything)

    @settings(max_examples=30)
    @given(st.permutations(range(COUNT)), st.data())
    def check(order, data):
        heap = [singles[index] for index in order]
        while len(heap) > 1:
            at = data.draw(st.integers(0, len(heap) - 2))
            heap[at : at + 2] = [merge(heap[at], heap[at + 1])]
        assert calib_file.dumps(heap[0]) == want

    check()
    assert calib_file.dumps(merge(network.first.empty, everything)) == want


@settings(max_examples=15)
@given(st.permutations(range(COUNT)), st.integers(0, COUNT))
def test_any_order_and_split_gives_the_same_bytes(network, everything, order, cut):
    some = samples(COUNT)
    parts = [
        collected(network, [some[i] for i in o]) for o in (order[:cut], order[cut:])
    ]
    assert calib_file.dumps(merge(*parts)) == calib_file.dumps(everything)


def test_it_holds_all_that_solving_needs(network, everything):
    nodes = [n for n in network.first.graph.nodes if isinstance(n, Conv2d)]
    assert list(everything.layers) == ["c1", "c2", "dw", "fc"]
    assert set(everything.scale_groups) == set(network.first.graph.tensors)
    for layer in nodes:
        facts = everything.layers[layer.name]
        assert (facts.input, facts.output) == (layer.inputs[0], layer.output)
        assert facts.weight_shape == layer.weight.shape
        assert facts.pre_activation in everything.channels
        assert facts.input in everything.channels
        pixels = 1 if layer.name == "fc" else 2
        assert len(facts.patches.keys) == min(ROWS, pixels * COUNT)
    for name, tensor in network.first.graph.tensors.items():
        if name in everything.channels:
            assert len(everything.channels[name].count) == tensor.shape[1]


def test_the_smallest_digest_wins_a_tie(network):
    # The same values in another order of the samples: all extremes of the input tie.
    image = images(1)[0]
    flipped = [image, image[:, ::-1], image[:, :, ::-1]]
    some = [
        replace(samples(1)[0], inputs={"x": np.ascontiguousarray(each)[np.newaxis]})
        for each in flipped
    ]
    least = min(sample.digest for sample in some)
    for order in (some, some[::-1]):
        seen = collected(network, order).tensors["x"]
        assert (seen.smallest.sample, seen.largest.sample) == (least, least)
        one = [collected(network, [each]) for each in order]
        merged = reduce(merge, one).tensors["x"]
        assert (merged.smallest, merged.largest) == (seen.smallest, seen.largest)


def other_shape(observation):
    layers = dict(observation.layers)
    layers["c1"] = replace(layers["c1"], strides=(2, 2))
    return replace(observation, layers=layers)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda o: replace(o, model_digest="0" * 64), "the model's digest is"),
        (
            lambda o: replace(o, engine={**o.engine, "version": "0.1"}),
            "the engine's version is",
        ),
        (
            lambda o: replace(o, engine={**o.engine, "optimization": "none"}),
            "the engine's optimization is",
        ),
        (
            lambda o: replace(o, engine={**o.engine, "provider": "Cloud"}),
            "the engine's provider is 'CPUExecutionProvider' in one and 'Cloud'",
        ),
        (lambda o: replace(o, engine={}), "the engine's cpu is '"),
        (
            lambda o: replace(o, preprocess_digest="1" * 64),
            "the digest of the preprocessing is None in one",
        ),
        (other_shape, "one model, but other tensors or layers were observed"),
    ],
)
def test_what_does_not_go_together_is_refused(singles, change, message):
    with refused(CalibrationError, "", message):
        merge(singles[0], change(singles[1]))


def test_an_overlap_names_the_sample(singles):
    first = merge(singles[0], singles[1])
    said = f"digest {samples(COUNT)[1].digest} (1 such"
    with refused(CalibrationError, "", said):
        merge(first, merge(singles[1], singles[2]))


def poisoned(tmp_path):
    """A network that makes NaN and inf of one channel for large inputs."""
    model = branchy()
    for weight in model.graph.initializer:
        if weight.name == "w1":
            array = np.frombuffer(weight.raw_data, np.float32).copy()
            array[:27] = 3e38
            weight.raw_data = array.tobytes()
    return save(tmp_path, model)


def test_nonfinite_values_are_counted_if_wanted(tmp_path):
    x = np.full((3, 3, 8, 8), 1e-9, np.float32)
    x[1] = 1e6
    x[2] *= 2
    model = poisoned(tmp_path)
    seen = neon8.observe_model(model, x, ignore_nonfinite=True)
    again = neon8.observe_model(model, x[::-1], ignore_nonfinite=True)
    assert calib_file.dumps(seen) == calib_file.dumps(again)
    assert len(seen.samples) == 3
    counts = {n: t.histogram.nans + t.histogram.infs for n, t in seen.tensors.items()}
    assert counts["x"] == 0
    assert counts["a1"] == 64  # one channel of the one sample
    assert counts["y"] > 0
    for facts in seen.layers.values():
        assert np.isfinite(facts.patches.rows).all()
    loaded = calib_file.loads(calib_file.dumps(seen), source="x")
    table = solve(loaded)
    bad = {n for n, t in table.tensors.items() if "nonfinite" in t.reasons}
    assert "a1" in bad
    assert "x" not in bad


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("flags\t\t: fpu sse2 avx avx2 avx512f\n", " avx512f"),
        ("flags\t\t: fpu sse2 avx avx2\nflags\t\t: fpu sse2 avx avx2\n", " avx2"),
        ("Features\t: fp asimd sve\n", " sve"),
        ("model name\t: avx2\n", ""),
        (None, ""),
    ],
)
def test_the_class_of_the_processor(tmp_path, text, flags):
    path = tmp_path / "cpuinfo"
    if text is not None:
        path.write_text(text)
    assert cpu_features(path) == platform.machine() + flags


def test_a_network_too_large_for_a_file_is_refused_at_once(tmp_path, monkeypatch):
    pool = partial(node, "MaxPool", kernel_shape=[2, 2])
    nodes = [pool("x", "a"), pool("a", "b"), pool("b", "y")]
    path = save(tmp_path, net(nodes, {"x": (1, 3, 4, 4)}, "y"))
    monkeypatch.setattr("neon8.calibrate.run.collector.MAX_TENSORS", 3)
    open_network(path)
    monkeypatch.setattr("neon8.calibrate.run.collector.MAX_TENSORS", 2)
    with refused(GraphError, f"{path}: makes 3 tensors; an .n8 file holds up to 2"):
        open_network(path)
