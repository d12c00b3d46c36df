# SPDX-License-Identifier: Apache-2.0
"""Whenever a run is killed, the same command gives the same bytes."""

import json
import os
import re
import shutil
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
    return subprocess.Popen(line, stderr=subprocess.PIPE, text=True)


def kept(error):
    """How many samples the run said it continues with."""
    found = re.search(r"journal: continuing, (\d+) samples", error)
    return int(found[1]) if found else 0


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A folder with a network, data, and what a run gives that nothing disturbs."""
    folder = tmp_path_factory.mktemp("source")
    model = save(folder, branchy())
    np.savez(folder / "x.npz", x=images(COUNT))
    words = ["observe", model, "--data", folder / "x.npz", "-o", folder / "want.calib"]
    assert main([*map(str, words)]) == 0
    return folder


@pytest.fixture
def job(source, tmp_path):
    """Files, the command, and the bytes of a run that nothing disturbs."""
    shutil.copytree(source, tmp_path, dirs_exist_ok=True)
    words = ["observe", tmp_path / "net.onnx", "--data", tmp_path / "x.npz"]
    want = (source / "want.calib").read_bytes()
    return tmp_path, [*words, "-o", tmp_path / "got.calib"], want


@pytest.fixture(scope="module")
def server():
    """Start a run, and wait for its status."""
    process = subprocess.Popen(
        [sys.executable, SCRIPT, "serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def ask(*words):
        print(json.dumps([*map(str, words)]), file=process.stdin, flush=True)
        return int(process.stdout.readline())

    with process:
        yield ask


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
def test_killed_at_fixed_moments(job, server, options):
    folder, words, want = job
    before = 0
    for kill in [*MOMENTS, "never"]:
        server(folder / "error", 0.008, kill, *words, *options)
        status, error = server(), (folder / "error").read_text()
        assert status == (0 if kill == "never" else -signal.SIGKILL), error
        assert kept(error) >= before
        before = kept(error)
    assert before > COUNT // 2
    finished(folder, want)


def test_killed_at_random_moments(job, server):
    """Twenty times; a run that comes to its end first does not count as one."""
    folder, words, want = job
    rng = np.random.default_rng(int(os.environ.get("NEON8_SEED", "20")))
    kills = 0
    while kills < KILLS:
        process = server(folder / "error", 0.01, "never", *words)
        time.sleep(rng.uniform(0, 0.3))
        os.kill(process, signal.SIGKILL)  # until it is asked for it has its number
        status = server()
        assert status in (0, -signal.SIGKILL)
        if status == 0:
            finished(folder, want)
            (folder / "got.calib").unlink()
        kills += status != 0
    assert main([*map(str, words)]) == 0
    finished(folder, want)


@pytest.mark.parametrize("options", [[], ["--workers", "2"]])
def test_ctrl_c_keeps_what_is_done(job, capsys, options):
    folder, words, want = job
    process = start([*words, *options], seconds=0.03)
    while not (folder / "got.calib.journal").exists():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in error
    done = re.search(r"interrupted: (\d+) samples? saved in (\S+journal);", error)
    assert "run the same command again" in error
    assert main([*map(str, (*words, *options))]) == 0
    assert kept(capsys.readouterr().err) == int(done[1]) > 0
    finished(folder, want)


@pytest.fixture(scope="module")
def six(source, tmp_path_factory, server):
    """The journal of a run that was killed after six samples."""
    output = tmp_path_factory.mktemp("six") / "got.calib"
    words = ["observe", source / "net.onnx", "--data", source / "x.npz", "-o", output]
    server(output.with_name("error"), 0.02, "write:6", *words)
    assert server() == -signal.SIGKILL
    return journal.journal_of(output)


@pytest.fixture
def interrupted(source, tmp_path, six):
    """A command that continues with that journal."""
    shutil.copy(six, tmp_path)
    words = ["observe", source / "net.onnx", "--data", source / "x.npz"]
    return tmp_path, [*words, "-o", tmp_path / "got.calib"]


def fail(capsys, words):
    status = main([str(word) for word in words])
    out, error = capsys.readouterr()
    assert (status, out) == (2, "")
    *warnings, last = error.splitlines()
    assert all("continuing, " in line for line in warnings)
    assert last.startswith("neon8: error: ")
    return last


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--limit", "9"], "--limit was not given, and now it is 9"),
        (["--skip", "1"], "--skip was 0, and now it is 1"),
        (["--shard", "1/2"], "--shard was not given, and now it is 1/2"),
        (
            ["--ignore-nonfinite"],
            "--ignore-nonfinite was not given, and now it is given",
        ),
        (["--until-stable", "1"], "--until-stable was not given, and now it is 1"),
    ],
)
def test_a_journal_of_other_settings_is_refused(interrupted, capsys, options, said):
    folder, command = interrupted
    error = fail(capsys, [*command, *options])
    for word in (said, "got.calib.journal", "same options", "delete it"):
        assert word in error
    assert (folder / "got.calib.journal").exists()


def test_a_journal_of_another_model_is_refused(interrupted, capsys):
    folder, command = interrupted
    model = branchy()
    model.doc_string = "another"
    command[1] = save(folder, model, "other.onnx")
    error = fail(capsys, command)
    assert "6 samples of an earlier run that was interrupted, in which the" in error
    assert "the model was another one; delete it to start again" in error
    assert not re.search("[0-9a-f]{12}", error)


@pytest.mark.parametrize(
    ("options", "new", "old", "said"),
    [
        ([], COUNT, 0, "samples that are no longer in the data"),
        (["--report", "r.json"], 5, COUNT, "and these are others now"),
        (["--until-stable", "1"], 5, COUNT, "and these are others now"),
    ],
)
def test_data_that_has_changed_is_refused(job, server, capsys, options, new, old, said):
    """New samples at the beginning: what was measured then is of others."""
    folder, words, _ = job
    words += [str(folder / word) if ".json" in word else word for word in options]
    server(folder / "error", 0.02, "write:9", *words)
    assert server() == -signal.SIGKILL
    x = np.concatenate([images(new, seed=4), images(COUNT)[:old]])
    np.savez(folder / "x.npz", x=x)
    error = fail(capsys, words)
    assert said in error
    assert "delete it" in error


@pytest.fixture(scope="module")
def reported(source, tmp_path_factory, server):
    """A folder with data, a.npy to t.npy, the journal of a killed run with a report,
    and the report of an undisturbed one.

    Of the samples at least 10 are kept, and of those the first 8 have been measured.
    """
    folder = tmp_path_factory.mktemp("reported")
    fill(folder / "data")
    words = ["observe", source / "net.onnx", "--data", folder / "data"]
    words += ["--report", folder / "r.json", "-o"]
    assert main([*map(str, words), str(folder / "want.calib")]) == 0
    server(folder / "error", 0.03, "sample:12", *words, folder / "got.calib")
    assert server() == -signal.SIGKILL
    entry = journal.load(folder / "got.calib.journal", {})
    assert len(entry.points) == 1
    assert 10 <= len(entry.observation.samples) <= 12
    return folder


def fill(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, x in zip(LETTERS, images(20), strict=True):
        np.save(folder / f"{name}.npy", x)


@pytest.fixture
def measured(source, reported, tmp_path):
    """Data, the command that continues with that journal, and its report."""
    fill(reported / "data")
    shutil.copy(reported / "got.calib.journal", tmp_path)
    words = ["observe", source / "net.onnx", "--data", reported / "data"]
    words += ["--report", tmp_path / "r.json", "-o", tmp_path / "got.calib"]
    return reported / "data", words, json.loads((reported / "r.json").read_text())


def rename(folder, **names):
    """Files of the data, all at once."""
    for old in names:
        (folder / f"{old}.npy").rename(folder.parent / old)
    for old, new in names.items():
        (folder.parent / old).rename(folder / f"{new}.npy")


@pytest.mark.parametrize(
    "names",
    [
        {},
        {"b": "c", "c": "b"},
        {"s": "t", "t": "s"},
        {name: f"{name}1" for name in LETTERS},
    ],
)
def test_other_names_of_the_same_samples(measured, reported, tmp_path, capsys, names):
    """Measured together or still to come: the report is right."""
    data, words, want = measured
    rename(data, **names)
    assert main([*map(str, words)]) == 0
    assert kept(capsys.readouterr().err) >= 10
    for entry in want["tensors"].values():
        for end in ("smallest", "largest"):
            path = Path(entry[end]["sample"])
            new = names.get(path.stem, path.stem)
            entry[end]["sample"] = str(path.with_stem(new))
    assert json.loads((tmp_path / "r.json").read_text()) == want
    finished(tmp_path, (reported / "want.calib").read_bytes())


@pytest.mark.parametrize("other", ["j", "t"])
def test_points_of_other_samples_are_refused(measured, capsys, other):
    """A sample that was measured changes places with one kept, or with a new one."""
    data, words, _ = measured
    rename(data, **{"a": other, other: "a"})
    error = fail(capsys, words)
    assert "after the first 8 samples, and these are others now" in error
    assert "delete it to start again" in error


def test_the_journal_is_cheap():
    """Writing takes at most a 50th of the time, whatever the interval asked for."""
    pace = Pace()
    pace.cost(0.2)
    assert pace.seconds == 10
    pace.cost(0.0)
    assert pace.seconds == SECONDS
