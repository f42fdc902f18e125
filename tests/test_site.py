"""The site of the documentation: links that lead somewhere, and every page in a real browser, at three widths.

The pages are those of a full build, which executes tutorials and gallery: minutes. Links of the sources are quick.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

import browser as real_browser

ROOT = Path(__file__).parent.parent
WIDTHS = (360, 820, 1280)
MADE_BY_THE_BUILD = ("docs/pictures-and-code/", "docs/reference/api/generated/", "docs/reference/commands/")
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_the_sources_lead_somewhere(page: Path) -> None:
    """They are read on other sites, too, that show Markdown: there nothing checks them."""
    text = re.sub(r"^(```|~~~).*?^\1", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    dead = []
    for address in re.findall(r"(?<!`)\]\(([^)\s#]+)(?:#[^)\s]*)?\)", text):
        if "://" in address or address.startswith("mailto:"):
            continue
        target = (page.parent / address).resolve()
        if str(target.relative_to(ROOT)).startswith(MADE_BY_THE_BUILD):
            continue
        if not target.exists():
            dead.append(address)
    assert dead == []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site; HUBBUB_SITE names one that is built already."""
    if built := os.environ.get("HUBBUB_SITE"):
        return Path(built)
    pytest.importorskip("sphinx", reason="the site needs what `make docs` installs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, str(ROOT / "scripts" / "build_site.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / version("hubbub")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with real_browser.started() as started:
        yield started


def faults(chromium: Browser, page: Path, width: int, *, dark: bool = False) -> Iterator[str]:
    """Yield what is wrong with a page: messages, loads from elsewhere, a width that scrolls, what axe calls serious."""
    tab = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light")
    said: list[str] = []
    asked: list[str] = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(page.as_uri())
    yield from said
    yield from (address for address in asked if not address.startswith(("file:", "data:", "blob:")))
    if tab.evaluate("document.scrollingElement.scrollWidth > window.innerWidth"):
        yield "scrolls sideways"
    for violation in Axe().run(tab).response["violations"]:
        if violation["impact"] in ("serious", "critical"):
            yield f"{violation['id']}, {len(violation['nodes'])} times: {violation['nodes'][0]['html'][:120]}"
    tab.close()


@pytest.mark.slow
def test_every_page_can_be_read(site: Path, chromium: Browser) -> None:
    found = []
    for page in sorted(site.rglob("*.html")):
        name = page.relative_to(site)
        for width in WIDTHS:
            found += [f"{name} at {width}: {fault}" for fault in faults(chromium, page, width)]
        found += [f"{name}, dark: {fault}" for fault in faults(chromium, page, WIDTHS[-1], dark=True)]
    assert found == []


@pytest.mark.slow
def test_words_are_found_without_a_network(site: Path, chromium: Browser) -> None:
    tab = chromium.new_page()
    tab.goto(f"{(site / 'search.html').as_uri()}?q=watermark")
    tab.wait_for_selector("#search-results li a", timeout=real_browser.PATIENCE)
    assert "nightly" in " ".join(tab.eval_on_selector_all("#search-results li a", "all => all.map(one => one.href)"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["index.html", "tutorials/survey.html", "choose/index.html"])
def test_paper_shows_the_page_alone(site: Path, chromium: Browser, name: str) -> None:
    tab = chromium.new_page()
    tab.emulate_media(media="print")
    tab.goto((site / name).as_uri())
    aids = ".sidebar-drawer, .toc-drawer, .back-to-top, .skip-to-content, .related-pages, button.copybtn"
    shown = "all => all.filter(one => one.getClientRects().length).map(one => one.className)"
    assert tab.locator(aids).count() > 0
    assert tab.eval_on_selector_all(aids, shown) == []
