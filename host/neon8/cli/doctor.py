# SPDX-License-Identifier: Apache-2.0
"""neon8 doctor."""

import argparse

from neon8.cli import options

SUMMARY = "say what works on this machine, and what mends the rest"

HELP = """\
examples:
  neon8 doctor                     all there is, and the command for what is missing
  neon8 doctor aarch64 report      these alone; exit status 3 unless both work, for CI
  neon8 doctor --json              the same facts as one JSON object

Without names the exit status is 0 if models run on this machine.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's grammar."""
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="what is asked for: native, aarch64, armv7; ssh, adb; java; linux-aarch64 "
        "and others that models are packaged for; or what an extra of neon8 brings, as "
        "report does; all are listed without",
    )
    options.as_json(parser)


def run(arguments: argparse.Namespace) -> str:
    """Say what works."""
    from neon8 import text
    from neon8.inspection.doctor import examined

    parts, failed = examined(arguments.names)
    said = text.as_json(parts) if arguments.json else text.as_text(parts)
    if failed:
        raise options.MissedError("; ".join(failed), said)
    return said
