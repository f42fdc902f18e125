"""Values privatized: one output for each row of a source, written as reports that `hubbub estimate` reads."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from hubbub.core.errors import SettingError, shorten, warn_caller
from hubbub.core.progress import Progress, stepwise
from hubbub.intake.counting.external_sort import Scratch
from hubbub.intake.privatizing.reports_writing import check_reports_path, is_typed, open_reports
from hubbub.intake.privatizing.row_privatizing import RowPrivatizer
from hubbub.intake.privatizing.value_positions import no_values, value_columns
from hubbub.intake.read_plan import ReadPlan, format_notes, read_rows, with_roles
from hubbub.intake.reading_notes import copies_notes, limit_notes
from hubbub.intake.sources.column_names import ColumnNames, unused_columns
from hubbub.intake.sources.source_lookup import sources_of, without_copies
from hubbub.intake.stamps import Stamp
from hubbub.intake.study import Study
from hubbub.intake.study_files import study_and_source
from hubbub.intake.tallies.tally_summary import check_writable
from hubbub.sampling import Randomness
from hubbub.sampling import source_of as random_source


@dataclass(frozen=True)
class Privatized:
    """Reports that were written, and how."""

    path: Path
    study: Study
    mechanism: str | None  # of all rows; None where each row names its own
    rows: int
    randomness: str  # "secure" or "seeded"
    columns_left_out: tuple[str, ...]  # of the source: they are not in the reports
    notes: tuple[str, ...] = ()  # what could not be checked


@stepwise
def privatize_file(
    source: object,
    study: Study | str | Path,
    mechanism: str | None,
    path: str | Path,
    *,
    rng: Randomness = None,
    value_column: str | None = None,
    user_column: str | None = None,
    mechanism_column: str | None = None,
    equal_files: str | None = None,
) -> Generator[Progress, None, Privatized]:
    """Privatize the values of a source, and write the reports to a new file, in the order of their rows.

    A row that cannot be read stops the run, and nothing is written: to leave people out would bias every estimate. So
    does a user with more rows than the study's `max_reports_per_user`.

    Parameters
    ----------
    source
        A source as in `read_reports`, with a column ``value``: a label of the domain, or for `Bins` the number itself.
        For a grid on the map, columns ``lat`` and ``lon`` may stand in its place. Several attributes have a column
        each, called by its name (``NAME.lat`` and ``NAME.lon`` for one on the map), and reports a column
        ``output.NAME``. A column ``user`` is carried along; all other columns are left out.
    study
        The study, or the path of its file.
    mechanism
        The name of one in the study; None if the study has only one, or rows name theirs in a column ``mechanism``.
    path
        The file to write. Its ending says how: .csv, .tsv, .jsonl (also .gz, .zst), .parquet or .arrow.
    rng
        None takes randomness from the operating system. A seed is for simulations only, and the reports say so.
    value_column, user_column, mechanism_column
        The names of the columns, where they are not ``value``, ``user`` and ``mechanism``.
    equal_files
        As in `read_reports`.

    Returns
    -------
    Privatized
        What was written, and how: `path`, `study`, `mechanism`, `rows`, `randomness` ("secure" or "seeded"),
        `columns_left_out` and `notes`.

    Raises
    ------
    SettingError
        If the study names no such mechanism, or the ending of `path` is not one of these.
    IntakeError
        If a row cannot be privatized, a column is missing, or `path` is taken.
    ReportsError
        If there are no rows, or a user would need a permanent response, which a file has no place for.
    StudyError
        If the study file has a mistake.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> study = hb.Study(coin.domain, {"coin": coin})
    >>> values = pd.DataFrame({"value": ["yes", "no", "yes"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "reports.csv")
    ...     done = hb.privatize_file(values, study, "coin", path)
    >>> done.rows, done.randomness
    (3, 'secure')
    """
    study, source = study_and_source(study, source, "privatize(source, study, mechanism, path)")
    check_writable(study, "privatize(study)", "stamped on reports")
    _check_name(mechanism, study)
    randomness = random_source(rng)
    columns = ColumnNames(user=user_column, mechanism=mechanism_column, value=value_column)
    sources, copies = without_copies(sources_of(source, study, columns), equal_files)
    inputs = [file for each in sources for file in each.files]
    target = check_reports_path(path, inputs)
    wanted = [value_columns(each, study, mechanism) for each in sources]
    users = "user" in with_roles(sources, wanted, ("user",), "users-in-some")
    notes = (*copies_notes(copies), *format_notes(sources, wanted), *limit_notes(study, users=users))
    plan = ReadPlan(study, sources, wanted, users, notes=notes)
    only = next(iter(study.mechanisms)) if len(study.mechanisms) == 1 else mechanism
    stamp = Stamp(study.fingerprint, "secure" if randomness.secure else "seeded", only)
    with Scratch(plan.memory) as scratch:
        rows = RowPrivatizer(plan, only, randomness, scratch, typed=is_typed(target))
        with open_reports(target, inputs, rows.schema, stamp) as rows.write:
            yield from read_rows(plan, rows.take, digests=False, nothing=no_values)
            yield Progress(0, 0, "writing")
            rows.finish()
    unused = (unused_columns(each, names) for each, names in zip(sources, wanted, strict=True))
    left_out = tuple(dict.fromkeys(name for names in unused for name in names))
    warn_caller(notes)
    return Privatized(target, study, only, rows.written, stamp.randomness, left_out, notes)


def _check_name(mechanism: object, study: Study) -> None:
    if mechanism is not None and (not isinstance(mechanism, str) or mechanism not in study.mechanisms):
        raise SettingError(
            "the study names no such mechanism",
            where="privatize(mechanism)",
            got=shorten(mechanism),
            expected=f"one of {', '.join(study.mechanisms)}",
            remedy="choose one of these, or add it to the study",
        )
