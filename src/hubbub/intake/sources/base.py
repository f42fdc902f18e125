"""What a source of reports is: a header, and batches of rows that know their place in the source."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hubbub.core.arrays import Positions
from hubbub.intake.reject_causes import Fault, refusal
from hubbub.intake.sources.column_names import OWN_NAMES

if TYPE_CHECKING:
    import pyarrow as pa  # at run time it is imported where it is used, because that takes a while

    from hubbub.intake.sources.mark_types import MarkBounds


@dataclass(frozen=True)
class Rows:
    """A batch of consecutive rows.

    `counted` is the number of rows, counted apart from the parsing that made the columns. Unless
    ``counted == rows in the columns + faults``, rows were lost.
    """

    counted: int
    columns: Mapping[str, pa.ChunkedArray]  # the requested ones, all of the same length
    first: int  # the place of the first row in the source: its line in a text, its number in a table
    places: Positions | None = None  # the place of each row; None if they are consecutive
    faults: Sequence[tuple[int, Fault]] = field(default=())  # rows that could not be parsed: place and cause

    @property
    def parsed(self) -> int:
        """How many rows the columns hold."""
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def place(self, rows: Positions) -> Positions:
        """Return the places in the source of some of the parsed rows."""
        return self.first + rows if self.places is None else self.places[rows]


class Snapshot:
    """One state of a source, of which the rows around a watermark can be read without the others."""

    is_indexed = False  # whether the largest entry of a column is found without reading all of them
    skipped: int | None = 0  # rows before the bounds that were not read; None if nobody counted them
    beyond = 0  # rows beyond the bounds that were not read

    def __init__(self, source: Source) -> None:
        self.source = source

    def largest(self, column: str) -> Iterator[pa.ChunkedArray]:
        """Yield parts of a column, of which one has its largest entry."""
        for rows in self.source.rows([column]):
            if rows.parsed:
                yield rows.columns[column]

    def rows(self, wanted: Sequence[str], bounds: MarkBounds | None) -> Iterator[Rows]:  # noqa: ARG002  # all are read
        """Yield at least the rows within the bounds (None: all), and those without a watermark."""
        return self.source.rows(wanted)


class Source(ABC):
    """Something that holds rows: a file, a table in a database, a table in memory."""

    name: str  # as people know it
    unit = "row"  # what places count: the rows of a table, or the lines of a text
    is_addressed = False  # whether the name says where the rows are, so that the same name means the same rows
    is_typed = True  # whether columns have types, so that a text of digits is not a number
    done = 0.0  # the share that was read so far, if that is known
    columns = OWN_NAMES  # what its columns are called
    column_remedy = "rename the column that holds it to {}"  # where a column is missing

    @property
    def expected_column(self) -> str:
        """What is expected where a column is missing."""
        return "one column {}"

    @abstractmethod
    def header(self) -> list[str]:
        """Return the names of the columns."""

    @abstractmethod
    def rows(self, wanted: Sequence[str]) -> Iterator[Rows]:
        """Yield all rows in batches, with the wanted columns (each is in the header once)."""

    def notes(self, wanted: Sequence[str]) -> list[str]:  # noqa: ARG002  # other sources need them
        """Return sentences about how the wanted columns are read, where that is not obvious."""
        return []

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Hold on to one state of the source."""
        yield Snapshot(self)

    def check_unchanged(self) -> None:  # noqa: B027  # most cannot change: a snapshot, a table in memory
        """Refuse a source that changed while it was read."""

    @property
    def size_in_bytes(self) -> int | None:
        """The size of a file; None if it is none."""
        return None

    def digest(self) -> str | None:
        """Return the SHA-256 of the content; None if there are no fixed bytes."""
        return None

    @property
    def path_digest(self) -> str | None:
        """A digest of a file's path, which distinguishes a copy from a second batch; None if there is no path."""
        return None

    def stamp(self) -> Mapping[str, str] | None:
        """Return what the source says about the study it was made for; None if it says nothing."""
        return None

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that hold the rows, which must not be overwritten."""
        return ()

    @property
    def identity(self) -> object:
        """What makes it the same source under another name."""
        return self.name

    def mark_at(self, place: int) -> str | None:  # noqa: ARG002  # of a source that is continued
        """Return the watermark of the row at a place; None if there is none."""
        return None

    def where(self, place: int) -> str:
        """Return a place as it is shown in messages."""
        return f"{self.name}, {self.unit} {place}"


def check_counted(source: Source, rows: Rows) -> None:
    """Refuse a batch in which rows and faults do not add up to the separate count."""
    if rows.counted != rows.parsed + len(rows.faults):
        raise refusal(
            "rows-lost",
            "rows were lost while reading",
            where=source.name,
            got=f"{rows.parsed:,} rows read and {len(rows.faults):,} rejected from row {rows.first:,} on",
            expected=f"{rows.counted:,} rows, by a separate count",
            remedy="check that nothing writes to the source meanwhile; if it happens again, report it as a bug",
        )
