"""`audit_study`: all mechanisms of a study, and the total epsilon that its users can spend."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from hubbub.auditing.api import DEFAULT_DRAWS, DEFAULT_LEVEL, audit
from hubbub.auditing.privacy_budget import Budget, privacy_budget
from hubbub.auditing.result import Audit
from hubbub.core.errors import SettingError
from hubbub.core.portable import ReadOnly
from hubbub.core.progress import Progress, map_steps, stepwise
from hubbub.intake.study import Study, check_study


@dataclass(frozen=True)
class StudyAudit:
    """An audit of each mechanism, and the budget of a user who sends as many reports as the study allows."""

    study: Study
    audits: Mapping[str, Audit]
    budget: Budget

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
            "mechanisms": {name: audit.document() for name, audit in self.audits.items()},
            "budget": {**self.budget.document(), "text": self.budget.explain()},
        }


@stepwise
def audit_study(
    study: Study, *, mechanism: str | None = None, draws: int = DEFAULT_DRAWS, level: float = DEFAULT_LEVEL
) -> Generator[Progress, None, StudyAudit]:
    """Audit the mechanisms of a study, or one of them, with the number of reports that it allows each user."""
    check_study(study, "audit_study(study)")
    if mechanism is not None and mechanism not in study.mechanisms:
        raise SettingError(
            "the study has no such mechanism",
            where="audit_study(mechanism=)",
            got=repr(mechanism),
            expected=", ".join(study.mechanisms),
            remedy="name one of these, or leave mechanism out to audit them all",
        )
    audits = {}
    for name in list(study.mechanisms) if mechanism is None else [mechanism]:
        run = audit.steps(study.mechanisms[name], draws=draws, level=level, reports_per_user=study.max_reports_per_user)
        audits[name] = yield from map_steps(run, partial(_name_step, name))
    limits = study.max_epsilon_per_user, study.max_epsilon_per_unit
    budget = privacy_budget(list(study.mechanisms.values()), study.max_reports_per_user, limits)
    return StudyAudit(study, ReadOnly(audits), budget)


def _name_step(name: str, step: Progress) -> Progress:
    return step._replace(what=f"{name}: {step.what}")
