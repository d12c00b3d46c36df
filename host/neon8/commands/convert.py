# SPDX-License-Identifier: Apache-2.0
"""neon8 convert."""

import argparse

from neon8.api import export_table, load_table
from neon8.commands.common import check_output, counted
from neon8.files import write_atomic


def run(arguments: argparse.Namespace) -> str:
    """Write the scale table in another tool's format."""
    check_output(arguments.output, arguments.table)
    table = load_table(arguments.table)
    write_atomic(arguments.output, export_table(table, arguments.to).encode())
    layers = counted(len(table.layers), "layer")
    return f"{arguments.output}: {layers}, format {arguments.to}"
