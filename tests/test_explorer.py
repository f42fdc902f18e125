"""The explorer of the documentation: its tables are what the script computes, and its controls do what they say."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from playwright.sync_api import Page as Tab

ROOT = Path(__file__).parent.parent
TABLES = ROOT / "docs" / "_static" / "explorer"
DECIDING = ROOT / "docs" / "choose"
MAX_BYTES = 1_000_000  # of all tables together
WIDTHS = (360, 820, 1280)


@pytest.fixture(scope="module")
def maker() -> Iterator[Any]:
    """The module that computes the tables."""
    yield from _script("make_explorer_tables")


@pytest.fixture(scope="module")
def choice() -> Iterator[Any]:
    """The module that writes the tables of the page."""
    yield from _script("make_choice_tables")


def _script(name: str) -> Iterator[Any]:
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        yield __import__(name)
    finally:
        sys.path.remove(str(ROOT / "scripts"))


# -- tables ------------------------------------------------------------------------------------------------

QUICK = [
    ("yes-no", "randomized-response", 1.0, 1_000),
    ("yes-no", "optimized-unary", 0.5, 1_000_000),
    ("eight", "rappor", 2.0, 10_000),
    ("hundred", "randomized-response", 4.0, 100_000),
]
SLOW = [
    ("hundred", "optimized-unary", 1.0, 10_000),
    ("line", "truncated-geometric", 0.2, 10_000),
    ("line", "optimized-unary", 2.0, 1_000_000),
    ("map", "planar-geometric", 2.0, 10_000),
    ("map", "randomized-response", 4.0, 100_000),
]


@pytest.mark.parametrize("case", [*QUICK, *(pytest.param(case, marks=pytest.mark.slow) for case in SLOW)])
def test_a_table_holds_what_the_script_computes(maker: Any, case: tuple[str, str, float, int]) -> None:
    """The first study anew, number by number; its errors lie in the range that is shown."""
    key, kind, epsilon, users = case
    table = maker.read_table(key, TABLES)
    question = next(each for each in maker.QUESTIONS if each.key == key)
    setting = next(
        each
        for each in maker.settings(question)
        if (each.offer.kind, each.epsilon, each.users) == (kind, epsilon, users)
    )
    kept, anew = table["settings"][setting.key], maker.study(setting, 0)
    for place, name in enumerate(("reports", "auto", "inv-p")):
        stored = maker.decoded(kept["draws"][0][place])
        assert stored == pytest.approx(maker.decoded(anew["shares"][name]), abs=2e-3)
        assert stored.sum() == pytest.approx(1, abs=len(stored) * stored.max() / maker.LEVELS)
        for error, (mean, low, high) in zip(anew[name], kept[name], strict=True):
            assert low <= mean <= high
            assert low * 0.98 - 1e-3 <= error <= high * 1.02 + 1e-3
    assert maker.decoded(table["truth"]) == pytest.approx(question.truth, abs=1e-3)


def test_means_and_ranges_are_over_all_studies_of_a_setting(maker: Any) -> None:
    question = maker.QUESTIONS[0]
    setting = next(maker.settings(question))
    kept = maker.read_table(question.key, TABLES)["settings"][setting.key]
    anew = [maker.study(setting, number) for number in range(question.runs)]
    for name in ("auto", "inv-p", "reports"):
        errors = [each[name][0] for each in anew]
        assert kept[name][0] == pytest.approx([np.mean(errors), min(errors), max(errors)], rel=6e-3)


def test_tables_are_complete_and_small(maker: Any) -> None:
    for question in maker.QUESTIONS:
        table = maker.read_table(question.key, TABLES)
        assert table["title"] == question.title
        assert table["runs"] == question.runs
        assert list(table["settings"]) == [setting.key for setting in maker.settings(question)]
        for found in table["settings"].values():
            assert len(found["draws"]) == maker.SHOWN_DRAWS
            for name in ("auto", "inv-p", "reports"):
                assert len(found[name]) == (1 if table["unit"] is None else 2)
    assert sum(path.stat().st_size for path in TABLES.glob("*.js")) < MAX_BYTES


def test_shares_survive_their_encoding(maker: Any) -> None:
    shares = np.random.default_rng(1).dirichlet(np.full(30, 0.2))
    assert maker.decoded(maker.encoded(shares)) == pytest.approx(shares, abs=shares.max() / maker.LEVELS)


def test_the_pages_tables_are_those_that_the_script_makes(choice: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = (DECIDING / "index.md").read_text(encoding="utf-8")
    assert page.count("% table ") == 4
    assert choice.with_tables(page) == page
    assert choice.with_tables(page.replace(",000 |", ",000 or so |")) == page  # what is typed in does not stay


@pytest.mark.parametrize(
    "name", ["2 randomized-response 1", pytest.param("8 optimized-unary 2", marks=pytest.mark.slow)]
)
def test_a_plan_gives_the_users_that_are_kept(choice: Any, name: str) -> None:
    kept = json.loads((DECIDING / "plans.json").read_text(encoding="utf-8"))
    size, kind, epsilon = name.split()
    assert choice.users_needed(int(size), kind, float(epsilon)) == pytest.approx(kept["needed"][name], rel=0.02)
    assert choice.users_per_group(1.0) == pytest.approx(kept["groups"]["1"], rel=1e-9)


# -- in a browser ------------------------------------------------------------------------------------------


def is_local(address: str) -> bool:
    return address.startswith(("file:", "data:"))


def each(tab: Tab, selector: str, script: str = "one.textContent") -> list[Any]:
    """Return something of each element of a selector: its text, unless said otherwise."""
    found: list[Any] = tab.eval_on_selector_all(selector, f"all => all.map(one => {script})")
    return found


@contextmanager
def opened(
    browser: Browser, page: Path, *, width: int = 1280, dark: bool = False, scripts: bool = True
) -> Iterator[Tab]:
    """Open a page from the disk; nothing may go wrong on it, and nothing may be asked of a network."""
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if dark else "light",
        java_script_enabled=scripts,
    )
    said: list[str] = []
    try:
        tab = context.new_page()
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.on("request", lambda request: said.extend(address for address in [request.url] if not is_local(address)))
        tab.goto(page.as_uri())
        if scripts:
            tab.wait_for_selector("#explorer-answer:not(:empty)")
        yield tab
    finally:
        context.close()
    assert said == []


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The explorer on a page of its own, beside its tables as on the site."""
    site = tmp_path_factory.mktemp("site")
    shutil.copytree(TABLES, site / "_static" / "explorer")
    page = site / "choose" / "index.html"
    page.parent.mkdir()
    inside = (DECIDING / "explorer.html").read_text(encoding="utf-8")
    head = '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Explorer</title>'
    page.write_text(f"{head}<body><main>{inside}</main></body>", encoding="utf-8")
    return page


def choose(tab: Tab, question: str, mechanism: str | None = None) -> None:
    tab.select_option("#explorer-question", question)
    expected = json.dumps(title(question))
    tab.wait_for_function(f"document.querySelector('#explorer-study').textContent.includes({expected})")
    if mechanism:
        tab.select_option("#explorer-mechanism", mechanism)


def title(question: str) -> str:
    text = (TABLES / f"{question}.js").read_text(encoding="utf-8")
    return str(json.loads(text.removeprefix("hubbubExplorer.receive(").removesuffix(");\n"))["title"])


def press(tab: Tab, name: str, text: str) -> None:
    tab.locator(f"#explorer-{name} input[value='{text}']").check()


def state(tab: Tab) -> dict[str, str]:
    """Return everything that a reader sees of the setting."""
    parts = ("answer", "errors", "panels", "number", "study", "command", "privacy")
    return {part: tab.inner_html(f"#explorer-{part}") for part in parts}


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {part for part in before if before[part] != after[part]}


def test_each_control_changes_what_is_shown(chromium: Browser, maker: Any, alone: Path) -> None:
    with opened(chromium, alone) as tab:
        states = [state(tab)]

        def after() -> set[str]:
            states.append(state(tab))
            return changed(states[-2], states[-1])

        everything = {"answer", "errors", "panels", "study", "privacy"}
        press(tab, "users", "1,000")
        assert after() == {"answer", "errors", "panels", "command"}
        press(tab, "epsilon", "4")
        assert after() == everything
        press(tab, "method", "inv-p")
        assert after() == {"answer", "panels", "command"}
        tab.click("#explorer-draw")
        assert after() == {"panels", "number"}
        choose(tab, "eight", "optimized-unary")
        assert after() == everything | {"number", "command"}
        press(tab, "epsilon", "0.5")
        # What is shown is what the table holds for this setting.
        table = maker.read_table("eight", TABLES)
        found = table["settings"]["optimized-unary 0.5 1000"]
        wanted = "hubbub plan study.toml --users 1000 --truth zipf --method inv-p"
        assert tab.inner_text("#explorer-command").strip() == wanted
        file = tomllib.loads(tab.text_content("#explorer-study") or "")
        assert file["mechanisms"]["chosen"] == {"kind": "optimized-unary", "epsilon": 0.5}
        rows = each(tab, "#explorer-errors tbody td:nth-child(2)")
        means = [100 * found[name][0][0] for name in ("auto", "inv-p", "reports")] + [100 * table["nothing"][0]]
        assert [float(text.split()[0]) for text in rows] == pytest.approx(means, abs=0.51)
        tab.click("#explorer-numbers summary")
        shown = each(tab, "#explorer-numbers tbody td:nth-child(4)")
        estimate = maker.decoded(found["draws"][0][2])
        assert [float(text.rstrip("%")) / 100 for text in shown] == pytest.approx(estimate.tolist(), abs=6e-4)


def test_without_scripts_there_are_words_instead(chromium: Browser, alone: Path) -> None:
    with opened(chromium, alone, scripts=False) as tab:
        assert not tab.locator("#explorer").is_visible()
        assert "The tables on this page" in tab.inner_text("main")


@pytest.mark.slow
def test_the_keyboard_is_enough(chromium: Browser, alone: Path) -> None:
    with opened(chromium, alone) as tab:
        reached = []
        for _ in range(14):
            tab.keyboard.press("Tab")
            reached.append(tab.evaluate("document.activeElement.id || document.activeElement.name"))
        for control in ("question", "mechanism", "epsilon", "users", "method", "draw", "file"):
            assert f"explorer-{control}" in reached
        tab.locator("#explorer-users input:checked").focus()
        tab.keyboard.press("ArrowRight")
        assert "100,000 users" in tab.inner_text("#explorer-answer")
        assert tab.get_attribute("#explorer-answer", "role") == "status"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "mechanism", "epsilon", "users", "method"),
    [
        ("yes-no", "randomized-response", "1", "10,000", "auto"),
        ("eight", "optimized-unary", "2", "1,000", "inv-p"),
        ("hundred", "rappor", "4", "10,000", "inv-p"),
        ("line", "truncated-geometric", "0.2", "1,000", "auto"),
        ("map", "planar-geometric", "2", "10,000", "auto"),
    ],
)
def test_the_command_that_is_shown_plans_this_setting(
    chromium: Browser, maker: Any, alone: Path, tmp_path: Path, question: str, mechanism: str, epsilon: str, users: str,
    method: str,
) -> None:  # fmt: skip
    """It runs with the study file that is shown, and expects an error like those of the studies that are stored."""
    with opened(chromium, alone) as tab:
        choose(tab, question, mechanism)
        for name, text in (("epsilon", epsilon), ("users", users), ("method", method)):
            press(tab, name, text)
        (tmp_path / "study.toml").write_text(tab.text_content("#explorer-study") or "", encoding="utf-8")
        command = tab.inner_text("#explorer-command").split()
    program, *arguments = command
    assert program == "hubbub"
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "hubbub.cli", *arguments, "--runs", "20", "--json"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["settings"]
    found = maker.read_table(question, TABLES)["settings"][f"{mechanism} {epsilon} {users.replace(',', '')}"][method][0]
    assert row["users"] == int(users.replace(",", ""))
    assert found[1] * 0.8 <= row["tv"]["median"] <= found[2] * 1.25


@pytest.mark.slow
def test_the_pages_commands_run(tmp_path: Path) -> None:
    text = (DECIDING / "index.md").read_text(encoding="utf-8")
    code = text.split("```sh\n")[1].split("```")[0]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(  # noqa: S603
        ["bash", "-euo", "pipefail", "-c", code],  # noqa: S607
        cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page as the site has it; nothing else of the site is executed."""
    pytest.importorskip("furo")
    site = tmp_path_factory.mktemp("built")
    options = ["-D", "nb_execution_mode=off", "-D", "sphinx_gallery_conf.plot_gallery=0", "-d", str(site / "trees")]
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", *options, str(ROOT / "docs"), str(site / "html")]
    subprocess.run(command, check=True)  # noqa: S603
    return site / "html" / "choose" / "index.html"


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_can_be_read(chromium: Browser, built: Path, width: int, dark: bool) -> None:
    """No width scrolls sideways, whatever is chosen, and axe-core finds nothing serious in the explorer."""
    from axe_playwright_python.sync_playwright import Axe

    with opened(chromium, built, width=width, dark=dark) as tab:
        for question in ("map", "line", "hundred", "eight", "yes-no"):
            choose(tab, question)
            tab.wait_for_timeout(100)  # a moment to draw
            wide, window = tab.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
            assert wide <= window, question
            drawn = each(tab, "#explorer-panels svg", "one.getAttribute('aria-label')")
            assert len(drawn) == 3
            assert all("largest share" in label for label in drawn)
        tab.click("#explorer-numbers summary")
        # Without preloading: axe-core would ask for style sheets in a way that files refuse.
        found = Axe().run(tab, context="#explorer", options={"preload": False}).response["violations"]
        serious = [(one["id"], one["nodes"][0]["target"]) for one in found if one["impact"] in ("serious", "critical")]
        assert serious == []
