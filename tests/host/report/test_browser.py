# SPDX-License-Identifier: Apache-2.0
"""The page in Chromium, which `make browser` installs: every view of it works."""

import os
import shutil
from dataclasses import replace

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

from neon8.report.html import as_html

WIDTHS = (375, 768, 1280)
LAYERS = 500
FIRST_PAINT = 2000
"""Milliseconds."""
OPEN_ALL = "document.querySelectorAll('details').forEach(each => each.open = true)"


@pytest.fixture(scope="module")
def browser():
    """Chromium without a window."""
    path = shutil.which("chromium")
    assert path, "there is no Chromium; run 'make browser'"
    alone = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=path, args=alone)
        yield started
        started.close()


@pytest.fixture(scope="module")
def url(whole, tmp_path_factory):
    """The page as a file."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(as_html(whole))
    return path.as_uri()


@pytest.fixture(scope="module")
def tab(browser):
    """A page that many tests load, one after another, and what it said."""
    said = []
    page = browser.new_page()
    page.set_default_timeout(5000)
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: said.append(request.url))
    return page, said


@pytest.fixture
def opened(tab, url):
    """Loads the page, and sees to it that it loads nothing else and reports nothing."""
    page, said = tab
    said.clear()

    def open_page(*, at="", width=WIDTHS[-1], scheme="light"):
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(media="screen", color_scheme=scheme)
        page.goto("about:blank")
        page.goto(url + at)
        return page

    yield open_page
    own = ("about:blank", "data:", url)
    assert [each for each in said if not each.startswith(own)] == []


def test_every_box_leads_to_its_layer(opened, whole):
    page = opened()
    links = page.locator("a.node")
    assert links.count() == len(whole.layers)
    for at, layer in enumerate(whole.layers):
        links.nth(at).click()
        details = page.locator(f"#layer-{at}[open]")
        details.wait_for()
        assert details.locator("summary").evaluate(
            "each => each === document.activeElement"
        )
        assert details.locator(".name").inner_text() == layer.name
        assert details.get_by_text(layer.outputs[0]).first.is_visible()


def test_what_a_layer_shows(opened, whole):
    page = opened(at="#layer-0")
    layer = page.locator("#layer-0")
    text = layer.inner_text()
    for word in ("kernel", whole.layers[0].steps[0].kernel, "threshold", "kl", "int16"):
        assert word in text
    charts = layer.locator("svg")
    assert charts.count() >= 2
    assert all(each.bounding_box()["height"] > 40 for each in charts.all())


def test_all_remedies_are_there(opened, whole):
    page = opened()
    page.get_by_text("All that were tried").click()
    table = page.locator("#remedies table").last
    assert table.locator("tbody tr").count() == len(whole.diagnosis.remedies)
    assert table.is_visible()


def test_every_section_is_reached(opened):
    page = opened()
    links = page.locator("nav a")
    assert links.count() >= 7
    for link in links.all():
        link.click()
        section = page.locator(link.get_attribute("href"))
        section.locator("h2").wait_for(state="visible")
        assert section.bounding_box()["y"] < 800


def test_colours_change(opened):
    page = opened()
    rect = page.locator("a.node rect").first
    fill = "each => getComputedStyle(each).fill"
    before = rect.evaluate(fill)
    page.get_by_label("precision").check()
    assert rect.evaluate(fill) != before
    assert page.locator(".legend").get_by_text("int16").is_visible()
    assert not page.locator(".legend").get_by_text("40 dB").first.is_visible()
    shown = page.locator("a.node text:visible")
    assert "int8" in shown.nth(1).text_content()


def test_time_is_a_colour_and_an_order(opened, whole):
    page = opened()
    page.get_by_role("radio", name="time on rpi3b+").check()
    shown = page.locator("a.node").first.locator("text:visible").nth(1)
    _, first, _ = whole.predictions[0].of(whole.layers[0].name)
    assert shown.text_content() == f"Conv {first:.3g} ms"
    assert page.locator(".legend").get_by_text("of the time").is_visible()
    page.get_by_label("Order").select_option("most time on rpi3b+")
    names = page.locator("#list > details .name").all_text_contents()
    times = {e.name: whole.predictions[0].of(e.name) for e in whole.layers}
    known = [name for name in names if times[name] is not None]
    assert known == sorted(known, key=lambda name: -times[name][1])


def test_the_graph_is_enlarged_and_fitted(opened):
    page = opened(width=375)
    graph = page.locator("#graph")
    width = "each => each.clientWidth"
    before = graph.evaluate(width)
    page.get_by_role("button", name="Larger").click()
    assert graph.evaluate(width) == pytest.approx(1.25 * before, abs=2)
    page.get_by_role("button", name="Fit").click()
    assert graph.evaluate(width) <= 375


def test_layers_are_found_and_ordered(opened, whole):
    page = opened()
    page.get_by_label("Find").fill("GEMM")
    shown = page.locator("#list > details:visible")
    assert shown.locator(".name").all_text_contents() == ["fc"]
    page.locator("a.node").first.click()  # what was hidden is found all the same
    page.locator("#layer-0").wait_for(state="visible")
    page.get_by_label("Find").fill("")
    page.get_by_label("Order").select_option("what costs most alone")
    names = shown.locator(".name").all_text_contents()
    costs = {
        each.name: each.loss.alone_db
        for each in whole.layers
        if each.loss is not None and each.loss.alone_db is not None
    }
    assert names[: len(costs)] == sorted(costs, key=costs.__getitem__)
    page.get_by_label("Order").select_option("as they run")
    names = shown.locator(".name").all_text_contents()
    assert names == [each.name for each in whole.layers]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_fault_in_what_the_system_and_the_switch_show(opened, scheme):
    page = opened(scheme=scheme)
    page.evaluate(OPEN_ALL)
    paper = "getComputedStyle(document.body).backgroundColor"
    first = page.evaluate(paper)
    assert (first == "rgb(255, 255, 255)") is (scheme == "light")
    page.get_by_role("button", name="Dark or light").click()
    second = page.evaluate(paper)
    found = Axe().run(page).response["violations"]
    assert [(v["id"], v["nodes"][0]["html"]) for v in found] == []
    page.get_by_role("button", name="Dark or light").click()
    assert page.evaluate(paper) == first != second


def test_by_keyboard_alone(opened):
    page = opened()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the report"
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('a.node')"):
            break
    page.keyboard.press("Enter")
    page.locator("#layer-0[open]").wait_for()
    page.keyboard.press("Enter")  # the summary has the focus
    page.locator("#layer-0:not([open])").wait_for()


def test_nothing_is_wider_than_the_screen(opened):
    page = opened()
    page.evaluate(OPEN_ALL)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_pictures_are_shown(opened, whole):
    page = opened()
    for picture in page.locator("#samples img").all():
        assert picture.evaluate("each => each.complete && each.naturalWidth > 0")
    assert page.locator("#samples figure").count() == len(whole.samples)


def test_without_scripts(browser, url):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(url)
    assert page.get_by_role("button").count() == 0
    summary = page.locator("#layer-0 summary")
    summary.click()
    page.locator("#layer-0").get_by_text("kernel", exact=True).first.wait_for()
    context.close()


def test_it_prints(opened):
    page = opened(at="#layer-0", scheme="dark")
    page.emulate_media(media="print")
    ink = "getComputedStyle(document.body).color"
    for _ in range(3):  # whatever the system and the switch say
        assert page.evaluate(ink) == "rgb(27, 31, 36)"
        page.evaluate("document.getElementById('theme').click()")
    assert not page.locator("nav").is_visible()
    assert page.locator("#layer-0 dl").first.is_visible()
    assert page.pdf().startswith(b"%PDF")


def test_a_large_network_is_there_at_once(browser, whole, tmp_path):
    layers = []
    for at in range(LAYERS):
        own = whole.layers[at % len(whole.layers)]
        inputs = tuple(
            f"t{n}" for n in (at - 1, at - 5 if at % 7 == 0 else -1) if n >= 0
        )
        layers.append(replace(own, name=f"n{at}", outputs=(f"t{at}",), inputs=inputs))
    path = tmp_path / "large.html"
    path.write_text(as_html(replace(whole, layers=tuple(layers))))
    page = browser.new_page()
    page.goto(path.as_uri())
    paints = page.evaluate(
        """new Promise(done => new PerformanceObserver(list => done(
            list.getEntries().map(each => each.startTime)
        )).observe({type: "paint", buffered: true}))"""
    )
    assert max(paints) < FIRST_PAINT
    page.locator("a.node").nth(LAYERS - 1).click()
    page.locator(f"#layer-{LAYERS - 1}[open]").wait_for()
    page.close()
