# SPDX-License-Identifier: Apache-2.0
"""Instructions and modelled cycles of whole layers on ARM cores that are not there."""

import argparse
import json
import sys
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path

from bench import pages
from bench.kernels import cores, emulation, flow, page, tools
from bench.kernels.assembly import Program, disassemble
from bench.kernels.cases import ROWS, Case, make
from bench.kernels.cores import CORES
from bench.kernels.page import Figure, Loop
from bench.kernels.tools import BenchError, Tools
from neon8.errors import Neon8Error

COMMAND = "make bench-kernels"
OUT = emulation.ROOT / "build" / "bench" / "kernels"
COVERED = 0.995
"""Share of the instructions that is modelled; the rest costs the average of this."""
SHOWN = 5
"""Loops of a layer in figures.json."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """All that was built once.  guests: with their instructions, by Machine.name."""

    tools: Tools
    counter: emulation.Counter
    guests: dict[str, tuple[Path, Program]]

    def measure(self, case: Case, core: str) -> Figure:
        """Run, check and judge.  BenchError: other bytes than on this machine."""
        result = OUT / "result"
        result.unlink(missing_ok=True)
        arguments = (*case.arguments, result)
        guest, code = self.guests[CORES[core].machine.name]
        edges = flow.whole(self.counter.count(CORES[core], guest, arguments))
        if result.read_bytes() != case.expected:
            raise BenchError(f"{case.key} on {core}: other bytes than on this machine")
        functions = code.functions(flow.runs(edges))
        modelled = cores.has_model(core)
        cycles, loops = self.judge(code, edges, core) if modelled else (None, ())
        return Figure(
            layer=case.key,
            core=core,
            macs=case.macs,
            instructions=flow.instructions(edges),
            cycles=cycles,
            kernel=max(functions, key=lambda name: (functions[name], name)),
            loops=loops,
        )

    def judge(
        self, code: Program, edges: flow.Edges, core: str
    ) -> tuple[float, tuple[Loop, ...]]:
        """Modelled cycles of all that was counted, and the dearest loops."""
        total = flow.instructions(edges)
        chosen, covered = [], 0
        for cycle in flow.cycles(edges):
            if covered >= COVERED * total:
                break
            chosen.append(cycle)
            covered += cycle.instructions
        steps = [code.steps(cycle.blocks) for cycle in chosen]
        costs = cores.cycles(self.tools.llvm_mca, steps, core)
        loops = [
            Loop(
                function=code.function[max(cycle.blocks).address],
                passes=cycle.count,
                instructions=cycle.instructions // cycle.count,
                cycles=cost,
            )
            for cycle, cost in zip(chosen, costs, strict=True)
        ]
        spent = sum(loop.passes * loop.cycles for loop in loops)
        dearest = sorted(loops, key=lambda loop: -loop.passes * loop.cycles)
        return spent * total / covered, tuple(dearest[:SHOWN])


def build(columns: Collection[str], folder: Path = OUT) -> Bench:
    """The guests, the plugin and what is known of their tools.  BenchError.

    columns: names of CORES.  folder: where all of it is made; for one process only.
    """
    folder.mkdir(parents=True, exist_ok=True)
    machines = {CORES[core].machine for core in columns}
    used = [machine for machine in cores.MACHINES if machine in machines]
    found = tools.find(
        command for machine in used for command in (machine.compiler, machine.emulator)
    )
    if found.other_llvm:
        print(found.other_llvm, file=sys.stderr)
    guests = {machine.name: emulation.build_guest(machine, folder) for machine in used}
    return Bench(
        tools=found,
        counter=emulation.build_counter(found.versions[used[0].emulator], folder),
        guests={
            name: (guest, disassemble(found.llvm_objdump, guest))
            for name, guest in guests.items()
        },
    )


def measure_all(layers: list[str], columns: list[str]) -> str:
    """The page's tables; build/bench/kernels/figures.json has the figures, too."""
    bench = build(columns)
    figures = []
    for layer in layers:
        print(f"{layer:12}", end="", file=sys.stderr, flush=True)
        case = make(layer, OUT)
        for core in columns:
            figure = bench.measure(case, core)
            figures.append(figure)
            shown = f"  {core} {page.brief(figure):>5}"
            print(shown, end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
    text = json.dumps([asdict(figure) for figure in figures], indent=2)
    (OUT / "figures.json").write_text(f"{text}\n")
    return page.text(figures, bench.tools)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for option, known in (("--layers", ROWS), ("--cores", CORES)):
        parser.add_argument(
            option,
            type=pages.some_of(known),
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
            pages.write(arguments.write, COMMAND, tables)
    except (BenchError, Neon8Error) as error:
        sys.exit(f"bench-kernels: {error}")


if __name__ == "__main__":
    main()
