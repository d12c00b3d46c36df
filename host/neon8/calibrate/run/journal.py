# SPDX-License-Identifier: Apache-2.0
"""The journal of a run: what it has observed so far, so that the next can continue.

It is a snapshot beside the output, replaced as a whole about once a second, or less
often if writing takes long. It holds the settings of the run; only a run with the same
settings continues from it.
"""

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neon8.calibrate import calib_file, container
from neon8.calibrate.observation import Observation
from neon8.calibrate.run.convergence import Point, from_json, to_json
from neon8.errors import CalibrationError, SetupError
from neon8.files import STDOUT, read_file
from neon8.text import counted

KIND = container.Kind("a journal", b"n8jrnal\n", 1)
_NEW = ".new"
DIGESTS = ("the model", "--preprocess")
"""Settings whose values, being digests, mean nothing to a reader."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entry:
    """The content of a journal.

    settings: JSON values.  names: digest -> name of the samples that set an extreme.
    points: the convergence so far.
    """

    settings: dict[str, Any]
    observation: Observation
    names: dict[str, str]
    points: tuple[Point, ...]


def journal_of(output: Path | None) -> Path | None:
    """The path of the journal for an output; None for a pipe or a device."""
    if output is None or output == STDOUT or (output.exists() and not output.is_file()):
        return None
    return output.with_name(output.name + ".journal")


def save(path: Path, entry: Entry) -> None:
    """Replace the journal.  SetupError names it."""
    facts, arrays = calib_file.pack(entry.observation)
    head = {
        "settings": entry.settings,
        "names": entry.names,
        "points": [to_json(point) for point in entry.points],
        "observation": facts,
    }
    data = container.dumps(KIND, head, arrays)
    # Each process has its own: two runs for one output must not write into one file.
    beside = path.with_name(f"{path.name}.{os.getpid()}{_NEW}")
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        # It is gone if another run for the same output has just come to its end.
        with contextlib.suppress(FileNotFoundError):
            beside.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise SetupError(f"{path}: cannot be written: {error.strerror}") from error


def load(path: Path, settings: Mapping[str, Any]) -> Entry | None:
    """Read the journal; None if there is none.

    CalibrationError: it is damaged, or of a run with other settings.
    """
    try:
        data = read_file(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SetupError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        head, arrays = container.loads(KIND, data)
        entry = Entry(
            settings={key: head["settings"].get(key) for key in settings},
            observation=calib_file.unpack(head["observation"], arrays),
            names={str(key): str(name) for key, name in head["names"].items()},
            points=tuple(from_json(point) for point in head["points"]),
        )
    except (CalibrationError, ValueError, KeyError, TypeError, AttributeError) as error:
        text = "is damaged, or was not written by this version of neon8"
        raise CalibrationError(f"{path}: {text}: delete it to start again") from error
    for key, now in settings.items():
        before = entry.settings[key]
        if before != now:
            kept = counted(len(entry.observation.samples), "sample")
            text = f"holds {kept} of an earlier run that was interrupted, in which "
            if key in DIGESTS:
                text += f"{key} was another one"
            else:
                text += f"{key} was {_shown(before)}, and now it is {_shown(now)}"
            raise CalibrationError(
                f"{path}: {text}; delete it to start again, or use the same options to "
                "continue"
            )
    return entry


def _shown(value: object) -> str:
    """What a user gave for an option, in words."""
    if isinstance(value, dict):
        shapes = (f"{n}={','.join(map(str, dims))}" for n, dims in value.items())
        return " ".join(shapes) or "not given"
    if isinstance(value, list):
        return "/".join(map(str, value))
    if value is None or value is False:
        return "not given"
    if isinstance(value, float):  # a share, which the command line has in percent
        return f"{100 * value:g}"
    return "given" if value is True else str(value)


def remove(path: Path | None) -> None:
    """Delete the journal, and unfinished ones of runs that died.  SetupError."""
    if path is None:
        return
    try:
        path.unlink(missing_ok=True)
        for left in path.parent.iterdir():
            if left.name.startswith(f"{path.name}.") and left.name.endswith(_NEW):
                left.unlink(missing_ok=True)
    except OSError as error:
        raise SetupError(f"{path}: cannot be deleted: {error.strerror}") from error
