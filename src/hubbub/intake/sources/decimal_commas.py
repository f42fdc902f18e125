"""Decimal commas in the columns of numbers of a file whose columns are separated by semicolons.

Where the comma is the decimal sign, programs separate columns by semicolons: in such a file 12,5 is 12.5, and 1.234,5
is 1234.5. A column that has decimal points as well is refused: there 1.234 could be either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.core.errors import shorten
from hubbub.intake.reject_causes import CAUSES, refusal

if TYPE_CHECKING:
    import pyarrow as pa

WITH_COMMA = r"^[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+$"
WITH_POINT = r"^[+-]?\d*\.\d+$"


class DecimalCommas:
    """Turns decimal commas into decimal points, and remembers for each column which of the two it has."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._examples: dict[str, dict[str, str]] = {}

    def as_points(self, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return a column of texts, its numbers with decimal points."""
        import pyarrow as pa
        import pyarrow.compute as pc

        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        chunks = []
        for chunk in encoded.chunks:
            texts = chunk.dictionary
            commas = pc.match_substring_regex(texts, WITH_COMMA)
            self._remember(name, "commas", texts.filter(commas))
            self._remember(name, "points", texts.filter(pc.match_substring_regex(texts, WITH_POINT)))
            points = pc.replace_substring(pc.replace_substring(texts, ".", ""), ",", ".")
            chunks.append(pa.DictionaryArray.from_arrays(chunk.indices, pc.if_else(commas, points, texts)))
        return pa.chunked_array(chunks, encoded.type)

    def _remember(self, name: str, sign: str, texts: pa.Array) -> None:
        """Refuse a column that has both signs, in whichever order."""
        if not len(texts):
            return
        examples = self._examples.setdefault(name, {})
        examples.setdefault(sign, texts[0].as_py())
        if len(examples) > 1:
            raise refusal(
                "mixed-decimals",
                CAUSES["mixed-decimals"],
                where=f"{self._source}, column {name}",
                got=f"{shorten(examples['commas'])} and {shorten(examples['points'])}",
                expected="one decimal sign in the whole column",
                remedy="write all numbers with decimal points and without separators between thousands",
            )
