# SPDX-License-Identifier: Apache-2.0
"""neon8 solve."""

import argparse

from neon8.api import save_table
from neon8.api_calibration import load_observation, solve_observation
from neon8.commands.common import check_output
from neon8.commands.observing import described


def run(arguments: argparse.Namespace) -> str:
    """Choose the scales and write the table."""
    check_output(arguments.output, arguments.calib, arguments.override)
    table = solve_observation(
        load_observation(arguments.calib),
        method=arguments.method,
        scheme=arguments.scheme,
        bits=arguments.bits,
        overrides=arguments.override,
    )
    save_table(table, arguments.output)
    return described(arguments.output, table)
