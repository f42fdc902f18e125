"""The result of `audit_samples`: its sentences, its table, its picture, and its JSON document."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from hubbub.auditing.count_tests import DETECTION_POWER, LawTest, combined_p_value
from hubbub.auditing.distinguishing_events import value_text
from hubbub.auditing.empirical_bounds import EmpiricalBound
from hubbub.core.text import percent, plural, whole_percent
from hubbub.domains import Domain
from hubbub.domains.product_labels import json_value
from hubbub.estimators.result import finite
from hubbub.intake.study import Study
from hubbub.rendering import Fact, facts_html
from hubbub.rendering.new_figure import axes_or_new

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MAX_NAMED_FAULTS = 6  # in a sentence
MAX_ALSO_REJECTED = 3  # kinds of tests that are named besides the clearest


@dataclass(frozen=True)
class SampleAudit:
    """The result of `audit_samples`: whether outputs refute what their client claims.

    Attributes
    ----------
    name
        The mechanism's class.
    claim
        The claimed epsilon of one output.
    metric, unit
        Whether epsilon is per unit of distance, and that unit.
    outputs, values
        The number of outputs, and of different values that they were drawn for.
    level
        The probability with which a correct client passes, whatever is tested: half of the rest goes to the tests of
        the law, half to the bound on epsilon.
    impossible
        How many outputs are none that the mechanism can send; they are in no test.
    first_impossible
        What is wrong with the first of them.
    tests
        The kinds of tests of the law: what each is `about`, its `p_value` (corrected for the number of its `tests`),
        and which of these was the `worst`.
    bound
        A lower bound on epsilon (`low`), and the event that shows it; None without several outputs of two values.
    domain
        The values.

    Examples
    --------
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> inputs = ["yes", "no"] * 2000
    >>> result = hb.audit_samples(coin, inputs, coin.privatize(inputs, rng=1))
    >>> result.verdict, result.holds
    ('no fault found', None)
    >>> hb.audit_samples(coin, inputs, inputs).verdict
    'refuted'
    """

    name: str
    claim: float
    metric: bool
    unit: str | None
    outputs: int
    values: int
    level: float
    impossible: int
    first_impossible: str
    tests: tuple[LawTest, ...]
    bound: EmpiricalBound | None
    domain: Domain

    @property
    def error(self) -> float:
        """The probability of a false alarm that the tests of the law have together, and the bound again."""
        return (1 - self.level) / 2

    @property
    def p_value(self) -> float:
        """The p-value of "the outputs follow the law": of all tests together."""
        return 0.0 if self.impossible else combined_p_value(self.tests)

    @property
    def follows_law(self) -> bool | None:
        """False if the outputs do not follow the mechanism's law; None if that was not shown."""
        return False if self.p_value < self.error else None

    @property
    def keeps_claim(self) -> bool | None:
        """False if the outputs show a larger epsilon than the claimed one; None if they do not."""
        return False if self.bound is not None and self.bound.refuted else None

    @property
    def holds(self) -> bool | None:
        """False if the law or the claim is refuted, None otherwise: outputs never prove a client right."""
        return False if self.follows_law is False or self.keeps_claim is False else None

    @property
    def verdict(self) -> str:
        """The answer: "refuted" or "no fault found"."""
        return "refuted" if self.holds is False else "no fault found"

    @property
    def rejected(self) -> tuple[LawTest, ...]:
        """The kinds of tests that reject the law, the clearest first."""
        return tuple(sorted((test for test in self.tests if self._rejects(test)), key=lambda test: test.p_value))

    def _rejects(self, test: LawTest) -> bool:
        return test.p_value < self.error / len(self.tests)

    def detectable(self, test: LawTest) -> float:
        """Return the difference in probability that a kind of test would have found in nine of ten audits.

        Parameters
        ----------
        test
            One of `tests`.

        Returns
        -------
        float
            For tests of a single probability, how far it is off; for tests of many, the share of the outputs that are
            elsewhere than they should be (the total variation). At most 1: nothing would have been found.
        """
        return test.detectable(self.error / len(self.tests))

    @property
    def detectable_epsilon(self) -> float | None:
        """About how large epsilon has to be, in the counted event, to be refuted in nine of ten audits.

        None without a bound or a claim, or if the event is too frequent to show so much. Logarithms of frequencies are
        taken to be normal.
        """
        from scipy.special import ndtri

        bound = self.bound
        if bound is None or not math.isfinite(self.claim):
            return None
        pairs = (bound.happened, bound.counted), (bound.happened_other, bound.counted_other)
        shares = [(happened + 0.5) / (counted + 1) for happened, counted in pairs]
        errors = [math.sqrt((1 - share) / (share * counted)) for share, (_, counted) in zip(shares, pairs, strict=True)]
        margin = -float(ndtri(self.error / 2)) * sum(errors) + float(ndtri(DETECTION_POWER)) * math.hypot(*errors)
        distance = bound.distance or 1.0
        needed = self.claim + margin / distance
        return needed if needed <= -math.log(shares[1]) / distance else None

    def sentences(self) -> list[str]:
        """Return the findings, one or two sentences for each part.

        Returns
        -------
        list of str
            First whether the outputs follow the law, then the bound on epsilon, last what stays unseen.
        """
        lines = []
        if self.impossible:
            lines.append(
                f"Refuted: {self.impossible:,} of {plural(self.outputs, 'output')} are none that the mechanism can "
                f"send. The first is {self.first_impossible}."
            )
        lines.append(self._law_sentence())
        if self.bound is None:
            lines.append("No bound on epsilon: it takes several outputs of at least two values.")
        else:
            lines.append(self._bound_sentence(self.bound))
        if self.holds is None:
            lines.append(self._power_sentence())
        missing = len(self.domain) - self.values
        if missing:
            lines.append(f"{plural(missing, 'value')} of {len(self.domain):,} had no output: faults there stay unseen.")
        return lines

    def explain(self) -> str:
        """Return the findings in sentences, a line for each part.

        Returns
        -------
        str
            What printing shows, too.
        """
        return "\n".join(self.sentences())

    def summary(self) -> str:
        """Return the answer as a sentence.

        Returns
        -------
        str
            With the number of outputs and the p-value.
        """
        return f"No fault found in {self._subject}." if self.holds is None else f"Refuted by {self._subject}."

    @property
    def _subject(self) -> str:
        return f"{plural(self.outputs, 'output')} of {plural(self.values, 'value')}"

    def _law_sentence(self) -> str:
        if not self.tests:
            return "Whether the outputs follow the law was not tested: their probabilities cannot be listed."
        evidence = f"p-value {combined_p_value(self.tests):.2g} of {plural(len(self.tests), 'kind')} of tests together"
        if not self.rejected:
            start = "Otherwise no" if self.impossible else "No"
            return f"{start} fault found in {self._subject} ({evidence}; below {self.error:.2g} would refute the law)."
        first, *others = self.rejected
        refuted = f"Refuted: the outputs do not follow the law ({evidence}, below {self.error:.2g})."
        text = f"{refuted} Clearest in {first.worst}"
        also = ", ".join(test.worst for test in others[:MAX_ALSO_REJECTED])
        return f"{text}; also in {also}." if others else f"{text}."

    def _bound_sentence(self, bound: EmpiricalBound) -> str:
        unit = "" if not self.metric else f" per {self.unit or 'unit of distance'}"
        claim = f"{self.claim:.6g}" if math.isfinite(self.claim) else None
        text = (
            f"{'Refuted' if bound.refuted else 'Tested'}: epsilon{unit} is at least {bound.low:.4g} at level "
            f"{percent(bound.level)}"
        )
        text += "" if claim is None else f", {'more than' if bound.refuted else 'within'} the claimed {claim}"
        first, second = (
            ("the value", "the partner") if bound.value is None else map(value_text, (bound.value, bound.other))
        )
        return (
            f"{text}. The event is that {bound.event}, chosen by half of the outputs; in the other half it happened "
            f"{bound.happened:,} of {bound.counted:,} times for {first}, and {bound.happened_other:,} of "
            f"{bound.counted_other:,} times for {second}."
        )

    def _power_sentence(self) -> str:
        faults = [
            test.fault.format(percent(size).removesuffix("%"))
            for test in self.tests
            if test.fault and (size := self.detectable(test)) < 1
        ]
        epsilon = self.detectable_epsilon
        if epsilon is not None:
            faults.append(f"an epsilon of more than about {epsilon:.3g}, shown by this event")
        if not faults:
            return "These are too few outputs to find any fault reliably."
        more = "" if len(faults) <= MAX_NAMED_FAULTS else "; and more"
        named = "; ".join([*faults[: MAX_NAMED_FAULTS - 1], faults[-1]] if more else faults)
        return (
            f"Each of these faults would have been found with a probability of {whole_percent(DETECTION_POWER)}: "
            f"{named}{more}. Smaller ones may be there."
        )

    def __str__(self) -> str:
        return f"{self.name}: {self.verdict}\n{self.explain()}"

    def _repr_html_(self) -> str:
        return facts_html([Fact(self.name, self.verdict), Fact("findings", self.explain())])

    def to_frame(self) -> pd.DataFrame:
        """Return the kinds of tests as a pandas table, with a row for each.

        Returns
        -------
        pandas.DataFrame
            Columns ``test``, ``tests`` (how many of this kind), ``p_value``, ``rejected``, ``worst`` and
            ``detectable``.
        """
        import pandas as pd

        rows = [
            [test.about, test.tests, test.p_value, self._rejects(test), test.worst, self.detectable(test)]
            for test in self.tests
        ]
        return pd.DataFrame(rows, columns=["test", "tests", "p_value", "rejected", "worst", "detectable"])

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the p-value of each kind of test, and the line below which it refutes the law.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw; left out, a new figure is made.

        Returns
        -------
        matplotlib.axes.Axes
            The axes that were drawn on.
        """
        from hubbub.auditing.sample_plot import draw_law_tests

        axes = axes_or_new(axes)
        draw_law_tests(self, axes)
        return axes

    def document(self) -> dict[str, Any]:
        """Return the findings for JSON; numbers that are not finite are None.

        Returns
        -------
        dict
            Without a version: it is part of other documents.
        """
        bound = self.bound
        epsilon = self.detectable_epsilon
        return {
            "claim": finite(self.claim),
            "metric": self.metric,
            "unit": self.unit,
            "holds": self.holds,
            "verdict": self.verdict,
            "outputs": self.outputs,
            "values": self.values,
            "level": self.level,
            "impossible": self.impossible,
            "first_impossible": self.first_impossible or None,
            "p_value": self.p_value,
            "error": self.error,
            "follows_law": self.follows_law,
            "tests": [
                {
                    "about": test.about,
                    "tests": test.tests,
                    "p_value": test.p_value,
                    "rejected": self._rejects(test),
                    "worst": test.worst,
                    "detectable": self.detectable(test),
                }
                for test in self.tests
            ],
            "bound": None if bound is None else self._bound_document(bound),
            "detectable_epsilon": None if epsilon is None else finite(epsilon),
            "detection_power": DETECTION_POWER,
            "text": self.explain(),
        }

    def _bound_document(self, bound: EmpiricalBound) -> dict[str, Any]:
        entries = asdict(bound)
        for name in ("repeated", "draws", "values"):  # of samplers that can be asked again
            del entries[name]
        named = {
            name: None if entries[name] is None else json_value(entries[name], self.domain)
            for name in ("value", "other")
        }
        return entries | {"low": finite(bound.low)} | named

    def to_json(self) -> str:
        """Return the findings as one JSON document.

        Returns
        -------
        str
            With a version.
        """
        return json.dumps({"version": 1, **self.document()}, allow_nan=False, ensure_ascii=False)


@dataclass(frozen=True)
class StudySampleAudit:
    """The audit of the outputs of each mechanism of a study; `level` holds for all of them together."""

    study: Study
    audits: Mapping[str, SampleAudit]
    notes: tuple[str, ...] = ()

    @property
    def holds(self) -> bool | None:
        """False if a law or a claim is refuted, None otherwise."""
        return False if any(audit.holds is False for audit in self.audits.values()) else None

    def document(self) -> dict[str, Any]:
        """Return the document that ``hubbub audit --outputs --json`` prints."""
        return {
            "version": 1,
            "fingerprint": self.study.fingerprint,
            "holds": self.holds,
            "mechanisms": {name: audit.document() for name, audit in self.audits.items()},
            "notes": list(self.notes),
        }
