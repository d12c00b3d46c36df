# SPDX-License-Identifier: Apache-2.0
"""What a shape of an open model costs: memory and time, for docs/memory.md."""

import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import onnx

from bench import pages
from bench.networks import resizable
from neon8 import calibrate_model, compile_model
from neon8.runtime import Model
from neon8.settings.shapes import shape

PROGRAM = ".venv/bin/python -m bench.networks.shapes"
CALIBRATION = 2
ROUNDS = 9
"""The time of a shape whose weights are packed is the median of so many."""

HEADER = (
    *("network", "shape", "steps", "file, kB", "packed, kB", "arena, kB", "/ least"),
    *("first, ms", "again, ms", "ms of 100 steps"),
)


def measured(name: str) -> Iterator[list[str]]:
    """A row for each shape of a network at full size.

    first, again: what a model and a session at the shape take, with weights that no
    shape before has packed, and without.
    """
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
            again = statistics.median(others)
            with model.at({entry: dims}) as at:
                steps, memory = len(at.steps), at.memory
            yield [
                name,
                " x ".join(map(str, dims)),
                str(steps),
                f"{len(content) / 1e3:.0f}",
                f"{memory.packed / 1e3:.0f}",
                f"{memory.arena / 1e3:.0f}",
                f"{memory.arena / memory.arena_least:.3f}",
                f"{first * 1e3:.1f}",
                f"{again * 1e3:.1f}",
                f"{again * 1e5 / steps:.2f}",
            ]


def taken(model: Model, shapes: dict[str, tuple[int, ...]]) -> float:
    """Seconds until a session at the shapes could run."""
    start = time.perf_counter()
    with model.at(shapes) as at, at.session():
        return time.perf_counter() - start


def main() -> int:
    """Measure and print; with --write, into a page."""
    arguments = pages.options(__doc__, networks=resizable.NETWORKS).parse_args()
    logging.getLogger("neon8").setLevel(logging.ERROR)
    rows = []
    for name in arguments.networks:
        for row in measured(name):
            rows.append(row)
            print("  ".join(row), flush=True)
    if arguments.write:
        pages.write(
            arguments.write, PROGRAM, pages.table(HEADER, rows, left=HEADER[:2])
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
