# SPDX-License-Identifier: Apache-2.0
# PYTHON_ARGCOMPLETE_OK
"""The command `neon8`: parse, run one command, report errors in one line.

Exit status: 0 done; 1 a fault of neon8 itself; 2 bad input, bad usage or a machine that
lacks something; 3 a goal is out of reach, and what comes nearest to it is written; 130
interrupted (Ctrl-C); 141 the reader of our output went away.
"""

import argparse
import atexit
import contextlib
import gc
import importlib
import logging
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import NoReturn, TextIO

from neon8.cli import options
from neon8.cli.options import MissedError, UsageError
from neon8.errors import LOG, Neon8Error
from neon8.files import STDOUT
from neon8.settings.reader import from_options
from neon8.version import __version__

COMMANDS = (
    "calibrate",
    "observe",
    "merge",
    "solve",
    "compile",
    "run",
    "evaluate",
    "compare",
    "diagnose",
    "report",
    "profile",
    "bench",
    "package",
    "qat",
    "doctor",
    "inspect",
    "convert",
)
"""Each is a module here with SUMMARY, HELP, add_arguments(parser), run(arguments)."""

OVERVIEW = """\
From a float ONNX network to an int8 network on ARM, every step on this PC:

  neon8 calibrate net.onnx --data train.npz -o net.scales.json   choose scales
  neon8 compile   net.onnx --scales net.scales.json -o net.n8    lower, prove, write
  neon8 run       net.n8 --input x.npy -o y.npy --target aarch64 here, or emulated
  neon8 evaluate  net.n8 --data test.npz --reference net.onnx    what int8 costs
"""

OK, FAULT, BAD_INPUT, MISSED, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 3, 130, 141

NO_THREAD = "can't start new thread"
"""Python's RuntimeError, which has no class of its own."""

ALLOCATIONS = 50_000
"""Between two runs of the garbage collector."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; `argv` without the program's name, sys.argv's if None."""
    handler = _OneLine(logging.WARNING)
    LOG.addHandler(handler)
    arguments = argparse.Namespace()
    try:
        parser = make_parser()
        if "_ARGCOMPLETE" in os.environ:
            from neon8.cli.completion import complete

            complete(parser, [each for _, each in commands_of(parser).values()])
        arguments = parser.parse_args(argv)
        if _asks_for_version(parser, arguments):
            _write(_version(json=arguments.version_json), sys.stdout)
            return OK
        if getattr(arguments, "quiet", False):
            handler.setLevel(logging.ERROR)
        if "settings" in arguments:
            arguments.settings = from_options(arguments)
        options.check_files(arguments)
        missed = None
        try:
            with _few_collections():
                text = _command(arguments.command).run(arguments)
        except MissedError as error:
            text, missed = error.report, error
        stream = _stream_for_text(arguments)
        if stream is not None:
            _write(text, stream)
        if missed is not None:
            return _fail(MISSED, f"missed: {missed.text}")
    except Neon8Error as error:
        return _fail(BAD_INPUT, f"error: {error.text}", *error.details)
    except BrokenPipeError:
        return BROKEN_PIPE
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        return _fail(BAD_INPUT, f"error: {where}{error.strerror or error}")
    except KeyboardInterrupt as interrupt:
        # Its text, if it has one, says how to go on.
        said = interrupt.args or _unwritten(arguments)
        return _fail(INTERRUPTED, ": ".join(["interrupted", *map(str, said)]))
    except Exception as error:  # noqa: BLE001 - the last line of defence, see _fault
        lack = _lack(error)
        return _fault(error) if lack is None else _fail(BAD_INPUT, f"error: {lack}")
    finally:
        LOG.removeHandler(handler)
    return OK


class _Parser(argparse.ArgumentParser):
    """Reports errors in one line, as the rest of neon8 does."""

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage."""
        text = f"{message} (see '{self.prog} --help')"
        raise UsageError(text)


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of all commands; the chosen one is named by `command`."""
    parser = _Parser(
        prog="neon8",
        description=OVERVIEW,
        epilog="`neon8 COMMAND --help` has examples for each command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    parser.add_argument(
        "--json",
        action="store_true",
        dest="version_json",
        help="with --version: the library, its compiler and levels, and versions of "
        "packages, as one JSON object",
    )
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", title="commands"
    )
    for name in COMMANDS:
        command = _command(name)
        summary = command.SUMMARY
        command.add_arguments(
            commands.add_parser(
                name,
                help=summary,
                description=summary[0].upper() + summary[1:] + ".",
                epilog=command.HELP,
                formatter_class=argparse.RawDescriptionHelpFormatter,
                allow_abbrev=False,
            )
        )
    return parser


def commands_of(
    parser: argparse.ArgumentParser,
) -> dict[str, tuple[str, argparse.ArgumentParser]]:
    """The summary and the parser of each command."""
    (commands,) = (
        action
        for action in parser._actions  # noqa: SLF001 - argparse has no other way
        if isinstance(action, argparse._SubParsersAction)  # noqa: SLF001
    )
    parsers: dict[str, argparse.ArgumentParser] = commands.choices
    return {name: (_command(name).SUMMARY, each) for name, each in parsers.items()}


def _asks_for_version(
    parser: argparse.ArgumentParser, arguments: argparse.Namespace
) -> bool:
    """True for the version, False for a command.  UsageError: neither, or a mixture."""
    if arguments.version and arguments.command is None:
        return True
    if arguments.version:
        parser.error("--version takes no command; leave one of them out")
    if arguments.version_json:
        parser.error("--json stands after the command, or beside --version")
    if arguments.command is None:
        parser.error("the following arguments are required: COMMAND")
    return False


def _version(*, json: bool) -> str:
    if not json:
        return f"neon8 {__version__}"
    from neon8.inspection.doctor import installed
    from neon8.text import as_json

    return as_json(installed())


def _command(name: str) -> ModuleType:
    return importlib.import_module(f"neon8.cli.{name}")


@contextlib.contextmanager
def _few_collections() -> Iterator[None]:
    """Collect garbage rarely, and not at exit.

    Most objects of a short run are imported modules, which are never garbage; scanning
    them repeatedly would take a seventh of its time.
    """
    before = gc.get_threshold()
    gc.set_threshold(ALLOCATIONS, *before[1:])
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _unwritten(arguments: argparse.Namespace) -> list[str]:
    """What a command that was interrupted did not do, for people."""
    output = getattr(arguments, "output", None)  # appears when it is whole
    return [] if output in (None, STDOUT) else [f"{output} was not written"]


def _stream_for_text(arguments: argparse.Namespace) -> TextIO | None:
    """The stream for a command's text, None for none.

    Text about a file that was written is a note: -q silences it, and it moves to stderr
    when the file itself goes to standard output.
    """
    if getattr(arguments, "output", None) is not None and arguments.quiet:
        return None
    if STDOUT in options.outputs(arguments):
        return sys.stderr
    return sys.stdout


def _write(text: str, stream: TextIO) -> None:
    """Print and flush, so that a full disk or a closed pipe fails here."""
    encoding = stream.encoding or "utf-8"
    try:
        # Names of files and layers may hold what this terminal cannot show.
        shown = text.encode(encoding, "backslashreplace").decode(encoding)
        print(shown, file=stream, flush=True)
    except OSError as error:
        # The interpreter flushes again at exit: that must not complain a second time.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        raise type(error)(error.errno, error.strerror, "standard output") from error


def _fail(status: int, message: str, *details: str) -> int:
    """Report an error and return the exit status."""
    _say(message)
    for line in details:
        print(_one_line(line), file=sys.stderr)
    return status


def _say(message: str) -> None:
    """Print one line on stderr, even if names from a hostile file are in it."""
    print(f"neon8: {_one_line(message)}", file=sys.stderr)


def _one_line(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)


def _lack(error: Exception) -> str | None:
    """What the machine or the installation lacks, None for any other error."""
    if isinstance(error, ModuleNotFoundError):
        extra = "" if error.name in ("numpy", "cffi") else "[calibrate]"
        return f"{error}: pip install 'neon8{extra}' (docs/howto/install.md)"
    if isinstance(error, ImportError):
        return f"{error}; there is too little memory, or install it again"
    if isinstance(error, MemoryError):
        return "out of memory"
    if str(error) == NO_THREAD:
        return f"{NO_THREAD}: out of memory or of threads; see ulimit -v and ulimit -u"
    return None


def _fault(error: Exception) -> int:
    """Report a defect of neon8 in one line, with a traceback on request."""
    if os.environ.get("NEON8_TRACEBACK"):
        traceback.print_exception(error)
    return _fail(
        FAULT,
        f"fault: {type(error).__name__}: {error} (a defect of neon8; "
        "set NEON8_TRACEBACK=1 to see where, and please report it)",
    )


class _OneLine(logging.Handler):
    """Prints warnings of the package's loggers as errors are printed."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record, except of guards, which the commands report themselves."""
        if record.name != "neon8.guards":
            _say(f"{record.levelname.lower()}: {record.getMessage()}")
