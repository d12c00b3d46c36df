# SPDX-License-Identifier: Apache-2.0
"""neon8 solve."""

import argparse

from neon8.cli import options
from neon8.settings.reader import add_options

SUMMARY = "choose the scales from what was observed"

HELP = f"""\
examples:
  neon8 solve net.calib net.onnx -o net.scales.json
  neon8 solve net.calib net.onnx --method kl --scheme symmetric -o net.scales.json
  neon8 solve net.calib net.onnx --override ranges.json -o net.scales.json
  neon8 solve net.calib -o net.scales.json

Needs no data, and gives the same table as calibrate, except that --fast judges each
layer by itself.

{options.RECIPE}
{options.CHOOSING}
{options.PRECISION}{options.OVERRIDE}"""

LEFT_OUT = (
    "  no equalization, bias correction and steps of weights: they need the network; "
    "`neon8 solve M.calib MODEL.onnx` does them"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's grammar."""
    options.file(parser, "calib", "M.calib", "what observe or merge wrote")
    text = "the float network that it was made from; without it as with --plain"
    options.file(parser, "model", "MODEL.onnx", text, nargs="?")
    options.output(parser, "M.scales.json")
    options.quiet(parser)
    add_options(parser, "network", "solve")


def run(arguments: argparse.Namespace) -> str:
    """Choose the scales and write the table."""
    from neon8.calibrate import calib_file
    from neon8.inspection.guards import described, priced
    from neon8.pipeline import solve_observation
    from neon8.quant import table_json

    settings = arguments.settings
    observation = calib_file.load(arguments.calib)
    table = solve_observation(observation, arguments.model, settings=settings)
    table_json.save(table, arguments.output)
    text = f"{arguments.output}: {described(table)}"
    if settings.solve.fast:
        text += "\n" + "\n".join(priced(table))
    if arguments.model is None and not settings.solve.plain:
        text += f"\n{LEFT_OUT}"
    return text
