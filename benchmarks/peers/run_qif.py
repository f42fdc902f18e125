"""Run the iterative Bayesian update of qif on a problem: run_qif.py PROBLEM ANSWER MODE REPEATS SECONDS.

It takes the channel with a row for each value and the shares of the outputs. It stops when the sum of the absolute
changes in one iteration is less than `max_diff` (1e-6 unless told), and has no limit on the iterations unless told.

It leaves out every output whose fitted probability is below 1e-6, and so loses users where outputs are many. A matrix
that is no channel anyway (the rows do not sum to 1) is therefore given with the largest number of each column as 1,
which changes no likelihood ratio.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from exchange import Floats, read_problem, timed, write_answer
from qif.channel import iterative_bayesian_update  # type: ignore[import-not-found]

LONG_DIFFERENCE = 1e-13


def defaults(matrix: Floats, shares: Floats, answer: Path, repeats: int) -> None:
    """Run one call as it comes."""
    (probabilities, iterations), seconds, first = timed(lambda: iterative_bayesian_update(matrix, shares), repeats)
    write_answer(
        answer,
        probabilities,
        seconds=seconds,
        first=first,
        settings="defaults (max_diff 1e-6)",
        verdict=f"none; returned after {iterations:,} iterations",
    )


def longer(matrix: Floats, shares: Floats, answer: Path, seconds: float) -> None:
    """Go on from the last answer, call after call, until the time is over or nothing changes any more."""
    spent, total, chunk = 0.0, 0, 100
    probabilities, ended = None, False
    while spent < seconds and not ended:
        settings = {"max_diff": LONG_DIFFERENCE, "max_iter": chunk}
        if probabilities is not None:
            settings["start"] = probabilities
        start = time.perf_counter()
        probabilities, iterations = iterative_bayesian_update(matrix, shares, **settings)
        took = time.perf_counter() - start
        spent += took
        total += iterations
        ended = iterations < chunk
        pause = min(1.0, max(seconds - spent, 0.0))
        chunk = max(1, int(chunk * pause / max(took, 1e-6)))
    why = "its rule was met" if ended else "stopped by our clock"
    write_answer(
        answer,
        np.asarray(probabilities, dtype=np.float64),
        seconds=spent,
        first=spent,
        settings=f"longer (max_diff {LONG_DIFFERENCE:.0e})",
        verdict=f"none; {total:,} iterations, {why}",
    )


def main() -> None:
    """Read the problem, run, write the answer."""
    problem, answer, mode, repeats, seconds = sys.argv[1:]
    matrix, counts = read_problem(Path(problem))
    shares = counts / counts.sum()
    if not np.allclose(matrix.sum(axis=1), 1.0):
        matrix = matrix / matrix.max(axis=0)
    if mode == "defaults":
        defaults(matrix, shares, Path(answer), int(repeats))
    else:
        longer(matrix, shares, Path(answer), float(seconds))


if __name__ == "__main__":
    main()
