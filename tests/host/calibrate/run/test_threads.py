# SPDX-License-Identifier: Apache-2.0
"""Work in threads: all of it is done, in order, and the first error wins."""

import threading
import time
from contextlib import closing

import numpy as np
import pytest

from calib_nets import samples
from neon8.calibrate import calib_file
from neon8.calibrate.run.collector import Collector, open_network
from neon8.calibrate.run.threads import DEPTH, StatePool, prefetch
from neon8.data.samples import as_samples
from neon8.errors import CalibrationError
from onnx_nets import chain, save

SHAPE = (1, 3, 6, 6)


def test_all_work_is_done_and_a_state_is_never_used_twice_at_once():
    boxes = [[] for _ in range(3)]
    pool = StatePool(boxes)
    busy = set()

    def work(box, number):
        assert id(box) not in busy
        busy.add(id(box))
        time.sleep(0.001)
        box.append(number)
        busy.remove(id(box))

    for number in range(30):
        pool.submit(lambda box, number=number: work(box, number))
    assert sorted(number for box in pool.wait() for number in box) == list(range(30))


def test_an_error_stops_what_comes_later():
    pool = StatePool(["a"])

    def fail(_):
        raise ValueError("first")

    def submit_many():
        for _ in range(100):
            pool.submit(fail)

    with pytest.raises(ValueError, match="first"):
        submit_many()


def test_samples_are_read_ahead_and_errors_come_in_their_place():
    made = []

    def source():
        for sample in samples(9):
            made.append(sample.name)
            yield sample
        raise ValueError("after nine")

    ahead = prefetch(source())
    sample, digest = next(ahead)
    assert (sample.name, digest) == ("s0", samples(9)[0].digest)
    for _ in range(3000):
        if len(made) > 1:
            break
        time.sleep(0.01)
    assert 2 <= len(made) <= 1 + DEPTH
    with pytest.raises(ValueError, match="after nine"):
        list(ahead)
    assert made == [sample.name for sample in samples(9)]


def test_reading_ahead_ends_with_its_reader():
    before = set(threading.enumerate())  # some of which may end meanwhile
    with closing(prefetch(samples(9))) as source:
        next(source)
        (reader,) = set(threading.enumerate()) - before
    assert not reader.is_alive()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    steps = [("Conv", [(4, 3, 3, 3)], {"pads": [1] * 4}), ("Relu", [], {}),
             ("Conv", [(2, 4, 1, 1)], {})]  # fmt: skip
    return save(tmp_path_factory.mktemp("threads"), chain(steps, SHAPE))


def observed(path, arrays, threads):
    network = open_network(path, threads=threads)
    collector = Collector(network)
    for sample in as_samples(arrays, network.first.graph):
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
        with pytest.raises(CalibrationError, match=r"sample 5; "):
            observed(path, arrays, 3)
