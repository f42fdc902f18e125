"""What a command was given: a study with sources of reports, or a tally, which needs neither."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hubbub.errors import SettingError
from hubbub.intake.collect import read
from hubbub.intake.content import Spent, spent_by
from hubbub.intake.scratch import MEMORY
from hubbub.intake.study import Study, read_study
from hubbub.intake.tally import ENDING, read_tally
from hubbub.reports import Reports
from hubbub.solvers.stages import Stage


@dataclass(frozen=True)
class Given:
    """Reports, and where they came from."""

    study: Study
    reports: Reports
    rows: int
    rejected: Mapping[str, int]
    spent: Mapping[Spent, int]


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


def reading_given(
    path: Path,
    sources: Sequence[str],
    *,
    allow_rejects: object = 0,
    rejects: Path | None = None,
    memory: str = MEMORY,
) -> Generator[Stage, None, Given]:
    """Read what was given, yielding progress."""
    if is_tally(path, sources):
        tally = read_tally(path)
        yield Stage(0, 0, f"reading {path}")
        return Given(tally.study, tally.reports, tally.rows, tally.rejected, tally.summary.spent)
    study = read_study(path)
    reports, summary = yield from read(
        list(sources), study, allow_rejects=allow_rejects, rejects=rejects, memory=memory
    )
    return Given(study, reports, summary.rows, summary.rejected, spent_by(study, reports.blocks, {}))
