"""Collectors and databases killed under load: every acknowledged report is there once, and nothing that was not sent.

A collector is killed at some moment under load, inside a commit, or after a commit and before its answers. The database
of SQLite is the collector; of PostgreSQL, all processes of the server are killed. What has no answer is sent again. Two
faults that are planted in the collector must be found by the same means.

Run: python benchmarks/serve_kills.py [--kills 200] [--database-kills 50]
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from measure import row, save_merged

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from collectors import FAULTS, STUDY, KilledCollector, RunningCollector  # type: ignore[import-not-found]
from servers import Installed, packaged_programs  # type: ignore[import-not-found]

PLANTED_KILLS = 5
SECONDS = 0.6  # of load before a kill, at most


def kill_often(
    name: str,
    what: str,
    killed: KilledCollector,
    times: int,
    kill: Callable[[], object],
    stored: Callable[[], list[tuple[str, str]]],
    *,
    planted: bool = False,
) -> dict[str, Any]:
    """Kill something so many times, send what has no answer once more, and return the row of what is wrong then."""
    told = 0
    for place in range(times):
        told += bool(kill())
        if place % 10 == 9:
            print(f"  {place + 1} kills, {len(killed.acknowledged):,} acknowledged", flush=True)
    wrong = killed.finish(stored)
    for line in () if planted else wrong[:20]:
        print(line)
    again = f"{killed.resent:,} requests without an answer sent again"
    reached = f"{len(wrong):,} wrong of {len(killed.acknowledged):,} acknowledged; {again}"
    what = what.format(times=times, told=told)
    return row(name, what, reached, "found" if planted else "0 wrong", holds=bool(wrong) == planted)


def rows_of(path: Path) -> list[tuple[str, str]]:
    """Return all keys and outputs in a file of SQLite."""
    with sqlite3.connect(path) as database:
        return database.execute("SELECT key, output FROM reports").fetchall()


def sqlite_kills(folder: Path, study: Path, kills: int) -> dict[str, Any]:
    """Kill collectors that write to SQLite."""
    path = folder / "reports.db"
    killed = KilledCollector(study, f"sqlite:///{path}", seed=kills)
    what = "{times} kills of the collector"
    return kill_often("SQLite", what, killed, kills, lambda: killed.run(SECONDS), partial(rows_of, path))


def sqlite_commits(folder: Path, study: Path, kills: int) -> list[dict[str, Any]]:
    """Kill collectors inside a commit to SQLite, and right after one."""
    rows = []
    for inside in (True, False):
        path = folder / f"commits-{inside}.db"
        killed = KilledCollector(study, f"sqlite:///{path}", seed=kills)
        kill = partial(killed.run_to_commit, folder, inside=inside)
        where = "inside a commit, of which {told} had not returned" if inside else "between a commit and its answers"
        rows.append(kill_often("SQLite", f"{{times}} kills {where}", killed, kills, kill, partial(rows_of, path)))
    return rows


def planted_faults(folder: Path, study: Path) -> list[dict[str, Any]]:
    """Kill collectors with a planted fault."""
    rows = []
    for fault in FAULTS:
        path = folder / f"{fault}.db"
        killed = KilledCollector(study, f"sqlite:///{path}", seed=1)
        kill = partial(killed.run_to_commit, folder, inside=False, fault=fault)
        what, stored = f"{fault}, {{times}} kills", partial(rows_of, path)
        rows.append(kill_often("planted faults", what, killed, PLANTED_KILLS, kill, stored, planted=True))
    return rows


def postgresql_kills(study: Path, kills: int, *, of_server: bool) -> dict[str, Any]:
    """Kill collectors that write to PostgreSQL, or the server while they do."""
    server = Installed(packaged_programs())
    try:
        killed = KilledCollector(study, f"{server.get_uri('postgres')}#reports", seed=kills)

        def kill_server(collector: RunningCollector) -> None:
            server.kill()
            server.start()
            time.sleep(SECONDS)  # in which the collector finds it again
            collector.kill()

        def stored() -> list[tuple[str, str]]:
            lines = server.psql("COPY (SELECT key, output FROM reports) TO STDOUT").splitlines()
            return [(key, output) for key, output in (line.split("\t") for line in lines if line)]

        kill: Callable[[RunningCollector], None] = kill_server if of_server else RunningCollector.kill
        what = f"{{times}} kills of {'all processes of the database' if of_server else 'the collector'}"
        return kill_often("PostgreSQL", what, killed, kills, lambda: killed.run(SECONDS, kill=kill), stored)
    finally:
        server.cleanup()


def main() -> None:
    """Print and keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="of the collector, on each database")
    parser.add_argument("--database-kills", type=int, default=50)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        study = Path(folder) / "study.toml"
        study.write_text(STUDY)
        if options.kills:
            rows += planted_faults(Path(folder), study)
            rows.append(sqlite_kills(Path(folder), study, options.kills))
            rows.append(postgresql_kills(study, options.kills, of_server=False))
        if options.database_kills:
            rows += sqlite_commits(Path(folder), study, options.database_kills)
            rows.append(postgresql_kills(study, options.database_kills, of_server=True))
    save_merged("serve_kills", rows)


if __name__ == "__main__":
    main()
