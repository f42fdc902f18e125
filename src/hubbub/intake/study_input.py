"""The input of a command: a study with sources of reports, or a tally, which needs neither."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Unpack

from hubbub.cluster import ClusterReports
from hubbub.core.defaults import DEFAULT_MEMORY
from hubbub.core.errors import SettingError
from hubbub.core.progress import Progress, stepwise
from hubbub.intake.cluster_reading import scatter, scatter_tally
from hubbub.intake.group_names import EVERYBODY
from hubbub.intake.in_memory_reading import read
from hubbub.intake.read_plan import ReadOptions, plan_reading, refuse_survey
from hubbub.intake.reading_notes import limit_notes
from hubbub.intake.report_dates import ReportDates, changes_of
from hubbub.intake.sources.column_names import COORDINATES, OWN_NAMES, REPORT_ROLES
from hubbub.intake.study_files import read_study
from hubbub.intake.tallies.double_counting import other_survey
from hubbub.intake.tallies.tally import ENDING, read_tally
from hubbub.intake.tallies.tally_summary import Summary
from hubbub.intake.tally_input import tally_groups
from hubbub.reports import Reports

if TYPE_CHECKING:
    from distributed import Client


class StudyInput(NamedTuple):
    """Reports, and what was counted to get them."""

    reports: Reports | ClusterReports
    summary: Summary


@stepwise
def read_input(
    path: Path, sources: Sequence[str], *, cluster: Client | None = None, **options: Unpack[ReadOptions]
) -> Generator[Progress, None, StudyInput]:
    """Read a tally, or the sources of a study: here, or on a cluster."""
    reports: Reports | ClusterReports
    if is_tally(path, sources):
        refuse_options(options)
        tally, as_of = read_tally(path), options.get("as_of")
        yield Progress(0, 0, f"reading {path}")
        if as_of is not None:
            if cluster is not None:
                raise _not_on_a_cluster()
            return StudyInput(*tally_groups(tally, (), as_of)[EVERYBODY])
        notes = tuple(limit_notes(tally.study, users=tally.summary.named))
        summary = replace(tally.summary, notes=notes, dates=ReportDates(changed=changes_of([path])))
        if cluster is None:
            return StudyInput(tally.reports, summary)
        if tally.summary.survey:
            raise other_survey(tally, ())
        reports, few = yield from scatter_tally(tally, cluster, memory=options.get("memory", DEFAULT_MEMORY))
    else:
        plan = plan_reading(list(sources), read_study(path), **options)
        if cluster is None:
            return StudyInput(*(yield from read(plan)))
        refuse_survey(plan, "survey weights are not read on a cluster", "leave --cluster out")
        if plan.as_of is not None:
            raise _not_on_a_cluster()
        reports, summary, few = yield from scatter(plan, cluster)
    return StudyInput(reports.merged() if few else reports, summary)


def _not_on_a_cluster() -> SettingError:
    return SettingError(
        "rows are left out by their time on one machine only",
        where="--as-of with --cluster",
        got="both",
        expected="one of them",
        remedy="leave --cluster out, or select the rows with a query",
    )


def is_tally(path: Path, sources: Sequence[str]) -> bool:
    """Whether a command was given a tally, rather than a study and sources; refuse a mixture."""
    if str(path).endswith(ENDING):
        if sources:
            raise SettingError(
                "a tally cannot be combined with other inputs",
                where="hubbub TALLY",
                got=f"{path} and {len(sources)} more",
                expected="one tally, or a study and sources of reports",
                remedy="to compare tallies: hubbub compare A B; to add them up: hubbub merge A B -o ALL.tally.parquet",
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


def refuse_options(options: ReadOptions) -> None:
    """Refuse options that mean nothing to a tally: its rows were read when it was collected."""
    columns = options.get("columns", OWN_NAMES)
    is_set = {
        "--allow-rejects": str(options.get("allow_rejects", 0)) != "0",
        "--rejects": options.get("rejects") is not None,
        **{f"--{role}-column": columns.is_chosen(role) for role in (*REPORT_ROLES, *COORDINATES)},
        "--equal-files": options.get("equal_files") is not None,
    }
    for name, was_given in is_set.items():
        if was_given:
            raise SettingError(
                f"{name} does not apply to a tally",
                where=f"hubbub TALLY {name}",
                got=name,
                expected="a tally alone",
                remedy="leave it out; rows were read when the tally was collected",
            )
