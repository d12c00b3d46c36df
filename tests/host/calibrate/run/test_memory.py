# SPDX-License-Identifier: Apache-2.0
"""What a tensor takes while it is observed."""

import tracemalloc

import numpy as np
import pytest

from neon8.calibrate.run import collector
from neon8.calibrate.run.collector import HISTOGRAM_BYTES, Collector, open_network
from neon8.data.samples import Sample
from onnx_nets import net, node, save

SHAPE = (1, 2, 3, 3)


def network(folder, tensors):
    """Many activations of one input."""
    names = [f"t{at}" for at in range(tensors)]
    nodes = [node("Sigmoid", "x", name) for name in names]
    return save(folder, net(nodes, {"x": SHAPE}, " ".join(names)))


def peak(path):
    """Bytes, from the network to the Observation of two samples."""
    tracemalloc.start()
    found = Collector(open_network(path, threads=1))
    for seed in range(2):
        x = np.random.default_rng(seed).normal(size=SHAPE).astype(np.float32)
        found.add(Sample(name=str(seed), inputs={"x": x}), str(seed))
    found.result()
    size = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return size


def test_a_tensor_takes_its_histogram_once(tmp_path):
    few, many = (peak(network(tmp_path, count)) for count in (20, 220))
    assert (many - few) / 200 == pytest.approx(HISTOGRAM_BYTES, rel=0.3)


@pytest.mark.parametrize(("room", "threads"), [(0, 1), (8, 1), (9, 1), (18, 2)])
def test_a_network_of_many_tensors_has_fewer_threads(
    tmp_path, monkeypatch, room, threads
):
    monkeypatch.setattr(collector, "STATISTICS_BYTES", room * HISTOGRAM_BYTES)
    monkeypatch.setattr(collector, "usable", lambda: 4)
    found = open_network(network(tmp_path, 8))  # and x
    assert len(found.first.references) == threads
