"""Selection by the data alone: candidates are scored on reports they have not seen, and averaged by `weigh`."""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from hubbub.arrays import Floats, frozen
from hubbub.channels import Channel
from hubbub.domains import Domain
from hubbub.selection.families import recipes_for
from hubbub.selection.recipes import MOST_RICH, Candidate, Sample
from hubbub.selection.selection import Selection
from hubbub.selection.shape import Shape
from hubbub.selection.thinning import thin
from hubbub.selection.weigh import needed, passed, spread, weights_of
from hubbub.solvers.stages import Stage

PARTS, PARTS_OF_MANY = 5, 3  # the latter where products with the channel are dear
LAST_UPDATES = ((1_000, 3_000), (5_000, 1_000), (math.inf, 300))  # values or patterns, and updates of EM up to there
MOST_ENTRIES = 20_000_000  # of the channel, up to which Newton's method pays
TINY = 1e-290  # of a fitted probability


def selecting(
    channel: Channel, weights: Floats, domain: Domain, rng: np.random.Generator, last: int | None = None
) -> Generator[Stage, None, tuple[Floats, Selection]]:
    """Return the average of the candidates, and how it came about; there are at least two users (one is `extreme`).

    `last` limits the updates of EM.
    """
    shape = Shape.of(domain)
    rich = shape.values <= MOST_RICH and channel.entries <= MOST_ENTRIES
    users = float(weights.sum())
    parts = int(min(PARTS if rich else PARTS_OF_MANY, users))
    thinned = thin(weights, parts, rng)
    sample = Sample(channel, thinned.rows, shape)
    longest = next(most for largest, most in LAST_UPDATES if max(channel.values, channel.patterns) <= largest)
    longest = min(last or longest, longest)
    recipes = recipes_for(shape, rich=rich, last=longest, unit=domain.unit)
    total, done = sum(recipe.count for recipe in recipes), 0
    candidates: list[Candidate] = []
    thetas, scores, spreads = [], [], []
    best = -np.inf
    for recipe in recipes:
        path: list[float] = []
        for candidate, found in recipe.fits(sample):
            yield Stage(done + len(path), total, f"trying {candidate.words}")
            path.append(_score(channel, thinned.kept_back, found[1:]))
            candidates.append(candidate)
            thetas.append(found[0])
            spreads.append(spread(found[1:]))
            best = max(best, path[-1])
            if passed(path, best):
                break
        scores += path
        done += recipe.count
    gains = np.array(scores) - scores[0]  # the first one is uniform
    moved = np.array(spreads)
    handicaps = np.array([candidate.handicap for candidate in candidates])
    shares = np.zeros(len(gains))
    if gains.max() < needed(shape.values):
        shares[0] = 1.0
    else:  # uniform is refuted, and no part of the average
        shares[1:] = weights_of((gains - handicaps)[1:], moved[1:])
    selection = Selection(tuple(candidates), frozen(gains), frozen(moved), frozen(shares), parts, rich, longest)
    theta = shares @ np.stack(thetas)
    return theta / theta.sum(), selection


def again(channel: Channel, rows: Floats, domain: Domain, selection: Selection) -> Floats:
    """Return the same average of the same candidates for other weightings of the patterns, one in each row."""
    shape = Shape.of(domain)
    shares = {selection.candidates[place].words: float(selection.weights[place]) for place in selection.counted}
    last = max([1, *(candidate.updates for candidate in selection.candidates if candidate.words in shares)])
    sample = Sample(channel, rows, shape)
    found = np.zeros((len(rows), shape.values))
    for recipe in recipes_for(shape, rich=selection.rich, last=selection.last, unit=domain.unit):
        for candidate, theta in recipe.fits(sample):
            found += shares.get(candidate.words, 0.0) * theta
            if candidate.updates >= last:
                break
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _score(channel: Channel, kept_back: Floats, thetas: Floats) -> float:
    """Return the log-likelihood of each part, kept back, under the estimate from the others, added up."""
    return float(np.sum(kept_back * np.log(np.maximum(channel.forward(thetas), TINY))))
