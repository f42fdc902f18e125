"""Full disks, killed collectors and killed databases: what was acknowledged is there once, and nothing else."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import pytest

from collectors import STUDY, KilledCollector, RunningCollector, report


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return path


def test_a_full_disk_refuses_and_recovers_by_itself(study: Path, tmp_path: Path) -> None:
    """Pages beyond a limit are refused as on a full disk (SQLITE_FULL), and then there is room again."""
    running = RunningCollector(study, f"sqlite:///{tmp_path}/reports.db", max_pages=60)
    stored, refused = [], None
    while refused is None:
        batch = [report() for _ in range(200)]
        status, answer = running.send(batch)
        if status == 200:
            stored += batch
        else:
            refused = batch
            assert (status, answer["errors"][0]["code"]) == (503, "storage")
        assert len(stored) < 100_000
    status, headers, _ = running.ask("GET", "/health")
    assert (status, headers["retry-after"]) == (503, "2")
    assert running.send([report()])[0] == 503
    running.let_grow()
    deadline = time.monotonic() + 20
    while running.ask("GET", "/health")[0] != 200:  # without any report that tries
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert running.send(refused) == (200, {"accepted": 200, "repeated": 0})
    assert running.logged() == [
        "the database does not take reports: database or disk is full",
        "the database takes reports again",
    ]
    assert running.stop() == 0
    with sqlite3.connect(tmp_path / "reports.db") as database:
        keys = [key for (key,) in database.execute("SELECT key FROM reports")]
    assert sorted(keys) == sorted(each["key"] for each in [*stored, *refused])


def test_what_was_acknowledged_survives_kills(study: Path, tmp_path: Path) -> None:
    killed = KilledCollector(study, f"sqlite:///{tmp_path}/reports.db", seed=1)
    for _ in range(4):
        killed.run(seconds=0.4)
    killed.finish()
    with sqlite3.connect(tmp_path / "reports.db") as database:
        stored = [key for (key,) in database.execute("SELECT key FROM reports")]
    assert killed.faults(stored) == []
    assert len(killed.acknowledged) > 50
    assert killed.unsure  # or nothing was cut off
