"""Rows that were rejected: counted by cause, listed in a file, and summed up in the message that stops a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import itemgetter
from typing import IO

from hubbub.core.errors import IntakeError, SettingError, restated, shorten
from hubbub.core.text import plural
from hubbub.intake.reject_causes import CAUSES, Fault, refusal
from hubbub.intake.sources.base import Source
from hubbub.rendering import write_csv_row

EXAMPLES_PER_CAUSE = 3
COLUMNS = ("file", "line", "column", "code", "message")  # of tables: their name, and the number of the row
MARK_COLUMN = "watermark"  # one more, where sources have a watermark


@dataclass(frozen=True)
class Allowance:
    """How many rows may be rejected before the run stops: a number, or a share of all rows."""

    rows: int = 0
    share: Fraction | None = None

    @classmethod
    def of(cls, limit: object) -> Allowance:
        """Return what ``100``, ``"100"``, ``"1%"`` or ``0.01`` allows."""
        text = str(limit).strip() if isinstance(limit, str | int | float) and not isinstance(limit, bool) else ""
        try:
            if text.endswith("%"):
                share = Fraction(text[:-1]) / 100
            elif isinstance(limit, float) or "." in text:
                share = Fraction(text)
            elif text.isdecimal():
                return cls(rows=int(text))
            else:
                raise ValueError
            if not 0 <= share <= 1 or (share == 1 and not text.endswith("%")):  # one row, or all of them?
                raise ValueError
        except (ValueError, ZeroDivisionError):
            raise SettingError(
                "allow_rejects must be a number or a share of rows",
                where="allow_rejects",
                got=shorten(limit),
                expected="a number such as 100, or a share such as 1%",
                remedy="leave it out to allow none",
            ) from None
        return cls(share=share)


NO_REJECTS = Allowance()


class Rejects:
    """All rows that were rejected."""

    def __init__(self) -> None:
        self.codes: Counter[str] = Counter()
        self._examples: dict[str, list[str]] = {}
        self._first: tuple[Fault, str] | None = None  # of the first row that was rejected, and its place
        self._like_first = 0  # rows that were rejected for exactly the same reason
        self._file: IO[str] | None = None
        self._with_marks = False

    def write_to(self, file: IO[str], *, with_marks: bool = False) -> None:
        """List every rejected row in a file from now on, with its watermark if there are any."""
        self._file, self._with_marks = file, with_marks
        write_csv_row(file, (*COLUMNS, MARK_COLUMN) if with_marks else COLUMNS)

    @property
    def rows(self) -> int:
        """How many rows were rejected."""
        return sum(self.codes.values())

    def add(self, source: Source, faults: Iterable[tuple[int, Fault]]) -> None:
        """Reject rows, given by their place in the source."""
        listed = list(faults)
        times = Counter(id(fault) for _, fault in listed)
        first = {id(fault): (place, fault) for place, fault in reversed(listed)}
        entries: dict[int, tuple[str, str, str]] = {}
        for place, fault in sorted(first.values(), key=itemgetter(0)):
            error, rows = fault.error, times[id(fault)]
            self.codes[fault.code] += rows
            self._first = self._first or (fault, _where(source, place, fault))
            if _reason(fault) == _reason(self._first[0]):
                self._like_first += rows
            if self._file is not None:
                message = f"{error.what}: got {error.got}, expected {error.expected}"
                entries[id(fault)] = source.columns.name_of(fault.column), fault.code, message
        for place, fault in listed:
            shown = self._examples.setdefault(fault.code, [])
            if len(shown) < EXAMPLES_PER_CAUSE:
                shown.append(f"{_where(source, place, fault)}: {fault.error.got}")
        if self._file is not None:
            name = source.name
            for place, fault in listed:
                mark = (source.mark_at(place) or "",) if self._with_marks else ()
                write_csv_row(self._file, (name, place, *entries[id(fault)], *mark))

    def check(self, rows: int, allowed: Allowance, names: Sequence[str], written: str | None) -> None:
        """Stop if more rows were rejected than allowed."""
        if self.rows <= (allowed.rows if allowed.share is None else allowed.share * rows):
            return
        if len(self.codes) == 1 and allowed == NO_REJECTS and self._first is not None:  # its own message says it all
            (fault, where), others = self._first, self.rows - self._like_first
            times = f" ({plural(self._like_first, 'row')})"
            times += f", and {plural(others, 'more row')} for the same cause" if others else ""
            raise restated(fault.error, IntakeError, where=where, got=fault.error.got + times)
        lines = []
        for code, count in self.codes.most_common():
            lines.append(f"{count:,} x {code}: {CAUSES[code]}")
            lines += [f"    {example}" for example in self._examples[code]]
        limit = f"at most {allowed.rows:,}" if allowed.share is None else f"at most {100 * float(allowed.share):g}%"
        raise refusal(
            "rejected-rows",
            f"{self.rows:,} of {rows:,} rows were rejected",
            where=names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more",
            got="\n            ".join(lines),
            expected=f"{limit} rejected rows",
            remedy=("they are all listed in " + written if written else "correct them")
            + f"; to continue without them, pass --allow-rejects {self.rows}",
        )


def _reason(fault: Fault) -> tuple[str, str, str]:
    return fault.code, fault.error.where, fault.error.got


def _where(source: Source, place: int, fault: Fault) -> str:
    column = f", column {source.columns.name_of(fault.column)}" if fault.column else ""
    more = f", {fault.error.where}" if fault.error.where else ""
    return source.where(place) + column + more
