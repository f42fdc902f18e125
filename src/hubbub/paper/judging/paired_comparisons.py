"""From comparisons over paired runs to a verdict.

A claim says that something holds at every one of its settings. Two mistakes can be made, and each has a chance of at
most `level` for the claim as a whole:

- to say that it holds though somewhere it does not: every setting has to pass its own test at `level`, and then no
  adjustment is needed, since the setting where the claim is false has to pass as well;
- to say that it does not hold though it does everywhere: one setting is enough, so the p-values of the settings are
  adjusted for how many they are (`family_p`).

A setting whose median difference is within `tie` for sure (by an interval at `level`) is a tie; it does not keep a
claim from holding as long as other settings agree. The exact maximum, which has few runs, may agree in every median
without passing every test (`leans`); the level does not cover that, and the finding says so.

The paper names no delta. A claim about EM is judged with the delta, of those measured, that suits it best; the claim's
own (0.1) where no other does better. The finding lists all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.text import plural
from hubbub.paper.claims import Parameters
from hubbub.paper.judging.claim_evidence import EARLY, FAILS, HOLDS, OPEN, number, spread
from hubbub.paper.judging.paired_statistics import (
    family_p,
    median_interval,
    min_runs,
    relative_differences,
    signed_rank_p,
)

AGREES, REVERSED, TIE, UNCLEAR = "agrees", "reversed", "a tie", "unclear"


@dataclass(frozen=True)
class PairedComparison:
    """Two columns of numbers, run by run: the first should be smaller, or (with a margin) about the same."""

    setting: str
    names: tuple[str, str]
    first: Floats
    second: Floats
    margin: float | None = None
    factor: float = 1.0  # the first should be smaller than this times the second
    floor: float = 0.0  # with a margin: a difference up to this is inside it, too

    @property
    def name(self) -> str:
        """What is expected, and where."""
        much = "" if self.factor == 1.0 else f"{self.factor:g} times "
        sign = f"below {much}" if self.margin is None else "about "
        return f"{self.names[0]} {sign}{self.names[1]}, {self.setting}"

    def cut(self, count: int) -> tuple[Floats, Floats]:
        """Return both columns for the first runs."""
        return self.first[:count], self.factor * self.second[:count]

    def apart(self, count: int) -> Floats:
        """Return the relative differences; of small numbers, relative to where `floor` and `margin` are the same."""
        return relative_differences(*self.cut(count), self.floor / self.margin if self.margin else 0.0)


@dataclass(frozen=True)
class Judged:
    """A comparison, and what came out."""

    comparison: PairedComparison
    outcome: str
    difference: float  # the median of the relative differences
    columns: str  # both medians, and their spread
    test: str

    @property
    def shown(self) -> str:
        """The outcome in words."""
        return "outside the margin" if self.outcome == REVERSED and self.comparison.margin is not None else self.outcome

    @property
    def surprise(self) -> float:
        """How far it is from what is expected."""
        return self.difference if self.comparison.margin is None else abs(self.difference)

    @property
    def text(self) -> str:
        """All of it on one line."""
        return f"{self.shown}: {self.columns}; median difference {self.difference:+.1%}; {self.test}"


@dataclass(frozen=True)
class Judgement:
    """What a family of comparisons says of the claim."""

    verdict: str  # HOLDS, FAILS or OPEN
    judged: tuple[Judged, ...]
    runs: int

    @property
    def details(self) -> list[tuple[str, str]]:
        """Each comparison, and what came out."""
        return [(each.comparison.name, each.text) for each in self.judged]

    def which(self, outcome: str) -> list[Judged]:
        """Return the comparisons with this outcome."""
        return [each for each in self.judged if each.outcome == outcome]

    def leans(self, level: float) -> bool:
        """Return whether every median is as claimed, in enough runs to decide, though chance may have helped."""
        return self.runs >= min_runs(level) and all(
            each.difference < 0 if each.comparison.margin is None else each.surprise <= each.comparison.margin
            for each in self.judged
        )

    @property
    def sentence(self) -> str:
        """How many comparisons agree, where there are ties, and the numbers of the comparison that decides."""
        if len(self.judged) == 1:
            return f"{self.judged[0].columns} over {plural(self.runs, 'run')}"
        parts = [f"{len(self.which(AGREES))} of {len(self.judged)} comparisons agree over {plural(self.runs, 'run')}"]
        for judged in (self.which(REVERSED), self.which(UNCLEAR)):
            if judged:
                parts.append(f"{len(judged)} {judged[0].shown}")
        ties = self.which(TIE)
        if ties:
            parts.append(f"{len(ties)} a tie" + (f" ({ties[0].comparison.name})" if len(ties) == 1 else ""))
        scaled = [each.comparison for each in self.judged if each.comparison.factor != 1.0]
        if scaled:
            nearer = sum(
                bool(np.median(each.first[: self.runs]) < np.median(each.second[: self.runs])) for each in scaled
            )
            parts.append(f"{scaled[0].names[0]} has the smaller median in {nearer} of {len(scaled)}")
        decisive = max(self.which(REVERSED) or self.which(UNCLEAR) or self.judged, key=lambda each: each.surprise)
        worst = "the worst" if decisive.outcome in (REVERSED, UNCLEAR) else "the closest"
        which = worst if decisive.comparison.margin is None else "the largest difference"
        return f"{', '.join(parts)}; {which}, {decisive.comparison.setting}: {decisive.columns}"


def judge(comparisons: Sequence[PairedComparison], parameters: Parameters) -> Judgement:
    """Return what the comparisons say, on the runs that they all have."""
    count = min(min(len(each.first), len(each.second)) for each in comparisons)
    against = _against(comparisons, count)
    judged = tuple(_judged(each, count, p, parameters) for each, p in zip(comparisons, against, strict=True))
    outcomes = {each.outcome for each in judged}
    if REVERSED in outcomes:
        verdict = FAILS
    elif AGREES in outcomes and UNCLEAR not in outcomes:
        verdict = HOLDS
    else:
        verdict = OPEN
    return Judgement(verdict, judged, count)


def _against(comparisons: Sequence[PairedComparison], count: int) -> list[float]:
    """Return for each comparison the adjusted p-value that it is the other way round, or outside its margin."""
    columns: list[Floats] = []
    owners: list[int] = []
    for place, each in enumerate(comparisons):
        first, second = each.cut(count)
        apart = each.apart(count)
        ways = [second - first] if each.margin is None else [each.margin - apart, each.margin + apart]
        columns += ways
        owners += [place] * len(ways)
    p_values = family_p(np.stack(columns, axis=1))
    return [float(min(p_values[np.array(owners) == place])) for place in range(len(comparisons))]


def _judged(each: PairedComparison, count: int, against: float, parameters: Parameters) -> Judged:
    first, second = each.cut(count)
    apart = each.apart(count)
    level = parameters.level
    around = median_interval(apart, level)
    reach = max(-around[0], around[1]) if around else np.inf  # how far from 0 the median may be
    outcome = UNCLEAR
    if each.margin is None:
        chance, middle = signed_rank_p(first - second), np.median(first - second)
        smaller = int(np.count_nonzero(first < second))
        test = (
            f"{smaller} of {plural(count, 'run')} below, p = {number(chance)} (reversed: {number(against)}, adjusted)"
        )
        if chance <= level and middle < 0:
            outcome = AGREES
        elif against <= level and middle > 0:
            outcome = REVERSED
        elif reach <= parameters.tie:
            outcome = TIE
    else:
        known = f"{around[0]:+.1%} to {around[1]:+.1%}" if around else "too few runs for an interval"
        test = f"interval of the median difference: {known}; margin {each.margin:.0%}"
        test += f" or {each.floor:g}" if each.floor else ""
        if reach <= each.margin:
            outcome = AGREES
        elif against <= level:
            outcome = REVERSED
    columns = f"{each.names[0]} {spread(each.first[:count], 3)}, {each.names[1]} {spread(each.second[:count], 3)}"
    return Judged(each, outcome, float(np.median(apart)), columns, test)


def with_early_stopping(stopped: str, maximum: str) -> str:
    """Return the verdict on a claim about EM, from that on EM stopped early and that on the exact maximum."""
    if stopped != HOLDS:
        return stopped
    return EARLY if maximum == FAILS else maximum
