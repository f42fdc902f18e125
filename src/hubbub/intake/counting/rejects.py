"""Rows that were rejected: counted by cause, listed in a file, and summed up in the message that stops a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from operator import itemgetter
from typing import IO

from hubbub.core.errors import IntakeError, SettingError, restated, shorten
from hubbub.core.text import plural
from hubbub.intake.reject_causes import CAUSES, Fault, refusal
from hubbub.intake.sources.base import Source
from hubbub.rendering import write_csv_row

EXAMPLES_PER_CAUSE = 3
MAX_KINDS = 1000  # distinct messages that are counted separately
COLUMNS = ("file", "line", "column", "code", "message")  # of tables: their name, and the number of the row


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

    def covers(self, rejected: int, rows: int) -> bool:
        """Whether `rejected` of `rows` may be rejected."""
        return rejected <= (self.rows if self.share is None else self.share * rows)


NO_REJECTS = Allowance()


@dataclass
class RejectKind:
    """Rows rejected for exactly the same reason."""

    fault: Fault
    first: str  # the place of the first of them
    rows: int = 0


@dataclass
class Rejects:
    """All rows that were rejected."""

    codes: Counter[str] = field(default_factory=Counter)
    kinds: dict[tuple[str, str, str], RejectKind] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._file: IO[str] | None = None

    def write_to(self, file: IO[str]) -> None:
        """List every rejected row in a file from now on."""
        self._file = file
        write_csv_row(file, COLUMNS)

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
            key = fault.code, error.where, error.got
            kind = self.kinds.get(key)
            if kind is None and len(self.kinds) < MAX_KINDS:
                kind = self.kinds[key] = RejectKind(fault, _where(source, place, fault))
            if kind is not None:
                kind.rows += rows
            if self._file is not None:
                message = f"{error.what}: got {error.got}, expected {error.expected}"
                entries[id(fault)] = source.columns.name_of(fault.column), fault.code, message
        for place, fault in listed:
            shown = self.examples.setdefault(fault.code, [])
            if len(shown) < EXAMPLES_PER_CAUSE:
                shown.append(f"{_where(source, place, fault)}: {fault.error.got}")
        if self._file is not None:
            name = source.name
            for place, fault in listed:
                write_csv_row(self._file, (name, place, *entries[id(fault)]))

    def check(self, rows: int, allowed: Allowance, names: Sequence[str], written: str | None) -> None:
        """Stop if more rows were rejected than allowed."""
        if allowed.covers(self.rows, rows):
            return
        raise self._only_kind(allowed) or self._summary(rows, allowed, names, written)

    def _only_kind(self, allowed: Allowance) -> IntakeError | None:
        """Return the first row's own message, where all rows were rejected for one cause."""
        if len(self.codes) != 1 or allowed != NO_REJECTS:
            return None
        kind = next(iter(self.kinds.values()))
        error = kind.fault.error
        times = f" ({plural(kind.rows, 'row')})"
        others = self.rows - kind.rows
        times += f", and {plural(others, 'more row')} for the same cause" if others else ""
        return restated(error, IntakeError, where=kind.first, got=error.got + times)

    def _summary(self, rows: int, allowed: Allowance, names: Sequence[str], written: str | None) -> IntakeError:
        limit = f"at most {allowed.rows:,}" if allowed.share is None else f"at most {100 * float(allowed.share):g}%"
        return refusal(
            "rejected-rows",
            f"{self.rows:,} of {rows:,} rows cannot be taken",
            where=names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more",
            got=self.summary(),
            expected=f"{limit} rejected rows",
            remedy=("they are all listed in " + written if written else "correct them")
            + f"; to go on without them, allow them: --allow-rejects {self.rows}",
        )

    def summary(self) -> str:
        """Return the causes with their counts and some examples, one line each."""
        lines = []
        for code, count in self.codes.most_common():
            lines.append(f"{count:,} x {code}: {CAUSES[code]}")
            lines += [f"    {example}" for example in self.examples[code]]
        return "\n            ".join(lines)


def _where(source: Source, place: int, fault: Fault) -> str:
    column = f", column {source.columns.name_of(fault.column)}" if fault.column else ""
    more = f", {fault.error.where}" if fault.error.where else ""
    return source.where(place) + column + more
