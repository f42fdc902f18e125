"""The same estimator on many weightings of the same patterns: what a bootstrap needs."""

from __future__ import annotations

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.progress import finish
from hubbub.estimators.api import DELTA, IBU_STEPS, TOL
from hubbub.estimators.auto import again
from hubbub.estimators.result import Estimate
from hubbub.likelihood import Likelihood
from hubbub.reports import Reports
from hubbub.solvers import maximise
from hubbub.solvers.em_batch import em_batch


def estimate_many(reports: Reports, weights: Floats, own: Estimate) -> Floats:
    """Return an estimate for each row of `weights` (weightings by patterns), as `own` was made from the reports.

    What ``"auto"`` has chosen stays chosen: the same candidates are averaged with the same weights.
    """
    values = len(reports.domain)
    start = np.full(values, 1.0 / values)
    if "selection" in own.settings:
        return again(reports.channel, weights, reports.domain, own.settings["selection"])
    chosen = own.settings.get("chosen", own.method)
    if chosen in ("mle", "maximum likelihood"):
        found = np.empty((len(weights), values))
        for place, row in enumerate(weights):
            likelihood = Likelihood(reports.channel, row, int(row.sum()))
            found[place] = finish(maximise(likelihood, start, TOL, solver=None, max_iter=None)).outcome.point.theta
        return found
    if chosen == "uniform":
        return np.tile(start, (len(weights), 1))
    return em_batch(reports.channel, weights, start, delta=DELTA, max_iter=IBU_STEPS).thetas
