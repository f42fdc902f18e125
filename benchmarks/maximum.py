"""The certified maximum against plain EM: how long until a gap of 1e-9, and how long EM takes to 1e-6.

Run: python benchmarks/maximum.py [--counts FILE]
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np

import hubbub as hb
from hubbub.core.threads import threads_for
from hubbub.likelihood import Likelihood
from hubbub.solvers import BatchedUpdates
from hubbub.solvers import em_steps as steps
from hubbub.solvers.loop import Stride
from measure import counts_argument, in_turn, row, save, seconds
from problems import Problem, city, line

EM_GAP = 1e-6
PATIENCE = 600.0  # seconds after which EM's time is extrapolated


def em_to_gap(reports: hb.Reports) -> tuple[float, int, float]:
    """Run plain EM from the uniform distribution to a gap of 1e-6; return seconds, updates, and the gap reached."""
    likelihood = Likelihood.of(reports)
    size = likelihood.channel.values
    steps.ENTRIES_PER_BATCH = max(1, 1000 * likelihood.channel.entries)  # a look at the gap every thousand updates
    step, point, updates = BatchedUpdates(0.0, 10**9), likelihood.at(np.full(size, 1.0 / size)), 0
    start = time.perf_counter()
    while time.perf_counter() - start < PATIENCE:
        for _ in range(1000):
            moved = step(point)
            point = moved.point if isinstance(moved, Stride) else moved
            updates += moved.iterations if isinstance(moved, Stride) else 1
            if isinstance(moved, Stride):
                break
        if point.gap <= EM_GAP:
            break
    return time.perf_counter() - start, updates, point.gap


def one_update(problem: Problem) -> tuple[float, float]:
    """Return the seconds of one update of IBU as `estimate` runs it, and of two bare products, in turn."""
    likelihood = Likelihood.of(problem.reports)
    theta, ratio = np.full(likelihood.channel.values, 1.0 / likelihood.channel.values), likelihood.shares
    matrix = np.ascontiguousarray(problem.matrix[:, problem.counts > 0])
    many = max(1000, int(3e8 / matrix.size))

    def ibu() -> None:
        hb.estimate(problem.reports, method="ibu", delta=1e-300, max_iter=steps.MAX_SINGLE_UPDATES + many)

    def before() -> None:
        hb.estimate(problem.reports, method="ibu", delta=1e-300, max_iter=steps.MAX_SINGLE_UPDATES)

    def bare() -> None:
        for _ in range(many):
            _ = theta @ matrix
            _ = matrix @ ratio

    ibu()
    with threads_for(matrix.size):
        whole, head, products = in_turn([ibu, before, bare], 5)
    return (whole - head) / many, products / many


def main() -> None:
    """Print and keep a row for each claim."""
    counts = counts_argument(__doc__)
    rows = []
    for problem in (line(100), city(counts), line(1000)):
        first, _ = seconds(partial(hb.estimate, problem.reports, method="mle"))
        took, found = seconds(partial(hb.estimate, problem.reports, method="mle"), 21)
        how = f"{found.settings['solver']}, {found.settings.get('linear algebra', '')}, {found.iterations} iterations"
        rows.append(
            row(
                problem.name,
                f"mle ({how})",
                f"gap {found.gap:.0e} in {1000 * took:.1f} ms",
                "gap <= 1e-9",
                holds=found.gap <= 1e-9,
            )
        )
        update, bare = one_update(problem)
        rows.append(
            row(
                problem.name,
                "one IBU update / two bare products",
                f"{1e6 * update:.1f} / {1e6 * bare:.1f} us = {update / bare:.2f}",
                "<= 1.3",
                holds=update <= 1.3 * bare,
            )
        )
        spent, updates, gap = em_to_gap(problem.reports)
        more = "" if gap <= EM_GAP else f" (stopped at gap {gap:.0e}: a lower bound)"
        rows.append(
            row(
                problem.name,
                f"IBU to gap 1e-6 ({updates:,} updates) / mle",
                f"{spent:.2f} s / {1000 * took:.1f} ms = {spent / took:,.0f}{more}",
                ">= 100 times",
                holds=spent >= 100 * took,
            )
        )
        rows.append(row(problem.name, "the first mle of a process", f"{first:.2f} s", "shown", holds=True))
    save("maximum", rows)


if __name__ == "__main__":
    main()
