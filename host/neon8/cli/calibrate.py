# SPDX-License-Identifier: Apache-2.0
"""neon8 calibrate: observe and solve in one command."""

import argparse

from neon8.cli import options

FAST = "--fast"

SUMMARY = "choose the scales of a network from samples"

HELP = f"""\
examples:
  neon8 calibrate net.onnx --data train.npz -o net.scales.json
  neon8 calibrate net.onnx --data photos/ --preprocess imagenet.toml --limit 200 \\
      --method kl -o net.scales.json
  neon8 calibrate net.onnx --data train.npz --precision int16:conv1 \\
      -o net.scales.json

--fast  3x3 convolutions of stride 1 may run by int8 Winograd on processors with dot
        products: their inputs get 127 steps, and their weights are rounded so that each
        row of three has an even sum, where no layer that reads the tensor loses as much
        as --max-sqnr-loss. The table says of each layer how its weights are rounded and
        what it cost

{options.RECIPE}
The table is JSON, made to be read and edited: change a scale and compile again.

{options.CHOOSING}
{options.PRECISION}{options.OVERRIDE}
{options.DATA}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's grammar."""
    options.model(parser, "MODEL.onnx", "the float network")
    options.data(parser)
    options.shapes(parser)
    options.observing(parser)
    options.solving(parser)
    options.plain(parser)
    parser.add_argument(
        FAST, action="store_true", help="scales for int8 Winograd, see above"
    )
    options.max_sqnr_loss(parser, FAST, of="output")
    options.output(parser, "M.scales.json")
    options.quiet(parser)


def run(arguments: argparse.Namespace) -> str:
    """Observe the samples, choose the scales and write the table."""
    from neon8.calibrate import overrides
    from neon8.calibrate.calibrate import calibrate
    from neon8.calibrate.run import convergence
    from neon8.inspection.guards import described, priced

    path = arguments.override
    limit = options.max_sqnr_loss_of(arguments, FAST)
    options.check_output(arguments.output, path)
    with options.run_options(arguments) as settings:
        done = calibrate(
            arguments.model,
            arguments.data,
            method=arguments.method,
            scheme=arguments.scheme,
            bits=arguments.bits,
            overrides=None if path is None else overrides.load(path),
            fast=limit if arguments.fast else None,
            precision=options.precision_of(arguments),
            plain=arguments.plain,
            options=settings,
        )
    text = f"{arguments.output}: {described(done.table)}"
    if arguments.fast:
        text += "\n" + "\n".join(priced(done.table))
    if done.convergence is None:
        return text
    return f"{text}\n{convergence.as_text(done.convergence)}"
