"""All mechanisms of a study, and what its users spend."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

from hubbub.auditing.api import DRAWS, LEVEL, auditing
from hubbub.auditing.privacy_budget import Budget, budget_of
from hubbub.auditing.result import Audit
from hubbub.core.errors import SettingError
from hubbub.core.portable import ReadOnly
from hubbub.core.progress import Progress, finish
from hubbub.intake.study import Study, check_study


@dataclass(frozen=True)
class StudyAudit:
    """An audit of each mechanism, and the budget of a user who sends as many reports as the study allows."""

    study: Study
    audits: Mapping[str, Audit]
    budget: Budget

    @property
    def holds(self) -> bool | None:
        """False where a claim is refuted, None where one is not proven."""
        found = [audit.holds for audit in self.audits.values()]
        return False if False in found else None if None in found else True

    def document(self) -> dict[str, Any]:
        """Return the document that ``hubbub audit --json`` prints."""
        return {
            "version": 1,
            "fingerprint": self.study.fingerprint,
            "holds": self.holds,
            "mechanisms": {name: audit.document() for name, audit in self.audits.items()},
            "budget": {**self.budget.document(), "text": self.budget.explain()},
        }


def audit_study(study: Study, *, mechanism: str | None = None, draws: int = DRAWS, level: float = LEVEL) -> StudyAudit:
    """Audit the mechanisms of a study, or one of them, with the number of reports that it allows each user."""
    return finish(auditing_study(study, mechanism=mechanism, draws=draws, level=level))


def auditing_study(
    study: Study, *, mechanism: str | None = None, draws: object = DRAWS, level: object = LEVEL
) -> Generator[Progress, None, StudyAudit]:
    """Do the same, and yield progress."""
    check_study(study, "audit_study(study)")
    if mechanism is not None and mechanism not in study.mechanisms:
        raise SettingError(
            "the study has no such mechanism",
            where="audit_study(mechanism=)",
            got=repr(mechanism),
            expected=", ".join(study.mechanisms),
            remedy="name one of these, or leave it out for all",
        )
    names = list(study.mechanisms) if mechanism is None else [mechanism]
    audits = {}
    for name in names:
        run = auditing(study.mechanisms[name], draws=draws, level=level, reports_per_user=study.max_reports_per_user)
        audits[name] = yield from _named(run, name)
    limits = study.max_epsilon_per_user, study.max_epsilon_per_unit
    budget = budget_of(list(study.mechanisms.values()), study.max_reports_per_user, limits)
    return StudyAudit(study, ReadOnly(audits), budget)


def _named(run: Generator[Progress, None, Audit], name: str) -> Generator[Progress, None, Audit]:
    """Say whose progress it is."""
    while True:
        try:
            stage = next(run)
        except StopIteration as done:
            found: Audit = done.value
            return found
        yield stage._replace(what=f"{name}: {stage.what}")
