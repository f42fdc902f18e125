"""The input of a command: a study with sources of reports, or a tally, which needs neither."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Unpack

from hubbub.cluster import ClusterReports
from hubbub.core.errors import SettingError
from hubbub.core.progress import Progress, stepwise
from hubbub.core.redaction import redact
from hubbub.intake.cluster_reading import scatter, scatter_tally
from hubbub.intake.counting.external_sort import DEFAULT_MEMORY
from hubbub.intake.in_memory_reading import read, read_groups
from hubbub.intake.read_plan import ReadOptions, plan_reading
from hubbub.intake.reading_notes import limit_notes
from hubbub.intake.sources.column_names import OWN_NAMES, REPORT_ROLES
from hubbub.intake.study_files import read_study
from hubbub.intake.tallies.tally import ENDING, read_tally
from hubbub.intake.tallies.tally_summary import Summary
from hubbub.reports import Reports

if TYPE_CHECKING:
    from distributed import Client


STUDY_ENDING = ".toml"


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
    if _is_tally(path, sources):
        _refuse_options(options)
        tally = read_tally(path)
        yield Progress(0, 0, f"reading {path}")
        summary = replace(tally.summary, notes=tuple(limit_notes(tally.study, users=tally.summary.named)))
        if cluster is None:
            return StudyInput(tally.reports, summary)
        reports, few = yield from scatter_tally(tally, cluster, memory=options.get("memory", DEFAULT_MEMORY))
    else:
        plan = plan_reading(list(sources), read_study(path), **options)
        if cluster is None:
            return StudyInput(*(yield from read(plan)))
        reports, summary, few = yield from scatter(plan, cluster)
    return StudyInput(reports.merged() if few else reports, summary)


@stepwise
def read_input_groups(
    path: Path, sources: Sequence[str], by: str, **options: Unpack[ReadOptions]
) -> Generator[Progress, None, dict[str, StudyInput]]:
    """Read the sources of a study, each group of the column `by` by itself."""
    if _is_tally(path, sources):
        raise SettingError(
            "a tally has no groups",
            where="hubbub estimate TALLY --by",
            got=f"--by {by}",
            expected="a study and sources with that column",
            remedy="estimate from the sources, or collect each group into a tally of its own",
        )
    groups = yield from read_groups(plan_reading(list(sources), read_study(path), by=by, **options), by)
    return {group: StudyInput(*counted) for group, counted in groups.items()}


@stepwise
def read_compared(
    inputs: Sequence[str], by: str | None, **options: Unpack[ReadOptions]
) -> Generator[Progress, None, dict[str, StudyInput]]:
    """Read what is to be compared: the groups of a column, tallies, sources of one study, or several studies.

    Without `by`, each tally is a group. A study's sources are a group each; where there are several studies, all
    sources of a study are one group.
    """
    if by is not None:
        return (yield from read_input_groups.steps(Path(inputs[0]), inputs[1:], by, **options))
    parts = _compared_parts(inputs)
    names = _distinct_names([str(sources[0]) if sources else str(path) for path, sources in parts])
    groups = {}
    for name, (path, sources) in zip(names, parts, strict=True):
        is_tally = str(path).endswith(ENDING)
        groups[name] = yield from (
            read_input.steps(path, []) if is_tally else read_input.steps(path, sources, **options)
        )
    return groups


def _compared_parts(inputs: Sequence[str]) -> list[tuple[Path, list[str]]]:
    """Return each group as a tally, or as a study with its sources."""
    parts: list[tuple[Path, list[str]]] = []
    study: Path | None = None
    several = sum(each.endswith(STUDY_ENDING) for each in inputs) > 1
    for each in inputs:
        if each.endswith(ENDING):
            parts.append((Path(each), []))
        elif each.endswith(STUDY_ENDING):
            study = Path(each)
            parts += [(study, [])] if several else []
        elif study is None:
            raise SettingError(
                "this source has no study",
                where="hubbub compare",
                got=each,
                expected="a study before its sources, or tallies",
                remedy="name the study first: hubbub compare study.toml men.csv women.csv",
            )
        elif several:
            parts[-1][1].append(each)
        else:
            parts.append((study, [each]))
    if len(parts) < 2:
        raise SettingError(
            "there is nothing to compare with",
            where="hubbub compare",
            got=f"{len(parts)} group{'' if len(parts) == 1 else 's'}",
            expected="two tallies or more, a study with two sources or more, or --by COLUMN",
            remedy="name both groups: hubbub compare men.tally.parquet women.tally.parquet",
        )
    return parts


def _distinct_names(paths: Sequence[str]) -> list[str]:
    """Return the names of files without endings; whole paths, without passwords, where these would be the same."""
    repeated = [path for path in paths if paths.count(path) > 1]
    if repeated:
        raise SettingError(
            "the same input is there twice",
            where="hubbub compare",
            got=redact(repeated[0]),
            expected="each group once",
            remedy="leave one of them out, or name the file that was meant",
        )
    shown = [redact(path) for path in paths]
    stems = [path if "://" in path else Path(path).name.removesuffix(ENDING).split(".")[0] or path for path in shown]
    return stems if len(set(stems)) == len(stems) else shown


def _is_tally(path: Path, sources: Sequence[str]) -> bool:
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


def _refuse_options(options: ReadOptions) -> None:
    """Refuse options that mean nothing to a tally: its rows were read when it was collected."""
    columns = options.get("columns", OWN_NAMES)
    is_set = {
        "--allow-rejects": str(options.get("allow_rejects", 0)) != "0",
        "--rejects": options.get("rejects") is not None,
        **{f"--{role}-column": columns.is_chosen(role) for role in REPORT_ROLES},
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
