"""One attribute of a report with fakes, where the others are not looked at: the true value, or else a fake one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hubbub.channels import Channel
from hubbub.channels.kronecker import MISSING, KroneckerChannel
from hubbub.channels.mixture import MixtureChannel
from hubbub.core.arrays import Array, Codes, Floats, Positions
from hubbub.domains import Domain
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.output_spaces import OutputSpace
from hubbub.mechanisms.several_attributes import matrix_if_small


@dataclass(frozen=True)
class TrueOrFake(Mechanism):
    """A mechanism that is given the true value with probability `chance`, and a fake one otherwise.

    Nobody is told which. Its epsilon, that of `part`, is an upper bound.
    """

    part: Mechanism
    chance: Fraction
    fakes: tuple[float, ...]  # how likely each value is, where it is a fake

    @property
    def domain(self) -> Domain:  # type: ignore[override]  # follows from the part
        """The values of the attribute."""
        return self.part.domain

    @property
    def epsilon(self) -> float:  # type: ignore[override]  # follows from the part
        """That of `part`: fakes only make it smaller."""
        return self.part.epsilon

    @property
    def metric(self) -> bool:  # type: ignore[override]  # follows from the part
        """Whether epsilon is per unit of distance."""
        return self.part.metric

    @property
    def output_space(self) -> OutputSpace:
        """That of `part`."""
        return self.part.output_space

    @property
    def outputs(self) -> Array | None:
        """Those of `part`."""
        return self.part.outputs

    def matrix(self) -> Floats:
        """Return P(output | value), values by outputs."""
        given_truth = self.part.matrix()
        chance = float(self.chance)
        return np.asarray(chance * given_truth + (1.0 - chance) * (np.array(self.fakes) @ given_truth))

    def log_columns(self, codes: Codes, among: Positions | None = None) -> Floats:
        """Return log P(output | value) for encoded outputs."""
        return self.encoded_channel(codes, among).log_dense()

    def encoded_channel(self, codes: Codes, among: Positions | None = None) -> Channel:
        """Return the likelihood of encoded outputs: that of the truth, and the same for all values of a fake."""
        truth = self.part.encoded_channel(codes)
        with np.errstate(divide="ignore"):  # outputs that no fake gives
            faked = np.log(truth.forward(np.array(self.fakes))) + truth.log_scale
        own = np.arange(truth.patterns)[:, None]
        terms = [
            KroneckerChannel([truth], own, np.full(truth.patterns, math.log(self.chance))),
            KroneckerChannel([truth], np.full_like(own, MISSING), faked + math.log1p(-float(self.chance))),
        ]
        return matrix_if_small(MixtureChannel(terms), among, terms=len(terms))
