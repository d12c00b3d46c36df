# SPDX-License-Identifier: Apache-2.0
"""Images a second of neon8's native library and of onnxruntime in FP32, side by side.

Ratios, each of two things measured in one run; the best of several rounds. Prints the
tables, writes build/bench/host/figures.json, and the page with --write.
"""

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

import onnxruntime
from tqdm import tqdm

from bench import pages
from bench.host.contestants import THREADS, contestants
from bench.host.page import AIM, LEAST, Figure, processor, text
from bench.host.race import Rules, race
from bench.host.subjects import NETWORKS, Subject, subjects
from neon8.errors import Neon8Error
from neon8.version import __version__

OUT = Path(__file__).resolve().parents[2] / "build" / "bench" / "host"
COMMAND = "make bench-host"


def measure(subject: Subject, rules: Rules) -> Figure:
    """One network, everybody in turn."""
    with contestants(subject.onnx, subject.compiled, subject.image) as runs:
        rates = race(runs, rules)
        level = list(runs)[-1].level
    return Figure(title=subject.title, macs=subject.macs, level=level, rates=rates)


def facts(figures: list[Figure]) -> str:
    """With what and on what it was measured."""
    levels = ", ".join(dict.fromkeys(f"`{figure.level}`" for figure in figures))
    cores = len(os.sched_getaffinity(0))
    return (
        f"neon8 {__version__}, level {levels}; onnxruntime {onnxruntime.__version__}; "
        f"{cores} cores of {processor()}. ! is below the aim of {AIM:g}, !! below "
        f"{LEAST:g}."
    )


def as_json(figure: Figure) -> dict:
    """A figure with a row for everybody."""
    rates = [asdict(one) | {"rate": rate} for one, rate in figure.rates.items()]
    return {"title": figure.title, "macs": figure.macs, "rates": rates}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--networks",
        type=pages.some_of(NETWORKS),
        default=list(NETWORKS),
        metavar="NAME,...",
        help=f"some of {', '.join(NETWORKS)}; default: all",
    )
    parser.add_argument("--squeezenet", type=Path, help="a trained one, as ONNX")
    parser.add_argument("--rounds", type=int, default=Rules().rounds)
    parser.add_argument(
        "--write", type=Path, metavar="PAGE.md", help="put the tables into this page"
    )
    arguments = parser.parse_args()
    whole = arguments.networks == list(NETWORKS) and arguments.squeezenet is None
    if arguments.write and not whole:
        parser.error("--write is for all networks, with random weights")
    if len(os.sched_getaffinity(0)) < max(THREADS):
        sys.exit(f"bench-host: needs {max(THREADS)} cores, for as many threads")
    OUT.mkdir(parents=True, exist_ok=True)
    made = subjects(arguments.networks, OUT, squeezenet=arguments.squeezenet)
    rules = Rules(rounds=arguments.rounds)
    try:
        bar = tqdm(made.values(), unit="network", disable=None, leave=False)
        figures = [measure(make(), rules) for make in bar]
        shown = text(figures, facts(figures))
        print(shown)
        if arguments.write:
            pages.write(arguments.write, COMMAND, shown)
    except Neon8Error as error:
        sys.exit(f"bench-host: {error}")
    values = [as_json(figure) for figure in figures]
    (OUT / "figures.json").write_text(json.dumps(values, indent=2) + "\n")


if __name__ == "__main__":
    main()
