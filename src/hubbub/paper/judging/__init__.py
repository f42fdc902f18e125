"""Judging the paper's claims: statistics, findings and verdicts."""

from hubbub.paper.judging.api import judge_claims
from hubbub.paper.judging.finding import VERDICTS, Finding

__all__ = ["VERDICTS", "Finding", "judge_claims"]
