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


@dataclass(frozen=True)
class PageInput:
    """Reports or an estimate, and what is known about where they came from."""

    reports: Reports | None
    estimate: Estimate | None = None
    study: Study | None = None
    rows: int | None = None
    rejected: Mapping[str, int] = field(default_factory=dict)
    spent: Mapping[Spent, int] = field(default_factory=dict)
    users_named: bool = True  # False if rows did not say who sent them, and each was counted as one user

    @property
    def mechanisms(self) -> Mapping[str, Mechanism]:
        """The mechanisms by name: those of the study, or those of the reports by their kind."""
        if self.study is not None:
            return self.study.mechanisms
        return named_by_kind(self.reports.mechanisms if self.reports is not None else ())


def page_input(given: object, estimate: Estimate | None, where: str) -> PageInput:
    """Return what a page can be made from; refuse everything else."""
    if isinstance(given, Estimate):
        if estimate is not None:
            raise SettingError(
                "two estimates were given",
                where=f"{where}(estimate=)",
                got=shorten(estimate),
                expected="reports with estimate=, or one estimate alone",
                remedy="pass the reports first: report(reports, path, estimate=estimate)",
            )
        return PageInput(None, given)
    source = _from_reports(given, where)
    if estimate is None:
        return source
    reports = source.reports
    if (
        not isinstance(estimate, Estimate)
        or reports is None
        or (estimate.domain, estimate.users) != (reports.domain, reports.users)
    ):
        raise SettingError(
            "the estimate does not come from these reports",
            where=f"{where}(estimate=)",
            got=shorten(estimate),
            expected="what hubbub.estimate returned for the same reports",
            remedy="leave estimate out: it is then computed",
        )
    return replace(source, estimate=estimate)


def _from_reports(given: object, where: str) -> PageInput:
    if isinstance(given, Tally | StudyInput):
        reports, summary = given.reports, given.summary
        check_reports(reports, where)
        assert isinstance(reports, Reports)  # noqa: S101  # as was just checked
        return PageInput(reports, None, summary.study, summary.rows, summary.rejected, summary.spent, summary.named)
    if isinstance(given, Reports):
        spent: Counter[Spent] = sum((block.spending() for block in given.blocks), Counter())
        return PageInput(given, spent=spent)
    if isinstance(given, ScatteredReports):
        check_reports(given, where)
        raise AssertionError("check_reports refuses scattered reports")
    raise EstimateError(
        "nothing to report on",
        where=where,
        got=shorten(given),
        expected="reports, a tally, or an estimate",
        remedy="pass what hubbub.read_reports, hubbub.read_tally or hubbub.estimate returned",
    )


def named_by_kind(mechanisms: tuple[Mechanism, ...]) -> dict[str, Mechanism]:
    """Return mechanisms by the name of their kind, numbered if there are several of one kind."""
    kinds = [type(mechanism).__name__ for mechanism in mechanisms]
    occurrences = Counter(kinds)
    return {
        kind if occurrences[kind] == 1 else f"{kind} {kinds[: position + 1].count(kind)}": mechanism
        for position, (kind, mechanism) in enumerate(zip(kinds, mechanisms, strict=True))
    }
