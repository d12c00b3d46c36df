# SPDX-License-Identifier: Apache-2.0
"""What observe and calibrate share: the options of their run, and its report."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from neon8.calibrate.run import convergence
from neon8.calibrate.run.run import Options, no_progress
from neon8.cli.options import check_output, preprocess_of
from neon8.cli.progress import counter
from neon8.errors import DataError


def check(arguments: argparse.Namespace) -> None:
    """What can be wrong before any work is done.  SetupError, DataError."""
    inputs = [arguments.model, arguments.data, arguments.preprocess]
    check_output(arguments.output, *inputs)
    if arguments.report is not None:
        check_output(arguments.report, *inputs)
        if arguments.report.resolve() == arguments.output.resolve():
            raise DataError(f"{arguments.report}: is the output; name another report")


@contextmanager
def settings(
    arguments: argparse.Namespace, *, shard: tuple[int, int] | None = None
) -> Iterator[Options]:
    """The options of the run, which shows its progress until the end of the block."""
    percent = arguments.until_stable
    with counter(arguments.command, quiet=arguments.quiet) as progress:
        yield Options(
            preprocess=preprocess_of(arguments),
            limit=arguments.limit,
            skip=arguments.skip,
            shard=shard,
            ignore_nonfinite=arguments.ignore_nonfinite,
            workers=arguments.workers,
            engine=arguments.engine,
            output=arguments.output,
            report=arguments.report,
            until_stable=None if percent is None else percent / 100,
            progress=progress or no_progress,
        )


def report(value: dict[str, Any] | None) -> list[str]:
    """The convergence report as text, if there is one."""
    return [] if value is None else [convergence.as_text(value)]
