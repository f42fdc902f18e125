"""A cluster: RAPPOR, 500 values, 2,000,000 users on one and two workers of one thread each, and what travels.

Run: python benchmarks/cluster.py (needs the extra `cluster`)

The scheduler and the workers are processes of their own on this machine, and everything between them goes through TCP
on its loopback. One process without a cluster, one worker and two are timed in turn, with one thread for each.
"""

from __future__ import annotations

import os

# Before anything is loaded: the process without a cluster has one thread as well.
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial, reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np

import hubbub as hb
from hubbub.cluster import ClusterReports, connect
from hubbub.likelihood import Likelihood
from measure import in_turn, row, save, seconds

sys.path.append(str(Path(__file__).parent.parent / "tests"))  # the tests start clusters of processes, too
from clusters import Cluster, received_everywhere  # type: ignore[import-not-found]

VALUES, USERS, EPSILON = 500, 2_000_000, 2.0
PARTS = 4
ITERATIONS, REPEATS = 4, 3  # timed runs of a few accelerated iterations: three evaluations each, and one at the start
FEW, MANY = 25_000, 500_000  # users of all parts together, for what travels
HERE = Path(__file__).parent


def load(number: int, users: int) -> hb.Reports:
    """Simulate one part: users with a skewed distribution."""
    rng = np.random.default_rng(number)
    mechanism = hb.Rappor(hb.Integers(0, VALUES - 1), EPSILON)
    truth = np.minimum(rng.geometric(0.01, users), VALUES) - 1
    return hb.Reports.from_outputs(mechanism, mechanism.privatize(truth, rng=rng))


@contextmanager
def running(workers: int, threads: int = 1) -> Iterator[Any]:
    """Yield a client of a cluster of processes."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    with (
        tempfile.TemporaryDirectory() as folder,
        Cluster(Path(folder), workers, threads) as cluster,
        connect(cluster.address, timeout=60) as client,
    ):
        client.wait_for_workers(workers, timeout=60)
        yield client


def scattered(client: Any, users: int, parts: int = PARTS) -> ClusterReports:
    """Let the workers simulate, and evaluate once: channels and compiled loops are there then."""
    from cluster import load as importable  # by a name that workers can import

    reports = ClusterReports.from_tasks(client, partial(importable, users=users // parts), range(parts))
    reports.evaluate(uniform())
    return reports


def uniform() -> Any:
    """Return the start."""
    return np.full(VALUES, 1.0 / VALUES)


def iterations(reports: Any) -> hb.Estimate:
    """Make some accelerated iterations."""
    return hb.estimate(reports, "mle", solver="accelerated em", max_iter=ITERATIONS, tol=1e-15)


def again_and_again(part: Any, times: int) -> None:
    """Evaluate one part on its worker, without a word to anybody."""
    for _ in range(times):
        part.likelihood.at(uniform()).sums()


def apart(client: Any, reports: ClusterReports, workers: int) -> None:
    """Let some workers evaluate one part each, as often as in the iterations: nobody waits for anybody."""
    from cluster import again_and_again as importable

    places = client.who_has(reports._held)
    chosen = {places[held.key][0]: held for held in reports._held}
    times = (3 * ITERATIONS + 1) * PARTS // 2
    tasks = [
        client.submit(importable, held, times, workers=[home], pure=False)
        for home, held in sorted(chosen.items())[:workers]
    ]
    client.gather(tasks)


def travelled(client: Any, reports: ClusterReports, times: int = 20) -> float:
    """Return the bytes received by anybody for one evaluation, without those for asking."""
    asked = [received_everywhere(client) for _ in range(3)]
    for _ in range(times):
        reports.evaluate(uniform())
    return float((received_everywhere(client) - asked[2] - (asked[2] - asked[0]) / 2) / times)


def speed() -> list[dict[str, Any]]:
    """Time one process, one worker and two in turn."""
    problem = f"RAPPOR, {VALUES:,} values, {USERS:,} users"
    own = reduce(add, (load(number, USERS // PARTS) for number in range(PARTS)))
    with running(1) as one, running(2) as two, running(1, threads=2) as threaded:
        remote = [scattered(client, USERS) for client in (one, two, threaded)]
        everywhere: list[hb.Reports | ClusterReports] = [own, *remote]
        found = [iterations(reports) for reports in everywhere]
        free = [partial(apart, two, remote[1], workers) for workers in (1, 2)]
        times = in_turn([*(partial(iterations, reports) for reports in everywhere), *free], REPEATS)
    alone, single, double, both = (spent / ITERATIONS for spent in times[:4])
    ceiling = 2 * times[4] / times[5]
    differ = max(float(np.abs(other.probabilities - found[0].probabilities).max()) for other in found[1:])
    likelihood = Likelihood.of(own)
    evaluation, _ = seconds(lambda: likelihood.at(uniform()).sums(), REPEATS)
    return [
        row(
            problem,
            "accelerated iteration: one worker / two",
            f"{single:.2f} / {double:.2f} s = {single / double:.2f}",
            "80% of the next line",
            holds=single >= 0.8 * ceiling * double,
        ),
        row(
            problem,
            "what two processes do that never wait / one",
            f"{ceiling:.2f} times",
            "shown: 2 where two cores are free",
            holds=True,
        ),
        row(
            problem,
            "one worker of one thread / of two threads",
            f"{single:.2f} / {both:.2f} s = {single / both:.2f}",
            "shown",
            holds=True,
        ),
        row(
            problem,
            "accelerated iteration: one process / one worker",
            f"{alone:.2f} / {single:.2f} s",
            "shown; a worker adds up gradients at three points, a process at two",
            holds=True,
        ),
        row(
            problem,
            "largest difference of the estimates",
            f"{differ:.0e}",
            "<= 1e-10",
            holds=differ <= 1e-10,
        ),
        row(
            problem,
            "one evaluation, for each report and core",
            f"{1e9 * evaluation / USERS:.0f} ns",
            "shown: the cost model's first number",
            holds=True,
        ),
    ]


def network() -> list[dict[str, Any]]:
    """Measure what travels for an evaluation, and what it costs where there is next to nothing to compute."""
    with running(2) as client:
        few, many = (travelled(client, scattered(client, users)) for users in (FEW, MANY))
        empty = [scattered(client, 10 * parts, parts) for parts in (2, 8, 32)]
        small = in_turn([partial(reports.evaluate, uniform()) for reports in empty], 15)
        wide = travelled(client, empty[2])
    each = (small[2] - small[0]) / 30
    size = f"{VALUES:,} values, {PARTS} parts on two workers"
    kept = MANY * (VALUES // 8 + 1)
    return [
        row(
            size,
            f"bytes for one evaluation: {FEW:,} / {MANY:,} users",
            f"{few:,.0f} / {many:,.0f} = {many / few:.2f}",
            "the same (within a fifth)",
            holds=abs(many / few - 1) < 0.2,
        ),
        row(
            size,
            f"bytes for one evaluation / of {MANY:,} reports",
            f"{many:,.0f} / {kept:,.0f}",
            "under a hundredth",
            holds=100 * many < kept,
        ),
        row(
            f"{VALUES:,} values on two workers",
            "bytes for one evaluation, for each further part",
            f"{(wide - many) / (32 - PARTS):,.0f}",
            "shown: the cost model's second number",
            holds=True,
        ),
        row(
            "ten reports in each part, two workers",
            "one evaluation of 2 / 8 / 32 parts",
            " / ".join(f"{1e3 * spent:.0f}" for spent in small) + " ms",
            "shown",
            holds=True,
        ),
        row(
            "ten reports in each part, two workers",
            "for each further part",
            f"{1e3 * each:.1f} ms",
            "shown: the cost model's third number",
            holds=True,
        ),
    ]


def main() -> None:
    """Print and keep the rows."""
    save("cluster", [*speed(), *network()])


if __name__ == "__main__":
    main()
