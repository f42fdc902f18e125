"""What a run reads: one plan, made of the callers' keywords and checked before a row is read, and its rows.

Every run over sources makes a `ReadPlan` first (`plan_reading`) and then reads its rows (`read_rows`): into memory
(in_memory_reading.py), into a tally (api.py), on a cluster (cluster_reading.py), or to privatize them
(privatizing/api.py).
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict

from hubbub.core.defaults import DEFAULT_MEMORY
from hubbub.core.errors import HubbubError, IntakeError, SettingError, restated
from hubbub.core.files import atomic_write
from hubbub.core.locks import exclusive_lock
from hubbub.core.progress import Progress
from hubbub.core.threads import read_ahead
from hubbub.intake.collected_table import silent_columns
from hubbub.intake.counting.continued_source import ContinuedSource
from hubbub.intake.counting.dated_source import AsOf, DatedSource, time_text
from hubbub.intake.counting.external_sort import check_memory
from hubbub.intake.counting.partial_source import PartialSource
from hubbub.intake.counting.place_check import PlaceCheck
from hubbub.intake.counting.rejects import NO_REJECTS, Allowance, Rejects
from hubbub.intake.counting.row_digests import RowDigester
from hubbub.intake.counting.watermark import WatermarkSettings
from hubbub.intake.reading_notes import copies_notes, limit_notes, overlap_notes, place_notes, unused_notes
from hubbub.intake.reject_causes import refusal
from hubbub.intake.report_dates import ReportDates, changes_of
from hubbub.intake.sources.attribute_columns import absent_notes
from hubbub.intake.sources.base import Rows, Source
from hubbub.intake.sources.column_names import (
    OWN_NAMES,
    SURVEY_ROLES,
    ColumnNames,
    unused_columns,
    wanted_columns,
    with_places,
)
from hubbub.intake.sources.source_lookup import check_equal_files, sources_of, without_copies
from hubbub.intake.stamps import check_stamp
from hubbub.intake.study import Study
from hubbub.intake.tallies.double_counting import counted_before, new_sources
from hubbub.intake.tallies.tally import ENDING, Tally
from hubbub.intake.tallies.tally_summary import CountedSource
from hubbub.reports.validation import no_reports

PROGRESS_STEPS = 1000  # of the whole progress bar


class ReadOptions(TypedDict, total=False):
    """The keywords that every way of reading takes; `read_reports` explains them."""

    allow_rejects: object
    rejects: str | Path | None
    memory: str
    columns: ColumnNames
    equal_files: str | None
    as_of: str | None


@dataclass(frozen=True)
class ReadPlan:
    """Which columns of which sources are read, under which limits, and notes for the caller."""

    study: Study
    sources: Sequence[Source]
    columns: Sequence[list[str]]  # that are read, for each source
    users: bool  # do rows say who sent them?
    by: tuple[str, ...] = ()  # the columns to group by
    survey: tuple[str, ...] = ()  # which columns of a survey are read: weight, stratum, cluster
    notes: tuple[str, ...] = ()  # what was not used, and what cannot be checked
    skipped: tuple[str, ...] = ()  # sources that the tally holds already
    memory: str = DEFAULT_MEMORY
    allowed: Allowance = NO_REJECTS
    rejects: Path | None = None  # the file that lists rejected rows
    always_list: bool = True  # write that file even if no row is rejected?
    watermark: WatermarkSettings | None = None  # of sources that grow
    as_of: AsOf | None = None  # rows with a later time are left out

    @property
    def names(self) -> list[str]:
        """The names of the sources."""
        return [source.name for source in self.sources]

    @property
    def left_out(self) -> int:
        """How many rows are left for another time. Ask after reading."""
        return sum(source.left_out for source in self.sources if isinstance(source, PartialSource))

    @contextmanager
    def rejecting(self) -> Iterator[Rejects]:
        """Write rejected rows to the plan's file: it replaces an old one at the end, even if the run then stops."""
        rejects = Rejects()
        if self.rejects is None:
            yield rejects
            return

        def is_kept() -> bool:
            return self.always_list or rejects.rows > 0

        with exclusive_lock(self.rejects), atomic_write(self.rejects, keep=is_kept) as file:
            text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="", write_through=True)
            rejects.write_to(text, with_marks=self.watermark is not None)
            yield rejects
            text.flush()
            text.detach()

    def dates(self) -> ReportDates:
        """Return when reports were sent, where times were read, and when their files changed. Call it after reading."""
        dated = [source for source in self.sources if isinstance(source, DatedSource) and source.first is not None]
        times = [time for source in dated for time in (source.first, source.last) if time is not None]
        first, last = (time_text(min(times)), time_text(max(times))) if times else (None, None)
        changed = changes_of(path for source in self.sources for path in source.files)
        return ReportDates(first, last, None if self.as_of is None else self.as_of.text, changed, self.left_out)

    def check_rejected(self, rejects: Rejects, rows: int) -> None:
        """Stop if more of the rows were rejected than allowed. Call it once the file of rejects is in place."""
        rejects.check(rows, self.allowed, self.names, None if self.rejects is None else str(self.rejects))


def plan_reading(
    source: object,
    study: Study,
    *,
    by: tuple[str, ...] = (),
    target: Path | None = None,
    old: Tally | None = None,
    allow_rejects: object = 0,
    rejects: str | Path | None = None,
    memory: str = DEFAULT_MEMORY,
    columns: ColumnNames = OWN_NAMES,
    equal_files: str | None = None,
    watermark: WatermarkSettings | None = None,
    as_of: str | None = None,
) -> ReadPlan:
    """Return the plan of a run over reports; all headers are looked at before anything is counted.

    `by` are the columns to group by, `target` is the tally to be written, and `old` the one that is there already: what
    it holds is skipped. With a `watermark`, sources are continued that have grown; `as_of` leaves later rows out.
    """
    allowed = Allowance.of(allow_rejects)
    check_memory(memory)
    check_equal_files(equal_files)
    everything = sources_of(source, study, columns.with_study(study))
    listed = None if rejects is None else Path(rejects)
    if listed is None and target is not None:
        listed = target.with_name(target.name.removesuffix(ENDING) + ".rejects.csv")
    refuse_overwriting(listed, [*(file for each in everything for file in each.files), target], "rejects")
    grows = None if watermark is None else watermark.column
    new, skipped = new_sources(everything, old, equal_files, watermark=grows)
    sources, copies = without_copies(new, equal_files)
    for each in sources:
        check_stamp(each.name, each.stamp(), study)
    moment = AsOf.of(as_of)
    named = [each.columns for each in sources]
    for each in sources:
        each.columns = with_places(each, study)
    wanted = [wanted_columns(each, study, by, grows, times=moment is not None) for each in sources]
    users = "user" in with_roles(sources, wanted, ("user",), "users-in-some")
    survey = with_roles(sources, wanted, [role for role in SURVEY_ROLES if role not in by], "weights-in-some")
    continued = {source_name(each) for each in sources} if grows is not None else set()
    earlier = [] if old is None else [counted.name for counted in old.sources if counted.name not in continued]
    other_roles = [study.columns.get(role) for role in ("watermark", "time", "group")]  # none says who sent a row
    known_columns = [name for name in (grows, *other_roles, *silent_columns(study)) if name is not None]
    used = [[*names, *known_columns] for names in wanted]
    unused = [(each.name, unused_columns(each, names)) for each, names in zip(sources, used, strict=True)]
    notes = (
        *copies_notes(copies),
        *place_notes(
            ((each.name, each.columns) for each, before in zip(sources, named, strict=True) if each.columns != before),
            study,
        ),
        *format_notes(sources, wanted),
        *absent_notes(
            (
                (each.name, [each.columns.role_of(name) for name in names])
                for each, names in zip(sources, wanted, strict=True)
            ),
            study,
        ),
        *unused_notes(unused, users=users),
        *overlap_notes([source_name(each) for each in sources], earlier, users=users),
        *limit_notes(study, users=users),
    )
    always = rejects is not None or target is None
    known = sources if moment is None else [DatedSource(each, moment) for each in sources]
    return ReadPlan(
        study, known, wanted, users, by, survey, notes, skipped, memory, allowed, listed, always, watermark, moment
    )


def continue_sources(plan: ReadPlan, old: Tally | None, key: bytes | None) -> ReadPlan:
    """Return a plan with a watermark, in which each source holds the rows alone that were not counted before."""
    settings = plan.watermark
    if settings is None:
        return plan
    if plan.users and key is None and settings.keeps_digests:
        raise SettingError(
            "a watermark needs a key where rows say who sent them",
            where="--watermark",
            got="a column of users, and no key",
            expected="a key for the digests by which the last rows are recognised: without one, anybody with the tally "
            "could try out who sent what",
            remedy="pass --users-key FILE; or pass --lag, with which no digests of rows are kept",
        )
    sources: list[Source] = []
    for source in plan.sources:
        counted = counted_before(source, old)
        digester = RowDigester(key, f"{plan.study.fingerprint} {source.path_digest or source_name(source)}")
        mark = None if counted is None else counted.mark
        sources.append(ContinuedSource(source, settings, mark, digester, 0 if counted is None else counted.rows))
    return replace(plan, sources=sources)


def format_notes(sources: Sequence[Source], columns: Sequence[list[str]]) -> list[str]:
    """Return how the columns of sources are read, where that is not obvious."""
    return [note for source, wanted in zip(sources, columns, strict=True) for note in source.notes(wanted)]


def source_name(source: Source) -> str:
    """Return the name under which a tally remembers a source."""
    return str(source.identity) if source.is_addressed else source.name


def with_roles(
    sources: Sequence[Source], columns: Sequence[Sequence[str]], roles: Sequence[str], code: str
) -> tuple[str, ...]:
    """Return which of some columns the sources have; refuse sources if only some of them do."""
    found = []
    for role in roles:
        has = [
            any(source.columns.role_of(name) == role for name in names)
            for source, names in zip(sources, columns, strict=True)
        ]
        if any(has) and not all(has):
            raise refusal(
                code,
                f"some files have a column {role} and some do not",
                where=sources[has.index(False)].name,
                got=f"no column {role}",
                expected=f"the column {role} in all files, or in none",
                remedy="add the column, or read the files separately",
            )
        found += [role] if any(has) else []
    return tuple(found)


def refuse_survey(plan: ReadPlan, what: str, remedy: str) -> None:
    """Refuse rows with weights, strata or clusters where these would be ignored."""
    if plan.survey:
        raise refusal(
            "weighted-rows",
            what,
            where=plan.names[0],
            got=f"a column {plan.survey[0]}",
            expected="rows that all stand for one person",
            remedy=f"{remedy}, or remove the column",
        )


def read_rows(
    plan: ReadPlan,
    take: Callable[[Source, Rows], None],
    *,
    digests: bool = True,
    nothing: Callable[[str], HubbubError] = no_reports,
) -> Generator[Progress, None, tuple[CountedSource, ...]]:
    """Hand all rows to `take`, source by source; return what was counted.

    `digests` asks for the digest of each source, and `nothing` makes the error for a source without rows.
    """
    counted: list[CountedSource] = []
    for place, (source, columns) in enumerate(zip(plan.sources, plan.columns, strict=True)):
        total, places = 0, PlaceCheck(plan.study, source)
        for rows in read_ahead(source.rows(columns)):
            try:
                in_roles = source.columns.in_roles(rows)
                places.look(in_roles)
                take(source, in_roles)
            except IntakeError as error:
                raise _with_source(error, source) from None
            total += rows.counted
            done = int(PROGRESS_STEPS * (place + source.done) / len(plan.sources))
            yield Progress(done, PROGRESS_STEPS, f"{source.name}: {total:,} rows")
        before, mark = (source.rows_before, source.mark) if isinstance(source, ContinuedSource) else (0, None)
        left_out = source.left_out if isinstance(source, PartialSource) else 0
        if total + before + left_out == 0:
            raise nothing(source.name)
        places.finish()
        digest = source.digest() if digests else None
        source.check_unchanged()  # last: the digest must be of what was read
        if total + before:
            name, path = source_name(source), source.path_digest
            counted.append(CountedSource(name, digest, before + total, path, mark, total, left_out))
    if not counted:
        raise no_reports(plan.names[0], f"{plan.left_out:,} rows, all of which are left out by --as-of or --lag")
    return tuple(counted)


def _with_source(error: IntakeError, source: Source) -> IntakeError:
    """Return an error about a column with the names that source and column have."""
    if not error.where.startswith("column "):
        return error
    column = source.columns.name_of(error.where.removeprefix("column "))
    return restated(error, IntakeError, where=f"{source.name}, column {column}")


def refuse_overwriting(path: Path | None, inputs: Iterable[Path | str | None], where: str) -> None:
    """Refuse to write a file in the place of one that is read."""
    if path is None or "\0" in str(path):
        return
    real = os.path.realpath(path)
    for read in inputs:
        if read is not None and "\0" not in str(read) and os.path.realpath(read) == real:
            raise SettingError(
                "a file that is read would be written over",
                where=where,
                got=str(path),
                expected="another file: this one would be overwritten",
                remedy="name another file",
            )
