# SPDX-License-Identifier: Apache-2.0
"""neon8 observe."""

import argparse

from neon8.cli import options
from neon8.settings.reader import add_options

SUMMARY = "collect statistics from samples"

HELP = f"""\
examples:
  neon8 observe net.onnx --data train.npz -o net.calib
  neon8 observe net.onnx --data photos/ --preprocess imagenet.toml --workers 8 \\
      --until-stable 1 --report convergence.json -o net.calib
  neon8 observe net.onnx --data train.npz --shard 3/16 -o net.3.calib

The file holds exact integer statistics of all tensors: the same samples give the same
bytes in any order, with any number of workers and in any split into shards.

While it runs, net.calib.journal keeps what is done. A run that was killed or
interrupted continues from there when you run the same command again. With -o - there is
no journal.

{options.DATA}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's grammar."""
    options.model(parser, "MODEL.onnx", "the float network")
    options.data(parser)
    options.output(parser, "M.calib")
    options.quiet(parser)
    add_options(parser, "network", "data", "observe")


def run(arguments: argparse.Namespace) -> str:
    """Run the network on the samples and write what was seen."""
    from neon8.calibrate.run import convergence
    from neon8.cli.progress import stages
    from neon8.pipeline import observe
    from neon8.text import counted

    with stages(quiet=arguments.quiet) as progress:
        done = observe(
            arguments.model,
            arguments.data,
            arguments.settings,
            output=arguments.output,
            progress=progress,
        )
    observation = done.observation
    text = (
        f"{arguments.output}: {counted(len(observation.tensors), 'tensor')} and "
        f"{counted(len(observation.layers), 'layer')} seen in "
        f"{counted(len(observation.samples) * done.batch, 'sample')}"
    )
    if done.batch > 1:
        text += f", {done.batch} at once"
    if done.convergence is None:
        return text
    return f"{text}\n{convergence.as_text(done.convergence)}"
