# SPDX-License-Identifier: Apache-2.0
"""What observe and calibrate share: a campaign from the command line, its report."""

import argparse
import json

from neon8.calibrate.run import convergence
from neon8.calibrate.run.campaign import Outcome, Plan, observe_data
from neon8.calibrate.run.task import Task
from neon8.cli.options import check_output, preprocess_of
from neon8.cli.progress import counter
from neon8.errors import DataError
from neon8.files import STDOUT, write_atomic


def check(arguments: argparse.Namespace) -> None:
    """What can be wrong before any work is done.  SetupError, DataError."""
    inputs = [arguments.model, arguments.data, arguments.preprocess]
    check_output(arguments.output, *inputs)
    if arguments.report is not None:
        check_output(arguments.report, *inputs)
        if arguments.report.resolve() == arguments.output.resolve():
            raise DataError(f"{arguments.report}: is the output; name another report")
    if arguments.engine is not None and arguments.workers > 1:
        raise DataError("--workers is for this machine, --engine for a cluster")


def observe(
    arguments: argparse.Namespace,
    *,
    shard: tuple[int, int] | None = None,
) -> tuple[Outcome, Plan]:
    """Go through the data, with the journal beside the output."""
    percent = arguments.until_stable
    task = Task(
        model=str(arguments.model),
        data=str(arguments.data),
        preprocess=preprocess_of(arguments),
        limit=arguments.limit,
        skip=arguments.skip,
        shard=shard,
        ignore_nonfinite=arguments.ignore_nonfinite,
    )
    plan = Plan(
        workers=arguments.workers,
        engine=arguments.engine,
        output=None if arguments.output == STDOUT else arguments.output,
        measure=arguments.report is not None,
        tolerance=None if percent is None else percent / 100,
    )
    with counter(arguments.command, quiet=arguments.quiet) as progress:
        return observe_data(task, plan, progress=progress), plan


def report(arguments: argparse.Namespace, outcome: Outcome) -> list[str]:
    """Write the convergence report, if it is wanted; the same as lines of text."""
    if not outcome.points:
        return []
    percent = arguments.until_stable
    value = convergence.report(
        outcome.observation,
        outcome.points,
        outcome.names,
        tolerance=convergence.TOLERANCE if percent is None else percent / 100,
    )
    if arguments.report is not None:
        text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
        write_atomic(arguments.report, text.encode())
    return [convergence.as_text(value)]
