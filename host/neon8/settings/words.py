# SPDX-License-Identifier: Apache-2.0
"""Options again as they were given, for commands that are shown."""

from os import PathLike

from neon8.settings.fields import settings_of
from neon8.settings.stages import STAGES, Settings

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


def options_again(settings: Settings, *stages: str) -> list[str]:
    """The words of whatever is not the default in these stages."""
    words = []
    for stage in stages:
        chosen = getattr(settings, stage)
        for name, each in settings_of(STAGES[stage]).items():
            value = getattr(chosen, name)
            if name == "shapes":
                words += shapes_again(settings)
            elif name == "preprocess":
                words += preprocess_again(settings)
            elif value != each.default:
                plain = isinstance(value, str | int | float | PathLike)
                said = str(value) if plain else str(each.metavar)
                words += [each.option] if value is True else [each.option, said]
    return words
