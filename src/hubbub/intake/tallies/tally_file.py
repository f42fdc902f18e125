"""The Parquet file of a tally, opened so that damage is noticed and told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hubbub.core.errors import HubbubError, IntakeError, shorten
from hubbub.intake.reject_causes import refusal
from hubbub.intake.tallies.tally_summary import damaged

# What Arrow says of bytes that are no Parquet, or no longer. Its own errors are among these, or are told besides.
FAULTS = (ValueError, TypeError, LookupError, ArithmeticError, NotImplementedError, RuntimeError, MemoryError, OSError)


def open_parquet(path: Path, **options: Any) -> Any:
    """Open a Parquet file, each page of which is compared with its checksum as it is read."""
    from pyarrow import parquet

    return parquet.ParquetFile(path, page_checksum_verification=True, pre_buffer=False, **options)


@contextmanager
def telling_damage(where: str, error: Callable[[str, str], IntakeError] = damaged) -> Iterator[None]:
    """Tell what goes wrong while a tally is read in five parts: `error` is given the path and what was found."""
    import pyarrow as pa

    try:
        yield
    except HubbubError:
        raise
    except (*FAULTS, pa.ArrowException) as found:
        lines = str(found).strip().splitlines() or [type(found).__name__]
        raise error(where, shorten(lines[0], 200)[1:-1]) from None


def not_a_tally(where: str, got: str) -> IntakeError:
    """Return the error for a file that is no Parquet, or no longer."""
    return refusal(
        "not-a-tally",
        "the file is not a tally",
        where=where,
        got=got,
        expected="a tally that hubbub collect wrote",
        remedy="check the path; if the file was copied, copy it again",
    )
