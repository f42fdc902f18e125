"""Reports from files, databases and tables: read into memory, or counted into a tally on disk."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hubbub.cluster import ClusterReports, connect
from hubbub.cluster.worker_watch import ClusterWatch
from hubbub.core.errors import SettingError, warn_of
from hubbub.core.files import sync_folder
from hubbub.core.locks import exclusive_lock
from hubbub.core.progress import Progress, finish
from hubbub.intake.cluster_reading import reading_there
from hubbub.intake.counting.content import Content
from hubbub.intake.counting.rejects import Allowance, Rejects
from hubbub.intake.counting.row_counting import RowCounter
from hubbub.intake.counting.scratch import MEMORY, Scratch
from hubbub.intake.counting.scratch_folder import sweep
from hubbub.intake.counting.user_digests import UserDigests
from hubbub.intake.read_plan import ReadPlan, check_rejects, reading, rejects_to
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.column_names import OWN_NAMES, ColumnNames
from hubbub.intake.sources.source_lookup import check_equal_files, sources_of
from hubbub.intake.study import Study, check_study
from hubbub.intake.tallies.admission import added, admit, new_sources, other_study
from hubbub.intake.tallies.tally import ENDING, WAIT_OR_MERGE, Tally, check_target, read_tally
from hubbub.intake.tallies.tally_reading import add_reports, add_tally
from hubbub.intake.tallies.tally_summary import CountedSource, Summary, check_writable
from hubbub.intake.tallies.tally_writing import write_tally
from hubbub.reports import Reports

if TYPE_CHECKING:
    from distributed import Client


def read_reports(
    source: object,
    study: Study,
    *,
    allow_rejects: object = 0,
    rejects: str | Path | None = None,
    memory: str = MEMORY,
    output_column: str | None = None,
    user_column: str | None = None,
    mechanism_column: str | None = None,
    equal_files: str | None = None,
) -> Reports:
    """Read reports into memory.

    A source is the path of a file (CSV, TSV and JSON lines, also compressed as .gz or .zst; Parquet; Arrow), a folder
    or a pattern of such files, the address of a table or query (``sqlite:///file.db#table``, ``duckdb:///...``,
    ``postgresql://...``), a table of pandas, polars or pyarrow, or a list of these. A user whose rows stand in several
    of them is still one user.

    Every row is taken, or rejected for a cause. Above `allow_rejects` (a number, or a share such as ``"1%"``) rejected
    rows the reading stops, with a summary by cause; `rejects` names a file to list them all in. `memory` is what may be
    used for sorting users; more goes to the disk.

    Columns are called ``output``, ``user`` and ``mechanism``, unless `output_column`, `user_column` and
    `mechanism_column` say otherwise; a `HubbubWarning` names those that are not used. Files with exactly the same bytes
    are refused, unless `equal_files` says that they are copies (``"skip"``) or different people's (``"count"``).
    """
    run = read(
        source,
        study,
        allow_rejects=allow_rejects,
        rejects=rejects,
        memory=memory,
        columns=ColumnNames(output_column, user_column, mechanism_column),
        equal_files=equal_files,
    )
    reports, summary = finish(run)
    warn_of(summary.notes)
    return reports


def read(
    source: object,
    study: Study,
    *,
    allow_rejects: object = 0,
    rejects: str | Path | None = None,
    memory: str = MEMORY,
    columns: ColumnNames = OWN_NAMES,
    equal_files: str | None = None,
) -> Generator[Progress, None, tuple[Reports, Summary]]:
    """Do what `read_reports` does, yielding progress; return the reports, and what was counted."""
    check_study(study, "read_reports(source, study)")
    allowed = Allowance.of(allow_rejects)
    plan = ReadPlan.of(study, sources_of(source, study, columns), equal_files=equal_files)
    where = None if rejects is None else Path(rejects)
    check_rejects(where, plan.sources)
    with Scratch(memory) as scratch:
        with rejects_to(where, always=True) as rejected:
            gathering = RowCounter(study, scratch, rejected, users=plan.users)
            counted = yield from reading(plan, gathering.take, digests=False)
            yield Progress(0, 0, "merging users" if plan.users else "merging rows")
            content = Content(gathering)
        names = [one.name for one in plan.sources]
        rejected.check(gathering.rows, allowed, names, None if rejects is None else str(rejects))
        reports = content.reports(names[0])
        content.check_conserved()
    summary = Summary(study, reports.users, gathering.rows, dict(rejected.codes), tuple(counted), {}, plan.users)
    return reports, replace(summary, notes=plan.notes)


def collect(
    study: Study,
    source: object,
    path: str | Path,
    *,
    allow_rejects: object = 0,
    rejects: str | Path | None = None,
    memory: str = MEMORY,
    users_complete: bool = False,
    users_key: str | Path | None = None,
    cluster: str | Client | None = None,
    output_column: str | None = None,
    user_column: str | None = None,
    mechanism_column: str | None = None,
    equal_files: str | None = None,
) -> Tally:
    """Count reports into a tally at `path`, a file that ends in ``.tally.parquet``.

    Sources are those of `read_reports`, and so are `allow_rejects`, `memory` and names of columns. Into a tally that is
    there already, what is new is added: a file that was counted before is not counted again. A file that lies
    elsewhere and holds the same bytes is refused, unless `equal_files` says that it is a copy (``"skip"``) or that
    different people sent the same (``"count"``); tables in memory are always counted. Rejected rows are listed in
    `rejects` (by default beside the tally, where there are any). The tally is replaced at one stroke: whatever happens,
    the old or the new one is there.

    Where rows say who sent them, the tally does not remember these users. To add more, say that no user of the new
    sources is in it (``users_complete=True``), or name a file with a secret key from the start (``users_key=path``),
    under which a digest of each user is kept. With a Dask client, or the address of a scheduler, as `cluster`, its
    workers read the sources.
    """
    run = collecting(
        study,
        source,
        path,
        allow_rejects=allow_rejects,
        rejects=rejects,
        memory=memory,
        users_complete=users_complete,
        users_key=users_key,
        cluster=cluster,
        columns=ColumnNames(output_column, user_column, mechanism_column),
        equal_files=equal_files,
    )
    tally = finish(run)
    warn_of(tally.summary.notes)
    return tally


def collecting(
    study: Study,
    source: object,
    path: str | Path,
    *,
    allow_rejects: object = 0,
    rejects: str | Path | None = None,
    memory: str = MEMORY,
    users_complete: bool = False,
    users_key: str | Path | None = None,
    cluster: str | Client | None = None,
    columns: ColumnNames = OWN_NAMES,
    equal_files: str | None = None,
) -> Generator[Progress, None, Tally]:
    """Do what `collect` does, yielding progress."""
    check_study(study, "collect(study, source, path)")
    if cluster is not None and users_key is not None:
        raise SettingError(
            "users' digests are not kept on a cluster",
            where="collect(users_key=, cluster=)",
            got="both",
            expected="one of them",
            remedy="collect on one machine to keep digests, or say users_complete=True",
        )
    check_writable(study)
    target = check_target(path)
    allowed = Allowance.of(allow_rejects)
    key = None if users_key is None else UserDigests.read_key(Path(users_key))
    where = target.with_name(target.name.removesuffix(ENDING) + ".rejects.csv") if rejects is None else Path(rejects)
    with exclusive_lock(target, WAIT_OR_MERGE):
        old = read_tally(target) if target.exists() else None
        if old is not None and old.study.fingerprint != study.fingerprint:
            raise other_study(old, study)
        check_equal_files(equal_files)
        everything = sources_of(source, study, columns)
        check_rejects(where, everything, target)
        sources, skipped = new_sources(everything, old, equal_files)
        if not sources and old is not None:
            sync_folder(target)  # the run that wrote it may have been killed before it did this,
            sweep()  # or before it tidied up
            return Tally(target, replace(old.summary, skipped=skipped))
        before = [] if old is None else [counted.name for counted in old.sources]
        plan = ReadPlan.of(study, sources, equal_files=equal_files, counted_before=before)
        visitors = admit(old, plan.users, key=key, complete=users_complete)
        with Scratch(memory) as scratch:
            with rejects_to(where, always=rejects is not None) as rejected:
                if cluster is None:
                    gathering = RowCounter(study, scratch, rejected, users=plan.users, visitors=visitors)
                    counted = tuple((yield from reading(plan, gathering.take)))
                    rows = gathering.rows
                else:
                    gathering = RowCounter(study, scratch, Rejects(), users=False)
                    counted, rows = yield from _from_cluster(cluster, plan, gathering, rejected, memory)
                if old is not None:
                    yield Progress(0, 0, "reading what was counted before")
                    add_tally(gathering, old)
                yield Progress(0, 0, "merging users" if plan.users else "merging rows")
                content = Content(gathering)
            rejected.check(rows, allowed, [one.name for one in plan.sources], str(where))
            sign = None if key is None else UserDigests.sign(key)
            summary = Summary(study, 0, rows, dict(rejected.codes), counted, {}, plan.users, sign)
            if old is not None:
                summary = added([old.summary, summary])
            yield Progress(0, 0, "writing")
            written = write_tally(target, content, summary, None if visitors is None else visitors.digests())
    return Tally(target, replace(written, skipped=skipped, notes=plan.notes))


def _from_cluster(
    cluster: str | Client, plan: ReadPlan, gathering: RowCounter, rejected: Rejects, memory: str
) -> Generator[Progress, None, tuple[tuple[CountedSource, ...], int]]:
    """Let workers read, and gather their reports: merged on the cluster where they are few, part by part otherwise."""
    client = connect(cluster)
    try:
        parts, summary, few = yield from reading_there(client, plan, rejected, memory=memory, digests=True)
        if few and parts:
            add_reports(gathering, ClusterReports(client, parts).merged())
        else:
            watch = ClusterWatch(client)
            for place, part in enumerate(parts):
                yield Progress(place, len(parts), "reports brought here")
                add_reports(gathering, watch.result(part))
    finally:
        if client is not cluster:
            client.close()  # type: ignore[no-untyped-call]
    if gathering.tallied != summary.rows - rejected.rows:
        raise refusal(
            "rows-lost",
            "rows were lost on the way",
            where="from the workers",
            got=f"{gathering.tallied:,} outputs arrived",
            expected=f"{summary.rows:,} rows, {rejected.rows:,} of them rejected",
            remedy="report this as a bug",
        )
    return summary.sources, summary.rows
