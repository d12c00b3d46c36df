# SPDX-License-Identifier: Apache-2.0
"""Images a second of neon8's native library and of onnxruntime in FP32, side by side.

Ratios, each of two things measured in one run; the best of several rounds. The weights
of the networks are random, which makes no difference to onnxruntime, and to neon8 only
where a faster kernel needs a proof about weights.
"""

import os
import platform
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import onnx
import onnxruntime
from tqdm import tqdm

import neon8
from bench import pages
from bench.host.contestants import THREADS, Contestant, contestants, race
from bench.networks import catalogue, samples
from neon8.errors import Neon8Error

OUT = Path(__file__).resolve().parents[2] / "build" / "bench" / "host"
COMMAND = "make bench-host"
CALIBRATION, SEED, ROUNDS = 8, 1, 12
NETWORKS = {
    "squeezenet1_1": "SqueezeNet 1.1",
    "mobilenet_v2": "MobileNetV2",
    "resnet50": "ResNet-50",
}
"""Names in the catalogue, and how the page calls them."""
AIM, LEAST = 1.0, 0.5
"""neon8's images a second by those of onnxruntime: the aim, and what counts at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A network and everybody's images a second.  level: neon8's best."""

    title: str
    macs: int
    level: str
    rates: dict[Contestant, float]

    def ratio(self, threads: int) -> float:
        """neon8's images a second by those of onnxruntime."""
        ours = self.rates[Contestant(self.level, threads)]
        return ours / self.rates[Contestant("", threads)]


def measure(name: str, rounds: int) -> Figure:
    """One network, calibrated and compiled as by default; everybody in turn."""
    net, proto = catalogue.build(name)
    path, file = (OUT / f"{name}.{ending}" for ending in ("onnx", "n8"))
    onnx.save(proto, path)
    data = samples.inputs(net, CALIBRATION, seed=SEED)
    table = neon8.calibrate_model(path, data)
    neon8.save_model(neon8.compile_model(path, table), file)
    with neon8.Model.open(file) as model:
        macs = sum(step.macs for step in model.steps)
    with contestants(path, file, data[0]) as runs:
        rates = race(runs, rounds)
        level = list(runs)[-1].level
    return Figure(title=NETWORKS[name], macs=macs, level=level, rates=rates)


def text(figures: list[Figure]) -> str:
    """All tables, and with what and on what they were made."""
    parts = [facts(figures)]
    for threads in THREADS:
        parts += [f"Images a second, {said(threads)}:", table(figures, threads)]
    parts += ["Images a second of each level, one thread:", by_level(figures)]
    return "\n\n".join(parts)


def said(threads: int) -> str:
    return "one thread" if threads == 1 else f"{threads} threads"


def table(figures: list[Figure], threads: int) -> str:
    header = ["network", "MMACs", "onnxruntime, FP32", "neon8, int8", "ratio"]
    rows = [
        [
            figure.title,
            f"{figure.macs / 1e6:.0f}",
            f"{figure.rates[Contestant('', threads)]:.1f}",
            f"{figure.rates[Contestant(figure.level, threads)]:.1f}",
            judged(figure.ratio(threads)),
        ]
        for figure in figures
    ]
    return pages.table(header, rows)


def judged(ratio: float) -> str:
    """As a number that never looks better than it is, with a mark below the aim."""
    mark = "" if ratio >= AIM else " !" if ratio >= LEAST else " !!"
    return f"{int(ratio * 100) / 100:.2f}{mark}"


def by_level(figures: list[Figure]) -> str:
    rates = [figure.rates for figure in figures]
    levels = list(dict.fromkeys(one.level for each in rates for one in each))
    columns = [level for level in levels if level]
    rows = [
        [figure.title, *(f"{figure.rates[Contestant(one, 1)]:.1f}" for one in columns)]
        for figure in figures
    ]
    return pages.table(["network", *(f"`{one}`" for one in columns)], rows)


def facts(figures: list[Figure]) -> str:
    """With what and on what it was measured."""
    levels = ", ".join(dict.fromkeys(f"`{figure.level}`" for figure in figures))
    cores = len(os.sched_getaffinity(0))
    return (
        f"neon8 {neon8.__version__}, level {levels}; onnxruntime "
        f"{onnxruntime.__version__}; {cores} cores of {processor()}. ! is below the "
        f"aim of {AIM:g}, !! below {LEAST:g}."
    )


def processor() -> str:
    """Its name as Linux has it, or else its architecture."""
    found = re.search(r"model name\s*: *(.+)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else platform.machine()


def main() -> None:
    parser = pages.options(__doc__, networks=NETWORKS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    if arguments.write and arguments.networks != list(NETWORKS):
        parser.error("--write is for all networks")
    if len(os.sched_getaffinity(0)) < max(THREADS):
        sys.exit(f"bench-host: needs {max(THREADS)} cores, for as many threads")
    OUT.mkdir(parents=True, exist_ok=True)
    try:
        bar = tqdm(arguments.networks, unit="network", disable=None, leave=False)
        figures = [measure(name, arguments.rounds) for name in bar]
        shown = text(figures)
        print(shown)
        if arguments.write:
            pages.write(arguments.write, COMMAND, shown)
    except Neon8Error as error:
        sys.exit(f"bench-host: {error}")


if __name__ == "__main__":
    main()
