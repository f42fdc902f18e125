"""How the page was computed: facts to repeat it, the same for the same reports.

Dates are those of the data and of the files that were read; a page says when it was made only if it is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

import numpy as np

from hubbub.core.text import plural, whole_percent
from hubbub.estimators import Estimate
from hubbub.estimators.auto import Selection
from hubbub.intake.tallies.tally_summary import Summary
from hubbub.intervals import Band
from hubbub.intervals.set_intervals import SetShares
from hubbub.intervals.window_intervals import FROM_WINDOWS, WINDOWS_NOTE
from hubbub.mechanisms import Matrix, Mechanism
from hubbub.rendering import Fact, upper_text


def computation_facts(
    summary: Summary | None, estimate: Estimate, band: Band | None, linear: SetShares | None, level: float
) -> tuple[Fact, ...]:
    """Return everything a reader needs to compute the page again."""
    facts = [] if summary is None else source_facts([summary])
    facts += [fact for fact in estimate.facts() if fact.label != "gap"]  # the certificate says it in more words
    facts += [
        Fact("stopping rule met", "yes" if estimate.converged else "no"),
        Fact("certificate", _certificate(estimate)),
        *_settings(estimate),
    ]
    if band is not None or linear is not None:
        facts.append(Fact("confidence level", whole_percent(level)))
    if band is not None:
        values = plural(int(np.count_nonzero(~np.isnan(band.low))), "value")
        by_profile = f"profile likelihood, for {values}. {band.note}".strip()
        by_windows = f"{FROM_WINDOWS}, for {values}"
        facts.append(Fact("intervals of values", by_windows if band.note == WINDOWS_NOTE else by_profile))
    if linear is not None:
        known = linear.condition is not None
        condition = f"; condition number of the information matrix: {linear.condition:.2g}" if known else ""
        facts.append(Fact("intervals of sets", f"unbiased linear estimate and its covariance{condition}"))
    facts.append(Fact("hubbub", f"version {version('hubbub')}"))
    return tuple(facts)


def source_facts(summaries: Sequence[Summary]) -> list[Fact]:
    """Return what the reports come from, each fact once: the study, if they were read from sources, and mechanisms."""
    facts = []
    for summary in summaries:
        if summary.rows:  # read from the sources of a study
            facts += [
                Fact("study", summary.study.name or "unnamed"),
                Fact("study fingerprint", summary.study.fingerprint),
            ]
    if facts:
        facts += [
            Fact("rows read", f"{sum(summary.rows for summary in summaries):,}"),
            Fact("rows rejected", f"{sum(sum(summary.rejected.values()) for summary in summaries):,}"),
        ]
    for summary in summaries:
        facts += [Fact(label, text) for label, text in summary.known_dates.page_lines()]
    for summary in summaries:
        facts += [Fact(f"mechanism {name}", _mechanism_text(each)) for name, each in summary.study.mechanisms.items()]
    return list(dict.fromkeys(facts))


def _mechanism_text(mechanism: Mechanism) -> str:
    """Return a mechanism's kind and its epsilon."""
    unit = f" per {mechanism.domain.unit}" if mechanism.metric and mechanism.domain.unit else ""
    epsilon = mechanism.spent(1)
    bound = "without a bound on epsilon" if epsilon == float("inf") else f"epsilon {epsilon:.6g}{unit}"
    origin = f"; {mechanism.origin}" if isinstance(mechanism, Matrix) and mechanism.origin else ""
    return f"{type(mechanism).__name__}, {bound}{origin}"


def _certificate(estimate: Estimate) -> str:
    return (
        f"the mean log-likelihood is at most {upper_text(estimate.gap, 3)} nats per user below its maximum (0: this is "
        "the maximum-likelihood distribution)"
    )


def _settings(estimate: Estimate) -> list[Fact]:
    """Return the settings that were used; the status says what a selection chose."""
    facts = []
    for name, value in estimate.settings.items():
        if isinstance(value, Selection):
            folds = (
                f"{value.folds:,} folds of users, each held out in turn; users were dealt {plural(value.deals, 'time')}"
            )
            compared = f", compared on {folds}" if value.folds else ""
            facts.append(Fact("selection", f"{len(value.candidates):,} candidates{compared}"))
        else:
            label = "seed" if name == "rng" else f"setting {name}"
            facts.append(Fact(label, f"{value:.6g}" if isinstance(value, float) else str(value)))
    return facts
