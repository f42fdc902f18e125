"""Where a distribution changed: spans of periods that hold a change for certain, and the likeliest place in each.

A span is two or more periods in a row; its hypothesis is that all of them have one distribution. It is tested by the
better of two likelihood ratios, from the same draws (`EqualGroups`): that of all periods against each other, which
finds a period that stands out, and the largest of all earlier against all later periods, which finds steps and drifts.
The smaller p-value is doubled.

**All spans at once.** With alpha = 1 - level, a span of k of the P periods is rejected if its p-value is at most
alpha (k - 1) / (P - 1), and every longer span around it is rejected, too. Then the probability that any span without a
change is rejected is at most alpha, whatever the truth is: let C_1, C_2, ... be the longest spans without a change,
which do not overlap. A span without a change lies in one of them, and is rejected only if that one is. C_r is tested
once, at the level alpha times its share of the P - 1 boundaries between periods, and these shares add up to at most 1.

**Changes.** The shortest rejected span is taken, then the shortest among those that have no boundary in common with it,
and so on (narrowest significance pursuit: Fryzlewicz, 2024). So there are at least as many changes as spans. Where in
its span each change is most likely follows from the likelihood of periods that are equal between changes.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from hubbub.comparison.equality_test import EqualGroups, Equality
from hubbub.comparison.populations import Populations
from hubbub.core.progress import Progress
from hubbub.core.serialization import Portable
from hubbub.intervals.deviance_cutoff import MAX_SIMULATED_VALUES, LocalScores
from hubbub.intervals.interval_endpoints import LikelihoodRegion
from hubbub.likelihood import Likelihood
from hubbub.reports import Reports
from hubbub.trends.common_patterns import CommonPatterns

FEW_DRAWS, MAX_DRAWS = 199, 999  # of the test of a span; the latter if the former does not settle it
SETTLED = 4.0  # a p-value this many times as large, or as small, as the level is settled by few draws or by chi-square


class Span(NamedTuple):
    """The periods from `first` to `last`, by position."""

    first: int
    last: int

    @property
    def boundaries(self) -> int:
        """How many places there are between two of its periods."""
        return self.last - self.first


class FoundChange(NamedTuple):
    """A span that holds a change for certain, its adjusted p-value, and the last period before the likeliest place."""

    span: Span
    adjusted: float
    place: int


@dataclass(frozen=True, eq=False)
class StabilityTest(Portable):
    """The test of "no change at all": all periods against each other, and earlier against later ones."""

    any_difference: Equality
    best_step: Equality

    @property
    def p_value(self) -> float:
        """The smaller p-value, doubled; two periods differ in one way only."""
        return _smaller(self.any_difference, self.best_step)


def _smaller(any_difference: Equality, best_step: Equality) -> float:
    if any_difference is best_step:
        return any_difference.p_value
    return min(1.0, 2.0 * min(any_difference.p_value, best_step.p_value))


class ChangeSearch:
    """The tests of spans of periods; whatever is computed for one of them is computed once."""

    def __init__(
        self, populations: Populations, evidence: CommonPatterns | None, level: float, rng: np.random.Generator
    ) -> None:
        self._populations, self._evidence, self._alpha, self._rng = populations, evidence, 1.0 - level, rng
        self._count = len(populations.reports)
        self._log_likelihoods: dict[Span, float] = {}
        self.adjusted: dict[Span, float] = {}  # p-values of rejected spans

    def test_all(self) -> Generator[Any, None, StabilityTest]:
        """Test whether there is any change."""
        found = yield from _test(self._populations, self._rng)
        test = StabilityTest(found[0], found[-1])
        if test.p_value <= self._alpha:
            self.adjusted[Span(0, self._count - 1)] = test.p_value
        return test

    def find(self) -> Generator[Any, None, list[FoundChange]]:
        """Return the changes in the order of time."""
        for length in range(self._count - 1, 1, -1):
            yield Progress(self._count - length, self._count, "looking for changes")
            for first in range(self._count - length + 1):
                yield from self._consider(Span(first, first + length - 1))
        spans = _narrowest(self.adjusted)
        places = yield from self._likeliest_places(spans)
        return [FoundChange(span, self.adjusted[span], place) for span, place in zip(spans, places, strict=True)]

    def _consider(self, span: Span) -> Generator[Any, None, None]:
        """Test a span if all that hold it are rejected: the two that are longer by one period, by induction."""
        longer = [Span(span.first - 1, span.last), Span(span.first, span.last + 1)]
        around = [each for each in longer if each.first >= 0 and each.last < self._count]
        if not all(each in self.adjusted for each in around):
            return
        factor = (self._count - 1) / span.boundaries
        p_value = yield from self._p_value(span, self._alpha / factor)
        if p_value * factor <= self._alpha:
            self.adjusted[span] = max(p_value * factor, *(self.adjusted[each] for each in around))

    def _p_value(self, span: Span, level: float) -> Generator[Any, None, float]:
        """Return the p-value of a span, with as many draws as it takes to see on which side of its level it is."""
        low, high = yield from self._bounds(span)
        if high * SETTLED <= level or low >= SETTLED * level:
            return high
        part = slice(span.first, span.last + 1)
        populations = Populations(self._populations.reports[part], self._populations.tops[part])
        few = _smaller(*(yield from _test(populations, self._rng, FEW_DRAWS)))
        if few > 0.0 and not level / SETTLED < few < level * SETTLED:
            return few
        return _smaller(*(yield from _test(populations, self._rng, MAX_DRAWS)))

    def _bounds(self, span: Span) -> Generator[Any, None, tuple[float, float]]:
        """Return bounds on the p-value of a span, in the limit of many users.

        Away from the border each ratio follows chi-square, and the largest of several is bounded by one and by the sum
        of all. Near it a ratio is at most that of each part against the common distribution: twice the degrees.
        """
        from scipy.special import chdtrc

        own = 0.0
        for place in range(span.first, span.last + 1):
            own += yield from self._log_likelihood(Span(place, place))
        together = yield from self._log_likelihood(span)
        steps = []
        for place in range(span.first, span.last):
            before = yield from self._log_likelihood(Span(span.first, place))
            after = yield from self._log_likelihood(Span(place + 1, span.last))
            steps.append(2.0 * (before + after - together))
        free, any_difference, best_step = self._populations.values - 1, 2.0 * (own - together), max(steps)
        if not self._is_inside:
            high = 2.0 * min(
                chdtrc((span.boundaries + 1) * free, any_difference), span.boundaries * chdtrc(2 * free, best_step)
            )
            return 0.0, min(1.0, float(high))
        all_periods, one_step = chdtrc(span.boundaries * free, any_difference), chdtrc(free, best_step)
        doubled = 1.0 if span.boundaries == 1 else 2.0
        low, high = (min(all_periods, one_step), min(all_periods, span.boundaries * one_step))
        return min(1.0, float(doubled * low)), min(1.0, float(doubled * high))

    @cached_property
    def _is_inside(self) -> bool:
        """Whether no share of any period may be 0."""
        if self._populations.values > MAX_SIMULATED_VALUES:
            return False
        return all(LocalScores(top, 0, self._rng).is_away_from_border() for top in self._populations.tops)

    def _log_likelihood(self, span: Span) -> Generator[Any, None, float]:
        """Return the largest log-likelihood of one distribution for all periods of a span, up to a constant."""
        if span not in self._log_likelihoods:
            part = slice(span.first, span.last + 1)
            if self._evidence is None:
                region = yield from LikelihoodRegion.around(Likelihood.of(join(self._populations.reports[part])))
                top = region.top
            else:
                top = yield from self._evidence.maximum(self._evidence.weights[part].sum(axis=0))
            self._log_likelihoods[span] = top.log_likelihood
        return self._log_likelihoods[span]

    def _likeliest_places(self, spans: Sequence[Span]) -> Generator[Any, None, list[int]]:
        """Return where in its span each change is most likely: the last periods before them."""
        best: dict[int, tuple[float, list[int]]] = {
            -1: (0.0, [])
        }  # by the last place: log-likelihood before it, places
        for span in spans:
            following: dict[int, tuple[float, list[int]]] = {}
            for place in range(span.first, span.last):
                options = []
                for last, (value, places) in best.items():
                    value += yield from self._log_likelihood(Span(last + 1, place))
                    options.append((value, [*places, place]))
                following[place] = max(options)
            best = following
        ends = []
        for last, (value, places) in best.items():
            value += yield from self._log_likelihood(Span(last + 1, self._count - 1))
            ends.append((value, places))
        return max(ends)[1]


def join(reports: Sequence[Reports]) -> Reports:
    """Return the reports of several periods as those of one."""
    return sum(reports[1:], start=reports[0])


def _test(
    populations: Populations, rng: np.random.Generator, draws: int | None = None
) -> Generator[Any, None, tuple[Equality, Equality]]:
    """Return the tests of any difference and of the best step; for two periods they are the same."""
    null = yield from EqualGroups.of(populations, rng)
    if draws is not None:
        null = replace(null, draws=draws)
    if len(populations.reports) == 2:
        (one,) = yield from null.test([null.ratio.of])
        return one, one
    any_difference, best_step = yield from null.test([null.ratio.of, null.ratio.of_best_step])
    return any_difference, best_step


def _narrowest(adjusted: dict[Span, float]) -> list[Span]:
    """Return rejected spans without a common boundary, shortest first chosen, in the order of time."""
    chosen: list[Span] = []
    for span in sorted(adjusted, key=lambda each: (each.boundaries, adjusted[each], each.first)):
        if all(span.last <= other.first or other.last <= span.first for other in chosen):
            chosen.append(span)
    return sorted(chosen)
