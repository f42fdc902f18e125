"""Shares of single attributes: what the reports say about each attribute alone, set in a joint estimate.

The reports say most about single attributes, and much less about how these go together. An estimate that is drawn to a
simpler table as a whole loses some of what they say about one attribute. So each attribute is estimated from what the
reports say about it alone, and the joint estimate moves to the closest one, in relative entropy, with these marginals.

An attribute's own shares are an average of `auto` and of maximum likelihood. Their errors differ, so that the mean is
closer than either; where values are many `auto` counts more, and where the reports tell very much maximum likelihood
does, which has no bias then. Where the reports hardly tell the attribute from equal shares, its shares stay those of
the joint estimate. Finally, the joint estimate moves only as far as makes all reports likelier: where attributes go
closely together, what is said about one tells something about the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hubbub.core.arrays import Floats, Positions
from hubbub.core.errors import ReportsError
from hubbub.core.serialization import Portable
from hubbub.domains.product_shape import ProductShape
from hubbub.estimators.result import Estimate
from hubbub.likelihood import Likelihood
from hubbub.reports import Reports
from hubbub.reports.attribute_reduction import reduced

MAX_SWEEPS, SWEEP_TOL = 1_000, 1e-12  # of iterative proportional fitting; the largest change of a marginal share
MAXIMUM_PART, FEW_VALUES = 0.5, 16  # of maximum likelihood in an attribute's shares; up to so many values...
LARGE_GAIN = 1_000.0  # ...and how many nats they fit better than equal ones where half of what is left is added
HALF_GAIN = 3.0  # the same, where an attribute's own shares and the joint estimate's count alike
MOVES = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the way to the attributes' own shares
INDEPENDENT_PART = 1e-9  # of a joint estimate, so that every value that an attribute is found to have is there


@dataclass(frozen=True)
class AttributeReports:
    """What the reports say about one attribute, and where each pattern of the reports is in it (-1: nowhere)."""

    reports: Reports
    places: Positions

    def weightings(self, weightings: Floats) -> Floats:
        """Return weightings of the patterns (a row each) as weightings of what they say about the attribute."""
        size, kept = self.reports.weights.size, self.places >= 0
        own = self.places[kept]
        return np.stack([np.bincount(own, weights=weights[kept], minlength=size) for weights in weightings])


@dataclass(frozen=True, eq=False)
class AttributeEstimate(Portable):
    """An attribute by itself: the estimate of `auto`, and how much it and maximum likelihood count."""

    estimate: Estimate
    part: float  # of both together; the rest are the joint estimate's own shares
    maximum_part: float  # of maximum likelihood among both

    @classmethod
    def of(cls, estimate: Estimate, likelihood: Likelihood, maximum: Floats) -> AttributeEstimate:
        """Return how much an attribute's own shares count, by the nats by which they fit better than equal ones."""
        uniform = np.full(maximum.size, 1.0 / maximum.size)
        gain = likelihood.at(maximum).log_likelihood - likelihood.at(uniform).log_likelihood
        told = max(gain - (maximum.size - 1) / 2.0, 0.0)  # half a nat for each free share comes by chance
        least = MAXIMUM_PART * min(1.0, FEW_VALUES / maximum.size)
        return cls(estimate, told / (told + HALF_GAIN), least + (1.0 - least) * told / (told + LARGE_GAIN))

    def shares(self, own: Floats, maxima: Floats, joint: Floats) -> Floats:
        """Return the attribute's shares, of its own, the likeliest and the joint estimate's (each rows by values)."""
        alone = self.maximum_part * maxima + (1.0 - self.maximum_part) * own
        return np.asarray(self.part * alone + (1.0 - self.part) * joint)


@dataclass(frozen=True, eq=False)
class AttributeEstimates(Portable):
    """The estimate of each attribute by itself, by name, and how far the joint estimate moved to their shares."""

    estimates: Mapping[str, AttributeEstimate]
    moved: float

    def explain(self) -> str:
        """Return the end of a sentence on the estimate; nothing where it did not move."""
        if self.moved == 0.0:
            return ""
        way = "" if self.moved == 1.0 else f", {self.moved:.0%} of the way"
        return f"; single attributes have the shares that the reports give to each alone{way}"

    def __str__(self) -> str:
        return "; ".join(f"{name} ({own.part:.0%}): {own.estimate.status}" for name, own in self.estimates.items())


def attribute_reports(reports: Reports) -> dict[str, AttributeReports]:
    """Return what the reports say about each attribute that they say something about by itself."""
    product = reports.domain.product
    found = {}
    for name in product.attributes if product is not None else ():
        try:
            own, places = reduced(reports, [name], "estimate(reports)")
        except ReportsError:  # nobody reported it, or all attributes are reported together
            continue
        found[name] = AttributeReports(own, places)
    return found


def marginals(shape: ProductShape, thetas: Floats, name: str) -> Floats:
    """Return the shares of an attribute (rows by its values), of joint estimates (rows by values)."""
    return np.asarray(shape.boxed(thetas).sum(axis=_others(shape, shape.names.index(name))))


def with_marginals(shape: ProductShape, thetas: Floats, shares: Mapping[str, Floats]) -> Floats:
    """Return thetas (rows by values) with other marginals: for some attributes, rows by values of these.

    By iterative proportional fitting: one attribute after the other is set right by multiplying. Where combinations are
    impossible, there may be no distribution with all of these marginals, and the last sweep is returned.
    """
    sides = {shape.names.index(name): own for name, own in shares.items()}
    wanted = {place: own.reshape(len(own), *_along(shape, place)) for place, own in sides.items()}
    box = shape.boxed(thetas)
    independent = shape.boxed(np.ones_like(thetas))
    for own in wanted.values():
        independent = independent * own
    box = (1.0 - INDEPENDENT_PART) * box + INDEPENDENT_PART * independent
    for _ in range(MAX_SWEEPS):
        farthest = 0.0
        for place, own in wanted.items():
            present = box.sum(axis=_others(shape, place), keepdims=True)
            farthest = max(farthest, float(np.abs(present - own).max()))
            box = box * np.divide(own, present, out=np.zeros_like(present), where=present > 0.0)
        if farthest <= SWEEP_TOL:
            break
    rows = shape.unboxed(box)
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def moved_to_marginals(shape: ProductShape, thetas: Floats, shares: Mapping[str, Floats], part: float) -> Floats:
    """Return thetas with marginals that are a part of the way to other ones."""
    if part == 0.0:
        return thetas
    towards = {name: (1.0 - part) * marginals(shape, thetas, name) + part * own for name, own in shares.items()}
    return with_marginals(shape, thetas, towards)


def _others(shape: ProductShape, place: int) -> tuple[int, ...]:
    return tuple(other + 1 for other in range(len(shape.sides)) if other != place)


def _along(shape: ProductShape, place: int) -> tuple[int, ...]:
    return tuple(side if other == place else 1 for other, side in enumerate(shape.sides))
