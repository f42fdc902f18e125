"""Cases in which there is nothing to choose: reports that reveal everything, or nothing."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from hubbub.channels import Channel
from hubbub.core.arrays import Floats
from hubbub.likelihood import MIN_PLAIN_PROBABILITY

TrivialCase = Literal["certain", "uninformative"]

MIN_CERTAINTY = 0.99  # probability that a report reveals its user's value, from which no noise is left to remove
MIN_CAUTIOUS_VALUES = 4  # two or three get maximum likelihood, with an interval that says how little they tell
MIN_INFORMATION_NATS = 1.0  # by which a crowd with one value must be able to show
MAX_ENTRIES_AT_ONCE = 4_000_000


def trivial_case(channel: Channel, weights: Floats) -> TrivialCase | None:
    """Return "certain" where reports reveal the values, "uninformative" where not even equal users would show."""
    if _certainty(channel, weights) >= MIN_CERTAINTY:
        return "certain"
    is_cautious = channel.values >= MIN_CAUTIOUS_VALUES
    hopeless = weights.sum() < 2 or (is_cautious and _max_information(channel, weights) < MIN_INFORMATION_NATS)
    return "uninformative" if hopeless else None


def _certainty(channel: Channel, weights: Floats) -> float:
    """Return the posterior probability of a report's likeliest value under a uniform prior, averaged over users.

    No stored entry is above 1: where the average is too low even with entries of 1, nothing more is computed. If there
    are many patterns, only the most frequent ones are examined, and the others count as revealing nothing.
    """
    sums = np.maximum(channel.forward(np.ones(channel.values)), 1.0)
    bound = float(weights @ (1.0 / sums) / weights.sum())
    if bound < MIN_CERTAINTY:
        return bound
    most = max(1, MAX_ENTRIES_AT_ONCE // channel.values)
    frequent = np.sort(np.argsort(-weights, kind="stable")[:most])
    logs = channel.log_columns(frequent)
    posterior = 1.0 / np.maximum(np.exp(logs - logs.max(axis=0)).sum(axis=0), 1.0)
    return float(posterior @ weights[frequent] / weights.sum())


def _max_information(channel: Channel, weights: Floats) -> float:
    """Return a bound on the nats by which users who all hold one value would differ from a uniform population.

    The bound is for the value that shows most. With chi-square the distance of its outputs from those of a uniform
    population, it is log(1 + chi-square) for each user.
    """
    users = float(weights.sum())
    fitted = np.maximum(channel.forward(np.full(channel.values, 1.0 / channel.values)), MIN_PLAIN_PROBABILITY)
    squares = channel.squares(weights / fitted**2) - 2.0 * channel.backward(weights / fitted) + users
    return users * math.log1p(max(0.0, float(squares.max())) / users)
