"""How hubbub's maximum likelihood compares with other tools, on the same problems, in one run.

The others are mixsqp (an R package, used where Rscript finds it), qif and multi-freq-ldpy (each in an environment of
its own, made once under `--folder`). Each runs in a process of its own with the same number of threads, and only the
call is timed. What a tool says about its answer is shown but not believed: the gap is computed here, from the matrix.

Run: python benchmarks/peers.py [--counts FILE] [--folder DIR] [--problems NAME ...] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path

import numpy as np

import hubbub as hb
from measure import save
from problems import Floats, Problem, city, gap, line, normal_mixture

RUNNERS = Path(__file__).parent / "peers"
THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
FLOOR = 1e-16
TIGHT = 1e-13  # a second row of hubbub, for tools that are tuned to go as far as floats allow
STARTING = 30.0  # seconds for a process to start and to read the problem
HUBBUB_PATIENCE = 30.0  # seconds after which hubbub's runs are not repeated further


@dataclass(frozen=True)
class Row:
    """One tool with one setting on one problem; None where there is no such number."""

    problem: str
    tool: str
    settings: str
    verdict: str
    seconds: float | None = None
    first_seconds: float | None = None
    gap: float | None = None
    log_likelihood: float | None = None
    below_best: float | None = None
    seconds_ratio: float | None = None
    gap_ratio: float | None = None
    gap_ratio_is_a_bound: bool = False


@dataclass(frozen=True)
class Peer:
    """Another tool: the command that runs it, or the reason why there is none, and its modes."""

    name: str
    command: tuple[str, ...]
    runner: str
    modes: tuple[str, ...]
    about: str
    missing: str = ""


@dataclass(frozen=True)
class Settings:
    """What holds for all tools of a run."""

    threads: int
    repeats: int
    long: float
    limit: float


def randomized_response(size: int = 100, epsilon: float = 2.0, users: int = 100_000, seed: int = 0) -> Problem:
    """Binomial values with k-RR: a symmetric matrix, which is all that multi-freq-ldpy is made for."""
    rng = np.random.default_rng(seed)
    mechanism = hb.RandomizedResponse(hb.Integers(0, size - 1), epsilon)
    outputs = np.asarray(mechanism.privatize(rng.binomial(size - 1, 0.5, users), rng=rng))
    reports = hb.Reports.from_outputs(mechanism, outputs)
    counts = np.bincount(outputs.astype(np.int64), minlength=size).astype(np.float64)
    return Problem(f"k-RR {size} x {size}", reports, mechanism.matrix(), counts)


def find_mixsqp() -> Peer:
    """Look for R with mixsqp; the name of the linear algebra library matters for its speed."""
    blank = Peer("mixsqp", (), "run_mixsqp.R", ("defaults", "strict", "strict-em"), "")
    program = shutil.which("Rscript")
    if program is None:
        return replace(blank, missing="no Rscript here")
    asked = 'cat(as.character(packageVersion("mixsqp")), "with R", as.character(getRversion()),'
    asked += ' "and", basename(La_library()))'
    answer = quiet([program, "-e", asked])
    if answer.returncode != 0:
        return replace(blank, missing="R has no package mixsqp")
    return replace(blank, command=(program,), about=answer.stdout.strip())


def find_package(folder: Path, name: str, runner: str, requirements: tuple[str, ...]) -> Peer:
    """Return a tool in its own environment, made if it is not there yet."""
    blank = Peer(name, (), runner, ("defaults", "longer"), "")
    home = folder / name
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    question = [str(python), "-c", f"from importlib.metadata import version as v; print(v({name!r}), v('numpy'))"]
    if not python.exists() or quiet(question).returncode != 0:
        print(f"making an environment for {name} ...", file=sys.stderr)
        shutil.rmtree(home, ignore_errors=True)
        steps = (
            [sys.executable, "-m", "venv", str(home)],
            [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements],
        )
        for step in steps:
            done = quiet(step)
            if done.returncode != 0:
                shutil.rmtree(home, ignore_errors=True)
                return replace(blank, missing=last_line(done.stderr or done.stdout))
    answer = quiet(question)
    if answer.returncode != 0:
        return replace(blank, missing=last_line(answer.stderr))
    own, numpy = answer.stdout.split()
    return replace(blank, command=(str(python),), about=f"{own} with numpy {numpy}")


def quiet(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command and keep what it says; one that cannot start has failed."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    except OSError as error:
        return subprocess.CompletedProcess(command, 1, "", str(error))


def last_line(text: str) -> str:
    """Return the last line that says something."""
    lines = [text_line.strip() for text_line in text.splitlines() if text_line.strip()]
    return lines[-1] if lines else "no reason given"


def run_hubbub(problem: Problem, settings: Settings, tol: float | None = None) -> Row:
    """Time the first call, then the median of several more."""
    words = 'method="mle"' + (f", tol={tol:g}" if tol else "")
    times: list[float] = []
    try:
        while len(times) <= settings.repeats and sum(times) < HUBBUB_PATIENCE:
            start = time.perf_counter()
            answer = hb.estimate(problem.reports, method="mle", tol=tol)
            times.append(time.perf_counter() - start)
    except Exception as error:  # a broken tool is a row like any other
        return Row(problem.name, "hubbub", words, f"failed: {error}")
    row = Row(problem.name, "hubbub", words, answer.status, statistics.median(times[1:] or times), times[0])
    return judged(row, problem, answer.probabilities)


def run_peer(peer: Peer, mode: str, problem: Problem, data: Path, settings: Settings) -> Row:
    """Run another tool in a process of its own."""
    row = Row(problem.name, peer.name, mode, "")
    if peer.missing:
        return replace(row, settings="", verdict=f"not available: {peer.missing}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [*peer.command, str(RUNNERS / peer.runner), str(data), name, mode]
        command += [str(settings.repeats), str(settings.long)]
        try:
            done = subprocess.run(  # noqa: S603
                command, capture_output=True, text=True, check=False, timeout=settings.limit + STARTING
            )
        except subprocess.TimeoutExpired:
            return replace(row, verdict=f"no answer within {settings.limit:g} s")
        if done.returncode != 0:
            return replace(row, verdict=f"failed: {last_line(done.stderr)}")
        lines = (folder / "facts").read_text(encoding="utf-8").splitlines()
        facts = dict(fact.split(": ", 1) for fact in lines)
        if "refused" in facts:
            return replace(row, settings="", verdict=f"not applicable: {facts['refused']}")
        probabilities = np.fromfile(folder / "probabilities")
    seconds, first = float(facts["seconds"]), float(facts["first"])
    row = Row(problem.name, peer.name, facts["settings"], facts["verdict"], seconds, first)
    return judged(row, problem, probabilities)


def run_modes(peer: Peer, problem: Problem, data: Path, settings: Settings) -> list[Row]:
    """Run another tool as it comes, then with its other settings as long as it can take the problem."""
    rows: list[Row] = []
    for mode in peer.modes:
        print(f"{problem.name}: {peer.name}, {mode} ...", file=sys.stderr, flush=True)
        row = run_peer(peer, mode, problem, data, settings)
        refused = row.verdict.startswith("not ")
        if not refused or not rows:
            rows.append(row)
        if refused:
            break
    return rows


def judged(row: Row, problem: Problem, probabilities: Floats) -> Row:
    """Add the certified gap and the mean log-likelihood, both from the bare matrix."""
    if not np.all(np.isfinite(probabilities)):
        return replace(row, verdict=f"{row.verdict}; the answer is not finite")
    theta = np.maximum(probabilities, 0.0)
    sent = problem.counts > 0
    weights = problem.counts[sent] / problem.counts.sum()
    height = float(weights @ np.log((theta / theta.sum()) @ problem.matrix[:, sent]))
    return replace(row, gap=gap(problem, probabilities), log_likelihood=height)


def compared(rows: list[Row]) -> list[Row]:
    """Add to the rows of one problem how they stand against hubbub's row, the first, and against the best."""
    ours = rows[0]
    best = max((row.log_likelihood for row in rows if row.log_likelihood is not None), default=0.0)
    result = []
    for row in rows:
        if row.log_likelihood is not None:
            row = replace(row, below_best=best - row.log_likelihood)
        if row.seconds is not None and ours.seconds is not None:
            row = replace(row, seconds_ratio=row.seconds / ours.seconds)
        if row.gap is not None and ours.gap is not None:
            floored = max(row.gap, FLOOR) / max(ours.gap, FLOOR)
            row = replace(row, gap_ratio=floored, gap_ratio_is_a_bound=ours.gap < FLOOR < row.gap)
        result.append(row)
    return result


def write_problem(problem: Problem, folder: Path) -> None:
    """Write the problem as raw numbers, as described in peers/exchange.py."""
    np.array(problem.matrix.shape, dtype=np.int32).tofile(folder / "size")
    np.ascontiguousarray(problem.matrix, dtype=np.float64).tofile(folder / "matrix")
    np.ascontiguousarray(problem.counts, dtype=np.float64).tofile(folder / "counts")


HEAD = ("tool", "settings", "seconds", "first", "gap", "below best", "time ratio", "gap ratio", "its own verdict")


def cells(row: Row) -> tuple[str, ...]:
    """Return a row as texts, in the order of HEAD."""
    ratio = number(row.gap_ratio, ".3g")
    return (
        row.tool,
        row.settings,
        number(row.seconds, ".4f"),
        number(row.first_seconds, ".4f"),
        number(row.gap, ".2e"),
        number(row.below_best, ".1e"),
        number(row.seconds_ratio, ".3g"),
        f"more than {ratio}" if row.gap_ratio_is_a_bound else ratio,
        row.verdict,
    )


def show(rows: list[Row]) -> None:
    """Print the rows of one problem as a table."""
    table = [HEAD, *(cells(row) for row in rows)]
    widths = [max(len(texts[column]) for texts in table) for column in range(len(HEAD))]
    print(f"\n{rows[0].problem}")
    for texts in table:
        pairs = list(zip(texts, widths, strict=True))
        left = [text.ljust(width) for text, width in pairs[:2]]
        right = [text.rjust(width) for text, width in pairs[2:-1]]
        print("  " + "  ".join([*left, *right, texts[-1]]))


def number(value: float | None, form: str) -> str:
    """Return the number as text, or a dash."""
    return "-" if value is None else format(value, form)


def header(peers: list[Peer], settings: Settings) -> dict[str, str]:
    """Return what a reader must know to weigh the numbers."""
    facts = {
        "cores": str(os.cpu_count()),
        "threads": f"{settings.threads} for each tool ({', '.join(THREAD_VARIABLES)})",
        "python": platform.python_version(),
        "hubbub": f"{version('hubbub')} with numpy {version('numpy')}, scipy {version('scipy')}",
    }
    return facts | {peer.name: peer.about or f"not available: {peer.missing}" for peer in peers}


def set_threads(threads: int) -> None:
    """Start this program again with the number of threads set, since numpy reads it while it loads."""
    wanted = dict.fromkeys(THREAD_VARIABLES, str(threads))
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ | wanted)  # noqa: S606


def main() -> None:
    """Run all tools on all problems that were asked for."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--counts", type=Path, help="San Francisco's counts: a file with columns x, y, count")
    parser.add_argument("--folder", type=Path, default=cache / "hubbub-peers", help="where the environments are made")
    names = ("line-100", "city", "line-1000", "normal-mixture", "k-rr")
    parser.add_argument("--problems", nargs="+", choices=names, default=names, help="which problems, all unless told")
    parser.add_argument("--json", type=Path, help="write the rows to this file too")
    parser.add_argument("--threads", type=int, default=2, help="threads of each tool")
    parser.add_argument("--repeats", type=int, default=5, help="runs after the first, for tools that are quick")
    parser.add_argument("--long", type=float, default=60.0, help="seconds given to tools that are let run longer")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds after which a tool is stopped")
    options = parser.parse_args()
    set_threads(options.threads)
    settings = Settings(options.threads, options.repeats, options.long, options.limit)
    makers: dict[str, Callable[[], Problem]] = {
        "line-100": lambda: line(100),
        "city": lambda: city(options.counts),
        "line-1000": lambda: line(1000),
        "normal-mixture": normal_mixture,
        "k-rr": randomized_response,
    }
    peers = [
        find_mixsqp(),
        find_package(options.folder, "qif", "run_qif.py", ("qif==1.6.0",)),
        # It does not name scipy, which its update needs, and its hashing breaks with xxhash 4.
        find_package(
            options.folder,
            "multi-freq-ldpy",
            "run_multi_freq_ldpy.py",
            ("multi-freq-ldpy==0.2.5", "scipy", "xxhash<4"),
        ),
    ]
    facts = header(peers, settings)
    for name, text in facts.items():
        print(f"{name + ':':<17}{text}")
    print(
        "gap: certified, in nats per user, from the bare matrix; below best: mean log-likelihood under the best row's"
    )
    print("ratios: this row's number over hubbub's; a dash: no such number", flush=True)
    everything: list[Row] = []
    for name in options.problems:
        problem = makers[name]()
        with tempfile.TemporaryDirectory() as folder:
            write_problem(problem, Path(folder))
            rows = [run_hubbub(problem, settings), run_hubbub(problem, settings, TIGHT)]
            for peer in peers:
                rows += run_modes(peer, problem, Path(folder), settings)
        rows = compared(rows)
        show(rows)
        sys.stdout.flush()
        everything += rows
        save("peers", [{"problem": row.problem} | dict(zip(HEAD, cells(row), strict=True)) for row in everything])
        if options.json is not None:
            document = {"header": facts, "rows": [asdict(row) for row in everything]}
            options.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
