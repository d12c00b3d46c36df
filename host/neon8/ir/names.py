# SPDX-License-Identifier: Apache-2.0
"""Names that are not in use yet."""

from collections.abc import Container


def unused(name: str, taken: Container[str]) -> str:
    """`name`, lengthened until it is none of those that are taken."""
    while name in taken:
        name += "_"
    return name


def claimed(name: str, taken: set[str]) -> str:
    """As unused(); from then on it is taken."""
    name = unused(name, taken)
    taken.add(name)
    return name
