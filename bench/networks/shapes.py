# SPDX-License-Identifier: Apache-2.0
"""What a shape of an open model costs: memory and time, for docs/memory.md."""

import argparse
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx

from bench import pages
from bench.networks import resizable
from neon8 import calibrate_model, compile_model
from neon8.runtime import Model
from neon8.runtime.arrays import Memory
from neon8.settings.shapes import shape

PROGRAM = ".venv/bin/python -m bench.networks.shapes"
PAGE = "docs/memory.md"
CALIBRATION = 2
ROUNDS = 9
"""The time of a shape whose weights are packed is the median of so many."""

HEADER = (
    *("network", "shape", "steps", "file, kB", "packed, kB", "arena, kB", "/ least"),
    *("first, ms", "again, ms", "ms of 100 steps"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One shape.  first, again: seconds that a model and a session at it take, with
    weights that no shape before has packed, and without."""

    name: str
    dims: tuple[int, ...]
    steps: int
    file: int
    memory: Memory
    first: float
    again: float


def measured(name: str) -> Iterator[Figures]:
    """Each shape of a network at full size."""
    case = resizable.case(name, small=False)
    proto = resizable.build(name)
    entry = proto.graph.input[0].name
    _, bounds = shape(f"{entry}={case.bounds}")
    usual = case.shapes[0]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.onnx"
        onnx.save(proto, path)
        data = resizable.inputs(name, usual, seed=5, count=CALIBRATION)
        table = calibrate_model(path, data, shapes={entry: usual}, method="minmax")
        keep = resizable.NETWORKS[name].keep
        content = compile_model(path, table, shapes={entry: bounds}, keep_float=keep)
    with Model.from_bytes(content) as model:
        for dims in case.shapes:
            first, *others = (taken(model, {entry: dims}) for _ in range(1 + ROUNDS))
            with model.at({entry: dims}) as at:
                yield Figures(
                    name=name,
                    dims=dims,
                    steps=len(at.steps),
                    file=len(content),
                    memory=at.memory,
                    first=first,
                    again=statistics.median(others),
                )


def taken(model: Model, shapes: dict[str, tuple[int, ...]]) -> float:
    """Seconds until a session at the shapes could run."""
    start = time.perf_counter()
    with model.at(shapes) as at, at.session():
        return time.perf_counter() - start


def cells(figures: Figures) -> list[str]:
    """One row."""
    memory = figures.memory
    return [
        figures.name,
        " x ".join(map(str, figures.dims)),
        str(figures.steps),
        f"{figures.file / 1e3:.0f}",
        f"{memory.packed / 1e3:.0f}",
        f"{memory.arena / 1e3:.0f}",
        f"{memory.arena / memory.arena_least:.3f}",
        f"{figures.first * 1e3:.1f}",
        f"{figures.again * 1e3:.1f}",
        f"{figures.again * 1e5 / figures.steps:.2f}",
    ]


def main() -> int:
    """Measure and print; with --write, into a page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = resizable.NETWORKS
    parser.add_argument("--only", nargs="*", choices=known, metavar="NAME")
    parser.add_argument("--write", type=Path, metavar=PAGE)
    arguments = parser.parse_args()
    logging.getLogger("neon8").setLevel(logging.ERROR)
    rows = []
    for name in known if arguments.only is None else arguments.only:
        for figures in measured(name):
            rows.append(cells(figures))
            print("  ".join(rows[-1]), flush=True)
    if arguments.write:
        pages.write(
            arguments.write, PROGRAM, pages.table(HEADER, rows, left=HEADER[:2])
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
