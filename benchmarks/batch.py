"""Two hundred bootstrap replicates of a city: all at once by matrix products, against one after the other.

Run: python benchmarks/batch.py [--counts FILE]
"""

from __future__ import annotations

import numpy as np

from hubbub.core.progress import finish
from hubbub.core.threads import threads_for
from hubbub.likelihood import Likelihood
from hubbub.solvers import BatchedUpdates, delta_rule, iterate
from hubbub.solvers.em_batch import em_batch
from measure import counts_argument, in_turn, row, save
from problems import city

REPLICATES, DELTA, MOST = 200, 0.1, 100_000


def main() -> None:
    """Print and keep the row."""
    problem = city(counts_argument(__doc__))
    likelihood = Likelihood.of(problem.reports)
    channel = likelihood.channel
    rng = np.random.default_rng(0)
    weights = rng.multinomial(int(likelihood.total), likelihood.shares, size=REPLICATES).astype(np.float64)
    start = np.full(channel.values, 1.0 / channel.values)

    def together() -> np.ndarray:
        return em_batch(channel, weights, start, delta=DELTA, max_iter=MOST).thetas

    def one_by_one() -> np.ndarray:
        found = []
        with threads_for(channel.entries):  # as `estimate` does
            for own in weights:
                point = Likelihood(channel, own, int(own.sum())).at(start)
                found.append(finish(iterate(point, BatchedUpdates(DELTA, MOST), delta_rule(DELTA), MOST)).point.theta)
        return np.stack(found)

    apart = float(np.abs(together() - one_by_one()).max())
    batched, looped = in_turn([together, one_by_one], 5)
    rows = [
        row(
            f"{REPLICATES} replicates, {problem.name}",
            "IBU one by one / batched",
            f"{looped:.2f} / {batched:.2f} s = {looped / batched:.1f}",
            ">= 5 times",
            holds=looped >= 5 * batched,
        ),
        row(
            f"{REPLICATES} replicates, {problem.name}",
            "largest difference of the two",
            f"{apart:.0e}",
            "rounding",
            holds=apart < 1e-10,
        ),
    ]
    save("batch", rows)


if __name__ == "__main__":
    main()
