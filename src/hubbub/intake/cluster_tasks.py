"""What the workers of a cluster do: read a part of the sources, or merge the users of a bucket.

Where rows do not say who sent them, each part's rows are merged where they are read. Where they do, rows are dealt into
buckets, all rows of a user into the same one, and each bucket's users are merged on one worker. What travels between
machines is rows of (user, item) and each bucket's list of items, never the text that was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from hubbub.core.arrow import pa
from hubbub.core.progress import finish
from hubbub.intake.counting.counted_reports import Content, spent_by
from hubbub.intake.counting.external_sort import Scratch
from hubbub.intake.counting.rejects import Rejects
from hubbub.intake.counting.row_counting import RowCounter
from hubbub.intake.counting.user_rows import NAMES, NUMBERS, PLACE_BITS
from hubbub.intake.read_plan import ReadPlan, read_rows
from hubbub.intake.reject_causes import Fault
from hubbub.intake.sources.base import Source
from hubbub.intake.sources.column_names import ColumnNames, wanted_columns
from hubbub.intake.sources.database import DatabaseSource
from hubbub.intake.sources.database_address import Address
from hubbub.intake.sources.distinct_entries import one_array
from hubbub.intake.sources.file_source import FileSource
from hubbub.intake.sources.parquet_arrow import ParquetSource
from hubbub.intake.sources.source_lookup import sources_of
from hubbub.intake.study import Study
from hubbub.intake.tallies.tally import read_tally
from hubbub.intake.tallies.tally_reading import add_row_groups
from hubbub.reports import Reports
from hubbub.reports.privacy_accounting import Spent

# The same bucket for the same user in every process: remainders of numbers, MD5 of names.
BUCKET_CONDITIONS = {
    NUMBERS: "(user % {count} + {count}) % {count} = {number}",
    NAMES: "md5_number_lower(user) % {count} = {number}",
}


@dataclass(frozen=True)
class ReadPart:
    """One source, or some row groups of it."""

    number: int  # of the source
    source: str | Address
    groups: range | None
    digested: bool  # is its digest wanted?
    columns: ColumnNames
    state: tuple[int, ...] | None = None  # of a file when the run began: all parts must be of the same


@dataclass(frozen=True)
class Bucket:
    """Some users' rows, with the items they are about."""

    items: Sequence[tuple[int, tuple[int, ...]]]
    tables: dict[str, pa.Table]


@dataclass(frozen=True)
class PartResult:
    """What a worker made of a part or a bucket."""

    rows: int
    rejects: tuple[tuple[int, int, Fault], ...] = ()  # the source's number, the place in it, and why
    reports: Reports | None = None
    buckets: Sequence[Bucket] = ()
    digest: str | None = None
    users: int = 0
    patterns: int = 0
    spent: Mapping[Spent, int] = field(default_factory=dict)

    def summary(self) -> PartResult:
        """Return what travels to the client; reports and buckets stay where they are."""
        return replace(self, reports=None, buckets=())


def read_part(study: Study, part: ReadPart, users: bool, buckets: int, memory: str) -> PartResult:
    """Read a part of the sources."""
    source: Source
    if isinstance(part.source, Address):
        source = DatabaseSource(part.source)
    elif part.groups is None:
        source = sources_of(part.source, study)[0]
    else:
        source = ParquetSource(Path(part.source), part.groups)
    source.columns = part.columns
    if isinstance(source, FileSource) and part.state is not None:
        source.check_state(part.state)
    rejects = _KeptRejects([source], part.number)
    plan = ReadPlan(study, [source], [wanted_columns(source, study)], users)
    with Scratch(memory) as scratch:
        counter = RowCounter(study, scratch, rejects, users=users)
        (counted,) = finish(read_rows(plan, counter.take, digests=part.digested))
        result = PartResult(counter.rows, tuple(rejects.kept), digest=counted.digest)
        if users:
            return replace(result, buckets=_deal(counter, buckets, part.number))
        return _with_reports(result, counter)


def merge_bucket(study: Study, sources: Sequence[tuple[str, str]], memory: str, *buckets: Bucket) -> PartResult:
    """Merge the users of a bucket; `sources` are names and units."""
    names = [_SourceName(*source) for source in sources]
    rejects = _KeptRejects(names, 0)
    with Scratch(memory) as scratch:
        counter = RowCounter(study, scratch, rejects, users=True, sources=names)
        for bucket in buckets:
            _put_aside(counter, bucket)
        merged = _with_reports(PartResult(counter.rows), counter)
    return replace(merged, rejects=tuple(rejects.kept))


def read_tally_part(
    path: str, state: tuple[int, ...], row_groups: range, memory: str, allow_code: bool = False
) -> PartResult:
    """Read some row groups of a tally; `allow_code` says that whoever opened it allowed the classes that it names."""
    ParquetSource(Path(path)).check_state(state)
    tally = read_tally(path, allow_code=allow_code)
    with Scratch(memory) as scratch:
        counter = RowCounter(tally.study, scratch, Rejects(), users=False)
        _, outputs = add_row_groups(counter, tally, row_groups)
        return _with_reports(PartResult(outputs), counter)


def _with_reports(result: PartResult, counter: RowCounter) -> PartResult:
    reports = Content(counter).reports_or_none()
    if reports is None:
        return result
    spent = spent_by(counter.study, reports.blocks, {})
    return replace(result, reports=reports, users=reports.users, patterns=reports.weights.size, spent=spent)


def _deal(counter: RowCounter, count: int, first_source: int) -> list[Bucket]:
    """Return the rows that were put aside as `count` buckets; sources are numbered from `first_source` on."""
    assert counter.users is not None  # noqa: S101  # only rows of users are dealt
    buckets = []
    for number in range(count):
        tables = {}
        for table, condition in BUCKET_CONDITIONS.items():
            rows = counter.users.select(table, condition.format(count=count, number=number))
            if rows is None or not rows.num_rows:
                continue
            if "place" in rows.column_names:
                moved = np.asarray(one_array(rows["place"])) + (first_source << PLACE_BITS)
                rows = rows.set_column(rows.column_names.index("place"), "place", pa.array(moved))
            tables[table] = rows
        buckets.append(Bucket(counter.encoder.items, tables))
    return buckets


def _put_aside(counter: RowCounter, bucket: Bucket) -> None:
    """Put a bucket's rows aside, under the numbers that their items have here."""
    assert counter.users is not None  # noqa: S101
    numbers = np.array([counter.encoder.number(*item) for item in bucket.items], dtype=np.int32)
    for table, rows in bucket.tables.items():
        items = np.asarray(one_array(rows["item"]))
        if numbers.size:
            items = np.where(items >= 0, numbers[np.maximum(items, 0)], items).astype(np.int32)
        counter.rows += rows.num_rows
        counter.users.insert(table, rows.set_column(rows.column_names.index("item"), "item", pa.array(items)))


class _SourceName(Source):
    """The name of a source that another process reads."""

    def __init__(self, name: str, unit: str) -> None:
        self.name, self.unit = name, unit

    def header(self) -> list[str]:
        """Return nothing: it is read elsewhere."""
        return []

    def rows(self, wanted: Sequence[str]) -> Any:  # noqa: ARG002
        """Return nothing: it is read elsewhere."""
        return iter(())


class _KeptRejects(Rejects):
    """Rejected rows as they are sent back."""

    def __init__(self, sources: Sequence[Source], first: int) -> None:
        super().__init__()
        self.kept: list[tuple[int, int, Fault]] = []
        self._numbers = {id(source): first + place for place, source in enumerate(sources)}

    def add(self, source: Source, faults: Iterable[tuple[int, Fault]]) -> None:
        """Keep the rows, and count them."""
        listed = list(faults)
        super().add(source, listed)
        self.kept += [(self._numbers[id(source)], place, fault) for place, fault in listed]
