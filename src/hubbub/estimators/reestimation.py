"""The same estimator on many weightings of the same patterns: what a bootstrap needs."""

from __future__ import annotations

import numpy as np

from hubbub.channels import Channel
from hubbub.core.arrays import Floats
from hubbub.estimators.auto.model_averaging import reaverage
from hubbub.estimators.auto.shrinkage import shrink
from hubbub.estimators.em import IBU_DELTA, MAX_UPDATES
from hubbub.estimators.mle import MLE_TOL
from hubbub.estimators.result import Estimate
from hubbub.likelihood import Likelihood
from hubbub.reports import Reports
from hubbub.solvers import likeliest_point
from hubbub.solvers.em_batch import em_batch


def reestimate(reports: Reports, weightings: Floats, estimate: Estimate) -> Floats:
    """Return an estimate for each row of `weightings` (weightings by patterns), made as `estimate` was.

    Where ``"auto"`` averaged candidates, the choice stays: the same candidates with the same weights. Where it shrank
    the maximum of the likelihood, it does so again for each row.
    """
    values = len(reports.domain)
    uniform = np.full(values, 1.0 / values)
    if "selection" in estimate.settings:
        return reaverage(reports.channel, weightings, reports.domain, estimate.settings["selection"])
    if "empirical_bayes" in estimate.settings:
        return np.stack([_shrunk(reports.channel, weights) for weights in weightings])
    method = estimate.settings.get("chosen", estimate.method)
    if method in ("mle", "maximum likelihood"):
        return np.stack([maximum_likelihood(reports.channel, weights) for weights in weightings])
    if method == "uniform":
        return np.tile(uniform, (len(weightings), 1))
    return em_batch(reports.channel, weightings, uniform, delta=IBU_DELTA, max_iter=MAX_UPDATES).thetas


def _shrunk(channel: Channel, weights: Floats) -> Floats:
    """Return the shrunk maximum of the likelihood for one weighting of the patterns."""
    likelihood = Likelihood(channel, weights, int(weights.sum()))
    return shrink(likelihood, likeliest_point(likelihood, MLE_TOL).theta).probabilities


def maximum_likelihood(channel: Channel, weights: Floats) -> Floats:
    """Return the maximum of the likelihood for one weighting of the patterns, one user for each unit of weight."""
    likelihood = Likelihood(channel, weights, int(weights.sum()))
    return likeliest_point(likelihood, MLE_TOL).theta
