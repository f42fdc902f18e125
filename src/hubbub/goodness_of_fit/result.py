"""The result of a goodness-of-fit test: its p-value, its parts, and the outputs that fit worst."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from hubbub.rendering import Fact, facts_html


class Misfit(NamedTuple):
    """An output, a number or a pair that fits badly.

    Attributes
    ----------
    part : str
        The partial test that it belongs to.
    text : str
        What fits badly, in words.
    observed, expected : float
        How many users sent it, and how many would if the best-fitting distribution were true.
    residual : float
        Observed less expected, in standard deviations.
    """

    part: str
    text: str
    observed: float
    expected: float
    residual: float


@dataclass(frozen=True)
class FitPart:
    """One of the partial tests.

    Attributes
    ----------
    name : str
        What is tested.
    statistic : float
        The test statistic.
    degrees : int
        Its degrees of freedom; 0 if only inequalities are tested.
    p_value : float
        How likely a statistic as large is if the reports fit.
    sentence : str
        The result in words.
    """

    name: str
    statistic: float
    degrees: int
    p_value: float
    sentence: str


@dataclass(frozen=True)
class FitTest:
    """Whether any distribution explains the reports: the result of a goodness-of-fit test.

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

    Examples
    --------
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> result = hb.fit_test(hb.Reports.from_counts(coin, {"yes": 950, "no": 50}))
    >>> result.testable, result.p_value < 1e-6
    (True, True)
    >>> worst = result.worst[0]
    >>> worst.text, round(worst.observed), round(worst.expected)
    ('yes', 950, 731)
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
        """The statistic of the part with the smallest p-value; None if nothing could be tested."""
        return self._decisive.statistic if self.parts else None

    @property
    def degrees(self) -> int | None:
        """The degrees of freedom of that part; 0 if only inequalities are tested."""
        return self._decisive.degrees if self.parts else None

    @property
    def _decisive(self) -> FitPart:
        return min(self.parts, key=lambda part: part.p_value)

    def explain(self) -> str:
        """Return the result in words: the verdict, each part, what fits worst, and what cannot be detected.

        Returns
        -------
        str
            Several lines; what printing shows, too.
        """
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
