# SPDX-License-Identifier: Apache-2.0
"""The command `neon8`: parse, run one command, turn what went wrong into one line.

Exit status: 0 done; 1 a fault of neon8 itself; 2 bad input, bad usage or a machine that
lacks something; 130 interrupted (Ctrl-C); 141 the reader of our output went away.
"""

import importlib
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import TextIO

from neon8.cli_parser import make_parser
from neon8.errors import Neon8Error

OK, FAULT, BAD_INPUT, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 130, 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; `argv` without the program's name, sys.argv's if None."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            arguments = make_parser().parse_args(argv)
            command = importlib.import_module(f"neon8.commands.{arguments.command}")
            _write(command.run(arguments))
    except Neon8Error as error:
        return _fail(BAD_INPUT, f"error: {error}")
    except BrokenPipeError:
        # Nobody reads any more; the interpreter's own flush at exit must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        return _fail(BAD_INPUT, f"error: {where}{error.strerror or error}")
    except MemoryError:
        return _fail(BAD_INPUT, "error: out of memory")
    except KeyboardInterrupt:
        return _fail(INTERRUPTED, "interrupted")
    except Exception as error:  # noqa: BLE001 - the last line of defence, see _fault
        return _fault(error)
    return OK


def _write(text: str) -> None:
    """To standard output, at once, so that a full disk or a closed pipe shows here."""
    try:
        print(text, flush=True)  # noqa: T201
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, "standard output") from error


def _fail(status: int, message: str) -> int:
    """One line on stderr whatever the message holds, even names from a hostile file."""
    line = "".join(
        character if character.isprintable() else " " for character in message
    )
    print(f"neon8: {line}", file=sys.stderr)  # noqa: T201
    return status


def _fault(error: Exception) -> int:
    """A defect of neon8: still one line, and the traceback for those who ask for it."""
    if os.environ.get("NEON8_TRACEBACK"):
        traceback.print_exception(error)
    return _fail(
        FAULT,
        f"fault: {type(error).__name__}: {error} (a defect of neon8; "
        "set NEON8_TRACEBACK=1 to see where, and please report it)",
    )


def _show_warning(  # noqa: PLR0913 - the signature of warnings.showwarning
    message: Warning | str,
    category: type[Warning],
    filename: str,  # noqa: ARG001
    lineno: int,  # noqa: ARG001
    file: TextIO | None = None,  # noqa: ARG001
    line: str | None = None,  # noqa: ARG001
) -> None:
    """Show neon8's own warnings as one line; those of other packages are not the user's."""
    if issubclass(category, UserWarning):
        _fail(OK, f"warning: {message}")
