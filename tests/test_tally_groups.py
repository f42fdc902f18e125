"""Tallies that are divided into groups: the same reports as those of each group's rows alone, however they came in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import hubbub as hb
from damaging import parts_of_tally, write_forged
from hubbub.client import digest_of
from terminal import hubbub

DRINKS = hb.Categories(["tea", "coffee", "milk"])
STUDIES = {
    "single": hb.Study(DRINKS, {"krr": hb.RandomizedResponse(DRINKS, 1.0)}, name="drinks"),
    "joint": hb.Study(DRINKS, {"krr": hb.RandomizedResponse(DRINKS, 1.0)}, name="drinks"),
    "packed": hb.Study(DRINKS, {"bits": hb.Rappor(DRINKS, 1.0)}, name="drinks"),
}


def rows(kind: str, count: int = 300, *, ages: bool = True) -> list[dict[str, str]]:
    """Return rows of reports with one or two columns to group by."""
    rng = np.random.default_rng(1)
    (mechanism,) = STUDIES[kind].mechanisms.values()
    outputs = mechanism.privatize(rng.choice(DRINKS.labels, count), rng=rng)
    texts = [mechanism.output_space.write(output) for output in outputs]
    table = [
        {"output": text, "town": town, "age": age}
        for text, town, age in zip(
            texts, rng.choice(["north", "south", "west"], count), rng.choice(["9", "10"], count), strict=True
        )
    ]
    if kind == "joint":
        for place, row in enumerate(table):  # three rows a user, of one town and age
            row |= {"user": f"u{place // 3}", **{name: table[place // 3 * 3][name] for name in ("town", "age")}}
    return table if ages else [without(row, "age") for row in table]


def without(row: dict[str, str], *columns: str) -> dict[str, str]:
    return {name: entry for name, entry in row.items() if name not in columns}


def write(path: Path, table: list[dict[str, str]]) -> Path:
    lines = [",".join(table[0]), *(",".join(row.values()) for row in table)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("kind", STUDIES)
def test_groups_are_what_their_rows_alone_give(kind: str, tmp_path: Path) -> None:
    table, study = rows(kind), STUDIES[kind]
    tally = hb.collect(study, write(tmp_path / "all.csv", table), tmp_path / "t.tally.parquet", by=["town", "age"])
    again = hb.read_tally(tally.path)
    assert list(again.groups("age")) == ["9", "10"]  # numbers in their order
    assert list(again.groups())[:2] == ["north, 9", "north, 10"]
    for town, reports in again.groups("town").items():
        own = [without(row, "town", "age") for row in table if row["town"] == town]
        assert reports == hb.read_reports(write(tmp_path / f"{town}.csv", own), study)
    everybody = [without(row, "town", "age") for row in table]
    plain = hb.collect(study, write(tmp_path / "everybody.csv", everybody), tmp_path / "p.tally.parquet")
    assert again.reports == plain.reports
    assert (again.users, again.rows, again.summary.spent) == (plain.users, plain.rows, plain.summary.spent)


@pytest.mark.parametrize("kind", STUDIES)
def test_the_same_rows_give_the_same_bytes(kind: str, tmp_path: Path) -> None:
    table, study = rows(kind, ages=False), STUDIES[kind]
    options: dict[str, Any] = {"by": "town", "users_complete": True}
    first, second = write(tmp_path / "1.csv", table[:150]), write(tmp_path / "2.csv", table[150:])
    once = hb.collect(study, [first, second], tmp_path / "once.tally.parquet", **options)
    for name in (first, second):
        steps = hb.collect(study, name, tmp_path / "steps.tally.parquet", **options)
    parts = [
        hb.collect(study, name, tmp_path / f"{name.stem}.tally.parquet", **options).path for name in (second, first)
    ]
    merged = hb.merge(parts, tmp_path / "merged.tally.parquet", users_complete=True)
    assert once.path.read_bytes() == steps.path.read_bytes() == merged.path.read_bytes()


def test_rows_of_groups_are_accounted_for(tmp_path: Path) -> None:
    source = tmp_path / "r.csv"
    source.write_text("output,town\ntea,north\nwine,north\ncoffee,\nmilk,south\nbeer,west\n")
    tally = hb.collect(STUDIES["single"], source, tmp_path / "t.tally.parquet", by="town", allow_rejects=3)
    assert (tally.users, tally.rows, dict(tally.rejected)) == (2, 5, {"out-of-domain": 2, "no-group": 1})
    groups = {group.entries[0]: (group.users, dict(group.rejected)) for group in tally.summary.groups}
    assert groups == {"north": (1, {"out-of-domain": 1}), "south": (1, {})}  # nothing of west could be counted


def test_a_user_is_counted_once_in_each_group(tmp_path: Path) -> None:
    key, target = tmp_path / "key", tmp_path / "t.tally.parquet"
    key.write_text("a key that nobody can guess")
    for number, town in enumerate(("north", "south", "north")):
        source = tmp_path / f"{number}.csv"
        source.write_text(f"output,user,town\ntea,ann,{town}\nmilk,u{number},{town}\n")
        tally = hb.collect(STUDIES["single"], source, target, by="town", users_key=key, allow_rejects=1)
    assert {group.entries[0]: group.users for group in tally.summary.groups} == {"north": 3, "south": 2}
    assert dict(tally.rejected) == {"user-counted-before": 1}
    assert [dict(group.rejected) for group in tally.summary.groups] == [{"user-counted-before": 1}, {}]
    other = tmp_path / "other.csv"
    other.write_text("output,user,town\ntea,ann,south\n")
    second = hb.collect(STUDIES["single"], other, tmp_path / "o.tally.parquet", by="town", users_key=key)
    with pytest.raises(hb.IntakeError, match="same users are in both"):
        hb.merge([target, second.path], tmp_path / "m.tally.parquet")


def test_tallies_with_other_groups_do_not_add_up(tmp_path: Path) -> None:
    source = write(tmp_path / "r.csv", rows("single", 30, ages=False))
    by_town = hb.collect(STUDIES["single"], source, tmp_path / "town.tally.parquet", by="town")
    (tmp_path / "o.csv").write_text("output\ntea\n")
    plain = hb.collect(STUDIES["single"], tmp_path / "o.csv", tmp_path / "plain.tally.parquet")
    with pytest.raises(hb.IntakeError, match="other groups"):
        hb.merge([by_town.path, plain.path], tmp_path / "m.tally.parquet")
    with pytest.raises(hb.SettingError, match="not divided by this column"):
        by_town.groups("age")
    with pytest.raises(hb.SettingError, match="has no groups"):
        plain.groups()


@pytest.mark.parametrize(
    "change",
    [
        lambda groups: groups[0].update(users=groups[0]["users"] + 1),
        lambda groups: (groups[0].update(users=groups[0]["users"] + 1), groups[1].update(users=groups[1]["users"] - 1)),
        lambda groups: groups.reverse(),
        lambda groups: groups[0].update(entries=["south"]),
        lambda groups: groups[0].update(entries=["north", "9"]),
        lambda groups: groups[0].update(row_groups=2),
        lambda groups: (groups[0].update(row_groups=2), groups[1].update(row_groups=0)),
        lambda groups: groups[0].update(rejected={"no-output": 1}),
        lambda groups: groups.pop(),
    ],
)
def test_forged_groups_are_refused(change: Callable[[list[dict[str, Any]]], object], tmp_path: Path) -> None:
    source = write(tmp_path / "r.csv", rows("single", 40, ages=False))
    path = hb.collect(STUDIES["single"], source, tmp_path / "t.tally.parquet", by="town").path
    table, document = parts_of_tally(path)
    lines = table.num_rows // len(document["row_groups"])  # each group has the same three outputs

    def forged() -> hb.Tally:
        sealed = {name: entry for name, entry in document.items() if name != "digest"}
        sealed["digest"] = digest_of(sealed)
        return hb.read_tally(write_forged(tmp_path / "f.tally.parquet", table, sealed, row_group_size=lines))

    assert list(forged().groups("town")) == ["north", "south", "west"]
    change(document["groups"])
    with pytest.raises(hb.IntakeError, match="does not match its description"):
        forged().groups("town")


@pytest.mark.parametrize("form", ["csv", "parquet", "pandas"])
def test_times_are_grouped_by_their_periods(form: str, tmp_path: Path) -> None:
    days = ["2026-12-31", "2027-01-01", "2027-01-04", "2027-01-31"]
    frame = pd.DataFrame({"output": "tea", "when": days})
    if form == "csv":
        frame["when"] = [days[0], f"{days[1]}T23:30:00+02:00", f"{days[2]} 08:30", f"{days[3]}T08:30:00.5Z"]
        frame.to_csv(tmp_path / "r.csv", index=False)
    else:
        frame["when"] = pd.to_datetime(frame["when"])
        frame.to_parquet(tmp_path / "r.parquet")
    source = frame if form == "pandas" else tmp_path / f"r.{form}"
    options: dict[str, Any] = {"time_column": "when"}
    tally = hb.collect(STUDIES["single"], source, tmp_path / "t.tally.parquet", by="day", **options)
    weeks = {"2026-W53": 2, "2027-W01": 1, "2027-W04": 1}
    months = {"2026-12": 1, "2027-01": 3}
    assert {name: own.users for name, own in tally.groups().items()} == dict.fromkeys(days, 1)
    assert {name: own.users for name, own in tally.groups("week").items()} == weeks
    assert {name: own.users for name, own in tally.groups("month").items()} == months
    by_week = hb.collect(STUDIES["single"], source, tmp_path / "w.tally.parquet", by="week", **options)
    assert {name: own.users for name, own in by_week.groups().items()} == weeks


def test_a_column_called_day_need_not_hold_dates(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("output,day\ntea,Monday\nmilk,Tuesday\n")
    tally = hb.collect(STUDIES["single"], tmp_path / "r.csv", tmp_path / "t.tally.parquet", by="day")
    assert list(tally.groups()) == ["Monday", "Tuesday"]
    with pytest.raises(hb.SettingError, match="not divided by this column"):
        tally.groups("week")


def test_times_that_would_have_to_be_guessed_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "r.csv"
    source.write_text("output,time\ntea,2026-11-17\ntea,17/11/2026\nmilk,11/17/26\nmilk,2026-13-01\nmilk,\n")
    with pytest.raises(hb.IntakeError, match="ISO date or time") as caught:
        hb.collect(STUDIES["single"], source, tmp_path / "t.tally.parquet", by="week")
    assert "line 3" in str(caught.value)
    assert "17/11/2026" in str(caught.value)
    tally = hb.collect(STUDIES["single"], source, tmp_path / "t.tally.parquet", by="week", allow_rejects=4)
    assert dict(tally.rejected) == {"not-a-time": 3, "no-time": 1}


def test_commands_take_the_groups_of_a_tally(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(
        'version = 1\nname = "drinks"\n[domain]\nkind = "categories"\nlabels = ["tea", "coffee", "milk"]\n'
        '[mechanisms.krr]\nkind = "randomized-response"\nepsilon = 1.0\n'
    )
    write(tmp_path / "all.csv", rows("single"))
    collected = hubbub(
        "collect", "study.toml", "all.csv", "--by", "town", "--by", "age", "-o", "t.tally.parquet", cwd=tmp_path
    )
    assert "6 groups by town, age: north, 9 (" in collected.stdout
    for words in (["estimate", "--quick"], ["check"], ["compare", "--min-group", "95"]):
        options = [*words[1:], "--by", "town", "--json"]
        from_tally = json.loads(hubbub(words[0], "t.tally.parquet", *options, cwd=tmp_path).stdout)
        from_rows = json.loads(hubbub(words[0], "study.toml", "all.csv", *options, cwd=tmp_path).stdout)
        for document in (from_tally, *from_tally["groups"], from_rows, *from_rows["groups"]):
            document.pop("dates", None)  # of another file
            document["notes"] = [note for note in document.get("notes", []) if "not used" not in note]
        assert from_tally == from_rows
        assert [group["group"] for group in from_tally["groups"]][-1] == ("others" if words[0] == "compare" else "west")
    run = hubbub("estimate", "t.tally.parquet", "--by", "sex", cwd=tmp_path)
    assert run.returncode == 2
    assert "columns that it was collected by: town, age" in run.stderr
