"""The demo in a browser: it prints its addresses, simulated people answer, and Ctrl+C ends all of it."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

import hubbub as hb
from hubbub.serve.web_demo import DATABASE_NAME, SHARES, STUDY_NAME, TOKEN_NAME, prepare_web_demo
from node import MISSING

PATIENCE = 120.0  # seconds, then it is taken for dead: never a measure of the demo


@contextmanager
def demo(folder: Path, *words: str, path: str | None = None) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "hubbub.cli", "demo", "--web", "-o", str(folder), *words]
    environment = {**os.environ, **({} if path is None else {"PATH": path})}
    running = subprocess.Popen(  # noqa: S603
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        yield running
    finally:
        running.kill()
        running.communicate()


def counted(folder: Path) -> int:
    with sqlite3.connect(folder / DATABASE_NAME) as database:
        (count,) = database.execute("SELECT count(*) FROM reports").fetchone()
        return int(count)


@pytest.mark.slow
@pytest.mark.parametrize("client", ["Node", "Python"])
def test_people_answer_and_ctrl_c_ends_it(tmp_path: Path, client: str) -> None:
    if client == "Node" and shutil.which("node") is None:
        pytest.skip(MISSING)
    with demo(tmp_path, "--people", "20", "--seconds", "0", path=None if client == "Node" else "/nowhere") as running:
        assert running.stdout is not None
        lines = [running.stdout.readline() for _ in range(4)]
        question, results, token = (line.split()[-1] for line in lines[:3])
        assert f"with the {client} client" in lines[3]
        assert b"How do you get to work" in urlopen(question).read()  # noqa: S310
        status = Request(f"{results}/status", headers={"Authorization": f"Bearer {token}"})  # noqa: S310
        assert urlopen(status).status == 200  # noqa: S310
        done = running.stdout.readline()
        assert done.startswith("20 simulated ")
        assert f"({client}" in done
        assert "bicycle 21%" in done
        assert counted(tmp_path) == 20
        running.send_signal(signal.SIGINT)
        told, errors = running.communicate(timeout=PATIENCE)
        assert (told, errors) == ("", "")
    assert (
        hb.read_reports(f"sqlite:///{tmp_path / DATABASE_NAME}#reports", hb.read_study(tmp_path / STUDY_NAME)).users
        == 20
    )


@pytest.mark.slow
def test_it_can_be_stopped_while_people_answer(tmp_path: Path) -> None:
    with demo(tmp_path, "--people", "1000", "--seconds", "600") as running:
        assert running.stdout is not None
        for _ in range(4):
            running.stdout.readline()
        time.sleep(1)
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=PATIENCE)
        assert errors == ""


def test_its_folder_is_its_own(tmp_path: Path) -> None:
    assert abs(sum(SHARES.values()) - 1) < 1e-12
    token = prepare_web_demo(tmp_path)
    assert prepare_web_demo(tmp_path) == token
    assert (tmp_path / TOKEN_NAME).stat().st_mode & 0o077 == 0
    with pytest.raises(hb.IntakeError, match="cannot use this folder"):
        prepare_web_demo(tmp_path / STUDY_NAME)  # a file
    (tmp_path / STUDY_NAME).write_text("mine")
    with pytest.raises(hb.IntakeError, match="not its own"):
        prepare_web_demo(tmp_path)
    assert (tmp_path / STUDY_NAME).read_text() == "mine"
