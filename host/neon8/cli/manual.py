# SPDX-License-Identifier: Apache-2.0
"""Manual pages from the parser that prints --help, and what shells complete words by.

    python -m neon8.cli.manual ~/.local/share

writes both where man, bash, zsh and fish look for them; a wheel carries the same.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from neon8.cli.completion import script
from neon8.cli.main import commands_of, make_parser
from neon8.files import write_atomic
from neon8.version import __version__

SHELLS = {
    "bash": "bash-completion/completions/neon8",
    "zsh": "zsh/site-functions/_neon8",
    "fish": "fish/vendor_completions.d/neon8.fish",
}
WIDTH = 80


def files() -> dict[str, str]:
    """All files, by their place in a folder `share`."""
    parser = make_parser()
    commands = commands_of(parser)
    title = "int8 networks on ARM, every step on a PC"
    also = [f"neon8-{name}" for name in commands]
    pages = {"neon8": _page(parser, title, also)}
    for name, (summary, command) in commands.items():
        pages[f"neon8-{name}"] = _page(command, summary, ["neon8"])
    made = {f"man/man1/{name}.1": page for name, page in pages.items()}
    return made | {SHELLS[shell]: script(shell) for shell in SHELLS}


def _page(parser: argparse.ArgumentParser, summary: str, also: list[str]) -> str:
    """One page, in the macros of man(7)."""
    parser.formatter_class = partial(argparse.RawDescriptionHelpFormatter, width=WIDTH)
    name = parser.prog.replace(" ", "-")
    usage = parser.format_usage().removeprefix("usage: ")
    lines = [
        f'.TH {_plain(name.upper())} 1 {_date()} "neon8 {__version__}" neon8',
        *(".SH NAME", f"{_plain(name)} \\- {_plain(summary)}"),
        *(".SH SYNOPSIS", *_as_it_is(usage)),
        *(".SH DESCRIPTION", *_as_it_is(parser.description or "")),
        ".SH OPTIONS",
    ]
    for group in parser._action_groups:  # noqa: SLF001 - there is no other way
        entries = [line for action in group._group_actions for line in _entry(action)]  # noqa: SLF001
        if entries and group.description is not None:
            lines += [f'.SS "{_plain(str(group.title))}"', _plain(group.description)]
        lines += entries
    pages = ", ".join(f"\\fB{_plain(each)}\\fR(1)" for each in also)
    notes = [".SH NOTES", *_as_it_is(parser.epilog or "")]
    return "\n".join([*lines, *notes, ".SH SEE ALSO", pages, ""])


def _entry(action: argparse.Action) -> Iterator[str]:
    """An argument with its help, or each of the commands."""
    if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
        for each in action._choices_actions:  # noqa: SLF001
            yield from (".TP", f"\\fB{_plain(each.dest)}\\fR", _plain(each.help or ""))
    elif action.help != argparse.SUPPRESS:
        words = [f"\\fB{_plain(word)}\\fR" for word in action.option_strings]
        taken = action.metavar or "|".join(map(str, action.choices or ()))
        if action.nargs != 0 and taken:
            value = f"\\fI{_plain(str(taken))}\\fR"
            words = [f"{word} {value}" for word in words] or [value]
        help_ = (action.help or "").replace("%%", "%")
        yield from (".TP", ", ".join(words), _plain(help_))


def _as_it_is(text: str) -> list[str]:
    """Lines that are not to be joined."""
    return [".nf", *map(_plain, text.strip("\n").splitlines()), ".fi"]


def _plain(text: str) -> str:
    """Text, none of which is a request of roff."""
    shown = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{shown}" if shown.startswith((".", "'")) else shown


def _date() -> str:
    """The day of the build, which may be told it."""
    seconds = float(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))


def main(folder: str) -> None:
    """Write all files into a folder `share`."""
    for place, text in files().items():
        path = Path(folder, place)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, text.encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
