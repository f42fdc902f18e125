"""What a page is made from: reports, with or without a study; a tally; or an estimate alone."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from hubbub.core.errors import EstimateError, SettingError, shorten
from hubbub.estimators import Estimate
from hubbub.estimators.validation import check_reports
from hubbub.intake import Study, Tally
from hubbub.intake.study_input import StudyInput
from hubbub.intake.tallies.tally_summary import Summary
from hubbub.likelihood import ScatteredReports
from hubbub.mechanisms import Mechanism
from hubbub.reports import Reports
from hubbub.reports.privacy_accounting import Spent

WHERE = "report"


class PageInput(NamedTuple):
    """Reports or an estimate, and what was counted to get them."""

    reports: Reports | None
    estimate: Estimate | None = None
    summary: Summary | None = None  # of reports alone: no rows, and a study of their mechanisms, named by their kinds


def page_input(given: object, estimate: Estimate | None) -> PageInput:
    """Return what a page can be made from; refuse everything else."""
    if isinstance(given, Estimate):
        if estimate is not None:
            raise _wrong_estimate(
                estimate,
                "two estimates were given",
                expected="reports with estimate=, or one estimate alone",
                remedy="pass the reports first: report(reports, path, estimate=estimate)",
            )
        return PageInput(None, given)
    source = _from_reports(given)
    if estimate is None:
        return source
    reports = source.reports
    if (
        not isinstance(estimate, Estimate)
        or reports is None
        or (estimate.domain, estimate.users) != (reports.domain, reports.users)
    ):
        raise _wrong_estimate(
            estimate,
            "the estimate does not come from these reports",
            expected="what hubbub.estimate returned for the same reports",
            remedy="leave estimate out: it is then computed",
        )
    return source._replace(estimate=estimate)


def _from_reports(given: object) -> PageInput:
    reports = given.reports if isinstance(given, Tally | StudyInput) else given
    if isinstance(reports, ScatteredReports):
        check_reports(reports, WHERE)
    if not isinstance(reports, Reports):
        raise EstimateError(
            "nothing to report on",
            where=WHERE,
            got=shorten(given),
            expected="reports, a tally, or an estimate",
            remedy="pass what hubbub.read_reports, hubbub.read_tally or hubbub.estimate returned",
        )
    if isinstance(given, Tally | StudyInput):
        return PageInput(reports, summary=given.summary)
    study = Study(reports.mechanisms[0].domain, _named_by_kind(reports.mechanisms))
    spent: Counter[Spent] = sum((block.spending() for block in reports.blocks), Counter())
    return PageInput(reports, summary=Summary(study, reports.users, 0, {}, (), spent, named=True))


def _named_by_kind(mechanisms: tuple[Mechanism, ...]) -> dict[str, Mechanism]:
    """Return mechanisms by the name of their kind, numbered if there are several of one kind."""
    kinds = [type(mechanism).__name__ for mechanism in mechanisms]
    occurrences = Counter(kinds)
    return {
        kind if occurrences[kind] == 1 else f"{kind} {kinds[: position + 1].count(kind)}": mechanism
        for position, (kind, mechanism) in enumerate(zip(kinds, mechanisms, strict=True))
    }


def _wrong_estimate(estimate: object, what: str, *, expected: str, remedy: str) -> SettingError:
    return SettingError(what, where=f"{WHERE}(estimate=)", got=shorten(estimate), expected=expected, remedy=remedy)
