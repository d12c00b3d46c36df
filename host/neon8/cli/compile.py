# SPDX-License-Identifier: Apache-2.0
"""neon8 compile."""

import argparse

from neon8.cli import options

SUMMARY = "turn a network and its scales into an .n8 file"

HELP = """\
examples:
  neon8 compile net.onnx --scales net.scales.json -o net.n8
  neon8 compile net.onnx --scales net.scales.json --io int8 -o net.n8
  neon8 compile quantized.onnx -o net.n8

A network that was quantized elsewhere, with QuantizeLinear and DequantizeLinear nodes
or with QLinearConv and its likes, has its scales in it and needs no table: they, and
its integer weights, are taken as they are. What it leaves in float stays in float.

--io float  the network takes and gives float32 as the ONNX network does (default)
--io int8   it takes and gives int8; real = scale * (q - zero_point), and
            `neon8 inspect net.n8` prints both numbers

Every accumulator is proved to stay inside int32 for any input; where the
proof fails a weight scale is enlarged, with a warning, and if that does not help the
network is refused. One .n8 file serves every processor.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's grammar."""
    options.model(parser, "MODEL.onnx", "the float network, or a quantized one")
    parser.add_argument(
        "--scales",
        type=options.existing,
        metavar="M.scales.json",
        help="its scale table, from `neon8 calibrate`; a quantized network needs none",
    )
    parser.add_argument(
        "--io",
        choices=("float", "int8"),
        default="float",
        help="type of the inputs and outputs (default: float)",
    )
    options.output(parser, "MODEL.n8")
    options.quiet(parser)


def run(arguments: argparse.Namespace) -> str:
    """Lower, prove, write, and say what came out."""
    from neon8 import text
    from neon8.compile.compiler import compile_model
    from neon8.files import write_atomic
    from neon8.runtime import Model
    from neon8.runtime.model import MAX_BYTES

    options.check_output(arguments.output, arguments.model, arguments.scales)
    data = compile_model(arguments.model, arguments.scales, io=arguments.io)
    # Before it is written: what the runtime refuses is of no use to anyone.
    source = str(arguments.output)
    with Model.from_bytes(data, source=source, isa="c", max_bytes=MAX_BYTES) as model:
        steps = model.steps
    write_atomic(arguments.output, data)
    convolutions = [step for step in steps if step.operation == "conv2d"]
    done = (
        f"{arguments.output}: {text.counted(len(steps), 'step')}, "
        f"{len(convolutions)} of them convolutions, {text.size(len(data))}, "
        f"{arguments.io} inputs and outputs"
    )
    if not convolutions:
        return done
    widest = max(convolutions, key=lambda step: step.acc_bound)
    return (
        f"{done}\nproved: no accumulator leaves int32; the largest bound is "
        f"{widest.acc_bound} ({100 * widest.acc_bound / 2**31:.2g} % of 2^31) in layer "
        f"{text.printable(widest.name)!r}"
    )
