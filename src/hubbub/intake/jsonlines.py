"""JSON lines: one object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hubbub.errors import shorten
from hubbub.intake.causes import Fault, refusal
from hubbub.intake.delimited import readable, too_long
from hubbub.intake.files import File
from hubbub.intake.rows import Rows
from hubbub.intake.text import LONGEST, pieces

ENDINGS = (".jsonl", ".ndjson")


class JsonLines(File):
    """A file with one JSON object a line, perhaps compressed. Keys may differ from line to line."""

    unit = "line"

    def header(self) -> list[str]:
        """Return the keys of the first object: what it leaves out may stand in no other line."""
        for _, line in _lines(self.path):
            found = _object(line) if isinstance(line, bytes) else line
            if isinstance(found, dict):
                return list(found)
        return []

    def rows(self, wanted: Sequence[str]) -> Iterator[Rows]:
        """Yield the rows, some ten thousand at a time."""
        import pyarrow as pa

        kept: list[list[Any]] = []
        places: list[int] = []
        faults: list[tuple[int, Fault]] = []
        counted = 0

        def some() -> Rows:
            columns = {
                name: pa.chunked_array([_column([row[place] for row in kept])]) for place, name in enumerate(wanted)
            }
            return Rows(counted, columns, 1, np.array(places, dtype=np.int64), tuple(faults))

        known = set(self.header())
        for number, line in _lines(self.path):
            counted += 1
            found = _object(line) if isinstance(line, bytes) else line
            if isinstance(found, dict) and not known.issuperset(found):
                found = _other_keys(found, known, wanted)
            if isinstance(found, Fault):
                faults.append((number, found))
            else:
                places.append(number)
                kept.append([found.get(name) for name in wanted])
            if counted == 100_000:
                yield some()
                kept, places, faults, counted = [], [], [], 0
        if counted:
            yield some()


def _lines(path: Path) -> Iterator[tuple[int, bytes | Fault]]:
    """Yield the lines that are not blank with their numbers; too long ones as a fault."""
    rest, number, within = b"", 0, False
    for piece in pieces(path):
        lines = (rest + piece).split(b"\n")
        rest = lines.pop()
        for line in lines:
            if not within:
                number += 1
                if line.strip():
                    yield number, line if len(line) <= LONGEST else too_long()
            within = False
        if len(rest) > LONGEST:
            if not within:
                number += 1
                yield number, too_long()
            rest, within = b"", True
    if rest.strip() and not within:
        yield number + 1, rest


class _RepeatedError(ValueError):
    """A key that occurs twice."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _RepeatedError(next(name for name in names if names.count(name) > 1))
    return found


def _object(line: bytes) -> dict[str, Any] | Fault:
    fault = readable(line)
    if fault is not None:
        return fault
    try:
        found = json.loads(line, object_pairs_hook=_once, parse_constant=_constant)
    except _RepeatedError as error:
        return _fault("repeated-key", "a key occurs twice in an object", shorten(str(error)), "each key once")
    except (ValueError, RecursionError) as error:
        return _fault("not-json", "a line is not JSON", shorten(str(error), 100), "one JSON object a line")
    if not isinstance(found, dict):
        return _fault("not-an-object", "a line holds no object", shorten(line.decode()), '{"output": ...}')
    for name in ("mechanism", "output", "user"):
        if isinstance(found.get(name), dict | list):
            return _fault(
                "nested-entry", "an entry is a list or an object", shorten(found[name]), "one number or text", name
            )
    return found


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _other_keys(found: dict[str, Any], known: set[str], wanted: Sequence[str]) -> dict[str, Any] | Fault:
    """Refuse a line that says more than the lines before: read without it, the line would mean something else."""
    extra = {"mechanism", "output", "user"} & (set(found) - known - set(wanted))
    if not extra:
        return found
    name = min(extra)
    return _fault(
        "too-many-fields",
        f"a line has the key {name}, which the first does not have",
        shorten(found),
        f"the keys of the first line: {', '.join(sorted(known))}",
        name,
    )


def _fault(code: str, what: str, got: str, expected: str, column: str = "") -> Fault:
    return Fault(
        column, refusal(code, what, where="", got=got, expected=expected, remedy="correct the line, or leave it out")
    )


def _column(entries: list[Any]) -> Any:
    """Return entries as an array: of numbers where all are whole numbers, of texts otherwise."""
    import pyarrow as pa

    filled = [entry for entry in entries if entry is not None]
    if all(type(entry) is int and -(2**63) <= entry < 2**63 for entry in filled):
        return pa.array(entries, pa.int64())
    return pa.array([_text(entry) for entry in entries], pa.string())


def _text(entry: Any) -> str | None:
    """Return an entry as it was written; a truth value is no text, and no report either."""
    return entry if entry is None or isinstance(entry, str) else json.dumps(entry)
