"""`identify`: whether the reports determine one distribution, and what is left open if they do not.

Three questions, from the general to the practical:

* **identifiable**: do any two distributions give the observed patterns different probabilities (the condition of the
  paper's Theorem mlunique)? It is about the mechanisms and which patterns occurred, not about how often.
* **unique**: is there one maximum of the likelihood of these reports? Identifiable implies unique, not the other
  way round: values that have probability 0 at every maximum may be indistinguishable from others.
* **practical**: would so many users show the difference? For a direction v with sum 0 and sum of absolute values 2 (one
  unit of mass exchanged) the information per user is I(v) = sum_i q_i ((v G)_i / f_i)^2 at the maximum. Moving mass m
  along v changes the deviance by about n m^2 I(v), so that m = 1.96 / sqrt(n I(v)) is the least that is noticed at
  95%. If that is more than all there is, even a complete exchange would go unnoticed.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from hubbub.channels import Channel, ConcatenatedChannel, SpikeChannel
from hubbub.core.arrays import Floats, Positions, frozen
from hubbub.core.portable import Portable
from hubbub.core.progress import Progress, finish
from hubbub.core.text import percent
from hubbub.core.threads import step_by_step
from hubbub.domains import Domain
from hubbub.estimators.validation import check_reports
from hubbub.identifiability.all_maxima import CLOSE, Maxima, all_maxima, solving
from hubbub.identifiability.rank import apart, in_play, independent, least_seen, unseen
from hubbub.identifiability.wording import in_words, span, value_list
from hubbub.likelihood import Likelihood, Point
from hubbub.rendering import Fact, as_text, facts_html
from hubbub.reports import Reports

SETTLED = 1e-9  # the gap that is enough where the maximum is known to be unique, as for `estimate`
WIDEST = 3  # values whose ranges are told


@dataclass(frozen=True, eq=False)
class Identification(Portable):
    """What the reports determine, and what they leave open.

    `identifiable`, `unique` and `dimension` (of the set of all maxima; 0 if there is one) are None where the problem
    is too large to decide, which `reason` then says. `lower` and `upper` are the smallest and largest probability of
    each value among all maxima, in the order of ``domain.labels``; outer bounds of these unless `exact`.

    `direction` is the exchange of one unit of mass (sum 0, sum of absolute values 2) that the reports see least, among
    values that may well have some. `blind` is the smallest share that could be moved along it and be noticed: infinite
    where no report sees it. `practical` is False where that is the whole population or more. All three are None
    where they were not looked for; only `practical` is known where there is nothing to exchange.
    """

    domain: Domain
    users: int
    identifiable: bool | None
    unique: bool | None
    dimension: int | None
    lower: Floats
    upper: Floats
    practical: bool | None
    blind: float | None
    direction: Floats | None
    gap: float  # of the maximum that all this was computed at, in nats per user
    exact: bool = True
    reason: str = ""

    def explain(self) -> str:
        """Return all of this in a few plain sentences."""
        told = [self._of_maxima(), self._of_practice(), self.reason]
        return " ".join(sentence for sentence in told if sentence)

    def _of_maxima(self) -> str:
        if self.unique is None:
            return "It is not known whether these reports determine one distribution."
        if not self.unique:
            return self._of_family()
        told = "The reports determine one distribution: no other fits as well."
        if self.identifiable is False:
            told += " They would not tell every distribution from every other, though"
            told += f": not {in_words(self.domain, self.direction)}." if self.direction is not None else "."
        return told

    def _of_family(self) -> str:
        told = "Many distributions fit equally well"
        told += "." if self.dimension is None else f": a family of dimension {self.dimension:,}."
        if self.direction is not None:
            told += f" The reports cannot tell {in_words(self.domain, self.direction)}: what one side has more, the "
            told += "other may have less, and every report stays as likely."
        width = self.upper - self.lower
        widest = np.argsort(-width, kind="stable")[:WIDEST]
        ranges = [
            f"{value_list(self.domain, [place])} can have anything {span(self.lower[place], self.upper[place])}"
            for place in widest[width[widest] > 0].tolist()
            if self.exact
        ]
        return f"{told} {', '.join(ranges)}." if ranges else told

    def _of_practice(self) -> str:
        if self.identifiable is False or self.blind is None or self.direction is None:
            return ""
        users = f"{self.users:,} user{'s' * (self.users != 1)}"
        exchange = in_words(self.domain, self.direction, "for")
        if self.practical:
            return (
                f"What {users} see least is an exchange of {exchange}: "
                f"it would be noticed from a share of {percent(self.blind)} on."
            )
        return f"Practically not identifiable: with {users} even a complete exchange of {exchange} would go unnoticed."

    def facts(self) -> list[Fact]:
        """Return what is worth saying, labelled."""
        words = {True: "yes", False: "no", None: "not known"}
        many = "not known" if self.dimension is None else f"{self.dimension:,}"
        return [
            Fact("identifiable", words[self.identifiable]),
            Fact("one maximum", words[self.unique]),
            Fact("dimension", f"{many} (of the set of all maxima)"),
            Fact("in practice", words[self.practical]),
            Fact("users", f"{self.users:,}"),
            Fact("in words", self.explain()),
        ]

    def __str__(self) -> str:
        return as_text(self.facts())

    def _repr_html_(self) -> str:
        return facts_html(self.facts())

    def __repr__(self) -> str:
        return (
            f"Identification(identifiable={self.identifiable}, unique={self.unique}, dimension={self.dimension}, "
            f"practical={self.practical})"
        )


def identify(reports: Reports) -> Identification:
    """Say whether the reports determine one distribution, and what they leave open where they do not.

    >>> import hubbub as hb
    >>> districts = hb.Cloaking(hb.Categories(["a", "b", "c"]), ["north", "north", "south"])
    >>> answer = hb.identify(hb.Reports.from_counts(districts, {"north": 60, "south": 40}))
    >>> answer.unique, answer.dimension, answer.upper
    (False, 1, array([0.6, 0.6, 0.4]))
    >>> print(answer.explain())
    Many distributions fit equally well: a family of dimension 1. The reports cannot tell 'a' from 'b': what one side
    has more, the other may have less, and every report stays as likely. 'a' can have anything from 0% to 60%, 'b' can
    have anything from 0% to 60%.
    """
    return finish(identifying(reports))


def identifying(reports: Reports) -> Generator[Progress, None, Identification]:
    """Do what `identify` does, yielding how far it has come: for those who show it."""
    check_reports(reports, "identify")
    return step_by_step(_identifying(reports), reports.weights.size * len(reports.domain))


def _identifying(reports: Reports) -> Generator[Progress, None, Identification]:
    likelihood, size = Likelihood.of(reports), len(reports.domain)
    spikes = _spikes(likelihood)
    notes = ["Approximate: only sums of bits were kept, and bits are treated as independent."] * reports.approximate
    yield Progress(0, 1, "what the patterns can tell apart")
    middle = np.full(size, 1.0 / size)
    identifiable = independent(reports, np.arange(size), middle) if spikes is None else spikes.size <= 1
    if identifiable is None:
        patterns = f"{size:,} values and {reports.weights.size:,} patterns"
        notes.append(f"Whether any two distributions could be told apart was not decided: {patterns} are too many.")
    point = yield from solving(likelihood, SETTLED if identifiable else CLOSE)
    if identifiable:
        maxima = Maxima.single(point.theta)
    elif spikes is not None:
        maxima = _of_spikes(point, spikes)
    else:
        maxima = yield from all_maxima(reports, point)
    notes.append(maxima.reason)
    yield Progress(0, 1, "what is seen least")
    best, direction = likelihood.at(maxima.theta), maxima.direction
    practical, blind = None, None
    if identifiable is False or maxima.unique is False:
        identifiable, practical, blind = False, False, math.inf
        if direction is None:
            direction = unseen(reports, maxima.theta) if spikes is None else apart(size, spikes[:2])
    elif identifiable and in_play(best).size <= 1:
        practical = True  # there is nothing to exchange
    else:
        least = least_seen(reports, best) if identifiable else None
        if least is None:
            notes.append("What these users see least was not looked for: there are too many values.")
        else:
            direction, blind = least
            practical = blind < 1.0
    return Identification(
        domain=reports.domain,
        users=reports.users,
        identifiable=identifiable,
        unique=maxima.unique,
        dimension=maxima.dimension,
        lower=frozen(maxima.lower.copy()),
        upper=frozen(maxima.upper.copy()),
        practical=practical,
        blind=blind,
        direction=None if direction is None else frozen(direction),
        gap=best.gap,
        exact=maxima.exact,
        reason=" ".join(note for note in notes if note),
    )


def _spikes(likelihood: Likelihood) -> Positions | None:
    """Return the values that no pattern points at, where each pattern points at one value; None for other channels.

    With likelihood a at a pattern's own value and b at all others, (v G)_i = (a - b) v_x + b sum v: two distributions
    look the same exactly if they agree at all values that were reported. At most one value may be missing.
    """
    channel, sent = likelihood.channel, likelihood.sent
    parts: tuple[Channel, ...] = channel.parts if isinstance(channel, ConcatenatedChannel) else (channel,)
    missing, first, rising = np.ones(channel.values, dtype=bool), 0, True
    for part in parts:
        if not isinstance(part, SpikeChannel) or part.excess == 0.0:
            return None
        rising &= part.excess > 0.0
        pointing = sent[first : first + part.patterns].copy()
        if part.inside is not None:
            pointing &= part.inside
        missing[part.peaks[pointing]] = False
        first += part.patterns
    places = np.flatnonzero(missing)
    return places if rising or places.size <= 1 else None  # `_of_spikes` needs a > b


def _of_spikes(point: Point, missing: Positions) -> Maxima:
    """Return the maxima where each pattern is likeliest at its own value.

    D at a value that was reported is that of the missing ones and more: these are below 1, and have no mass in any
    maximum, unless no value at all was reported (of those that are kept) and every distribution fits alike.
    """
    theta = point.theta
    if missing.size < theta.size:
        return Maxima.single(theta)
    direction = apart(theta.size, missing[:2])
    nothing, everything = np.zeros_like(theta), np.ones_like(theta)
    return Maxima(theta, nothing, everything, unique=False, dimension=theta.size - 1, direction=direction)
