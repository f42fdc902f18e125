"""Full disks, killed collectors and killed databases: what was acknowledged is there once, and nothing else."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import hubbub as hb
from collectors import FAULTS, STUDY, KilledCollector, RunningCollector, report
from servers import Server


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return path


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of its own that is soon full, in a folder that the user of a database can reach."""
    folder = Path(tempfile.mkdtemp(prefix="hubbub-disk-"))
    folder.chmod(0o755)
    mount = shutil.which("mount")
    command = [str(mount), "-t", "tmpfs", "-o", "size=1m,mode=777", "tmpfs", str(folder)]
    if mount is None or subprocess.run(command, capture_output=True, check=False).returncode != 0:  # noqa: S603
        folder.rmdir()
        pytest.skip("file systems cannot be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)  # noqa: S603, S607
    folder.rmdir()


def enlarge(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)  # noqa: S603, S607


def fill(running: RunningCollector, grow: Callable[[], object]) -> list[str]:
    """Send until there is no room, make room, and send the rest; return the keys that were acknowledged."""
    stored: list[dict[str, Any]] = []
    while (answer := running.send(batch := [report() for _ in range(200)]))[0] == 200:
        stored += batch
        assert len(stored) < 100_000
    assert (answer[0], answer[1]["errors"][0]["code"], answer[1]["accepted"]) == (503, "storage", 0)
    status, headers, _ = running.ask("GET", "/health")
    assert (status, headers["retry-after"]) == (503, "2")
    assert running.send(batch)[0] == 503
    grow()
    recover(running)
    assert running.send(batch) == (200, {"accepted": 200, "repeated": 0})  # nothing of it had been stored
    assert running.send(stored[-200:]) == (200, {"accepted": 0, "repeated": 200})
    return [each["key"] for each in [*stored, *batch]]


def recover(running: RunningCollector) -> None:
    """Wait until reports are taken again, without any report that tries."""
    deadline = time.monotonic() + 20
    while running.ask("GET", "/health")[0] != 200:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def stored_reports(path: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT key, output FROM reports").fetchall()


def stored_keys(path: Path) -> list[str]:
    return [key for key, _ in stored_reports(path)]


def test_a_full_disk_refuses_and_recovers_by_itself(study: Path, small_disk: Path) -> None:
    running = RunningCollector(study, f"sqlite:///{small_disk}/reports.db")
    acknowledged = fill(running, lambda: enlarge(small_disk))
    assert running.logged()[-1] == "the database takes reports again"
    assert running.stop() == 0
    assert sorted(stored_keys(small_disk / "reports.db")) == sorted(acknowledged)


def test_a_database_without_room_refuses_and_recovers_by_itself(study: Path, tmp_path: Path) -> None:
    """Pages beyond a limit are refused as on a full disk (SQLITE_FULL), and then there is room again."""
    running = RunningCollector(study, f"sqlite:///{tmp_path}/reports.db", max_pages=60)
    acknowledged = fill(running, running.let_grow)
    assert running.logged() == [
        "the database does not take reports: database or disk is full",
        "the database takes reports again",
    ]
    assert running.stop() == 0
    assert sorted(stored_keys(tmp_path / "reports.db")) == sorted(acknowledged)


@pytest.mark.slow
def test_a_full_disk_of_postgresql(study: Path, small_disk: Path, server: Server) -> None:
    """The table is in a tablespace of its own, on a disk that is full while those of the server are not."""
    place = small_disk / "tables"
    place.mkdir()
    shutil.chown(place, server.folder.owner())
    server.psql(f"CREATE TABLESPACE small LOCATION '{place}'")
    address = server.address("room.reports")
    server.psql("CREATE SCHEMA room; ALTER ROLE postgres SET default_tablespace = small")
    running = RunningCollector(study, address)
    acknowledged = fill(running, lambda: enlarge(small_disk))
    assert running.stop() == 0
    stored = server.psql("COPY (SELECT key FROM room.reports) TO STDOUT").split()
    server.psql("DROP TABLE room.reports, room.hubbub_collector; ALTER ROLE postgres RESET default_tablespace")
    server.psql("DROP TABLESPACE small")
    assert sorted(stored) == sorted(acknowledged)


def test_what_was_acknowledged_survives_kills(study: Path, tmp_path: Path) -> None:
    killed = KilledCollector(study, f"sqlite:///{tmp_path}/reports.db", seed=1)
    for inside in (True, True, False):
        killed.run(seconds=0.3)
        killed.run_to_commit(tmp_path, inside=inside)
    assert killed.finish(partial(stored_reports, tmp_path / "reports.db")) == []
    assert len(killed.acknowledged) > 50
    assert killed.resent  # or nothing was cut off


@pytest.mark.parametrize("fault", FAULTS)
def test_kills_find_a_fault(study: Path, tmp_path: Path, fault: str) -> None:
    """Acknowledged before its commit, a report is lost; without a unique key, one that is sent again is there twice."""
    killed = KilledCollector(study, f"sqlite:///{tmp_path}/reports.db", seed=1)
    killed.run_to_commit(tmp_path, inside=False, fault=fault)
    wrong = killed.finish(partial(stored_reports, tmp_path / "reports.db"))
    sort = "acknowledged and not there" if fault == "early answers" else "stored 2 times"
    assert any(sort in line for line in wrong)


def delete(path: Path) -> None:
    for each in path.parent.glob(f"{path.name}*"):
        each.unlink()


def replace_by_copy(path: Path) -> None:
    """Put a restored copy in its place, as someone who does not know that a collector runs."""
    copy = path.with_name("copy")
    with closing(sqlite3.connect(path)) as database, closing(sqlite3.connect(copy)) as target:
        database.backup(target)
    copy.replace(path)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("lose", [delete, replace_by_copy])
def test_nothing_is_acknowledged_in_a_file_that_is_gone(
    study: Path, tmp_path: Path, lose: Callable[[Path], object]
) -> None:
    """The operating system lets a program write to a file that nobody can open any more."""
    path = tmp_path / "data" / "reports.db"
    path.parent.mkdir()
    running = RunningCollector(study, f"sqlite:///{path}")
    first, second = ([report() for _ in range(10)] for _ in range(2))
    assert running.send(first)[0] == 200
    lose(path)
    kept = len(stored_keys(path)) if path.exists() else 0
    status, answer = running.send(second)
    assert (status, answer["errors"][0]["code"], answer["accepted"]) == (503, "storage", 0)
    recover(running)
    assert running.send(second) == (200, {"accepted": 10, "repeated": 0})
    assert len(stored_keys(path)) == kept + 10
    assert running.stop() == 0


def test_commits_wait_for_the_disk(study: Path, tmp_path: Path) -> None:
    """No kill of a process shows this: the system still has what it wrote. PostgreSQL is refused with fsync off."""
    from hubbub.intake.collected_table import collected_table
    from hubbub.serve.api import store_address
    from hubbub.serve.sqlite_store import SQLiteStore

    read = hb.read_study(study)
    store = SQLiteStore(store_address(f"sqlite:///{tmp_path}/a.db"), collected_table(read), read.fingerprint)
    store.open()
    settings = {name: store._ask(f"PRAGMA {name}")[0][0] for name in ("journal_mode", "synchronous")}
    store.close()
    assert settings == {"journal_mode": "wal", "synchronous": 2}  # 2: FULL


def test_rows_of_two_collectors_appear_in_the_order_of_their_numbers(
    tmp_path: Path, study: Path, server: Server
) -> None:
    """One calls the table by its name, the other by its schema, too, and has few rights: both wait for each other."""
    from hubbub.intake.collected_table import collected_table
    from hubbub.serve.api import store_address
    from hubbub.serve.base import StoreUnavailableError
    from hubbub.serve.postgresql_store import PostgreSQLStore

    read = hb.read_study(study)
    table = collected_table(read)
    addresses = (server.address("ordered"), server.address("public.ordered", login="sender"))
    first, second = stores = [PostgreSQLStore(store_address(each), table, read.fingerprint) for each in addresses]
    first.open()
    server.psql("CREATE ROLE sender LOGIN; GRANT SELECT, INSERT ON ordered TO sender")
    server.psql("GRANT SELECT, UPDATE ON hubbub_collector TO sender")
    second.open()
    second.probe()
    second._ask("SET lock_timeout TO '100ms'")
    second._commit()

    def rows(*keys: str) -> Any:
        return first.rows([list(keys), *([text] * len(keys) for text in ("mechanism", "3", "2026-01-01"))])

    with first.transaction():
        assert first.insert_new(rows("a" * 8))
        with pytest.raises(StoreUnavailableError, match="lock timeout"), second.transaction():
            second.insert(rows("b" * 8))
    with second.transaction():
        assert not second.insert_new(rows("c" * 8, "a" * 8))  # it is stored, and the transaction goes on
        assert second.existing(["a" * 8, "d" * 8]) == {"a" * 8: ("mechanism", "3")}
        second.insert(rows("d" * 8, "c" * 8))
    for store in stores:
        store.close()
    found = server.psql("COPY (SELECT key FROM ordered ORDER BY number) TO STDOUT; DROP TABLE ordered").split()
    server.psql("DROP OWNED BY sender; DROP ROLE sender")
    assert [key for key in found if key.isalpha() and len(key) == 8] == ["a" * 8, "c" * 8, "d" * 8]
