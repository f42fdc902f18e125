"""JSON lines as a source: one object per line.

Lines go through Python's own parser: Arrow's reports neither the numbers of bad lines, nor how a number was written,
nor repeated keys.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from hubbub.core.errors import IntakeError, restated, shorten
from hubbub.intake.attribute_roles import PREFIX, is_attribute_role
from hubbub.intake.reject_causes import Fault, row_fault
from hubbub.intake.sources import text_files
from hubbub.intake.sources.base import Rows
from hubbub.intake.sources.column_names import COORDINATES, REPORT_ROLES, ColumnNames
from hubbub.intake.sources.file_source import FileSource
from hubbub.intake.sources.text_files import long_line_fault, read_pieces, undecodable_fault

JSON_EXTENSIONS = (".jsonl", ".ndjson")
TRUTH_CODES = {"output": "not-an-output", "value": "out-of-domain"}  # of a truth value in these columns
HEADER_LINES = 1000  # whose keys are the columns
MAX_BATCH_LINES = 100_000
SURROGATE = re.compile("[\ud800-\udfff]")  # one half of a pair: JSON can write it alone
EXAMPLE = '{"user": 7, "mechanism": "strong", "output": 3}'


class JsonLinesSource(FileSource):
    """A file with one JSON object per line, perhaps compressed. Keys may differ from line to line."""

    unit = "line"
    is_typed = False
    expected_column = "a key {} in the objects"
    column_remedy = "rename the key that holds it to {}"

    def header(self) -> list[str]:
        """Return the keys of the first lines; a later line with a key of another role is rejected."""
        return list(self._keys)

    @cached_property
    def _keys(self) -> list[str]:
        roles = {self.columns.name_of(role): role for role in (*REPORT_ROLES, *self.columns.attribute_roles)}
        keys: dict[str, None] = {}
        faults: list[tuple[int, Fault]] = []
        size = 0
        for number, line in islice(_lines(self.path), HEADER_LINES):
            parsed = _parse(line, roles, self.columns)
            size += len(line) if isinstance(line, bytes) else text_files.MAX_LINE_BYTES
            if isinstance(parsed, Fault):
                faults.append((number, parsed))
            elif parsed:
                keys.update(dict.fromkeys(parsed))
            else:
                faults.append((number, _fault("no-header", "the object has no keys", "{}", EXAMPLE)))
            if size > 4 * text_files.MAX_LINE_BYTES:
                break
        if not keys and faults:
            number, fault = faults[0]
            remedy = fault.error.remedy
            if fault.code in ("not-json", "not-an-object"):
                remedy += "; write a list that spans several lines as one object per line"
            expected = f"one JSON object per line, such as: {EXAMPLE}"
            where = f"{self.name}, line {number}"
            raise restated(fault.error, IntakeError, where=where, expected=expected, remedy=remedy)
        return list(keys)

    def rows(self, wanted: Sequence[str]) -> Iterator[Rows]:
        """Yield the rows, up to a hundred thousand at a time."""
        roles = {name: self.columns.role_of(name) or name for name in wanted}
        # Keys of roles that no line of the header has: a later line with one of them means something else.
        known = (*REPORT_ROLES, *self.columns.attribute_roles)
        unread = {self.columns.name_of(role) for role in known} - set(wanted) - set(self._keys)
        batch: list[tuple[int, list[Any] | Fault]] = []
        size = 0
        for number, line in _lines(self.path, self._set_done):
            parsed = _parse(line, roles, self.columns)
            if isinstance(parsed, dict) and not unread.isdisjoint(parsed):
                parsed = _new_key_fault(parsed, min(unread.intersection(parsed)), self._keys)
            if isinstance(parsed, dict) and self.columns.attribute_roles:
                new = next((key for key in parsed if is_attribute_role(key) and key not in self._keys), None)
                parsed = parsed if new is None else _new_key_fault(parsed, new, self._keys)
            batch.append((number, parsed if isinstance(parsed, Fault) else [parsed.get(name) for name in wanted]))
            size += len(line) if isinstance(line, bytes) else 0
            if len(batch) == MAX_BATCH_LINES or size > text_files.PIECE_BYTES:
                yield _rows(batch, roles)
                batch, size = [], 0
        if batch:
            yield _rows(batch, roles)


def _rows(batch: list[tuple[int, list[Any] | Fault]], roles: Mapping[str, str]) -> Rows:
    """Return numbered lines as rows: the entries of the columns in `roles`, or a fault."""
    import pyarrow as pa

    faults = tuple((number, fault) for number, fault in batch if isinstance(fault, Fault))
    kept = [(number, entries) for number, entries in batch if not isinstance(entries, Fault)]
    columns = {
        name: pa.chunked_array([entry_array([entries[place] for _, entries in kept], role)])
        for place, (name, role) in enumerate(roles.items())
    }
    return Rows(len(batch), columns, 1, np.array([number for number, _ in kept], dtype=np.int64), faults)


def _lines(path: Path, report: Callable[[int], None] = lambda _: None) -> Iterator[tuple[int, bytes | Fault]]:
    """Yield the lines that are not blank with their numbers; a line that is too long as a fault."""
    rest, number, in_long_line = b"", 0, False
    for piece in read_pieces(path, report):
        start = 0
        while (end := piece.find(b"\n", start)) >= 0:
            line = rest + piece[start:end]
            rest, start = b"", end + 1
            if not in_long_line:
                number += 1
                if len(line) > text_files.MAX_LINE_BYTES:
                    yield number, long_line_fault()
                elif line.strip():
                    yield number, line
            in_long_line = False
        if in_long_line:
            continue
        rest += piece[start:]
        if len(rest) > text_files.MAX_LINE_BYTES:
            number += 1
            yield number, long_line_fault()
            rest, in_long_line = b"", True
    if rest.strip():
        yield number + 1, rest


class SpeltFloat(float):
    """A number with a point or an exponent, and its spelling: 1e3 and 1000.0 are both 1000."""

    text: str

    def __new__(cls, text: str) -> SpeltFloat:
        """Keep the text."""
        number = super().__new__(cls, text)
        number.text = text
        return number


class _RepeatedKeyError(ValueError):
    """A key that occurs twice."""


def _distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        names = [name for name, _ in pairs]
        raise _RepeatedKeyError(next(name for name in names if names.count(name) > 1))
    return entries


def _parse(line: bytes | Fault, roles: Mapping[str, str], columns: ColumnNames) -> dict[str, Any] | Fault:
    """Return the object of a line; `roles` are the keys to check, and what they hold.

    Outputs of attributes may be an object of their own, whose keys then stand beside the others: output.NAME.
    """
    if isinstance(line, Fault):
        return line
    fault = undecodable_fault(line)
    if fault is not None:
        return fault
    try:
        entries = json.loads(
            line, object_pairs_hook=_distinct_keys, parse_constant=_refuse_constant, parse_float=SpeltFloat
        )
    except _RepeatedKeyError as error:
        return _fault("repeated-key", "the object has the same key twice", shorten(str(error)), "each key once")
    except (ValueError, RecursionError) as error:
        return _fault("not-json", "the line is not valid JSON", shorten(str(error), 100), "one JSON object per line")
    if not isinstance(entries, dict):
        return _fault("not-an-object", "the line is not a JSON object", shorten(line.decode()), '{"output": ...}')
    return _checked(_flat(entries, columns) if columns.attribute_roles else entries, roles)


def _checked(entries: dict[str, Any] | Fault, roles: Mapping[str, str]) -> dict[str, Any] | Fault:
    """Return an object, or the fault of one of its entries."""
    if isinstance(entries, Fault):
        return entries
    for name, role in roles.items():
        entry = entries.get(name)
        kind = "output" if is_attribute_role(role) else role
        if kind in TRUTH_CODES and isinstance(entry, bool):
            what = f"the {role} must not be true or false"
            return _fault(TRUTH_CODES[kind], what, shorten(entry), "a number or text", name)
        if isinstance(entry, str) and SURROGATE.search(entry):
            what = "the text contains an unpaired surrogate"
            return _fault("not-utf-8", what, shorten(entry), "whole characters", name)
        if isinstance(entry, dict | list):
            what = "the entry is a list or an object"
            return _fault("nested-entry", what, shorten(entry), "one number or text", name)
    return entries


def _flat(entries: dict[str, Any], columns: ColumnNames) -> dict[str, Any] | Fault:
    """Return an object with the entries of an object of outputs as its own: output.NAME, output.NAME.lat."""
    output = columns.name_of("output")
    if not isinstance(entries.get(output), dict):
        return entries
    flat = {key: entry for key, entry in entries.items() if key != output}
    for name, entry in entries[output].items():
        role = f"{PREFIX}{name}"
        inner = {f"{role}.{axis}": part for axis, part in entry.items()} if isinstance(entry, dict) else {role: entry}
        for each, part in inner.items():
            key = columns.name_of(each)
            if key in flat:
                return _fault("repeated-key", "the line has an output twice", shorten(key), "each output once", each)
            flat[key] = part
    return flat


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _new_key_fault(entries: dict[str, Any], name: str, known: Sequence[str]) -> Fault:
    """Return the fault of a line with a key that the header lacks, and that would change what the line means."""
    what = f"the line has the key {name}, which the first lines do not have"
    expected = f"the keys of the first lines: {', '.join(sorted(known))}"
    return _fault("too-many-fields", what, shorten(entries), expected, name)


def _fault(code: str, what: str, got: str, expected: str, column: str = "") -> Fault:
    return row_fault(code, what, got=got, expected=expected, remedy="correct the line or remove it", column=column)


def entry_array(entries: list[Any], name: str) -> Any:
    """Return entries as an array: of numbers if all are whole numbers or coordinates, of texts otherwise."""
    import pyarrow as pa

    filled = [entry for entry in entries if entry is not None]
    if name.rpartition(".")[2] in COORDINATES and all(isinstance(entry, float) for entry in filled):
        return pa.array(entries, pa.float64())
    if name != "mechanism" and all(type(entry) is int and -(2**63) <= entry < 2**63 for entry in filled):
        return pa.array(entries, pa.int64())
    return pa.array([_text(entry, name) for entry in entries], pa.string())


def _text(entry: Any, name: str) -> str | None:
    """Return an entry as it was written.

    A user 7.0 is user 7, as in columns of numbers; a large one keeps its ".0", so that it is recognised as a float.
    """
    if name == "user" and isinstance(entry, float) and entry.is_integer():
        return str(int(entry)) + ("" if abs(entry) < 2.0**53 else ".0")
    if isinstance(entry, SpeltFloat) and name != "user":
        return entry.text
    return entry if entry is None or isinstance(entry, str) else json.dumps(entry)
