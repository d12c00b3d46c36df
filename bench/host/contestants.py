# SPDX-License-Identifier: Apache-2.0
"""What is run: a network by onnxruntime in FP32, and by neon8's native library."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnxruntime

from neon8.errors import SetupError
from neon8.runtime import Model
from neon8.runtime.library import load

THREADS = (1, 2)
SECONDS = 0.2
"""The least length of a turn, without its first run."""
PAUSE = 0.1
"""Seconds before a turn, in which the threads of the one before go to sleep."""

Run = Callable[[], object]


class Contestant(NamedTuple):
    """level: of neon8, or "" for onnxruntime."""

    level: str
    threads: int


def levels(model: Path) -> list[str]:
    """The levels that this build has and this processor runs, the best one last."""
    values = load().ffi.typeof("enum n8_isa").relements
    found = []
    for name in sorted(values, key=values.__getitem__):
        level = name.removeprefix("N8_ISA_").lower()
        if level != "auto":
            with contextlib.suppress(SetupError), Model.open(model, isa=level):
                found.append(level)
    return found


@contextlib.contextmanager
def contestants(
    onnx: Path, compiled: Path, image: dict[str, np.ndarray]
) -> Iterator[dict[Contestant, Run]]:
    """Runs of one image: both with all THREADS, lower levels of neon8 with one."""
    runs: dict[Contestant, Run] = {}
    known = levels(compiled)
    with contextlib.ExitStack() as stack:
        for threads in THREADS:
            runs[Contestant("", threads)] = partial(float_session(onnx, threads), image)
        for level in known:
            model = stack.enter_context(Model.open(compiled, isa=level))
            for threads in THREADS if level == known[-1] else THREADS[:1]:
                session = stack.enter_context(model.session(threads=threads))
                runs[Contestant(level, threads)] = partial(session.run, image)
        yield runs


def float_session(path: Path, threads: int) -> Callable[[dict[str, np.ndarray]], list]:
    """onnxruntime as it is by default, but for the number of threads."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        path, options, providers=["CPUExecutionProvider"]
    )
    return partial(session.run, None)


def race(runs: Mapping[Contestant, Run], rounds: int) -> dict[Contestant, float]:
    """Images a second, each run being one image: the best of several turns.

    The machine has other things to do, too, now and then: they only ever make a turn
    slower, and what is measured within seconds of each other meets the same ones.
    """
    best = dict.fromkeys(runs, 0.0)
    for _ in range(rounds):
        for key, run in runs.items():
            time.sleep(PAUSE)
            best[key] = max(best[key], turn(run))
    return best


def turn(run: Run) -> float:
    """Runs a second, of as many as take SECONDS, or of one that takes longer."""
    run()  # weights and activations come back into the cache
    count, start = 0, time.perf_counter()
    while True:
        run()
        count += 1
        spent = time.perf_counter() - start
        if spent >= SECONDS:
            return count / spent
