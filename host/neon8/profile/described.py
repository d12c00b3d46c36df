# SPDX-License-Identifier: Apache-2.0
"""`neon8 profile`: what a model takes on a core, as text."""

from neon8 import text
from neon8.profile.loops import Loop
from neon8.profile.profile import PROCESSORS, Layer, Profile

HEADER = (
    *("layer", "operation", "MMACs", "kcycles", "MAC/cycle", "ms", "share_%"),
    *("bound by", "kernel"),
)


def described(found: Profile) -> list[text.Part]:
    """A profile for people, and for JSON, with null for what is not known."""
    pairs: list[tuple[str, object]] = [
        ("model", found.source),
        ("core", found.core),
        ("MMACs", text.Shown(f"{found.macs / 1e6:.1f}", found.macs / 1e6)),
        ("Minstructions", rounded(found.instructions / 1e6)),
        ("Mcycles", rounded(found.cycles / 1e6)),
        ("MAC/cycle", rate(found.macs, found.cycles)),
        ("limit", PROCESSORS[found.core].limit),
    ]
    if found.board is not None and found.ms is not None and found.span is not None:
        low, high = found.span
        pairs += [
            ("board", found.board.title),
            ("GHz", found.board.ghz),
            ("ms", rounded(found.ms)),
            ("range_ms", text.Shown(f"{low:.2f} .. {high:.2f}", [low, high])),
            ("networks", found.board.networks),
        ]
    parts: list[text.Part] = [text.Fields(pairs)]
    parts.append(
        f"estimated by one thread, then multiplied by {found.scaled:.3g} to take what "
        "was measured; the range is that of the measured runs"
        if found.scaled is not None
        else "estimated by one thread, calibrated on published times of ncnn's networks"
        if found.board
        else "modelled cycles, which rank and are no time: give --board, or --ghz"
    )
    parts.append(
        text.Table("layers", [row(layer, found) for layer in found.layers], HEADER)
    )
    advised = [
        f"{layer.name}: {layer.advice}" for layer in found.layers if layer.advice
    ]
    if advised:
        parts.append(text.Listed("what would help", advised))
    if found.missing:
        parts.append(
            "not in the sums, because no table has them: " + ", ".join(found.missing)
        )
    return parts


def described_loop(loop: Loop, core: str) -> list[text.Part]:
    """A kernel's main loop for people."""
    rows = [
        (line.cycle, line.text, " ".join(line.units), line.waits or "-")
        for line in loop.lines
    ]
    return [
        text.Fields(
            [
                ("kernel", loop.kernel),
                ("core", core),
                ("cycles", rounded(loop.cycles)),
                ("instructions", len(loop.lines)),
            ]
        ),
        "a pass through the main loop, modelled, as it goes on for a while",
        text.Table("loop", rows, ("cycle", "instruction", "units", "waits for")),
    ]


def row(layer: Layer, found: Profile) -> tuple[object, ...]:
    """A layer's."""
    whole = found.ms if found.ms is not None else found.cycles
    own = layer.ms if layer.ms is not None else layer.cycles
    return (
        text.printable(layer.name),
        layer.operation,
        rounded(layer.macs / 1e6),
        rounded(layer.cycles / 1e3),
        rate(layer.macs, layer.cycles),
        text.UNKNOWN if layer.ms is None else text.Shown(f"{layer.ms:.3f}", layer.ms),
        rounded(100 * own / whole if whole else 0.0),
        layer.bound,
        layer.kernel or "-",
    )


def rounded(value: float) -> text.Shown:
    """With as many digits as mean something."""
    return text.Shown(f"{value:.2f}" if value < 100 else f"{value:.0f}", value)


def rate(macs: float, cycles: float) -> object:
    """Multiply-accumulates of a cycle, or nothing where there are none."""
    return rounded(macs / cycles) if macs and cycles else text.UNKNOWN
