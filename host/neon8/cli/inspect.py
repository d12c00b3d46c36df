# SPDX-License-Identifier: Apache-2.0
"""neon8 inspect."""

import argparse

from neon8.cli import options
from neon8.settings.reader import add_options

SUMMARY = "say what is in a network, in a file of neon8 or in another tool's table"

HELP = """\
examples:
  neon8 inspect net.onnx                  what would run in int8, what in float, and
                                          every node that is not supported, with why
                                          and what compile --cut makes of them
  neon8 inspect net.n8                    inputs, outputs, steps, proofs, kernels
  neon8 inspect net.n8 --target aarch64   with the kernels that ARM chooses, and why
  neon8 inspect net.n8 --target armv7 --cpu cortex-a9
  neon8 inspect net.n8 --target aarch64 --cpu cortex-a53 --isa neon
  neon8 inspect net.cut.json              the files of a network that was cut
  neon8 inspect net.scales.json           scales, ranges, guards that fired
  neon8 inspect net.calib                 samples, and what was seen in each tensor
  neon8 inspect build/aarch64/libneon8.so machine, exports, kernels, alignment
  neon8 inspect net.n8 --json             the same facts as one JSON object; sizes in
                                          bytes, null for what is not known or finite
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's grammar."""
    options.model(
        parser,
        "FILE",
        "MODEL.onnx, MODEL.n8, NET.cut.json, M.scales.json, M.calib, libneon8.so or "
        "libneon8.a",
    )
    options.as_json(parser)
    add_options(parser, "network", "target")


def run(arguments: argparse.Namespace) -> str:
    """Say what is in a file."""
    from neon8.inspection.describe import inspect_file

    return inspect_file(
        arguments.model, json=arguments.json, settings=arguments.settings
    )
