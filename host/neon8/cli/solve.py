# SPDX-License-Identifier: Apache-2.0
"""neon8 solve."""

import argparse

from neon8.cli import options

SUMMARY = "choose the scales from what was observed"

HELP = f"""\
examples:
  neon8 solve net.calib net.onnx -o net.scales.json
  neon8 solve net.calib net.onnx --method kl --scheme symmetric -o net.scales.json
  neon8 solve net.calib net.onnx --override ranges.json -o net.scales.json
  neon8 solve net.calib -o net.scales.json

Needs no data, and gives the same table as calibrate. {options.RECIPE}
{options.CHOOSING}
{options.PRECISION}{options.OVERRIDE}"""

LEFT_OUT = (
    "  no equalization, bias correction and steps of weights: they need the network; "
    "`neon8 solve M.calib MODEL.onnx` does them"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's grammar."""
    parser.add_argument(
        "calib",
        type=options.existing,
        metavar="M.calib",
        help="what observe or merge wrote",
    )
    parser.add_argument(
        "model",
        type=options.existing,
        nargs="?",
        metavar="MODEL.onnx",
        help="the float network that it was made from; without it as with --plain",
    )
    options.shapes(parser)
    options.solving(parser)
    options.plain(parser)
    options.output(parser, "M.scales.json")
    options.quiet(parser)


def run(arguments: argparse.Namespace) -> str:
    """Choose the scales and write the table."""
    from neon8.calibrate import calib_file, overrides
    from neon8.calibrate.solve import solve
    from neon8.inspection.guards import described
    from neon8.quant import table_json

    own = arguments.override
    options.check_output(arguments.output, arguments.calib, arguments.model, own)
    graph = None
    if arguments.model is not None:
        from neon8.graph.importer import load

        graph = load(arguments.model, shapes=options.shapes_of(arguments))
    table = solve(
        calib_file.load(arguments.calib),
        graph,
        method=arguments.method,
        scheme=arguments.scheme,
        bits=arguments.bits,
        overrides=None if own is None else overrides.load(own),
        precision=options.precision_of(arguments),
        plain=arguments.plain,
    )
    table_json.save(table, arguments.output)
    text = f"{arguments.output}: {described(table)}"
    if graph is None and not arguments.plain:
        text += f"\n{LEFT_OUT}"
    return text
