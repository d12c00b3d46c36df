# SPDX-License-Identifier: Apache-2.0
"""The command `neon8`: parse, run one command, turn what went wrong into one line.

Exit status: 0 done; 1 a fault of neon8 itself; 2 bad input, bad usage or a machine that
lacks something; 130 interrupted (Ctrl-C); 141 the reader of our output went away.
"""

import gc
import importlib
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from types import ModuleType

from neon8.cli.parser import make_parser
from neon8.errors import Neon8Error

OK, FAULT, BAD_INPUT, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 130, 141

NO_THREAD = "can't start new thread"
"""Python's RuntimeError, which has no class of its own."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; `argv` without the program's name, sys.argv's if None."""
    logger, handler = logging.getLogger("neon8"), _OneLine(logging.WARNING)
    try:
        arguments = make_parser().parse_args(argv)
        command = _import(f"neon8.cli.{arguments.command}")
        logger.addHandler(handler)
        _write(command.run(arguments))
    except Neon8Error as error:
        return _fail(BAD_INPUT, f"error: {error}")
    except BrokenPipeError:
        return BROKEN_PIPE
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        return _fail(BAD_INPUT, f"error: {where}{error.strerror or error}")
    except KeyboardInterrupt as interrupt:
        # Its text, if it has one, says how to go on.
        return _fail(INTERRUPTED, ": ".join(["interrupted", *map(str, interrupt.args)]))
    except Exception as error:  # noqa: BLE001 - the last line of defence, see _fault
        lack = _lack(error)
        return _fault(error) if lack is None else _fail(BAD_INPUT, f"error: {lack}")
    finally:
        logger.removeHandler(handler)
    return OK


def _import(name: str) -> ModuleType:
    """A command's module, with the garbage collector off while it is loaded.

    What is imported is never garbage: looking for some in it, over and over and once
    more at exit, would take a seventh of a short run.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        gc.freeze()
        if collecting:
            gc.enable()


def _write(text: str) -> None:
    """To standard output, at once, so that a full disk or a closed pipe shows here."""
    if sys.stdout is None:  # closed by whoever started us
        return
    encoding = sys.stdout.encoding or "utf-8"
    try:
        # Names of files and layers may hold what this terminal cannot show.
        print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)
    except OSError as error:
        # The interpreter flushes again at exit: that must not complain a second time.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise type(error)(error.errno, error.strerror, "standard output") from error


def _fail(status: int, message: str) -> int:
    """Say it and hand the exit status on."""
    _say(message)
    return status


def _say(message: str) -> None:
    """One line on stderr whatever the message holds, even names from a hostile file."""
    line = "".join(
        character if character.isprintable() else " " for character in message
    )
    print(f"neon8: {line}", file=sys.stderr)


def _lack(error: Exception) -> str | None:
    """What machine or installation lack, None if that is not what went wrong."""
    if isinstance(error, ModuleNotFoundError):
        return f"{error}; `pip install neon8` brings it"
    if isinstance(error, ImportError):
        return f"{error}; there is too little memory, or install it again"
    if isinstance(error, MemoryError):
        return "out of memory"
    if str(error) == NO_THREAD:
        return f"{NO_THREAD}: out of memory or of threads; see ulimit -v and ulimit -u"
    return None


def _fault(error: Exception) -> int:
    """A defect of neon8: still one line, and the traceback for those who ask for it."""
    if os.environ.get("NEON8_TRACEBACK"):
        traceback.print_exception(error)
    return _fail(
        FAULT,
        f"fault: {type(error).__name__}: {error} (a defect of neon8; "
        "set NEON8_TRACEBACK=1 to see where, and please report it)",
    )


class _OneLine(logging.Handler):
    """Warnings of the package's logger, in the manner of errors."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print it."""
        _say(f"{record.levelname.lower()}: {record.getMessage()}")
