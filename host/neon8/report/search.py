# SPDX-License-Identifier: Apache-2.0
"""The steps of a search for more bits, as refine.curve writes them."""

from pathlib import Path
from typing import Any

from neon8.errors import TableError
from neon8.quant import strict_json
from neon8.quant.checks import decode, integer, read_bytes, real, string
from neon8.refine.curve import FORMAT, VERSION
from neon8.report.facts import Point

MOST_COST = 1e6
"""Nothing takes as many times what int8 does."""
MOST_SIZE = 1 << 32
"""Bytes of an .n8 file."""


def load(path: Path, digest: str) -> tuple[Point, ...]:
    """Read the steps.  TableError names file and place, or it is of another network."""
    source = str(path)
    data = strict_json.loads(decode(read_bytes(path), source), source=source)
    given = data if isinstance(data, dict) else {}
    steps, model = given.get("steps"), given.get("model")
    if given.get("format") != FORMAT or given.get("version") != VERSION:
        text = f"is no {FORMAT!r} of version {VERSION}; calibrate --curve writes it"
        raise TableError(f"{source}:1: {text}")
    if not isinstance(model, dict) or model.get("digest") != digest:
        raise TableError(f"{source}:1: is of another network; search with this one")
    if not isinstance(steps, list) or not steps:
        raise TableError(f"{source}:1: has no steps")
    return tuple(
        _point(f"{source}:1: step {at}", step) for at, step in enumerate(steps)
    )


def _point(where: str, step: Any) -> Point:
    if not isinstance(step, dict):
        raise TableError(f"{where}: is no object")
    value, to, ms = step.get("worst_db"), step.get("to"), step.get("ms")
    tensors, best = step.get("tensors"), step.get("best")
    if not isinstance(tensors, list) or not isinstance(best, bool):
        raise TableError(f"{where}: expected a list of tensors, and best")
    cost = real(f"{where}: cost", step.get("cost"))
    if not 0 < cost < MOST_COST:
        raise TableError(f"{where}: cost: {cost:g} is no cost")
    return Point(
        cost=cost,
        size=integer(f"{where}: size", step.get("size"), 1, MOST_SIZE),
        ms=None if ms is None else real(f"{where}: ms", ms),
        sqnr_db=None if value is None else real(f"{where}: worst_db", value),
        changed=tuple(string(f"{where}: tensors", each) for each in tensors),
        to="" if to is None else string(f"{where}: to", to),
        best=best,
    )
