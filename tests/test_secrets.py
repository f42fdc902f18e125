"""No message, argument, log line or file ever shows a password, wherever in a command it was given."""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import hubbub as hb
from hubbub.cli.app import app, main
from hubbub.cli.commands import COMMANDS
from hubbub.client import Client, ClientError
from hubbub.core.errors import shorten
from hubbub.core.redaction import redact
from studies import LIGHT_TOML
from terminal import hubbub

Run = Callable[..., tuple[object, str]]
PASSWORD = "hunter2"  # noqa: S105
ADDRESS = f"postgresql://app:{PASSWORD}@localhost:1/db#reports"  # nothing listens there
# Words with which each command does something small; the password then takes the place of each in turn.
WORDS: dict[str, list[str]] = {
    "new": ["integers", "-o", "new.toml"],
    "privatize": ["study.toml", "values.csv", "-o", "private.csv", "--mechanism", "light"],
    "export-client": ["study.toml", "-o", "study.json"],
    "serve": ["tokens.toml", "--issue-tokens", "1", "--tokens-key", "tokens.key"],
    "collect": ["study.toml", "reports.csv", "-o", "a.tally.parquet"],
    "merge": ["one.tally.parquet", "two.tally.parquet", "-o", "all.tally.parquet"],
    "estimate": ["study.toml", "reports.csv", "--method", "inv-p", "--quick"],
    "check": ["study.toml", "reports.csv"],
    "resolve": ["study.toml", "reports.csv"],
    "compare": ["one.tally.parquet", "two.tally.parquet", "--against", "nobody"],
    "trend": ["one.tally.parquet", "two.tally.parquet", "--quantile", "0.5"],
    "independence": ["study.toml", "reports.csv", "--attributes", "a,b"],
    "discover": ["search.json", "words.csv"],
    "design": ["study.toml", "--epsilon", "1", "--goal", "information"],
    "plan": ["study.toml", "--users", "10", "--method", "inv-p", "--runs", "2"],
    "audit": ["study.toml", "--draws", "100"],
    "report": ["study.toml", "reports.csv", "-o", "page.html", "--quick", "--method", "inv-p"],
    "synthesize": ["study.toml", "reports.csv", "-n", "3", "-o", "records.csv", "--method", "inv-p"],
    "reproduce": ["none-of-these", "--quick"],
    "demo": [],
}
LONG = {("demo", "-o"), ("reproduce", "-o")}  # they would first compute for a while


def places() -> Iterator[tuple[str, str, list[str]]]:
    """Every place of every command that takes a text: (command, place, words)."""
    program: Any = typer.main.get_command(app)
    for name in sorted(COMMANDS):
        command = program.get_command(typer.Context(program), name)
        words = WORDS[name]
        for place, word in enumerate(words):
            if not word.startswith("-") and (place == 0 or not words[place - 1].startswith("-")):
                yield name, f"argument {place + 1}", [*words[:place], ADDRESS, *words[place + 1 :]]
        yield name, "one too many", [*words, ADDRESS, ADDRESS]
        yield name, "option", [*words, f"--{ADDRESS}"]
        for option in options(command):
            yield name, option, [*words, option, ADDRESS]


def options(command: Any) -> Iterator[str]:
    for parameter in command.params:
        if parameter.param_type_name == "option" and not parameter.is_flag:
            yield parameter.opts[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("secrets")
    (where / "study.toml").write_text(LIGHT_TOML)
    (where / "tokens.toml").write_text(LIGHT_TOML + '[collector]\naccess = "tokens"\n')
    (where / "reports.csv").write_text("output\n3\n4\n4\n")
    search = hb.PrefixSearch("ab", length=1, epsilon=1.0)
    (where / "search.json").write_text(search.to_json())
    (where / "words.csv").write_text("round,output\n1,7:0\n1,8:1\n")
    (where / "values.csv").write_text("value\n3\n")
    for name, rows in {"one": "3\n", "two": "3\n4\n"}.items():
        (where / f"{name}.csv").write_text(f"output\n{rows}")
        hb.collect(hb.read_study(where / "study.toml"), where / f"{name}.csv", where / f"{name}.tally.parquet")
    return where


EVERYWHERE = [pytest.param(*place, id=f"{place[0]} {place[1]}") for place in places() if place[:2] not in LONG]


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process, which is quicker than a process for each; return its exit code and its words."""
    monkeypatch.chdir(folder)

    def command(*words: str) -> tuple[object, str]:
        monkeypatch.setattr("sys.argv", ["hubbub", *words])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code, "".join(capfd.readouterr())

    return command


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("command", "place", "words"), EVERYWHERE)
def test_no_command_shows_a_password_wherever_it_is_given(
    run: Run, folder: Path, command: str, place: str, words: list[str]
) -> None:
    _, told = run(command, *words)
    assert PASSWORD not in told, f"{place}: {told}"
    assert "Traceback" not in told
    for path in folder.rglob("*"):
        if path.is_file():
            assert PASSWORD.encode() not in path.read_bytes(), path


def test_every_command_is_tried() -> None:
    assert set(WORDS) == set(COMMANDS)
    assert len(EVERYWHERE) > 80


@pytest.mark.slow
@pytest.mark.parametrize(("command", "option"), sorted(LONG))
def test_a_folder_with_a_password_in_its_name_is_not_told(tmp_path: Path, command: str, option: str) -> None:
    words = ["figure-1", "--quick"] if command == "reproduce" else []
    told = hubbub(command, *words, option, ADDRESS, cwd=tmp_path)
    assert PASSWORD not in told.stdout + told.stderr


FORMS = [
    f"postgresql://app:{PASSWORD}@localhost:1/db#reports",
    f"postgres://app:{PASSWORD}@localhost:1/db",  # no table
    f"postgresql://app:{PASSWORD}@localhost:1",
    f"postgresql://app:{PASSWORD}",
    f"postgresql:app:{PASSWORD}@localhost/db",
    f"postgresql:/app:{PASSWORD}@localhost/db#t",
    f"postgresql://app:4@{PASSWORD}@localhost:1/db#reports",
    f"postgresql://app:4/{PASSWORD}@localhost:1/db#reports",
    f"postgresql://app:4?{PASSWORD}@localhost:1/db#reports",
    f"postgresql://app:4#{PASSWORD}@localhost:1/db#reports",
    f"postgresql://app:4 {PASSWORD}@localhost:1/db#reports",
    f"postgresql://app:4'{PASSWORD}@localhost:1/db#reports",
    f"postgresql://app:4%{PASSWORD}@localhost:1/db#reports",
    f"postgresql://localhost:1/db?password={PASSWORD}#reports",
    f"postgresql://localhost:1/db?user=app&password={PASSWORD}&sslmode=off#reports",
    f"postgresql://localhost:1/db?sslpassword={PASSWORD}#reports",
    f"mysql://app:{PASSWORD}@localhost/db#t",
    f"mongodb+srv://app:{PASSWORD}@localhost/db",
    f"s3://key:{PASSWORD}@bucket/file.csv",
    f"host=localhost port=1 user=app password={PASSWORD} dbname=db",
    f"host=localhost password='4 {PASSWORD}'",
    f"sqlite:///none.db?password={PASSWORD}#t",
]


@pytest.mark.parametrize("form", FORMS)
def test_no_form_of_an_address_shows_its_password(run: Run, folder: Path, form: str) -> None:
    for words in ([form], ["study.toml", form], [form, "study.toml"]):
        code, told = run("estimate", *words, "--quick")
        assert code in (1, 2)
        assert PASSWORD not in told
    study = hb.read_study(folder / "study.toml")
    for source in (form, [form], (form, "reports.csv"), Path(form)):
        with pytest.raises(hb.HubbubError) as caught:
            hb.read_reports(source, study)
        shown = f"{caught.value} {caught.value!r} {caught.value.args} {vars(caught.value)}"
        assert PASSWORD not in shown


@pytest.mark.parametrize("limit", [20, 30, 40, 60, 200])
@pytest.mark.parametrize("form", FORMS)
def test_a_text_cut_short_shows_no_half_of_a_password(form: str, limit: int) -> None:
    assert PASSWORD[:4] not in shorten(form, limit)
    assert PASSWORD[:4] not in shorten([form], limit)


def test_what_is_no_password_stays() -> None:
    for text in [
        "postgresql://localhost:5432/db#reports",
        "postgresql://app@localhost:5432/db?sslmode=off#SELECT * FROM t WHERE mail = 'a@b'",
        "postgresql://localhost:5432/db and postgresql://app@localhost:5432/db",
        "postgresql://one:5432,two:5433/db#t",
        "tcp://127.0.0.1:8786",
        "tcp://[::1]:8786",
        "sqlite:////absolute/file.db#table",
        "C:/Users/ann/study.toml",
        "a study of 5 mechanisms: at most 3:2, see a@b.c",
        "https://example.org/a:b",
    ]:
        assert redact(text) == text


def test_addresses_with_any_password_are_redacted() -> None:
    draw = random.Random(1)  # noqa: S311
    letters = string.ascii_letters + string.digits + string.punctuation + " "
    for _ in range(2000):
        secret = "".join(draw.choices(letters, k=draw.randint(6, 12))) + "Zq9Zq9"
        text = f"got postgresql://app:{secret}@localhost:5432/db#t, expected something else"
        assert "Zq9Zq9" not in redact(text), text


def test_the_client_of_devices_shows_no_password(folder: Path) -> None:
    for form in (ADDRESS, Path(ADDRESS)):
        for files in ([form], [folder / "study.toml", form]):
            with pytest.raises(ClientError) as caught:
                Client(*files)
            assert PASSWORD not in f"{caught.value} {vars(caught.value)}"


def test_an_unexpected_failure_is_told_without_a_password(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(f"driver: connection to {ADDRESS} failed")

    monkeypatch.setattr("hubbub.cli.app.app", fail)
    code, told = run("estimate")
    assert code == 1
    assert "RuntimeError: driver: connection to postgresql://app:***@localhost:1/db#reports failed" in told
