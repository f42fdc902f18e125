"""Who is counted, and how often: columns that say it, files that repeat, and what cannot be checked is said."""

from __future__ import annotations

import json
import shutil
import sqlite3
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from hubbub.intake.reading_notes import overlap_notes
from studies import LIGHT_TOML
from terminal import hubbub

DIGITS = hb.Integers(0, 9)
STUDY = hb.Study(DIGITS, {"light": hb.TruncatedGeometric(DIGITS, 0.5)})
LIMITED = hb.Study(DIGITS, {"light": hb.TruncatedGeometric(DIGITS, 0.5)}, max_reports_per_user=1)
TWO = hb.Study(DIGITS, {"light": hb.TruncatedGeometric(DIGITS, 0.5), "strong": hb.TruncatedGeometric(DIGITS, 0.1)})
STUDY_FILE = LIGHT_TOML.replace("version = 1\n", "version = 1\nmax_reports_per_user = 1\n")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY_FILE)
    return tmp_path


def quietly(run: Callable[..., Any], *arguments: object, **options: object) -> Any:
    """Run something, whatever it warns of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hb.HubbubWarning)
        return run(*arguments, **options)


# Columns that are called otherwise, and columns that are not used

FORMATS: dict[str, Callable[[pd.DataFrame, Path], object]] = {
    "csv": lambda table, path: table.to_csv(path, index=False) or path,
    "jsonl": lambda table, path: table.to_json(path, orient="records", lines=True) or path,
    "parquet": lambda table, path: table.to_parquet(path) or path,
    "arrow": lambda table, path: _feather(table, path),
    "pandas": lambda table, path: table,
    "polars": lambda table, path: pl.from_pandas(table),
    "pyarrow": lambda table, path: pa.Table.from_pandas(table),
    "db": lambda table, path: _sqlite(table, path),
}


def _feather(table: pd.DataFrame, path: Path) -> Path:
    table.to_feather(path)
    return path


def _sqlite(table: pd.DataFrame, path: Path) -> str:
    connection = sqlite3.connect(path)
    table.to_sql("reports", connection, index=False)
    connection.close()
    return f"sqlite:///{path.name}#reports"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", FORMATS)
def test_columns_may_have_other_names_in_every_source(folder: Path, kind: str) -> None:
    plain = pd.DataFrame({"user": ["a", "b", "a"], "mechanism": ["light", "strong", "strong"], "output": [3, 4, 5]})
    expected = hb.read_reports(plain, TWO)
    assert expected.users == 2
    named = plain.rename(columns={"user": "device id", "mechanism": "how", "output": "answer"})
    source = FORMATS[kind](named, folder / f"r.{kind}")
    columns = {"user_column": "device id", "mechanism_column": "how", "output_column": "answer"}
    assert hb.read_reports(source, TWO, **columns) == expected
    tally = hb.collect(TWO, source, folder / "t.tally.parquet", **columns)  # type: ignore[arg-type]
    assert tally.reports == expected


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", ["device_id", "uid"])
def test_a_column_that_is_not_used_is_named(folder: Path, kind: str, name: str) -> None:
    table = pd.DataFrame({name: [7, 7, 8], "output": [3, 4, 5]})
    source = FORMATS[kind](table, folder / f"r.{kind}")
    told = f"column {name} is not used: each row is counted as one person; name it with --user-column {name}"
    with pytest.warns(hb.HubbubWarning, match=told):
        assert hb.read_reports(source, STUDY).users == 3
    with pytest.warns(hb.HubbubWarning, match=told):
        assert hb.collect(STUDY, source, folder / "t.tally.parquet").users == 3
    assert hb.read_reports(source, STUDY, user_column=name).users == 2


def test_several_columns_that_are_not_used_are_named_once_for_all_files(folder: Path) -> None:
    for place in range(3):
        (folder / f"{place}.csv").write_text(f"user,output,day,town\na{place},3,1,x\n")
    with pytest.warns(hb.HubbubWarning) as told:
        hb.read_reports("*.csv", STUDY)
    assert [str(warning.message) for warning in told] == ["0.csv and 2 more: columns day, town are not used"]


def test_columns_that_the_study_names_for_something_else_are_not_taken_for_users(folder: Path) -> None:
    columns = {"time": "arrived", "watermark": "id", "group": "region"}
    study = hb.Study(STUDY.domain, STUDY.mechanisms, columns=columns)
    table = pd.DataFrame({"id": [1], "arrived": ["2026-11-16"], "region": ["north"], "uid": [7], "output": [3]})
    with pytest.warns(hb.HubbubWarning, match="column uid is not used: each row is counted as one person"):
        assert hb.read_reports(table, study).users == 1


def test_devices_with_several_rows_are_not_taken_for_as_many_people_in_silence(folder: Path) -> None:
    rows = "".join(f"{place % 50},{place % 10}\n" for place in range(150))
    (folder / "r.csv").write_text(f"device_id,output\n{rows}")
    done = hubbub("estimate", "study.toml", "r.csv", "--method", "inv-p", "--quick", cwd=folder)
    assert done.returncode == 0
    assert "spent by a user" not in done.stdout
    assert "rows do not say who sent them: each row is counted as one person" in done.stdout
    assert "column device_id is not used: each row is counted as one person" in done.stderr
    assert "max_reports_per_user = 1 cannot be checked" in done.stderr
    document = json.loads(
        hubbub("estimate", "study.toml", "r.csv", "--method", "inv-p", "--quick", "--json", cwd=folder).stdout
    )
    assert document["epsilon_per_user"]["users_named"] is False
    assert "each row is counted as one person" in document["epsilon_per_user"]["note"]
    assert len(document["notes"]) == 2
    named = hubbub("estimate", "study.toml", "r.csv", "--user-column", "device_id", "--quick", cwd=folder)
    assert named.returncode == 1
    assert "too-many-reports" in named.stderr


@pytest.mark.sampled(3)
@pytest.mark.parametrize("command", ["estimate", "check", "resolve", "report", "collect", "privatize"])
def test_every_command_takes_the_names_of_columns(folder: Path, command: str) -> None:
    values = command == "privatize"
    (folder / "r.csv").write_text("who,what\na,3\nb,4\n")
    words = {
        "collect": ["-o", "t.tally.parquet"],
        "privatize": ["-o", "o.csv"],
        "report": ["--quick", "-o", "p.html", "--method", "inv-p"],
        "estimate": ["--quick", "--method", "inv-p"],
    }.get(command, [])
    column = "--value-column" if values else "--output-column"
    done = hubbub(command, "study.toml", "r.csv", "--user-column", "who", column, "what", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "not used" not in done.stderr
    assert "cannot be checked" not in done.stderr
    if values:
        assert (folder / "o.csv").read_text().splitlines()[0] == "user,output"


@pytest.mark.parametrize("command", ["estimate", "check", "resolve", "report"])
def test_a_tally_says_that_limits_cannot_be_checked_and_takes_no_columns(folder: Path, command: str) -> None:
    (folder / "r.csv").write_text("output\n3\n4\n")
    quietly(hb.collect, LIMITED, "r.csv", "t.tally.parquet")
    words = ["--quick", "--method", "inv-p"] if command in ("estimate", "report") else []
    done = hubbub(command, "t.tally.parquet", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "max_reports_per_user = 1 cannot be checked" in done.stderr
    for option in ("--user-column", "--output-column", "--mechanism-column"):
        refused = hubbub(command, "t.tally.parquet", option, "x", cwd=folder)
        assert refused.returncode == 2
        assert f"{option} does not apply to a tally" in refused.stderr


def test_the_page_does_not_say_what_a_person_spent_where_nobody_is_named(folder: Path) -> None:
    (folder / "r.csv").write_text("output\n3\n4\n")
    (folder / "u.csv").write_text("user,output\na,3\nb,4\n")
    for name, told in {"r": "Each row spent", "u": "Each user spent"}.items():
        hubbub("report", "study.toml", f"{name}.csv", "--quick", "--method", "inv-p", "-o", f"{name}.html", cwd=folder)
        page = (folder / f"{name}.html").read_text(encoding="utf-8")
        assert told in page
        assert ("Rows do not say who sent them, so each counts as one person" in page) == (name == "r")


MISTAKES: list[tuple[str, dict[str, str], str, str]] = [
    ("output,x\n3,1\n", {"user_column": "who"}, "no-column", "there is no column who"),
    ("output,x\n3,1\n", {"mechanism_column": "how"}, "no-column", "there is no column how"),
    ("answer\n3\n", {"output_column": "reply"}, "no-column", "there is no column reply"),
    ("answer\n3\n", {}, "no-column", "there is no column output"),
    ("who,who,output\na,b,3\n", {"user_column": "who"}, "repeated-column", "several columns who"),
    ("user_id,output\na,3\n", {}, "nearly-a-column", "name it with --user-column user_id"),
    ("output,WT\n3,2\n", {}, "weighted-rows", "column WT"),
    ("output,w\n3,2\n", {}, "weighted-rows", "--weight-column w;"),
    ("output,design weight\n3,2\n", {}, "weighted-rows", "column design weight"),
    ("output,count\n3,2\n", {}, "weighted-rows", "hubbub.Reports.from_counts"),
]


@pytest.mark.parametrize(("content", "columns", "code", "told"), MISTAKES)
def test_mistakes_about_columns_are_told(
    folder: Path, content: str, columns: dict[str, str], code: str, told: str
) -> None:
    (folder / "r.csv").write_text(content)
    with pytest.raises(hb.IntakeError) as caught:
        hb.read_reports("r.csv", STUDY, **columns)
    assert caught.value.code == code
    assert told in str(caught.value)
    assert "r.csv" in caught.value.where


def test_one_column_cannot_have_two_meanings(folder: Path) -> None:
    (folder / "r.csv").write_text("a\n3\n")
    with pytest.raises(hb.SettingError, match="two meanings"):
        hb.read_reports("r.csv", STUDY, output_column="a", user_column="a")
    with pytest.raises(hb.SettingError, match="user_column must be the name"):
        hb.read_reports("r.csv", STUDY, user_column=3)  # type: ignore[arg-type]


def test_a_weight_that_is_used_as_something_else_is_not_refused(folder: Path) -> None:
    (folder / "r.csv").write_text("weight,output\na,3\na,4\nb,4\n")
    assert hb.read_reports("r.csv", STUDY, user_column="weight").users == 2
    done = hubbub("estimate", "study.toml", "r.csv", "--by", "weight", "--quick", "--method", "inv-p", cwd=folder)
    assert done.returncode == 0, done.stderr


def test_rejected_rows_name_columns_as_the_source_does(folder: Path) -> None:
    (folder / "r.csv").write_text("who,what\na,3\nb,99\n,4\n")
    hb.read_reports("r.csv", STUDY, output_column="what", user_column="who", allow_rejects=2, rejects="bad.csv")
    assert [line.split(",")[2] for line in Path("bad.csv").read_text().splitlines()[1:]] == ["what", "who"]
    with pytest.raises(hb.IntakeError, match="line 3, column what"):
        hb.read_reports("r.csv", STUDY, output_column="what", user_column="who", allow_rejects=1)


def test_groups_are_read_under_other_names_too(folder: Path) -> None:
    (folder / "r.csv").write_text("who,what,town\na,3,x\nb,4,y\na,4,x\n")
    words = ["--by", "town", "--user-column", "who", "--output-column", "what", "--quick", "--method", "inv-p"]
    done = hubbub("estimate", "study.toml", "r.csv", *words, "--json", "--allow-rejects", "9", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert [group["users"] for group in json.loads(done.stdout)["groups"]] == [1]  # a sent more than allowed
    clash = hubbub("estimate", "study.toml", "r.csv", "--by", "user", "--user-column", "who", cwd=folder)
    assert clash.returncode == 2
    assert "two meanings" in clash.stderr


# Files that are equal


def test_two_equal_tables_are_two_tables(folder: Path) -> None:
    table = pd.DataFrame({"output": [3, 4]})
    for place, kind in enumerate([table, table.copy(), pl.from_pandas(table), pa.Table.from_pandas(table)], 1):
        assert hb.collect(STUDY, kind, "t.tally.parquet").users == 2 * place
    assert hb.collect(STUDY, [table, table.copy()], "u.tally.parquet").users == 4
    assert hb.read_reports([table, table.copy()], STUDY).users == 4


@pytest.mark.parametrize("content", ["output\n3\n4\n", "user,output\na,3\nb,4\n"])
def test_the_same_file_is_counted_once_however_it_is_called(folder: Path, content: str) -> None:
    (folder / "day").mkdir()
    (folder / "day/r.csv").write_text(content)
    assert hb.collect(STUDY, "day/r.csv", "t.tally.parquet").users == 2
    for name in ("day/r.csv", "./day/../day/r.csv", folder / "day/r.csv"):
        tally = hb.collect(STUDY, name, "t.tally.parquet")
        assert (tally.users, tally.summary.skipped) == (2, (str(Path(name)),))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_equal_batches_of_nobody_in_particular_are_asked_about(folder: Path, kind: str) -> None:
    for day in ("monday", "tuesday"):
        (folder / day).mkdir()
        FORMATS[kind](pd.DataFrame({"output": [3, 4]}), folder / day / f"r.{kind}")
    first, second = f"monday/r.{kind}", f"tuesday/r.{kind}"
    assert hb.collect(STUDY, first, "t.tally.parquet").users == 2
    with pytest.raises(hb.IntakeError, match=r"--equal-files skip .*--equal-files count") as caught:
        hb.collect(STUDY, second, "t.tally.parquet")
    assert caught.value.code == "same-content"
    assert hb.read_tally("t.tally.parquet").users == 2
    left_out = hb.collect(STUDY, second, "t.tally.parquet", equal_files="skip")
    assert (left_out.users, left_out.summary.skipped) == (2, (second,))
    assert hb.collect(STUDY, second, "t.tally.parquet", equal_files="count").users == 4
    again = hb.collect(STUDY, second, "t.tally.parquet", equal_files="count")  # it is in now
    assert (again.users, again.summary.skipped) == (4, (second,))


def test_a_copy_that_names_its_users_is_left_out(folder: Path) -> None:
    (folder / "a.csv").write_text("user,output\na,3\nb,4\n")
    shutil.copy("a.csv", "b.csv")
    hb.collect(STUDY, "a.csv", "t.tally.parquet")
    tally = hb.collect(STUDY, "b.csv", "t.tally.parquet")
    assert (tally.users, tally.summary.skipped) == (2, ("b.csv",))


def test_equal_files_of_one_run_are_asked_about(folder: Path) -> None:
    for name in ("a", "b", "c"):
        (folder / f"{name}.csv").write_text("output\n3\n4\n")
    with pytest.raises(hb.IntakeError, match="--equal-files count"):
        hb.read_reports("*.csv", STUDY)
    assert hb.read_reports("*.csv", STUDY, equal_files="count").users == 6
    with pytest.warns(hb.HubbubWarning, match=r"b\.csv, c\.csv: copies of other files, left out"):
        assert hb.read_reports("*.csv", STUDY, equal_files="skip").users == 2
    done = hubbub("collect", "study.toml", "a.csv", "b.csv", "-o", "t.tally.parquet", cwd=folder)
    assert done.returncode == 1
    counted = hubbub(
        "collect", "study.toml", "a.csv", "b.csv", "-o", "t.tally.parquet", "--equal-files", "count", cwd=folder
    )
    assert "4 users" in counted.stdout
    wrong = hubbub("estimate", "study.toml", "a.csv", "--equal-files", "both", cwd=folder)
    assert wrong.returncode == 2


def test_a_file_of_the_same_name_in_another_folder_is_another_file(folder: Path) -> None:
    for day, content in {"monday": "output\n3\n", "tuesday": "output\n4\n5\n"}.items():
        (folder / day).mkdir()
        (folder / day / "r.csv").write_text(content)
        tally = hubbub("collect", "../study.toml", "r.csv", "-o", "../t.tally.parquet", "--json", cwd=folder / day)
        assert tally.returncode == 0, tally.stderr
    assert hb.read_tally("t.tally.parquet").users == 3
    (folder / "monday/r.csv").write_text("output\n3\n7\n")
    with pytest.raises(hb.IntakeError, match="counted before, with other content"):
        quietly(hb.collect, LIMITED, "monday/r.csv", "t.tally.parquet")


def test_merging_asks_about_equal_batches_too(folder: Path) -> None:
    for day in ("monday", "tuesday"):
        (folder / f"{day}.csv").write_text("output\n3\n4\n")
        hb.collect(STUDY, f"{day}.csv", f"{day}.tally.parquet")
    tallies = ["monday.tally.parquet", "tuesday.tally.parquet"]
    with pytest.raises(hb.IntakeError, match="--equal-files count") as caught:
        hb.merge(tallies, "all.tally.parquet")
    assert caught.value.code == "same-content"
    assert hb.merge(tallies, "all.tally.parquet", equal_files="count").users == 4
    with pytest.raises(hb.SettingError, match="cannot be taken out of a tally"):
        hb.merge(tallies, "all.tally.parquet", equal_files="skip")
    hb.collect(STUDY, "monday.csv", "again.tally.parquet")
    with pytest.raises(hb.IntakeError, match="the same source was counted in both") as twice:
        hb.merge(["monday.tally.parquet", "again.tally.parquet"], "all.tally.parquet", equal_files="count")
    assert twice.value.code == "counted-twice"
    done = hubbub("merge", *tallies, "-o", "more.tally.parquet", "--equal-files", "count", cwd=folder)
    assert "4 users" in done.stdout


def test_tallies_of_equal_tables_are_asked_about(folder: Path) -> None:
    for name in ("a", "b"):
        hb.collect(STUDY, pd.DataFrame({"output": [3, 4]}), f"{name}.tally.parquet")
    tallies = ["a.tally.parquet", "b.tally.parquet"]
    with pytest.raises(hb.IntakeError, match="--equal-files count"):
        hb.merge(tallies, "all.tally.parquet")
    assert hb.merge(tallies, "all.tally.parquet", equal_files="count").users == 4


def test_a_tally_that_does_not_say_where_its_files_lay_goes_by_their_names(folder: Path) -> None:
    (folder / "r.csv").write_text("output\n3\n4\n")
    hb.collect(STUDY, "r.csv", "t.tally.parquet")
    table = pq.read_table("t.tally.parquet")
    document = json.loads(pq.read_metadata("t.tally.parquet").metadata[b"hubbub"])
    for source in document["sources"]:
        del source["place"]
    for name in ("digest", "row_groups"):  # these did not exist either
        del document[name]
    pq.write_table(table.replace_schema_metadata({"hubbub": json.dumps(document)}), "t.tally.parquet")
    assert hb.collect(STUDY, "r.csv", "t.tally.parquet").summary.skipped == ("r.csv",)


# Queries that may overlap


def test_overlapping_queries_say_what_cannot_be_checked(folder: Path) -> None:
    _sqlite(pd.DataFrame({"output": [3, 4, 5], "day": [0, 1, 2]}), folder / "r.db")
    first, later = (
        "sqlite:///r.db#SELECT output FROM reports",
        "sqlite:///r.db#SELECT output FROM reports WHERE day > 0",
    )
    hb.collect(STUDY, first, "t.tally.parquet")
    told = "whether they share rows cannot be checked, and a person in two of them counts twice.*--users-key"
    with pytest.warns(hb.HubbubWarning, match=told):
        hb.collect(STUDY, later, "t.tally.parquet")
    with pytest.warns(hb.HubbubWarning, match=told):
        hb.read_reports([first, later], STUDY)
    hb.collect(STUDY, later, "later.tally.parquet")
    hb.collect(STUDY, first, "first.tally.parquet")
    with pytest.warns(hb.HubbubWarning, match=told):
        hb.merge(["first.tally.parquet", "later.tally.parquet"], "all.tally.parquet")


def test_overlapping_queries_with_users_and_a_key_count_nobody_twice(folder: Path) -> None:
    _sqlite(pd.DataFrame({"user": ["a", "b"], "output": [3, 4], "day": [0, 1]}), folder / "r.db")
    (folder / "key").write_text("sixteen bytes and more")
    first = "sqlite:///r.db#SELECT user, output FROM reports"
    later = f"{first} WHERE day > 0"
    hb.collect(STUDY, first, "t.tally.parquet", users_key="key")
    tally = hb.collect(STUDY, later, "t.tally.parquet", users_key="key", allow_rejects=1)
    assert (tally.users, dict(tally.rejected)) == (2, {"user-counted-before": 1})


def test_one_database_is_known_by_its_place_alone() -> None:
    same = ["postgresql://ann@host/d#a", "postgresql://bob@host/d#b"]
    assert len(overlap_notes(same, users=False)) == 1
    assert len(overlap_notes(same[:1], same[1:], users=False)) == 1
    assert overlap_notes(same, users=True) == []
    assert overlap_notes(["postgresql://host/d#a", "postgresql://host/e#b", "a#b.csv", "c#d.csv"], users=False) == []
