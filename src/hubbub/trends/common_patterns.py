"""The reports of all periods over the same patterns, so that any weighting of periods is a vector of weights."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

import numpy as np

from hubbub.channels import DenseChannel
from hubbub.comparison.score_sources import RATIO_DIGITS
from hubbub.core.arrays import Floats
from hubbub.intervals.interval_endpoints import LikelihoodRegion
from hubbub.likelihood import MIN_PLAIN_PROBABILITY, Likelihood, Point
from hubbub.reports import Reports

MAX_ENTRIES = 20_000_000  # patterns x values, of all periods


class CommonPatterns(NamedTuple):
    """Patterns of all periods, and who sent them: those whose likelihoods are proportional are one.

    Log-likelihoods are known up to a constant that depends on the weights alone: what is compared has equal weights.
    """

    channel: DenseChannel
    weights: Floats  # periods by patterns

    @classmethod
    def of(cls, periods: Sequence[Reports]) -> CommonPatterns | None:
        """Merge the patterns of all periods; None if there are too many."""
        if sum(own.weights.size for own in periods) * len(periods[0].domain) > MAX_ENTRIES:
            return None
        columns = np.concatenate([own.channel.dense() for own in periods], axis=1)
        columns = columns / np.maximum(columns.max(axis=0), MIN_PLAIN_PROBABILITY)
        _, first, back = np.unique(columns.round(RATIO_DIGITS), axis=1, return_index=True, return_inverse=True)
        owner = np.repeat(np.arange(len(periods)), [own.weights.size for own in periods])
        weights = np.zeros((len(periods), first.size))
        np.add.at(weights, (owner, back.ravel()), np.concatenate([own.weights for own in periods]))
        return cls(DenseChannel(columns[:, first], np.zeros(first.size)), weights)

    def maximum(self, weights: Floats) -> Generator[Any, None, Point]:
        """Return the likeliest distribution, given how much each pattern counts."""
        likelihood = Likelihood(self.channel, weights, max(1, round(float(weights.sum()))))
        return (yield from LikelihoodRegion.around(likelihood)).top
