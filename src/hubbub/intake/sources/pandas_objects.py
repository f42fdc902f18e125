"""Columns of pandas as Arrow arrays, also those that hold any Python objects.

Arrow would make bytes of texts among bytes, and floats of whole numbers among floats. Here a column of one kind is
taken as that kind, and a mixed one as texts: 1 and "1e3" are both kept as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np

from hubbub.core.errors import IntakeError, shorten
from hubbub.intake.reject_causes import refusal

if TYPE_CHECKING:
    import pyarrow as pa

# The order matters: a bool is also an int.
TEXTS: list[tuple[tuple[type, ...], str, Callable[[Any], str]]] = [
    ((bool, np.bool_), "truth values", str),
    ((int, np.integer), "whole numbers", lambda entry: str(int(entry))),
    ((float, np.floating), "floats", lambda entry: repr(float(entry))),
    ((str,), "texts", str.__str__),
    ((bytes, bytearray), "bytes", lambda entry: bytes(entry).hex()),
    ((Decimal,), "decimals", lambda entry: _decimal(entry)),
    ((UUID,), "identifiers", str),
]
ALONE = {"truth values", "whole numbers", "floats", "texts", "bytes", "other objects"}  # as Arrow takes them


class ObjectEntries:
    """A column, some entries at a time, all of one type."""

    def __init__(self, where: str, column: Any) -> None:  # a Series
        import pandas as pd

        self._where = where
        kind = column.dtype
        if isinstance(kind, pd.CategoricalDtype) and kind.categories.dtype == object:
            column = column.astype(object)
        self._column = column
        self._writers: dict[type, Callable[[Any], str]] | None = None
        if column.dtype == object:
            self._writers = self._inspect()

    def _inspect(self) -> dict[type, Callable[[Any], str]] | None:
        """Return how to write entries of each type; None where Arrow can take them as they are."""
        found: set[type] = set(map(type, self._column[self._column.notna()]))
        kinds: dict[str, list[str]] = {}
        writers = {}
        for kind in found:
            known = next(((name, write) for types, name, write in TEXTS if issubclass(kind, types)), None)
            name, writers[kind] = known or ("other objects", str)
            kinds.setdefault(name, []).append(kind.__name__)
        if len(kinds) > 1 and ("other objects" in kinds or "truth values" in kinds):
            odd = ", ".join(sorted({*kinds.get("other objects", []), *kinds.get("truth values", [])}))
            raise self._wrong(
                f"{odd} among {' and '.join(sorted({*kinds} - {'other objects', 'truth values'})) or odd}"
            )
        large = kinds.keys() == {"whole numbers"} and not self._all_in_64_bits()
        return None if len(kinds) < 2 and kinds.keys() <= ALONE and not large else writers

    def _all_in_64_bits(self) -> bool:
        return all(-(1 << 63) <= int(entry) < 1 << 63 for entry in self._column[self._column.notna()])

    def array(self, start: int, stop: int) -> pa.Array:
        """Return the entries from `start` on, before `stop`; what is missing is null."""
        import pyarrow as pa

        piece = self._column.iloc[start:stop]
        if self._writers is not None:
            there = piece.notna().to_numpy()
            texts = [
                self._writers[type(entry)](entry) if known else None for entry, known in zip(piece, there, strict=True)
            ]
            return _texts(texts)
        try:
            array = pa.Array.from_pandas(piece)
        except UnicodeEncodeError:
            return _texts([entry if isinstance(entry, str) else None for entry in piece])
        except (pa.ArrowException, TypeError, ValueError, NotImplementedError) as error:
            raise self._wrong(shorten(str(error), 150)) from None
        return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array

    def _wrong(self, got: str) -> IntakeError:
        return refusal(
            "wrong-type",
            "a column holds what no report does",
            where=self._where,
            got=got,
            expected="whole numbers, texts or bytes",
            remedy="convert the column before: frame[name].astype(str), or the numbers that were meant",
        )


def _texts(texts: list[str | None]) -> pa.Array:
    """Return texts as they are, also half of a character, which is no UTF-8 and is told with its row."""
    import pyarrow as pa

    raw = [None if text is None else text.encode("utf-8", "surrogatepass") for text in texts]
    return pa.array(raw, pa.large_binary()).view(pa.large_string())


def _decimal(entry: Decimal) -> str:
    """Return a decimal without zeros at the end of its fraction."""
    text = format(entry, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
