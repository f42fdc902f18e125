"""One run over sources: rows are gathered, rejected rows told and written, and progress yielded."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hubbub.core.errors import HubbubError, IntakeError, SettingError
from hubbub.core.files import atomic_write
from hubbub.core.locks import exclusive_lock
from hubbub.core.progress import Progress
from hubbub.intake.counting.prefetch import read_ahead
from hubbub.intake.counting.rejects import Rejects
from hubbub.intake.reading_notes import copies_notes, limit_notes, overlap_notes, unused_note
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.base import Rows, Source
from hubbub.intake.sources.column_names import unused_columns, wanted_columns
from hubbub.intake.sources.file_source import FileSource
from hubbub.intake.sources.source_lookup import without_copies
from hubbub.intake.stamps import check_stamp
from hubbub.intake.study import Study
from hubbub.intake.tallies.tally_summary import CountedSource
from hubbub.reports.validation import no_reports

PARTS = 1000  # of the bar of progress


@dataclass(frozen=True)
class ReadPlan:
    """What will be read: sources, their columns, whether rows say who sent them, and what to tell people."""

    study: Study
    sources: list[Source]
    wanted: list[list[str]]
    users: bool
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        study: Study,
        sources: list[Source],
        by: str | None = None,
        *,
        equal_files: str | None = None,
        counted_before: Iterable[str] = (),
    ) -> ReadPlan:
        """Look at all headers before anything is counted; `counted_before` are the sources in a tally."""
        sources, copies = without_copies(sources, equal_files)
        for source in sources:
            check_stamp(source.name, source.stamp(), study)
        wanted = [wanted_columns(source, study, by) for source in sources]
        users = with_users(sources, wanted)
        notes = copies_notes(copies)
        notes += _unused_notes(sources, wanted, users)
        notes += overlap_notes([source_name(source) for source in sources], counted_before, users=users)
        notes += limit_notes(study, users=users)
        return cls(study, sources, wanted, users, tuple(notes))


def _unused_notes(sources: Sequence[Source], wanted: Sequence[list[str]], users: bool) -> list[str]:
    """Return one sentence for all sources with the same columns that are not used."""
    named: dict[tuple[str, ...], list[str]] = {}
    for source, columns in zip(sources, wanted, strict=True):
        unused = tuple(unused_columns(source, columns))
        if unused:
            named.setdefault(unused, []).append(source.name)
    return [
        unused_note(names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else ""), columns, users=users)
        for columns, names in named.items()
    ]


def source_name(source: Source) -> str:
    """Return the name under which a tally remembers a source."""
    return str(source.identity) if source.is_addressed else source.name


def with_users(sources: Sequence[Source], wanted: Sequence[Sequence[str]]) -> bool:
    """Return whether rows say who sent them; refuse sources of which some do."""
    named = [source.columns.name_of("user") in columns for source, columns in zip(sources, wanted, strict=True)]
    if any(named) and not all(named):
        raise refusal(
            "users-in-some",
            "some files say who sent each row and some do not",
            where=sources[named.index(False)].name,
            got="no column user",
            expected="the column user in all files, or in none",
            remedy="add the column, or read the files apart",
        )
    return any(named)


def reading(
    plan: ReadPlan,
    take: Callable[[Source, Rows], None],
    *,
    digests: bool = True,
    nothing: Callable[[str], HubbubError] = no_reports,
) -> Generator[Progress, None, list[CountedSource]]:
    """Hand all rows to `take`, source by source; return what was counted."""
    counted: list[CountedSource] = []
    for place, (source, wanted) in enumerate(zip(plan.sources, plan.wanted, strict=True)):
        total = 0
        for rows in read_ahead(source.rows(wanted)):
            try:
                take(source, source.columns.in_roles(rows))
            except IntakeError as error:
                raise _located(error, source) from None
            total += rows.counted
            done = int(PARTS * (place + source.done) / len(plan.sources))
            yield Progress(done, PARTS, f"{source.name}: {total:,} rows")
        if total == 0:
            raise nothing(source.name)
        digest = source.digest() if digests else None
        if isinstance(source, FileSource):
            source.check_unchanged()  # last: the digest must be of what was read
        counted.append(CountedSource(source_name(source), digest, total, source.path_digest))
    return counted


def _located(error: IntakeError, source: Source) -> IntakeError:
    """Return an error about a column with the name of its source."""
    if not error.where.startswith("column "):
        return error
    column = source.columns.name_of(error.where.removeprefix("column "))
    return refusal(
        error.code,
        error.what,
        where=f"{source.name}, column {column}",
        got=error.got,
        expected=error.expected,
        remedy=error.remedy,
    )


def check_rejects(path: Path | None, sources: Sequence[Source], target: Path | None = None) -> None:
    """Refuse to list rejected rows in a file that holds something else."""
    taken = [file for source in sources for file in source.files]
    refuse_over(path, [*taken, *([] if target is None else [target])], "rejects")


def refuse_over(path: Path | None, inputs: Iterable[Path | str | None], where: str) -> None:
    """Refuse to write a file in the place of one that is read."""
    if path is None or "\0" in str(path):
        return
    real = os.path.realpath(path)
    for one in inputs:
        if one is not None and "\0" not in str(one) and os.path.realpath(one) == real:
            raise SettingError(
                "a file that is read would be written over",
                where=where,
                got=str(path),
                expected="a file of its own: it is written anew",
                remedy="name another file",
            )


@contextmanager
def rejects_to(path: Path | None, *, always: bool) -> Iterator[Rejects]:
    """Write rejected rows to a file: a new one takes the old one's place at the end, even if the run then stops.

    Without any, nothing is written unless `always`.
    """
    if path is None:
        yield Rejects()
        return
    rejects = Rejects()
    with exclusive_lock(path), atomic_write(path, keep=lambda: always or rejects.rows > 0) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="", write_through=True)
        rejects.write_to(text)
        yield rejects
        text.flush()
        text.detach()
