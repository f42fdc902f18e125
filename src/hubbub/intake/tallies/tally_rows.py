"""The rows of a tally's file, in usable parts: compared with their digests, of one kind, in order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import IntakeError
from hubbub.intake.counting.content import MAX_OUTPUTS_PER_USER
from hubbub.intake.counting.packed_singles import content_of
from hubbub.intake.counting.user_digests import DIGEST_BYTES
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.distinct_entries import one_array
from hubbub.intake.tallies.summary_parsing import read_summary
from hubbub.intake.tallies.tally import KEY, KINDS, Tally
from hubbub.intake.tallies.tally_file import RowsDigest, explaining_damage, open_parquet
from hubbub.intake.tallies.tally_summary import damaged

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 1 << 20
# Which columns are filled in rows of each kind. Of output and packed, it is up to the mechanism which one is.
FILLED = {"single": ("mechanism",), "joint": ("pattern", "mechanism"), "person": ("packed",)}
EMPTY = {"single": ("pattern",), "joint": (), "person": ("pattern", "mechanism", "output")}


def row_parts(tally: Tally, groups: range | None = None) -> Iterator[tuple[str, pa.Table]]:
    """Yield rows of one kind, whole patterns at a time, of some row groups (None: all)."""
    where = str(tally.path)
    with explaining_damage(where), open_parquet(tally.path, read_dictionary=["kind", "mechanism"]) as file:
        order = _RowOrder(where)
        for rows in _tables(file, tally, groups):
            yield from order.split(rows)
        yield from order.rest()
        if order.reached and groups is not None and groups.stop < file.num_row_groups:
            raise damaged(where, "joint patterns or digests of users among single outputs")


def _tables(file: Any, tally: Tally, groups: range | None) -> Iterator[pa.Table]:
    """Yield the rows of some row groups, the last ones of each group after it was compared with its digest."""
    import pyarrow as pa

    digests = tally.summary.row_groups
    count = file.num_row_groups
    if digests is not None and len(digests) != count:
        raise _changed(file, tally, f"{count:,} row groups, {len(digests):,} in its description")
    for group in range(count) if groups is None else groups:
        digest = None if digests is None else RowsDigest(len(file.schema_arrow.names))
        waiting: pa.Table | None = None
        for batch in file.iter_batches(BATCH_ROWS, row_groups=[group]):
            batch.validate(full=True)  # texts are UTF-8, entries of dictionaries are there
            rows = pa.Table.from_batches([batch])
            if digest is not None:
                digest.update(rows)
            if waiting is not None:
                yield waiting
            waiting = rows
        if digests is not None and digest is not None and digest.hexdigest() != digests[group]:
            raise _changed(file, tally, f"rows that changed since they were written (row group {group})")
        if waiting is not None:
            yield waiting


def _changed(file: Any, tally: Tally, got: str) -> IntakeError:
    """Return the error for rows that are not those of the description: damaged, or of another tally by now."""
    where = str(tally.path)
    text = (file.metadata.metadata or {}).get(KEY)
    if text is not None and read_summary(text, where).row_groups != tally.summary.row_groups:
        return refusal(
            "changed-meanwhile",
            "the tally was replaced while it was read",
            where=where,
            got="the rows of another tally",
            expected="the rows of the tally whose description was read before",
            remedy="read it again",
        )
    return damaged(where, got)


class _RowOrder:
    """Checks the order of rows as they are read: single outputs, then patterns from 0, then digests in their order."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._rest: pa.Table | None = None  # the last pattern, which may go on
        self._patterns = 0  # that were seen as a whole
        self._digest: NDArray[np.uint8] | None = None  # the last one
        self.reached = 0  # the place among KINDS

    def split(self, rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        """Yield the rows of each kind, but for a pattern that may go on."""
        import pyarrow as pa
        import pyarrow.compute as pc

        rows = rows if self._rest is None else pa.concat_tables([self._rest, rows])
        self._rest = None
        places = pc.index_in(one_array(rows["kind"].cast(pa.string())), pa.array(KINDS))
        if places.null_count:
            raise damaged(self._where, "a row of no known kind")
        kinds = np.asarray(places)
        if kinds.size and (kinds[0] < self.reached or (np.diff(kinds) < 0).any()):
            raise damaged(self._where, "rows that are not in order")
        for place, kind in enumerate(KINDS):
            own = rows.slice(int(np.searchsorted(kinds, place)), int(np.count_nonzero(kinds == place)))
            if own.num_rows:
                self.reached = place
                self._check_filled(kind, own)
                yield from self._of_kind(kind, own, last=bool(kinds[-1] == place))

    def rest(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield the last pattern."""
        if self._rest is not None:
            yield "joint", self._rest
            self._rest = None

    def _check_filled(self, kind: str, rows: pa.Table) -> None:
        if any(rows[name].null_count for name in (*FILLED[kind], "times", "users")):
            raise damaged(self._where, f"a row ({kind}) in which something is missing")
        if any(rows[name].null_count != rows.num_rows for name in EMPTY[kind]):
            raise damaged(self._where, f"a row ({kind}) that says more than such a row does")

    def _of_kind(self, kind: str, rows: pa.Table, *, last: bool) -> Iterator[tuple[str, pa.Table]]:
        """Yield rows of one kind, checked; the last pattern is kept back if it may go on."""
        if kind == "person":
            self._check_digests(rows)
        if kind != "joint":
            yield kind, rows
            return
        numbers = np.asarray(one_array(rows["pattern"]))
        steps = np.diff(numbers)
        if numbers[0] != self._patterns or steps.min(initial=0) < 0 or steps.max(initial=0) > 1:
            raise damaged(self._where, "patterns that are not in order")
        self._patterns = int(numbers[-1])
        first = int(np.searchsorted(numbers, numbers[-1])) if last else rows.num_rows
        if rows.num_rows - first > MAX_OUTPUTS_PER_USER:
            raise damaged(self._where, "a pattern of more outputs than a user can send")
        if last:
            self._rest = rows.slice(first)
        if first:
            yield kind, rows.slice(0, first)

    def _check_digests(self, rows: pa.Table) -> None:
        import pyarrow.compute as pc

        content = packed_content(rows, DIGEST_BYTES, self._where)
        if (
            pc.max(rows["users"]).as_py() != 0
            or pc.min(rows["users"]).as_py() != 0
            or set(pc.unique(rows["times"]).to_pylist()) != {1}
        ):
            raise damaged(self._where, "digests of users with a count")
        known = content if self._digest is None else np.concatenate([self._digest, content])
        if not strictly_increasing(known):
            raise damaged(self._where, "digests of users that are not in order, or twice the same")
        self._digest = content[-1:]


def packed_content(rows: pa.Table, size: int, where: str) -> NDArray[np.uint8]:
    """Return packed entries, each of `size` bytes, as a matrix."""
    import pyarrow.compute as pc

    if pc.any(pc.fill_null(pc.not_equal(pc.binary_length(rows["packed"]), size), True)).as_py():
        raise damaged(where, f"packed entries that are not of {size} bytes")
    return content_of(rows["packed"], np.arange(rows.num_rows))


def strictly_increasing(rows: NDArray[np.uint8]) -> bool:
    """Whether each row of bytes is greater than the one before; compared eight bytes at a time.

    >>> strictly_increasing(np.array([[1, 2], [1, 3], [2, 0]], dtype=np.uint8))
    True
    >>> strictly_increasing(np.array([[1, 2], [1, 2]], dtype=np.uint8))
    False
    """
    tied = np.arange(len(rows) - 1)
    for place in range(0, rows.shape[1], 8):
        first, second = _words(rows[tied, place : place + 8]), _words(rows[tied + 1, place : place + 8])
        if (first > second).any():
            return False
        tied = tied[first == second]
        if not tied.size:
            return True
    return not tied.size


def _words(pieces: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return up to eight bytes each as numbers of the same order."""
    padded = np.zeros((len(pieces), 8), dtype=np.uint8)
    padded[:, : pieces.shape[1]] = pieces
    return padded.view(">u8").ravel().astype(np.uint64)
