# SPDX-License-Identifier: Apache-2.0
"""The observer gives what onnxruntime's own tensors give, though it asks for few."""

from functools import reduce

import numpy as np
import pytest

import numpy_statistics
from native_kits import facts
from neon8.calibrate.run.reference import Reference
from neon8.calibrate.statistics import channels, histogram
from neon8.calibrate.statistics.observer import (
    Observer,
    channel_inputs,
    pre_activations,
)
from neon8.graph.importer import load
from onnx_nets import net, node, save

F = np.float32
RNG = np.random.default_rng(11)
SHAPE = (1, 3, 10, 10)
SAMPLES = [RNG.normal(size=SHAPE).astype(F) * F(2) for _ in range(6)]


def network():
    """Every way in which a tensor may follow from another, and some that do not."""

    def weight(*shape):
        return RNG.normal(size=shape).astype(F)

    weights = {
        "w1": weight(4, 3, 3, 3), "w2": weight(6, 4, 1, 1), "w3": weight(5, 4, 1, 1),
        "w4": weight(8, 15, 1, 1), "w5": weight(8, 1, 3, 3), "w6": weight(6, 8),
        "six": F(6), "zero": F(0),
        "gamma": weight(8), "beta": weight(8), "mu": weight(8), "var": weight(8) ** 2,
    }  # fmt: skip
    nodes = [
        node("Conv", "x w1", "c1", "conv1", pads=[1] * 4),
        node("LeakyRelu", "c1", "r1", alpha=0.1),
        node("Conv", "r1 w2", "c2", "conv2"),
        node("Clip", "c2 zero six", "r2"),
        node("Conv", "r1 w3", "c3", "conv3"),
        node("Relu", "c3", "r3"),
        node("Concat", "r2 r3 r1", "cat", axis=1),
        node("Conv", "cat w4", "c4", "conv4"),
        node("BatchNormalization", "c4 gamma beta mu var", "n4"),
        node("Relu", "n4", "r4"),
        node("MaxPool", "r4", "p4", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", "p4 w5", "c5", "conv5", group=8),
        node("GlobalAveragePool", "c5", "g5"),
        node("Flatten", "g5", "f5"),
        node("Gemm", "f5 w6", "y", "fc", transB=1),
    ]
    return net(nodes, {"x": SHAPE}, "y", weights)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return save(tmp_path_factory.mktemp("observe"), network())


def observed(path, order=(0, 1, 2, 3, 4, 5), **options):
    observer = Observer(load(path), **options)
    reference = Reference(path, observer.fetch, inside=True)
    for number in order:
        values = {"x": SAMPLES[number], **reference.run({"x": SAMPLES[number]})}
        observer.add(values, sample=f"s{number}", digest=f"{number:064x}")
    return observer.result()


def test_few_tensors_are_asked_for(path):
    graph = load(path)
    asked = Observer(graph).fetch
    assert set(asked) == {"c1", "c2", "c3", "n4", "p4", "c5", "g5", "y"}
    assert set(channel_inputs(graph)) >= {"x", "r1", "cat", "p4"}
    assert set(pre_activations(graph)) == {"c1", "c2", "c3", "n4", "c5", "y"}


def test_all_is_as_if_every_tensor_had_been_asked_for(path):
    graph = load(path)
    everything = {*graph.tensors, *pre_activations(graph)} - {"x"}
    reference = Reference(path, everything)
    runs = [{"x": x, **reference.run({"x": x})} for x in SAMPLES]
    tensors, sums = observed(path)
    assert {*tensors, *sums} >= {"x", "r1", "r2", "r3", "r4", "cat", "n4", "y"}
    seen = {
        name: [run[name].reshape(1, run[name].shape[1], -1) for run in runs]
        for name in {*tensors, *sums}
    }
    for name, one in tensors.items():
        parts = map(numpy_statistics.histogram_of, seen[name])
        assert facts(one.histogram) == facts(reduce(histogram.merge, parts)), name
        everyone = np.stack(seen[name])
        for extreme, chosen in (
            (one.smallest, everyone.min()), (one.largest, everyone.max()),
        ):  # fmt: skip
            sample, _, channel, _ = np.argwhere(everyone == chosen)[0]
            found = (extreme.value, int(extreme.sample, 16), extreme.channel)
            assert found == (chosen, sample, channel), name
    for name, one in sums.items():
        parts = map(numpy_statistics.channels_of, seen[name])
        assert facts(one) == facts(reduce(channels.merge, parts)), name


def test_results_of_runs_that_share_memory(path):
    fresh, shared = Reference(path, ["c1"]), Reference(path, ["c1"], inside=True)
    other = shared.another()
    places = []
    for x in SAMPLES:
        want = fresh.run({"x": x})["c1"]
        for reference in (shared, other):
            got = reference.run({"x": x})["c1"]
            assert np.array_equal(got, want)
            places.append(got)
    assert np.shares_memory(places[-1], places[-3])
    assert not np.shares_memory(places[-1], places[-2])


def test_a_batch_has_the_statistics_of_its_elements(path):
    """But that it is one sample: the sums of its channels are rounded once."""
    graph, alone = load(path), observed(path)
    reference = Reference(path, Observer(graph).fetch, inside=True)
    runs = [
        {"x": x, **{n: a.copy() for n, a in reference.run({"x": x}).items()}}
        for x in SAMPLES
    ]
    observer = Observer(graph)
    for number in (0, 3):
        three = runs[number : number + 3]
        values = {
            name: np.concatenate([run[name] for run in three]) for name in runs[0]
        }
        observer.add(values, sample=f"s{number}", digest=f"{number:064x}")
    (tensors, sums), (want, want_sums) = observer.result(), alone
    assert (tensors.keys(), sums.keys()) == (want.keys(), want_sums.keys())
    for name, each in tensors.items():
        assert facts(each.histogram) == facts(want[name].histogram)
        assert each.smallest.value == want[name].smallest.value
        assert each.largest.value == want[name].largest.value
    for name, each in sums.items():
        for field in ("count", "minimum", "maximum"):
            one, other = (getattr(e, field) for e in (each, want_sums[name]))
            assert np.array_equal(one, other)
        for field in ("total", "squares"):
            one, other = (
                channels.integers(getattr(e, field)) for e in (each, want_sums[name])
            )
            assert one == pytest.approx(other, rel=1e-9)
