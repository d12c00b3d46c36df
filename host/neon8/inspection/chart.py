# SPDX-License-Identifier: Apache-2.0
"""The SQNR along a network as a picture: an SVG file that needs nothing else."""

import math
from collections.abc import Sequence
from html import escape

from neon8.refine.diagnosis import Diagnosis
from neon8.refine.losses import TensorLoss
from neon8.text import decimals, printable

WIDTH, HEIGHT = 960, 420
LEFT, RIGHT, TOP, BOTTOM = 56, 24, 48, 48
"""Margins of the frame around the curves."""
STEP = 10
"""dB from one line of the grid to the next."""
SO_FAR, ALONE = "#1f5fbf", "#c2410c"
STYLE = (
    "text{font:12px sans-serif;fill:#333}"
    ".title{font-size:14px;font-weight:bold}"
    ".grid{stroke:#ddd}"
    f".line{{fill:none;stroke:{SO_FAR};stroke-width:2}}"
    f".far{{fill:{SO_FAR}}}.alone{{fill:none;stroke:{ALONE};stroke-width:2}}"
)

Point = tuple[float, float]


def drawn(found: Diagnosis) -> str:
    """The whole file.  Each mark tells name and figures where the mouse rests on it."""
    tensors = [each for each in found.tensors if math.isfinite(each.sqnr_db)]
    alone = [
        (index, each.alone_db)
        for index, each in enumerate(tensors)
        if each.alone_db is not None and math.isfinite(each.alone_db)
    ]
    values = [each.sqnr_db for each in tensors] + [value for _, value in alone]
    low, high = _limits(values)

    def at(index: int, value: float) -> Point:
        across = (WIDTH - LEFT - RIGHT) * (index + 0.5) / max(len(tensors), 1)
        up = (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM)
        return LEFT + across, HEIGHT - BOTTOM - up

    far = [at(index, each.sqnr_db) for index, each in enumerate(tensors)]
    parts = [*_frame(found, low, high), _line(far)]
    parts += [_mark(at(i, value), tensors[i], "alone", 5) for i, value in alone]
    pairs = zip(far, tensors, strict=True)
    parts += [_mark(point, each, "far", 3) for point, each in pairs]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">',
            f"<style>{STYLE}</style>",
            '<rect width="100%" height="100%" fill="white"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _limits(values: Sequence[float]) -> tuple[float, float]:
    """Whole steps that hold all values."""
    low = STEP * math.floor(min(values, default=0.0) / STEP)
    high = STEP * math.ceil(max(values, default=0.0) / STEP)
    return low, max(high, low + STEP)


def _frame(found: Diagnosis, low: float, high: float) -> list[str]:
    title = escape(printable(found.model))
    text = f"{title}: SQNR {decimals(found.sqnr_db)} dB at the output"
    parts = [
        f'<text class="title" x="{LEFT}" y="20">{text}</text>',
        f'<circle class="far" cx="{LEFT + 5}" cy="34" r="3"/>',
        f'<text x="{LEFT + 14}" y="38">tensor, with all before it in int8</text>',
        f'<circle class="alone" cx="{LEFT + 265}" cy="34" r="5"/>',
        f'<text x="{LEFT + 276}" y="38">output, this tensor alone rounded</text>',
    ]
    for number in range(round((high - low) / STEP) + 1):
        value = low + number * STEP
        y = HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM)
        ends = f'x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"'
        parts += [
            f'<line class="grid" {ends}/>',
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>',
        ]
    x, y = (LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 28
    label = "tensors from the input to the output, SQNR in dB"
    parts.append(f'<text x="{x:g}" y="{y}" text-anchor="middle">{label}</text>')
    return parts


def _line(points: Sequence[Point]) -> str:
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline class="line" points="{corners}"/>'


def _mark(point: Point, each: TensorLoss, kind: str, radius: int) -> str:
    x, y = point
    figures = f"{decimals(each.sqnr_db)} dB, alone {decimals(each.alone_db)} dB"
    title = escape(f"{printable(each.name)}: {figures}")
    circle = f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}">'
    return f"{circle}<title>{title}</title></circle>"
