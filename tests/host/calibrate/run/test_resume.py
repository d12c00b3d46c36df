# SPDX-License-Identifier: Apache-2.0
"""Whenever a run is killed, the same command gives the same bytes."""

import json
import os
import re
import signal
import string
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import slow_observe
from calib_nets import branchy, images
from neon8.calibrate.run import journal
from neon8.calibrate.run.executors import SECONDS, Pace
from neon8.cli.main import main
from onnx_nets import save

SCRIPT = Path(slow_observe.__file__)
COUNT = 60
LETTERS = string.ascii_lowercase[:20]


def start(words, kill="never", seconds=0.0):
    line = [sys.executable, SCRIPT, str(seconds), kill, *map(str, words)]
    return subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def kept(error):
    """How many samples the run said it continues with."""
    found = re.search(r"journal: continuing, (\d+) samples", error)
    return int(found[1]) if found else 0


@pytest.fixture
def job(tmp_path):
    """Files, the command, and the bytes of a run that nothing disturbs."""
    model = save(tmp_path, branchy())
    np.savez(tmp_path / "x.npz", x=images(COUNT))
    words = ["observe", model, "--data", tmp_path / "x.npz"]
    assert main([*map(str, words), "-o", str(tmp_path / "want.calib")]) == 0
    want = (tmp_path / "want.calib").read_bytes()
    return tmp_path, [*words, "-o", tmp_path / "got.calib"], want


def finished(folder, want):
    assert (folder / "got.calib").read_bytes() == want
    left = sorted(path.name for path in folder.iterdir() if "got" in path.name)
    assert left == ["got.calib"]


MOMENTS = [
    "sample:0",
    "write:0",
    "sample:7",
    "rename:1",
    "write:3",
    "sample:3",
    "end:0",
]
"""Each is of the run that continues the one before."""
KILLS = 20
"""At random moments."""


@pytest.mark.parametrize("options", [[], ["--until-stable", "0.001", "--workers", "1"]])
def test_killed_at_fixed_moments(job, options):
    folder, words, want = job
    before = 0
    for kill in [*MOMENTS, "never"]:
        process = start([*words, *options], kill, 0.008)
        _, error = process.communicate(timeout=60)
        assert process.returncode == (0 if kill == "never" else -signal.SIGKILL), error
        assert kept(error) >= before
        before = kept(error)
    assert before > COUNT // 2
    finished(folder, want)


def test_killed_at_random_moments(job):
    """Twenty times; a run that comes to its end first does not count as one."""
    folder, words, want = job
    rng = np.random.default_rng(int(os.environ.get("NEON8_SEED", "20")))
    kills = 0
    server = subprocess.Popen(
        [sys.executable, SCRIPT, "serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def ask(text):
        print(text, file=server.stdin, flush=True)
        return int(server.stdout.readline())

    with server:
        while kills < KILLS:
            process = ask(json.dumps([0.01, "never", *map(str, words)]))
            time.sleep(rng.uniform(0, 0.3))
            os.kill(process, signal.SIGKILL)  # until it is asked for it has its number
            status = ask("")
            assert status in (0, -signal.SIGKILL)
            if status == 0:
                finished(folder, want)
                (folder / "got.calib").unlink()
            kills += status != 0
    process = start(words)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 0, error
    finished(folder, want)


@pytest.mark.parametrize("options", [[], ["--workers", "2"]])
def test_ctrl_c_keeps_what_is_done(job, options):
    folder, words, want = job
    process = start([*words, *options], seconds=0.03)
    while not (folder / "got.calib.journal").exists():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in error
    done = re.search(r"interrupted: (\d+) samples are saved in (\S+journal);", error)
    assert "run the same command again" in error
    process = start([*words, *options])
    _, error = process.communicate(timeout=60)
    assert process.returncode == 0, error
    assert kept(error) == int(done[1]) > 0
    finished(folder, want)


@pytest.fixture
def interrupted(job):
    """The same with a journal of some samples beside it."""
    folder, words, want = job
    process = start(words, "write:6", 0.02)
    process.communicate(timeout=60)
    assert (folder / "got.calib.journal").exists()
    return folder, words, want


def fail(capsys, words):
    status = main([str(word) for word in words])
    out, error = capsys.readouterr()
    assert (status, out) == (2, "")
    *warnings, last = error.splitlines()
    assert all("continuing, " in line for line in warnings)
    assert last.startswith("neon8: error: ")
    return last


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--limit", "9"], ["--limit was None, and now it is 9"]),
        (["--skip", "1"], ["--skip was 0, and now it is 1"]),
        (["--shard", "1/2"], ["--shard was None, and now it is [1, 2]"]),
        (["--ignore-nonfinite"], ["--ignore-nonfinite was False"]),
        (["--until-stable", "1"], ["--until-stable was None, and now it is 0.01"]),
    ],
)
def test_a_journal_of_other_settings_is_refused(interrupted, capsys, options, words):
    folder, command, _ = interrupted
    error = fail(capsys, [*command, *options])
    for word in [*words, "got.calib.journal", "same options", "delete it"]:
        assert word in error
    assert (folder / "got.calib.journal").exists()


def test_a_journal_of_another_model_is_refused(interrupted, capsys):
    folder, command, _ = interrupted
    model = branchy()
    model.doc_string = "another"
    command[1] = save(folder, model, "other.onnx")
    error = fail(capsys, command)
    assert "6 samples of an earlier run that was interrupted, in which the" in error
    assert "the model was another one; delete it to start again" in error
    assert not re.search("[0-9a-f]{12}", error)


def test_a_journal_of_data_that_has_changed_is_refused(interrupted, capsys):
    folder, command, _ = interrupted
    np.savez(folder / "x.npz", x=images(COUNT, seed=4))
    error = fail(capsys, command)
    assert "samples that are no longer in the data" in error
    assert "delete it" in error


@pytest.mark.parametrize("options", [["--report", "r.json"], ["--until-stable", "1"]])
def test_points_of_data_that_has_changed_are_refused(job, capsys, options):
    """New samples at the beginning: what was measured then is of others."""
    folder, words, _ = job
    words += [str(folder / word) if ".json" in word else word for word in options]
    process = start(words, "write:9", 0.02)
    process.communicate(timeout=60)
    old = np.load(folder / "x.npz")["x"]
    np.savez(folder / "x.npz", x=np.concatenate([images(5, seed=4), old]))
    assert "delete it to start again" in fail(capsys, words)


@pytest.fixture
def measured(tmp_path):
    """A killed run with a report: folder, its words, the report of an undisturbed one.

    The data is a folder of files, a.npy to t.npy; of these at least 10 are kept, and of
    those the first 8 have been measured.
    """
    model, data = save(tmp_path, branchy()), tmp_path / "data"
    data.mkdir()
    for name, x in zip(LETTERS, images(20), strict=True):
        np.save(data / f"{name}.npy", x)
    command = ["observe", model, "--data", data, "--report", tmp_path / "r.json"]
    start([*command, "-o", tmp_path / "want.calib"]).communicate(timeout=60)
    want = json.loads((tmp_path / "r.json").read_text())
    words = [*command, "-o", tmp_path / "got.calib"]
    start(words, "sample:12", 0.03).communicate(timeout=60)
    entry = journal.load(tmp_path / "got.calib.journal", {})
    assert len(entry.points) == 1
    assert 10 <= len(entry.observation.samples) <= 12
    return tmp_path, words, want


def rename(folder, **names):
    """Files of the data, all at once."""
    for old in names:
        (folder / "data" / f"{old}.npy").rename(folder / old)
    for old, new in names.items():
        (folder / old).rename(folder / "data" / f"{new}.npy")


@pytest.mark.parametrize(
    "names",
    [
        {},
        {"b": "c", "c": "b"},
        {"s": "t", "t": "s"},
        {name: f"{name}1" for name in LETTERS},
    ],
)
def test_other_names_of_the_same_samples(measured, names):
    """Measured together or still to come: the report is right."""
    folder, words, want = measured
    rename(folder, **names)
    process = start(words)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 0, error
    assert kept(error) >= 10
    for entry in want["tensors"].values():
        for end in ("smallest", "largest"):
            path = Path(entry[end]["sample"])
            new = names.get(path.stem, path.stem)
            entry[end]["sample"] = str(path.with_stem(new))
    assert json.loads((folder / "r.json").read_text()) == want
    finished(folder, (folder / "want.calib").read_bytes())


@pytest.mark.parametrize("other", ["j", "t"])
def test_points_of_other_samples_are_refused(measured, capsys, other):
    """A sample that was measured changes places with one kept, or with a new one."""
    folder, words, _ = measured
    rename(folder, **{"a": other, other: "a"})
    error = fail(capsys, words)
    assert "after the first 8 samples, and these are others now" in error
    assert "delete it to start again" in error


@pytest.mark.parametrize("damage", [b"", b"n8jrnal\n", None])
def test_a_damaged_journal_is_refused(interrupted, capsys, damage):
    folder, command, _ = interrupted
    path = folder / "got.calib.journal"
    path.write_bytes(path.read_bytes()[:-1] if damage is None else damage)
    assert "delete it" in fail(capsys, command)


def test_the_journal_is_cheap():
    """Writing takes at most a 50th of the time, whatever the interval asked for."""
    pace = Pace()
    pace.cost(0.2)
    assert pace.seconds == 10
    pace.cost(0.0)
    assert pace.seconds == SECONDS


def test_a_calibration_continues_with_another_method(tmp_path):
    """One that is interrupted loses nothing."""
    model, data = save(tmp_path, branchy()), tmp_path / "x.npz"
    np.savez(data, x=images(60))

    def command(method, output="got.json"):
        words = ["calibrate", model, "--data", data, "-o", tmp_path / output]
        return [*words, "--method", method]

    process = start(command("mse"), seconds=0.03)
    while not (tmp_path / "got.json.journal").exists():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "samples are saved in" in error
    _, error = start(command("eq")).communicate(timeout=60)
    assert kept(error) > 0
    assert main([str(word) for word in command("eq", "want.json")]) == 0
    got, want = (tmp_path / name for name in ("got.json", "want.json"))
    assert got.read_bytes() == want.read_bytes()
    assert not (tmp_path / "got.json.journal").exists()
