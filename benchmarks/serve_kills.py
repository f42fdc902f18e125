"""Collectors and databases killed under load: every acknowledged report is there once, and nothing that was not sent.

Run: python benchmarks/serve_kills.py [--kills 200] [--database-kills 50]
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measure import row, save_merged

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from collectors import STUDY, KilledCollector, RunningCollector  # type: ignore[import-not-found]
from servers import Installed, packaged_programs  # type: ignore[import-not-found]

SECONDS = 0.6  # of load before a kill, at most


def outcome(name: str, what: str, killed: KilledCollector, stored: list[str]) -> dict[str, Any]:
    """Return the row of one series of kills."""
    wrong = killed.faults(stored)
    for line in wrong[:20]:
        print(line)
    reached = (
        f"{len(wrong)} wrong; {len(killed.acknowledged):,} acknowledged, {killed.resent} requests sent again at the end"
    )
    return row(name, what, reached, "0 wrong", holds=not wrong)


def kill_often(killed: KilledCollector, times: int, **keywords: Any) -> None:
    """Kill something so many times, and send what has no answer once more."""
    for place in range(times):
        killed.run(SECONDS, **keywords)
        if place % 10 == 9:
            print(f"  {place + 1} kills, {len(killed.acknowledged):,} acknowledged", flush=True)
    killed.finish()


def sqlite_kills(folder: Path, study: Path, kills: int) -> dict[str, Any]:
    """Kill collectors that write to SQLite."""
    killed = KilledCollector(study, f"sqlite:///{folder}/reports.db", seed=kills)
    kill_often(killed, kills)
    with sqlite3.connect(folder / "reports.db") as database:
        stored = [key for (key,) in database.execute("SELECT key FROM reports")]
    return outcome("SQLite", f"{kills} kills of the collector", killed, stored)


def keys_of(server: Installed) -> list[str]:
    """Return all keys that a server has stored."""
    return [line.strip() for line in server.psql("COPY (SELECT key FROM reports) TO STDOUT").splitlines() if line]


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

        kill: Callable[[RunningCollector], None] = kill_server if of_server else RunningCollector.kill
        kill_often(killed, kills, kill=kill)
        what = f"{kills} kills of the {'database' if of_server else 'collector'}"
        return outcome("PostgreSQL", what, killed, keys_of(server))
    finally:
        server.cleanup()


def main() -> None:
    """Print and keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="of the collector, on each database")
    parser.add_argument("--database-kills", type=int, default=50)
    parser.add_argument("--keep", action="store_true", help="keep the rows for the page of benchmarks")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        study = Path(folder) / "study.toml"
        study.write_text(STUDY)
        if options.kills:
            rows.append(sqlite_kills(Path(folder), study, options.kills))
            rows.append(postgresql_kills(study, options.kills, of_server=False))
        if options.database_kills:
            rows.append(postgresql_kills(study, options.database_kills, of_server=True))
    if options.keep:
        save_merged("serve_kills", rows)


if __name__ == "__main__":
    main()
