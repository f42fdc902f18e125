"""What several files of tests share: one browser, pages made once, and a word about tests that did not run."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import browsing
import node
import servers

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(autouse=True)
def own_registries(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers, or allows to run, is forgotten after it."""
    from hubbub.estimators import own_estimators
    from hubbub.mechanisms import mechanism_kinds

    monkeypatch.setattr(mechanism_kinds, "_registered", {})
    monkeypatch.setattr(mechanism_kinds, "_known_places", {})
    monkeypatch.setattr(own_estimators, "_FUNCTIONS", {})


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser for the tests of one file: while it is open, its event loop is the thread's own."""
    import browser

    with browser.started() as found:
        yield found


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that writes a page of tests/pages.py, once for all tests of this process."""
    import pages
    from hubbub.reporting import write_page

    folder = tmp_path_factory.mktemp("pages")

    def write(name: str) -> Path:
        path = folder / f"{name}.html"
        if not path.exists():
            write_page(getattr(pages, name)(), path)
        return path

    return write


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    """A PostgreSQL server for all tests of this process."""
    yield from servers.start(tmp_path_factory.mktemp("postgres"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave most cases of a test marked `sampled(one_in)` to the slow tests: which ones looks random, and stays."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for same in cases.values():
        one_in = next(same[0].iter_markers("sampled")).args[0]
        same.sort(key=lambda item: zlib.crc32(item.name.encode()))
        for item in same[math.ceil(len(same) / one_in) :]:
            item.add_marker("slow")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: Any) -> Generator[None]:
    """Say, after everything else, how many tests did not run for want of a browser, Node or a database; the remedy."""
    yield
    skipped = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    browser = [reason for reason in skipped if browsing.MISSING in reason]
    if browser:
        terminalreporter.section(f"{len(browser)} browser tests did not run", sep="!")
        terminalreporter.write_line(
            "Pages were not opened in a real browser: no chromium was found. Install one (apt-get install chromium), "
            "or name one: HUBBUB_CHROMIUM=/path/to/chrome make test"
        )
    scripts = [reason for reason in skipped if node.MISSING in reason]
    if scripts:
        terminalreporter.section(f"{len(scripts)} tests of the JavaScript client did not run", sep="!")
        terminalreporter.write_line(
            "No node was found. Install Node 20 or newer (apt-get install nodejs), or name one: HUBBUB_NODE=/path/to/it"
        )
    database = [reason for reason in skipped if servers.MISSING in reason]
    if database:
        terminalreporter.section(f"{len(database)} PostgreSQL tests did not run", sep="!")
        why = database[0].partition(servers.MISSING)[2].strip(" '\")")
        terminalreporter.write_line(
            f"No PostgreSQL server could be started{why[:500]}). Install one (apt-get install postgresql), or name the "
            f"folder of its programs: {servers.VARIABLE}=/usr/lib/postgresql/16/bin make test"
        )


@pytest.fixture(scope="module")
def no_dense_channels() -> Iterator[None]:
    """Keep likelihoods by their structure at every size that exact checks can afford, where a matrix is quicker."""
    from hubbub.channels import structured_only

    with structured_only():
        yield
