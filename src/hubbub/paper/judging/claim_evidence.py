"""A claim with everything that was measured, and the finding about it: the verdict, and the numbers behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.paper.claims import Claim, Parameters
from hubbub.paper.figure_specs import Figure
from hubbub.paper.results import Results
from hubbub.paper.settings import Setting

HOLDS = "holds"
EARLY = "holds only with early stopping"
FAILS = "does not hold"
OPEN = "not decided"
VERDICTS = (HOLDS, EARLY, FAILS, OPEN)

NO_SUCH_SETTING = "not measured: this run has none of the settings that the claim is about"


@dataclass(frozen=True)
class Finding:
    """A claim, the verdict on it, and what it rests on."""

    claim: Claim
    verdict: str
    measured: str  # one sentence, with medians and spread
    details: tuple[tuple[str, str], ...] = ()  # what was compared, and what came out

    def document(self) -> dict[str, Any]:
        """Return all of it as texts, for JSON."""
        claim = self.claim
        return {
            "id": claim.id,
            "figure": claim.figure,
            "where": claim.where,
            "says": claim.says,
            "verdict": self.verdict,
            "measured": self.measured,
            "details": [{"name": name, "found": text} for name, text in self.details],
        }


@dataclass(frozen=True)
class ClaimEvidence:
    """A claim, the figures by their names, and what was measured for them."""

    claim: Claim
    figures: Mapping[str, Figure]
    results: Results

    @property
    def parameters(self) -> Parameters:
        """What the claim tells its check."""
        return self.claim.parameters

    @property
    def figure(self) -> Figure:
        """The claim's own figure."""
        return self.figures[self.claim.figure]

    @cached_property
    def settings(self) -> tuple[Setting, ...]:
        """The settings of the figure that the claim is about."""
        wanted = self.parameters
        return tuple(
            setting
            for setting in self.figure.settings
            if (not wanted.truths or setting.truth.name in wanted.truths)
            and (not wanted.mechanisms or setting.mechanism in wanted.mechanisms)
            and (not wanted.epsilons or setting.epsilon in wanted.epsilons)
        )

    @property
    def about_place(self) -> bool:
        """Whether the truth is a city's."""
        return any(setting.truth.kind == "place" for setting in self.settings)

    @property
    def deltas(self) -> tuple[str, ...]:
        """EM as it was measured everywhere: "em 0.1", "em 0.01", ..."""
        names = self.settings[0].methods if self.settings else ()
        return tuple(method for method in names if method.startswith("em "))

    def column(self, setting: Setting, method: str, name: str) -> Floats:
        """Return a column in the order of the runs; empty where it was not measured."""
        column = self.results.column(self.figure, setting, method, name)
        return column[:0] if np.isnan(column).all() else column

    def columns(self, setting: Setting, methods: Iterable[str], name: str) -> dict[str, Floats]:
        """Return the column of each method that was measured."""
        columns = {method: self.column(setting, method, name) for method in methods}
        return {method: column for method, column in columns.items() if len(column)}

    def short(self, setting: Setting, distance: str) -> str:
        """Return a setting and a distance, for a line of a table: what all settings of the claim share is left out."""
        parts: list[str] = []
        if len({each.truth for each in self.settings}) > 1:
            parts.append(setting.truth.name)
        if len({each.groups for each in self.settings}) > 1:
            parts.append(setting.reporting)
        if len({each.users for each in self.settings}) > 1:
            parts.append(f"{setting.users:,} users")
        return ", ".join([*parts, distance.upper()])

    def finding(self, verdict: str, measured: str, details: Iterable[tuple[str, str]] = ()) -> Finding:
        """Return the finding; it says where the people are synthetic, and begins with the paper's own numbers."""
        if self.about_place and self.results.place.synthetic:
            measured = f"In the synthetic city: {measured}"
        published = (("the paper's numbers", text) for text in self.parameters.published)
        return Finding(self.claim, verdict, sentence_case(measured), (*published, *details))

    def undecided(self, why: str, details: Iterable[tuple[str, str]] = ()) -> Finding:
        """Return the finding of a claim that cannot be judged, and why."""
        return Finding(self.claim, OPEN, sentence_case(why), tuple(details))


def spread(values: Floats, digits: int = 4) -> str:
    """Return the median, and the range if there is one: "0.244 (0.223 to 0.261)"."""
    middle = number(float(np.median(values)), digits)
    if len(values) == 1:
        return middle
    return f"{middle} ({number(float(values.min()), digits)} to {number(float(values.max()), digits)})"


def number(value: float, digits: int = 4) -> str:
    """Return a number with some digits, and no exponent where it can be helped.

    >>> number(0.45441), number(0.0), number(1.23456e-7)
    ('0.4544', '0', '1.2e-07')
    """
    if value == 0 or abs(value) >= 1e-4:
        return f"{value:.{digits}g}"
    return f"{value:.2g}"


def sentence_case(text: str) -> str:
    """Return a text that begins and ends as sentences do.

    >>> sentence_case("median 0.2")
    'Median 0.2.'
    """
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
