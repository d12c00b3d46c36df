# SPDX-License-Identifier: Apache-2.0
"""neon8 profile."""

import argparse

from neon8.cli import options
from neon8.settings.reader import add_options

SUMMARY = "say how long a model will take on an ARM core, layer by layer, without one"

HELP = """\
examples:
  neon8 profile net.n8 --board rpi3b+                milliseconds on a board
  neon8 profile net.n8 --core cortex-a55 --ghz 1.8   on any board with such a core
  neon8 profile net.n8 --core neoverse-n2            cycles; a time takes a clock
  neon8 profile net.n8 --measured net.bench.json     with the time that a board took
  neon8 profile net.n8 --board rpi5 --json           the same facts as one JSON object
  neon8 profile --kernel winograd_gemm_s32_neon --core cortex-a53 -o loop.svg
                                                     a kernel's loop, cycle by cycle

Nothing is emulated: the model is planned as that core plans it, the calls of its
kernels are counted, and a table says what each takes. The times are an estimate,
calibrated on published times of ncnn's int8 networks on the same boards, of one thread
that has a core for itself at its full clock. Their range is how far off those times
were when each network was estimated from the others.

cycles         of a model of the core: they rank, and leave memory out
lines          of 64 bytes that come from memory: weights once, and what of the values
               does not fit the second-level cache
MAC/cycle      multiply-accumulates of a cycle; the limit is the core's with int8
bound by       multiplies, or the loads of what they multiply, of kernels whose loops
               are known (--kernel); kernel: inner loops of others; epilogue: what
               follows each tile, as scales and stores; C code: what calls kernels, or
               does without; memory
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's grammar."""
    about = parser.add_mutually_exclusive_group(required=True)
    about.add_argument(
        "model", type=options.INPUT, nargs="?", metavar="MODEL.n8", help="the model"
    )
    about.add_argument(
        "--kernel",
        metavar="NAME",
        help="of a kernel instead: its main loop, and when each instruction issues",
    )
    options.output(parser, "LOOP.svg", required=False)
    options.quiet(parser)
    options.as_json(parser)
    add_options(parser, "network", "profile")


def run(arguments: argparse.Namespace) -> str:
    """Say how long a model takes, or how a kernel runs."""
    from neon8 import text
    from neon8.files import write_atomic
    from neon8.profile.described import described, described_loop
    from neon8.profile.loops import as_svg, loop_of
    from neon8.profile.profile import profile_model

    if arguments.kernel is None:
        if arguments.output is not None:
            raise options.UsageError("-o is for the picture of a --kernel")
        found = profile_model(arguments.model, settings=arguments.settings)
        parts = described(found)
    else:
        core = arguments.settings.profile.core
        if core is None:
            raise options.UsageError("--kernel takes a --core")
        loop = loop_of(arguments.kernel, core)
        if arguments.output is not None:
            write_atomic(arguments.output, as_svg(loop, core))
        parts = described_loop(loop, core)
    return text.as_json(parts) if arguments.json else text.as_text(parts)
