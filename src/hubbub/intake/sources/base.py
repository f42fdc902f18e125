"""What a source of reports is: batches of rows that know where they stand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hubbub.core.arrays import Positions
from hubbub.intake.reject_causes import Fault, refusal
from hubbub.intake.sources.column_names import OWN_NAMES

if TYPE_CHECKING:
    import pyarrow as pa  # at run time it is imported where used: it takes a while


@dataclass(frozen=True)
class Rows:
    """Some rows of a source, one after the other.

    `counted` is how many rows there are, counted apart from the parsing that made the columns: the two must agree,
    ``counted == rows in the columns + faults``, or rows were lost.
    """

    counted: int
    columns: Mapping[str, pa.ChunkedArray]  # those that were asked for, all of one length
    first: int  # the place in the source of the first row: its line in a text, its number in a table
    places: Positions | None = None  # the place of each row, where they do not follow each other
    faults: Sequence[tuple[int, Fault]] = field(default=())  # rows that could not be made out: place and cause

    @property
    def parsed(self) -> int:
        """How many rows the columns hold."""
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def place(self, rows: Positions) -> Positions:
        """Return where some of the parsed rows stand in the source."""
        return self.first + rows if self.places is None else self.places[rows]


class Source(ABC):
    """Something that holds rows: a file, a table in a database, a table in memory."""

    name: str  # as people know it
    unit = "row"  # what `place` counts: rows, or lines of a text
    addressed = False  # does the name say where the rows lie, so that the same name means the same rows?
    done = 0.0  # the share that was read so far, where that is known
    columns = OWN_NAMES  # what its columns are called

    @abstractmethod
    def header(self) -> list[str]:
        """Return the names of the columns."""

    @abstractmethod
    def rows(self, wanted: Sequence[str]) -> Iterator[Rows]:
        """Yield all rows, with the columns that are wanted (each is in the header once)."""

    def digest(self) -> str | None:
        """Return the SHA-256 of the content, None where there are no fixed bytes."""
        return None

    @property
    def place(self) -> str | None:
        """A digest of where a file lies, by which a copy is told from a second batch; None where there is none."""
        return None

    def stamp(self) -> Mapping[str, str] | None:
        """Return what the rows say of the study they were made for; None where they say nothing."""
        return None

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that hold the rows, which nothing must be written over."""
        return ()

    @property
    def identity(self) -> object:
        """What makes it the same source under another name."""
        return self.name

    def where(self, place: int) -> str:
        """Return a place as people look for it."""
        return f"{self.name}, {self.unit} {place}"

    def column_advice(self, column: str) -> tuple[str, str]:
        """Return what is expected of a column that is missing, and how to mend that, in the words of this source."""
        return f"one column {column}", f"rename the column that holds it: {column}"

    def weight(self) -> int | None:
        """Return about how many bytes or rows there are to read, for progress; None where unknown."""
        return None


def check_counted(source: Source, rows: Rows) -> None:
    """Refuse a batch whose rows and faults are not as many as were counted apart."""
    if rows.counted != rows.parsed + len(rows.faults):
        raise refusal(
            "rows-lost",
            "rows were lost on the way",
            where=source.name,
            got=f"{rows.parsed:,} rows read and {len(rows.faults):,} rejected from row {rows.first:,} on",
            expected=f"{rows.counted:,} rows, counted apart",
            remedy="check that nothing writes to the source meanwhile; if it happens again, report it as a bug",
        )


def spread(first: int, count: int) -> Positions:
    """Return `count` places from `first` on."""
    return np.arange(first, first + count)
