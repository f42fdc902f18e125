"""The claims' statistics and verdicts."""

from hubbub.experiments.checks.finding import VERDICTS, Finding
from hubbub.experiments.checks.front import check_claims

__all__ = ["VERDICTS", "Finding", "check_claims"]
