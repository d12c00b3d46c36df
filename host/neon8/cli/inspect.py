# SPDX-License-Identifier: Apache-2.0
"""neon8 inspect."""

import argparse

from neon8.cli.common import cpu_of
from neon8.inspection.describe import describe


def run(arguments: argparse.Namespace) -> str:
    """Say what is in a file."""
    return describe(
        arguments.model,
        target=arguments.target,
        cpu=cpu_of(arguments),
        isa=arguments.isa,
    )
