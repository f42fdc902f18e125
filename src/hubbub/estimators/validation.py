"""Checks of reports and estimates, shared by all public functions that take them."""

from __future__ import annotations

from hubbub.core.arrays import Floats
from hubbub.core.errors import EstimateError, SettingError, shorten
from hubbub.estimators.result import Estimate
from hubbub.likelihood import ScatteredReports
from hubbub.reports import Reports
from hubbub.reports.filter_sums import refuse_filter_sums


def check_reports(reports: object, where: str, *, filter_sums: bool = False) -> None:
    """Refuse anything but reports in this process; sums of the bits of filters, unless these will do."""
    if isinstance(reports, ScatteredReports):
        raise EstimateError(
            "this needs the reports in one process",
            where=f"{where}(reports)",
            got=f"{reports!r}, stored elsewhere",
            expected="a hubbub.Reports",
            remedy="merge what fits on one machine with reports.merged(); only estimate(), log_likelihood() and "
            "optimality_gap() take reports that are stored elsewhere",
        )
    check_any_reports(reports, where)
    if isinstance(reports, Reports) and not filter_sums:
        refuse_filter_sums(reports.blocks, where)


def check_any_reports(reports: object, where: str) -> None:
    """Refuse anything but reports, in this process or elsewhere."""
    if not isinstance(reports, Reports | ScatteredReports):
        raise EstimateError(
            "not reports",
            where=f"{where}(reports)",
            got=shorten(reports),
            expected="a hubbub.Reports",
            remedy="build them with hubbub.Reports.from_outputs(mechanism, outputs)",
        )


def refuse_weights(reports: Reports, where: str, remedy: str) -> None:
    """Refuse reports with survey weights, where these would be ignored."""
    if reports.survey is not None:
        raise EstimateError(
            "survey weights are not taken into account here",
            where=f"{where}(reports)",
            got=f"{reports!r}",
            expected="reports without weights",
            remedy=remedy,
        )


def check_estimate(estimate: object, reports: Reports, where: str) -> Floats | None:
    """Return the probabilities of an estimate over the domain of the reports; None if there is no estimate."""
    if estimate is None:
        return None
    if not isinstance(estimate, Estimate) or estimate.domain != reports.domain:
        raise SettingError(
            "the estimate does not belong to these reports",
            where=f"{where}(estimate=)",
            got=shorten(estimate),
            expected="what hubbub.estimate returned for the same reports",
            remedy="leave estimate out for that of hubbub.estimate(reports)",
        )
    check_distribution(estimate, f"{where}(estimate=)")
    return estimate.probabilities


def check_distribution(estimate: Estimate, where: str) -> None:
    """Refuse an estimate whose shares are no distribution, where nothing could be said about it."""
    if not estimate.is_distribution:
        raise SettingError(
            "the estimate is not a distribution",
            where=where,
            got=f"an estimate by {estimate.method!r}, {estimate.status}",
            expected="shares that are not negative and add up to 1",
            remedy='estimate with method="inv-p", the nearest distribution; true shares are never negative, so that '
            "an interval for one cannot hold such an estimate",
        )
