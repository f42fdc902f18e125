"""The run of `auto`: candidates are scored on folds they have not seen (`fold_scores`), weighted and averaged."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, field

import numpy as np

from hubbub.channels import Channel, DiagonalPlusConstantChannel
from hubbub.core.arrays import Floats, frozen
from hubbub.core.progress import Progress
from hubbub.domains import Domain
from hubbub.domains.domain_shape import DomainShape
from hubbub.estimators.auto.bayesian_curves import BAYESIAN_CURVES, CurvePriors, refit_curves
from hubbub.estimators.auto.candidate_families import families_for
from hubbub.estimators.auto.candidate_fits import (
    MAX_DENSE_SYSTEM_VALUES,
    AutoCandidate,
    CandidateFamily,
    WeightedPatterns,
)
from hubbub.estimators.auto.candidate_weights import (
    can_stop_path,
    candidate_weights,
    heaviest,
    min_gain_over_uniform,
)
from hubbub.estimators.auto.fold_scores import deal_into_folds, held_out_score, jackknife_spread
from hubbub.estimators.auto.result import Selection

FOLDS, FOLDS_OF_LARGE = 5, 3  # the latter where products with the channel are expensive
RESCORED_WEIGHT = 0.95  # the share of the weight whose candidates are scored again, on new folds...
MAX_RESCORED_VALUES, MAX_RESCORED_ENTRIES = 200, 1_000_000  # ...in problems where that is quick
MAX_NEWTON_ENTRIES = 20_000_000  # of the channel, up to which Newton's method pays
# The number of EM updates by the number of values or patterns: a bound on the work, whatever the truth.
MAX_UPDATES_BY_SIZE = ((400, 3_000), (5_000, 1_000), (100_000, 300), (300_000, 100), (math.inf, 40))


@dataclass
class _Scored:
    """The candidates tried so far, in the order of the families."""

    candidates: list[AutoCandidate] = field(default_factory=list)
    paths: list[int] = field(default_factory=list)
    thetas: list[Floats] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    spreads: list[float] = field(default_factory=list)


def average_candidates(
    channel: Channel, weights: Floats, domain: Domain, rng: np.random.Generator, max_updates: int | None = None
) -> Generator[Progress, None, tuple[Floats, Selection]]:
    """Return the weighted average of the candidates, and how it was made.

    There must be two users at least (one user is a trivial case). `max_updates` limits the updates of EM.
    """
    shape = DomainShape.of(domain)
    uses_newton, updates_limit = affordable_work(channel)
    updates_limit = min(max_updates or updates_limit, updates_limit)
    folds = deal_into_folds(weights, int(min(FOLDS if uses_newton else FOLDS_OF_LARGE, weights.sum())), rng)
    count = len(folds.held_out)
    families = families_for(shape, uses_newton=uses_newton, max_updates=updates_limit, unit=domain.unit)
    total = sum(family.count for family in families)
    patterns = WeightedPatterns(channel, folds.fitted, shape, folds.held_out)
    scored = yield from _score_families(patterns, families, folds.held_out, total)
    gains, spreads = np.array(scored.scores) - scored.scores[0], np.array(scored.spreads)  # the first is uniform
    min_gain = -math.inf if uses_newton else min_gain_over_uniform(shape.values)  # Bayesian curves decide otherwise
    shares = _weights(scored.candidates, gains, spreads, min_gain)
    if shares[0] == 0.0 and shape.values <= MAX_RESCORED_VALUES and channel.entries <= MAX_RESCORED_ENTRIES:
        # The folds are a matter of chance: candidates that count are scored again on new ones, and the means are used.
        yield Progress(total, total, "scoring again on new folds")
        folds = deal_into_folds(weights, count, rng)
        positions = {scored.candidates[position]: int(position) for position in heaviest(shares, RESCORED_WEIGHT)}
        for candidate, thetas in _refit(WeightedPatterns(channel, folds.fitted[1:], shape), families, list(positions)):
            position = positions[candidate]
            gain = held_out_score(channel, folds.held_out, thetas) - scored.scores[0]  # that of uniform is the same
            gains[position] = (gains[position] + gain) / 2
            spreads[position] = (spreads[position] + jackknife_spread(thetas)) / 2
            yield Progress(total, total, "scoring again on new folds")
        shares = _weights(scored.candidates, gains, spreads, min_gain, among=list(positions.values()))
    average = sum(share * theta for share, theta in zip(shares, scored.thetas, strict=True) if share > 0.0)
    selection = Selection(
        candidates=tuple(scored.candidates),
        paths=tuple(scored.paths),
        scores=frozen(gains),
        spreads=frozen(spreads),
        weights=frozen(shares),
        folds=count,
        uses_newton=uses_newton,
        max_updates=updates_limit,
    )
    return np.asarray(average / np.sum(average)), selection


def affordable_work(channel: Channel) -> tuple[bool, int]:
    """Return whether candidates that need Newton's method are affordable, and how many updates of EM are."""
    uses_newton = channel.values <= MAX_DENSE_SYSTEM_VALUES and channel.entries <= MAX_NEWTON_ENTRIES
    size = max(channel.values, channel.patterns)
    if isinstance(channel, DiagonalPlusConstantChannel):  # a product costs hardly more than a copy
        size //= 10
    return uses_newton, next(updates for largest, updates in MAX_UPDATES_BY_SIZE if size <= largest)


def reaverage(channel: Channel, weightings: Floats, domain: Domain, selection: Selection) -> Floats:
    """Return the same average of the same candidates for other weightings of the patterns, one in each row."""
    shape = DomainShape.of(domain)
    families = families_for(
        shape, uses_newton=selection.uses_newton, max_updates=selection.max_updates, unit=domain.unit
    )
    counted = {selection.candidates[position]: float(selection.weights[position]) for position in selection.counted}
    averages = np.zeros((len(weightings), shape.values))
    if (part := counted.pop(BAYESIAN_CURVES, 0.0)) and selection.prior_weights is not None:
        averages += part * refit_curves(channel, weightings, CurvePriors.of(shape), selection.prior_weights)
    for candidate, thetas in _refit(WeightedPatterns(channel, weightings, shape), families, list(counted)):
        averages += counted[candidate] * thetas
    return np.asarray(averages / averages.sum(axis=1, keepdims=True))


def _score_families(
    patterns: WeightedPatterns, families: list[CandidateFamily], held_out: Floats, total: int
) -> Generator[Progress, None, _Scored]:
    """Fit and score all candidates, except those at the end of a path that cannot count any more."""
    scored, done, best = _Scored(), 0, -math.inf
    for number, family in enumerate(families):
        path: list[float] = []
        yield Progress(done, total, f"trying {family.name}")
        for candidate, thetas in family.fits(patterns):  # row 0 is from all users, the others each leave a fold out
            path.append(held_out_score(patterns.channel, held_out, thetas[1:]))
            scored.candidates.append(candidate)
            scored.thetas.append(thetas[0].copy())  # a view would keep the other rows in memory
            scored.spreads.append(jackknife_spread(thetas[1:]))
            patterns.best_score = best = max(best, path[-1])
            yield Progress(done + len(path), total, f"trying {family.name}")
            if can_stop_path(path, best):
                break
        scored.scores += path
        scored.paths += [number] * len(path)
        done += family.count
    return scored


def _refit(
    patterns: WeightedPatterns, families: list[CandidateFamily], chosen: list[AutoCandidate]
) -> Generator[tuple[AutoCandidate, Floats], None, None]:
    """Yield the chosen candidates with their estimates; no more families and updates are tried than these need."""
    last_updates: dict[str, int] = {}
    for candidate in chosen:
        last_updates[candidate.family] = max(candidate.updates, last_updates.get(candidate.family, 0))
    for family in families:
        if family.name not in last_updates:
            continue
        for candidate, thetas in family.fits(patterns):
            if candidate in chosen:
                yield candidate, thetas
            if candidate.updates and candidate.updates >= last_updates[family.name]:
                break


def _weights(
    candidates: list[AutoCandidate], gains: Floats, spreads: Floats, min_gain: float, among: list[int] | None = None
) -> Floats:
    """Return the weights: all on uniform, the first candidate, unless another gains so much; then on the others."""
    some = np.arange(1, gains.size) if among is None else np.array(among)
    handicaps = np.array([candidates[position].handicap for position in some])
    weights = np.zeros(gains.size)
    if gains[some].max() < min_gain:
        weights[0] = 1.0
    else:
        weights[some] = candidate_weights(gains[some] - handicaps, spreads[some])
    return weights
