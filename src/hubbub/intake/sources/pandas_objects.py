"""Columns of pandas as Arrow arrays, including columns of Python objects.

Arrow would turn texts among bytes into bytes, and whole numbers among floats into floats. Here a column of one type
keeps it, and a mixed column becomes texts: both 1 and "1e3" stay as they are.
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
WRITERS: list[tuple[tuple[type, ...], str, Callable[[Any], str]]] = [
    ((bool, np.bool_), "truth values", str),
    ((int, np.integer), "whole numbers", lambda entry: str(int(entry))),
    ((float, np.floating), "floats", lambda entry: repr(float(entry))),
    ((str,), "texts", str.__str__),
    ((bytes, bytearray), "bytes", lambda entry: bytes(entry).hex()),
    ((Decimal,), "decimals", lambda entry: _decimal_text(entry)),
    ((UUID,), "identifiers", str),
]
ARROW_TYPES = {"truth values", "whole numbers", "floats", "texts", "bytes", "other objects"}  # converted by Arrow

ASTYPE_REMEDY = "convert the column first, for example: frame[name].astype(str)"


class PandasColumn:
    """A column that is converted slice by slice, always to the same type."""

    def __init__(self, where: str, column: Any) -> None:  # a Series
        import pandas as pd

        self._where = where
        kind = column.dtype
        if isinstance(kind, pd.SparseDtype):
            column = column.sparse.to_dense()
        if isinstance(kind, pd.CategoricalDtype) and kind.categories.dtype == object:
            column = column.astype(object)
        self._column = column
        self._writers = self._inspect() if column.dtype == object else None

    def _inspect(self) -> dict[type, Callable[[Any], str]] | None:
        """Return how to write entries of each type as text; None if Arrow can convert the column."""
        present = self._column[self._column.notna()]
        types: set[type] = set(map(type, present))
        kinds: dict[str, list[str]] = {}
        writers = {}
        for kind in types:
            known = next(((name, write) for bases, name, write in WRITERS if issubclass(kind, bases)), None)
            name, writers[kind] = known or ("other objects", str)
            kinds.setdefault(name, []).append(kind.__name__)
        if len(kinds) > 1 and ("other objects" in kinds or "truth values" in kinds):
            odd = ", ".join(sorted({*kinds.get("other objects", []), *kinds.get("truth values", [])}))
            others = " and ".join(sorted({*kinds} - {"other objects", "truth values"}))
            raise wrong_type(self._where, f"{odd} among {others or odd}", ASTYPE_REMEDY)
        is_large = kinds.keys() == {"whole numbers"} and not all(
            -(1 << 63) <= int(entry) < 1 << 63 for entry in present
        )
        return None if len(kinds) < 2 and kinds.keys() <= ARROW_TYPES and not is_large else writers

    def slice(self, start: int, stop: int) -> pa.Array:
        """Return the entries from `start` up to, but not including, `stop`; missing ones are null."""
        import pyarrow as pa

        piece = self._column.iloc[start:stop]
        if self._writers is not None:
            there = piece.notna().to_numpy()
            texts = [
                self._writers[type(entry)](entry) if known else None for entry, known in zip(piece, there, strict=True)
            ]
            return _text_array(texts)
        try:
            array = pa.Array.from_pandas(piece)
        except UnicodeEncodeError:
            return _text_array([entry if isinstance(entry, str) else None for entry in piece])
        except (pa.ArrowException, TypeError, ValueError, NotImplementedError) as error:
            raise wrong_type(self._where, shorten(str(error), 150), ASTYPE_REMEDY) from None
        return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def wrong_type(where: str, got: str, remedy: str) -> IntakeError:
    """Return the error for a column of a table whose type cannot hold reports."""
    what, expected = "a column of this type cannot hold reports", "whole numbers, texts or bytes"
    return refusal("wrong-type", what, where=where, got=got, expected=expected, remedy=remedy)


def _text_array(texts: list[str | None]) -> pa.Array:
    """Return texts as they are; half a surrogate pair is kept, and becomes a fault of its row later."""
    import pyarrow as pa

    raw = [None if text is None else text.encode("utf-8", "surrogatepass") for text in texts]
    return pa.array(raw, pa.large_binary()).view(pa.large_string())


def _decimal_text(entry: Decimal) -> str:
    """Return a decimal as text, without zeros at the end of its fraction."""
    text = format(entry, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
