# SPDX-License-Identifier: Apache-2.0
"""What solve and calibrate say at their end."""

from pathlib import Path

from neon8.inspection.guards import guarded, legend
from neon8.quant.scale_table import ScaleTable
from neon8.text import counted


def described(output: Path, table: ScaleTable) -> str:
    """What is said of a new table: its size, and the guards that fired."""
    done = (
        f"{output}: {counted(len(table.tensors), 'tensor')} and "
        f"{counted(len(table.layers), 'layer')} from "
        f"{counted(table.samples, 'sample')}, method {table.method}, "
        f"scheme {table.scheme}"
    )
    notes = [*guarded(table), *legend(table)]
    return "\n".join([done, *(f"  {note}" for note in notes)])
