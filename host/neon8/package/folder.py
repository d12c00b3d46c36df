# SPDX-License-Identifier: Apache-2.0
"""A folder written beside its place and renamed, which knows what neon8 put into it."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from neon8.errors import SetupError

MANIFEST = "neon8-package.json"
FORMAT, VERSION = "neon8 package", 1


def check_place(folder: Path, *, force: bool) -> None:
    """SetupError: something there is not ours to replace.

    That is a folder with anything but the files of a package, as they were written.
    """
    if not folder.parent.is_dir():
        text = f"no folder {str(folder.parent)!r}; create it first"
        raise SetupError(f"{folder}: {text}")
    for mine in (Path.cwd(), Path.home()):
        if mine.is_relative_to(folder.resolve()):
            raise SetupError(f"{folder}: is a folder to work in; name one of its own")
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise SetupError(f"{folder}: is no folder; name another")
    if force or not folder.exists() or not any(folder.iterdir()):
        return
    ours = _manifest(folder)
    if ours is None:
        text = "is not a package of neon8; name another folder, or --force replaces it"
        raise SetupError(f"{folder}: {text}")
    for name, digest in _digests(folder):
        if ours.get(name) != digest:
            text = f"{name!r} is not as neon8 wrote it; --force replaces the folder"
            raise SetupError(f"{folder}: {text}")


@contextmanager
def written(folder: Path, *, kind: str) -> Iterator[Path]:
    """A new folder to fill, which takes the place of `folder` if nothing is raised."""
    place = folder.resolve()
    beside = place.parent / f".neon8-{os.urandom(8).hex()}"
    try:
        beside.mkdir()
        yield beside
        manifest = {
            "format": FORMAT,
            "format_version": VERSION,
            "kind": kind,
            "files": dict(_digests(beside)),
        }
        text = json.dumps(manifest, indent=1, sort_keys=True) + "\n"
        (beside / MANIFEST).write_text(text, encoding="utf-8")
        _swap(beside, place)
    except OSError as error:
        raise SetupError(f"{folder}: cannot be written: {error.strerror}") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _swap(new: Path, place: Path) -> None:
    """Rename, so that one of the two stands there at almost any time."""
    if not place.exists():
        new.rename(place)
        return
    old = place.parent / f".neon8-{os.urandom(8).hex()}"
    place.rename(old)
    try:
        new.rename(place)
    except BaseException:
        old.rename(place)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _manifest(folder: Path) -> dict[str, str] | None:
    """Name -> digest of the files of a package, None if it is none."""
    try:
        found = json.loads((folder / MANIFEST).read_text("utf-8"))
        files = found["files"] if found["format"] == FORMAT else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return files if isinstance(files, dict) else None


def _digests(folder: Path) -> Iterator[tuple[str, str]]:
    """Every file but the manifest, in order, with the SHA-256 of what is in it."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_dir() and not path.is_symlink():
            continue
        if name != MANIFEST:
            regular = path.is_file() and not path.is_symlink()
            content = path.read_bytes() if regular else b""
            yield name, hashlib.sha256(content).hexdigest() if regular else ""
