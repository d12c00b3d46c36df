# SPDX-License-Identifier: Apache-2.0
"""Work side by side: all of it is done, and the first error wins."""

import threading
import time

import numpy as np
import pytest

from neon8.calibrate import calib_file
from neon8.calibrate.run.collect import Collector, open_network
from neon8.calibrate.run.lanes import Lanes
from neon8.calibrate.statistics import native_library
from neon8.data.samples import as_samples
from neon8.errors import CalibrationError
from onnx_nets import chain, save

SHAPE = (1, 3, 6, 6)


def test_all_work_is_done_and_a_lane_never_twice_at_once():
    boxes = [[] for _ in range(3)]
    lanes = Lanes(boxes)
    busy = set()

    def work(box, number):
        assert id(box) not in busy
        busy.add(id(box))
        time.sleep(0.001)
        box.append(number)
        busy.remove(id(box))

    for number in range(30):
        lanes.submit(lambda box, number=number: work(box, number))
    assert sorted(number for box in lanes.wait() for number in box) == list(range(30))


def test_the_error_of_what_was_submitted_first_is_raised():
    lanes = Lanes(["a", "b"])
    failed = threading.Event()

    def first(_):
        failed.wait()
        raise ValueError("first")

    def second(_):
        try:
            raise ValueError("second")
        finally:
            failed.set()

    lanes.submit(first)
    lanes.submit(second)
    with pytest.raises(ValueError, match="first"):
        lanes.wait()
    with pytest.raises(ValueError, match="first"):
        lanes.submit(first)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    steps = [("Conv", [(4, 3, 3, 3)], {"pads": [1] * 4}), ("Relu", [], {}),
             ("Conv", [(2, 4, 1, 1)], {})]  # fmt: skip
    return save(tmp_path_factory.mktemp("lanes"), chain(steps, SHAPE))


def observed(path, arrays, threads):
    network = open_network(path, threads=threads)
    collector = Collector(network)
    for sample in as_samples(arrays, network.graph):
        collector.add(sample, sample.digest)
    return calib_file.dumps(collector.result())


def test_any_number_of_threads_gives_the_same_bytes(path):
    arrays = np.random.default_rng(5).normal(size=(50, *SHAPE[1:])).astype(np.float32)
    one = observed(path, arrays, 1)
    for threads in (2, 3, 4):
        assert observed(path, arrays, threads) == one


def test_the_first_bad_sample_is_named(path):
    arrays = np.zeros((12, *SHAPE[1:]), np.float32)
    arrays += np.arange(12, dtype=np.float32).reshape(-1, 1, 1, 1)
    arrays[5] = arrays[6] = arrays[9] = np.finfo(np.float32).max
    arrays[6, 0, 0, 0] = 0
    arrays[9, 0, 0, 0] = 1
    for _ in range(10):
        with pytest.raises(CalibrationError, match=r"sample 5$"):
            observed(path, arrays, 3)


def test_the_library_is_loaded_once(monkeypatch):
    loaded = []

    def slowly(path):
        loaded.append(path)
        time.sleep(0.01)
        return object()

    monkeypatch.setattr(native_library, "load_file", slowly)
    native_library._load.cache_clear()
    try:
        found = []
        threads = [
            threading.Thread(target=lambda: found.append(native_library.load()))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(map(id, found))) == len(loaded) == 1
    finally:
        native_library._load.cache_clear()
