"""Files of tables on the device: checked completely when they are loaded, with no error but the client's own.

Damaged files carry the digest of their content: anyone who can write a file can write its digest, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hubbub as hb
from device_tables import (
    JSON,
    STUDIES,
    Exported,
    damaged,
    entry_paths,
    exported,
    lookup,
    mutated_tables,
    sealed,
    study_digest,
)
from hubbub.client import MAX_WIDTH, Client, ClientError
from hubbub.intake.privatizing.device_tables import export_tables
from strategies import examples

Damage = Callable[[dict[str, Any]], Any]
TABLE = ("tables", "m")
FIVE_PARTS = r"(?s)\n  where:.*\n  got:.*\n  expected:.*\n  remedy:"


def load(export: Exported, tables: object, folder: Path) -> Client:
    """Return a client for the study with these tables: bytes as they are, anything else as JSON."""
    number = len(list(folder.iterdir()))
    study, path = folder / f"{number}.toml", folder / f"{number}.json"
    study.write_bytes(export.study)
    path.write_bytes(tables if isinstance(tables, bytes) else json.dumps(tables).encode())
    return Client(study, path)


def outputs_of(export: Exported, folder: Path) -> set[str]:
    path = folder / "whole.toml"
    path.write_bytes(export.study)
    mechanism = hb.read_study(path).mechanisms["m"]
    assert mechanism.outputs is not None
    return {mechanism.output_space.write(output) for output in mechanism.outputs.tolist()}


@pytest.mark.parametrize("name", STUDIES)
def test_whole_tables_are_taken(name: str, tmp_path: Path) -> None:
    export = exported(name)
    device = load(export, export.tables, tmp_path)
    assert {device.privatize(export.value) for _ in range(50)} <= outputs_of(export, tmp_path)


WRONG: list[Any] = [None, True, -1, 1.5, 10**4000, "", "g" * 9, [], [[]], {}, {"kind": "rows"}]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", STUDIES)
def test_no_entry_can_be_left_out_or_be_of_another_type(name: str, tmp_path: Path) -> None:
    export = exported(name)
    for path in entry_paths(export.tables):
        if path == ("digest",):
            continue
        with pytest.raises(ClientError, match=FIVE_PARTS):
            load(export, sealed(damaged(export.tables, path)), tmp_path)
        for wrong in WRONG:
            if path == ("fingerprint",) or repr(lookup(export.tables, path)) == repr(wrong):
                continue  # a fingerprint is for people: the study file's own digest decides
            with pytest.raises(ClientError, match=FIVE_PARTS):
                load(export, sealed(damaged(export.tables, path, to=wrong)), tmp_path)


def in_rows(change: Callable[[Any], Any]) -> Damage:
    """Return the damage that changes the rows, or the columns of a quarter."""

    def damage(tables: dict[str, Any]) -> Any:
        name = "rows" if "rows" in tables["tables"]["m"] else "quarter"
        return damaged(tables, (*TABLE, name), to=change(deepcopy(tables["tables"]["m"][name])))

    return damage


def entry(text: str) -> Damage:
    return in_rows(lambda rows: [[text, *rows[0][1:]], *rows[1:]])


DAMAGES: dict[str, Damage] = {
    "an extra entry": lambda tables: {**tables, "more": 1},
    "an extra table": lambda tables: damaged(tables, ("tables", "other"), to=tables["tables"]["m"]),
    "another name": lambda tables: damaged(tables, ("tables",), to={"n": tables["tables"]["m"]}),
    "an extra entry of a table": lambda tables: damaged(tables, (*TABLE, "more"), to=1),
    "another study": lambda tables: damaged(tables, ("study",), to="0" * 64),
    "version 2": lambda tables: damaged(tables, ("version",), to=2),
    "version 1.0": lambda tables: damaged(tables, ("version",), to=1.0),
    "no tables": lambda tables: damaged(tables, ("tables",), to={}),
    "a table of the other kind": lambda tables: damaged(
        tables, (*TABLE, "kind"), to="clipped" if tables["tables"]["m"]["kind"] == "rows" else "rows"
    ),
    "no bits": lambda tables: damaged(tables, (*TABLE, "width"), to=0),
    "an odd number of bits": lambda tables: damaged(tables, (*TABLE, "width"), to=257),
    "64 bits more": lambda tables: damaged(tables, (*TABLE, "width"), to=tables["tables"]["m"]["width"] + 64),
    "a million bits": lambda tables: damaged(tables, (*TABLE, "width"), to=MAX_WIDTH + 64),
    "10^18 bits": lambda tables: damaged(tables, (*TABLE, "width"), to=10**18),
    "bits as a float": lambda tables: damaged(tables, (*TABLE, "width"), to=256.0),
    "a row too few": in_rows(lambda rows: rows[:-1]),
    "a row too many": in_rows(lambda rows: [*rows, rows[0]]),
    "a short row": in_rows(lambda rows: [rows[0][:-1], *rows[1:]]),
    "a long row": in_rows(lambda rows: [[*rows[0], "0"], *rows[1:]]),
    "empty rows": in_rows(lambda rows: [[] for _ in rows]),
    "a negative weight": entry("-1"),
    "a weight with a sign": entry("+1"),
    "a weight with 0x": entry("0x1"),
    "a weight with a blank": entry(" 1"),
    "a weight with an underscore": entry("1_0"),
    "a weight of other digits": entry("١"),
    "a weight of a million digits": entry("f" * 1_000_000),
    "no digits": entry(""),
    "another weight": entry("1"),
}


@pytest.mark.parametrize("name", STUDIES)
def test_damaged_tables_are_refused_when_they_are_loaded(name: str, tmp_path: Path) -> None:
    export = exported(name)
    for damage in DAMAGES.values():
        with pytest.raises(ClientError, match=FIVE_PARTS):
            load(export, sealed(damage(deepcopy(export.tables))), tmp_path)


@pytest.mark.parametrize(
    "outputs", [["a", "b"], ["a", "b", "b"], ["a", "b", "8"], ["b", "a", "7"], ["a", "b", 7], "ab7"]
)
def test_outputs_are_those_of_the_study(outputs: object, tmp_path: Path) -> None:
    export = exported("exponential (2), words")
    with pytest.raises(ClientError, match="outputs"):
        load(export, sealed(damaged(export.tables, (*TABLE, "outputs"), to=outputs)), tmp_path)


@pytest.mark.parametrize("name", ["planar-laplace (2), square grid", "holes"])
@pytest.mark.parametrize(
    "window",
    [
        [[0, 0], [2.0, 1.0]],
        [[0, 0], [3, 1]],
        [[-1, 0], [3, 2]],
        [[1, 1], [1, 0]],
        [[-(10**4000), 0], [10**4000 + 2, 1]],
        [[False, 0], [2, 1]],
        [[0, 0]],
        [[0, 0], [2, 1], [2, 1]],
        [[0], [2]],
        "ab",
        {"0": [0, 0]},
    ],
)
def test_a_window_lies_around_the_grid(name: str, window: object, tmp_path: Path) -> None:
    export = exported(name)
    with pytest.raises(ClientError, match=r"(window|quarter)"):
        load(export, sealed(damaged(export.tables, (*TABLE, "window"), to=window)), tmp_path)


def test_outputs_of_a_matrix_are_written_as_the_library_writes_them(tmp_path: Path) -> None:
    """Beside 2.5 the output 1 is a float for the library, which writes and reads 1.0."""
    study, path = tmp_path / "study.toml", tmp_path / "tables.json"
    study.write_text(
        "version = 1\n[domain]\nkind = 'categories'\nlabels = ['a', 'b']\n"
        "[mechanisms.m]\nkind = 'matrix'\noutputs = [1, 2.5]\nprobabilities = [[1.0, 0.0], [0.5, 0.5]]\n"
    )
    export_tables(study, path)
    mechanism = hb.read_study(study).mechanisms["m"]
    assert Client(study, path).privatize("a") == mechanism.output_space.write(mechanism.privatize(["a"]).tolist()[0])


TEXTS: dict[str, bytes] = {
    "nothing": b"",
    "a list": b"[]",
    "null": b"null",
    "a number": b"1",
    "5,000 digits": b'{"version": ' + b"9" * 5000 + b"}",
    "half of it": b'{"version": 1, "tables": {',
    "not UTF-8": b'{"version": "\xff"}',
    "UTF-16": '{"version": 1}'.encode("utf-16"),
    "a NUL": b'{"version": 1}\0',
    "lists in lists": b"[" * 100_000 + b"]" * 100_000,
    "objects in objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "TOML": b"version = 1\n",
    "NaN": b'{"version": NaN, "digest": Infinity}',
    "half a surrogate": b'{"version": "\\ud800"}',
}


@pytest.mark.parametrize("name", TEXTS)
def test_other_files_are_refused_as_tables(name: str, tmp_path: Path) -> None:
    with pytest.raises(ClientError, match="(?s)file of tables.*" + FIVE_PARTS[4:]):
        load(exported("exponential (2), words"), TEXTS[name], tmp_path)


def test_a_name_that_appears_twice_is_refused(tmp_path: Path) -> None:
    """JSON's readers keep the last of the two: nobody should have to know which one counts."""
    export = exported("exponential (2), words")
    text = json.dumps(export.tables)
    twice = text.replace('"kind": "rows"', '"kind": "clipped", "kind": "rows"')
    assert twice != text
    assert json.loads(twice) == export.tables
    with pytest.raises(ClientError, match="twice"):
        load(export, twice.encode(), tmp_path)


@pytest.mark.parametrize("path", ["missing.json", "", "a\0b", ".", "/dev/zero", 3])
def test_a_path_without_tables_is_refused(path: Any, tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_bytes(exported("exponential (2), words").study)
    with pytest.raises(ClientError, match="no such file of tables"):
        Client(study, path)


def test_a_file_of_tables_beyond_its_limit_is_refused_at_once(tmp_path: Path) -> None:
    study, path = tmp_path / "study.toml", tmp_path / "tables.json"
    study.write_bytes(exported("exponential (2), words").study)
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a hole of a terabyte: nobody may read it
    with pytest.raises(ClientError, match="too large"):
        Client(study, path)


def test_tables_are_for_one_study_file(tmp_path: Path) -> None:
    export, other = exported("exponential (2), words"), exported("matrix (3), words")
    with pytest.raises(ClientError, match="another study"):
        load(other, export.tables, tmp_path)
    assert export.tables["study"] == study_digest(export.study)
    # Forged for the other study, too, they do not fit it.
    with pytest.raises(ClientError, match="outputs"):
        load(other, sealed({**export.tables, "study": study_digest(other.study)}), tmp_path)


def check(export: Exported, tables: object, folder: Path) -> str:
    """Load tables and draw: only the client's error may come out, or an output of the mechanism."""
    try:
        device = load(export, tables, folder)
    except ClientError:
        return "refused"
    assert {device.privatize(export.value) for _ in range(5)} <= outputs_of(export, folder)
    return "taken"


@examples(100)
@given(st.data())
def test_mutated_tables_give_outputs_or_the_clients_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    export, tables = data.draw(mutated_tables())
    check(export, tables, tmp_path_factory.mktemp("tables"))


@examples(50)
@given(st.data())
def test_any_json_gives_the_clients_error(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    export, tables = exported("matrix (3), words"), data.draw(JSON)
    assert check(export, sealed(tables), tmp_path_factory.mktemp("json")) == "refused"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("domain", "kind"),
    [
        ("kind = 'grid'\ncolumns = 2\nrows = 2\ncell = 28.2\ncells = [0, 3]", "planar-laplace"),
        ("kind = 'integers'\nlow = 0\nhigh = 79", "exponential"),
        ("kind = 'bins'\nedges = [0, 1e-32, 39, 40]", "laplace"),
    ],
)
def test_the_widest_tables_that_the_library_writes_are_taken(domain: str, kind: str, tmp_path: Path) -> None:
    study, path = tmp_path / "study.toml", tmp_path / "tables.json"
    study.write_text(f"version = 1\n[domain]\n{domain}\n[mechanisms.m]\nkind = '{kind}'\nepsilon = 500\n")
    export_tables(study, path)
    assert 20_000 < json.loads(path.read_bytes())["tables"]["m"]["width"] <= MAX_WIDTH
    assert Client(study, path).privatize(0) == "0"
