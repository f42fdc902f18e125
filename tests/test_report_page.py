"""The report in a real browser: it shows the estimate, and what a reader does with it gives the right numbers."""

from __future__ import annotations

import csv
import io
import re
import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import hubbub as hb
import pages
from browser import Visit, visiting
from hubbub.core.arrays import Floats
from hubbub.core.text import percent
from hubbub.intervals.compact_covariance import CompactCovariance
from hubbub.intervals.set_intervals import SetShares
from hubbub.reporting.html_page import render_page
from hubbub.reporting.page_values import Bounds, Page
from hubbub.reporting.script_data import packed_covariance
from hubbub.resolution import Resolution

if TYPE_CHECKING:
    from playwright.sync_api import Browser

Written = Callable[[str], Path]
Check = Callable[[Visit, Page, Path], None]
KINDS = ("many_integers",)  # a map in a browser is in test_report_map
OTHERS = ("city", "two", "hours", "ages", "thirty", "large")  # drawn as one of the kinds is


def interval(page: Page, chosen: list[int]) -> tuple[float, float]:
    """Return the interval of a set, computed here from what the page was given."""
    inside = np.zeros(len(page.domain), dtype=bool)
    inside[chosen] = True
    sets = page.sets
    share = float(page.estimate[inside].sum())
    if isinstance(sets, SetShares):
        middle = float(np.clip(sets.centre[inside].sum(), 0, 1))
        reach = pages.Z * packed_covariance(sets).covariance.deviation(np.flatnonzero(inside))
        return min(share, max(0.0, middle - reach)), max(share, min(1.0, middle + reach))
    assert isinstance(sets, Bounds)
    low, high = np.nan_to_num(sets.low, nan=0.0), np.nan_to_num(sets.high, nan=1.0)
    return (
        min(share, max(0.0, low[inside].sum(), 1 - high[~inside].sum())),
        max(share, min(1.0, high[inside].sum(), 1 - low[~inside].sum())),
    )


def check_choice(visit: Visit, page: Page, chosen: list[int]) -> None:
    """The readout tells of exactly these values."""
    visit.says("#picked", f"these {len(chosen):,} values")
    said = visit.text("#picked")
    share, low, high = visit.numbers("#picked")
    assert share == pytest.approx(float(page.estimate[chosen].sum()), abs=1e-12)
    rounding = 1e-12 if isinstance(page.sets, SetShares) else 1e-6  # bounds are sent in 32 bits
    assert (low, high) == pytest.approx(interval(page, chosen), abs=rounding)
    assert percent(share) in said
    assert percent(low) in said
    assert "at 95%" in said


def check_keyboard_reaches_everything(visit: Visit) -> None:
    reached = []
    for _ in range(40):
        visit.tab.keyboard.press("Tab")
        reached.append(
            visit.tab.evaluate(
                "[document.activeElement].map(one => one.id || one.name || one.className || one.tagName)[0]"
            )
        )
    for wanted in ("skip", "theme", "mode", "order", "whole", "walk", "invert", "found", "search", "scroll"):
        assert wanted in reached, reached
    visit.tab.locator("#rows button").nth(3).focus()
    visit.tab.keyboard.press("Enter")
    visit.settled()
    assert visit.tab.locator("#rows tr.marked").count() == 1
    visit.tab.locator("#rows input").nth(3).focus()
    visit.tab.keyboard.press("Space")
    assert "this 1 value" in visit.text("#picked")


def check_rows_mark_and_select(visit: Visit, page: Page, folder: Path) -> None:
    top = int(np.argmax(page.estimate))
    visit.tab.locator("#rows tr").first.locator(".low").click()
    visit.settled()
    assert page.domain.steps is not None
    column, row = page.domain.steps[top]
    mark = visit.tab.evaluate(
        "(() => { const last = document.querySelector('#chart').data.at(-1); return [last.x[0], last.y[0]]; })()"
    )
    sides = page.domain.sides  # type: ignore[attr-defined]
    assert mark == pytest.approx([(column + 0.5) * sides[0], (row + 0.5) * sides[1]])
    assert page.domain.title(top) in visit.text("#reading")
    for number in range(3):
        visit.tab.locator("#rows input").nth(number).check()
    check_choice(visit, page, np.argsort(-page.estimate, kind="stable")[:3].tolist())


def check_box_and_download(visit: Visit, page: Page, folder: Path) -> None:
    """A box selects the cells inside; the file of the map is saved as it was given, though it travels compressed."""
    columns, rows = 24, 16
    visit.drag((0.41, 0.24), (0.6, 0.4), (0.79, 0.66))
    inside = [
        place
        for place, cell in enumerate(page.domain.labels.tolist())
        if 0.41 < (cell % columns + 0.5) / columns < 0.79 and 0.24 < 1 - (cell // columns + 0.5) / rows < 0.66
    ]
    assert 50 < len(inside) < 70
    check_choice(visit, page, inside)
    assert "hindsight" in visit.text("#because")
    visit.tab.locator("#invert").click()
    check_choice(visit, page, [place for place in range(len(page.domain)) if place not in inside])
    visit.tab.locator("#clear").click()
    assert "Nothing is selected" in visit.text("#picked")
    name, content = visit.saved("#files button:last-of-type", folder)
    assert (name, content.decode()) == ("map.geojson", page.texts["map.geojson"])


def check_lasso_and_second_box(visit: Visit, page: Page, folder: Path) -> None:
    visit.tab.get_by_label("Lasso").check()
    visit.settled()
    visit.drag((0.5, 0.1), (0.9, 0.1), (0.9, 0.5), (0.5, 0.1))
    inside = [
        place
        for place, cell in enumerate(page.domain.labels.tolist())
        if (lambda x, y: x < 0.9 and y > 0.1 and x - 0.5 > y - 0.1)((cell % 24 + 0.5) / 24, 1 - (cell // 24 + 0.5) / 16)
    ]
    check_choice(visit, page, inside)
    visit.tab.get_by_label("Box").check()
    visit.settled()
    visit.tab.keyboard.down("Shift")
    visit.drag((0.001, 0.001), (0.12, 0.12))
    visit.tab.keyboard.up("Shift")
    corner = [place for place, cell in enumerate(page.domain.labels.tolist()) if cell % 24 < 3 and cell // 24 > 13]
    check_choice(visit, page, sorted({*inside, *corner}))


def check_keyboard_walk(visit: Visit, page: Page, folder: Path) -> None:
    labels = page.domain.labels.tolist()
    visit.tab.locator("#walk").focus()
    for key in ("End", "ArrowDown", "ArrowLeft", "ArrowLeft"):
        visit.tab.keyboard.press(key)
    place = labels.index(labels[-1] - 24 - 2)
    low, high = percent(float(page.shown_low[place])), percent(float(page.shown_high[place]))
    expected = f"{page.domain.title(place)}: {percent(float(page.estimate[place]))} ({low} to {high})"
    assert visit.text("#reading").startswith(expected)
    assert (visit.one("#walk").get_attribute("aria-valuetext") or "").startswith(expected)
    visit.tab.keyboard.press("Space")
    visit.tab.keyboard.press("ArrowLeft")
    visit.tab.keyboard.press("Enter")
    check_choice(visit, page, [place, place - 1])
    assert "selected" in visit.text("#reading")


def check_sorting(visit: Visit, page: Page, folder: Path) -> None:
    assert page.noisy is not None
    columns: list[tuple[str, Floats]] = [("low", page.shown_low), ("noisy", page.noisy), ("share", page.estimate)]
    for column, values in columns:
        head = visit.tab.locator(f"#heads .{column}")
        for direction, expected in (("descending", -np.sort(-values)[:50]), ("ascending", np.sort(values)[:50])):
            head.locator("button").click()
            assert head.get_attribute("aria-sort") == direction
            assert visit.tab.locator("#heads [aria-sort=none]").count() == 4
            script = "all => all.map(one => one.value)"
            found = visit.tab.eval_on_selector_all(f"#rows .{column} data", script)
            assert [float(text) for text in found] == expected.tolist()


def check_pages_of_the_table(visit: Visit, page: Page, folder: Path) -> None:
    assert visit.text("#paged") == "1 to 50 of 65,536"
    visit.tab.locator("#heads .named button").click()
    visit.tab.locator("#next").click()
    assert visit.text("#paged") == "51 to 100 of 65,536"
    assert visit.text("#rows bdi") == page.domain.title(50)
    assert visit.tab.locator("#rows tr").count() == 50
    visit.tab.locator("#previous").click()
    assert visit.tab.locator("#previous").is_disabled()


def check_drag_along_a_line(visit: Visit, page: Page, folder: Path) -> None:
    """Dragging selects; sets have intervals by covariances, or bounds and the reason for them."""
    assert ("however wide" in visit.text("#drawn")) == isinstance(page.domain, hb.Bins)
    visit.drag((0.31, 0.5), (0.5, 0.6), (0.69, 0.5))
    visit.says("#picked", "these")
    first, last = visit.tab.evaluate("document.querySelector('#chart')._fullLayout.xaxis.range")
    edges = [first + part * (last - first) for part in (0.31, 0.69)]
    places = page.domain.places
    assert places is not None
    inside = np.flatnonzero((places > edges[0]) & (places < edges[1])).tolist()
    shares = [
        float(page.estimate[inside[0] + one : inside[-1] + 1 + other].sum())
        for one in (-1, 0, 1)
        for other in (-1, 0, 1)
    ]
    share = visit.numbers("#picked")[0]
    assert min(abs(share - near) for near in shares) < 1e-12  # a pixel may be a value more or less
    if isinstance(page.sets, SetShares):
        check_choice(visit, page, inside)
    if isinstance(page.sets, Bounds):
        assert page.sets.reason in visit.text("#because")


def check_clicks_on_bars(visit: Visit, page: Page, folder: Path) -> None:
    order = np.argsort(-page.estimate, kind="stable").tolist()
    visit.tab.mouse.click(*visit.at(0.4, 2.5 / 30))
    visit.says("#picked", "this 1 value")
    one = order[2]
    assert visit.numbers("#picked") == [
        page.estimate[one],
        page.shown_low[one],
        page.shown_high[one],
    ]  # its own interval
    visit.tab.mouse.click(*visit.at(0.4, 7.5 / 30))
    check_choice(visit, page, [one, order[7]])
    visit.tab.mouse.click(*visit.at(0.4, 2.5 / 30))
    visit.says("#picked", "this 1 value")
    assert visit.numbers("#picked")[0] == page.estimate[order[7]]


def check_search(visit: Visit, page: Page, folder: Path) -> None:
    visit.tab.fill("#search", "RO")
    found = visit.each("#rows bdi")
    expected = [label for label in page.domain.labels.tolist() if "ro" in label]
    assert sorted(found) == sorted(expected)
    assert visit.text("#matches") == f"{len(expected)} values found"
    visit.tab.locator("#found").click()
    check_choice(visit, page, page.domain.index(expected).tolist())
    visit.tab.fill("#search", "no such colour")
    assert visit.tab.locator("#rows tr").count() == 0
    assert visit.tab.locator("#found").is_disabled()
    visit.tab.fill("#search", "")
    assert visit.tab.locator("#rows tr").count() == 30


def check_orders_of_bars(visit: Visit, page: Page, folder: Path) -> None:
    labels = page.domain.labels.tolist()

    def ticks() -> list[str]:
        found: list[str] = visit.tab.eval_on_selector_all(
            "#chart .ytick text", "all => all.map(one => one.textContent.trim())"
        )
        return found

    assert ticks()[0] == "red"
    visit.tab.select_option("#order", "name")
    visit.settled()
    assert ticks()[1] == sorted(labels)[1] == "amber"
    visit.tab.select_option("#order", "listed")
    visit.settled()
    assert ticks()[:29] == labels[:29]


def check_zoom(visit: Visit, page: Page, folder: Path) -> None:
    """A zoom stays, whatever is selected, painted or resized, until it is reset; a box selects what is in view."""

    def ranges() -> list[float]:
        axes = "document.querySelector('#chart')._fullLayout"
        found: list[float] = visit.tab.evaluate(f"[...{axes}.xaxis.range, ...{axes}.yaxis.range]")
        return found

    whole = ranges()
    visit.tab.locator("#modes label", has_text="Zoom").click()
    visit.drag((0.5, 0.2), (0.9, 0.6))
    zoomed = ranges()
    assert zoomed != whole
    visit.tab.locator("#modes label").first.click()
    visit.drag((0.02, 0.02), (0.98, 0.98))
    visit.says("#picked", "these")
    many = re.search(r"these (\d+) values", visit.text("#picked"))
    assert many is not None
    assert 2 < int(many[1]) < len(page.domain) / 2
    assert ranges() == zoomed
    visit.tab.locator("#theme").click()
    visit.tab.set_viewport_size({"width": 700, "height": 900})
    visit.settled()
    assert ranges() == pytest.approx(zoomed, rel=0.01)  # bars leave some room, as their numbers need it
    visit.tab.locator("#whole").click()
    visit.settled()
    assert ranges() == pytest.approx(whole, rel=0.01, abs=1e-9)


def check_parts(visit: Visit, page: Page, folder: Path) -> None:
    """A view is chosen by click and by keyboard; parts are drawn, described and selected as Python has them."""
    resolution = page.resolution
    assert resolution is not None
    first, rest = resolution.parts[0], resolution.parts[-1]
    assert not page.opens_with_parts
    assert not visit.one("#parts").is_visible()
    visit.tab.get_by_label(page.views[-1].label).check()
    visit.settled()
    assert visit.numbers("#parts") == [part.estimate for part in resolution.parts]
    assert f"{len(resolution.told)} {resolution.words.part}s that can be told apart" in (
        visit.one("#chart").get_attribute("aria-label") or ""
    )
    check_drawn_parts(visit, page, resolution)
    visit.tab.mouse.move(*visit.at(0.55, 0.3))
    visit.tab.wait_for_selector("#tip:not([hidden])")
    lines = visit.each("#tip span")
    [under] = [part for part in resolution.parts if part.title == lines[0]]
    assert lines[1] == f"{percent(under.estimate)} ({percent(under.low)} to {percent(under.high)})"
    visit.tab.mouse.click(*visit.at(0.55, 0.3))
    visit.says("#picked", "Share of")
    assert visit.numbers("#picked") == pytest.approx([under.estimate, under.low, under.high], rel=1e-12)
    assert "holds together with those of all other" in visit.text("#because")
    visit.tab.locator("#clear").click()
    visit.tab.locator("#walk").focus()
    for key in ("End", "Home", "Space"):
        visit.tab.keyboard.press(key)
        expected = rest if key == "End" else first
        visit.says("#reading", f"{expected.title}: {percent(expected.estimate)} ({percent(expected.low)} to ")
    assert "extended to the estimate" in visit.text("#reading")  # that of the first part is
    assert "selected" in visit.text("#reading")
    assert visit.numbers("#picked") == pytest.approx([first.estimate, first.low, first.high], rel=1e-12)
    visit.tab.locator("#views :checked").focus()
    for _ in page.views[1:]:
        visit.tab.keyboard.press("ArrowLeft")
    visit.settled()
    assert not visit.one("#parts").is_visible()
    assert visit.one("#views :checked").get_attribute("value") == "values"
    assert f"shares of {len(page.domain)} values" in (visit.one("#chart").get_attribute("aria-label") or "")
    if first.positions.size > 1:  # now it is a set like any other
        assert visit.numbers("#picked")[1:] == pytest.approx(interval(page, first.positions.tolist()), abs=1e-12)


def check_drawn_parts(visit: Visit, page: Page, resolution: Resolution) -> None:
    """Colours of areas, heights of steps and bands, lengths of bars."""
    drawn = visit.tab.evaluate("document.querySelector('#chart').data.map(({type, x, y, z}) => ({type, x, y, z}))")
    if page.domain.chart == "map":
        density = np.full(24 * 16, np.nan)
        for part in resolution.told:
            density[part.values.astype(int)] = part.estimate / part.values.size
        cells = [np.nan if cell is None else cell**2 for row in drawn[0]["z"] for cell in row]
        np.testing.assert_allclose(cells, density, rtol=1e-12)
    elif page.domain.chart == "line":
        boxes = [
            [part.values[0] - 0.5, part.values[-1] + 0.5, part.low / part.values.size, part.high / part.values.size]
            for part in resolution.told
        ]
        x, y = ([drawn[0][axis][corner::6] for corner in (0, 2)] for axis in "xy")
        np.testing.assert_allclose(np.array([*x, *y]).T, boxes, rtol=1e-12)
    else:
        lengths = [length for trace in drawn if trace["type"] == "bar" for length in trace["x"]]
        assert lengths == [part.estimate for part in resolution.parts]


# What readers do on each page, in this order.
CHECKS: dict[str, tuple[Check, ...]] = {
    "thirty": (check_clicks_on_bars, check_parts, check_search, check_orders_of_bars, check_zoom),
    "ages": (check_drag_along_a_line, check_parts, check_zoom),
    "many_integers": (check_drag_along_a_line,),
    "hours": (check_drag_along_a_line,),
    "city": (
        check_rows_mark_and_select,
        check_box_and_download,
        check_lasso_and_second_box,
        check_parts,
        check_keyboard_walk,
        check_sorting,
        check_zoom,
    ),
    "large": (check_pages_of_the_table,),
}


@pytest.mark.parametrize("name", [*KINDS, *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)])
def test_a_page_shows_the_estimate_and_answers_its_reader(
    chromium: Browser, written: Written, tmp_path: Path, name: str
) -> None:
    """To the last bit in the file and in the table; in words beside the pointer; as a picture.

    A page is opened once for all CHECKS of it: opening takes longer than most of them.
    """
    page: Page = getattr(pages, name)()
    with visiting(chromium, written(name)) as visit:
        if name == "thirty":  # first of all: the focus starts at the top of a page that was just opened
            check_keyboard_reaches_everything(visit)
        check_table(visit, page)
        check_file(visit, page, tmp_path)
        check_hover(visit, page)
        check_picture(visit, tmp_path)
        check_comparison(visit, page, maps=name in ("city", "large"))
        visit.tab.locator("#found").click()
        visit.says("#picked", "values: 100% (exactly)")
        for check in CHECKS.get(name, ()):
            visit.tab.evaluate("document.getElementById('clear').click()")
            check(visit, page, tmp_path)


def check_file(visit: Visit, page: Page, folder: Path) -> None:
    name, content = visit.saved("#csv", folder)
    assert name.endswith(".csv")
    assert content.startswith(b"\xef\xbb\xbf")
    rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    assert rows[0] == ["value", "probability", "low", "high", "noisy"]
    assert [row[0] for row in rows[1:]] == [str(label) for label in page.domain.labels]
    for number, expected in enumerate([page.estimate, page.low, page.high, page.noisy], start=1):
        assert expected is not None
        np.testing.assert_array_equal(np.array([float(row[number] or "nan") for row in rows[1:]]), expected)


def check_table(visit: Visit, page: Page) -> None:
    """The first fifty values, largest first; no more than these are in the document."""
    script = "[Number(one.dataset.place), one.querySelector('.share data').value, one.querySelector('bdi').textContent]"
    shown = visit.each("#rows tr", script)
    order = np.argsort(-page.estimate, kind="stable")[:50]
    assert [row[0] for row in shown] == order.tolist()
    assert [float(row[1]) for row in shown] == page.estimate[order].tolist()
    assert [row[2] for row in shown] == [page.domain.title(int(place)) for place in order]


def check_hover(visit: Visit, page: Page) -> None:
    visit.tab.mouse.move(*visit.at(0.62, 0.36))
    visit.tab.wait_for_selector("#tip:not([hidden])")
    lines = visit.each("#tip span")
    [place] = [place for place in range(len(page.domain)) if page.domain.title(place) == lines[0]]
    low, high = float(page.low[place]), float(page.high[place])
    between = "interval not computed" if np.isnan(low) else f"{percent(low)} to {percent(high)}"
    assert lines[1] == f"{percent(float(page.estimate[place]))} ({between})"
    assert page.noisy is not None
    assert lines[2] == f"noisy: {percent(float(page.noisy[place]))}"
    visit.tab.mouse.move(2, 2)
    visit.tab.wait_for_selector("#tip[hidden]", state="attached")


def check_picture(visit: Visit, folder: Path) -> None:
    name, content = visit.saved("#png-values", folder)
    assert name.endswith(".png")
    width, height, lines = decoded(content)
    box = visit.one("#chart .main-svg").bounding_box()
    assert box is not None
    title = 54  # pixels above the chart, for what the picture is about
    assert (width, height) == (2 * round(box["width"]), 2 * round(box["height"] + title))
    assert len(lines) > 30  # a blank sheet has one kind of line


def check_comparison(visit: Visit, page: Page, *, maps: bool) -> None:
    """Both maps have the same colours; elsewhere both stand in one chart. Nothing moves when they are drawn."""
    length = visit.each("html", "one.scrollHeight")
    visit.one("#compared").scroll_into_view_if_needed()
    visit.tab.wait_for_selector("#compared .main-svg", state="attached")
    visit.settled()
    assert visit.each("html", "one.scrollHeight") == pytest.approx(length, abs=8)
    drawn = visit.each("#compared, #beside", "(one.data ?? []).map(trace => [trace.zmax ?? null, trace.name ?? null])")
    assert page.noisy is not None
    if maps:
        top = float(np.sqrt(max(page.noisy.max(), page.estimate.max())))
        assert [traces[0][0] for traces in drawn] == [top, top]
    else:
        assert [trace[1] for trace in drawn[0]] == ["noisy", "estimated"]


@pytest.mark.slow
def test_the_hovered_value_lies_under_the_pointer(chromium: Browser, written: Written) -> None:
    """Of a map, whose rows count from the south, and of bars, whose order is not that of the domain."""
    grid = pages.city().domain
    with visiting(chromium, written("city")) as visit:
        visit.tab.mouse.move(*visit.at(12.5 / 24, 4.5 / 16))
        visit.tab.wait_for_selector("#tip:not([hidden])")
        assert visit.text("#tip .name") == grid.title(int(grid.index(24 * (16 - 1 - 4) + 12)))
    order = np.argsort(-pages.thirty().estimate, kind="stable")
    with visiting(chromium, written("thirty")) as visit:
        visit.tab.mouse.move(*visit.at(0.5, 4.5 / 30))
        visit.tab.wait_for_selector("#tip:not([hidden])")
        assert visit.text("#tip .name") == pages.thirty().domain.title(int(order[4]))


def test_bounds_of_a_set_and_labels_that_are_numbers(chromium: Browser, tmp_path: Path) -> None:
    """Bounds of a set also follow from the rest: values without known bounds count from 0 to 1.

    In the file, labels that are numbers stay numbers, however many digits they have; a text like one is guarded.
    """
    one, two, three, four = labels = (2**70, -5, 10**18 + 1, "-6")
    page = pages.page_of(hb.Categories(labels), np.array([0.4, 0.1, 0.5, 0.0]))
    nan = np.nan
    sets = Bounds(np.array([0.3, nan, 0.1, 0.0]), np.array([0.5, 0.2, nan, 0.0]), "That is why.")
    page = replace(page, sets=sets)
    path = tmp_path / "page.html"
    path.write_text(render_page(page), encoding="utf-8")
    expected = {(one, two): (0.3, 0.7), (two, three): (0.5, 0.7), (one, three): (0.8, 1.0)}
    with visiting(chromium, path) as visit:
        for chosen, (low, high) in expected.items():
            visit.tab.evaluate("document.getElementById('clear').click()")
            for label in chosen:
                visit.tab.get_by_label(f"select {label}", exact=True).check()
            assert visit.numbers("#picked")[1:] == pytest.approx([low, high], abs=1e-6)
            assert interval(page, page.domain.index(list(chosen)).tolist()) == pytest.approx((low, high))
            assert "That is why." in visit.text("#because")
            assert "chosen with hindsight" in visit.text("#because")
        _, content = visit.saved("#csv", tmp_path)
        rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))[1:]
        assert [row[0] for row in rows] == [str(one), str(two), str(three), f"'{four}"]


def decoded(png: bytes) -> tuple[int, int, set[bytes]]:
    """Return the width, the height and the distinct colours of a picture."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    place, data = 8, b""
    while place < len(png):
        size, name = struct.unpack(">I4s", png[place : place + 8])
        if name == b"IHDR":
            width, height, depth, kind = struct.unpack(">IIBB", png[place + 8 : place + 18])
        if name == b"IDAT":
            data += png[place + 8 : place + 8 + size]
        place += size + 12
    assert depth == 8
    rows = zlib.decompress(data)
    channels = {2: 3, 6: 4}[kind]
    lines = {rows[start : start + 1 + width * channels] for start in range(0, len(rows), 1 + width * channels)}
    return width, height, lines


@pytest.mark.slow
def test_a_set_of_thousands_of_cells_has_the_interval_that_python_computes(chromium: Browser, tmp_path: Path) -> None:
    """Digit for digit: a box, what is left of the map, and single cells whose estimate is outside of its interval."""
    page = pages.region()
    assert isinstance(page.sets, SetShares)
    assert isinstance(page.sets.covariance, CompactCovariance)
    path = tmp_path / "page.html"
    path.write_text(render_page(page), encoding="utf-8")
    assert path.stat().st_size < 5e6
    with visiting(chromium, path) as visit:
        visit.drag((0.101, 0.101), (0.5, 0.4), (0.699, 0.899))
        column, row = np.asarray(page.domain.steps).T
        inside = np.flatnonzero((column >= 5) & (column < 35) & (row >= 5) & (row < 45)).tolist()
        check_choice(visit, page, inside)
        visit.tab.locator("#invert").click()
        check_choice(visit, page, sorted(set(range(2_500)) - set(inside)))
        outside = np.flatnonzero((page.estimate < page.low) | (page.estimate > page.high))
        place = int(outside[0])
        assert (page.shown_low <= page.estimate).all()
        assert (page.shown_high >= page.estimate).all()
        visit.tab.locator("#clear").click()
        visit.tab.fill("#search", page.domain.title(place))
        visit.tab.locator(f"#rows tr[data-place='{place}'] input").check()
        assert visit.numbers("#picked") == [page.estimate[place], page.shown_low[place], page.shown_high[place]]
        assert "extended to the estimate" in visit.text("#picked")
        own = f"{percent(float(page.low[place]))} to {percent(float(page.high[place]))}"
        assert f"The confidence interval itself is {own}." in visit.text("#because")
