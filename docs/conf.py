# SPDX-License-Identifier: Apache-2.0
"""Sphinx: the pages of this folder, and the reference made from the sources."""

import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "host"))
# The help of the commands is what they print.
os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
os.environ["COLUMNS"] = "88"

project = "neon8"
copyright = "the neon8 authors"  # noqa: A001
exclude_patterns = ["recipes"]
html_theme = "furo"
html_title = "neon8"

extensions = [
    "breathe",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinxcontrib.programoutput",
]
myst_heading_anchors = 3
autodoc_default_options = {
    "members": True,
    "imported-members": True,
    "member-order": "bysource",
}
autodoc_typehints = "description"

# Doxygen reads the public header, Breathe makes pages of what it finds.
breathe_default_project = "neon8"
breathe_domain_by_extension = {"h": "c"}
breathe_projects_source = {
    "neon8": (str(ROOT / "runtime/include"), ["neon8.h", "neon8.hpp"])
}
breathe_doxygen_config_options = {
    "MACRO_EXPANSION": "YES",
    "PREDEFINED": "N8_API= __attribute__(x)=",
    "OPTIMIZE_OUTPUT_FOR_C": "YES",
    "WARN_IF_UNDOCUMENTED": "NO",
    "WARN_AS_ERROR": "NO",
}

MARKUP = re.compile(r"([\\*`|_])")


def as_written(*event: object) -> None:
    """Show a docstring line by line: it is plain text, not reStructuredText."""
    lines = event[-1]
    lines[:] = ["| " + MARKUP.sub(r"\\\1", line) for line in lines]


def setup(app: object) -> None:
    """Register with Sphinx."""
    app.connect("autodoc-process-docstring", as_written)
