# SPDX-License-Identifier: Apache-2.0
"""neon8-runner by itself: batches, whatever is wrong with them, and its facts."""

import dataclasses
import json
import os
import struct
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest

from neon8.runtime import Model
from neon8.runtime.board import batch

ROOT = Path(__file__).resolve().parents[4]
RUNNER = ROOT / "build" / "native" / "neon8-runner"
SMALL, OPEN = (ROOT / "tests" / "golden" / f"{name}.n8" for name in ("small", "open"))


def run(*words, given=b""):
    done = subprocess.run(
        [RUNNER, *words], input=given, capture_output=True, check=False
    )
    return done.returncode, done.stdout, done.stderr.decode()


def samples(model, count, **shapes):
    made = np.random.default_rng(count)
    return [
        {
            name: made.standard_normal(shapes.get(name, info.shape)).astype(info.dtype)
            for name, info in model.inputs.items()
        }
        for _ in range(count)
    ]


@pytest.fixture(scope="module")
def given():
    with Model.open(SMALL) as model:
        return batch.batch([batch.record(x.values()) for x in samples(model, 2)])


@pytest.mark.parametrize("threads", ["1", "3"])
def test_outputs_are_those_of_the_library(threads):
    with Model.open(SMALL) as model, model.session() as session:
        each = samples(model, 5)
        data = batch.batch([batch.record(x.values()) for x in each])
        status, out, said = run("run", SMALL, "--threads", threads, given=data)
        assert (status, said) == (0, "")
        for x, found in zip(each, batch.results(out, 5, model.outputs), strict=True):
            wanted = session.run(x)
            assert {n: a.tobytes() for n, a in found.items()} == {
                n: a.tobytes() for n, a in wanted.items()
            }


def test_each_sample_has_its_shape():
    with Model.open(OPEN) as model, model.session() as session:
        shapes = [(1, 3, 6, 6), (2, 3, 6, 14), (2, 3, 6, 14), (1, 3, 6, 6)]
        each = [samples(model, 1, image=shape)[0] for shape in shapes]
        data = batch.batch([batch.record(x.values()) for x in each])
        status, out, said = run("run", OPEN, given=data)
        assert (status, said) == (0, "")
        for x, found in zip(each, batch.results(out, 4, model.outputs), strict=True):
            for name, array in session.run(x).items():
                assert found[name].shape == array.shape
                assert found[name].tobytes() == array.tobytes()


def test_truncated_batches_are_refused(given):
    for size in [*range(0, 60, 3), len(given) // 2, len(given) - 1]:
        status, _, said = run("run", SMALL, given=given[:size])
        assert status == 2
        assert said == "neon8-runner: the batch ends early\n"


def damaged(data, at, value):
    return data[:at] + value + data[at + len(value) :]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: damaged(d, 0, b"M"), "no batch"),
        (lambda d: damaged(d, 8, struct.pack("<I", 3)), "ends early"),
        (lambda d: damaged(d, 8, struct.pack("<I", 1)), "goes on after"),
        (lambda d: damaged(d, 12, struct.pack("<Q", 1 << 63)), "another size"),
        (lambda d: damaged(d, 12, struct.pack("<Q", 0)), "another size"),
        (lambda d: damaged(d, 20, struct.pack("<i", 1)), "sample: "),
        (lambda d: damaged(d, 20, struct.pack("<i", -1)), "sample: "),
        (lambda d: damaged(d, 24, struct.pack("<i", 2**31 - 1)), "sample: "),
        (lambda d: damaged(d, 100, bytes([d[100] ^ 1])), "damaged on its way"),
        (lambda d: d + b"\0", "goes on after"),
        (lambda _: os.urandom(4096), "no batch"),
    ],
)
def test_damaged_batches_are_refused(given, change, said):
    status, _, why = run("run", SMALL, given=change(given))
    assert status == 2
    assert said in why
    assert why.count("\n") == 1


def test_shapes_out_of_bounds_are_refused():
    body = struct.pack("<Q8i", 0, 1, 3, 1 << 30, 1 << 30, 1, 1, 1, 1)
    record = body + struct.pack("<I", zlib.crc32(body))
    status, _, said = run("run", OPEN, given=batch.batch([record]))
    assert status == 2
    assert said.startswith("neon8-runner: sample: ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "one of: facts"),
        (["run"], "one of: facts"),
        (["walk", SMALL], "one of: facts"),
        (["run", "none.n8"], "none.n8: No such file"),
        (["run", RUNNER], "model: "),
        (["run", SMALL, "--threads"], "lacks a value"),
        (["run", SMALL, "--threads", "65"], "no number from 0 to 64"),
        (["run", SMALL, "--threads", "1e"], "no number"),
        (["run", SMALL, "--isa", "mmx"], "--isa mmx: unknown"),
        (["run", SMALL, "--isa", "neon"], "model: "),
        (["run", SMALL, "--max-bytes", "100"], "model: "),
        (["run", SMALL, "--cpus", "0-"], "no list"),
        (["run", SMALL, "--cpus", "3-1"], "no list"),
        (["run", SMALL, "--cpus", "9999999"], "no list"),
        (["run", SMALL, "--speed", "9"], "unknown option"),
        (["describe", OPEN, "--shapes", "1,3,6,6"], "not 8 dimensions for each"),
        (["describe", OPEN, "--shapes", "1,3,6,6,1,1,1,x"], "not 8 dimensions"),
        (["describe", OPEN, "--shapes", "1,3,5,6,1,1,1,1"], "sample: "),
        (["digest", "none"], "none: No such file"),
    ],
)
def test_wrong_words_are_refused(words, said):
    status, _, why = run(*words)
    assert status == 2
    assert said in why
    assert why.startswith("neon8-runner: ")
    assert why.count("\n") == 1


def test_names_of_a_hostile_place_are_printable():
    _, _, why = run("run", "a\x1b[31m\nb.n8")
    assert why == "neon8-runner: a?[31m?b.n8: No such file or directory\n"


def test_full_disk_is_told(given):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [RUNNER, "run", SMALL], input=given, stdout=full, stderr=-1, check=False
        )
    assert done.returncode == 2
    assert b"No space left on device" in done.stderr


def test_digests():
    status, out, _ = run("digest", SMALL, OPEN)
    data = [path.read_bytes() for path in (SMALL, OPEN)]
    assert status == 0
    assert json.loads(out)["files"] == [[len(d), zlib.crc32(d)] for d in data]


@pytest.mark.parametrize("shape", [(1, 3, 6, 6), (2, 3, 6, 14)])
def test_a_description_is_that_of_the_library(shape):
    words = ",".join(map(str, (*shape, 1, 1, 1, 1)))
    status, out, said = run("describe", OPEN, "--shapes", words)
    assert (status, said) == (0, "")
    found = json.loads(out)
    with Model.open(OPEN) as opened, opened.at({"image": shape}) as model:
        assert found["memory"] == dataclasses.asdict(model.memory)
        for step, own in zip(model.steps, found["steps"], strict=True):
            assert dataclasses.replace(step, **own) == step


def test_facts_of_this_machine():
    status, out, _ = run("facts")
    found = json.loads(out)
    assert status == 0
    assert found["machine"] == os.uname().machine
    assert found["bits"] == 64
    assert len(found["cores"]) >= len(os.sched_getaffinity(0))
    assert [each["cpu"] for each in found["cores"]] == list(range(len(found["cores"])))


def test_times_of_a_bench(given):
    with Model.open(SMALL) as model:
        data = batch.batch([batch.record(x.values()) for x in samples(model, 1)])
        status, out, said = run(
            *("bench", SMALL, "--runs", "20", "--seconds", "5", "--counters", "1"),
            *("--cpus", f"{min(os.sched_getaffinity(0))}", "--evict", "1000000"),
            given=data,
        )
        assert (status, said) == (0, "")
        found = json.loads(out)
        assert found["runs"] == 20
        assert found["kernels"] == [step.kernel for step in model.steps]
        assert len(found["parts"]) == len(model.steps) + 2
        for low, middle, high in [*found["parts"], found["total"]]:
            assert 0 <= low <= middle <= high
        assert sum(each[0] for each in found["parts"]) <= found["total"][0]
    status, _, said = run("bench", SMALL, given=given)
    assert (status, said) == (2, "neon8-runner: bench takes one sample\n")
    status, out, _ = run("bench", SMALL, "--seconds", "0", given=data)
    assert json.loads(out)["runs"] == 3
