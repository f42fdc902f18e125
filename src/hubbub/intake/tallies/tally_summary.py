"""What a tally says about itself: one JSON document, checked when it is read back, since nothing in it is trusted.

The parser is ours rather than a library's (msgspec, pydantic, cattrs): keys that occur twice, constants such as NaN and
texts as numbers must be refused, and a damaged entry is named in the words of the tally's own format.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from hubbub.client import digest_of
from hubbub.core.errors import HubbubError, IntakeError, StudyError, restated, shorten
from hubbub.intake.counting.watermark import Watermark
from hubbub.intake.group_names import Group, group_order
from hubbub.intake.periods import is_day
from hubbub.intake.reject_causes import ROWS, refusal
from hubbub.intake.report_dates import ReportDates, period_of_marks
from hubbub.intake.sources.column_names import SURVEY_ROLES
from hubbub.intake.study import Study, parse_study
from hubbub.intake.tallies.document_shapes import (
    MAX_COUNT,
    DamageError,
    Shape,
    are_names,
    check_shape,
    is_count,
    is_exactly,
    refuse_if,
)
from hubbub.intake.tallies.watermark_documents import read_watermark, watermark_document
from hubbub.mechanisms.mechanism_kinds import NOT_ALLOWED, UNKNOWN, unreachable
from hubbub.reports.privacy_accounting import Spent

VERSION, DIVIDED_VERSION = 1, 2  # of a plain tally, and of one whose users are divided: into groups, or by weights
FORMAT = "hubbub tally"
SHA256 = re.compile(r"[0-9a-f]{64}")
# What building a stranger's study raises, and Arrow for bytes that are not Parquet, or no longer: the tally is damaged.
FAULTS = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RuntimeError, MemoryError, OSError)


@dataclass(frozen=True)
class CountedSource:
    """A source that was counted: its name, the SHA-256 of its bytes (None: it has none), its rows."""

    name: str
    digest: str | None
    rows: int
    place: str | None = None  # a digest of the path of a file
    mark: Watermark | None = None  # up to where it was counted, if it grows
    added: int | None = field(default=None, compare=False)  # rows of this run; None: it was not read now
    left_out: int = field(default=0, compare=False)  # rows of this run that are left for another time


@dataclass(frozen=True)
class CountedGroup:
    """One group of a tally: its users, the outputs that they sent, its rejected rows, and its place in the file."""

    entries: Group
    users: int
    outputs: int
    rejected: Mapping[str, int]
    row_groups: int  # of the file that are its own, after those of the groups before


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
    by: tuple[str, ...] = ()  # the columns by which the tally is divided into groups
    groups: tuple[CountedGroup, ...] = ()
    survey: tuple[str, ...] = ()  # which columns of a survey were read: weight, stratum, cluster
    weight: float | None = None  # of all users, where there are weights
    skipped: tuple[str, ...] = field(default=(), compare=False)  # sources left out of a run: they were counted before
    notes: tuple[str, ...] = field(default=(), compare=False)  # of a run: columns not used, and the like
    row_groups: tuple[str, ...] | None = field(default=None, compare=False)  # digests of the rows; None: not kept
    dates: ReportDates | None = field(default=None, compare=False)  # of reports that were read; a tally holds none

    @property
    def known_dates(self) -> ReportDates:
        """When the reports were sent and their sources changed, as far as anything says it."""
        if self.dates is not None and self.dates.first is not None:
            return self.dates
        first, last = period_of_marks([source.mark for source in self.sources])
        if first is None and "day" in self.by and self.groups:
            days = [group.entries[self.by.index("day")] for group in self.groups]
            first, last = (min(days), max(days)) if all(map(is_day, days)) else (None, None)
        return replace(self.dates or ReportDates(), first=first, last=last)

    def rejected_by_group(self) -> dict[Group, Mapping[str, int]]:
        """Return how many rows of each group were rejected, by cause."""
        return {group.entries: group.rejected for group in self.groups}

    def document(self) -> dict[str, Any]:
        """Return the JSON document, in a fixed order, with a digest of itself at the end."""
        document: dict[str, Any] = {
            "format": FORMAT,
            "version": DIVIDED_VERSION if self.by or self.survey else VERSION,
            "fingerprint": self.study.fingerprint,
            "name": self.study.name,
            "study": json.loads(json.dumps(self.study.written_entries(), sort_keys=True)),
            "users": self.users,
            "rows": self.rows,
            "rejected": dict(sorted(self.rejected.items())),
            "sources": [_source_document(source) for source in sorted(self.sources, key=_source_order)],
            "spent": [
                {"plain": _number(spent.plain), "per_unit": _number(spent.metric), "users": users}
                for spent, users in sorted(self.spent.items())
            ],
            "named": self.named,
            "key": self.key,
        }
        if self.by:
            document["by"] = list(self.by)
            document["groups"] = [
                {
                    "entries": list(group.entries),
                    "users": group.users,
                    "outputs": group.outputs,
                    "rejected": dict(sorted(group.rejected.items())),
                    "row_groups": group.row_groups,
                }
                for group in self.groups
            ]
        if self.survey:
            document["survey"], document["weight"] = list(self.survey), self.weight
        if self.row_groups is not None:
            document["row_groups"] = list(self.row_groups)
            document["digest"] = digest_of(document)
        return document


def _source_document(source: CountedSource) -> dict[str, Any]:
    document = {"name": source.name, "sha256": source.digest, "rows": source.rows, "place": source.place}
    return document if source.mark is None else {**document, "watermark": watermark_document(source.mark)}


def _source_order(source: CountedSource) -> tuple[str, str, int, str]:
    return source.digest or "", source.name, source.rows, source.place or ""


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def damaged(where: str, got: str) -> IntakeError:
    """Return the error for a tally that contradicts itself."""
    return refusal(
        "damaged-tally",
        "the content of the tally does not match its description",
        where=where,
        got=got,
        expected="a tally as hubbub wrote it",
        remedy="collect again, or take the tally from a backup",
    )


def check_writable(study: Study, where: str = "collect(study)", what: str = "written to a tally") -> None:
    """Refuse a study that no file can hold: its tally could not be read again, nor its fingerprint compared."""
    try:
        places = [unreachable(mechanism) for mechanism in study.mechanisms.values()]
        if any(places):
            raise ValueError(f"{next(filter(None, places))}, a class that no other process could import")
        same = parse_study(without_nulls(study.written_entries()), "study").fingerprint == study.fingerprint
        reason = "it would be read back as another study"
    except (HubbubError, TypeError, KeyError, ValueError) as error:
        same, reason = False, f"{error.what}: {error.got}" if isinstance(error, HubbubError) else str(error)
    if not same:
        raise StudyError(
            f"this study cannot be {what}",
            where=where,
            got=reason,
            expected="names and mechanisms that a study file can hold",
            remedy="rename the study, mechanism or label shown above; register a mechanism of your own with "
            "hubbub.register_mechanism, or use read_reports",
        )


def without_nulls(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a canonical study as a study file would hold it: without nulls."""
    return {
        name: without_nulls(value) if isinstance(value, dict) else value
        for name, value in document.items()
        if value is not None
    }


# -- read back -------------------------------------------------------------------------------------------------------


def _is_epsilon(value: Any) -> bool:
    """Whether this is an epsilon; null stands for an unbounded one."""
    return value is None or (type(value) in (int, float) and 0 <= value <= MAX_COUNT)


def _are_digests(value: Any) -> bool:
    return type(value) is list and bool(value) and all(type(text) is str and SHA256.fullmatch(text) for text in value)


def _are_survey_roles(value: Any) -> bool:
    return are_names(value) and value == [role for role in SURVEY_ROLES if role in value]


def _is_weight(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value < math.inf


HEAD: Shape = {"format": lambda value: value == FORMAT, "version": is_exactly(int)}
BODY: Shape = {
    "fingerprint": is_exactly(str),
    "name": is_exactly(str),
    "study": is_exactly(dict),
    "users": is_count,
    "rows": is_count,
    "rejected": is_exactly(dict),
    "sources": is_exactly(list),
    "spent": is_exactly(list),
    "named": is_exactly(bool),
    "key": is_exactly(str, type(None)),
}
SOURCE: Shape = {"name": is_exactly(str), "sha256": is_exactly(str, type(None)), "rows": is_count}
PLACE: Shape = {"place": is_exactly(str, type(None))}  # of a source; older tallies do not record it
GROUPS: Shape = {"by": are_names, "groups": is_exactly(list)}
SURVEY: Shape = {"survey": _are_survey_roles, "weight": _is_weight}
GROUP: Shape = {
    "entries": are_names,
    "users": is_count,
    "outputs": is_count,
    "rejected": is_exactly(dict),
    "row_groups": is_count,
}
SPENT: Shape = {"plain": _is_epsilon, "per_unit": _is_epsilon, "users": is_count}


def read_summary(text: bytes, where: str, *, allow_code: bool = False) -> Summary:
    """Return what the description of a tally says; refuse one that is damaged, contradicts itself, or is too new."""
    try:
        document = _document(text)
        check_shape(document, HEAD)
        if document["version"] not in (VERSION, DIVIDED_VERSION):
            raise refusal(
                "unknown-version",
                "unsupported version of the tally",
                where=where,
                got=f"version {shorten(document['version'])}",
                expected=f"version {VERSION} or {DIVIDED_VERSION}",
                remedy="use a newer hubbub",
            )
        digested = "digest" in document or "row_groups" in document  # older tallies have neither of the two
        if digested:
            _check_digest(document, where)
        check_shape(document, BODY)
        is_divided, is_sampled = (
            document["version"] == DIVIDED_VERSION and any(key in document for key in shape)
            for shape in (GROUPS, SURVEY)
        )
        if document["version"] == DIVIDED_VERSION:
            refuse_if(not digested, "groups or weights without digests of their rows")
            refuse_if(not is_divided and not is_sampled, "neither groups nor weights")
        if is_divided:
            check_shape(document, GROUPS)
        if is_sampled:
            check_shape(document, SURVEY)
        summary = Summary(
            _study(document, where, allow_code),
            document["users"],
            document["rows"],
            _rejected(document["rejected"]),
            tuple(map(_source, document["sources"])),
            _spent(document["spent"]),
            document["named"],
            document["key"],
            tuple(document["by"]) if is_divided else (),
            tuple(map(_group, document["groups"])) if is_divided else (),
            tuple(document["survey"]) if is_sampled else (),
            document["weight"] if is_sampled else None,
            row_groups=tuple(document["row_groups"]) if digested else None,
        )
        _check_sums(summary)
    except DamageError as error:
        raise damaged(where, f"a description that cannot be read: {error}") from None
    return summary


def _document(text: bytes) -> Any:
    """Return the JSON value that a text is; refuse keys that occur twice, and constants such as NaN."""
    try:
        return json.loads(text.decode("utf-8"), parse_constant=_no_number, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise DamageError(f"not JSON ({shorten(str(error), 80)})") from None


def _no_number(name: str) -> NoReturn:
    raise DamageError(f"{name} in the place of a number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    refuse_if(len(entries) != len(pairs), "a key that occurs twice")
    return entries


def _check_digest(document: dict[str, Any], where: str) -> None:
    """Refuse a description that was changed, or that has no digests of the rows."""
    try:
        own = digest_of(document)
    except RecursionError:  # some Pythons read what is nested more deeply than what they write
        raise DamageError("nested too deeply") from None
    check_shape(document, {"digest": is_exactly(str)})
    if document["digest"] != own:
        raise damaged(where, "a description that changed since it was written")
    check_shape(document, {"row_groups": _are_digests})


def _study(document: Mapping[str, Any], where: str, allow_code: bool) -> Study:
    described, place = {"name": document["name"], **without_nulls(document["study"])}, f"{where}, study"
    try:
        study = parse_study(described, place, allow_code=allow_code)
        own = study.fingerprint
    except FAULTS as error:
        _raise_unknown(error)
        reason = error.what if isinstance(error, HubbubError) else f"{type(error).__name__} {error}"
        raise DamageError(f"a study that cannot be built: {shorten(reason, 100)}") from None
    refuse_if(own != document["fingerprint"], "a study that does not have its fingerprint")
    return study


def _raise_unknown(error: Exception) -> None:
    """Say that a mechanism of somebody's own is not known here; the tally is not damaged."""
    code = error.code if isinstance(error, HubbubError) else ""
    if code == NOT_ALLOWED and isinstance(error, HubbubError):
        remedy = "if you trust this code, allow it: --allow-code at the terminal, hubbub.read_tally(path, "
        raise restated(error, StudyError, remedy=f"{remedy}allow_code=True) in Python") from None
    if code == UNKNOWN and isinstance(error, HubbubError):
        raise restated(
            error,
            IntakeError,
            what="the tally's study has a kind of mechanism that is not known here",
            remedy="install the package that offers it, or register it with hubbub.register_mechanism; otherwise the "
            "tally is damaged, or of a newer hubbub",
        ) from None


def _rejected(table: dict[str, Any]) -> dict[str, int]:
    unknown = table.keys() - ROWS.keys()
    if unknown:
        raise DamageError(f"rows rejected for {shorten(min(unknown))}, which is no cause")
    check_shape(table, dict.fromkeys(table, is_count))
    return table


def _source(entry: Any) -> CountedSource:
    check_shape(entry, SOURCE, "a source")
    if "place" in entry:
        check_shape(entry, PLACE)
    mark = read_watermark(entry["watermark"]) if "watermark" in entry else None
    return CountedSource(entry["name"], entry["sha256"], entry["rows"], entry.get("place"), mark)


def _group(entry: Any) -> CountedGroup:
    check_shape(entry, GROUP, "a group")
    rejected = _rejected(entry["rejected"])
    return CountedGroup(tuple(entry["entries"]), entry["users"], entry["outputs"], rejected, entry["row_groups"])


def _spent(entries: list[Any]) -> dict[Spent, int]:
    users: dict[Spent, int] = {}
    for entry in entries:
        check_shape(entry, SPENT, "what users spent")
        plain, metric = (math.inf if entry[key] is None else float(entry[key]) for key in ("plain", "per_unit"))
        refuse_if(Spent(plain, metric) in users, "the same spent twice")
        users[Spent(plain, metric)] = entry["users"]
    return users


def _check_sums(summary: Summary) -> None:
    """Refuse a description that contradicts itself."""
    rows, taken = sum(source.rows for source in summary.sources), summary.rows - sum(summary.rejected.values())
    refuse_if(summary.rows != rows, "sources whose rows do not add up")
    spenders = sum(summary.spent.values())
    refuse_if(summary.users != spenders, "users who spent something that do not add up to all users")
    refuse_if(not 1 <= summary.users <= taken, "more users than rows, or none")
    if summary.by:
        _check_groups(summary, taken)


def _check_groups(summary: Summary, taken: int) -> None:
    """Refuse groups that do not add up to the whole tally, or that are not in order."""
    groups = summary.groups
    names = [group.entries for group in groups]
    refuse_if(len(set(summary.by)) != len(summary.by), "groups by one column twice")
    refuse_if(any(len(entries) != len(summary.by) for entries in names), "a group with other columns than the tally")
    refuse_if(len(set(names)) != len(names) or names != sorted(names, key=group_order), "groups that are not in order")
    refuse_if(any(not 1 <= group.users <= group.outputs for group in groups), "a group without users")
    refuse_if(any(group.row_groups < 1 for group in groups), "a group without rows")
    refuse_if(sum(group.users for group in groups) != summary.users, "groups whose users do not add up")
    refuse_if(sum(group.outputs for group in groups) != taken, "groups whose outputs do not add up")
    refuse_if(sum(group.row_groups for group in groups) != len(summary.row_groups or ()), "groups without rows")
    rejected: Counter[str] = Counter()
    for group in groups:
        rejected.update(group.rejected)
    refuse_if(any(rows > summary.rejected.get(code, 0) for code, rows in rejected.items()), "groups with more rejects")
