"""The input of a command, group by group: of a column, of a tally with groups, or one for each tally or source."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Unpack

from hubbub.core.errors import SettingError
from hubbub.core.progress import Progress, stepwise
from hubbub.core.redaction import redact
from hubbub.intake.group_names import check_by, group_titles, study_groups
from hubbub.intake.in_memory_reading import read_groups
from hubbub.intake.joined_input import join_small
from hubbub.intake.read_plan import ReadOptions, plan_reading
from hubbub.intake.study_files import read_study
from hubbub.intake.study_input import StudyInput, is_tally, read_input, refuse_options
from hubbub.intake.tallies.tally import ENDING, read_tally
from hubbub.intake.tally_input import tally_groups

STUDY_ENDING = ".toml"


@stepwise
def read_input_groups(
    path: Path,
    sources: Sequence[str],
    by: tuple[str, ...],
    min_group: int | None = 1,
    **options: Unpack[ReadOptions],
) -> Generator[Progress, None, dict[str, StudyInput]]:
    """Read a tally that is divided into groups, or the sources of a study, each group of the columns `by` by itself.

    Groups with fewer than `min_group` users are joined; None leaves it to the caller.
    """
    check_by(by, "--by")
    if is_tally(path, sources):
        refuse_options(options)
        yield Progress(0, 0, f"reading {path}")
        tally = read_tally(path)
        tally.check_divided(by, "--by")
        counted = tally_groups(tally, by, options.get("as_of"))
    else:
        counted = yield from read_groups(plan_reading(list(sources), read_study(path), by=by, **options))
    titles = group_titles(counted)
    return join_small({titles[group]: StudyInput(*own) for group, own in counted.items()}, min_group)


@stepwise
def read_compared(
    inputs: Sequence[str],
    by: tuple[str, ...],
    min_group: int | None = 1,
    command: str = "compare",
    **options: Unpack[ReadOptions],
) -> Generator[Progress, None, dict[str, StudyInput]]:
    """Read what is to be compared: the groups of a column, tallies, sources of one study, or several studies.

    Without `by`, each tally is a group. A study's sources are a group each, but a single one is divided by the group
    that the study names; where there are several studies, all sources of a study are one group.
    """
    if not by and len(inputs) == 2 and inputs[0].endswith(STUDY_ENDING) and command == "compare":
        by = study_groups(read_study(Path(inputs[0])))
    if by:
        return (yield from read_input_groups.steps(Path(inputs[0]), inputs[1:], by, min_group, **options))
    parts = _compared_parts(inputs, command)
    names = _distinct_names([str(sources[0]) if sources else str(path) for path, sources in parts], command)
    groups = {}
    for name, (path, sources) in zip(names, parts, strict=True):
        is_tally = str(path).endswith(ENDING)
        groups[name] = yield from (
            read_input.steps(path, [], as_of=options.get("as_of"))
            if is_tally
            else read_input.steps(path, sources, **options)
        )
    return join_small(groups, min_group)


def _compared_parts(inputs: Sequence[str], command: str) -> list[tuple[Path, list[str]]]:
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
                where=f"hubbub {command}",
                got=each,
                expected="a study before its sources, or tallies",
                remedy=f"name the study first: hubbub {command} study.toml first.csv second.csv",
            )
        elif several:
            parts[-1][1].append(each)
        else:
            parts.append((study, [each]))
    if len(parts) < 2:
        raise SettingError(
            "there is nothing to compare with",
            where=f"hubbub {command}",
            got=f"{len(parts)} group{'' if len(parts) == 1 else 's'}",
            expected="two tallies or more, a study with two sources or more, or --by COLUMN",
            remedy=f"name two or more: hubbub {command} first.tally.parquet second.tally.parquet",
        )
    return parts


def _distinct_names(paths: Sequence[str], command: str) -> list[str]:
    """Return the names of files without endings; whole paths, without passwords, where these would be the same."""
    repeated = [path for path in paths if paths.count(path) > 1]
    if repeated:
        raise SettingError(
            "the same input is there twice",
            where=f"hubbub {command}",
            got=redact(repeated[0]),
            expected="each group once",
            remedy="leave one of them out, or name the file that was meant",
        )
    shown = [redact(path) for path in paths]
    stems = [path if "://" in path else Path(path).name.removesuffix(ENDING).split(".")[0] or path for path in shown]
    return stems if len(set(stems)) == len(stems) else shown
