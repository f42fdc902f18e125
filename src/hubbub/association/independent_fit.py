"""The likeliest distribution with two independent attributes.

With shares a of one attribute and b of the other, combinations have the shares a_i b_j. The likelihood is concave in a
for a given b, and the other way round, but not in both: each is maximised in turn by a certified solver, from several
starts. At the end neither can be improved: with D the gradient of the joint likelihood per user,

    max over i of  sum_j D_ij b_j  <= exp(gap)    and    max over j of  sum_i a_i D_ij  <= exp(gap)

(see `likelihood.update_and_gap`), so that `gap` certifies that the point is stationary; whether no other one is
likelier is not certified.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.association.attribute_pair import margin_moves
from hubbub.channels import DenseChannel
from hubbub.core.arrays import Floats
from hubbub.likelihood import Likelihood, Point
from hubbub.solvers.maximum_likelihood import likeliest_point

MAX_ROUNDS = 200
MAX_GAP = 1e-9  # nats per user
MAX_LOST = 1e-4  # of the log-likelihood: a gap below it, over all users, is good enough for a deviance


@dataclass(frozen=True, eq=False)
class IndependentFit:
    """The likeliest shares of both attributes, if they are independent."""

    first: Floats
    second: Floats
    point: Point  # of the joint likelihood
    gap: float  # of either attribute given the other, nats per user

    def axis(self, place: int) -> Point:
        """Return the likelihood of one attribute's shares, given the other's."""
        own, other = (self.first, self.second) if place == 0 else (self.second, self.first)
        return axis_likelihood(self.point.likelihood, place, own.size, other).at(own)


def axis_likelihood(likelihood: Likelihood, place: int, size: int, other: Floats) -> Likelihood:
    """Return the likelihood of the shares of one attribute, given those of the other."""
    if place == 0:
        moves = margin_moves(np.zeros(size), other)[:size]
    else:
        moves = margin_moves(other, np.zeros(size))[other.size :]
    channel = likelihood.channel
    return Likelihood(DenseChannel(channel.forward(moves), channel.log_scale), likelihood.weights, likelihood.users)


def independent_fit(
    likelihood: Likelihood, starts: Sequence[tuple[Floats, Floats]]
) -> Generator[Any, None, IndependentFit]:
    """Return the likeliest of what is found from some starts."""
    best: IndependentFit | None = None
    for first, second in starts:
        fit = yield from _ascend(likelihood, first, second)
        if best is None or fit.point.log_likelihood > best.point.log_likelihood:
            best = fit
    assert best is not None  # noqa: S101  # there are starts
    return best


def _ascend(likelihood: Likelihood, first: Floats, second: Floats) -> Generator[Any, None, IndependentFit]:
    tol = min(MAX_GAP, MAX_LOST / likelihood.users)
    for _ in range(MAX_ROUNDS):
        first = (yield from likeliest_point.steps(axis_likelihood(likelihood, 0, first.size, second), tol)).theta
        second = (yield from likeliest_point.steps(axis_likelihood(likelihood, 1, second.size, first), tol)).theta
        point = likelihood.at(np.outer(first, second).ravel())
        gap = _stationarity(point, first, second)
        if gap <= tol:
            break
    return IndependentFit(first, second, point, gap)


def _stationarity(point: Point, first: Floats, second: Floats) -> float:
    gradient = point.gradient.reshape(first.size, second.size)
    steepest = max(float((gradient @ second).max()), float((first @ gradient).max()))
    return max(0.0, math.log(steepest)) * point.total / point.users
