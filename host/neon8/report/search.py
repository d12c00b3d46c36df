# SPDX-License-Identifier: Apache-2.0
"""The steps of a search for more bits, as refine.curve writes them."""

from pathlib import Path
from typing import Any

from neon8.errors import TableError
from neon8.quant import strict_json
from neon8.quant.checks import decode, read_bytes, real, string
from neon8.report.facts import Point

MOST_COST = 1e6
"""Nothing takes as many times what int8 does."""


def load(path: Path) -> tuple[Point, ...]:
    """Read the steps.  TableError names file and place."""
    source = str(path)
    data = strict_json.loads(decode(read_bytes(path), source), source=source)
    steps = data.get("steps") if isinstance(data, dict) else None
    if not isinstance(steps, list) or not steps:
        raise TableError(f"{source}:1: has no steps; calibrate --curve writes them")
    return tuple(
        _point(f"{source}:1: step {at}", step) for at, step in enumerate(steps)
    )


def _point(where: str, step: Any) -> Point:
    if not isinstance(step, dict):
        raise TableError(f"{where}: is no object")
    value, to = step.get("worst_db"), step.get("to")
    tensors, best = step.get("tensors"), step.get("best")
    if not isinstance(tensors, list) or not isinstance(best, bool):
        raise TableError(f"{where}: expected a list of tensors, and best")
    cost = real(f"{where}: cost", step.get("cost"))
    if not 0 < cost < MOST_COST:
        raise TableError(f"{where}: cost: {cost:g} is no cost")
    return Point(
        cost=cost,
        sqnr_db=None if value is None else real(f"{where}: worst_db", value),
        changed=tuple(string(f"{where}: tensors", each) for each in tensors),
        to="" if to is None else string(f"{where}: to", to),
        best=best,
    )
