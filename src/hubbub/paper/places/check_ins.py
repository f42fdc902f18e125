"""Points on the map, counted in the cells of a zone: Gowalla's check-ins, or any table with latitudes and longitudes.

Files are read as reports are, a piece at a time by Arrow's parser, with every line counted apart from it; see
`hubbub.intake.sources.csv_reader`. What cannot be used is counted and reported, never dropped silently.
"""

from __future__ import annotations

import math
import re
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hubbub.core.arrays import Floats, Positions
from hubbub.core.errors import IntakeError, shorten
from hubbub.core.progress import Progress
from hubbub.core.text import plural
from hubbub.core.threads import read_ahead
from hubbub.intake.sources.base import Rows, check_counted
from hubbub.intake.sources.csv_reader import CsvSource
from hubbub.intake.sources.text_files import read_pieces
from hubbub.paper.places.place import Place
from hubbub.paper.places.place_files import check_file, plain_name, readable_name
from hubbub.paper.places.zone import PAPER_USERS, PAPER_ZONE, Zone

if TYPE_CHECKING:
    import pyarrow as pa

PUBLISHED_CHECK_INS = 6_442_890  # check-ins: snap.stanford.edu/data/loc-gowalla.html
SNAP_COLUMNS = ["user", "time", "latitude", "longitude", "location"]
LATITUDE_NAMES, LONGITUDE_NAMES = ("lat", "latitude"), ("lon", "lng", "longitude")
NUMBER = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*")
LINE_END = re.compile(rb"[\r\n]")
EXPECTED_FORMATS = (
    "check-ins as SNAP publishes them (user, time, latitude, longitude and location between tabs, no header), "
    "or a CSV whose first line names lat and lon"
)
MAX_MALFORMED_SHARE = 0.01
MAX_EXAMPLE_LINES = 5
PROGRESS_STEPS = 1000  # of the bar of progress


class _Format(NamedTuple):
    """How a file is read: the columns of the coordinates, and whether it is SNAP's."""

    file: CsvSource
    latitude: str
    longitude: str
    snap: bool


@dataclass
class _Counted:
    """The points counted so far."""

    zone: Zone
    lines: int = 0
    malformed: int = 0
    unusable: int = 0
    examples: list[int] = field(default_factory=list)  # the first malformed lines
    low: Floats = field(default_factory=lambda: np.full(2, np.inf))  # the box around all usable points: south, west
    high: Floats = field(default_factory=lambda: np.full(2, -np.inf))  # north, east

    def __post_init__(self) -> None:
        self._over = self.zone.over()
        self.counts: Positions = np.zeros(len(self._over), dtype=np.int64)

    def take(self, rows: Rows, points: Floats) -> None:
        """Count some rows, each a latitude and a longitude; what is no number is not finite here."""
        numbers = np.isfinite(points).all(axis=1)
        bad = [*(line for line, _ in rows.faults), *rows.place(np.flatnonzero(~numbers)).tolist()]
        self.lines += rows.counted
        self.malformed += len(bad)
        self.examples += sorted(bad)[: MAX_EXAMPLE_LINES - len(self.examples)]
        points = points[numbers]
        # Devices that do not know where they are say 0 and 0.
        usable = (np.abs(points) <= (90, 180)).all(axis=1) & (points != 0).any(axis=1)
        self.unusable += int(np.count_nonzero(~usable))
        points = points[usable]
        self.low = np.minimum(self.low, points.min(axis=0, initial=np.inf))
        self.high = np.maximum(self.high, points.max(axis=0, initial=-np.inf))
        zone = self.zone
        inside = ((points >= (zone.south, zone.west)) & (points <= (zone.north, zone.east))).all(axis=1)
        self.counts += np.bincount(self._over.locate(*points[inside].T), minlength=len(self._over))


def read_points(path: Path, zone: Zone = PAPER_ZONE) -> Generator[Progress, None, Place]:
    """Yield progress; return how many points of a file lie in each cell of a zone.

    The file holds SNAP's check-ins, or it is a CSV whose first line names a latitude (`lat`, `latitude`) and a
    longitude (`lon`, `lng`, `longitude`), in any case, among other columns; plain, or compressed by gzip.

    A line is malformed if it has too many or too few fields, or coordinates that are not numbers; more than 1% of
    malformed lines are an error. Coordinates beyond 90 or 180 degrees, and (0, 0), are numbers but unusable. `source`
    reports both. Blank lines do not count.
    """
    counted = _Counted(zone)
    form = _format(path)
    file, columns, name = form.file, (form.latitude, form.longitude), readable_name(path)
    for rows in read_ahead(file.rows([*columns])):
        check_counted(file, rows)
        counted.take(rows, np.stack([_numbers(rows.columns[column]) for column in columns], axis=1))
        yield Progress(int(PROGRESS_STEPS * file.done), PROGRESS_STEPS, f"{name}: {counted.lines:,} points")
    _check(path, counted, form)
    yield Progress(PROGRESS_STEPS, PROGRESS_STEPS, f"{name}: its checksum")
    sha256 = file.digest()
    file.check_unchanged()  # last: the digest must be of what was read
    source = f"{name}: {_sentence(counted, snap=form.snap)}"
    title = "Gowalla" if form.snap else plain_name(path)
    title = f"San Francisco ({title})" if zone == PAPER_ZONE else f"{title}, {zone}"
    return Place(zone.grid(), counted.counts, title, source, synthetic=False, sha256=sha256)


def _format(path: Path) -> _Format:
    """Look at the first line."""
    check_file(path, EXPECTED_FORMATS)
    text = next(read_pieces(path), b"").lstrip(b"\r\n")
    line = LINE_END.split(text, maxsplit=1)[0].decode(errors="replace")
    entries = line.split("\t")
    if len(entries) == len(SNAP_COLUMNS) and all(map(NUMBER.fullmatch, entries[2:4])):
        return _Format(CsvSource(path, "\t", names=SNAP_COLUMNS), "latitude", "longitude", snap=True)
    file = CsvSource(path, "\t" if "\t" in line else ",")
    names = file.header() if text else []
    matches = [[name for name in names if name.strip().lower() in known] for known in (LATITUDE_NAMES, LONGITUDE_NAMES)]
    where = f"{path}, the first line"
    if not all(matches):
        raise IntakeError(
            "the first line is neither a check-in nor a header that names lat and lon",
            where=where,
            got=shorten(line) if text else "an empty file",
            expected=EXPECTED_FORMATS,
            remedy="name the two columns lat and lon in the first line, with commas between columns; "
            "a table x,y,count is read by --counts instead",
        )
    twice = next((columns for columns in matches if len(columns) > 1), None)
    if twice:
        raise IntakeError(
            "two columns could be the same coordinate",
            where=where,
            got=", ".join(twice),
            expected="one latitude and one longitude",
            remedy="rename the column that is not meant, or leave it out",
        )
    return _Format(file, matches[0][0], matches[1][0], snap=False)


def _numbers(column: pa.ChunkedArray) -> Floats:
    """Return the numbers that texts say; nan for those that say none."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):  # each distinct text is looked at once
        parts = [_values(chunk.dictionary)[chunk.indices.to_numpy()] for chunk in column.chunks]
    else:
        parts = [_values(chunk) for chunk in column.chunks]
    return np.concatenate([np.zeros(0), *parts])


def _values(texts: pa.Array) -> Floats:
    import pyarrow as pa

    try:
        values: Floats = texts.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:  # one by one: some are no numbers, or have blanks around them
        values = np.array(
            [float(text) if NUMBER.fullmatch(text) else math.nan for text in texts.to_pylist()], dtype=np.float64
        )
    return values


def _check(path: Path, counted: _Counted, form: _Format) -> None:
    """Refuse a file of which too little can be used."""
    if counted.malformed > MAX_MALFORMED_SHARE * counted.lines:
        snap = f"{', '.join(SNAP_COLUMNS)} between tabs"
        lines = snap if form.snap else f"numbers in the columns {form.latitude} and {form.longitude}"
        raise IntakeError(
            "too many lines cannot be read",
            where=f"{path}, first at line{'s' if counted.malformed > 1 else ''} {_line_numbers(counted.examples)}",
            got=f"{counted.malformed:,} of {counted.lines:,} lines",
            expected=f"{lines}; at most {MAX_MALFORMED_SHARE:.0%} of the lines otherwise",
            remedy="correct these lines, or leave them out on purpose",
        )
    if counted.counts.sum() == 0:
        usable = counted.lines - counted.malformed - counted.unusable
        around = Zone(*counted.low, *counted.high)
        raise IntakeError(
            "no point lies in the zone",
            where=str(path),
            got=f"{usable:,} points within {around}" if usable else f"no usable point in {counted.lines:,} lines",
            expected=f"points within {counted.zone}",
            remedy="name the zone that your points lie in: --zone SOUTH,WEST,NORTH,EAST",
        )


def _sentence(counted: _Counted, *, snap: bool) -> str:
    """Return what was read, what of it is used, and what is left out."""
    inside = f"{counted.counts.sum():,} of them in the zone"
    text = f"{counted.lines:,} points, {inside}"
    if snap:
        more = counted.lines - PUBLISHED_CHECK_INS
        differ = f"{abs(more):,} {'more' if more > 0 else 'fewer'} than the {PUBLISHED_CHECK_INS:,} that SNAP publishes"
        complete = differ if more else "complete (as many as SNAP publishes)"
        text = f"{counted.lines:,} check-ins, {complete}, {inside}"
        text += f" (the paper counts {PAPER_USERS:,})" if counted.zone == PAPER_ZONE else ""
    if counted.malformed:
        dots = ", …" if counted.malformed > len(counted.examples) else ""
        text += f"; left out: {plural(counted.malformed, 'malformed line')} ({_line_numbers(counted.examples)}{dots})"
    if counted.unusable:
        text += " and " if counted.malformed else "; left out: "
        text += f"{plural(counted.unusable, 'unusable position')} (0 and 0, or beyond 90 or 180 degrees)"
    return text


def _line_numbers(lines: list[int]) -> str:
    return ", ".join(f"{line:,}" for line in lines)
