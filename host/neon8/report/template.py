# SPDX-License-Identifier: Apache-2.0
"""What the templates of this package may use."""

from importlib.resources import files

from jinja2 import Environment, StrictUndefined

from neon8.inspection.diagnosis import summary
from neon8.report import words
from neon8.text import counted, decimals


def environment(*, escaped: bool) -> Environment:
    """Filters and functions for all of them.  escaped: values are, as for HTML."""
    made = Environment(
        autoescape=escaped,  # noqa: S701 - Markdown has code spans instead
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"counted": counted, "db": words.decibels, "decimals": decimals}
    made.globals |= {"summary": summary, "words": words}
    return made


def own(name: str) -> str:
    """A file of this package."""
    return files("neon8.report").joinpath(name).read_text("utf-8")
