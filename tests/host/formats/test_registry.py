# SPDX-License-Identifier: Apache-2.0
"""The table of formats: every other place that lists them reads it."""

from pathlib import Path

import pytest

from neon8.cli.main import main
from neon8.formats import registry
from neon8.formats.format import NetworkWriter
from table_nets import in_every_format

DOCS = Path(__file__).resolve().parents[3] / "docs" / "formats.md"
HEADER = """\
| `--to` | file | activations | zero points | 16 bits | weight scales |
|---|---|---|---|---|---|
"""


@pytest.mark.parametrize("name", registry.NAMES)
def test_a_descriptor_has_the_name_of_its_row(name):
    form = registry.find(name)
    assert form.name == name
    assert not (form.symmetric and form.ranges)
    # A whole network has a scale for every layer.
    assert form.weights or not isinstance(form.write, NetworkWriter)


def test_help_lists_every_format(capsys):
    with pytest.raises(SystemExit):
        main(["convert", "--help"])
    assert registry.help_lines() in capsys.readouterr().out


def test_the_documentation_lists_every_format():
    """A new format: put the line that this test misses into docs/formats.md."""
    table = HEADER.splitlines()
    for name, row in registry.ROWS.items():
        form = registry.find(name)
        cells = (
            f"`{name}`",
            row.summary,
            "ranges" if form.ranges else "scales",
            "no" if form.symmetric else "yes",
            "not said" if form.ranges else "yes" if 16 in form.bits else "no",
            "yes" if form.weights else "no",
        )
        table.append(f"| {' | '.join(cells)} |")
    lines = DOCS.read_text(encoding="utf-8").splitlines()
    assert [line for line in table if line not in lines] == []
    assert "\n".join(table) in "\n".join(lines)


def test_one_format_at_most_recognises_a_file(tmp_path):
    """So the order of the rows matters for damaged and odd files only."""
    in_every_format(tmp_path, symmetric=False)
    for name in registry.NAMES:
        head = (tmp_path / name).read_bytes()[: registry.HEAD].decode(errors="replace")
        found = [n for n in registry.NAMES if registry.find(n).recognise(head)]
        assert found == [name]
