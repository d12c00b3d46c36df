# SPDX-License-Identifier: Apache-2.0
"""The three forms of a report, and the command that writes them."""

import json
import re
from dataclasses import fields, is_dataclass, replace
from html import escape
from itertools import pairwise

import numpy as np
import pytest

import neon8
from command_lines import process, refuse, succeed
from html_pages import Page
from neon8.cli.main import main
from neon8.errors import DataError
from neon8.report.figures import Figure
from neon8.report.html import as_html
from neon8.report.layout import HEIGHT, WIDTH, drawing
from neon8.report.markdown import as_markdown, code
from onnx_nets import chain, save

HOSTILE = "</script><img src=x onerror=alert(1)>|`@all`\n\u202e\x00{{7*7}}\"'&"


def test_the_page_is_sound_and_needs_nothing_else(whole):
    text = as_html(whole)
    page = Page(text)
    assert text.startswith("<!doctype html>")
    assert len(set(page.ids)) == len(page.ids)
    assert set(page.links) <= set(page.ids)
    for _, values in page.seen:
        for name in ("src", "href", "srcset", "data", "action"):
            assert values.get(name, "#").startswith(("#", "data:image/jpeg;base64,"))
        assert not any(name.startswith("on") for name in values)
    assert "http" not in re.sub(r"http-equiv", "", text).replace("www.w3.org", "")
    assert "@import" not in text
    assert page.count("script") == 1
    assert page.count("img") == len(whole.samples)
    assert len(text) < 100_000
    layers = [v["id"] for t, v in page.seen if t == "details" and "id" in v]
    assert len(layers) == len(whole.layers)


def test_times_are_there_only_if_they_are_asked_for(whole):
    without = replace(whole, predictions=())
    for form in (as_html, as_markdown):
        assert "cortex-a53" in form(whole)
        assert "cortex-a53" not in form(without)
        assert "ms a run" not in form(without)
    assert (
        Page(as_html(without)).count("input") == Page(as_html(whole)).count("input") - 1
    )


OURS = {
    *("bound", "cause", "core", "dtype", "kind", "meaning", "operation", "precision"),
    *("sharing", "title", "unit", "version", "where"),
}
"""Fields of facts whose texts no file gives."""


def rename(value, name):
    """The facts with a hostile name before all that a file may say."""
    if isinstance(value, str):
        return name + value
    if isinstance(value, tuple | list):
        return type(value)(rename(each, name) for each in value)
    if isinstance(value, dict):
        return {rename(key, name): rename(each, name) for key, each in value.items()}
    if not is_dataclass(value):
        return value
    ours = OURS | ({"name"} if isinstance(value, Figure) else set())
    own = {f.name: getattr(value, f.name) for f in fields(value) if f.name not in ours}
    return replace(value, **{key: rename(each, name) for key, each in own.items()})


def test_hostile_names_stay_text_in_html(whole):
    before, after = Page(as_html(whole)), Page(as_html(rename(whole, HOSTILE)))
    assert after.count("script") == before.count("script") == 1
    assert after.count("img") == before.count("img")
    assert not any(n.startswith("on") for _, values in after.seen for n in values)
    text = as_html(rename(whole, HOSTILE))
    assert "\x00" not in text
    assert "\u202e" not in text
    assert "{{7*7}}" in text


def test_hostile_names_stay_text_in_markdown(whole):
    text = as_markdown(rename(whole, HOSTILE))
    plain = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    for word in ("<img", "@all", "script", "7*7"):
        assert word in text
        assert word not in plain
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", text)


def test_tables_of_markdown_have_whole_rows(whole):
    for report in (whole, rename(whole, "a|b\\|c")):
        width = 0
        for line in as_markdown(report).splitlines():
            if not line.startswith("|"):
                width = 0
                continue
            cells = len(re.findall(r"(?<!\\)\|", line))
            width = width or cells
            assert cells == width, line


@pytest.mark.parametrize("name", ["a", "a`b", "`", "``a`", "a|b", " a "])
def test_a_code_span_holds_any_name(name):
    found = re.fullmatch(r"(`+)(?!`)( ?)(.*?)\2(?<!`)\1", code(name))
    assert found is not None
    assert found[3].replace("\\|", "|") == name.strip() or found[3] == name


def words(files, output, *more):
    made = ("report", files.model, files.table, files.n8, "--data", files.data)
    return (*made, "--top", 0, "-o", output, *more)


@pytest.mark.parametrize(
    ("name", "more", "start"),
    [
        ("r.html", [], "<!doctype html>"),
        ("r.md", [], "# int8 report of `"),
        ("r.json", [], '{\n "format": "neon8 report"'),
        ("r.txt", ["--format", "markdown"], "# int8 report of `"),
    ],
)
def test_the_command_writes_each_form(files, tmp_path, capsys, name, more, start):
    out = succeed(capsys, *words(files, tmp_path / name, *more))
    text = (tmp_path / name).read_text()
    assert text.startswith(start)
    assert out.startswith(f"{tmp_path / name}: {len(text.encode())} bytes; int8 loses")


def test_the_command_prints_json_where_it_is_asked_to(files):
    done = process(*words(files, "-", "--format", "json", "-q"))
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["evaluation"]["n"] == 24


def test_fail_if_writes_and_fails(files, tmp_path, capsys):
    output = tmp_path / "r.md"
    good = ("--fail-if", "size > 1000000", "--fail-if", "loss > 90")
    succeed(capsys, *words(files, output, *good))
    output.unlink()
    bad = ("--fail-if", "size > 1000", "--fail-if", "loss > 90")
    assert main([*map(str, words(files, output, *bad))]) == 3
    assert capsys.readouterr().err == "neon8: missed: size > 1000\n"
    assert output.exists()


def test_what_cannot_be_judged_writes_nothing(files, tiny, tmp_path, capsys):
    output = tmp_path / "r.md"
    line = [*words(files, output, "--fail-if", "top1 < 70")]
    line[5] = tiny.data  # without labels
    assert "there is no figure 'top1'" in refuse(capsys, *line)
    assert not output.exists()
    text = refuse(capsys, *words(files, output, "--fail-if", "lss > 1"))
    assert text.startswith("argument --fail-if: 'lss' is unknown; did you mean 'loss'?")


def test_nodes_do_not_overlap_and_edges_end_at_them():
    pairs = [(0, 1), (1, 2), (0, 2), (2, 3), (2, 4), (3, 5), (4, 5), (0, 5), (6, 7)]
    made = drawing(8, pairs)
    for at, (x, y) in enumerate(made.nodes):
        assert WIDTH / 2 <= x <= made.width - WIDTH / 2
        assert HEIGHT / 2 <= y <= made.height - HEIGHT / 2
        for u, v in made.nodes[:at]:
            assert abs(x - u) >= WIDTH or abs(y - v) >= HEIGHT
    for (a, b), points in zip(pairs, made.edges, strict=True):
        assert made.nodes[a][1] < made.nodes[b][1]
        assert points[0] == pytest.approx(made.nodes[a])
        assert points[-1] == pytest.approx(made.nodes[b])


def test_lines_pass_beside_nodes_and_apart_from_each_other():
    """As in a DenseNet, whose layers all read all before them."""
    count = 30
    pairs = [(a, b) for b in range(count) for a in range(b)]
    made = drawing(count, pairs)
    lanes = {}
    for (first, _), points in zip(pairs, made.edges, strict=True):
        if len(points) > 2:
            (x, _), (same, _) = points[1:3]
            assert x == same == lanes.setdefault(first, x)
            assert all(abs(x - u) > WIDTH / 2 for u, _ in made.nodes)
    places = sorted(lanes.values())
    assert len(places) == count - 2
    assert all(b - a >= 9.99 for a, b in pairwise(places))
    assert made.width < 3 * WIDTH + 10 * count


def test_a_network_without_images_or_classes(tmp_path):
    rng = np.random.default_rng(0)
    weight = rng.normal(0, 0.5, (8, 8, 1, 1)).astype(np.float32)
    step = ("Conv", [weight], {"kernel_shape": [1, 1]})
    path = save(tmp_path, chain([step, ("Relu", [], {}), step], [1, 8, 4, 4]))
    x = rng.normal(0, 1, (30, 8, 4, 4)).astype(np.float32)
    table, n8 = tmp_path / "t.json", tmp_path / "m.n8"
    neon8.save_table(neon8.calibrate_model(path, x), table)
    neon8.compile_model(path, table, output=n8)
    found = neon8.report_model(path, table, n8, x, top=1)
    assert found.figure("loss") is None
    assert found.samples[0].picture is None
    assert found.data == "DATA"
    Page(as_html(found))
    assert "SQNR" in as_markdown(found)


def test_classes_have_their_names(whole, files, tiny, tmp_path):
    assert [whole.class_of(index) for index in (0, 3, 6, None)] == [
        "0 ant",
        "3 <d>",
        "6",
        "",
    ]
    page, text = as_html(whole), as_markdown(whole)
    label = whole.samples[0].label
    assert f"label {escape(whole.class_of(label))}" in page
    assert f"`{whole.class_of(label)}`".replace("|", "\\|") in text
    few = tmp_path / "few.txt"
    few.write_text("ant\nbee\n")
    with pytest.raises(DataError, match=r"has 2 lines.* outputs are 1x6"):
        neon8.report_model(tiny.onnx, tiny.table, tiny.n8, files.data, labels=few)
