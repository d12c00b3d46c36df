# SPDX-License-Identifier: Apache-2.0
"""Tables in Markdown, and the part of a page that a command writes."""

import argparse
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from neon8.errors import Neon8Error
from neon8.files import write_atomic

END = "<!-- up to here -->"


class MarkError(Neon8Error):
    """A page has no place for what a command writes."""


def table(
    header: Iterable[str], rows: Iterable[Iterable[str]], *, left: Collection[str] = ()
) -> str:
    """Markdown; columns of numbers, but for the first and those named in `left`."""
    header = list(header)
    rule = [":--" if name in (header[0], *left) else "--:" for name in header]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *rows))


def options(description: str, **known: Collection[str]) -> argparse.ArgumentParser:
    """--write PAGE.md, and for each that is known --NAME A,B, by default all of it."""
    parser = argparse.ArgumentParser(description=description.partition("\n\n")[0])
    parser.add_argument(
        "--write", type=Path, metavar="PAGE.md", help="put the tables into this page"
    )
    for name, choices in known.items():
        parser.add_argument(
            f"--{name}",
            type=some_of(choices),
            default=list(choices),
            metavar="A,B",
            help=f"some of {', '.join(choices)}; default: all",
        )
    return parser


def some_of(known: Collection[str]) -> Callable[[str], list[str]]:
    """A type of argument: some of `known`, in their order, with commas between them."""

    def parse(text: str) -> list[str]:
        chosen = text.split(",")
        for name in chosen:
            if name not in known:
                listed = ", ".join(known)
                raise argparse.ArgumentTypeError(f"{name!r} is not one of {listed}")
        return [name for name in known if name in chosen]

    return parse


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
