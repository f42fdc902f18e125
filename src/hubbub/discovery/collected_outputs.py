"""Outputs of a search as they were collected, checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Positions, as_integers
from hubbub.core.errors import OutputError, ReportsError, restated, shorten
from hubbub.core.text import listed
from hubbub.discovery.prefix_search import PrefixSearch
from hubbub.mechanisms.packed_outputs import HashedOutputs

WHERE = "discover"
EXPECTED = "an array or table with round, seed and bucket, or with round and output (seed:bucket)"
ORIGIN = "hubbub.origin"  # the entry of a table's `attrs` with its `RowsOrigin`
COUNTED_ALONE = "each row is counted as one person"  # also where a column that is not used says who sent it


@dataclass(frozen=True)
class RowsOrigin:
    """Where the rows of a table were read from, for messages, and what is to be said about it."""

    place_of: Callable[[int], str]  # of the row at a position, from 0
    notes: tuple[str, ...] = ()


def collection_notes(outputs: Any) -> tuple[str, ...]:
    """Return what was not used of checked outputs, as sentences."""
    origin = _origin(outputs)
    if origin is not None:
        return origin.notes
    names = _column_names(outputs)
    unused = [name for name in dict.fromkeys(names) if name not in ("round", *_output_columns(names))]
    if not unused:
        return ()
    several = f"columns {listed(unused, most=5)} are" if len(unused) > 1 else f"column {unused[0]} is"
    return (f"outputs: {several} not used: {COUNTED_ALONE}",)


def checked_outputs(search: PrefixSearch, outputs: Any) -> tuple[Positions, NDArray[np.uint64]]:
    """Return the round of each report, from 0, and its seed and bucket."""
    names = _column_names(outputs)
    columns = _output_columns(names)
    if not {"round", *columns} <= set(names):
        raise OutputError(
            "not the outputs of a search",
            where=f"{WHERE}(outputs)",
            got=shorten(sorted(names)) if names else shorten(outputs),
            expected=EXPECTED,
            remedy="pass what PrefixSearch.privatize returned, or a table of the reports of devices",
        )
    _refuse_repeated(names, ("round", *columns))
    origin = _origin(outputs)
    given = {name: np.asarray(outputs[name]) for name in ("round", *columns)}
    for name, entries in given.items():
        _refuse_empty(name, entries, origin)
    turns = as_integers(given["round"], OutputError, where=f"{WHERE}(outputs), round", expected=f"1 to {search.rounds}")
    beyond = (turns < 1) | (turns > search.rounds)
    if beyond.any():
        place = int(np.argmax(beyond))
        raise OutputError(
            "no such round",
            where=_place(origin, place),
            got=f"round {turns[place]}",
            expected=f"1 to {search.rounds}, as the search has {search.rounds} rounds",
            remedy="pass the search that the devices had, with the same prefix_lengths",
        )
    space = HashedOutputs(int(search.buckets or 2), f"{WHERE}(outputs)")
    if columns == ("output",):
        codes = _encoded(space, given["output"].tolist(), origin)
    else:
        pairs: NDArray[Any] = np.empty(len(turns), dtype=[(name, given[name].dtype) for name in columns])
        for name in columns:
            pairs[name] = given[name]
        codes = space.encode(pairs)
    _check_rounds(search, turns)
    return turns - 1, codes


def _column_names(outputs: Any) -> list[str]:
    if isinstance(outputs, np.ndarray):
        return list(outputs.dtype.names or ())
    names = getattr(outputs, "columns", None)
    return [] if names is None else [str(name) for name in names]


def _output_columns(names: list[str]) -> tuple[str, ...]:
    return ("seed", "bucket") if {"seed", "bucket"} <= set(names) else ("output",)


def _origin(outputs: Any) -> RowsOrigin | None:
    found = getattr(outputs, "attrs", {}).get(ORIGIN)
    return found if isinstance(found, RowsOrigin) else None


def _place(origin: RowsOrigin | None, position: int) -> str:
    """Return where a row is: its file and line, or its position in what was passed."""
    return f"{WHERE}(outputs), position {position}" if origin is None else origin.place_of(position)


def _refuse_repeated(names: list[str], wanted: tuple[str, ...]) -> None:
    counts = Counter(names)
    repeated = next((name for name in wanted if counts[name] > 1), None)
    if repeated is not None:
        raise OutputError(
            f"there are several columns {repeated}",
            where=f"{WHERE}(outputs)",
            got=shorten(names),
            expected=f"one column {repeated}",
            remedy="keep one of them under that name, and rename the others",
        )


def _refuse_empty(name: str, entries: NDArray[Any], origin: RowsOrigin | None) -> None:
    """Refuse a missing entry: None, NaN, or a text without letters."""
    if entries.dtype.kind == "f":
        missing = np.isnan(entries)
    elif entries.dtype.kind in "OU":
        missing = np.array([_is_missing(entry) for entry in entries.ravel().tolist()], dtype=bool)
    else:
        return
    if missing.any():
        raise OutputError(
            f"the row has no {name}",
            where=f"{_place(origin, int(np.argmax(missing)))}, column {name}",
            got="an empty cell",
            expected=f"an entry in the column {name} in every row",
            remedy="complete the row or remove it",
        )


def _is_missing(entry: object) -> bool:
    if isinstance(entry, str):
        return not entry.strip()
    return entry is None or str(entry) in ("nan", "<NA>", "NaT")  # those of pandas equal nothing, or are not truths


def _encoded(space: HashedOutputs, texts: list[object], origin: RowsOrigin | None) -> NDArray[np.uint64]:
    """Return seeds and buckets of texts; a mistake is told with its row."""
    pairs = []
    for position, text in enumerate(texts):
        try:
            pairs.append(space.parse(str(text)))
        except OutputError as error:
            raise restated(error, OutputError, where=_place(origin, position)) from None
    try:
        return space.encode(pairs)
    except OutputError as error:
        if origin is None:
            raise
        raise restated(error, OutputError, where=_place(origin, _first_refused(space, pairs))) from None


def _first_refused(space: HashedOutputs, pairs: list[object]) -> int:
    for position, pair in enumerate(pairs):
        try:
            space.encode([pair])
        except OutputError:
            return position
    return 0


def _check_rounds(search: PrefixSearch, turns: Positions) -> None:
    users = np.bincount(turns, minlength=search.rounds + 1)[1:]
    if (users == 0).any():
        missing = int(np.argmax(users == 0)) + 1
        raise ReportsError(
            "a round has no reports",
            where=f"{WHERE}(outputs)",
            got=f"none of {turns.size:,} reports is from round {missing}",
            expected=f"reports from each of {search.rounds} rounds",
            remedy="collect from more people; they are dealt to the rounds at random",
        )
