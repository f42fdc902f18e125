"""`benchmark`: mechanisms and estimators of one's own against all that are here, by simulated studies."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

import numpy as np

from hubbub.benchmarking.contenders import (
    MethodChoice,
    RunRow,
    Setup,
    mechanism_key,
    message_of,
    method_key,
    truth_key,
)
from hubbub.benchmarking.paired_draws import CandidateDraws, drawn_reports
from hubbub.benchmarking.result import Benchmark, cells_of
from hubbub.benchmarking.run_store import RunStore
from hubbub.benchmarking.validation import (
    check_candidates,
    check_drawable,
    check_methods,
    check_numbers,
    check_runs,
    check_seed,
    check_truths,
)
from hubbub.core.arrays import Floats
from hubbub.core.progress import Progress, stepwise
from hubbub.domains import Domain
from hubbub.estimators import estimate
from hubbub.metrics import earth_mover_distance
from hubbub.planning.candidates import Candidate
from hubbub.planning.parallel import Task, run_parallel
from hubbub.reports import Reports
from hubbub.sampling import Randomness

MAX_TASKS = 400  # pieces of work: enough for all processors to end together
MAX_CELLS_EMD = 1_000  # of a map up to which earth mover's distances are computed
STORE_SECONDS = 2.0  # between two files of finished runs
FORMAT = 1

Done = Callable[[Sequence[RunRow]], None]
CandidateKey = tuple[str, float | None, int]


class Bench(NamedTuple):
    """What all runs of a benchmark share."""

    methods: tuple[MethodChoice, ...]
    draws: Mapping[CandidateKey, CandidateDraws]
    keys: Mapping[CandidateKey, str]  # of the mechanisms in the rows
    seed: int


@stepwise
def benchmark(
    mechanisms: object,
    methods: object = "auto",
    truths: object = "uniform",
    users: object = 10_000,
    runs: int = 20,
    *,
    domain: Domain | None = None,
    epsilon: object = None,
    radius: float | None = None,
    rng: Randomness = None,
    path: object = None,
) -> Generator[Progress, None, Benchmark]:
    """Compare mechanisms and estimators by simulated studies: each mechanism, method, truth and number of users.

    Each of these cells is simulated `runs` times, from drawing users to the estimate, and the distance from the
    estimate to the truth is recorded. Runs are paired: in run r all methods get the same reports, and all mechanisms
    report the same users' values, so that differences are far more precise than errors. What is drawn depends on the
    seed and on the cell alone: adding a row changes no other. A method that fails is recorded with its message.
    ``benchmark.steps(...)`` yields progress.

    Parameters
    ----------
    mechanisms : Mechanism, list, mapping, class or str
        As in `plan`: mechanisms, also of your own, or kinds with `domain` and `epsilon`; "all", also inside a list,
        stands for all kinds that the domain allows, those of `register_mechanism` included.
    methods : str, list or mapping, default "auto"
        Methods of `estimate`, also those of `register_estimator`: a name, a list of names, "all" for all of hubbub's,
        or {label: name} with (name, {keyword: value}) for keywords.
    truths : str, array, mapping, Estimate or list of these, default "uniform"
        The distributions to draw from, as in `plan`; or {name: truth}.
    users : int or list of int, default 10000
        One or several numbers of users.
    runs : int, default 20
        How often each cell is simulated, at least 2.
    domain : Domain, optional
        For kinds: the domain of the values.
    epsilon : float or list of float, optional
        For kinds: one or several plain epsilons, as in `plan`.
    radius : float, optional
        The distance over which epsilon per unit counts as plain epsilon; left out, the domain's diameter.
    rng : int or numpy.random.Generator, optional
        A seed or generator; left out, a fixed and recorded seed.
    path : str or Path, optional
        A folder that keeps finished runs as JSON lines. A later call goes on where one ended, and takes from the
        folder what it has of other mechanisms, methods, truths, users and runs as well; what failed, and code of your
        own that has changed, is run again. Another domain, seed or version is refused.

    Returns
    -------
    Benchmark
        All cells, as tables, a picture, sentences and JSON.

    Raises
    ------
    SettingError
        If an argument has a wrong value, `path` holds runs of another domain, seed or version, or runs are to be kept
        of code that cannot be told apart from a changed one.
    MechanismError
        If a kind cannot be built over the domain with that epsilon.
    IntakeError
        If the folder cannot be read or written, or another process writes to it.

    Examples
    --------
    >>> import hubbub as hb
    >>> def halfway(reports):  # an estimator of your own: halfway from equal shares to the maximum
    ...     return 0.5 * hb.estimate(reports, "mle").probabilities + 0.5 / len(reports.domain)
    >>> hb.register_estimator("halfway", halfway)
    >>> coin = hb.RandomizedResponse(hb.Categories(["a", "b", "c"]), epsilon=1.0)
    >>> result = hb.benchmark(coin, ["mle", "halfway"], "zipf", users=1_000, runs=10)
    >>> result.to_frame()[["method", "tv_mean", "tv_error"]].round(4)
        method  tv_mean  tv_error
    0      mle   0.0401    0.0064
    1  halfway   0.1099    0.0056
    """
    candidates = check_candidates(mechanisms, domain, epsilon, radius)
    over = candidates[0].domain
    assumed = check_truths(truths, over)
    counts, times = check_numbers(users), check_runs(runs)
    bench = _bench(candidates, check_methods(methods), check_seed(rng, path), is_kept=path is not None)
    setups = [Setup(each, truth, number) for each in candidates for truth in assumed for number in counts]
    check_drawable(setups, bench.draws)
    settings = {"format": FORMAT, "hubbub": _version(), "domain": over.content_key, "seed": bench.seed}
    with nullcontext() if path is None else RunStore.opened(path, settings) as store:
        rows = {row.place: row for row in (() if store is None else store.rows())}
        finished: deque[RunRow] = deque()
        tasks = _tasks(bench, setups, times, rows, finished.extend)
        try:
            saved = time.monotonic()
            for step in _progress(tasks):
                yield step
                if time.monotonic() > saved + STORE_SECONDS:
                    _keep(finished, rows, store)
                    saved = time.monotonic()
        finally:  # also what was finished before somebody stopped it
            _keep(finished, rows, store)
    return Benchmark(over, bench.seed, times, cells_of(setups, bench.methods, bench.keys, times, rows))


def _bench(candidates: Sequence[Candidate], methods: Sequence[MethodChoice], seed: int, *, is_kept: bool) -> Bench:
    """Return what all runs share; only runs that a later call may find need keys that say what the code is."""
    draws = {each.key: CandidateDraws(each) for each in candidates}
    keys = {each.key: mechanism_key(each) if is_kept else str(place) for place, each in enumerate(candidates)}
    keyed = (replace(each, key=method_key(each) if is_kept else str(place)) for place, each in enumerate(methods))
    return Bench(tuple(keyed), draws, keys, seed)


def _progress(tasks: Sequence[Task[None]]) -> Generator[Progress, None, None]:
    if tasks:
        yield from run_parallel(tasks)


def _keep(finished: deque[RunRow], rows: dict[tuple[str, str, str, int, int], RunRow], store: RunStore | None) -> None:
    taken = [finished.popleft() for _ in range(len(finished))]
    rows.update({row.place: row for row in taken})
    if store is not None:
        store.add(taken)


def _version() -> str:
    """Return the version of hubbub, whose estimates these are; empty where it was copied without what names it."""
    try:
        return version("hubbub")
    except PackageNotFoundError:
        return ""


# -- the work ----------------------------------------------------------------------------------------------


def _tasks(
    bench: Bench, setups: Iterable[Setup], runs: int, known: Collection[tuple[str, str, str, int, int]], done: Done
) -> list[Task[None]]:
    """Return the runs that are missing, in pieces; each piece hands on what it finishes."""
    missing = []
    for setup in setups:
        key, truth = bench.keys[setup.candidate.key], truth_key(setup.truth)
        for run in range(runs):
            place = (truth, setup.users, run)
            methods = tuple(each for each in bench.methods if (key, each.key, *place) not in known)
            if methods:
                missing.append((setup, run, methods))
    size = max(1, -(-len(missing) // MAX_TASKS))

    def task(piece: Sequence[tuple[Setup, int, tuple[MethodChoice, ...]]]) -> Task[None]:
        def work(report: Callable[[float], None]) -> None:
            for number, (setup, run, methods) in enumerate(piece):
                report(number / len(piece))
                done(list(_run(bench, setup, run, methods)))

        return Task(
            work, float(sum(setup.users**0.5 * len(methods) for setup, _, methods in piece)), piece[0][0].description
        )

    return [task(missing[start : start + size]) for start in range(0, len(missing), size)]


def _run(bench: Bench, setup: Setup, run: int, methods: Sequence[MethodChoice]) -> Iterable[RunRow]:
    """Simulate one study and estimate it by each method."""
    draws, key = bench.draws[setup.candidate.key], bench.keys[setup.candidate.key]
    rows = [RunRow(key, each.key, truth_key(setup.truth), setup.users, run) for each in methods]
    if draws.failure:
        return [replace(row, failure=draws.failure) for row in rows]
    try:
        reports = drawn_reports(setup, draws, run, bench.seed)
    except Exception as error:  # a mechanism of one's own may fail in its own way
        return [replace(row, failure=message_of(error)) for row in rows]
    return [_estimated(reports, each, setup, row) for each, row in zip(methods, rows, strict=True)]


def _estimated(reports: Reports, method: MethodChoice, setup: Setup, row: RunRow) -> RunRow:
    """Return the row of one estimate; what reports remember is made anew for each, so that all times mean the same."""
    fresh = Reports(reports.domain, reports.blocks)
    start = time.thread_time()
    try:
        estimated = estimate(fresh, method.method, **dict(method.keywords))  # type: ignore[arg-type]
    except Exception as error:  # an estimator of one's own may fail in its own way
        return replace(row, failure=message_of(error))
    seconds = time.thread_time() - start
    shares, truth = estimated.probabilities, setup.truth.probabilities
    tv = float(np.abs(shares - truth).sum() / 2)
    emd = _earth_mover(shares, truth, reports.domain) if estimated.is_distribution else None
    return replace(row, tv=tv, emd=emd, seconds=seconds)


def _earth_mover(shares: Floats, truth: Floats, domain: Domain) -> float | None:
    if domain.is_equidistant or (domain.places is None and len(domain) > MAX_CELLS_EMD):
        return None
    return earth_mover_distance(shares, truth, domain)
