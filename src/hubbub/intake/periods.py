"""Periods as groups: the day, ISO week or month of a time.

Times are ISO 8601: 2026-11-17, or 2026-11-17T08:30:00 with or without an offset. The period is that of the date as it
is written: an offset is not applied.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from hubbub.core.errors import IntakeError
from hubbub.intake.reject_causes import Fault, missing_entry, refusal, row_fault
from hubbub.intake.sources.distinct_entries import entry_type, is_text, one_array

if TYPE_CHECKING:
    import pyarrow as pa

PERIODS: dict[str, Callable[[datetime.date], str]] = {
    "day": datetime.date.isoformat,
    "week": lambda day: "{}-W{:02}".format(*day.isocalendar()[:2]),
    "month": lambda day: f"{day:%Y-%m}",
}
ISO_TIME = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}([.,]\d+)?)?\s?(Z|[+-]\d{2}:?(\d{2})?)?)?$"
DATE_LETTERS = 10  # of 2026-11-17
EXPECTED = "an ISO date or time in every row: 2026-11-17, or 2026-11-17T08:30:00"


def period_of(day: str, period: str) -> str:
    """Return the period that a day is in.

    >>> period_of("2027-01-02", "week"), period_of("2027-01-02", "month")
    ('2026-W53', '2027-01')
    """
    return PERIODS[period](datetime.date.fromisoformat(day))


def is_day(text: str) -> bool:
    """Whether a text is a date as the period of a day is written.

    >>> is_day("2026-11-17"), is_day("Monday"), is_day("20261117")
    (True, False, False)
    """
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def period_entries(column: pa.ChunkedArray, period: str) -> tuple[list[str | Fault], np.ndarray]:
    """Return the distinct periods of a column of times, or what is wrong with an entry, and the index of each row's."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = entry_type(column)
    if pa.types.is_dictionary(column.type):
        column = column.cast(kind)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        dates = pc.strftime(column.cast(pa.timestamp("us", tz=getattr(kind, "tz", None))), format="%Y-%m-%d")
    elif is_text(kind) or pa.types.is_null(kind):
        texts = column.cast(pa.string())
        is_time = pc.match_substring_regex(texts, ISO_TIME)
        dates = pc.if_else(is_time, pc.utf8_slice_codeunits(texts, 0, DATE_LETTERS), texts)
    else:
        raise _wrong_type(kind)
    encoded = one_array(dates).dictionary_encode(null_encoding="encode")
    return [_period(day, period) for day in encoded.dictionary.to_pylist()], np.asarray(encoded.indices)


def _wrong_type(kind: pa.DataType) -> IntakeError:
    return refusal(
        "wrong-type",
        "a column of this type cannot hold times",
        where="column time",
        got=str(kind),
        expected=EXPECTED,
        remedy="write times as text, or as timestamps",
    )


def _period(day: str | None, period: str) -> str | Fault:
    if day is None or day == "":
        return missing_entry("time")
    try:
        return period_of(day, period)
    except ValueError:
        return _not_a_time(day)


def _not_a_time(got: str) -> Fault:
    return row_fault(
        "not-a-time",
        "not a date or time that can be read without guessing",
        got=got,
        expected=EXPECTED,
        remedy="write all times in this one form: year, month, day",
        column="time",
    )


def written_times(column: pa.ChunkedArray) -> tuple[np.ndarray, list[tuple[int, Fault]]]:
    """Return the times of rows in microseconds since 1970, as they are written, and which rows have none, and why.

    An offset is not applied, as with periods.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = entry_type(column)
    array = one_array(column.cast(kind) if pa.types.is_dictionary(column.type) else column)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        local = pc.local_timestamp(array) if getattr(kind, "tz", None) else array
        numbers = local.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
        missing = np.flatnonzero(np.asarray(pc.is_null(array)))
        return np.asarray(pc.fill_null(numbers, 0)), [(row, missing_entry("time")) for row in missing.tolist()]
    if not is_text(kind) and not pa.types.is_null(kind):
        raise _wrong_type(kind)
    encoded = array.cast(pa.string()).dictionary_encode(null_encoding="encode")
    texts: list[int | Fault] = [_written_time(text) for text in encoded.dictionary.to_pylist()]
    indices = np.asarray(encoded.indices)
    numbers = np.array([text if isinstance(text, int) else 0 for text in texts], dtype=np.int64)[indices]
    faults = {place: text for place, text in enumerate(texts) if isinstance(text, Fault)}
    bad = np.flatnonzero(np.isin(indices, list(faults)))
    return numbers, [(row, faults[index]) for row, index in zip(bad.tolist(), indices[bad].tolist(), strict=True)]


def _written_time(text: str | None) -> int | Fault:
    """Return the microseconds of a time in text, without its offset."""
    if not text:
        return missing_entry("time")
    if not re.match(ISO_TIME, text):
        return _not_a_time(text)
    written = re.sub(r"\s?(Z|(?<=.{15})[+-]\d{2}:?(\d{2})?)$", "", text).replace(",", ".")
    try:
        return int(np.array(written[:26], dtype="datetime64[us]").astype(np.int64))
    except ValueError:
        return _not_a_time(text)
