"""Watermarks as a tally's description holds them, and read back."""

from __future__ import annotations

import re
from typing import Any

from hubbub.intake.counting.row_digests import MAX_REMEMBERED_ROWS, packed, unpacked
from hubbub.intake.counting.watermark import Watermark
from hubbub.intake.sources.mark_types import ISO_TIME, MarkType
from hubbub.intake.tallies.document_shapes import (
    DamageError,
    Shape,
    are_names,
    check_shape,
    is_count,
    is_exactly,
    refuse_if,
)

INTEGER = re.compile(r"-?\d{1,19}")
FORMS = {
    "integer": re.compile(""),
    "date": re.compile(""),
    "time": re.compile("(us|ns)( UTC)?"),
    "text": ISO_TIME,
}


def _is_count_or_none(value: Any) -> bool:
    return value is None or is_count(value)


WATERMARK: Shape = {
    "column": lambda value: type(value) is str and bool(value),
    "type": lambda value: type(value) is str and value in FORMS,
    "form": is_exactly(str),
    "value": is_exactly(str),
    "first": is_exactly(str),
    "columns": are_names,
    "since": is_exactly(str),
    "open": is_exactly(bool),
    "before": _is_count_or_none,
    "rows": is_exactly(str),
    "unmarked": is_count,
    "unparsed": is_count,
    "missed": is_count,
    "waiting": is_count,
    "size": _is_count_or_none,
}


def watermark_document(mark: Watermark) -> dict[str, Any]:
    """Return a watermark as JSON holds it."""
    return {
        "column": mark.column,
        "type": mark.type.kind,
        "form": mark.type.form,
        "value": mark.value,
        "first": mark.type.text(mark.first),
        "columns": list(mark.columns),
        "since": mark.type.text(mark.since),
        "open": mark.is_open,
        "before": mark.before,
        "rows": packed(mark.digests),
        "unmarked": mark.unmarked,
        "unparsed": mark.unparsed,
        "missed": mark.missed,
        "waiting": mark.waiting,
        "size": mark.size,
    }


def read_watermark(entry: Any) -> Watermark:
    """Return the watermark that an entry describes; refuse one that contradicts itself."""
    check_shape(entry, WATERMARK, "a watermark")
    kind = MarkType(entry["type"], entry["form"])
    refuse_if(not FORMS[kind.kind].fullmatch(kind.form), "a watermark of no known form")
    key, first, since = (_key(kind, entry[name]) for name in ("value", "first", "since"))
    refuse_if(first > key or since > key, "a watermark before its first value")
    digests = unpacked(entry["rows"])
    if digests is None:
        raise DamageError("rows at a watermark that cannot be read")
    low = since + 1 if entry["open"] else since
    refuse_if(any(not low <= row[0] <= key for row in digests), "rows beyond their watermark")
    refuse_if(len(digests) > MAX_REMEMBERED_ROWS, "more rows at a watermark than can be remembered")
    return Watermark(
        entry["column"],
        kind,
        key,
        first,
        tuple(entry["columns"]),
        since,
        entry["open"],
        entry["before"],
        digests,
        entry["unmarked"],
        entry["unparsed"],
        entry["missed"],
        entry["waiting"],
        entry["size"],
    )


def _key(kind: MarkType, text: str) -> int:
    """Return the key of a value, which must be written as we write it."""
    form = INTEGER if kind.kind == "integer" else ISO_TIME
    try:
        key = kind.key(text) if form.fullmatch(text) else None
    except (ValueError, OverflowError):
        key = None
    if key is None or kind.text(key) != text:
        raise DamageError(f"{text!r} as a value of a watermark")
    return key
