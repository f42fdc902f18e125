"""Tallies outlive kills, full and failing disks, and other writers; equal reports give equal bytes."""

import errno
import itertools
import json
import os
import random
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from filelock import lock_descriptor

import crashing
import hubbub as hb
from crashing import Disk, Fail, Kill, KillLine, Pause, Scenario
from hubbub.core.files import NameTakenError, write_file
from hubbub.core.locks import exclusive_lock
from hubbub.intake.counting import external_sort
from hubbub.intake.counting import scratch_folder as folder
from hubbub.intake.tallies import tally_writing as writing
from terminal import hubbub

USERS = 60

pytestmark = pytest.mark.filterwarnings("ignore:rows do not say who sent them")  # studies here have a limit


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Scenario]:
    """A collect into a new tally, one that adds to a tally, and a merge in the place of a tally."""
    return {one.name: one for one in crashing.scenarios(tmp_path_factory.mktemp("crash"), USERS)}


@pytest.fixture
def study(tmp_path: Path) -> hb.Study:
    (tmp_path / "study.toml").write_text(crashing.STUDY)
    return hb.read_study(tmp_path / "study.toml")


@pytest.fixture
def files(study: hb.Study, tmp_path: Path) -> list[Path]:
    """Three files of reports, of different users."""
    found = []
    for number, name in enumerate("abc"):
        rows = crashing.reports(study, range(40 * number, 40 * (number + 1)), seed=number)
        found.append(tmp_path / f"{name}.csv")
        found[-1].write_text("mechanism,output,user\n" + "".join(rows))
    return found


def refused(code: str, call: Callable[[], object]) -> hb.IntakeError:
    with pytest.raises(hb.IntakeError) as caught:
        call()
    assert caught.value.code == code, caught.value
    for part in (caught.value.what, caught.value.where, caught.value.got, caught.value.expected, caught.value.remedy):
        assert part.strip()
    return caught.value


# -- kills ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["new", "add", "merge"])
def test_a_kill_at_a_step_leaves_the_old_or_the_new_tally(commands: dict[str, Scenario], name: str) -> None:
    scenario = commands[name]
    steps = crashing.steps_of(scenario)
    kills = [kill for kill in crashing.all_kills(steps) if _narrow(kill, steps)]
    outcomes = crashing.kill_at(scenario, kills)
    assert outcomes.wrong == []
    assert outcomes.kills == len(kills) >= 7
    assert outcomes.left["new"] >= 2
    assert outcomes.left["nothing" if name == "new" else "old"] >= 3
    assert outcomes.strays >= 3


def _narrow(kill: Kill, steps: list[str]) -> bool:
    """The steps around the one at which the new tally takes the old one's place."""
    last = max(number for number, step in enumerate(steps, 1) if step == "write tally")
    if kill.when == "middle":
        return kill.number == last
    return kill.when == "after" or kill.number >= last or steps[kill.number - 1] in ("flock lock", "rename rejects")


def test_a_kill_at_any_moment_leaves_the_old_or_the_new_tally(commands: dict[str, Scenario]) -> None:
    draw = random.Random(6)  # noqa: S311
    for name, times in (("new", 2), ("add", 3), ("merge", 2)):
        outcomes = crashing.kill_sometime(commands[name], times, crashing.duration(commands[name]), draw)
        assert outcomes.wrong == []


@pytest.mark.slow
def test_two_hundred_kills(tmp_path: Path) -> None:
    draw = random.Random(7)  # noqa: S311
    for scenario, times in zip(crashing.scenarios(tmp_path, 2000), (67, 67, 66), strict=True):
        steps = crashing.steps_of(scenario)
        assert crashing.kill_at(scenario, crashing.all_kills(steps)[::5]).wrong == []
        assert crashing.kill_at(scenario, KillLine.every(scenario)).wrong == []
        assert crashing.kill_sometime(scenario, times, crashing.duration(scenario), draw).wrong == []


def test_the_rows_of_a_killed_run_do_not_lie_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows put aside say who sent what: the next run removes them, but not those of a run that still goes on."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dead = tmp_path / f"{folder.PREFIX}dead"
    dead.mkdir()
    (dead / "rows.tmp").write_text("person-1")
    dead.with_suffix(folder.ENDING).touch()
    (tmp_path / f"{folder.PREFIX}early{folder.ENDING}").touch()  # killed before it had a folder
    alive = folder.ScratchFolder()
    mine = folder.ScratchFolder()
    kept = [alive.path, mine.path]
    assert sorted(tmp_path.iterdir()) == sorted(kept + [path.with_suffix(folder.ENDING) for path in kept])
    mine.remove()
    alive.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_kill_leaves_no_folder_that_nobody_finds(commands: dict[str, Scenario]) -> None:
    kills = KillLine.every(commands["merge"])
    assert len(kills) > 15
    outcomes = crashing.kill_at(commands["merge"], kills[::6])
    assert outcomes.wrong == []


def test_a_file_that_another_run_took_for_a_killed_ones_is_left_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the making of the file and its lock, another run may sweep it away, or be about to."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    make = tempfile.mkstemp
    made: list[str] = []
    holder: list[int] = []

    def swept(**options: Any) -> tuple[int, str]:
        handle, name = make(**options)
        made.append(name)
        if len(made) == 1:
            folder.sweep()
        if len(made) == 2:
            holder.append(os.open(name, os.O_RDWR))
            assert lock_descriptor(holder[0], blocking=False)
        return handle, name

    monkeypatch.setattr(tempfile, "mkstemp", swept)
    mine = folder.ScratchFolder()
    assert len(made) == 3
    assert str(mine.path) + folder.ENDING == made[2]
    mine.remove()
    os.close(holder[0])
    folder.sweep()
    assert list(tmp_path.iterdir()) == []


CONTENT = bytes(range(256)) * 20


def _new_file_steps(path: Path) -> list[str]:
    with Disk().between() as disk:
        write_file(path, CONTENT, replace=False)
    path.unlink()
    return disk.steps


def test_a_file_that_must_be_new_is_whole_or_not_there_after_a_kill(tmp_path: Path) -> None:
    target = tmp_path / "new.json"
    steps = _new_file_steps(target)
    written = steps.index("fsync tally")
    assert steps[written:] == ["fsync tally", "close tally", "link tally", "unlink tally", "open folder",
                               "fsync folder", "unlink lock"]  # fmt: skip
    there = []
    for kill in crashing.all_kills(steps):
        crashing.kill_new(target, CONTENT, kill)
        there.append(target.exists())
        if target.exists():
            assert target.read_bytes() == CONTENT, kill
            with pytest.raises(NameTakenError):
                write_file(target, b"other", replace=False)
            target.unlink()
        write_file(target, CONTENT, replace=False)  # what is left is in nobody's way
        assert [path.name for path in tmp_path.iterdir()] == [target.name], kill
        target.unlink()
    assert sum(there) >= 3
    assert there.count(False) >= 8


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_must_be_new_is_whole_or_not_there_on_a_failing_disk(tmp_path: Path, links: bool) -> None:
    """Also on a file system that has no second names (hard links)."""
    target = tmp_path / "new.json"

    def act(number: int, step: str, when: str) -> bool:
        if step.startswith("link") and not links:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        return False

    with Disk(act).between() as disk:
        write_file(target, CONTENT, replace=False)
    assert target.read_bytes() == CONTENT
    assert any(step.startswith("rename") for step in disk.steps) != links
    target.unlink()
    for number, step in enumerate(disk.steps, 1):

        def fail(other: int, found: str, when: str, number: int = number) -> bool:
            act(other, found, when)
            return Fail(number, errno.EIO)(other, found, when)

        failed = None
        try:
            with Disk(fail).between():
                write_file(target, CONTENT, replace=False)
        except hb.IntakeError as error:
            failed = error
        assert failed is None or failed.code == "not-written"
        if target.exists():
            assert target.read_bytes() == CONTENT, step
            assert failed is None or "confirm" in failed.what, step
            target.unlink()
        else:
            assert failed is not None, step
            assert "untouched" in failed.remedy
        for path in tmp_path.iterdir():
            assert step.startswith(("unlink", "flock")), (step, path)  # without the lock nobody may remove its file
            path.unlink()


@pytest.mark.parametrize("links", [True, False])
def test_what_somebody_puts_there_meanwhile_is_never_replaced(tmp_path: Path, links: bool) -> None:
    target = tmp_path / "new.json"

    def act(number: int, step: str, when: str) -> bool:
        if step.startswith("close") and when == "after":
            target.write_bytes(b"mine")
        if step.startswith("link") and not links:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        return False

    with Disk(act).between(), pytest.raises(NameTakenError):
        write_file(target, CONTENT, replace=False)
    assert target.read_bytes() == b"mine"
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


# -- failing disks -------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "code"),
    [
        pytest.param("new", "ENOSPC", marks=pytest.mark.slow),
        ("new", "EIO"),
        ("add", "ENOSPC"),
        pytest.param("add", "EIO", marks=pytest.mark.slow),
        ("merge", "ENOSPC"),
        pytest.param("merge", "EIO", marks=pytest.mark.slow),
    ],
)
def test_whatever_step_fails_the_tally_is_whole(commands: dict[str, Scenario], name: str, code: str) -> None:
    scenario = commands[name]
    steps = crashing.steps_of(scenario)
    assert sum(step == "write tally" for step in steps) > 3
    failures = 0
    for number, step in enumerate(steps, 1):
        scenario.restore()
        error = _failing(scenario, Fail(number, getattr(errno, code)))
        moved = "rename tally" in steps[: number - 1]
        if error is None:
            assert scenario.found().items() >= scenario.after.items(), step
            assert step.endswith("lock") or step.startswith("unlink")  # nothing depends on these
        else:
            failures += 1
            full = code == "ENOSPC" and "folder" not in step
            assert error.code == ("out-of-space" if full else "not-written"), step
            assert os.strerror(getattr(errno, code)) in error.got
            assert all((error.what, error.where, error.expected, error.remedy))
            assert ("untouched" in error.remedy) == ("folder" not in step)
            kept = (scenario.after if moved else scenario.before).get(scenario.target.name)
            assert scenario.found().get(scenario.target.name) == kept, step
        if not step.startswith(("unlink", "flock")):  # without the lock nobody may remove its file
            assert scenario.left() == [], step
        scenario.run()
        assert scenario.found().items() >= scenario.after.items(), step
        assert scenario.left() == [] or (step, scenario.left()) == ("unlink rejects lock", [".all.rejects.csv.lock"])
    assert failures >= 10


def _failing(scenario: Scenario, fail: Fail) -> hb.IntakeError | None:
    try:
        with Disk(fail).between():
            scenario.run()
    except hb.IntakeError as error:
        return error
    return None


def test_a_disk_that_cannot_sync_folders_is_a_disk(commands: dict[str, Scenario]) -> None:
    scenario = commands["merge"]
    steps = crashing.steps_of(scenario)
    scenario.restore()
    with Disk(Fail(steps.index("fsync folder") + 1, errno.EINVAL)).between():
        scenario.run()
    assert scenario.found() == scenario.after


def _on_small_disk(scenario: Scenario, what: str) -> dict[str, Any]:
    """Run a command whose tally, or file of rejects, or temporary files are on a disk that is too small."""
    place = scenario.folder / "small"
    place.mkdir(exist_ok=True)
    try:
        crashing.small_disk(place, "32k")
    except OSError as error:
        return {"skip": str(error)}
    target = (place if what == "tally" else scenario.folder / "out") / "all.tally.parquet"
    rejects = place / "rejects.csv" if what == "rejects" else scenario.folder / "out" / "all.rejects.csv"
    study = hb.read_study(scenario.folder / "study.toml")
    rows = [scenario.folder / "a.csv", scenario.folder / "b.csv"]
    memory = "4GB"
    if what == "temporary":
        tempfile.tempdir, external_sort.MIN_MEMORY_BYTES, memory = str(place), 10**6, "12MB"
        count = 400_000
        names = pa.array([f"person-{user}" for user in range(count)])
        pq.write_table(pa.table({"user": names, "mechanism": ["strong"] * count, "output": ["3"] * count}),
                       scenario.folder / "many.parquet")  # fmt: skip
        rows = [scenario.folder / "many.parquet"]

    def collect() -> None:
        hb.collect(study, rows, target, allow_rejects="99%", rejects=rejects, memory=memory, users_complete=True)

    if what == "tally":
        hb.collect(study, scenario.folder / "small.csv", target)
    old = target.read_bytes() if target.exists() else None
    try:
        collect()
        return {"error": "none"}
    except hb.IntakeError as error:
        told = str(error)
        code = error.code
    found: dict[str, Any] = {
        "error": code,
        "told": told,
        "untouched": (target.read_bytes() if target.exists() else None) == old,
        "left": sorted(path.name for path in place.iterdir() if path != target),
    }
    crashing.grow(place, "64m")
    memory = "4GB"
    if what == "tally":
        target.unlink()
    collect()
    return {**found, "after": target.read_bytes()}


@pytest.mark.slow
@pytest.mark.parametrize("what", ["tally", "rejects", "temporary"])
def test_a_disk_that_is_really_full(tmp_path: Path, what: str) -> None:
    scenario = crashing.scenarios(tmp_path, 20)[0]
    study = hb.read_study(scenario.folder / "study.toml")
    if what == "tally":
        rows = crashing.reports(study, range(6000), seed=1)
        (scenario.folder / "small.csv").write_text("mechanism,output,user\nstrong,3,me\n")
        (scenario.folder / "a.csv").write_text("mechanism,output,user\n" + "".join(rows))
    if what == "rejects":
        with (scenario.folder / "a.csv").open("a") as file:
            file.write(crashing.BAD * 1000)
    scenario.restore()
    found = crashing.apart(_on_small_disk, scenario, what)
    if "skip" in found:
        pytest.skip(f"no small disk can be mounted here: {found['skip']}")
    assert found["error"] == "out-of-space", found
    assert found["untouched"]
    assert found["left"] == []
    for part in ("where:", "got:", "expected:", "remedy:"):
        assert part in found["told"]
    rows_of = (
        scenario.folder / "many.parquet" if what == "temporary" else [scenario.folder / n for n in ("a.csv", "b.csv")]
    )
    expected = hb.collect(study, rows_of, tmp_path / "expected.tally.parquet", allow_rejects="99%")
    assert found["after"] == expected.path.read_bytes()


def test_any_run_removes_the_rows_of_a_killed_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Even one that puts no rows aside itself, and so has no folder."""
    temporary = tmp_path / "temporary"
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    dead = temporary / f"{folder.PREFIX}dead"
    dead.mkdir(parents=True)
    (dead / "rows.tmp").write_text("person-1")
    dead.with_suffix(folder.ENDING).touch()
    digits = hb.Integers(0, 9)
    hb.read_reports(pa.table({"output": ["3", "4"]}), hb.Study(digits, {"near": hb.TruncatedGeometric(digits, 0.5)}))
    assert list(temporary.iterdir()) == []


def test_no_place_for_temporary_files(
    commands: dict[str, Scenario], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with external_sort.Scratch() as rows:
        rows.insert("numbers", pa.table({"number": [2, 1]}))
        error = refused("not-written", lambda: list(rows.sorted("numbers", "number", "number")))
    assert "TMPDIR" in error.where


def test_nothing_is_left_by_who_is_interrupted(commands: dict[str, Scenario]) -> None:
    scenario = commands["add"]
    for place in ("write rejects", "fsync tally"):

        def act(number: int, step: str, when: str, place: str = place) -> bool:
            if step == place:
                raise KeyboardInterrupt
            return False

        scenario.restore()
        with Disk(act).between(), pytest.raises(KeyboardInterrupt):
            scenario.run()
        assert scenario.found()[scenario.target.name] == scenario.before[scenario.target.name]
        assert scenario.left() == []


def test_bytes_are_on_the_disk_before_their_name(commands: dict[str, Scenario]) -> None:
    for name in ("new", "add", "merge"):
        steps = crashing.steps_of(commands[name])
        for file in ("rejects", "tally") if name != "merge" else ("tally",):
            own = [step.split()[0] for step in steps if step.endswith(f" {file}") and not step.startswith("unlink")]
            own = [step for step in own if step != "chmod"]
            assert own[0] == "open"
            assert set(own[1:-3]) == {"write"}
            assert own[-3:] == ["fsync", "close", "rename"]
            named = steps.index(f"rename {file}")
            assert steps[named + 1 : named + 3] == ["open folder", "fsync folder"]
        assert steps[:2] == ["open lock", "flock lock"]
        assert steps[-1] == "unlink lock"


# -- locks and places ----------------------------------------------------------------------------------------


def test_two_collectors_at_once(commands: dict[str, Scenario]) -> None:
    scenario = commands["new"]
    scenario.restore()
    sign = scenario.folder / "tmp" / "paused"
    words = ["study.toml", "a.csv", "-o", scenario.target, "--allow-rejects", "9", "--users-key", "users.key"]
    with crashing.children(scenario, Pause("write tally", sign)) as (process, _ours):
        while not sign.exists():
            assert process.is_alive()
        done = hubbub("collect", *words, cwd=scenario.folder)
        assert done.returncode == 1
        assert "[locked]" in done.stderr
        assert f"process {process.pid}\n" in done.stderr
        refused("locked", lambda: hb.merge([scenario.target], scenario.target))
        # Another tally of the same folder is nobody's business but its own.
        study = hb.read_study(scenario.folder / "study.toml")
        other = hb.collect(study, scenario.folder / "b.csv", scenario.target.with_name("other.tally.parquet"),
                           allow_rejects=9)  # fmt: skip
        other.path.unlink()
        other.path.with_name("other.rejects.csv").unlink()
        process.kill()
        process.join(60)
    assert scenario.left() != []
    scenario.run()  # the lock went with its process
    assert scenario.found() == scenario.after
    assert scenario.left() == []


def test_a_lock_names_its_owner_and_not_a_dead_one(commands: dict[str, Scenario]) -> None:
    scenario = commands["merge"]
    scenario.restore()
    lock = scenario.target.with_name(f".{scenario.target.name}.lock")
    lock.write_text("\n12345678901\n")
    with exclusive_lock(scenario.target):
        error = refused("locked", scenario.run)
        assert error.got == f"process {os.getpid()}"
        lock.write_text("")
        assert "just begun" in refused("locked", scenario.run).got
    assert not lock.exists()


def test_a_lock_that_was_removed_meanwhile_is_no_lock(tmp_path: Path) -> None:
    """Who waits on a file that is no longer there would be alone with it, and so would the next one."""
    target = tmp_path / "all.tally.parquet"
    lock = tmp_path / f".{target.name}.lock"

    def act(number: int, step: str, when: str) -> bool:
        if number == 2 and when == "before":
            lock.unlink()
        return False

    with Disk(act).between() as disk, exclusive_lock(target):
        assert lock.exists()
        assert disk.steps[:4] == ["open lock", "flock lock", "open lock", "flock lock"]
    assert list(tmp_path.iterdir()) == []


def test_rejects_of_two_runs_do_not_mix(study: hb.Study, files: list[Path], tmp_path: Path) -> None:
    shared = tmp_path / "rejects.csv"
    with exclusive_lock(shared):
        error = refused("locked", lambda: hb.collect(study, files[0], tmp_path / "a.tally.parquet", rejects=shared))
    assert error.where == str(shared)
    assert not (tmp_path / "a.tally.parquet").exists()


@pytest.mark.parametrize("which", ["reports", "tally"])
def test_rejects_do_not_overwrite_reports_or_the_tally(
    study: hb.Study, files: list[Path], tmp_path: Path, which: str
) -> None:
    target = tmp_path / "a.tally.parquet"
    link = tmp_path / "link"
    link.symlink_to(files[0] if which == "reports" else target)
    before = files[0].read_bytes()
    for place in (link, link.readlink()):
        with pytest.raises(hb.SettingError, match="would be written over"):
            hb.collect(study, files[0], target, rejects=place)
        if which == "reports":
            with pytest.raises(hb.SettingError, match="would be written over"):
                hb.read_reports(files[0], study, rejects=place)
    assert files[0].read_bytes() == before


def test_places_that_cannot_be_written(study: hb.Study, files: list[Path], tmp_path: Path) -> None:
    def collect(name: str, **options: Any) -> Callable[[], object]:
        return lambda: hb.collect(study, files[0], tmp_path / name, **options)

    assert "No such file" in refused("not-written", collect("nowhere/a.tally.parquet")).got
    assert "Not a directory" in refused("not-written", collect("a.csv/a.tally.parquet")).got
    (tmp_path / "folder.tally.parquet").mkdir()
    assert refused("not-written", collect("folder.tally.parquet")).got == "a folder"
    assert "null byte" in refused("not-written", collect("\0.tally.parquet")).got
    assert "too long" in refused("not-written", collect("a" * 250 + ".tally.parquet")).got
    kept = hb.collect(study, files[0], tmp_path / "kept.tally.parquet").path
    content = kept.read_bytes()
    kept.chmod(0o444)
    for call in (
        lambda: hb.collect(study, files[1], kept, users_complete=True),
        lambda: hb.merge([kept], kept),
        collect("other.tally.parquet", rejects=kept),
    ):
        error = refused("not-written", call)
        assert "read-only" in error.what
        assert error.got == "permissions -r--r--r--"
    assert kept.read_bytes() == content
    # A device in the place of a file must not be replaced by one.
    assert refused("not-written", collect("other.tally.parquet", rejects="/dev/null")).got.startswith("a device")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_a_folder_that_is_read_only(study: hb.Study, files: list[Path], tmp_path: Path) -> None:
    def act(number: int, step: str, when: str) -> bool:
        if step == "open lock":
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return False

    with Disk(act).between():
        error = refused("not-written", lambda: hb.collect(study, files[0], tmp_path / "a.tally.parquet"))
    assert "Read-only" in error.got
    if os.getuid():  # root may write everywhere
        tmp_path.chmod(0o555)
        error = refused("not-written", lambda: hb.collect(study, files[0], tmp_path / "a.tally.parquet"))
        tmp_path.chmod(0o755)
        assert "Permission denied" in error.got


def test_a_link_stays_a_link_and_permissions_stay(study: hb.Study, files: list[Path], tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    real, link = tmp_path / "far" / "real.tally.parquet", tmp_path / "link.tally.parquet"
    hb.collect(study, files[0], real)
    real.chmod(0o600)
    link.symlink_to(real)
    with exclusive_lock(real):
        refused("locked", lambda: hb.collect(study, files[1], link, users_complete=True))
    hb.collect(study, files[1], link, users_complete=True)
    assert link.is_symlink()
    assert len(hb.read_tally(real).sources) == 2
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    # A link that somebody put where a file is begun is not followed.
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "far" / ".real.tally.parquet.part").symlink_to(victim)
    (tmp_path / "copy.tally.parquet").write_bytes(real.read_bytes())
    hb.collect(study, files[2], real, users_complete=True)
    assert not real.is_symlink()
    copy = tmp_path / "copy.tally.parquet"

    def act(number: int, step: str, when: str) -> bool:
        if step == "open tally" and when == "before":
            (tmp_path / f".{copy.name}.part").symlink_to(victim)
        return False

    with Disk(act).between():
        refused("not-written", lambda: hb.collect(study, files[2], copy, users_complete=True))
    assert victim.read_text() == "precious"


# -- equal reports, equal bytes ------------------------------------------------------------------------------


@pytest.mark.parametrize("keyed", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["key", "no key"])
def test_equal_reports_give_equal_bytes(study: hb.Study, files: list[Path], tmp_path: Path, keyed: bool) -> None:
    """Files in any order, in one run or several, merged in any order and grouping, in any memory, under any key."""
    (tmp_path / "key").write_text("0123456789abcdef")
    key = tmp_path / "key" if keyed else None
    numbers = itertools.count()

    def collected(sources: list[Path], into: Path | None = None, **options: Any) -> Path:
        path = into or tmp_path / f"{next(numbers)}.tally.parquet"
        return hb.collect(study, sources, path, users_key=key, users_complete=not keyed, **options).path

    def merged(*parts: Path) -> Path:
        return hb.merge(parts, tmp_path / f"{next(numbers)}.tally.parquet", users_complete=not keyed).path

    a, b, c = files
    whole = collected([a, b, c])
    first, second, third = (collected([file]) for file in files)
    others = [
        collected([c, a, b]),
        collected([b, c, a], memory="200MB"),
        collected([c], into=collected([b], into=collected([a]))),
        collected([a, b, c], into=collected([c])),
        merged(first, second, third),
        merged(third, merged(second, first)),
        merged(merged(first, third), second),
        merged(whole),
        collected([a], into=merged(third, second)),
    ]
    assert {path.read_bytes() for path in others} == {whole.read_bytes()}
    assert hb.read_tally(whole).reports == hb.read_reports(files, study)
    assert hb.collect(study, files, whole, users_key=key).summary.skipped == tuple(map(str, files))


def test_rows_in_any_order_give_the_same_rows(study: hb.Study, files: list[Path], tmp_path: Path) -> None:
    """Only the digest of the file says that its rows stood elsewhere, and the description's own digest with it."""
    head, *rows = files[0].read_text().splitlines(keepends=True)
    found = []
    for seed in range(3):
        random.Random(seed).shuffle(rows)  # noqa: S311
        files[0].write_text(head + "".join(rows))
        path = hb.collect(study, files[0], tmp_path / f"{seed}.tally.parquet").path
        document = json.loads(pq.read_metadata(path).metadata[b"hubbub"])
        document["sources"][0].pop("sha256")
        document.pop("digest")
        found.append((pq.read_table(path).replace_schema_metadata(), document))
    assert all(rows.equals(found[0][0]) and document == found[0][1] for rows, document in found)


def test_bytes_do_not_depend_on_how_rows_come_out_of_the_sort(
    study: hb.Study, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: dict[int, set[bytes]] = {}
    for group in (16, 50):
        monkeypatch.setattr(writing, "ROW_GROUP_ROWS", group)
        for batch in (7, 16, 1 << 20):
            monkeypatch.setattr(external_sort, "BATCH_ROWS", batch)
            path = hb.collect(study, files, tmp_path / f"{group}-{batch}.tally.parquet").path
            found.setdefault(group, set()).add(path.read_bytes())
            assert hb.read_tally(path).reports.users == 120 - _silent(files)
    assert [len(contents) for contents in found.values()] == [1, 1]


def _silent(files: list[Path]) -> int:
    """Return how many of the users sent nothing."""
    senders = {line.rsplit(",", 1)[1] for file in files for line in file.read_text().splitlines()[1:]}
    return 120 - len(senders)


def test_two_spellings_of_a_study_give_the_same_bytes(files: list[Path], study: hb.Study, tmp_path: Path) -> None:
    """Two names of one mechanism are one, by the same name whatever comes first; so are studies but for their name."""
    turned = hb.Study(study.domain, dict(reversed(list(study.mechanisms.items()))), "ages", study.max_reports_per_user)
    assert turned.fingerprint == study.fingerprint
    bytes_of = [
        hb.collect(one, files, tmp_path / f"{number}.tally.parquet").path.read_bytes()
        for number, one in enumerate((study, turned))
    ]
    assert bytes_of[0] == bytes_of[1]
    other = hb.Study(study.domain, study.mechanisms, "other", study.max_reports_per_user)
    a = hb.collect(study, files[0], tmp_path / "a.tally.parquet").path
    b = hb.collect(other, files[1], tmp_path / "b.tally.parquet").path
    ab = hb.merge([a, b], tmp_path / "ab.tally.parquet", users_complete=True).path
    ba = hb.merge([b, a], tmp_path / "ba.tally.parquet", users_complete=True).path
    assert ab.read_bytes() == ba.read_bytes()


# -- nobody is counted twice ---------------------------------------------------------------------------------

KEYS = {"key": "a secret of sixteen bytes or more", "wrong": "another secret of sixteen bytes"}


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    for name, content in KEYS.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "named.csv").write_text("mechanism,output,user\nstrong,3,Ann\nstrong,4,Bob\nstrong,5,Bob\n")
    (tmp_path / "more-named.csv").write_text("mechanism,output,user\nstrong,6,Cyd\n")
    (tmp_path / "unnamed.csv").write_text("mechanism,output\nstrong,3\n")
    (tmp_path / "more-unnamed.csv").write_text("mechanism,output\nstrong,7\n")
    return tmp_path


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("old", "old_key", "new", "key", "complete", "code"),
    [
        ("unnamed", None, "unnamed", None, False, None),
        ("unnamed", None, "unnamed", None, True, None),
        ("unnamed", None, "named", None, False, "users-unknown"),
        ("unnamed", None, "named", None, True, None),
        ("unnamed", None, "named", "key", False, "users-unknown"),
        ("unnamed", None, "named", "key", True, "users-unknown"),
        ("named", None, "named", None, False, "users-unknown"),
        ("named", None, "named", None, True, None),
        ("named", None, "named", "key", False, "users-unknown"),
        ("named", None, "named", "key", True, "users-unknown"),
        ("named", None, "unnamed", None, False, "users-unknown"),
        ("named", None, "unnamed", None, True, None),
        ("named", "key", "named", "key", False, None),
        ("named", "key", "named", "key", True, None),
        ("named", "key", "named", "wrong", False, "wrong-key"),
        ("named", "key", "named", "wrong", True, "wrong-key"),
        ("named", "key", "named", None, False, "users-unknown"),
        ("named", "key", "named", None, True, "users-unknown"),
        ("named", "key", "unnamed", None, False, "users-unknown"),
        ("named", "key", "unnamed", None, True, "users-unknown"),
    ],
)
def test_who_may_be_added_to_whom(
    study: hb.Study, parts: Path, old: str, old_key: str | None, new: str, key: str | None, complete: bool,
    code: str | None,
) -> None:  # fmt: skip
    target = parts / "all.tally.parquet"
    hb.collect(study, parts / f"{old}.csv", target, users_key=parts / old_key if old_key else None)
    before = target.read_bytes()

    def add() -> hb.Tally:
        key_file = parts / key if key else None
        return hb.collect(study, parts / f"more-{new}.csv", target, users_key=key_file, users_complete=complete)

    if code is None:
        assert add().users == (3 if old == "named" else 2)
        assert hb.read_tally(target).reports.users == (3 if old == "named" else 2)
        return
    error = refused(code, add)
    assert target.read_bytes() == before
    if code == "users-unknown":
        # What the message advises must not lead to the next refusal.
        assert ("--users-complete" in error.remedy) == (old_key is None)
        assert ("leave the key out" in error.remedy) == (key is not None)
        assert ("--users-key" in error.remedy) == (old_key is not None and new == "named")


def test_a_key_needs_users_and_a_length(study: hb.Study, parts: Path) -> None:
    target = parts / "all.tally.parquet"
    with pytest.raises(hb.SettingError, match="users_key needs rows that say who sent them"):
        hb.collect(study, parts / "unnamed.csv", target, users_key=parts / "key")
    (parts / "short").write_text("fifteen bytes..\n")
    for name, got in (("short", "15 bytes"), ("nowhere", "No such file"), (".", "Is a directory")):
        error = refused(
            "wrong-key",
            lambda name=name: hb.collect(study, parts / "named.csv", target, users_key=parts / name),  # type: ignore[misc]
        )
        assert got in error.got
    assert not target.exists()


def test_a_user_who_comes_again_is_rejected(study: hb.Study, parts: Path) -> None:
    target = parts / "all.tally.parquet"
    again = parts / "again.csv"
    again.write_text("mechanism,output,user\nstrong,9,Cyd\nstrong,9,Bob\nstrong,8,Bob\n")
    hb.collect(study, parts / "named.csv", target, users_key=parts / "key")
    before = target.read_bytes()
    error = refused("user-counted-before", lambda: hb.collect(study, again, target, users_key=parts / "key"))
    assert "'Bob'" in error.where
    assert target.read_bytes() == before
    tally = hb.collect(study, again, target, users_key=parts / "key", allow_rejects=2)
    assert tally.users == 3
    assert tally.rejected == {"user-counted-before": 2}
    assert tally.reports.users == 3


def test_digests_do_not_say_who(study: hb.Study, parts: Path) -> None:
    import hashlib

    tally = hb.collect(study, parts / "named.csv", parts / "all.tally.parquet", users_key=parts / "key")
    digests = {row for row in pq.read_table(tally.path)["packed"].to_pylist() if row is not None}
    assert len(digests) == 2
    assert all(len(digest) == 16 for digest in digests)
    content = tally.path.read_bytes() + b"".join(digests)
    for user in (b"Ann", b"Bob"):
        assert user not in content
        for function in ("md5", "sha1", "sha256", "sha512", "sha3_256", "blake2b", "blake2s"):
            plain = hashlib.new(function, user)
            assert plain.digest()[:8] not in content
            assert plain.hexdigest()[:16].encode() not in content
    assert KEYS["key"].encode() not in content
    other = hb.collect(study, parts / "named.csv", parts / "other.tally.parquet", users_key=parts / "wrong")
    assert digests.isdisjoint(pq.read_table(other.path)["packed"].to_pylist())
    assert tally.summary.key != other.summary.key
    # Without a key nothing is kept of them at all.
    bare = hb.collect(study, parts / "named.csv", parts / "bare.tally.parquet")
    assert set(pq.read_table(bare.path)["kind"].to_pylist()) == {"single", "joint"}


def test_what_may_be_merged(study: hb.Study, parts: Path) -> None:
    def tally(name: str, source: str, key: str | None = None) -> Path:
        path = parts / f"{name}.tally.parquet"
        return hb.collect(study, parts / f"{source}.csv", path, users_key=parts / key if key else None).path

    target = parts / "all.tally.parquet"
    (parts / "shared.csv").write_text("mechanism,output,user\nstrong,9,Bob\n")
    one, two, shared = tally("1", "named", "key"), tally("2", "more-named", "key"), tally("3", "shared", "key")
    wrong, bare, unnamed = tally("4", "more-named", "wrong"), tally("5", "more-named"), tally("6", "unnamed")
    more = tally("7", "more-unnamed")
    assert hb.merge([one, two], target).users == 3
    assert hb.merge([unnamed, more], parts / "u.tally.parquet").users == 2
    for complete in (False, True):
        error = refused(
            "counted-twice",
            lambda complete=complete: hb.merge([one, two, shared], target, users_complete=complete),  # type: ignore[misc]
        )
        assert error.got.startswith("1 user counted")
        for other in (wrong, bare, unnamed):
            refused(
                "users-unknown",
                lambda other=other, complete=complete: hb.merge([one, other], target, users_complete=complete),  # type: ignore[misc]
            )
        refused("counted-twice", lambda complete=complete: hb.merge([two, wrong], target, users_complete=complete))  # type: ignore[misc]
        refused("counted-twice", lambda complete=complete: hb.merge([two, bare], target, users_complete=complete))  # type: ignore[misc]
        refused("named-twice", lambda complete=complete: hb.merge([one, one], target, users_complete=complete))  # type: ignore[misc]
    refused("users-unknown", lambda: hb.merge([bare, unnamed], target))
    assert hb.merge([bare, unnamed], parts / "b.tally.parquet", users_complete=True).users == 2
    assert hb.read_tally(target).users == 3
    assert hb.merge([two], parts / "copy.tally.parquet").path.read_bytes() == two.read_bytes()


def test_tables_in_memory_and_databases_are_not_counted_twice(study: hb.Study, parts: Path) -> None:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(parts / "r.db")) as database:
        database.execute("CREATE TABLE reports (mechanism TEXT, output TEXT)")
        database.execute("INSERT INTO reports VALUES ('strong', '3')")
        database.commit()
    address = f"sqlite:///{parts / 'r.db'}#reports"
    one = hb.collect(study, address, parts / "1.tally.parquet").path
    before = one.read_bytes()
    refused("counted-twice", lambda: hb.collect(study, address, one))
    assert one.read_bytes() == before
    two = hb.collect(study, address, parts / "2.tally.parquet").path
    refused("counted-twice", lambda: hb.merge([one, two], parts / "all.tally.parquet"))
    table = pa.table({"mechanism": ["strong"], "output": ["3"]})
    three = hb.collect(study, table, parts / "3.tally.parquet").path
    link = parts / "link.tally.parquet"
    link.symlink_to(three)
    refused("named-twice", lambda: hb.merge([three, link], parts / "all.tally.parquet"))
    refused("not-a-source", lambda: hb.collect(study, three, parts / "4.tally.parquet"))
