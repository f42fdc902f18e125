"""How long it takes to say how far an answer can be trusted: a city of 384 cells, a line of 100 values, a comb of 80.

Beside the seconds stands how many times as long as the exact maximum of the likelihood it takes, measured in the same
run: that tells a slow machine from slow code.

Run: python benchmarks/trust.py [--counts FILE]
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import hubbub as hb
from measure import counts_argument, row, save, seconds
from problems import city, comb, line

REPEATS = 5


def measured(
    problem: str, reports: hb.Reports, tasks: list[tuple[str, float, int, Callable[[], object]]]
) -> list[dict[str, Any]]:
    """Return a row for each task: what it is, how many seconds are allowed, how often it is measured, and the call."""
    likeliest, _ = seconds(lambda: hb.estimate(reports, "mle"), REPEATS)
    rows = []
    for what, asked, repeats, function in tasks:
        taken, _ = seconds(function, repeats)
        reached = f"{taken:.2f} s, {taken / likeliest:,.0f} times mle"
        rows.append(row(problem, what, reached, f"< {asked:g} s", holds=taken < asked))
    return rows


def main() -> None:
    """Print and keep the rows."""
    problem, on_line, on_comb = city(counts_argument(__doc__)), line(100), comb(80)
    reports, labels = problem.reports, problem.reports.domain.labels
    likeliest = hb.estimate(reports, "mle").probabilities
    smallest = labels[np.argsort(likeliest, kind="stable")[:137]].tolist()
    busiest = labels[int(np.argmax(likeliest))]
    for each in (reports, on_line.reports, on_comb.reports):  # what is compiled, imported or cached is not part of it
        hb.interval(each, each.domain.labels[0])
        hb.interval(each, each.domain.labels[:10].tolist())
    rows = measured(
        problem.name,
        reports,
        [
            ("identify", 5.0, REPEATS, lambda: hb.identify(reports)),
            ("the interval of one value", 0.3, REPEATS, lambda: hb.interval(reports, busiest)),
            ("the intervals of all 384", 10.0, 1, lambda: hb.band(reports)),
            ("a calibrated set of 137 cells", 10.0, 1, lambda: hb.interval(reports, smallest)),
            ("the test of the fit", 10.0, 1, lambda: hb.fit_test(reports)),
            ("the worst-case shift", 10.0, 1, lambda: hb.worst_case_shift(reports, 0.01)),
            ("check", 15.0, 1, lambda: hb.check(reports)),
            ("resolve", 10.0, 1, lambda: hb.resolve(reports)),
        ],
    )
    for other, size in ((on_line, 100), (on_comb, 80)):
        all_values = partial(hb.band, other.reports)
        rows += measured(other.name, other.reports, [(f"the intervals of all {size}", 8.0, 1, all_values)])
    save("trust", rows)


if __name__ == "__main__":
    main()
