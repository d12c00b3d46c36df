# SPDX-License-Identifier: Apache-2.0
"""What a folder of samples holds, and the classes that its labels.txt gives them."""

import re
from pathlib import Path

from neon8.errors import DataError
from neon8.files import MAX_TEXT_BYTES, read_file

IMAGES = (".jpg", ".jpeg", ".png")
MAX_PIXELS = 1 << 27
"""The largest image that is read or resized to: 400 MB in RGB."""
LABELS = "labels.txt"
_CLASS = re.compile(r"[0-9]{1,18}")


def list_folder(path: Path) -> list[tuple[Path, int | None]]:
    """Files and classes, in the order of labels.txt or else of their names.

    labels.txt may also name files of the subfolder images.
    """
    known = (*IMAGES, ".npy")
    listing = path / LABELS
    if not listing.exists():
        try:
            files = sorted(f for f in path.iterdir() if f.suffix.lower() in known)
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}") from error
        entries: list[tuple[Path, int | None]] = [(file, None) for file in files]
        if not entries:
            raise DataError(f"{path}: holds no {', '.join(known)} file")
        return entries
    try:
        lines = read_file(listing, most=MAX_TEXT_BYTES).decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{listing}: cannot be read as text") from error
    entries = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        name, *label = line.strip().rsplit(maxsplit=1)
        if not label or not _CLASS.fullmatch(label[0]):
            raise DataError(f"{listing}:{number}: expected a file name and its class")
        places = (path / name, path / "images" / name)
        file = next((place for place in places if place.is_file()), places[0])
        if file.suffix.lower() not in known or not file.is_file():
            text = f"names {name!r}, which is no {', '.join(known)} file here"
            raise DataError(f"{listing}:{number}: {text}")
        entries.append((file, int(label[0])))
    if not entries:
        raise DataError(f"{listing}: names no files")
    return entries
