# SPDX-License-Identifier: Apache-2.0
"""Instructions and modelled cycles of whole layers on ARM cores that are not there."""

import argparse
import json
import sys
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from pathlib import Path

import cores
import emulation
import flow
import marked
import page
import tools
from assembly import Program, disassemble
from cases import ROWS, Case, make
from cores import CORES
from neon8.errors import Neon8Error
from page import Figure, Loop
from tools import BenchError, Tools

COMMAND = "make bench-kernels"
OUT = emulation.ROOT / "build" / "bench" / "kernels"
COVERED = 0.995
"""Of the instructions: loops beyond cost what the others do on average."""
SHOWN = 5
"""Loops of a layer in figures.json."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """All that was built once.  code: the guest's instructions."""

    tools: Tools
    counter: emulation.Counter
    guest: Path
    code: Program

    def measure(self, case: Case, core: str) -> Figure:
        """Run, check and judge.  BenchError: other bytes than on this machine."""
        result = OUT / "result"
        result.unlink(missing_ok=True)
        arguments = (*case.arguments, result)
        edges = self.counter.count(CORES[core], self.guest, arguments)
        if result.read_bytes() != case.expected:
            raise BenchError(f"{case.key} on {core}: other bytes than on this machine")
        functions = self.code.functions(flow.runs(edges))
        cycles, loops = self.judge(edges, core)
        return Figure(
            layer=case.key,
            core=core,
            macs=case.macs,
            instructions=flow.instructions(edges),
            cycles=cycles,
            kernel=max(functions, key=lambda name: (functions[name], name)),
            loops=loops,
        )

    def judge(self, edges: flow.Edges, core: str) -> tuple[float, tuple[Loop, ...]]:
        """Modelled cycles of all that was counted, and the dearest loops."""
        total = flow.instructions(edges)
        chosen, covered = [], 0
        for cycle in flow.cycles(edges):
            if covered >= COVERED * total:
                break
            chosen.append(cycle)
            covered += cycle.instructions
        steps = [self.code.steps(cycle.blocks) for cycle in chosen]
        costs = cores.cycles(self.tools.llvm_mca, steps, core)
        loops = [
            Loop(
                function=self.code.function[max(cycle.blocks).address],
                passes=cycle.count,
                instructions=cycle.instructions // cycle.count,
                cycles=cost,
            )
            for cycle, cost in zip(chosen, costs, strict=True)
        ]
        spent = sum(loop.passes * loop.cycles for loop in loops)
        dearest = sorted(loops, key=lambda loop: -loop.passes * loop.cycles)
        return spent * total / covered, tuple(dearest[:SHOWN])


def build() -> Bench:
    """The guest, the plugin and what is known of their tools.  BenchError."""
    OUT.mkdir(parents=True, exist_ok=True)
    found = tools.find()
    if found.other_llvm:
        print(found.other_llvm, file=sys.stderr)
    version = found.versions[found.emulator]
    guest = emulation.build_guest(found, OUT)
    return Bench(
        tools=found,
        counter=emulation.build_counter(found.emulator, version, OUT),
        guest=guest,
        code=disassemble(found.llvm_objdump, guest),
    )


def measure_all(layers: list[str], columns: list[str]) -> str:
    """The page's tables; build/bench/kernels/figures.json has the figures, too."""
    bench = build()
    figures = []
    for layer in layers:
        print(f"{layer:12}", end="", file=sys.stderr, flush=True)
        case = make(layer, OUT)
        for core in columns:
            figure = bench.measure(case, core)
            figures.append(figure)
            shown = f"  {core} {page.rate(figure):>5}"
            print(shown, end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
    text = json.dumps([asdict(figure) for figure in figures], indent=2)
    (OUT / "figures.json").write_text(f"{text}\n")
    return page.text(figures, bench.tools)


def names(known: Collection[str]) -> Callable[[str], list[str]]:
    """A type of argument: some of `known`, with commas between them."""

    def parse(text: str) -> list[str]:
        chosen = text.split(",")
        for name in chosen:
            if name not in known:
                raise argparse.ArgumentTypeError(
                    f"{name!r} is not one of {', '.join(known)}"
                )
        return [name for name in known if name in chosen]

    return parse


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for option, known in (("--layers", ROWS), ("--cores", CORES)):
        parser.add_argument(
            option,
            type=names(known),
            default=list(known),
            metavar="NAME,...",
            help=f"some of {', '.join(known)}; default: all",
        )
    parser.add_argument(
        "--write", type=Path, metavar="PAGE.md", help="put the tables into this page"
    )
    arguments = parser.parse_args()
    partial = arguments.layers != list(ROWS) or arguments.cores != list(CORES)
    if arguments.write and partial:
        parser.error("--write is for all layers on all cores")
    try:
        tables = measure_all(arguments.layers, arguments.cores)
        print(tables)
        if arguments.write:
            marked.write(arguments.write, COMMAND, tables)
    except (BenchError, Neon8Error) as error:
        sys.exit(f"bench-kernels: {error}")


if __name__ == "__main__":
    main()
