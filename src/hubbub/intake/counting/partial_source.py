"""A source of which some rows are left out: in all else it is the source itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from hubbub.intake.sources.base import Source


class PartialSource(Source):
    """Some of the rows of another source; `rows` says which."""

    left_out = 0  # rows that were there, and are left for another time; known once the rows were read

    def __init__(self, inner: Source) -> None:
        self.inner = inner
        self.name, self.unit, self.columns = inner.name, inner.unit, inner.columns
        self.is_addressed, self.is_typed = inner.is_addressed, inner.is_typed
        self.column_remedy = inner.column_remedy

    def header(self) -> list[str]:
        """Return the names of the columns."""
        return self.inner.header()

    @property
    def expected_column(self) -> str:
        """What is expected where a column is missing."""
        return self.inner.expected_column

    def notes(self, wanted: Sequence[str]) -> list[str]:
        """Return how the wanted columns are read."""
        return self.inner.notes(wanted)

    def check_unchanged(self) -> None:
        """Refuse a file that was written to since it was opened."""
        self.inner.check_unchanged()

    @property
    def size_in_bytes(self) -> int | None:
        """The size of the whole file."""
        return self.inner.size_in_bytes

    def digest(self) -> str | None:
        """Return the SHA-256 of the whole content."""
        return self.inner.digest()

    @property
    def path_digest(self) -> str | None:
        """A digest of a file's path."""
        return self.inner.path_digest

    def stamp(self) -> Mapping[str, str] | None:
        """Return the source's stamp."""
        return self.inner.stamp()

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that hold the rows."""
        return self.inner.files

    @property
    def identity(self) -> object:
        """That of the source."""
        return self.inner.identity

    def mark_at(self, place: int) -> str | None:
        """Return the watermark that the source has at a place."""
        return self.inner.mark_at(place)

    def where(self, place: int) -> str:
        """Return a place as the source shows it."""
        return self.inner.where(place)
