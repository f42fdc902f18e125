"""Tables and queries of SQLite, DuckDB and PostgreSQL as sources of reports."""

from __future__ import annotations

import contextlib
import gc
import os
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from hubbub.core.errors import IntakeError
from hubbub.intake.sources import row_batches
from hubbub.intake.sources.base import Rows
from hubbub.intake.sources.database import DatabaseSource
from hubbub.intake.sources.database_address import is_address, parse_address
from hubbub.intake.sources.engines.duckdb import CLOSED, DuckDB
from hubbub.intake.sources.engines.postgresql import PostgreSQL
from hubbub.intake.sources.engines.sqlite import SQLite
from servers import PASSWORD, Server


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def source_at(address: str) -> DatabaseSource:
    return DatabaseSource(parse_address(address))


def read(address: str, *wanted: str) -> pa.Table:
    """All rows as one table; every batch must count what it holds."""
    source = source_at(address)
    columns = wanted or tuple(source.header())
    parts = list(source.rows(columns))
    place = 1
    for part in parts:
        assert list(part.columns) == list(columns)
        assert {len(column) for column in part.columns.values()} == {part.parsed}
        assert (part.counted, part.first) == (part.parsed + len(part.faults), place)
        place += part.counted
    return pa.concat_tables([pa.table(dict(part.columns)) for part in parts]) if parts else pa.table({})


def sqlite(name: str, *statements: str | tuple[str, list[tuple[Any, ...]]]) -> None:
    connection = sqlite3.connect(name)
    for statement in statements:
        if isinstance(statement, str):
            connection.execute(statement)
        else:
            connection.executemany(*statement)
    connection.commit()
    connection.close()


def ducks(name: str, *statements: str) -> None:
    with duckdb.connect(name) as connection:
        for statement in statements:
            connection.execute(statement)


def column_of(*entries: object) -> pa.ChunkedArray:
    """Write entries into one column of SQLite that has no type, and read them back."""
    Path("column.db").unlink(missing_ok=True)
    sqlite("column.db", "CREATE TABLE t (output)", ("INSERT INTO t VALUES (?)", [(entry,) for entry in entries]))
    return read("sqlite:///column.db#t").column("output")


# Addresses


def test_addresses_are_told_from_paths() -> None:
    yes = ["sqlite:///a.db#t", "SQLite:///a.db", "postgres://h/d#t", "mysql://h", "s3://b/k", "sqlite:a.db", "duckdb:"]
    no = ["a.db", "reports.csv", "/tmp/a#b", "C:\\reports.csv", "a b://c", "folder/sqlite.db", ""]  # noqa: S108
    assert [is_address(text) for text in yes + no] == [True] * len(yes) + [False] * len(no)


@pytest.mark.parametrize(
    ("fragment", "sql"),
    [
        ("reports", 'SELECT * FROM "reports"'),
        (" reports ", 'SELECT * FROM "reports"'),
        ("main.reports", 'SELECT * FROM "main"."reports"'),
        ("db.main.reports", 'SELECT * FROM "db"."main"."reports"'),
        ('"a.b"."c""d"', 'SELECT * FROM "a.b"."c""d"'),
        ("my table", 'SELECT * FROM "my table"'),
        ("selection", 'SELECT * FROM "selection"'),
        ("with_users", 'SELECT * FROM "with_users"'),
        ('"select"', 'SELECT * FROM "select"'),
        ("a; DROP TABLE b", 'SELECT * FROM "a; DROP TABLE b"'),
        ("DELETE FROM a", 'SELECT * FROM "DELETE FROM a"'),
        ("100%20 # sure", 'SELECT * FROM "100%20 # sure"'),
        ("select * from a;\n ; ", "select * from a"),
        ("WITH x AS (SELECT 1) SELECT * FROM x", "WITH x AS (SELECT 1) SELECT * FROM x"),
    ],
)
def test_fragments_are_tables_or_queries(fragment: str, sql: str) -> None:
    assert parse_address(f"sqlite:///a.db#{fragment}").relation.sql == sql


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("postgresql://ann:s3cret@host:5432/d#t", "postgresql://ann@host:5432/d#t"),
        ("postgres://ann:s3cret@host/d#t", "postgresql://ann@host/d#t"),
        ("postgresql://ann:s3c%40ret@host/d#t", "postgresql://ann@host/d#t"),
        ("postgresql://ann:s3@c:ret@host/d#t", "postgresql://ann@host/d#t"),
        ("postgresql://ann@host/d?password=s3cret&sslmode=require#t", "postgresql://ann@host/d?sslmode=require#t"),
        ("postgresql://h1:1,h2:2/d?sslpassword=s3cret#a.t", "postgresql://h1:1,h2:2/d#a.t"),
        ("postgresql://ann:s3cret@[::1]:5/d#t", "postgresql://ann@[::1]:5/d#t"),
        ("postgresql://ann:s3cret@/d?host=/run#t", "postgresql://ann@/d?host=/run#t"),
        ("postgresql://ann:s3cret@h/d#SELECT 'a@b'", "postgresql://ann@h/d#SELECT 'a@b'"),
    ],
)
def test_names_of_sources_hold_no_password(address: str, name: str) -> None:
    source = source_at(address)
    assert source.name == source.identity == name
    assert "s3c" not in repr(parse_address(address))
    assert parse_address(address).target.endswith("connect_timeout=5")


def test_a_password_is_encoded_anew_for_the_driver() -> None:
    target = parse_address("postgresql://ann:s3@c:r%2Fet@host/d?connect_timeout=9#t").target
    assert target == "postgresql://ann:s3%40c%3Ar%2Fet@host/d?connect_timeout=9"


def test_the_same_file_has_one_identity(folder: Path) -> None:
    here, full = source_at("sqlite:///a.db#t"), source_at(f"sqlite:///{folder}/x/../a.db#t")
    assert here.identity == full.identity != source_at("sqlite:///a.db#u").identity
    assert here.name == "sqlite:///a.db#t"


# SQLite


@pytest.mark.parametrize(
    ("entries", "kind", "expected"),
    [
        ([7, None, -(2**63), 2**63 - 1], pa.int64(), None),
        ([7.5, None, 7.0, 1e300], pa.float64(), None),
        (["7", "007", "", None, "é", " x "], pa.string(), None),
        ([b"\xff\x00", None, b""], pa.binary(), None),
        ([None, None], pa.int64(), None),
        ([7, "1e3", None, 7.5, b"\xff"], pa.string(), ["7", "1e3", None, "7.5", "ff"]),
        ([2**53 + 1, 7.5, 7.0, 0.1 + 0.2], pa.string(), ["9007199254740993", "7.5", "7.0", "0.30000000000000004"]),
        ([7, b"\x0a\xbc"], pa.string(), ["7", "0abc"]),
        ([*range(70_000), "last"], pa.string(), [*map(str, range(70_000)), "last"]),
        ([*[None] * 70_000, "last"], pa.string(), None),
        ([*[None] * 70_000, b"last"], pa.binary(), None),
        ([*[None] * 70_000, 0.5], pa.float64(), None),
        ([*[7] * 70_000, 0.5], pa.string(), [*["7"] * 70_000, "0.5"]),
    ],
    ids=lambda value: None if isinstance(value, list) else str(value),
)
def test_sqlite_keeps_every_entry_as_it_is(entries: list[Any], kind: Any, expected: Any, folder: Path) -> None:
    column = column_of(*entries)
    assert column.type == kind
    assert column.to_pylist() == (entries if expected is None else expected)


def test_sqlite_texts_with_odd_bytes(folder: Path) -> None:
    assert column_of("a\0b", "c").to_pylist() == ["a\0b", "c"]
    sqlite(
        "a.db", "CREATE TABLE t (output, user)", "INSERT INTO t VALUES ('a', 1), (CAST(x'ff41' AS TEXT), 2), ('b', 3)"
    )
    (rows,) = source_at("sqlite:///a.db#t").rows(["output", "user"])
    assert rows.counted == 3
    assert rows.columns["output"].to_pylist() == ["a", "b"]
    assert rows.columns["user"].to_pylist() == [1, 3]
    assert rows.places is not None
    assert rows.places.tolist() == [1, 3]
    ((place, fault),) = rows.faults
    assert (place, fault.code, fault.column) == (2, "not-utf-8", "output")


def test_sqlite_names_columns_exactly(folder: Path) -> None:
    sqlite(
        "a.db",
        'CREATE TABLE "tä""ble" ("out put", "ou""t", output)',
        "INSERT INTO \"tä\"\"ble\" VALUES ('x', 'y', 'z')",
    )
    address = 'sqlite:///a.db#"tä""ble"'
    assert source_at(address).header() == ["out put", 'ou"t', "output"]
    assert read(address, 'ou"t', "out put").to_pylist() == [{'ou"t': "y", "out put": "x"}]
    query = 'sqlite:///a.db#SELECT 1 AS a, 2 AS a, 3 AS A, output FROM "tä""ble" -- all'
    assert source_at(query).header() == ["a", "a", "A", "output"]
    assert read(query, "A", "output").to_pylist() == [{"A": 3, "output": "z"}]


def test_sqlite_is_never_created_or_written(folder: Path) -> None:
    sqlite("a.db", "CREATE TABLE t (output)", "INSERT INTO t VALUES (1)")
    before = Path("a.db").read_bytes()
    for address in (
        "none.db#t",
        "a.db#t",
        "a.db#SELECT 1; DROP TABLE t",
        "a.db#SELECT 1); DROP TABLE t; --",
        "a.db#none",
    ):
        with pytest.raises(IntakeError) if address != "a.db#t" else contextlib.nullcontext():
            read(f"sqlite:///{address}")
    assert Path("a.db").read_bytes() == before
    assert [path.name for path in folder.iterdir()] == ["a.db"]


def test_sqlite_refuses_to_write_and_runs_one_statement(folder: Path) -> None:
    sqlite("a.db", "CREATE TABLE t (output)")
    with pytest.raises(IntakeError, match="readonly database"):
        source_at("sqlite:///a.db#WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x").header()
    for query in ("SELECT 1; SELECT 2", "SELECT 1); SELECT 2; --"):
        with pytest.raises(IntakeError, match="syntax error"):
            source_at(f"sqlite:///a.db#{query}").header()


LOCK = """
import sqlite3, sys
connection = sqlite3.connect("a.db", isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
"""


def test_sqlite_locked_by_another_process(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sqlite("a.db", "CREATE TABLE t (output)")
    monkeypatch.setattr("hubbub.intake.sources.engines.sqlite.LOCK_MILLISECONDS", 100)
    with other_process(LOCK), pytest.raises(IntakeError, match="locked") as caught:
        read("sqlite:///a.db#t")
    assert caught.value.code == "corrupt-file"


class other_process:  # noqa: N801  # a context, used like a function
    """Run a script until the context is left; two SQLites in one process do not see each other's locks."""

    def __init__(self, script: str) -> None:
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "locked\n"

    def __exit__(self, *_: object) -> None:
        self._process.communicate("\n")


def test_sqlite_counts_and_reads_one_snapshot(folder: Path) -> None:
    sqlite("a.db", "PRAGMA journal_mode = WAL", "CREATE TABLE t (output)", "INSERT INTO t VALUES (1), (2)")
    with SQLite(parse_address("sqlite:///a.db#t")) as engine:
        assert engine.columns() == ["output"]
        assert engine.count([0], 1) == 2
        script = "import sqlite3; c = sqlite3.connect('a.db'); c.execute('INSERT INTO t VALUES (3)'); c.commit()"
        subprocess.run([sys.executable, "-c", script], check=True)  # noqa: S603
        assert [array.to_pylist() for (array,) in engine.batches()] == [[1, 2]]
    assert read("sqlite:///a.db#t").num_rows == 3


# DuckDB


def test_duckdb_types(folder: Path) -> None:
    ducks(
        "a.duckdb",
        "CREATE TYPE mood AS ENUM ('sad', 'happy')",
        """CREATE TABLE t (a HUGEINT, b UHUGEINT, c DECIMAL(10, 2), d UUID, e mood, f BLOB, g BIT, h BIGINT, i VARCHAR,
        j BOOLEAN, k DOUBLE, l DATE, m INTEGER[], n UTINYINT, o UBIGINT, p BIGNUM)""",
        """INSERT INTO t VALUES (170141183460469231731687303715884105727, 340282366920938463463374607431768211455, 7,
        'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'happy', '\\xFF\\x00'::BLOB, '0101', 9007199254740993, 'é', true, 7.5,
        '2020-01-01', [1], 3, 18446744073709551615, 7)""",
        "INSERT INTO t (c) VALUES (NULL), (7.50), (-0.05)",
    )
    table = read("duckdb:///a.duckdb#t")
    first = {name: column[0].as_py() for name, column in zip(table.column_names, table.columns, strict=True)}
    assert {name: first[name] for name in "abcdefghijkno"} == {
        "a": "170141183460469231731687303715884105727",
        "b": "340282366920938463463374607431768211455",
        "c": "7",
        "d": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "e": "happy",
        "f": b"\xff\x00",
        "g": "0101",
        "h": 9007199254740993,
        "i": "é",
        "j": True,
        "k": 7.5,
        "n": 3,
        "o": 18446744073709551615,
    }
    assert first["p"] == "7"
    assert table.column("c").to_pylist() == ["7", None, "7.5", "-0.05"]
    assert pa.types.is_date(table.schema.field("l").type)
    assert pa.types.is_list(table.schema.field("m").type)


def test_duckdb_names_and_schemas(folder: Path) -> None:
    ducks(
        "a.duckdb",
        'CREATE SCHEMA "odd.one"',
        'CREATE TABLE "odd.one"."t;--" ("out put" VARCHAR, output INTEGER)',
        """INSERT INTO "odd.one"."t;--" VALUES ('x', 1)""",
        'CREATE VIEW seen AS FROM "odd.one"."t;--"',
    )
    assert read('duckdb:///a.duckdb#"odd.one".t;--', "output", "out put").to_pylist() == [{"output": 1, "out put": "x"}]
    assert read("duckdb:///a.duckdb#SEEN").to_pylist() == [{"out put": "x", "output": 1}]
    query = 'duckdb:///a.duckdb#SELECT 1 AS a, 2 AS a, 3 AS "A"'
    assert source_at(query).header() == ["a", "a", "A"]
    assert read(query, "A").to_pylist() == [{"A": 3}]


def test_duckdb_finds_no_tables_elsewhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ducks("a.duckdb", "CREATE TABLE t (output INTEGER)")
    Path("other.csv").write_text("output\n1\n")
    # DuckDB would look among the variables of the module that calls it.
    monkeypatch.setattr("hubbub.intake.sources.engines.duckdb.variable", pa.table({"output": [1]}), raising=False)
    for name in ('"other.csv"', "variable", "SELECT * FROM variable"):
        with pytest.raises(IntakeError) as caught:
            read(f"duckdb:///a.duckdb#{name}")
        assert caught.value.code == "no-table"


@pytest.mark.parametrize(
    "source",
    [
        "read_csv('{0}/secret.csv')",
        "read_text('{0}/secret.csv')",
        "read_blob('secret.csv')",
        "glob('{0}/*')",
        "read_csv('http://127.0.0.1:1/secret.csv')",
        "read_text('a.duckdb.tmp/../secret.csv')",
    ],
)
def test_duckdb_reads_nothing_outside_its_file(source: str, folder: Path) -> None:
    (folder / "secret.csv").write_text("output\nyes\n")
    query = f"SELECT * FROM {source.format(folder)}"  # noqa: S608
    ducks("a.duckdb", "CREATE TABLE t (output INTEGER)")
    with contextlib.suppress(duckdb.Error):  # without the address, DuckDB does not make the view
        ducks("a.duckdb", f"CREATE VIEW v AS {query}")
    views = ["v"] if "http" not in source and ".tmp" not in source else []
    for name in (*views, query):
        with pytest.raises(IntakeError, match="outside the database") as caught:
            read(f"duckdb:///a.duckdb#{name}")
        assert caught.value.code == "no-table"
        assert "CREATE TABLE" in caught.value.remedy
    assert sorted(path.name for path in folder.iterdir()) == ["a.duckdb", "secret.csv"]


def test_duckdb_loads_no_extensions(folder: Path) -> None:
    ducks("a.duckdb", "CREATE TABLE t (output INTEGER)")
    for query in ("SELECT * FROM sqlite_scan('a', 'b')", "SELECT st_point(1, 2) AS output"):
        with pytest.raises(IntakeError, match="outside the database") as caught:
            read(f"duckdb:///a.duckdb#{query}")
        assert caught.value.code == "no-table"
        assert "extension" in caught.value.got
    with DuckDB(parse_address("duckdb:///a.duckdb#t")) as engine:
        settings = dict(engine.ask("SELECT name, value FROM duckdb_settings()"))
        closed = ("enable_external_access", "autoinstall_known_extensions", "autoload_known_extensions")
        assert [settings[name] for name in (*closed, "lock_configuration")] == ["false"] * 3 + ["true"]
        with pytest.raises(duckdb.Error, match="locked"):
            engine.ask("SET autoload_known_extensions = true")


def test_duckdb_spills_to_disk_and_its_own_views_are_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ducks(
        "a.duckdb",
        "CREATE TABLE t AS SELECT range AS output FROM range(300000)",
        "CREATE VIEW v AS SELECT md5(output::VARCHAR) AS output, repeat('x', 200) AS filler FROM t ORDER BY ALL",
    )
    assert read("duckdb:///a.duckdb#v", "output").num_rows == 300_000
    small = {"memory_limit": "64MB", "threads": "1"}
    monkeypatch.setattr("hubbub.intake.sources.engines.duckdb.CLOSED", {**CLOSED, **small})
    spilled = "SELECT md5(output::VARCHAR) AS output, repeat(md5(output::VARCHAR), 9) AS filler FROM t ORDER BY ALL"
    with DuckDB(parse_address(f"duckdb:///a.duckdb#{spilled}")) as engine:
        assert engine.columns() == ["output", "filler"]
        assert engine.count([0, 1], 2) == 300_000
        rows, seen = 0, False
        for output, _ in engine.batches():
            rows, seen = rows + len(output), seen or Path("a.duckdb.tmp").exists()
    assert rows == 300_000
    assert seen
    assert [path.name for path in folder.iterdir()] == ["a.duckdb"]


def test_duckdb_runs_one_statement(folder: Path) -> None:
    ducks("a.duckdb", "CREATE TABLE t (output INTEGER)")
    for query in ("SELECT 1; COPY t TO 'copy.csv'", "SELECT 1; SELECT 2", "WITH x AS (SELECT 1) INSERT INTO t FROM x"):
        with pytest.raises(IntakeError, match="statement that writes"):
            source_at(f"duckdb:///a.duckdb#{query}").header()
    assert [path.name for path in folder.iterdir()] == ["a.duckdb"]


def test_duckdb_held_by_another_process(folder: Path) -> None:
    ducks("a.duckdb", "CREATE TABLE t (output INTEGER)")
    script = "import duckdb, sys; c = duckdb.connect('a.duckdb'); print('locked', flush=True); input()"
    with other_process(script), pytest.raises(IntakeError, match="lock") as caught:
        read("duckdb:///a.duckdb#t")
    assert caught.value.code == "corrupt-file"


def test_duckdb_is_shared_with_readers_and_closed_to_writers(folder: Path) -> None:
    ducks("a.duckdb", "CREATE TABLE t AS SELECT 1 AS output")
    reader = "import duckdb, sys; c = duckdb.connect('a.duckdb', read_only=True); print('locked', flush=True); input()"
    with other_process(reader):
        assert read("duckdb:///a.duckdb#t").num_rows == 1
    with DuckDB(parse_address("duckdb:///a.duckdb#t")):
        writer = "import duckdb; duckdb.connect('a.duckdb')"
        done = subprocess.run([sys.executable, "-c", writer], capture_output=True, text=True, check=False)  # noqa: S603
        assert "lock" in done.stderr


def test_duckdb_open_in_the_same_program(folder: Path) -> None:
    ducks("a.duckdb", "CREATE TABLE t (output INTEGER)")
    with duckdb.connect("a.duckdb"), pytest.raises(IntakeError, match="close the program") as caught:
        read("duckdb:///a.duckdb#t")
    assert caught.value.code == "corrupt-file"


# PostgreSQL


def test_postgresql_types(server: Server) -> None:
    table = read(server.address("types"))
    first = {name: column[0].as_py() for name, column in zip(table.column_names, table.columns, strict=True)}
    nested = {name: first.pop(name) for name in ("a_date", "a_list")}
    assert first == {
        "a_numeric": "7",
        "a_price": "7",
        "a_char": "ab   ",
        "a_varchar": "ab ",
        "a_text": "é",
        "a_bytea": b"\xff\x00",
        "a_bit": "0101",
        "a_varbit": "01",
        "a_uuid": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "a_mood": "happy",
        "a_bigint": 9007199254740993,
        "a_small": 3,
        "an_amount": "7.5",
        "a_smallint": 1,
        "a_real": 7.5,
        "a_double": 7.25,
        "a_boolean": True,
        "a_json": '{"a": 1}',
        "an_address": "1.2.3.4/32",
        "a_money": "$7.50",
        "an_oid": "4000000000",
        "a_name": "n",
    }
    assert nested["a_list"] == [1, 2]
    assert pa.types.is_date(table.schema.field("a_date").type)
    assert table.column("a_numeric").to_pylist() == ["7", None, "1" + "0" * 30, "-0.5", "NaN", "100"]


def test_postgresql_names_and_schemas(server: Server) -> None:
    table = server.address('"odd.Schema"."tä""ble; DROP TABLE reports"')
    assert source_at(table).header() == ["out put", 'ou"t', "A", "a"]
    assert read(table, "a", "A", 'ou"t').to_pylist() == [{"a": 2, "A": 1, 'ou"t': "y"}]
    assert read(server.address("public.reports")).num_rows == 100_000


def test_postgresql_passwords_of_any_characters(server: Server) -> None:
    assert read(server.keeper("reports"), "output").num_rows == 100_000


def test_postgresql_in_another_encoding(server: Server) -> None:
    assert read(server.address("SELECT chr(233) AS output", "western")).to_pylist() == [{"output": "é"}]


@pytest.mark.parametrize("address", ["reports", "keeper", "missing"])
def test_postgresql_never_shows_a_password(address: str, server: Server) -> None:
    wrong = "wr0ng/p@ss"
    source = source_at(server.keeper(address, wrong))
    with pytest.raises(IntakeError) as caught:
        source.header()
    assert caught.value.code == "no-connection"
    assert "password authentication failed" in str(caught.value)
    for text in (str(caught.value), repr(caught.value), source.name, str(source.identity), repr(vars(source))):
        assert "wr0ng" not in text
        assert "p@ss" not in text


@pytest.mark.parametrize(
    "query",
    [
        "WITH gone AS (DELETE FROM reports RETURNING *) SELECT * FROM gone",
        "SELECT nextval('numbers')",
        "SELECT set_config('transaction_read_only', 'off', false), nextval('numbers')",
        "SELECT 1; DELETE FROM reports",
        "SELECT 1) SELECT 1; DELETE FROM reports; --",
        "SELECT * INTO copied FROM reports",
        "SELECT * FROM reports FOR UPDATE",
        "COMMIT; DELETE FROM reports",
    ],
)
def test_postgresql_is_never_written(query: str, server: Server) -> None:
    with pytest.raises(IntakeError) as caught:
        read(server.address(query))
    assert caught.value.code == "no-table"
    assert "100000" in server.psql("SELECT count(*) FROM reports")


def test_postgresql_counts_and_reads_one_snapshot(server: Server) -> None:
    server.psql("CREATE TABLE growing AS SELECT 1 AS output")
    with PostgreSQL(parse_address(server.address("growing"))) as engine:
        assert engine.columns() == ["output"]
        assert engine.count([0], 1) == 1
        server.psql("INSERT INTO growing VALUES (2)")
        assert [array.to_pylist() for (array,) in engine.batches()] == [[1]]


def test_postgresql_ended_in_the_middle(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_batches, "BATCH_ROWS", 1000)
    query = "SELECT repeat('x', 1000) AS output, pg_backend_pid() AS process FROM generate_series(1, 200000)"
    rows = source_at(server.address(query)).rows(["output", "process"])
    process = next(rows).columns["process"][0].as_py()
    server.psql(f"SELECT pg_terminate_backend({process})")
    with pytest.raises(IntakeError) as caught:
        list(rows)
    assert caught.value.code == "no-connection", caught.value


def test_a_query_that_fails_in_the_middle(server: Server, folder: Path) -> None:
    ducks("a.duckdb", "CREATE TABLE reports AS SELECT range AS output FROM range(100000)")
    sqlite("a.db", "CREATE TABLE reports (output)")
    sqlite("a.db", ("INSERT INTO reports VALUES (?)", [(n,) for n in range(100_000)]))
    failing = [
        server.address("SELECT 1 / (output - 9) AS output FROM reports"),
        "duckdb:///a.duckdb#SELECT CASE WHEN output = 99999 THEN error('late') ELSE output END AS output FROM reports",
        "sqlite:///a.db#SELECT abs(output - 9223372036854775807 - 1) AS output FROM reports ORDER BY 1 DESC",
    ]
    for address in failing:
        with pytest.raises(IntakeError) as caught:
            read(address)
        assert caught.value.code == "no-table"


# All of them


@pytest.fixture(scope="module", params=["sqlite", "duckdb", "postgresql"])
def many(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a table `reports` of 100,000 rows, which no test changes; `{}` stands for a table or query."""
    if request.param == "postgresql":
        server: Server = request.getfixturevalue("server")
        return server.address("{}")
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "duckdb":
        ducks(
            f"{folder}/a.duckdb",
            "CREATE TABLE reports AS SELECT 'm' || n % 3 AS mechanism, (n % 10)::INTEGER AS output, n AS \"user\" "
            "FROM range(1, 100001) AS all_(n)",
            "CREATE TABLE vacant (output INTEGER)",
        )
        return f"duckdb:///{folder}/a.duckdb#{{}}"
    rows = [(f"m{n % 3}", n % 10, n) for n in range(1, 100_001)]
    created = "CREATE TABLE reports (mechanism TEXT, output INTEGER, user)", "CREATE TABLE vacant (output)"
    sqlite(f"{folder}/a.db", *created, ("INSERT INTO reports VALUES (?, ?, ?)", rows))
    return f"sqlite:///{folder}/a.db#{{}}"


def test_rows_come_in_batches(many: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_batches, "BATCH_ROWS", 10_000)
    monkeypatch.setattr("hubbub.intake.sources.engines.sqlite.BATCH_ROWS", "5000")
    monkeypatch.setattr("hubbub.intake.sources.engines.duckdb.BATCH_ROWS", 5000)
    monkeypatch.setattr("hubbub.intake.sources.engines.postgresql.BATCH_BYTES", "65536")
    source = source_at(many.format("reports"))
    assert source.header() == ["mechanism", "output", "user"]
    parts = list(source.rows(["user", "mechanism"]))
    assert sum(part.counted for part in parts) == 100_000
    assert len(parts) > 5
    together = pa.concat_tables([pa.table(dict(part.columns)) for part in parts])
    assert sorted(together.column("user").to_pylist()) == list(range(1, 100_001))
    for user, mechanism in zip(together["user"].to_pylist(), together["mechanism"].to_pylist(), strict=True):
        assert mechanism == f"m{user % 3}"


@pytest.mark.sampled(3)
def test_rows_can_be_dropped_half_way_and_read_again(many: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_batches, "BATCH_ROWS", 1000)
    monkeypatch.setattr("hubbub.intake.sources.engines.sqlite.BATCH_ROWS", "1000")
    monkeypatch.setattr("hubbub.intake.sources.engines.postgresql.BATCH_BYTES", "65536")
    source = source_at(many.format("reports"))
    for _ in range(3):
        rows = source.rows(["output"])
        assert next(rows).parsed >= 1000
        del rows
        gc.collect()
    assert sum(part.counted for part in source.rows(["output"])) == 100_000


def test_queries(many: str) -> None:
    assert (
        read(many.format("SELECT output AS o FROM reports WHERE output = 3 ;")).column("o").to_pylist() == [3] * 10_000
    )
    reports = read(many.format("with x as (select output from reports) select count(*) as n from x -- of all"))
    assert reports.to_pylist() == [{"n": 100_000}]
    assert read(many.format("SELECT 1 AS output UNION ALL SELECT NULL")).to_pylist() == [
        {"output": 1},
        {"output": None},
    ]


def test_empty_tables_have_no_rows(many: str) -> None:
    source = source_at(many.format("vacant"))
    assert source.header() == ["output"]
    assert list(source.rows(["output"])) == []


def test_a_stream_that_loses_rows_is_seen(many: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from hubbub.intake.sources.database import ENGINES

    source = source_at(many.format("reports"))
    engine = ENGINES[many.partition(":")[0]]
    whole: Callable[..., Iterator[list[pa.Array]]] = engine.batches

    def lossy(self: Any) -> Iterator[list[pa.Array]]:
        for number, arrays in enumerate(whole(self)):
            yield [array[:-1] for array in arrays] if number == 0 else arrays

    monkeypatch.setattr(engine, "batches", lossy)
    parts: list[Rows] = list(source.rows(["output"]))
    assert sum(part.counted for part in parts) == 100_000
    assert sum(part.parsed for part in parts) == 99_999


@pytest.mark.parametrize("scheme", ["sqlite", "duckdb", "postgresql"])
def test_a_missing_driver_is_told(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package = {"sqlite": "adbc_driver_sqlite", "duckdb": "duckdb", "postgresql": "adbc_driver_postgresql"}[scheme]
    for name in [name for name in sys.modules if name.partition(".")[0] == package] + [package]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(IntakeError, match=f"pip install {package.replace('_', '-')}") as caught:
        read(f"{scheme}:///a#t")
    assert caught.value.code == "no-driver"


def test_drivers_are_imported_when_used() -> None:
    script = (
        "import sys, hubbub.intake.sources.database, hubbub.intake.sources.frames; "
        "print([name for name in ('pyarrow', 'pandas', 'duckdb', 'adbc_driver_manager') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == "[]\n"


@pytest.fixture
def silent() -> Iterator[int]:
    """A port that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def test_a_host_that_does_not_answer(silent: int) -> None:
    with pytest.raises(IntakeError, match="timeout") as caught:
        source_at(f"postgresql://ann:s3cret@127.0.0.1:{silent}/d?connect_timeout=2#t").header()
    assert caught.value.code == "no-connection"
    assert "s3cret" not in str(caught.value)


BAD: list[tuple[str, str]] = [
    # addresses
    ("mysql://ann:s3cret@host/d#t", "bad-address"),
    ("https://example.org/reports.csv", "bad-address"),
    ("postgresql+psycopg2://ann:s3cret@host/d#t", "bad-address"),
    ("sqlite:a.db#t", "bad-address"),
    ("sqlite://a.db#t", "bad-address"),
    ("sqlite://#t", "bad-address"),
    ("sqlite:///#t", "bad-address"),
    ("sqlite:///:memory:#t", "bad-address"),
    ("sqlite:///a.db", "bad-address"),
    ("sqlite:///a.db#", "bad-address"),
    ("sqlite:///a.db#  ", "bad-address"),
    ('sqlite:///a.db#"', "bad-address"),
    ('sqlite:///a.db#""', "bad-address"),
    ('sqlite:///a.db#"open', "bad-address"),
    ('sqlite:///a.db#"a"b', "bad-address"),
    ("sqlite:///a.db#.t", "bad-address"),
    ("sqlite:///a.db#t.", "bad-address"),
    ("sqlite:///a.db#a..t", "bad-address"),
    ("sqlite:///a.db#a.b.c.t", "bad-address"),
    ("sqlite:///a.db#t\0", "bad-address"),
    ("sqlite:///a\0.db#t", "bad-address"),
    ("duckdb:///a.duckdb", "bad-address"),
    ("duckdb://a.duckdb#t", "bad-address"),
    ("postgresql://ann:s3cret@host/d", "bad-address"),
    ("postgresql://ann:s3/cret@host/d#t", "bad-address"),
    ("postgresql://ann:s3#cret@host/d#t", "bad-address"),
    ("postgresql://ann:1#s3cret@host/d#t", "bad-address"),
    ("postgresql://ann:1/s3cret@host/d#t", "bad-address"),
    ("postgresql://ann:s3?cret@host/d#t", "bad-address"),
    ("postgresql://ann:s3%cret@host/d#t", "bad-address"),
    ("postgresql://ann:s3cret%00@host/d#t", "bad-address"),
    ("postgresql://ann:s3cret@host:port/d#t", "bad-address"),
    ("postgresql://ann:s3cret@host/d?s3cret#t", "bad-address"),
    ("postgresql://ann:s3cret@[::1/d#t", "bad-address"),
    # files
    ("sqlite:///none.db#t", "no-such-file"),
    ("duckdb:///none.duckdb#t", "no-such-file"),
    ("sqlite:///good.db?mode=rw#t", "no-such-file"),
    ("sqlite:///.#t", "not-a-file"),
    ("duckdb:///.#t", "not-a-file"),
    ("sqlite:////dev/null#t", "not-a-file"),
    ("sqlite:///text.csv#t", "corrupt-file"),
    ("sqlite:///encrypted.db#t", "corrupt-file"),
    ("sqlite:///cut.db#t", "corrupt-file"),
    ("sqlite:///good.duckdb#t", "corrupt-file"),
    ("duckdb:///text.csv#t", "corrupt-file"),
    ("duckdb:///empty.db#t", "corrupt-file"),
    ("duckdb:///cut.duckdb#t", "corrupt-file"),
    ("duckdb:///encrypted.duckdb#t", "corrupt-file"),
    ("duckdb:///good.db#t", "corrupt-file"),
    # tables and queries
    ("sqlite:///empty.db#t", "no-table"),
    ("sqlite:///good.db#none", "no-table"),
    ("sqlite:///good.db#none.t", "no-table"),
    ("sqlite:///good.db#t; DROP TABLE t", "no-table"),
    ('sqlite:///good.db#t" UNION SELECT 1 --', "bad-address"),
    ("sqlite:///good.db#SELECT", "no-table"),
    ("sqlite:///good.db#SELECT * FORM t", "no-table"),
    ("sqlite:///good.db#SELECT none FROM t", "no-table"),
    ("sqlite:///good.db#SELECT 1; SELECT 2", "no-table"),
    ("sqlite:///good.db#SELECT 1); DROP TABLE t; --", "no-table"),
    ("sqlite:///good.db#WITH x AS (SELECT 1) DELETE FROM t", "no-table"),
    ("sqlite:///good.db#SELECT 1 /*", "no-table"),
    ("duckdb:///good.duckdb#none", "no-table"),
    ("duckdb:///good.duckdb#none.t", "no-table"),
    ("duckdb:///good.duckdb#SELECT * FORM t", "no-table"),
    ("duckdb:///good.duckdb#SELECT 1; SELECT 2", "no-table"),
    ("duckdb:///good.duckdb#SELECT 1); DROP TABLE t; --", "no-table"),
    ("duckdb:///good.duckdb#WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x", "no-table"),
    ("duckdb:///good.duckdb#SELECT", "no-table"),
    # servers
    ("postgresql://ann:s3cret@127.0.0.1:1/d#t", "no-connection"),
    ("postgresql://ann:s3cret@host.invalid/d#t", "no-connection"),
    ("postgresql://ann:s3cret@127.0.0.1:99999/d#t", "no-connection"),
    ("postgresql://ann:s3cret@127.0.0.1/d?none=s3cret#t", "no-connection"),
    ("postgresql://ann:s3cret@127.0.0.1:1/d?connect_timeout=s3cret#t", "no-connection"),
    ("postgresql:///d?host=/none&password=s3cret#t", "no-connection"),
    ("SERVER none", "no-table"),
    ("SERVER Reports", "no-table"),
    ("SERVER none.reports", "no-table"),
    ("SERVER reports; DROP TABLE reports", "no-table"),
    ("SERVER SELECT * FORM reports", "no-table"),
    ("SERVER SELECT 1; SELECT 2", "no-table"),
    ("SERVER SELECT 1) SELECT 1; DROP TABLE reports; --", "no-table"),
    ("SERVER WITH x AS (SELECT 1) INSERT INTO vacant SELECT * FROM x", "no-table"),
    ("SERVER SELECT 1/0 AS output", "no-table"),
    ("SERVER bare", "no-column"),
    ("STRANGER reports", "no-table"),
    ("NOBODY reports", "no-connection"),
    ("NOWHERE reports", "no-connection"),
]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Good files, and damaged ones; tests only read them."""
    folder = tmp_path_factory.mktemp("files")
    with contextlib.chdir(folder):
        _prepare(folder)
    return folder


@pytest.fixture
def files(prepared: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(prepared)
    return prepared


def _prepare(folder: Path) -> None:
    sqlite("good.db", "CREATE TABLE t (output)", ("INSERT INTO t VALUES (?)", [(f"entry {n}",) for n in range(5000)]))
    ducks("good.duckdb", "CREATE TABLE t AS SELECT range AS output FROM range(500000)")
    ducks(
        ":memory:",
        "SET force_mbedtls_unsafe = 'true'",  # encrypted enough for a test, without an extension
        "ATTACH 'encrypted.duckdb' AS e (ENCRYPTION_KEY 'key')",
        "CREATE TABLE e.t (output INTEGER)",
    )
    (folder / "text.csv").write_text("output\n1\n")
    (folder / "empty.db").touch()
    (folder / "encrypted.db").write_bytes(os.urandom(8192))
    (folder / "cut.db").write_bytes((folder / "good.db").read_bytes()[:12_000])
    (folder / "cut.duckdb").write_bytes((folder / "good.duckdb").read_bytes()[:14_000])


@pytest.mark.parametrize(("address", "code"), BAD, ids=[repr(address) for address, _ in BAD])
def test_bad_addresses_are_told_in_five_parts(
    address: str, code: str, files: Path, request: pytest.FixtureRequest
) -> None:
    who, _, table = address.partition(" ")
    if who in ("SERVER", "STRANGER", "NOBODY", "NOWHERE"):
        server: Server = request.getfixturevalue("server")
        logins = {"STRANGER": "stranger", "NOBODY": "nobody:s3cret"}
        database = "nowhere" if who == "NOWHERE" else "postgres"
        address = server.address(table, database, logins.get(who, "postgres"))
    before = sorted(files.iterdir())
    with pytest.raises(IntakeError) as caught:
        read(address)
    error = caught.value
    assert error.code == code
    assert all((error.what, error.where, error.got, error.expected, error.remedy))
    assert not any(hint in str(error) for hint in ("s3", "cret", PASSWORD, "hubbub_source", "Traceback"))
    assert sorted(files.iterdir()) == before


def test_there_are_many_bad_inputs() -> None:
    assert len(set(BAD)) == len(BAD) >= 45


def test_tables_that_are_there_are_listed(files: Path, server: Server) -> None:
    for address in ("sqlite:///good.db#none", "duckdb:///good.duckdb#none", server.address("none")):
        with pytest.raises(IntakeError, match=r"the database has '.*(t|reports)"):
            read(address)
    with pytest.raises(IntakeError, match="the database has none"):
        read("sqlite:///empty.db#none")


def test_a_column_that_is_gone(files: Path) -> None:
    for address in ("sqlite:///good.db#t", "duckdb:///good.duckdb#t"):
        with pytest.raises(IntakeError) as caught:
            list(source_at(address).rows(["none"]))
        assert caught.value.code == "no-column"
