# SPDX-License-Identifier: Apache-2.0
"""The part of docs/performance.md about the PC: its tables as Markdown."""

import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import pages
from bench.host.contestants import THREADS, Contestant

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


def text(figures: Sequence[Figure], facts: str) -> str:
    """All tables.  facts: with what and on what they were made."""
    parts = [facts]
    for threads in THREADS:
        parts += [f"Images a second, {said(threads)}:", table(figures, threads)]
    parts += ["Images a second of each level, one thread:", by_level(figures)]
    return "\n\n".join(parts)


def said(threads: int) -> str:
    return "one thread" if threads == 1 else f"{threads} threads"


def table(figures: Sequence[Figure], threads: int) -> str:
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


def by_level(figures: Sequence[Figure]) -> str:
    rates = [figure.rates for figure in figures]
    levels = list(dict.fromkeys(one.level for each in rates for one in each))
    columns = [level for level in levels if level]
    rows = [
        [figure.title, *(f"{figure.rates[Contestant(one, 1)]:.1f}" for one in columns)]
        for figure in figures
    ]
    return pages.table(["network", *(f"`{one}`" for one in columns)], rows)


def processor() -> str:
    """Its name as Linux has it, or else its architecture."""
    found = re.search(r"model name\s*: *(.+)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else platform.machine()
