# SPDX-License-Identifier: Apache-2.0
"""neon8 calibrate."""

import argparse

from neon8.api import calibrate_model, save_table
from neon8.commands.common import check_output, counted, preprocess_of
from neon8.progress import watcher


def run(arguments: argparse.Namespace) -> str:
    """Choose the scales and write the table."""
    check_output(arguments.output, arguments.model, arguments.data)
    with watcher("calibrate", quiet=arguments.quiet) as watch:
        table = calibrate_model(
            arguments.model,
            arguments.data,
            method=arguments.method,
            scheme=arguments.scheme,
            preprocess=preprocess_of(arguments),
            limit=arguments.limit,
            skip=arguments.skip,
            watch=watch,
        )
    save_table(table, arguments.output)
    reasons = [(f"tensor {name!r}", t.reasons) for name, t in table.tensors.items()]
    reasons += [(f"layer {name!r}", w.reasons) for name, w in table.layers.items()]
    guarded = [f"  {what}: {', '.join(codes)}" for what, codes in reasons if codes]
    done = (
        f"{arguments.output}: {counted(len(table.tensors), 'tensor')} and "
        f"{counted(len(table.layers), 'layer')} from "
        f"{counted(table.samples, 'sample')}, method {table.method}, "
        f"scheme {table.scheme}"
    )
    return "\n".join([done, *(["guards that fired:", *guarded] if guarded else [])])
