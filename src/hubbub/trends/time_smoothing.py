"""Smoothing over time, as far as it helps to predict reports that were left out.

The smoothed distribution of a period is the maximum of its local likelihood (Tibshirani and Hastie, 1987): the sum over
all periods of their log-likelihoods, weighted by how near they are in time. Candidates range from equal weights (no
change over time), over weights that fall with the distance (a normal curve), and equal weights between two changes, to
a weight for the period alone. Each is estimated without a fifth of the users of every period, in turn, and
the one that predicts those best is chosen. Only the places of changes come from all users: where one is in doubt, it
is charged as three parameters, which is what choosing the place of a change gains by chance (Ninomiya, 2015).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.comparison.partial_pooling import FOLDS, deal_into_folds
from hubbub.core.arrays import Floats, Positions
from hubbub.core.progress import Progress
from hubbub.core.serialization import Portable
from hubbub.core.text import plural
from hubbub.likelihood import MIN_PLAIN_PROBABILITY
from hubbub.trends.common_patterns import CommonPatterns

CONSTANT, STEPS, SMOOTH, NONE, UNTRIED = "constant", "steps", "smooth", "none", "untried"
BANDWIDTHS = (16.0, 8.0, 4.0, 2.0, 1.0)  # standard deviations of the weights, in typical distances of periods...
MAX_BANDWIDTH = 0.5  # ...of all of them, at most
NATS_OF_PLACE = 3.0  # that choosing where a change was gains by chance, in log-likelihood
MAX_WORK = 2e8  # fits x patterns x values of smooth candidates: about half a minute


@dataclass(frozen=True, eq=False)
class Smoothing(Portable):
    """Which periods count for each period (periods by periods), and what that is called."""

    kind: str
    bandwidth: float  # in typical distances of periods; nan where no curve was chosen
    weights: Floats
    held_out: float  # the log-likelihood of users who were left out, above that of no smoothing

    @property
    def is_none(self) -> bool:
        """Whether every period stands for itself."""
        return self.kind in (NONE, UNTRIED)

    @property
    def sentence(self) -> str:
        """What was chosen, in words."""
        if self.kind == CONSTANT:
            return "Every period is best predicted by all of them together, as if nothing changed over time."
        if self.kind == STEPS:
            return "Periods are best predicted by all reports between two changes."
        if self.kind == NONE:
            return "Every period is best predicted by its own reports: nothing is smoothed."
        if self.kind == UNTRIED:
            return "Nothing is smoothed: there are too many reports that differ to try it."
        distance = plural(round(self.bandwidth), "period")
        return (
            "Periods are best predicted if their neighbours count, too: those at a distance of "
            f"{distance} {100.0 * np.exp(-0.5):.0f}% as much, and less the farther away they are."
        )


def choose_smoothing(
    evidence: CommonPatterns | None,
    times: Floats,
    stretches: Positions,
    doubtful_places: int,
    rng: np.random.Generator,
) -> Generator[Any, None, Smoothing]:
    """Choose how to smooth; `stretches` numbers the periods between two changes, some of whose places are doubtful."""
    if evidence is None:
        return Smoothing(UNTRIED, np.nan, np.eye(times.size), 0.0)
    candidates = _candidates(evidence, times, stretches)
    folds = np.stack([deal_into_folds(own, rng) for own in evidence.weights], axis=1)  # folds by periods by patterns
    scores = np.zeros(len(candidates))
    for done, candidate in enumerate(candidates):
        yield Progress(done, len(candidates), "smoothing over time")
        for own in folds:
            thetas = yield from _fit(evidence, evidence.weights - own, candidate.weights)
            logs = np.log(np.maximum(evidence.channel.forward(thetas), MIN_PLAIN_PROBABILITY))
            scores[done] += float((own * logs).sum())
        if candidate.kind == STEPS:
            scores[done] -= NATS_OF_PLACE * doubtful_places
    best = int(np.argmax(scores))  # the first of equals is the one that smooths most
    chosen = candidates[best]
    return Smoothing(chosen.kind, chosen.bandwidth, chosen.weights, float(scores[best] - scores[-1]))


def smooth(evidence: CommonPatterns, nearness: Floats) -> Generator[Any, None, Floats]:
    """Return the smoothed distribution of each period (periods by values)."""
    return (yield from _fit(evidence, evidence.weights, nearness))


def _candidates(evidence: CommonPatterns, times: Floats, stretches: Positions) -> list[Smoothing]:
    """Return all ways to smooth, the strongest first."""
    count = times.size
    found = [Smoothing(CONSTANT, np.nan, np.ones((count, count)), 0.0)]
    if 0 < stretches[-1] < count - 1:
        found.append(Smoothing(STEPS, np.nan, (stretches[:, None] == stretches).astype(np.float64), 0.0))
    distances = np.abs(times[:, None] - times) / np.median(np.diff(times))
    curves = [width for width in BANDWIDTHS if width <= MAX_BANDWIDTH * float(distances.max())]
    if FOLDS * len(curves) * count * evidence.channel.entries <= MAX_WORK:
        for width in curves:
            found.append(Smoothing(SMOOTH, width, np.exp(-0.5 * (distances / width) ** 2), 0.0))
    return [*found, Smoothing(NONE, np.nan, np.eye(count), 0.0)]


def _fit(evidence: CommonPatterns, weights: Floats, nearness: Floats) -> Generator[Any, None, Floats]:
    """Return the maximum of each period's local likelihood, given weights of patterns; equal rows are one."""
    rows, back = np.unique(nearness, axis=0, return_inverse=True)
    thetas = np.full((len(rows), evidence.channel.values), 1.0 / evidence.channel.values)
    for theta, own in zip(thetas, rows @ weights, strict=True):
        if own.any():  # somebody is left after a fifth was left out
            theta[:] = (yield from evidence.maximum(own)).theta
    return thetas[back.ravel()]
