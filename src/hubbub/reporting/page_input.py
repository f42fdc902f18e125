"""What a page is made from: reports, with or without a study; a tally; or an estimate alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hubbub.core.errors import EstimateError, SettingError, shorten
from hubbub.estimators import Estimate
from hubbub.estimators.validation import check_reports
from hubbub.intake import Study, Tally
from hubbub.intake.study_input import StudyInput
from hubbub.likelihood import ScatteredReports
from hubbub.mechanisms import Mechanism
from hubbub.reports import Reports
from hubbub.reports.privacy_spent import Spent

WHERE = "report"


@dataclass(frozen=True)
class PageInput:
    """Reports or an estimate, and what is known about where they came from."""

    reports: Reports | None
    estimate: Estimate | None = None
    study: Study | None = None  # of reports without a study: their mechanisms, named by their kinds
    rows: int | None = None  # None: the reports were not read from the sources of a study
    rejected: Mapping[str, int] = field(default_factory=dict)
    spent: Mapping[Spent, int] = field(default_factory=dict)
    users_named: bool = True  # False if rows did not say who sent them, and each was counted as one user


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
    return replace(source, estimate=estimate)


def _from_reports(given: object) -> PageInput:
    if isinstance(given, Tally):
        summary = given.summary
        return PageInput(given.reports, None, given.study, given.rows, given.rejected, summary.spent, summary.named)
    reports = given.reports if isinstance(given, StudyInput) else given
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
    if isinstance(given, StudyInput):
        return PageInput(reports, None, given.study, given.rows, given.rejected, given.spent, given.users_named)
    study = Study(reports.mechanisms[0].domain, _named_by_kind(reports.mechanisms))
    return PageInput(reports, study=study, spent=sum((block.spending() for block in reports.blocks), Counter()))


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
