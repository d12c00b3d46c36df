# SPDX-License-Identifier: Apache-2.0
"""The part of a page that a command writes, between marks that name the command."""

from pathlib import Path

from neon8.errors import Neon8Error
from neon8.files import write_atomic

END = "<!-- up to here -->"


class MarkError(Neon8Error):
    """A page has no place for what a command writes."""


def begin(command: str) -> str:
    """The mark before what `command` writes."""
    return f"<!-- from here on written by `{command}` -->"


def write(path: Path, command: str, text: str) -> None:
    """Put the text between the command's marks.  MarkError: the page has none."""
    before, first, rest = path.read_text(encoding="utf-8").partition(begin(command))
    _, last, after = rest.partition(END)
    if not first or not last:
        raise MarkError(f"{path}: has no {begin(command)} with {END} after it")
    write_atomic(path, f"{before}{first}\n\n{text}\n\n{last}{after}".encode())


def read(path: Path, command: str) -> str:
    """What stands between the command's marks; "" where they are missing."""
    text = path.read_text(encoding="utf-8")
    return text.partition(begin(command))[2].partition(END)[0]
