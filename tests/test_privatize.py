"""Values privatized from files: round trips, what is refused, what is stamped, and what is never written."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from scipy import stats

import hubbub as hb
from hubbub.client import Client
from hubbub.intake.privatizing import row_privatizing
from hubbub.intake.privatizing.api import Privatized, privatize_file
from hubbub.intake.stamps import neighbour
from terminal import hubbub

DIGITS = hb.Integers(0, 9)
WORDS = hb.Categories(["red", 'gre"en', "bl,ue", 7, "tab\there", "line\nbreak", "日本", "back\\slash"])
LATTICE = hb.Grid(4, 3)
HOURS = hb.Bins([0, 6, 12, 18, 24])
CITY = hb.Grid.over(south=37.7, west=-122.5, north=37.8, east=-122.4, columns=4, rows=3)
WHOLE = hb.Categories([1, 2, 30])


def study(domain: hb.Domain) -> hb.Study:
    """Return a study with every kind of mechanism that the domain takes."""
    kinds = (hb.RandomizedResponse, hb.Rappor, hb.OptimizedUnary, hb.LocalHashing, hb.SubsetSelection, hb.Exponential)
    found: dict[str, hb.Mechanism] = {kind.__name__: kind(domain, 1.0) for kind in kinds}
    found["Cloaking"] = hb.Cloaking(domain, ["a,b" if place % 2 else 'c"d' for place in range(len(domain))])
    found["Matrix"] = hb.Matrix(domain, ["u", "v", 3], [[0.5, 0.3, 0.2]] * len(domain))
    if isinstance(domain, hb.Integers):
        found |= {"Geometric": hb.Geometric(domain, 0.5), "TruncatedGeometric": hb.TruncatedGeometric(domain, 0.5)}
    if isinstance(domain, hb.Integers | hb.Bins):
        found["Laplace"] = hb.Laplace(domain, 0.5)
    if isinstance(domain, hb.Grid):
        found |= {
            "PlanarGeometric": hb.PlanarGeometric(domain, 1.0),
            "Untruncated": hb.PlanarGeometric(domain, 1.0, truncated=False),
            "PlanarLaplace": hb.PlanarLaplace(domain, 1.0),
        }
    return hb.Study(domain, found)


STUDIES = {
    "digits": study(DIGITS),
    "words": study(WORDS),
    "lattice": study(LATTICE),
    "hours": study(HOURS),
    "numbers": study(WHOLE),
}
ONE = hb.Study(DIGITS, {"light": hb.TruncatedGeometric(DIGITS, 0.5)})
TWO = hb.Study(DIGITS, {"light": hb.TruncatedGeometric(DIGITS, 0.5), "bits": hb.Rappor(DIGITS, 1.0)})
MAP = hb.Study(CITY, {"strong": hb.PlanarGeometric(CITY, 0.7)})
ENDINGS = ["csv", "tsv", "jsonl", "parquet", "arrow", "arrows", "csv.gz", "tsv.zst", "jsonl.zst"]
KINDS = [(name, mechanism) for name, one in STUDIES.items() for mechanism in one.mechanisms]


def values(domain: hb.Domain, count: int, seed: int = 1) -> tuple[list[Any], list[Any]]:
    """Return values as a file holds them (raw numbers for bins), and the labels that they mean."""
    positions = np.random.default_rng(seed).integers(0, len(domain), count)
    labels = [domain.labels[place] for place in positions]
    if isinstance(domain, hb.Bins):
        return [float(domain.places[place]) for place in positions], labels
    return labels, labels


def write(folder: Path, content: str, name: str = "v.csv") -> Path:
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


def alone_in(folder: Path, *names: str) -> bool:
    """Whether a folder holds these files and nothing else, hidden or not."""
    return {path.name for path in folder.iterdir()} == set(names)


# -- round trips ---------------------------------------------------------------------------------------------------


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("name", "mechanism"), KINDS)
@pytest.mark.parametrize(
    "ending", ["csv", "parquet", *(pytest.param(ending, marks=pytest.mark.slow) for ending in ("jsonl", "arrow"))]
)
def test_reports_read_back_are_those_that_the_mechanism_gives(
    name: str, mechanism: str, ending: str, tmp_path: Path
) -> None:
    chosen = STUDIES[name]
    given, labels = values(chosen.domain, 200)
    out = tmp_path / f"r.{ending}"
    done = privatize_file(pd.DataFrame({"value": given}), chosen, mechanism, out, rng=5)
    own = chosen.mechanisms[mechanism]
    expected = hb.Reports.from_outputs(own, own.privatize(labels, rng=5))
    assert hb.read_reports(out, chosen).content_key == expected.content_key
    assert done == Privatized(out, chosen, mechanism, 200, "seeded", ())


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "ending"),
    [("words", ending) for ending in ENDINGS] + [(name, "csv") for name in STUDIES] + [("lattice", "parquet")],
)
def test_rows_that_name_their_mechanism(name: str, ending: str, tmp_path: Path) -> None:
    """Each mechanism draws for its own rows, in the order of the study; rows of one user are one report."""
    chosen = STUDIES[name]
    given, labels = values(chosen.domain, 300)
    named = [list(chosen.mechanisms)[place % 7 % len(chosen.mechanisms)] for place in range(300)]
    users = [f"someone, {place}" if place % 3 else place // 6 for place in range(300)]
    out = tmp_path / f"r.{ending}"
    rows = pd.DataFrame({"value": given, "user": users, "mechanism": named})
    done = privatize_file(rows, chosen, None, out, rng=5)
    assert (done.mechanism, done.rows) == (None, 300)
    rng, sent = np.random.default_rng(5), {user: list[tuple[hb.Mechanism, Any]]() for user in users}
    for label, own in chosen.mechanisms.items():
        places = [place for place in range(300) if named[place] == label]
        for place, output in zip(places, own.privatize([labels[one] for one in places], rng=rng), strict=True):
            sent[users[place]].append((own, output))
    expected = hb.Reports.from_users(sent.values())
    assert expected.users == 200 + 50
    assert hb.read_reports(out, chosen, allow_rejects="100%").content_key == expected.content_key


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_users_and_mechanisms_stand_in_the_order_of_the_rows(ending: str, tmp_path: Path) -> None:
    named = ["light", "bits", "bits", "light", "bits"]
    rows = pd.DataFrame({"user": [5, 4, 3, 2, 1], "mechanism": named, "value": [0, 1, 2, 3, 4]})
    out = tmp_path / f"r.{ending}"
    privatize_file(rows, TWO, None, out)
    reader: dict[str, Callable[..., pd.DataFrame]] = {
        "csv": lambda: pd.read_csv(out, dtype=str),
        "jsonl": lambda: pd.read_json(out, lines=True, dtype=False),
        "parquet": lambda: pd.read_parquet(out),
    }
    found = reader[ending]()
    assert list(found.columns) == ["user", "mechanism", "output"]
    assert found["user"].tolist() == ["5", "4", "3", "2", "1"]
    assert found["mechanism"].tolist() == named
    assert [len(text) > 4 for text in found["output"].astype(str)] == [name == "bits" for name in named]


@pytest.mark.parametrize("source", ["csv", "tsv", "jsonl", "parquet", "arrow", "sqlite"])
def test_every_source_gives_the_same_reports_for_a_seed(source: str, tmp_path: Path) -> None:
    table = pd.DataFrame({"user": range(500), "value": values(DIGITS, 500)[0]})
    path: object = tmp_path / f"v.{source}"
    if source in ("csv", "tsv"):
        table.to_csv(path, index=False, sep="\t" if source == "tsv" else ",")  # type: ignore[call-overload]
    elif source == "jsonl":
        table.to_json(path, orient="records", lines=True)  # type: ignore[call-overload]
    elif source == "parquet":
        table.to_parquet(path, row_group_size=77)  # type: ignore[call-overload]
    elif source == "arrow":
        table.to_feather(path)  # type: ignore[arg-type]
    else:
        import sqlite3

        with sqlite3.connect(tmp_path / "v.db") as connection:
            table.to_sql("v", connection, index=False)
        connection.close()
        path = f"sqlite:///{tmp_path}/v.db#v"
    privatize_file(path, TWO, "bits", tmp_path / "r.csv", rng=9)
    privatize_file(table, TWO, "bits", tmp_path / "expected.csv", rng=9)
    assert (tmp_path / "r.csv").read_bytes() == (tmp_path / "expected.csv").read_bytes()


def test_many_blocks_are_drawn_as_the_mechanism_draws_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 64 rows, however the file is cut into batches: one generator goes through all of them."""
    monkeypatch.setattr(row_privatizing, "BLOCK_ROWS", 64)
    given, _ = values(DIGITS, 1000)
    pq.write_table(pa.table({"value": given}), tmp_path / "v.parquet", row_group_size=37)
    chosen = STUDIES["digits"]
    privatize_file(tmp_path / "v.parquet", chosen, "LocalHashing", tmp_path / "r.parquet", rng=3)
    rng, own = np.random.default_rng(3), chosen.mechanisms["LocalHashing"]
    parts = [own.privatize(given[start : start + 64], rng=rng) for start in range(0, 1000, 64)]
    expected = [f"{seed}:{bucket}" for seed, bucket in np.concatenate(parts)]
    assert pq.read_table(tmp_path / "r.parquet")["output"].to_pylist() == expected


def test_seeded_reports_follow_the_matrix(tmp_path: Path) -> None:
    """Chi-square of each value's outputs against its row, at a family-wise level of 1e-6; the next row is rejected."""
    given, labels = values(DIGITS, 20_000)
    privatize_file(pd.DataFrame({"value": given}), ONE, "light", tmp_path / "r.parquet", rng=11)
    outputs = pq.read_table(tmp_path / "r.parquet")["output"].to_numpy()
    matrix = ONE.mechanisms["light"].matrix()
    right, wrong = [], []
    for value in range(10):
        counts = np.bincount(outputs[np.array(labels) == value], minlength=10)
        right.append(stats.chisquare(counts, matrix[value] * counts.sum()).pvalue)
        wrong.append(stats.chisquare(counts, matrix[(value + 1) % 10] * counts.sum()).pvalue)
    assert min(right) > 1e-6 / 10
    assert max(wrong) < 1e-6 / 10


def test_secure_reports_differ_from_run_to_run(tmp_path: Path) -> None:
    rows = pd.DataFrame({"value": [3] * 200})
    for name in "ab":
        assert privatize_file(rows, ONE, None, tmp_path / f"{name}.csv").randomness == "secure"
    assert (tmp_path / "a.csv").read_text() != (tmp_path / "b.csv").read_text()  # equal once in 10^100 or so
    assert (tmp_path / "a.csv").read_text().splitlines()[0] == "output"  # one mechanism needs no column


def test_hexadecimal_digits_are_read_together_and_bad_ones_apart(tmp_path: Path) -> None:
    """Many rows at once take another way than one: both must say the same."""
    rows = ["0xc940", "0xC940", "c940", "0xg940", "0Xc940", "1xc940", "0xc9", "0x0040", "0xffff", "", "0x8000"]
    read = hb.read_reports(
        write(tmp_path, "mechanism,output\n" + "".join(f"bits,{row}\n" for row in rows)), TWO, allow_rejects="100%"
    )
    own = TWO.mechanisms["bits"]
    packed = np.array([[0xC9, 0x40]] * 3 + [[0x00, 0x40], [0x80, 0x00]], dtype=np.uint8)
    assert read.content_key == hb.Reports.from_outputs(own, packed).content_key


# -- what values look like -----------------------------------------------------------------------------------------


def light(domain: hb.Domain) -> hb.Study:
    """Return a study whose noise is too faint to move any value."""
    return hb.Study(domain, {"m": hb.RandomizedResponse(domain, 400.0)})


@pytest.mark.parametrize(
    ("domain", "content", "expected"),
    [
        (HOURS, "value\n0\n5.9\n6\n1.2e1\n+23.5\n24\n.5\n", [0, 0, 1, 2, 3, 3, 0]),
        (CITY, "lat,lon\n37.7,-122.5\n37.75,-122.44\n37.8,-122.4\n", [0, 6, 11]),
        (CITY, "value\n0\n6\n+11\n", [0, 6, 11]),
        (CITY, "lon,town,lat\n-122.5,x,37.7\n-122.4,y,37.8\n", [0, 11]),
        (LATTICE, "lat,value\nx,3\n,11\n", [3, 11]),
        (DIGITS, "value\n3\n+4\n007\n", [3, 4, 7]),
        (WORDS, 'value\n7\nred\n"bl,ue"\n日本\n', [7, "red", "bl,ue", "日本"]),
    ],
)
def test_values_as_they_are_written(domain: hb.Domain, content: str, expected: list[Any], tmp_path: Path) -> None:
    privatize_file(write(tmp_path, content), light(domain), "m", tmp_path / "r.parquet", rng=1)
    found = pq.read_table(tmp_path / "r.parquet")["output"].to_pylist()
    assert list(map(str, found)) == list(map(str, expected))


@pytest.mark.parametrize("kind", [np.int8, np.uint64, np.float32, np.float64, object, "category", str])
def test_typed_columns(kind: Any, tmp_path: Path) -> None:
    given = pd.Series([3, 4, 7, 0]).astype(kind)
    for domain, expected in ((DIGITS, [3, 4, 7, 0]), (HOURS, [0, 0, 1, 0])):
        out = tmp_path / f"{type(domain).__name__}.parquet"
        privatize_file(pd.DataFrame({"value": given}), light(domain), "m", out, rng=1)
        assert pq.read_table(out)["output"].to_pylist() == expected


def test_several_files_are_one_source(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    write(folder, "value\n1\n2\n", "a.csv")
    write(folder, '{"value": 3}\n', "b.jsonl")
    done = privatize_file(folder, light(DIGITS), None, tmp_path / "r.csv")
    assert done.rows == 3
    assert (tmp_path / "r.csv").read_text() == "output\n1\n2\n3\n"


# -- what is refused -----------------------------------------------------------------------------------------------

BAD = [
    ("a label that is none", WORDS, "value\nred\npink\nred\n", "out-of-domain", "line 3, column value", "'pink'"),
    ("a number out of the domain", DIGITS, "value\n3\n12\n", "out-of-domain", "line 3, column value", "'12'"),
    ("an exponent", DIGITS, "value\n3\n1e0\n", "not-a-number", "line 3, column value", "'1e0'"),
    ("no value", DIGITS, "user,value\na,3\nb,\n", "no-value", "line 3, column value", "nothing"),
    ("no number", HOURS, "value\n3\nnoon\n", "not-a-number", "line 3, column value", "'noon'"),
    ("no raw number", HOURS, "user,value\na,3\nb,\n", "no-value", "line 3, column value", "nothing"),
    ("beyond all bins", HOURS, "value\n3\n4\n24.5\n5\n25\n", "out-of-domain", "line 4, column value", "24.5"),
    ("off the map", CITY, "lat,lon\n37.75,-122.45\n38,-122.45\n", "out-of-domain", "line 3, column lat, lon", "38.0"),
    ("no longitude", CITY, "lat,lon\n37.75,-122.45\n37.75,\n", "no-value", "line 3, column lon", "nothing"),
    ("degrees and minutes", CITY, "lat,lon\n37°45,-122.45\n", "not-a-number", "line 2, column lat", "37°45"),
    ("no user", DIGITS, "user,value\na,3\n,4\n", "no-user", "line 3, column user", "nothing"),
    ("an unknown mechanism", DIGITS, "mechanism,value\nm,3\nn,4\n", "unknown-mechanism", "line 3, column mech", "'n'"),
    ("no mechanism", DIGITS, "mechanism,value\nm,3\n,4\n", "no-mechanism", "line 3, column mechanism", "nothing"),
    ("a field too many", DIGITS, "value,x\n3,1\n4,1,2\n", "too-many-fields", "line 3", "3 in the row"),
    ("the first of two", DIGITS, "user,value\na,3\n,4\nc,12\n", "no-user", "line 3, column user", "nothing"),
    ("no column", DIGITS, "age\n3\n", "no-column", "v.csv", "columns ['age']"),
    ("reports", DIGITS, "output\n3\n", "no-column", "v.csv", "these look like reports"),
    ("nearly value", DIGITS, "Values\n3\n", "nearly-a-column", "v.csv", "'Values'"),
    ("nearly user", DIGITS, "user_id,value\na,3\n", "nearly-a-column", "v.csv", "'user_id'"),
    ("nearly a place", CITY, "Latitude,lon\n37.75,-122.45\n", "nearly-a-column", "v.csv", "'Latitude'"),
    ("half a place", CITY, "lat\n37.75\n", "no-column", "v.csv", "columns ['lat']"),
    ("two places", CITY, "lat,lon,value\n37.75,-122.45,3\n", "repeated-column", "v.csv", "value, lat and lon"),
    ("a column twice", DIGITS, "value,value\n3,3\n", "repeated-column", "v.csv", "columns ['value', 'value']"),
]


@pytest.mark.parametrize(("name", "domain", "content", "code", "where", "got"), BAD, ids=[bad[0] for bad in BAD])
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_bad_row_stops_the_run_and_nothing_is_written(
    name: str, domain: hb.Domain, content: str, code: str, where: str, got: str, ending: str, tmp_path: Path
) -> None:
    source = write(tmp_path, content)
    with pytest.raises(hb.IntakeError) as caught:
        privatize_file(source, light(domain), None, tmp_path / f"r.{ending}")
    assert caught.value.code == code
    assert where in caught.value.where
    assert got in caught.value.got
    assert caught.value.expected
    assert caught.value.remedy
    assert alone_in(tmp_path, "v.csv")


def test_a_bad_row_in_a_late_batch_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks were written by then, beside the place: they go."""
    monkeypatch.setattr(row_privatizing, "BLOCK_ROWS", 10)
    given = [3] * 105 + [12]
    pq.write_table(pa.table({"value": given}), tmp_path / "v.parquet", row_group_size=40)
    for ending in ENDINGS:
        with pytest.raises(hb.IntakeError, match="row 106, column value"):
            privatize_file(tmp_path / "v.parquet", ONE, None, tmp_path / f"r.{ending}")
        assert alone_in(tmp_path, "v.parquet")


def test_the_first_bad_row_is_told_wherever_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_privatizing, "BLOCK_ROWS", 10)
    good = ["a,3"] * 40
    for name, rows, line in (
        ("field", [*good, "a,3,4", *good, "a,12"], 42),
        ("value", [*good, "a,12", *good, "a,3,4"], 42),
        ("user", ["a,3", ",3", *good, "a,12"], 3),
    ):
        source = write(tmp_path, "\n".join(["user,value", *rows, ""]), f"{name}.csv")
        with pytest.raises(hb.IntakeError, match=f"line {line}"):
            privatize_file(source, ONE, None, tmp_path / "r.csv")


@pytest.mark.parametrize("content", ["", "value\n", "value,user\n"])
def test_no_values_are_no_reports(content: str, tmp_path: Path) -> None:
    with pytest.raises(hb.ReportsError, match="there are no values"):
        privatize_file(write(tmp_path, content), ONE, None, tmp_path / "r.csv")
    assert alone_in(tmp_path, "v.csv")


def test_truth_values_are_no_values(tmp_path: Path) -> None:
    yes = hb.Categories(["true", "false"])
    with pytest.raises(hb.IntakeError, match="the value must not be true or false"):
        privatize_file(write(tmp_path, '{"value": true}\n', "v.jsonl"), light(yes), None, tmp_path / "r.csv")
    for domain in (yes, hb.Categories([1, 2]), HOURS):
        with pytest.raises(hb.IntakeError):
            privatize_file(pd.DataFrame({"value": [True]}), light(domain), None, tmp_path / "r.csv")


@pytest.mark.parametrize(
    ("mechanism", "content", "error", "words"),
    [
        ("strong", "value\n3\n", hb.SettingError, "the study names no such mechanism"),
        (None, "value\n3\n", hb.IntakeError, "nothing says which mechanism to use"),
        ("light", "mechanism,value\nlight,3\n", hb.SettingError, "the mechanism is named twice"),
    ],
)
def test_which_mechanism(
    mechanism: str | None, content: str, error: type[Exception], words: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=words):
        privatize_file(write(tmp_path, content), TWO, mechanism, tmp_path / "r.csv")
    assert alone_in(tmp_path, "v.csv")


def test_some_files_with_users_and_some_without(tmp_path: Path) -> None:
    sources = [write(tmp_path, "user,value\na,3\n", "a.csv"), write(tmp_path, "value\n3\n", "b.csv")]
    with pytest.raises(hb.IntakeError, match="users-in-some"):
        privatize_file(sources, ONE, None, tmp_path / "r.csv")


@pytest.mark.parametrize("name", ["r.txt", "r", "r.tally.parquet", "r.parquet.gz"])
def test_an_ending_that_means_nothing(name: str, tmp_path: Path) -> None:
    with pytest.raises(hb.SettingError, match="the output file has an unsupported ending"):
        privatize_file(write(tmp_path, "value\n3\n"), ONE, None, tmp_path / name)


def test_a_mechanism_of_ones_own_has_no_fingerprint(tmp_path: Path) -> None:
    class Odd(hb.Matrix):
        pass

    own = hb.Study(DIGITS, {"odd": Odd(DIGITS, ["u", "v"], [[0.5, 0.5]] * 10)})
    with pytest.raises(hb.StudyError, match="cannot be stamped on reports"):
        privatize_file(write(tmp_path, "value\n3\n"), own, None, tmp_path / "r.csv")


# -- files that are there, and files that break off ------------------------------------------------------------------


def test_what_is_there_is_never_written_over(tmp_path: Path) -> None:
    source = write(tmp_path, "value\n3\n")
    with pytest.raises(hb.SettingError, match="a file that is read would be written over"):
        privatize_file(source, ONE, None, source)
    (tmp_path / "r.csv").write_text("mine")
    with pytest.raises(hb.IntakeError, match="there is a file already"):
        privatize_file(source, ONE, None, tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text() == "mine"
    (tmp_path / "s.csv").symlink_to(tmp_path / "elsewhere.csv")
    with pytest.raises(hb.IntakeError, match="there is a file already"):
        privatize_file(source, ONE, None, tmp_path / "s.csv")
    (tmp_path / "t.csv.stamp.json").write_text("mine, too")
    with pytest.raises(hb.IntakeError, match="the stamp file of the reports is malformed"):
        privatize_file(source, ONE, None, tmp_path / "t.csv")
    assert (tmp_path / "t.csv.stamp.json").read_text() == "mine, too"
    with pytest.raises(hb.IntakeError, match="not-written"):
        privatize_file(source, ONE, None, tmp_path / "nowhere" / "r.csv")
    assert alone_in(tmp_path, "v.csv", "r.csv", "s.csv", "t.csv.stamp.json")


def test_a_file_that_appears_meanwhile_stays(tmp_path: Path) -> None:
    source = write(tmp_path, "value\n3\n")
    run = privatize_file.steps(source, ONE, None, tmp_path / "r.csv")
    next(run)
    (tmp_path / "r.csv").write_text("mine")
    with pytest.raises(hb.IntakeError, match="there is a file already"):
        list(run)
    assert (tmp_path / "r.csv").read_text() == "mine"
    assert alone_in(tmp_path, "v.csv", "r.csv")


def test_a_stamp_left_alone_makes_room(tmp_path: Path) -> None:
    source = write(tmp_path, "value\n3\n")
    privatize_file(source, TWO, "bits", tmp_path / "r.csv")
    (tmp_path / "r.csv").unlink()
    privatize_file(source, TWO, "light", tmp_path / "r.csv")
    assert json.loads((tmp_path / "r.csv.stamp.json").read_text())["hubbub.mechanism"] == "light"


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow", "jsonl.zst", "csv.gz"])
def test_a_run_that_is_given_up_leaves_nothing(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_privatizing, "BLOCK_ROWS", 10)
    pq.write_table(pa.table({"value": [3] * 100}), tmp_path / "v.parquet", row_group_size=20)
    run = privatize_file.steps(tmp_path / "v.parquet", ONE, None, tmp_path / f"r.{ending}")
    next(run)
    next(run)
    assert (tmp_path / f".r.{ending}.part").exists()
    run.close()
    assert alone_in(tmp_path, "v.parquet")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_move_that_fails_leaves_no_stamp(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write(tmp_path, "value\n3\n")

    def fail(part: Path, target: Path) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "link", fail)
    with pytest.raises(hb.IntakeError, match="not-written"):
        privatize_file(source, ONE, None, tmp_path / f"r.{ending}")
    assert alone_in(tmp_path, "v.csv")


def test_a_file_that_appears_at_the_last_moment_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, link = write(tmp_path, "value\n3\n"), os.link

    def late(part: Path, target: Path) -> None:
        Path(target).write_text("mine")
        link(part, target)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(hb.IntakeError, match="there is a file already"):
        privatize_file(source, ONE, None, tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text() == "mine"
    assert alone_in(tmp_path, "v.csv", "r.csv")


def test_reports_that_the_disk_does_not_confirm_keep_their_stamp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, link, fsync = write(tmp_path, "value\n3\n"), os.link, os.fsync
    in_place: list[Path] = []

    def linked(part: Path, target: Path) -> None:
        link(part, target)
        in_place.append(target)

    def failing(handle: int) -> None:
        if in_place:
            raise OSError(5, "Input/output error")
        fsync(handle)

    monkeypatch.setattr(os, "link", linked)
    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(hb.IntakeError, match="does not confirm") as caught:
        privatize_file(source, ONE, None, tmp_path / "r.csv")
    assert "remove r.csv" in caught.value.remedy
    assert alone_in(tmp_path, "v.csv", "r.csv", "r.csv.stamp.json")


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl", "arrow"])
def test_values_are_written_nowhere(ending: str, tmp_path: Path) -> None:
    """Reports of a mechanism that hides everything: what identifies a value, or a column, is in no file."""
    domain = hb.Categories(["needle-one", "needle-two"])
    own = hb.Study(domain, {"m": hb.Matrix(domain, ["u", "v"], [[0.5, 0.5]] * 2)})
    rows = pd.DataFrame({"value": ["needle-one", "needle-two"] * 50, "note": "haystack", "user": range(100)})
    done = privatize_file(rows, own, None, tmp_path / f"r.{ending}")
    assert done.columns_left_out == ("note",)
    for path in tmp_path.iterdir():
        content = path.read_bytes()
        assert b"needle" not in content
        assert b"note" not in content
        assert b"haystack" not in content


# -- stamps --------------------------------------------------------------------------------------------------------


def stamp_of(path: Path) -> dict[str, str]:
    if path.suffix == ".parquet":
        found = pq.read_schema(path).metadata
    elif path.suffix == ".arrow":
        with pa.OSFile(str(path)) as file:
            found = pa.ipc.open_file(file).schema.metadata
    else:
        entries: dict[str, str] = json.loads(neighbour(path).read_text())
        return entries
    return {key.decode(): value.decode() for key, value in found.items()}


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl", "parquet", "arrow"])
def test_reports_say_what_they_are(ending: str, tmp_path: Path) -> None:
    source = write(tmp_path, "value\n3\n")
    mixed = write(tmp_path, "value,mechanism\n3,bits\n", "m.csv")
    privatize_file(source, TWO, "light", tmp_path / f"secure.{ending}")
    privatize_file(source, TWO, "light", tmp_path / f"seeded.{ending}", rng=1)
    privatize_file(mixed, TWO, None, tmp_path / f"mixed.{ending}")
    expected = {"hubbub.version": hb.__version__, "hubbub.study": TWO.fingerprint, "hubbub.mechanism": "light"}
    assert stamp_of(tmp_path / f"secure.{ending}") == expected | {"hubbub.randomness": "secure"}
    assert stamp_of(tmp_path / f"seeded.{ending}") == expected | {"hubbub.randomness": "seeded"}
    assert "hubbub.mechanism" not in stamp_of(tmp_path / f"mixed.{ending}")


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl", "parquet", "arrow", "arrows"])
def test_reports_of_another_study_are_refused(ending: str, tmp_path: Path) -> None:
    other = hb.Study(DIGITS, {"light": hb.TruncatedGeometric(DIGITS, 0.7)})
    out = tmp_path / f"r.{ending}"
    privatize_file(write(tmp_path, "value\n3\n"), ONE, None, out)
    assert hb.read_reports(out, ONE).users == 1
    for call in (
        lambda: hb.read_reports(out, other),
        lambda: hb.collect(other, out, tmp_path / "t.tally.parquet"),
    ):
        with pytest.raises(hb.IntakeError, match="the reports were made for another study") as caught:
            call()
        assert caught.value.code == "other-stamp"
        assert ONE.fingerprint[:16] in caught.value.got
        assert other.fingerprint[:16] in caught.value.expected
    if ending == "parquet":
        with pytest.raises(hb.IntakeError, match="other-stamp"):
            hb.read_reports(pq.read_table(out), other)


def test_a_stamp_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    privatize_file(write(tmp_path, "value\n3\n"), ONE, None, tmp_path / "r.csv")
    for content in ("", "{", "[]", '{"hubbub.study": 3}', "[" * 20_000):
        neighbour(tmp_path / "r.csv").write_text(content)
        with pytest.raises(hb.IntakeError, match="corrupt-file"):
            hb.read_reports(tmp_path / "r.csv", ONE)


def test_a_folder_of_reports_and_their_stamps_is_read(tmp_path: Path) -> None:
    source = write(tmp_path, "value\n3\n4\n")
    folder = tmp_path / "reports"
    folder.mkdir()
    for name in ("a.csv", "b.jsonl", "c.parquet"):
        privatize_file(source, TWO, "bits", folder / name)
    assert hb.read_reports(folder, TWO).users == 6
    assert hb.read_reports(f"{folder}/*", TWO).users == 6


# -- the terminal ----------------------------------------------------------------------------------------------------


def terminal(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return hubbub(*arguments, cwd=folder)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    (tmp_path / "study.toml").write_text(
        'version = 1\n[domain]\nkind = "integers"\nlow = 0\nhigh = 9\n'
        '[mechanisms.strong]\nkind = "truncated-geometric"\nepsilon = 0.5\n'
        '[mechanisms.bits]\nkind = "rappor"\nepsilon = 1.0\n'
    )
    write(tmp_path, "user,value,town\n" + "".join(f"{user},{user % 10},x\n" for user in range(50)))
    return tmp_path


def test_the_terminal_privatizes_and_estimates(small: Path) -> None:
    done = terminal(small, "privatize", "study.toml", "v.csv", "--mechanism", "bits", "-o", "r.parquet", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "version": 1,
        "fingerprint": hb.read_study(small / "study.toml").fingerprint,
        "mechanism": "bits",
        "rows": 50,
        "randomness": "secure",
        "output": "r.parquet",
        "columns_left_out": ["town"],
        "notes": [],
    }
    assert "column town: left out" in done.stderr
    assert "simulated" not in done.stderr
    document = json.loads(terminal(small, "estimate", "study.toml", "r.parquet", "--quick", "--json").stdout)
    assert document["users"] == 50


@pytest.mark.slow
def test_the_terminal_warns_of_a_seed(small: Path) -> None:
    words = ("privatize", "study.toml", "v.csv", "--mechanism", "strong", "--seed", "7", "-o")
    done = terminal(small, *words, "r.csv")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "r.csv: 50 reports by strong, seeded randomness\n"
    assert "simulated, not private" in done.stderr
    assert terminal(small, *words, "again.csv").returncode == 0
    assert (small / "r.csv").read_bytes() == (small / "again.csv").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (("study.toml", "v.csv", "-o", "r.csv"), 1, "nothing says which mechanism"),
        (("study.toml", "v.csv", "-o", "r.xyz", "--mechanism", "bits"), 2, "unsupported ending"),
        (("study.toml", "v.csv", "-o", "study.toml", "--mechanism", "bits"), 2, "would be written over"),
        (("study.toml", "v.csv", "-o", "r.csv", "--mechanism", "bits", "--seed", "-1"), 2, "--seed"),
    ],
)
def test_mistakes_at_the_terminal(small: Path, arguments: tuple[str, ...], code: int, word: str) -> None:
    before = sorted(small.iterdir())
    done = terminal(small, "privatize", *arguments)
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(small.iterdir()) == before


def test_users_of_a_mechanism_with_memory_are_refused(tmp_path: Path) -> None:
    """Rows are drawn apart: as reports of one user they would be read as made from one permanent response."""
    both = hb.Study(DIGITS, {"daily": hb.LongitudinalRappor(DIGITS, 2.0, 1.0), "light": hb.Rappor(DIGITS, 1.0)})
    users = pd.DataFrame({"user": ["u", "u"], "value": [3, 3]})
    with pytest.raises(hb.ReportsError, match="cannot keep a user's permanent response"):
        privatize_file(users, both, "daily", tmp_path / "reports.csv")
    with pytest.raises(hb.ReportsError, match="cannot keep a user's permanent response"):
        privatize_file(users.assign(mechanism=["light", "daily"]), both, None, tmp_path / "reports.csv")
    assert not list(tmp_path.iterdir())
    assert privatize_file(users, both, "light", tmp_path / "light.csv").rows == 2
    assert privatize_file(users[["value"]], both, "daily", tmp_path / "daily.csv").rows == 2


def test_tables_for_devices_from_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(
        "version = 1\n[domain]\nkind = 'integers'\nlow = 0\nhigh = 3\n"
        "[mechanisms.m]\nkind = 'exponential'\nepsilon = 1.0\n"
    )
    told = terminal(tmp_path, "privatize", "study.toml", "--export-tables", "tables.json", "--json")
    document = json.loads(told.stdout)
    assert (told.returncode, document["tables"]) == (0, "tables.json")
    assert Client(tmp_path / "study.toml", tmp_path / "tables.json", digest=document["digest"]).privatize(2) in "0123"
    again = terminal(tmp_path, "privatize", "study.toml", "--export-tables", "tables.json")
    assert again.returncode == 1
    assert "never overwritten" in again.stderr
    plain = terminal(tmp_path, "privatize", "study.toml", "--export-tables", "other.json")
    assert plain.stdout == f"other.json: digest {document['digest']}\n"


def test_more_rows_of_a_user_than_the_study_allows_are_refused(tmp_path: Path) -> None:
    study = hb.Study(hb.Integers(0, 9), {"coin": hb.RandomizedResponse(hb.Integers(0, 9), 1.0)}, max_reports_per_user=2)
    values = tmp_path / "values.csv"
    values.write_text("user,value\n" + "".join(f"{name},{place % 10}\n" for place, name in enumerate("abacbc")))
    assert privatize_file(values, study, None, tmp_path / "kept.csv").rows == 6
    values.write_text(values.read_text() + "b,3\n")
    with pytest.raises(
        hb.IntakeError, match=r"(?s)more than the study allows.*'b'.*3 values.*at most 2.*nothing was"
    ) as told:
        privatize_file(values, study, None, tmp_path / "reports.csv")
    assert told.value.code == "too-many-reports"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept.csv", "kept.csv.stamp.json", "values.csv"]
    values.write_text("value\n" + "3\n" * 5)  # without a column of users each row is somebody else
    with pytest.warns(hb.HubbubWarning, match="max_reports_per_user = 2 cannot be checked"):
        assert privatize_file(values, study, None, tmp_path / "others.csv").rows == 5
