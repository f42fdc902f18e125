"""hubbub where Unix is not: no fcntl, no user ids, no folders that can be opened.

The tests run on Unix, in a process that has lost what only Unix has. The lock of the operating system is filelock's
business, and is left to it: it is loaded before the rest is taken away, as it comes with a lock of its own on Windows.
"""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import hubbub as hb
from hubbub.cli.app import main
from hubbub.core import files, locks
from hubbub.intake.counting.scratch_folder import ENDING, PREFIX, ScratchFolder, sweep

WITHOUT = """
import importlib.abc, os, signal, sys

import numpy, pandas, pyarrow.parquet, scipy.optimize, numba, duckdb, matplotlib.figure  # they bring their own Windows
import rich.console, typer, threadpoolctl, multiprocessing.pool, concurrent.futures, tempfile, subprocess, shutil
if {native}:
    import distributed, filelock, flint, ot

MODULES = ("fcntl", "resource", "termios", "pwd", "grp", "tty", "pty", "posix")
for name in MODULES[:-1]:
    sys.modules.pop(name, None)


class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
        return None


sys.meta_path.insert(0, Missing())
NAMES = '''getuid geteuid getgid getegid getppid fork forkpty register_at_fork wait WNOHANG fchmod fchown chown lchown
    pread pwrite preadv pwritev sched_getaffinity sched_setaffinity O_NOFOLLOW O_DIRECTORY O_CLOEXEC O_NONBLOCK O_SYNC
    O_DSYNC O_NOATIME uname getloadavg statvfs fstatvfs sysconf nice killpg setsid mkfifo mknod chroot lockf
    posix_fallocate posix_fadvise sendfile openpty ttyname getpgid umask'''.split()
for name in NAMES:
    if name != "umask" and hasattr(os, name):  # tempfile of Windows has umask, too
        delattr(os, name)
for name in [name for name in dir(signal) if name.startswith("SIG") and name[3:] not in
             ("INT", "TERM", "ABRT", "FPE", "ILL", "SEGV", "BREAK", "_DFL", "_IGN")]:
    if name.isupper() or name.startswith("SIG_"):
        delattr(signal, name)
"""

IMPORT_ALL = """
import importlib, json, pkgutil
import hubbub

names = [found.name for found in pkgutil.walk_packages(hubbub.__path__, "hubbub.")]
names.remove("hubbub.cli.__main__")
for name in names:
    importlib.import_module(name)
"""

RUN = """
import pathlib, sys
import hubbub as hb
from hubbub.cli.app import main

sys.argv = ["hubbub", "new", "integers", "-o", "new.toml"]
try:
    main()
except SystemExit as end:
    assert not end.code, end
study = hb.read_study("study.toml")
tally = hb.collect(study, ["a.csv"], "all.tally.parquet", users_key="key")
tally = hb.collect(study, ["b.csv"], "all.tally.parquet", users_key="key")
hb.merge(["all.tally.parquet"], "copy.tally.parquet")
est = hb.estimate(tally.reports, "mle")
hb.report(tally, "report.html", quick=True)
print(json.dumps({"modules": len(names), "users": tally.users, "shares": est.probabilities.sum(),
                  "left": sorted(path.name for path in pathlib.Path().iterdir())}))
"""

STUDY = """version = 1
[domain]
kind = "integers"
low = 0
high = 9
[mechanisms.noise]
kind = "truncated-geometric"
epsilon = 1.0
[mechanisms.bits]
kind = "rappor"
epsilon = 1.0
"""


def python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", "-c", code]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)  # noqa: S603


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "key").write_text("a key that nobody can guess\n")
    for name in "ab":
        rows = "".join(f"{name}{value},noise,{value}\n{name}{value},bits,{1 << value:010b}\n" for value in range(10))
        (tmp_path / f"{name}.csv").write_text("user,mechanism,output\n" + rows)
    return tmp_path


@pytest.mark.slow  # loads everything anew
def test_everything_imports_and_runs_without_what_only_unix_has(folder: Path) -> None:
    before = {path.name for path in folder.iterdir()}
    done = python(WITHOUT.format(native=True) + IMPORT_ALL + RUN, folder)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["modules"] > 250
    assert told["users"] == 20
    assert abs(told["shares"] - 1) < 1e-9
    new = {"new.toml", "all.tally.parquet", "copy.tally.parquet", "report.html"}
    assert set(told["left"]) == before | new  # no lock, no part


@pytest.mark.slow
def test_a_system_without_locks_is_told(folder: Path) -> None:
    """Where nothing keeps two runs apart, hubbub neither writes a tally nor puts rows aside."""
    code = """
import hubbub as hb
study = hb.read_study("study.toml")
for call in (lambda: hb.collect(study, "a.csv", "a.tally.parquet"), lambda: hb.read_reports("a.csv", study)):
    try:
        call()
    except hb.IntakeError as error:
        print(error.code, error.got)
"""
    done = python(WITHOUT.format(native=False) + code, folder)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("not-written") and "fcntl is unavailable" in line for line in lines)
    assert not (folder / "a.tally.parquet").exists()


def _refusing_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no file be removed that this process has open, as on Windows."""
    plain = Path.unlink

    def unlink(self: Path, missing_ok: bool = False) -> None:
        is_open = False
        for handle in Path("/proc/self/fd").iterdir():
            with suppress(OSError):
                is_open = is_open or handle.readlink() == self
        if is_open:
            raise PermissionError(errno.EACCES, "The process cannot access the file")
        plain(self, missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink)


@pytest.mark.parametrize("windows", [True, False])
def test_locks_are_removed_where_open_files_cannot_be(
    windows: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _refusing_open_files(monkeypatch)
    monkeypatch.setattr(locks, "REMOVES_OPEN_FILES", not windows)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ScratchFolder().remove()
    (tmp_path / f"{PREFIX}dead{ENDING}").touch()
    sweep()
    with locks.exclusive_lock(tmp_path / "file"):
        pass
    assert [path.name for path in tmp_path.iterdir() if windows] == []
    assert windows or len(list(tmp_path.iterdir())) == 3  # what is left behind if it is done in the other order


def test_the_process_that_holds_a_lock_is_told_without_the_byte_that_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows refuses to read a locked byte to everybody else, and to read beyond it from there."""

    class Windows:
        def __getattr__(self, name: str) -> Any:
            return getattr(os, name)

        def read(self, handle: int, size: int) -> bytes:
            if os.lseek(handle, 0, os.SEEK_CUR) == 0:
                raise PermissionError(errno.EACCES, "Permission denied")
            return os.read(handle, size)

    monkeypatch.setattr(locks, "os", Windows())
    target = tmp_path / "file"
    with locks.exclusive_lock(target), pytest.raises(hb.IntakeError) as caught, locks.exclusive_lock(target):
        pass
    assert caught.value.code == "locked"
    assert caught.value.got == f"process {os.getpid()}"


def test_a_new_file_is_moved_where_a_move_never_replaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Windows:
        name = "nt"

        def __getattr__(self, name: str) -> Any:
            if name in ("link", "O_DIRECTORY", "fchmod"):
                raise AttributeError(name)
            return getattr(os, name)

    monkeypatch.setattr(files, "os", Windows())
    files.write_file(tmp_path / "new", b"content", replace=False)
    files.write_file(tmp_path / "old", b"content")
    files.write_file(tmp_path / "old", b"replaced")
    with pytest.raises(files.NameTakenError):
        files.write_file(tmp_path / "new", b"other", replace=False)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"new": b"content", "old": b"replaced"}


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-16"])
def test_output_to_files_is_utf_8_whatever_the_system_writes(
    encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "study.toml").write_text(
        'version = 1\n[domain]\nkind = "categories"\nlabels = ["東京", "Zürich"]\n'
        '[mechanisms.m]\nkind = "randomized-response"\nepsilon = 1.0\n',
        encoding="utf-8",
    )
    (tmp_path / "r.csv").write_text("output\n東京\nZürich\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for more in ([], ["--json"]):
        content = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(content, encoding=encoding))
        monkeypatch.setattr(sys, "argv", ["hubbub", "estimate", "study.toml", "r.csv", "--quick", *more])
        with pytest.raises(SystemExit) as end:
            main()
        sys.stdout.flush()
        assert not end.value.code
        assert "東京" in content.getvalue().decode("utf-8")
