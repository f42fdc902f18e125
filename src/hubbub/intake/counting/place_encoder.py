"""Reports that are places: coordinates turned into cells, and cells into items, without a text in between.

Each row's cell of the infinite lattice is found as `Grid.locate` finds it; what lies outside the grid becomes what the
mechanism makes of it (`Mechanism.codes_at`). Cells near the grid are numbered in a window, so that rows are counted by
one table of cells; the few rows beyond it, and those without a place, are looked at separately.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hubbub.client import NUMBER
from hubbub.core.arrays import Floats, Positions
from hubbub.core.errors import HubbubError, shorten
from hubbub.domains import Grid
from hubbub.domains.geometry import MAX_LATITUDE, MAX_LONGITUDE
from hubbub.intake.counting.item_encoder import EncodedRows, Encoder, are_possible, impossible_output
from hubbub.intake.reject_causes import Fault, refusal, row_fault
from hubbub.intake.sources.distinct_entries import check_column, entries_of
from hubbub.intake.sources.number_columns import floats_of
from hubbub.intake.study import Study
from hubbub.mechanisms.output_spaces import index_codes

if TYPE_CHECKING:
    import pyarrow as pa

WINDOW_CELLS = 1 << 18  # around the grid, of which each mechanism has a table
BLOCK_ROWS = 1 << 14  # whose arrays stay in the processor's cache
UNKNOWN = np.iinfo(np.int64).min  # an item that was not asked for yet
COORDINATE_NAMES = {"lat": "latitude", "lon": "longitude", "x": "x", "y": "y"}


class PlaceEncoder:
    """Turns columns of coordinates into items of an encoder, and remembers the item of every cell near the grid."""

    def __init__(self, study: Study, encoder: Encoder) -> None:
        grid = study.domain.grid
        assert grid is not None  # noqa: S101  # other studies have no places
        self._grid, self._encoder = grid, encoder
        self._margin = _margin(grid)
        self._columns, self._rows = grid.columns + 2 * self._margin, grid.rows + 2 * self._margin
        self._elsewhere = self._columns * self._rows  # what stands for all cells that are not in the window
        self._items: dict[int, Positions] = {}  # of the window's cells, by mechanism

    def encode(self, columns: Mapping[str, pa.ChunkedArray], mechanisms: pa.ChunkedArray | None) -> EncodedRows:
        """Return what rows with two columns of coordinates say (no column of mechanisms: all are the only one)."""
        roles = tuple(columns)
        for role in roles:
            check_column(columns[role], role)
        read = [floats_of(columns[role], trim=True) for role in roles]
        first, second = (values for values, _ in read)
        which, names, numbers = self._encoder.begin(mechanisms, first.size)
        size = self._elsewhere + 1
        keys = self._cells(first, second, on_map=roles[0] == "lat")
        if len(names) > 1:
            keys += which * size
        counts = np.bincount(keys, minlength=len(names) * size)
        items = np.zeros(counts.size, dtype=np.int64)
        kinds = np.flatnonzero(counts)
        is_far = kinds % size == self._elsewhere
        near, far = kinds[~is_far], kinds[is_far]
        items[near] = self._of_kinds(near, names, numbers, roles)
        if not far.size:
            return EncodedRows(keys, items, counts)
        rows = np.flatnonzero(np.isin(keys, far))
        own_items = self._one_by_one(columns, read, rows, which[rows], names, numbers)
        distinct, back, times = np.unique(own_items, return_inverse=True, return_counts=True)
        keys[rows] = counts.size + back.ravel()
        counts[far] = 0
        return EncodedRows(keys, np.append(items, distinct), np.append(counts, times))

    def _cells(self, first: Floats, second: Floats, *, on_map: bool) -> Positions:
        """Return the cell of each point in the window, and `_elsewhere` for what is not in it or is no place."""
        cells = np.empty(first.size, dtype=np.int64)
        for start in range(0, first.size, BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            columns, rows, good = self._grid.lattice(first[part], second[part], on_map=on_map)
            columns += self._margin
            rows += self._margin
            good &= (columns >= 0) & (columns < self._columns) & (rows >= 0) & (rows < self._rows)
            rows *= self._columns
            rows += columns
            cells[part] = rows if good.all() else np.where(good, rows, self._elsewhere)
        return cells

    def _of_kinds(
        self, kinds: Positions, names: Sequence[Any], numbers: Positions, roles: tuple[str, ...]
    ) -> Positions:
        """Return the item of each kind of rows, kinds being numbered by name and then by cell of the window."""
        items = np.empty(kinds.size, dtype=np.int64)
        owners, cells = np.divmod(kinds, self._elsewhere + 1)
        for place in np.unique(owners).tolist():
            own, number = owners == place, int(numbers[place])
            if number < 0:
                items[own] = self._encoder.unknown(names[place])
                continue
            table = self._items.setdefault(number, np.full(self._elsewhere, UNKNOWN))
            known = table[cells[own]]
            new = np.flatnonzero(known == UNKNOWN)
            if new.size:
                rows, columns = np.divmod(cells[own][new], self._columns)
                known[new] = self._of_steps(number, columns - self._margin, rows - self._margin, roles)
                good = known >= 0  # faults are forgotten after the batch
                table[cells[own][good]] = known[good]
            items[own] = known
        return items

    def _of_steps(self, number: int, columns: Positions, rows: Positions, roles: tuple[str, ...]) -> Positions:
        """Return the items of cells of the lattice; negative where a mechanism does not answer with them."""
        mechanism = self._encoder.mechanisms[number]
        items = np.empty(columns.size, dtype=np.int64)
        if not mechanism.sends_places:
            items[:] = self._encoder.refuse(number, _no_places(), roles[0])
            return items
        codes = mechanism.codes_at(columns, rows)
        sent = codes >= 0 if codes.ndim == 1 else np.ones(len(codes), dtype=bool)
        for place in np.flatnonzero(~sent).tolist():
            error = outside_grid(int(columns[place]), int(rows[place]), self._grid)
            items[place] = self._encoder.refuse(number, error, roles[0])
        if sent.any() and not mechanism.full_support:
            where = np.flatnonzero(sent)
            for place in where[~are_possible(mechanism, codes[where])].tolist():
                error = impossible_output(f"column {columns[place]}, row {rows[place]}")
                items[place], sent[place] = self._encoder.refuse(number, error, roles[0]), False
        items[sent] = self._encoder.add(number, codes[sent])
        return items

    def _one_by_one(
        self,
        columns: Mapping[str, pa.ChunkedArray],
        read: Sequence[tuple[Floats, NDArray[np.bool_] | None]],
        rows: Positions,
        which: Positions,
        names: Sequence[Any],
        numbers: Positions,
    ) -> Positions:
        """Return the items of rows that lie far from the grid or have no place; `which` are the names they have."""
        items = np.full(rows.size, UNKNOWN)
        for place in np.flatnonzero(np.bincount(which, minlength=len(names)) * (numbers < 0)).tolist():
            items[which == place] = self._encoder.unknown(names[place])
        roles = tuple(columns)
        for role, (values, wrong) in zip(roles, read, strict=True):
            bad = ~is_coordinate(role, values[rows])
            if wrong is not None:
                bad |= wrong[rows]
            left = np.flatnonzero(bad & (items == UNKNOWN))
            if left.size:
                items[left] = self._faults(role, columns[role], rows[left])
        left = np.flatnonzero(items == UNKNOWN)
        points = (values[rows[left]] for values, _ in read)
        steps = np.stack(self._grid.lattice(*points, on_map=roles[0] == "lat")[:2], axis=1)
        for place in np.unique(which[left]).tolist():
            own = which[left] == place
            low = steps[own].min(axis=0)
            distinct, back = index_codes(steps[own] - low)  # which is quicker without signs
            columns_met, rows_met = (distinct + low).T
            found = self._of_steps(int(numbers[place]), columns_met, rows_met, roles)
            items[left[own]] = found[back]
        return items

    def _faults(self, role: str, column: pa.ChunkedArray, rows: Positions) -> Positions:
        """Return the (negative) items of rows whose coordinate is at fault; each distinct entry is looked at once."""
        import pyarrow as pa

        entries = entries_of(column.take(pa.array(rows)), role)
        met, back = np.unique(entries.indices, return_inverse=True)
        numbers = [self._encoder.fault(coordinate_fault(role, entry)) for entry in entries.take(met)]
        return np.array(numbers, dtype=np.int64)[back.ravel()]


def _margin(grid: Grid) -> int:
    """Return how many cells the window extends beyond the grid on each side."""
    half = (grid.columns + grid.rows) / 2  # (columns + 2 m)(rows + 2 m) = WINDOW_CELLS
    root = math.sqrt(half**2 + max(0, WINDOW_CELLS - grid.columns * grid.rows))
    return int((root - half) / 2)


def is_coordinate(role: str, values: Floats) -> NDArray[np.bool_]:
    """Return which numbers can be a coordinate."""
    most = {"lat": MAX_LATITUDE, "lon": MAX_LONGITUDE}.get(role, np.finfo(np.float64).max)
    return np.abs(values) <= most


def coordinate_fault(role: str, entry: object) -> Fault:
    """Return the fault of a row in which a coordinate is missing, is no number, or lies nowhere."""
    name = COORDINATE_NAMES[role]
    if entry is None or entry != entry or (isinstance(entry, str) and not entry.strip(" \t")):
        return row_fault(
            "no-place",
            f"the row has no {name}",
            got="nothing",
            expected=f"a number in the column {role} in every row",
            remedy="complete the row or remove it",
            column=role,
        )
    is_number = NUMBER.fullmatch(entry.strip(" \t")) if isinstance(entry, str) else not isinstance(entry, bool | bytes)
    if not is_number or not math.isfinite(float(entry)):  # type: ignore[arg-type]
        return row_fault(
            "not-a-coordinate",
            f"the {name} is not a finite number",
            got=shorten(entry),
            expected="a decimal number such as 37.75",
            remedy="correct the row",
            column=role,
        )
    return row_fault(
        "impossible-place",
        f"there is no such {name}",
        got=shorten(entry),
        expected="decimal degrees: latitudes from -90 to 90, longitudes from -360 to 360",
        remedy="correct the row; if all rows are so, check the order and the unit of the columns",
        column=role,
    )


def _no_places() -> HubbubError:
    return refusal(
        "not-an-output",
        "the outputs of this mechanism are not places",
        where="",
        got="a place",
        expected="a mechanism that answers with a place on the grid",
        remedy="check which mechanism this report names; write its output in a column output",
    )


def outside_grid(column: int, row: int, grid: Grid) -> HubbubError:
    """Return the error for a place beyond the grid, of a mechanism that sends none."""
    return refusal(
        "out-of-domain",
        "a place is in no cell of the grid",
        where="",
        got=f"a place in column {column}, row {row}",
        expected=f"a place in {grid.describe().replace('a cell number', 'a cell')}",
        remedy="check which mechanism this report names: only planar noise carries an output beyond the grid",
    )
