"""The collector: reports are checked by the study, stored once, and acknowledged when they are durable."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

import hubbub as hb
from collectors import STUDY, RunningCollector, encoded_request, report, run_load
from hubbub.cli.app import main
from hubbub.serve.access_tokens import TokenKey
from hubbub.serve.rate_limit import RateLimit
from servers import Server

ATTRIBUTES = """version = 1
max_reports_per_user = 2
[domain]
kind = "product"
[domain.attributes.age]
kind = "integers"
low = 0
high = 9
[domain.attributes.sex]
kind = "categories"
labels = ["f", "m"]
[mechanisms.both]
kind = "sample-one-with-fakes"
[mechanisms.both.parts.age]
kind = "truncated-geometric"
epsilon = 0.5
[mechanisms.both.parts.sex]
kind = "randomized-response"
epsilon = 1.0
[mechanisms.bits]
kind = "rappor"
epsilon = 1.0
[collector]
access = "tokens"
time = "hour"
origins = ["https://example.org"]
max_requests_per_minute = 1000000
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("serve")
    (where / "study.toml").write_text(STUDY)
    (where / "tokens.toml").write_text(ATTRIBUTES)
    return where


@pytest.fixture(scope="module")
def collector(folder: Path) -> Iterator[RunningCollector]:
    running = RunningCollector(folder / "study.toml", f"sqlite:///{folder}/shared.db")
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def tokens(folder: Path) -> TokenKey:
    study = hb.read_study(folder / "tokens.toml")
    return TokenKey.read_or_make(folder / "tokens.key", study.fingerprint)


@pytest.fixture(scope="module")
def guarded(folder: Path, tokens: TokenKey) -> Iterator[RunningCollector]:
    running = RunningCollector(
        folder / "tokens.toml", f"sqlite:///{folder}/guarded.db#answers", tokens_key=folder / "tokens.key"
    )
    yield running
    assert running.stop() == 0


def rows(path: Path, table: str = "reports") -> list[dict[str, Any]]:
    with sqlite3.connect(path) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute(f"SELECT * FROM {table} ORDER BY number")]  # noqa: S608


def codes(answer: dict[str, Any]) -> list[tuple[int | None, str]]:
    assert answer["accepted"] == 0
    for error in answer["errors"]:
        assert set(error) == {"report", "what", "where", "got", "expected", "remedy", "code"}
        assert all(error[part] for part in ("what", "where", "got", "expected", "remedy", "code"))
    return [(error["report"], error["code"]) for error in answer["errors"]]


def test_reports_are_stored_once_and_nothing_else_is(collector: RunningCollector, folder: Path) -> None:
    first, second = report("3"), report("-5", "light")
    assert collector.send([first, second]) == (200, {"accepted": 2, "repeated": 0})
    third = report("0")
    assert collector.send([second, third]) == (200, {"accepted": 1, "repeated": 1})
    assert collector.post(third) == (200, {"accepted": 0, "repeated": 1})  # a report by itself
    stored = {row["key"]: row for row in rows(folder / "shared.db")}
    today = time.strftime("%Y-%m-%d", time.gmtime())
    for each in (first, second, third):
        row = stored[each["key"]]
        assert set(row) == {"key", "mechanism", "output", "received", "number"}
        assert (row["mechanism"], row["output"]) == (each["mechanism"], each["output"])
        assert row["received"][:7] == today[:7]
        assert len(row["received"]) == len(today)
    with sqlite3.connect(folder / "shared.db") as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    assert tables == {"reports", "hubbub_collector", "sqlite_sequence"}


BAD = [
    (report("8"), "out-of-domain"),
    (report("3.5"), "not-a-number"),
    (report("3", "weak"), "unknown-mechanism"),
    ({"output": "3", "key": "k" * 8}, "no-mechanism"),
    (report(3), "not-an-output"),
    (report(None), "no-output"),
    (report(""), "no-output"),
    (report({"age": "3"}), "nested-entry"),
    (report("3\0"), "not-utf-8"),
    (report("\ud800"), "not-utf-8"),
    ({**report(), "key": "short"}, "bad-key"),
    ({**report(), "key": "k" * 65}, "bad-key"),
    ({**report(), "key": "spaces in it"}, "bad-key"),
    ({**report(), "key": 12345678}, "bad-key"),
    ({"mechanism": "strong", "output": "3"}, "bad-key"),
    (report(user="somebody"), "unwanted-user"),
    (report(time="12:00"), "bad-report"),
    ("3", "bad-report"),
    ([], "bad-report"),
]


@pytest.mark.parametrize(("bad", "code"), BAD, ids=[f"{code} {place}" for place, (_, code) in enumerate(BAD)])
def test_one_bad_report_refuses_the_request_and_is_told(
    collector: RunningCollector, folder: Path, bad: Any, code: str
) -> None:
    before = rows(folder / "shared.db")
    status, answer = collector.send([report(), bad, report()])
    assert (status, codes(answer)) == (422, [(1, code)])
    assert rows(folder / "shared.db") == before


def test_each_bad_report_of_many_is_told_of_up_to_a_limit(collector: RunningCollector) -> None:
    status, answer = collector.send([report("x") if place % 2 else report() for place in range(3000)])
    assert status == 422
    assert [error["report"] for error in answer["errors"]] == list(range(1, 41, 2))
    assert answer["more_errors"] == 500 - 20  # of the first thousand, after which it stops
    good = [report() for _ in range(2500)]
    status, answer = collector.send([*good, report("x")])
    assert (status, codes(answer)) == (422, [(2500, "not-a-number")])
    status, answer = collector.send([{"output": "3"} for _ in range(3000)])
    assert (status, answer["more_errors"]) == (422, 100 - 20)


def test_a_key_stands_for_one_report(collector: RunningCollector) -> None:
    one = report("3")
    assert collector.send([one, one]) == (200, {"accepted": 1, "repeated": 1})
    status, answer = collector.send([report(), {**one, "output": "4"}])
    assert (status, codes(answer)) == (422, [(1, "key-reused")])
    status, answer = collector.send([two := report("1"), {**two, "output": "2"}])
    assert (status, codes(answer)) == (422, [(1, "key-reused")])


def test_a_request_that_is_not_one(collector: RunningCollector) -> None:
    other = {"fingerprint": "0" * 64, "reports": [report()]}
    assert (collector.post(other)[0], codes(collector.post(other)[1])) == (409, [(None, "other-study")])
    assert collector.post({**report(), "fingerprint": "0" * 64})[0] == 409
    fingerprint = collector.study.fingerprint
    for document, status in [
        ([report()], 422),
        ({"reports": [report()]}, 422),
        ({"fingerprint": fingerprint, "reports": []}, 422),
        ({"fingerprint": fingerprint, "reports": {}}, 422),
        ({"fingerprint": fingerprint, "reports": [report()], "more": 1}, 422),
        (b"{", 400),
        (b"", 400),
        (b"\xff\xfe{}", 400),
        (b'\xef\xbb\xbf{"key": 1}', 400),
        (b"[" * 100_000, 400),
        (b'{"key": NaN}', 400),
        (b'{"output": "3", "mechanism": "strong", "key": "aaaaaaaa", "key": "bbbbbbbb"}', 400),
        (
            json.dumps({"fingerprint": fingerprint, "reports": [report()] * 200})
            .encode()
            .replace(b'"key"', b'"output": "3", "key"', 1),
            400,
        ),
        (b"9" * 5000, 400),
    ]:
        assert collector.post(document)[0] == status, document


def test_a_body_must_be_declared_as_json(collector: RunningCollector) -> None:
    body = json.dumps(report()).encode()
    for headers in (
        {},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/json; charset=latin-1"},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
    ):
        status, _, content = collector.ask("POST", "/reports", body, headers)
        assert (status, codes(json.loads(content))) == (415, [(None, "wrong-type")]), headers
    status, _, _ = collector.ask("POST", "/reports", body, {"Content-Type": 'Application/JSON; charset="UTF-8"'})
    assert status == 200


def test_large_requests_are_refused_before_they_are_held(collector: RunningCollector) -> None:
    many = [report() for _ in range(20_000)]
    status, answer = collector.send(many)
    assert (status, codes(answer)) == (413, [(None, "too-large")])
    assert collector.send(many[:5_000])[0] == 200


def test_other_paths_and_methods_are_told_in_five_parts(collector: RunningCollector) -> None:
    for method, path, status in [
        ("GET", "/nothing", 404),
        ("GET", "/reports", 405),
        ("PUT", "/reports", 405),
        ("DELETE", "/health", 405),
        ("OPTIONS", "/reports", 405),
        ("GET", "/reports/", 404),
        ("POST", "//reports", 404),
        ("GET", "/../../etc/passwd", 404),
        ("GET", "/%2e%2e/study.toml", 404),
    ]:
        found, headers, content = collector.ask(method, path)
        assert found == status, (method, path)
        assert len(codes(json.loads(content))) == 1
        assert headers["content-type"] == "application/json"


def test_health_and_metrics(collector: RunningCollector) -> None:
    assert collector.ask("GET", "/health")[::2] == (200, b'{"status": "ok"}')
    accepted = collector.send([report() for _ in range(5)])[1]["accepted"]
    status, headers, content = collector.ask("GET", "/metrics")
    assert (status, accepted) == (200, 5)
    assert headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = dict(line.rsplit(" ", 1) for line in content.decode().splitlines() if not line.startswith("#"))
    assert int(lines["hubbub_reports_accepted_total"]) >= 5
    assert int(lines["hubbub_storage_up"]) == 1
    assert int(lines["hubbub_request_bytes_held"]) == 0
    assert int(lines['hubbub_commit_seconds_bucket{le="+Inf"}']) == int(lines["hubbub_commit_seconds_count"])


def test_only_named_sites_may_send_from_a_browser(guarded: RunningCollector, tokens: TokenKey) -> None:
    def ask(origin: str, method: str = "POST", **more: str) -> tuple[int, dict[str, str]]:
        body = json.dumps({**report("0x80", "bits"), "user": tokens.issue()}).encode()
        headers = {"Content-Type": "application/json", "Origin": origin, **more}
        return guarded.ask(method, "/reports", body, headers)[:2]

    status, headers = ask("https://example.org")
    assert status == 422  # the output: the origin was taken
    assert headers["access-control-allow-origin"] == "https://example.org"
    status, headers = ask("https://example.org", "OPTIONS", **{"Access-Control-Request-Method": "POST"})
    assert (status, headers["access-control-allow-headers"]) == (204, "content-type")
    assert headers["vary"] == "origin"
    for origin in (
        *("https://example.org.evil.net", "http://example.org", "null", "https://EXAMPLE.org", "*", ""),
        *("https://example.org:443", "https://example.org/", "https://evil.net, https://example.org"),
    ):
        for method in ("POST", "OPTIONS"):
            status, headers = ask(origin, method)
            assert status == 403, origin
            assert "access-control-allow-origin" not in headers
    assert ask(f"http://127.0.0.1:{guarded.port}")[0] == 422  # our own pages


def test_tokens_are_checked_counted_and_not_stored(guarded: RunningCollector, tokens: TokenKey, folder: Path) -> None:
    token, other = tokens.issue(), tokens.issue()
    both = {"age": "3", "sex": "f"}
    first = report(both, "both", user=token)
    second = report(json.dumps(both), "both", user=token)
    assert guarded.send([first, second]) == (200, {"accepted": 2, "repeated": 0})
    assert guarded.send([first, second]) == (200, {"accepted": 0, "repeated": 2})  # a retry is not one report too many
    status, answer = guarded.send([report(both, "both", user=other), report(both, "both", user=token)])
    assert (status, codes(answer)) == (403, [(1, "too-many-reports")])
    status, answer = guarded.send([report(both, "both", user=other) for _ in range(3)])
    assert (status, codes(answer)) == (403, [(2, "too-many-reports")])
    assert guarded.send([report(both, "both", user=other) for _ in range(2)])[0] == 200
    status, answer = guarded.send([report(both, "both")])
    assert (status, codes(answer)) == (401, [(0, "no-token")])
    for wrong in (token[:-2] + ("AA" if token[-2] != "A" else "BA"), token[:20], "A" * 43, "é" * 43, token + "A", ""):
        status, answer = guarded.send([report(both, "both", user=wrong)])
        assert (status, answer["errors"][0]["code"]) in {(403, "bad-token"), (401, "no-token")}, wrong
    content = b"".join(path.read_bytes() for path in folder.glob("guarded.db*"))
    assert token.encode() not in content
    stored = rows(folder / "guarded.db", "answers")
    assert len({row["user"] for row in stored}) == 2
    assert all(row["received"].endswith(":00Z") for row in stored)
    assert {(row["output.age"], row["output.sex"]) for row in stored} == {("3", "f")}


def test_outputs_about_several_attributes(guarded: RunningCollector, tokens: TokenKey) -> None:
    def send(output: object, mechanism: str = "both") -> list[tuple[int | None, str]]:
        status, answer = guarded.send([report(output, mechanism, user=tokens.issue())])
        assert status == 422
        return codes(answer)

    assert send({"age": "3"}) == [(0, "attribute-missing")]
    assert send({"age": "3", "sex": "x"}) == [(0, "out-of-domain")]
    assert send({"age": 3, "sex": "f"}) == [(0, "not-attributes")]
    assert send({"age": "3", "sexe": "f"}) == [(0, "not-attributes")]
    assert send("3") == [(0, "not-attributes")]
    assert send({}) == [(0, "not-attributes")]
    assert send({"age": "3", "sex": "f"}, "bits") == [(0, "nested-entry")]
    assert send("0x8000", "bits") == [(0, "wrong-bits")]
    fit = report("0x800000", "bits", user=tokens.issue())
    assert guarded.send([fit])[1].get("accepted") == 1


def test_a_token_is_of_one_key_and_one_study(tmp_path: Path) -> None:
    key = TokenKey.read_or_make(tmp_path / "key", "a" * 64)
    token = key.issue()
    assert TokenKey.read(tmp_path / "key", "a" * 64).user(token) == key.user(token) != key.user(key.issue())
    assert TokenKey.read(tmp_path / "key", "b" * 64).user(token) is None
    assert TokenKey.read_or_make(tmp_path / "other", "a" * 64).user(token) is None
    assert (tmp_path / "key").stat().st_mode & 0o077 == 0


def test_collect_simply_continues(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    address, tally = f"sqlite:///{tmp_path}/reports.db#reports", tmp_path / "a.tally.parquet"
    running = RunningCollector(tmp_path / "study.toml", address)
    running.send([report("3") for _ in range(100)])
    assert hb.collect(running.study, address, tally).users == 100  # while it runs
    running.send([report("-2", "light") for _ in range(20)])
    assert hb.collect(running.study, address, tally).users == 120
    assert running.stop() == 0
    counted = hb.collect(running.study, address, tally)
    assert (counted.users, counted.sources[0].mark.value if counted.sources[0].mark else "") == (120, "120")
    assert [str(each.message) for each in recwarn] == []


def test_the_table_of_another_study_is_refused(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "other.toml").write_text(STUDY.replace("epsilon = 0.5", "epsilon = 0.6"))
    (tmp_path / "none.toml").write_text(STUDY.partition("[collector]")[0])
    address = f"sqlite:///{tmp_path}/reports.db"
    RunningCollector(tmp_path / "study.toml", address).stop()
    from hubbub.serve.api import serve

    with pytest.raises(hb.IntakeError, match="another study"):
        serve(hb.read_study(tmp_path / "other.toml"), address, port=0)
    with pytest.raises(hb.StudyError, match="collector"):
        serve(hb.read_study(tmp_path / "none.toml"), address, port=0)
    with sqlite3.connect(tmp_path / "reports.db") as database:
        database.execute("CREATE TABLE mine (output TEXT)")
    with pytest.raises(hb.IntakeError, match="not made by a collector"):
        serve(hb.read_study(tmp_path / "study.toml"), f"{address}#mine", port=0)
    for wrong in (f"{address}#SELECT 1", "duckdb:///a.duckdb#reports"):
        with pytest.raises(hb.SettingError, match="written there"):
            serve(hb.read_study(tmp_path / "study.toml"), wrong, port=0)
    with pytest.raises(hb.SettingError, match="keeps its own notes"):
        serve(hb.read_study(tmp_path / "study.toml"), f"{address}#hubbub_collector", port=0)
    with pytest.raises(hb.IntakeError, match="is a folder"):
        serve(hb.read_study(tmp_path / "study.toml"), f"sqlite:///{tmp_path}", port=0)
    with pytest.raises(hb.IntakeError, match="cannot be opened"):
        serve(hb.read_study(tmp_path / "study.toml"), "postgresql://nobody@127.0.0.1:1/none", port=0)


def test_requests_that_arrived_are_answered_when_it_is_stopped(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    running = RunningCollector(tmp_path / "study.toml", f"sqlite:///{tmp_path}/reports.db")
    requests = (encoded_request(running.study.fingerprint, [report()]) for _ in range(100_000))
    threading.Timer(0.5, running.ask_to_stop).start()
    load = run_load(running.port, requests, 8, keep=True)
    assert running.stop() == 0
    stored = {row["key"] for row in rows(tmp_path / "reports.db")}
    acknowledged = {key for keys in load.acknowledged for key in keys}
    assert acknowledged <= stored
    assert len(acknowledged) > 10
    assert set(load.statuses) <= {200, 503}


def test_one_address_has_so_many_requests_a_minute() -> None:
    now = [0.0]
    limit = RateLimit(3, clock=lambda: now[0])
    assert [limit.wait("10.0.0.1") for _ in range(5)] == [0, 0, 0, 60, 60]
    assert limit.wait("10.0.0.2") == 0
    network = [limit.wait(f"2001:db8::{host}") for host in range(4)]
    assert network == [0, 0, 0, 60]  # one owner has all addresses of a network
    now[0] = 59.0
    assert limit.wait("10.0.0.1") == 1
    now[0] = 60.0
    assert limit.wait("10.0.0.1") == 0


def test_too_many_requests_are_told_when_to_come_again(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY.replace("1000000000", "2"))
    running = RunningCollector(tmp_path / "study.toml", f"sqlite:///{tmp_path}/r.db", proxies=["127.0.0.1"])

    def ask(forwarded: str) -> int:
        return running.ask("GET", "/health", headers={"X-Forwarded-For": forwarded})[0]

    assert [ask("192.0.2.1"), ask("192.0.2.1, 127.0.0.1"), ask("spoofed, 192.0.2.1")] == [200, 200, 429]
    assert [ask("192.0.2.2"), ask("192.0.2.1, 192.0.2.2"), ask("192.0.2.3, 192.0.2.2")] == [200, 200, 429]
    status, headers, content = running.ask("GET", "/health", headers={"X-Forwarded-For": "192.0.2.1"})
    assert (status, codes(json.loads(content))) == (429, [(None, "too-many-requests")])
    assert 1 <= int(headers["retry-after"]) <= 60
    running.stop()
    assert b"192.0.2.1" not in (tmp_path / "r.db").read_bytes()


def test_postgresql_holds_the_same_table(tmp_path: Path, server: Server) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    address = server.address("collected.evenings")
    server.psql("CREATE SCHEMA collected")
    running = RunningCollector(tmp_path / "study.toml", address)
    first = [report(str(place % 8)) for place in range(500)]
    assert running.send(first) == (200, {"accepted": 500, "repeated": 0})
    assert running.send([*first[:10], report("-3", "light")]) == (200, {"accepted": 1, "repeated": 10})
    status, answer = running.send([{**first[0], "output": "7"}])
    assert (status, codes(answer)) == (422, [(0, "key-reused")])
    tally = tmp_path / "a.tally.parquet"
    assert hb.collect(running.study, address, tally).users == 501
    server.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    statuses = {running.send([last := report("1")])[0]}
    assert statuses <= {200, 503}
    deadline = time.monotonic() + 20
    while running.post(last)[0] != 200 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert running.post(last) == (200, {"accepted": 0, "repeated": 1})
    assert hb.collect(running.study, address, tally).users == 502
    assert running.stop() == 0
    again = RunningCollector(tmp_path / "study.toml", address)
    assert again.post(last) == (200, {"accepted": 0, "repeated": 1})
    assert again.stop() == 0
    server.psql("INSERT INTO no_such_table VALUES ('of the log')")
    assert "of the log" in server.log  # the server logs what goes wrong, and the time of it
    assert not [each["key"] for each in [*first, last] if each["key"] in server.log]


def test_the_command_serves_until_it_is_told_to_stop(tmp_path: Path) -> None:
    """The question page and the results are there, too."""
    (tmp_path / "study.toml").write_text(STUDY + '[question]\ntext = "How often?"\nmechanism = "light"\n')
    (tmp_path / "token").write_text("a token of twenty letters\n")
    command = [sys.executable, "-m", "hubbub.cli", "serve", "study.toml", "--to", "sqlite:///r.db", "--port", "0"]
    command += ["--results-token-file", "token", "--results-every", "3600"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as running:  # noqa: S603
        try:
            assert running.stderr is not None
            words = running.stderr.readline().split()
            assert words[-3:] == ["stored", "in", "sqlite:///r.db#reports"]
            body = json.dumps(report()).encode()
            request = Request(words[3].rstrip(","), body, {"Content-Type": "application/json"})  # noqa: S310  # our own
            with urlopen(request, timeout=30) as answer:  # noqa: S310
                assert json.load(answer) == {"accepted": 1, "repeated": 0}
            question, results = (running.stderr.readline().split()[-1] for _ in range(2))
            with urlopen(question, timeout=30) as answer:  # noqa: S310
                assert b"How often?" in answer.read()
            with urlopen(f"{question}study.json", timeout=30) as answer:  # noqa: S310
                assert json.load(answer)["question"] == {"text": "How often?", "mechanism": "light"}
            assert results == f"{question}results"
            with pytest.raises(HTTPError, match="401"):
                urlopen(results, timeout=30)  # noqa: S310
            running.send_signal(signal.SIGINT)
            assert running.wait(30) == 0
            assert running.stderr.read() == ""
        finally:
            running.kill()
    assert len(rows(tmp_path / "r.db")) == 1


def test_the_command_says_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("study.toml").write_text(STUDY)
    Path("tokens.toml").write_text(ATTRIBUTES)

    def told(*words: str) -> tuple[object, str]:
        monkeypatch.setattr("sys.argv", ["hubbub", "serve", *words])
        with pytest.raises(SystemExit) as end:
            main()
        captured = capfd.readouterr()
        return end.value.code, captured.out or captured.err

    for words, code, said in [
        (["study.toml"], 2, "needs a database"),
        (["study.toml", "--issue-tokens", "3", "--tokens-key", "k"], 2, "takes no tokens"),
        (["tokens.toml", "--issue-tokens", "3"], 2, "no --tokens-key"),
        (["tokens.toml", "--to", "sqlite:///r.db"], 2, "their key is missing"),
        (["study.toml", "--to", "sqlite:///r.db", "--host", "192.0.2.77"], 2, "cannot listen there"),
        (["study.toml", "--to", "sqlite:////none/such/r.db", "--port", "0"], 1, "does not exist"),
    ]:
        found, text = told(*words)
        assert said in text, words
        assert found == code, words
    exit_code, issued = told("tokens.toml", "--issue-tokens", "3", "--tokens-key", "k")
    key = TokenKey.read(tmp_path / "k", hb.read_study(tmp_path / "tokens.toml").fingerprint)
    assert (exit_code, len({key.user(token) for token in issued.split()} - {None})) == (0, 3)
