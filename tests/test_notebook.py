"""What notebooks show of results: all of it in words, and every label escaped."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.intervals.standard_errors import StandardErrors
from hubbub.rendering import Fact, facts_html, spreadsheet_safe, table_html

HOSTILE = ["<script>alert(1)</script>", "'><img src=x onerror=alert(1)>", "&amp;", "fine"]
TAGS = {"table", "tr", "th", "td", "div"}


class Tags(HTMLParser):
    """Collects tags and attributes, and the text as a browser would show it."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def seen(html: str) -> Tags:
    parser = Tags()
    parser.feed(html)
    assert parser.tags <= TAGS
    assert parser.attributes <= {"style", "colspan"}
    return parser


@pytest.fixture(scope="module")
def reports() -> hb.Reports:
    mechanism = hb.RandomizedResponse(hb.Categories(HOSTILE), 2.0)
    return hb.Reports.from_counts(mechanism, [400, 300, 200, 100])


def test_trust_is_shown_in_words(reports: hb.Reports) -> None:
    results: list[Any] = [
        hb.check(reports, values=HOSTILE[:2]),
        hb.identify(reports),
        hb.fit_test(reports),
        hb.interval(reports, HOSTILE[0]),
        hb.worst_case_shift(reports, 0.01),
    ]
    for result in results:
        shown = seen(result._repr_html_())
        assert len(shown.text) > 20
    shown_interval = seen(results[3]._repr_html_())
    assert HOSTILE[0] in shown_interval.text  # as a text, not as a tag
    assert f"{results[3].low:.4g} to {results[3].high:.4g}" in shown_interval.text
    assert results[2].explain() in seen(results[2]._repr_html_()).text
    assert str(results[2]) == results[2].explain()


def test_a_band_shows_the_values_that_were_asked_for(reports: hb.Reports) -> None:
    band = hb.band(reports, values=[HOSTILE[0], "fine"])
    shown = seen(band._repr_html_())
    assert HOSTILE[0] in shown.text
    assert HOSTILE[1] not in shown.text
    assert f"{band.low[0]:.4f}" in shown.text
    assert "2 of 4 values" in shown.text


def test_a_long_band_says_that_it_is_cut() -> None:
    mechanism = hb.RandomizedResponse(hb.Integers(1, 30), 3.0)
    shares, ends = np.full(30, 1 / 30), (np.zeros(30), np.ones(30))
    errors = StandardErrors(np.full(30, 0.0123), ("",) * 30)
    band = hb.Band.around(
        mechanism.domain, shares, ends, level=0.95, simultaneous=True, note="", likeliest=shares, errors=errors
    )
    shown = seen(band._repr_html_())
    assert "20 of them" in shown.text
    assert shown.text.count("0.0333") == shown.text.count("0.0123") == 20


def test_an_audit_shows_its_verdict() -> None:
    audit = hb.audit(hb.RandomizedResponse(hb.Categories(HOSTILE), 1.0), draws=2000)
    shown = seen(audit._repr_html_())
    assert audit.verdict in shown.text
    assert audit.explain() in shown.text
    assert audit.verdict in str(audit)


def test_facts_and_tables_are_escaped() -> None:
    html = facts_html([Fact(HOSTILE[0], HOSTILE[1])]) + table_html([HOSTILE[0], "b"], [[HOSTILE[1], HOSTILE[2]]])
    text = seen(html).text
    assert text.count(HOSTILE[0]) == 2
    assert text.count(HOSTILE[1]) == 2
    assert HOSTILE[2] in text


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "  =1", "\u00a0=1", "\ufeff=1", "\n=1", "\x00=1", "\u200b-2", "＝1"],
)
def test_formulas_get_an_apostrophe(text: str) -> None:
    assert spreadsheet_safe(text) == "'" + text


@pytest.mark.parametrize("value", ["plain", "a=b", "'quoted", "", "  ", 3, -0.5, None, "1-2"])
def test_other_cells_stay_as_they_are(value: object) -> None:
    assert spreadsheet_safe(value) == value
