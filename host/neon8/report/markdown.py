# SPDX-License-Identifier: Apache-2.0
"""A report as Markdown, for a review or the summary of a CI job.

Names come from files that anyone may have made: they stand in code spans, where they
can be neither markup nor a mention.
"""

import re
from collections.abc import Sequence
from functools import partial

from neon8.report.facts import Report, Score
from neon8.report.template import environment, own
from neon8.text import printable

MOST = 10
"""Rows of what there may be hundreds of."""


def as_markdown(report: Report) -> str:
    """The whole text."""
    made = environment(escaped=False)
    made.filters |= {"code": code, "scores": partial(_scores, report)}
    commands = list(dict.fromkeys(each.command for each in report.figures))
    page = made.from_string(own("page.md"))
    return page.render(report=report, commands=commands, most=MOST) + "\n"


def code(name: str) -> str:
    """A code span that holds any name, in a table, too."""
    shown = printable(name).replace("|", "\\|")
    longest = max(map(len, re.findall("`+", shown)), default=0)
    marks = "`" * (longest + 1)
    space = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{marks}{space}{shown}{space}{marks}" if shown else ""


def _scores(report: Report, scores: Sequence[Score]) -> str:
    return ", ".join(f"{report.class_of(s.index)}: {s.score:.4g}" for s in scores)
