"""Is the claimed epsilon true? Proof from whole numbers, tests by draws, and what users spend in all."""

from hubbub.auditing.epsilon_audit import audit, auditing
from hubbub.auditing.found import Audit
from hubbub.auditing.study import StudyAudit, audit_study, auditing_study

__all__ = ["Audit", "StudyAudit", "audit", "audit_study", "auditing", "auditing_study"]
