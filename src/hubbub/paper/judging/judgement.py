"""From comparisons over paired runs to a verdict.

A claim says that something holds at every one of its settings. Two mistakes can be made, and each has a chance of at
most `level` for the claim as a whole:

- to say that it holds though somewhere it does not: every setting has to pass its own test at `level`, and then no
  adjustment is needed, since the setting where the claim is false has to pass as well;
- to say that it does not hold though it does everywhere: one setting is enough, so the p-values of the settings are
  adjusted for how many they are (`stats.family_p`).

A setting whose median difference is within `tie` for sure (by an interval at `level`) is a tie; it does not keep a
claim from holding as long as other settings agree. The exact maximum, which has few runs, may agree in every median
without passing every test (`leans`); the level does not cover that, and the finding says so.

The paper names no delta. A claim about EM is judged with the delta, of those measured, that suits it best; the claim's
own (0.1) where no other does better. The finding lists all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.text import plural
from hubbub.paper.claims import Claim, Parameters
from hubbub.paper.judging.finding import (
    EARLY,
    FAILS,
    HOLDS,
    OPEN,
    Finding,
    number,
    spread,
    undecided,
)
from hubbub.paper.judging.paired_statistics import (
    family_p,
    median_interval,
    min_runs,
    relative_differences,
    signed_rank_p,
)
from hubbub.paper.method_names import method_in_sentence

AGREES, REVERSED, TIE, UNCLEAR = "agrees", "reversed", "a tie", "unclear"


@dataclass(frozen=True)
class Comparison:
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

    comparison: Comparison
    outcome: str
    difference: float  # the median of the relative differences
    columns: str  # both medians, and their spread
    test: str

    @property
    def shown(self) -> str:
        """The outcome in words."""
        return "outside the margin" if self.outcome == REVERSED and self.comparison.margin is not None else self.outcome

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

    def which(self, outcome: str) -> list[Judged]:
        """Return the comparisons with this outcome."""
        return [each for each in self.judged if each.outcome == outcome]

    def leans(self, level: float) -> bool:
        """Return whether every median is as claimed, in enough runs to decide, though chance may have helped."""
        return self.runs >= min_runs(level) and all(
            each.difference < 0 if each.comparison.margin is None else abs(each.difference) <= each.comparison.margin
            for each in self.judged
        )

    @property
    def sentence(self) -> str:
        """How many comparisons agree, where there are ties, and the numbers of the comparison that decides."""
        if len(self.judged) == 1:
            return f"{self.judged[0].columns} over {plural(self.runs, 'run')}"
        parts = [f"{len(self.which(AGREES))} of {len(self.judged)} comparisons agree over {plural(self.runs, 'run')}"]
        for outcome in (REVERSED, UNCLEAR):
            such = self.which(outcome)
            if such:
                parts.append(f"{len(such)} {such[0].shown}")
        ties = self.which(TIE)
        if ties:
            parts.append(f"{len(ties)} a tie" + (f" ({ties[0].comparison.name})" if len(ties) == 1 else ""))
        scaled = [each.comparison for each in self.judged if each.comparison.factor != 1.0]
        if scaled:
            nearer = sum(
                bool(np.median(each.first[: self.runs]) < np.median(each.second[: self.runs])) for each in scaled
            )
            parts.append(f"{scaled[0].names[0]} has the smaller median in {nearer} of {len(scaled)}")
        decisive = max(self.which(REVERSED) or self.which(UNCLEAR) or self.judged, key=_surprise)
        return f"{', '.join(parts)}; {_most(decisive)}: {decisive.columns}"


def judge(comparisons: Sequence[Comparison], parameters: Parameters) -> Judgement:
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


def _against(comparisons: Sequence[Comparison], count: int) -> list[float]:
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


def _judged(each: Comparison, count: int, against: float, parameters: Parameters) -> Judged:
    first, second = each.cut(count)
    apart = each.apart(count)
    middle = float(np.median(apart))
    level = parameters.level
    if each.margin is None:
        chance = signed_rank_p(first - second)
        smaller = int(np.count_nonzero(first < second))
        text = (
            f"{smaller} of {plural(count, 'run')} below, p = {number(chance)} (reversed: {number(against)}, adjusted)"
        )
        if chance <= level and np.median(first - second) < 0:
            outcome = AGREES
        elif against <= level and np.median(first - second) > 0:
            outcome = REVERSED
        else:
            around = median_interval(apart, level)
            outcome = TIE if around and max(-around[0], around[1]) <= parameters.tie else UNCLEAR
    else:
        inside = median_interval(apart, level)
        known = f"{inside[0]:+.1%} to {inside[1]:+.1%}" if inside else "too few runs for an interval"
        text = f"interval of the median difference: {known}; margin {each.margin:.0%}"
        text += f" or {each.floor:g}" if each.floor else ""
        if inside and max(-inside[0], inside[1]) <= each.margin:
            outcome = AGREES
        else:
            outcome = REVERSED if against <= level else UNCLEAR
    columns = f"{each.names[0]} {spread(each.first[:count], 3)}, {each.names[1]} {spread(each.second[:count], 3)}"
    return Judged(each, outcome, middle, columns, text)


def judged_with_em(claim: Claim, build: Callable[[str], Sequence[Comparison]], deltas: Sequence[str]) -> Finding:
    """Return the finding of a claim about EM: stopped where the claim says, at other deltas, and at the maximum.

    `build` returns the comparisons for a method in EM's place; for the exact maximum, it leaves out those without EM.
    """
    judgements = {method: judge(built, claim.parameters) for method in [*deltas, "mle"] if (built := build(method))}
    details = tuple(
        (method_in_sentence(method), f"{judgement.verdict}, over {plural(judgement.runs, 'run')}: {_tally(judgement)}")
        for method, judgement in judgements.items()
    )
    own = _best(judgements, f"em {claim.parameters.delta:g}")
    if own not in judgements or "mle" not in judgements:
        absent = " and ".join(method_in_sentence(method) for method in (own, "mle") if method not in judgements)
        return undecided(claim, f"{absent} was not measured", details)
    stopped, maximum = judgements[own], judgements["mle"]
    leaning = maximum.verdict == OPEN and maximum.leans(claim.parameters.level)
    for method in (own, "mle"):
        details += tuple((each.comparison.name, each.text) for each in judgements[method].judged)
    said = [f"{method_in_sentence(own)}: {stopped.verdict}, {stopped.sentence}"]
    verdict_of_maximum = "agrees in every median, though not beyond chance" if leaning else maximum.verdict
    said.append(f"The exact maximum: {verdict_of_maximum}, {_few(maximum, claim) or maximum.sentence}")
    for verdict in (HOLDS, FAILS, OPEN):
        others = [name for name, each in judgements.items() if each.verdict == verdict and name not in (own, "mle")]
        if others:
            said.append(f"EM with delta {', '.join(name.removeprefix('em ') for name in others)}: {verdict}")
    verdict = with_early_stopping(stopped.verdict, HOLDS if leaning else maximum.verdict)
    return Finding(claim, verdict, ". ".join(said), (_rule(claim), *details))


def _best(judgements: Mapping[str, Judgement], own: str) -> str:
    """Return the delta with the best verdict; among equals the claim's own."""
    rank = (HOLDS, OPEN, FAILS)
    stopped = [own, *(method for method in judgements if method not in (own, "mle"))]
    measured = [method for method in stopped if method in judgements]
    return min(measured, key=lambda method: rank.index(judgements[method].verdict), default=own)


def judged_alone(claim: Claim, comparisons: Sequence[Comparison]) -> Finding:
    """Return the finding of a claim that is not about EM."""
    judgement = judge(comparisons, claim.parameters)
    details = tuple((each.comparison.name, each.text) for each in judgement.judged)
    few = f"; {why}" if (why := _few(judgement, claim)) else ""
    return Finding(claim, judgement.verdict, f"{judgement.sentence}{few}", (_rule(claim), *details))


def with_early_stopping(stopped: str, maximum: str) -> str:
    """Return the verdict on a claim about EM, from that on EM stopped early and that on the exact maximum."""
    if stopped == HOLDS and maximum == FAILS:
        return EARLY
    if stopped == HOLDS:
        return maximum
    return stopped


def _tally(judgement: Judgement) -> str:
    words = {AGREES: "agree", REVERSED: "do not", TIE: "tied", UNCLEAR: "unclear"}
    counts = [(word, len(judgement.which(outcome))) for outcome, word in words.items()]
    return ", ".join(f"{count} {word}" for word, count in counts if count)


def _few(judgement: Judgement, claim: Claim) -> str:
    least = min_runs(claim.parameters.level)
    if judgement.runs >= least:
        return ""
    return f"{plural(judgement.runs, 'run')}, too few to decide at {claim.parameters.level:.0%} (at least {least})"


def _rule(claim: Claim) -> tuple[str, str]:
    wanted = claim.parameters
    return "level", f"{wanted.level:.0%} for the claim as a whole; medians within {wanted.tie:.0%} may be a tie"


def _surprise(each: Judged) -> float:
    """Return how far a comparison is from what is expected."""
    return each.difference if each.comparison.margin is None else abs(each.difference)


def _most(each: Judged) -> str:
    if each.comparison.margin is not None:
        return f"the largest difference, {each.comparison.setting}"
    return f"{'the worst' if each.outcome in (REVERSED, UNCLEAR) else 'the closest'}, {each.comparison.setting}"
