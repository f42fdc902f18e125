"""Types of columns that a watermark can be: whole numbers, dates, times, and texts that are ISO times of one form.

Whatever its type, a value becomes a whole number, its key: the number itself, days, or micro- or nanoseconds since
1970. Keys are compared, subtracted and stored; databases get them back as literals of the column's type.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Positions
from hubbub.core.errors import IntakeError, SettingError, shorten
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.distinct_entries import entry_type, is_text, one_array

if TYPE_CHECKING:
    import pyarrow as pa

EXPECTED = "whole numbers, dates, timestamps, or ISO times that are all written in one form"
WHOLE_NUMBER = re.compile(r"-?\d{1,18}")
ISO_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?)?(Z|[+-]\d\d(:?\d\d)?)?")
SPAN = re.compile(r"(\d{1,15})\s*(s|sec|min|h|d|w)?")
SECONDS = {"s": 1, "sec": 1, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
PER_SECOND = {"us": 1_000_000, "ns": 1_000_000_000}
FIRST_DAY, LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31: beyond them are infinities


@dataclass(frozen=True)
class MarkType:
    """The type of a watermark.

    `kind` is integer, date, time or text. `form` is the unit of times, "us" or "ns", with " UTC" if they have a zone;
    and an example of texts, with 0 for each digit: their shape.
    """

    kind: str
    form: str = ""

    @classmethod
    def of(cls, column: pa.ChunkedArray, where: str, *, typed: bool = True) -> MarkType | None:
        """Return the type of a column; None if it has no entry to go by.

        In a source that is not `typed`, such as CSV, texts of digits are whole numbers. Elsewhere they are refused: the
        database would sort 10 before 9.
        """
        import pyarrow as pa

        kind = entry_type(column)
        if pa.types.is_null(kind):
            return None
        if pa.types.is_integer(kind):
            return cls("integer")
        if pa.types.is_date(kind):
            return cls("date")
        if pa.types.is_timestamp(kind):
            unit = "ns" if kind.unit == "ns" else "us"
            return cls("time", unit if kind.tz is None else f"{unit} UTC")
        if not is_text(kind):
            raise refusal(
                "wrong-type",
                "a column of this type cannot be a watermark",
                where=where,
                got=str(kind),
                expected=EXPECTED,
                remedy="name another column, or convert it in a query",
            )
        first = _first_text(column)
        if first is None:
            return None
        if not typed and WHOLE_NUMBER.fullmatch(first):
            return cls("integer")
        if not ISO_TIME.fullmatch(first):
            raise not_a_mark(where, first, "10 sorts before 9 among texts" if WHOLE_NUMBER.fullmatch(first) else "")
        return cls("text", _shape(first))

    @property
    def unit(self) -> str:
        """The unit of keys: "us" or "ns", "D" for dates, "" for whole numbers."""
        if self.kind == "text":
            digits = re.search(r"\.(0+)", self.form)
            return "ns" if digits and len(digits[1]) > 6 else "us"
        return {"integer": "", "date": "D"}.get(self.kind) or self.form[:2]

    def keys(self, column: pa.ChunkedArray, where: str) -> tuple[Positions, NDArray[np.bool_]]:
        """Return the keys of a column, 0 where there is no entry, and where that is."""
        import pyarrow as pa
        import pyarrow.compute as pc

        kind = entry_type(column)
        if pa.types.is_dictionary(column.type):
            column = column.cast(kind)
        if pa.types.is_null(kind):
            return np.zeros(len(column), dtype=np.int64), np.ones(len(column), dtype=bool)
        array = one_array(column)
        if is_text(kind):
            return self._text_keys(array, where)
        found = MarkType.of(column, where)
        if found != self:
            raise other_type(where, self, found)
        missing = np.asarray(pc.is_null(array))
        try:
            if self.kind == "date":
                array = array.cast(pa.date32()).cast(pa.int32())
            elif self.kind == "time":
                array = array.cast(pa.timestamp(self.unit, tz=kind.tz))
            numbers = np.asarray(pc.fill_null(array.cast(pa.int64()), 0)).astype(np.int64, copy=False)
        except pa.ArrowInvalid as error:
            raise not_a_mark(where, str(error).splitlines()[0]) from None
        self._check_range(numbers, where)
        return numbers, missing

    def _text_keys(self, array: pa.Array, where: str) -> tuple[Positions, NDArray[np.bool_]]:
        """Return the keys of texts, each distinct one parsed once; an empty text is no entry."""
        encoded = array.dictionary_encode(null_encoding="encode")
        texts = encoded.dictionary.to_pylist()
        keys = np.zeros(len(texts), dtype=np.int64)
        filled = [place for place, text in enumerate(texts) if text]
        keys[filled] = self._parsed([texts[place] for place in filled], where)
        indices = np.asarray(encoded.indices)
        missing = np.array([not text for text in texts], dtype=bool)
        return keys[indices], missing[indices]

    def _parsed(self, texts: list[str], where: str) -> Positions:
        if self.kind == "integer":
            bad = next((text for text in texts if not WHOLE_NUMBER.fullmatch(text)), None)
            if bad is not None:
                raise not_a_mark(where, bad)
            return np.array(texts, dtype=object).astype(np.int64)
        for text in texts:
            if not ISO_TIME.fullmatch(text) or (self.kind == "text" and _shape(text) != self.form):
                raise not_a_mark(where, text, f"other times here are written as {self.form}" if self.form else "")
        if self.kind != "text":
            raise other_type(where, self, MarkType("text", _shape(texts[0])) if texts else None)
        try:
            times = np.array([_without_zone(text) for text in texts], dtype=f"datetime64[{self.unit}]")
        except ValueError as error:
            raise not_a_mark(where, str(error)) from None
        return times.astype(np.int64)

    def _check_range(self, numbers: Positions, where: str) -> None:
        """Refuse infinite dates and times: nothing could ever be beyond them."""
        if self.kind == "integer" or self.unit == "ns" or not numbers.size:
            return
        per_day = 1 if self.kind == "date" else 86_400 * PER_SECOND[self.unit]
        if int(numbers.min()) < self.lowest or int(numbers.max()) >= (LAST_DAY + 1) * per_day:
            raise not_a_mark(where, "a time before the year 1 or after 9999, or infinity")

    @property
    def lowest(self) -> int:
        """The smallest key that can be written."""
        if self.kind == "integer":
            return -(2**63)
        if self.kind == "date":
            return FIRST_DAY
        return FIRST_DAY * 86_400 * PER_SECOND["us"] if self.unit == "us" else -(2**63) + 1

    def text(self, key: int) -> str:
        """Return a key as people write it, and as a database reads it.

        >>> MarkType("time", "us UTC").text(1_000_000), MarkType("text", "0000-00-00 00:00Z").text(60_000_000)
        ('1970-01-01T00:00:01.000000Z', '1970-01-01 00:01Z')
        """
        if self.kind == "integer":
            return str(key)
        full = str(np.array(key, dtype=f"datetime64[{self.unit}]"))
        if self.kind == "date":
            return full
        if self.kind == "time":
            return full + ("Z" if self.form.endswith("UTC") else "")
        zone = _zone(self.form)
        size = len(self.form) - len(zone)
        return full[:10] + (self.form[10] + full[11:size] if size > 10 else "") + zone

    def key(self, text: str) -> int:
        """Return the key of a value as `text` writes it."""
        if self.kind == "integer":
            return int(text)
        return int(np.array(_without_zone(text), dtype=f"datetime64[{self.unit}]").astype(np.int64))

    def key_of_time(self, microseconds: int, where: str) -> int:
        """Return the last key that is not after a time."""
        if not self.is_time:
            raise SettingError(
                "the watermark has no times",
                where=where,
                got=f"a {self.name}",
                expected="a watermark of dates or times",
                remedy="name a column of times as the watermark, or leave it out",
            )
        if self.kind == "date":
            return microseconds // (86_400 * PER_SECOND["us"])
        return microseconds if self.unit == "us" else 1000 * microseconds + 999

    def span(self, text: object, where: str) -> int:
        """Return a distance between two values: 1000 of whole numbers; 2d, 36h, 10min or 30s of times.

        >>> MarkType("date").span("2w", "--lag"), MarkType("time", "us").span("2 min", "--lag")
        (14, 120000000)
        """
        match = SPAN.fullmatch(str(text).strip())
        is_zero = match is not None and int(match[1]) == 0
        if match is not None and (is_zero or (match[2] is None) == (self.kind == "integer")):
            if self.kind == "integer" or is_zero:
                return int(match[1])
            seconds = int(match[1]) * SECONDS[match[2]]
            if self.kind != "date":
                return seconds * PER_SECOND[self.unit]
            if seconds % 86_400 == 0:
                return seconds // 86_400
        raise SettingError(
            "not a distance between two values of the watermark",
            where=where,
            got=shorten(text),
            expected={"integer": "a whole number such as 1000", "date": "whole days: 2d or 1w"}.get(
                self.kind, "a time with its unit: 30s, 10min, 36h, 2d or 1w"
            ),
            remedy=f"the watermark is a {self.name}: write the distance in its unit",
        )

    @property
    def name(self) -> str:
        """What people call it."""
        names = {"integer": "whole number", "date": "date", "time": "timestamp", "text": "time as text"}
        zone = " with a time zone" if self.form.endswith(" UTC") else ""
        return names[self.kind] + zone + (f" such as {self.form}" if self.kind == "text" else "")

    @property
    def is_time(self) -> bool:
        """Whether values are dates or times."""
        return self.kind != "integer"


class MarkBounds(NamedTuple):
    """Which rows are wanted, by the keys of their watermark; rows without one are always wanted."""

    column: str
    type: MarkType
    low: int | None  # None: from the first on
    is_open: bool  # whether `low` itself is left out
    high: int | None  # None: up to the last; included
    counts_before: bool = True  # whether the rows before `low` are counted


def is_before(keys: Positions, low: int, is_open: bool) -> NDArray[np.bool_]:
    """Return which keys lie before a bound, which itself is before it where the bound is open."""
    return keys <= low if is_open else keys < low


def not_a_mark(where: str, got: str, why: str = "") -> IntakeError:
    """Return the error for an entry that is no value of a watermark: it could be counted twice, or never."""
    return refusal(
        "not-a-mark",
        "an entry of the watermark does not sort",
        where=where,
        got=shorten(got) + (f" ({why})" if why else ""),
        expected=EXPECTED,
        remedy="name another column, or convert it in a query; rows without an entry can be left out with "
        "--allow-rejects",
    )


def other_type(where: str, expected: MarkType, got: MarkType | None) -> IntakeError:
    """Return the error for a watermark that has another type than before."""
    return refusal(
        "other-mark",
        "the watermark has another type than before",
        where=where,
        got="no entries" if got is None else f"a {got.name}",
        expected=f"a {expected.name}, as when the tally was last collected",
        remedy="convert the column back, or collect everything again into a new tally",
    )


def _first_text(column: pa.ChunkedArray) -> str | None:
    import pyarrow.compute as pc

    for chunk in column.chunks:
        texts = pc.drop_null(pc.unique(chunk.dictionary if hasattr(chunk, "dictionary") else chunk)).to_pylist()
        first = next((text for text in texts if text), None)
        if first is not None:
            return str(first)
    return None


def _zone(text: str) -> str:
    """Return the offset at the end of a time.

    >>> _zone("2026-11-17T08:30+01:00"), _zone("2026-11-17 08:30Z"), _zone("2026-11-17")
    ('+01:00', 'Z', '')
    """
    match = re.search(r"(?<=.{10})(Z|[+-]\d\d(:?\d\d)?)$", text)
    return match[0] if match else ""


def _without_zone(text: str) -> str:
    return text.removesuffix(_zone(text))


def _shape(text: str) -> str:
    """Return the form of a time: its digits as 0, and its offset as it is.

    >>> _shape("2026-11-17T08:30:00.5+01:00")
    '0000-00-00T00:00:00.0+01:00'
    """
    zone = _zone(text)
    return re.sub(r"\d", "0", text.removesuffix(zone)) + zone
