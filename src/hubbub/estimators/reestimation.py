"""The same estimator again: on many weightings of the same patterns, as a bootstrap needs it, or on other reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hubbub.channels import Channel
from hubbub.core.arrays import Floats
from hubbub.domains.product_shape import ProductShape, shape_of
from hubbub.estimators.api import estimate as run_estimate
from hubbub.estimators.api import find_method
from hubbub.estimators.auto.attribute_marginals import attribute_reports, marginals, moved_to_marginals
from hubbub.estimators.auto.model_averaging import reaverage
from hubbub.estimators.auto.shrinkage import shrink
from hubbub.estimators.em import IBU_DELTA, MAX_UPDATES
from hubbub.estimators.mle import MLE_TOL
from hubbub.estimators.result import Estimate
from hubbub.likelihood import Likelihood
from hubbub.reports import Reports
from hubbub.solvers import likeliest_point
from hubbub.solvers.em_batch import em_batch

# Settings that another run can repeat, and whether what was recorded is what was passed.
REPEATED_SETTINGS: dict[str, Callable[[Any], bool]] = {
    "tol": lambda _: True,
    "delta": lambda _: True,
    "max_iter": lambda _: True,
    "rng": lambda rng: isinstance(rng, int),
}


def rerun(reports: Reports, estimate: Estimate) -> Estimate:
    """Return the estimate from other reports by the same method, with those of its settings that can be repeated.

    Not repeated are a start, a generator that was passed, and the solver: they are not recorded as they were given, or
    suit other reports only.
    """
    method = find_method(estimate.method, "estimate")
    recorded = {name: estimate.settings[name] for name in method.keywords & estimate.settings.keys()}
    settings = {name: value for name, value in recorded.items() if _is_repeated(name, value, is_own=method.is_own)}
    return run_estimate(reports, estimate.method, **settings)


def _is_repeated(name: str, value: Any, *, is_own: bool) -> bool:
    """Whether a recorded setting is what was passed; of an estimator of one's own all keywords but a start are."""
    if name in REPEATED_SETTINGS:
        return REPEATED_SETTINGS[name](value)
    return is_own and name != "start"


def reestimate(reports: Reports, weightings: Floats, estimate: Estimate) -> Floats:
    """Return an estimate for each row of `weightings` (weightings by patterns), made as `estimate` was.

    Where ``"auto"`` averaged candidates, the choice stays: the same candidates with the same weights. Where it shrank
    the maximum of the likelihood, it does so again for each row.
    """
    values = len(reports.domain)
    uniform = np.full(values, 1.0 / values)
    if "selection" in estimate.settings:
        thetas = reaverage(reports.channel, weightings, reports.domain, estimate.settings["selection"])
        return _with_marginals(reports, weightings, thetas, estimate)
    if "empirical_bayes" in estimate.settings:
        return np.stack([_shrunk(reports.channel, weights) for weights in weightings])
    method = estimate.settings.get("chosen", estimate.method)
    if method in ("mle", "maximum likelihood"):
        return np.stack([maximum_likelihood(reports.channel, weights) for weights in weightings])
    if method == "uniform":
        return np.tile(uniform, (len(weightings), 1))
    return em_batch(reports.channel, weightings, uniform, delta=IBU_DELTA, max_iter=MAX_UPDATES).thetas


def _with_marginals(reports: Reports, weightings: Floats, thetas: Floats, estimate: Estimate) -> Floats:
    """Return joint estimates with the marginals of each attribute's own, where `estimate` was made so."""
    shape, attributes = shape_of(reports.domain), estimate.settings.get("attributes")
    if not isinstance(shape, ProductShape) or attributes is None:
        return thetas
    alone, shares = attribute_reports(reports), {}
    for name, attribute in attributes.estimates.items():
        own, moved = alone[name].reports, alone[name].weightings(weightings)
        estimates = reestimate(own, moved, attribute.estimate)
        maxima = np.stack([maximum_likelihood(own.channel, weights) for weights in moved])
        shares[name] = attribute.shares(estimates, maxima, marginals(shape, thetas, name))
    return moved_to_marginals(shape, thetas, shares, attributes.moved)


def _shrunk(channel: Channel, weights: Floats) -> Floats:
    """Return the shrunk maximum of the likelihood for one weighting of the patterns."""
    likelihood = Likelihood(channel, weights, int(weights.sum()))
    return shrink(likelihood, likeliest_point(likelihood, MLE_TOL).theta).probabilities


def maximum_likelihood(channel: Channel, weights: Floats) -> Floats:
    """Return the maximum of the likelihood for one weighting of the patterns, one user for each unit of weight."""
    likelihood = Likelihood(channel, weights, int(weights.sum()))
    return likeliest_point(likelihood, MLE_TOL).theta
