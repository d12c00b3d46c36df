# SPDX-License-Identifier: Apache-2.0
"""What a shell offers when TAB is pressed.  The only module that imports argcomplete.

docs/howto/shell.md says how a shell learns of it.
"""

import argparse
import importlib
import re
from collections.abc import Iterable
from functools import partial
from typing import Any

import argcomplete
from argcomplete.completers import FilesCompleter, SuppressCompleter
from argcomplete.shell_integration import shellcode

from neon8.settings.fields import settings_of
from neon8.settings.stages import STAGES

ENDINGS = {
    "D": ("npz", "npy", "jpg", "jpeg", "png"),
    "X.npy": ("npy", "npz", "jpg", "jpeg", "png"),
    "MODEL.n8": ("n8", "json"),
    "FILE": ("onnx", "n8", "json", "calib", "so", "a"),
    "A": (),
    "B": (),
}
"""Endings of files, by the word in --help that stands for them without one."""


KNOWN = {
    "solve.method": ("settings.methods", "ROWS"),
    "compare.methods": ("settings.methods", "ROWS"),
    "target.isa": ("runtime.model", "usable_levels"),
    "profile.core": ("profile.profile", "PROCESSORS"),
    "profile.board": ("profile.boards", "boards"),
    "kernel": ("profile.loops", "kernels"),
}
"""The words of an option, by what has or finds them, loaded when they are asked for."""


def script(shell: str) -> str:
    """What a shell reads to ask for its words: bash, zsh or fish."""
    return str(shellcode(["neon8"], shell=shell))


def complete(
    parser: argparse.ArgumentParser, commands: Iterable[argparse.ArgumentParser]
) -> None:
    """Answer the shell that asks, and end the process."""
    for each in (parser, *commands):
        for action in each._actions:  # noqa: SLF001 - argcomplete reads them so, too
            if action.choices is None:
                action.completer = _completer(action)  # type: ignore[attr-defined]
    argcomplete.autocomplete(
        parser,
        always_complete_options=False,
        default_completer=SuppressCompleter(),
    )


def _completer(action: argparse.Action) -> object:
    stage, dot, name = action.dest.partition(".")
    choices = settings_of(STAGES[stage])[name].kind.choices if dot else None
    if choices or action.dest in KNOWN:
        return partial(_words, action.dest, choices or ())
    word = str(action.metavar)
    ending = re.search(r"\.([a-z0-9]+)$", word)
    if word in ENDINGS or ending:
        return FilesCompleter(ENDINGS.get(word) or (ending[1] if ending else ()))
    return SuppressCompleter()


def _words(option: str, choices: Iterable[Any], **_asked: Any) -> list[str]:
    words: Any = choices
    if option in KNOWN:
        module, name = KNOWN[option]
        words = getattr(importlib.import_module(f"neon8.{module}"), name)
    return [str(word) for word in (words() if callable(words) else words)]
