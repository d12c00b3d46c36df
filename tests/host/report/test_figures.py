# SPDX-License-Identifier: Apache-2.0
"""Conditions on figures: what --fail-if takes."""

import pytest

from neon8.errors import DataError, SettingsError
from neon8.report.figures import MEANINGS, Figure, condition, describe
from refusals import refused


def figure(name, value):
    return Figure(name=name, value=value, unit="%", meaning="", command="")


@pytest.mark.parametrize(
    ("text", "value", "holds"),
    [
        ("loss > 0.5", 0.6, True),
        ("loss > 0.5", 0.5, False),
        ("loss>=.5", 0.5, True),
        (" loss < -1e-1 ", -0.2, True),
        ("loss <= 2", 3, False),
        ("loss == 2", 2, True),
        ("loss != 2", 2, False),
        ("loss > 1", float("inf"), True),
    ],
)
def test_a_condition_holds_or_not(text, value, holds):
    assert condition(text).holds([figure("size", 0), figure("loss", value)]) is holds


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not of the form NAME"),
        ("loss", "is not of the form NAME"),
        ("loss => 1", "is not of the form NAME"),
        ("loss > 1 or 1", "is not of the form NAME"),
        ("lss > 1", "'lss' is unknown; did you mean 'loss'?"),
        ("__import__('os') > 1", "is not of the form NAME"),
        ("loss > x", "'x' is no number"),
        ("loss > nan", "'nan' is no number"),
    ],
)
def test_what_is_no_condition_is_refused(text, said):
    with refused(SettingsError, "", said):
        condition(text)


def test_a_figure_that_is_not_known_fails():
    with refused(DataError, "--fail-if 'top1 < 70'", "there are size"):
        condition("top1 < 70").holds([figure("size", 1)])


def test_help_lists_all():
    text = describe()
    assert [line.split()[0] for line in text.splitlines() if line[2] != " "] == [
        *MEANINGS
    ]
