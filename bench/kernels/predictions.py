# SPDX-License-Identifier: Apache-2.0
"""What `neon8 profile` says of networks on boards, and of times that are known."""

import sys

import numpy as np

from bench import pages
from bench.kernels.cases import NETWORKS, ROWS, make
from bench.kernels.report import OUT
from neon8.errors import Neon8Error
from neon8.profile import boards
from neon8.profile.profile import profile_model

COMMAND = "python -m bench.kernels.predictions --write docs/performance.md"
SHOWN = ("rpi3b+", "rk3566", "rpi4", "rpi5", "cobalt100")
"""Boards of the second table, one for each core."""


def published() -> str:
    """The boards, and how far off each of their times is from what the others say."""
    rows = []
    for board in boards.boards().values():
        fit = board.fit
        off = np.abs(np.array(fit.ratios) - 1)
        rows.append(
            [
                f"{board.title}, `{board.name}`",
                f"{board.core} at {board.ghz:g} GHz",
                *(f"{board.networks}", f"{fit.factor:.2f}", f"{fit.line:.1f}"),
                *(f"{np.median(off):.1%}", f"{off.max():.1%}"),
            ]
        )
    header = (
        *("board", "core", "networks", "cycles of one", "ns a line"),
        *("median off", "worst"),
    )
    return pages.table(header, rows, left=("core",))


def estimated() -> str:
    """Networks of neon8 on SHOWN."""
    known, rows = boards.boards(), []
    for key in NETWORKS:
        case = make(key, OUT)
        _, file, _ = case.arguments
        cells = []
        for name in SHOWN:
            found = profile_model(file, board=name)
            if found.ms is None or found.span is None or found.missing:
                raise Neon8Error(f"{key} on {name}: {', '.join(found.missing)}")
            low, high = found.span
            cells.append(f"{found.ms:.1f} ({low:.1f} .. {high:.1f})")
        rows.append([ROWS[key].name, f"{case.macs / 1e6:.0f}", *cells])
    return pages.table(("network", "MMACs", *(known[n].title for n in SHOWN)), rows)


TEXT = """\
Published times of ncnn's int8 networks, each estimated from the others of its board:

{published}

Milliseconds of neon8 as `neon8 profile` estimates them, one thread, and their range:

{estimated}"""


def main() -> None:
    arguments = pages.options(__doc__).parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    try:
        text = TEXT.format(published=published(), estimated=estimated())
    except Neon8Error as error:
        sys.exit(f"predictions: {error}")
    print(text)
    if arguments.write:
        pages.write(arguments.write, COMMAND, text)


if __name__ == "__main__":
    main()
