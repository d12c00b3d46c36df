# SPDX-License-Identifier: Apache-2.0
"""What is run: a network by onnxruntime in FP32, and by neon8's native library."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import onnxruntime

from neon8.errors import SetupError
from neon8.runtime import Model
from neon8.runtime.library import load

THREADS = (1, 2)
Run = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Contestant:
    """level: of neon8, or "" for onnxruntime."""

    level: str
    threads: int


def levels(model: Path) -> list[str]:
    """The levels that this build has and this processor runs, the best one last."""
    values = load().ffi.typeof("enum n8_isa").relements
    names = sorted(values, key=values.__getitem__)
    found = []
    for name in names:
        level = name.removeprefix("N8_ISA_").lower()
        if level == "auto":
            continue
        try:
            Model.open(model, isa=level).close()
        except SetupError:
            continue
        found.append(level)
    return found


@contextmanager
def contestants(
    onnx: Path, compiled: Path, image: dict[str, np.ndarray]
) -> Iterator[dict[Contestant, Run]]:
    """Runs of one image: both with all THREADS, lower levels of neon8 with one."""
    runs: dict[Contestant, Run] = {}
    known = levels(compiled)
    with ExitStack() as stack:
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
