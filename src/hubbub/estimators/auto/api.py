"""The method "auto": as close to maximum likelihood as the information in the reports warrants.

Where values have neighbours (a line, a map) the answer is smoothed (`smoothing`), where they have none, shrunk
(`shrinkage`); combinations of several attributes are described by simpler models where these predict better
(`attribute_candidates`). Trivial cases need none of this.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import numpy as np

from hubbub.core import validation
from hubbub.core.arrays import Floats
from hubbub.core.progress import Progress
from hubbub.core.serialization import ReadOnly
from hubbub.domains.product_shape import ProductShape, shape_of
from hubbub.estimators.auto.allowed_region import pull_inside
from hubbub.estimators.auto.attribute_marginals import (
    MOVES,
    AttributeEstimate,
    AttributeEstimates,
    AttributeReports,
    attribute_reports,
    marginals,
    moved_to_marginals,
)
from hubbub.estimators.auto.shrinkage import shrink
from hubbub.estimators.auto.smoothing import smooth
from hubbub.estimators.auto.told_interactions import told_model
from hubbub.estimators.auto.trivial_cases import MIN_CAUTIOUS_VALUES, trivial_case
from hubbub.estimators.base import MethodRun, as_estimate
from hubbub.estimators.method_settings import MethodSettings
from hubbub.estimators.mle import mle
from hubbub.estimators.result import Estimate
from hubbub.likelihood import Likelihood
from hubbub.reports import Reports
from hubbub.solvers import Outcome, SolverProgress, likeliest_point

REGION_TOL = 1e-6  # nats for each user, of the maximum that the answer must not be far from


def auto(reports: Reports, settings: MethodSettings) -> MethodRun:
    """Estimate with as much caution as the reports ask for."""
    rng, seed = validation.generator(settings.rng, "estimate")
    max_updates = settings.checked_max_iter("a limit that suits the size")
    likelihood = Likelihood.of(reports)
    shape = shape_of(reports.domain)
    has_structure = shape.places is not None or isinstance(shape, ProductShape)
    compares = len(reports.domain) >= MIN_CAUTIOUS_VALUES and has_structure
    case = trivial_case(likelihood.channel, likelihood.weights)
    if case == "uninformative":
        uniform = likelihood.at(np.full(len(reports.domain), 1.0 / len(reports.domain)))
        status = (
            "nothing can be learned: with so few users and so much noise, even users who all hold the same value could "
            "not be distinguished from a uniform population"
        )
        return as_estimate(reports, "auto", Outcome(uniform, 0, met=True), status, {"chosen": "uniform", "rng": seed})
    if case == "certain" or not compares:
        maximum = yield from mle(reports, MethodSettings(max_iter=max_updates))
        if case == "certain":
            used = {"chosen": "maximum likelihood", **maximum.settings, "rng": seed}
            status = f"maximum likelihood: each report almost certainly reveals its user's value{_unsolved(maximum)}"
            return replace(maximum, method="auto", status=status, settings=ReadOnly(used))
        yield Progress(0, 1, "comparing with empirical Bayes")
        shrunk = shrink(likelihood, maximum.probabilities)
        used = {"chosen": shrunk.chosen, **shrunk.weights, **maximum.settings, "rng": seed}
        point = likelihood.at(shrunk.probabilities)
        outcome = Outcome(point, maximum.iterations, met=maximum.converged)
        return as_estimate(reports, "auto", outcome, shrunk.explain() + _unsolved(maximum), used)
    channel, weights = likelihood.channel, likelihood.weights
    if (merged := channel.merged()) is not None:
        channel, weights = merged[0], np.bincount(merged[1], weights).astype(np.float64, copy=False)
    theta, selection = yield from smooth(channel, weights, reports.domain, rng, max_updates)
    used = {
        "chosen": selection.chosen.description,
        "weight": float(selection.weights.max()),
        "runner_up": selection.runner_up.description,
        "folds": selection.folds,
        "max_iter": selection.max_updates,
        "rng": seed,
        "selection": selection,
    }
    status = selection.explain()
    if isinstance(shape, ProductShape) and (alone := attribute_reports(reports)):
        theta, attributes = yield from _with_own_marginals(likelihood, shape, theta, alone, settings)
        used["attributes"] = attributes
        status += attributes.explain()
    if selection.uses_newton:  # then the maximum is quickly found, too
        best = (yield from likeliest_point.steps(likelihood, REGION_TOL)).theta
        told = told_model(likelihood.channel, shape) if isinstance(shape, ProductShape) else None
        if told is not None:  # of all maxima, the one that assumes least
            best = told.with_margins_of(best[None])[0]
        theta, pulled = pull_inside(likelihood, theta, best)
        if pulled:
            used["pulled"] = pulled
            status += f", moved {pulled:.0%} of the way to maximum likelihood because the reports refute it"
    outcome = Outcome(likelihood.at(theta), selection.chosen.updates, met=True)
    return as_estimate(reports, "auto", outcome, status, used)


def _with_own_marginals(
    likelihood: Likelihood,
    shape: ProductShape,
    theta: Floats,
    alone: dict[str, AttributeReports],
    settings: MethodSettings,
) -> Generator[SolverProgress | Progress, None, tuple[Floats, AttributeEstimates]]:
    """Return the joint estimate with marginals from what the reports say about each attribute alone.

    It moves as far there as makes all reports likelier: where attributes go closely together, the joint estimate may
    know more about each than its own outputs do.
    """
    estimates, shares = {}, {}
    for name, own in alone.items():
        estimate = yield from auto(own.reports, settings)
        single = Likelihood.of(own.reports)
        maximum = (yield from likeliest_point.steps(single, REGION_TOL)).theta
        estimates[name] = AttributeEstimate.of(estimate, single, maximum)
        joint = marginals(shape, theta[None], name)
        shares[name] = estimates[name].shares(estimate.probabilities[None], maximum[None], joint)
    moved = {part: moved_to_marginals(shape, theta[None], shares, part)[0] for part in MOVES}
    best = max(MOVES, key=lambda part: likelihood.at(moved[part]).log_likelihood)
    return moved[best], AttributeEstimates(ReadOnly(estimates), best)


def _unsolved(maximum: Estimate) -> str:
    """Return what the solver said where it did not reach the maximum."""
    return "" if maximum.converged else f" ({maximum.status})"
