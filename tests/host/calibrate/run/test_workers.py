# SPDX-License-Identifier: Apache-2.0
"""Worker processes: the same bytes, whoever dies and whatever is there twice."""

import os
import signal

import numpy as np
import pytest

from calib_nets import branchy, images
from neon8 import errors
from neon8.calibrate import calib_file
from neon8.calibrate.run import campaign, workers
from neon8.calibrate.run.campaign import Plan, observe_data
from neon8.calibrate.run.task import Task
from neon8.calibrate.run.workers import Workers
from neon8.data.preprocess import Preprocess
from neon8.errors import CalibrationError, DataError
from onnx_nets import save

COUNT = 90


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    np.savez(folder / "x.npz", x=images(COUNT))
    model = save(folder, branchy())
    return Task(model=str(model), data=str(folder / "x.npz"))


@pytest.fixture(scope="module")
def want(task):
    return calib_file.dumps(observe_data(task, Plan()).observation)


def observed(task, **plan):
    return calib_file.dumps(observe_data(task, Plan(**plan)).observation)


@pytest.mark.parametrize("count", [2, 3])
def test_the_bytes_are_those_of_one_process(task, want, count):
    seen = []
    outcome = observe_data(
        task,
        Plan(workers=count),
        progress=lambda done, total: seen.append((done, total)),
    )
    assert calib_file.dumps(outcome.observation) == want
    assert sorted(seen) == [(done, COUNT) for done in range(COUNT + 1)]


def test_a_dead_worker_is_replaced(task, want, monkeypatch):
    pools, killed = [], []
    start = Workers.__init__

    def remember(self, *args, **options):
        pools.append(self)
        start(self, *args, **options)

    monkeypatch.setattr(Workers, "__init__", remember)

    def progress(done, _total):
        if done in (5, 30, 60) and pools:
            victim = min(pools[0]._processes, key=lambda process: process.pid)
            os.kill(victim.pid, signal.SIGKILL)
            killed.append(victim.pid)

    outcome = observe_data(task, Plan(workers=2), progress=progress)
    assert len(killed) >= 3
    assert calib_file.dumps(outcome.observation) == want


DEADLY = """
import os, signal
from neon8.calibrate.run import collect, worker
add = collect.Collector.add
def deadly(self, sample, digest):
    if sample.name.endswith("[40]"):
        os.kill(os.getpid(), signal.SIGKILL)
    return add(self, sample, digest)
collect.Collector.add = deadly
worker.main()
"""


def test_a_sample_that_kills_is_named(task, monkeypatch):
    monkeypatch.setattr(workers, "_PROGRAM", DEADLY)
    with pytest.raises(CalibrationError) as caught:
        observe_data(task, Plan(workers=2))
    text = str(caught.value)
    assert "3 workers died" in text
    assert "signal SIGKILL" in text
    assert "fewer --workers" in text


def test_workers_that_cannot_start_are_an_error(task, monkeypatch):
    monkeypatch.setattr(workers, "_PROGRAM", "raise SystemExit(9)")
    with pytest.raises(CalibrationError, match="exit status 9"):
        observe_data(task, Plan(workers=2))


def test_samples_that_are_there_twice(task, want, tmp_path, caplog):
    x = images(COUNT)
    again = np.concatenate([x, x[:30], x[:1]])
    np.savez(tmp_path / "x.npz", x=again[np.random.default_rng(0).permutation(121)])
    twice = Task(model=task.model, data=str(tmp_path / "x.npz"))
    for count in (1, 3):
        caplog.clear()
        assert observed(twice, workers=count) == want
        assert "31 samples are the same as others" in caplog.text


def test_an_error_in_a_worker_is_the_same_error(task, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    for number, image in enumerate(images(12)):
        np.save(folder / f"{number:02}.npy", image)
    (folder / "07.npy").write_bytes(b"nothing")
    broken = Task(model=task.model, data=str(folder))
    texts = set()
    for count in (1, 2):
        with pytest.raises(DataError) as caught:
            observe_data(broken, Plan(workers=count))
        texts.add(str(caught.value))
    assert len(texts) == 1
    assert "07.npy" in texts.pop()


def test_shards_limits_and_settings_reach_the_workers(task, tmp_path):
    rng = np.random.default_rng(1)
    np.savez(tmp_path / "u8.npz", x=rng.integers(0, 255, (40, 10, 12, 3), np.uint8))
    other = Task(
        model=task.model,
        data=str(tmp_path / "u8.npz"),
        preprocess=Preprocess(size=(8, 8), scale=1 / 255, mean=(0.4, 0.5, 0.6)),
        limit=30,
        skip=3,
        shard=(2, 3),
    )
    assert Task.from_json(other.to_json()) == other
    one = observe_data(other, Plan()).observation
    assert len(one.samples) == 10
    assert observed(other, workers=2) == calib_file.dumps(one)
    whole = Task(**{**other.to_json(), "preprocess": other.preprocess, "shard": None})
    every = observe_data(whole, Plan()).observation
    assert set(one.samples) < set(every.samples)


def test_until_stable_stops_at_the_same_sample(task):
    outcomes = [
        observe_data(task, Plan(workers=count, measure=True, tolerance=0.5))
        for count in (1, 2)
    ]
    first, second = map(calib_file.dumps, (each.observation for each in outcomes))
    assert first == second
    assert outcomes[0].points == outcomes[1].points
    assert outcomes[0].names == outcomes[1].names
    samples = [point.samples for point in outcomes[0].points]
    assert samples == [8, 16, 32, 64, 90][: len(samples)]


def test_no_worker_is_left(task, monkeypatch):
    pools = []
    close = Workers.close
    monkeypatch.setattr(
        Workers, "close", lambda self: (pools.append(self), close(self))
    )
    observe_data(task, Plan(workers=2))
    assert not pools[0]._processes
    assert not any(thread.is_alive() for thread in pools[0]._threads)


def test_every_error_can_come_from_a_worker():
    for name in errors.__dict__:
        if name.endswith("Error"):
            assert str(getattr(errors, name)("text")) == "text"
    assert campaign.LARGEST_PART >= 1
