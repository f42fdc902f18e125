"""Watermarks: up to which value of a column the rows of a growing source were counted, and what is remembered of them.

Rows beyond the mark are new. Rows at the mark, and those in a window below it, are remembered by their digests, so that
a row that arrives late is told from one that was counted. Rows before the window are only counted: if their number
changes, rows came late or went away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from hubbub.core.errors import SettingError, shorten
from hubbub.core.text import plural
from hubbub.intake.counting.dated_source import AsOf
from hubbub.intake.counting.row_digests import RowDigest
from hubbub.intake.sources.mark_types import MarkType

LATE = ("tell", "count", "ignore")


@dataclass(frozen=True)
class WatermarkSettings:
    """What a run was asked to do: the column, late rows, the window below the mark, and how far to stay behind."""

    column: str
    late: str = "tell"
    late_window: str | int | None = None
    lag: str | int | None = None
    as_of: AsOf | None = None

    @property
    def keeps_digests(self) -> bool:
        """Whether rows at the mark are remembered: not if the run stays behind, so that all of them have arrived."""
        return self.lag is None or self.late_window is not None


def check_watermark(
    column: object, late: object = "tell", late_window: object = None, lag: object = None, as_of: AsOf | None = None
) -> WatermarkSettings | None:
    """Return the settings of a watermark; None if there is none (None or False), and nothing else is set."""
    if column is None or column is False:
        moment = None if as_of is None else as_of.text
        for name, value in (("--late", late), ("--late-window", late_window), ("--lag", lag), ("--as-of", moment)):
            if value is not None and value != "tell":
                raise SettingError(
                    f"{name} needs a watermark",
                    where=name,
                    got=shorten(value),
                    expected="a column that grows with the source, --watermark COLUMN",
                    remedy=f"add --watermark COLUMN, or leave {name} out",
                )
        return None
    if not isinstance(column, str) or not column:
        raise SettingError(
            "watermark must be the name of a column",
            where="--watermark",
            got=shorten(column),
            expected="a text, spelt as in the source",
            remedy="name a column that grows with the source: an id, or the time of arrival",
        )
    if late not in LATE:
        raise SettingError(
            "late must be tell, count or ignore",
            where="--late",
            got=shorten(late),
            expected="tell to be told of late rows, count to count those in the window, ignore not to look for them",
            remedy="leave it out to be told",
        )
    for name, value in (("--late-window", late_window), ("--lag", lag)):
        if value is not None and (not isinstance(value, str | int) or isinstance(value, bool)):
            raise SettingError(
                f"{name} must be a distance",
                where=name,
                got=shorten(value),
                expected="a whole number for a column of whole numbers, or a time such as 10min or 2d",
                remedy="write it with its unit",
            )
    assert late_window is None or isinstance(late_window, str | int)  # noqa: S101  # checked above
    assert lag is None or isinstance(lag, str | int)  # noqa: S101
    return WatermarkSettings(column, str(late), late_window, lag, as_of)


@dataclass(frozen=True)
class Watermark:
    """How far a source was counted.

    Rows from `since` on (beyond it, if `is_open`) are remembered in `digests`; of earlier ones there were `before`.
    """

    column: str
    type: MarkType
    key: int  # the largest value that was counted
    first: int  # the smallest one
    columns: tuple[str, ...]  # the other columns that were read
    since: int
    is_open: bool
    before: int | None  # None: not counted
    digests: Counter[RowDigest] = field(default_factory=Counter)
    unmarked: int = 0  # rows without an entry in the column: rejected once
    unparsed: int = 0  # rows that could not be read at all: rejected once
    missed: int = 0  # late rows before the window, which nobody can tell from counted ones any more
    waiting: int = 0  # late rows in the window that were told, not counted
    size: int | None = None  # of a file, in bytes

    @property
    def value(self) -> str:
        """The mark as people write it."""
        return self.type.text(self.key)

    @property
    def late(self) -> int:
        """How many rows arrived late and are not counted."""
        return self.missed + self.waiting


def late_notes(name: str, mark: Watermark, old: Watermark, *, counted: int, gone: int, replaced: int = 0) -> list[str]:
    """Return what is said of late rows, and of rows that are gone.

    `counted` late rows were counted in this run; `replaced` rows were counted that have the value of one that is gone.
    """
    notes = []
    if counted:
        notes.append(f"{name}: {plural(counted, 'row')} arrived late, and {_was(counted)} counted")
    if mark.late:
        new = mark.late - old.late
        since = f", {new:,} of them since the last run" if 0 < new < mark.late else ""
        note = (
            f"{name}: {plural(mark.late, 'row')} arrived late ({mark.column} is not beyond {old.value}, which was "
            f"reached before), and {_is(mark.late)} not counted{since}"
        )
        if mark.waiting:
            note += f"; --late count counts the {mark.waiting:,} in the window"
        if mark.missed:
            which = f"{mark.missed:,} of them" if mark.waiting else "it" if mark.missed == 1 else "they"
            note += (
                f"; {which} {_is(mark.missed)} not in the window, and cannot be told from counted rows: to include "
                "late rows, collect everything again into a new tally, with a wider --late-window or a --lag"
            )
        notes.append(note)
    if gone:
        notes.append(
            f"{name}: {plural(gone, 'row')} that {_was(gone)} counted before {_is(gone)} no longer there, or changed; "
            "the tally still holds what was counted"
        )
    if replaced:
        notes.append(
            f"{name}: {plural(replaced, 'row')} {_was(replaced)} counted in whose place ({mark.column}) there was "
            "another before: a row that was changed is counted twice now; if so, collect everything again into a new "
            "tally"
        )
    return notes


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def _was(count: int) -> str:
    return "was" if count == 1 else "were"


def columns_read(wanted: Sequence[str], column: str) -> tuple[str, ...]:
    """Return the columns that are read beside the watermark, in a fixed order."""
    return tuple(sorted(name for name in wanted if name != column))
