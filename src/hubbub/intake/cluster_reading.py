"""Reading on a cluster: each worker reads some of the sources, and the reports stay where they are.

Where rows do not say who sent them, each part's rows are merged where they are read. Where they do, rows are dealt into
buckets, all rows of a user into one, and each bucket's users are merged on one worker. Rejected rows come back to be
told and listed here. Files must be there for all workers, under the same path.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import starmap
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hubbub.cluster.cluster_reports import MAX_MERGED_PATTERNS, ClusterReports, can_merge
from hubbub.cluster.connection import check_client
from hubbub.cluster.worker_watch import ClusterWatch
from hubbub.core.errors import warn_of
from hubbub.core.progress import Progress, finish
from hubbub.intake.counting.content import Content, spent_by
from hubbub.intake.counting.rejects import Allowance, Rejects
from hubbub.intake.counting.row_counting import RowCounter
from hubbub.intake.counting.scratch import MEMORY, Scratch
from hubbub.intake.counting.user_buckets import Bucket, deal, gather_bucket
from hubbub.intake.read_plan import ReadPlan, check_rejects, reading, rejects_to, source_name
from hubbub.intake.reject_causes import Fault, refusal
from hubbub.intake.sources.base import Source
from hubbub.intake.sources.column_names import OWN_NAMES, ColumnNames
from hubbub.intake.sources.database import DatabaseSource
from hubbub.intake.sources.database_address import Address
from hubbub.intake.sources.file_source import FileSource
from hubbub.intake.sources.parquet_arrow import ParquetSource
from hubbub.intake.sources.source_lookup import sources_of
from hubbub.intake.study import Study, check_study
from hubbub.intake.tallies.tally import Tally, read_tally
from hubbub.intake.tallies.tally_reading import add_groups, check_whole, parts_of
from hubbub.intake.tallies.tally_summary import CountedSource, Summary
from hubbub.reports import Reports
from hubbub.reports.privacy_spent import Spent
from hubbub.reports.validation import no_reports

if TYPE_CHECKING:
    from distributed import Client, Future

PART = 1 << 28  # bytes of a Parquet file that are one part
LEAST_BUCKETS = 2  # for each worker


@dataclass(frozen=True)
class ReadPart:
    """Some of the sources: one of them, or some row groups of it."""

    number: int  # of the source
    source: str | Address
    groups: range | None
    digested: bool  # is its digest wanted?
    columns: ColumnNames  # what they are called there
    state: tuple[int, ...] | None = None  # of a file when the run began: all parts must be of the same


@dataclass(frozen=True)
class PartResult:
    """What a worker made of a part or a bucket."""

    rows: int
    rejects: tuple[tuple[int, int, Fault], ...]  # the source's number, the place in it, and why
    reports: Reports | None = None
    buckets: Sequence[Bucket] = ()
    digest: str | None = None
    users: int = 0
    patterns: int = 0
    spent: Mapping[Spent, int] = field(default_factory=dict)

    def report(self) -> PartResult:
        """Return what is told here; reports and rows stay where they are."""
        return replace(self, reports=None, buckets=())


class Names(Source):
    """The name of a source that another process reads."""

    def __init__(self, name: str, unit: str) -> None:
        self.name, self.unit = name, unit

    def header(self) -> list[str]:
        """Return nothing: it is read elsewhere."""
        return []

    def rows(self, wanted: Sequence[str]) -> Any:  # noqa: ARG002
        """Return nothing: it is read elsewhere."""
        return iter(())


def read_part(study: Study, part: ReadPart, users: bool, buckets: int, memory: str) -> PartResult:
    """Read a part of the sources, on a worker."""
    found: Source
    if isinstance(part.source, Address):
        found = DatabaseSource(part.source)
    elif part.groups is None:
        found = sources_of(part.source, study)[0]
    else:
        found = ParquetSource(Path(part.source), part.groups)
    found.columns = part.columns
    if isinstance(found, FileSource) and part.state is not None:
        found.check_state(part.state)
    rejects = _Kept([found], part.number)
    with Scratch(memory) as scratch:
        gathering = RowCounter(study, scratch, rejects, users=users)
        counted = finish(reading(ReadPlan.of(study, [found]), gathering.take, digests=part.digested))
        if users:
            dealt = deal(gathering, buckets, part.number)
            return PartResult(gathering.rows, tuple(rejects.kept), buckets=dealt, digest=counted[0].digest)
        taken = PartResult(gathering.rows, tuple(rejects.kept), digest=counted[0].digest)
        return _with_reports(taken, gathering)


def merge_bucket(study: Study, sources: Sequence[tuple[str, str]], memory: str, *buckets: Bucket) -> PartResult:
    """Merge the users of a bucket, on a worker."""
    names = [Names(*source) for source in sources]
    rejects = _Kept(names, 0)
    with Scratch(memory) as scratch:
        gathering = RowCounter(study, scratch, rejects, users=True, sources=names)
        for bucket in buckets:
            gather_bucket(gathering, bucket)
        merged = _with_reports(PartResult(gathering.rows, ()), gathering)
    return replace(merged, rejects=tuple(rejects.kept))


def _with_reports(taken: PartResult, gathering: RowCounter) -> PartResult:
    content = Content(gathering)
    reports = content.reports_or_none()
    content.check_conserved()
    if reports is None:
        return taken
    spent = spent_by(gathering.study, reports.blocks, {})
    return replace(taken, reports=reports, users=reports.users, patterns=reports.weights.size, spent=spent)


class _Kept(Rejects):
    """Rejected rows as they are sent back."""

    def __init__(self, sources: Sequence[Source], first: int) -> None:
        super().__init__()
        self.kept: list[tuple[int, int, Fault]] = []
        self._numbers = {id(source): first + place for place, source in enumerate(sources)}

    def add(self, source: Source, faults: Any) -> None:
        """Keep the rows, and count them."""
        listed = list(faults)
        super().add(source, listed)
        self.kept += [(self._numbers[id(source)], place, fault) for place, fault in listed]


def scatter_reports(
    source: object,
    study: Study,
    client: Client,
    *,
    allow_rejects: object = 0,
    rejects: str | Path | None = None,
    memory: str = MEMORY,
    output_column: str | None = None,
    user_column: str | None = None,
    mechanism_column: str | None = None,
    equal_files: str | None = None,
) -> ClusterReports:
    """Let the workers of a Dask cluster read reports, and leave them there: `estimate` runs where they lie.

    Sources and keywords are those of `read_reports`; all workers must reach the sources under the same path or address.
    `memory` is what each worker may use for sorting. Reports that merge to few patterns are brought here by
    ``.merged()``.
    """
    run = scattering(
        source,
        study,
        client,
        allow_rejects=allow_rejects,
        rejects=rejects,
        memory=memory,
        columns=ColumnNames(output_column, user_column, mechanism_column),
        equal_files=equal_files,
    )
    reports, summary, _ = finish(run)
    warn_of(summary.notes)
    return reports


def scattering(
    source: object,
    study: Study,
    client: Client,
    *,
    allow_rejects: object = 0,
    rejects: str | Path | None = None,
    memory: str = MEMORY,
    columns: ColumnNames = OWN_NAMES,
    equal_files: str | None = None,
) -> Generator[Progress, None, tuple[ClusterReports, Summary, bool]]:
    """Do what `scatter_reports` does, yielding progress; return what was counted, and whether they merge to few."""
    check_study(study, "scatter_reports(source, study)")
    check_client(client, "scatter_reports(client)")
    allowed = Allowance.of(allow_rejects)
    sources = sources_of(source, study, columns)
    _refuse_tables(sources)
    plan = ReadPlan.of(study, sources, equal_files=equal_files)
    check_rejects(None if rejects is None else Path(rejects), sources)
    with rejects_to(None if rejects is None else Path(rejects), always=True) as rejected:
        parts, summary, few = yield from reading_there(client, plan, rejected, memory=memory)
    names = [one.name for one in summary.sources]
    rejected.check(summary.rows, allowed, names, None if rejects is None else str(rejects))
    if not parts:
        raise no_reports(names[0], "no row that could be taken")
    return ClusterReports(client, parts), summary, few


def scattering_tally(
    tally: Tally, client: Client, *, memory: str = MEMORY
) -> Generator[Progress, None, tuple[ClusterReports, bool]]:
    """Let workers read a tally, in parts; return the reports that stay there, and whether they merge to few."""
    check_client(client, "estimate(client)")
    path, watch = str(tally.path.absolute()), ClusterWatch(client)
    found = ParquetSource(tally.path).content_state
    read = [client.submit(read_tally_part, path, found, part, memory, pure=False) for part in parts_of(tally)]
    told: list[PartResult] = yield from _told(client, watch, read, "parts of the tally read")
    check_whole(tally, sum(one.users for one in told), sum(one.rows for one in told))
    held = [future for future, taken in zip(read, told, strict=True) if taken.users]
    reports = [client.submit(_taken_reports, future, pure=False) for future in held]
    return ClusterReports(client, reports), sum(one.patterns for one in told) <= MAX_MERGED_PATTERNS


def read_tally_part(path: str, state: tuple[int, ...], groups: range, memory: str) -> PartResult:
    """Read some row groups of a tally, on a worker."""
    ParquetSource(Path(path)).check_state(state)
    tally = read_tally(path)
    with Scratch(memory) as scratch:
        gathering = RowCounter(tally.study, scratch, Rejects(), users=False)
        users, outputs = add_groups(gathering, tally, groups)
        taken = _with_reports(PartResult(outputs, ()), gathering)
    return replace(taken, users=users)


def _refuse_tables(sources: Sequence[Source]) -> None:
    for source in sources:
        if not isinstance(source, FileSource | DatabaseSource):
            raise refusal(
                "not-a-source",
                "workers cannot read this",
                where=source.name,
                got="a table in the memory of this process",
                expected="files or addresses that all workers can read",
                remedy="write it to a Parquet file first",
            )


def reading_there(
    client: Client,
    plan: ReadPlan,
    rejects: Rejects,
    *,
    memory: str = MEMORY,
    digests: bool = False,
) -> Generator[Progress, None, tuple[list[Future[Any]], Summary, bool]]:
    """Let workers read the sources; return where reports lie, what was counted, and whether they merge to few."""
    study, sources = plan.study, plan.sources
    _refuse_tables(sources)
    parts = _parts(sources, digests=digests)
    buckets = max(1, LEAST_BUCKETS * len(dict(client.scheduler_info()["workers"]))) if plan.users else 0
    watch = ClusterWatch(client)
    read = [client.submit(read_part, study, part, plan.users, buckets, memory, pure=False) for part in parts]
    told: list[PartResult] = yield from _told(client, watch, read, "parts read")
    rows = sum(one.rows for one in told)
    held, kept = read, list(told)
    if plan.users:
        names = [(one.name, one.unit) for one in sources]
        pieces = [client.submit(_buckets, future, pure=False) for future in read]
        held = [
            client.submit(
                merge_bucket,
                study,
                names,
                memory,
                *(client.submit(itemgetter(number), piece, pure=False) for piece in pieces),
                pure=False,
            )
            for number in range(buckets)
        ]
        kept = yield from _told(client, watch, held, "buckets of users merged")
        _check_all_arrived(rows, told, kept)
        told = [*told, *kept]
    for number, place, fault in sorted(
        (one for taken in told for one in taken.rejects), key=lambda one: (one[0], one[1])
    ):
        rejects.add(sources[number], [(place, fault)])
    futures = [future for future, taken in zip(held, kept, strict=True) if taken.users]
    counted = _counted(sources, parts, told[: len(parts)])
    reports = [client.submit(_taken_reports, future, pure=False) for future in futures]
    spent: Counter[Spent] = Counter()
    for taken in kept:
        spent.update(taken.spent)
    users = sum(taken.users for taken in kept)
    summary = Summary(study, users, rows, dict(rejects.codes), counted, dict(spent), plan.users, notes=plan.notes)
    few = sum(taken.patterns for taken in kept) <= MAX_MERGED_PATTERNS or (
        not plan.users and can_merge(study.mechanisms.values())
    )
    return reports, summary, few


def _buckets(taken: PartResult) -> Sequence[Bucket]:
    return taken.buckets


def _taken_reports(taken: PartResult) -> Reports | None:
    return taken.reports


def _parts(sources: Sequence[Source], *, digests: bool) -> list[ReadPart]:
    parts = []
    for number, source in enumerate(sources):
        groups: Sequence[range | None] = source.parts(PART) if isinstance(source, ParquetSource) else [None]
        where = source.address if isinstance(source, DatabaseSource) else str(Path(source.name).absolute())
        state = source.content_state if isinstance(source, FileSource) else None
        parts += [
            ReadPart(number, where, some, digests and place == 0, source.columns, state)
            for place, some in enumerate(groups)
        ]
    return parts


def _told(
    client: Client, watch: ClusterWatch, futures: Sequence[Future[Any]], what: str
) -> Generator[Progress, None, list[PartResult]]:
    """Wait for tasks; return what each has to tell."""
    told = []
    reports = [client.submit(PartResult.report, future, pure=False) for future in futures]
    for place, future in enumerate(reports):
        yield Progress(place, len(reports), f"{place} of {len(reports)} {what}")
        told.append(watch.result(future))
    return told


def _check_all_arrived(rows: int, read: Sequence[PartResult], merged: Sequence[PartResult]) -> None:
    arrived = sum(one.rows for one in merged)
    rejected = sum(len(one.rejects) for one in read)
    if arrived + rejected != rows:
        raise refusal(
            "rows-lost",
            "rows were lost on the way",
            where="between the workers",
            got=f"{arrived:,} rows arrived, {rejected:,} were rejected",
            expected=f"{rows:,} rows, counted where they were read",
            remedy="report this as a bug",
        )


def _counted(
    sources: Sequence[Source], parts: Sequence[ReadPart], told: Sequence[PartResult]
) -> tuple[CountedSource, ...]:
    rows = [0] * len(sources)
    digests: list[str | None] = [None] * len(sources)
    for part, taken in zip(parts, told, strict=True):
        rows[part.number] += taken.rows
        digests[part.number] = digests[part.number] or taken.digest
    names, places = [source_name(source) for source in sources], [source.path_digest for source in sources]
    return tuple(starmap(CountedSource, zip(names, digests, rows, places, strict=True)))
