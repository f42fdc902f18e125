"""Users' rows dealt into buckets: all rows of a user into one, wherever they were read.

Between machines travel the rows of (user, item) and each bucket's own list of items, never the text that was read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hubbub.intake.counting.row_counting import NAMES, NUMBERS, SOURCES, RowCounter
from hubbub.intake.sources.distinct_entries import one_array

if TYPE_CHECKING:
    import pyarrow as pa

# The same bucket for the same user in every process: remainders of numbers, MD5 of names.
DEALING = {
    NUMBERS: "(user % {count} + {count}) % {count} = {number}",
    NAMES: "md5_number_lower(user) % {count} = {number}",
}


@dataclass(frozen=True)
class Bucket:
    """Some users' rows, with the items they are about."""

    items: Sequence[tuple[int, tuple[int, ...]]]
    tables: dict[str, pa.Table]


def deal(gathering: RowCounter, count: int, first_source: int) -> list[Bucket]:
    """Return what was put aside as `count` buckets; sources are numbered from `first_source` on."""
    import pyarrow as pa

    found = []
    for number in range(count):
        tables = {}
        for table, condition in DEALING.items():
            rows = gathering.aside(table, condition.format(count=count, number=number))
            if rows is None or not rows.num_rows:
                continue
            if "place" in rows.column_names:
                moved = np.asarray(one_array(rows["place"])) + (first_source << SOURCES)
                rows = rows.set_column(rows.column_names.index("place"), "place", pa.array(moved))
            tables[table] = rows
        found.append(Bucket(gathering.encoder.items, tables))
    return found


def gather_bucket(gathering: RowCounter, bucket: Bucket) -> None:
    """Put a bucket's rows aside, under the numbers that their items have here."""
    import pyarrow as pa

    numbers = np.array([gathering.encoder.number(*item) for item in bucket.items], dtype=np.int32)
    for table, rows in bucket.tables.items():
        items = np.asarray(one_array(rows["item"]))
        if numbers.size:
            items = np.where(items >= 0, numbers[np.maximum(items, 0)], items).astype(np.int32)
        gathering.put_aside(table, rows.set_column(rows.column_names.index("item"), "item", pa.array(items)))
