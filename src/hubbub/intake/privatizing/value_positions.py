"""Values of rows as positions in the domain: labels, raw numbers for bins, latitudes and longitudes for a map.

Each distinct entry is looked at once where entries repeat (labels), and all at once where they do not (numbers). The
first row that cannot be read is reported with its place: nobody is left out in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.client import NUMBER
from hubbub.core.arrays import Floats, Positions, plain
from hubbub.core.errors import DomainError, HubbubError, OutputError, shorten
from hubbub.domains import Domain
from hubbub.intake.counting.item_encoder import is_empty
from hubbub.intake.reject_causes import Fault, refusal
from hubbub.intake.sources.distinct_entries import check_column, entries_of, one_array
from hubbub.mechanisms.output_spaces import ValueOutputs

if TYPE_CHECKING:
    import pyarrow as pa

CORRECT_ROW = "correct the row, or leave it out on purpose"
OUTSIDE_REMEDIES = {  # for true values outside the domain, by their columns
    "value": "widen the first or last bin, or leave that person out knowingly",
    "lat, lon": "latitude comes first; enlarge the study's area, or leave that person out knowingly",
}


class BadRow(NamedTuple):
    """A row that cannot be read, by its place in the batch, and why."""

    row: int
    fault: Fault


class ValueReader:
    """Turns columns of values into positions, and remembers the labels it has seen."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._space = ValueOutputs(domain, "value")
        self._known: dict[str, dict[object, int]] = {}

    def read(self, columns: Mapping[str, pa.ChunkedArray]) -> Positions | BadRow:
        """Return the position of each row's value, or the first row that has none."""
        if "value" not in columns:
            return self._places(columns["lat"], columns["lon"])
        locate = self._domain.raw_locator
        if locate is not None:
            numbers = read_numbers(columns["value"], "value")
            return numbers if isinstance(numbers, BadRow) else _located(locate, "value", numbers)
        return self.read_labels(columns["value"])

    def _places(self, latitudes: pa.ChunkedArray, longitudes: pa.ChunkedArray) -> Positions | BadRow:
        grid = self._domain.grid
        assert grid is not None  # noqa: S101  # other domains have no such columns
        numbers = read_all_numbers({"lat": latitudes, "lon": longitudes})
        if isinstance(numbers, BadRow):
            return numbers
        cells = _located(grid.locate, "lat, lon", *numbers)
        return cells if isinstance(cells, BadRow) else grid.find(cells)

    def read_labels(self, column: pa.ChunkedArray) -> Positions | BadRow:
        """Return the positions of a column of labels; for bins, too, these are the labels: their numbers."""
        import pyarrow as pa

        kind = check_column(column, "value")
        numbers = self._domain.labels.dtype.kind == "i"
        if numbers and pa.types.is_integer(column.type) and kind != pa.uint64() and column.null_count == 0:
            positions = self._domain.find(np.asarray(one_array(column)).astype(np.int64))
            if (positions >= 0).all():
                return positions
        entries = entries_of(column, "value")
        known = self._known.setdefault(entries.kind, {})
        used = np.flatnonzero(np.bincount(entries.indices, minlength=len(entries.values)))
        listed = entries.take(used)
        new = [entry for entry in listed if entry not in known]
        if new:
            known.update(zip(new, self._find(new), strict=True))
        by_entry = np.full(len(entries.values), -1, dtype=np.int64)
        by_entry[used] = [known[entry] for entry in listed]
        positions = by_entry[entries.indices]
        if (positions >= 0).all():
            return positions
        row = int(np.argmax(positions < 0))
        return BadRow(row, self._fault(entries.values[int(entries.indices[row])]))

    def _find(self, entries: list[object]) -> list[int]:
        """Return the position of each entry, -1 where it has none; all at once where all have one."""
        try:
            positions = self._space.encode([self._space.read(entry) for entry in entries])
            if len(positions) == len(entries):
                return [int(position) for position in positions]
        except OutputError:
            pass
        return [self._find_one(entry) for entry in entries]

    def _find_one(self, entry: object) -> int:
        if is_empty(entry):
            return -1
        try:
            return int(self._space.encode([self._space.read(entry)])[0])
        except OutputError:
            return -1

    def _fault(self, entry: object) -> Fault:
        if is_empty(entry):
            return missing("value")
        try:
            self._space.encode([self._space.read(entry)])
        except OutputError as error:
            if error.code == "rounded-number":
                return _fault("value", error.code, error.what, error.got, error.expected, error.remedy)
            code = error.code if error.code == "not-a-number" else "out-of-domain"
            what = "not a whole number" if error.code == "not-a-number" else "a value is not in the domain"
            return _fault("value", code, what, shorten(plain(entry)), self._domain.describe())
        raise AssertionError(entry)  # pragma: no cover  # it was refused a moment ago


def read_numbers(column: pa.ChunkedArray, name: str) -> Floats | BadRow:
    """Return a column of numbers, or of their texts, as floats."""
    import pyarrow as pa

    inner = check_column(column, name)  # entries of a dictionary, if any, rarely repeat: they are written out
    array = one_array(column.cast(inner) if pa.types.is_dictionary(column.type) else column)
    values, wrong = _floats(array)
    bad = wrong | np.isnan(values)
    if not bad.any():
        return values
    row = int(np.argmax(bad))
    entry = array[row].as_py()
    if not wrong[row] or is_empty(entry):
        return BadRow(row, missing(name))
    return BadRow(row, _fault(name, "not-a-number", "not a number", shorten(entry), "a number such as 37.75"))


def read_all_numbers(columns: Mapping[str, pa.ChunkedArray]) -> list[Floats] | BadRow:
    """Return several columns of numbers, or the first row at fault in any of them."""
    numbers = []
    bad: list[BadRow] = []
    for name, column in columns.items():
        values = read_numbers(column, name)
        if isinstance(values, BadRow):
            bad.append(values)
        else:
            numbers.append(values)
    return min(bad, key=attrgetter("row")) if bad else numbers


def _floats(array: pa.Array) -> tuple[Floats, NDArray[np.bool_]]:
    """Return numbers (nan where there is none), and which entries are not numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, nothing = array.type, np.zeros(len(array), dtype=bool)
    if pa.types.is_null(kind):
        return np.full(len(array), np.nan), nothing
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        floats = array.cast(pa.float64(), safe=False)
        return np.asarray(pc.fill_null(floats, np.nan)).astype(np.float64), nothing
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        try:
            return np.asarray(pc.fill_null(array.cast(pa.float64()), np.nan)).astype(np.float64), nothing
        except pa.ArrowInvalid:  # one of them is no number: which?
            texts = array.to_pylist()
            wrong = np.array([text is not None and not NUMBER.fullmatch(text) for text in texts], dtype=bool)
            values = [np.nan if text is None or bad else float(text) for text, bad in zip(texts, wrong, strict=True)]
            return np.array(values, dtype=np.float64), wrong
    return np.full(len(array), np.nan), np.asarray(array.is_valid())  # truth values, bytes


def _located(locate: Callable[..., Positions], column: str, *numbers: Floats) -> Positions | BadRow:
    """Return the positions that `locate` finds, or the first row that it refuses, found by bisection."""
    try:
        return np.asarray(locate(*numbers), dtype=np.int64)
    except DomainError as error:
        refused: HubbubError = error
    first, last = 0, len(numbers[0])
    while last - first > 1:
        middle = (first + last) // 2
        try:
            locate(*(part[first:middle] for part in numbers))
            first = middle
        except DomainError:
            last = middle
    try:
        locate(*(part[first:last] for part in numbers))
    except DomainError as error:
        refused = error
    # These are true values: what the message says about noisy reports does not apply.
    remedy = OUTSIDE_REMEDIES[column]
    return BadRow(first, _fault(column, "out-of-domain", refused.what, refused.got, refused.expected, remedy))


def missing(column: str) -> Fault:
    """Return the fault of a row without a value."""
    return _fault(column, "no-value", "a row has no value", "nothing", f"the column {column} filled in every row")


def _fault(column: str, code: str, what: str, got: str, expected: str, remedy: str = CORRECT_ROW) -> Fault:
    return Fault(column, refusal(code, what, where="", got=got, expected=expected, remedy=remedy))
