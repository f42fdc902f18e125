"""Small groups borrow from all: estimates that are drawn towards the common distribution as far as reports suggest.

The estimate of a group maximises its log-likelihood plus kappa times the sum over values of pi_x log theta_x, where pi
is the distribution of all groups together: as if kappa more users had told exactly that. EM only adds their counts. How
many they are is the same for all groups, and chosen by how well users that were left out are predicted.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.channels import Channel, ConcatenatedChannel
from hubbub.core.arrays import Floats
from hubbub.core.progress import Progress
from hubbub.likelihood import MIN_PLAIN_PROBABILITY
from hubbub.reports import Reports

FOLDS = 5
PRIOR_USERS = np.array([0.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1_000.0, 3_000.0, 10_000.0, 1e9])
MAX_UPDATES, MIN_CHANGE = 300, 1e-6  # of EM, and of a distribution in one of them


@dataclass(frozen=True)
class Pooled:
    """The shrunken distribution of each group, and how many users of all groups each has borrowed."""

    shares: Floats  # groups by values
    prior_users: float

    @property
    def is_complete(self) -> bool:
        """Whether groups are best predicted by all groups together."""
        return self.prior_users >= float(PRIOR_USERS[-1])


def pool(groups: Sequence[Reports], rng: np.random.Generator) -> Generator[Progress, None, Pooled]:
    """Choose how much groups borrow, and estimate each."""
    channels = [reports.channel for reports in groups]
    weights = [reports.weights for reports in groups]
    together = ConcatenatedChannel(channels)
    folds = [deal_into_folds(own, rng) for own in weights]  # of each group: folds by patterns
    training = np.concatenate([own.sum(axis=0) - own for own in folds], axis=1)
    everyone = np.concatenate([training, np.concatenate(weights)[None]])
    common = _fit(together, everyone, np.zeros(FOLDS + 1), np.zeros((FOLDS + 1, together.values)))
    scores = np.zeros(PRIOR_USERS.size)
    for done, (channel, own) in enumerate(zip(channels, folds, strict=True)):
        yield Progress(done, len(groups), "pooling groups")
        rows = np.repeat(own.sum(axis=0) - own, PRIOR_USERS.size, axis=0)  # folds, and in each all numbers of users
        thetas = _fit(channel, rows, np.tile(PRIOR_USERS, FOLDS), np.repeat(common[:-1], PRIOR_USERS.size, axis=0))
        logs = np.log(np.maximum(channel.forward(thetas), MIN_PLAIN_PROBABILITY))
        scores += np.einsum("fki,fi->k", logs.reshape(FOLDS, PRIOR_USERS.size, -1), own)
    prior_users = float(PRIOR_USERS[int(np.argmax(scores))])
    shares = [
        _fit(channel, own[None], np.array([prior_users]), common[-1:])[0]
        for channel, own in zip(channels, weights, strict=True)
    ]
    return Pooled(np.array(shares), prior_users)


def deal_into_folds(weights: Floats, rng: np.random.Generator) -> Floats:
    """Deal the users of each pattern into folds."""
    counts = np.rint(weights).astype(np.int64)
    return rng.multinomial(counts, np.full(FOLDS, 1.0 / FOLDS)).T.astype(np.float64)


def _fit(channel: Channel, weights: Floats, prior_users: Floats, prior: Floats) -> Floats:
    """Return the maximum for each row of weights, with so many users of the prior."""
    totals = weights.sum(axis=1) + prior_users
    theta = np.where(prior_users[:, None] > 0.0, prior, 1.0 / channel.values)
    for _ in range(MAX_UPDATES):
        fitted = np.maximum(channel.forward(theta), MIN_PLAIN_PROBABILITY)
        updated = theta * channel.backward(weights / fitted) + prior_users[:, None] * prior
        updated /= np.maximum(totals, MIN_PLAIN_PROBABILITY)[:, None]
        change = float(np.abs(updated - theta).max())
        theta = updated
        if change < MIN_CHANGE:
            break
    theta[totals == 0.0] = 1.0 / channel.values  # nobody has told anything: all distributions fit
    return np.asarray(theta / theta.sum(axis=1, keepdims=True))
