"""Reports in a browser: how large they are, and how long they take to open.

Run: python benchmarks/report.py
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from playwright.sync_api import Browser, sync_playwright

from measure import row, save

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
        browser.close()
    save("report", rows)


if __name__ == "__main__":
    main()
