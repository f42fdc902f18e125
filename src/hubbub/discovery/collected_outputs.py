"""Outputs of a search as they were collected, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Positions, as_integers
from hubbub.core.errors import OutputError, ReportsError, shorten
from hubbub.discovery.prefix_search import PrefixSearch
from hubbub.mechanisms.packed_outputs import HashedOutputs

WHERE = "discover"
EXPECTED = "an array or table with round, seed and bucket, or with round and output (seed:bucket)"


def checked_outputs(search: PrefixSearch, outputs: Any) -> tuple[Positions, NDArray[np.uint64]]:
    """Return the round of each report, from 0, and its seed and bucket."""
    names = _column_names(outputs)
    columns = ("seed", "bucket") if {"seed", "bucket"} <= names else ("output",)
    if not {"round", *columns} <= names:
        raise OutputError(
            "not the outputs of a search",
            where=f"{WHERE}(outputs)",
            got=shorten(sorted(names)) if names else shorten(outputs),
            expected=EXPECTED,
            remedy="pass what PrefixSearch.privatize returned, or a table of the reports of devices",
        )
    turns = as_integers(
        np.asarray(outputs["round"]), OutputError, where=f"{WHERE}(outputs), round", expected=f"1 to {search.rounds}"
    )
    beyond = (turns < 1) | (turns > search.rounds)
    if beyond.any():
        place = int(np.argmax(beyond))
        raise OutputError(
            "no such round",
            where=f"{WHERE}(outputs), position {place}",
            got=f"round {turns[place]}",
            expected=f"1 to {search.rounds}, as the search has {search.rounds} rounds",
            remedy="pass the search that the devices had, with the same prefix_lengths",
        )
    space = HashedOutputs(int(search.buckets or 2), f"{WHERE}(outputs)")
    given = [np.asarray(outputs[name]) for name in columns]
    if columns == ("output",):
        codes = space.encode([space.parse(str(text)) for text in given[0].tolist()])
    else:
        pairs: NDArray[Any] = np.empty(
            len(given[0]), dtype=[(name, own.dtype) for name, own in zip(columns, given, strict=True)]
        )
        for name, own in zip(columns, given, strict=True):
            pairs[name] = own
        codes = space.encode(pairs)
    _check_rounds(search, turns)
    return turns - 1, codes


def _column_names(outputs: Any) -> set[str]:
    if isinstance(outputs, np.ndarray):
        return set(outputs.dtype.names or ())
    names = getattr(outputs, "columns", None)
    return set() if names is None else {str(name) for name in names}


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
