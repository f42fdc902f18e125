"""How it was computed: facts for those who want to check, the same for the same reports (no dates, no paths)."""

from __future__ import annotations

from importlib.metadata import version

from hubbub.core.text import plural
from hubbub.estimators import Estimate
from hubbub.estimators.auto import Selection
from hubbub.intake.reject_causes import CAUSES
from hubbub.intervals import Band
from hubbub.intervals.set_intervals import SetShares
from hubbub.mechanisms import Mechanism
from hubbub.rendering import Fact, upper_text
from hubbub.reporting.material import Material


def facts_of(
    material: Material, estimate: Estimate, band: Band | None, sets: SetShares | None, level: float
) -> tuple[Fact, ...]:
    """Return all that a reader needs to compute the same again."""
    study = material.study
    facts = []
    if study is not None:
        facts += [Fact("study", study.name or "without a name"), Fact("fingerprint of the study", study.fingerprint)]
    facts += [Fact("users", f"{estimate.users:,}"), Fact("values", f"{len(estimate.domain):,}")]
    if material.rows is not None:
        facts.append(Fact("rows read", f"{material.rows:,}"))
        rejected = sum(material.rejected.values())
        facts.append(Fact("rows rejected", f"{rejected:,}"))
    facts += [Fact(f"mechanism {name}", in_short(mechanism)) for name, mechanism in material.mechanisms.items()]
    facts += [
        Fact("method", estimate.method),
        Fact("status", estimate.status),
        Fact("its own rule was met", "yes" if estimate.converged else "no"),
        Fact("certificate", _certificate(estimate)),
        Fact("log-likelihood", f"{estimate.log_likelihood:,.4f}"),
        Fact("iterations", f"{estimate.iterations:,}"),
        *_settings(estimate),
    ]
    if band is not None or sets is not None:
        facts.append(Fact("confidence level", f"{100 * level:g}%"))
    if band is not None:
        asked = int((band.low == band.low).sum())
        facts.append(
            Fact("intervals of values", f"profile likelihood, for {plural(asked, 'value')}. {band.note}".strip())
        )
    if sets is not None:
        told = f"by an unbiased linear estimate and its covariance; information of condition {sets.condition:.2g}"
        facts.append(Fact("intervals of sets", told))
    facts.append(Fact("hubbub", f"version {version('hubbub')}"))
    return tuple(facts)


def rejected_notes(material: Material) -> list[str]:
    """Return which rows were left out, and why."""
    return [
        f"{plural(count, 'row')} rejected, {code}: {CAUSES[code]}"
        for code, count in sorted(material.rejected.items())
        if count
    ]


def in_short(mechanism: Mechanism) -> str:
    """Return a mechanism's kind and its epsilon."""
    unit = f" per {mechanism.domain.unit}" if mechanism.metric and mechanism.domain.unit else ""
    epsilon = mechanism.spent(1)
    bound = "without a bound on epsilon" if epsilon == float("inf") else f"epsilon {epsilon:.6g}{unit}"
    return f"{type(mechanism).__name__}, {bound}"


def _certificate(estimate: Estimate) -> str:
    return (
        f"the mean log-likelihood is at most {upper_text(estimate.gap, 3)} nats per user below its maximum (0: this is "
        "the likeliest distribution)"
    )


def _settings(estimate: Estimate) -> list[Fact]:
    """Return the settings that were used; what a selection weighed is told by the status."""
    told = []
    for name, value in estimate.settings.items():
        if isinstance(value, Selection):
            text = f"{len(value.candidates):,} candidates, {value.folds:,} parts of the users held out in turn"
            told.append(Fact("selection", text))
        else:
            told.append(
                Fact(
                    "seed" if name == "rng" else f"setting {name}",
                    f"{value:.6g}" if isinstance(value, float) else str(value),
                )
            )
    return told
