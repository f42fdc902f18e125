"""Differences of quantiles: each group's quantile with its interval, and the interval of their difference.

The groups are independent. If both intervals hold with probability sqrt(level), both hold together with probability
`level`, and then the difference of the true quantiles is between the extreme differences of their ends.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

from hubbub.core import validation
from hubbub.core.errors import SettingError, shorten
from hubbub.domains import Domain
from hubbub.estimators import Estimate
from hubbub.intervals import Quantile, quantile
from hubbub.reports import Reports

MEDIAN = 0.5


class QuantileDifference(NamedTuple):
    """A quantile in both groups, and how far apart the two are: the second minus the first."""

    probability: float
    first: float
    second: float
    estimate: float
    low: float
    high: float

    @property
    def title(self) -> str:
        """What the quantile is called."""
        return "median" if self.probability == MEDIAN else f"{100 * self.probability:g}% quantile"


def check_quantiles(quantiles: object, domain: Domain, where: str) -> tuple[float, ...]:
    """Return the probabilities of quantiles, which values on a line have."""
    given = tuple(quantiles) if isinstance(quantiles, Sequence) and not isinstance(quantiles, str) else (quantiles,)
    if given and domain.places is None:
        raise SettingError(
            "these values have no quantiles",
            where=f"{where}(quantiles=)",
            got=domain.describe(),
            expected="values on a line: Integers or Bins",
            remedy=f"leave quantiles={shorten(quantiles)} out",
        )
    expected = "probabilities between 0 and 1, such as 0.5 for the median"
    return tuple(validation.share(one, "quantiles", where, expected=expected) for one in given)


def quantile_differences(
    groups: Sequence[Reports], estimates: Sequence[Estimate], probabilities: Sequence[float], level: float
) -> Generator[Any, None, tuple[QuantileDifference, ...]]:
    """Return the difference of each quantile between two groups."""
    found = []
    for probability in probabilities:
        own: list[Quantile] = []
        for reports, estimate in zip(groups, estimates, strict=True):
            own.append((yield from quantile.steps(reports, probability, math.sqrt(level), estimate=estimate)))
        ends = [[_place(groups[0].domain, end) for end in (each.low, each.estimate, each.high)] for each in own]
        (low_a, shown_a, high_a), (low_b, shown_b, high_b) = ends
        found.append(
            QuantileDifference(probability, shown_a, shown_b, shown_b - shown_a, low_b - high_a, high_b - low_a)
        )
    return tuple(found)


def _place(domain: Domain, label: object) -> float:
    """Return the number that a label stands for: the centre of a bin."""
    assert domain.places is not None  # noqa: S101  # of values without places nobody asks for quantiles
    return float(domain.places[int(domain.index(label))])
