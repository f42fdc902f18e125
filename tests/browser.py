"""A report in a real browser: opened from the disk, with everything that it says, asks for and does on record."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Dialog, Download, Locator, expect, sync_playwright
from playwright.sync_api import Page as Tab

import browsing

PATIENCE = 30_000  # milliseconds, then something is broken: never a measure of the page
WIDE, PHONE = 1200, 390


@contextmanager
def started() -> Iterator[Browser]:
    """Start the browser of this machine, or skip."""
    program = browsing.browser()
    if program is None:
        pytest.skip(browsing.MISSING)
    arguments = ["--disable-gpu", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Visit:
    """An open page, and what went wrong on it."""

    tab: Tab
    address: str
    said: list[str] = field(default_factory=list)  # console messages of every kind, and errors
    asked: list[str] = field(default_factory=list)  # requests for anything but the file itself

    def one(self, selector: str) -> Locator:
        """Return the first element of a selector."""
        return self.tab.locator(selector).first

    def text(self, selector: str) -> str:
        """Return an element's text."""
        return self.one(selector).text_content() or ""

    def numbers(self, selector: str) -> list[float]:
        """Return the exact numbers of an element: those for programs, not those for people."""
        return [float(found) for found in self.each(f"{selector} data", "one.value")]

    def each(self, selector: str, script: str = "one.textContent") -> list[Any]:
        """Return something of each element of a selector: its text, unless said otherwise."""
        found: list[Any] = self.tab.eval_on_selector_all(selector, f"all => all.map(one => {script})")
        return found

    def says(self, selector: str, text: str) -> None:
        """Wait until an element says this: what the pointer does is answered a moment later."""
        expect(self.one(selector)).to_contain_text(text, timeout=PATIENCE / 3)

    def settled(self) -> None:
        """Wait until what was drawn last is on the screen."""
        frame = "requestAnimationFrame"
        self.tab.evaluate(f"() => new Promise(done => {frame}(() => {frame}(() => setTimeout(done, 30))))")

    def plot(self, *, of: str = "#chart") -> Mapping[str, float]:
        """Return where the chart's plane is on the screen."""
        self.one(of).scroll_into_view_if_needed()
        self.tab.evaluate(f"document.querySelector('{of}').scrollIntoView({{block: 'center'}})")
        self.settled()
        box = self.one(f"{of} .nsewdrag").bounding_box()
        assert box is not None
        return {"x": box["x"], "y": box["y"], "width": box["width"], "height": box["height"]}

    def at(self, across: float, down: float, *, of: str = "#chart") -> tuple[float, float]:
        """Return a point of the chart's plane by its parts from the left and from the top."""
        box = self.plot(of=of)
        return box["x"] + across * box["width"], box["y"] + down * box["height"]

    def drag(self, *points: tuple[float, float]) -> None:
        """Drag over the chart, through points in parts of its plane."""
        box = self.plot()
        path = [(box["x"] + across * box["width"], box["y"] + down * box["height"]) for across, down in points]
        self.tab.mouse.move(*path[0])
        self.tab.mouse.down()
        for point in path[1:]:
            self.tab.mouse.move(*point, steps=4)
        self.tab.mouse.up()
        self.settled()

    def saved(self, button: str, folder: Path) -> tuple[str, bytes]:
        """Press a button that gives a file; return its name and content."""
        with self.tab.expect_download() as waiting:
            self.tab.locator(button).click()
        download: Download = waiting.value
        path = folder / "downloaded"
        download.save_as(path)
        return download.suggested_filename, path.read_bytes()

    def widths(self) -> tuple[int, int]:
        """Return how wide the page is, and how wide its window."""
        found = self.each("html", "[one.scrollWidth, one.clientWidth]")[0]
        return found[0], found[1]

    def built(self, of: str = "body") -> Counter[str]:
        """Return how many elements of each kind there are, outside of the charts."""
        script = """of => [...document.querySelectorAll(`${of} *`)].filter(one => !one.closest('.chart'))
            .map(one => [one.tagName, ...one.getAttributeNames().toSorted()].join(' '))"""
        found: list[str] = self.tab.evaluate(script, of)
        return Counter(found)

    def drawn(self) -> set[str]:
        """Return the kinds of elements inside of the charts."""
        return set(self.each(".chart *", "one.tagName.toLowerCase()"))

    def executed(self) -> list[Any]:
        """Return what a label has managed to run: labels that attack call `planted`."""
        found: list[Any] = self.tab.evaluate("window.ran ?? []")
        return found


@contextmanager
def visiting(
    browser: Browser,
    path: Path,
    *,
    width: int = WIDE,
    dark: bool = False,
    scripts: bool = True,
    touch: bool = False,
    clean: bool = True,
) -> Iterator[Visit]:
    """Open a page and hand it over; afterwards nothing may have gone wrong on it, unless it need not be clean."""
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if dark else "light",
        java_script_enabled=scripts,
        accept_downloads=True,
        has_touch=touch,
    )
    context.set_default_timeout(PATIENCE)
    context.add_init_script("window.planted = (what) => { (window.ran ??= []).push(what ?? 1); };")
    try:
        visit = Visit(context.new_page(), path.as_uri())
        visit.tab.on("console", lambda message: visit.said.append(f"{message.type}: {message.text}"))
        visit.tab.on("pageerror", lambda error: visit.said.append(f"error: {error}"))
        visit.tab.on("dialog", lambda dialog: _dismiss(visit, dialog))
        visit.tab.on("request", lambda request: _note(visit, request.url))
        visit.tab.goto(visit.address)
        if scripts:
            visit.tab.wait_for_selector("html.ready", state="attached")
            visit.settled()
        yield visit
    finally:
        context.close()
    assert not clean or visit.said == []
    assert not clean or visit.asked == []


def _dismiss(visit: Visit, dialog: Dialog) -> None:
    visit.said.append(f"dialog: {dialog.message}")
    dialog.dismiss()


def _note(visit: Visit, address: str) -> None:
    """Keep what was asked for; data and blobs are made by the page itself."""
    if address != visit.address and not address.startswith(("data:", "blob:null/")):
        visit.asked.append(address)
