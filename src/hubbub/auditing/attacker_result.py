"""The result of `attacker`."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from hubbub.auditing.guess_measures import ENUMERATED, FORMULA, SIMULATED
from hubbub.core.text import percent, plural
from hubbub.rendering import Fact, facts_html

METHOD_TEXTS = {FORMULA: "by a formula", ENUMERATED: "over all outputs"}


@dataclass(frozen=True)
class Attacker:
    """The result of `attacker`: how well one person's value is guessed before and after the person's reports.

    Attributes
    ----------
    name : str
        The mechanism's class.
    prior : str
        What the attacker knows before: "uniform", "given" or "counts", or the name of a file.
    reports_per_user : int
        How many reports of one person are seen.
    prior_vulnerability, vulnerability : float
        How often the best guess is right, without and with the reports (Bayes vulnerability).
    prior_distance, distance : float or None
        The expected distance between the best guess and the truth: of guesses that are as near as possible on average;
        None where it was not computed.
    unit : str or None
        Of distances; None where values are merely different.
    method : str
        "formula", "enumerated" (over all outputs) or "simulated".
    draws : int or None
        How many people were simulated.
    level : float
        Of the intervals; of exact numbers they have no width.
    vulnerability_interval, distance_interval : tuple of float
        What the simulation knows.

    Examples
    --------
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), p=0.75)
    >>> result = hb.attacker(coin)
    >>> result.prior_vulnerability, round(result.vulnerability, 3), round(result.min_entropy_leakage, 3)
    (0.5, 0.75, 0.585)
    """

    name: str
    prior: str
    reports_per_user: int
    prior_vulnerability: float
    vulnerability: float
    prior_distance: float | None
    distance: float | None
    unit: str | None
    method: str
    draws: int | None
    level: float
    vulnerability_interval: tuple[float, float]
    distance_interval: tuple[float, float] | None

    @property
    def leakage(self) -> float:
        """How many times as often the guess is right (multiplicative Bayes leakage)."""
        return self.vulnerability / self.prior_vulnerability

    @property
    def min_entropy_leakage(self) -> float:
        """The same in bits: its logarithm to base 2."""
        return math.log2(self.leakage)

    def sentences(self) -> list[str]:
        """Return how often a guess is right, and how far it is from the truth.

        Returns
        -------
        list of str
            One or two sentences each.
        """
        seen = plural(self.reports_per_user, "report")
        known = {"uniform": "that all values are equally frequent", "given": "the frequencies you passed"}.get(
            self.prior, f"the frequencies in {self.prior}" if self.prior != "counts" else "the counts you passed"
        )
        how = METHOD_TEXTS.get(self.method, f"from {self.draws or 0:,} simulated people")
        lines = [
            f"An attacker who knows {known} guesses one person's value right with probability "
            f"{self.prior_vulnerability:.4g}, and after {seen} of that person with probability "
            f"{self._with_interval(self.vulnerability, self.vulnerability_interval)}, {self.leakage:.4g} times as "
            f"often ({self.min_entropy_leakage:.3g} bits of min-entropy leak; {how})."
        ]
        if self.unit is not None and self.distance is not None and self.prior_distance is not None:
            unit = "" if self.unit == "unit" else f" {self.unit}"
            lines.append(
                f"The guess that is nearest on average misses by {self.prior_distance:.4g}{unit} before, and by "
                f"{self._with_interval(self.distance, self.distance_interval)}{unit} after."
            )
        return lines

    def _with_interval(self, number: float, interval: tuple[float, float] | None) -> str:
        if self.method != SIMULATED or interval is None or interval[0] == interval[1]:
            return f"{number:.4g}"
        return f"{number:.4g} ({interval[0]:.4g} to {interval[1]:.4g} at level {percent(self.level)})"

    def explain(self) -> str:
        """Return the findings in sentences.

        Returns
        -------
        str
            A line for each measure.
        """
        return "\n".join(self.sentences())

    def __str__(self) -> str:
        return self.explain()

    def _repr_html_(self) -> str:
        return facts_html([Fact(self.name, self.explain())])

    def document(self) -> dict[str, Any]:
        """Return the numbers for JSON, without a version.

        Returns
        -------
        dict
            What was not computed is None.
        """
        low, high = self.vulnerability_interval
        nearest, farthest = (None, None) if self.distance_interval is None else self.distance_interval
        return {
            "prior": self.prior,
            "reports_per_user": self.reports_per_user,
            "prior_vulnerability": self.prior_vulnerability,
            "vulnerability": self.vulnerability,
            "vulnerability_low": low,
            "vulnerability_high": high,
            "leakage": self.leakage,
            "min_entropy_leakage": self.min_entropy_leakage,
            "prior_distance": self.prior_distance,
            "distance": self.distance,
            "distance_low": nearest,
            "distance_high": farthest,
            "unit": self.unit,
            "method": self.method,
            "draws": self.draws,
            "level": self.level,
            "text": self.explain(),
        }

    def to_json(self) -> str:
        """Return the result as one JSON document.

        Returns
        -------
        str
            As `document` has it, with a version.
        """
        return json.dumps(
            {"version": 1, "mechanism": self.name, **self.document()}, allow_nan=False, ensure_ascii=False
        )
