"""Rows that were counted, remembered by digests, so that they are told from rows that are new.

A digest is the first 16 bytes of HMAC-SHA-256 of what was read of the row. The same row may be there several times:
what is remembered is how often.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hubbub.core.arrays import Positions
from hubbub.intake.sources.distinct_entries import one_array

if TYPE_CHECKING:
    import pyarrow as pa

DIGEST_BYTES = 16
ENTRY = struct.Struct("<q16sI")  # a key, a digest, and how many rows have both
MAX_REMEMBERED_ROWS = 1 << 20

RowDigest = tuple[int, bytes]  # the key of a row's watermark, and the digest of the row
NO_SECRET = b"hubbub watermark"  # where rows name nobody, and there is no key


class RowDigester:
    """Makes digests of rows, under a key that the tally does not hold."""

    def __init__(self, secret: bytes | None, salt: str) -> None:
        key = hmac.new(secret or NO_SECRET, b"hubbub watermark rows " + salt.encode(), hashlib.sha256).digest()
        self._start = hmac.new(key, digestmod=hashlib.sha256)

    def digests(
        self, keys: Positions, columns: Mapping[str, pa.ChunkedArray], rows: Positions
    ) -> tuple[list[RowDigest], Positions]:
        """Return the distinct digests of some rows, of all their columns, and which of them each row has.

        Only distinct rows are hashed: a day of answers has few of them.
        """
        import pyarrow as pa

        taken = [_decoded(columns[name].take(pa.array(rows))) for name in sorted(columns)]
        first, group = _groups([np.unique(keys[rows], return_inverse=True)[1], *map(_indices, taken)])
        texts = [[_bytes(entry) for entry in array.take(pa.array(first)).to_pylist()] for array in taken]
        found = []
        for key, *entries in zip(keys[rows[first]].tolist(), *texts, strict=True):
            code = self._start.copy()
            code.update(b"".join(struct.pack("<I", len(entry)) + entry for entry in (str(key).encode(), *entries)))
            found.append((key, code.digest()[:DIGEST_BYTES]))
        return found, group


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa

    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _indices(column: pa.ChunkedArray) -> Positions:
    """Return which of its distinct entries each row of a column has."""
    encoded = one_array(column).dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices).astype(np.int64)


def _groups(columns: Sequence[Positions]) -> tuple[Positions, Positions]:
    """Return the first row of each group of equal rows, and the group of each row."""
    group = np.zeros(len(columns[0]), dtype=np.int64)
    first = np.zeros(0, dtype=np.int64)
    for column in columns:  # numbered again after each, so that numbers stay small
        _, first, group = np.unique(group * (int(column.max()) + 1) + column, return_index=True, return_inverse=True)
    return first, group


def _bytes(entry: object) -> bytes:
    """Return an entry in one form, whatever the type of its column: 7 and 7.0 are the same."""
    if entry is None:
        return b""
    return b"=" + (entry if isinstance(entry, bytes) else str(entry).removesuffix(".0").encode())


def packed(rows: Counter[RowDigest]) -> str:
    """Return remembered rows as a text, in a fixed order."""
    entries = (ENTRY.pack(key, digest, count) for (key, digest), count in sorted(rows.items()))
    return base64.b64encode(b"".join(entries)).decode()


def unpacked(text: str) -> Counter[RowDigest] | None:
    """Return the rows that a text remembers; None if it is not such a text."""
    try:
        content = base64.b64decode(text, validate=True)
        entries = [(key, digest, count) for key, digest, count in ENTRY.iter_unpack(content)]
    except (binascii.Error, ValueError, struct.error):
        return None
    rows = Counter({(key, digest): count for key, digest, count in entries})
    is_whole = len(rows) == len(entries) and all(count > 0 for count in rows.values())
    return rows if is_whole and packed(rows) == text else None


def keys_of(rows: Counter[RowDigest]) -> Sequence[int]:
    """Return the keys of remembered rows, one for each row."""
    return [key for (key, _), count in rows.items() for _ in range(count)]
