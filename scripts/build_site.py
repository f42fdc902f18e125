"""Build the site of the documentation for this version of hubbub: warnings are errors, and every link leads somewhere.

Run: python scripts/build_site.py [site]
"""

from __future__ import annotations

import logging
import shutil
import sys
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sphinx.cmd.build import main as build

ROOT = Path(__file__).parent.parent
REDIRECT = (
    '<!doctype html><meta charset="utf-8"><title>hubbub</title><meta http-equiv="refresh" content="0; url={}/">\n'
)


class Links(HTMLParser):
    """The addresses that a page links to or loads, and the names in it that others can link to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.names: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what one element links to, loads, and is called."""
        for name, value in attrs:
            if value and (name in ("href", "src") and tag != "link"):
                self.addresses.append(value)
            if value and (name == "id" or (name == "name" and tag == "a")):
                self.names.add(value)


def dead_links(site: Path) -> list[str]:
    """Return the links within a site that lead nowhere, each with its page."""
    pages = {page.resolve(): Links(page) for page in sorted(site.rglob("*.html"))}
    dead = []
    for page, links in pages.items():
        for address in links.addresses:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            target = target / "index.html" if target.is_dir() else target
            is_named = not parts.fragment or target not in pages or unquote(parts.fragment) in pages[target].names
            if not target.exists() or not is_named:
                dead.append(f"{page.relative_to(site.resolve())}: {address}")
    return dead


def main() -> None:
    """Build, check the links, and let the site's first page lead to this version."""
    site = Path(sys.argv[1] if len(sys.argv) > 1 else "site")
    current = site / version("hubbub")
    shutil.rmtree(current, ignore_errors=True)  # pages that are no more
    options = ["--write-all", "--fail-on-warning", "--keep-going", "--quiet", "-d", str(ROOT / "build" / "doctrees")]
    logging.getLogger("traitlets").setLevel(logging.WARNING)  # which notebook is run is no news
    failed = build([*options, str(ROOT / "docs"), str(current)])
    if failed:
        sys.exit(failed)
    if dead := dead_links(current):
        sys.exit("these links lead nowhere:\n" + "\n".join(dead))
    (site / "index.html").write_text(REDIRECT.format(current.name), encoding="utf-8")
    print(f"built: {current / 'index.html'}")


if __name__ == "__main__":
    main()
