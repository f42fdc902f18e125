"""The gallery: all of it is there, nothing that was read becomes markup, and a real browser shows it well."""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

import browsing
from hubbub.domains import Grid
from hubbub.paper.claims import Claim, Parameters, read_claims
from hubbub.paper.figure_specs import Figure, figure_names, parse_figure, read_figures
from hubbub.paper.gallery import SHOWN_VERDICTS, gallery_html
from hubbub.paper.judging import VERDICTS, Finding
from hubbub.paper.places import Place
from hubbub.paper.results import ROW_COLUMNS, Results
from hubbub.paper.wording import LATEX_LABEL, PRINTED_PLACES, printed_place
from hubbub.paper.work_units import WorkUnit, parts_of

HOSTILE = """<script>alert("1")</script> & 'quoted' </td></table> $style"""
VOID = {"br", "img", "input", "link", "meta"}


# -- small figures of several kinds, and what might have been measured for them -------------------------------

WHERE = ("fig:box_geom_tv", "beyond the paper")
CITY = {"truth": {"kind": "place"}, "mechanism": "planar-geometric", "epsilons": [0.5, 1.0]}
LINE = {"truth": {"kind": "binomial", "values": 5}, "users": 20, "mechanism": "truncated-geometric", "epsilons": [0.1]}
EVERY = [1.0, 0.3, 0.1, 0.03, 0.01, 0.003]  # with the others more methods than fit beside each other
COMMON = {"runs": 5, "beyond_runs": 2, "beyond": ["mle", "auto"], "methods": ["noisy", "inv-n", "inv-p"]}
FILES: Mapping[str, dict[str, Any]] = {
    "holes": {"kind": "place", "where": "fig:holes"},
    "line": {**COMMON, "kind": "shapes", "deltas": EVERY, "distances": ["tv"], "show": ["inv-n"], "measure": [LINE]},
    "boxes": {**COMMON, "kind": "boxes", "deltas": [0.1], "distances": ["tv", "emd"], "measure": [CITY]},
    "paths": {"kind": "paths", "runs": 3, "deltas": [0.1], "distances": ["tv", "emd"], "measure": [LINE, CITY]},
    "guesses": {"kind": "guesses", "options": {"mechanisms": [["twins", 1.0]]}},
}


def small_figures() -> tuple[Figure, ...]:
    more = {"where": "sec:lingeo, and a comment", "shows": "What is drawn."}
    return tuple(
        parse_figure(name, {"title": f"The figure of {name}", **more, **given}, quick=False)
        for name, given in FILES.items()
    )


def document(part: WorkUnit) -> dict[str, Any]:
    """Errors that differ by run, method and setting, in the shape in which parts are measured."""
    if part.setting is None:
        return {"name": "twins"}
    methods = part.setting.methods if part.task != "beyond" else part.setting.beyond
    base = 0.1 * (part.setting.epsilon or 0)
    if part.task == "path":
        stops = {method: {"iterations": [7] * part.count, "tv": [0.25] * part.count} for method in methods}
        return {"updates": [1], "tv": [[0.5]] * part.count, "stops": stops}
    rows = [
        {**dict.fromkeys(ROW_COLUMNS), "run": run, "method": method, "tv": base + 0.01 * run + 0.001 * number}
        | {"emd": 12.5 + run if "emd" in part.setting.distances else None}
        for run in range(part.first, part.first + part.count)
        for number, method in enumerate(methods)
    ]
    return {"rows": rows, "shapes": {"truth": [1.0]}}


def small_results(figures: tuple[Figure, ...], **other: Any) -> Results:
    place = Place(Grid(2, 2), [3, 0, 1, 2], name="little town", source="town.csv", synthetic=False, sha256="ab" * 32)  # type: ignore[arg-type]
    documents = {part: document(part) for figure in figures for part in parts_of(figure)}
    return replace(Results(place=place, seed=17, quick=False, documents=documents), **other)


def small_findings(figures: tuple[Figure, ...]) -> tuple[Finding, ...]:
    verdicts = list(VERDICTS)
    return tuple(
        Finding(
            Claim(
                f"c{number}",
                figure.name,
                WHERE[number == 2],
                f"EM is closer in {figure.name}.",
                "compare",
                Parameters(),
            ),
            verdicts[number % len(verdicts)],
            f"Median 0.02{number} (0.01 to 0.03).",
            (("at epsilon 1", f"p = 0.00{number}"),) * (number % 3),
        )
        for number, figure in enumerate(figures)
    )


def filled(folder: Path, figures: tuple[Figure, ...], results: Results) -> None:
    """Write what stands beside the page, as small as it may be."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    width, height = 1150, 400
    rows = zlib.compress(bytes((width // 8 + 2) * height), 9)
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    picture = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    for name in ("figures", "runs"):
        (folder / name).mkdir(parents=True)
    (folder / "summary.json").write_text("{}")
    for figure in figures:
        (folder / "figures" / f"{figure.name}.png").write_bytes(picture)
        (folder / "figures" / f"{figure.name}.svg").write_text("<svg/>")
        for _, file in figure.tables:
            (folder / "runs" / file).write_text("")


class Read(HTMLParser):
    """Tags that open and close, ids, addresses, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        given = dict(attrs)
        self.ids += [given["id"] or ""] if "id" in given else []
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src")]
        self.images += [given] if tag == "img" else []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, f"</{tag}> closes <{self.open[-1]}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.text += data


FIGURES = small_figures()
RESULTS = small_results(FIGURES)
FINDINGS = small_findings(FIGURES)


# -- what is on the page -----------------------------------------------------------------------------------


def test_tags_are_balanced_and_every_link_leads_somewhere(tmp_path: Path) -> None:
    filled(tmp_path, FIGURES, RESULTS)
    read = Read(gallery_html(FIGURES, FINDINGS, RESULTS))
    assert read.open == []
    assert read.tags.count("h1") == 1
    assert len(set(read.ids)) == len(read.ids)
    for address in read.addresses:
        if address.startswith("#"):
            assert address[1:] in read.ids
        elif address != "data:,":
            assert (tmp_path / unquote(address)).is_file(), address
    wanted = {f"figures/{figure.name}.{kind}" for figure in FIGURES for kind in ("png", "svg")}
    wanted |= {"summary.json", "runs/line.csv", "runs/line-answers.csv", "runs/guesses.csv", "runs/holes.csv"}
    assert wanted <= set(read.addresses)
    assert "runs/holes-answers.csv" not in read.addresses
    large = [image["alt"] or "" for image in read.images if image["alt"]]
    assert [figure for figure in FIGURES if not any(figure.title in said for said in large)] == []


def test_an_unbalanced_page_is_noticed() -> None:
    with pytest.raises(AssertionError, match="closes"):
        Read("<p><b>text</p></b>")


def test_claims_verdicts_data_and_seed_are_said() -> None:
    text = gallery_html(FIGURES, FINDINGS, RESULTS)
    read = Read(text)
    for finding in FINDINGS:
        assert read.text.count(finding.claim.says) == 2  # in the table, and beside the figure
        assert finding.measured in read.text
        assert all(name in read.text and said in read.text for name, said in finding.details)
    table = text[text.index('<table role="table"') : text.index('id="figures"')]
    for number, verdict in enumerate(VERDICTS):
        assert table.count(f'"badge {SHOWN_VERDICTS[verdict].style}"') == (2 if number == 0 else 1)
        assert verdict in Read(table[: table.index("</table>") + 8]).text
    for said in ("little town", "town.csv", "ab" * 32, "17", "5 runs of each setting"):
        assert said in read.text
    assert "exact maximum and auto on the first 2 runs only." in read.text


def test_verdicts_are_counted() -> None:
    text = gallery_html(FIGURES, FINDINGS, RESULTS)
    counts = Read(text[text.index("<fieldset") : text.index("</fieldset>") + 11]).text.split("\n")
    assert [line.split(" ")[0] for line in counts if line[:1].isdigit()] == ["5", "2", "1", "1", "1"]


def test_medians_are_those_of_the_columns() -> None:
    text = Read(gallery_html(FIGURES, FINDINGS, RESULTS)).text
    # Runs 0 to 4 of the first method at epsilon 1.0 have 0.10, 0.11, ... 0.14; of the exact maximum the first two.
    assert "the map: planar-geometric, epsilon 10.1200 0.1020 to 0.1380" in text
    assert "0.1050 0.1005 to 0.1095" in text
    assert "Earth mover's distance, in km, from the truth" in text
    assert "14.50 12.70 to 16.30" in text
    assert "Methodbinomial on 0..4: truncated-geometric, epsilon 0.1, 20 users" in text  # turned around
    assert "EM (delta 0.1) 3 runs" in text  # where its rule stops on the path
    assert "0.2500 0.2500 to 0.2500" in text


def test_banners_say_what_is_not_as_in_the_paper() -> None:
    plain = gallery_html(FIGURES, FINDINGS, RESULTS)
    quick = gallery_html(FIGURES, FINDINGS, replace(RESULTS, quick=True))
    invented = gallery_html(FIGURES, FINDINGS, replace(RESULTS, place=replace(RESULTS.place, synthetic=True)))
    assert ("Quick run." in plain, "Quick run." in quick, "Quick run." in invented) == (False, True, False)
    assert ("Synthetic data." in plain, "Synthetic data." in quick, "Synthetic data." in invented) == (
        False,
        False,
        True,
    )


@pytest.mark.parametrize("quick", [False, True])
def test_figures_without_runs_say_nothing_of_runs(quick: bool) -> None:
    figures = tuple(figure for figure in FIGURES if not figure.settings)
    assert len(figures) == 2
    findings = [finding for finding in FINDINGS if finding.claim.figure in {figure.name for figure in figures}]
    text = Read(gallery_html(figures, findings, replace(RESULTS, quick=quick))).text
    assert "0 runs" not in text
    assert "no repeated runs" in text
    assert ("Quick run." in text) == quick


def test_some_figures_are_not_taken_for_all_of_the_paper() -> None:
    some = gallery_html(FIGURES[:2], FINDINGS[:2], RESULTS)
    assert "All of the paper" not in some
    assert "Some figures only." in some
    assert f"2 of {len(figure_names())} figures" in some
    counts = Read(some[some.index("<fieldset") : some.index("</fieldset>") + 11]).text
    assert "All of them are claims of the paper." in counts
    everything = tuple(replace(figure, settings=(), kind="place") for figure in read_figures())
    assert "Some figures only." not in gallery_html(everything, (), small_results(()))


def test_claims_of_the_paper_and_ours_are_counted_apart() -> None:
    counts = gallery_html(FIGURES, FINDINGS, RESULTS)
    assert "4 claims of the paper, 1 of our own." in counts
    own = [finding for finding in FINDINGS if finding.claim.ours]
    assert "All of them are our own, none the paper's." in Read(gallery_html(FIGURES, own, RESULTS)).text
    assert "No claim belongs to these figures." in gallery_html(FIGURES, [], RESULTS)


def test_no_label_of_the_papers_source_is_shown() -> None:
    """Readers know figures and sections by their numbers; every label that our files name has one."""
    named = [claim.where for claim in read_claims()] + [figure.where for figure in read_figures()]
    assert [where for where in named if LATEX_LABEL.search(printed_place(where)) or "_" in printed_place(where)] == []
    text = Read(gallery_html(FIGURES, FINDINGS, RESULTS)).text
    assert "Figure 10(a)" in text
    assert "In the paper: Section IX-A, and a comment." in text
    assert LATEX_LABEL.search(text) is None


def test_the_numbers_of_figures_and_sections_follow_the_paper() -> None:
    """Figures in the order in which our files show them; subfigures within their figure."""
    shown = [printed_place(figure.where) for figure in read_figures() if figure.where.startswith("fig:")]
    first = [int(re.findall(r"Figure (\d+)", where)[0]) for where in shown]
    assert len(first) > 8
    assert first == sorted(first)
    whole = {place for place in PRINTED_PLACES.values() if re.fullmatch(r"Figure \d+", place)}
    parts = {
        place.partition("(")[0] for place in PRINTED_PLACES.values() if place.startswith("Figure") and "(" in place
    }
    assert parts <= whole
    assert len(set(PRINTED_PLACES.values())) == len(PRINTED_PLACES)


def test_hostile_text_stays_text() -> None:
    figures = tuple(replace(figure, title=HOSTILE, shows=HOSTILE, where=f"fig:a, {HOSTILE}") for figure in FIGURES)
    figures = (replace(figures[0], name=HOSTILE), *figures[1:])
    findings = [
        Finding(
            Claim(HOSTILE, figures[0].name, HOSTILE, HOSTILE, "compare", Parameters()),
            "holds",
            HOSTILE,
            ((HOSTILE, HOSTILE),),
        ),
    ]
    place = replace(RESULTS.place, name=HOSTILE, source=HOSTILE, sha256=HOSTILE)
    text = gallery_html(figures, findings, replace(RESULTS, place=place))
    read = Read(text)
    assert read.open == []
    assert "script" not in read.tags
    assert "<script" not in text
    assert read.text.count(HOSTILE) > 10
    assert sum(HOSTILE in (image["alt"] or "") for image in read.images) == len(figures)  # whole, in attributes, too
    assert "figures/%3Cscript%3E" in text
    assert all(":" not in address for address in read.addresses if address != "data:,")


def test_the_same_bytes_each_time_and_nothing_from_outside() -> None:
    text = gallery_html(FIGURES, FINDINGS, RESULTS)
    assert text == gallery_html(small_figures(), small_findings(FIGURES), small_results(FIGURES))
    assert "http" not in text
    assert "url(" not in text
    assert "$" not in text


def test_every_figure_of_the_paper_has_a_section() -> None:
    """With nothing measured: figures and their descriptions alone."""
    figures = tuple(replace(figure, settings=(), kind="place") for figure in read_figures())
    text = gallery_html(figures, (), small_results(()))
    assert [name for name in figure_names() if f'<section class="figure" id="figure-{name}"' not in text] == []
    assert "No claim belongs to these figures." in text


# -- in a browser ------------------------------------------------------------------------------------------

needs_browser = pytest.mark.skipif(browsing.browser() is None, reason=browsing.MISSING)
LONG = "a long sentence with medians and ranges, 0.2238 (0.2101 to 0.2377) over 100 runs, and-words-with-hyphens; " * 3


@needs_browser
def test_a_browser_shows_the_page_well(tmp_path: Path) -> None:
    findings = tuple(replace(finding, measured=LONG, details=(("x" * 80, LONG),)) for finding in FINDINGS)
    filled(tmp_path, FIGURES, RESULTS)
    index = tmp_path / "index.html"
    index.write_text(gallery_html(FIGURES, findings, replace(RESULTS, quick=True)), encoding="utf-8")
    views = [
        browsing.View("laptop", index),
        browsing.View("folded", index, opened=False),
        browsing.View("phone", index, width=400),
        browsing.View("dark", index, dark=True),
    ]
    looks = browsing.look(views)
    assert {name: look.faults for name, look in looks.items()} == {view.name: [] for view in views}
    assert [looks[view.name].window_width for view in views] == [1280, 1280, 400, 1280]
    assert looks["laptop"].images == 3 * len(FIGURES)
    assert looks["laptop"].texts > looks["folded"].texts > 100  # it did look, and folded text was out of sight
    for look in looks.values():
        assert set(look.badges) == set(VERDICTS)
        assert all(ratio >= 4.5 for _, _, ratio in look.badges.values())
        assert len({colour for colour, _, _ in look.badges.values()}) == len(VERDICTS)
        assert len({mark for _, mark, _ in look.badges.values()}) == len(VERDICTS)


@needs_browser
def test_planted_faults_are_found(tmp_path: Path) -> None:
    """Each fault alone, on a page that has none otherwise."""
    planted = {
        "none": "",
        "wide": '<div style="width: 3000px">wide</div>',
        "missing": '<img src="missing.png" alt="">',
        "overlap": '<table><tr><td>one</td></tr></table><p style="margin-top: -20px">two</p>',
        "faint": '<p style="color: #999999">faint</p>',
        "folded": '<details><summary>more</summary><p style="color: #999999">faint</p></details>',
        "inside": '<div style="overflow-x: auto"><div style="width: 3000px">a box that scrolls</div></div>',
    }
    views = []
    for name, fault in planted.items():
        path = tmp_path / f"{name}.html"
        path.write_text(f"<!DOCTYPE html><html><body><h1>Fine</h1><p>Text.</p>{fault}</body></html>", encoding="utf-8")
        views.append(browsing.View(name, path, width=400, opened=name != "folded"))
    faults = {name: look.faults for name, look in browsing.look(views).items()}
    assert {name: len(found) for name, found in faults.items()} == {
        **dict.fromkeys(planted, 1),
        **dict.fromkeys(("none", "folded", "inside"), 0),
    }, json.dumps(faults)
    assert faults["missing"] == ["broken picture missing.png"]
    assert faults["overlap"] == ["'one' overlaps 'two'"]
    assert faults["faint"] == ["'faint' has contrast 2.85"]
    assert faults["wide"][0].endswith("in a window of 400 px")
