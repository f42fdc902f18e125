"""The claims' statistics and verdicts."""

from hubbub.paper.judging.api import check_claims
from hubbub.paper.judging.finding import VERDICTS, Finding

__all__ = ["VERDICTS", "Finding", "check_claims"]
