"""Tallies: reports merged to patterns and counts, in one Parquet file that needs nothing else.

One row for each output of a pattern:

    kind       "single" (users who sent one output), "joint" (users who sent several), "person" (a digest of a user)
    pattern    the number of a joint pattern, null otherwise
    mechanism  its name in the study
    output     the output as text, null where it is packed
    packed     rows of bits, seeds with buckets, digests; null otherwise
    times      how often the output occurs in the pattern
    users      how many users sent the pattern

The file's metadata hold one JSON document: version, fingerprint, the study itself, what was counted. Nothing in it can
run code, and nothing depends on the order of arrival or the time of day: the same reports give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from hubbub.core.errors import SettingError, shorten
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.file_source import check_file
from hubbub.intake.study import Study
from hubbub.intake.tallies.summary_parsing import read_summary
from hubbub.intake.tallies.tally_file import explaining_damage, not_a_tally, open_parquet
from hubbub.intake.tallies.tally_summary import CountedSource, Summary, damaged
from hubbub.reports import Reports

ENDING = ".tally.parquet"
KEY = b"hubbub"
WAIT_OR_MERGE = "wait for it to end, or collect into another tally and merge the two"
KINDS = ("single", "joint", "person")


@dataclass(frozen=True)
class Tally:
    """A tally on disk: reports merged to patterns and counts, and where they came from.

    Parameters
    ----------
    path
        The Parquet file.
    summary
        What the file says about itself.
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
        """How many rows were rejected, by cause."""
        return self.summary.rejected

    @property
    def sources(self) -> tuple[CountedSource, ...]:
        """The sources that were counted."""
        return self.summary.sources

    @cached_property
    def reports(self) -> Reports:
        """All reports, in memory."""
        from hubbub.intake.tallies.tally_reading import reports_of

        return reports_of(self)


def schema() -> Any:
    """Return the columns of a tally."""
    import pyarrow as pa

    short = pa.dictionary(pa.int32(), pa.string())
    return pa.schema(
        [
            pa.field("kind", short, nullable=False),
            pa.field("pattern", pa.int64()),
            pa.field("mechanism", short),
            pa.field("output", pa.string()),
            pa.field("packed", pa.binary()),
            pa.field("times", pa.int32(), nullable=False),
            pa.field("users", pa.int64(), nullable=False),
        ]
    )


def _value_type(kind: Any) -> Any:
    """Return a type without the dictionary in which a file may keep it."""
    import pyarrow as pa

    return kind.value_type if pa.types.is_dictionary(kind) else kind


def read_tally(path: str | Path) -> Tally:
    """Read what a tally says about itself.

    Parameters
    ----------
    path
        A file that `collect` or `merge` wrote.

    Returns
    -------
    Tally
        What was counted. Its ``.reports`` are read from the file when first used.
    """
    file = Path(path)
    check_file(file)
    with explaining_damage(str(file), not_a_tally), open_parquet(file) as opened:
        text = (opened.schema_arrow.metadata or {}).get(KEY) or (opened.metadata.metadata or {}).get(KEY)
        stored = opened.schema_arrow.remove_metadata()
    columns = [(name, _value_type(kind)) for name, kind in zip(stored.names, stored.types, strict=True)]
    if text is None:
        raise refusal(
            "not-a-tally",
            "the file is not a tally",
            where=str(file),
            got="a Parquet file without a tally's description",
            expected="a tally that hubbub collect wrote",
            remedy="a file of reports is read together with its study: hubbub estimate study.toml FILE",
        )
    summary = read_summary(text, str(file))
    if columns != [(name, _value_type(kind)) for name, kind in zip(schema().names, schema().types, strict=True)]:
        raise damaged(str(file), f"columns {shorten({name: str(kind) for name, kind in columns}, 200)}")
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
