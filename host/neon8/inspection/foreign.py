# SPDX-License-Identifier: Apache-2.0
"""Another tool's calibration file as text."""

from neon8 import text
from neon8.formats import registry
from neon8.formats.foreign_table import ForeignTable, QuantParams, Range
from neon8.text import UNKNOWN


def describe(table: ForeignTable) -> list[text.Part]:
    """Its tensors and layers, and what the reader left out."""
    fields = [
        ("calibration file", table.source),
        ("format", f"{table.format}: {registry.ROWS[table.format].summary}"),
        *table.header.items(),
        ("contents", table.contents),
    ]
    parts: list[text.Part] = [text.Fields(fields)]
    parts += [f"  {text.printable(note)}" for note in table.notes]
    if table.tensors:
        rows = [(name, *_entry(entry)) for name, entry in table.tensors.items()]
        titles = ("name", "scheme", "scale", "zero point", "from", "to", "bins")
        parts += ["", text.Table("tensors", rows, titles)]
    weights = table.weights or {k: v for k, (_, v) in table.constants.items()}
    layers = dict.fromkeys((*weights, *table.inputs))
    if layers:
        details = [
            (
                name,
                table.reads.get(name, UNKNOWN),
                _scale(table.inputs[name].scale) if name in table.inputs else UNKNOWN,
                *_range(weights.get(name, ())),
            )
            for name in layers
        ]
        header = ("name", "input", "its scale", "scales", "smallest", "largest")
        parts += ["", text.Table("layers", details, header)]
    return parts


def _entry(entry: QuantParams | Range) -> tuple[object, ...]:
    if isinstance(entry, QuantParams):
        scale = _scale(entry.scale)
        scheme = entry.scheme + ("" if entry.bits == 8 else f", {entry.bits} bits")
        return (scheme, scale, entry.zero_point, *[UNKNOWN] * 3)
    ends = (text.number(entry.lo), text.number(entry.hi))
    return (*[UNKNOWN] * 3, *ends, len(entry.histogram) or UNKNOWN)


def _scale(scale: float) -> str:
    return text.number(scale) if scale else text.Shown("all zero", 0.0)


def _range(scales: tuple[float, ...]) -> tuple[object, ...]:
    alive = [scale for scale in scales if scale]
    ends = (min(alive), max(alive)) if alive else ()
    return (len(scales), *(map(text.number, ends) if ends else [UNKNOWN] * 2))
