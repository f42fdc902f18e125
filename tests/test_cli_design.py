"""``hubbub design``: what it is given, shows, prints and writes."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import hubbub as hb
from hubbub.cli.app import main

STUDY = """\
version = 1
name = "steps"
max_reports_per_user = 2
[domain]
kind = "integers"
low = 0
high = 3
[mechanisms.noise]
kind = "truncated-geometric"
epsilon = 1.0
[question]
text = "How many?"
mechanism = "noise"
[columns]
output = "answer"
"""
DRINKS = """\
version = 1
[domain]
kind = "categories"
labels = ["tea", "coffee", "water"]
[mechanisms.standard]
kind = "randomized-response"
epsilon = 1.0
"""
QUICK = ("--epsilon", "0.5", "--privacy", "metric", "--goal", "variance")


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str

    @property
    def words(self) -> str:
        """Everything on standard output, in one line."""
        return " ".join(self.stdout.split())


Run = Callable[..., Done]


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the program's own `main`: a process for each of these cases would take a minute."""
    monkeypatch.chdir(folder)

    def ran(command: str, *arguments: object, columns: int = 80) -> Done:
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(sys, "argv", ["hubbub", command, *map(str, arguments)])
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
    (tmp_path / "drinks.toml").write_text(DRINKS)
    (tmp_path / "last-year.csv").write_text("value,count\n0,60\n1,25\n2,10\n3,5\n")
    (tmp_path / "rare.csv").write_text("value,count\ntea,60\ncoffee,40\n")
    (tmp_path / "pairs.csv").write_text("value,other,bound\ntea,coffee,0.5\nwater,coffee,1.5\n")
    (tmp_path / "edges.csv").write_text("value,other\ntea,coffee\nwater,coffee\n")
    (tmp_path / "losses.csv").write_text("value,water,coffee,tea\ncoffee,1,0,4\ntea,2,4,0\nwater,0,3,5\n")
    return tmp_path


def test_the_answer_and_built_in_mechanisms_beside_it(run: Run) -> None:
    done = run("design", "study.toml", *QUICK)
    assert done.returncode == 0, done.stderr
    assert "and epsilon 0.5 per unit: total variance of unbiased shares" in done.words
    assert "certified: at most" in done.words
    rows = [line.split("│") for line in done.stdout.splitlines() if "│" in line]
    names = [row[1].strip() for row in rows]
    assert names[0] == "design"
    assert "truncated-geometric" in names
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stderr == ""


def test_json_is_one_document_that_says_the_same_as_python(folder: Path, run: Run) -> None:
    options = "--prior last-year.csv --users 1e5 --outputs 6 --seed 3 --json"
    done = run("design", "study.toml", *QUICK, *options.split())
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    study = hb.read_study(folder / "study.toml")
    best = hb.design(
        study.domain, 0.5, privacy="metric", goal="variance", prior=[0.6, 0.25, 0.1, 0.05], users=10**5, outputs=6,
        rng=3,
    )  # fmt: skip
    assert list(document)[:2] == ["version", "fingerprint"]
    assert document["fingerprint"] == study.fingerprint
    assert document["comparison"] is None
    expected = json.loads(best.to_json())
    assert {name: document[name] for name in expected} == expected
    assert document["outputs"] <= 6


def test_a_study_with_the_design_goes_all_the_way(folder: Path, run: Run) -> None:
    """Designed, audited, asked on a page, privatized with real randomness, and estimated."""
    done = run("design", "study.toml", *QUICK, "-o", "designed.toml")
    assert done.returncode == 0, done.stderr
    assert done.stderr == "written: designed.toml\n"
    study = hb.read_study(folder / "designed.toml")
    (mechanism,) = study.mechanisms.values()
    assert list(study.mechanisms) == ["designed"]
    assert isinstance(mechanism, hb.Matrix)
    assert mechanism.metric
    assert mechanism.origin == "hubbub design, goal variance"
    assert 0.49 < mechanism.epsilon <= 0.5
    assert (study.name, study.max_reports_per_user, dict(study.columns)) == ("steps", 2, {"output": "answer"})
    assert study.question is not None
    assert dict(study.question) == {"text": "How many?", "mechanism": "designed"}
    best = hb.design(study.domain, 0.5, privacy="metric", goal="variance")
    assert mechanism.matrix().tobytes() == best.mechanism.matrix().tobytes()

    audited = run("audit", "designed.toml", "--draws", 2000)
    assert audited.returncode == 0, audited.stderr
    assert "proven" in audited.words
    (folder / "values.csv").write_text("value\n" + "0\n0\n0\n1\n1\n2\n3\n" * 100)
    privatized = run("privatize", "designed.toml", "values.csv", "-o", "reports.csv")
    assert privatized.returncode == 0, privatized.stderr
    words = "--output-column output --method mle --quick --json"
    estimated = run("estimate", "designed.toml", "reports.csv", *words.split())
    assert estimated.returncode == 0, estimated.stderr
    estimate = json.loads(estimated.stdout)
    assert estimate["users"] == 700
    assert estimate["epsilon_per_user"]["per_unit"] == mechanism.epsilon


def test_a_study_is_never_overwritten_and_that_is_told_first(folder: Path, run: Run) -> None:
    (folder / "designed.toml").write_text("mine")
    done = run("design", "study.toml", "--epsilon", "0", "-o", "designed.toml")
    assert done.returncode == 1
    assert "there is a file already" in done.stderr
    assert (folder / "designed.toml").read_text() == "mine"
    assert "would be written over" in run("design", "study.toml", "--epsilon", 1, "-o", "study.toml").stderr


def test_pairs_have_bounds_of_their_own_or_one_epsilon(run: Run) -> None:
    information = ("--goal", "information", "--json")
    document = json.loads(run("design", "drinks.toml", "--pairs", "pairs.csv", *information).stdout)
    assert (document["privacy"], document["epsilon"], document["proof"]["holds"]) == ("pairs", 1.5, True)
    bounds = {(pair["value"], pair["other"]): pair["bound"] for pair in document["proof"]["pairs"]}
    assert bounds == {("tea", "coffee"): 0.5, ("coffee", "water"): 1.5}
    document = json.loads(run("design", "drinks.toml", "--pairs", "edges.csv", "--epsilon", 1, *information).stdout)
    assert [pair["bound"] for pair in document["proof"]["pairs"]] == [1.0, 1.0]
    assert run("design", "drinks.toml", "--pairs", "pairs.csv", "--epsilon", 1, *information).returncode == 2
    without = run("design", "drinks.toml", "--pairs", "edges.csv", "--goal", "information")
    assert without.returncode == 2
    assert "no column `bound`" in without.stderr


def test_pairs_of_combinations_have_a_column_for_each_attribute(folder: Path, run: Run) -> None:
    parts = ("sex", ["f", "m"]), ("town", ["a", "b"])
    attributes = "".join(
        f'[domain.attributes.{name}]\nkind = "categories"\nlabels = {json.dumps(labels)}\n' for name, labels in parts
    )
    ways = "".join(f'[mechanisms.both.parts.{name}]\nkind = "randomized-response"\n' for name, _ in parts)
    head = 'version = 1\n[domain]\nkind = "product"\n'
    both = '[mechanisms.both]\nkind = "split"\nepsilon = 2.0\n'
    (folder / "people.toml").write_text(head + attributes + both + ways)
    rows = ["value.sex,value.town,other.sex,other.town,bound", "f,a,m,a,1", "f,b,m,b,1", "f,a,f,b,0.5", "m,a,m,b,0.5"]
    (folder / "people.csv").write_text("\n".join(rows) + "\n")
    done = run("design", "people.toml", "--pairs", "people.csv", "--goal", "information", "--json")
    assert done.returncode == 0, done.stderr
    pairs = json.loads(done.stdout)["proof"]["pairs"]
    bounds = {(tuple(pair["value"].values()), tuple(pair["other"].values())): pair["bound"] for pair in pairs}
    f, m, a, b = "f", "m", "a", "b"
    expected = {((f, a), (m, a)): 1.0, ((f, b), (m, b)): 1.0, ((f, a), (f, b)): 0.5, ((m, a), (m, b)): 0.5}
    assert bounds == expected
    (folder / "losses.csv").write_text("value,f\nf,1\n")
    refused = run("design", "people.toml", "--epsilon", 1, "--loss", "losses.csv")
    assert refused.returncode == 1
    assert "losses of combinations" in refused.stderr


def test_losses_come_by_their_labels_in_any_order(run: Run) -> None:
    """Rows are values and columns are answers: this table is not symmetric, and a transposed one costs another loss."""
    words = "--epsilon 1 --goal variance --loss losses.csv --max-loss 1.5 --json"
    done = run("design", "drinks.toml", *words.split())
    assert done.returncode == 0, done.stderr
    losses = [[0, 4, 2], [4, 0, 1], [5, 3, 0]]  # by tea, coffee, water
    drinks = hb.Categories(["tea", "coffee", "water"])
    best = hb.design(drinks, 1.0, goal="variance", loss=losses, max_loss=1.5)
    assert json.loads(done.stdout)["loss"] == best.loss
    transposed = [list(row) for row in zip(*losses, strict=True)]
    turned = hb.design(drinks, 1.0, goal="variance", loss=transposed, max_loss=1.5)
    assert turned.loss != pytest.approx(best.loss, rel=1e-6)


def test_the_least_loss_as_a_document(run: Run) -> None:
    done = run("design", "drinks.toml", "--epsilon", 1, "--goal", "service-loss", "--loss", "losses.csv", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert set(document["answers"]) <= {"tea", "coffee", "water"}
    assert document["value"] == pytest.approx(document["loss"])


def test_widths_are_those_of_the_named_values(run: Run) -> None:
    width = ("--epsilon", 1, "--goal", "width", "--json")
    one = json.loads(run("design", "drinks.toml", *width, "--of", "tea").stdout)
    drinks = hb.Categories(["tea", "coffee", "water"])
    assert one["value"] == hb.design(drinks, 1.0, goal="width", of="tea").value
    every = json.loads(run("design", "drinks.toml", *width, "--of", "all").stdout)
    named = json.loads(run("design", "drinks.toml", *width, "--of", "tea", "--of", "coffee", "--of", "water").stdout)
    assert every == named
    assert every["value"] > one["value"]
    assert "'pink'" in run("design", "drinks.toml", *width, "--of", "pink").stderr


def test_it_is_simulated_for_truths_that_it_has_not_seen(run: Run) -> None:
    compared = ("--compare", "--truth", "last-year.csv", "--truth", "zipf", "--method", "inv-p", "--runs", 20)
    done = run("design", "study.toml", *QUICK, *compared, "--json", "--seed", 1)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["comparison"]
    assert list(dict.fromkeys(row["truth"] for row in rows)) == ["last-year.csv", "zipf"]
    own = [row for row in rows if row["mechanism"] == "design"]
    assert [row["runs"] for row in own] == [20, 20]
    assert all(row["low"] <= row["median"] <= row["high"] for row in rows)
    shown = run("design", "study.toml", *QUICK, *compared, "--seed", 1)
    assert "last-year.csv" in shown.words
    assert f"{own[0]['median']:.4g}" in shown.words
    assert run("design", "study.toml", *QUICK, "--truth", "zipf").returncode == 2


def test_a_search_continues_in_its_file(folder: Path, run: Run) -> None:
    first = run("design", "study.toml", *QUICK, "--continue", "kept.npz")
    assert first.returncode == 0, first.stderr
    assert (folder / "kept.npz").stat().st_size > 100
    again = run("design", "study.toml", *QUICK, "--continue", "kept.npz")
    assert again.returncode == 0, again.stderr
    other = run("design", "study.toml", "--epsilon", 1, "--goal", "variance", "--continue", "kept.npz")
    assert other.returncode == 2
    assert "columns of another design" in other.stderr
    assert "would be written over" in run("design", "study.toml", *QUICK, "--continue", "study.toml").stderr


def test_tables_and_pictures(folder: Path, run: Run) -> None:
    for ending in ("csv", "json", "png", "svg"):
        done = run("design", "study.toml", *QUICK, "-o", f"best.{ending}")
        assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader((folder / "best.csv").read_text().splitlines()))
    assert list(rows[0]) == ["mechanism", "value", "relative"]
    assert rows[0]["mechanism"] == "design"
    assert float(rows[1]["relative"]) > 1
    assert json.loads((folder / "best.json").read_text())["goal"] == "variance"
    assert (folder / "best.png").read_bytes().startswith(b"\x89PNG")
    assert b"steps" in (folder / "best.svg").read_bytes()


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("study.toml", 2, "--epsilon 1"),
        ("study.toml --epsilon 1 --users ten", 2, "'ten' is not a number"),
        ("study.toml --epsilon 1 --users 10,20", 2, "one number of users"),
        ("study.toml --epsilon 1 -o best.txt", 2, ".toml"),
        ("study.toml --epsilon 1 -o gone/best.toml", 1, "folder"),
        ("study.toml --epsilon 600", 2, "design(epsilon)"),
        ("study.toml --epsilon nan", 2, "design(epsilon)"),
        ("study.toml --epsilon 1 --goal best", 2, "'service-loss'"),
        ("study.toml --epsilon 1 --privacy local", 2, "'metric'"),
        ("study.toml --epsilon 1 --prior gone.csv", 1, "hubbub design --prior"),
        ("study.toml --epsilon 1 --compare --truth gone.csv", 1, "hubbub design --truth"),
        ("drinks.toml --epsilon 1 --goal variance --prior rare.csv", 2, "probability 0 for 'water'"),
        ("drinks.toml --pairs pairs.csv --privacy metric", 2, "policy of their own"),
        ("drinks.toml --pairs gone.csv", 1, "gone.csv"),
        ("drinks.toml --pairs losses.csv", 1, "no column other"),
        ("drinks.toml --epsilon 1 --loss pairs.csv", 1, "no column tea"),
        ("drinks.toml --epsilon 1 --max-loss 0.01", 2, "so small a loss"),
        ("gone.toml --epsilon 1", 1, "gone.toml"),
    ],
)
def test_mistakes_are_told_and_nothing_is_written(run: Run, folder: Path, words: str, code: int, told: str) -> None:
    before = sorted(folder.iterdir())
    done = run("design", *words.split())
    assert done.returncode == code, done.stderr
    assert told in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert sorted(folder.iterdir()) == before
