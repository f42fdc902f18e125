"""The page as a file: whole, or not there."""

from __future__ import annotations

from pathlib import Path

from hubbub.core.files import write_file
from hubbub.reporting.html_assembly import assemble
from hubbub.reporting.page import Page

WAIT = "wait for it to end, or write this report under another name"


def write_page(page: Page, path: Path) -> None:
    """Write the page at one stroke: whoever has the old one open, or reads it now, never sees half of a new one."""
    write_file(path, assemble(page).encode("utf-8"), remedy=WAIT)
