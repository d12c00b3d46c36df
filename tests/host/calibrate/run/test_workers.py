# SPDX-License-Identifier: Apache-2.0
"""Worker processes: the same bytes, whoever dies and whatever is there twice."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import neon8
import worker_kits
from calib_nets import branchy, images
from neon8 import errors
from neon8.calibrate import calib_file
from neon8.calibrate.run import processes
from neon8.calibrate.run.run import Task, observe_data
from neon8.data.preprocess import Preprocess
from neon8.errors import CalibrationError, DataError
from neon8.progress import nobody
from onnx_nets import save
from refusals import refused
from settings_kits import settings_with

COUNT = 90


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    np.savez(folder / "x.npz", x=images(COUNT))
    return save(folder, branchy()), folder / "x.npz"


@pytest.fixture(scope="module")
def want(files):
    return observed(files)


def observed(files, progress=nobody, **options):
    task = Task(progress=progress)
    outcome = observe_data(*files, settings_with(**options), task)
    return calib_file.dumps(outcome.observation)


@pytest.mark.parametrize("count", [2, 3])
def test_the_bytes_are_those_of_one_process(files, want, count):
    seen = []
    got = observed(files, workers=count, progress=lambda *pair: seen.append(pair))
    assert got == want
    assert (seen[0], seen[-1]) == ((0, COUNT), (COUNT, COUNT))
    assert seen == sorted(seen)
    assert len(set(seen)) > count
    assert not worker_kits.workers()


def test_samples_in_memory_are_sent(files, want):
    assert observed((files[0], list(images(COUNT))), workers=2) == want
    assert observed((files[0], iter(images(COUNT)[::-1])), workers=2) == want


def test_no_more_workers_than_samples(files, monkeypatch):
    widths = []
    start = processes.ProcessPool.__init__

    def watch(self, job, *, width):
        widths.append(width)
        start(self, job, width=width)

    monkeypatch.setattr(processes.ProcessPool, "__init__", watch)
    few = observed(files, workers=100_000, limit=3)
    assert widths == [3]
    assert few == observed(files, limit=3)
    observed(files, workers=100_000, limit=1)
    assert widths == [3]


@pytest.mark.parametrize("memory", [False, True])
def test_a_dead_worker_is_replaced(files, want, memory):
    killed = []

    def progress(done, _total):
        alive = [each for each in worker_kits.workers() if each not in killed]
        if alive and len(killed) < 3 and done >= 8 * (len(killed) + 1):
            os.kill(alive[0], signal.SIGKILL)
            killed.append(alive[0])

    data = (files[0], iter(images(COUNT))) if memory else files
    assert observed(data, workers=2, progress=progress) == want
    assert len(killed) == 3


@pytest.mark.parametrize("memory", [False, True])
def test_a_sample_that_kills_is_named(files, monkeypatch, memory):
    deadly = "import worker_kits; worker_kits.die_of_a_sample(); serve("
    program = processes.PROGRAM.replace("serve(", deadly)
    monkeypatch.setattr(processes, "PROGRAM", program)
    data = named(images(COUNT)) if memory else files[1]
    said = "sample 40, counted from 0: 3 worker processes died"
    with refused(CalibrationError, said, "fewer --workers"):
        observe_data(files[0], data, settings_with(workers=2))
    assert not worker_kits.workers()


def named(arrays):
    from neon8.data.samples import Sample

    for number, x in enumerate(arrays):
        inputs = {"x": x[np.newaxis]}
        yield Sample(name=f"memory[{number}]", inputs=inputs)


def test_workers_that_cannot_live_are_an_error(files, monkeypatch):
    monkeypatch.setattr(
        processes, "PROGRAM", "raise SystemExit(9) # processes import serve"
    )
    with pytest.raises(CalibrationError, match="3 worker processes died"):
        observed(files, workers=2)


def test_workers_that_cannot_be_started_are_an_error(files, monkeypatch):
    monkeypatch.setattr(processes.sys, "executable", "/nowhere/python")
    with pytest.raises(errors.SetupError, match="worker processes cannot be started"):
        observed(files, workers=2)


def test_samples_that_are_there_twice(files, want, tmp_path, caplog):
    x = images(COUNT)
    again = np.concatenate([x, x[:30], x[:1]])
    np.savez(tmp_path / "x.npz", x=again[np.random.default_rng(0).permutation(121)])
    for count in (1, 3):
        caplog.clear()
        assert observed((files[0], tmp_path / "x.npz"), workers=count) == want
        assert "31 samples are the same as others" in caplog.text


def test_an_error_in_a_worker_is_the_same_error(files, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    for number, image in enumerate(images(12)):
        np.save(folder / f"{number:02}.npy", image)
    (folder / "07.npy").write_bytes(b"nothing")
    texts = set()
    for count in (1, 2):
        with pytest.raises(DataError) as caught:
            observed((files[0], folder), workers=count)
        texts.add(str(caught.value))
    assert len(texts) == 1
    assert "07.npy" in texts.pop()


def test_shards_limits_and_settings_reach_the_workers(files, tmp_path):
    rng = np.random.default_rng(1)
    np.savez(tmp_path / "u8.npz", x=rng.integers(0, 255, (40, 10, 12, 3), np.uint8))
    data = files[0], tmp_path / "u8.npz"
    part = settings_with(
        preprocess=Preprocess(size=(8, 8), scale=1 / 255, mean=(0.4, 0.5, 0.6)),
        limit=30,
        skip=3,
    )
    third = settings_with(settings=part, shard=(2, 3))
    one = observe_data(*data, third).observation
    assert len(one.samples) == 10
    two = observe_data(*data, settings_with(settings=third, workers=2)).observation
    assert calib_file.dumps(two) == calib_file.dumps(one)
    every = observe_data(*data, part).observation
    assert set(one.samples) < set(every.samples)


def test_until_stable_stops_at_the_same_sample(files):
    outcomes = [
        observe_data(*data, settings_with(workers=count, until_stable=0.5))
        for count in (1, 2)
        for data in (files, (files[0], named_as(files[1], images(COUNT))))
    ]
    first, *others = outcomes
    for other in others:
        got, want = map(calib_file.dumps, (other.observation, first.observation))
        assert got == want
        assert other.points == first.points
        assert other.names == first.names
    samples = [point.samples for point in first.points]
    assert samples == [8, 16, 32, 64, 90][: len(samples)]


def named_as(path, arrays):
    for sample in named(arrays):
        yield replace(sample, name=sample.name.replace("memory", str(path)))


def test_every_error_can_come_from_a_worker():
    import pickle

    for name in errors.__dict__:
        if name.endswith("Error"):
            data = pickle.dumps(getattr(errors, name)("text"))
            error = pickle.loads(data)  # noqa: S301 - just made
            assert str(error) == "text"


PLANTED = (
    "json", "numpy", "random", "pickle", "struct", "signal", "tempfile", "selectors",
    "multiprocessing", "neon8", "onnx", "onnxruntime", "concurrent", "queue", "socket",
)  # fmt: skip
API = """
import pathlib, sys, neon8
import neon8.calibrate.run.run  # the traps are for the workers
observe = neon8.observe_model
open("runs", "a").write("x")
for trap in pathlib.Path().glob("[jnr]*.py"):
    pathlib.Path(__file__).with_name(trap.name).write_text(trap.read_text())
observe(sys.argv[1], sys.argv[2], workers=2, output=sys.argv[3])
"""


@pytest.fixture
def trap(tmp_path):
    """A folder in which everything that is imported leaves a mark."""
    folder = tmp_path / "trap"
    folder.mkdir()
    for name in PLANTED:
        mark = f"import os; open({str(tmp_path / 'sprung')!r}, 'a').write({name!r})\n"
        (folder / f"{name}.py").write_text(mark)
    return folder


def start(words, folder, **more):
    root = str(Path(neon8.__file__).parent.parent)
    environment = {**os.environ, "PYTHONPATH": root, **more}
    environment.pop("PYTHONSAFEPATH", None)
    return subprocess.Popen(
        [sys.executable, *map(str, words)],
        cwd=folder,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_nothing_is_imported_from_the_working_directory(files, want, trap):
    """As Python 3.10 has it, which has nothing but -I; the next test has the other."""
    output = trap.parent / "a.calib"
    code = (
        "import sys; sys.path.remove('')\n"
        "from neon8.calibrate.run import processes\n"
        "from neon8.cli.main import main\n"
        "processes.NO_CURRENT_FOLDER = '-I'\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    words = ["observe", files[0], "--data", files[1], "-o", output, "--workers", "2"]
    process = start(["-c", code, *words], trap)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 0, error
    assert output.read_bytes() == want
    assert not (trap.parent / "sprung").exists()


def test_a_script_is_not_run_again_by_its_workers(files, want, trap):
    """It has no `if __name__ == "__main__"`, and traps are set beside it, too."""
    script, output = trap.parent / "scripts" / "script.py", trap.parent / "a.calib"
    script.parent.mkdir()
    script.write_text(API)
    process = start([script, *files, output], trap)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 0, error
    assert (script.parent / "json.py").exists()
    assert output.read_bytes() == want
    assert (trap / "runs").read_text() == "x"
    assert not (trap.parent / "sprung").exists()


def test_workers_end_with_a_parent_that_is_killed(files, tmp_path):
    tell = (
        "import json, os, signal, sys, neon8, worker_kits\n"
        "def progress(done, total):\n"
        "    if done:\n"
        "        sys.stderr.write(json.dumps(worker_kits.workers()) + '\\n')\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "neon8.observe_model(*sys.argv[1:], workers=2, progress=progress)\n"
    )
    path = f"{Path(neon8.__file__).parents[1]}:{Path(worker_kits.__file__).parent}"
    process = start(["-c", tell, *files], tmp_path, PYTHONPATH=path)
    _, error = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    workers = json.loads(error.splitlines()[0])
    assert len(workers) == 2
    for _ in range(1200):
        if not any(map(alive, workers)):
            break
        time.sleep(0.05)
    assert not any(map(alive, workers))


def alive(process):
    """True unless it is gone, or a zombie that nobody has waited for."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2][1] != "Z"
    except FileNotFoundError:
        return False
