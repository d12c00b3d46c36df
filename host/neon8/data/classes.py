# SPDX-License-Identifier: Apache-2.0
"""Names of classes, a line for each in a file."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from neon8 import text
from neon8.errors import DataError
from neon8.files import MAX_TEXT_BYTES, read_file, reading


def class_names(path: Path, outputs: Iterable[Sequence[int]]) -> tuple[str, ...]:
    """The names.  outputs: shapes, one of which has as many values along an axis.

    DataError: none has, or the file cannot be read.
    """
    try:
        with reading(path, DataError):
            said = read_file(path, most=MAX_TEXT_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not UTF-8") from error
    names, shapes = tuple(line.strip() for line in said.splitlines()), list(outputs)
    if not any(len(names) in shape for shape in shapes):
        what = f"has {len(names)} lines, one for each class, and the outputs are"
        listed = ", ".join(map(text.shape, shapes))
        raise DataError(f"{path}: {what} {listed}; give it a line for each class")
    return names
