# SPDX-License-Identifier: Apache-2.0
"""neon8 solve."""

import argparse

from neon8.calibrate import calib_file, overrides
from neon8.calibrate.solve import solve
from neon8.cli.common import check_output
from neon8.cli.solved import described
from neon8.quant import table_json


def run(arguments: argparse.Namespace) -> str:
    """Choose the scales and write the table."""
    check_output(arguments.output, arguments.calib, arguments.override)
    observation = calib_file.load(arguments.calib)
    own = arguments.override
    table = solve(
        observation,
        method=arguments.method,
        scheme=arguments.scheme,
        bits=arguments.bits,
        overrides=None if own is None else overrides.load(own),
    )
    table_json.save(table, arguments.output)
    return described(arguments.output, table)
