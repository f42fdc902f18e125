"""The question page in Chromium: what leaves it, once, and never the answer, whatever fails."""

from __future__ import annotations

import base64
import codecs
import html
import json
import math
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

import hubbub as hb
from collectors import RunningCollector
from hubbub.intake.privatizing.client_document import client_document
from hubbub.serve.access_tokens import TokenKey
from hubbub.serve.noise_words import UNKNOWABLE, noise_sentences
from node import SCRIPT, run_node
from studies import BASES, study_text

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Request, Route
    from playwright.sync_api import Page as Tab

ASSETS = Path(__file__).parent.parent / "src" / "hubbub" / "serve" / "assets"
PATIENCE = 60_000  # milliseconds, then something is broken: never a measure of the page
SECRET = "Zürich, geheime Gasse 7f3a"  # noqa: S105  # an answer that nothing else contains
PLACE = 17  # of the secret answer
LABELS = [f"Ort {place}" if place != PLACE else SECRET for place in range(40)]
TAIL = """[question]
text = "Where <b>do</b> you live?"
thanks = "Thank you, {name}."
[collector]
time = "none"
max_requests_per_minute = 1000000
"""
RAPPOR = f"""version = 1
name = "places"
[domain]
kind = "categories"
labels = {json.dumps(LABELS)}
[mechanisms.bits]
kind = "rappor"
epsilon = 2.0
{TAIL}"""
COIN = f"""version = 1
[domain]
kind = "categories"
labels = ["tea", "coffee", "water"]
[mechanisms.answer]
kind = "randomized-response"
epsilon = 1.0
{TAIL}"""


@contextmanager
def collecting(folder: Path, name: str, text: str, **keywords: Any) -> Iterator[RunningCollector]:
    """Run a collector with the pages of a study."""
    study = folder / f"{name}.toml"
    study.write_text(text)
    running = RunningCollector(study, f"sqlite:///{folder}/{name}.db", client_study=client_document(study), **keywords)
    try:
        yield running
    finally:
        assert running.stop() == 0


def stored(folder: Path, name: str) -> list[dict[str, Any]]:
    with sqlite3.connect(folder / f"{name}.db") as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute("SELECT * FROM reports ORDER BY number")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("question")


@pytest.fixture(scope="module")
def places(folder: Path) -> Iterator[RunningCollector]:
    with collecting(folder, "places", RAPPOR) as running:
        yield running


@pytest.fixture(scope="module")
def drinks(folder: Path) -> Iterator[RunningCollector]:
    with collecting(folder, "drinks", COIN) as running:
        yield running


@dataclass
class Recorded:
    """All that a browser sent, and said, while a page was open."""

    tab: Tab
    sent: list[bytes] = field(default_factory=list)
    posts: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def note(self, request: Request) -> None:
        headers = "\n".join(f"{name}: {text}" for name, text in request.headers.items())
        body = request.post_data_buffer or b""
        self.sent.append(f"{request.method} {request.url}\n{headers}\n\n".encode() + body)
        if request.method != "GET":
            self.posts.append(body.decode())

    def shows(self, step: str) -> None:
        self.tab.wait_for_selector(f"#{step}:not([hidden])", timeout=PATIENCE)


@contextmanager
def opened(
    browser: Browser, url: str, prepare: Callable[[BrowserContext], object] = lambda _: None, **settings: Any
) -> Iterator[Recorded]:
    """Open a page in a browser of its own, with every request on record."""
    context = browser.new_context(**{"viewport": {"width": 390, "height": 844}, **settings})
    context.set_default_timeout(PATIENCE)
    prepare(context)
    try:
        recorded = Recorded(context.new_page())
        context.on("request", recorded.note)
        recorded.tab.on("console", lambda message: recorded.said.append(message.text))
        recorded.tab.on("pageerror", lambda error: recorded.said.append(str(error)))
        recorded.tab.goto(url)
        yield recorded
    finally:
        context.close()


# -- the answer stays -----------------------------------------------------------------------------------


def spellings(text: str) -> set[bytes]:
    """Return a text in every encoding that might carry it."""
    found = {text, text.lower(), text.upper(), quote(text), quote(text, safe=""), quote_plus(text), html.escape(text)}
    found |= {json.dumps(text)[1:-1], text[::-1], codecs.encode(text, "rot13"), text.encode("punycode").decode()}
    spelt = {each.encode() for each in found}
    for raw in (text.encode(), text.encode("utf-16-le"), text.encode("latin-1")):
        spelt |= {raw, raw.hex().encode(), raw.hex().upper().encode(), b",".join(b"%d" % byte for byte in raw)}
        for shift in range(3):  # base64 depends on where in a text it begins
            inner = base64.b64encode(b"\0" * shift + raw)[4 if shift else 0 : -4]
            spelt |= {inner, inner.replace(b"+", b"-").replace(b"/", b"_")}
    return spelt


def leaks(recorded: Recorded) -> list[bytes]:
    """Return the requests in which the secret answer can be found, by its label, a part of it, or its position."""
    wanted = spellings(SECRET) | spellings("geheime Gasse")
    found = [sent for sent in recorded.sent if any(each.lower() in sent.lower() for each in wanted)]
    for sent in recorded.sent:
        head, _, body = sent.partition(b"\n\n")
        query = head.partition(b"\n")[0].partition(b"?")[2]
        if str(PLACE).encode() in query or (body and not is_report(body)):
            found.append(sent)
    return found


def is_report(body: bytes) -> bool:
    """Whether a body holds one row of 40 bits with its key, and nothing besides."""
    document = json.loads(body)
    if set(document) != {"fingerprint", "reports"} or len(document["reports"]) != 1:
        return False
    (report,) = document["reports"]
    lengths = {name: len(text) for name, text in report.items()}
    return lengths == {"mechanism": len("bits"), "output": len("0x") + 10, "key": 32}


def find_secret(recorded: Recorded) -> None:
    recorded.tab.locator("input.search").press_sequentially("geheim")
    recorded.tab.locator("input.search").press("Enter")
    recorded.tab.locator(".option").click()
    recorded.tab.locator(".option input").press("Enter")


def answer(recorded: Recorded, find: Callable[[Recorded], None] = find_secret) -> None:
    """Answer as a person does: choose, look at examples, draw, send."""
    recorded.shows("choose")
    find(recorded)
    recorded.tab.locator("#example").click()
    recorded.tab.wait_for_selector("#examples li")
    recorded.tab.locator("#draw").click()
    recorded.shows("drawn")
    recorded.tab.locator("#send").click()
    recorded.shows("done")


BLOCKED = """Object.defineProperty(window, "localStorage", {
  get() { throw new DOMException("blocked", "SecurityError"); },
});"""
FORGETFUL = "Storage.prototype.setItem = () => {};"
BROKEN_SEND = """const own = window.fetch;
window.fetch = (address, options) => (options?.body ? Promise.reject(new Error(options.body)) : own(address, options));
"""
NO_RANDOMNESS = "crypto.getRandomValues = () => { throw new Error('none'); };"


def tampered(route: Route) -> None:
    document = route.fetch().json()
    document["mechanisms"]["bits"]["own"] = "1"  # another law, under the old digest
    route.fulfill(json=document)


def resigned(route: Route) -> None:
    """A document that is whole, but of another study than the page was made for."""
    from hubbub.client import digest_of

    document = route.fetch().json()
    document["mechanisms"]["bits"]["own"] = "ffff"
    del document["digest"]
    route.fulfill(json={**document, "digest": digest_of(document)})


def aborts(pattern: str) -> Callable[[BrowserContext], object]:
    return lambda context: context.route(pattern, lambda route: route.abort())


UNUSABLE: dict[str, tuple[Callable[[BrowserContext], object], str]] = {
    "no script": (aborts("**/question.js"), "starting"),
    "no client": (aborts("**/hubbub-client.js"), "starting"),
    "no controls": (aborts("**/answer-controls.js"), "starting"),
    "no study": (aborts("**/study.json"), "problem"),
    "study that is not there": (
        lambda context: context.route("**/study.json", lambda r: r.fulfill(status=500)),
        "problem",
    ),
    "half a study": (
        lambda context: context.route("**/study.json", lambda r: r.fulfill(body='{"version": 1')),
        "problem",
    ),
    "damaged study": (lambda context: context.route("**/study.json", tampered), "problem"),
    "another study": (lambda context: context.route("**/study.json", resigned), "problem"),
}


TOLD = {
    "half a study": "The study cannot be used.",
    "damaged study": "The study is damaged.",
    "another study": "This is another study than the page expects.",
}
QUICK_FAULTS = ("no script", "another study")


@pytest.mark.parametrize(
    "fault", [pytest.param(fault, marks=() if fault in QUICK_FAULTS else pytest.mark.slow) for fault in UNUSABLE]
)
def test_a_page_that_fails_has_nothing_to_answer_in(chromium: Browser, places: RunningCollector, fault: str) -> None:
    prepare, step = UNUSABLE[fault]
    with opened(chromium, places.url, prepare) as recorded:
        recorded.shows(step)
        recorded.tab.wait_for_timeout(100)
        assert recorded.tab.locator("#control *").count() == 0
        for hidden in ("choose", "drawn", "done"):
            assert not recorded.tab.locator(f"#{hidden}").is_visible()
        assert recorded.posts == []
        if step == "problem":
            told = recorded.tab.locator("#problem p").first.inner_text()
            assert told.endswith("Nothing was sent.")
            assert told.startswith(TOLD.get(fault, "The study could not be loaded."))


def test_without_scripts_the_page_says_so_and_sends_nothing(chromium: Browser, places: RunningCollector) -> None:
    with opened(chromium, places.url, java_script_enabled=False) as recorded:
        assert "Scripts are switched off" in recorded.tab.content()
        assert recorded.tab.locator("#starting").is_hidden()  # no moment to wait for
        assert recorded.tab.locator("input:visible, form, [name]:not(meta)").count() == 0
        assert recorded.posts == []


def test_the_answer_never_leaves_the_page(chromium: Browser, places: RunningCollector, folder: Path) -> None:
    """What leaves is a row of noisy bits, shown before and after it is sent, byte by byte."""
    before = len(stored(folder, "places"))
    with opened(chromium, places.url) as recorded:
        tab = recorded.tab
        answer(recorded)
        assert recorded.posts == [tab.locator("#sent-bytes").text_content()]
        assert tab.locator("h1").inner_text() == "Where <b>do</b> you live?"
        kept = tab.evaluate("JSON.stringify(localStorage)")
        assert not any(spelling in kept.encode() for spelling in spellings(SECRET))
        (name,) = json.loads(kept)
        assert json.loads(json.loads(kept)[name]) == {"drawn": None, "sent": 1}
        assert tab.locator("[name]:not(meta), form").count() == 0
        assert tab.locator("#control *").count() == 0
        assert tab.url == f"{places.url}/"
        assert tab.evaluate("history.length") == 2  # the empty page, and this one
        assert tab.context.cookies() == []
        assert leaks(recorded) == []
        assert recorded.said == []
    (report,) = json.loads(recorded.posts[0])["reports"]
    (row,) = stored(folder, "places")[before:]
    assert (row["output"], row["key"]) == (report["output"], report["key"])


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "script",
    [
        pytest.param(BLOCKED, id="storage"),
        pytest.param(FORGETFUL, id="storage that keeps nothing"),
        pytest.param(BROKEN_SEND, id="sending", marks=pytest.mark.slow),
        pytest.param(NO_RANDOMNESS, id="randomness"),
    ],
)
def test_the_answer_stays_where_something_fails(chromium: Browser, places: RunningCollector, script: str) -> None:
    with opened(chromium, places.url, lambda context: context.add_init_script(script)) as recorded:
        tab = recorded.tab
        recorded.shows("choose")
        find_secret(recorded)
        tab.locator("#draw").click()
        if script == NO_RANDOMNESS:
            recorded.shows("problem")
            assert recorded.posts == []
        else:
            recorded.shows("drawn")
            assert tab.locator("#forgetful").is_visible() is (script != BROKEN_SEND)
            tab.locator("#send").click()
            if script != BROKEN_SEND:
                recorded.shows("done")
            else:
                expect(tab.locator("#sending")).to_contain_text("again", timeout=PATIENCE)
        assert leaks(recorded) == []
        assert not any(SECRET in said for said in recorded.said)


PLANTED = {
    "in the address": "fetch(`study.json?${btoa(unescape(encodeURIComponent(JSON.stringify([value]))))}`)",
    "as its position": "fetch(`study.json?at=${session.domain.labels.indexOf(value)}`)",
    "in a header": 'fetch("study.json", { headers: { "x-note": encodeURIComponent(value) } })',
    "in another request": 'fetch("reports", { method: "POST", body: JSON.stringify({ reports: [], note: 1 }) })',
    "as codes": 'fetch("study.json?" + [...new TextEncoder().encode(value)].join(","))',
}


QUICK_LEAKS = ("in the address",)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK_LEAKS else pytest.mark.slow) for name in PLANTED]
)
def test_planted_leaks_are_found(chromium: Browser, places: RunningCollector, name: str) -> None:
    """The search above can fail: scripts that send the answer along, each in its way."""

    def plant(route: Route) -> None:
        text = (ASSETS / "question.js").read_text()
        changed = text.replace(
            "client.report(value, { mechanism }))", f"({PLANTED[name]}, client.report(value, {{ mechanism }})))"
        )
        assert changed != text
        route.fulfill(body=changed, content_type="text/javascript")

    with opened(chromium, places.url, lambda context: context.route("**/question.js", plant)) as recorded:
        recorded.shows("choose")
        find_secret(recorded)
        recorded.tab.locator("#draw").click()
        recorded.shows("drawn")
        recorded.tab.wait_for_timeout(100)
        assert leaks(recorded)


# -- once -------------------------------------------------------------------------------------------------


def find_tea(recorded: Recorded) -> None:
    recorded.tab.locator(".option", has_text="tea").click()


def test_a_lost_confirmation_does_not_make_a_second_report(
    chromium: Browser, drinks: RunningCollector, folder: Path
) -> None:
    """The first answer of the collector is lost on its way: the report is stored, and sent again with its key."""
    before = len(stored(folder, "drinks"))
    lost: list[object] = []

    def lose_first(route: Route) -> None:
        answer = route.fetch()
        if lost:
            route.fulfill(response=answer)
        else:
            lost.append(answer.json())
            route.abort()

    with opened(chromium, drinks.url, lambda context: context.route("**/reports", lose_first)) as recorded:
        answer(recorded, find_tea)
        assert lost == [{"accepted": 1, "repeated": 0}]
        assert "stored your report already" in recorded.tab.locator("#confirmed").inner_text()
        first, second = recorded.posts
        assert first == second
    assert len(stored(folder, "drinks")) == before + 1


def test_nobody_can_draw_again(chromium: Browser, drinks: RunningCollector, folder: Path) -> None:
    """Not by loading the page anew, not in another tab; and a page that has answered says so."""
    before = len(stored(folder, "drinks"))
    with opened(chromium, drinks.url) as recorded:
        tab = recorded.tab
        recorded.shows("choose")
        other = tab.context.new_page()
        other.goto(drinks.url)
        other.locator(".option", has_text="water").click()
        find_tea(recorded)
        tab.locator("#draw").click()
        recorded.shows("drawn")
        drawn = tab.locator("#bytes").text_content()
        assert tab.locator("#choose").is_hidden()
        tab.reload()
        recorded.shows("drawn")
        assert tab.locator("#earlier").is_visible()
        other.locator("#draw").click()
        assert [tab.locator("#bytes").text_content(), other.locator("#bytes").text_content()] == [drawn, drawn]
        for page in (tab, other):
            page.locator("#send").click()
            page.wait_for_selector("#done:not([hidden])")
        assert recorded.posts == [drawn, drawn]
        tab.reload()
        recorded.shows("done")
        assert "An answer was sent from this browser" in tab.locator("#given").inner_text()
        assert tab.locator("#again").is_hidden()
        tab.locator("#other").click()
        recorded.shows("choose")
    assert len(stored(folder, "drinks")) == before + 1


def test_a_refusal_is_told_in_words(chromium: Browser, drinks: RunningCollector) -> None:
    refusal = {
        "accepted": 0,
        "errors": [{"what": "W", "where": "", "got": "", "expected": "E", "remedy": "do R", "code": ""}],
    }
    answers = lambda context: context.route("**/reports", lambda route: route.fulfill(status=422, json=refusal))  # noqa: E731
    with opened(chromium, drinks.url, answers) as recorded:
        recorded.shows("choose")
        recorded.tab.locator("#draw").click()
        assert recorded.tab.locator("#mistake").inner_text() == "Choose one of the answers."
        find_tea(recorded)
        recorded.tab.locator("#draw").click()
        recorded.tab.locator("#send").click()
        expect(recorded.tab.locator("#sending")).to_contain_text("Do R.", timeout=PATIENCE)
        assert len(recorded.posts) == 1  # the same answer would come again
        assert recorded.tab.locator("#send").is_enabled()


# -- kinds of answers ---------------------------------------------------------------------------------------


def choose_number(recorded: Recorded, number: str) -> None:
    recorded.tab.locator("input.number").first.fill(number)


def choose_coordinates(recorded: Recorded) -> None:
    for each, text in zip(recorded.tab.locator("input.number").all(), ("11.5", "20.5"), strict=True):
        each.fill(text)


def study(domain: str, mechanism: str, more: str = "") -> str:
    return f"version = 1\n{more}[domain]\n{domain}\n[mechanisms.m]\n{mechanism}\n{TAIL}"


def point_at_map(recorded: Recorded) -> None:
    canvas = recorded.tab.locator("canvas")
    box = canvas.bounding_box()
    assert box is not None
    canvas.click(position={"x": box["width"] * 0.55, "y": box["height"] * 0.1})
    assert recorded.tab.locator("input.number").first.input_value() == "3"


def by_keyboard(recorded: Recorded) -> None:
    tab = recorded.tab
    tab.locator(".option input").first.focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowUp", "ArrowUp", "ArrowUp"):  # around the end
        tab.keyboard.press(key)
    assert tab.locator(".option", has=tab.locator(":checked")).inner_text() == "7"
    assert tab.evaluate("document.activeElement.checked")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.id") == "example"


def both_attributes(recorded: Recorded) -> None:
    choose_number(recorded, "37")
    recorded.tab.locator("#draw").click()
    assert recorded.tab.locator("#mistake").inner_text() == "sex: Choose one of the answers."
    recorded.tab.locator(".option", has_text="other").click()


def by_slider(recorded: Recorded) -> None:
    slider = recorded.tab.locator("input[type=range]")
    assert "unset" in (slider.get_attribute("class") or "")
    choose_number(recorded, "17")
    recorded.tab.locator("#draw").click()
    assert recorded.tab.locator("#mistake").inner_text() == "Enter a whole number from 18 to 99."
    slider.focus()
    slider.press("Home")
    slider.press("ArrowRight")
    assert recorded.tab.locator("input.number").input_value() == "19"


PRODUCT = """kind = "product"
[domain.attributes.age]
kind = "integers"
low = 18
high = 99
[domain.attributes.sex]
kind = "categories"
labels = ["f", "m", "other"]"""
# Laws that keep the answer but for one time in a million million, so that what is stored shows what was chosen.
SURE = "kind = 'krr'\nepsilon = 40"
KINDS: dict[str, tuple[str, Callable[[Recorded], None], dict[str, str], str]] = {
    "few numbers": (study("kind = 'integers'\nlow = 0\nhigh = 7", SURE), by_keyboard, {"output": "7"}, "7"),
    "many numbers": (study("kind = 'integers'\nlow = 18\nhigh = 99", SURE), by_slider, {"output": "19"}, "19"),
    "bins": (
        study("kind = 'bins'\nedges = [0, 500, 1000.5]", SURE),
        lambda recorded: recorded.tab.locator(".option").nth(1).click(),
        {"output": "1"},
        "500 to 1000.5",
    ),
    "many bins": (
        study(f"kind = 'bins'\nedges = {list(range(0, 300, 10))}", SURE),
        lambda recorded: choose_number(recorded, "290"),
        {"output": "28"},
        "280 to 290",
    ),
    "cells": (
        study("kind = 'grid'\ncolumns = 4\nrows = 2\ncell = 1.0\ncells = [0, 1, 2, 4, 5, 6]", SURE),
        point_at_map,
        {"output": "6"},
        "column 3 from the west, row 2 from the south",
    ),
    "map": (
        study("kind = 'grid'\nsouth = 10\nnorth = 12\nwest = 20\neast = 22\ncolumns = 2\nrows = 2", SURE),
        choose_coordinates,
        {"output": "2"},
        "around 11.5000, 20.5000",
    ),
    "attributes": (
        study(PRODUCT, "kind = 'split'\n[mechanisms.m.parts.age]\n" + SURE + "\n[mechanisms.m.parts.sex]\n" + SURE),
        both_attributes,
        {"output.age": "37", "output.sex": "other"},
        "age: 37\nsex: other",
    ),
    "bits": (
        study(
            "kind = 'categories'\nlabels = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i']", "kind = 'oue'\nepsilon = 60"
        ),
        lambda recorded: recorded.tab.locator(".option").nth(8).click(),
        {},
        "possible answers",
    ),
    "buckets": (
        study("kind = 'categories'\nlabels = ['a', 'b']", "kind = 'blh'\nepsilon = 1"),
        lambda recorded: recorded.tab.locator(".option").nth(1).click(),
        {},
        " of 2, dealt by chance",
    ),
}
QUICK = ("few numbers", "attributes")


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind in QUICK else pytest.mark.slow) for kind in KINDS]
)
def test_each_kind_of_answer_can_be_given(chromium: Browser, tmp_path: Path, kind: str) -> None:
    """By a control that suits it, on a phone, readable in light and dark, and for those who hear the page."""
    text, find, expected, words = KINDS[kind]
    with collecting(tmp_path, "kind", text) as running:
        dark = "dark" if list(KINDS).index(kind) % 2 else "light"
        with opened(chromium, running.url, color_scheme=dark) as recorded:
            tab = recorded.tab
            recorded.shows("choose")
            find(recorded)
            tab.locator("#example").click()
            tab.wait_for_selector("#examples li")
            for step, button in (("choose", "#draw"), ("drawn", "#send"), ("done", None)):
                recorded.shows(step)
                found = Axe().run(tab)
                assert found.violations_count == 0, found.generate_report()
                assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
                if button:
                    tab.locator(button).click()
            assert words in tab.locator("#sent-again").inner_text()
            assert recorded.said == []
        (row,) = stored(tmp_path, "kind")
        assert {name: row[name] for name in expected} == expected


# -- tokens, memory, frames -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_tokens_come_behind_the_hash_of_the_link(chromium: Browser, tmp_path: Path) -> None:
    """Or are asked for; they travel with the report alone, and the study's limit holds."""
    text = COIN.replace("version = 1", "version = 1\nmax_reports_per_user = 1").replace(
        "[collector]", '[collector]\naccess = "tokens"'
    )
    (tmp_path / "guarded.toml").write_text(text)
    key = TokenKey.read_or_make(tmp_path / "key", hb.read_study(tmp_path / "guarded.toml").fingerprint)
    token, other = key.issue(), key.issue()
    with collecting(tmp_path, "guarded", text, tokens_key=tmp_path / "key") as running:
        with opened(chromium, f"{running.url}/#token={token}") as recorded:
            answer(recorded, find_tea)
            assert [sent for sent in recorded.sent if token.encode() in sent] == [recorded.sent[-1]]
            assert json.loads(recorded.posts[0])["reports"][0]["user"] == token
            kept = recorded.tab.evaluate("JSON.stringify(localStorage)")
            assert token not in kept
            recorded.tab.goto("about:blank")
            recorded.tab.goto(f"{running.url}/#token={other}")  # another person
            recorded.shows("choose")
        with opened(chromium, running.url) as recorded:  # the first person, in another browser
            recorded.shows("token")
            recorded.tab.locator("#token-field").fill(token)
            recorded.tab.locator("#token-next").click()
            recorded.shows("choose")
            find_tea(recorded)
            recorded.tab.locator("#draw").click()
            recorded.tab.locator("#send").click()
            expect(recorded.tab.locator("#sending")).to_contain_text(
                "all the reports that the study allows", timeout=PATIENCE
            )
    assert len(stored(tmp_path, "guarded")) == 1


LONGITUDINAL = COIN.replace(
    'kind = "randomized-response"\nepsilon = 1.0', 'kind = "longitudinal-rappor"\nepsilon = 60.0\nfirst = 1.0'
)


def test_repeated_reports_are_made_from_what_is_kept(chromium: Browser, tmp_path: Path) -> None:
    """Examples leave nothing behind; without a storage there is no report at all."""
    with collecting(tmp_path, "weekly", LONGITUDINAL) as running:
        with opened(chromium, running.url) as recorded:
            tab = recorded.tab
            recorded.shows("choose")
            find_tea(recorded)
            tab.locator("#example").click()
            tab.wait_for_selector("#examples li")
            assert tab.evaluate("Object.keys(localStorage).length") == 0
            tab.locator("#draw").click()
            tab.locator("#send").click()
            recorded.shows("done")
            assert tab.locator("#other").is_hidden()  # somebody else would have the same noise
            permanent = tab.evaluate("Object.values(localStorage).filter((text) => text.includes('0x'))")
            tab.locator("#again").click()
            answer(recorded, find_tea)
            assert tab.evaluate("Object.values(localStorage).filter((text) => text.includes('0x'))") == permanent
            assert len(permanent) == 1
        with opened(chromium, running.url, lambda context: context.add_init_script(BLOCKED)) as recorded:
            recorded.shows("problem")
            assert recorded.posts == []
    assert len(stored(tmp_path, "weekly")) == 2


@pytest.mark.slow
def test_people_with_tokens_share_no_noise_in_one_browser(chromium: Browser, tmp_path: Path) -> None:
    text = LONGITUDINAL.replace("[collector]", '[collector]\naccess = "tokens"')
    (tmp_path / "shared.toml").write_text(text)
    key = TokenKey.read_or_make(tmp_path / "key", hb.read_study(tmp_path / "shared.toml").fingerprint)
    with (
        collecting(tmp_path, "shared", text, tokens_key=tmp_path / "key") as running,
        opened(chromium, f"{running.url}/#token={key.issue()}") as recorded,
    ):
        answer(recorded, find_tea)
        recorded.tab.goto("about:blank")
        recorded.tab.goto(f"{running.url}/#token={key.issue()}")
        answer(recorded, find_tea)
        kept = recorded.tab.evaluate("Object.values(localStorage).filter((text) => text.includes('0x')).length")
        assert kept == 2  # a permanent response of each
    assert len(stored(tmp_path, "shared")) == 2


HOST = """<!DOCTYPE html><title>host</title><h1>A page of somebody else</h1>
<script type="module" src="{url}/embed.js" data-study data-height="700"></script>"""


@contextmanager
def hosting() -> Iterator[tuple[str, dict[str, str]]]:
    """Another site, whose pages are texts by their path."""
    pages: dict[str, str] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(pages.get(self.path, "").encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://localhost:{server.server_port}", pages
    finally:
        server.shutdown()
        server.server_close()


def test_other_sites_show_the_question_in_a_frame_that_they_cannot_read(chromium: Browser, tmp_path: Path) -> None:
    with hosting() as (named, pages), hosting() as (unnamed, others):
        text = COIN.replace("[collector]", f'[collector]\norigins = ["{named}"]')
        with collecting(tmp_path, "embedded", text) as running:
            pages["/"] = others["/"] = HOST.format(url=running.url)
            others["/frame"] = f'<iframe src="{running.url}/embedded"></iframe><iframe src="{running.url}/"></iframe>'
            with opened(chromium, named) as recorded:
                tab = recorded.tab
                frame = tab.frame_locator("iframe")
                frame.locator(".option", has_text="tea").click()
                script = "document.querySelector('iframe').contentDocument"
                assert tab.evaluate(f"{script} === null")  # scripts of the host reach nothing in it
                height = "document.querySelector('iframe').clientHeight"
                before = tab.evaluate(height)
                frame.locator("#draw").click()
                frame.locator("#send").click()
                frame.locator("#done").wait_for()
                assert tab.evaluate(height) == before == 700
                assert all(b"localhost" not in sent.partition(b"\n\n")[2] for sent in recorded.sent)
                assert not any(b"referer: http" in sent for sent in recorded.sent if b"/reports" in sent)
            with opened(chromium, unnamed) as recorded:
                recorded.tab.wait_for_timeout(300)
                assert recorded.tab.locator("iframe").count() == 0
                assert recorded.posts == []
                recorded.tab.goto(f"{unnamed}/frame")
                recorded.tab.wait_for_timeout(300)
                assert [frame.locator(".option").count() for frame in recorded.tab.frames] == [0, 0, 0]
    assert len(stored(tmp_path, "embedded")) == 1


# -- without a browser ----------------------------------------------------------------------------------------


def test_the_collector_serves_the_published_client() -> None:
    assert (ASSETS / "hubbub-client.js").read_bytes() == (SCRIPT / "hubbub-client.js").read_bytes()


def test_pages_have_strict_policies(places: RunningCollector) -> None:
    status, headers, content = places.ask("GET", "/")
    assert status == 200
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == policy["form-action"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == policy["style-src"] == "'self'"
    assert headers["referrer-policy"] == "no-referrer"
    text = content.decode()
    assert "<script>" not in text
    assert " style=" not in text
    assert not re.search(r"<[^>]* on[a-z]+=", text)
    assert "//" not in text.replace("<!DOCTYPE html>", "")  # nothing of another site
    status, headers, _ = places.ask("GET", "/embedded")
    assert "frame-ancestors 'none'" in headers["content-security-policy"]  # the study names no site
    for path in (
        "/assets/",
        "/assets/../api.py",
        "/assets/%2e%2e%2fapi.py",
        "/assets/reports.schema.json",
        "//",
        "/results",
    ):
        assert places.ask("GET", path)[0] == 404, path


def test_a_class_behind_one_address_can_open_the_page(tmp_path: Path) -> None:
    """Pages that never change do not count for the rate of an address; reports do."""
    with collecting(tmp_path, "class", COIN.replace("= 1000000", "= 5")) as running:
        for _ in range(20):
            assert running.ask("GET", "/")[0] == running.ask("GET", "/assets/question.js")[0] == 200
        assert [running.post(b"{}")[0] for _ in range(6)] == [422] * 5 + [429]


def test_without_a_question_there_is_no_page(tmp_path: Path) -> None:
    bare = COIN.partition("[question]")[0] + "[collector]\n"
    with collecting(tmp_path, "bare", bare) as running:
        assert [running.ask("GET", path)[0] for path in ("/", "/embedded", "/study.json")] == [404, 404, 200]


WORDS_IN_NODE = """
import { readFileSync } from "node:fs";
const [words, client, documents] = process.argv.slice(1);
const load = (path) => import(`data:text/javascript,${encodeURIComponent(readFileSync(path, "utf8"))}`);
const { outputWords } = await load(words);
const { Client } = await load(client);
for (const [name, { document, value }] of Object.entries(JSON.parse(readFileSync(documents, "utf8")))) {
  const own = await Client.from(document);
  for (const { name: mechanism } of own.mechanisms) {
    for (let draw = 0; draw < 20; draw++) {
      const told = outputWords(own.domain, document.mechanisms[mechanism], own.privatize(value, mechanism));
      const isFine = told.length && told.every((text) => text && !/undefined|NaN|null|object/.test(text));
      if (!isFine) throw new Error(`${name}, ${mechanism}: ${told}`);
    }
  }
}
"""


def test_every_study_is_told_in_words(tmp_path: Path) -> None:
    """What the noise means, and what an output says, for every kind of domain with every kind of mechanism."""
    documents = {}
    for name, (document, value) in BASES.items():
        path = tmp_path / "study.toml"
        path.write_text(study_text(document))
        for mechanism in hb.read_study(path).mechanisms.values():
            sentences = noise_sentences(mechanism)
            assert sentences, name
            assert not any(word in " ".join(sentences) for word in ("nan", "unknown", "None")), (name, sentences)
        documents[name] = {"document": client_document(path), "value": value}
    (tmp_path / "documents.json").write_text(json.dumps(documents))
    files = (ASSETS / "value-words.js", ASSETS / "hubbub-client.js", tmp_path / "documents.json")
    run_node("--input-type=module", "-e", WORDS_IN_NODE, *files)


GRID = hb.Grid(3, 2, cell=1.0)
ANSWERS = hb.Categories(["a", "b", "c"])


@pytest.mark.parametrize(
    ("mechanism", "chance"),
    [
        (hb.RandomizedResponse(ANSWERS, 1.0), math.e / (math.e + 2)),
        (hb.Geometric(hb.Integers(0, 9), 0.5), (1 - np.exp(-0.5)) / (1 + np.exp(-0.5))),
        (hb.Warner(hb.Categories(["yes", "no"]), p=0.75), 0.75),
        (hb.Rappor(ANSWERS, 2.0), math.e / (1 + math.e)),
        (hb.OptimizedUnary(ANSWERS, 2.0), 0.5),
        (hb.LocalHashing(ANSWERS, 1.0, buckets=2), math.e / (1 + math.e)),
        (hb.SubsetSelection(hb.Categories(list("abcdef")), 1.0, size=2), 2 * math.e / (2 * math.e + 4)),
    ],
    ids=lambda each: type(each).__name__,
)
def test_the_chance_that_is_told_is_that_of_the_law(mechanism: hb.Mechanism, chance: float) -> None:
    """By the formulas of the papers."""
    told = " ".join(noise_sentences(mechanism))
    assert f"{100 * chance:.{1 if chance >= 0.1 else 2}f}%" in told
    assert UNKNOWABLE in told


def test_chances_that_depend_on_the_answer() -> None:
    line = hb.TruncatedGeometric(hb.Integers(0, 4), 1.0)
    low, high = np.diag(line.matrix()).min(), np.diag(line.matrix()).max()
    assert f"{100 * low:.1f}% to {100 * high:.1f}%, depending" in noise_sentences(line)[0]
    plane = hb.PlanarGeometric(GRID, 1.0, truncated=False)
    assert "%, your answer itself is sent" in noise_sentences(plane)[0]
    assert noise_sentences(hb.Cloaking(ANSWERS, ["x", "x", "y"])) == [
        "The answer is replaced by the group that it belongs to. There is no noise: the group is always right."
    ]
    several = hb.SampleOne(age=line, drink=hb.RandomizedResponse(ANSWERS, 1.0))
    first, age, drink, _ = noise_sentences(several)
    assert first.startswith("Only one part")
    assert age.startswith("age, if it is chosen: With a chance of")
    assert drink.startswith("drink, if it is chosen: With a chance of 57.6%")
