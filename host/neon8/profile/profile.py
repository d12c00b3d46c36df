# SPDX-License-Identifier: Apache-2.0
"""How long a model takes on a core, layer by layer, without the core."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from neon8 import text
from neon8.errors import SettingsError
from neon8.profile import boards, costs, loops
from neon8.profile.boards import LINE, Board, Fit
from neon8.profile.costs import Table
from neon8.profile.measured import Bench, Kind, Row, measured_row
from neon8.profile.trace import Part, Processor, trace
from neon8.runtime.arrays import StepInfo
from neon8.runtime.model import Shapes, read_model
from neon8.settings.reader import takes
from neon8.settings.shapes import fixed
from neon8.settings.stages import DEFAULTS, ProfileSettings, Settings

PROCESSORS: Mapping[str, Processor] = {
    "cortex-a53": Processor(level="neon", in_order=True, cache=512 << 10, limit=8),
    "cortex-a55": Processor(level="dotprod", in_order=True, cache=512 << 10, limit=16),
    "cortex-a72": Processor(level="neon", in_order=False, cache=1024 << 10, limit=8),
    "cortex-a76": Processor(level="dotprod", in_order=False, cache=512 << 10, limit=32),
    "neoverse-n2": Processor(level="i8mm", in_order=False, cache=1024 << 10, limit=64),
}
"""The cores with a model and with measured times, and what neon8 finds there."""

WASTE = 0.15
"""Share of a tile's channels that are none, from which on it is worth a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A part of a run.

    cycles: modelled. ms: None without a clock. lines: of the cache that come from
    memory. bound: where most of the time goes. advice: what would help, or "".
    """

    name: str
    operation: str
    kernel: str
    macs: int
    instructions: float
    cycles: float
    lines: float
    ms: float | None
    bound: str
    advice: str
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Profile(text.Showing):
    """What a model takes on one core.

    board: None: cycles only, no times.  scaled: by what the estimate was multiplied to
    have the time that a board was measured to take, None if nobody measured.
    """

    source: str
    core: str
    board: Board | None
    layers: tuple[Layer, ...]
    scaled: float | None = None

    @property
    def macs(self) -> int:
        """Multiply-accumulates of a run."""
        return sum(layer.macs for layer in self.layers)

    @property
    def cycles(self) -> float:
        """Modelled cycles of a run, without what memory adds."""
        return sum(layer.cycles for layer in self.layers)

    @property
    def instructions(self) -> float:
        """Instructions of a run."""
        return sum(layer.instructions for layer in self.layers)

    @property
    def ms(self) -> float | None:
        """Estimated milliseconds of a run."""
        times = [layer.ms for layer in self.layers if layer.ms is not None]
        return sum(times) if self.board else None

    @property
    def span(self) -> tuple[float, float] | None:
        """Between which milliseconds a run is expected."""
        if self.board is None or self.ms is None:
            return None
        return self.ms * self.board.fit.low, self.ms * self.board.fit.high

    def parts(self) -> list[text.Part]:
        """As `neon8 profile` prints it."""
        from neon8.profile import described  # noqa: PLC0415 - which reads this module

        return described.described(self)

    @property
    def missing(self) -> tuple[str, ...]:
        """What no table knows, and the sums lack."""
        found = (name for layer in self.layers for name in layer.missing)
        return tuple(dict.fromkeys(found))


def chosen(
    core: str | None, board: str | None, ghz: float | None
) -> tuple[str, Board | None]:
    """What is asked for.  SettingsError: nobody has measured it."""
    if board is not None:
        found = boards.board_of(board)
        if core not in {None, found.core}:
            raise SettingsError(
                f"{board} has {found.core}, not {core}: leave --core out"
            )
        if ghz is not None:
            return found.core, boards.replace_clock(found, ghz)
        return found.core, found
    if core is None:
        raise SettingsError(
            "say for which --core or --board; cores: " + ", ".join(PROCESSORS)
        )
    if core not in PROCESSORS:
        raise SettingsError(
            f"no times of {core!r} are known{text.suggested(core, PROCESSORS)}; known: "
            + ", ".join(PROCESSORS)
        )
    return core, None if ghz is None else boards.usual(core, ghz)


Times = Callable[[bytes], dict[str, float]]
"""From a .n8 file to what each of its layers takes."""


def timer(where: ProfileSettings) -> Times:
    """A function from a .n8 file to estimated milliseconds, by name of a layer.

    SettingsError: there is no time without a board and without a clock, or nothing is
    known of them.
    """
    core, board = chosen(where.core, where.board, where.ghz)
    if where.measured is not None:
        raise SettingsError("--measured is of one .n8 file; a search makes others")
    if board is None:
        raise SettingsError(f"{core} has no clock: give --ghz too, or a --board")
    return lambda content: _by_layer([estimated(content, core, board)])


def dot_cycles(content: bytes) -> dict[str, float]:
    """Modelled cycles on all cores with dot products together, by name of a layer."""
    cores = [core for core, each in PROCESSORS.items() if each.level != "neon"]
    return _by_layer([estimated(content, core, None) for core in cores])


def _by_layer(profiles: Iterable[Profile]) -> dict[str, float]:
    found: dict[str, float] = {}
    for each in (layer for one in profiles for layer in one.layers):
        spent = each.cycles if each.ms is None else each.ms
        found[each.name] = found.get(each.name, 0.0) + spent
    return found


def pricer(where: ProfileSettings) -> Callable[[bytes], float]:
    """As timer(), of the whole."""
    times = timer(where)
    return lambda content: sum(times(content).values())


def estimated(
    content: bytes,
    core: str,
    board: Board | None,
    *,
    shapes: Shapes | None = None,
    source: str = "model",
) -> Profile:
    """The profile of a .n8 file on a core.  ModelError: it is refused."""
    processor = PROCESSORS[core]
    parts = trace(content, processor, shapes=shapes, source=source)
    table = costs.table(core)
    memory = lines_of(parts, board.cache if board else processor.cache)
    layers = tuple(
        layer_of(part, table, board, lines)
        for part, lines in zip(parts, memory, strict=True)
    )
    return Profile(source=source, core=core, board=board, layers=layers)


@takes("network", "profile")
def profile_model(
    path: str | Path, *, settings: Settings = DEFAULTS, **_keywords: Any
) -> Profile:
    """How long a .n8 file takes on a core, layer by layer, by one thread.

    Nothing is emulated and nothing runs on a board: the times are estimates, with a
    range. Without a board and without a clock there are modelled cycles only.
    Neon8Error: the file cannot be read or is refused, or nothing is known of the core.
    """
    content = read_model(path)
    where, open_ones = settings.profile, settings.network.shapes or {}
    shapes = {name: fixed(path, name, dims) for name, dims in open_ones.items()}
    if where.measured is not None:
        return _rescaled(content, where, shapes or None, str(path))
    core, board = chosen(where.core, where.board, where.ghz)
    return estimated(content, core, board, shapes=shapes or None, source=str(path))


def _rescaled(
    content: bytes, where: ProfileSettings, shapes: Shapes | None, source: str
) -> Profile:
    """An estimate with the time that a board was measured to take, at its clock."""
    file = where.measured
    if where.board is not None:
        raise SettingsError(f"{file}: says the board: leave --board out")
    if file is None:
        raise AssertionError("no file")
    bench, kind, row = measured_row(file, content, source, where.core)
    ghz = clock_of(kind, row) or where.ghz
    core, usual = chosen(kind.name, None, ghz)
    if usual is None or ghz is None:
        raise SettingsError(f"{file}: its board told no clock: give --ghz, as it was")
    alone = estimated(content, core, usual, shapes=shapes, source=source)
    scaled = row.total.median / alone.ms if alone.ms else 1.0
    fit = Fit(
        factor=usual.fit.factor * scaled,
        line=usual.fit.line * scaled,
        low=row.total.least / row.total.median if row.total.median else 1.0,
        high=row.total.p95 / row.total.median if row.total.median else 1.0,
    )
    board = replace(usual, name="", title=title_of(bench), networks=1, fit=fit)
    if where.ghz is not None and where.ghz != ghz:
        board = boards.replace_clock(board, where.ghz)
    found = estimated(content, core, board, shapes=shapes, source=source)
    return replace(found, scaled=scaled)


def title_of(bench: Bench) -> str:
    """What was measured, and how it was reached."""
    return f"{bench.board}, measured ({bench.target})"


def clock_of(kind: Kind, row: Row) -> float | None:
    """GHz of a core while it was measured, None if its kernel did not tell."""
    told = [each for each in (row.before.mhz, row.after.mhz) if each]
    mhz = min(told) if told else kind.mhz
    return mhz / 1000 if mhz else None


def predicted(content: bytes, bench: Bench, kind: Kind, row: Row) -> list[float]:
    """Milliseconds of each of Bench.parts, as estimated without the board.

    Empty if nothing is known of the core or its clock.
    """
    ghz = clock_of(kind, row)
    if bench.emulated or kind.name not in PROCESSORS or ghz is None:
        return []
    found = estimated(content, kind.name, boards.usual(kind.name, ghz))
    steps = [each.ms or 0.0 for each in found.layers if each.kernel]
    ends = [
        sum(each.ms or 0.0 for each in found.layers if each.operation == name)
        for name in ("input", "output")
    ]
    return [ends[0], *steps, ends[1]]


def lines_of(parts: tuple[Part, ...], cache: int) -> list[float]:
    """Cache lines that each part brings from memory.

    Weights once, unless those of the whole model stay; of what it reads and writes,
    what is beyond the cache.
    """
    packed = sum(part.step.packed for part in parts if part.step)
    found = []
    for part in parts:
        weights = part.step.packed if part.step and packed > cache else 0
        moved = (part.bytes_read, part.bytes_written)
        found.append((weights + sum(max(0, size - cache) for size in moved)) / LINE)
    return found


def layer_of(part: Part, table: Table, board: Board | None, lines: float) -> Layer:
    """One part's."""
    split = table.split(part)
    total = split.total
    waits = board.fit.line * lines * board.ghz / board.fit.factor if board else 0.0
    kernel = part.step.kernel if part.step else ""
    macs = part.step.macs if part.step else 0
    inner = loops.busy(table.core).get(loops.code_of(kernel)) if macs else None
    vectors, loads = (split.kernel.cycles * share for share in inner or (0.0, 0.0))
    shares = {
        "multiplies": vectors,
        "loads": loads,
        "kernel": split.kernel.cycles if inner is None else 0.0,
        "epilogue": split.epilogue.cycles,
        "C code": split.around.cycles,
        "memory": waits,
    }
    return Layer(
        name=part.name,
        operation=part.operation,
        kernel=kernel,
        macs=macs,
        instructions=total.instructions,
        cycles=total.cycles,
        lines=lines,
        ms=time_of(total.cycles, lines, board) if board else None,
        bound=max(shares, key=lambda name: shares[name]),
        advice=advice(part.step) if part.step else "",
        missing=split.missing,
    )


def time_of(cycles: float, lines: float, board: Board) -> float:
    """Milliseconds."""
    return (board.fit.factor * cycles / board.ghz + board.fit.line * lines) / 1e6


def advice(step: StepInfo) -> str:
    """What would make a layer faster, as far as its plan shows."""
    if step.reason:
        return f"runs in float32: {step.reason}"
    if step.passed:
        return f"{step.passed} would be faster, but it {step.lack}"
    if step.macs and step.dtype == "int8" and len(step.shape) > 1:
        channels = step.shape[1]
        full = -(-channels // 8) * 8
        if step.operation == "conv2d" and 1 - channels / full > WASTE:
            return f"{channels} channels cost as much as {full}"
    return ""
