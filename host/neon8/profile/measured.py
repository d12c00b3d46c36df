# SPDX-License-Identifier: Apache-2.0
"""What a board took: the .bench.json that `neon8 bench` writes and others read.

The file is the fields of Bench as JSON, with "format" and "version", as described in
docs/howto/boards.md. A reader takes nothing on trust, and no key that it does not know.
"""

import dataclasses
import hashlib
import json
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Union, get_args, get_origin, get_type_hints

from neon8.errors import SettingsError, TableError
from neon8.quant import checks, strict_json

FORMAT, VERSION = "neon8.bench", 1
WARM = (False, 1)
"""The row that others compare with: caches are warm, and one thread runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Milliseconds; p95: of 100 runs 95 took no more."""

    least: float
    median: float
    p95: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Cores that are alike.  cpus: their numbers.  mhz: at most, 0 if not known."""

    name: str
    cpus: tuple[int, ...]
    mhz: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Before or after runs.  mhz, celsius: the highest, None where nobody tells."""

    mhz: float | None
    celsius: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What the processor counted of each part, on average of a run."""

    counter: str
    parts: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Runs in one way.

    kind: of the cores on which it was pinned; threads: on them.  cold: other data went
    through the caches before each run.  parts: as Bench.parts; kernels: of the steps.
    uncounted: why there are no counts, "" if there are.
    """

    kind: str
    cpus: tuple[int, ...]
    threads: int
    cold: bool
    runs: int
    total: Times
    parts: tuple[Times, ...]
    kernels: tuple[str, ...]
    before: State
    after: State
    counts: tuple[Counts, ...] = ()
    uncounted: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a run: inputs are copied, a step, outputs are copied."""

    name: str
    operation: str
    macs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What a board took for a model.

    digest: SHA-256 of the .n8 file.  emulated: its time is none.  complete: False if it
    was interrupted.
    """

    model: str
    digest: str
    neon8: str
    target: str
    board: str
    emulated: bool
    complete: bool
    kinds: tuple[Kind, ...]
    parts: tuple[Part, ...]
    rows: tuple[Row, ...] = field(default=())

    def row(self, kind: str) -> Row | None:
        """With warm caches, by one thread of these cores."""
        found = (row for row in self.rows if (row.cold, row.threads) == WARM)
        return next((row for row in found if row.kind == kind), None)


def dumps(bench: Bench) -> bytes:
    """The file."""
    head = {"format": FORMAT, "version": VERSION}
    return (json.dumps(head | dataclasses.asdict(bench), indent=1) + "\n").encode()


def load(path: str | PathLike[str]) -> Bench:
    """Read what dumps() made.  TableError names file, line and entry."""
    source = str(path)
    text = checks.decode(checks.read_bytes(path), source)
    found = strict_json.loads(text, source=source)
    if not isinstance(found, dict) or found.pop("format", None) != FORMAT:
        raise TableError(f"{source}:1: is no file of `neon8 bench`")
    version = found.pop("version", None)
    if version != VERSION:
        raise TableError(
            f"{source}:1: version {version!r} of a .bench.json; this neon8 reads "
            f"{VERSION}: measure again"
        )
    bench: Bench = _value(found, Bench, source, "file")
    for number, row in enumerate(bench.rows):
        where = f"{source}: rows {number}"
        sizes = {len(row.parts), *(len(each.parts) for each in row.counts)}
        if sizes != {len(bench.parts)} or len(row.kernels) != len(bench.parts) - 2:
            raise TableError(f"{where}: has another number of parts than the file")
        for times in (row.total, *row.parts):
            if not 0 <= times.least <= times.median <= times.p95:
                raise TableError(f"{where}: times are not in order")
    return bench


def _value(given: Any, kind: Any, source: str, where: str) -> Any:
    """A value of the file as a field of this type has it."""
    if dataclasses.is_dataclass(kind):
        return _object(given, kind, source, where)
    if get_origin(kind) in (Union, types.UnionType):
        if given is None:
            return None
        (kind,) = (each for each in get_args(kind) if each is not type(None))
    if get_origin(kind) is tuple:
        if not isinstance(given, list):
            raise TableError(f"{source}: {where}: expected a list")
        inner = get_args(kind)[0]
        return tuple(
            _value(each, inner, source, f"{where} {at}")
            for at, each in enumerate(given)
        )
    place = f"{source}: {where}"
    if kind is float:
        return checks.real(place, given)
    if kind is int:
        return checks.integer(place, given, 0, 2**63)
    if not isinstance(given, kind):
        raise TableError(f"{place}: expected {'a text' if kind is str else 'a bool'}")
    return given


def _object(given: Any, kind: Any, source: str, where: str) -> Any:
    line = getattr(given, "line", None)
    place = source if line is None else f"{source}:{line}"
    if not isinstance(given, Mapping):
        raise TableError(f"{place}: {where}: expected an object")
    hints = get_type_hints(kind)
    for name in (*given.keys(), *hints):
        if name not in hints:
            raise TableError(f"{place}: {where}: {name!r} is unknown")
        if name not in given:
            raise TableError(f"{place}: {where}: lacks {name!r}")
    return kind(
        **{name: _value(given[name], hints[name], place, name) for name in hints}
    )


def digest(content: bytes) -> str:
    """The SHA-256 of a .n8 file."""
    return hashlib.sha256(content).hexdigest()


def measured_row(
    path: str | PathLike[str], content: bytes, source: str, core: str | None
) -> tuple[Bench, Kind, Row]:
    """What a file says of a model, by one thread of a core.

    core: None for the only kind of cores that it was measured on.  TableError: the file
    is damaged.  SettingsError: it is of another model, or says nothing of the core.
    """
    bench = load(path)
    if bench.digest != digest(content):
        raise SettingsError(
            f"{path}: was measured with another model, {bench.model} "
            f"({bench.digest[:12]}..., not {digest(content)[:12]}...); measure {source}"
        )
    if bench.emulated:
        raise SettingsError(f"{path}: was emulated, and emulated time is no time")
    names = [kind.name for kind in bench.kinds]
    wanted = core or (names[0] if len(names) == 1 else None)
    row = None if wanted is None else bench.row(wanted)
    kind = next((each for each in bench.kinds if each.name == wanted), None)
    if row is None or kind is None:
        raise SettingsError(
            f"{path}: has no run by one thread of {wanted or 'one --core'}; it has "
            f"{', '.join(names)}"
        )
    return bench, kind, row
