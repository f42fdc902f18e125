"""Run the iterative Bayesian update of multi-freq-ldpy: run_multi_freq_ldpy.py PROBLEM ANSWER MODE REPEATS SECONDS.

Its public functions build the matrix of their own protocol: for k-RR from epsilon, with one report for each user. The
inner function takes any square matrix, and multiplies by it on the same side in both halves of the update, which is
right only where the matrix is symmetric. It makes 10,000 iterations unless the largest change falls below 1e-12, and
cannot go on from an earlier answer.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from exchange import Floats, read_problem, timed, write_answer, write_facts
from multi_freq_ldpy.estimators.Histogram_estimator import IBU  # type: ignore[import-not-found]
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_IBU  # type: ignore[import-not-found]

ITERATIONS, CHANGE, MEASURE = 10_000, 1e-12, "max_abs"
TRIAL_ITERATIONS, LONG_CHANGE = 2_000, 1e-16
SLOWDOWN = 3.0  # later iterations take longer, once probabilities are too small for normal numbers

Update = Callable[[int, float], Floats]


def response_epsilon(matrix: Floats) -> float | None:
    """Return epsilon where the matrix is that of k-RR."""
    size = len(matrix)
    truth, other = matrix[0, 0], matrix[0, 1]
    expected = np.full((size, size), other)
    np.fill_diagonal(expected, truth)
    same = matrix.shape == expected.shape and np.allclose(matrix, expected, rtol=1e-12, atol=0.0)
    return float(np.log(truth / other)) if same else None


def main() -> None:
    """Read the problem, run, write the answer."""
    problem, folder, mode, repeats, seconds = sys.argv[1:]
    matrix, counts = read_problem(Path(problem))
    answer, size, epsilon = Path(folder), len(matrix), response_epsilon(matrix)
    if matrix.shape != (size, size):
        write_facts(answer, refused="its update takes a square matrix only")
        return
    update: Update
    if epsilon is not None:
        users = np.repeat(np.arange(size), counts.astype(np.int64))
        name, verdict = "GRR_Aggregator_IBU", "none"

        def update(iterations: int, change: float) -> Floats:
            found: Floats = GRR_Aggregator_IBU(users, size, epsilon, nb_iter=iterations, tol=change)
            return found
    else:
        shares = counts / counts.sum()
        symmetric = bool(np.allclose(matrix, matrix.T, rtol=1e-9, atol=0.0))
        name, verdict = "inner IBU", "none" if symmetric else "none; it assumes a symmetric matrix, this is not"
        if mode == "longer" and not symmetric:
            write_facts(answer, refused="more iterations lead nowhere: it assumes a symmetric matrix, this is not")
            return

        def update(iterations: int, change: float) -> Floats:
            found: Floats = IBU(size, matrix, shares, iterations, change, MEASURE)
            return found

    update(2, 1e-300)  # compiles
    if mode == "defaults":
        probabilities, median, first = timed(lambda: update(ITERATIONS, CHANGE), int(repeats))
        settings = f"{name}, defaults ({ITERATIONS:,} iterations)"
    else:
        start = time.perf_counter()
        update(TRIAL_ITERATIONS, 1e-300)
        trial = time.perf_counter() - start
        iterations = max(ITERATIONS, int(float(seconds) * TRIAL_ITERATIONS / (SLOWDOWN * trial)))
        probabilities, median, first = timed(lambda: update(iterations, LONG_CHANGE), 0)
        settings = f"{name}, longer (up to {iterations:,} iterations)"
    write_answer(answer, probabilities, seconds=median, first=first, settings=settings, verdict=verdict)


if __name__ == "__main__":
    main()
