# SPDX-License-Identifier: Apache-2.0
"""Work on samples side by side: the order, the errors, and that it ends."""

import threading
import time

import numpy as np
import pytest
from PIL import Image

from neon8.data.parallel import AHEAD, side_by_side
from neon8.data.preprocess import Preprocess
from neon8.data.samples import Sample, gather
from neon8.errors import DataError

WORKERS = (1, 2, 5)
COUNT = 23


def samples(count=COUNT):
    for number in range(count):
        yield Sample(name=f"{number}", inputs={"x": np.full(3, number)})


def number_of(sample):
    """The number in it, later for even ones."""
    number = int(sample.inputs["x"][0])
    time.sleep(0.002 * (number % 2 == 0))
    return number


def threads():
    return [t for t in threading.enumerate() if t.name.startswith("neon8-sample")]


@pytest.mark.parametrize("workers", WORKERS)
def test_results_come_in_order(workers):
    with side_by_side(samples(), number_of, workers=workers) as results:
        assert list(results) == list(range(COUNT))
        assert not hasattr(results, "__len__")
    assert not threads()


def test_so_many_work_at_once():
    everybody = threading.Barrier(3, timeout=20)
    with side_by_side(
        samples(6), lambda _: everybody.wait() >= 0, workers=3
    ) as results:
        assert list(results) == [True] * 6


@pytest.mark.parametrize("workers", WORKERS)
def test_errors_come_after_the_results_before_them(workers):
    def work(sample):
        if sample.name in ("7", "9"):
            raise DataError(f"{sample.name} is bad")
        return number_of(sample)

    found = []
    with (
        pytest.raises(DataError, match="7 is bad"),
        side_by_side(samples(), work, workers=workers) as results,
    ):
        found.extend(results)
    assert found == list(range(7))
    assert not threads()


@pytest.mark.parametrize("workers", WORKERS)
def test_so_do_errors_of_the_data(workers):
    def data():
        yield from samples(4)
        raise DataError("sample 4 is no array")

    found = []
    with (
        pytest.raises(DataError, match="sample 4 is no array"),
        side_by_side(data(), number_of, workers=workers) as results,
    ):
        found.extend(results)
    assert found == list(range(4))


@pytest.mark.parametrize("workers", WORKERS)
def test_few_samples_are_read_ahead(workers):
    taken = []

    def data():
        for sample in samples():
            taken.append(sample.name)
            yield sample

    with side_by_side(data(), number_of, workers=workers) as results:
        for number in results:
            ahead = len(taken) - number - 1
            assert ahead <= (workers * AHEAD if workers > 1 else 0)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_nothing_works_after_the_block(error):
    begun = []

    def work(sample):
        begun.append(sample.name)
        time.sleep(0.01)

    def stop_at_once():
        with side_by_side(samples(), work, workers=2) as results:
            for _ in results:
                raise error

    with pytest.raises(error):
        stop_at_once()
    assert not threads()
    assert len(begun) <= 2 * AHEAD + 1


@pytest.mark.parametrize("workers", WORKERS)
def test_data_may_use_its_memory_again(workers):
    def reader():
        array = np.zeros(3)
        for number in range(COUNT):
            array[:] = number
            yield array

    data = gather(reader(), {"x": (1, 3)})
    with side_by_side(
        data, lambda sample: float(sample.inputs["x"].sum()), workers=workers
    ) as results:
        assert list(results) == [3.0 * number for number in range(COUNT)]


@pytest.fixture
def folder(tmp_path):
    for number in range(COUNT):
        pixels = np.full((4, 4, 3), number, np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{number:02}.png")
    return tmp_path


def first_of(sample):
    return int(next(iter(sample.inputs.values())).reshape(-1)[0])


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("workers", WORKERS)
def test_images_are_decoded_side_by_side(folder, workers, batch, monkeypatch):
    where = set()
    pixels = Preprocess.pixels

    def seen(self, *words):
        where.add(threading.current_thread().name)
        return pixels(self, *words)

    monkeypatch.setattr(Preprocess, "pixels", seen)
    data = gather(folder, {"x": (batch, 3, 4, 4)}, preprocess=Preprocess(), skip=2)
    with side_by_side(data, first_of, workers=workers) as results:
        assert (len(results), results.batch) == (21 // batch, batch)
        assert list(results) == list(range(2, COUNT - batch + 1, batch))
    assert all(name.startswith("neon8-sample") for name in where) == (workers > 1)


@pytest.mark.parametrize("workers", WORKERS)
def test_an_image_that_is_damaged_is_named(folder, workers):
    (folder / "05.png").write_bytes(b"no image")
    data = gather(folder, {"x": (1, 3, 4, 4)}, preprocess=Preprocess())
    with (
        pytest.raises(DataError, match=r"05\.png"),
        side_by_side(data, first_of, workers=workers) as results,
    ):
        list(results)
