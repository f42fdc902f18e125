"""The page of groups: numbers of `compare`, `estimate` and `band`, drawn on one scale, whatever groups are called."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hubbub as hb
import pages
from browser import PHONE, visiting
from hubbub.comparison import GroupComparison
from hubbub.comparison.comparison_sentences import p_text
from hubbub.comparison.small_groups import fold_small
from hubbub.core.text import percent
from hubbub.rendering import Fact, csv_bytes
from hubbub.reporting import html_templates
from hubbub.reporting.chart_scale import difference_scale, round_scale, share_scale
from hubbub.reporting.group_panels import difference_panels, share_panels, signed_points
from hubbub.reporting.groups_content import make_groups_page
from hubbub.reporting.groups_html import render_groups_page
from hubbub.reporting.groups_page import GroupsPage
from hubbub.reporting.over_groups import MAX_CHOICES, over_groups
from hubbub.reporting.over_groups_chart import HEIGHT, Series, over_groups_chart
from hubbub.reporting.visible_text import visible
from labels import HOSTILE
from terminal import hubbub
from test_report_looks import looked_at, troubles

if TYPE_CHECKING:
    from playwright.sync_api import Browser

COIN = hb.RandomizedResponse(hb.Categories(["yes", "no", "unsure"]), p=0.75)
COUNTS = {"north": [480, 400, 120], "south": [620, 270, 110], "west": [260, 200, 60], "<b>east": [12, 9, 4]}
EDGES = re.compile(r'<data value="([^"]+)">')


def reports_of(counts: dict[str, list[int]]) -> dict[str, hb.Reports]:
    return {name: hb.Reports.from_counts(COIN, own) for name, own in counts.items()}


def numbers_of(text: str, section: str) -> list[float]:
    """Return the exact numbers of the tables in a section."""
    own = text[text.index(f'aria-labelledby="title-{section}"') :].partition("</section>")[0]
    tables = "".join(re.findall(r'<table class="numbers">.*?</table>', own, re.DOTALL))
    return [float(number) for number in EDGES.findall(tables)]


@pytest.fixture(scope="module")
def page() -> GroupsPage:
    return make_groups_page(reports_of(COUNTS), min_group=50)


def test_every_number_is_that_of_the_comparison(page: GroupsPage) -> None:
    text = render_groups_page(page)
    assert render_groups_page(page) == text  # the same bytes
    groups, notes = fold_small(reports_of(COUNTS), 50)
    comparison = hb.compare_groups(groups)
    document = comparison.document()
    assert html.escape(comparison.sentence) in text
    assert page.notes == tuple(notes)
    assert notes[0] == "1 group with fewer than 50 users joined as 'others': <b>east"
    rows = document["values"]
    names = ("share", "pooled", "difference", "adjusted")
    assert numbers_of(text, "numbers") == [row[name] for row in rows for name in names]
    users = {group["group"]: group["users"] for group in document["groups"]}
    first = {row["group"]: row["pooled"] for row in rows if row["value"] == "yes"}
    told = [[users[one["name"]], one["estimate"], first[one["name"]]] for one in document["order"]]
    assert numbers_of(text, "groups") == [number for row in told for number in row]
    changed = sorted((row for row in rows if row["changed"]), key=lambda row: -abs(row["difference"]))
    assert len(changed) >= 2
    assert numbers_of(text, "differences") == [row[name] for row in changed for name in names[2:]]
    for row in changed:
        ends = f"{signed_points(row['low'])} to {signed_points(row['high'])}"
        assert f"{signed_points(row['difference'])}</data> <small>{ends}</small>" in text
    assert f'<data value="{document["p_value"]}">{html.escape(p_text(document["p_value"]))}</data>, likelihood' in text
    assert f"p-value from {document['test']}." in text


def test_intervals_are_those_of_each_group_by_itself(page: GroupsPage) -> None:
    for place, own in enumerate(reports_of(COUNTS).values()):
        if own.users >= 50:
            alone = hb.band(own)
            np.testing.assert_array_equal(page.shares[place], hb.estimate(own).probabilities)
            np.testing.assert_array_equal(page.low[place], alone.low)
            np.testing.assert_array_equal(page.high[place], alone.high)
    assert ((page.low <= page.shares) & (page.shares <= page.high)).all()
    assert percent(float(page.low[1, 0])) in render_groups_page(page)


def test_two_groups_are_compared_as_compare_does() -> None:
    groups = reports_of({name: COUNTS[name] for name in ("north", "south")})
    page = make_groups_page(groups, title="Two")
    own = hb.compare(*groups.values(), names=("north", "south"))
    assert page.summary == own.sentence
    text = render_groups_page(page)
    columns = (own.first, own.second, own.difference, own.adjusted)
    assert numbers_of(text, "numbers") == np.stack(columns, axis=1).ravel().tolist()
    assert "Partially pooled" not in text
    against = make_groups_page(groups, against="south", quick=True)
    assert [contrast.title for contrast in against.contrasts] == ["north minus south"]
    assert any("quick page" in note for note in against.notes)
    assert ((against.low <= against.shares) & (against.shares <= against.high)).all()


def test_numbers_have_a_mean_over_the_groups() -> None:
    ages = hb.Integers(1, 4)
    noise = hb.TruncatedGeometric(ages, 1.5)
    counts = {"spring": [300, 200, 150, 50], "autumn": [100, 150, 200, 250]}
    groups = {name: hb.Reports.from_counts(noise, own) for name, own in counts.items()}
    page = make_groups_page(groups)
    assert page.statistic is not None
    for place, own in enumerate(groups.values()):
        mean = hb.interval(own, {1: 1.0, 2: 2.0, 3: 3.0, 4: 4.0})
        assert page.statistic.estimate[place] == pytest.approx(mean.estimate, rel=1e-12)
        assert (page.statistic.low[place], page.statistic.high[place]) == (mean.low, mean.high)
    assert [each.title for each in over_groups(page)] == ["the mean", "All values"]


def test_the_terminal_writes_the_same_page(page: GroupsPage, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(
        'version = 1\nname = "a survey"\n[domain]\nkind = "categories"\nlabels = ["yes", "no", "unsure"]\n'
        '[mechanisms.coin]\nkind = "randomized-response"\np = 0.75\n'
    )
    rows = [
        [name, output]
        for name in sorted(COUNTS, key=lambda name: (name not in ("north", "south", "west"), name))
        for output, many in zip(("yes", "no", "unsure"), COUNTS[name], strict=True)
        for _ in range(many)
    ]
    (tmp_path / "all.csv").write_bytes(csv_bytes(["region", "output"], rows))
    words = ("report", "study.toml", "all.csv", "-o", "report.html")
    done = hubbub(*words, "--by", "region", "--min-group", "50", cwd=tmp_path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    for section in ("groups", "differences", "numbers"):
        assert numbers_of(text, section) == numbers_of(render_groups_page(page), section)
    assert page.notes[0] in done.stderr
    assert page.summary.split(" (")[0] in done.stdout
    assert "4 groups of <bdi>region</bdi>" in text
    assert html.escape(page.notes[0]).replace("&#x27;", "&#39;") in text
    for option in (("--against", "north"), ("--by", "region", "--method", "mle")):
        refused = hubbub(*words, *option, cwd=tmp_path)
        assert refused.returncode == 2
        assert "--by" in refused.stderr


# -- drawing ---------------------------------------------------------------------------------------------------


@given(st.floats(-1e6, 1e6), st.floats(0.0, 1e6))
def test_a_round_scale_holds_both_ends(low: float, length: float) -> None:
    scale = round_scale(low, low + length)
    slack = 1e-8 * max(scale.step, abs(low), length)
    assert scale.low <= low + slack
    assert scale.high >= low + length - slack
    ticks = scale.ticks
    assert 2 <= len(ticks) <= 6
    assert (ticks[0].place, ticks[-1].place) == (0.0, 100.0)
    assert len({tick.text for tick in ticks}) == len(ticks)


def test_all_panels_have_one_scale() -> None:
    page = pages.groups_page_of(hb.Categories(["a", "b", "c", "d"]), ["north", "south", "west"])
    top = share_scale(page.high).high
    for panel, shares, low, high in zip(share_panels(page).panels, page.shares, page.low, page.high, strict=True):
        drawn = np.array([[strip.end, strip.low, strip.high] for strip in panel.strips], dtype=float)
        np.testing.assert_allclose(drawn, 100.0 * np.stack([shares, low, high], axis=1) / top, atol=0.006)
    drawn_set = difference_panels(page)
    half = difference_scale(*(end for own in page.contrasts for end in (own.low, own.high))).high
    for panel, own in zip(drawn_set.panels, page.contrasts, strict=True):
        middle = 50.0 + 50.0 * own.difference / half
        assert [strip.is_marked for strip in panel.strips] == own.changed.tolist()
        found = [(strip.start, strip.end) for strip in panel.strips]
        np.testing.assert_allclose(found, [(min(50.0, each), max(50.0, each)) for each in middle], atol=0.006)


def test_a_series_is_drawn_where_its_numbers_are() -> None:
    names, low, high = ["one", "two", "three"], np.array([0.1, np.nan, 0.3]), np.array([0.2, np.nan, 0.5])
    series = Series("yes", np.array([0.15, 0.3, 0.4]), low, high)
    chart = over_groups_chart(names, [series], share_scale(high))
    points = [tuple(map(float, point.split())) for point in chart.series[0].line[1:].split("L")]
    assert [round((chart.bottom - down) / HEIGHT / 2, 3) for _, down in points] == [0.15, 0.3, 0.4]
    assert [across for across, _ in points] == [name.place for name in chart.names]
    assert chart.series[0].intervals.count("V") == 2  # none where it was not computed


def test_fifty_groups_on_a_large_map_stay_below_five_megabytes() -> None:
    """Nothing is left out in silence: what is not drawn or listed is said."""
    page = pages.groups_page_of(hb.Grid(50, 30), [f"week {number}" for number in range(50)])
    text = render_groups_page(page)
    assert len(text.encode()) < 5e6
    panels = share_panels(page)
    assert f"{50 - len(panels.panels)} groups more would make this page too large" in text
    assert "4,000 of 75,000 rows" in text
    assert f"{len(panels.folded)} more groups, on the same scale" in text
    assert text.count('<path class="dots under"') == len(panels.panels) * 2
    assert len(over_groups(page)) == MAX_CHOICES


# -- safety ----------------------------------------------------------------------------------------------------


class Elements(HTMLParser):
    """How many elements of each kind a page has, with the names of their attributes, and its texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.kinds, self.texts = Counter[str](), list[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.kinds[" ".join([tag, *sorted(name for name, _ in attrs)])] += 1

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def attacked(names: Sequence[str], labels: Sequence[str]) -> str:
    """Return a page with these groups and values, and one of them wherever else a text stands."""
    page = pages.groups_page_of(hb.Categories(labels), names)
    facts = tuple(Fact(label, label) for label in labels)
    return render_groups_page(replace(page, title=names[0], by=labels[0], notes=tuple(names), facts=facts))


def harmless(many: int) -> list[str]:
    return [f"a text that does nothing {number}" for number in range(many)]  # long enough to be shortened, too


def test_no_name_and_no_label_becomes_an_element(monkeypatch: pytest.MonkeyPatch) -> None:
    for groups, values in ((len(HOSTILE), 7), (3, len(HOSTILE))):
        expected = Elements(attacked(harmless(groups), harmless(values))).kinds
        found = Elements(attacked(HOSTILE[:groups], HOSTILE[-values:]))
        assert found.kinds == expected
        assert not any(kind.startswith("script") for kind in expected)
        assert {visible(label) for label in (*HOSTILE[:groups], *HOSTILE[-values:])} <= set(found.texts)
    unescaped = html_templates.environment("hubbub.reporting").overlay(autoescape=False)
    monkeypatch.setattr(html_templates, "environment", lambda _: unescaped)
    few = Elements(attacked(HOSTILE[:4], HOSTILE[:7])).kinds
    assert few["script"] > 0  # the test itself: it would see texts that are put in as they are


def test_the_page_in_a_browser(chromium: Browser, tmp_path: Path) -> None:
    """Names that attack run nothing, and on a phone nothing is too wide, too faint, or on top of something else."""
    names, labels = [*HOSTILE[::14], "W" * 200], [*HOSTILE[3::11], "👩‍👩‍👧 " * 60]
    path = tmp_path / "page.html"
    path.write_text(attacked(names, labels).replace('<html lang="en">', '<html class="ready" lang="en">'), "utf-8")
    with visiting(chromium, path, width=PHONE) as visit:
        assert visit.executed() == []
        comparison = pages.groups_page_of(hb.Categories(labels), names).comparison
        assert isinstance(comparison, GroupComparison)
        assert visit.each("#groups tbody bdi") == [visible(ranked.name) for ranked in comparison.order]
        hidden = re.findall("[\u202a-\u202e\u2066-\u2069\u200b\u200e\u200f\\x00-\\x08\ufeff]", visit.text("body"))
        assert hidden == []
        assert visit.widths()[0] <= visit.widths()[1] == PHONE
        visit.one(".choices label:nth-of-type(2)").click()
        assert [visit.one(f".pick-{number}").is_visible() for number in (1, 2)] == [False, True]
        slanted = "document.querySelectorAll('.slanted').forEach((one) => one.remove())"  # whose boxes overlap
        visit.tab.evaluate(slanted)
        assert looked_at(visit) == {"overlaps": [], "faint": []}
        assert troubles(visit) == []
