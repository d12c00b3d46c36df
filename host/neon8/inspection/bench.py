# SPDX-License-Identifier: Apache-2.0
"""`neon8 bench`: what a board took, as text."""

from collections.abc import Callable, Sequence

from neon8 import text
from neon8.profile.measured import Bench, Kind, Row, State

WAYS = (
    *("cores", "threads", "caches", "runs", "min_ms", "median_ms", "p95_ms"),
    *("MHz", "celsius"),
)
SHOWN = 5
"""Layers that differ most from what was predicted."""
Predict = Callable[[Kind, Row], list[float]]


def described(bench: Bench, predict: Predict) -> list[text.Part]:
    """For people, and for JSON.

    predict: milliseconds of each part, or [] where nothing is known.
    """
    pairs: list[tuple[str, object]] = [
        ("model", text.printable(bench.model)),
        ("target", bench.target),
        ("board", text.printable(bench.board)),
        ("cores", ", ".join(f"{len(k.cpus)} {k.name}{clock(k)}" for k in bench.kinds)),
        ("neon8", bench.neon8),
    ]
    parts: list[text.Part] = [text.Fields(pairs)]
    if bench.emulated:
        parts.append(
            "emulated: qemu keeps no time, so these figures say nothing of a board"
        )
    parts.append(text.Table("runs", [way(row) for row in bench.rows], WAYS))
    kind, row = fastest(bench)
    if row is not None:
        parts += layers(bench, kind, row, predict(kind, row))
    why = next((each.uncounted for each in bench.rows if each.uncounted), "")
    if why:
        parts.append(f"nothing was counted: perf_event_open: {text.printable(why)}")
    return parts


def fastest(bench: Bench) -> tuple[Kind, Row | None]:
    """The kind of cores on which one thread takes least."""
    found = [(kind, bench.row(kind.name)) for kind in bench.kinds]
    there = [(k, row) for k, row in found if row is not None]
    if not there:
        return found[0]
    kind, row = min(there, key=lambda pair: pair[1].total.median)
    return kind, row


def clock(kind: Kind) -> str:
    """' at 1800 MHz', if that is known."""
    return f" at {kind.mhz:g} MHz" if kind.mhz else ""


def way(row: Row) -> tuple[object, ...]:
    """A line for runs in one way."""
    return (
        row.kind,
        row.threads,
        "cold" if row.cold else "warm",
        row.runs,
        *map(ms, (row.total.least, row.total.median, row.total.p95)),
        both(row.before, row.after, "mhz"),
        both(row.before, row.after, "celsius"),
    )


def both(before: State, after: State, name: str) -> object:
    """'1800', or '1800 to 1200' if it changed; '-' where nobody told."""
    ends = [getattr(before, name), getattr(after, name)]
    if None in ends:
        return text.UNKNOWN
    words = dict.fromkeys(f"{each:.0f}" for each in ends)
    return text.Shown(" to ".join(words), ends)


def ms(value: float) -> text.Shown:
    """Milliseconds."""
    return text.Shown(f"{value:.4f}", value)


def layers(
    bench: Bench, kind: Kind, row: Row, wanted: Sequence[float]
) -> list[text.Part]:
    """Each part of a run by one thread, and where the prediction is farthest off."""
    header = ["layer", "operation", "median_ms", "p95_ms", "share_%", "MMACs"]
    header += [each.counter for each in row.counts]
    header += ["predicted_ms"] if wanted else []
    whole = sum(each.median for each in row.parts)
    rows = []
    for at, (part, took) in enumerate(zip(bench.parts, row.parts, strict=True)):
        share = 100 * took.median / whole if whole else 0.0
        line: list[object] = [text.printable(part.name), part.operation]
        line += [ms(took.median), ms(took.p95)]
        line += [text.Shown(f"{share:.1f}", share)]
        line += [text.Shown(f"{part.macs / 1e6:.2f}", part.macs / 1e6)]
        line += [text.Shown(f"{c.parts[at]:.0f}", c.parts[at]) for c in row.counts]
        line += [ms(wanted[at])] if wanted else []
        rows.append([*line, kernel(row, at)])
    title = f"layers, of one thread on {kind.name} with warm caches"
    found: list[text.Part] = [text.Table(title, rows, [*header, "kernel"])]
    if wanted:
        found.append(
            text.Listed("differs most from `neon8 profile`", far(bench, row, wanted))
        )
    return found


def kernel(row: Row, at: int) -> str:
    """A step's."""
    inside = 0 < at < len(row.parts) - 1
    return row.kernels[at - 1] if inside else "-"


def far(bench: Bench, row: Row, wanted: Sequence[float]) -> list[str]:
    """The parts whose time differs most from what was predicted."""
    gaps = [took.median - each for took, each in zip(row.parts, wanted, strict=True)]
    order = sorted(range(len(gaps)), key=lambda at: -abs(gaps[at]))[:SHOWN]
    total = sum(wanted)
    lines = [
        f"{bench.parts[at].name}: {row.parts[at].median:.3f} ms, predicted "
        f"{wanted[at]:.3f} ms"
        for at in order
    ]
    return [f"all: {row.total.median:.3f} ms, predicted {total:.3f} ms", *lines]
