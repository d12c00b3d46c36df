# SPDX-License-Identifier: Apache-2.0
"""neon8 calibrate: observe and solve in one command."""

import argparse

from neon8.cli import options
from neon8.settings.reader import add_options

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
        row of three has an even sum. First those that gain most time for the noise they
        add, as long as the output loses 1.5 dB at most, or has --target-sqnr, and no
        layer that reads the tensor loses --max-sqnr-loss or more. The table says how
        the weights of each layer are rounded, and what that costs

--max-ms
        as --fast, and weight scales with which int16 holds four products, until a run
        takes so long on --board, or on --core at --ghz; then more bits within that
        limit, as by --max-cost

--thorough
        choose for each weight one of its two nearest integers, and choose each bias, by
        what the layer reads in the int8 network on 50 samples; up to 50 others judge.
        The default stays unless another table is sure to gain, in the SQNR of centred
        logits or in what the network is for, and sure to lose in no output. Seconds for
        small networks, a minute or two for large ones

--target-sqnr, --max-cost
        measure on 20 samples what rounding each tensor to 8 bits costs, and give 16
        bits to those that gain most, or float32 where int16 does not help: as few as
        reach the target on 40 other samples, or the best within the cost, or both. The
        cost is that of all layers in MACs: the int8 network is 1, a MAC of int16 counts
        as 2, of float32 as 8, a byte that is moved as 4. SQNR is that of centred
        logits, before a final Softmax; each output has to reach the target. Each step
        is printed as the int8 library measures it; * marks the one that was taken. A
        step that is sure to lose in an output, or in what the network is for, is not,
        nor is a gain without a target that may be chance. If the target is out of
        reach, the exit status is 3 and the best table is written

{options.RECIPE}
The table is JSON, made to be read and edited: change a scale and compile again.

{options.CHOOSING}
{options.PRECISION}{options.OVERRIDE}
{options.METRIC}
{options.DATA}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's grammar."""
    options.model(parser, "MODEL.onnx", "the float network")
    options.data(parser)
    options.output(parser, "M.scales.json")
    options.quiet(parser)
    stages = ("network", "data", "observe", "solve", "refine", "judge", "profile")
    add_options(parser, *stages)


def run(arguments: argparse.Namespace) -> str:
    """Observe the samples, choose the scales and write the table."""
    from neon8.calibrate.run import convergence
    from neon8.cli.progress import stages
    from neon8.inspection.guards import described, priced
    from neon8.pipeline import calibrate
    from neon8.quant.scale_table import LATTICE
    from neon8.refine import curve, faster, thorough

    settings = arguments.settings
    with stages(quiet=arguments.quiet) as progress:
        done = calibrate(
            arguments.model,
            arguments.data,
            settings,
            output=arguments.output,
            progress=progress,
        )
    said = [f"{arguments.output}: {described(done.table)}"]
    on_lattice = (each.rounding == LATTICE for each in done.table.layers.values())
    if settings.solve.fast or any(on_lattice):
        said += priced(done.table)
    if done.sped is not None:
        said.append(faster.as_text(done.sped))
    if done.chosen is not None:
        said.append(thorough.as_text(done.chosen))
    if done.convergence is not None:
        said.append(convergence.as_text(done.convergence))
    if done.searched is not None:
        said.append(curve.as_text(done.searched))
        if why := curve.missed(done.searched, settings.refine):
            raise options.MissedError(why, "\n".join(said))
    return "\n".join(said)
