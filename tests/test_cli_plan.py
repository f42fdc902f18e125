"""``hubbub plan``: what it is given, shows, prints and writes."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import hubbub as hb
from hubbub.cli.app import main

FAST = ("--method", "inv-p", "--runs", "60", "--truth", "zipf")
STUDY = """\
version = 1
[domain]
kind = "categories"
labels = ["red", "green", "blue", "black"]
[mechanisms.strong]
kind = "randomized-response"
epsilon = 1.0
[mechanisms.light]
kind = "randomized-response"
epsilon = 3.0
"""


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Done]


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the program's own `main`: a process for each of these cases would take a minute."""
    monkeypatch.chdir(folder)

    def ran(*arguments: object, columns: int = 80) -> Done:
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(sys, "argv", ["hubbub", "plan", "study.toml", *map(str, arguments)])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        return Done(code, *capsys.readouterr())

    return ran


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "last-year.csv").write_text("value,count\nred,60\ngreen,25\nblue,10\nblack,5\n")
    return tmp_path


def test_errors_of_the_studys_mechanisms(run: Run) -> None:
    done = run("--users", "1e3,10000", *FAST)
    assert done.returncode == 0, done.stderr
    assert "strong" in done.stdout
    assert "10,000" in done.stdout
    assert "With 1,000 users and epsilon 1, expect a total variation of" in " ".join(done.stdout.split())
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stderr == ""


def test_json_is_one_document_that_says_the_same_as_python(folder: Path, run: Run) -> None:
    options = "--target 0.05 --truth last-year.csv --mechanism strong --method inv-p --runs 60 --seed 3 --json"
    done = run(*options.split())
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    study = hb.read_study(folder / "study.toml")
    assert document["version"] == 1
    assert document["fingerprint"] == study.fingerprint
    assert document["truths"] == ["last-year.csv"]
    counts = {"red": 60, "green": 25, "blue": 10, "black": 5}
    plan = hb.plan({"strong": study.mechanisms["strong"]}, target=0.05, truth=counts, method="inv-p", runs=60, rng=3)
    assert document["needed"][0]["value"] == plan.needed[0].value
    assert document["settings"][0]["tv"]["median"] == plan.settings[0].tv.median


def test_a_shape_is_that_shape_whatever_lies_in_the_folder(folder: Path, run: Run) -> None:
    (folder / "bell").mkdir()
    done = run("--users", 100, "--truth", "bell", "--method", "inv-p", "--runs", 20)
    assert done.returncode == 0, done.stderr
    assert "a truth with one bell" in " ".join(done.stdout.split())


def test_kinds_at_equal_privacy_and_mixtures(run: Run) -> None:
    kinds = ("--kind", "rappor", "--kind", "randomized-response", "--epsilon", "0.5,2", "--target", "0.1")
    done = run(*kinds, *FAST, "--json")
    assert done.returncode == 0, done.stderr
    needed = json.loads(done.stdout)["needed"]
    assert [(need["candidate"], need["epsilon"]) for need in needed] == [
        ("rappor", 0.5), ("rappor", 2.0), ("randomized-response", 0.5), ("randomized-response", 2.0),
    ]  # fmt: skip
    mixed = ("--mix", "strong=0.25,light=0.75", "--users", "1000", "--method", "ibu", "--runs", "10", "--truth", "zipf")
    done = run(*mixed, "--json")
    assert done.returncode == 0, done.stderr
    (setting,) = json.loads(done.stdout)["settings"]
    assert setting["candidate"] == "25% strong + 75% light"
    assert setting["privacy"]["ldp"] == 3.0


def test_users_and_a_target_give_an_epsilon(run: Run) -> None:
    words = ("--kind", "rappor", "--epsilon", "0.2,8", "--users", "5000", "--target", "0.05", *FAST)
    done = run(*words)
    assert done.returncode == 0, done.stderr
    assert re.search(r"With 5,000 users, you need an epsilon (of about|between|of) ", " ".join(done.stdout.split()))


@pytest.mark.parametrize("ending", ["json", "csv", "png", "svg"])
def test_files_are_written(folder: Path, run: Run, ending: str) -> None:
    done = run("--users", "100,1000", *FAST, "-o", f"plan.{ending}")
    assert done.returncode == 0, done.stderr
    assert f"written: plan.{ending}" in done.stderr
    assert "expect a total variation" in " ".join(done.stdout.split())
    path = folder / f"plan.{ending}"
    if ending == "json":
        assert json.loads(path.read_text())["looked_for"] == "error"
    elif ending == "csv":
        with path.open() as file:
            rows = list(csv.DictReader(file))
        assert [(row["candidate"], row["users"]) for row in rows] == [
            ("strong", "100"), ("strong", "1000"), ("light", "100"), ("light", "1000"),
        ]  # fmt: skip
        assert all(0 < float(row["tv_low"]) <= float(row["tv"]) <= float(row["tv_high"]) for row in rows)
    else:
        assert path.stat().st_size > 5_000


def test_a_table_cannot_trick_a_spreadsheet(folder: Path, run: Run) -> None:
    (folder / "=1+1.csv").write_text("value,count\nred,60\ngreen,40\n")
    words = ("--users", "100", "--truth", "=1+1.csv", "--method", "inv-p", "--runs", "5")
    done = run(*words, "-o", "p.csv")
    assert done.returncode == 0, done.stderr
    with (folder / "p.csv").open() as file:
        assert {row["truth"] for row in csv.DictReader(file)} == {"'=1+1.csv"}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("", 2, "--users"),
        ("--users 1,000", 2, "write 1000 or 1e3"),
        ("--users ten", 2, "'ten' is not a number"),
        ("--users 5,", 2, "a number is missing"),
        ("--users 1.5", 2, "1.5 is not a positive whole number"),
        ("--users nan", 2, "'nan' is not a number"),
        ("--users 10 --kind rapor --epsilon 1", 2, "no such kind of mechanism"),
        ("--users 10 --kind rappor", 2, "kinds of mechanisms need an epsilon"),
        ("--users 10 --kind rappor --epsilon 0", 2, "0 is not a positive number"),
        ("--users 10 --kind rappor --epsilon one", 2, "'one' is not a number"),
        ("--users 10 --epsilon 1", 2, "already have an epsilon"),
        ("--users 10 --mix strong", 2, "NAME=SHARE"),
        ("--users 10 --mix strong=0.5,light=0.4", 2, "do not sum to 1"),
        ("--users 10 --mix strong=0.5,rappor=0.5", 2, "kinds need --epsilon"),
        ("--users 10 --mechanism weak", 2, "no such mechanism"),
        ("--users 10 --truth blob", 2, "no such shape"),
        ("--users 10 --truth gone.csv", 1, "no such file of counts"),
        ("--users 10 --truth study.toml", 1, "extension are not read"),
        ("--users 10 --truth worst --truth bell", 2, "pass 'worst' alone"),
        ("--target 2", 2, "target must be a total variation between 0 and 1"),
        ("--target 0.1 --distance emd", 2, "no distances"),
        ("--users 10 --reports-per-user 0", 2, "--reports-per-user"),
        ("--users 10 --method em", 2, "method must be 'auto'"),
        ("--users 10 -o plan.pdf", 2, "must end in"),
        ("--users 10 -o plan.geojson", 2, "must end in"),
        ("--users 10 -o gone/plan.png", 1, "plan.png"),
        ("--users 10 --truth last-year.csv -o last-year.csv", 2, "written over"),
    ],
)  # fmt: skip
def test_mistakes_exit_with_a_message_and_no_traceback(run: Run, words: str, code: int, message: str) -> None:
    done = run(*words.split(), columns=200)
    assert done.returncode == code, done.stderr
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_it_is_a_command_of_the_program(folder: Path) -> None:
    command = [sys.executable, "-m", "hubbub.cli", "plan", "study.toml", "--users", "100", *FAST, "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["users"] == [100]
    assert done.stderr == ""
