# SPDX-License-Identifier: Apache-2.0
"""neon8 compile."""

import argparse

from neon8 import text
from neon8.cli.common import check_output
from neon8.compile.compiler import compile_model
from neon8.files import write_atomic
from neon8.runtime import Model
from neon8.runtime.model import MAX_BYTES
from neon8.text import counted


def run(arguments: argparse.Namespace) -> str:
    """Lower, prove, write, and say what came out."""
    check_output(arguments.output, arguments.model, arguments.scales)
    data = compile_model(arguments.model, arguments.scales, io=arguments.io)
    # Before it is written: what the runtime refuses is of no use to anyone.
    source = str(arguments.output)
    with Model.from_bytes(data, source=source, isa="c", max_bytes=MAX_BYTES) as model:
        steps = model.steps
    write_atomic(arguments.output, data)
    convolutions = [step for step in steps if step.operation == "conv2d"]
    done = (
        f"{arguments.output}: {counted(len(steps), 'step')}, "
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
