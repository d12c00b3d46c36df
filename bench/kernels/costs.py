# SPDX-License-Identifier: Apache-2.0
"""Makes the tables of `neon8 profile`: what kernels and the C around them take.

Small networks and networks of random convolutions run under qemu, as neon8 runs on each
core. Of every part of a run, instructions are counted and cycles are modelled; the
library that traces says which kernels it called with which sizes. What explains the
former by the terms of the latter, none of them below 0, is the table.
"""

import argparse
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from scipy.optimize import nnls

import neon8
from bench.kernels import drawn, inorder, parts, report
from bench.kernels.cores import IN_ORDER
from bench.kernels.parts import Costs
from bench.kernels.report import Bench
from bench.kernels.tools import BenchError
from bench.networks import catalogue, samples, weights
from bench.networks.builder import Net
from neon8.errors import Neon8Error
from neon8.profile import costs, loops, work
from neon8.profile.profile import PROCESSORS
from neon8.profile.trace import Part, trace

OUT = report.OUT / "costs"
NAMES = {
    "cortex-a53": "a53",
    "cortex-a55": "a55",
    "cortex-a72": "a72",
    "cortex-a76": "a76",
    "neoverse-n2": "n2",
}
"""The cores of `neon8 profile`, as bench/kernels calls them."""

SAMPLES, SEED = 2, 5
DIGITS = 5

KERNEL = re.compile(r"n8_\w+_(neon|dotprod|i8mm)")
SHARED = {"n8_igemm_8x8": "n8_igemm", "n8_depthwise_round4": "n8_depthwise"}
"""Functions in assembly that kernels call, and how the names of those begin."""


def training() -> Iterator[Path]:
    """The .n8 files from which tables are made."""
    OUT.mkdir(parents=True, exist_ok=True)
    for number, each in enumerate(drawn.networks()):
        io = ("float", "int8")[number % 2]
        proto = weights.model(each.net, weights.draw(each.net))
        yield made(each.net, proto, io=io, options=each.options)
    for name in catalogue.NETWORKS:
        net, proto = catalogue.build(name, small=True)
        yield made(net, proto, io="float", name=f"small-{name}")


def made(
    net: Net,
    proto: onnx.ModelProto,
    *,
    io: str,
    name: str = "",
    options: drawn.Options = drawn.PLAIN,
) -> Path:
    path = OUT / f"{name or net.name}.n8"
    source = path.with_suffix(".onnx")
    onnx.save(proto, source)
    data = samples.inputs(net, SAMPLES, seed=SEED)
    # calibrate_model() would leave out what costs accuracy.
    seen = neon8.observe_model(source, data)
    table = neon8.solve_observation(seen, source, method="minmax", **options)
    neon8.save_model(neon8.compile_model(source, table, io=io), path)
    source.unlink()
    return path


@dataclass(slots=True)
class Seen:
    """What parts took, and the terms that are to explain it."""

    terms: list[work.Terms] = field(default_factory=list)
    spent: list[tuple[float, float]] = field(default_factory=list)

    def add(self, terms: Sequence[float], found: costs.Spent) -> None:
        self.terms.append(tuple(terms))
        self.spent.append((found.instructions, found.cycles))

    def rates(self) -> tuple[list[float], list[float]]:
        """Instructions, and cycles, of each term; all parts weigh the same."""
        terms, spent = np.array(self.terms), np.array(self.spent)
        most = np.abs(terms).max(0)
        scale = np.where(most > 0, most, 1)
        found = []
        for values in spent.T:
            weight = 1 / np.maximum(values, 1)
            rates, _ = nnls(terms * weight[:, None] / scale, values * weight)
            found.append([float(f"{rate:.{DIGITS}g}") for rate in rates / scale])
        return found[0], found[1]


def attributed(
    part: Part, measured: Costs
) -> tuple[dict[str, costs.Spent], costs.Spent]:
    """What each kernel that the part calls takes, and the C around them."""
    kernels = {call.kernel: costs.Spent() for call in part.calls}
    around = costs.Spent()
    for function, spent in measured.items():
        owner = owner_of(function, list(kernels))
        if owner is None:
            around += spent
        else:
            kernels[owner] += spent
    return kernels, around


def owner_of(function: str, kernels: Sequence[str]) -> str | None:
    """The kernel for which a function runs, or None."""
    if function in kernels:
        return function
    for kernel in kernels:
        if loops.code_of(kernel) == function:
            return kernel
    for shared, beginning in SHARED.items():
        if function.startswith(shared):
            return next((k for k in kernels if k.startswith(beginning)), None)
    return None


def solved(
    core: str, runs: Sequence[tuple[tuple[Part, ...], list[Costs]]]
) -> costs.Table:
    """The table that explains what was measured of runs."""
    kernels: dict[str, Seen] = defaultdict(Seen)
    around: dict[str, Seen] = defaultdict(Seen)
    for traced, measured in runs:
        for part, each in zip(traced, measured, strict=True):
            of_kernels, rest = attributed(part, each)
            for name, spent in of_kernels.items():
                terms = [
                    call.count * np.array(work.terms_of(call))
                    for call in part.calls
                    if call.kernel == name
                ]
                kernels[name].add(np.sum(terms, axis=0), spent)
            for key in work.keys(part):
                around[key].add(work.around(part), rest)
    return costs.Table(
        core=core,
        kernels={name: seen.rates() for name, seen in sorted(kernels.items())},
        around={name: seen.rates() for name, seen in sorted(around.items())},
    )


def measured(
    bench: Bench, core: str, files: Sequence[Path]
) -> list[tuple[tuple[Part, ...], list[Costs]]]:
    """Traced and measured.  core: of `neon8 profile`."""
    found: list[tuple[tuple[Part, ...], list[Costs]]] = []
    known: parts.Loops = {}
    for file in files:
        counted = parts.measure(bench, NAMES[core], file, OUT, known)
        traced = trace(file.read_bytes(), PROCESSORS[core], source=str(file))
        found.append((traced, counted))
        print(f"{core} {file.stem}", file=sys.stderr)
    return found


def listings(bench: Bench, core: str, files: Sequence[Path]) -> dict[str, object]:
    """The main loops of kernels on a core that runs instructions in order: cycles of a
    pass, and lines as loops.Line has them."""
    model = IN_ORDER[NAMES[core]]
    return {
        name: (
            inorder.cycles(steps, model),
            [
                (each.cycle, each.text, each.waits, each.units)
                for each in inorder.timeline(steps, model)
            ],
        )
        for name, steps in sorted(parts.hottest(bench, NAMES[core], files, OUT).items())
        if KERNEL.match(name)
    }


def write(name: str, found: object) -> None:
    """Where the package has it."""
    costs.FOLDER.mkdir(exist_ok=True)
    text = json.dumps(found, separators=(",", ":"))
    (costs.FOLDER / name).write_text(f"{text}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--core", choices=NAMES, nargs="+", default=list(NAMES))
    arguments = parser.parse_args()
    try:
        bench = report.build([NAMES[core] for core in arguments.core])
        files = list(training())
        for core in arguments.core:
            table = solved(core, measured(bench, core, files))
            known = {"kernels": table.kernels, "around": table.around}
            write(f"{core}.json", known)
            if NAMES[core] in IN_ORDER:
                found = listings(bench, core, files)
                write(f"{core}{loops.ENDING}", found)
    except (BenchError, Neon8Error) as error:
        sys.exit(f"costs: {error}")


if __name__ == "__main__":
    main()
