"""Make the pictures of the report that the docs show.

The map is the report that `hubbub demo` writes; bars and line are pages of the tests, whose verdicts are made up: they
are pictured where no verdict is in sight.

Run: python scripts/report_pictures.py FOLDER (docs, for the real ones)
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import pages
from browser import PHONE, Visit, started, visiting
from hubbub.demo import run_demo
from hubbub.reporting import Page, write_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser

WINDOW = 1120
MOST = 120_000  # bytes of a picture


@cache
def demo() -> Page:
    """Return the report of the demo's city, made as the demo makes it."""
    return run_demo().page


def scrolled(visit: Visit, selector: str) -> None:
    """Bring an element to the top of the window."""
    visit.tab.evaluate(f"document.querySelector('{selector}').scrollIntoView({{block: 'start'}})")
    visit.settled()


def nothing(visit: Visit) -> None:
    """Show the page as it opens."""
    visit.settled()


def charted(visit: Visit) -> None:
    """Show the chart."""
    scrolled(visit, "#estimate")


def hovered(visit: Visit) -> None:
    """Show bars, one of them with its interval in words."""
    scrolled(visit, "#estimate")
    x, y, width, height = visit.each(
        "#chart .nsewdrag", "(b => [b.x, b.y, b.width, b.height])(one.getBoundingClientRect())"
    )[0]
    visit.tab.mouse.move(x + 0.45 * width, y + 0.15 * height)
    visit.tab.wait_for_selector("#tip:not([hidden])")


def chosen(visit: Visit) -> None:
    """Show a box around the centre of the city and the share inside of it."""
    visit.drag((0.52, 0.08), (0.7, 0.3), (0.9, 0.45))
    visit.says("#picked", "these")
    visit.tab.mouse.move(2, 2)
    scrolled(visit, "#estimate")


PICTURES: dict[str, tuple[Callable[[], Page], int, int, bool, Callable[[Visit], None]]] = {
    "report": (demo, WINDOW, 1100, False, nothing),
    "report-dark": (pages.thirty, WINDOW, 760, True, hovered),
    "report-phone": (pages.ages, PHONE, 844, False, charted),
    "report-selection": (demo, WINDOW, 1000, False, chosen),
}


def make(browser: Browser, folder: Path, name: str) -> None:
    """Make one picture."""
    page_of, width, height, dark, look = PICTURES[name]
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "report.html"
        write_page(page_of(), path)
        with visiting(browser, path, width=width, dark=dark, touch=width == PHONE) as visit:
            visit.tab.set_viewport_size({"width": width, "height": height})
            visit.settled()
            look(visit)
            picture = visit.tab.screenshot()
    if len(picture) > MOST:
        sys.exit(f"{name} takes {len(picture):,} bytes, more than {MOST:,}")
    (folder / f"{name}.png").write_bytes(picture)
    print(f"{name}.png: {len(picture):,} bytes")


def main() -> None:
    """Make all of them."""
    folder = Path(sys.argv[1])
    with started() as browser:
        for name in PICTURES:
            make(browser, folder, name)


if __name__ == "__main__":
    main()
