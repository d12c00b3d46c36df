# SPDX-License-Identifier: Apache-2.0
"""What commands write into pages."""

import pytest

from bench import pages
from bench.pages import END, MarkError

BEGIN = "<!-- from here on written by `make it` -->"
OTHER = "<!-- from here on written by `make that` -->"


def test_written_between_the_marks(tmp_path):
    file = tmp_path / "page.md"
    before = f"# Title\n\n{OTHER}\n\nthat\n\n{END}\n\nbetween\n"
    file.write_text(f"{before}{BEGIN}\n\nold\n\n{END}\n\nafter\n")
    for _ in range(2):
        pages.write(file, "make it", "new →")
        text = file.read_text(encoding="utf-8")
        assert text == f"{before}{BEGIN}\n\nnew →\n\n{END}\n\nafter\n"
    assert pages.read(file, "make it") == "\n\nnew →\n\n"
    assert pages.read(file, "make that") == "\n\nthat\n\n"


@pytest.mark.parametrize("text", ["", BEGIN, END, f"{END}\n{BEGIN}", OTHER + END])
def test_a_page_without_marks_stays_as_it_is(tmp_path, text):
    file = tmp_path / "page.md"
    file.write_text(text)
    with pytest.raises(MarkError, match=r"page\.md: has no <!-- from here on"):
        pages.write(file, "make it", "new")
    assert file.read_text() == text
