"""Measuring side by side: times, memory of a fresh process, and rows that end up in docs/reference/benchmarks.md."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import resource
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

Task = TypeVar("Task")
RESULTS = Path(__file__).parent / "results"
ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def seconds(function: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """Return the median time of some calls, and what the last one gave."""
    times, result = [], None
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - start)
    return float(np.median(times)), result


def in_turn(functions: list[Callable[[], Any]], repeats: int) -> list[float]:
    """Return the median times of several functions called in turn, so that a busy machine hits all of them alike."""
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(repeats):
        for own, function in zip(times, functions, strict=True):
            time.sleep(0.05)  # threads of the last one may still wait for work, spinning
            start = time.perf_counter()
            function()
            own.append(time.perf_counter() - start)
    return [float(np.median(own)) for own in times]


def peak_mib() -> float:
    """Return the largest memory that this process has had, in MiB.

    What `getrusage` says includes the memory of the process that started this one, up to the moment it did: on Linux
    the kernel's own record of this program is used.
    """
    status = Path("/proc/self/status")
    if status.exists():
        peak = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return float(peak.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def apart(function: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """Run a function in a fresh process, so that its peak memory is its own; add that to what it returns."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_with_peak, (function, arguments))


def _with_peak(function: Callable[..., dict[str, Any]], arguments: tuple[Any, ...]) -> dict[str, Any]:
    found = function(*arguments)
    return {**found, "peak MiB": peak_mib()}


def side_by_side(
    function: Callable[[Task], dict[str, Any]], tasks: list[Task], jobs: int, what: str
) -> Iterator[dict[str, Any]]:
    """Give what a function finds for each task, as it is done by some processes, and show how far it is."""
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))  # read by the processes that are started here
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    with Progress(TextColumn(what), *columns) as progress, multiprocessing.get_context("spawn").Pool(jobs) as pool:
        shown = progress.add_task("", total=len(tasks))
        for found in pool.imap_unordered(function, tasks):
            yield found
            progress.advance(shown)


def study_parser(doc: str | None, runs: int) -> argparse.ArgumentParser:
    """Return the parser of a study of coverage: how often each setting is simulated, and which settings are."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--runs", type=int, default=runs)
    parser.add_argument("--only", default="", help="settings whose name begins so; other rows are kept as they are")
    parser.add_argument("--counts", type=Path, help="the paper's counts of San Francisco: columns x, y, count")
    return parser


def row(problem: str, measured: str, reached: str, asked: str, *, holds: bool) -> dict[str, Any]:
    """Return one line of the table of results."""
    print(f"{'ok ' if holds else 'NOT'}  {problem:<34} {measured:<44} {reached:<36} asked: {asked}", flush=True)
    return {"problem": problem, "measured": measured, "reached": reached, "asked": asked, "holds": holds}


def save(name: str, rows: list[dict[str, Any]]) -> None:
    """Keep the rows for docs/reference/benchmarks.md, each with the command and the machine that measured it.

    Rows of earlier runs keep their own. Where those are not known, they are None, so that no later run claims the row.
    """
    RESULTS.mkdir(exist_ok=True)
    run = {"command": _command(), "machine": _machine()}
    kept = [one if "command" in one else {**one, **run} for one in rows]
    (RESULTS / f"{name}.json").write_text(json.dumps({"rows": kept}, indent=1))


def save_merged(name: str, rows: list[dict[str, Any]]) -> None:
    """Keep the rows, in the place of older ones about the same problems, and those of other problems."""
    renewed: dict[str, list[dict[str, Any]]] = {}
    for one in rows:
        renewed.setdefault(one["problem"], []).append(one)
    problems, merged = set(renewed), []
    for one in stored_rows(name):
        merged += renewed.pop(one["problem"], []) if one["problem"] in problems else [one]
    save(name, [*merged, *(one for own in renewed.values() for one in own)])


def stored_rows(name: str) -> list[dict[str, Any]]:
    """Return the rows that were kept before, each with the command and the machine that measured it."""
    path = RESULTS / f"{name}.json"
    rows: list[dict[str, Any]] = json.loads(path.read_text())["rows"] if path.exists() else []
    return rows


def _machine() -> str:
    """Return what the times of a run depend on."""
    libraries = ", ".join(f"{library} {version(library)}" for library in ("numpy", "scipy", "numba"))
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {libraries}"


def _command() -> str:
    """Return how this was called, without folders of this machine."""
    words = ["FILE" if "/" in word else word for word in sys.argv[1:]]
    return shlex.join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *words])


def counts_argument(description: str | None) -> Path | None:
    """Read the one option that several benchmarks share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--counts", type=Path, help="the paper's counts of San Francisco: columns x, y, count")
    counts: Path | None = parser.parse_args().counts
    return counts
