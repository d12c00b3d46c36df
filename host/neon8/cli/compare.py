# SPDX-License-Identifier: Apache-2.0
"""neon8 compare."""

import argparse
import json
import math
from dataclasses import asdict

from neon8 import text
from neon8.calibrate import calib_file, overrides
from neon8.cli.preprocessing import preprocess_of
from neon8.cli.progress import watcher
from neon8.evaluate.compare import METHODS, SCHEMES, Comparison, Row, compare
from neon8.evaluate.metrics import Evaluation
from neon8.text import counted


def run(arguments: argparse.Namespace) -> str:
    """Measure every method with every scheme."""
    own = arguments.override
    observation = calib_file.load(arguments.calibration)
    with watcher("compare", quiet=arguments.quiet) as watch:
        found = compare(
            observation,
            arguments.model,
            arguments.data,
            methods=arguments.methods or METHODS,
            schemes=arguments.schemes or SCHEMES,
            overrides=None if own is None else overrides.load(own),
            preprocess=preprocess_of(arguments),
            limit=arguments.limit,
            skip=arguments.skip,
            watch=watch,
        )
    return as_json(found) if arguments.json else as_text(found)


def as_json(found: Comparison) -> str:
    """One object; null for what is not known, and for infinity, which JSON lacks."""
    rows = [
        {
            "method": row.method,
            "scheme": row.scheme,
            "guards": row.guards,
            "failure": row.failure,
            **_figures(row.result),
        }
        for row in found.rows
    ]
    return json.dumps({"reference": _figures(found.reference), "rows": rows})


def _figures(result: Evaluation | None) -> dict[str, float | None]:
    if result is None:
        return {}
    return {
        name: None if value is None or math.isinf(value) else value
        for name, value in asdict(result).items()
    }


def as_text(found: Comparison) -> str:
    """A table, the best first and marked, and what stopped those without figures."""
    labels = found.reference.top1 is not None
    header = ("", "method", "scheme", "SQNR dB", "agreement %", "guards")
    rows = [
        (
            "*" if number == 0 and row.result is not None else "",
            row.method,
            row.scheme,
            *_cells(row),
            str(row.guards),
            *([_percent(row.result.top1 if row.result else None)] if labels else []),
        )
        for number, row in enumerate(found.rows)
    ]
    exact = ("", "float", "", "-", "-", "-")
    rows.append((*exact, *([_percent(found.reference.top1)] if labels else [])))
    lines = text.columns(rows, header=(*header, *(["top-1 %"] if labels else [])))
    failures = [
        f"{row.method}, {row.scheme}: {row.failure}"
        for row in found.rows
        if row.failure is not None
    ]
    samples = counted(found.reference.n, "sample")
    return "\n".join(
        [f"{samples}, int8 as on the device; * is the best by SQNR", *lines, *failures]
    )


def _cells(row: Row) -> tuple[str, str]:
    if row.result is None:
        return "-", "-"
    sqnr = row.result.sqnr_db
    return "-" if sqnr is None else f"{sqnr:.2f}", _percent(row.result.agreement)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
