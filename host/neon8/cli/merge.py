# SPDX-License-Identifier: Apache-2.0
"""neon8 merge."""

import argparse

from neon8.cli import options

SUMMARY = "combine what several runs observed in one file"

HELP = """\
example:
  neon8 merge net.1.calib net.2.calib net.3.calib -o net.calib

Gives the bytes that observing all samples at once would have given. Files that share a
sample, or are of other models, engines or preprocessing, are refused.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's grammar."""
    options.file(parser, "files", "A.calib", "what observe wrote", nargs="+")
    options.output(parser, "M.calib")
    options.quiet(parser)


def run(arguments: argparse.Namespace) -> str:
    """Make one file of several."""
    from neon8.calibrate import calib_file
    from neon8.calibrate.observation import merge
    from neon8.errors import CalibrationError
    from neon8.text import counted

    first, *others = arguments.files
    merged = calib_file.load(first)
    owners = dict.fromkeys(merged.samples, first)
    for path in others:
        one = calib_file.load(path)
        again = min((digest for digest in one.samples if digest in owners), default="")
        # The file that has the same sample, or else the first one that has any.
        other = owners.get(again, next(iter(owners.values()), path))
        try:
            merged = merge(merged, one)
        except CalibrationError as error:
            raise CalibrationError(f"{other} and {path}: {error}") from error
        owners |= dict.fromkeys(one.samples, path)
    calib_file.save(merged, arguments.output)
    samples = counted(len(merged.samples), "sample")
    return f"{arguments.output}: {samples} of {counted(len(arguments.files), 'file')}"
