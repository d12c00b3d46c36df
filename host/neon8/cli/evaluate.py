# SPDX-License-Identifier: Apache-2.0
"""neon8 evaluate."""

import argparse
import json
import math
from dataclasses import asdict

from neon8.cli.common import cpu_of
from neon8.cli.preprocessing import preprocess_of
from neon8.cli.progress import watcher
from neon8.evaluate.metrics import Evaluation, evaluate_model
from neon8.text import counted


def run(arguments: argparse.Namespace) -> str:
    """Measure a network on samples."""
    with watcher("evaluate", quiet=arguments.quiet) as watch:
        result = evaluate_model(
            arguments.model,
            arguments.data,
            reference=arguments.reference,
            target=arguments.target,
            cpu=cpu_of(arguments),
            isa=arguments.isa,
            preprocess=preprocess_of(arguments),
            limit=arguments.limit,
            skip=arguments.skip,
            watch=watch,
        )
    return as_json(result) if arguments.json else as_text(result)


def as_json(result: Evaluation) -> str:
    """One object; null for what is not known, and for infinity, which JSON lacks."""
    values = asdict(result)
    return json.dumps(
        {
            name: None if value is None or math.isinf(value) else value
            for name, value in values.items()
        }
    )


def as_text(result: Evaluation) -> str:
    """One line a figure, and why a figure is missing."""

    def line(name: str, value: float | None, unit: str, missing: str) -> str:
        shown = f"- ({missing})" if value is None else f"{value:.2f} {unit}"
        return f"{name:<10} {shown}"

    return "\n".join(
        (
            counted(result.n, "sample"),
            line("top-1", result.top1, "%", "no labels"),
            line("top-5", result.top5, "%", "no labels"),
            line("agreement", result.agreement, "%", "no reference"),
            line("SQNR", result.sqnr_db, "dB", "no reference"),
        )
    )
