"""Judging the paper's claims: statistics, findings and verdicts."""

from hubbub.paper.judging.api import judge_claims
from hubbub.paper.judging.claim_evidence import VERDICTS, Finding

__all__ = ["VERDICTS", "Finding", "judge_claims"]
