"""A command with ``--json`` that fails prints why as JSON, too; what people read and the exit code stay the same."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import hubbub as hb
from hubbub.cli import app as program
from hubbub.cli.app import main
from hubbub.cli.commands import COMMANDS, module_of
from studies import LIGHT_TOML
from test_secrets import ADDRESS, PASSWORD, WORDS

Run = Callable[..., tuple[object, str, str]]
PARTS = ("what", "where", "got", "expected", "remedy")
COMMAND_PARAMETERS = {name: inspect.signature(import_module(module_of(name)).command).parameters for name in COMMANDS}
PRINTING = [name for name, parameters in COMMAND_PARAMETERS.items() if "as_json" in parameters]
# Words with which each command that prints JSON fails on what it reads.
GONE: dict[str, list[str]] = {
    name: [f"gone/{word}" if word.endswith((".toml", ".tally.parquet")) else word for word in WORDS[name]]
    for name in PRINTING
}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    (tmp_path / "study.toml").write_text(LIGHT_TOML)
    (tmp_path / "reports.csv").write_text("output\n3\n4\n99\n")
    monkeypatch.chdir(tmp_path)

    def command(*words: str) -> tuple[object, str, str]:
        monkeypatch.setattr("sys.argv", ["hubbub", *words])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capfd.readouterr()
        return end.value.code, out, err

    return command


def error_in(out: str) -> dict[str, Any]:
    """The error of a document, which is all there is on standard output."""
    document = json.loads(out)
    assert out.count("\n") == 1
    assert list(document) == ["version", "error"]
    assert document["version"] == 1
    error: dict[str, Any] = document["error"]
    assert list(error) == ["kind", *PARTS, "code", "exit_code"]
    return error


@pytest.mark.parametrize("name", PRINTING)
def test_every_command_says_what_it_says_to_people(name: str, run: Run) -> None:
    code, out, err = run(name, *GONE[name])
    assert (code, out) == (1, "")
    assert run(name, *GONE[name], "--json")[::2] == (1, err)
    error = error_in(run(name, *GONE[name], "--json")[1])
    assert error["exit_code"] == 1
    assert issubclass(getattr(hb, error["kind"]), hb.HubbubError)
    marked = f" [{error['code']}]" if error["kind"] == "IntakeError" else ""
    labelled = [f"  {label + ':':<10}{error[label]}" for label in PARTS[1:]]
    assert err == "\n".join([f"hubbub: {error['what']}{marked}", *labelled]) + "\n"


def test_a_cause_that_can_be_looked_up_has_its_code(run: Run) -> None:
    code, out, _ = run("collect", "study.toml", "reports.csv", "-o", "t.tally.parquet", "--json")
    error = error_in(out)
    assert code == 1
    assert error["kind"] == "IntakeError"
    assert error["code"]
    assert "99" in error["got"]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["estimate", "--jsn", "--json"], "No such option: --jsn"),
        (["plan", "--json", "--users", "10"], "Missing argument 'STUDY'"),
        (["plan", "study.toml", "--json", "--users", "ten"], "'ten' is not a number"),
        (["compare", "--level", "high", "a", "b", "--json"], "Invalid value for '--level'"),
        (["frobnicate", "--json"], "No such command 'frobnicate'"),
        (["--json"], "No such option: --json"),
    ],
)
def test_a_wrong_call_says_how_the_command_is_called(words: list[str], what: str, run: Run) -> None:
    code, out, err = run(*words)
    error = error_in(out)
    assert code == error["exit_code"] == 2
    assert error["kind"] == "UsageError"
    assert what in error["what"]
    assert error["what"] in err
    assert error["got"] == " ".join(["hubbub", *words])
    assert error["where"] in error["expected"]
    assert error["expected"] in " ".join(err.split())
    assert error["remedy"] == f"see {error['where']} --help"
    assert error["code"] is None


def test_a_wrong_value_of_an_option_is_wrong_usage(run: Run) -> None:
    code, out, _ = run("audit", "study.toml", "--draws", "3", "--json")
    assert code == error_in(out)["exit_code"] == 2
    assert error_in(out)["kind"] == "SettingError"


@pytest.mark.parametrize("words", [["audit", "gone.toml"], ["audit", "gone.toml", "--", "--json"], ["audit"]])
def test_nobody_else_gets_json(words: list[str], run: Run) -> None:
    code, out, err = run(*words)
    assert code in (1, 2)
    assert out == ""
    assert err


def test_a_fault_of_the_program_is_told_with_its_traceback_for_people(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(f"cannot open {ADDRESS}")

    monkeypatch.setattr(program, "app", fail)
    code, out, err = run("check", "study.toml", "reports.csv", "--json")
    error = error_in(out)
    assert code == error["exit_code"] == 1
    assert error["kind"] == "UnexpectedError"
    assert error["what"].startswith("RuntimeError: cannot open postgresql://app:***@")
    assert error["expected"] is None
    assert "Traceback" in err
    assert PASSWORD not in out + err


def test_no_password_is_in_the_words_of_a_wrong_call(run: Run) -> None:
    _, out, err = run("collect", "study.toml", ADDRESS, "--unknown", "--json")
    assert "***" in error_in(out)["got"]
    assert PASSWORD not in out + err


@pytest.mark.skipif(os.name == "nt", reason="names of files are text there")
def test_names_that_are_no_text_are_told(run: Run) -> None:
    code, out, _ = run("audit", os.fsdecode(b"\xff.toml"), "--unknown", "--json")
    assert code == 2
    assert "\\udcff.toml" in error_in(out)["got"]


@pytest.mark.skipif(os.name == "nt", reason="pipes break with other words there")
def test_a_reader_that_has_left_changes_no_exit_code(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "hubbub.cli", "plan", "--json"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False)  # noqa: S603
    os.close(writing)
    assert done.returncode == 2
    assert done.stderr.endswith("Error: Missing argument 'STUDY'.\n")
