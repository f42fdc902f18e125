"""What a tally says about itself, read back and checked: nothing in it is trusted.

The parser is ours rather than a library's (msgspec, pydantic, cattrs): keys that occur twice, constants such as NaN and
texts as numbers must be refused, and a damaged entry is named in the words of the tally's own format.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from hubbub.client import digest_of
from hubbub.core.errors import HubbubError, shorten
from hubbub.intake.reject_causes import ROWS, refusal
from hubbub.intake.study import Study, parse_study
from hubbub.intake.tallies.tally_summary import FORMAT, VERSION, CountedSource, Summary, damaged, without_nulls
from hubbub.reports.privacy_spent import Spent

MAX_COUNT = 2**53  # of users and rows: up to here sums are exact
SHA256 = re.compile(r"[0-9a-f]{64}")
# Whatever building a study from a stranger raises: the message says that the tally is damaged.
STUDY_FAULTS = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    MemoryError,
)


class _DescriptionError(ValueError):
    """What is wrong with a description."""


def read_summary(text: bytes, where: str) -> Summary:
    """Return what the description of a tally says; refuse one that is damaged, contradicts itself, or is too new."""
    try:
        document = _document(text)
        _check_version(document, where)
        _check_digest(document, where)
        study = _study(document, where)
        summary = Summary(
            study,
            _count(document, "users"),
            _count(document, "rows"),
            _rejected(_entry(document, "rejected", dict)),
            tuple(_source(source) for source in _entry(document, "sources", list)),
            _spent(_entry(document, "spent", list)),
            _entry(document, "named", bool),
            _entry(document, "key", str, type(None)),
            row_groups=_row_groups(document),
        )
        _check_sums(summary)
    except _DescriptionError as error:
        raise damaged(where, f"a description that cannot be read: {error}") from None
    return summary


def _document(text: bytes) -> dict[str, Any]:
    """Return the JSON object that a text is."""
    try:
        document = json.loads(text.decode("utf-8"), parse_constant=_no_number, object_pairs_hook=_object)
    except _DescriptionError:
        raise
    except (ValueError, RecursionError) as error:
        raise _DescriptionError(f"not JSON ({shorten(str(error), 80)})") from None
    if not isinstance(document, dict):
        raise _DescriptionError(f"{shorten(document)} in the place of an object")
    return document


def _no_number(name: str) -> NoReturn:
    raise _DescriptionError(f"{name} in the place of a number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; refuse one with a repeated key."""
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise _DescriptionError("a key that occurs twice")
    return entries


def _entry(document: Mapping[str, Any], key: str, *kinds: type) -> Any:
    """Return an entry that must be of one of some types. A number is not true or false, and the other way round."""
    if key not in document:
        raise _DescriptionError(f"no {key}")
    value = document[key]
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise _DescriptionError(f"{shorten(value)} as {key}")
    return value


def _count(document: Mapping[str, Any], key: str) -> int:
    """Return a number of users or rows."""
    value: int = _entry(document, key, int)
    if not 0 <= value <= MAX_COUNT:
        raise _DescriptionError(f"{shorten(value)} as {key}")
    return value


def _check_version(document: Mapping[str, Any], where: str) -> None:
    if _entry(document, "format", str) != FORMAT:
        raise _DescriptionError(f"{shorten(document['format'])} as format")
    version = _entry(document, "version", int)
    if version != VERSION:
        raise refusal(
            "unknown-version",
            "the tally's version is not known",
            where=where,
            got=f"version {shorten(version)}",
            expected=f"version {VERSION}",
            remedy="use a newer hubbub",
        )


def _check_digest(document: Mapping[str, Any], where: str) -> None:
    """Refuse a description that was changed. Tallies from before there were digests have neither of the two entries."""
    if "digest" not in document and "row_groups" not in document:
        return
    try:
        own = digest_of(document)
    except RecursionError:  # some Pythons read what is nested more deeply than what they write
        raise _DescriptionError("nested too deeply") from None
    if _entry(document, "digest", str) != own:
        raise damaged(where, "a description that changed since it was written")


def _row_groups(document: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the digests of the rows, one for each row group; None where they were not kept."""
    if "row_groups" not in document:
        if "digest" in document:
            raise _DescriptionError("no row_groups")
        return None
    digests = _entry(document, "row_groups", list)
    if not digests or not all(isinstance(digest, str) and SHA256.fullmatch(digest) for digest in digests):
        raise _DescriptionError(f"{shorten(digests)} as row_groups")
    return tuple(digests)


def _study(document: Mapping[str, Any], where: str) -> Study:
    fingerprint, name = _entry(document, "fingerprint", str), _entry(document, "name", str)
    table = _entry(document, "study", dict)
    try:
        study = parse_study({"name": name, **without_nulls(table)}, f"{where}, study")
        own = study.fingerprint
    except STUDY_FAULTS as error:
        reason = error.what if isinstance(error, HubbubError) else f"{type(error).__name__} {error}"
        raise _DescriptionError(f"a study that cannot be built: {shorten(reason, 100)}") from None
    if own != fingerprint:
        raise _DescriptionError("a study that does not have its fingerprint")
    return study


def _rejected(table: dict[str, Any]) -> dict[str, int]:
    unknown = table.keys() - ROWS.keys()
    if unknown:
        raise _DescriptionError(f"rows rejected for {shorten(min(unknown))}, which is no cause")
    return {code: _count(table, code) for code in table}


def _source(entry: object) -> CountedSource:
    if not isinstance(entry, dict):
        raise _DescriptionError(f"{shorten(entry)} as a source")
    place = _entry(entry, "place", str, type(None)) if "place" in entry else None  # older tallies do not record it
    return CountedSource(
        _entry(entry, "name", str), _entry(entry, "sha256", str, type(None)), _count(entry, "rows"), place
    )


def _spent(entries: list[Any]) -> dict[Spent, int]:
    users: dict[Spent, int] = {}
    for entry in entries:
        if not isinstance(entry, dict):
            raise _DescriptionError(f"{shorten(entry)} as what users spent")
        spent = Spent(_epsilon(entry, "plain"), _epsilon(entry, "per_unit"))
        if spent in users:
            raise _DescriptionError("the same spent twice")
        users[spent] = _count(entry, "users")
    return users


def _epsilon(entry: Mapping[str, Any], key: str) -> float:
    """Return an epsilon; null stands for an unbounded one."""
    value = _entry(entry, key, int, float, type(None))
    if value is None:
        return math.inf
    if not 0 <= value <= MAX_COUNT:
        raise _DescriptionError(f"{shorten(value)} as {key}")
    return float(value)


def _check_sums(summary: Summary) -> None:
    """Refuse a description that contradicts itself."""
    if summary.rows != sum(source.rows for source in summary.sources):
        raise _DescriptionError("sources whose rows do not add up")
    if summary.users != sum(summary.spent.values()):
        raise _DescriptionError("users who spent something that do not add up to all users")
    if not 1 <= summary.users <= summary.rows - sum(summary.rejected.values()):
        raise _DescriptionError("more users than rows, or none")
