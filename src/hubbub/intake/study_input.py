"""What a command was given: a study with sources of reports, or a tally, which needs neither."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hubbub.cluster import ClusterReports
from hubbub.core.errors import SettingError
from hubbub.core.progress import Progress
from hubbub.intake.api import read
from hubbub.intake.cluster_reading import scattering, scattering_tally
from hubbub.intake.counting.content import spent_by
from hubbub.intake.counting.scratch import MEMORY
from hubbub.intake.groups import reading_groups
from hubbub.intake.reading_notes import limit_notes
from hubbub.intake.sources.column_names import OWN_NAMES, REPORT_ROLES, ColumnNames
from hubbub.intake.study import Study, read_study
from hubbub.intake.tallies.tally import ENDING, read_tally
from hubbub.intake.tallies.tally_summary import Summary
from hubbub.reports import Reports
from hubbub.reports.privacy_spent import Spent

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True)
class StudyInput:
    """Reports, and where they came from."""

    study: Study
    reports: Reports | ClusterReports
    rows: int
    rejected: Mapping[str, int]
    spent: Mapping[Spent, int]
    users_named: bool = False  # did rows say who sent them?
    notes: tuple[str, ...] = ()  # columns that were not used, and what could not be checked


def is_tally(path: Path, sources: Sequence[str]) -> bool:
    """Whether a command was given a tally, rather than a study and sources; refuse a mixture."""
    if str(path).endswith(ENDING):
        if sources:
            raise SettingError(
                "a tally stands alone",
                where="hubbub TALLY",
                got=f"{path} and {len(sources)} more",
                expected="one tally, or a study and sources of reports",
                remedy="add tallies up first: hubbub merge A B -o ALL.tally.parquet",
            )
        return True
    if not sources:
        raise SettingError(
            "no SOURCE of reports was named",
            where="hubbub STUDY SOURCE...",
            got=f"only {path}",
            expected="a study and at least one file, folder or address of reports, or a tally",
            remedy=f"name the files of reports; a tally's name ends in {ENDING}",
        )
    return False


def _refuse_options(allow_rejects: object, rejects: Path | None, columns: ColumnNames, equal_files: str | None) -> None:
    """Refuse what means nothing to a tally: its rows were read when it was collected."""
    given = {
        "--allow-rejects": str(allow_rejects) != "0",
        "--rejects": rejects is not None,
        **{f"--{role}-column": columns.is_chosen(role) for role in REPORT_ROLES},
        "--equal-files": equal_files is not None,
    }
    for name, wanted in given.items():
        if wanted:
            raise SettingError(
                f"{name} means nothing to a tally",
                where=f"hubbub TALLY {name}",
                got=name,
                expected="a tally alone",
                remedy="leave it out; rows were read when the tally was collected",
            )


def reading_given(
    path: Path,
    sources: Sequence[str],
    *,
    allow_rejects: object = 0,
    rejects: Path | None = None,
    memory: str = MEMORY,
    cluster: Client | None = None,
    columns: ColumnNames = OWN_NAMES,
    equal_files: str | None = None,
) -> Generator[Progress, None, StudyInput]:
    """Read what was given, yielding progress."""
    if is_tally(path, sources):
        _refuse_options(allow_rejects, rejects, columns, equal_files)
        tally = read_tally(path)
        yield Progress(0, 0, f"reading {path}")
        reports: Reports | ClusterReports
        if cluster is None:
            reports = tally.reports
        else:
            there, few = yield from scattering_tally(tally, cluster, memory=memory)
            reports = there.merged() if few else there
        notes = tuple(limit_notes(tally.study, users=tally.summary.named))
        return _given(reports, replace(tally.summary, notes=notes))
    study = read_study(path)
    options: dict[str, Any] = {
        "allow_rejects": allow_rejects,
        "rejects": rejects,
        "memory": memory,
        "columns": columns,
        "equal_files": equal_files,
    }
    if cluster is None:
        reports, summary = yield from read(list(sources), study, **options)
        summary = replace(summary, spent=spent_by(study, reports.blocks, {}))
        return _given(reports, summary)
    there, summary, few = yield from scattering(list(sources), study, cluster, **options)
    return _given(there.merged() if few else there, summary)


def _given(reports: Reports | ClusterReports, summary: Summary) -> StudyInput:
    return StudyInput(
        summary.study, reports, summary.rows, summary.rejected, summary.spent, summary.named, summary.notes
    )


def reading_given_groups(
    path: Path, sources: Sequence[str], by: str, **options: Any
) -> Generator[Progress, None, dict[str, StudyInput]]:
    """Read what was given, each group of a column apart."""
    if is_tally(path, sources):
        raise SettingError(
            "a tally has no groups",
            where="hubbub estimate TALLY --by",
            got=f"--by {by}",
            expected="a study and sources with that column",
            remedy="estimate from the sources, or collect each group into a tally of its own",
        )
    study = read_study(path)
    found = yield from reading_groups(list(sources), study, by, **options)
    return {group: _given(reports, summary) for group, (reports, summary) in found.items()}
