"""Damaged study files and tables: only the library's and the client's own errors, in bounded memory and time.

The files are read in processes of their own, under a limit of memory (tests/fuzzing.py). The gate reads a few hundred
of them, `make slow` many thousands.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("resource", reason="memory cannot be limited here")
if not Path("/proc/self/statm").exists():
    pytest.skip("memory cannot be measured here", allow_module_level=True)

TARGETS = ["study_bytes", "study_entries", "table_bytes", "table_entries"]


def fuzz(count: int, timeout: int, *targets: str) -> dict[str, dict[str, int]]:
    """Return what came of so many damaged files; a process that hangs in compiled code is killed."""
    command = [sys.executable, str(Path(__file__).parent / "fuzzing.py"), str(count), *targets]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout)  # noqa: S603
    assert done.returncode == 0, done.stderr[-5000:]
    found: dict[str, dict[str, int]] = json.loads(done.stdout)
    return found


@pytest.mark.slow  # others of its kind are in test_agreement
def test_a_few_damaged_files() -> None:
    """Damage to bytes: damage to entries has its tests in test_agreement.py and test_client_tables.py."""
    found = fuzz(80, 600, "study_bytes", "table_bytes")
    assert min(seen["client refuses"] for seen in found.values()) > 40
    assert min(seen["client takes"] for seen in found.values()) > 1  # damage to blanks, or to a fingerprint
    assert min(found["study_bytes"][which] for which in ("library takes", "library refuses")) > 1


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_many_damaged_files(target: str) -> None:
    seen = fuzz(5_000, 3000, target)[target]
    assert seen["client refuses"] > 1000
    assert seen["client takes"] > 20  # damage does not always matter: comments, blanks, other numbers
    if target.startswith("study"):
        assert min(seen["library takes"], seen["library draws"]) > 50
