# SPDX-License-Identifier: Apache-2.0
"""neon8 convert."""

import argparse

from neon8.cli import options
from neon8.formats import registry

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
    parser.add_argument(
        "table", type=options.existing, metavar="A", help="the calibration file"
    )
    parser.add_argument(
        "--from",
        dest="source_format",
        choices=registry.NAMES,
        metavar="F",
        help="its format (default: told by the content)",
    )
    parser.add_argument(
        "--to",
        choices=registry.NAMES,
        required=True,
        metavar="G",
        help="the other format",
    )
    files = (
        ("--names", "MAP.json", "old names -> new ones"),
        ("--model", "MODEL.onnx", "the float network, for what A does not say"),
        ("--onto", "M.scales.json", "our table, for scales that A does not have"),
        ("--ncnn-param", "NET.param", "name ncnn's entries after its layers"),
    )
    for option, metavar, text in files:
        parser.add_argument(option, type=options.existing, metavar=metavar, help=text)
    parser.add_argument(
        "--trt-version", metavar="V", help="for the header: 8.6.1, or 8601"
    )
    options.shapes(parser)
    options.output(parser, "B")
    options.quiet(parser)


def run(arguments: argparse.Namespace) -> str:
    """Write a calibration file in another format, and say what that one cannot hold."""
    from neon8 import text
    from neon8.files import write_atomic
    from neon8.formats.conversion import convert, read_names

    options.check_output(
        arguments.output,
        arguments.table,
        arguments.names,
        arguments.model,
        arguments.onto,
        arguments.ncnn_param,
    )
    done = convert(
        arguments.table,
        arguments.to,
        source_format=arguments.source_format,
        names=None if arguments.names is None else read_names(arguments.names),
        model=arguments.model,
        shapes=options.shapes_of(arguments),
        onto=arguments.onto,
        ncnn_param=arguments.ncnn_param,
        trt_version=arguments.trt_version,
    )
    write_atomic(arguments.output, done.data)
    first = f"{arguments.output}: format {arguments.to}, from {done.source_format}"
    return "\n".join((first, *(f"  {text.printable(note)}" for note in done.notes)))
