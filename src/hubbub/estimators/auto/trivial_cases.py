"""Cases in which there is nothing to choose: reports that tell everything, or nothing."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from hubbub.channels import Channel
from hubbub.core.arrays import Floats
from hubbub.estimators.auto.candidate_weights import needed
from hubbub.likelihood import SMALLEST

Extreme = Literal["plain", "blind"]

CERTAIN = 0.99  # chance that a report tells its user's value, from which noise need not be removed
PART = 4_000_000  # entries worked on at a time


def extreme(channel: Channel, weights: Floats) -> Extreme | None:
    """Return "plain" where reports tell the values, "blind" where they could not show even a crowd that agrees."""
    if _certainty(channel, weights) >= CERTAIN:
        return "plain"
    return "blind" if weights.sum() < 2 or _most_told(channel, weights) < needed(channel.values) else None


def _certainty(channel: Channel, weights: Floats) -> float:
    """Return how likely the likeliest value of a report is, before anything is known, on average over users.

    No stored entry is above 1: where even so the average is too low, nothing more is computed. Of many patterns the
    most frequent ones are looked at, and the others count as telling nothing.
    """
    sums = np.maximum(channel.forward(np.ones(channel.values)), 1.0)
    bound = float(weights @ (1.0 / sums) / weights.sum())
    if bound < CERTAIN:
        return bound
    most = max(1, PART // channel.values)
    places = np.sort(np.argsort(-weights, kind="stable")[:most])
    logs = channel.log_columns(places)
    likely = 1.0 / np.maximum(np.exp(logs - logs.max(axis=0)).sum(axis=0), 1.0)
    return float(likely @ weights[places] / weights.sum())


def _most_told(channel: Channel, weights: Floats) -> float:
    """Return a bound on the nats by which a crowd of one value, the most visible, would differ from an even one.

    With chi-square the distance of its outputs from those of an even crowd, log(1 + chi-square) for each user.
    """
    users = float(weights.sum())
    fitted = np.maximum(channel.forward(np.full(channel.values, 1.0 / channel.values)), SMALLEST)
    squares = channel.squares(weights / fitted**2) - 2.0 * channel.backward(weights / fitted) + users
    return users * math.log1p(max(0.0, float(squares.max())) / users)
