"""Node, for tests of the JavaScript client."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import playwright
import pytest

CLIENTS = Path(__file__).parent.parent / "clients"
SCRIPT = CLIENTS / "javascript"
MISSING = "no node on this machine"  # what these tests say when they skip: conftest.py counts them
BUNDLED = str(Path(playwright.__file__).parent / "driver" / "node")  # comes with the browser's driver
PATIENCE = 300  # seconds, then it is taken for dead: never a measure of the client


def run_node(*arguments: str | Path, **environment: str) -> str:
    """Run Node, or skip; return what it prints. A failure shows all of that."""
    program = shutil.which(os.environ.get("HUBBUB_NODE") or "node") or shutil.which(BUNDLED)
    if program is None:
        pytest.skip(MISSING)
    command = [program, *map(str, arguments)]
    told = subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, timeout=PATIENCE, check=False, env={**os.environ, **environment}
    )
    assert told.returncode == 0, f"{told.stdout[-4000:]}\n{told.stderr[-4000:]}"
    return told.stdout
