"""Compile the loops that the tests use, once.

    python scripts/compile_loops.py

Numba keeps what it has compiled, beside the sources. Without this, the processes of the tests would begin by compiling
the same loops at the same time. It needs nothing but hubbub itself, so it can run while the rest is installed, which
takes about as long. A loop that is missing here (those for several threads, which few tests use) is compiled by the
first test that calls it.
"""

from __future__ import annotations

import numpy as np

import hubbub as hb
from hubbub.channels import structured_only

USERS = 240


def reports_of(mechanism: hb.Mechanism, seed: int = 0) -> hb.Reports:
    """Return simulated reports of users who are spread evenly."""
    rng = np.random.default_rng(seed)
    return hb.Reports.from_outputs(mechanism, mechanism.privatize(rng.choice(mechanism.domain.labels, USERS), rng=rng))


def run_loops() -> None:
    """Ask for what every kind of loop is for: intervals, areas, differences, likelihoods by their structure, draws."""
    grid, line = hb.Grid(4, 3), hb.Integers(0, 9)
    answers = hb.Categories([f"answer {number}" for number in range(20)])
    on_a_map = reports_of(hb.RandomizedResponse(grid, 2.0))
    hb.check(on_a_map)
    hb.resolve(on_a_map)
    on_a_line = [reports_of(hb.RandomizedResponse(line, 2.0), seed) for seed in range(2)]
    hb.compare(*on_a_line)
    hb.band(reports_of(hb.RandomizedResponse(hb.Integers(0, 69), 2.0)))  # with many values
    hb.estimate(reports_of(hb.TruncatedGeometric(line, 0.3)), "ibu", delta=1e-9)
    mechanisms = [
        hb.Rappor(answers, 2.0), hb.OptimizedUnary(answers, 2.0), hb.LocalHashing(answers, 2.0),
        hb.PlanarGeometric(grid, 1.0), hb.TruncatedGeometric(line, 1.0), hb.Laplace(line, 1.0),
    ]  # fmt: skip
    hb.estimate(reports_of(hb.CountMeanSketch(answers, 2.0, hashes=2, width=8)), "ibu")
    with structured_only():
        for mechanism in mechanisms:
            hb.estimate(reports_of(mechanism), "mle")
    for mechanism in (hb.RandomizedResponse(line, 1.0), *mechanisms):
        mechanism.privatize(mechanism.domain.labels)  # by the operating system's randomness


if __name__ == "__main__":
    run_loops()
