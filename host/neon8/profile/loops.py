# SPDX-License-Identifier: Apache-2.0
"""The main loop of a kernel, and the cycle in which each of its instructions issues.

Of cores that run instructions in their order, where such a cycle exists; the package
has the loops in tables, which `make costs` makes with the model of bench/kernels.
"""

import functools
import html
import json
import re
from dataclasses import dataclass

from neon8 import text
from neon8.errors import SettingsError, SetupError
from neon8.profile.costs import FOLDER

ENDING = ".loops.json"
LINE_HEIGHT, CYCLE_WIDTH, TEXT_WIDTH, MARGIN = 18, 16, 330, 10
"""Sizes in the picture, in pixels."""
COLOURS = {
    "vector": "#4878a8",
    "insert": "#4878a8",
    "load": "#6a9f58",
    "store": "#c99b38",
    "multiply": "#8868a8",
    "branch": "#a85858",
    "alu": "#888888",
}
"""The colour of each unit."""
WAITS = "#c00000"
"""The border of an instruction that waits."""


@dataclass(frozen=True, slots=True)
class Line:
    """An instruction.

    cycle: of its issue, from that of the first one. waits: the register or unit that
    kept it from an earlier cycle, or "". units: what it uses.
    """

    cycle: int
    text: str
    waits: str
    units: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """A kernel's main loop.  cycles: of a pass, when it has run for a while."""

    kernel: str
    cycles: float
    lines: tuple[Line, ...]


def cores() -> tuple[str, ...]:
    """Those of which there are loops."""
    found = FOLDER.glob(f"*{ENDING}")
    return tuple(sorted(path.name.removesuffix(ENDING) for path in found))


@functools.cache
def loops(core: str) -> dict[str, Loop]:
    """The loops of a core, by kernel.  SettingsError: it has none."""
    if core not in cores():
        raise SettingsError(
            f"{core}: there are loops only of cores that run instructions in their "
            f"order: {', '.join(cores())}"
        )
    path = FOLDER / f"{core}{ENDING}"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {
            kernel: Loop(
                kernel,
                cycles,
                tuple(
                    Line(at, line, waits, tuple(units))
                    for at, line, waits, units in lines
                ),
            )
            for kernel, (cycles, lines) in found.items()
        }
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise SetupError(
            f"{path}: not a table of loops: install neon8 again"
        ) from error


def kernels() -> list[str]:
    """All that have a loop on some core, without n8_."""
    found = {kernel for core in cores() for kernel in loops(core)}
    return sorted(kernel.removeprefix("n8_") for kernel in found)


GEMM = re.compile(r"n8_igemm_s8_(?:s8_add|s8|s32|f32)_(\w+?)(?:_a5[35]\w*)?")


def code_of(kernel: str) -> str:
    """The function that has its code.

    Kernels of implicit GEMM that store other results, or whose variant names a core
    (kernels.inc), share that of the one that does neither.
    """
    found = GEMM.fullmatch(kernel)
    return f"n8_igemm_s8_s8_{found[1]}" if found else kernel


@functools.cache
def busy(core: str) -> dict[str, tuple[float, float]]:
    """The shares of cycles that vectors and that loads take in each function's loop.

    A cycle is a load's if no vector instruction issues in it, and one without any issue
    is that of the last one.  Empty for a core without loops.
    """
    found = {}
    for kernel, loop in loops(core).items() if core in cores() else ():
        units: dict[int, set[str]] = {}
        for each in loop.lines:  # a load may need the vector unit, too
            used = {"load"} if "load" in each.units else set(each.units)
            units.setdefault(each.cycle, set()).update(used)
        ends = [*list(units)[1:], next(iter(units)) + round(loop.cycles)]
        spent = dict.fromkeys(("vector", "load", ""), 0)
        for (cycle, used), end in zip(units.items(), ends, strict=True):
            kind = next((each for each in ("vector", "load") if each in used), "")
            spent[kind] += end - cycle
        found[kernel] = spent["vector"] / loop.cycles, spent["load"] / loop.cycles
    return found


def loop_of(kernel: str, core: str) -> Loop:
    """A kernel's, by its symbol, with or without n8_.  SettingsError: there is none."""
    known = loops(core)
    name = kernel if kernel.startswith("n8_") else f"n8_{kernel}"
    name = name if name in known else code_of(name)
    if name not in known:
        raise SettingsError(
            f"{core} runs no kernel {kernel!r}{text.suggested(name, known)}; "
            f"it has {', '.join(known)}"
        )
    return known[name]


def as_svg(loop: Loop, core: str) -> bytes:
    """A picture: a row for each instruction, a column for each cycle."""
    last = max(line.cycle for line in loop.lines) + 1
    width = TEXT_WIDTH + last * CYCLE_WIDTH + 2 * MARGIN
    height = (len(loop.lines) + 2) * LINE_HEIGHT + 2 * MARGIN
    title = f"{loop.kernel} on {core}: {loop.cycles:g} cycles a pass, modelled"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        ' font-family="monospace" font-size="12" role="img">'
        f"<title>{html.escape(title)}</title>"
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
        f'<text x="{MARGIN}" y="{MARGIN + 12}">{html.escape(title)}</text>'
    )
    rows = [head]
    for number, line in enumerate(loop.lines, start=1):
        y = MARGIN + number * LINE_HEIGHT
        x = MARGIN + TEXT_WIDTH + line.cycle * CYCLE_WIDTH
        colour = COLOURS[line.units[0]] if line.units else COLOURS["alu"]
        border = WAITS if line.waits else colour
        about = f"cycle {line.cycle}: {', '.join(line.units)}"
        about += f"; waits for {line.waits}" if line.waits else ""
        row = (
            f'<text x="{MARGIN}" y="{y + 13}">{html.escape(line.text)}</text>'
            f'<rect x="{x}" y="{y + 2}" width="{CYCLE_WIDTH - 2}" '
            f'height="{LINE_HEIGHT - 4}" fill="{colour}" stroke="{border}" '
            f'stroke-width="2"><title>{html.escape(about)}</title></rect>'
        )
        rows.append(row)
    return "\n".join([*rows, "</svg>", ""]).encode()
