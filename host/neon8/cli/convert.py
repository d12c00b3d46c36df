# SPDX-License-Identifier: Apache-2.0
"""neon8 convert."""

import argparse

from neon8.cli import options
from neon8.formats import registry
from neon8.settings.reader import add_options

SUMMARY = "turn one tool's scales into another's"

HELP = f"""\
examples:
  neon8 convert net.scales.json --to ncnn -o net.table
  neon8 convert net.scales.json --to ncnn --ncnn-param net.param -o net.table
  neon8 convert net.scales.json --to qdq --model net.onnx -o net_qdq.onnx
  neon8 convert calibration.cache --to neon8 --model net.onnx -o net.scales.json
  neon8 convert quantized.onnx --to neon8 -o net.scales.json
  neon8 convert weights.table --to neon8 --onto net.scales.json -o new.scales.json

formats, read and written:
{registry.help_lines()}
A quantized ONNX network is a table and its own network. What the target needs and A
lacks comes from the network (--model) or from a table of ours (--onto), or is an error
that names it; a line says what is lost.
--names       {{"old": "new", ...}}, of tensors, layers and weights
--ncnn-param  ncnn's tools look for the layer names of this file; the order of its
              convolutions and inner products must be that of the network
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's grammar."""
    options.file(parser, "table", "A", "the file to convert")
    parser.add_argument(
        "--to",
        choices=registry.NAMES,
        required=True,
        metavar="G",
        help="the other format",
    )
    options.output(parser, "B")
    options.quiet(parser)
    add_options(parser, "network", "convert")


def run(arguments: argparse.Namespace) -> str:
    """Write a calibration file in another format, and say what that one cannot hold."""
    from neon8 import text
    from neon8.files import write_atomic
    from neon8.formats.conversion import convert_table

    done = convert_table(arguments.table, arguments.to, settings=arguments.settings)
    write_atomic(arguments.output, done.data)
    first = f"{arguments.output}: format {arguments.to}, from {done.source_format}"
    return "\n".join((first, *(f"  {text.printable(note)}" for note in done.notes)))
