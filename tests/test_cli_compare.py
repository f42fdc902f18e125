"""``hubbub compare``: what can be a group, what is printed and written, and what is refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import hubbub as hb
from terminal import hubbub

STUDY = """
version = 1
name = "a survey"
[domain]
kind = "categories"
labels = ["yes", "no", "unsure"]
[mechanisms.coin]
kind = "randomized-response"
p = 0.75
"""
SHARES = {"men": ([0.3, 0.5, 0.2], 900), "women": ([0.45, 0.35, 0.2], 1_100), "=cmd": ([0.4, 0.4, 0.2], 20)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study, all reports with a column for the group, and a file for each group."""
    folder = tmp_path_factory.mktemp("survey")
    (folder / "study.toml").write_text(STUDY)
    mechanism = hb.read_study(folder / "study.toml").mechanisms["coin"]
    rng = np.random.default_rng(3)
    with (folder / "all.csv").open("w", newline="") as together:
        writer = csv.writer(together)
        writer.writerow(["sex", "output"])
        for name, (shares, users) in SHARES.items():
            outputs = mechanism.privatize(rng.choice(mechanism.domain.labels, size=users, p=shares), rng=rng).tolist()
            writer.writerows((name, output) for output in outputs)
            (folder / f"{name}.csv").write_text("\n".join(["output", *outputs]) + "\n")
    for name in ("men", "women"):
        hubbub("collect", "study.toml", f"{name}.csv", "-o", f"{name}.tally.parquet", cwd=folder)
    return folder


def test_tallies_and_sources_of_one_study_say_the_same(folder: Path) -> None:
    tallies = hubbub("compare", "men.tally.parquet", "women.tally.parquet", "--json", cwd=folder)
    sources = hubbub("compare", "study.toml", "men.csv", "women.csv", "--json", cwd=folder)
    both = [json.loads(run.stdout) for run in (tallies, sources)]
    assert both[0] | {"notes": []} == both[1] | {"notes": []}
    assert [group["group"] for group in both[0]["groups"]] == ["men", "women"]
    python = hb.compare(
        *(hb.read_tally(folder / f"{name}.tally.parquet").reports for name in ("men", "women")), names=("men", "women")
    )
    assert [row["difference"] for row in both[0]["values"]] == python.difference.tolist()
    assert (both[0]["p_value"], both[0]["text"]) == (python.p_value, python.explain())


def test_the_table_holds_what_the_sentence_says(folder: Path) -> None:
    shown = hubbub("compare", "men.tally.parquet", "women.tally.parquet", cwd=folder).stdout
    assert "yes is more frequent in women than in men" in shown
    assert "differs" in shown
    assert "p-value from 9,999 deals" in shown


def test_groups_of_a_column_are_compared(folder: Path) -> None:
    run = hubbub("compare", "study.toml", "all.csv", "--by", "sex", "--json", cwd=folder)
    document = json.loads(run.stdout)
    assert [group["group"] for group in document["groups"]] == sorted(SHARES)
    assert "fewer than 30 users" in run.stderr
    assert document["against"] is None
    joined = hubbub(
        "compare", "study.toml", "all.csv", "--by", "sex", "--min-group", "50", "--against", "men", "--json", cwd=folder
    )
    assert "1 group with fewer than 50 users joined as 'others'" in joined.stderr
    assert [group["group"] for group in json.loads(joined.stdout)["groups"]] == ["men", "women", "others"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("names", [True, False])
def test_users_in_several_groups_are_told(names: bool, tmp_path: Path) -> None:
    """400 users with reports in one group or in both were 700 users without a word."""
    (tmp_path / "study.toml").write_text(STUDY)
    users = [(group, n) for group, some in (("a", range(350)), ("b", range(50, 400))) for n in some]
    rows = [f"{group},{'person ' if names else ''}{n},{'yes' if n % 3 else 'no'}" for group, n in users]
    (tmp_path / "all.csv").write_text("\n".join(["group,user,output", *rows]) + "\n")
    run = hubbub("compare", "study.toml", "all.csv", "--by", "group", "--json", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    document = json.loads(run.stdout)
    assert [group["users"] for group in document["groups"]] == [350, 350]
    note = "300 users have rows in several groups: they are counted in each"
    assert note in " ".join(run.stderr.split())
    (tmp_path / "all.csv").write_text("\n".join(["group,user,output", *rows[:350], "b,x,yes", "b,y,no"]) + "\n")
    apart = hubbub("compare", "study.toml", "all.csv", "--by", "group", "--json", cwd=tmp_path)
    assert "several groups" not in apart.stderr


@pytest.mark.parametrize("ending", ["csv", "png", "json"])
def test_comparisons_are_written(folder: Path, ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"comparison.{ending}"
    hubbub("compare", "study.toml", "all.csv", "--by", "sex", "-o", str(path), cwd=folder)
    assert path.stat().st_size > 300
    if ending == "csv":
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == 9
        assert not any(row["group"].startswith("=") for row in rows)  # a spreadsheet would run it


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["men.tally.parquet"], "there is nothing to compare with"),
        (["men.csv", "women.csv"], "this source has no study"),
        (["men.tally.parquet", "men.tally.parquet"], "the same input is there twice"),
        (["study.toml", "all.csv", "--by", "sex", "--min-group", "5000"], "one group is left"),
        (["study.toml", "all.csv", "--by", "sex", "--against", "children"], "no such group"),
    ],
)
def test_what_cannot_be_compared_is_explained(folder: Path, words: list[str], message: str) -> None:
    run = hubbub("compare", *words, cwd=folder)
    assert run.returncode == 2
    assert message in run.stderr
    assert "remedy:" in run.stderr


def test_other_values_cannot_be_compared(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text(STUDY.replace('"unsure"', '"maybe"'))
    (tmp_path / "other.csv").write_text("output\nyes\nmaybe\n")
    run = hubbub("compare", "study.toml", "men.csv", tmp_path / "other.toml", tmp_path / "other.csv", cwd=folder)
    assert run.returncode == 1
    assert "different domains" in run.stderr
