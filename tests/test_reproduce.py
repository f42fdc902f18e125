"""``hubbub reproduce`` as people run it: in processes of its own, stopped, killed, resumed, opened in a browser."""

from __future__ import annotations

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.paper import figure_names, parse_zone, reproduce
from hubbub.paper.experiment_runs import em_iterates
from hubbub.paper.figure_specs import read_figures
from terminal import hubbub

FEW = ("line", "error-probability")  # no map: seconds
WAIT = 120.0


def arguments(*given: object) -> list[str]:
    return [sys.executable, "-m", "hubbub.cli", "reproduce", *map(str, given)]


def run(*given: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(arguments(*given), capture_output=True, text=True, check=False)  # noqa: S603


def content(folder: Path) -> dict[str, bytes]:
    """Return all files but the parts of the work."""
    files = (path for path in folder.rglob("*") if path.is_file() and "work" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def children(parent: int) -> list[int]:
    """Return the processes that a process has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, ppid = path.read_text().rpartition(")")[2].split()[:2]
        except (OSError, ValueError):
            continue
        if int(ppid) == parent and state != "Z":
            found.append(int(path.parent.name))
    return found


def wait_until(true: object, what: str) -> None:
    end = time.monotonic() + WAIT
    while not true():  # type: ignore[operator]
        assert time.monotonic() < end, what
        time.sleep(0.02)


def gone(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def stopped_after(parts: int, how: signal.Signals, *given: object, folder: Path) -> tuple[int, str]:
    """Start a run, and end it by a signal when so many parts are done; nothing of it runs on. Return code and words."""
    process = subprocess.Popen(  # noqa: S603
        arguments(*given, "-o", folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    done = lambda: len(list(folder.glob("work/*.json"))) >= parts or process.poll() is not None  # noqa: E731
    wait_until(done, "no part was ever done")
    assert process.poll() is None, process.communicate()
    workers = children(process.pid)
    process.send_signal(how)
    _, told = process.communicate(timeout=WAIT)
    assert workers
    for worker in workers:
        wait_until(lambda worker=worker: gone(worker), "a process measures on although nobody waits for it")
    return process.returncode, told


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some figures, never interrupted: made once, by whichever process of the tests comes first."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    try:
        (shared / "reproduced").mkdir()
    except FileExistsError:
        wait_until((shared / "reproduced" / "done").exists, "the other process has not ended")
    else:
        done = run(*FEW, "--quick", "-o", shared / "reproduced" / "out")
        (shared / "reproduced" / "done").write_text(done.stderr)
    assert (shared / "reproduced" / "out" / "index.html").exists(), (shared / "reproduced" / "done").read_text()
    return shared / "reproduced" / "out"


def test_everything_is_written(whole: Path) -> None:
    names = set(content(whole))
    for name in FEW:
        assert {f"figures/{name}.png", f"figures/{name}.svg", f"runs/{name}.csv"} <= names
    assert {"index.html", "summary.json", "reproduce.json", "runs/line-answers.csv"} <= names
    page = (whole / "index.html").read_text()
    assert all(f'figures/{name}.png"' in page for name in FEW)
    assert "synthetic" in page


def test_the_table_has_every_run_and_method(whole: Path) -> None:
    (figure,) = read_figures(["line"], quick=True)
    with (whole / "runs" / "line.csv").open() as file:
        rows = list(csv.DictReader(file))
    for setting in figure.settings:
        own = [row for row in rows if row["truth"] == setting.truth.name]
        assert {(row["run"], row["method"]) for row in own} == {
            *((str(run), method) for run in range(figure.runs) for method in setting.methods),
            *((str(run), method) for run in range(figure.beyond_runs) for method in setting.beyond),
        }
        assert len(own) == figure.runs * len(setting.methods) + figure.beyond_runs * len(setting.beyond)
    with (whole / "runs" / "line-answers.csv").open() as file:
        shown = list(csv.DictReader(file))
    for method in figure.show:  # the answers that are drawn are those of run 0
        own = [row for row in shown if row["truth"] == "binomial 100"]
        truth = [float(row["true"]) for row in own]
        distance = hb.total_variation([float(row[method]) for row in own], truth)
        told = next(r for r in rows if (r["truth"], r["run"], r["method"]) == ("binomial 100", "0", method))
        assert float(told["tv"]) == pytest.approx(distance, abs=1e-12)


def test_the_summary_agrees_with_the_tables(whole: Path) -> None:
    document = json.loads((whole / "summary.json").read_text())
    assert (document["version"], document["seed"], document["quick"]) == (1, 1, True)
    assert document["data"]["synthetic"] is True
    line = next(figure for figure in document["figures"] if figure["name"] == "line")
    with (whole / "runs" / "line.csv").open() as file:
        errors = sorted(
            float(r["tv"]) for r in csv.DictReader(file) if r["truth"] == "binomial 100" and r["method"] == "inv-n"
        )
    told = line["settings"][0]["methods"]["inv-n"]["tv"]
    assert (told["least"], told["most"], told["runs"]) == (errors[0], errors[-1], len(errors))
    assert document["claims"]
    assert all(claim["verdict"] for claim in document["claims"])


@pytest.mark.slow
def test_killed_interrupted_and_resumed_it_writes_the_same_bytes(whole: Path, tmp_path: Path) -> None:
    moments = random.Random(os.getpid())  # noqa: S311  # when, not what
    out, given = tmp_path / "out", (*FEW, "--quick")
    code, _ = stopped_after(moments.randrange(1, 4), signal.SIGKILL, *given, folder=out)
    assert code == -signal.SIGKILL
    kept = {path: path.stat().st_mtime_ns for path in (out / "work").glob("*.json")}
    code, told = stopped_after(len(kept) + 1, signal.SIGINT, *given, folder=out)
    assert code == 130, told
    assert "the same command continues there" in told
    assert "Traceback" not in told
    done = run(*given, "--processes", "1", "-o", out)
    assert done.returncode == 0, done.stderr
    assert {path: path.stat().st_mtime_ns for path in kept} == kept  # nothing was done twice
    assert content(out) == content(whole)  # whatever the number of processes


def test_figures_are_added_to_a_folder(tmp_path: Path) -> None:
    reproduce(tmp_path / "out", ["holes"], quick=True)
    results = reproduce(tmp_path / "out", ["ridge"], quick=True)
    assert [figure.name for figure in results.figures] == ["holes", "ridge"]
    page = results.folder.gallery.read_text()
    assert "figures/holes.png" in page
    assert "figures/ridge.png" in page


def test_after_a_stop_one_may_ask_for_less(tmp_path: Path) -> None:
    run = reproduce.steps(tmp_path / "out", ["holes", "general-model"], quick=True)
    next(run)
    run.close()
    results = reproduce(tmp_path / "out", ["holes"], quick=True)
    assert [figure.name for figure in results.figures] == ["holes"]


def test_what_a_killed_process_had_begun_to_write_is_in_nobodys_way(tmp_path: Path) -> None:
    reproduce(tmp_path / "out", ["holes"], quick=True)
    before = content(tmp_path / "out")
    for name in (".index.html", ".summary.json", "runs/.holes.csv", "figures/.holes.png", "work/.runs-0.json"):
        (tmp_path / "out" / f"{name}.part").write_bytes(b"half of")
    reproduce(tmp_path / "out", ["holes"], quick=True)
    assert content(tmp_path / "out") == before
    assert not list((tmp_path / "out" / "work").iterdir())


def test_a_picture_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "out" / "figures" / "holes.svg").mkdir(parents=True)
    reproduce(tmp_path / "other", ["grid"], quick=True)
    (tmp_path / "other" / "reproduce.json").rename(tmp_path / "out" / "reproduce.json")
    with pytest.raises(hb.IntakeError, match="cannot be written") as error:
        reproduce(tmp_path / "out", ["holes"], quick=True)
    assert "holes.svg" in str(error.value)


def test_another_reproduction_is_not_mixed_in(tmp_path: Path) -> None:
    reproduce(tmp_path / "out", ["holes"], quick=True)
    before = content(tmp_path / "out")
    for other in ({"seed": 2}, {"quick": False}):
        with pytest.raises(hb.IntakeError, match="another reproduction"):
            reproduce(tmp_path / "out", ["holes"], **{"quick": True, **other})  # type: ignore[arg-type]
    assert content(tmp_path / "out") == before


@pytest.mark.parametrize("mark", ["", "[]", "null", '{"figures": 5}', '{"figures": [1]}'])
def test_a_damaged_mark_is_refused(tmp_path: Path, mark: str) -> None:
    (tmp_path / "reproduce.json").write_text(mark)
    with pytest.raises(hb.IntakeError, match="another reproduction"):
        reproduce(tmp_path, ["holes"], quick=True)


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(hb.IntakeError, match="no reproduction wrote") as error:
        reproduce(tmp_path, ["holes"], quick=True)
    assert "thesis.txt" in str(error.value)
    assert content(tmp_path) == {"thesis.txt": b"mine"}


def test_two_at_once_in_one_folder(tmp_path: Path) -> None:
    process = subprocess.Popen(  # noqa: S603
        arguments(*FEW, "--quick", "-o", tmp_path / "out"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_until(lambda: (tmp_path / "out" / "work").exists(), "it never started")
    try:
        with pytest.raises(hb.IntakeError, match="another process") as error:
            reproduce(tmp_path / "out", FEW, quick=True)
        assert "another folder" in error.value.remedy
    finally:
        process.kill()
        process.wait(WAIT)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"figures": ["lines"]}, "no such figure"),
        ({"data": "a.txt", "counts": "b.csv"}, "data and counts cannot be used together"),
        ({"seed": -1}, "seed must be a whole number, 0 or more"),
        ({"zone": parse_zone("1,2,3,4")}, "a zone of the map needs points"),
        ({"processes": 0}, "processes must be a whole number, 1 or more"),
        ({"counts": "missing.csv"}, "missing.csv"),
    ],
)
def test_mistakes_get_a_message(given: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(hb.HubbubError, match=words) as error:
        reproduce(tmp_path / "out", **{"figures": ["holes"], "quick": True, **given})
    assert all((error.value.where, error.value.expected, error.value.remedy))
    assert not (tmp_path / "out").exists()


def test_mistakes_at_the_terminal_end_without_a_traceback(tmp_path: Path) -> None:
    done = hubbub("reproduce", "holes", "--zone", "1,2", "--quick", "-o", tmp_path / "out", cwd=tmp_path)
    assert done.returncode == 2
    assert "zone" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_names_of_figures_do_not_change() -> None:
    assert figure_names() == (
        "holes",
        "line",
        "ridge",
        "corner",
        "grid",
        "maps",
        "geometric",
        "laplace-exponential",
        "krr",
        "rappor",
        "rappor-epsilon",
        "error-probability",
        "general-model",
        "users",
        "iterations",
    )


def test_iterates_of_em_are_a_plain_loop_without_an_end() -> None:
    mechanism = hb.RandomizedResponse(hb.Categories(list("abc")), 1.0)
    counts = np.array([[50.0, 30.0, 20.0], [10.0, 80.0, 10.0]])
    seen = list(em_iterates(mechanism.channel(mechanism.outputs), counts, [1, 10, 10_000]))
    for count, *iterates in zip(counts, *seen, strict=True):
        theta = np.full(3, 1 / 3)
        for updates in range(1, 11):
            theta = theta * (mechanism.matrix() @ (count / 100 / (theta @ mechanism.matrix())))
            if updates in (1, 10):
                np.testing.assert_allclose(iterates[updates > 1], theta, rtol=1e-12)
        exact = hb.estimate(hb.Reports.from_counts(mechanism, count.astype(int)), "mle").probabilities
        np.testing.assert_allclose(iterates[2], exact, atol=1e-6)


MEASURE_ONE = """
import os
from pathlib import Path
from hubbub.paper.figure_specs import read_figures
from hubbub.paper.places import synthetic_place
from hubbub.paper.runner import KeptParts, measure_all
from hubbub.paper.work_units import all_parts

if __name__ == "__main__":
    place = synthetic_place()
    parts = all_parts(read_figures(["error-probability"], quick=True))[:1]
    for _ in measure_all(parts, place, 1, KeptParts(Path(".."), 1, place)):
        pass
    print("PYTHONSAFEPATH" in os.environ)
"""


def test_nothing_in_the_current_folder_is_run(tmp_path: Path) -> None:
    script, planted = tmp_path / "measure_one.py", tmp_path / "planted"
    script.write_text(MEASURE_ONE)
    planted.mkdir()
    for name in ("multiprocessing", "pickle", "signal", "numpy", "hubbub"):
        (planted / f"{name}.py").write_text(f"open('ran-{name}', 'w').close(); raise SystemExit")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    command = [sys.executable, str(script)]
    done = subprocess.run(command, cwd=planted, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    assert not list(planted.glob("ran-*"))
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr
    assert list(tmp_path.glob("guesses-*.json"))


@pytest.mark.slow
def test_the_path_of_em_is_measured_at_every_stop(tmp_path: Path) -> None:
    done = run("iterations", "--quick", "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    (table,) = (tmp_path / "out").rglob("iterations*.csv")
    rows = csv.DictReader(table.read_text(encoding="utf-8").splitlines())
    ends: dict[tuple[str, ...], int] = {}
    for row in rows:
        if row["updates"] and not row["method"]:
            setting = (row["mechanism"], row["epsilon"], row["run"])
            ends[setting] = max(ends.get(setting, 0), int(row["updates"]))
    assert len(set(ends.values())) == 1  # also where EM comes to rest early


@pytest.mark.slow
def test_everything_killed_five_times_writes_the_same_bytes(tmp_path: Path) -> None:
    assert run("--quick", "-o", tmp_path / "whole").returncode == 0
    moments = random.Random(os.getpid())  # noqa: S311  # another one each time
    for _ in range(5):
        have = len(list((tmp_path / "out").glob("work/*.json")))
        stopped_after(have + moments.randrange(1, 8), signal.SIGKILL, "--quick", folder=tmp_path / "out")
    assert run("--quick", "-o", tmp_path / "out").returncode == 0
    assert content(tmp_path / "out") == content(tmp_path / "whole")
