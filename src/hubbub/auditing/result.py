"""The results of audits, their sentences, and their JSON documents."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hubbub.auditing.attacker_result import Attacker
from hubbub.auditing.distinguishing_events import value_text
from hubbub.auditing.empirical_bounds import EmpiricalBound
from hubbub.auditing.exact_epsilon import LOOSE_SHARE, AttributeEpsilons, ExactEpsilon
from hubbub.auditing.pair_bounds import PairBounds
from hubbub.auditing.privacy_budget import Budget
from hubbub.auditing.sampler_fit import DrawsFit
from hubbub.core.text import listed, percent, plural
from hubbub.domains import Domain
from hubbub.domains.product_labels import json_value
from hubbub.estimators.result import finite
from hubbub.intake.study import Study
from hubbub.rendering import Fact, facts_html

MAX_RATIO_BITS = 4096  # of a ratio that JSON writes out
MAX_JSON_INTEGER = 1 << 53  # every JSON reader holds whole numbers below this
FLOAT_ROUNDING = Decimal("1e-12")  # a smaller relative excess over a claim is the rounding of floats


@dataclass(frozen=True)
class Audit:
    """The result of `audit`: whether a claimed epsilon is proven, refuted or neither.

    Attributes
    ----------
    name
        The mechanism's class, or the sampler's name.
    claim
        The claimed epsilon.
    metric, unit
        Whether epsilon is per unit of distance, and that unit.
    exact
        The proof from the mechanism's whole numbers (`holds`, and the bounds `low` and `high` on epsilon), or None. If
        the reports of one user share a memory, it covers all of them together.
    unproven
        Why there is no proof; empty if there is one.
    empirical
        A lower bound on epsilon from draws of the sampler (`low`), and the event that shows it.
    fit
        A test of these draws against the matrix; None for a sampler of your own.
    budget
        The total epsilon that a user spends.
    domain
        The values.
    one_report
        The proof for a single report, if the reports of one user share a memory.
    attributes
        The epsilons of single attributes, where values are combinations of several; otherwise None.
    pairs
        The bounds of `audit(pairs=)`: `holds`, the `worst` pair, and all `pairs` with what they realise; otherwise
        None.
    origin
        Where a `Matrix` says that it is from; empty if nothing is said.

    Examples
    --------
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> result = hb.audit(coin, draws=1000)
    >>> result.holds, result.verdict
    (True, 'proven')
    >>> print(result.budget.explain())
    A user who sends 1 report spends at most epsilon 1.
    """

    name: str
    claim: float
    metric: bool
    unit: str | None
    exact: ExactEpsilon | None
    unproven: str
    empirical: EmpiricalBound
    fit: DrawsFit | None
    budget: Budget
    domain: Domain
    one_report: ExactEpsilon | None = None
    attributes: AttributeEpsilons | None = None
    pairs: PairBounds | None = None
    origin: str = ""

    @property
    def holds(self) -> bool | None:
        """False if the claim, or a bound of a pair, is refuted; True if all is proven, None if it is neither."""
        refuted_by_draws = (
            self.empirical.refuted or self.empirical.repeated or (self.fit is not None and self.fit.rejected)
        )
        if refuted_by_draws or (self.pairs is not None and not self.pairs.holds):
            return False
        if any(not exact.holds for exact in (self.exact, self.one_report) if exact is not None):
            return False
        return None if self.exact is None else True

    @property
    def realised_share(self) -> float | None:
        """The realised epsilon as a share of the claimed one; None without a proof, or without a claim."""
        return None if self.exact is None else self.exact.share_of(self.claim)

    @property
    def loose(self) -> bool | None:
        """Whether the claim holds and clearly less is realised, below 95% of it; None where `realised_share` is."""
        if self.realised_share is None:
            return None
        return self.holds is True and self.realised_share < LOOSE_SHARE

    @property
    def verdict(self) -> str:
        """The answer in a word or two: "proven", "refuted", "not refuted" or "no claim"."""
        if self.holds is False:
            return "refuted"
        if self.holds is None:
            return "not refuted"
        return "proven" if math.isfinite(self.claim) or self.pairs is not None else "no claim"

    def sentences(self) -> list[str]:
        """Return the findings, one or two sentences for each part; the budget comes last."""
        lines = [f"Not proven: {self.unproven}." if self.exact is None else self._exact_sentences(self.exact)]
        if self.origin:
            lines[0] += f" The mechanism is said to be from here: {self.origin}"
        if self.one_report is not None:
            lines[0] += " This covers all reports about one value together."
            lines.append(f"A single report has an epsilon of at most {self.one_report.high}.")
        if self.attributes is not None:
            lines.append(self.attributes.text())
        if self.pairs is not None:
            lines.append(self.pairs.text())
        if self.exact is not None and self.loose:
            lines.append(
                f"Loose: the realised {self._epsilon_text} is {float(self.exact.high):.4g}, {self.realised_share:.0%} "
                f"of the claimed {self.claim:.4g}: users give away less than they are told, and reports have more "
                f"noise than the claim allows.{self._claim_sentence}"
            )
        lines.append(self._empirical_sentences())
        if self.empirical.repeated:
            lines.append(
                "Refuted: two runs of the sampler gave the same outputs. Its generator is seeded, and anyone who knows "
                "the seed can recover the values."
            )
        if self.fit is not None:
            lines.append(_fit_sentence(self.fit))
        lines.append(self.budget.explain())
        return lines

    def explain(self) -> str:
        """Return the findings in sentences, a line for each part of the audit."""
        return "\n".join(self.sentences())

    def __str__(self) -> str:
        return f"{self.name}: {self.verdict}\n{self.explain()}"

    def _repr_html_(self) -> str:
        return facts_html([Fact(self.name, self.verdict), Fact("findings", self.explain())])

    def document(self) -> dict[str, Any]:
        """Return the findings for JSON, without the budget; numbers that are not finite are None."""
        return {
            "claim": finite(self.claim),
            "metric": self.metric,
            "unit": self.unit,
            "holds": self.holds,
            "verdict": self.verdict,
            "exact": None if self.exact is None else self._exact_document(self.exact),
            "one_report": None if self.one_report is None else self._exact_document(self.one_report),
            "attributes": None if self.attributes is None else _attributes_document(self.attributes),
            "pairs": None if self.pairs is None else self.pairs.document(),
            "origin": self.origin or None,
            "realised_share": None if self.realised_share is None else finite(self.realised_share),
            "loose": self.loose,
            "unproven": self.unproven or None,
            "empirical": {
                **asdict(self.empirical),
                "low": finite(self.empirical.low),
                "values": [json_value(value, self.domain) for value in self.empirical.values],
                "value": json_value(self.empirical.value, self.domain),
                "other": json_value(self.empirical.other, self.domain),
            },
            "fit": None if self.fit is None else {**asdict(self.fit), "rejected": self.fit.rejected},
            "text": self.explain(),
        }

    def to_json(self) -> str:
        """Return the findings and the budget as one JSON document."""
        document = {"version": 1, **self.document(), "budget": self.budget.document()}
        return json.dumps(document, allow_nan=False, ensure_ascii=False)

    def _exact_document(self, exact: ExactEpsilon) -> dict[str, Any]:
        pair = {"value": json_value(exact.value, self.domain), "other": json_value(exact.other, self.domain)}
        return _exact_document(exact) | pair

    @property
    def _claim_sentence(self) -> str:
        """What the claim covers besides the pairs that are compared."""
        product = self.domain.product
        if product is None or product.cells is None:
            return ""
        return " The claim would also hold for combinations that the domain calls impossible."

    @property
    def _epsilon_text(self) -> str:
        if not self.metric:
            return "epsilon"
        return f"epsilon per {self.unit}" if self.unit else "epsilon per unit of distance"

    def _exact_sentences(self, exact: ExactEpsilon) -> str:
        value, other = value_text(exact.value), value_text(exact.other)
        if exact.low == Decimal("inf"):
            answer = "No epsilon is claimed, and none exists" if exact.holds else "Refuted: no epsilon exists"
            if exact.ratio is None:
                return f"{answer}. The output {exact.output} is possible for {value} and impossible for {other}."
            return f"{answer}. The output {exact.output} distinguishes {value} from {other}, which are at distance 0."
        comparisons = ""
        if exact.compared is not None and exact.compared < MAX_JSON_INTEGER:
            comparisons = f" ({exact.compared:,} comparisons)"
        answer, relation = ("Proven", "within") if exact.holds else ("Refuted", "more than")
        found = "" if exact.high <= exact.low * (1 + FLOAT_ROUNDING) else " that was found"
        pairs, compared = "pairs of values", f"{value} with {other}"
        if exact.value == exact.other:  # a label that stands for many texts
            pairs, compared = "pairs of texts, listed or not,", f"two texts that {value} stands for"
        text = (
            f"{answer}: over all {pairs} and all outputs{comparisons}, the realised {self._epsilon_text} is "
            f"between {exact.low} and {exact.high}, {relation} the claimed {self.claim!r}. "
            f"The largest ratio{found} compares {compared} (output: {exact.output})."
        )
        if not exact.holds and exact.low <= Decimal(self.claim) * (1 + FLOAT_ROUNDING):
            text += (
                " The excess is no more than the rounding of floats: claim slightly more, or give the mechanism an "
                "exact law."
            )
        return text

    def _empirical_sentences(self) -> str:
        bound = self.empirical
        values = listed([value_text(value) for value in bound.values])
        text = (
            f"{'Refuted' if bound.refuted else 'Tested'}: {self._epsilon_text} is at least {bound.low:.6g} at level "
            f"{percent(bound.level)}, by {bound.draws:,} draws of each of {values}: half choose an event, half count "
            f"it. The event is that {bound.event}: it happened {bound.happened:,} of {bound.counted:,} times for "
            f"{value_text(bound.value)}, and {bound.happened_other:,} times for {value_text(bound.other)}."
        )
        return text + (f" The claim is {self.claim!r}." if bound.refuted else "")


@dataclass(frozen=True)
class StudyAudit:
    """An audit of each mechanism, and the budget of a user who sends as many reports as the study allows.

    `attackers` says how well a person's value is guessed, or why that is not known; None if nobody asked.
    """

    study: Study
    audits: Mapping[str, Audit]
    budget: Budget
    attackers: Mapping[str, Attacker | str] | None = None

    @property
    def holds(self) -> bool | None:
        """False if a claim is refuted, True if all are proven, None otherwise."""
        answers = [audit.holds for audit in self.audits.values()]
        return False if False in answers else None if None in answers else True

    def document(self) -> dict[str, Any]:
        """Return the document that ``hubbub audit --json`` prints."""
        return {
            "version": 1,
            "fingerprint": self.study.fingerprint,
            "holds": self.holds,
            "mechanisms": {
                name: {**audit.document(), **self._attacker_document(name)} for name, audit in self.audits.items()
            },
            "budget": {**self.budget.document(), "text": self.budget.explain()},
        }

    def attacker_text(self, name: str) -> str:
        """Return how well a value is guessed from reports of a mechanism; empty if nobody asked."""
        found = None if self.attackers is None else self.attackers[name]
        if found is None:
            return ""
        return (
            found.explain()
            if isinstance(found, Attacker)
            else f"How well an attacker guesses was not computed: {found}."
        )

    def _attacker_document(self, name: str) -> dict[str, Any]:
        found = None if self.attackers is None else self.attackers[name]
        if isinstance(found, Attacker):
            return {"attacker": found.document(), "attacker_reason": None}
        return {"attacker": None, "attacker_reason": found}


def _fit_sentence(fit: DrawsFit) -> str:
    evidence = f"p-value {fit.p_value:.2g}, corrected for {plural(fit.tests, 'test')}"
    if fit.rejected:
        return f"Refuted: the sampler does not follow its matrix ({evidence}; {fit.worst})."
    return f"The draws follow the matrix ({evidence})."


def _exact_document(exact: ExactEpsilon) -> dict[str, Any]:
    bounded = exact.low.is_finite()
    return {
        "holds": exact.holds,
        "epsilon": {"low": str(exact.low), "high": str(exact.high)} if bounded else None,
        "ratio": None if exact.ratio is None else _hexadecimal(exact.ratio),
        "value": exact.value,
        "other": exact.other,
        "output": exact.output,
        "distance": exact.distance,
        "compared": exact.compared if exact.compared is not None and exact.compared < MAX_JSON_INTEGER else None,
    }


def _attributes_document(attributes: AttributeEpsilons) -> dict[str, Any]:
    return {
        name: {"low": str(low), "high": str(high)} if high.is_finite() else None
        for name, (low, high) in attributes.bounds.items()
    }


def _hexadecimal(ratio: Fraction) -> dict[str, str] | None:
    """Return numerator and denominator; None if they are very long, since the bounds say what is needed."""
    if max(ratio.numerator.bit_length(), ratio.denominator.bit_length()) > MAX_RATIO_BITS:
        return None
    return {"numerator": hex(ratio.numerator), "denominator": hex(ratio.denominator)}
