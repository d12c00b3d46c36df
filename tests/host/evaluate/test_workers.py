# SPDX-License-Identifier: Apache-2.0
"""Samples that are evaluated side by side: the same result as one after the other."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import neon8
from neon8.cli.main import main
from neon8.data.parallel import side_by_side
from neon8.data.preprocess import Preprocess
from neon8.evaluate.runner import open_float

SMOOTH = Preprocess(mean=(100.0,), std=(50.0,))
COUNT = 40


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Images of noise with labels, and their preprocessing."""
    folder = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(5)
    for number in range(COUNT):
        pixels = rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:02}.png")
    lines = [f"{number:02}.png {number % 6}" for number in range(COUNT)]
    (folder / "labels.txt").write_text("\n".join(lines))
    (folder / "p.toml").write_text("mean = [100]\nstd = [50]\n")
    return folder


@pytest.mark.parametrize("model", ["n8", "n8_int8", "onnx"])
@pytest.mark.parametrize("compared", [False, True])
def test_the_figures_are_those_of_one(tiny, photos, model, compared):
    reference = tiny.onnx if compared else None
    found = [
        neon8.evaluate_model(
            getattr(tiny, model),
            photos,
            preprocess=SMOOTH,
            reference=reference,
            workers=workers,
        )
        for workers in (1, 2, 7, None)
    ]
    assert found[0].n == COUNT
    assert (found[0].sqnr_db is not None) == compared
    assert found[1:] == found[:1] * 3


@pytest.mark.parametrize("workers", [1, 3])
def test_data_may_be_any_iterable(tiny, workers):
    x = np.load(tiny.labelled)["x"]
    part = {"reference": tiny.onnx, "skip": 1, "limit": 5}
    wanted = neon8.evaluate_model(tiny.n8, list(x), workers=1, **part)
    for data in (tiny.data, (image[None] for image in x), x, [{"image": x}]):
        found = neon8.evaluate_model(tiny.n8, data, workers=workers, **part)
        assert found == wanted


@pytest.mark.parametrize("narrow", ["model", "reference"])
def test_no_more_than_both_networks_have_room_for(tiny, photos, monkeypatch, narrow):
    files, asked = {"model": tiny.n8, "reference": tiny.onnx}, []

    @contextmanager
    def opened(path, *options):
        with open_float(path, *options) as runner:
            yield replace(runner, most=2) if path == files[narrow] else runner

    def recorded(samples, work, *, workers):
        asked.append(workers)
        return side_by_side(samples, work, workers=workers)

    monkeypatch.setattr("neon8.evaluate.evaluate.open_float", opened)
    monkeypatch.setattr("neon8.evaluate.evaluate.side_by_side", recorded)
    neon8.evaluate_model(**files, data=photos, preprocess=SMOOTH, workers=7)
    assert asked == [2]


def test_watched_in_order_with_their_number(tiny, photos):
    seen = []

    def watch(results):
        assert (len(results), results.batch) == (COUNT, 1)
        for result in results:
            seen.append(result.sample.name)
            yield result

    neon8.evaluate_model(tiny.n8, photos, preprocess=SMOOTH, workers=3, watch=watch)
    assert seen == [str(photos / f"{number:02}.png") for number in range(COUNT)]


@pytest.mark.parametrize("workers", [1, 3])
def test_ctrl_c_ends_it(tiny, photos, workers):
    def watch(results):
        for number, result in enumerate(results):
            if number == 5:
                raise KeyboardInterrupt
            yield result

    options = {"preprocess": SMOOTH, "workers": workers, "watch": watch}
    with pytest.raises(KeyboardInterrupt):
        neon8.evaluate_model(tiny.n8, photos, reference=tiny.onnx, **options)
    names = [thread.name for thread in threading.enumerate()]
    assert not [name for name in names if name.startswith("neon8-sample")]


def test_ctrl_c_at_the_command_line(tiny, photos, tmp_path):
    names = [f"{number % COUNT:02}.png {number % 6}\n" for number in range(30_000)]
    (tmp_path / "images").symlink_to(photos)
    (tmp_path / "labels.txt").write_text("".join(names))
    words = ["evaluate", tiny.n8, "--data", tmp_path, "--preprocess", photos / "p.toml"]
    # Jobs that a shell runs in the background ignore it, and so would the process.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        [sys.executable, "-m", "neon8", *map(str, words), "--workers", "3"],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # numpy starts none
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    signal.signal(signal.SIGINT, before)
    tasks = Path(f"/proc/{process.pid}/task")
    while len(list(tasks.iterdir())) < 4:  # main thread and workers
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert error == "neon8: interrupted\n"


def test_many_runs_side_by_side(tiny, tmp_path):
    np.save(tmp_path / "x.npy", np.load(tiny.data)["x"])
    found = []
    for number in (1, 2, 5):
        words = ["run", tiny.n8, "--input", tmp_path / "x.npy"]
        words += ["-o", tmp_path / f"{number}.npy", "--workers", number]
        assert main([*map(str, words)]) == 0
        found.append((tmp_path / f"{number}.npy").read_bytes())
    assert found[1:] == found[:1] * 2
