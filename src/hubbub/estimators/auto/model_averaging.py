"""The run of `auto`: candidates are scored on folds they have not seen (`fold_scores`), weighted and averaged."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, field

import numpy as np

from hubbub.channels import Channel, DiagonalPlusConstantChannel
from hubbub.core.arrays import Floats, Positions, frozen
from hubbub.core.progress import Progress
from hubbub.domains import Domain
from hubbub.domains.domain_shape import DomainShape
from hubbub.domains.product_shape import ProductShape, shape_of
from hubbub.estimators.auto.attribute_candidates import DELTA_RULE
from hubbub.estimators.auto.bayesian_curves import BAYESIAN_CURVES, CurvePriors, refit_curves
from hubbub.estimators.auto.candidate_families import families_for
from hubbub.estimators.auto.candidate_fits import (
    MAX_DENSE_SYSTEM_VALUES,
    AutoCandidate,
    CandidateFamily,
    WeightedPatterns,
)
from hubbub.estimators.auto.candidate_weights import (
    MAX_DEFICIT_NATS,
    can_stop_path,
    candidate_weights,
    heaviest,
    leaning,
    min_gain_over_uniform,
)
from hubbub.estimators.auto.fold_scores import Folds, deal_into_folds, held_out_score, jackknife_spread
from hubbub.estimators.auto.result import Selection
from hubbub.estimators.auto.told_interactions import told_model, untold

FOLDS, FOLDS_OF_LARGE = 5, 3  # the latter where products with the channel are expensive
RESCORED_WEIGHT = 0.99  # the share of the weight whose candidates are scored again, on new folds...
MAX_DEALS, MAX_DEALING_SHARE = 8, 0.1  # ...until dealing moves the average by no more than this share of its spread...
MAX_RESCORED_VALUES, MAX_RESCORED_ENTRIES = 400, 1_000_000  # ...in problems where that is quick
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
    shape = shape_of(domain)
    uses_newton, updates_limit = affordable_work(channel)
    updates_limit = min(max_updates or updates_limit, updates_limit)
    folds = deal_into_folds(weights, int(min(FOLDS if uses_newton else FOLDS_OF_LARGE, weights.sum())), rng)
    count = len(folds.held_out)
    told = told_model(channel, shape) if isinstance(shape, ProductShape) else None
    families = families_for(shape, uses_newton=uses_newton, max_updates=updates_limit, unit=domain.unit, told=told)
    total = sum(family.count for family in families)
    patterns = WeightedPatterns(channel, folds.fitted, shape, folds.held_out)
    scored = yield from _score_families(patterns, families, folds.held_out, total)
    gains, spreads = np.array(scored.scores) - scored.scores[0], np.array(scored.spreads)  # the first is uniform
    has_default = isinstance(shape, ProductShape)  # for reports that tell little; so have Bayesian curves
    min_gain = -math.inf if uses_newton or has_default else min_gain_over_uniform(shape.values)
    shares = _weights(scored.candidates, gains, spreads, min_gain)
    deals = [(gains, spreads)]
    if shares[0] == 0.0 and shape.values <= MAX_RESCORED_VALUES and channel.entries <= MAX_RESCORED_ENTRIES:
        # The folds are a matter of chance: candidates that count are scored again on new ones, and the means are used.
        positions = heaviest(shares, RESCORED_WEIGHT)
        deals = [(gains[positions], spreads[positions])]
        while len(deals) < 2 or (len(deals) < MAX_DEALS and _disagree(scored, positions, deals)):
            yield Progress(total, total, "scoring again on new folds")
            dealt = [deal_into_folds(weights, count, rng) for _ in range(min(len(deals), MAX_DEALS - len(deals)))]
            deals += yield from _rescored(channel, shape, families, dealt, scored, positions, total)
        gains[positions] = np.mean([deal[0] for deal in deals], axis=0)
        spreads[positions] = np.mean([deal[1] for deal in deals], axis=0)
        shares = _weights(scored.candidates, gains, spreads, min_gain, among=positions)
    if has_default:
        shares = leaning(shares, scored.candidates.index(DELTA_RULE), float(gains.max()))
    average = sum(share * theta for share, theta in zip(shares, scored.thetas, strict=True) if share > 0.0)
    average = np.asarray(average / np.sum(average))
    selection = Selection(
        candidates=tuple(scored.candidates),
        paths=tuple(scored.paths),
        scores=frozen(gains),
        spreads=frozen(spreads),
        weights=frozen(shares),
        folds=count,
        uses_newton=uses_newton,
        max_updates=updates_limit,
        deals=len(deals),
        untold=() if told is None else untold(told),
    )
    return average if told is None else told.with_margins_of(average[None])[0], selection


def affordable_work(channel: Channel) -> tuple[bool, int]:
    """Return whether candidates that need Newton's method are affordable, and how many updates of EM are."""
    uses_newton = channel.values <= MAX_DENSE_SYSTEM_VALUES and channel.entries <= MAX_NEWTON_ENTRIES
    size = max(channel.values, channel.patterns)
    if isinstance(channel, DiagonalPlusConstantChannel):  # a product costs hardly more than a copy
        size //= 10
    return uses_newton, next(updates for largest, updates in MAX_UPDATES_BY_SIZE if size <= largest)


def reaverage(channel: Channel, weightings: Floats, domain: Domain, selection: Selection) -> Floats:
    """Return the same average of the same candidates for other weightings of the patterns, one in each row."""
    shape = shape_of(domain)
    told = told_model(channel, shape) if isinstance(shape, ProductShape) else None
    families = families_for(
        shape, uses_newton=selection.uses_newton, max_updates=selection.max_updates, unit=domain.unit, told=told
    )
    counted = {selection.candidates[position]: float(selection.weights[position]) for position in selection.counted}
    averages = np.zeros((len(weightings), shape.values))
    if (part := counted.pop(BAYESIAN_CURVES, 0.0)) and selection.prior_weights is not None:
        averages += part * refit_curves(channel, weightings, CurvePriors.of(shape), selection.prior_weights)
    for candidate, thetas in _refit(WeightedPatterns(channel, weightings, shape), families, list(counted)):
        averages += counted[candidate] * thetas
    averages /= averages.sum(axis=1, keepdims=True)
    return averages if told is None else told.with_margins_of(averages)


def _score_families(
    patterns: WeightedPatterns, families: list[CandidateFamily], held_out: Floats, total: int
) -> Generator[Progress, None, _Scored]:
    """Fit and score all candidates, except those at the end of a path that cannot count any more."""
    scored, done, best, hopeless = _Scored(), 0, -math.inf, set[str]()
    for number, family in enumerate(families):
        path: list[float] = []
        if family.name in hopeless:  # with other constants it does not win either
            done += family.count
            continue
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
        if path and max(path) < best - MAX_DEFICIT_NATS:
            hopeless.add(family.name)
        scored.scores += path
        scored.paths += [number] * len(path)
        done += family.count
    return scored


def _rescored(
    channel: Channel,
    shape: DomainShape,
    families: list[CandidateFamily],
    dealt: list[Folds],
    scored: _Scored,
    positions: Positions,
    total: int,
) -> Generator[Progress, None, list[tuple[Floats, Floats]]]:
    """Return gains and spreads of some candidates on other folds, those of all deals fitted together."""
    numbers = {scored.candidates[position]: number for number, position in enumerate(positions)}
    deals = [(np.zeros(positions.size), np.zeros(positions.size)) for _ in dealt]
    modes = {scored.candidates[position].description: scored.thetas[position] for position in positions}
    patterns = WeightedPatterns(channel, np.concatenate([folds.fitted[1:] for folds in dealt]), shape, modes=modes)
    for candidate, thetas in _refit(patterns, families, list(numbers)):
        number = numbers[candidate]
        for folds, (gains, spreads), fits in zip(dealt, deals, np.split(thetas, len(dealt)), strict=True):
            # What the uniform distribution scores is the same on all folds.
            gains[number] = held_out_score(channel, folds.held_out, fits) - scored.scores[0]
            spreads[number] = jackknife_spread(fits)
        yield Progress(total, total, "scoring again on new folds")
    return deals


def _disagree(scored: _Scored, positions: Positions, deals: list[tuple[Floats, Floats]]) -> bool:
    """Whether chance in dealing still moves the average by more than a small part of what chance in users does."""
    thetas = np.array([scored.thetas[position] for position in positions])
    handicaps = np.array([scored.candidates[position].handicap for position in positions])
    answers = np.array([candidate_weights(gains - handicaps, spreads) @ thetas for gains, spreads in deals])
    error = jackknife_spread(answers) / (len(deals) - 1)  # the jackknife's is that of leaving one out
    typical = float(np.mean([candidate_weights(gains - handicaps, spreads) @ spreads for gains, spreads in deals]))
    return error > MAX_DEALING_SHARE * typical


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
    candidates: list[AutoCandidate], gains: Floats, spreads: Floats, min_gain: float, among: Positions | None = None
) -> Floats:
    """Return the weights: all on uniform, the first candidate, unless another gains so much; then on the others."""
    some = np.arange(1, gains.size) if among is None else among
    handicaps = np.array([candidates[position].handicap for position in some])
    weights = np.zeros(gains.size)
    if gains[some].max() < min_gain:
        weights[0] = 1.0
    else:
        weights[some] = candidate_weights(gains[some] - handicaps, spreads[some])
    return weights
