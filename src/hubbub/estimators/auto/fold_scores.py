"""Fold scores: users are dealt into folds at random, and each candidate predicts the fold it has not seen.

Counts are dealt, not rows: a billion users who sent a hundred patterns are a hundred draws. Each fold is held out in
turn; a candidate is fitted to the other folds, and the log-likelihood of the held-out reports, added up over the folds,
is its score. How far the fits of the folds are apart tells how far chance moves the candidate (jackknife): its spread.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hubbub.channels import Channel
from hubbub.core.arrays import Floats
from hubbub.likelihood import MIN_PLAIN_PROBABILITY

MAX_PERMUTED_USERS = 100_000  # up to which users are permuted, so that folds differ by one user at most


@dataclass(frozen=True)
class Folds:
    """Weightings of the same patterns, one for each fit, and the reports that each fit has to predict."""

    fitted: Floats  # (1 + folds) by patterns: all users, then all users but those of each fold
    held_out: Floats  # folds by patterns: the users of each fold


def deal_into_folds(weights: Floats, folds: int, rng: np.random.Generator) -> Folds:
    """Deal the users of each pattern into folds."""
    counts = np.rint(weights).astype(np.int64)
    counts[(weights > 0.0) & (counts == 0)] = 1  # of survey weights, which are not whole numbers
    if counts.sum() <= MAX_PERMUTED_USERS:
        patterns = rng.permutation(np.repeat(np.arange(counts.size), counts))  # the pattern of each user
        dealt = np.stack([np.bincount(patterns[fold::folds], minlength=counts.size) for fold in range(folds)])
    else:
        dealt = rng.multinomial(counts, np.full(folds, 1.0 / folds)).T
    held_out = dealt * (weights / np.maximum(counts, 1))
    return Folds(np.concatenate([weights[None], weights - held_out]), held_out)


def held_out_score(channel: Channel, held_out: Floats, thetas: Floats) -> float:
    """Return the log-likelihood of each fold under the fit that has not seen it, added up over the folds, in nats."""
    return log_likelihood(held_out, channel.forward(thetas))


def log_likelihood(held_out: Floats, fitted: Floats) -> float:
    """Return the log-likelihood of reports from the probabilities that are fitted to their patterns, in nats."""
    return float(np.sum(held_out * np.log(np.maximum(fitted, MIN_PLAIN_PROBABILITY))))


def jackknife_spread(thetas: Floats) -> float:
    """Return how far chance moves an estimate, in total variation, from the fits that each leave one fold out."""
    count = len(thetas)
    deviations = np.sqrt((count - 1) / count * ((thetas - thetas.mean(axis=0)) ** 2).sum(axis=0))
    return float(0.5 * np.sqrt(2.0 / np.pi) * deviations.sum())
