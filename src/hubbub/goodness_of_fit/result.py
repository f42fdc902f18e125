"""The result of a goodness-of-fit test: its p-value, its parts, and the outputs that fit worst."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from hubbub.rendering import Fact, facts_html


class Misfit(NamedTuple):
    """An output, a number or a pair that fits badly."""

    part: str
    text: str
    observed: float
    expected: float
    residual: float  # observed less expected, in standard deviations


@dataclass(frozen=True)
class FitPart:
    """One of the partial tests."""

    name: str
    statistic: float
    degrees: int
    p_value: float
    sentence: str


@dataclass(frozen=True)
class FitTest:
    """Whether any distribution explains the reports.

    Attributes
    ----------
    testable : bool
        Whether there was anything to test; `reason` says why not.
    p_value : float or None
        Over all parts: the smallest, times their number (Bonferroni). None if nothing could be tested.
    level : float
        The rate of false alarms.
    rejected : bool
        Whether the p-value is at or below the level: no distribution explains the reports.
    reason : str
        What this test cannot detect; or why there was nothing to test.
    parts : tuple of FitPart
        The partial tests.
    worst : tuple of Misfit
        The outputs, numbers or pairs that fit worst.
    seed : int or str
        The seed of the simulation, or a note that the caller passed a generator.
    """

    testable: bool
    p_value: float | None
    level: float
    rejected: bool
    reason: str
    parts: tuple[FitPart, ...]
    worst: tuple[Misfit, ...]
    seed: int | str

    @property
    def statistic(self) -> float | None:
        """The statistic of the part with the smallest p-value."""
        return self._decisive.statistic if self.parts else None

    @property
    def degrees(self) -> int | None:
        """The degrees of freedom of that part; 0 if only inequalities are tested."""
        return self._decisive.degrees if self.parts else None

    @property
    def _decisive(self) -> FitPart:
        return min(self.parts, key=lambda part: part.p_value)

    def explain(self) -> str:
        """Return the result in words."""
        if self.p_value is None:
            return f"Not testable: {self.reason}."
        verdict = "No distribution explains these reports" if self.rejected else "No evidence against the fit"
        lines = [f"{verdict} (p = {self.p_value:.2g}, level {self.level:g})."]
        lines += [f"- {part.name}: {part.sentence}" for part in self.parts]
        if self.rejected:
            lines += [
                f"  worst: {misfit.text}: {misfit.observed:,.0f} observed, {misfit.expected:,.1f} expected"
                f" ({misfit.residual:+.1f} standard deviations)"
                for misfit in self.worst
            ]
        return "\n".join([*lines, f"{self.reason[0].upper()}{self.reason[1:]}."])

    def __str__(self) -> str:
        return self.explain()

    def _repr_html_(self) -> str:
        return facts_html([Fact("does it fit?", self.explain())])
