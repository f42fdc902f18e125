"""Reports about several attributes, read from every kind of source: as many, and the same, as arrays give."""

from __future__ import annotations

import json
import sqlite3
import warnings
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
import servers
from hubbub.core.arrays import Array
from hubbub.core.progress import finish
from hubbub.intake.cluster_tasks import ReadPart, merge_bucket, read_part
from hubbub.intake.in_memory_reading import read
from hubbub.intake.read_plan import plan_reading
from hubbub.intake.sources.column_names import ColumnNames
from hubbub.intake.sources.packed_bytes import from_bytes, is_packed, to_bytes, width
from hubbub.mechanisms.several_attributes import SeveralAttributes
from terminal import hubbub

AGE, SEX, TOWN = hb.Integers(18, 40), hb.Categories(["f", "m"]), hb.Categories([f"town {n}" for n in range(9)])
MAP = hb.Grid.over(south=37.7, west=-122.5, north=37.8, east=-122.4, columns=4, rows=3)
PARTS: dict[str, hb.Mechanism] = {
    "age": hb.TruncatedGeometric(AGE, epsilon=0.2),
    "sex": hb.RandomizedResponse(SEX, epsilon=1.0),
}
KINDS: dict[str, SeveralAttributes] = {
    "split": hb.Split(PARTS),
    "one": hb.SampleOne(PARTS),
    "fakes": hb.SampleOneWithFakes(PARTS),
    "far": hb.Split(age=hb.Geometric(AGE, epsilon=0.2), sex=PARTS["sex"]),
    "bits": hb.Split(age=PARTS["age"], town=hb.Rappor(TOWN, epsilon=2.0)),
    "hashes": hb.SampleOne(age=PARTS["age"], town=hb.LocalHashing(TOWN, epsilon=2.0)),
    "subsets": hb.Split(sex=PARTS["sex"], town=hb.SubsetSelection(TOWN, epsilon=1.0)),
    "places": hb.Split(place=hb.PlanarGeometric(MAP, epsilon=1.0, truncated=False), sex=PARTS["sex"]),
    "many": hb.Split({f"q{n}": hb.RandomizedResponse(TOWN, epsilon=1.0) for n in range(6)}),
}


def study_of(mechanism: SeveralAttributes, **more: Any) -> hb.Study:
    return hb.Study(mechanism.domain, {"all": mechanism}, **more)


def sent(kind: str, users: int = 200, seed: int = 0) -> Array:
    """Return reports of one kind; where attributes may be missing, some are."""
    mechanism = KINDS[kind]
    rng = np.random.default_rng(seed)
    labels = mechanism.domain.labels[rng.integers(0, len(mechanism.domain), users)]
    outputs = mechanism.privatize(labels, rng=seed)
    if mechanism.sent != "some":
        return outputs
    first, last = (outputs.dtype.names or ("", ""))[0], (outputs.dtype.names or ("", ""))[-1]
    thinned = np.empty(users, dtype=[(name, object) for name in outputs.dtype.names or ()])
    for name in outputs.dtype.names or ():
        thinned[name] = list(outputs[name])
    thinned[first][::7] = None
    thinned[last][1::7] = None
    return thinned


def texts(kind: str, outputs: Array) -> dict[str, list[str | None]]:
    """Return the outputs of each attribute as files hold them."""
    spaces = {name: part.output_space for name, part in KINDS[kind].parts.items()}
    return {name: [None if entry is None else space.write(entry) for entry in outputs[name]]
            for name, space in spaces.items()}  # fmt: skip


def numbers(column: list[str | None]) -> list[Any]:
    """Return whole numbers as numbers, where all are."""
    plain = [entry for entry in column if entry is not None]
    whole = all(entry.lstrip("-").isdigit() and str(int(entry)) == entry for entry in plain)  # and no rows of bits
    return [None if entry is None else int(entry) if whole else entry for entry in column]


# -- sources: each writes a table of texts, and returns what is read --------------------------------------------------

Table = dict[str, list[str | None]]


def objects(table: Table) -> list[dict[str, Any]]:
    columns = {name: numbers(column) for name, column in table.items()}
    count = len(next(iter(table.values())))
    return [{name: own[row] for name, own in columns.items() if own[row] is not None} for row in range(count)]


def as_csv(table: Table, folder: Path) -> object:
    pd.DataFrame({f"output.{name}": column for name, column in table.items()}).to_csv(folder / "r.csv", index=False)
    return folder / "r.csv"


def as_tsv(table: Table, folder: Path) -> object:
    frame = pd.DataFrame({f"output.{name}": column for name, column in table.items()})
    frame.to_csv(folder / "r.tsv.gz", index=False, sep="\t")
    return folder / "r.tsv.gz"


def typed(table: Table) -> pa.Table:
    return pa.table({f"output.{name}": pa.array(numbers(column)) for name, column in table.items()})


def as_parquet(table: Table, folder: Path) -> object:
    pq.write_table(typed(table), folder / "r.parquet", row_group_size=64)
    return folder / "r.parquet"


def as_arrow(table: Table, folder: Path) -> object:
    with pa.ipc.new_file(folder / "r.arrow", typed(table).schema) as file:
        file.write_table(typed(table))
    return folder / "r.arrow"


def as_struct(table: Table, folder: Path) -> object:
    structs = pa.array([{name: entry.get(name) for name in table} for entry in objects(table)])
    pq.write_table(pa.table({"output": structs}), folder / "struct.parquet")
    return folder / "struct.parquet"


def as_json_lines(table: Table, folder: Path) -> object:
    lines = [json.dumps({f"output.{name}": own for name, own in entry.items()}) for entry in objects(table)]
    (folder / "r.jsonl").write_text("\n".join(lines))
    return folder / "r.jsonl"


def as_nested_json_lines(table: Table, folder: Path) -> object:
    (folder / "n.jsonl").write_text("\n".join(json.dumps({"output": entry}) for entry in objects(table)))
    return folder / "n.jsonl"


def as_json_texts(table: Table, folder: Path) -> object:
    frame = pd.DataFrame({"output": [json.dumps(entry) for entry in objects(table)]})
    frame.to_csv(folder / "o.csv", index=False)
    return folder / "o.csv"


def as_pandas(table: Table, folder: Path) -> object:  # a table in memory
    return pd.DataFrame({f"output.{name}": numbers(column) for name, column in table.items()})


def as_polars(table: Table, folder: Path) -> object:
    return pl.from_arrow(typed(table))


def as_pyarrow(table: Table, folder: Path) -> object:
    return typed(table)


def as_sheet(table: Table, folder: Path) -> object:
    book = openpyxl.Workbook()
    book.active.append([f"output.{name}" for name in table])
    for row in zip(*map(numbers, table.values()), strict=True):
        book.active.append(list(row))
    book.save(folder / "r.xlsx")
    return folder / "r.xlsx"


def as_sqlite(table: Table, folder: Path) -> object:
    names = ", ".join(f'"output.{name}"' for name in table)
    with closing(sqlite3.connect(folder / "r.db")) as connection, connection:
        connection.execute(f"CREATE TABLE reports ({names})")
        marks = ", ".join("?" * len(table))
        rows = zip(*map(numbers, table.values()), strict=True)
        connection.executemany(f"INSERT INTO reports VALUES ({marks})", rows)  # noqa: S608
    return f"sqlite:///{folder / 'r.db'}#reports"


def as_duckdb(table: Table, folder: Path) -> object:
    rows = typed(table)
    with duckdb.connect(folder / "r.duckdb") as connection:
        connection.register("rows", rows)
        connection.execute("CREATE TABLE reports AS SELECT * FROM rows")
    return f"duckdb:///{folder / 'r.duckdb'}#reports"


SOURCES: dict[str, Callable[[Table, Path], object]] = {
    name.removeprefix("as_"): make for name, make in list(globals().items()) if name.startswith("as_")
}


FEW = ("csv", "parquet", "nested_json_lines")  # of kinds that differ from others in single attributes alone
READ = [(kind, source) for kind in KINDS for source in SOURCES if source in FEW or kind in ("one", "bits")]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("kind", "source"), READ)
def test_every_source_gives_what_arrays_give(kind: str, source: str, tmp_path: Path) -> None:
    outputs = sent(kind, seed=len(kind))
    found = hb.read_reports(SOURCES[source](texts(kind, outputs), tmp_path), study_of(KINDS[kind]))
    assert found == hb.Reports.from_outputs(KINDS[kind], outputs)


def test_postgresql(server: servers.Server) -> None:
    outputs = sent("split")
    table = texts("split", outputs)
    rows = ", ".join(
        f"({'NULL' if age is None else age}, {'NULL' if sex is None else repr(sex)})"
        for age, sex in zip(*table.values(), strict=True)
    )
    server.psql('CREATE TABLE attributes ("output.age" integer, "output.sex" text)')
    server.psql(f"INSERT INTO attributes VALUES {rows}")  # noqa: S608
    server.psql("CREATE TABLE objects AS SELECT jsonb_strip_nulls(to_jsonb(a)) AS output FROM "
                '(SELECT "output.age" AS age, "output.sex" AS sex FROM attributes) AS a')  # fmt: skip
    expected = hb.Reports.from_outputs(KINDS["split"], outputs)
    for name in ("attributes", "objects"):
        assert hb.read_reports(server.address(name), study_of(KINDS["split"])) == expected


def test_packed_bits_may_be_bytes() -> None:
    outputs = KINDS["bits"].privatize([(20, "town 1"), (30, "town 2"), (21, "town 3")], rng=1)
    columns = {"output.age": outputs["age"], "output.town": [row.tobytes() for row in outputs["town"]]}
    hexadecimal = {**columns, "output.town": ["0x" + row.tobytes().hex() for row in outputs["town"]]}
    expected = hb.Reports.from_outputs(KINDS["bits"], outputs)
    for table in (columns, hexadecimal):
        assert hb.read_reports(pa.table(table), study_of(KINDS["bits"])) == expected


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(8))
def test_whatever_the_attributes_are(seed: int, tmp_path: Path) -> None:
    """Random attributes, mechanisms and missing entries, in three formats: the same reports, and the same tally."""
    rng = np.random.default_rng(seed)
    parts: dict[str, hb.Mechanism] = {}
    for place in range(int(rng.integers(2, 6))):
        line, labels = hb.Integers(-3, int(rng.integers(0, 9))), hb.Categories(list("abcdefgh"[: rng.integers(2, 9)]))
        choices = [
            hb.Geometric(line, 0.7), hb.RandomizedResponse(labels, 1.0), hb.Rappor(labels, 1.0),
            hb.LocalHashing(labels, 1.0), hb.TruncatedGeometric(line, 0.5),
        ]  # fmt: skip
        parts[f"a{place}-x"] = choices[int(rng.integers(0, len(choices)))]
    mechanism = (hb.Split, hb.SampleOne, hb.SampleOneWithFakes)[0 if seed % 2 else int(rng.integers(0, 2))](parts)
    KINDS[f"drawn {seed}"] = mechanism
    try:
        outputs = sent(f"drawn {seed}", 60, seed)
        expected, study = hb.Reports.from_outputs(mechanism, outputs), study_of(mechanism)
        for make in (as_csv, as_parquet, as_nested_json_lines):
            assert hb.read_reports(make(texts(f"drawn {seed}", outputs), tmp_path), study) == expected
    finally:
        del KINDS[f"drawn {seed}"]
    tally = hb.collect(study, tmp_path / "r.csv", tmp_path / "r.tally.parquet")
    assert tally.reports == expected
    assert tally.users == 60


# -- outputs in Python -------------------------------------------------------------------------------------------------


def test_outputs_in_any_form_are_the_same_reports() -> None:
    outputs = sent("split", 50)
    expected = hb.Reports.from_outputs(KINDS["split"], outputs)
    ages = [np.nan if age is None else float(age) for age in outputs["age"]]
    sexes = ["" if sex is None else sex for sex in outputs["sex"]]
    forms: list[object] = [
        outputs.tolist(),
        {"age": ages, "sex": outputs["sex"]},
        {"age": np.array(ages, dtype=np.float32), "sex": np.array(sexes)},
        pd.DataFrame({"sex": sexes, "age": pd.array(outputs["age"].tolist(), dtype="Int64")}),
        pl.DataFrame({"age": outputs["age"].tolist(), "sex": outputs["sex"].tolist()}),
    ]
    for form in forms:
        assert hb.Reports.from_outputs(KINDS["split"], form) == expected


@pytest.mark.parametrize(
    ("kind", "outputs", "words"),
    [
        ("split", [(20, "f"), (None, None)], ["nothing about any attribute", "position 1"]),
        ("split", [(20, "f"), (19, "x"), (17, "f")], ["attribute age, position 2", "17"]),
        ("split", {"age": [20, 21], "sex": ["f"]}, ["different lengths", "age 2 and sex 1"]),
        ("split", [(True, "f")], ["attribute age, position 0"]),
        ("one", [(20, None), (20, "f")], ["several attributes", "position 1", "age and sex"]),
        ("fakes", [(20, "f"), (None, "f")], ["lacks an attribute", "position 1"]),
        ("bits", {"age": [20], "town": np.full((1, 9), 2)}, ["attribute town, position 0", "neither 0 nor 1"]),
        ("hashes", [(None, (5, 99))], ["attribute town, position 0", "no such bucket"]),
    ],
)
def test_outputs_that_cannot_be_are_told_by_attribute(kind: str, outputs: object, words: list[str]) -> None:
    with pytest.raises(hb.OutputError) as caught:
        hb.Reports.from_outputs(KINDS[kind], outputs)
    assert all([caught.value.got, caught.value.expected, caught.value.remedy])
    assert all(word in str(caught.value) for word in words), str(caught.value)


# -- packed outputs and tallies ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_packed_outputs_come_back(kind: str) -> None:
    mechanism = KINDS[kind]
    codes = mechanism.output_space.encode(sent(kind))
    rows = to_bytes(mechanism, codes)
    assert rows.shape == (len(codes), width(mechanism))
    np.testing.assert_array_equal(from_bytes(mechanism, rows), codes)
    rows[0, 0] = 0  # which attributes there are: none
    with pytest.raises(hb.OutputError):
        from_bytes(mechanism, rows)


def test_packed_outputs_are_short() -> None:
    """A byte that says which attributes there are, one for an age below 256 outputs, two for nine bits."""
    assert [kind for kind, mechanism in KINDS.items() if is_packed(mechanism)] == ["bits", "hashes", "subsets", "many"]
    assert width(KINDS["bits"]) == 1 + 1 + 2
    assert width(KINDS["hashes"]) == 1 + 1 + 12
    assert width(KINDS["many"]) == 1 + 6


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", ["split", "one", "far", "bits", "hashes", "many"])
def test_tallies_are_exact_and_add_up(kind: str, tmp_path: Path) -> None:
    study = study_of(KINDS[kind])
    paths, parts = [], []
    for number in range(2):
        outputs = sent(kind, 80, number)
        (tmp_path / str(number)).mkdir()
        source = as_csv(texts(kind, outputs), tmp_path / str(number))
        paths.append(tmp_path / f"{number}.tally.parquet")
        parts.append(hb.Reports.from_outputs(KINDS[kind], outputs))
        tally = hb.collect(study, source, paths[-1])
        assert (tally.reports, tally.users) == (parts[-1], 80)
    merged = hb.merge(paths, tmp_path / "all.tally.parquet")
    assert merged.reports == parts[0] + parts[1]
    again = hb.collect(study, [tmp_path / "1" / "r.csv", tmp_path / "0" / "r.csv"], tmp_path / "once.tally.parquet")
    assert again.reports == merged.reports
    columns = [pq.read_table(tmp_path / name) for name in ("all.tally.parquet", "once.tally.parquet")]
    assert columns[0].equals(columns[1])  # whatever the order in which rows came
    assert hb.collect(study, tmp_path / "0" / "r.csv", paths[0]).users == 80  # is in it already


# -- users, weights, groups, dates, watermarks, workers ----------------------------------------------------------------


def with_columns(kind: str, outputs: Array, **more: object) -> pd.DataFrame:
    table = {f"output.{name}": column for name, column in texts(kind, outputs).items()}
    return pd.DataFrame({**table, **more})


@pytest.mark.parametrize("kind", ["split", "one", "bits", "many"])
def test_users_with_several_rows(kind: str, tmp_path: Path) -> None:
    outputs, users = sent(kind, 90), np.arange(90) % 40
    frame = with_columns(kind, outputs, user=[f"user {number}" if number % 3 else number for number in users])
    expected = hb.Reports.from_users(
        [[(KINDS[kind], outputs[place]) for place in np.flatnonzero(users == user)] for user in range(40)]
    )
    study = study_of(KINDS[kind])
    assert hb.read_reports(frame, study) == expected
    frame.to_csv(tmp_path / "r.csv", index=False)
    tally = hb.collect(study, tmp_path / "r.csv", tmp_path / "r.tally.parquet")
    assert (tally.reports, tally.users) == (expected, 40)
    assert hb.read_tally(tmp_path / "r.tally.parquet").reports == expected


@pytest.mark.parametrize("kind", ["split", "bits", "many"])
def test_survey_weights(kind: str, tmp_path: Path) -> None:
    outputs, weights = sent(kind, 60), 1.0 + np.arange(60) % 3
    expected = hb.Reports.from_outputs(KINDS[kind], outputs, weights=weights)
    frame = with_columns(kind, outputs, weight=weights)
    assert hb.read_reports(frame, study_of(KINDS[kind])) == expected
    frame.to_parquet(tmp_path / "r.parquet")
    hb.collect(study_of(KINDS[kind]), tmp_path / "r.parquet", tmp_path / "r.tally.parquet")
    assert hb.read_tally(tmp_path / "r.tally.parquet").reports == expected


def test_groups_days_and_workers(tmp_path: Path) -> None:
    outputs, study = sent("split", 120), study_of(KINDS["split"])
    whole = hb.Reports.from_outputs(KINDS["split"], outputs)
    days = [f"2026-11-{1 + number % 3:02d}" for number in range(120)]
    frame = with_columns("split", outputs, town=np.arange(120) % 2, time=days)
    frame.to_csv(tmp_path / "r.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hb.HubbubWarning)
        tally = hb.collect(study, tmp_path / "r.csv", tmp_path / "r.tally.parquet", by=["town", "day"])
        early, _ = finish(read(plan_reading(tmp_path / "r.csv", study, as_of="2026-11-01")))
    assert tally.reports == whole
    assert tally.groups("town")["1"] == hb.Reports.from_outputs(KINDS["split"], outputs[1::2])
    assert early == hb.Reports.from_outputs(KINDS["split"], outputs[::3])
    columns = ColumnNames().with_study(study)
    for kind in ("split", "bits"):
        own = study_of(KINDS[kind])
        path = str(as_parquet(texts(kind, sent(kind)), tmp_path))
        part = ReadPart(0, path, range(2), False, columns.with_study(own))
        first = read_part(own, part, False, 0, "1GB").reports
        assert first == hb.Reports.from_outputs(KINDS[kind], sent(kind)[:128])


def test_users_on_workers(tmp_path: Path) -> None:
    outputs, users = sent("split", 90), np.arange(90) % 40
    study = study_of(KINDS["split"])
    with_columns("split", outputs, user=users).to_csv(tmp_path / "r.csv", index=False)
    part = ReadPart(0, str(tmp_path / "r.csv"), None, False, ColumnNames().with_study(study))
    dealt = read_part(study, part, True, 3, "1GB").buckets
    merged = [merge_bucket(study, [("r.csv", "line")], "1GB", bucket) for bucket in dealt]
    assert sum(result.users for result in merged) == 40


def test_a_growing_table_is_continued(tmp_path: Path) -> None:
    outputs, study = sent("one", 100), study_of(KINDS["one"])
    path, frame = tmp_path / "r.csv", with_columns("one", outputs, id=np.arange(100))
    frame[:60].to_csv(path, index=False)
    hb.collect(study, path, tmp_path / "r.tally.parquet", watermark="id")
    frame.to_csv(path, index=False)
    tally = hb.collect(study, path, tmp_path / "r.tally.parquet", watermark="id")
    assert tally.reports == hb.Reports.from_outputs(KINDS["one"], outputs)


# -- which columns -----------------------------------------------------------------------------------------------------


def test_columns_may_have_other_names() -> None:
    outputs = sent("split", 30)
    expected = hb.Reports.from_outputs(KINDS["split"], outputs)
    frame = with_columns("split", outputs).rename(columns={"output.age": "col_17", "output.sex": "s"})
    named = study_of(KINDS["split"], columns={"output.age": "col_17", "output.sex": "s"})
    assert hb.read_reports(frame, named) == expected
    for option in ("age=col_17, sex=s", {"age": "col_17", "sex": "s"}, {"output.age": "col_17", "output.sex": "s"}):
        assert hb.read_reports(frame, study_of(KINDS["split"]), output_column=option) == expected
    objects_ = pd.DataFrame({"answer": [json.dumps(entry) for entry in objects(texts("split", outputs))]})
    assert hb.read_reports(objects_, study_of(KINDS["split"]), output_column="answer") == expected


@pytest.mark.parametrize("name", ["s", "S", "put", "age-s", "t-1"])
def test_attributes_may_have_any_name(name: str, tmp_path: Path) -> None:
    """`output.s` is neither a plural nor another near miss of `output`."""
    split = hb.Split({name: PARTS["sex"], "age": PARTS["age"]})
    outputs = [("f", 20), ("m", None), ("f", 30)]
    frame = pd.DataFrame({f"output.{name}": ["f", "m", "f"], "output.age": ["20", None, "30"]})
    frame.to_csv(tmp_path / "r.csv", index=False)
    for source in (frame, tmp_path / "r.csv"):
        assert hb.read_reports(source, study_of(split)) == hb.Reports.from_outputs(split, outputs)


@pytest.mark.parametrize("near", ["Output.s", "output_s", "outputs.s", "OUTPUT S", "output-s"])
@pytest.mark.parametrize("kind", [hb.Split, hb.SampleOne])
def test_a_column_that_is_nearly_that_of_an_attribute_is_refused(kind: type[hb.Split], near: str) -> None:
    way = kind(s=PARTS["sex"], age=PARTS["age"])
    frame = pd.DataFrame({near: ["f", None, "m"], "output.age": [None, 20, None]})
    with pytest.raises(hb.IntakeError, match=r"nearly output\.s") as caught:
        hb.read_reports(frame, study_of(way))
    assert caught.value.code == "nearly-a-column"
    assert caught.value.got == repr(near)
    assert "--output-column s=NAME" in caught.value.remedy
    named = hb.read_reports(frame, study_of(way), output_column={"s": near})
    assert named == hb.Reports.from_outputs(way, [("f", None), (None, 20), ("m", None)])
    there = frame.assign(**{"output.s": frame[near]})
    with pytest.warns(hb.HubbubWarning, match="is not used"):
        assert hb.read_reports(there, study_of(way)) == named


def test_near_names_of_places_are_refused() -> None:
    frame = pd.DataFrame({"Output.Place.lat": [37.7], "Output.Place.lon": [-122.4], "output.sex": ["f"]})
    with pytest.raises(hb.IntakeError, match=r"nearly output\.place\.lat"):
        hb.read_reports(frame, study_of(KINDS["places"]))


@pytest.mark.parametrize(
    ("column", "advice"),
    [
        ("output.z", "rename the column, or leave it out"),
        ("output.S", "did you mean 'output.s'?"),
        ("output.agee", "did you mean 'output.age'?"),
    ],
)
def test_advice_about_an_unknown_attribute_compares_names_alone(column: str, advice: str) -> None:
    split = hb.Split(s=PARTS["sex"], age=PARTS["age"])
    with pytest.raises(hb.IntakeError, match="an attribute that the study does not have") as caught:
        hb.read_reports(pd.DataFrame({column: ["f"], "output.age": [20]}), study_of(split))
    assert caught.value.remedy == advice


def test_a_column_that_is_absent_is_told() -> None:
    frame = with_columns("split", sent("split", 30)).dropna()[["output.age"]]
    with pytest.warns(hb.HubbubWarning, match="no column output.sex: no row says anything about sex"):
        reports = hb.read_reports(frame, study_of(KINDS["split"]))
    ages = frame["output.age"].astype(int).tolist()
    assert reports == hb.Reports.from_outputs(KINDS["split"], [(age, None) for age in ages])


def test_other_mechanisms_send_one_output_in_the_same_table() -> None:
    split = KINDS["split"]
    table = np.full((len(split.domain), 2), 0.5)
    table[: len(table) // 2] = 0.9, 0.1
    matrix = hb.Matrix(split.domain, ["low", "high"], table)
    study = hb.Study(split.domain, {"all": split, "own": matrix})
    outputs = sent("split", 20)
    columns = texts("split", outputs)
    frame = pd.DataFrame(
        {
            "mechanism": ["all"] * 20 + ["own"] * 3,
            **{f"output.{name}": column + [None] * 3 for name, column in columns.items()},
            "output": [None] * 20 + ["low", "high", "low"],
        }
    )
    expected = hb.Reports.from_outputs(split, outputs) + hb.Reports.from_outputs(matrix, ["low", "high", "low"])
    assert hb.read_reports(frame, study) == expected
    texts_ = pd.DataFrame({"mechanism": frame["mechanism"], "output": frame["output"]})
    texts_.loc[:19, "output"] = [json.dumps(entry) for entry in objects(columns)]
    assert hb.read_reports(texts_, study) == expected


def test_places_of_an_attribute(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lat, lon = rng.uniform(37.65, 37.85, 80), rng.uniform(-122.55, -122.35, 80)
    columns, rows, _ = MAP.lattice(lat, lon, on_map=True)
    sexes = rng.choice(["f", "m"], 80)
    expected = hb.Reports.from_outputs(
        KINDS["places"], [((column, row), sex) for column, row, sex in zip(columns, rows, sexes, strict=True)]
    )
    study = study_of(KINDS["places"])
    frame = pd.DataFrame({"output.place.lat": lat, "output.place.lon": lon, "output.sex": sexes})
    frame.to_csv(tmp_path / "r.csv", index=False)
    lines = [
        {"output": {"place": {"lat": north, "lon": east}, "sex": sex}}
        for north, east, sex in zip(lat, lon, sexes, strict=True)
    ]
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, lines)))
    for source in (frame, tmp_path / "r.csv", tmp_path / "r.jsonl"):
        assert hb.read_reports(source, study) == expected
    frame.loc[0, ["output.place.lat", "output.place.lon"]] = np.nan
    frame.loc[1, "output.place.lat"] = np.nan
    with pytest.raises(hb.IntakeError, match=r"row 2, column output.place.lat") as caught:
        hb.read_reports(frame, study)
    assert caught.value.code == "no-place"
    assert hb.read_reports(frame, study, allow_rejects=1).users == 79


# -- at the terminal ---------------------------------------------------------------------------------------------------

STUDY = """
version = 1
[domain]
kind = "product"
[domain.attributes.age]
kind = "integers"
low = 18
high = 22
[domain.attributes.sex]
kind = "categories"
labels = ["f", "m"]
[mechanisms.both]
kind = "split"
[mechanisms.both.parts.age]
kind = "truncated-geometric"
epsilon = 1.0
[mechanisms.both.parts.sex]
kind = "randomized-response"
epsilon = 1.0
[columns]
"output.age" = "years"
"""


def test_collect_and_estimate(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    rows = ["years,output.sex", *(f"{18 + n % 5},{'fm'[n % 3 == 0]}" for n in range(60)), ",f", "30,m", ","]
    (tmp_path / "r.csv").write_text("\n".join(rows) + "\n")
    done = hubbub("collect", "study.toml", "r.csv", "-o", "r.tally.parquet", "--allow-rejects", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    listed = pd.read_csv(tmp_path / "r.rejects.csv")
    assert listed[["line", "column", "code"]].fillna("").to_numpy().tolist() == [
        [63, "years", "out-of-domain"],
        [64, "output", "no-output"],
    ]
    done = hubbub("estimate", "r.tally.parquet", "--method", "mle", "--quick", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document: Mapping[str, Any] = json.loads(done.stdout)
    assert document["users"] == 61
    done = hubbub("estimate", "r.tally.parquet", "--method", "mle", "--quick", "-o", "e.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    table = pd.read_csv(tmp_path / "e.csv")
    assert list(table) == ["age", "sex", "probability"]
    assert table["probability"].tolist() == [entry["probability"] for entry in document["estimate"]]
    assert [entry["value"] for entry in document["estimate"][:2]] == [{"age": 18, "sex": "f"}, {"age": 18, "sex": "m"}]


# -- options -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "error", "words"),
    [
        ("agee=a", hb.SettingError, ["agee", "did you mean 'age'?"]),
        ("age=a,sex=a", hb.SettingError, ["two meanings"]),
        ("age=", hb.SettingError, ["name of a column"]),
        ("age=nowhere", hb.IntakeError, ["no column nowhere", "correct --output-column"]),
        ({"age": 7}, hb.SettingError, ["name of a column"]),
    ],
)
def test_options_that_name_no_columns(option: Any, error: type[hb.HubbubError], words: list[str]) -> None:
    frame = with_columns("split", sent("split", 10))
    with pytest.raises(error) as caught:
        hb.read_reports(frame, study_of(KINDS["split"]), output_column=option)
    assert all([caught.value.where, caught.value.got, caught.value.expected, caught.value.remedy])
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_studies_name_columns_of_attributes_they_have() -> None:
    with pytest.raises(hb.StudyError, match=r"output\.agee"):
        study_of(KINDS["split"], columns={"output.agee": "a"})
    with pytest.raises(hb.StudyError, match=r"output\.sex\.lat"):  # sex is no place
        study_of(KINDS["split"], columns={"output.sex.lat": "a"})
    study = study_of(KINDS["split"], columns={"output.age": "years"})
    with pytest.raises(hb.IntakeError, match=r"names it: correct output\.age there, or pass --output-column age=NAME"):
        hb.read_reports(with_columns("split", sent("split", 10)), study)
