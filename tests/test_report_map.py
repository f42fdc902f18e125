"""The page's map as people read it: places by their names, degrees, scale, three views with one legend, districts."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hubbub as hb
import pages
from browser import Visit, visiting
from districts import city_regions, population
from hubbub.core.arrays import Floats
from hubbub.core.text import percent
from hubbub.domains import NamedPlaces
from hubbub.domains.place_text import decimals_for
from hubbub.rendering.map_axes import label_map
from hubbub.rendering.margins import MARGIN_TEXTS, margin_classes
from hubbub.rendering.palette import RAMP
from hubbub.reporting import Page, make_page
from hubbub.reporting.html_page import render_page
from hubbub.reporting.visible_text import visible
from hubbub.resolution import renamed
from test_report_looks import looked_at, overlapping, troubles

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HOSTILE = "<img src=x onerror=planted(1)>\u202e&amp;$x$"
PLACE = r"(\d+(?:\.\d+)?)° ([NS]), (\d+(?:\.\d+)?)° ([EW])"
# Machado, Oliveira and Fernandes (2009), table 1: deuteranomaly of severity 1.0, for linear RGB.
DEUTERANOPIA = np.array(
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
)


def place_of(text: str) -> tuple[float, float]:
    """Return the latitude and longitude that a text names."""
    found = re.search(PLACE, text)
    assert found, text
    north, east = (1 if found[2] == "N" else -1), (1 if found[4] == "E" else -1)
    return north * float(found[1]), east * float(found[3])


# -- names of places ----------------------------------------------------------------------------------------


@given(
    south=st.floats(-80, 79),
    west=st.floats(-179, 178),
    height=st.floats(1e-4, 1.0),
    width=st.floats(1e-4, 1.0),
    columns=st.integers(2, 30),
    rows=st.integers(2, 30),
)
def test_the_title_of_a_cell_lies_in_it(
    south: float, west: float, height: float, width: float, columns: int, rows: int
) -> None:
    """So titles are all different, and `locate` finds the cell again."""
    grid = hb.Grid.over(south=south, west=west, north=south + height, east=west + width, columns=columns, rows=rows)
    places = [place_of(grid.title(position)) for position in range(len(grid))]
    assert grid.locate(*zip(*places, strict=True)).tolist() == grid.labels.tolist()


def test_digits_are_no_more_than_it_takes() -> None:
    """With one fewer, rounded middles of neighbours would be the same, or on the border."""
    for side in (0.0005, 0.001, 0.0045, 0.02, 0.3):
        decimals = decimals_for(side)
        assert 10.0**-decimals < side <= 10.0 ** -(decimals - 1) / 0.9


def test_areas_and_districts_have_names() -> None:
    grid = hb.Grid.over(south=-0.2, west=-0.1, north=0.2, east=0.3, columns=4, rows=4)
    assert grid.title(0) == "0.15° S, 0.05° W"
    assert grid.area_title(np.arange(6)) == "6 cells within 0.20° S to 0.00° N, 0.10° W to 0.30° E"
    assert grid.area_title(np.array([10, 11])) == "2 cells within 0.00 to 0.10° N, 0.10 to 0.30° E"
    assert hb.Grid(4, 4).area_title(np.arange(6)) == "6 cells: columns 0 to 3, rows 0 to 1"
    named = NamedPlaces.of(grid, [*["Harbour"] * 3, "Market", *["Mill"] * 2, None, *["Old Town"] * 9])
    assert (named.title(3), named.title(6)) == ("Market (0.15° S, 0.25° E)", grid.title(6))
    area = grid.area_title(np.arange(8))
    assert named.area_title(np.arange(8)) == f"Harbour, Mill and 2 more ({area})"
    assert named.labels.tolist() == grid.labels.tolist()
    part = NamedPlaces.of(
        hb.Reports.from_counts(hb.RandomizedResponse(grid, 3.0), {2: 3}).restrict([2, 6]).domain, ["Mill", None]
    )
    assert part.title(0) == f"Mill ({grid.title(2)})"
    with pytest.raises(hb.DomainError, match="16 values"):
        NamedPlaces.of(grid, ["Harbour"])


# -- colours ------------------------------------------------------------------------------------------------


def lightness(colours: list[str] | tuple[str, ...], simulation: Floats) -> Floats:
    """Return the luminance of colours for readers whose eyes mix linear RGB like this."""
    rgb = np.array([[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in colours]) / 255.0
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return np.asarray(np.clip(linear @ simulation.T, 0, 1) @ [0.2126, 0.7152, 0.0722])


def test_the_ramp_is_that_of_the_pictures_and_rises_for_the_colour_blind() -> None:
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    assert [to_hex(colormaps["cividis"](step / 16)) for step in range(17)] == list(RAMP)
    rainbow = [to_hex(colormaps["jet"](step / 16)) for step in range(17)]
    for simulation in (np.eye(3), DEUTERANOPIA):
        assert (np.diff(lightness(RAMP, simulation)) > 0).all()
        assert (np.diff(lightness(RAMP[::4], simulation)) > 0.02).all()  # classes of the view of how sure
        assert not (np.diff(lightness(rainbow, simulation)) > 0).all()  # the check can fail


# -- pictures -----------------------------------------------------------------------------------------------


def test_a_picture_of_how_sure_the_shares_are_has_the_classes_of_the_page() -> None:
    import matplotlib.pyplot as plt

    grid = hb.Grid.over(south=37.72, west=-122.52, north=37.79, east=-122.38, columns=3, rows=2)
    rng, mechanism = np.random.default_rng(1), hb.RandomizedResponse(grid, 4.0)
    values = rng.choice(grid.labels, 3_000, p=[0.4, 0.3, 0.2, 0.05, 0.04, 0.01])
    reports = hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng))
    estimate = hb.estimate(reports)
    with pytest.raises(hb.SettingError, match="no intervals yet"):
        estimate.plot(view="certainty")
    with pytest.raises(hb.SettingError, match=r"hubbub\.resolve\(reports\)\.plot\(\)"):
        estimate.plot(view="resolved")
    band = hb.band(reports, values=[0, 1, 2, 3, 5])
    axes = estimate.plot(view="certainty")
    drawn = np.ma.filled(axes.images[0].get_array().astype(float), -1.0)  # type: ignore[union-attr]
    expected = margin_classes(estimate.probabilities, band.low, band.high)
    assert drawn.ravel().tolist() == expected.tolist()
    assert expected[4] == -1
    assert len(set(expected.tolist())) > 2
    assert axes.figure is not None
    legend = axes.figure.axes[-1]
    assert [text.get_text() for text in legend.get_yticklabels()] == list(MARGIN_TEXTS)
    plt.close("all")


def test_the_sides_of_a_picture_are_in_degrees() -> None:
    import matplotlib.pyplot as plt

    grid = hb.Grid.over(south=37.7228, west=-122.5153, north=37.7946, east=-122.3789, columns=24, rows=16)
    _, axes = plt.subplots()
    label_map(grid, axes)
    across = {text.get_text(): float(at) for text, at in zip(axes.get_xticklabels(), axes.get_xticks(), strict=True)}
    assert across["122.45° W"] == pytest.approx(24 * grid.width * (122.5153 - 122.45) / (122.5153 - 122.3789))
    assert [text.get_text() for text in axes.get_yticklabels()] == ["37.74° N", "37.76° N", "37.78° N"]
    [bar] = axes.lines
    assert np.asarray(bar.get_xdata()).tolist() == [0.0, 2.0]
    assert [text.get_text().strip() for text in axes.texts] == ["2 km", "↑ N"]
    plt.close("all")


# -- the page -----------------------------------------------------------------------------------------------


@cache
def city() -> tuple[Page, hb.Regions]:
    """Return the page of a city with districts, one of which has a name that tries to be more than a name."""
    found = city_regions()
    hostile = replace(found, names=tuple(HOSTILE if name == "Mission" else name for name in found.names))
    rng, mechanism = np.random.default_rng(4), hb.PlanarGeometric(found.grid, 4.0)
    values = rng.choice(found.grid.labels, 20_000, p=population())
    reports = hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng))
    page = make_page(reports, method="ibu", quick=True, regions=hostile, title="The city")
    quarters = 2 * (found.grid.steps[:, 1] > 9) + (found.grid.steps[:, 0] > 11)
    divided = pages.divided(replace(page, domain=found.grid), np.where(found.grid.steps[:, 1] < 2, 4, quarters))
    assert divided.resolution is not None
    return replace(divided, domain=page.domain, resolution=renamed(divided.resolution, page.domain)), hostile


def test_numbers_of_districts_are_theirs() -> None:
    page, found = city()
    assert page.regions is not None
    np.testing.assert_allclose(page.regions.estimate, found.weights @ page.estimate, rtol=1e-12)
    assert page.regions.estimate.sum() == pytest.approx(1.0)
    assert (page.regions.low <= page.regions.estimate).all()
    assert (page.regions.estimate <= page.regions.high).all()
    assert (page.regions.low_together <= page.regions.low).all()
    assert (page.regions.high <= page.regions.high_together).all()
    first = page.regions.largest_first()[0]
    shown, low, high = (
        percent(float(each[first])) for each in (page.regions.estimate, page.regions.low, page.regions.high)
    )
    told = f"The busiest of 20 regions: {found.names[first]} with about {shown} (between {low} and {high}), "
    assert page.summary.startswith(told)
    assert page.regions.precision.startswith(
        f"The largest share of a region, {found.names[first]}, is estimated at {shown};"
    )
    assert page.resolution is not None
    assert page.resolution.parts[0].title.startswith("Market, ")
    alone = make_page(
        hb.estimate(hb.Reports.from_counts(hb.RandomizedResponse(found.grid, 9.0), {5: 9}), "ibu"), regions=found
    )
    assert alone.regions is not None
    assert np.isnan(alone.regions.low).all()
    assert ", without intervals." in render_page(alone)


def test_districts_that_are_not_on_the_map_are_told() -> None:
    page, _ = city()
    assert page.regions is not None
    inside = np.ones(20)
    inside[:2] = 0.0, 0.45
    estimate = page.regions.estimate.copy()
    estimate[0] = np.nan
    text = render_page(replace(page, regions=replace(page.regions, inside=inside, estimate=estimate)))
    rows = re.findall(r"<tr><th scope=\"row\"><bdi>(.*?)</bdi>(.*?)</th><td>(.*?)</td>", text)
    told = {name: (note, share) for name, note, share in rows if note}
    assert told["Old Town"] == (" <small>outside the map</small>", "not known")
    assert told["Harbour"][0] == " <small>45.0% of its area is on the map</small>"
    assert set(told) == {"Old Town", "Harbour"}


def test_the_map_in_a_browser(chromium: Browser, tmp_path: Path) -> None:
    """Opened once for everything, as opening takes longer than what is looked at."""
    page, found = city()
    path = tmp_path / "page.html"
    path.write_text(render_page(page), encoding="utf-8")
    with visiting(chromium, path) as visit:
        check_sides_and_scale(visit, found)
        check_pointer(visit, page, found)
        check_districts(visit, page, found)
        pictures = {check_view(visit, page, name, tmp_path) for name in ("values", "certainty", "parts")}
        assert len(pictures) == 3
        check_margins(visit, page)
        check_zoom(visit)
        assert visit.executed() == []
        assert visit.tab.locator("main img").count() == 0
        assert troubles(visit) == []
        visit.tab.set_viewport_size({"width": 360, "height": 800})
        visit.settled()
        assert visit.widths() == (360, 360)
        assert overlapping(visit, "#chart") == []
        assert looked_at(visit) == {"overlaps": [], "faint": []}


def test_a_district_around_another_and_what_is_in_none(chromium: Browser, tmp_path: Path) -> None:
    """The name of the outer one does not stand in its hole; people outside both have a row, as at the terminal."""
    grid = hb.Grid.over(south=48.72, west=9.10, north=48.81, east=9.24, columns=6, rows=6)

    def square(margin: float) -> list[list[float]]:
        west, south, east, north = 9.10 + margin, 48.72 + margin, 9.24 - margin, 48.81 - margin
        return [[west, south], [east, south], [east, north], [west, north], [west, south]]

    hole = square(0.035)
    shapes = {"around": [square(0.005), hole[::-1]], "core": [hole]}
    features = [
        {"type": "Feature", "properties": {"name": name}, "geometry": {"type": "Polygon", "coordinates": rings}}
        for name, rings in shapes.items()
    ]
    regions = hb.regions(grid, {"type": "FeatureCollection", "features": features})
    mechanism = hb.PlanarGeometric(grid, 2.0)
    reports = hb.Reports.from_outputs(mechanism, mechanism.privatize([14] * 300 + [3] * 100, rng=1))
    shown = hb.estimate(reports, "mle")
    page = make_page(reports, estimate=shown, regions=regions, region_intervals="linear", quick=True)
    answer = regions.shares(reports, estimate=shown, method="linear").rest
    assert answer is not None
    path = tmp_path / "page.html"
    path.write_text(render_page(page), encoding="utf-8")
    with visiting(chromium, path) as visit:
        labels = dict(
            visit.tab.evaluate(
                "document.querySelector('#chart').layout.annotations.filter(({name}) => name === 'region')"
                ".map(({text, x}) => [text, x])"
            )
        )
        width = grid.columns * grid.width
        assert not 0.25 <= labels["around"] / width <= 0.75
        assert visit.text("#regions tbody tr:last-child th") == "(in no region)"
        assert visit.numbers("#regions tbody tr:last-child") == [answer.estimate]
        last = visit.text("#regions tbody tr:last-child td:nth-child(3)")
        assert last == f"{percent(answer.low)} to {percent(answer.high)}"


def check_sides_and_scale(visit: Visit, found: hb.Regions) -> None:
    """Ticks stand where their degrees are; the scale bar is as long as it says."""
    box, grid = found.grid.box, found.grid
    assert box is not None
    axes = visit.tab.evaluate(
        "(({xaxis, yaxis, shapes, annotations}) => [xaxis.tickvals, xaxis.ticktext, yaxis.tickvals, yaxis.ticktext,"
        " shapes[0].x1 - shapes[0].x0, annotations.map(({text}) => text)])(document.querySelector('#chart').layout)"
    )
    for at, texts, size, first, last in (
        (axes[0], axes[1], grid.columns * grid.width, box.west, box.east),
        (axes[2], axes[3], grid.rows * grid.height, box.south, box.north),
    ):
        assert 2 <= len(texts) <= 6
        degrees = [float(text.partition("°")[0]) for text in texts]
        assert [first + place / size * (last - first) for place in at] == pytest.approx(degrees, abs=1e-9)
    assert all(text.endswith("° E") for text in axes[1])
    assert axes[5][:2] == [f"{axes[4]:g} km", "↑ N"]
    assert visit.each("#chart .xtick text") == axes[1]


def check_pointer(visit: Visit, page: Page, found: hb.Regions) -> None:
    """Beside the pointer the cell; below the map the point; to a screen reader the cell, once the pointer rests."""
    visit.tab.mouse.move(*visit.at(0.3, 0.4))
    visit.tab.wait_for_selector("#tip:not([hidden])")
    cell = int(found.grid.locate(*place_of(visit.text("#where"))))
    assert visit.text("#tip .name") == page.domain.title(cell)
    box = found.grid.box
    assert box is not None
    point = box.north - 0.4 * (box.north - box.south), box.west + 0.3 * (box.east - box.west)
    assert place_of(visit.text("#where")) == pytest.approx(point, abs=3e-4)  # a pixel
    assert visit.one("#where-said").get_attribute("aria-live") == "polite"
    visit.says("#where-said", page.domain.title(cell))
    visit.tab.mouse.move(2, 2)
    assert visit.text("#where") == ""


def check_districts(visit: Visit, page: Page, found: hb.Regions) -> None:
    """Outlines are where the file has them; names stand inside their district; the table has the numbers."""
    assert page.regions is not None
    drawn = visit.tab.evaluate("document.querySelector('#chart').data.find(({mode}) => mode === 'lines').x")
    box, grid = found.grid.box, found.grid
    assert box is not None
    corners = [x for rings in found.outlines for ring in rings for x, _ in ring]
    expected = (np.array(corners) - box.west) / (box.east - box.west) * grid.columns * grid.width
    assert [x for x in drawn if x is not None] == pytest.approx(expected.tolist(), abs=0.01 * grid.width)
    labels = visit.tab.evaluate(
        "document.querySelector('#chart').layout.annotations.filter(({name}) => name === 'region')"
        ".map(({text, x, y}) => [text, x, y])"
    )
    assert len(labels) >= 12
    for name, x, y in labels:
        cell = grid.cell(int(x / grid.width), int(y / grid.height))
        shown = [each for each, weight in zip(found.names, found.weights.toarray()[:, cell], strict=True) if weight > 0]
        assert any(each.startswith(html.unescape(name).removesuffix("…")) for each in shown), name
    rows = visit.each(
        "#regions tbody tr",
        "[one.querySelector('bdi').textContent, one.querySelector('data').value, ...[2, 3].map((at) => "
        "one.cells[at].textContent)]",
    )
    order = np.argsort(-page.regions.estimate, kind="stable")
    assert [float(row[1]) for row in rows] == page.regions.estimate[order].tolist()
    assert [row[0] for row in rows] == [visible(found.names[number]) for number in order]
    low, high = (percent(float(ends[order[0]])) for ends in (page.regions.low, page.regions.high))
    assert rows[0][2] == f"{low} to {high}"
    low, high = (percent(float(ends[order[0]])) for ends in (page.regions.low_together, page.regions.high_together))
    assert rows[0][3] == f"{low} to {high}"


def check_view(visit: Visit, page: Page, name: str, folder: Path) -> bytes:
    """A view is a radio button; the legend and the description follow it; its picture can be saved. Return that."""
    visit.tab.locator(f"#views input[value={name}]").check()
    visit.settled()
    [[legend]] = visit.each(
        "#chart", "one.data.filter(({colorbar}) => colorbar).map(({colorbar}) => colorbar.title.text)"
    )
    assert legend.startswith({"values": "share", "certainty": "margin", "parts": "share per cell"}[name])
    assert visit.tab.locator("#chart .infolayer .colorbar").count() == 1
    start = {"values": "Heat map of the", "certainty": "Map of the margins", "parts": "Map of 4 areas"}[name]
    assert (visit.one("#chart").get_attribute("aria-label") or "").startswith(start)
    saved, content = visit.saved(f"#png-{name}", folder)
    suffix = {"values": "", "certainty": "-how-sure", "parts": "-what-the-reports-resolve"}[name]
    assert saved == f"The-city{suffix}.png"
    return content


def check_margins(visit: Visit, page: Page) -> None:
    """Cells have the classes that Python computes, in five colours of the ramp."""
    visit.tab.locator("#views input[value=certainty]").check()
    visit.settled()
    cells, colours = visit.tab.evaluate(
        "(({z, colorscale}) => [z.flat(), colorscale.map(([, fill]) => fill)])"
        "(document.querySelector('#chart').data[0])"
    )
    expected = margin_classes(page.estimate, page.shown_low, page.shown_high)
    assert cells == expected.tolist()
    assert len(set(cells)) > 2
    assert list(dict.fromkeys(colours)) == list(RAMP[::4])
    visit.tab.locator("#walk").focus()
    visit.tab.keyboard.press("ArrowRight")
    visit.says("#reading", "margin: ")
    assert page.domain.title(1) in visit.text("#reading")


def check_zoom(visit: Visit) -> None:
    """After a zoom, degrees and scale bar are those of what is shown; and again after it is undone."""
    read = "document.querySelector('#chart').layout.annotations.find(({name}) => name === 'scale').text"
    before = visit.tab.evaluate(read)
    visit.tab.get_by_label("Zoom", exact=True).check()
    visit.drag((0.3, 0.3), (0.4, 0.4), (0.5, 0.5))
    visit.settled()
    assert visit.tab.evaluate(read) == "500 m" != before
    shown, texts = visit.tab.evaluate(
        "(({xaxis}) => [xaxis.range, xaxis.tickvals])(document.querySelector('#chart')._fullLayout)"
    )
    assert len(texts) >= 2
    assert all(shown[0] <= at <= shown[1] for at in texts)
    visit.tab.locator("#whole").click()
    visit.settled()
    assert visit.tab.evaluate(read) == before


def test_what_cannot_be_on_a_page_is_refused(tmp_path: Path) -> None:
    found, path = city_regions(), tmp_path / "page.html"
    reports = hb.Reports.from_counts(hb.RandomizedResponse(hb.Grid(24, 20), 3.0), {5: 9})
    with pytest.raises(hb.SettingError, match="no place in the world"):
        hb.report(reports, path, regions=found)
    smaller = hb.Grid.over(south=37.7, west=-122.5, north=37.8, east=-122.4, columns=2, rows=2)
    elsewhere = hb.Reports.from_counts(hb.RandomizedResponse(smaller, 3.0), {1: 9})
    with pytest.raises(hb.SettingError, match="belong to another map"):
        hb.report(elsewhere, path, regions=found)
    with pytest.raises(hb.SettingError, match=r"hubbub\.regions\(grid"):
        hb.report(reports, path, regions="districts.geojson")  # type: ignore[arg-type]
    with pytest.raises(hb.SettingError, match="regions does not apply"):
        hb.report({"a": reports, "b": reports}, path, regions=found)
    page, _ = city()
    with pytest.raises(hb.HubbubError, match="where it is"):
        replace(page, regions=replace(page.regions, of_cell=(0,)))  # type: ignore[type-var]
