"""Reports from files, databases and tables: read into memory, counted into a tally, merged, or left on a cluster."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hubbub.cluster import ClusterReports
from hubbub.core.defaults import DEFAULT_MEMORY
from hubbub.core.errors import SettingError, warn_caller
from hubbub.core.files import sync_folder
from hubbub.core.locks import exclusive_lock
from hubbub.core.progress import Progress, stepwise
from hubbub.intake.cluster_reading import gather_from_workers, scatter
from hubbub.intake.collected_table import default_watermark
from hubbub.intake.counting.continued_source import ContinuedSource
from hubbub.intake.counting.dated_source import AsOf
from hubbub.intake.counting.external_sort import Scratch
from hubbub.intake.counting.group_counters import GroupCounters
from hubbub.intake.counting.rejects import Rejects
from hubbub.intake.counting.scratch_folder import sweep
from hubbub.intake.counting.user_digests import UserDigests
from hubbub.intake.counting.watermark import WatermarkSettings, check_watermark
from hubbub.intake.group_names import EVERYBODY, check_by, study_groups
from hubbub.intake.in_memory_reading import read
from hubbub.intake.read_plan import continue_sources, plan_reading, read_rows, refuse_survey
from hubbub.intake.reading_notes import limit_notes, overlap_notes
from hubbub.intake.sources.column_names import ColumnNames
from hubbub.intake.study import Study
from hubbub.intake.study_files import study_and_source
from hubbub.intake.tallies.double_counting import (
    added,
    check_disjoint,
    load_known_users,
    other_groups,
    other_study,
    other_survey,
    rejected_in_groups,
)
from hubbub.intake.tallies.tally import WAIT_OR_MERGE, Tally, check_target, read_tally
from hubbub.intake.tallies.tally_reading import add_groups
from hubbub.intake.tallies.tally_summary import Summary, check_writable
from hubbub.intake.tallies.tally_writing import write_tally
from hubbub.reports import Reports
from hubbub.reports.validation import no_reports

if TYPE_CHECKING:
    from distributed import Client


@stepwise
def read_reports(
    source: object,
    study: Study | str | Path,
    *,
    allow_rejects: object = 0,
    rejects: str | Path | None = None,
    memory: str = DEFAULT_MEMORY,
    output_column: str | Mapping[str, str] | None = None,
    user_column: str | None = None,
    mechanism_column: str | None = None,
    weight_column: str | None = None,
    stratum_column: str | None = None,
    cluster_column: str | None = None,
    lat_column: str | None = None,
    lon_column: str | None = None,
    x_column: str | None = None,
    y_column: str | None = None,
    equal_files: str | None = None,
) -> Generator[Progress, None, Reports]:
    """Read reports from files, databases or tables into memory.

    Every row is counted, or rejected for a cause. A user with rows in several sources is still one user. A
    `HubbubWarning` names columns that are not used, and limits that cannot be checked.

    Parameters
    ----------
    source : path, str, table, or list of these
        The path of a file (CSV, TSV and JSON lines, also compressed as .gz or .zst; Parquet; Arrow), a folder or a
        pattern of such files, the address of a table or query (``sqlite:///file.db#table``, ``duckdb:///...``,
        ``postgresql://...``), a table of pandas, polars or pyarrow, or a list of these.
    study : Study or path
        The study that the reports belong to, or the path of its file.
    allow_rejects : int or str, default 0
        How many rejected rows to accept: a number, or a share such as ``"1%"``. Above it the reading stops, with a
        summary by cause.
    rejects : path, optional
        A CSV file to list all rejected rows in.
    memory : str, default "4GB"
        Memory for sorting users; what needs more goes to the disk.
    output_column : str or mapping, optional
        The name of the column of outputs, where it is not ``output``; of several attributes, the name of each one's
        column, where it is not ``output.NAME``: ``{"age": "years"}``, or ``"age=years,sex=s"``. The study's `columns`
        may say so, too; what is passed here wins.
    user_column, mechanism_column : str, optional
        The names of these columns, where they are not ``user`` and ``mechanism``; as above.
    weight_column : str, optional
        The name of the column of survey weights, where it is not ``weight``: how many people each user stands for.
    stratum_column, cluster_column : str, optional
        The names of the columns that say in which stratum, and in which cluster of users, each user was sampled.
    lat_column, lon_column : str, optional
        The names of the columns of latitudes and longitudes, for outputs that are places on a map grid: each counts for
        the cell that it lies in, outside the grid for the one that the mechanism remaps it to. Without these names, and
        without a column of outputs, ``lat`` and ``lon`` and their usual other names are read so.
    x_column, y_column : str, optional
        The same for places given as distances to the east and to the north of the grid's south-western corner, in the
        grid's unit; ``x`` and ``y`` if there are no outputs.
    equal_files : {"skip", "count"}, optional
        What files with exactly the same bytes are: copies (``"skip"``), or reports of different people (``"count"``).
        Without it they are refused.

    Returns
    -------
    Reports
        The distinct patterns, and how many users sent each.

    Raises
    ------
    StudyError
        If the study file has a mistake.
    IntakeError
        If a source cannot be read as it stands, or more rows are rejected than allowed. Its ``code`` names the cause.
    ReportsError
        If no user is left.
    SettingError
        If a keyword has a wrong value.

    Examples
    --------
    >>> import hubbub as hb
    >>> import pandas as pd
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> study = hb.Study(coin.domain, {"answer": coin})
    >>> rows = pd.DataFrame({"output": ["yes", "no", "yes", "maybe"]})
    >>> hb.read_reports(rows, study, allow_rejects=1)
    Reports(3 users, 2 distinct patterns, 1 mechanism)
    """
    study, source = study_and_source(study, source, "read_reports(source, study)")
    plan = plan_reading(
        source,
        study,
        allow_rejects=allow_rejects,
        rejects=rejects,
        memory=memory,
        columns=ColumnNames(
            output_column,
            user_column,
            mechanism_column,
            weight=weight_column,
            stratum=stratum_column,
            cluster=cluster_column,
            lat=lat_column,
            lon=lon_column,
            x=x_column,
            y=y_column,
        ),
        equal_files=equal_files,
    )
    reports, _ = yield from read(plan)
    warn_caller(plan.notes)
    return reports


@stepwise
def scatter_reports(
    source: object,
    study: Study | str | Path,
    client: Client,
    *,
    allow_rejects: object = 0,
    rejects: str | Path | None = None,
    memory: str = DEFAULT_MEMORY,
    output_column: str | Mapping[str, str] | None = None,
    user_column: str | None = None,
    mechanism_column: str | None = None,
    lat_column: str | None = None,
    lon_column: str | None = None,
    x_column: str | None = None,
    y_column: str | None = None,
    equal_files: str | None = None,
) -> Generator[Progress, None, ClusterReports]:
    """Let the workers of a Dask cluster read reports, and leave the reports there: `estimate` runs where they are.

    Parameters
    ----------
    source : path, str, or list of these
        As in `read_reports`. All workers must reach the sources under the same path or address.
    study : Study or path
        The study that the reports belong to, or the path of its file.
    client : distributed.Client
        A Dask client.
    allow_rejects : int or str, default 0
        How many rejected rows to accept, as in `read_reports`.
    rejects : path, optional
        A CSV file to list all rejected rows in.
    memory : str, default "4GB"
        Memory for sorting users, for each worker.
    output_column : str or mapping, optional
        The name of the column of outputs, or of each attribute's, as in `read_reports`.
    user_column, mechanism_column : str, optional
        The names of these columns, as in `read_reports`.
    lat_column, lon_column, x_column, y_column : str, optional
        The names of the columns of places, as in `read_reports`.
    equal_files : {"skip", "count"}, optional
        What files with exactly the same bytes are, as in `read_reports`.

    Returns
    -------
    ClusterReports
        Reports in parts that the workers hold. Where they merge to few patterns, ``.merged()`` brings them here.

    Raises
    ------
    ClusterError
        If the cluster cannot be reached, has no workers, or has other versions than this process.
    StudyError
        If the study file has a mistake.
    IntakeError
        If a source cannot be read as it stands, more rows are rejected than allowed, or rows have survey weights, which
        are not read on a cluster.
    ReportsError
        If no user is left.
    SettingError
        If a keyword has a wrong value.

    Examples
    --------
    A cluster of one worker in this process; a real one is reached by ``Client("tcp://HOST:8786")``.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from distributed import Client
    >>> import hubbub as hb
    >>> import pandas as pd
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> study = hb.Study(coin.domain, {"answer": coin})
    >>> alone = {"processes": False, "n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    >>> with tempfile.TemporaryDirectory() as folder, Client(**alone) as client:
    ...     path = Path(folder) / "reports.csv"
    ...     pd.DataFrame({"output": ["yes", "no", "yes"]}).to_csv(path, index=False)
    ...     reports = hb.scatter_reports(path, study, client)
    ...     print(reports, hb.estimate(reports, "mle").probabilities.round(2))
    ClusterReports(3 users, 1 part) [0.86 0.14]
    """
    study, source = study_and_source(study, source, "scatter_reports(source, study)")
    plan = plan_reading(
        source,
        study,
        allow_rejects=allow_rejects,
        rejects=rejects,
        memory=memory,
        columns=ColumnNames(
            output_column, user_column, mechanism_column, lat=lat_column, lon=lon_column, x=x_column, y=y_column
        ),
        equal_files=equal_files,
    )
    refuse_survey(plan, "survey weights are not read on a cluster", "read them here, with read_reports")
    reports, _, _ = yield from scatter(plan, client)
    warn_caller(plan.notes)
    return reports


@stepwise
def collect(
    study: Study | str | Path,
    source: object,
    path: str | Path,
    *,
    allow_rejects: object = 0,
    rejects: str | Path | None = None,
    memory: str = DEFAULT_MEMORY,
    users_complete: bool = False,
    users_key: str | Path | None = None,
    by: str | Sequence[str] | None = None,
    cluster: str | Client | None = None,
    output_column: str | Mapping[str, str] | None = None,
    user_column: str | None = None,
    mechanism_column: str | None = None,
    time_column: str | None = None,
    weight_column: str | None = None,
    stratum_column: str | None = None,
    cluster_column: str | None = None,
    lat_column: str | None = None,
    lon_column: str | None = None,
    x_column: str | None = None,
    y_column: str | None = None,
    equal_files: str | None = None,
    watermark: str | Literal[False] | None = None,
    late: str = "tell",
    late_window: str | int | None = None,
    lag: str | int | None = None,
    as_of: str | None = None,
) -> Generator[Progress, None, Tally]:
    """Count reports into a tally on disk, or add new ones to it.

    If the tally exists, only what is new is added: a file that was counted before is not counted again, but tables in
    memory always are. The tally is replaced in one step: whatever happens, the old or the new one is there.

    The tally does not remember the users whom rows name. To add more rows later, say that none of their users is in it
    (``users_complete=True``), or keep a digest of each user from the start, under a secret key (``users_key=path``).

    Parameters
    ----------
    study : Study or path
        The study that the reports belong to, or the path of its file.
    source : path, str, table, or list of these
        What to count, as in `read_reports`.
    path : path
        The tally, a file that ends in ``.tally.parquet``.
    allow_rejects : int or str, default 0
        How many rejected rows to accept, as in `read_reports`.
    rejects : path, optional
        A CSV file to list all rejected rows in; by default a file beside the tally, written only if there are any.
    memory : str, default "4GB"
        Memory for sorting users, as in `read_reports`.
    users_complete : bool, default False
        Says that no user of the new sources is in the tally already.
    users_key : path, optional
        A file with a secret key, under which a digest of each user is kept.
    by : str or list of str, optional
        The column, or columns, that divide the rows into groups; ``"day"``, ``"week"`` or ``"month"`` is that of the
        column ``time``, unless there is a column of that name. None is the group that the study's `columns` names, if
        any; ``()`` asks for no groups. The tally keeps the groups apart: `estimate`, `check`,
        `report` and `compare` of the terminal take them with ``--by``, and Python as ``tally.groups(column)``.
    cluster : distributed.Client or str, optional
        A Dask client, or the address of a scheduler, whose workers read the sources.
    output_column : str or mapping, optional
        The name of the column of outputs, or of each attribute's, as in `read_reports`.
    user_column, mechanism_column : str, optional
        The names of these columns, as in `read_reports`.
    time_column : str, optional
        The column of times, if it is not ``time``.
    weight_column, stratum_column, cluster_column : str, optional
        The names of the columns of survey weights, strata and clusters, as in `read_reports`.
    lat_column, lon_column, x_column, y_column : str, optional
        The names of the columns of places, as in `read_reports`.
    equal_files : {"skip", "count"}, optional
        What a file is that has the same bytes as another one, or as one that was counted before at another path: a copy
        (``"skip"``), or reports of different people (``"count"``). Without it such a file is refused.
    watermark : str or False, optional
        A column that grows with its source: an id, or the time at which the row was written. The tally remembers how
        far each source was counted, and the next run reads the rows beyond alone. None is the column that the study's
        `columns` names, if any, or the ``number`` of a table that `hubbub serve` fills; False asks for none.
    late : {"tell", "count", "ignore"}, default "tell"
        What is done about rows that arrive behind the watermark: ``"tell"`` warns of them, ``"count"`` counts those in
        the window, ``"ignore"`` does not look for them.
    late_window : str or int, optional
        How far below the watermark rows are remembered, so that late ones are told from counted ones: ``"2d"``,
        ``"10min"``, or a whole number for a column of whole numbers. By default only those at the watermark itself are.
    lag : str or int, optional
        How far to stay behind the largest value, in the same units: the newest rows are left for the next run.
    as_of : str, optional
        With a watermark of dates or times: rows with a later one are left for the next run. A date means its end.

    Returns
    -------
    Tally
        The tally as it is now on disk.

    Raises
    ------
    StudyError
        If the study file has a mistake.
    IntakeError
        If a source cannot be read as it stands, more rows are rejected than allowed, or the tally that exists is of
        another study, has other groups, or may hold the same users. Its ``code`` names the cause.
    SettingError
        If a keyword has a wrong value, or has no meaning together with the others.
    ReportsError
        If no user is left.
    ClusterError
        If the cluster cannot be reached, has no workers, or has other versions than this process.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import hubbub as hb
    >>> import pandas as pd
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> study = hb.Study(coin.domain, {"answer": coin})
    >>> rows = pd.DataFrame({"output": ["yes", "no", "yes"], "city": ["Rome", "Oslo", "Rome"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tally = hb.collect(study, rows, Path(folder) / "week-1.tally.parquet", by="city")
    ...     print(tally.users, {city: reports.users for city, reports in tally.groups("city").items()})
    3 {'Oslo': 1, 'Rome': 2}
    """
    study, source = study_and_source(study, source, "collect(study, source, path)")
    divided_by = check_by(study_groups(study) if by is None else by, "collect(by=)")
    column = default_watermark(study, source) if watermark is None else watermark
    growing = check_watermark(column, late, late_window, lag, AsOf.of(as_of))
    if cluster is not None:
        _refuse_on_cluster(users_key, divided_by, growing)
    check_writable(study)
    target = check_target(path)
    key = None if users_key is None else UserDigests.read_key(Path(users_key))
    with exclusive_lock(target, WAIT_OR_MERGE):
        old = read_tally(target) if target.exists() else None
        if old is not None and old.study.fingerprint != study.fingerprint:
            raise other_study(old, study)
        if old is not None and old.summary.by != divided_by:
            raise other_groups(old, divided_by)
        plan = plan_reading(
            source,
            study,
            by=divided_by,
            target=target,
            old=old,
            allow_rejects=allow_rejects,
            rejects=rejects,
            memory=memory,
            columns=ColumnNames(
                output_column,
                user_column,
                mechanism_column,
                time_column,
                weight_column,
                stratum_column,
                cluster_column,
                lat=lat_column,
                lon=lon_column,
                x=x_column,
                y=y_column,
            ),
            equal_files=equal_files,
            watermark=growing,
        )
        plan = continue_sources(plan, old, key)
        if cluster is not None:
            refuse_survey(plan, "survey weights are not read on a cluster", "collect on one machine")
        if old is not None and plan.sources and old.summary.survey != plan.survey:
            raise other_survey(old, plan.survey)
        if not plan.sources and old is not None:
            sync_folder(target)  # the run that wrote it may have been killed before it did this,
            sweep()  # or before it tidied up
            return Tally(target, replace(old.summary, skipped=plan.skipped))
        known_users = load_known_users(old, plan.users, key=key, complete=users_complete)
        with Scratch(plan.memory) as scratch:
            with plan.rejecting() as rejected:
                groups = GroupCounters(
                    study,
                    scratch,
                    rejected if cluster is None else Rejects(),
                    divided_by,
                    users=plan.users and cluster is None,  # workers merge the rows of users
                    known_users=known_users,
                    survey=plan.survey,
                )
                if cluster is None:
                    counted, rows = (yield from read_rows(plan, groups.take)), groups.rows
                else:
                    everybody = groups.counter(EVERYBODY, str(target))
                    counted, rows = yield from gather_from_workers(plan, cluster, everybody, rejected)
                if old is not None:
                    yield Progress(0, 0, "reading the existing tally")
                    add_groups(groups, old)
                yield Progress(0, 0, "merging users" if plan.users else "merging rows")
                contents = groups.contents()
                rejected_by_group = groups.rejected()  # some rows only as users are merged
            plan.check_rejected(rejected, rows)
            sign = None if key is None else UserDigests.sign(key)
            summary = Summary(study, 0, rows, dict(rejected.codes), counted, {}, plan.users, sign)
            summary = replace(summary, by=divided_by, survey=plan.survey)
            if old is not None:
                summary = added([old.summary, summary])
            yield Progress(0, 0, "writing")
            written = write_tally(
                target,
                contents,
                summary,
                rejected_in_groups([rejected_by_group, *([] if old is None else [old.summary.rejected_by_group()])]),
                None if known_users is None else known_users.digests(),
            )
    late_rows = [note for each in plan.sources if isinstance(each, ContinuedSource) for note in each.mark_notes]
    notes = (*plan.notes, *late_rows)
    warn_caller(notes)
    return Tally(target, replace(written, skipped=plan.skipped, notes=notes))


def _refuse_on_cluster(users_key: object, by: Sequence[str], watermark: WatermarkSettings | None) -> None:
    """Refuse what is only done on one machine."""
    if watermark is not None:
        raise SettingError(
            "sources with a watermark are read on one machine only",
            where="collect(watermark=, cluster=)",
            got="both",
            expected="one of them",
            remedy="collect on one machine: after the first run only new rows are read",
        )
    if users_key is not None:
        raise SettingError(
            "users' digests are not kept on a cluster",
            where="collect(users_key=, cluster=)",
            got="both",
            expected="one of them",
            remedy="collect on one machine to keep digests, or pass users_complete=True",
        )
    if by:
        raise SettingError(
            "groups are counted on one machine only",
            where="collect(by=, cluster=)",
            got="both",
            expected="one of them",
            remedy="collect on one machine, or collect each group into a tally of its own",
        )


@stepwise
def merge(
    tallies: str | Path | Iterable[str | Path],
    path: str | Path,
    *,
    memory: str = DEFAULT_MEMORY,
    users_complete: bool = False,
    equal_files: str | None = None,
    allow_code: bool = False,
) -> Generator[Progress, None, Tally]:
    """Add up tallies of one study into a new one.

    Tallies that counted the same file are refused. So are tallies that may hold the same users, unless all keep digests
    of their users under one key and share none.

    Parameters
    ----------
    tallies : path or list of paths
        The tallies to add up.
    path : path
        The tally to write, a file that ends in ``.tally.parquet``; it may be one of `tallies`.
    memory : str, default "4GB"
        Memory for sorting, as in `read_reports`.
    users_complete : bool, default False
        Says that no user is in two of the tallies.
    equal_files : {"count"}, optional
        ``"count"`` says that different people sent the same, where tallies counted files with the same bytes at
        different paths and without users. Without it such tallies are refused.
    allow_code : bool, default False
        Import the classes of mechanisms that the tallies' study names: as in `read_tally`.

    Returns
    -------
    Tally
        The sum, as it is now on disk.

    Raises
    ------
    IntakeError
        If a file is not a tally or is damaged, the tallies are of different studies or have different groups, or they
        may hold the same rows or users. Its ``code`` names the cause.
    SettingError
        If `path` does not end in ``.tally.parquet``, or a keyword has a wrong value.
    ReportsError
        If there are no tallies.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import hubbub as hb
    >>> import pandas as pd
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> study = hb.Study(coin.domain, {"answer": coin})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     weeks = [Path(folder) / f"week-{week}.tally.parquet" for week in (1, 2)]
    ...     _ = hb.collect(study, pd.DataFrame({"output": ["yes", "no", "yes"]}), weeks[0])
    ...     _ = hb.collect(study, pd.DataFrame({"output": ["no", "no"]}), weeks[1])
    ...     hb.merge(weeks, Path(folder) / "both.tally.parquet").users
    5
    """
    target = check_target(path)
    names = [tallies] if isinstance(tallies, str | Path) else list(tallies)
    if not names:
        raise no_reports("merge(tallies)", "no tallies")
    with exclusive_lock(target, WAIT_OR_MERGE):  # before anything is read: the target may be one of them
        parts = [read_tally(name, allow_code=allow_code) for name in names]
        digests = check_disjoint(parts, complete=users_complete, equal_files=equal_files)
        with Scratch(memory) as scratch:
            by, survey = parts[0].summary.by, parts[0].summary.survey
            groups = GroupCounters(parts[0].study, scratch, Rejects(), by, users=False, survey=survey)
            for place, tally in enumerate(parts):
                yield Progress(place, len(parts), f"reading {tally.path}")
                add_groups(groups, tally)
            contents = groups.contents()
            yield Progress(0, 0, "writing")
            summaries = [tally.summary for tally in parts]
            rejected = rejected_in_groups([summary.rejected_by_group() for summary in summaries])
            written = write_tally(target, contents, added(summaries), rejected, digests)
    notes = _merge_notes(parts)
    warn_caller(notes)
    return Tally(target, replace(written, notes=notes))


def _merge_notes(tallies: Sequence[Tally]) -> tuple[str, ...]:
    """Return what cannot be checked: tables and queries of one database in several tallies may share rows."""
    notes: dict[str, None] = {}
    for place, tally in enumerate(tallies):
        before = [counted.name for earlier in tallies[:place] for counted in earlier.sources]
        names = [counted.name for counted in tally.sources]
        notes.update(dict.fromkeys(overlap_notes(names, before, users=tally.summary.named)))
    return (*notes, *limit_notes(tallies[0].study, users=all(tally.summary.named for tally in tallies)))
