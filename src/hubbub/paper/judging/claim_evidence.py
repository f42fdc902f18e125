"""The evidence for a claim: the settings it selects, and what was measured there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.paper.claims import Claim
from hubbub.paper.figure_specs import Figure
from hubbub.paper.judging.finding import Finding
from hubbub.paper.results import Results
from hubbub.paper.settings import Setting


@dataclass(frozen=True)
class ClaimEvidence:
    """A figure's settings that a claim is about, and what was measured there."""

    figure: Figure
    results: Results
    settings: tuple[Setting, ...]

    @classmethod
    def of(cls, claim: Claim, figures: Mapping[str, Figure], results: Results) -> ClaimEvidence:
        """Return what was measured for the claim's figure, where the claim's parameters say."""
        figure = figures[claim.figure]
        wanted = claim.parameters
        chosen = tuple(
            setting
            for setting in figure.settings
            if (not wanted.truths or setting.truth.name in wanted.truths)
            and (not wanted.mechanisms or setting.mechanism in wanted.mechanisms)
            and (not wanted.epsilons or setting.epsilon in wanted.epsilons)
        )
        return cls(figure, results, chosen)

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

    def short(self, setting: Setting, distance: str) -> str:
        """Return a setting and a distance, for a line of a table: what all settings of the claim share is left out."""
        parts: list[str] = []
        if len({each.truth for each in self.settings}) > 1:
            parts.append(setting.truth.name)
        if len({each.groups for each in self.settings}) > 1:
            parts.append(reporting(setting))
        if len({each.users for each in self.settings}) > 1:
            parts.append(f"{setting.users:,} users")
        return ", ".join([*parts, distance.upper()])

    def marked(self, finding: Finding) -> Finding:
        """Return the finding, marked where its people are synthetic."""
        if not (self.about_place and self.results.place.synthetic):
            return finding
        return replace(finding, measured=f"In the synthetic city: {finding.measured}")


def reporting(setting: Setting) -> str:
    """Return how users report, in short."""
    return f"{setting.mechanism} {setting.epsilon:g}" if setting.plain else setting.mechanism
