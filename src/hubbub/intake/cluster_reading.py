"""Reading on a cluster: each worker reads some of the sources, and the reports stay where they are.

Rejected rows come back to be counted and listed here. Files must be there for all workers, under the same path. What a
worker does is in cluster_tasks.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from itertools import starmap
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hubbub.cluster.cluster_reports import MAX_MERGED_PATTERNS, ClusterReports, can_merge
from hubbub.cluster.connection import check_client, connect
from hubbub.cluster.worker_watch import ClusterWatch
from hubbub.core.defaults import DEFAULT_MEMORY
from hubbub.core.errors import IntakeError
from hubbub.core.progress import Progress
from hubbub.intake.cluster_tasks import PartResult, ReadPart, merge_bucket, read_part, read_tally_part
from hubbub.intake.counting.rejects import Rejects
from hubbub.intake.counting.row_counting import RowCounter
from hubbub.intake.read_plan import ReadPlan, source_name
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.base import Source
from hubbub.intake.sources.database import DatabaseSource
from hubbub.intake.sources.file_source import FileSource
from hubbub.intake.sources.parquet_arrow import ParquetSource
from hubbub.intake.tallies.tally import Tally
from hubbub.intake.tallies.tally_reading import add_reports, check_whole, parts_of
from hubbub.intake.tallies.tally_summary import CountedSource, Summary
from hubbub.mechanisms.mechanism_kinds import names_code
from hubbub.reports.privacy_accounting import Spent
from hubbub.reports.validation import no_reports

if TYPE_CHECKING:
    from distributed import Client, Future

PART_BYTES = 1 << 28  # of a Parquet file that are one part
BUCKETS_PER_WORKER = 2


class WorkerReports(NamedTuple):
    """Reports that workers hold."""

    reports: list[Future[Any]]
    summary: Summary
    few: bool  # do they merge to few patterns?


def scatter(plan: ReadPlan, client: Client) -> Generator[Progress, None, tuple[ClusterReports, Summary, bool]]:
    """Let workers read a plan; return the reports, what was counted, and whether they merge to few patterns."""
    check_client(client, "scatter_reports(client)")
    with plan.rejecting() as rejects:
        there = yield from _read_on_workers(plan, client, rejects)
    plan.check_rejected(rejects, there.summary.rows)
    if not there.reports:
        raise no_reports(plan.names[0], "no row that could be counted")
    return ClusterReports(client, there.reports), there.summary, there.few


def scatter_tally(
    tally: Tally, client: Client, *, memory: str = DEFAULT_MEMORY
) -> Generator[Progress, None, tuple[ClusterReports, bool]]:
    """Let workers read a tally, in parts; return the reports that stay there, and whether they merge to few."""
    check_client(client, "estimate(client)")
    path, state = str(tally.path.absolute()), ParquetSource(tally.path).content_state
    allowed = any(names_code(mechanism) for mechanism in tally.study.mechanisms.values())
    tasks = [client.submit(read_tally_part, path, state, part, memory, allowed, pure=False) for part in parts_of(tally)]
    results = yield from _results(client, ClusterWatch(client), tasks, "parts of the tally read")
    check_whole(tally, sum(result.users for result in results), sum(result.rows for result in results))
    return ClusterReports(client, _reports(client, tasks, results)), _patterns(results) <= MAX_MERGED_PATTERNS


def gather_from_workers(
    plan: ReadPlan, cluster: str | Client, counter: RowCounter, rejects: Rejects
) -> Generator[Progress, None, tuple[tuple[CountedSource, ...], int]]:
    """Let workers read a plan, and add their reports to `counter`; return the sources counted, and how many rows.

    Reports are merged on the cluster if they merge to few patterns, and brought here part by part otherwise.
    """
    client = connect(cluster)
    try:
        there = yield from _read_on_workers(plan, client, rejects, digests=True)
        if there.few and there.reports:
            add_reports(counter, ClusterReports(client, there.reports).merged())
        else:
            watch = ClusterWatch(client)
            for place, part in enumerate(there.reports):
                yield Progress(place, len(there.reports), "fetching reports")
                add_reports(counter, watch.result(part))
    finally:
        if client is not cluster:
            client.close()  # type: ignore[no-untyped-call]
    rows = there.summary.rows
    if counter.tallied != rows - rejects.rows:
        got = f"{counter.tallied:,} outputs arrived"
        raise _rows_lost("from the workers", got, f"{rows:,} rows, {rejects.rows:,} of them rejected")
    return there.summary.sources, rows


def _read_on_workers(
    plan: ReadPlan, client: Client, rejects: Rejects, *, digests: bool = False
) -> Generator[Progress, None, WorkerReports]:
    """Let workers read the sources; rejected rows are added to `rejects`."""
    study, sources = plan.study, plan.sources
    parts = _parts(sources, digests=digests)
    workers = len(dict(client.scheduler_info()["workers"]))
    buckets = max(1, BUCKETS_PER_WORKER * workers) if plan.users else 0
    watch = ClusterWatch(client)
    tasks = [client.submit(read_part, study, part, plan.users, buckets, plan.memory, pure=False) for part in parts]
    read = merged = yield from _results(client, watch, tasks, "parts read")
    rejected = [row for result in read for row in result.rejects]
    if plan.users:
        names = [(source.name, source.unit) for source in sources]
        dealt = [client.submit(attrgetter("buckets"), task, pure=False) for task in tasks]
        tasks = [
            client.submit(
                merge_bucket,
                study,
                names,
                plan.memory,
                *(client.submit(itemgetter(number), pieces, pure=False) for pieces in dealt),
                pure=False,
            )
            for number in range(buckets)
        ]
        merged = yield from _results(client, watch, tasks, "buckets of users merged")
        _check_all_arrived(read, merged)
        rejected += [row for result in merged for row in result.rejects]
    for number, place, fault in sorted(rejected, key=itemgetter(0, 1)):
        rejects.add(sources[number], [(place, fault)])
    spent: Counter[Spent] = Counter()
    for result in merged:
        spent.update(result.spent)
    summary = Summary(
        study,
        sum(result.users for result in merged),
        sum(result.rows for result in read),
        dict(rejects.codes),
        _counted(sources, parts, read),
        dict(spent),
        plan.users,
        notes=plan.notes,
    )
    few = _patterns(merged) <= MAX_MERGED_PATTERNS or (not plan.users and can_merge(study.mechanisms.values()))
    return WorkerReports(_reports(client, tasks, merged), summary, few)


def _reports(client: Client, tasks: Sequence[Future[Any]], results: Sequence[PartResult]) -> list[Future[Any]]:
    """Return futures of the reports, of those tasks that have any."""
    held = [task for task, result in zip(tasks, results, strict=True) if result.users]
    return [client.submit(attrgetter("reports"), task, pure=False) for task in held]


def _patterns(results: Sequence[PartResult]) -> int:
    return sum(result.patterns for result in results)


def _parts(sources: Sequence[Source], *, digests: bool) -> list[ReadPart]:
    parts = []
    for number, source in enumerate(sources):
        if not isinstance(source, FileSource | DatabaseSource):
            raise refusal(
                "not-a-source",
                "workers cannot read this",
                where=source.name,
                got="a table in the memory of this process",
                expected="files or addresses that all workers can read",
                remedy="write it to a Parquet file first",
            )
        groups: Sequence[range | None] = source.parts(PART_BYTES) if isinstance(source, ParquetSource) else [None]
        where = source.address if isinstance(source, DatabaseSource) else str(Path(source.name).absolute())
        state = source.content_state if isinstance(source, FileSource) else None
        parts += [
            ReadPart(number, where, part_groups, digests and place == 0, source.columns, state)
            for place, part_groups in enumerate(groups)
        ]
    return parts


def _results(
    client: Client, watch: ClusterWatch, tasks: Sequence[Future[Any]], what: str
) -> Generator[Progress, None, list[PartResult]]:
    """Wait for tasks; return the summary of each."""
    results = []
    summaries = [client.submit(PartResult.summary, task, pure=False) for task in tasks]
    for place, future in enumerate(summaries):
        yield Progress(place, len(summaries), f"{place} of {len(summaries)} {what}")
        results.append(watch.result(future))
    return results


def _check_all_arrived(read: Sequence[PartResult], merged: Sequence[PartResult]) -> None:
    rows, arrived = sum(result.rows for result in read), sum(result.rows for result in merged)
    rejected = sum(len(result.rejects) for result in read)
    if arrived + rejected != rows:
        got = f"{arrived:,} rows arrived, {rejected:,} were rejected"
        raise _rows_lost("between the workers", got, f"{rows:,} rows, counted where they were read")


def _rows_lost(where: str, got: str, expected: str) -> IntakeError:
    remedy = "report this as a bug"
    return refusal("rows-lost", "rows were lost on the way", where=where, got=got, expected=expected, remedy=remedy)


def _counted(
    sources: Sequence[Source], parts: Sequence[ReadPart], results: Sequence[PartResult]
) -> tuple[CountedSource, ...]:
    rows = [0] * len(sources)
    digests: list[str | None] = [None] * len(sources)
    for part, result in zip(parts, results, strict=True):
        rows[part.number] += result.rows
        digests[part.number] = digests[part.number] or result.digest
    names, places = [source_name(source) for source in sources], [source.path_digest for source in sources]
    return tuple(starmap(CountedSource, zip(names, digests, rows, places, strict=True)))
