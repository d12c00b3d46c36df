# SPDX-License-Identifier: Apache-2.0
"""Reading a TOML file.  The only module that imports a TOML library."""

import sys
from os import PathLike
from typing import Any

from neon8.errors import DataError
from neon8.files import MAX_TEXT_BYTES, read_file, reading

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read_toml(path: str | PathLike[str]) -> dict[str, Any]:
    """Read a TOML file.  DataError: it cannot be read, or is none."""
    with reading(path, DataError):
        data = read_file(path, most=MAX_TEXT_BYTES)
    try:
        found: dict[str, Any] = tomllib.loads(data.decode("utf-8-sig"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DataError(f"{path}: is not TOML: {error}") from error
    except RecursionError as error:
        raise DataError(f"{path}: is nested too deeply for settings") from error
    return found
