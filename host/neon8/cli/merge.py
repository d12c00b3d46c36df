# SPDX-License-Identifier: Apache-2.0
"""neon8 merge."""

import argparse
from pathlib import Path

from neon8.calibrate import calib_file
from neon8.calibrate.observation import Observation, merge
from neon8.cli.common import check_output
from neon8.errors import CalibrationError
from neon8.text import counted


def run(arguments: argparse.Namespace) -> str:
    """Make one file of several."""
    check_output(arguments.output, *arguments.files)
    first, *others = arguments.files
    merged = calib_file.load(first)
    owners = dict.fromkeys(merged.samples, first)
    for path in others:
        merged = _with(merged, path, owners)
    calib_file.save(merged, arguments.output)
    samples = counted(len(merged.samples), "sample")
    return f"{arguments.output}: {samples} of {counted(len(arguments.files), 'file')}"


def _with(merged: Observation, path: Path, owners: dict[str, Path]) -> Observation:
    """One file more.  owners: digest -> file of all samples so far; is added to."""
    one = calib_file.load(path)
    again = min((digest for digest in one.samples if digest in owners), default=None)
    other = next(iter(owners.values()), path) if again is None else owners[again]
    try:
        merged = merge(merged, one)
    except CalibrationError as error:
        raise CalibrationError(f"{other} and {path}: {error}") from error
    owners |= dict.fromkeys(one.samples, path)
    return merged
