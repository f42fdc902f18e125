"""Audits of a claimed epsilon: proofs from whole numbers, tests by draws, and the total that users spend."""

from hubbub.auditing.api import audit, audit_samples, audit_study, audit_study_samples
from hubbub.auditing.attacker_result import Attacker
from hubbub.auditing.error_probability_bounds import error_probability
from hubbub.auditing.guessing_attacker import attacker
from hubbub.auditing.result import Audit, StudyAudit
from hubbub.auditing.sample_result import SampleAudit, StudySampleAudit

__all__ = [
    "Attacker",
    "Audit",
    "SampleAudit",
    "StudyAudit",
    "StudySampleAudit",
    "attacker",
    "audit",
    "audit_samples",
    "audit_study",
    "audit_study_samples",
    "error_probability",
]
