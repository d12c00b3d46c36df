# SPDX-License-Identifier: Apache-2.0
"""The journal of a run: what has been observed so far, so that the next run goes on.

A snapshot beside the output, replaced as a whole about once a second, less often if
writing it takes long. It holds the settings of the run, and is only taken up again by a
run with the same ones.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neon8.calibrate import calib_file
from neon8.calibrate.observation import Observation
from neon8.errors import CalibrationError, SetupError

MAGIC = b"n8journal 2\n"
_DIGEST = 32
_NEW = ".new"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entry:
    """settings, points: JSON values.  names: digest -> name, of samples with extremes.

    points: the convergence so far.
    """

    settings: dict[str, Any]
    observation: Observation
    names: dict[str, str]
    points: list[Any]


def journal_of(output: Path) -> Path:
    """Where the journal for an output file stands."""
    return output.with_name(output.name + ".journal")


def save(path: Path, entry: Entry) -> None:
    """Replace the journal.  SetupError names it."""
    head = {"settings": entry.settings, "names": entry.names, "points": entry.points}
    text = json.dumps(head).encode()
    size = len(text).to_bytes(8, "little")
    body = size + text + calib_file.dumps(entry.observation)
    # Each process has its own: two runs for one output must not write into one file.
    beside = path.with_name(f"{path.name}.{os.getpid()}{_NEW}")
    try:
        with beside.open("wb") as file:
            file.write(MAGIC + hashlib.sha256(body).digest() + body)
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
    """The journal, None if there is none.

    CalibrationError: it is damaged or of a run with other settings; says what to do.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SetupError(f"{path}: cannot be read: {error.strerror}") from error
    start = len(MAGIC) + _DIGEST
    body = data[start:]
    if data[:start] != MAGIC + hashlib.sha256(body).digest():
        raise CalibrationError(f"{path}: is no journal, or damaged: delete it")
    size = int.from_bytes(body[:8], "little")
    try:
        head = json.loads(body[8 : 8 + size])
        old, names, points = (head[key] for key in ("settings", "names", "points"))
        then = {key: old.get(key) for key in settings}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CalibrationError(f"{path}: is no journal of neon8: delete it") from error
    for key, now in settings.items():
        before = then[key]
        if before != now:
            raise CalibrationError(
                f"{path}: is of a run in which {key} was {before!r}, now it is "
                f"{now!r}: use the same options as then, or delete it"
            )
    return Entry(
        settings=old,
        observation=calib_file.loads(body[8 + size :], source=str(path)),
        names=names,
        points=points,
    )


def remove(path: Path) -> None:
    """Delete it and what runs left that died while they wrote it.  SetupError."""
    try:
        path.unlink(missing_ok=True)
        for left in path.parent.iterdir():
            if left.name.startswith(f"{path.name}.") and left.name.endswith(_NEW):
                left.unlink(missing_ok=True)
    except OSError as error:
        raise SetupError(f"{path}: cannot be deleted: {error.strerror}") from error
