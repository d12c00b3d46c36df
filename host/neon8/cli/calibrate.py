# SPDX-License-Identifier: Apache-2.0
"""neon8 calibrate."""

import argparse

from neon8.calibrate import overrides
from neon8.calibrate.run.campaign import forget
from neon8.calibrate.solve import solve
from neon8.cli import observing
from neon8.cli.common import check_output
from neon8.cli.solved import described
from neon8.quant import table_json


def run(arguments: argparse.Namespace) -> str:
    """Observe the samples, choose the scales and write the table."""
    observing.check(arguments)
    path = arguments.override
    check_output(arguments.output, path)
    own = None if path is None else overrides.load(path)  # before all the work
    outcome, plan = observing.observe(arguments)
    table = solve(
        outcome.observation,
        method=arguments.method,
        scheme=arguments.scheme,
        bits=arguments.bits,
        overrides=own,
    )
    lines = observing.report(arguments, outcome)
    table_json.save(table, arguments.output)
    forget(plan)
    return "\n".join([described(arguments.output, table), *lines])
