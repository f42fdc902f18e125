"""What a tally says about itself: one JSON document."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hubbub.errors import HubbubError, IntakeError, StudyError, shorten
from hubbub.intake.causes import ROWS, refusal
from hubbub.intake.study import Study, parse_study
from hubbub.reports.spending import Spent

VERSION = 1
FORMAT = "hubbub tally"


@dataclass(frozen=True)
class Counted:
    """A source that was counted: its name, the SHA-256 of its bytes (None: it has none), its rows."""

    name: str
    digest: str | None
    rows: int
    place: str | None = None  # a digest of the path of a file


@dataclass(frozen=True)
class Summary:
    """What a tally says about itself."""

    study: Study
    users: int
    rows: int
    rejected: Mapping[str, int]
    sources: tuple[Counted, ...]
    spent: Mapping[Spent, int]
    named: bool = False  # did rows say who sent them?
    key: str | None = None  # the sign of the key under which users' digests were made, where these are kept
    skipped: tuple[str, ...] = field(default=(), compare=False)  # sources left out of a run: they were counted before
    notes: tuple[str, ...] = field(default=(), compare=False)  # what a run has to say: columns not used, and the like

    def document(self) -> dict[str, Any]:
        """Return all this in plain JSON values, in a fixed order."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "fingerprint": self.study.fingerprint,
            "name": self.study.name,
            "study": json.loads(self.study.canonical),
            "users": self.users,
            "rows": self.rows,
            "rejected": dict(sorted(self.rejected.items())),
            "sources": [
                {"name": one.name, "sha256": one.digest, "rows": one.rows, "place": one.place}
                for one in sorted(self.sources, key=lambda one: (one.digest or "", one.name, one.rows, one.place or ""))
            ],
            "spent": [
                {"plain": _number(spent.plain), "per_unit": _number(spent.metric), "users": users}
                for spent, users in sorted(self.spent.items())
            ],
            "named": self.named,
            "key": self.key,
        }

    @classmethod
    def read(cls, text: bytes, where: str) -> Summary:
        """Return what a document says, checked."""
        try:
            document = json.loads(text)
            if document["format"] != FORMAT:
                raise KeyError("format")
            version = document["version"]
            if version != VERSION:
                raise refusal(
                    "unknown-version",
                    "the tally's version is not known",
                    where=where,
                    got=f"version {shorten(version)}",
                    expected=f"version {VERSION}",
                    remedy="use a newer hubbub",
                )
            study = parse_study({"name": document["name"], **filled(document["study"])}, f"{where}, study")
            summary = cls(
                study,
                int(document["users"]),
                int(document["rows"]),
                {str(code): int(rows) for code, rows in document["rejected"].items()},
                tuple(
                    Counted(str(one["name"]), one["sha256"], int(one["rows"]), one.get("place"))
                    for one in document["sources"]
                ),
                {Spent(_back(one["plain"]), _back(one["per_unit"])): int(one["users"]) for one in document["spent"]},
                bool(document["named"]),
                document["key"],
            )
            _check(document, summary)
        except IntakeError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            told = error.what if isinstance(error, HubbubError) else f"{type(error).__name__} {error}"
            raise damaged(where, f"a description that cannot be read: {shorten(told, 100)}") from None
        if study.fingerprint != document["fingerprint"]:
            raise damaged(where, "a study that does not have the fingerprint beside it")
        return summary


MOST = 2**53  # rows, up to which sums are exact


def _check(document: Mapping[str, Any], summary: Summary) -> None:
    """Refuse a description that contradicts itself."""
    rejected = sum(summary.rejected.values())
    numbers = [summary.users, summary.rows, *summary.rejected.values(), *summary.spent.values()]
    numbers += [one.rows for one in summary.sources]
    texts = [document["key"], *(text for one in summary.sources for text in (one.digest, one.place))]
    if not all(text is None or isinstance(text, str) for text in texts):
        raise ValueError("a digest that is no text")
    if not all(0 <= number <= MOST for number in numbers) or not summary.rejected.keys() <= ROWS.keys():
        raise ValueError("numbers of rows that are none, or causes that are not known")
    if summary.rows != sum(one.rows for one in summary.sources) or summary.users != sum(summary.spent.values()):
        raise ValueError("rows or users that do not add up")
    if not 1 <= summary.users <= summary.rows - rejected:
        raise ValueError("more users than rows, or none")


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _back(value: float | None) -> float:
    return math.inf if value is None else float(value)


def damaged(where: str, got: str) -> IntakeError:
    """Return the error for a tally that contradicts itself."""
    return refusal(
        "damaged-tally",
        "the tally does not hold what it says",
        where=where,
        got=got,
        expected="a tally as hubbub wrote it",
        remedy="collect again, or take the tally from a backup",
    )


def check_writable(study: Study, where: str = "collect(study)", what: str = "written to a tally") -> None:
    """Refuse a study that no file can hold: a tally could not be read again, and no fingerprint compared."""
    try:
        same = parse_study(filled(json.loads(study.canonical)), "study").fingerprint == study.fingerprint
        reason = "it would come out as another study"
    except (HubbubError, TypeError, KeyError, ValueError) as error:
        same, reason = False, f"{error.what}: {error.got}" if isinstance(error, HubbubError) else str(error)
    if not same:
        raise StudyError(
            f"this study cannot be {what}",
            where=where,
            got=reason,
            expected="names and mechanisms that a study file can hold",
            remedy="rename what is named; for a mechanism of your own use read_reports, or write it down as a Matrix",
        )


def filled(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a canonical study without what is left out: a study file has no null."""
    return {
        name: {
            inner: filled(table) if isinstance(table, dict) else table
            for inner, table in value.items()
            if table is not None
        }
        if isinstance(value, dict)
        else value
        for name, value in document.items()
        if value is not None
    }
