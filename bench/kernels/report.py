# SPDX-License-Identifier: Apache-2.0
"""Instructions and modelled cycles of whole layers on ARM cores that are not there."""

import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import pages
from bench.kernels import cores, emulation, flow, tools
from bench.kernels.assembly import Program, disassemble
from bench.kernels.cases import ROWS, Case, make
from bench.kernels.cores import CORES
from bench.kernels.tools import BenchError, Tools
from neon8.errors import Neon8Error
from neon8.version import __version__

COMMAND = "make bench-kernels"
OUT = emulation.ROOT / "build" / "bench" / "kernels"
COVERED = 0.995
"""Share of the instructions that is modelled; the rest costs the average of this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A layer of ROWS on a core of CORES.

    cycles: None where the core has no model.  kernel: the function with most of its
    instructions.
    """

    layer: str
    core: str
    macs: int
    instructions: int
    cycles: float | None
    kernel: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """All that was built once, in a folder.

    guests: with their instructions, by Machine.name.
    """

    tools: Tools
    folder: Path
    guests: dict[str, tuple[Path, Program]]

    def count(
        self, core: str, arguments: Sequence[str | Path]
    ) -> tuple[Program, list[flow.Edges]]:
        """The guest's instructions, and what of them ran, by part.  BenchError."""
        guest, code = self.guests[CORES[core].machine.name]
        return code, emulation.count(self.folder, CORES[core], guest, arguments)

    def measure(self, case: Case, core: str) -> Figure:
        """Run, check and judge.  BenchError: other bytes than on this machine."""
        result = OUT / "result"
        result.unlink(missing_ok=True)
        code, parts = self.count(core, (*case.arguments, result))
        if result.read_bytes() != case.expected:
            raise BenchError(f"{case.key} on {core}: other bytes than on this machine")
        edges = flow.whole(parts)
        functions = code.functions(flow.runs(edges))
        return Figure(
            layer=case.key,
            core=core,
            macs=case.macs,
            instructions=flow.instructions(edges),
            cycles=self.judge(code, edges, core) if cores.has_model(core) else None,
            kernel=max(functions, key=lambda name: (functions[name], name)),
        )

    def judge(self, code: Program, edges: flow.Edges, core: str) -> float:
        """Modelled cycles of all that was counted."""
        chosen = flow.most(edges, COVERED)
        steps = [code.steps(cycle.blocks) for cycle in chosen]
        costs = cores.cycles(self.tools.llvm_mca, steps, core)
        spent = sum(
            cycle.count * cost for cycle, cost in zip(chosen, costs, strict=True)
        )
        covered = sum(cycle.instructions for cycle in chosen)
        return spent * flow.instructions(edges) / covered


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
    emulation.build_counter(found.versions[used[0].emulator], folder)
    return Bench(
        tools=found,
        folder=folder,
        guests={
            name: (guest, disassemble(found.llvm_objdump, guest))
            for name, guest in guests.items()
        },
    )


def measure_all(layers: list[str], columns: list[str]) -> str:
    bench = build(columns)
    figures = []
    for layer in layers:
        print(f"{layer:12}", end="", file=sys.stderr, flush=True)
        case = make(layer, OUT)
        for core in columns:
            figure = bench.measure(case, core)
            figures.append(figure)
            shown = f"  {core} {brief(figure):>5}"
            print(shown, end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
    return text(figures, bench.tools)


def text(figures: Sequence[Figure], tools: Tools) -> str:
    """All tables, and with what they were made."""
    versions = ", ".join(f"{name} {number}" for name, number in tools.versions.items())
    parts = [f"neon8 {__version__}; {versions}."]
    if tools.other_llvm:
        parts.append(tools.other_llvm)
    if modelled := [figure for figure in figures if figure.cycles is not None]:
        parts.append("Multiply-accumulates (MACs) per modelled cycle, one thread:")
        parts.append(table(modelled, brief))
    tables = {
        "Executed instructions in thousands, and MACs per instruction:": count,
        "The function that executes most of them:": kernel,
    }
    for title, cell in tables.items():
        parts += [title, table(figures, cell)]
    return "\n\n".join(parts)


def brief(figure: Figure) -> str:
    """MACs per cycle, or per instruction where the core has no model."""
    return f"{figure.macs / (figure.cycles or figure.instructions):.2f}"


def count(figure: Figure) -> str:
    per_instruction = figure.macs / figure.instructions
    return f"{figure.instructions / 1e3:.0f} ({per_instruction:.2f})"


def kernel(figure: Figure) -> str:
    return f"`{figure.kernel.removeprefix('n8_')}`"


def table(figures: Sequence[Figure], cell: Callable[[Figure], str]) -> str:
    """Layers in the order of ROWS, cores in that of CORES."""
    by = {(figure.layer, figure.core): figure for figure in figures}
    layers = [key for key in ROWS if any(key == layer for layer, _ in by)]
    cores = [key for key in CORES if any(key == core for _, core in by)]
    header = ["layer", "MMACs", *(CORES[core].title for core in cores)]
    rows = []
    for layer in layers:
        macs = by[layer, cores[0]].macs
        cells = (cell(by[layer, core]) for core in cores)
        rows.append([ROWS[layer].name, f"{macs / 1e6:.1f}", *cells])
    return pages.table(header, rows)


def main() -> None:
    arguments = pages.options(__doc__, layers=ROWS, cores=CORES).parse_args()
    partial = arguments.layers != list(ROWS) or arguments.cores != list(CORES)
    if arguments.write and partial:
        sys.exit("bench-kernels: --write is for all layers on all cores")
    try:
        tables = measure_all(arguments.layers, arguments.cores)
        print(tables)
        if arguments.write:
            pages.write(arguments.write, COMMAND, tables)
    except (BenchError, Neon8Error) as error:
        sys.exit(f"bench-kernels: {error}")


if __name__ == "__main__":
    main()
