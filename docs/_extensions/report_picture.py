"""Pictures of pages that a tutorial wrote, for the site: taken where there is a browser, otherwise the stored ones."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

PICTURES = Path(__file__).parent.parent / "pictures"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def browser_program() -> str | None:
    """Return the browser of this machine."""
    named = (os.environ.get("HUBBUB_CHROMIUM"), *BROWSERS)
    return next((path for name in named if name and (path := shutil.which(name))), None)


def photograph(page: Path, picture: Path, *, width: int, height: int, of: str | None) -> None:
    """Write a picture of a page, or of one element of it."""
    import asyncio

    from playwright.async_api import async_playwright

    async def take() -> None:
        arguments = ["--no-sandbox"] if getattr(os, "geteuid", lambda: 1)() == 0 else []
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=browser_program(), args=arguments)
            tab = await browser.new_page(viewport={"width": width, "height": height})
            await tab.goto(page.resolve().as_uri())
            await tab.wait_for_timeout(800)
            await (tab.locator(of).first if of else tab).screenshot(path=picture)
            await browser.close()

    from threading import Thread  # a kernel has its own loop

    thread = Thread(target=lambda: asyncio.run(take()))
    thread.start()
    thread.join()


def report_picture(page: str, name: str, *, width: int = 1100, height: int = 900, of: str | None = None) -> Any:
    """Show a picture of a page: a new one where a browser and playwright are, otherwise docs/pictures/NAME."""
    from IPython.display import Image

    taken, stored = Path(name), PICTURES / name
    try:
        import playwright.async_api  # noqa: F401
    except ImportError:
        return Image(stored)
    if browser_program() is None:
        return Image(stored)
    photograph(Path(page), taken, width=width, height=height, of=of)
    if not taken.exists():
        raise RuntimeError(f"no picture of {page} could be taken")
    if os.environ.get("HUBBUB_STORE_PICTURES"):
        shutil.copy(taken, stored)
    return Image(taken)
