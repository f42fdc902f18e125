"""Checks of what is compared."""

from __future__ import annotations

from collections.abc import Sequence

from hubbub.core.errors import ReportsError, SettingError, shorten
from hubbub.estimators.validation import check_reports
from hubbub.reports import Reports


def check_groups(groups: Sequence[object], where: str) -> list[Reports]:
    """Return reports over one domain."""
    checked = []
    for reports in groups:
        check_reports(reports, where)
        assert isinstance(reports, Reports)  # noqa: S101  # what check_reports accepts
        checked.append(reports)
    for other in checked[1:]:
        if other.domain != checked[0].domain:
            raise ReportsError(
                "groups over different domains cannot be compared",
                where=f"{where}(a, b)",
                got=shorten(other.domain, 100),
                expected=shorten(checked[0].domain, 100),
                remedy="collect both groups over the same values, in the same unit",
            )
    return checked


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
