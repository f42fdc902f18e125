"""JSON lines: one object a line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from hubbub.core.errors import shorten
from hubbub.intake.reject_causes import Fault, refusal
from hubbub.intake.sources.base import Rows
from hubbub.intake.sources.column_names import REPORT
from hubbub.intake.sources.csv_reader import readable, too_long
from hubbub.intake.sources.file_source import File
from hubbub.intake.sources.text_files import LONGEST, PIECE, pieces

ENDINGS = (".jsonl", ".ndjson")
TRUTHLESS = {"output": "not-an-output", "value": "out-of-domain"}  # codes for truth values, which mean neither
FIRST = 1000  # lines whose keys are the columns
OBJECT = '{"user": 7, "mechanism": "strong", "output": 3}'


class JsonLines(File):
    """A file with one JSON object a line, perhaps compressed. Keys may differ from line to line."""

    unit = "line"

    def header(self) -> list[str]:
        """Return the keys of the first lines: a line further on that has others is rejected."""
        return list(self._keys)

    def column_advice(self, column: str) -> tuple[str, str]:
        """Return what is expected of a key that is missing, and how to mend that."""
        return f"a key {column} in the objects", f"write the {column} under that key: {column}"

    @cached_property
    def _keys(self) -> list[str]:
        keys: dict[str, None] = {}
        faults: list[tuple[int, Fault]] = []
        size = 0
        for number, line in islice(_lines(self.path), FIRST):
            found = (
                _object(line, {self.columns.name_of(role): role for role in REPORT})
                if isinstance(line, bytes)
                else line
            )
            size += len(line) if isinstance(line, bytes) else LONGEST
            if isinstance(found, Fault):
                faults.append((number, found))
            elif found:
                keys.update(dict.fromkeys(found))
            else:
                faults.append((number, _fault("no-header", "an object has no keys", "{}", OBJECT)))
            if size > 4 * LONGEST:
                break
        if not keys and faults:
            number, fault = faults[0]
            raise refusal(
                fault.code,
                fault.error.what,
                where=f"{self.name}, line {number}",
                got=fault.error.got,
                expected=f"one JSON object a line, such as: {OBJECT}",
                remedy=f"{fault.error.remedy}; a list of objects over several lines is written one object a line"
                if fault.code in ("not-json", "not-an-object")
                else fault.error.remedy,
            )
        return list(keys)

    def rows(self, wanted: Sequence[str]) -> Iterator[Rows]:
        """Yield the rows, some ten thousand at a time."""
        import pyarrow as pa

        kept: list[list[Any]] = []
        places: list[int] = []
        faults: list[tuple[int, Fault]] = []
        counted = size = 0

        def some() -> Rows:
            columns = {
                name: pa.chunked_array([_column([row[place] for row in kept], self.columns.role_of(name) or name)])
                for place, name in enumerate(wanted)
            }
            return Rows(counted, columns, 1, np.array(places, dtype=np.int64), tuple(faults))

        known, roles = set(self._keys), {name: self.columns.role_of(name) or name for name in wanted}
        for number, line in _lines(self.path, self._tell):
            counted += 1
            size += len(line) if isinstance(line, bytes) else 0
            found = _object(line, roles) if isinstance(line, bytes) else line
            if isinstance(found, dict) and not known.issuperset(found):
                found = _other_keys(found, known, {self.columns.name_of(role) for role in REPORT} - set(wanted))
            if isinstance(found, Fault):
                faults.append((number, found))
            else:
                places.append(number)
                kept.append([found.get(name) for name in wanted])
            if counted == 100_000 or size > PIECE:
                yield some()
                kept, places, faults, counted, size = [], [], [], 0, 0
        if counted:
            yield some()

    def _tell(self, read: int) -> None:
        self.done = read / max(1, self.weight())


def _lines(path: Path, tell: Callable[[int], None] = lambda _: None) -> Iterator[tuple[int, bytes | Fault]]:
    """Yield the lines that are not blank with their numbers; too long ones as a fault."""
    rest, number, within = b"", 0, False
    for piece in pieces(path, tell):
        start = 0
        while (end := piece.find(b"\n", start)) >= 0:
            line = rest + piece[start:end]
            rest, start = b"", end + 1
            if not within:
                number += 1
                if len(line) > LONGEST:
                    yield number, too_long()
                elif line.strip():
                    yield number, line
            within = False
        if within:
            continue
        rest += piece[start:]
        if len(rest) > LONGEST:
            number += 1
            yield number, too_long()
            rest, within = b"", True
    if rest.strip():
        yield number + 1, rest


class _Written(float):
    """A number with a point or an exponent, and how it was written: 1e3 is 1000, and 1000.0 too."""

    text: str

    def __new__(cls, text: str) -> _Written:
        """Keep the text."""
        number = super().__new__(cls, text)
        number.text = text
        return number


class _RepeatedError(ValueError):
    """A key that occurs twice."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _RepeatedError(next(name for name in names if names.count(name) > 1))
    return found


def _object(line: bytes, roles: Mapping[str, str]) -> dict[str, Any] | Fault:
    """Return the object of a line; `roles` says what is looked at, and as what."""
    fault = readable(line)
    if fault is not None:
        return fault
    try:
        found = json.loads(line, object_pairs_hook=_once, parse_constant=_constant, parse_float=_Written)
    except _RepeatedError as error:
        return _fault("repeated-key", "a key occurs twice in an object", shorten(str(error)), "each key once")
    except (ValueError, RecursionError) as error:
        return _fault("not-json", "a line is not JSON", shorten(str(error), 100), "one JSON object a line")
    if not isinstance(found, dict):
        return _fault("not-an-object", "a line holds no object", shorten(line.decode()), '{"output": ...}')
    for name, role in roles.items():
        entry = found.get(name)
        if role in TRUTHLESS and isinstance(entry, bool):
            code, what = TRUTHLESS[role], f"a truth value is no {role}"
            return _fault(code, what, shorten(entry), "a number or a text", name)
        if isinstance(entry, str) and not _is_text(entry):
            return _fault("not-utf-8", "a text holds half a character", shorten(entry), "whole characters", name)
        if isinstance(entry, dict | list):
            return _fault(
                "nested-entry", "an entry is a list or an object", shorten(found[name]), "one number or text", name
            )
    return found


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _other_keys(found: dict[str, Any], known: set[str], telling: set[str]) -> dict[str, Any] | Fault:
    """Refuse a line that says more than the lines before: read without it, the line would mean something else.

    `telling` are the keys that would say it.
    """
    extra = telling & (set(found) - known)
    if not extra:
        return found
    name = min(extra)
    return _fault(
        "too-many-fields",
        f"a line has the key {name}, which the first lines do not have",
        shorten(found),
        f"the keys of the first lines: {', '.join(sorted(known))}",
        name,
    )


def _fault(code: str, what: str, got: str, expected: str, column: str = "") -> Fault:
    return Fault(
        column, refusal(code, what, where="", got=got, expected=expected, remedy="correct the line, or leave it out")
    )


def _is_text(entry: str) -> bool:
    """Whether a text can be written: JSON can write one half of a character alone."""
    try:
        entry.encode()
    except UnicodeEncodeError:
        return False
    return True


def _column(entries: list[Any], name: str) -> Any:
    """Return entries as an array: of numbers where all are whole numbers, of texts otherwise."""
    import pyarrow as pa

    filled = [entry for entry in entries if entry is not None]
    if name != "mechanism" and all(type(entry) is int and -(2**63) <= entry < 2**63 for entry in filled):
        return pa.array(entries, pa.int64())
    return pa.array([_text(entry, name) for entry in entries], pa.string())


def _text(entry: Any, name: str) -> str | None:
    """Return an entry as it was written; a truth value is no text, and no report either.

    A user 7.0 is user 7, as in columns of numbers; a larger one is written so that it is seen to be a float.
    """
    if name == "user" and isinstance(entry, float) and entry.is_integer():
        return str(int(entry)) + ("" if abs(entry) < 2.0**53 else ".0")
    if isinstance(entry, _Written) and name != "user":
        return entry.text
    return entry if entry is None or isinstance(entry, str) else json.dumps(entry)
