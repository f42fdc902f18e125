"""The one estimate that everything about some reports speaks of: the one that was passed, or that of `estimate`.

Intervals, verdicts and pages of the same reports ask for it one after the other, so `estimate` remembers it as long as
the reports are in use.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from hubbub.estimators.api import DEFAULT_ESTIMATES
from hubbub.estimators.api import estimate as estimate_reports
from hubbub.estimators.result import Estimate
from hubbub.estimators.validation import check_estimate
from hubbub.reports import Reports


def shown_estimate(reports: Reports, estimate: Estimate | None, where: str) -> Generator[Any, None, Estimate]:
    """Return the estimate that was passed, after a check that it belongs to the reports, or make the default one."""
    if estimate is not None:
        check_estimate(estimate, reports, where)
        return estimate
    return DEFAULT_ESTIMATES.get(reports) or (yield from estimate_reports.steps(reports))
