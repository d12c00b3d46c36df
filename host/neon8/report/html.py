# SPDX-License-Identifier: Apache-2.0
"""A report as one HTML file that loads nothing.

Names come from files that anyone may have made: the template escapes all it is given,
and the page allows no script but its own.
"""

import base64
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from neon8.inspection.plan import certificate, geometry, memory, scheme
from neon8.report import charts, words
from neon8.report.facts import FORMAT, LayerFacts, Prediction, Report
from neon8.report.layout import HEIGHT, WIDTH, Drawing, drawing
from neon8.report.template import environment, own
from neon8.text import number, printable, shape, size

LEVELS = (40, 30, 20, 10)
"""SQNR in dB at which colours change."""
SHARES = (1, 5, 10, 20)
"""Shares of the time in percent at which colours change."""
UNKNOWN = "none"
LETTERS = 24
"""That fit a box."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A node as it is drawn.  layer: its number, None for an input of the network."""

    layer: int | None
    name: str
    operator: str
    x: float
    y: float
    precision: str = UNKNOWN
    so_far: str = ""
    alone: str = ""
    error: str = UNKNOWN
    cost: str = UNKNOWN
    share: str = UNKNOWN
    ms: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """The network as it is drawn.  edges: paths."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    edges: tuple[str, ...]


def as_html(report: Report) -> str:
    """The whole file."""
    made = environment(escaped=True)
    made.finalize = lambda value: printable(value) if type(value) is str else value
    made.filters |= {
        "filename": _filename,
        "short": _short,
        "number": number,
        "size": size,
        "shape": shape,
    }
    made.globals |= {
        "charts": charts,
        "geometry": geometry,
        "scheme": scheme,
        "memory": memory,
        "certificate": certificate,
        "jpeg": _embedded,
    }
    script, style = own("page.js"), own("page.css")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return made.from_string(own("page.html")).render(
        report=report,
        format=FORMAT,
        picture=_picture(report),
        makers=_makers(report),
        box=(WIDTH, HEIGHT),
        levels=LEVELS,
        shares=SHARES,
        script=script,
        style=style,
        digest=digest,
    )


def _embedded(picture: bytes) -> str:
    return f"data:image/jpeg;base64,{base64.b64encode(picture).decode()}"


def _makers(report: Report) -> dict[str, int]:
    """Tensor -> the number of the layer that makes it."""
    return {
        name: at for at, layer in enumerate(report.layers) for name in layer.outputs
    }


def _picture(report: Report) -> Picture:
    """The inputs and the layers, placed."""
    first = len(report.inputs)
    places = {name: at for at, name in enumerate(report.inputs)}
    places |= {name: first + at for name, at in _makers(report).items()}
    pairs = [
        (places[name], first + at)
        for at, layer in enumerate(report.layers)
        for name in dict.fromkeys(layer.inputs)
        if name in places
    ]
    placed: Drawing = drawing(first + len(report.layers), pairs)
    inputs = [
        Box(layer=None, name=name, operator="input", x=x, y=y)
        for name, (x, y) in zip(report.inputs, placed.nodes, strict=False)
    ]
    layers = [
        _box(at, layer, placed.nodes[first + at], report.predictions)
        for at, layer in enumerate(report.layers)
    ]
    return Picture(
        width=placed.width,
        height=placed.height,
        boxes=(*inputs, *layers),
        edges=tuple(charts.edge(points, HEIGHT / 2) for points in placed.edges),
    )


def _box(
    at: int,
    layer: LayerFacts,
    place: tuple[float, float],
    predictions: Sequence[Prediction],
) -> Box:
    loss = layer.loss
    time = predictions[0].of(layer.name) if predictions else None
    alone = None if loss is None else loss.alone_db
    return Box(
        layer=at,
        name=layer.name,
        operator=layer.operator,
        precision=layer.precision or UNKNOWN,
        so_far="" if loss is None else words.decibels(loss.sqnr_db),
        alone="" if alone is None else words.decibels(alone),
        error=_level(None if loss is None else loss.sqnr_db),
        cost=_level(alone),
        share=UNKNOWN if time is None else str(sum(time[2] >= s / 100 for s in SHARES)),
        ms="" if time is None else f"{time[1]:.3g} ms",
        x=place[0],
        y=place[1],
    )


def _filename(path: str) -> str:
    """The last part of a path."""
    return PurePath(path).name


def _short(name: str) -> str:
    """The end of a name, which tells more than its beginning, as it fits a box."""
    return name if len(name) <= LETTERS else f"…{name[1 - LETTERS :]}"


def _level(value: float | None) -> str:
    """'0' for the best, '4' for the worst."""
    if value is None or math.isnan(value):
        return UNKNOWN
    return str(sum(value < level for level in LEVELS))
