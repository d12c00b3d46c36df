# SPDX-License-Identifier: Apache-2.0
"""Which of several named arrays are the network's inputs, and which are the classes.

An array with the name of an input is that input. For a network with one input it may
also have one of the names below, or, in a file, be the only array that is no label.
"""

import re
from collections.abc import Iterable, Mapping

from neon8.data.inputs import Input
from neon8.errors import DataError

INPUTS = "x data image images img imgs input inputs features samples"
LABELS = "y label labels target targets class classes"
PARTS = "train training test testing val valid validation calib calibration"
"""What may follow such a name, or stand before it: x_train, test_images."""


def _pattern(words: str) -> re.Pattern[str]:
    name, part = ("|".join(each.split()) for each in (words, PARTS))
    pattern = f"(?:({part})_)?(?:{name})|(?:{name})_?({part})"
    return re.compile(pattern, re.IGNORECASE)


_INPUT, _LABEL = _pattern(INPUTS), _pattern(LABELS)


def choose(
    where: str,
    have: Mapping[str, object],
    inputs: Mapping[str, Input],
    *,
    array: str | None = None,
    any_name: bool,
    remedy: str,
) -> tuple[dict[str, str], str | None]:
    """The array of each input, and that of the classes if there is one, by name.

    have: names of the arrays.  array: the one that the user asks for as the samples.
    any_name: an only array may have any.  remedy: how to choose.  DataError: an input
    has none, or more than one is possible.
    """
    if array is not None:
        if len(inputs) != 1:
            text = f"an array is chosen for one input; the network has {_list(inputs)}"
            raise DataError(f"{where}: {text}")
        if array not in have:
            text = f"holds no array {array!r}, but {_list(have)}"
            raise DataError(f"{where}: {text}")
        columns = dict.fromkeys(inputs, array)
    elif set(inputs) <= set(have):
        columns = {name: name for name in inputs}
    elif len(inputs) != 1:
        text = f"holds {_list(have)}; the network takes {_list(inputs)}, one array for"
        raise DataError(f"{where}: {text} each under its name")
    else:
        (name,) = inputs
        found = [each for each in have if _INPUT.fullmatch(each)]
        if not found and any_name:
            found = [each for each in have if not _LABEL.fullmatch(each)]
        if len(found) != 1:
            text = f"holds {_list(have)}; which of them is the input {name!r}?"
            raise DataError(f"{where}: {text} {remedy}")
        columns = {name: found[0]}
    return columns, _classes(where, have, columns, remedy)


def _classes(
    where: str, have: Mapping[str, object], columns: Mapping[str, str], remedy: str
) -> str | None:
    """The name of the array of labels that belongs to those of the inputs."""
    taken = set(columns.values())
    found = {
        each: _part(match)
        for each in have
        if each not in taken and (match := _LABEL.fullmatch(each))
    }
    parts = {_part(match) for each in taken if (match := _INPUT.fullmatch(each))}
    if len(parts) == 1:
        found = {each: part for each, part in found.items() if part in parts}
    if len(found) > 1:
        text = f"holds {_list(have)}; which of {_list(found)} are the classes?"
        raise DataError(f"{where}: {text} {remedy}")
    return next(iter(found), None)


def _part(match: re.Match[str]) -> str:
    return (match[1] or match[2] or "").lower()


def _list(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "no arrays"
