# SPDX-License-Identifier: Apache-2.0
"""Options again as they were given, for commands that are shown."""

from os import PathLike

from neon8.settings.stages import Settings

PREPROCESS = "PREPROCESS.toml"
"""In a command: the file of what Python was given as an object."""


def shapes_again(settings: Settings) -> list[str]:
    """The words of --shape."""
    words = []
    for name, dims in (settings.network.shapes or {}).items():
        words += ["--shape", f"{name}={','.join(map(str, dims))}"]
    return words


def preprocess_again(settings: Settings) -> list[str]:
    """The words of --preprocess."""
    given = settings.data.preprocess
    if given is None:
        return []
    known = isinstance(given, str | PathLike)
    return ["--preprocess", str(given) if known else PREPROCESS]
