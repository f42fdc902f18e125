"""Reports in a browser: how large they are, how long they take to make, to open, and to answer.

Run: python benchmarks/report.py
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
from playwright.sync_api import Browser, sync_playwright

import hubbub as hb
from measure import row, save, seconds

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import browsing
import pages
from hubbub.reporting import write_page

ROUNDS = 7
PAGES = (
    ("two", "2 categories", 2.0),
    ("city", "map of 384 cells, 353 kept", 2.0),
    ("large", "map of 65,536 cells", 5.0),
)
MADE = (  # side of a map, users, verdicts, most MB, most seconds
    (100, 1_000_000, False, 5.0, 90.0),
    (256, 1_000_000, True, 5.0, 120.0),
)
ANSWER = """() => { const box = document.querySelector('#invert'), start = performance.now(); box.click();
    return performance.now() - start; }"""  # selects all cells but one
MAX_ANSWER_MS = 50.0
READY = "() => document.documentElement.classList.contains('ready')"  # chart and table are there, everything answers


def opened(browser: Browser, path: Path) -> float:
    """Return the seconds from asking for a page to a chart and a table that are on the screen."""
    tab = browser.new_page(viewport={"width": 1200, "height": 900})
    start = time.perf_counter()
    tab.goto(path.as_uri())
    tab.wait_for_function(READY)
    tab.evaluate("() => new Promise(requestAnimationFrame)")
    taken = time.perf_counter() - start
    tab.close()
    return taken


def study(side: int, users: int) -> hb.Reports:
    """Return reports of a city with two centres, planar noise of half a cell's length."""
    grid, rng = hb.Grid(side, side), np.random.default_rng(1)
    truth = pages.hills(side, side)
    mechanism = hb.PlanarGeometric(grid, 1.0)
    values = grid.labels[rng.choice(len(grid), users, p=truth / truth.sum())]
    return hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng))


def answered(browser: Browser, path: Path) -> float:
    """Return the milliseconds in which a page tells the share of half of its cells, with its interval."""
    tab = browser.new_page(viewport={"width": 1200, "height": 900})
    tab.goto(path.as_uri())
    tab.wait_for_function(READY)
    tab.evaluate("() => document.querySelector('#search').value = '1'")
    tab.dispatch_event("#search", "input")
    tab.locator("#found").click()
    times = [float(tab.evaluate(ANSWER)) for _ in range(ROUNDS)]
    tab.close()
    return median(times)


def main() -> None:
    """Print and keep the rows."""
    program = browsing.browser()
    if program is None:
        print(f"{browsing.MISSING}: install one, or name one with HUBBUB_CHROMIUM")
        return
    rows = []
    arguments = ["--disable-gpu", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        for name, what, most in PAGES:
            path = Path(folder) / f"{name}.html"
            write_page(getattr(pages, name)(), path)
            taken = median(opened(browser, path) for _ in range(ROUNDS))
            size = path.stat().st_size / 1e6
            rows.append(
                row(
                    f"report, {what}",
                    "size / chart and table on the screen",
                    f"{size:.2f} MB / {taken:.2f} s",
                    f"{most:.0f} MB / 2 s",
                    holds=size < most and taken < 2.0,
                )
            )
        for side, users, verdicts, most, longest in MADE:
            path, reports = Path(folder) / f"made{side}.html", study(side, users)
            taken, _ = seconds(lambda: hb.report(reports, path, quick=not verdicts))  # noqa: B023  # called at once
            size, answer = path.stat().st_size / 1e6, answered(browser, path)
            rows.append(
                row(
                    f"report, map of {side**2:,} cells, {users:,} users, {'with verdicts' if verdicts else 'quick'}",
                    "size / time to make it / to answer a selection of thousands",
                    f"{size:.2f} MB / {taken:.0f} s / {answer:.0f} ms",
                    f"{most:.0f} MB / {longest:.0f} s / {MAX_ANSWER_MS:.0f} ms",
                    holds=size <= most and taken <= longest and answer <= MAX_ANSWER_MS,
                )
            )
        browser.close()
    save("report", rows)


if __name__ == "__main__":
    main()
