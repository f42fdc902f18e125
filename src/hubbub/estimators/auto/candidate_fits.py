"""Families of candidates of `auto`: each yields estimates from stiff to flexible, for many weightings at once.

All of them use the same likelihood; they differ in what they assume about the truth where the reports leave it open.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hubbub.channels import Channel
from hubbub.core.arrays import Floats, frozen
from hubbub.core.text import plural
from hubbub.domains.domain_shape import DomainShape
from hubbub.estimators.auto.candidate_weights import can_stop_fit, min_gain_over_uniform
from hubbub.estimators.auto.fold_scores import log_likelihood
from hubbub.likelihood import MIN_PLAIN_PROBABILITY
from hubbub.solvers.em_path import SmoothedChannel, em_path, smoothed_by
from hubbub.solvers.penalised_likelihood import PenalisedLikelihoods
from hubbub.solvers.penalties import Penalty

START_UPDATES, START_WIDTH = 40, 2.0  # of the smoothed EM from which penalised likelihoods start; width in spacings
MAX_VALUES_OF_PLAIN_STARTS = 200
MAX_EVEN_GROWTH = 2.0  # of the logarithm of a probability, up to which EM's scores grow about evenly
MIN_START_PROBABILITY = 1e-12
MAX_DENSE_SYSTEM_VALUES = 1_000  # up to which linear systems as large as the domain are solved


@dataclass(frozen=True)
class AutoCandidate:
    """A way to estimate, and what to call it."""

    family: str
    description: str
    overfit: str  # what would fit the noise: the next candidates of its path
    updates: int = 0  # of EM
    handicap: float = 0.0  # nats by which it must predict better to count as much


UNIFORM = AutoCandidate("uniform", "the uniform distribution", "any detail")


class WeightedPatterns:
    """Some weightings of the same patterns (weightings by patterns), over a domain with a shape.

    Where `held_out` has the reports that all weightings but the first have to predict, fits that predict far worse than
    `best_score` are given up. Where `modes` has the distributions of candidates, by their descriptions, curves start
    there, and other curves are left out.
    """

    def __init__(
        self,
        channel: Channel,
        weightings: Floats,
        shape: DomainShape,
        held_out: Floats | None = None,
        modes: Mapping[str, Floats] | None = None,
    ) -> None:
        self.channel, self.weightings, self.shape, self.modes = channel, weightings, shape, modes
        self.held_out, self.best_score = held_out, 0.0 if held_out is None else -math.inf
        self.curves: list[Floats] = []  # where earlier smooth curves ended
        self.models: dict[tuple[tuple[int, ...], ...], Floats] = {}  # where the likelihood of models is largest
        self._starts: dict[float, Floats] = {}

    def smoothed_channel(self, width: float) -> tuple[Channel, Floats | None]:
        """Return the channel after a smoothing of the domain, and the smoothing's matrix where there is one."""
        if width == 0.0:
            return self.channel, None
        if self.shape.values <= MAX_DENSE_SYSTEM_VALUES and not self.shape.smooths_along_axes:
            kernel = self.shape.kernel(width)[self.shape.knots(width)]
            return smoothed_by(self.channel, kernel), kernel

        def smooth(rows: Floats) -> Floats:
            return self.shape.smoothed(rows, width)

        def gather(rows: Floats) -> Floats:
            return self.shape.gathered(rows, width)

        return SmoothedChannel(self.channel, smooth, gather), None

    def start(self, width: float) -> Floats:
        """Return where penalised likelihoods start: logarithms of a few updates of EM, smoothed or not."""
        if width not in self._starts:
            channel, kernel = self.smoothed_channel(width)
            theta = next(em_path(channel, self.weightings, [START_UPDATES]))[1]
            if width and kernel is None:
                theta = self.shape.smoothed(theta, width)
            self._starts[width] = frozen(_centred_logs(theta if kernel is None else theta @ kernel))
        return self._starts[width]

    def curve_start(self, penalty: Penalty) -> Floats:
        """Return where a curve starts: near EM; on large domains, to save steps, where it is highest."""
        start = self.start(START_WIDTH)
        if self.shape.values <= MAX_VALUES_OF_PLAIN_STARTS:
            return start
        near = penalty.fitted_to(start, self.weightings[0].sum() * self.pilot)
        return max([near, *self.curves], key=lambda u: float(self.penalised.values(penalty, u[:1])[0]))

    def give_up_rule(self) -> Callable[[Floats], bool] | None:
        """Return a function that says after each step of a fit whether to give it up, from what it fits."""
        held_out, scores = self.held_out, list[float]()
        if held_out is None:
            return None

        def can_give_up(fitted: Floats) -> bool:
            scores.append(log_likelihood(held_out, fitted[1:]))
            return can_stop_fit(scores, self.best_score)

        return can_give_up

    def stays_uniform(self, channel: Channel, phi: Floats, updates: int, last: int) -> bool:
        """Whether EM will not clearly beat the uniform distribution by its last update.

        While no probability can become much larger (by a factor of max D / n in each update), scores grow evenly.
        """
        gain = self.best_score - self.uniform_score
        if gain >= min_gain_over_uniform(self.shape.values):
            return False
        shares = self.weightings / self.weightings.sum(axis=1, keepdims=True)
        ratio = channel.backward(shares / np.maximum(channel.forward(phi), MIN_PLAIN_PROBABILITY))
        growth = float(np.log(ratio.max())) * (last - updates)
        return growth < MAX_EVEN_GROWTH and gain * last / updates * math.exp(growth) < min_gain_over_uniform(
            self.shape.values
        )

    @cached_property
    def uniform_score(self) -> float:
        """What the uniform distribution scores; without held-out reports, so little that all others beat it."""
        if self.held_out is None:
            return -math.inf
        fitted = self.channel.forward(np.full(self.channel.values, 1.0 / self.channel.values))
        return log_likelihood(self.held_out, fitted)

    @cached_property
    def penalised(self) -> PenalisedLikelihoods:
        """The penalised likelihoods of the weightings."""
        return PenalisedLikelihoods(self.channel, self.weightings, self.pilot)

    @cached_property
    def pilot(self) -> Floats:
        """A distribution that roughly fits the first weighting."""
        theta = np.exp(self.start(0.0)[0])
        return np.asarray(theta / theta.sum())


class CandidateFamily(ABC):
    """Candidates with one assumption about the truth, from stiff to flexible."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What the candidates have in common."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many candidates there are."""

    @abstractmethod
    def fits(self, patterns: WeightedPatterns) -> Iterator[tuple[AutoCandidate, Floats]]:
        """Yield each candidate with its estimates (weightings by values)."""


@dataclass(frozen=True)
class StoppedEM(CandidateFamily):
    """EM from the uniform distribution, on a domain smoothed over `width` spacings, stopped early or late."""

    width: float
    stops: tuple[int, ...]
    length: str = ""  # the width in the domain's unit, for people
    handicap: float = 0.0

    @property
    def count(self) -> int:
        """One for each stop."""
        return len(self.stops)

    @property
    def name(self) -> str:
        """EM, smoothed or not."""
        return f"EM smoothed over {self.length}" if self.width else "EM"

    def fits(self, patterns: WeightedPatterns) -> Iterator[tuple[AutoCandidate, Floats]]:
        """Yield the iterates at the stops."""
        channel, kernel = patterns.smoothed_channel(self.width)
        for updates, phi in em_path(channel, patterns.weightings, self.stops):
            if kernel is not None:
                theta = phi @ kernel
            else:
                theta = patterns.shape.smoothed(phi, self.width) if self.width else phi.copy()
            description = f"{self.name} stopped after {plural(updates, 'update')}"
            yield AutoCandidate(self.name, description, "more updates", updates, self.handicap), theta
            if patterns.stays_uniform(channel, phi, updates, self.stops[-1]):
                return


@dataclass(frozen=True, eq=False)
class PenalisedFamily(CandidateFamily):
    """Penalised likelihood, with one penalty after the other; each starts where the one before ended."""

    family: str
    overfit: str
    penalties: Sequence[tuple[str, Penalty]]
    handicap: float = 0.0
    starts_smooth: bool = False  # whether to start from smoothed updates

    @property
    def name(self) -> str:
        """What the penalties assume."""
        return self.family

    @property
    def count(self) -> int:
        """One for each penalty."""
        return len(self.penalties)

    def fits(self, patterns: WeightedPatterns) -> Iterator[tuple[AutoCandidate, Floats]]:
        """Yield the modes."""
        described = [(f"{self.family} ({detail})", penalty) for detail, penalty in self.penalties]
        if patterns.modes is not None and self.penalties[0][1].is_gaussian:
            # Other penalties have several maxima: to start where all users led would tell what was held out.
            for description, penalty in described:
                if description in patterns.modes:
                    u = np.tile(_centred_logs(patterns.modes[description]), (len(patterns.weightings), 1))
                    yield self._candidate(description), patterns.penalised.fit(penalty, u)[1]
            return
        u = patterns.start(START_WIDTH if self.starts_smooth else 0.0)
        is_curve = self.starts_smooth and self.penalties[0][1].is_gaussian
        if is_curve:
            u = patterns.curve_start(self.penalties[0][1])
        for description, penalty in described:
            u, theta = patterns.penalised.fit(penalty, u, patterns.give_up_rule())
            if is_curve:
                patterns.curves.append(u)
            yield self._candidate(description), theta

    def _candidate(self, description: str) -> AutoCandidate:
        return AutoCandidate(self.family, description, self.overfit, handicap=self.handicap)


class UniformFamily(CandidateFamily):
    """The uniform distribution: nothing was learned."""

    name, count = "uniform", 1

    def fits(self, patterns: WeightedPatterns) -> Iterator[tuple[AutoCandidate, Floats]]:
        """Yield it."""
        shape = (len(patterns.weightings), patterns.channel.values)
        yield UNIFORM, np.full(shape, 1.0 / shape[1])


def _centred_logs(theta: Floats) -> Floats:
    logs = np.log(np.maximum(theta, MIN_START_PROBABILITY))
    return np.asarray(logs - logs.mean(axis=-1, keepdims=True))
