"""Checks of what is compared."""

from __future__ import annotations

from collections.abc import Sequence

from hubbub.core.errors import ReportsError, SettingError, shorten
from hubbub.domains import Domain
from hubbub.estimators import Estimate
from hubbub.estimators.validation import check_estimate, check_reports
from hubbub.reports import Reports

MAX_COMPARED_VALUES = 1_500  # quadratic programs over all of them take seconds
# What each function calls the groups, for messages.
GROUP_ARGUMENTS = {"compare": "a, b", "compare_groups": "groups", "trend": "periods", "report": "given"}


def check_groups(groups: Sequence[object], where: str) -> list[Reports]:
    """Return reports over one domain."""
    checked = []
    for reports in groups:
        check_reports(reports, where)
        assert isinstance(reports, Reports)  # noqa: S101  # what check_reports accepts
        checked.append(reports)
    if any(reports.survey is not None for reports in checked):
        checked = [reports.with_weights() for reports in checked]
    for other in checked[1:]:
        if other.domain != checked[0].domain:
            raise ReportsError(
                "groups over different domains cannot be compared",
                where=f"{where}({GROUP_ARGUMENTS[where]})",
                got=shorten(other.domain, 100),
                expected=shorten(checked[0].domain, 100),
                remedy="collect all groups over the same values, in the same unit",
            )
    check_size(checked[0].domain, where)
    return checked


def check_size(domain: Domain, where: str) -> None:
    """Refuse more values than can be compared one by one, and tested together."""
    if len(domain) > MAX_COMPARED_VALUES:
        raise SettingError(
            "there are too many values to compare",
            where=f"{where}({GROUP_ARGUMENTS[where]})",
            got=f"{len(domain):,} values",
            expected=f"at most {MAX_COMPARED_VALUES:,}",
            remedy="compare over a coarser domain: larger cells, wider bins, or categories that are joined",
        )


def check_estimates(estimates: object, groups: Sequence[Reports], where: str) -> list[Estimate | None]:
    """Return an estimate for each group; None for those that are still to be made."""
    if estimates is None:
        return [None] * len(groups)
    given = list(estimates) if isinstance(estimates, Sequence) else []
    if len(given) != len(groups):
        raise SettingError(
            "estimates must be one for each group",
            where=f"{where}(estimates=)",
            got=shorten(estimates),
            expected=f"{len(groups)} estimates, in the order of the groups",
            remedy="pass what hubbub.estimate returned for each group, or leave estimates out",
        )
    for estimate, reports in zip(given, groups, strict=True):
        check_estimate(estimate, reports, where)
    return given


def check_names(names: object, where: str) -> tuple[str, str]:
    """Return two different names."""
    given = list(names) if isinstance(names, Sequence) and not isinstance(names, str) else []
    if len(given) != 2 or not all(isinstance(name, str) and name for name in given) or given[0] == given[1]:
        raise SettingError(
            "names must be two different names",
            where=f"{where}(names=)",
            got=shorten(names),
            expected="two different strings, such as ('men', 'women')",
            remedy="name the groups, or leave names out",
        )
    return given[0], given[1]
