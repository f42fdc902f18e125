"""What an audit found: the result, its sentences, and its document for JSON."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hubbub.auditing.draws_fit import Fit
from hubbub.auditing.empirical_bounds import Empirical
from hubbub.auditing.events import told
from hubbub.auditing.exact_epsilon import Exact
from hubbub.auditing.privacy_budget import Budget
from hubbub.core.text import percent
from hubbub.estimators.result import finite
from hubbub.rendering import Fact, facts_html

LONGEST = 4096  # bits of a ratio that is written out
LARGEST_COUNT = 1 << 53  # that JSON numbers hold everywhere
ROUNDING = Decimal("1e-12")  # what exceeds a claim by less, relatively, is the rounding of floats


@dataclass(frozen=True)
class Audit:
    """What was found about a claimed epsilon; `explain` tells it in sentences.

    `exact` is the proof from the mechanism's whole numbers; where there is none, `unproven` says why. `empirical` is a
    lower bound from draws of the sampler, `fit` a test of these draws against the matrix (None for a sampler of your
    own), `budget` what a user spends in all. Where reports of one user share a memory, `exact` is about all of them
    together, and `one_report` about a single one.
    """

    name: str
    claim: float
    metric: bool
    unit: str | None
    exact: Exact | None
    unproven: str
    empirical: Empirical
    fit: Fit | None
    budget: Budget
    one_report: Exact | None = None

    @property
    def holds(self) -> bool | None:
        """False where something refutes the claim, True where it is proven; None where it is only not refuted."""
        tested = self.empirical.refuted or self.empirical.repeated or (self.fit is not None and self.fit.rejected)
        if tested or any(not exact.holds for exact in (self.exact, self.one_report) if exact is not None):
            return False
        return None if self.exact is None else True

    @property
    def verdict(self) -> str:
        """The answer in a word or two."""
        if self.holds is False:
            return "refuted"
        if self.holds is None:
            return "not refuted"
        return "proven" if math.isfinite(self.claim) else "no claim"

    def sentences(self) -> list[str]:
        """Return what was found, part by part; the budget comes last."""
        return _sentences(self)

    def explain(self) -> str:
        """Return what was found, in plain sentences."""
        return "\n".join(self.sentences())

    def __str__(self) -> str:
        return f"{self.name}: {self.verdict}\n{self.explain()}"

    def _repr_html_(self) -> str:
        return facts_html([Fact(self.name, self.verdict), Fact("found", self.explain())])

    def document(self) -> dict[str, Any]:
        """Return what was found for JSON, without the budget."""
        return _document(self)

    def to_json(self) -> str:
        """Return what was found as one JSON document."""
        whole = {"version": 1, **self.document(), "budget": self.budget.document()}
        return json.dumps(whole, allow_nan=False, ensure_ascii=False)


def _sentences(audit: Audit) -> list[str]:
    """Return what was found, a sentence or two for each part."""
    lines = [_exact(audit, audit.exact) if audit.exact is not None else f"Not proven: {audit.unproven}."]
    if audit.one_report is not None:
        lines[0] += " That is for all reports about one value together."
        lines.append(f"A single report: epsilon at most {audit.one_report.high}.")
    lines.append(_empirical(audit, audit.empirical))
    if audit.empirical.repeated:
        lines.append(
            "Refuted: two runs of the sampler gave the same outputs. Its randomness is seeded, and whoever knows the "
            "seed reads the values."
        )
    if audit.fit is not None:
        lines.append(_fit(audit.fit))
    lines.append(audit.budget.explain())
    return lines


def _exact(audit: Audit, exact: Exact) -> str:
    covered = "over all pairs of values and all outputs"
    if exact.compared is not None and exact.compared < LARGEST_COUNT:
        covered += f" ({exact.compared:,} comparisons)"
    pair = f"{told(exact.value)} against {told(exact.other)}"
    if exact.low == Decimal("inf"):
        fault = (
            "No epsilon is claimed, and there is none" if exact.holds else "Refuted: no epsilon bounds this mechanism"
        )
        why = f"the output {exact.output} tells {told(exact.value)} from {told(exact.other)}"
        return f"{fault}: {why} with certainty."
    answer, side = ("Proven", "within") if exact.holds else ("Refuted", "more than")
    text = (
        f"{answer}: {covered}, the realised {_epsilon(audit)} is between {exact.low} and {exact.high}, {side} the "
        f"claimed {audit.claim!r}. The largest ratio is that of {pair} for the output {exact.output}."
    )
    if exact.holds:
        return text
    if exact.low <= Decimal(audit.claim) * (1 + ROUNDING):
        text += (
            " So small an excess is the rounding of floats: claim a little more, or give the mechanism an exact law."
        )
    return text


def _epsilon(audit: Audit) -> str:
    if not audit.metric:
        return "epsilon"
    return f"epsilon per {audit.unit}" if audit.unit else "epsilon per unit of distance"


def _empirical(audit: Audit, found: Empirical) -> str:
    values = ", ".join(told(value) for value in found.values)
    text = (
        f"{'Refuted' if found.refuted else 'Tested'}: {_epsilon(audit)} is at least {found.low:.6g} "
        f"(level {percent(found.level)}, {found.draws:,} draws for each of {values}; half of them chose the event, "
        f"half were counted). The event is that {found.event}: {found.happened:,} of {found.counted:,} times for "
        f"{told(found.value)}, {found.happened_other:,} times for {told(found.other)}."
    )
    return text + (f" The claim is {audit.claim!r}." if found.refuted else "")


def _fit(fit: Fit) -> str:
    tests = f"{fit.tests:,} test{'s' * (fit.tests != 1)}"
    if fit.rejected:
        return (
            f"Refuted: the sampler does not follow its matrix (p-value {fit.p_value:.2g} after {tests}; {fit.worst})."
        )
    return f"The draws follow the matrix (smallest p-value of {tests}, times their number: {fit.p_value:.2g})."


def _document(audit: Audit) -> dict[str, Any]:
    """Return what was found for JSON; numbers that are not finite are null."""
    return {
        "claim": finite(audit.claim),
        "metric": audit.metric,
        "unit": audit.unit,
        "holds": audit.holds,
        "verdict": audit.verdict,
        "exact": None if audit.exact is None else _exact_document(audit.exact),
        "one_report": None if audit.one_report is None else _exact_document(audit.one_report),
        "unproven": audit.unproven or None,
        "empirical": _empirical_document(audit.empirical),
        "fit": None
        if audit.fit is None
        else {
            "p_value": audit.fit.p_value,
            "level": audit.fit.level,
            "tests": audit.fit.tests,
            "worst": audit.fit.worst,
            "rejected": audit.fit.rejected,
        },
        "text": audit.explain(),
    }


def _exact_document(exact: Exact) -> dict[str, Any]:
    bounded = exact.low.is_finite()
    return {
        "holds": exact.holds,
        "epsilon": {"low": str(exact.low), "high": str(exact.high)} if bounded else None,
        "ratio": None if exact.ratio is None else _hexadecimal(exact.ratio),
        "value": exact.value,
        "other": exact.other,
        "output": exact.output,
        "distance": exact.distance,
        "compared": exact.compared if exact.compared is not None and exact.compared < LARGEST_COUNT else None,
    }


def _hexadecimal(ratio: Fraction) -> dict[str, str] | None:
    """Return numerator and denominator; None where they are very long (the bounds then tell what is needed)."""
    if max(ratio.numerator.bit_length(), ratio.denominator.bit_length()) > LONGEST:
        return None
    return {"numerator": hex(ratio.numerator), "denominator": hex(ratio.denominator)}


def _empirical_document(found: Empirical) -> dict[str, Any]:
    return {
        "low": finite(found.low),
        "level": found.level,
        "draws": found.draws,
        "counted": found.counted,
        "values": list(found.values),
        "value": found.value,
        "other": found.other,
        "distance": found.distance,
        "event": found.event,
        "happened": found.happened,
        "happened_other": found.happened_other,
        "refuted": found.refuted,
        "repeated": found.repeated,
    }
