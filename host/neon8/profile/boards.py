# SPDX-License-Identifier: Apache-2.0
"""From modelled cycles to milliseconds: boards, by what was published of them.

published.csv has times of ncnn's int8 networks on one core, each as ncnn's own
benchmark page tells it, beside the cycles that the models of bench/kernels give the
same networks of the same ncnn, and the cache lines that missed a simulated second-level
cache. Of each board they give

  time * clock = factor * cycles + line * lines

by least squares of relative errors. How far off each network is when the others alone
decide is the range of an estimate.
"""

import csv
import functools
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from neon8 import text
from neon8.errors import SettingsError

FILE = Path(__file__).resolve().parent / "published.csv"

LINE = 64
"""Bytes of a cache line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What one board's times have in common.

    factor: cycles of the board to one of the model. line: nanoseconds of a line that
    comes from memory. ratios: of each measured time to what the others say of it; low,
    high: their range.
    """

    factor: float
    line: float
    low: float
    high: float
    ratios: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A board, and one kind of its cores.

    ghz: at which it was measured. cache: bytes of the last level that is its own.
    networks: how many measured times the fit comes from.
    """

    name: str
    title: str
    core: str
    ghz: float
    cache: int
    networks: int
    fit: Fit


def solve(
    cycles: np.ndarray, lines: np.ndarray, measured: np.ndarray
) -> tuple[float, float]:
    """Factor and cycles of a line; the latter is not below 0."""
    terms = np.stack([cycles, lines], axis=1) / measured[:, None]
    (factor, line), *_ = np.linalg.lstsq(terms, np.ones(len(measured)), rcond=None)
    if line < 0:
        return float(np.median(measured / cycles)), 0.0
    return float(factor), float(line)


def fitted(rows: list[dict[str, str]]) -> Fit:
    """The fit of one board's rows of published.csv."""
    ghz = float(rows[0]["ghz"])
    cycles, lines, measured = (
        np.array([float(row[name]) for row in rows])
        for name in ("mcycles", "mlines", "ms")
    )
    measured = measured * ghz
    factor, line = solve(cycles, lines, measured)
    ratios = []
    for left_out in range(len(rows)):
        others = np.arange(len(rows)) != left_out
        a, b = solve(cycles[others], lines[others], measured[others])
        estimate = a * cycles[left_out] + b * lines[left_out]
        ratios.append(measured[left_out] / estimate)
    return Fit(
        factor=factor,
        line=line / ghz,
        low=min(1.0, *ratios),
        high=max(1.0, *ratios),
        ratios=tuple(ratios),
    )


@functools.cache
def boards() -> dict[str, Board]:
    """All of them, by name."""
    rows: dict[str, list[dict[str, str]]] = {}
    with FILE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            rows.setdefault(row["board"], []).append(row)
    return {
        name: Board(
            name=name,
            title=same[0]["title"],
            core=same[0]["core"],
            ghz=float(same[0]["ghz"]),
            cache=int(same[0]["cache_kb"]) << 10,
            networks=len(same),
            fit=fitted(same),
        )
        for name, same in rows.items()
    }


def board_of(name: str) -> Board:
    """A board by its name.  SettingsError: there is none of it."""
    known = boards()
    if name not in known:
        raise SettingsError(
            f"no board {name!r} is known{text.suggested(name, known)}; measured ones: "
            + ", ".join(known)
        )
    return known[name]


def usual(core: str, ghz: float) -> Board:
    """Any board with such a core: what the measured ones have in common."""
    same = [board for board in boards().values() if board.core == core]
    factors = [board.fit.factor for board in same]
    factor = float(np.median(factors))
    return Board(
        name="",
        title=f"a board with {core} at {ghz:g} GHz",
        core=core,
        ghz=ghz,
        cache=int(np.median([board.cache for board in same])),
        networks=sum(board.networks for board in same),
        fit=Fit(
            factor=factor,
            line=float(np.median([board.fit.line for board in same])),
            low=min(board.fit.low * board.fit.factor for board in same) / factor,
            high=max(board.fit.high * board.fit.factor for board in same) / factor,
        ),
    )


def replace_clock(board: Board, ghz: float) -> Board:
    """The board at another clock; its memory stays as fast."""
    return replace(board, title=f"{board.title}, at {ghz:g} GHz", ghz=ghz)
