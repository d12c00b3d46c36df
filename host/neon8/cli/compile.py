# SPDX-License-Identifier: Apache-2.0
"""neon8 compile."""

import argparse

from neon8 import text
from neon8.cli.common import check_output
from neon8.compile.compiler import compile_model
from neon8.files import write_atomic
from neon8.inspection import model_file
from neon8.text import counted


def run(arguments: argparse.Namespace) -> str:
    """Lower, prove, write, and say what came out."""
    check_output(arguments.output, arguments.model, arguments.scales)
    data = compile_model(arguments.model, arguments.scales, io=arguments.io)
    write_atomic(arguments.output, data)
    contents = model_file.read(str(arguments.output), data)
    convolutions = [op for op in contents.ops if op.operation == "conv2d"]
    done = (
        f"{arguments.output}: {counted(len(contents.ops), 'step')}, "
        f"{len(convolutions)} of them convolutions, {text.size(len(data))}, "
        f"{arguments.io} inputs and outputs"
    )
    if not convolutions:
        return done
    widest = max(convolutions, key=lambda op: op.acc_bound)
    return (
        f"{done}\nproved: no accumulator leaves int32; the largest bound is "
        f"{widest.acc_bound} ({100 * widest.acc_bound / 2**31:.2g} % of 2^31) in layer "
        f"{text.printable(widest.name)!r}"
    )
