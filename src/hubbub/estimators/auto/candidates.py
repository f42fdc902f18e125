"""The candidates of `auto`, in recipes: each gives estimates from stiff to supple, for many weightings at once.

All of them see the same likelihood; they differ in what they believe of the truth where the reports leave it open.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hubbub.channels import Channel
from hubbub.core.arrays import Floats, frozen
from hubbub.estimators.auto.domain_shape import Shape
from hubbub.solvers.em_path import Smoothed, em_path, smoothed_by
from hubbub.solvers.penalised_likelihood import Fields
from hubbub.solvers.penalties import Penalty

START_UPDATES, START_WIDTH = 40, 2.0  # of EM, smoothed, from which fields start
FAINTEST = 1e-12  # probability of a value at that start
MOST_RICH = 1_000  # values up to which systems as large as the domain are solved


@dataclass(frozen=True)
class AutoCandidate:
    """A way to estimate, and what to call it."""

    family: str
    words: str
    more: str  # what would have fitted the noise
    updates: int = 0  # of EM
    handicap: float = 0.0  # nats by which it must predict better to count as much


class Sample:
    """Some weightings of the same patterns, over values that have a shape."""

    def __init__(self, channel: Channel, rows: Floats, shape: Shape) -> None:
        self.channel, self.rows, self.shape = channel, rows, shape
        self._starts: dict[float, Floats] = {}

    def behind(self, width: float) -> tuple[Channel, Floats | None]:
        """Return the channel behind a smoothing of the domain, and its matrix where there is one."""
        if width == 0.0:
            return self.channel, None
        if self.shape.values <= MOST_RICH:
            kernel = self.shape.kernel(width)
            return smoothed_by(self.channel, kernel), kernel

        def smooth(rows: Floats) -> Floats:
            return self.shape.smoothed(rows, width)

        return Smoothed(self.channel, smooth, smooth), None

    def start(self, width: float) -> Floats:
        """Return logarithms of what a few updates of EM, smoothed or not, give each weighting: where fields start."""
        if width not in self._starts:
            behind, kernel = self.behind(width)
            theta = next(em_path(behind, self.rows, [START_UPDATES]))[1]
            logs = np.log(np.maximum(theta if kernel is None else theta @ kernel, FAINTEST))
            self._starts[width] = frozen(logs - logs.mean(axis=1, keepdims=True))
        return self._starts[width]

    @cached_property
    def fields(self) -> Fields:
        """The penalised likelihoods."""
        theta = np.exp(self.start(0.0)[0])
        return Fields(self.channel, self.rows, theta / theta.sum())


class Recipe(ABC):
    """Candidates of one family, one after the other."""

    @property
    @abstractmethod
    def family(self) -> str:
        """What they have in common."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many candidates there are."""

    @abstractmethod
    def fits(self, sample: Sample) -> Iterator[tuple[AutoCandidate, Floats]]:
        """Yield each candidate with its estimates (weightings by values)."""


@dataclass(frozen=True)
class Updates(Recipe):
    """EM from the uniform distribution, on a domain smoothed over `width` spacings, stopped early or late."""

    width: float
    stops: tuple[int, ...]
    length: str = ""  # the width in the domain's own unit
    handicap: float = 0.0

    @property
    def count(self) -> int:
        """One for each stop."""
        return len(self.stops)

    @property
    def family(self) -> str:
        """EM, smoothed or not."""
        return f"EM smoothed over {self.length}" if self.width else "EM"

    def fits(self, sample: Sample) -> Iterator[tuple[AutoCandidate, Floats]]:
        """Yield the iterates at the stops."""
        behind, kernel = sample.behind(self.width)
        for updates, phi in em_path(behind, sample.rows, self.stops):
            if kernel is not None:
                theta = phi @ kernel
            else:
                theta = sample.shape.smoothed(phi, self.width) if self.width else phi.copy()
            words = f"{self.family} stopped after {updates:,} update{'s' if updates > 1 else ''}"
            yield AutoCandidate(self.family, words, "more updates", updates, self.handicap), theta


@dataclass(frozen=True, eq=False)
class Field(Recipe):
    """Penalised likelihood, with one penalty after the other; each starts where the one before ended."""

    name: str
    more: str
    penalties: Sequence[tuple[str, Penalty]]
    handicap: float = 0.0
    smooth: bool = False  # whether to start from smoothed updates

    @property
    def family(self) -> str:
        """What the penalties believe."""
        return self.name

    @property
    def count(self) -> int:
        """One for each penalty."""
        return len(self.penalties)

    def fits(self, sample: Sample) -> Iterator[tuple[AutoCandidate, Floats]]:
        """Yield the modes."""
        u = sample.start(START_WIDTH if self.smooth else 0.0)
        for detail, penalty in self.penalties:
            u, theta = sample.fields.fit(penalty, u)
            yield AutoCandidate(self.family, f"{self.family} ({detail})", self.more, handicap=self.handicap), theta


class Even(Recipe):
    """The uniform distribution: nothing was learned."""

    family, count = "uniform", 1

    def fits(self, sample: Sample) -> Iterator[tuple[AutoCandidate, Floats]]:
        """Yield it."""
        shape = (len(sample.rows), sample.channel.values)
        yield AutoCandidate(self.family, "the uniform distribution", "any detail"), np.full(shape, 1.0 / shape[1])
