# SPDX-License-Identifier: Apache-2.0
"""docs/performance.md: the tables as Markdown, and their place in the page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench import pages
from bench.kernels.cases import ROWS
from bench.kernels.cores import CORES
from bench.kernels.tools import Tools
from neon8.version import __version__


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
