"""What is measured: inputs from a truth, reported by mechanisms, estimated by methods."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from zlib import crc32

import numpy as np

from hubbub.core.arrays import Positions
from hubbub.domains import Domain, Integers
from hubbub.intake.study_entries import MECHANISMS
from hubbub.mechanisms import Mechanism
from hubbub.paper.places import Place


@dataclass(frozen=True)
class MeasuredTruth:
    """Where inputs come from: the people of a place, or draws on the line 0 .. values - 1."""

    kind: str  # "place", "binomial" (of values - 1 coins) or "block" (uniform from low to high)
    values: int = 0
    low: int = 0
    high: int = 0

    @property
    def name(self) -> str:
        """A short name for tables and titles."""
        if self.kind == "place":
            return "place"
        return (
            f"binomial {self.values}" if self.kind == "binomial" else f"block {self.low}-{self.high} of {self.values}"
        )

    def domain(self, place: Place) -> Domain:
        """Return the values that a person may have."""
        return place.grid if self.kind == "place" else Integers(0, self.values - 1)

    def inputs(self, place: Place, users: int, rng: np.random.Generator) -> Positions:
        """Return the true value of each user, by position: everybody of the place, or `users` draws."""
        if self.kind == "place":
            return np.repeat(np.arange(len(place.grid)), place.counts)
        if self.kind == "binomial":
            return rng.binomial(self.values - 1, 0.5, users).astype(np.int64)
        return rng.integers(self.low, self.high + 1, users)


@dataclass(frozen=True)
class Group:
    """Users who report alike: each by every one of these mechanisms, once."""

    share: float
    mechanisms: tuple[tuple[str, float], ...]  # kind as in study files, and epsilon


@dataclass(frozen=True)
class Setting:
    """One experiment, to be run many times."""

    truth: MeasuredTruth
    users: int  # 0: everybody of the place
    groups: tuple[Group, ...]
    methods: tuple[str, ...]  # in every run: "noisy", "inv-n", "inv-p", "em 0.1" (with its delta)
    beyond: tuple[str, ...]  # in the first runs alone: "mle", "auto"
    distances: tuple[str, ...]  # "tv", "emd"

    @property
    def plain(self) -> bool:
        """Whether every user sends one output of the same mechanism."""
        return len(self.groups) == 1 and len(self.groups[0].mechanisms) == 1

    @property
    def mechanism(self) -> str:
        """The kind of the mechanism of a plain setting; otherwise all of them, in words."""
        if self.plain:
            return self.groups[0].mechanisms[0][0]
        parts = []
        for group in self.groups:
            each = " and ".join(f"{kind} {epsilon:g}" for kind, epsilon in group.mechanisms)
            parts.append(each if len(self.groups) == 1 else f"{100 * group.share:g}% by {each}")
        return "; ".join(parts)

    @property
    def epsilon(self) -> float | None:
        """The epsilon of a plain setting."""
        return self.groups[0].mechanisms[0][1] if self.plain else None

    @property
    def reporting(self) -> str:
        """How users report, in short."""
        return f"{self.mechanism} {self.epsilon:g}" if self.plain else self.mechanism

    @property
    def name(self) -> str:
        """The setting in one line."""
        return f"{self.truth.name}, {self.reporting}" + (f", {self.users:,} users" if self.users else "")

    def built(self, place: Place) -> tuple[tuple[Mechanism, ...], ...]:
        """Return the mechanisms of each group, over the truth's domain."""
        domain = self.truth.domain(place)
        return tuple(
            tuple(MECHANISMS[kind](domain, epsilon) for kind, epsilon in group.mechanisms)  # type: ignore[call-arg]
            for group in self.groups
        )

    def as_text(self) -> str:
        """Return everything that decides the results, in one fixed spelling."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))


def generator(seed: int, purpose: str, run: int) -> np.random.Generator:
    """Return the random numbers of one run for one purpose: the same on every machine, whatever else is run."""
    return np.random.default_rng([seed, crc32(purpose.encode()), run])
