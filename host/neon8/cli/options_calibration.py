# SPDX-License-Identifier: Apache-2.0
"""The options of observe, merge, solve and calibrate.  Imports nothing heavy."""

import argparse
import math
from pathlib import Path

from neon8.cli.options_methods import method
from neon8.quant.scale_table import BITS, TABLE_SCHEMES

PERCENT = 1.0
"""Of --until-stable without a number."""


def observing(parser: argparse.ArgumentParser) -> None:
    """How the data is gone through."""
    parser.add_argument(
        "--workers",
        type=positive,
        default=1,
        metavar="N",
        help="processes, each with a session of one thread (default: 1)",
    )
    parser.add_argument(
        "--engine",
        type=_engine,
        metavar="dask://HOST:PORT",
        help="work on a dask.distributed cluster, given its scheduler",
    )
    parser.add_argument(
        "--ignore-nonfinite",
        action="store_true",
        help="count NaN and infinite values that the network computes and go on, "
        "instead of stopping; in samples they are always errors",
    )
    parser.add_argument(
        "--report",
        type=Path,
        metavar="convergence.json",
        help="write how the thresholds settle, and what set each extreme",
    )
    parser.add_argument(
        "--until-stable",
        type=_percent,
        nargs="?",
        const=PERCENT,
        metavar="PERCENT",
        help="stop when no threshold moved by more while the samples doubled "
        f"(default: {PERCENT:g})",
    )


def shard(parser: argparse.ArgumentParser) -> None:
    """Which piece of the data."""
    parser.add_argument(
        "--shard",
        type=_shard,
        metavar="i/n",
        help="only the i-th of n equal pieces, i = 1 ... n",
    )


def solving(parser: argparse.ArgumentParser) -> None:
    """How the scales are chosen."""
    parser.add_argument(
        "--method",
        type=method,
        default="mse",
        help="how thresholds are chosen, see below (default: mse)",
    )
    parser.add_argument(
        "--scheme",
        choices=TABLE_SCHEMES,
        default="auto",
        help="where zero points may lie (default: auto)",
    )
    parser.add_argument(
        "--bits",
        type=int,
        choices=BITS,
        default=BITS[0],
        help=f"of activations (default: {BITS[0]})",
    )
    parser.add_argument(
        "--override",
        type=Path,
        metavar="ranges.json",
        help="your own ranges, which win over what is calibrated",
    )


def positive(text: str) -> int:
    """A whole number above 0."""
    number = not_negative(text)
    if number == 0:
        message = "must be at least 1"
        raise argparse.ArgumentTypeError(message)
    return number


def not_negative(text: str) -> int:
    """A whole number."""
    if not text.isascii() or not text.isdigit():
        message = f"{text!r} is not a whole number"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def _shard(text: str) -> tuple[int, int]:
    index, slash, count = text.partition("/")
    if not slash:
        message = f"{text!r} is not of the form i/n, like 2/8"
        raise argparse.ArgumentTypeError(message)
    piece = positive(index), positive(count)
    if piece[0] > piece[1]:
        message = f"there is no piece {piece[0]} of {piece[1]}; they count from 1"
        raise argparse.ArgumentTypeError(message)
    return piece


def _percent(text: str) -> float:
    try:
        percent = float(text)
    except ValueError:
        percent = math.nan
    if not 0 < percent <= 100:
        message = f"{text!r} is not a percentage above 0"
        raise argparse.ArgumentTypeError(message)
    return percent


def _engine(text: str) -> str:
    host, _, port = text.removeprefix("dask://").rpartition(":")
    if not text.startswith("dask://") or not host or not port.isdigit():
        message = f"{text!r} is not dask://HOST:PORT, which is what there is"
        raise argparse.ArgumentTypeError(message)
    return text
