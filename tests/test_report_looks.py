"""How the report looks, and to whom it speaks: both themes, a phone, paper, no scripts, readers who do not see it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe

import hubbub as hb
import pages
from browser import PHONE, WIDE, Visit, visiting
from browsing import MEASURE
from hubbub.core.text import percent
from hubbub.reporting.html_page import render_page
from hubbub.reporting.page_values import Page
from labels import HOSTILE

if TYPE_CHECKING:
    from playwright.sync_api import Browser

Written = Callable[[str], Path]

# The functions of tests/browsing.py that look for texts on top of each other and for texts that are hard to read.
LOOK = MEASURE[MEASURE.index("const shorten") : MEASURE.index("// All of this is done")] + "const seen = lines();"
MORE = (
    ("thirty", "phone"), ("ages", "dark"), ("ages", "phone"), ("city", "light"), ("city", "dark"), ("city", "phone"),
    ("city", "tablet"), ("city", "enlarged"), ("thirty", "enlarged"), ("ages", "enlarged"),
    ("thirty", "dark parts"), ("ages", "dark parts"), ("city", "dark parts"), ("thirty", "parts on a phone"),
)  # fmt: skip
VIEWS = {
    "light": (WIDE, False), "dark": (WIDE, True), "phone": (PHONE, False), "dark phone": (PHONE, True),
    "tablet": (768, False), "enlarged": (320, False), "dark parts": (WIDE, True), "parts on a phone": (PHONE, False),
}  # fmt: skip


def looked_at(visit: Visit) -> dict[str, list[object]]:
    """Return texts on top of each other, and texts without enough contrast, outside of the charts' own drawings."""
    script = (
        f"() => {{ {LOOK} const own = seen.filter((one) => !one.element.closest('.chart'));"
        " return {overlaps: overlaps(own), faint: faint(own.filter((one) => !one.element.closest(':disabled')))}; }"
    )
    found: dict[str, list[object]] = visit.tab.evaluate(script)
    return found


def overlapping(visit: Visit, of: str) -> list[str]:
    """Return texts of a chart that lie on top of each other."""
    script = """of => { const all = [...document.querySelectorAll(`${of} text`)].filter(one => one.textContent.trim())
        .map(one => [one.textContent, one.getBoundingClientRect()]).filter(([, box]) => box.width > 0);
        const found = []; all.forEach(([one, a], place) => all.slice(place + 1).forEach(([other, b]) => {
          const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
          const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
          if (across > 2 && down > 3) found.push(`${one} / ${other}`); })); return found; }"""
    found: list[str] = visit.tab.evaluate(script, of)
    return found


@pytest.mark.parametrize(
    ("name", "view"),
    [
        pytest.param("thirty", "light", marks=pytest.mark.slow),
        ("city", "parts on a phone"),
        pytest.param("city", "dark phone", marks=pytest.mark.slow),
        *(pytest.param(name, view, marks=pytest.mark.slow) for name, view in MORE),
    ],
)
def test_everything_can_be_read(chromium: Browser, written: Written, name: str, view: str) -> None:
    """Nothing is wider than the window, on top of something else, or faint; and axe-core finds nothing serious."""
    width, dark = VIEWS[view]
    with visiting(chromium, written(name), width=width, dark=dark) as visit:
        if "parts" in view:
            visit.tab.locator("#views label").last.click()
        visit.one("#compared").scroll_into_view_if_needed()
        visit.tab.wait_for_selector("#compared .main-svg", state="attached")
        visit.tab.locator(".card summary").first.click()
        visit.settled()
        assert visit.widths()[0] <= visit.widths()[1] == width
        assert looked_at(visit) == {"overlaps": [], "faint": []}
        for chart in ("#chart", "#compared", "#beside"):
            assert overlapping(visit, chart) == []
        assert troubles(visit) == []


def drawn(visit: Visit) -> list[object]:
    """Return where charts, their planes and all their texts are, each from the corner of its chart."""
    visit.one("#compared").scroll_into_view_if_needed()
    visit.tab.wait_for_selector("#compared .main-svg", state="attached")
    visit.settled()
    script = """[...document.querySelectorAll('.chart')].map((chart) => { const from = chart.getBoundingClientRect();
        return [chart, ...chart.querySelectorAll('.main-svg, .nsewdrag, text')].map((one) => {
            const box = one.getBoundingClientRect(), text = one.tagName === 'text' ? one.textContent : '';
            const numbers = [box.x - from.x, box.y - from.y, box.width, box.height].map(Math.round);
            return String([text, ...numbers]); }).toSorted(); })"""
    found: list[object] = visit.tab.evaluate(script)
    return found


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["city", "thirty", "ages"])
def test_a_window_that_was_made_smaller_or_larger(chromium: Browser, written: Written, name: str) -> None:
    """Everything is drawn as if the page had been opened in a window of that size, a turned phone's too."""
    fresh = {}
    for width in (PHONE, 844):
        with visiting(chromium, written(name), width=width) as visit:
            fresh[width] = drawn(visit)
    with visiting(chromium, written(name), width=WIDE) as visit:
        first = drawn(visit)
        for width in (844, PHONE, 844, WIDE):
            visit.tab.set_viewport_size({"width": width, "height": 900})
            visit.settled()
            assert drawn(visit) == fresh.get(width, first), width
            assert visit.widths()[0] <= visit.widths()[1] == width


def troubles(visit: Visit) -> list[str]:
    """Return what axe-core finds serious or critical."""
    found = Axe().run(visit.tab).response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['target']}" for one in found if one["impact"] in ("serious", "critical")]


@pytest.mark.slow  # every tone in every theme
def test_tones_themes_and_checks_that_see_faults(chromium: Browser, written: Written) -> None:
    """On one page, as opening it takes longer than any of the three; the last spoils it."""
    with visiting(chromium, written("two")) as visit:
        check_tones(visit)
        check_themes(visit)
        check_faults_are_seen(visit)


def check_tones(visit: Visit) -> None:
    """A tone is a word and a mark, not a colour alone; reasons unfold, and are all open on paper."""
    cards = visit.each(".card .tone", "[one.textContent.trim(), one.querySelector('use').getAttribute('href')]")
    reason = visit.tab.locator(".card .said").first
    assert not reason.is_visible()
    visit.tab.locator(".card summary").first.focus()
    visit.tab.keyboard.press("Enter")
    assert reason.is_visible()
    visit.tab.emulate_media(media="print")
    visit.settled()
    assert visit.tab.locator(".card .said:visible").count() == 4
    visit.tab.emulate_media(media="screen")
    visit.settled()
    assert visit.tab.locator(".card .said:visible").count() == 1
    assert len({word for word, _ in cards}) == len({mark for _, mark in cards}) == 4


def check_themes(visit: Visit) -> None:
    """The theme follows the system, and then the button."""

    def grounds(visit: Visit) -> tuple[str, str]:
        page = visit.tab.evaluate("getComputedStyle(document.body).backgroundColor")
        chart = visit.tab.evaluate("document.querySelector('#chart')._fullLayout.paper_bgcolor")
        return page, chart

    light, dark = ("rgb(255, 255, 255)", "#ffffff"), ("rgb(18, 22, 27)", "#12161b")
    assert grounds(visit) == light
    visit.tab.emulate_media(color_scheme="dark")
    visit.settled()
    assert grounds(visit) == dark
    assert visit.one("#theme").get_attribute("aria-pressed") == "true"
    visit.tab.locator("#theme").click()
    visit.settled()
    assert grounds(visit) == light
    visit.tab.locator("#theme").click()
    visit.settled()
    assert grounds(visit) == dark
    visit.tab.emulate_media(media="print")  # whatever the screen shows, paper is white
    visit.settled()
    assert grounds(visit) == light
    visit.tab.emulate_media(media="screen")
    visit.tab.locator("#theme").click()
    visit.settled()
    assert grounds(visit) == light


def check_faults_are_seen(visit: Visit) -> None:
    """Faint text, text on top of text, a picture without words, a field without a name, a page that is too wide."""
    visit.tab.evaluate(
        """() => { const put = (tag, style, text) => {
          const made = document.createElement(tag); made.style.cssText = style; made.textContent = text;
          document.querySelector('main').prepend(made); };
        put('p', 'color: #cccccc', 'faint'); put('p', 'margin: 0 0 -1.5em', 'above');
        put('p', 'width: 3000px', 'wide'); put('input', '', '');
        document.getElementById('chart').removeAttribute('aria-label'); }"""
    )
    assert visit.widths()[0] > visit.widths()[1]
    found = looked_at(visit)
    assert found["faint"]
    assert found["overlaps"]
    assert {one.partition(":")[0] for one in troubles(visit)} >= {"label", "role-img-alt", "color-contrast"}


def test_long_and_many_names_on_a_phone(chromium: Browser, tmp_path: Path) -> None:
    labels = (*HOSTILE, "w" * 400, "a long name of several words " * 9)
    page = pages.page_of(hb.Categories(labels), np.ones(len(labels)), epsilon=6.0)
    path = tmp_path / "page.html"
    path.write_text(render_page(replace(page, title="t" * 300, summary="s" * 900)), encoding="utf-8")
    with visiting(chromium, path, width=PHONE, touch=True) as visit:
        assert visit.widths() == (PHONE, PHONE)


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["thirty", "city"])
def test_a_tap_selects_once(chromium: Browser, written: Written, name: str) -> None:
    """A touch is followed by a click of the browser's own; and on a phone dragging scrolls, unless asked otherwise."""
    with visiting(chromium, written(name), width=PHONE, touch=True) as visit:
        visit.tab.touchscreen.tap(*visit.at(0.6, 0.45))
        visit.says("#picked", "this 1 value")
        visit.tab.wait_for_timeout(500)
        assert "this 1 value" in visit.text("#picked")
        assert visit.one("#modes :checked").get_attribute("value") == "false"
        assert visit.each("#chart .nsewdrag", "getComputedStyle(one).touchAction") == ["auto"]


@pytest.mark.parametrize("name", ["city", pytest.param("thirty", marks=pytest.mark.slow)])
def test_on_paper_and_to_a_screen_reader(chromium: Browser, written: Written, name: str) -> None:
    with visiting(chromium, written(name), dark=True) as visit:
        check_screen_reader(visit, getattr(pages, name)())
        check_paper(visit)


def check_screen_reader(visit: Visit, page: Page) -> None:
    levels = visit.each("h1, h2, h3", "Number(one.tagName[1])")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    for alone in ("main", "header", "footer", "h1"):
        assert visit.tab.locator(alone).count() == 1
    said = visit.one("#chart").get_attribute("aria-label") or ""
    top = int(np.argmax(page.estimate))
    chart = "Heat map" if isinstance(page.domain, hb.Grid) else "Bar chart"
    assert said.startswith(f"{chart} of the estimated shares of {len(page.domain)} values")
    assert page.domain.title(top) in said
    assert visit.one("#picked").get_attribute("aria-live") == "polite"
    visit.tab.keyboard.press("Tab")
    assert visit.each(".skip", "one === document.activeElement && one.getBoundingClientRect().top >= 0") == [True]
    visit.tab.keyboard.press("Enter")
    assert visit.tab.evaluate("document.activeElement.id") == "estimate"


def check_paper(visit: Visit) -> None:
    sheets = visit.tab.pdf(format="A4")
    assert sheets.startswith(b"%PDF")
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", sheets)) <= 8
    visit.tab.emulate_media(media="print")
    visit.settled()
    for gone in ("#theme", "#search", "#walk", "#clear", "#csv", "#modes", "#rows"):
        assert not visit.one(gone).is_visible(), gone
    assert visit.tab.locator(".card .said:visible").count() == 4
    for kept in ("h1", ".card", "#chart .main-svg", ".largest", ".facts"):
        assert visit.one(kept).is_visible(), kept
    assert visit.tab.locator(".largest tbody tr").count() == 20
    box = visit.one("#chart .main-svg").bounding_box()
    assert box is not None
    assert box["width"] <= 700


def test_without_scripts(chromium: Browser, written: Written) -> None:
    page = pages.city()
    with visiting(chromium, written("city"), scripts=False) as visit:
        assert visit.one("noscript p").is_visible()
        assert visit.text("h1") == page.title
        assert visit.tab.locator(".card .said:visible").count() == 4
        assert visit.tab.locator(".largest tbody tr").count() == 20
        assert visit.tab.locator(".parts tbody tr:visible").count() == 5
        for gone in ("#chart", "#search", "#theme", "#csv", "#picked"):
            assert not visit.one(gone).is_visible(), gone


@pytest.mark.slow
def test_no_noisy_shares_no_chart_of_them(chromium: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    unknown = np.full(30, np.nan)
    page = replace(pages.thirty(), noisy=None, noisy_note="Hashed answers are no values.", low=unknown, high=unknown)
    path.write_text(render_page(page), encoding="utf-8")
    with visiting(chromium, path) as visit:
        assert not visit.one("#compared").is_visible()
        assert visit.tab.get_by_text("Hashed answers are no values.").is_visible()
        assert visit.tab.locator("#rows .noisy").count() == 0
        assert visit.text("#rows .low") == "–"
        assert "without intervals for single values" in visit.text("#estimate .hint")
        visit.tab.locator("#rows input").first.check()  # without an interval of its own: that of the set
        assert len(visit.numbers("#picked")) == 3


@pytest.mark.slow
def test_an_estimate_outside_of_its_interval_is_flagged(chromium: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    page = pages.two()
    path.write_text(render_page(replace(page, low=page.estimate + 0.01, high=page.estimate + 0.02)), encoding="utf-8")
    with visiting(chromium, path) as visit:
        visit.tab.locator("#rows input").first.check()
        share, low, high = visit.numbers("#picked")
        assert share == low < high  # what is shown holds the estimate...
        assert "extended to the estimate" in visit.text("#picked")
        first = int(np.argmax(page.estimate))
        own = f"{percent(float(page.estimate[first]) + 0.01)} to {percent(float(page.estimate[first]) + 0.02)}"
        assert f"The confidence interval itself is {own}." in visit.text("#because")  # ...and both ends stay readable
        assert "(5 in 100 do)" in visit.text("#because")
