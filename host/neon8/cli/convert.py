# SPDX-License-Identifier: Apache-2.0
"""neon8 convert."""

import argparse

from neon8 import text
from neon8.cli.common import check_output
from neon8.files import write_atomic
from neon8.formats.conversion import convert, read_names


def run(arguments: argparse.Namespace) -> str:
    """Write a calibration file in another format, and say what that one cannot hold."""
    others = (
        arguments.names,
        arguments.model,
        arguments.onto,
        arguments.ncnn_param,
    )
    given = [path for path in others if path is not None]
    check_output(arguments.output, arguments.table, *given)
    done = convert(
        arguments.table,
        arguments.to,
        source_format=arguments.source_format,
        names=None if arguments.names is None else read_names(arguments.names),
        model=arguments.model,
        onto=arguments.onto,
        ncnn_param=arguments.ncnn_param,
        trt_version=arguments.trt_version,
    )
    write_atomic(arguments.output, done.data)
    first = f"{arguments.output}: format {arguments.to}, from {done.source_format}"
    return "\n".join((first, *(f"  {text.printable(note)}" for note in done.notes)))
