"""Is the claimed epsilon true? Proof from whole numbers, tests by draws, and what users spend in all."""

from hubbub.auditing.api import audit, auditing
from hubbub.auditing.error_probability_bounds import error_probability
from hubbub.auditing.result import Audit
from hubbub.auditing.study_audit import StudyAudit, audit_study, auditing_study

__all__ = ["Audit", "StudyAudit", "audit", "audit_study", "auditing", "auditing_study", "error_probability"]
