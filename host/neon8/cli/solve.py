# SPDX-License-Identifier: Apache-2.0
"""neon8 solve."""

import argparse

from neon8.cli import options

SUMMARY = "choose the scales from what was observed"

HELP = f"""\
examples:
  neon8 solve net.calib -o net.scales.json
  neon8 solve net.calib --method kl --scheme symmetric -o net.scales.json
  neon8 solve net.calib --override ranges.json -o net.scales.json

Needs neither the model nor the data.

{options.CHOOSING}
{options.OVERRIDE}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's grammar."""
    parser.add_argument(
        "calib",
        type=options.existing,
        metavar="M.calib",
        help="what observe or merge wrote",
    )
    options.solving(parser)
    options.output(parser, "M.scales.json")
    options.quiet(parser)


def run(arguments: argparse.Namespace) -> str:
    """Choose the scales and write the table."""
    from neon8.calibrate import calib_file, overrides
    from neon8.calibrate.solve import solve
    from neon8.inspection.guards import described
    from neon8.quant import table_json

    own = arguments.override
    options.check_output(arguments.output, arguments.calib, own)
    table = solve(
        calib_file.load(arguments.calib),
        method=arguments.method,
        scheme=arguments.scheme,
        bits=arguments.bits,
        overrides=None if own is None else overrides.load(own),
    )
    table_json.save(table, arguments.output)
    return f"{arguments.output}: {described(table)}"
