"""The report's HTML without a browser: what is in it, how large it is, what it refuses, how it is written."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pages
from hubbub.core.arrays import Floats
from hubbub.core.errors import HubbubError, IntakeError
from hubbub.core.text import percent
from hubbub.domains import Grid, Subset
from hubbub.intervals.set_intervals import SetShares
from hubbub.reporting.html_page import SCRIPTS, render_page, write_page
from hubbub.reporting.page_values import Bounds, Page
from hubbub.reporting.script_data import packed_covariance, packed_sets, script_data
from hubbub.reporting.visible_text import file_name, visible, visible_lines
from labels import HOSTILE

ASSETS = files("hubbub.reporting").joinpath("assets")


class Parts(HTMLParser):
    """The scripts of a page, and the attributes of its elements."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[tuple[str, str]] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append((dict(attrs).get("type") or "", ""))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "script":
            kind, text = self.scripts[-1]
            self.scripts[-1] = (kind, text + data)


def parsed(page: Page) -> Parts:
    parts = Parts()
    parts.feed(render_page(page))
    return parts


def floats(text: str) -> Floats:
    return np.frombuffer(base64.b64decode(text), dtype="<f8")


def test_the_policy_comes_first_and_allows_these_scripts_alone() -> None:
    parts = parsed(pages.two())
    names = [tag for tag, _ in parts.tags]
    assert names[:3] == ["html", "head", "meta"]
    held = parts.tags[2][1]
    assert held["http-equiv"] == "Content-Security-Policy"
    policy = str(held["content"])
    programs = [text for kind, text in parts.scripts if not kind]
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in programs]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    assert policy == (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    assert ("meta", {"name": "referrer", "content": "no-referrer"}) in parts.tags
    assert [kind for kind, _ in parts.scripts] == ["", "application/json", "", ""]


def test_nothing_lies_elsewhere() -> None:
    for tag, attributes in parsed(pages.city()).tags:
        for name, value in attributes.items():
            assert not name.startswith("on"), tag
            if name in ("src", "href", "action", "srcset", "data"):
                assert value is not None
                assert value.startswith(("#", "data:,")), (tag, value)


@pytest.mark.parametrize(("name", "most"), [("two", 2e6), ("city", 2e6), ("ages", 2e6), ("large", 5e6)])
def test_how_large_pages_are(name: str, most: float) -> None:
    assert len(render_page(getattr(pages, name)()).encode()) < most


def test_a_map_with_all_that_can_be_known_stays_small() -> None:
    """A covariance of 384 cells with nothing in it that could be left out."""
    rng = np.random.default_rng(1)
    root = rng.normal(size=(384, 384)) / 1000
    draws = rng.dirichlet(np.ones(384), size=4)
    whole = replace(
        pages.city(), domain=Grid(24, 16), estimate=draws[0], low=draws[1], high=draws[2], noisy=draws[3],
        sets=SetShares(draws[0], root @ root.T, 1.96), resolution=None,
    )  # fmt: skip
    assert len(render_page(whole).encode()) < 2e6


@pytest.mark.parametrize("name", ["two", "thirty", "many_integers", "hours", "city", "large"])
def test_the_block_of_data_holds_the_estimate_to_the_last_bit(name: str) -> None:
    page: Page = getattr(pages, name)()
    data = json.loads(script_data(page))
    np.testing.assert_array_equal(floats(data["estimate"]), page.estimate)
    assert page.noisy is not None
    np.testing.assert_array_equal(floats(data["noisy"]), page.noisy)
    for bound, expected in (("low", page.low), ("high", page.high)):
        assert (data[bound] is None) == bool(np.isnan(expected).all())
        if data[bound] is not None:
            np.testing.assert_array_equal(floats(data[bound]), expected)
    assert data["values"]["count"] == len(page.domain)


@given(st.lists(st.text(min_size=1), min_size=2, max_size=5, unique_by=lambda text: text))
def test_no_label_ends_the_block_of_data(labels: list[str]) -> None:
    page = replace(pages.two(), title=labels[0], texts=dict.fromkeys(labels, labels[1]))
    text = script_data(page)
    assert text.isascii()
    assert not re.search("[<>&'\x7f]", text)
    assert [found["text"] for found in json.loads(text)["files"]] == [labels[1]] * len(labels)


@given(st.text())
def test_shown_texts_hide_nothing(text: str) -> None:
    for said in (visible(text), visible_lines(text)):
        assert said.replace("\n", "").isprintable() or any(one.isspace() or ord(one) > 0x600 for one in said)
        assert not re.search("[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c\x00-\x09\x0b-\x1f\x7f-\x9f\ufeff]", said)
        said.encode()  # no half of a pair is left


def test_shown_labels_differ() -> None:
    """No two of the hostile labels look the same, and joined letters and pictures stay as they are."""
    assert len({visible(label) for label in HOSTILE}) == len(HOSTILE)
    for untouched in ("👩\u200d👩\u200d👧", "می\u200cخواهم", "naïve café", "日本"):
        assert visible(untouched) == untouched


@pytest.mark.parametrize("label", HOSTILE)
def test_names_of_files_are_plain(label: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,79}", file_name(label))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(4))
def test_packed_deviations_are_never_understated(seed: int) -> None:
    """Of covariances whose sums nearly cancel and whose deviations span orders of magnitude, for sets of every size."""
    rng = np.random.default_rng(seed)
    many = 120
    root = rng.normal(size=(many, 7)) if seed % 2 else rng.normal(size=(many, many))
    matrix = root @ root.T * 1e-4
    if seed >= 2:  # neighbours that cancel
        step = np.eye(many) - np.eye(many, k=1)
        matrix = step @ matrix @ step.T
        matrix *= np.outer(*(10.0 ** rng.uniform(-3, 0, many),) * 2)
    matrix = matrix - matrix.mean(axis=0)  # all shares together are known
    matrix = matrix - matrix.mean(axis=1, keepdims=True)
    sets = [rng.permutation(many)[:size] for size in (1, 2, 3, 10, 60, 119, 120) for _ in range(20)]
    sent = packed_covariance(SetShares(np.zeros(many), matrix, 1.96)).covariance
    numbers = np.array([sent.deviation(chosen) for chosen in sets])
    true = np.array([np.sqrt(max(0.0, matrix[np.ix_(chosen, chosen)].sum())) for chosen in sets])
    largest = np.sqrt(np.diagonal(matrix)).max()
    assert (numbers >= true * (1 - 1e-9) - 1e-6 * largest).all()  # of all but none, only rounding is left
    ample = true > 1e-3 * largest
    assert (numbers[ample] <= true[ample] * 1.01 + 1e-12).all()


def test_bounds_are_sent_outward_or_not_at_all() -> None:
    rng = np.random.default_rng(3)
    low, high = rng.uniform(0, 0.4, 50), rng.uniform(0.5, 1, 50)
    low[7] = high[9] = np.nan
    sent = packed_sets(Bounds(low, high, ""), np.zeros(50), np.ones(50))
    for name, given_bound, sign in (("low", low, 1), ("high", high, -1)):
        found = np.frombuffer(base64.b64decode(sent[name]), dtype="<f4").astype(float)
        known = ~np.isnan(given_bound)
        np.testing.assert_array_equal(np.isnan(found), ~known)
        assert (sign * (given_bound - found)[known] >= 0).all()
        assert np.abs(found - given_bound)[known].max() < 1e-7
    assert packed_sets(Bounds(low, high, ""), low, high) == {"kind": "bounds", "low": "own", "high": "own"}


def test_few_bounds_are_sent_with_their_positions() -> None:
    """A map of 65,536 cells of which some hundreds have an interval stays far below what all of them would take."""
    page = pages.large()
    low = page.low.copy()
    low[::200] = 0.25
    data = json.loads(script_data(replace(page, low=low, high=low)))
    places = np.frombuffer(base64.b64decode(data["low"]["at"]), dtype="<i4")
    assert places.tolist() == list(range(0, 65_536, 200))
    assert floats(data["low"]["known"]).tolist() == [0.25] * len(places)
    assert len(script_data(replace(page, low=low, high=low))) < len(script_data(page)) + 20_000


def test_a_part_of_a_domain_keeps_its_places() -> None:
    whole = pages.city().domain
    kept = Subset(whole, (3, 5, 8))
    values = json.loads(script_data(small(pages.city(), kept)))["values"]
    assert values["kind"] == "map"
    assert floats(values["listed"]).tolist() == whole.labels[[3, 5, 8]].tolist()
    bins = Subset(pages.hours().domain, (1, 4))
    values = json.loads(script_data(small(pages.hours(), bins)))["values"]
    assert floats(values["places"]).tolist() == [2.25, 10.5]
    assert floats(values["widths"]).tolist() == [1.5, 3.0]
    assert values["titles"] == ["1: 1.5 to 3", "4: 9 to 12"]


def small(page: Page, part: Subset) -> Page:
    """Return a page about a part of the domain, with the numbers of the first values."""
    many = len(part)
    sets = Bounds(page.low[:many], page.high[:many], "")
    assert page.noisy is not None
    return replace(
        page,
        domain=part,
        estimate=page.estimate[:many],
        low=page.low[:many],
        high=page.high[:many],
        noisy=page.noisy[:many],
        sets=sets,
        resolution=None,
    )


def test_parts_about_other_values_are_refused() -> None:
    page = pages.two()
    wrong = np.zeros(3)
    for change in (
        {"estimate": wrong}, {"low": wrong}, {"noisy": wrong},
        {"sets": SetShares(page.estimate, np.eye(3), 2.0)}, {"sets": Bounds(wrong, page.high, "")},
    ):  # fmt: skip
        with pytest.raises(HubbubError, match="does not have one number for each value"):
            replace(page, **change)


def test_parts_that_leave_values_out_or_hold_them_twice_are_refused() -> None:
    page = pages.ages()
    resolution = page.resolution
    assert resolution is not None
    for parts in (resolution.parts[1:], (*resolution.parts, resolution.parts[0])):
        with pytest.raises(HubbubError, match="does not divide the values"):
            replace(page, resolution=replace(resolution, parts=parts))


def test_numbers_that_are_not_finite_are_refused() -> None:
    page = pages.two()
    for change in (
        {"estimate": np.array([np.nan, 1.0])},
        {"sets": SetShares(page.estimate, np.array([[1.0, np.inf], [0.0, 1.0]]), 2.0)},
    ):
        with pytest.raises(HubbubError, match="not finite"):
            replace(page, **change)


def test_the_same_content_gives_the_same_page() -> None:
    assert render_page(pages.city()) == render_page(replace(pages.city()))


def test_the_words_are_there_without_any_script() -> None:
    page = replace(pages.city(), verdicts=pages.VERDICTS)
    text = render_page(page)
    for said in (
        page.title,
        page.summary,
        *page.notes,
        *(verdict.text for verdict in page.verdicts),
        pages.FACTS[3].text,
    ):
        assert html.escape(said).replace("&#x27;", "&#39;").replace("&quot;", "&#34;") in text
    top = int(np.argmax(page.estimate))
    assert f'<bdi>{page.domain.title(top)}</bdi></th><td><data value="{float(page.estimate[top])!r}">' in text
    assert page.resolution is not None
    for part in page.resolution.parts:
        row = f'<bdi>{part.title}</bdi></th><td><data value="{part.estimate!r}">{percent(part.estimate)}</data></td>'
        assert f"{row}<td>{percent(part.low)} to {percent(part.high)}</td>" in text
    assert page.resolution.explain() in text
    assert text.count('<tr><th scope="row">') == 20 + len(page.resolution.parts)


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.html"
    write_page(pages.two(), path)
    assert path.read_text(encoding="utf-8") == render_page(pages.two())
    assert [found.name for found in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(IntakeError, match="cannot be written"):
        write_page(pages.two(), tmp_path / "nowhere" / "report.html")
    with pytest.raises(IntakeError, match="something else has this name"):
        write_page(pages.two(), tmp_path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(IntakeError, match="the disk is full"):
        write_page(pages.thirty(), path)
    assert path.read_text(encoding="utf-8") == render_page(pages.two())
    assert [found.name for found in tmp_path.iterdir()] == ["report.html"]


def test_the_library_is_the_one_that_was_published() -> None:
    folder = ASSETS.joinpath("vendor")
    said = folder.joinpath("README.md").read_text(encoding="utf-8")
    digest = hashlib.sha256(folder.joinpath("plotly-cartesian.min.js").read_bytes()).hexdigest()
    assert f"sha256 `{digest}`" in said
    assert folder.joinpath("LICENSE").read_text(encoding="utf-8").startswith("MIT License")


def test_every_script_is_used_and_none_reads_a_text_as_html() -> None:
    found = {Path(str(one)).stem for one in ASSETS.iterdir() if str(one).endswith(".js")}
    assert found == {*SCRIPTS, "before_first_paint"}
    for name in (*SCRIPTS, "before_first_paint"):
        text = ASSETS.joinpath(f"{name}.js").read_text(encoding="utf-8")
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|localStorage", text
        ), name
        assert len(text.splitlines()) < 150, name


def test_shares_in_words() -> None:
    cases = {
        0.5: "50.0%",
        0.0999: "9.99%",
        0.0049: "0.49%",
        2e-6: "0.00020%",
        1e-7: "under 0.0001%",
        0.99999: "over 99.9%",
    }
    assert {share: percent(share) for share in cases} == cases
    assert percent(float("nan")) == "unknown"
