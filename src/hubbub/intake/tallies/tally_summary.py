"""What a tally says about itself: one JSON document."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hubbub.client import digest_of
from hubbub.core.errors import HubbubError, IntakeError, StudyError
from hubbub.intake.reject_causes import refusal
from hubbub.intake.study import Study, parse_study
from hubbub.reports.privacy_spent import Spent

VERSION = 1
FORMAT = "hubbub tally"


@dataclass(frozen=True)
class CountedSource:
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
    sources: tuple[CountedSource, ...]
    spent: Mapping[Spent, int]
    named: bool = False  # did rows say who sent them?
    key: str | None = None  # the sign of the key of users' digests, where these are kept
    skipped: tuple[str, ...] = field(default=(), compare=False)  # sources left out of a run: they were counted before
    notes: tuple[str, ...] = field(default=(), compare=False)  # of a run: columns not used, and the like
    row_groups: tuple[str, ...] | None = field(default=None, compare=False)  # digests of the rows; None: not kept

    def document(self) -> dict[str, Any]:
        """Return the JSON document, in a fixed order, with a digest of itself at the end."""
        document = {
            "format": FORMAT,
            "version": VERSION,
            "fingerprint": self.study.fingerprint,
            "name": self.study.name,
            "study": json.loads(self.study.canonical),
            "users": self.users,
            "rows": self.rows,
            "rejected": dict(sorted(self.rejected.items())),
            "sources": [
                {"name": source.name, "sha256": source.digest, "rows": source.rows, "place": source.place}
                for source in sorted(self.sources, key=_source_order)
            ],
            "spent": [
                {"plain": _number(spent.plain), "per_unit": _number(spent.metric), "users": users}
                for spent, users in sorted(self.spent.items())
            ],
            "named": self.named,
            "key": self.key,
        }
        if self.row_groups is not None:
            document["row_groups"] = list(self.row_groups)
            document["digest"] = digest_of(document)
        return document


def _source_order(source: CountedSource) -> tuple[str, str, int, str]:
    return source.digest or "", source.name, source.rows, source.place or ""


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


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
    """Refuse a study that no file can hold: its tally could not be read again, nor its fingerprint compared."""
    try:
        same = parse_study(without_nulls(json.loads(study.canonical)), "study").fingerprint == study.fingerprint
        reason = "it would be read back as another study"
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


def without_nulls(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a canonical study as a study file would hold it: without nulls."""
    return {
        name: {
            inner: without_nulls(table) if isinstance(table, dict) else table
            for inner, table in value.items()
            if table is not None
        }
        if isinstance(value, dict)
        else value
        for name, value in document.items()
        if value is not None
    }
