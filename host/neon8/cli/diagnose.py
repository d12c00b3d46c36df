# SPDX-License-Identifier: Apache-2.0
"""neon8 diagnose."""

import argparse

from neon8.cli import options
from neon8.settings.reader import add_options

SUMMARY = "find out where an int8 network loses, why, and what would help"

HELP = f"""\
examples:
  neon8 diagnose net.onnx net.scales.json --data test.npz
  neon8 diagnose net.onnx net.scales.json --data test.npz --target aarch64
  neon8 diagnose net.onnx net.scales.json --data photos/ --preprocess imagenet.toml \\
      --skip 100 --limit 50 --all
  neon8 diagnose net.onnx net.scales.json --data test.npz --plot net.svg --json

The samples run through the float network and, step by step, through the int8 one, whose
inner values are those of the device; with --target it runs there, too, and a byte of a
tensor that differs is an error. Take other samples than for the calibration.

tensors        alone: SQNR of the network's output with this tensor alone rounded, the
               most costly first; so far: of the tensor, with all before it in int8;
               rounding, clipping: of the tensor, with its own grid alone, inside the
               range and beyond; beyond: share of its values out of the range
channels       SQNR of what varies in a channel, and its range beside the tensor's
layers         SQNR of a layer that reads what the float network gives it, with all of
               its errors and with one alone: rounding and clipping of its input, its
               weights. Bias shift is what of all that is a mean, which a bias could
               take back. Errors may cancel each other, so one may cost more than all
remedies       other scales and biases for the worst, each compiled and run; gains are
               of the network's SQNR, +- their standard error
--json         one object with all that --all shows, and more

A Softmax at the end is left out. docs/diagnosis.md defines every figure.

{options.DATA}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's grammar."""
    options.model(parser, "MODEL.onnx", "the float network")
    options.file(parser, "scales", "M.scales.json", "its scale table")
    options.data(parser)
    parser.add_argument(
        "--all",
        action="store_true",
        help="show every tensor, layer, remedy and guard, not only the worst",
    )
    parser.add_argument(
        "--plot",
        type=options.OUTPUT,
        metavar="FILE.svg",
        help="draw the SQNR along the network as well",
    )
    options.as_json(parser)
    options.quiet(parser)
    add_options(parser, "network", "data", "target", "diagnose", "judge")


def run(arguments: argparse.Namespace) -> str:
    """Diagnose a network with its scales."""
    import json

    from neon8.cli.progress import stages
    from neon8.files import write_atomic
    from neon8.inspection.chart import drawn
    from neon8.inspection.diagnosis import described
    from neon8.refine.diagnosis import diagnose_model
    from neon8.text import finite

    with stages(quiet=arguments.quiet) as progress:
        found = diagnose_model(
            arguments.model,
            arguments.scales,
            arguments.data,
            settings=arguments.settings,
            progress=progress,
        )
    if arguments.plot is not None:
        write_atomic(arguments.plot, drawn(found).encode())
    if arguments.json:
        return json.dumps(finite(found))
    shown = described(found, everything=arguments.all)
    return shown + options.same_there(arguments, "all tensors of all samples")
