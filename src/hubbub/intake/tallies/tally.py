"""Tallies: reports merged to patterns and counts, in one Parquet file that needs nothing else.

One row for each output of a pattern:

    kind       "single" (users who sent one output), "joint" (users who sent several), "person" (a digest of a user)
    pattern    the number of a joint pattern, null otherwise
    mechanism  its name in the study
    output     the output as text, null where it is packed
    packed     rows of bits, seeds with buckets, digests; null otherwise
    times      how often the output occurs in the pattern
    users      how many users sent the pattern
    weight, stratum, cluster
               of a survey with weights: how many people each of these users stands for, and where they were sampled

The file's metadata hold one JSON document: version, fingerprint, the study itself, what was counted. Nothing in it can
run code, and nothing depends on the order of arrival or the time of day: the same reports give the same bytes.

The digest of a row group does not depend on how Parquet stores the rows (pages, dictionaries, compression), only on
what they say: for each column, in order, the SHA-256 of three streams of bytes, and of all these together the SHA-256
again.

    present   one byte for each row: 1, or 0 for null
    numbers   of the rows that are present: the number (8 bytes; 4 in `times`), or how many bytes the text has
              (4 bytes); little-endian
    content   of the rows that are present: the text in UTF-8, or the bytes, one after the other
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from hubbub.core import validation
from hubbub.core.arrow import pa, parquet, pc
from hubbub.core.errors import HubbubError, IntakeError, SettingError, shorten
from hubbub.intake.group_names import group_titles
from hubbub.intake.periods import is_day
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.column_names import PERIOD_NAMES
from hubbub.intake.sources.distinct_entries import one_array
from hubbub.intake.sources.file_source import check_file
from hubbub.intake.study import Study
from hubbub.intake.tallies.document_shapes import DamageError
from hubbub.intake.tallies.tally_summary import FAULTS, CountedSource, Summary, damaged, read_summary
from hubbub.reports import Reports

ENDING = ".tally.parquet"
KEY = b"hubbub"
WAIT_OR_MERGE = "wait for it to end, or collect into another tally and merge the two"
KINDS = ("single", "joint", "person")


@dataclass(frozen=True)
class Tally:
    """A tally on disk: reports merged to patterns and counts, and where they came from.

    `collect` and `merge` write it, and `read_tally` opens it.

    Attributes
    ----------
    path : Path
        The Parquet file.
    summary : Summary
        What the file says about itself.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import hubbub as hb
    >>> import pandas as pd
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> study = hb.Study(coin.domain, {"answer": coin})
    >>> rows = pd.DataFrame({"output": ["yes", "no", "yes", "maybe"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tally = hb.collect(study, rows, Path(folder) / "week-1.tally.parquet", allow_rejects=1)
    ...     print(tally.users, tally.rows, dict(tally.rejected))
    ...     print(tally.reports)
    3 4 {'out-of-domain': 1}
    Reports(3 users, 2 distinct patterns, 1 mechanism)
    """

    path: Path
    summary: Summary

    @property
    def study(self) -> Study:
        """The study, as it was when the reports were collected."""
        return self.summary.study

    @property
    def users(self) -> int:
        """How many users were counted."""
        return self.summary.users

    @property
    def rows(self) -> int:
        """How many rows were read, accepted or rejected."""
        return self.summary.rows

    @property
    def rejected(self) -> Mapping[str, int]:
        """How many rows were rejected, by the code of the cause."""
        return self.summary.rejected

    @property
    def sources(self) -> tuple[CountedSource, ...]:
        """The sources that were counted."""
        return self.summary.sources

    @cached_property
    def reports(self) -> Reports:
        """All reports, read into memory when first used."""
        from hubbub.intake.tallies.tally_reading import reports_of

        return reports_of(self)

    def groups(self, *by: str) -> dict[str, Reports]:
        """Return the reports of each group, in memory.

        Parameters
        ----------
        *by : str
            Some of the columns that the tally was collected by; all of them if none is named.

        Returns
        -------
        dict
            From names of groups to their reports, as `compare_groups` takes them.

        Raises
        ------
        SettingError
            If the tally is not divided by these columns.
        """
        from hubbub.intake.tallies.tally_reading import grouped_reports

        columns = by or self.summary.by
        self.check_divided(columns, "tally.groups")
        reports = grouped_reports(self, columns)
        titles = group_titles(reports)
        return {titles[group]: own for group, own in reports.items()}

    @property
    def has_days(self) -> bool:
        """Whether the tally is divided by days that are dates, rather than by a column that is called so."""
        if "day" not in self.summary.by:
            return False
        place = self.summary.by.index("day")
        return all(is_day(group.entries[place]) for group in self.summary.groups)

    def check_divided(self, by: Sequence[str], where: str) -> None:
        """Refuse columns by which the tally is not divided; days that are dates make weeks and months.

        Parameters
        ----------
        by : list of str
            The columns.
        where : str
            The function or option that asks, for the message.

        Raises
        ------
        SettingError
            If the tally is not divided by one of them.
        """
        divided = ", ".join(self.summary.by)
        periods = PERIOD_NAMES if self.has_days else ()
        for column in by or ("",):
            if column not in (*self.summary.by, *periods):
                raise SettingError(
                    "the tally is not divided by this column" if column else "the tally has no groups",
                    where=f"{self.path}, {where}",
                    got=column or "nothing to group by",
                    expected=f"columns that it was collected by: {divided}" if divided else "a tally with groups",
                    remedy="collect again with the groups: hubbub collect STUDY SOURCE... --by COLUMN -o TALLY",
                )


def schema(*, survey: bool = False) -> Any:
    """Return the columns of a tally; one of a survey has its weights, strata and clusters as well."""
    short = pa.dictionary(pa.int32(), pa.string())
    sampled = [pa.field("weight", pa.float64()), pa.field("stratum", short), pa.field("cluster", short)]
    return pa.schema(
        [
            pa.field("kind", short, nullable=False),
            pa.field("pattern", pa.int64()),
            pa.field("mechanism", short),
            pa.field("output", pa.string()),
            pa.field("packed", pa.binary()),
            pa.field("times", pa.int32(), nullable=False),
            pa.field("users", pa.int64(), nullable=False),
            *(sampled if survey else []),
        ]
    )


def _plain_columns(stored: pa.Schema) -> dict[str, pa.DataType]:
    """Return the types of columns, without the dictionaries in which a file may keep them."""
    return {field.name: field.type.value_type if pa.types.is_dictionary(field.type) else field.type for field in stored}


def read_tally(path: str | Path, *, allow_code: bool = False) -> Tally:
    """Open a tally: read what it says about itself.

    Parameters
    ----------
    path : path
        A file that `collect` or `merge` wrote.
    allow_code : bool, default False
        Import the classes of mechanisms that the tally's study names as ``module:Class``: as in `read_study`.

    Returns
    -------
    Tally
        What was counted. Its ``.reports`` are read from the file when first used.

    Raises
    ------
    IntakeError
        If there is no such file, it is not a tally, or it is damaged.
    StudyError
        If its study names a class of mechanisms, and that is not allowed.
    SettingError
        If `allow_code` is neither True nor False.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import hubbub as hb
    >>> import pandas as pd
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> study = hb.Study(coin.domain, {"answer": coin})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "week-1.tally.parquet"
    ...     _ = hb.collect(study, pd.DataFrame({"output": ["yes", "no", "yes"]}), path)
    ...     tally = hb.read_tally(path)
    >>> tally.users, tally.study == study
    (3, True)
    """
    file = Path(path)
    validation.boolean(allow_code, "allow_code", "read_tally")
    check_file(file)
    with explaining_damage(str(file), _not_a_tally), open_parquet(file) as opened:
        text = (opened.schema_arrow.metadata or {}).get(KEY) or (opened.metadata.metadata or {}).get(KEY)
        stored = opened.schema_arrow
    if text is None:
        remedy = "a file of reports is read together with its study: hubbub estimate study.toml FILE"
        raise _not_a_tally(str(file), "a Parquet file without a tally's description", remedy)
    summary = read_summary(text, str(file), allow_code=allow_code)
    columns, expected = _plain_columns(stored), schema(survey=bool(summary.survey))
    if stored.names != expected.names or columns != _plain_columns(expected):
        raise damaged(str(file), f"columns {shorten({name: str(kind) for name, kind in columns.items()}, 200)}")
    return Tally(file, summary)


def check_target(path: object) -> Path:
    """Return the path of a tally to write."""
    if not isinstance(path, str | Path) or not str(path).endswith(ENDING):
        raise SettingError(
            "path must end in .tally.parquet",
            where="the path of the tally (-o)",
            got=shorten(str(path) if isinstance(path, Path) else path),
            expected=f"the path of a tally, NAME{ENDING}",
            remedy=f"name it for example week-1{ENDING}",
        )
    return Path(path)


def open_parquet(path: Path, **options: Any) -> Any:
    """Open a Parquet file; each page is compared with its checksum as it is read."""
    return parquet.ParquetFile(path, page_checksum_verification=True, pre_buffer=False, **options)


@contextmanager
def naming_damage(where: str) -> Iterator[None]:
    """Raise a DamageError as the error for the tally at a path."""
    try:
        yield
    except DamageError as error:
        raise damaged(where, str(error)) from None


@contextmanager
def explaining_damage(where: str, explain: Callable[[str, str], IntakeError] = damaged) -> Iterator[None]:
    """Raise what Arrow raises while a tally is read, too: `explain` gets the path and what is wrong."""
    try:
        with naming_damage(where):
            yield
    except HubbubError:
        raise
    except (*FAULTS, pa.ArrowException) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise explain(where, shorten(lines[0], 200)[1:-1]) from None


def _not_a_tally(
    where: str, got: str, remedy: str = "check the path; if the file was copied, copy it again"
) -> IntakeError:
    return refusal(
        "not-a-tally",
        "the file is not a tally",
        where=where,
        got=got,
        expected="a tally that hubbub collect wrote",
        remedy=remedy,
    )


class RowsDigest:
    """The digest of rows that are added a table at a time."""

    def __init__(self, columns: int) -> None:
        self._streams = [[hashlib.sha256() for _ in ("present", "numbers", "content")] for _ in range(columns)]

    def update(self, table: pa.Table) -> None:
        """Add rows, of the columns of a tally."""
        for column, (present, numbers, content) in zip(table.columns, self._streams, strict=True):
            array = one_array(column)
            if pa.types.is_dictionary(array.type):
                array = array.cast(array.type.value_type)
            present.update(np.asarray(array.is_valid()).astype(np.uint8).data)
            array = array.drop_null()
            if pa.types.is_integer(array.type) or pa.types.is_floating(array.type):
                values = np.asarray(array)
                numbers.update(values.astype(values.dtype.newbyteorder("<"), copy=False).data)
            elif len(array):
                numbers.update(np.asarray(pc.binary_length(array)).astype("<i4", copy=False).data)
                content.update(_content(array))

    def hexdigest(self) -> str:
        """Return the digest of all rows so far, in hexadecimal."""
        digests = b"".join(stream.digest() for streams in self._streams for stream in streams)
        return hashlib.sha256(digests).hexdigest()


def digest_of_rows(table: pa.Table) -> str:
    """Return the digest of the rows of one table."""
    digest = RowsDigest(table.num_columns)
    digest.update(table)
    return digest.hexdigest()


def _content(array: pa.Array) -> memoryview:
    """Return all texts of an array without nulls, one after the other."""
    _, offsets, content = array.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32, count=len(array) + 1, offset=4 * array.offset)
    first, last = int(bounds[0]), int(bounds[-1])
    return memoryview(content)[first:last] if last > first else memoryview(b"")
