# SPDX-License-Identifier: Apache-2.0
"""neon8 observe."""

import argparse

from neon8.calibrate import calib_file
from neon8.calibrate.run.campaign import forget
from neon8.cli import observing
from neon8.text import counted


def run(arguments: argparse.Namespace) -> str:
    """Go through the data and write what was seen."""
    observing.check(arguments)
    outcome, plan = observing.observe(arguments, shard=arguments.shard)
    lines = observing.report(arguments, outcome)
    calib_file.save(outcome.observation, arguments.output)
    forget(plan)
    observation = outcome.observation
    done = (
        f"{arguments.output}: {counted(len(observation.tensors), 'tensor')} and "
        f"{counted(len(observation.layers), 'layer')} seen in "
        f"{counted(len(observation.samples), 'sample')}"
    )
    return "\n".join([done, *lines])
