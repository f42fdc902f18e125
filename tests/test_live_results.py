"""Live results: for those with the token, from a tally that grows with the reports, beside a collector that goes on."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookies import SimpleCookie
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import numpy as np
import pytest

import hubbub as hb
from collectors import RunningCollector, report
from hubbub.core.child_environment import SAFE_PATH, no_imports_from_current_folder
from hubbub.intake.privatizing.client_document import client_document
from hubbub.serve.access_tokens import TokenKey
from hubbub.serve.results_access import VARIABLE, ResultsAccess, read_results_token
from hubbub.serve.results_worker import ResultsSnapshot, ResultsTask, current_results
from hubbub.serve.web_demo import STUDY_TEXT, SimulatedPeople

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from servers import Server

TOKEN = "correct-horse-battery"  # noqa: S105
STUDY = """version = 1
name = "drinks"
[domain]
kind = "categories"
labels = ["tea", "coffee"]
[mechanisms.answer]
kind = "randomized-response"
epsilon = 2.0
[question]
text = "Tea or coffee?"
[collector]
time = "none"
max_requests_per_minute = 1000000
"""
PATIENCE = 120.0  # seconds, then the worker is taken for dead: never a measure of it
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@contextmanager
def collecting(folder: Path, **keywords: Any) -> Iterator[RunningCollector]:
    study = folder / "study.toml"
    study.write_text(STUDY)
    settings = {"client_study": client_document(study), "results_token": TOKEN, "results_every": 0.5, **keywords}
    running = RunningCollector(study, f"sqlite:///{folder}/reports.db", **settings)
    try:
        yield running
    finally:
        assert running.stop() == 0
        assert not [line for line in running.logged() if "results" in line]


def send(running: RunningCollector, tea: int, coffee: int) -> None:
    reports = [report("tea", "answer") for _ in range(tea)] + [report("coffee", "answer") for _ in range(coffee)]
    assert running.send(reports) == (200, {"accepted": tea + coffee, "repeated": 0})


def results(running: RunningCollector, reports: int) -> dict[str, Any]:
    """Return the results once they are those of so many reports."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        status, _, content = running.ask("GET", "/results.json", headers=BEARER)
        document: dict[str, Any] = json.loads(content)
        if status == 200 and document["reports"] == reports:
            return document
        time.sleep(0.1)
    raise AssertionError(document)


def sign_in(running: RunningCollector, token: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    form = {"Content-Type": "application/x-www-form-urlencoded", **headers}
    return running.ask("POST", "/results", urlencode({"token": token}).encode(), form)


def test_results_are_for_those_with_the_token(tmp_path: Path) -> None:
    with collecting(tmp_path) as running:
        status, _, content = running.ask("GET", "/results.json", headers=BEARER)
        assert (status, json.loads(content)["errors"][0]["code"]) == (503, "no-results-yet")
        for path in ("/results.json", "/results/page", "/results/status"):
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Cookie": "hubbub-results=wrong"}):
                status, _, content = running.ask("GET", path, headers=headers)
                assert (status, json.loads(content)["errors"][0]["code"]) == (401, "no-results-token")
        status, headers, content = running.ask("GET", "/results")
        assert status == 401
        assert b'<form method="post" action="results">' in content
        assert "form-action 'self'" in headers["content-security-policy"]
        assert sign_in(running, "wrong")[0] == 403
        assert sign_in(running, TOKEN, Origin="https://evil.example")[0] == 403
        assert sign_in(running, "x" * 10_000)[0] == 401
        status, headers, _ = sign_in(running, TOKEN)
        assert (status, headers["location"]) == (303, "results")
        cookie = SimpleCookie(headers["set-cookie"])["hubbub-results"]  # the last of two
        assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "strict", "/results.json")
        assert not cookie["max-age"]
        assert not cookie["expires"]
        assert TOKEN not in headers["set-cookie"]
        signed_in = {"Cookie": f"hubbub-results={cookie.value}"}
        assert running.ask("GET", "/results", headers=signed_in)[0] == 200
        _, headers, _ = sign_in(running, TOKEN, Host="collector.example", Origin="https://collector.example")
        assert "Secure" in headers["set-cookie"]


def test_a_study_that_nobody_has_answered_yet_is_no_problem(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(STUDY)
    running = RunningCollector(study, f"sqlite:///{tmp_path}/reports.db")
    source = f"sqlite:///{tmp_path}/reports.db#reports"
    task = ResultsTask(hb.read_study(study), source, str(tmp_path))
    assert current_results(task, -1) is None
    send(running, 3, 2)
    snapshot = current_results(task, -1)
    assert isinstance(snapshot, ResultsSnapshot)
    assert (snapshot.reports, snapshot.users) == (5, 5)
    assert current_results(task, 5) is None
    assert running.stop() == 0


@pytest.mark.slow
def test_results_follow_the_reports(tmp_path: Path) -> None:
    with collecting(tmp_path) as running:
        send(running, 60, 40)
        first = results(running, 100)
        send(running, 0, 100)
        second = results(running, 200)
        assert first["computed"] <= second["computed"]
        shares = [{row["value"]: row for row in document["estimate"]} for document in (first, second)]
        assert shares[1]["tea"]["probability"] < shares[0]["tea"]["probability"]
        status, headers, page = running.ask("GET", "/results/page", headers=BEARER)
        assert (status, headers["content-security-policy"]) == (200, "frame-ancestors 'self'")
        words = " ".join(re.sub("<[^>]+>", "", html.unescape(page.decode())).split())
        assert second["summary"] in words
        assert second["computed"] in page.decode()
        state = json.loads(running.ask("GET", "/results/status", headers=BEARER)[2])
        assert state == {"computed": second["computed"], "reports": 200, "users": 200, "problem": ""}
    # The same numbers as those that a reader of the table gets.
    study = hb.read_study(tmp_path / "study.toml")
    reports = hb.read_reports(f"sqlite:///{tmp_path}/reports.db#reports", study)
    estimate = hb.estimate(reports)
    told = [shares[1][label]["probability"] for label in ("tea", "coffee")]
    np.testing.assert_array_equal(told, estimate.probabilities)
    for label in ("tea", "coffee"):
        interval = hb.interval(reports, label, estimate=estimate)
        np.testing.assert_allclose([shares[1][label]["low"], shares[1][label]["high"]], [interval.low, interval.high])


def test_a_worker_tells_what_is_wrong_and_computes_nothing_twice(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    study = hb.read_study(tmp_path / "study.toml")
    gone = ResultsTask(study, f"sqlite:///{tmp_path}/none.db#reports", str(tmp_path))
    assert isinstance(current_results(gone, -1), str)
    assert not list(tmp_path.glob("none.db*"))
    running = RunningCollector(tmp_path / "study.toml", f"sqlite:///{tmp_path}/some.db")
    send(running, 3, 2)
    assert running.stop() == 0
    task = ResultsTask(study, f"sqlite:///{tmp_path}/some.db#reports", str(tmp_path))
    snapshot = current_results(task, -1)
    assert isinstance(snapshot, ResultsSnapshot)
    assert (snapshot.reports, snapshot.users) == (5, 5)
    assert current_results(task, snapshot.reports) is None


ASK_ONCE = """
import os
import sys
import hubbub as hb
from hubbub.serve.live_results import _started
from hubbub.serve.results_worker import ResultsTask

if __name__ == "__main__":
    process, pipe = _started(ResultsTask(hb.read_study(sys.argv[1]), "sqlite:///none.db#reports", sys.argv[2]))
    pipe.send(None)
    print(pipe.recv(), "PYTHONSAFEPATH" in os.environ)
    process.kill()
"""


def plant(folder: Path, *names: str) -> None:
    """Write modules that would be imported if the current folder came first, and leave a trace."""
    folder.mkdir()
    for name in names:
        (folder / f"{name}.py").write_text(f"open('ran-{name}', 'w').close(); raise SystemExit")


def test_the_worker_runs_nothing_in_the_current_folder(tmp_path: Path) -> None:
    script, study, planted = tmp_path / "ask_once.py", tmp_path / "study.toml", tmp_path / "planted"
    script.write_text(ASK_ONCE)
    study.write_text(STUDY)
    plant(planted, "multiprocessing", "pickle", "signal", "numpy", "hubbub")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    command = [sys.executable, str(script), str(study), str(tmp_path)]
    done = subprocess.run(command, cwd=planted, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    assert not list(planted.glob("ran-*"))
    assert "the database does not exist" in done.stdout, done.stderr
    assert done.stdout.endswith("False\n")  # what keeps it from that folder is set for the worker alone


def test_simulated_people_run_nothing_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = tmp_path / "study.toml"
    study.write_text(STUDY_TEXT)
    plant(tmp_path / "planted", "json", "runpy", "secrets", "hubbub")
    monkeypatch.chdir(tmp_path / "planted")
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    told: list[str] = []
    with SimulatedPeople(None, study, 0, 0.0, told.append) as people:
        people._run("http://127.0.0.1:1")
    assert not list(Path().glob("ran-*"))
    assert "have answered" in told[0]


@pytest.mark.parametrize("before", [None, "", "1"])
def test_the_environment_is_as_it_was_when_the_last_block_ends(
    before: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(SAFE_PATH, raising=False)
    if before is not None:
        monkeypatch.setenv(SAFE_PATH, before)
    first, second = no_imports_from_current_folder(), no_imports_from_current_folder()
    with first:
        second.__enter__()
    assert os.environ[SAFE_PATH] == "1"  # they overlap: threads start processes at the same time
    second.__exit__(None, None, None)
    assert os.environ.get(SAFE_PATH) == before


def test_results_of_people_with_tokens_count_people(tmp_path: Path) -> None:
    """A person's later report belongs to the earlier one: nobody is counted twice."""
    path = tmp_path / "tokens.toml"
    path.write_text(STUDY.replace("[collector]", '[collector]\naccess = "tokens"'))
    study, key = hb.read_study(path), tmp_path / "key"
    tokens = TokenKey.read_or_make(key, study.fingerprint)
    people = [tokens.issue() for _ in range(3)]
    running = RunningCollector(path, f"sqlite:///{tmp_path}/tokens.db", tokens_key=key)
    task = ResultsTask(study, f"sqlite:///{tmp_path}/tokens.db#reports", str(tmp_path))
    try:
        assert running.send([report("tea", "answer", user=person) for person in people])[0] == 200
        first = current_results(task, -1)
        assert isinstance(first, ResultsSnapshot), first
        assert (first.reports, first.users) == (3, 3)
        assert (
            running.send([report("coffee", "answer", user=tokens.issue()), report("tea", "answer", user=people[0])])[0]
            == 200
        )
        second = current_results(task, first.reports)
        assert isinstance(second, ResultsSnapshot), second
        assert (second.reports, second.users) == (5, 4)
    finally:
        assert running.stop() == 0


@pytest.mark.slow
def test_results_of_a_table_in_postgresql(tmp_path: Path, server: Server) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    address = server.address("live_results")
    running = RunningCollector(tmp_path / "study.toml", address)
    try:
        send(running, 3, 2)
        task = ResultsTask(running.study, address, str(tmp_path))
        first = current_results(task, -1)
        assert isinstance(first, ResultsSnapshot), first
        send(running, 1, 0)
        second = current_results(task, first.reports)
        assert isinstance(second, ResultsSnapshot), second
        assert (first.users, second.users) == (5, 6)
    finally:
        assert running.stop() == 0


def test_tokens_for_results_are_long_and_sessions_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert read_results_token(None) is None
    monkeypatch.setenv(VARIABLE, f" {TOKEN}\n")
    assert read_results_token(None) == TOKEN
    path = tmp_path / "token"
    for content in (b"short", b"", b"x" * 2000, b"two lines of\nsome letters", b"\xff" * 20):
        path.write_bytes(content)
        with pytest.raises(hb.SettingError, match="the token for the results cannot be used") as error:
            read_results_token(path)
        assert "letters of" not in str(error.value)
    with pytest.raises(hb.SettingError):
        read_results_token(tmp_path / "none")
    now = [0.0]
    access = ResultsAccess(TOKEN, lambda: now[0])
    assert access.is_token(TOKEN)
    assert not access.is_token(TOKEN[:-1])
    session = access.begin_session()
    assert access.is_session(session)
    assert not access.is_session(TOKEN)
    now[0] = 13 * 3600.0
    assert not access.is_session(session)
    assert [access.is_session(access.begin_session()) for _ in range(1001)] == [True] * 1001


@pytest.mark.slow
def test_the_live_page_in_a_browser(chromium: Browser, tmp_path: Path) -> None:
    """Sign in, see the estimate, answer in another tab, see it change; the session never travels with a report."""
    with collecting(tmp_path) as running:
        send(running, 10, 10)
        context = chromium.new_context()
        context.set_default_timeout(1000 * PATIENCE)
        said: list[str] = []
        posts: list[dict[str, str]] = []
        tab = context.new_page()
        tab.on("console", lambda message: said.append(message.text))
        context.on(
            "request", lambda request: posts.append(request.all_headers()) if "/reports" in request.url else None
        )
        tab.goto(f"{running.url}/results")
        tab.locator("#token").fill("wrong")
        tab.locator("button").click()
        tab.get_by_text("This is not the token").wait_for()
        tab.locator("#token").fill(TOKEN)
        tab.locator("button").click()
        tab.get_by_text("20 reports, computed").wait_for()
        tab.frame_locator("#report").locator("html.ready").wait_for()
        page = context.new_page()
        page.goto(running.url)
        page.locator(".option").first.click()
        page.locator("#draw").click()
        page.locator("#send").click()
        page.locator("#done").wait_for()
        tab.get_by_text("21 reports, computed").wait_for()
        assert tab.evaluate("document.cookie") == ""
        names = {(cookie["name"], cookie["path"], cookie["httpOnly"]) for cookie in context.cookies()}
        assert names == {("hubbub-results", "/results", True), ("hubbub-results", "/results.json", True)}
        assert [headers for headers in posts if "cookie" in headers] == []
        assert posts
        assert [line for line in said if "401" not in line and "403" not in line] == []
        context.close()
