"""Make the pictures of the report that the docs show.

The map is the report that `hubbub demo` writes. The bars and the line are pages of the tests, whose verdicts are made
up: their pictures show no verdict.

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

from make_district_city import city_page, write_sources

import pages
from browser import PHONE, Visit, started, visiting
from hubbub.demo import run_demo
from hubbub.reporting import Page, write_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser

WINDOW_WIDTH = 1120
MAX_PICTURE_BYTES = 120_000


@cache
def demo_page() -> Page:
    """Return the report of the demo's city, made as the demo makes it."""
    return run_demo().page


@cache
def district_page() -> Page:
    """Return the report of a city with districts, without what takes long."""
    with tempfile.TemporaryDirectory() as temporary:
        write_sources(Path(temporary))
        return city_page(Path(temporary), quick=True)


def scroll_to(visit: Visit, selector: str) -> None:
    """Bring an element to the top of the window."""
    visit.tab.evaluate(f"document.querySelector('{selector}').scrollIntoView({{block: 'start'}})")
    visit.settled()


def show_top(visit: Visit) -> None:
    """Show the page as it opens."""
    visit.settled()


def show_chart(visit: Visit) -> None:
    """Show the chart."""
    scroll_to(visit, "#estimate")


def show_hovered_bar(visit: Visit) -> None:
    """Show the bars, one of them with its tooltip."""
    scroll_to(visit, "#estimate")
    x, y, width, height = visit.each(
        "#chart .nsewdrag", "(b => [b.x, b.y, b.width, b.height])(one.getBoundingClientRect())"
    )[0]
    visit.tab.mouse.move(x + 0.45 * width, y + 0.15 * height)
    visit.tab.wait_for_selector("#tip:not([hidden])")


def show_place(visit: Visit) -> None:
    """Show the map with the pointer in one of its cells."""
    scroll_to(visit, "#estimate")
    x, y, width, height = visit.each(
        "#chart .nsewdrag", "(b => [b.x, b.y, b.width, b.height])(one.getBoundingClientRect())"
    )[0]
    visit.tab.mouse.move(x + 0.38 * width, y + 0.38 * height)
    visit.tab.wait_for_selector("#tip:not([hidden])")


def show_selected_box(visit: Visit) -> None:
    """Show a box around the centre of the city, and the share inside it."""
    visit.tab.get_by_label("Estimate", exact=True).check()
    visit.drag((0.52, 0.08), (0.7, 0.3), (0.9, 0.45))
    visit.says("#picked", "these")
    visit.tab.mouse.move(2, 2)
    scroll_to(visit, "#estimate")


PICTURES: dict[str, tuple[Callable[[], Page], int, int, bool, Callable[[Visit], None]]] = {
    "report": (demo_page, WINDOW_WIDTH, 1100, False, show_top),
    "report-dark": (pages.thirty, WINDOW_WIDTH, 760, True, show_hovered_bar),
    "report-phone": (pages.ages, PHONE, 844, False, show_chart),
    "report-districts": (district_page, 820, 790, False, show_place),
    "report-selection": (demo_page, WINDOW_WIDTH, 1000, False, show_selected_box),
}


def make_picture(browser: Browser, folder: Path, name: str) -> None:
    """Make one picture."""
    make_page, width, height, dark, arrange = PICTURES[name]
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "report.html"
        write_page(make_page(), path)
        with visiting(browser, path, width=width, dark=dark, touch=width == PHONE) as visit:
            visit.tab.set_viewport_size({"width": width, "height": height})
            visit.settled()
            arrange(visit)
            picture = visit.tab.screenshot()
    if len(picture) > MAX_PICTURE_BYTES:
        sys.exit(f"{name} takes {len(picture):,} bytes, more than {MAX_PICTURE_BYTES:,}")
    (folder / f"{name}.png").write_bytes(picture)
    print(f"{name}.png: {len(picture):,} bytes")


def main() -> None:
    """Make all of them."""
    folder = Path(sys.argv[1])
    with started() as browser:
        for name in PICTURES:
            make_picture(browser, folder, name)


if __name__ == "__main__":
    main()
