"""The method "auto": an average of candidates, weighted by how well they predict held-out reports."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hubbub.core import validation
from hubbub.core.serialization import ReadOnly
from hubbub.estimators.auto.model_averaging import average_candidates
from hubbub.estimators.auto.trivial_cases import trivial_case
from hubbub.estimators.base import MethodRun, as_estimate, gap_text
from hubbub.estimators.method_settings import MethodSettings
from hubbub.estimators.mle import mle
from hubbub.likelihood import Likelihood
from hubbub.reports import Reports
from hubbub.solvers import Outcome


def auto(reports: Reports, settings: MethodSettings) -> MethodRun:
    """Average the candidates by how well they predict held-out reports; trivial cases need no candidates."""
    rng, seed = validation.generator(settings.rng, "estimate")
    max_updates = settings.checked_max_iter("a limit that suits the size")
    likelihood = Likelihood.of(reports)
    case = trivial_case(likelihood.channel, likelihood.weights)
    if case == "certain":
        maximum = yield from mle(reports, MethodSettings(max_iter=max_updates))
        used = {"chosen": "maximum likelihood", **maximum.settings, "rng": seed}
        status = (
            "each report almost certainly reveals its user's value, so nothing is smoothed: maximum likelihood; "
            f"{maximum.status}"
        )
        return replace(maximum, method="auto", status=status, settings=ReadOnly(used))
    if case == "uninformative":
        uniform = likelihood.at(np.full(len(reports.domain), 1.0 / len(reports.domain)))
        status = (
            "nothing can be learned: with so few users and so much noise, even users who all hold the same value could "
            f"not safely be distinguished from a uniform population; {gap_text(uniform)}"
        )
        return as_estimate(reports, "auto", Outcome(uniform, 0, met=True), status, {"chosen": "uniform", "rng": seed})
    theta, selection = yield from average_candidates(
        likelihood.channel, likelihood.weights, reports.domain, rng, max_updates
    )
    used = {
        "chosen": selection.chosen.description,
        "weight": float(selection.weights.max()),
        "runner_up": selection.runner_up.description,
        "folds": selection.folds,
        "max_iter": selection.max_updates,
        "rng": seed,
        "selection": selection,
    }
    outcome = Outcome(likelihood.at(theta), selection.chosen.updates, met=True)
    return as_estimate(reports, "auto", outcome, f"{selection.explain()}; {gap_text(outcome.point)}", used)
