"""Runs of collect and merge that are cut short, at any step they take on the disk or at any moment.

`Disk` stands between `hubbub.core` and the operating system: it counts the steps (open, lock, write,
fsync, rename, unlink, ...) and may fail one of them, or kill the process before, in the middle of, or after it. Killed
runs are children of a server that has imported everything and started no thread.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import io
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path, PosixPath
from types import FrameType
from typing import IO, Any, ClassVar, TypeVar

from filelock import lock_descriptor

import hubbub as hb
from hubbub.core import files, locks, paths
from hubbub.intake.counting import scratch_folder as folder
from hubbub.intake.counting.scratch_folder import PREFIX

T = TypeVar("T")
SERVER = multiprocessing.get_context("forkserver")
IMPORTED = [
    "hubbub.intake.api",
    "pyarrow.parquet",
    "pyarrow.compute",
    "pyarrow.csv",
    "duckdb",
    "pandas",
    "scipy.sparse",
]
BUFFER = 2048  # bytes: small, so that a small tally takes several writes


class Disk:
    """The steps that are taken on the disk; `act` is asked before ("half" of a write as well) and after each."""

    def __init__(self, act: Callable[[int, str, str], bool] = lambda number, step, when: False) -> None:
        self.steps: list[str] = []
        self._act = act
        self.names: dict[int, str] = {}

    def step(self, what: str, name: object, do: Callable[[], T], half: Callable[[], object] = lambda: None) -> T:
        """Take a step: `act` may kill or raise, and says whether only half of it is to be done before it is asked."""
        step = f"{what} {_kind(str(name))}"
        self.steps.append(step)
        number = len(self.steps)
        self._act(number, step, "before")
        if self._act(number, step, "half"):
            half()
            self._act(number, step, "middle")
        done = do()
        self._act(number, step, "after")
        return done

    @contextmanager
    def between(self) -> Iterator[Disk]:
        """Stand between hubbub.core and the operating system."""
        self.install()
        try:
            yield self
        finally:
            _put_between(Path, os, lock_descriptor)

    def install(self) -> None:
        """Stay between them for good: in a child."""
        Watched.disk = self
        _put_between(Watched, System(self), self._lock)

    def _lock(self, handle: int, *, blocking: bool) -> bool:
        if handle not in self.names:  # of a temporary folder
            return lock_descriptor(handle, blocking=blocking)
        return self.step("flock", self.names[handle], lambda: lock_descriptor(handle, blocking=blocking))


def _put_between(path: object, system: object, lock: object) -> None:
    """Let hubbub.core use these instead of pathlib.Path, the module os and the lock of the operating system."""
    for module, name, value in (
        (paths, "Path", path),
        *((module, "os", system) for module in (files, locks, paths)),
        (locks, "lock_descriptor", lock),
    ):
        assert hasattr(module, name)
        setattr(module, name, value)


def _kind(name: str) -> str:
    """Return which file is meant."""
    base = Path(name).name
    if base.endswith(".lock"):
        return "rejects lock" if ".rejects." in base else "lock"
    if base.endswith(".part"):
        return "rejects" if ".rejects." in base else "tally"
    return "folder"


class Watched(PosixPath):
    """A path whose steps are watched."""

    disk: ClassVar[Disk]

    def open(self, *arguments: Any, **options: Any) -> IO[bytes]:  # type: ignore[override]
        raw = self.disk.step("open", self, lambda: Raw(str(self), *arguments))
        raw.disk = self.disk
        return io.BufferedWriter(raw, BUFFER)

    def replace(self, target: Any) -> Any:
        return self.disk.step("rename", self, lambda: PosixPath(self).replace(target))

    def unlink(self, missing_ok: bool = False) -> None:
        return self.disk.step("unlink", self, lambda: PosixPath(self).unlink(missing_ok))


class Raw(io.FileIO):
    """A file whose writes are watched."""

    disk: Disk

    def write(self, data: Any) -> int:
        whole = bytes(data)
        return self.disk.step(
            "write", self.name, lambda: super(Raw, self).write(whole), lambda: super(Raw, self).write(whole[::2])
        )

    def close(self) -> None:
        if not self.closed:
            closing = super().close
            try:
                self.disk.step("close", self.name, closing)
            finally:
                closing()


class System:
    """The module os, watched."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def open(self, path: Any, *arguments: Any) -> int:
        handle = self._disk.step("open", path, lambda: os.open(path, *arguments))
        self._disk.names[handle] = str(path)
        return handle

    def close(self, handle: int) -> None:
        self._disk.names.pop(handle, None)
        os.close(handle)

    def fsync(self, handle: int) -> None:
        self._disk.step("fsync", self._name(handle), lambda: os.fsync(handle))

    def write(self, handle: int, data: bytes) -> int:
        half = data[: len(data) // 2]
        return self._disk.step(
            "write", self._name(handle), lambda: os.write(handle, data), lambda: os.write(handle, half)
        )

    def link(self, part: Any, real: Any) -> None:
        self._disk.step("link", part, lambda: os.link(part, real))

    def fchmod(self, handle: int, mode: int) -> None:
        self._disk.step("chmod", self._name(handle), lambda: os.fchmod(handle, mode))

    def _name(self, handle: int) -> str:
        return str(Path(f"/proc/self/fd/{handle}").readlink())


STUDY = """
version = 1
name = "ages"
max_reports_per_user = 4
[domain]
kind = "integers"
low = 0
high = 19
[mechanisms.strong]
kind = "truncated-geometric"
epsilon = 0.5
[mechanisms.same]
kind = "truncated-geometric"
epsilon = 0.5
[mechanisms.bits]
kind = "rappor"
epsilon = 1.0
[mechanisms.hash]
kind = "local-hashing"
epsilon = 1.0
"""
BAD = "strong,many,nobody\n"


def reports(study: hb.Study, users: range, seed: int = 0) -> list[str]:
    """Return rows of users who sent one to three outputs by any mechanism, in an order of their own."""
    draw = random.Random(seed)  # noqa: S311
    rows: list[str] = []
    for name, mechanism in study.mechanisms.items():
        senders = [user for user in users for _ in range(3) if draw.random() < 0.15]
        values = [draw.randrange(20) for _ in senders]
        outputs = mechanism.privatize(values, rng=seed)
        rows += [
            f"{name},{mechanism.output_space.write(output)},person-{user}\n"
            for user, output in zip(senders, outputs, strict=True)
        ]
    draw.shuffle(rows)
    seen: Counter[str] = Counter()
    kept = []
    for row in rows:
        user = row.rsplit(",", 1)[1]
        seen[user] += 1
        if seen[user] <= 3:
            kept.append(row)
    return kept


@dataclass
class Scenario:
    """One command in a folder of its own, what was there before it, and what an undisturbed run leaves."""

    name: str
    folder: Path
    before: dict[str, bytes]
    after: dict[str, bytes] = field(default_factory=dict)

    @property
    def target(self) -> Path:
        """The tally that is written."""
        return self.folder / "out" / "all.tally.parquet"

    def restore(self) -> None:
        """Put everything back as it was before the command."""
        for name in ("out", "tmp"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
            (self.folder / name).mkdir()
        for name, content in self.before.items():
            (self.folder / "out" / name).write_bytes(content)

    def found(self) -> dict[str, bytes]:
        """Return all files that are there."""
        return {path.name: path.read_bytes() for path in (self.folder / "out").iterdir()}

    def left(self) -> list[str]:
        """Return what is there besides results: files that were begun, locks, folders of temporary files."""
        hidden = [path.name for path in (self.folder / "out").iterdir() if path.name.startswith(".")]
        return sorted(hidden + [path.name for path in (self.folder / "tmp").glob(f"{PREFIX}*")])

    def run(self) -> hb.Tally:
        """Run the command."""
        before, tempfile.tempdir = tempfile.tempdir, str(self.folder / "tmp")
        try:
            if self.name == "merge":
                return hb.merge([self.folder / "a.tally.parquet", self.folder / "b.tally.parquet"], self.target)
            return hb.collect(
                hb.read_study(self.folder / "study.toml"),
                [self.folder / "a.csv", self.folder / "b.csv"],
                self.target,
                allow_rejects="50%",
                users_key=self.folder / "users.key",
            )
        finally:
            tempfile.tempdir = before


@dataclass
class Grown(Scenario):
    """Collecting what a table has got since the tally was written."""

    def run(self) -> hb.Tally:
        """Run the command."""
        address = f"sqlite:///{self.folder / 'reports.db'}#reports"
        before, tempfile.tempdir = tempfile.tempdir, str(self.folder / "tmp")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", hb.HubbubWarning)
                return hb.collect(self.folder / "study.toml", address, self.target, watermark="id", late_window=10)
        finally:
            tempfile.tempdir = before

    @classmethod
    def in_folder(cls, folder: Path, rows: int) -> Grown:
        """Return a table that has been counted, and has grown since: at the mark, below it and beyond it."""
        for name in ("out", "tmp"):
            (folder / name).mkdir(parents=True)
        (folder / "study.toml").write_text(STUDY)
        grown = cls("grown", folder, {})
        with contextlib.closing(sqlite3.connect(folder / "reports.db", isolation_level=None)) as database:
            database.execute("CREATE TABLE reports (id INTEGER, mechanism TEXT, output TEXT)")
            for start, end in ((0, rows), (rows - 3, 2 * rows)):
                entries = [(number, "strong", number % 20) for number in range(start, end)]
                database.execute("BEGIN")
                database.executemany("INSERT INTO reports VALUES (?, ?, ?)", entries)
                database.execute("COMMIT")
                if start == 0:
                    grown.run()
                    grown.before = grown.found()
        grown.run()
        grown.after = grown.found()
        grown.restore()
        return grown


def scenarios(folder: Path, users: int) -> list[Scenario]:
    """Return collecting into a new tally, adding to a tally, and merging in the place of a tally."""
    for name in ("new", "add", "merge"):
        (folder / name / "out").mkdir(parents=True)
        (folder / name / "tmp").mkdir()
        (folder / name / "study.toml").write_text(STUDY)
        (folder / name / "users.key").write_text("a key that nobody can guess\n")
        study = hb.read_study(folder / name / "study.toml")
        for number, part in enumerate("ab"):
            rows = reports(study, range(number * users, (number + 1) * users), seed=number)
            text = "mechanism,output,user\n" + "".join(rows) + BAD * (number + 1)
            (folder / name / f"{part}.csv").write_text(text)
    found = []
    for name in ("new", "add", "merge"):
        one = Scenario(name, folder / name, {})
        key, sources = one.folder / "users.key", [one.folder / "a.csv", one.folder / "b.csv"]
        if name != "new":
            hb.collect(study, sources[0], one.target, allow_rejects="50%", users_key=key)
            one.before = one.found()
        if name == "merge":
            for source in sources:
                hb.collect(study, source, source.with_suffix(".tally.parquet"), allow_rejects="50%", users_key=key)
        one.restore()
        one.run()
        one.after = one.found()
        one.restore()
        found.append(one)
    return found


@dataclass(frozen=True)
class Kill:
    """A process kills itself at one of its steps: before it, in the middle of it, or after it."""

    number: int
    when: str

    def __call__(self, number: int, step: str, when: str) -> bool:
        if number == self.number:
            if when == self.when:
                os.kill(os.getpid(), signal.SIGKILL)
            return when == "half" and self.when == "middle"
        return False


@dataclass
class KillLine:
    """A process kills itself before it runs so many lines of the modules of temporary folders and locks (0: never)."""

    number: int
    lines: int = 0

    def install(self) -> None:
        """Watch all lines from now on."""
        sys.settrace(self._trace)

    def _trace(self, frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename not in (folder.__file__, locks.__file__):
            return None
        if event == "line":
            self.lines += 1
            if self.lines == self.number:
                os.kill(os.getpid(), signal.SIGKILL)
        return self._trace

    @classmethod
    def every(cls, scenario: Scenario) -> list[KillLine]:
        """Return a kill before each line that an undisturbed run runs."""
        scenario.restore()
        whole, before = cls(0), sys.gettrace()
        whole.install()
        try:
            scenario.run()
        finally:
            sys.settrace(before)
        return [cls(number) for number in range(1, whole.lines + 1)]


@dataclass(frozen=True)
class Pause:
    """A process stops at a step, says so by a file, and goes on when the file is gone."""

    step: str
    sign: Path

    def __call__(self, number: int, step: str, when: str) -> bool:
        if step == self.step and when == "before":
            self.sign.touch()
            while self.sign.exists():
                time.sleep(0.01)
        return False


@dataclass(frozen=True)
class Fail:
    """A step fails; if the disk is full, so do all writes after it."""

    number: int
    code: int

    def __call__(self, number: int, step: str, when: str) -> bool:
        again = self.code == errno.ENOSPC and number > self.number and step.startswith("write")
        if when == "before" and (number == self.number or again):
            raise OSError(self.code, os.strerror(self.code))
        return False


def steps_of(scenario: Scenario) -> list[str]:
    """Return the steps of an undisturbed run."""
    scenario.restore()
    with Disk().between() as disk:
        scenario.run()
    assert scenario.found() == scenario.after
    return disk.steps


def all_kills(steps: list[str]) -> list[Kill]:
    """Return a kill before each step and one after the last, and one in the middle of each write."""
    return [
        *(Kill(number, "before") for number in range(1, len(steps) + 1)),
        *(Kill(number, "middle") for number, step in enumerate(steps, 1) if step.startswith("write")),
        Kill(len(steps), "after"),
    ]


def child(scenario: Scenario, ready: Connection, act: Kill | KillLine | Pause | None) -> None:
    """Run a command in a process of its own, and say how long it took."""
    if isinstance(act, KillLine):
        act.install()
    elif act is not None:
        Disk(act).install()
    ready.send("ready")
    start = time.perf_counter()
    scenario.run()
    ready.send(time.perf_counter() - start)


@contextmanager
def children(scenario: Scenario, act: Kill | KillLine | Pause | None = None) -> Iterator[tuple[Any, Connection]]:
    """Start a command in a process of its own, and wait until it begins."""
    SERVER.set_forkserver_preload(IMPORTED)
    ours, theirs = SERVER.Pipe()
    process = SERVER.Process(target=child, args=(scenario, theirs, act))
    process.start()
    theirs.close()
    try:
        assert ours.recv() == "ready"
        yield process, ours
        process.join(60)
    finally:
        if process.is_alive():
            process.kill()
            process.join()
        ours.close()
    code = process.exitcode
    process.close()
    assert code in (0, -signal.SIGKILL), f"the run ended by itself, with {code}"


def duration(scenario: Scenario) -> float:
    """Return how long an undisturbed run takes in a child."""
    times = []
    for _ in range(3):
        scenario.restore()
        with children(scenario) as (_process, ours):
            times.append(float(ours.recv()))
    return sorted(times)[1]


def write_new(path: Path, content: bytes, ready: Connection, act: Kill) -> None:
    """Write a file that must be new, in a process of its own."""
    Disk(act).install()
    ready.send("ready")
    files.write_file(path, content, replace=False)


def kill_new(path: Path, content: bytes, kill: Kill) -> None:
    """Kill a process at a step of writing a file that must be new."""
    SERVER.set_forkserver_preload(IMPORTED)
    ours, theirs = SERVER.Pipe()
    process = SERVER.Process(target=write_new, args=(path, content, theirs, kill))
    process.start()
    theirs.close()
    try:
        assert ours.recv() == "ready"
        process.join(60)
        assert process.exitcode == -signal.SIGKILL, f"not killed {kill}"
    finally:
        ours.close()
        process.close()


def small_disk(place: Path, size: str) -> None:
    """Mount a disk of so many bytes, seen by this process alone (which must have one thread); may be refused."""
    library = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    if library.unshare(0x10000000 | 0x00020000):  # CLONE_NEWUSER, CLONE_NEWNS
        raise OSError(ctypes.get_errno(), "no name spaces")
    for name, content in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        Path(f"/proc/self/{name}").write_text(content)
    if library.mount(b"none", bytes(place), b"tmpfs", 0, f"size={size}".encode()):
        raise OSError(ctypes.get_errno(), "no mounting")


def grow(place: Path, size: str) -> None:
    """Make a small disk larger."""
    library = ctypes.CDLL(None, use_errno=True)
    assert library.mount(b"none", bytes(place), b"tmpfs", 32, f"size={size}".encode()) == 0  # MS_REMOUNT


def apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function of a module returns in a child of the server."""
    SERVER.set_forkserver_preload(IMPORTED)
    ours, theirs = SERVER.Pipe()
    process = SERVER.Process(target=_answer, args=(theirs, function, arguments))
    process.start()
    theirs.close()
    try:
        return ours.recv()
    finally:
        process.join(60)
        ours.close()
        process.close()


def _answer(ours: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    ours.send(function(*arguments))


@dataclass
class Outcomes:
    """What killed runs left: how often the old tally, the new one or none, files that were begun; what was wrong."""

    kills: int = 0
    ended: int = 0  # before they could be killed
    left: Counter[str] = field(default_factory=Counter)
    strays: int = 0
    wrong: list[str] = field(default_factory=list)

    def add(self, scenario: Scenario, killed: str, tidy: bool = True) -> None:
        """Look at what a run left, run the command again, and look at that; nothing may be left over if `tidy`."""
        self.kills += 1
        found = {name: content for name, content in scenario.found().items() if not name.startswith(".")}
        for name in {*found, *scenario.before}:
            if found.get(name) not in (scenario.before.get(name), scenario.after.get(name)):
                self.wrong.append(f"{killed}: {name} is neither the old one nor the new one")
        now, old = found.get(scenario.target.name), scenario.before.get(scenario.target.name)
        self.left["nothing" if now is None else "old" if now == old else "new"] += 1
        self.strays += bool(scenario.left())
        try:
            scenario.run()
        except Exception as error:  # whatever it is, it is a finding
            self.wrong.append(f"{killed}: the next run fails: {error}")
            return
        found = {name: content for name, content in scenario.found().items() if not name.startswith(".")}
        if found != scenario.after:
            self.wrong.append(f"{killed}: the next run gives other bytes or files: {sorted(found)}")
        if tidy and scenario.left():
            self.wrong.append(f"{killed}: left behind: {scenario.left()}")

    def __str__(self) -> str:
        """Return what was left, in words."""
        return ", ".join(f"{count} {what}" for what, count in sorted(self.left.items()))


def kill_at(scenario: Scenario, kills: Sequence[Kill | KillLine]) -> Outcomes:
    """Kill runs at some of their steps, or lines."""
    outcomes = Outcomes()
    for kill in kills:
        scenario.restore()
        with children(scenario, kill) as (process, _ours):
            process.join(60)
            assert process.exitcode == -signal.SIGKILL, f"not killed {kill}"
        outcomes.add(scenario, f"{scenario.name}, {kill}")
    return outcomes


def kill_sometime(scenario: Scenario, times: int, whole: float, draw: random.Random) -> Outcomes:
    """Kill runs at moments drawn evenly from the time that an undisturbed one takes."""
    outcomes = Outcomes()
    while outcomes.kills < times:
        scenario.restore()
        moment = draw.uniform(0, whole)
        with children(scenario) as (process, _ours):
            time.sleep(moment)
            process.kill()
            process.join(60)
            ended = process.exitcode == 0
        if ended:
            outcomes.ended += 1
            continue
        outcomes.add(scenario, f"{scenario.name}, after {moment:.4f} of {whole:.4f} s")
    return outcomes
