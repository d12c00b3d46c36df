# SPDX-License-Identifier: Apache-2.0
"""Every error that neon8 raises on purpose, and the logger of its warnings.

Neon8Error
├── DataError         samples, preprocessing, arrays handed to a session
├── GraphError        an ONNX file that cannot be read or is not supported
├── TableError        a scale table or a foreign calibration file
├── CalibrationError  a threshold that cannot be chosen
├── CompileError      a network that cannot be lowered to int8
├── ModelError        a .n8 file that the runtime refuses
├── SettingsError     an option, a keyword, or a key of a settings file
└── SetupError        a library, an emulator or a disk that is missing or full

The text of each is one line that names file, layer and cause, and the remedy where
there is one; the command line prints it and exits with status 2. Where many things are
wrong at once, a line for each follows.
"""

import logging
from collections.abc import Iterable

LOG = logging.getLogger("neon8")
"""For warnings: a line each about what goes on all the same."""


class Neon8Error(Exception):
    """Base of all errors of this package.

    text: the first line.  details: those that follow it.
    """

    def __init__(self, text: str = "", details: Iterable[str] = ()) -> None:
        self.text, self.details = text, tuple(details)
        super().__init__("\n".join((text, *self.details)))


class DataError(Neon8Error):
    """Samples, preprocessing settings or arrays are unusable."""


class GraphError(Neon8Error):
    """An ONNX file is unreadable or has something that neon8 does not support."""


class TableError(Neon8Error):
    """A scale table or foreign calibration file is malformed or of another model."""


class CalibrationError(Neon8Error):
    """No usable threshold follows from the data."""


class CompileError(Neon8Error):
    """A network cannot be lowered to int8 without breaking docs/numerics.md."""


class ModelError(Neon8Error):
    """The runtime refused a model file."""


class SettingsError(Neon8Error):
    """A setting is unknown, has a wrong value, or contradicts another one."""


class SetupError(Neon8Error):
    """A library, tool or file system that is needed is missing, foreign or full."""
