"""What a page is made from: reports, with a study or without; a tally; or an estimate alone."""

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
class Material:
    """Reports or an estimate, and what is known of where they came from."""

    reports: Reports | None
    estimate: Estimate | None = None
    study: Study | None = None
    rows: int | None = None
    rejected: Mapping[str, int] = field(default_factory=dict)
    spent: Mapping[Spent, int] = field(default_factory=dict)
    users_named: bool = True  # False where rows did not say who sent them, and each was taken for a person

    @property
    def mechanisms(self) -> Mapping[str, Mechanism]:
        """The mechanisms by name: those of the study, or those of the reports by their kind."""
        if self.study is not None:
            return self.study.mechanisms
        return named_by_kind(self.reports.mechanisms if self.reports is not None else ())


def material_of(given: object, estimate: Estimate | None, where: str) -> Material:
    """Return what was given, told apart; refuse what no page can be made from."""
    if isinstance(given, Estimate):
        if estimate is not None:
            raise SettingError(
                "two estimates were given",
                where=f"{where}(estimate=)",
                got=shorten(estimate),
                expected="reports with estimate=, or one estimate alone",
                remedy="pass the reports first: report(reports, path, estimate=estimate)",
            )
        return Material(None, given)
    if isinstance(given, Tally):
        found = Material(
            given.reports, None, given.study, given.rows, given.rejected, given.summary.spent, given.summary.named
        )
    elif isinstance(given, StudyInput):
        check_reports(given.reports, where)
        assert isinstance(given.reports, Reports)  # noqa: S101  # as was just checked
        found = Material(given.reports, None, given.study, given.rows, given.rejected, given.spent, given.users_named)
    elif isinstance(given, Reports):
        spent: Counter[Spent] = sum((block.spending() for block in given.blocks), Counter())
        found = Material(given, None, None, None, {}, spent)
    elif isinstance(given, ScatteredReports):
        check_reports(given, where)
        raise AssertionError("reports that lie elsewhere were refused")
    else:
        raise EstimateError(
            "nothing to report on",
            where=where,
            got=shorten(given),
            expected="reports, a tally, or an estimate",
            remedy="pass what hubbub.read_reports, hubbub.read_tally or hubbub.estimate returned",
        )
    if estimate is None:
        return found
    reports = found.reports
    if (
        not isinstance(estimate, Estimate)
        or reports is None
        or (estimate.domain, estimate.users) != (reports.domain, reports.users)
    ):
        raise SettingError(
            "the estimate is not one of these reports",
            where=f"{where}(estimate=)",
            got=shorten(estimate),
            expected="what hubbub.estimate returned for the same reports",
            remedy="leave estimate out: it is then computed",
        )
    return replace(found, estimate=estimate)


def named_by_kind(mechanisms: tuple[Mechanism, ...]) -> dict[str, Mechanism]:
    """Return mechanisms by the name of their kind, numbered where several are of one."""
    names = [type(mechanism).__name__ for mechanism in mechanisms]
    many = Counter(names)
    return {
        name if many[name] == 1 else f"{name} {names[: place + 1].count(name)}": mechanism
        for place, (name, mechanism) in enumerate(zip(names, mechanisms, strict=True))
    }
