# SPDX-License-Identifier: Apache-2.0
"""neon8 calibrate."""

import argparse

from neon8.api import calibrate_model, save_table
from neon8.commands.common import check_output, counted, preprocess_of
from neon8.inspection.guards import guarded, legend
from neon8.progress import watcher


def run(arguments: argparse.Namespace) -> str:
    """Choose the scales and write the table."""
    check_output(
        arguments.output, arguments.model, arguments.data, arguments.preprocess
    )
    with watcher("calibrate", quiet=arguments.quiet) as watch:
        table = calibrate_model(
            arguments.model,
            arguments.data,
            method=arguments.method,
            scheme=arguments.scheme,
            preprocess=preprocess_of(arguments),
            limit=arguments.limit,
            skip=arguments.skip,
            watch=watch,
        )
    save_table(table, arguments.output)
    done = (
        f"{arguments.output}: {counted(len(table.tensors), 'tensor')} and "
        f"{counted(len(table.layers), 'layer')} from "
        f"{counted(table.samples, 'sample')}, method {table.method}, "
        f"scheme {table.scheme}"
    )
    notes = [*guarded(table), *legend(table)]
    return "\n".join([done, *(f"  {note}" for note in notes)])
