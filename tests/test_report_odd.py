"""Pages at the edges of what a page can be: one value, thousands, labels beyond floats, gaps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import hubbub as hb
import pages
from browser import visiting
from hubbub.core.arrays import Floats
from hubbub.domains import Domain, Subset
from hubbub.reporting.html_page import render_page
from hubbub.reporting.page_values import Bounds, Page

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def odd(domain: Domain, **other: Any) -> Page:
    """Return a page of numbers that come from no study."""
    many = len(domain)
    shares = np.random.default_rng(many).dirichlet(np.full(many, 0.5))
    low, high = np.clip(shares - 0.01, 0, 1), np.clip(shares + 0.01, 0, 1)
    parts = {"estimate": shares, "low": low, "high": high, "noisy": (shares + 1 / many) / 2, **other}
    return replace(pages.two(), domain=domain, sets=Bounds(low, high, "Odd."), **parts)


def gaps(values: int) -> Floats:
    """Return bounds that are known here and there."""
    return np.where(np.arange(values) % 7 < 3, np.nan, 0.01)


def few(values: int) -> Floats:
    """Return bounds that are known of every tenth value: these alone are sent."""
    return np.where(np.arange(values) % 10 == 0, np.arange(values) / 1000, np.nan)


ODD: dict[str, Callable[[], Page]] = {
    "one integer": lambda: odd(Subset(hb.Integers(0, 9), (3,)), estimate=np.ones(1)),
    "thousands of categories": lambda: odd(hb.Categories([f"label {number}" for number in range(3000)])),
    "everything in one cell": lambda: odd(hb.Grid(5, 4), estimate=np.eye(20)[7]),
    "a row of cells": lambda: odd(hb.Grid(300, 1)),
    "numbers beyond floats": lambda: odd(hb.Categories([2**70, -5, 10**18 + 1, "-6"])),
    "the farthest integers": lambda: odd(hb.Integers(2**53 - 20, 2**53)),
    "some intervals": lambda: odd(hb.Integers(0, 199), low=gaps(200), high=gaps(200) + 0.02),
    "few intervals": lambda: odd(hb.Integers(0, 299), low=few(300), high=few(300) + 0.02),
    "some integers": lambda: odd(Subset(hb.Integers(0, 99), tuple(range(0, 100, 3)))),
}


ELSEWHERE = ("thousands of categories",)  # opened by a test of its own


@pytest.mark.slow
def test_odd_pages_open_without_a_word(chromium: Browser, tmp_path: Path) -> None:
    for name, make in ODD.items():
        if name in ELSEWHERE:
            continue
        page, path = make(), tmp_path / f"{name}.html"
        path.write_text(render_page(page), encoding="utf-8")
        with visiting(chromium, path) as visit:
            order = np.argsort(-page.estimate, kind="stable")[:50]
            assert visit.each("#rows bdi") == [page.domain.title(int(place)) for place in order]
            assert visit.numbers("#rows .share") == page.estimate[order].tolist()
            for column, bounds in ((".low", page.low), (".high", page.high)):
                assert visit.numbers(f"#rows {column}") == bounds[order][~np.isnan(bounds[order])].tolist()
            visit.tab.locator("#walk").focus()
            visit.tab.keyboard.press("End")
            visit.tab.keyboard.press("Space")
            said = "only value: 100% (exactly)" if len(page.domain) == 1 else "this 1 value"
            visit.says("#picked", said)
            visit.settled()


@pytest.mark.slow
def test_a_value_beyond_the_bars_is_drawn_when_it_is_marked(chromium: Browser, tmp_path: Path) -> None:
    page, path = ODD["thousands of categories"](), tmp_path / "page.html"
    path.write_text(render_page(page), encoding="utf-8")
    last = page.domain.title(int(np.argmin(page.estimate)))
    with visiting(chromium, path) as visit:
        assert visit.tab.locator("#chart .ytick").count() == 30
        assert "30 of 3,000 values are drawn" in visit.text("#drawn")
        visit.tab.fill("#search", last)
        visit.tab.get_by_role("button", name=last, exact=True).click()
        visit.says("#chart .ytick:last-of-type text", last)
        assert visit.tab.locator("#chart .ytick").count() == 31
        visit.tab.locator("#more").click()
        visit.settled()
        assert visit.tab.locator("#chart .ytick").count() == 61
