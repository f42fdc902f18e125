"""Planar geometric noise on 512 x 512 cells, a million users: one EM update against FFTs, memory, the maximum.

Run: python benchmarks/planar.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import fft

import hubbub as hb
from hubbub.core.progress import Progress, finish
from hubbub.core.threads import processors
from hubbub.estimators import estimate
from hubbub.likelihood import Likelihood
from hubbub.solvers import SolverProgress
from measure import apart, in_turn, row, save, seconds

SIDE, USERS, EPSILON, CELL = 512, 1_000_000, 2.0, 0.1  # epsilon per km, cells of 100 m: noise of 10 cells on average
PADDED = 2 * SIDE


def collect() -> hb.Reports:
    """Simulate a city of forty quarters."""
    rng = np.random.default_rng(0)
    grid = hb.Grid(SIDE, SIDE, cell=CELL)
    mechanism = hb.PlanarGeometric(grid, EPSILON)
    centres, spreads = rng.uniform(0, SIDE, (40, 2)), rng.uniform(0.01 * SIDE, 0.06 * SIDE, 40)
    quarter = rng.choice(40, USERS, p=rng.dirichlet(np.ones(40)))
    places = centres[quarter] + rng.normal(size=(USERS, 2)) * spreads[quarter, None]
    column, line = np.clip(np.rint(places), 0, SIDE - 1).astype(np.int64).T
    return hb.Reports.from_outputs(mechanism, mechanism.privatize(line * SIDE + column, rng=rng))


def updates() -> dict[str, Any]:
    """Time EM updates and transforms in turn."""
    likelihood = Likelihood.of(collect())
    theta = np.full(SIDE * SIDE, 1.0 / SIDE**2)
    plane = np.random.default_rng(0).random((PADDED, PADDED))
    complex_plane = plane + 0j
    threads = processors()

    def update() -> None:
        point = likelihood.at(theta)
        _ = point.log_likelihood
        _ = point.update

    first, _ = seconds(update)
    own, real, full = in_turn(
        [
            update,
            lambda: fft.rfft2(plane, workers=threads),
            lambda: fft.fft2(complex_plane, workers=threads),
        ],
        25,
    )
    return {"own": own, "real": real, "full": full, "first": first, "patterns": likelihood.channel.patterns}


def solve(tol: float) -> dict[str, Any]:
    """Solve, showing progress."""
    reports = collect()

    def tell(progress: Progress | SolverProgress) -> None:
        assert isinstance(progress, SolverProgress)  # noqa: S101
        print(f"  round {progress.iteration}: log-likelihood {progress.log_likelihood:,.3f}", flush=True)

    spent, found = seconds(lambda: finish(estimate.steps(reports, "mle", tol=tol), tell))
    return {"seconds": spent, "gap": found.gap, "status": found.status, "how": dict(found.settings)}


def main() -> None:
    """Print and keep the rows."""
    problem = f"planar geometric, {SIDE} x {SIDE}, n=1e6"
    one = apart(updates)
    how = f"{1000 * one['own']:.0f} ms = "
    rows = [
        row(
            problem,
            f"EM update / FFT of {PADDED} x {PADDED}, complex",
            how + f"{one['own'] / one['full']:.1f} of {1000 * one['full']:.0f} ms",
            "under 8",
            holds=one["own"] < 8 * one["full"],
        ),
        row(
            problem,
            f"EM update / FFT of {PADDED} x {PADDED}, real",
            how + f"{one['own'] / one['real']:.1f} of {1000 * one['real']:.0f} ms",
            "under 8",
            holds=one["own"] < 8 * one["real"],
        ),
        row(problem, "peak memory with EM", f"{one['peak MiB']:.0f} MiB", "under 1 GiB", holds=one["peak MiB"] < 1024),
        row(problem, "first EM update of a process", f"{one['first']:.2f} s", "shown", holds=True),
    ]
    for tol, limit in ((5e-4, 600.0), (1e-6, 600.0)):
        found = apart(solve, tol)
        rows.append(
            row(
                problem,
                f"mle to {tol:.0e} ({found['how']['solver']}, {found['how'].get('support', 0):,} values)",
                f"gap {found['gap']:.1e} in {found['seconds']:.0f} s, peak {found['peak MiB']:.0f} MiB",
                "in 10 minutes",
                holds=bool(found["gap"] <= tol and found["seconds"] <= limit),
            )
        )
        save("planar", rows)


if __name__ == "__main__":
    main()
