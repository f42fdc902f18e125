"""Values with neighbours: how much to borrow from them.

Where the reports say much, candidates are compared on held-out reports (`model_averaging`). Where they say little, held
out reports cannot tell candidates apart, and a Bayesian average of smooth curves (`bayesian_curves`), which needs none,
takes over. How much they say is the gain in evidence of the best curve over the uniform distribution, in nats.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import numpy as np

from hubbub.channels import Channel
from hubbub.core.arrays import Floats, frozen
from hubbub.core.progress import Progress
from hubbub.domains import Domain
from hubbub.domains.domain_shape import DomainShape
from hubbub.estimators.auto.bayesian_curves import BAYESIAN_CURVES, CurveAverage, CurvePriors, average_curves
from hubbub.estimators.auto.candidate_fits import START_UPDATES, UNIFORM
from hubbub.estimators.auto.model_averaging import affordable_work, average_candidates
from hubbub.estimators.auto.result import Selection
from hubbub.likelihood import MIN_PLAIN_PROBABILITY
from hubbub.solvers.em_path import em_path

HALF_GAIN = 40.0  # nats of evidence at which Bayesian curves and the candidates count the same
MAX_GAIN = 400.0  # from which Bayesian curves do not count
MIN_PART_ALONE = 0.95  # of Bayesian curves, from which no candidates are tried
MIN_UNIFORM_WEIGHT = 0.95  # of the uniform distribution among the curves, from which it is the answer


def smooth(
    channel: Channel, weights: Floats, domain: Domain, rng: np.random.Generator, max_updates: int | None = None
) -> Generator[Progress, None, tuple[Floats, Selection]]:
    """Return the distribution, and how it was chosen. There must be two users at least."""
    shape = DomainShape.of(domain)
    uses_newton, updates_limit = affordable_work(channel)
    if shape.places is None or not uses_newton or gain_of_em(channel, weights) > MAX_GAIN:
        return (yield from average_candidates(channel, weights, domain, rng, max_updates))
    yield Progress(0, 1, "fitting smooth curves")
    curves = average_curves(channel, weights, CurvePriors.of(shape))
    part = 1.0 / (1.0 + (curves.gain / HALF_GAIN) ** 2)
    if part >= MIN_PART_ALONE:
        return _alone(curves, max_updates or updates_limit)
    average, selection = yield from average_candidates(channel, weights, domain, rng, max_updates)
    return part * curves.probabilities + (1.0 - part) * average, replace(
        selection,
        candidates=(*selection.candidates, BAYESIAN_CURVES),
        paths=(*selection.paths, max(selection.paths) + 1),
        scores=frozen(np.append(selection.scores, curves.gain)),
        spreads=frozen(np.append(selection.spreads, curves.spread)),
        weights=frozen(np.append((1.0 - part) * selection.weights, part)),
        prior_weights=frozen(curves.weights),
    )


def gain_of_em(channel: Channel, weights: Floats) -> float:
    """Return the nats by which a few updates of EM fit the reports better than the uniform distribution."""
    _, theta = next(em_path(channel, weights[None], [START_UPDATES]))
    both = np.concatenate([theta, np.full_like(theta, 1.0 / channel.values)])
    gain = np.log(np.maximum(channel.forward(both), MIN_PLAIN_PROBABILITY)) @ weights
    return float(gain[0] - gain[1])


def _alone(curves: CurveAverage, max_updates: int) -> tuple[Floats, Selection]:
    """Return the Bayesian average without any other candidate but the uniform distribution."""
    is_uniform = bool(curves.weights[0] >= MIN_UNIFORM_WEIGHT)
    values = curves.probabilities.size
    selection = Selection(
        candidates=(UNIFORM, BAYESIAN_CURVES),
        paths=(0, 1),
        scores=frozen(np.array([0.0, curves.gain])),
        spreads=frozen(np.array([0.0, curves.spread])),
        weights=frozen(np.array([1.0, 0.0] if is_uniform else [0.0, 1.0])),
        folds=0,
        uses_newton=True,
        max_updates=max_updates,
        prior_weights=frozen(curves.weights),
    )
    return np.full(values, 1.0 / values) if is_uniform else curves.probabilities, selection
