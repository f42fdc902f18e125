"""Reports in a browser: how large they are, how long they take to make, to open, and to answer.

Run: python benchmarks/report.py
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
from playwright.sync_api import Browser, sync_playwright

import hubbub as hb
from measure import row, save, seconds

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import browsing  # type: ignore[import-not-found]
import pages  # type: ignore[import-not-found]
from hubbub.core.arrays import Floats, Positions
from hubbub.intervals.compact_covariance import CompactCovariance
from hubbub.intervals.set_intervals import SetShares, set_shares
from hubbub.reporting import write_page
from hubbub.reporting.script_data import packed_covariance

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
LENGTHENED_SIDE = 100
LENGTHENED = ((hb.PlanarGeometric, 0.7, 1.05), (hb.PlanarLaplace, 0.35, 1.05), (hb.PlanarGeometric, 0.2, 1.05))
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


def study(side: int, users: int, noise: type[hb.PlanarGeometric | hb.PlanarLaplace], per_cell: float) -> hb.Reports:
    """Return reports of a city with two centres."""
    grid, rng = hb.Grid(side, side, cell=1.0), np.random.default_rng(1)
    truth = pages.hills(side, side)
    mechanism = noise(grid, per_cell)
    values = grid.labels[rng.choice(len(grid), users, p=truth / truth.sum())]
    return hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng))


def some_sets(side: int) -> dict[str, list[Positions]]:
    """Return sets as readers select them, and halves of the map."""
    rng, (column, row) = np.random.default_rng(2), np.divmod(np.arange(side * side), side)[::-1]
    chosen: list[Positions] = [np.array([cell]) for cell in rng.integers(0, side * side, 20)]
    for width in (2, 5, 15, 40):
        for left, low in rng.integers(0, side - width, (10, 2)):
            inside = (column >= left) & (column < left + width) & (row >= low) & (row < low + width)
            chosen.append(np.flatnonzero(inside))
    for radius in (4, 10, 25):
        for across, up in rng.integers(radius, side - radius, (10, 2)):
            chosen.append(np.flatnonzero(np.hypot(column - across, row - up) <= radius))
    chosen += [np.flatnonzero(rng.random(side * side) < share) for share in (0.01, 0.2, 0.5) for _ in range(5)]
    return {"sets": chosen, "halves": [np.flatnonzero(column < side // 2), np.flatnonzero(row < side // 2)]}


def lengthened(reports: hb.Reports, side: int) -> dict[str, Floats]:
    """Return how many times as long the page's intervals are as without any bound on what it leaves out."""
    shares = set_shares(reports, np.full(side * side, 1.0 / side**2))
    if not isinstance(shares, SetShares) or not isinstance(shares.covariance, CompactCovariance):
        raise TypeError("there is no compact covariance")
    nothing = np.zeros(side * side)
    bare, sent = replace(shares.covariance, left_out=nothing, inexact=nothing), packed_covariance(shares).covariance
    return {
        name: np.array([sent.deviation(each) / bare.deviation(each) for each in sets])
        for name, sets in some_sets(side).items()
    }


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
            path, reports = Path(folder) / f"made{side}.html", study(side, users, hb.PlanarGeometric, 0.5)
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
    for noise, per_cell, most_longer in LENGTHENED:
        found = lengthened(study(LENGTHENED_SIDE, 1_000_000, noise, per_cell), LENGTHENED_SIDE)
        middle, worst, halves = (
            float(np.median(found["sets"])),
            float(found["sets"].max()),
            float(found["halves"].max()),
        )
        rows.append(
            row(
                f"report, map of {LENGTHENED_SIDE**2:,} cells, {noise.__name__}, epsilon {per_cell:g} for each cell",
                "intervals of sets, times as long by what is left out: median / worst / halves of the map",
                f"{middle:.4f} / {worst:.4f} / {halves:.4f}",
                f"median up to {most_longer:g}",
                holds=middle <= most_longer,
            )
        )
    save("report", rows)


if __name__ == "__main__":
    main()
