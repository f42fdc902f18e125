"""A real PostgreSQL server for tests, on a local socket."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

PASSWORD = "s3cret/p@ss:wörd"  # noqa: S105  # with all that must be encoded
SQL = """
CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE DOMAIN small AS integer CHECK (value >= 0);
CREATE DOMAIN smaller AS small;
CREATE DOMAIN amount AS numeric(10, 2);
CREATE TABLE types (
  a_numeric numeric, a_price numeric(10, 2), a_char char(5), a_varchar varchar(5), a_text text, a_bytea bytea,
  a_bit bit(4), a_varbit bit varying(10), a_uuid uuid, a_mood mood, a_bigint bigint, a_small smaller, an_amount amount,
  a_smallint smallint, a_real real, a_double double precision, a_boolean boolean, a_date date, a_list integer[],
  a_json jsonb, an_address inet, a_money money, an_oid oid, a_name name);
INSERT INTO types VALUES (
  7, 7, 'ab', 'ab ', 'é', '\\xff00', B'0101', B'01', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'happy',
  9007199254740993, 3, 7.50, 1, 7.5, 7.25, true, '2020-01-01', '{1,2}', '{"a": 1}', '1.2.3.4', 7.5, 4000000000, 'n');
INSERT INTO types (a_numeric) VALUES (NULL), (1e30), (-0.50), ('NaN'), (100);
CREATE TABLE reports (mechanism text, output integer, "user" bigint);
INSERT INTO reports SELECT 'm' || n % 3, n % 10, n FROM generate_series(1, 100000) AS n;
CREATE TABLE vacant (output integer);
CREATE TABLE bare ();
CREATE SCHEMA "odd.Schema";
CREATE TABLE "odd.Schema"."tä""ble; DROP TABLE reports" ("out put" text, "ou""t" text, "A" integer, a integer);
INSERT INTO "odd.Schema"."tä""ble; DROP TABLE reports" VALUES ('x', 'y', 1, 2);
CREATE SEQUENCE numbers;
CREATE ROLE keeper LOGIN PASSWORD '{password}';
CREATE ROLE stranger LOGIN;
GRANT SELECT ON reports TO keeper;
"""


class Server:
    """Addresses of one server, and a way to speak to it past hubbub."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the folder for its locks
            from pgserver.postgres_server import get_server

            self._server = get_server(folder)
        self._folder = folder
        self._server.psql(SQL.replace("{password}", PASSWORD))
        self._server.psql("CREATE DATABASE western ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
        rules = folder / "pg_hba.conf"
        rules.write_text("local all keeper scram-sha-256\n" + rules.read_text())
        self.psql("SELECT pg_reload_conf()")

    def psql(self, statement: str) -> str:
        return str(self._server.psql(statement))

    def address(self, table: str, database: str = "postgres", login: str = "postgres") -> str:
        base = self._server.get_uri(database).replace("postgres:@", f"{login}@", 1)
        return f"{base}#{table}"

    def keeper(self, table: str, password: str = PASSWORD) -> str:
        return self.address(table, login=f"keeper:{quote(password, safe='')}")

    def stop(self) -> None:
        self._server.cleanup()


def start(folder: Path) -> Iterator[Server]:
    """Yield a server; where it cannot run, tests are skipped, but never where all are meant to run."""
    try:
        server = Server(folder)
    except Exception as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no PostgreSQL server could be started: {error}")
    yield server
    server.stop()
