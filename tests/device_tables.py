"""Files of tables for the device's client: valid ones of every kind, and ways to damage them."""

from __future__ import annotations

import hashlib
import json
from copy import deepcopy
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from hypothesis import strategies as st

from hubbub.client import digest_of
from hubbub.intake.privatizing.device_tables import export_tables
from studies import BASES, Document, altered, document, study_text

Step = str | int

HOLES = {"kind": "grid", "columns": 3, "rows": 2, "cell": 1.0, "cells": [0, 1, 5]}
STUDIES: dict[str, tuple[Document, Any]] = {
    name: BASES[name]
    for name in ("exponential (2), words", "laplace (2), bins", "matrix (3), words", "planar-laplace (2), square grid")
}
STUDIES["holes"] = document(HOLES, {"kind": "planar-laplace", "epsilon": 60.0}), 5


class Exported(NamedTuple):
    """A study file, a value of it, and the content of the file of tables for it."""

    study: bytes
    value: Any
    tables: dict[str, Any]


@cache
def exported(name: str) -> Exported:
    """Return the tables of one of the studies, as the library writes them."""
    study, value = STUDIES[name]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "study.toml"
        path.write_text(study_text(study))
        export_tables(path, Path(folder) / "tables.json")
        return Exported(path.read_bytes(), value, json.loads((Path(folder) / "tables.json").read_bytes()))


def sealed(tables: Any) -> Any:
    """Return tables with a correct digest: a client must not rely on the digest alone."""
    return {**tables, "digest": digest_of(tables)} if isinstance(tables, dict) else tables


def study_digest(study: bytes) -> str:
    """Return the digest of a study file, which its tables state."""
    return hashlib.sha256(study).hexdigest()


def entry_paths(part: Any, path: tuple[Step, ...] = ()) -> list[tuple[Step, ...]]:
    """Return the paths of all entries and elements."""
    inner = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    return [
        *([path] if path else []),
        *(inner_path for name, each in inner for inner_path in entry_paths(each, (*path, name))),
    ]


def lookup(part: Any, path: tuple[Step, ...]) -> Any:
    """Return the entry at a path."""
    for step in path:
        part = part[step]
    return part


def damaged(tables: Any, path: tuple[Step, ...], **replacement: Any) -> Any:
    """Return a copy in which the entry at `path` is replaced by `to`, or removed if there is no `to`."""
    copy = deepcopy(tables)
    inner = lookup(copy, path[:-1])
    if "to" in replacement:
        inner[path[-1]] = replacement["to"]
    else:
        del inner[path[-1]]
    return copy


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**9, 10**18, 10**4000, -(10**4000), 1 << 40, 64, 256, 32_768, 32_832])
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["0", "1", "f" * 64, "1" + "0" * 64, "f" * 10_000, "-1", "+1", "0x1", "1_0", " 1", "١", "G"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def mutated_tables(draw: st.DrawFn, most: int = 3) -> tuple[Exported, Any]:
    """Draw tables with entries dropped, replaced, altered, repeated or exchanged; most have a correct digest."""
    whole = exported(draw(st.sampled_from(sorted(STUDIES))))
    tables: Any = whole.tables
    for _ in range(draw(st.integers(1, most))):
        paths = entry_paths(tables)
        if not paths:
            break
        path = draw(st.sampled_from(paths))
        change = draw(st.sampled_from(["drop", "replace", "alter", "add", "exchange"]))
        if change == "drop":
            tables = damaged(tables, path)
        elif change == "replace":
            tables = damaged(tables, path, to=draw(JSON))
        elif change == "alter":
            tables = damaged(tables, path, to=draw(altered(lookup(tables, path), JSON)))
        elif change == "add":
            inner = lookup(tables, path[:-1])
            added = (
                [*inner, draw(JSON)] if isinstance(inner, list) else {**inner, draw(st.text(max_size=4)): draw(JSON)}
            )
            tables = damaged(tables, path[:-1], to=added) if path[1:] else added
        else:
            other = draw(st.sampled_from(paths))
            first, second = lookup(tables, path), lookup(tables, other)
            if other[: len(path)] != path and path[: len(other)] != other:
                tables = damaged(damaged(tables, path, to=second), other, to=first)
    return whole, sealed(tables) if draw(st.integers(0, 9)) else tables
