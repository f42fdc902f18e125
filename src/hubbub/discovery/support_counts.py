"""How many reports of a round support each candidate, and what that says about its share.

A report supports a text if its bucket is that of the text under its seed. Where the share f of the population has the
text as its prefix, a person's report supports it with probability::

    theta = other + (own - other) f,      own = P(support | the own prefix), other = 1 / buckets

Both are known. People are drawn independently, so the number of supports of n reports is Binomial(n, theta). Its exact
(Clopper-Pearson) limits give those of f, without an approximation. Where the people are a fixed group, and f is a share
of that group, the number is spread less, so that the limits still hold (Hoeffding 1956).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, betainccinv, betaincinv

from hubbub.channels.bit_sets import GOLDEN
from hubbub.core.arrays import Floats, Positions
from hubbub.discovery.word_codes import Words


def count_supports(codes: NDArray[np.uint64], keys: Words, buckets: int) -> Positions:
    """Return how many of the reports (rows of seed and bucket) support each key."""
    from hubbub.channels.compiled_loops import weights_of_hashed

    with np.errstate(over="ignore"):  # arithmetic modulo 2^64 is meant
        steps = (keys + np.uint64(1)) * np.uint64(GOLDEN)
    seeds, reported = np.ascontiguousarray(codes[:, 0]), np.ascontiguousarray(codes[:, 1])
    ones = np.ones(len(codes))
    counts = weights_of_hashed(len(codes) * keys.size, seeds, reported, steps, buckets, ones)
    return np.asarray(counts).astype(np.int64)


@dataclass(frozen=True)
class SupportLaw:
    """The distribution of the number of supports among `users` reports of one round."""

    users: int
    own: float
    other: float

    def estimate(self, counts: Positions) -> Floats:
        """Return the unbiased estimate of the share: negative where there are fewer supports than by chance."""
        return (counts / self.users - self.other) / (self.own - self.other)

    def precision(self, counts: Positions) -> Floats:
        """Return the inverse of the estimates' variances; a share of 0 has the one of supports by chance."""
        theta = np.clip(counts / self.users, self.other, 1.0 - 0.5 / self.users)
        return self.users * (self.own - self.other) ** 2 / (theta * (1.0 - theta))

    def low(self, counts: Positions, error: float) -> Floats:
        """Return lower limits of the share; each is too large with at most the probability `error`."""
        theta = np.where(counts > 0, betaincinv(np.maximum(counts, 1), self.users - counts + 1.0, error), 0.0)
        return self._share(theta)

    def high(self, counts: Positions, error: float) -> Floats:
        """Return upper limits of the share; each is too small with at most the probability `error`."""
        beyond = np.maximum(self.users - counts, 1)
        theta = np.where(counts < self.users, betainccinv(counts + 1.0, beyond, error), 1.0)
        return self._share(theta)

    def reached_by_chance(self, error: float) -> int:
        """Return the smallest number that a text which nobody has exceeds with at most the probability `error`."""
        from scipy.stats import binom  # slow to load

        return int(binom.isf(error, self.users, self.other))

    def chance_above(self, count: int, share: Floats) -> Floats:
        """Return how likely a text with a share has more supports than `count`."""
        theta = self.other + (self.own - self.other) * share
        return np.ones_like(theta) if count < 0 else np.asarray(bdtrc(count, self.users, theta))

    def _share(self, theta: Floats) -> Floats:
        return np.clip((theta - self.other) / (self.own - self.other), 0.0, 1.0)
