"""The same estimator on many weightings of the same patterns: what a bootstrap needs."""

from __future__ import annotations

import numpy as np

from hubbub.arrays import Floats
from hubbub.estimation.front import DELTA, IBU_STEPS, TOL
from hubbub.likelihood import Likelihood
from hubbub.reports import Reports
from hubbub.solvers import finish, maximise
from hubbub.solvers.batch import em_batch


def estimate_many(reports: Reports, weights: Floats, method: str) -> Floats:
    """Return an estimate for each row of `weights` (weightings by patterns), as `method` gives it by default."""
    values = len(reports.domain)
    start = np.full(values, 1.0 / values)
    if method == "mle":
        found = np.empty((len(weights), values))
        for place, row in enumerate(weights):
            likelihood = Likelihood(reports.channel, row, int(row.sum()))
            found[place] = finish(maximise(likelihood, start, TOL, solver=None, max_iter=None)).outcome.point.theta
        return found
    return em_batch(reports.channel, weights, start, delta=DELTA, max_iter=IBU_STEPS).thetas  # "ibu", and "auto" so far
