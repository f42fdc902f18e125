"""Periods as groups: the day, ISO week or month of a time.

Times are ISO 8601: 2026-11-17, or 2026-11-17T08:30:00 with or without an offset. The period is that of the date as it
is written: an offset is not applied.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

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
        raise refusal(
            "wrong-type",
            "a column of this type cannot hold times",
            where="column time",
            got=str(kind),
            expected=EXPECTED,
            remedy="write times as text, or as timestamps",
        )
    encoded = one_array(dates).dictionary_encode(null_encoding="encode")
    return [_period(day, period) for day in encoded.dictionary.to_pylist()], np.asarray(encoded.indices)


def _period(day: str | None, period: str) -> str | Fault:
    if day is None or day == "":
        return missing_entry("time")
    try:
        return period_of(day, period)
    except ValueError:
        return row_fault(
            "not-a-time",
            "not a date or time that can be read without guessing",
            got=day,
            expected=EXPECTED,
            remedy="write all times in this one form: year, month, day",
            column="time",
        )
