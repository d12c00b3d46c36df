# SPDX-License-Identifier: Apache-2.0
"""Errors that say in one line what is wrong, and where."""

import contextlib

import pytest


@contextlib.contextmanager
def refused(kind, start, *words):
    """What stands inside raises one line: its start, and words that are in it."""
    with pytest.raises(kind) as caught:
        yield
    text = str(caught.value)
    assert text.startswith(str(start)), text
    assert "\n" not in text
    for word in words:
        assert word in text, text
