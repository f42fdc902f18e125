"""Labels that attack, wherever the report shows one: nothing runs, nothing is built, nothing is hidden."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import hubbub as hb
import pages
from browser import Visit, visiting
from hubbub.rendering import Fact, from_spreadsheet_safe, spreadsheet_safe
from hubbub.reporting import html_page, html_templates
from hubbub.reporting.html_page import page_scripts, render_page
from hubbub.reporting.page_values import Bounds, Page, Verdict
from hubbub.reporting.visible_text import visible, visible_lines
from labels import HOSTILE

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FORMULA = re.compile(r"[\s\x00-\x1f\x7f-\xa0\u200b\ufeff\u3000]*[=+\-@＝＋－＠]")


def attacked(labels: tuple[str, ...]) -> Page:
    """Return a page with each label as a value, part, verdict, fact, note and file, and one of them everywhere else."""
    many = len(labels)
    page = pages.page_of(hb.Categories(labels), 1.0 / np.arange(1.0, many + 1), epsilon=6.0, bounds=True)
    page = pages.divided(page, list(range(many)))
    first, second = labels[0], labels[-1]
    unknown = np.full(many, np.nan)
    return replace(
        page,
        title=second + first,
        summary=" ".join(labels),
        method=first,
        noisy_note=" ".join(labels),
        sets=Bounds(unknown, unknown, " ".join(labels)),
        verdicts=tuple(Verdict(label, label, label, label) for label in labels),
        facts=tuple(Fact(label, label) for label in labels),
        notes=labels,
        texts=dict.fromkeys(labels, "nothing"),
    )


def harmless(many: int) -> tuple[str, ...]:
    return tuple(f"value {number}" for number in range(many))


def attacks(visit: Visit, plain: Visit) -> list[str]:
    """Return what labels have managed to do: to run, to build something, to reach out."""
    found = [f"ran: {what}" for what in visit.executed()]
    found += [f"said: {what}" for what in visit.said] + [f"asked for: {what}" for what in visit.asked]
    built, expected = visit.built("html"), plain.built("html")
    found += [f"built: {what}" for what in (built - expected) + (expected - built)]
    return found + [f"drawn: {what}" for what in visit.drawn() - plain.drawn()]


def file_of(folder: Path, text: str, name: str = "page.html") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def used(visit: Visit) -> None:
    """Do what a reader may do: let all of the table, the chart and the readouts show their labels."""
    visit.tab.evaluate("document.querySelector('#views [value=parts]').click()")
    visit.settled()
    # All at once, because that is one drawing: drawing so many bars takes a while.
    visit.tab.evaluate(
        """() => { const [more, walk, invert] = ['more', 'walk', 'invert'].map((id) => document.getElementById(id));
        document.querySelector('#views [value=values]').click();
        for (let click = 0; click < 4; click++) more.click();
        walk.focus(); walk.value = '1'; walk.dispatchEvent(new Event('input'));
        walk.dispatchEvent(new KeyboardEvent('keydown', {key: ' '})); invert.click(); }"""
    )
    visit.settled()
    visit.one("#compared").scroll_into_view_if_needed()
    visit.tab.wait_for_selector("#compared .main-svg", state="attached")
    visit.settled()


def test_there_are_many_kinds_of_attacks() -> None:
    assert len(set(HOSTILE)) == len(HOSTILE) >= 60


@pytest.mark.parametrize(
    "labels", [HOSTILE[::4], pytest.param(HOSTILE, marks=pytest.mark.slow)], ids=["some of each kind", "all"]
)
def test_nothing_runs_and_nothing_is_built(chromium: Browser, tmp_path: Path, labels: tuple[str, ...]) -> None:
    """The page has the same elements, with the same attributes, as one with harmless labels; its files are safe."""
    page = attacked(labels)
    hostile = file_of(tmp_path, render_page(page))
    plain = file_of(tmp_path, render_page(attacked(harmless(len(labels)))), "plain.html")
    with visiting(chromium, hostile) as visit, visiting(chromium, plain) as other:
        for each in (visit, other):
            used(each)
        assert attacks(visit, other) == []
        expected = [visible(label) for label in labels]
        drawn = visit.each("#chart .ytick text")
        order = np.argsort(-page.estimate, kind="stable")
        for tick, place in zip(drawn, order, strict=False):
            said = expected[place] if len(expected[place]) <= 34 else expected[place][:33] + "…"
            assert " ".join(tick.split()) == " ".join(said.split())
        assert len(drawn) == min(len(labels), 150)
        found: list[str] = []
        for _ in range(4):
            found += visit.each("#rows bdi")
            if visit.tab.locator("#next").is_enabled():
                visit.tab.locator("#next").click()
        assert Counter(expected) == Counter(found[: len(expected)])
        assert visit.each(".parts tbody bdi") == [*expected[:-1], visible(f"rest: {labels[-1]}")]
        for selector in (".card h3", ".card .answer", ".facts dt", "#files bdi"):
            assert visit.each(selector) == expected
        for selector in (".card .said", ".facts dd", ".notes li"):
            assert visit.each(selector) == [visible_lines(label) for label in labels]
        text = visit.text("header") + visit.text("main")
        hidden = re.findall("[\u202a-\u202e\u2066-\u2069\u200b\u200e\u200f\\x00-\\x08\ufeff]", text)
        assert hidden == []
        check_downloads(visit, page, labels, tmp_path)


def check_downloads(visit: Visit, page: Page, labels: tuple[str, ...], folder: Path) -> None:
    """No spreadsheet takes a value for a formula; every value can be read back; names of files are plain."""
    name, content = visit.saved("#csv", folder)
    assert re.fullmatch(r"[A-Za-z0-9._-]+\.csv", name)
    rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))[1:]
    assert len(rows) == len(labels)
    guarded = 0
    for row, label in zip(rows, labels, strict=True):
        encoded = label.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        assert row[0] == spreadsheet_safe(encoded)  # the page's script and Python guard the same texts
        assert from_spreadsheet_safe(row[0]) == encoded
        assert not FORMULA.match(row[0])
        assert row[0][:1] not in "\t\r\n"
        guarded += row[0] == "'" + encoded
    assert guarded >= len(labels) / 7
    assert sum(row[0].startswith("'") for row in rows) <= guarded + 3  # nothing else was touched
    assert [float(row[1]) for row in rows] == page.estimate.tolist()
    for number in (3, 4, len(labels)):
        name, _ = visit.saved(f"#files button:nth-of-type({number})", folder)
        assert re.fullmatch(r"[A-Za-z0-9._-]{1,80}", name)


@pytest.mark.slow
def test_the_words_alone_without_a_policy(chromium: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each label alone as title, summary, method and note: the HTML itself is safe, with no policy to help it."""
    monkeypatch.setattr(html_page, "page_scripts", lambda: html_page.Scripts("", "", ""))
    base = pages.two()
    found = {}
    with visiting(chromium, file_of(tmp_path, "<html class=ready></html>")) as visit:
        for label in ("nothing", *HOSTILE):
            page = replace(
                base, title=label, summary=label, method=label, noisy_note=label, texts={label: label},
                verdicts=(Verdict(label, label, label, label),), facts=(Fact(label, label),), notes=(label,),
            )  # fmt: skip
            text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", render_page(page))
            visit.tab.set_content(text, wait_until="domcontentloaded")
            assert visit.executed() == [], label
            assert visit.text("h1") == visible(label)
            assert visit.tab.title() == re.sub(" +", " ", visible(label)).strip(" ")
            found[label] = visit.built("html")
    assert all(built == found["nothing"] for built in found.values())


# -- the tests themselves ----------------------------------------------------------------------------------


FAULTS = {
    "a label as HTML in the table": (
        'const isolated = (text) => element("bdi", null, text);',
        'const isolated = (text) => { const made = element("bdi"); made.innerHTML = text; return made; };',
    ),
    "a label for plotly as it is": (
        "const plain = (text) =>",
        "const plain = (text) => text; const unused = (text) =>",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_scripts_is_caught(
    chromium: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    labels = (*HOSTILE[:12], '<a href="javascript:planted(2)">click</a>')
    plain = file_of(tmp_path, render_page(attacked(harmless(len(labels)))), "plain.html")
    scripts, (right, wrong) = page_scripts(), FAULTS[fault]
    assert right in scripts.program
    faulty_scripts = scripts._replace(program=scripts.program.replace(right, wrong))
    monkeypatch.setattr(html_page, "page_scripts", lambda: faulty_scripts)
    faulty = file_of(tmp_path, render_page(attacked(labels)))
    with visiting(chromium, plain) as other, visiting(chromium, faulty, clean=False) as visit:
        for each in (visit, other):
            used(each)
        found = attacks(visit, other)
        assert any(what.startswith(("built", "drawn")) for what in found)
        assert not any(what.startswith("ran") for what in found)  # for that there is the policy


@pytest.mark.slow
def test_a_fault_in_the_html_is_caught(chromium: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A verdict that is put in as it is: with the policy nothing runs but something is built; without it, it runs."""
    plain = file_of(tmp_path, render_page(attacked(harmless(14))), "plain.html")
    unescaped = html_templates.environment("hubbub.reporting").overlay(autoescape=False)
    monkeypatch.setattr(html_templates, "environment", lambda _: unescaped)
    text = render_page(attacked(HOSTILE[:14]))
    free = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    with visiting(chromium, plain) as other:
        for name, faulty in (("held", text), ("free", free)):
            with visiting(chromium, file_of(tmp_path, faulty, f"{name}.html"), clean=False) as visit:
                found = attacks(visit, other)
                assert any(what.startswith("built") for what in found)
                assert any(what.startswith("ran") for what in found) == (name == "free")


def test_the_policy_holds(chromium: Browser, tmp_path: Path) -> None:
    """A script that is put into the file does not run, nor one that is made later, nor a text that is evaluated.

    Without the policy's help, the unit of a map stays text: it is the one text besides labels that plotly is given.
    """
    unit = "<a href=x>&lt;i</a>$"  # a tag, an entity, and TeX
    text = render_page(replace(pages.page_of(hb.Grid(3, 2, unit=unit), np.ones(6)), noisy=None))
    assert '<head>\n<meta http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;;' in text
    assert "unsafe-eval" not in text.partition("<style>")[0]
    more = "<script>planted('put in')</script><img src=x onerror=planted(2)></main>"
    path = file_of(tmp_path, text.replace("</main>", more))
    with visiting(chromium, path, clean=False) as visit:
        assert len(visit.said) >= 2
        assert all("Content Security Policy" in what for what in visit.said)
        assert visit.text("#chart .xtitle") == f"east ({unit})"
        assert visit.tab.locator("#chart a").count() == 0
        made = "Object.assign(document.createElement('script'), {textContent: 'planted(4)'})"
        visit.tab.evaluate(f"document.body.append({made})")
        blocked = """async () => { try { await new Promise((done, fail) => {
            addEventListener('securitypolicyviolation', (event) => done(event.effectiveDirective), {once: true});
            fetch('https://example.invalid/').catch(() => 0); setTimeout(fail, 5000); });
            return 'blocked'; } catch { return 'open'; } }"""
        assert visit.tab.evaluate(blocked) == "blocked"
        evaluated = """() => new Promise((done) => setTimeout(() => {
            try { (0, eval)("planted('evaluated')"); done('open'); } catch (error) { done(error.name); } }, 0))"""
        assert visit.tab.evaluate(evaluated) == "EvalError"
        before = len(visit.said)
        visit.tab.evaluate("document.body.append(Object.assign(document.createElement('button'), {id: 'try'}))")
        visit.tab.evaluate("document.getElementById('try').setAttribute('onclick', 'planted(3)')")
        visit.tab.evaluate("document.getElementById('try').click()")
        assert len(visit.said) > before
        assert visit.executed() == []
