"""How long it takes to say how far an answer can be trusted, for a city of 384 cells.

Run: python benchmarks/trust.py [--counts FILE]
"""

from __future__ import annotations

import numpy as np

import hubbub as hb
from measure import counts_argument, row, save, seconds
from problems import city

REPEATS = 5


def main() -> None:
    """Print and keep the rows."""
    problem = city(counts_argument(__doc__))
    reports, labels = problem.reports, problem.reports.domain.labels
    likeliest = hb.estimate(reports, method="mle").probabilities
    smallest = labels[np.argsort(likeliest, kind="stable")[:137]].tolist()
    busiest = labels[int(np.argmax(likeliest))]
    hb.interval(reports, busiest)  # what is compiled, imported or cached is not part of it
    rows = []
    for what, asked, repeats, function in (
        ("identify", 5.0, REPEATS, lambda: hb.identify(reports)),
        ("the interval of one value", 0.3, REPEATS, lambda: hb.interval(reports, busiest)),
        ("the intervals of all 384", 30.0, 1, lambda: hb.band(reports)),
        ("a calibrated set of 137 cells", 60.0, 1, lambda: hb.interval(reports, smallest)),
        ("the test of the fit", 10.0, 1, lambda: hb.fit_test(reports)),
        ("the worst-case shift", 5.0, REPEATS, lambda: hb.worst_case_shift(reports, 0.01)),
    ):
        taken, _ = seconds(function, repeats)
        rows.append(row(problem.name, what, f"{taken:.2f} s", f"< {asked:g} s", holds=taken < asked))
    save("trust", rows)


if __name__ == "__main__":
    main()
