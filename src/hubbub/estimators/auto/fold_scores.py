"""Selection by the data alone: candidates are scored on reports they have not seen, and averaged by `weigh`."""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from hubbub.channels import Channel, SpikeChannel
from hubbub.core.arrays import Floats, frozen
from hubbub.core.progress import Progress
from hubbub.domains import Domain
from hubbub.estimators.auto.candidate_families import recipes_for
from hubbub.estimators.auto.candidate_weights import needed, passed, spread, weights_of
from hubbub.estimators.auto.candidates import MOST_RICH, AutoCandidate, Recipe, Sample
from hubbub.estimators.auto.domain_shape import Shape
from hubbub.estimators.auto.folds import thin
from hubbub.estimators.auto.selection import Selection, most_of
from hubbub.likelihood import SMALLEST

ENOUGH = 0.95  # the share of the weight whose candidates are scored once more, in another deal...
MOST_AGAIN = 200, 1_000_000  # ...with up to so many values and entries, where that is quick
PARTS, PARTS_OF_MANY = 5, 3  # the latter where products with the channel are dear
MOST_ENTRIES = 20_000_000  # of the channel, up to which Newton's method pays
UPDATES = ((400, 3_000), (5_000, 1_000), (100_000, 300), (300_000, 100), (math.inf, 40))
# with so many values or patterns, so many updates of EM: a bound on the work, whatever the truth


def selecting(
    channel: Channel, weights: Floats, domain: Domain, rng: np.random.Generator, last: int | None = None
) -> Generator[Progress, None, tuple[Floats, Selection]]:
    """Return the average of the candidates, and how it came about; there are at least two users (one is `extreme`).

    `last` limits the updates of EM.
    """
    shape = Shape.of(domain)
    rich, longest = affordable(channel)
    longest = min(last or longest, longest)
    thinned = thin(weights, int(min(PARTS if rich else PARTS_OF_MANY, weights.sum())), rng)
    sample = Sample(channel, thinned.rows, shape)
    recipes = recipes_for(shape, rich=rich, last=longest, unit=domain.unit)
    total, done, best = sum(recipe.count for recipe in recipes), 0, -math.inf
    candidates: list[AutoCandidate] = []
    thetas, scores, spreads, paths = [], [], [], []
    for number, recipe in enumerate(recipes):
        path: list[float] = []
        yield Progress(done, total, f"trying {recipe.family}")
        for candidate, found in recipe.fits(sample):
            path.append(_score(channel, thinned.kept_back, found[1:]))
            candidates.append(candidate)
            thetas.append(found[0].copy())  # not the rows beside it
            spreads.append(spread(found[1:]))
            best = max(best, path[-1])
            yield Progress(done + len(path), total, f"trying {recipe.family}")
            if passed(path, best):
                break
        scores += path
        paths += [number] * len(path)
        done += recipe.count
    gains, moved = np.array(scores) - scores[0], np.array(spreads)  # the first one is uniform
    shares = _shares(candidates, gains, moved, shape.values)
    if shares[0] == 0.0 and shape.values <= MOST_AGAIN[0] and channel.entries <= MOST_AGAIN[1]:
        yield Progress(total, total, "dealing again")
        second = thin(weights, len(thinned.kept_back), rng)
        wanted = {candidates[place]: int(place) for place in most_of(shares, ENOUGH)}
        for candidate, found in _fits(Sample(channel, second.rows[1:], shape), recipes, list(wanted)):
            place = wanted[candidate]
            gain = _score(channel, second.kept_back, found) - scores[0]  # every user is held back once in each deal
            gains[place], moved[place] = (gains[place] + gain) / 2, (moved[place] + spread(found)) / 2
            yield Progress(total, total, "dealing again")
        shares = _shares(candidates, gains, moved, shape.values, among=list(wanted.values()))
    theta = sum(share * one for share, one in zip(shares, thetas, strict=True) if share > 0.0)
    parts = len(thinned.kept_back)
    selection = Selection(
        tuple(candidates), tuple(paths), frozen(gains), frozen(moved), frozen(shares), parts, rich, longest
    )
    return np.asarray(theta / np.sum(theta)), selection


def affordable(channel: Channel) -> tuple[bool, int]:
    """Return whether candidates beyond EM are, and how many updates of EM."""
    rich = channel.values <= MOST_RICH and channel.entries <= MOST_ENTRIES
    size = max(channel.values, channel.patterns)
    if isinstance(channel, SpikeChannel):  # a product is hardly more than a copy
        size //= 10
    return rich, next(most for largest, most in UPDATES if size <= largest)


def again(channel: Channel, rows: Floats, domain: Domain, selection: Selection) -> Floats:
    """Return the same average of the same candidates for other weightings of the patterns, one in each row."""
    shape = Shape.of(domain)
    recipes = recipes_for(shape, rich=selection.rich, last=selection.last, unit=domain.unit)
    counted = {selection.candidates[place]: float(selection.weights[place]) for place in selection.counted}
    found = np.zeros((len(rows), shape.values))
    for candidate, theta in _fits(Sample(channel, rows, shape), recipes, list(counted)):
        found += counted[candidate] * theta
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _fits(
    sample: Sample, recipes: list[Recipe], wanted: list[AutoCandidate]
) -> Generator[tuple[AutoCandidate, Floats], None, None]:
    """Yield the wanted candidates with their estimates, trying no more families and updates than it takes."""
    updates = {one.family: max(other.updates for other in wanted if other.family == one.family) for one in wanted}
    for recipe in recipes:
        if recipe.family not in updates:
            continue
        for candidate, theta in recipe.fits(sample):
            if candidate in wanted:
                yield candidate, theta
            if candidate.updates and candidate.updates >= updates[recipe.family]:
                break


def _shares(
    candidates: list[AutoCandidate], gains: Floats, spreads: Floats, values: int, among: list[int] | None = None
) -> Floats:
    """Return the weights: all on the uniform distribution, the first, unless it is refuted; then on the others."""
    some = np.arange(1, gains.size) if among is None else np.array(among)
    handicaps = np.array([candidates[place].handicap for place in some])
    shares = np.zeros(gains.size)
    if gains[some].max() < needed(values):
        shares[0] = 1.0
    else:
        shares[some] = weights_of(gains[some] - handicaps, spreads[some])
    return shares


def _score(channel: Channel, kept_back: Floats, thetas: Floats) -> float:
    """Return the log-likelihood of each part, kept back, under the estimate from the others, added up."""
    return float(np.sum(kept_back * np.log(np.maximum(channel.forward(thetas), SMALLEST))))
