"""Where people are: check-ins, points and counts from files, and the synthetic city."""

from __future__ import annotations

import gzip
import hashlib
import math
import os
import pickle
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import hubbub as hb
from hubbub.core.errors import HubbubError
from hubbub.core.progress import Progress, finish
from hubbub.paper.places import PAPER_ZONE, Place, Zone, parse_zone, read_counts, read_points, synthetic_place
from hubbub.paper.places import check_ins as points_module

GOWALLA = Path(__file__).resolve().parents[2] / "shared" / "data" / "gowalla_sf_24x16.csv"
DEGREES = Zone(south=0, west=0, north=16, east=24)  # cells of one degree: no rounding anywhere
FORMATS = (
    "check-ins as SNAP publishes them (user, time, latitude, longitude and location between tabs, no header), "
    "or a CSV whose first line names lat and lon"
)
TABLE = "a table x,y,count: one line for each cell, x = 0 in the west and y = 0 in the south"

Points = Sequence[tuple[float, float]]


def check_in(latitude: object, longitude: object) -> str:
    return f"196514\t2010-07-24T13:45:06Z\t{latitude}\t{longitude}\t145064\n"


def snap(path: Path, points: Points) -> Path:
    return save(path, "".join(check_in(*point) for point in points))


def save(path: Path, text: str) -> Path:
    path.write_bytes(gzip.compress(text.encode(), 1) if path.suffix == ".gz" else text.encode())
    return path


def read(path: Path, zone: Zone = PAPER_ZONE) -> Place:
    return finish(read_points(path, zone))


def drawn(count: int, seed: int = 1) -> list[tuple[float, float]]:
    """Points in and around the paper's zone, as texts keep them."""
    rng = np.random.default_rng(seed)
    latitudes, longitudes = rng.uniform(37.71, 37.81, count), rng.uniform(-122.53, -122.37, count)
    return [(round(float(a), 10), round(float(b), 10)) for a, b in zip(latitudes, longitudes, strict=True)]


def counted(points: Points) -> list[int]:
    """Count points in the paper's zone again, in plain Python."""
    counts = [0] * 384
    for latitude, longitude in points:
        column = math.floor((longitude + 122.5153) / (-122.3789 + 122.5153) * 24)
        row = math.floor((latitude - 37.7228) / (37.7946 - 37.7228) * 16)
        if 0 <= column < 24 and 0 <= row < 16:
            counts[24 * row + column] += 1
    return counts


def parts(error: HubbubError) -> tuple[str, str, str, str, str]:
    return error.what, error.where, error.got, error.expected, error.remedy


# -- places ------------------------------------------------------------------------------------------------


def test_the_synthetic_city_says_that_it_is_synthetic() -> None:
    place = synthetic_place()
    assert (place.users, place.holes, place.synthetic, place.name) == (120_000, 80, True, "synthetic city")
    assert place.grid == hb.Grid(24, 16, cell=0.5)
    assert place.shares.sum() == pytest.approx(1, abs=1e-12)
    assert place.sha256 == hashlib.sha256(place.counts.astype("<i8").tobytes()).hexdigest()
    assert place.source == (
        "synthetic: the fictional city that ships with hubbub, 120,000 people, all of them in the zone"
    )


def test_a_place_travels_to_other_processes() -> None:
    place = synthetic_place()
    copy = pickle.loads(pickle.dumps(place))  # noqa: S301
    assert (copy.counts == place.counts).all()
    assert copy.grid == place.grid
    assert (copy.fingerprint, copy.source, copy.sha256) == (place.fingerprint, place.source, place.sha256)
    for each in (place, copy):
        with pytest.raises(ValueError, match="read-only"):
            each.counts[0] = 1


def test_a_place_keeps_its_own_counts() -> None:
    counts = np.ones(4, dtype=np.int64)
    place = Place(hb.Grid(2, 2), counts, "two by two", "made here", synthetic=True, sha256="")
    counts[0] = 7
    assert place.counts.tolist() == [1, 1, 1, 1]


def test_the_fingerprint_is_of_what_decides_results() -> None:
    counts = np.array([1, 2, 3, 4, 5, 6])
    made = [
        Place(grid, of, "name", "source", synthetic=True, sha256="")
        for grid, of in [
            (hb.Grid(3, 2), counts),
            (hb.Grid(2, 3), counts),
            (hb.Grid(3, 2, cell=0.25), counts),
            (hb.Grid(3, 2), counts[::-1]),
        ]
    ]
    assert len({place.fingerprint for place in made}) == 4
    other = Place(hb.Grid(3, 2), counts, "other name", "other source", synthetic=False, sha256="0")
    assert other.fingerprint == made[0].fingerprint


def test_three_ways_to_the_same_place(tmp_path: Path) -> None:
    points = drawn(2_000)
    cells = counted(points)
    table = "".join(f"{cell % 24},{cell // 24},{count}\n" for cell, count in enumerate(cells) if count)
    places = [
        read(snap(tmp_path / "a.txt", points)),
        read(save(tmp_path / "b.csv", "lat,lon\n" + "".join(f"{a},{b}\n" for a, b in points))),
        read_counts(save(tmp_path / "c.csv", "x,y,count\n" + table)),
    ]
    assert len({place.fingerprint for place in places}) == 1
    assert len({place.sha256 for place in places}) == 3
    assert all(place.grid == hb.Grid(24, 16, cell=0.5) and place.counts.tolist() == cells for place in places)


# -- check-ins ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["checkins.txt", "checkins.txt.gz"])
def test_check_ins(tmp_path: Path, name: str) -> None:
    points = drawn(1_000)
    path = snap(tmp_path / name, points)
    stages: list[Progress] = []
    place = finish(read_points(path), stages.append)
    assert place.counts.tolist() == counted(points)
    assert (place.name, place.synthetic) == ("San Francisco (Gowalla)", False)
    assert place.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert place.source == (
        f"{name}: 1,000 check-ins, 6,441,890 fewer than the 6,442,890 that SNAP publishes, "
        f"{place.users:,} of them in the zone (the paper counts 123,273)"
    )
    assert stages[0].what == f"{name}: 1,000 points"
    assert all(0 <= stage.done <= stage.total for stage in stages)


@pytest.mark.slow  # a large file
def test_a_large_file_agrees_with_another_count(tmp_path: Path) -> None:
    points = drawn(300_000)
    place = read(snap(tmp_path / "many.txt.gz", points))
    assert place.counts.tolist() == counted(points)
    assert place.users > 100_000


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (4, "4 check-ins, complete (as many as SNAP publishes), 4 of them"),
        (6, "6 check-ins, 2 more than the 4 that SNAP publishes, 6 of them"),
        (3, "3 check-ins, 1 fewer than the 4 that SNAP publishes, 3 of them"),
    ],
)
def test_the_size_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: int, words: str) -> None:
    monkeypatch.setattr(points_module, "PUBLISHED_CHECK_INS", 4)
    assert words in read(snap(tmp_path / "some.txt", [(37.75, -122.45)] * lines)).source


def test_another_zone_has_its_own_grid(tmp_path: Path) -> None:
    zone = Zone(south=37.7, west=-122.5, north=37.8, east=-122.3, columns=4, rows=2)
    place = read(snap(tmp_path / "a.txt", [(37.71, -122.31), (37.79, -122.49), (38.0, -122.4)]), zone)
    assert place.grid == hb.Grid.over(south=37.7, west=-122.5, north=37.8, east=-122.3, columns=4, rows=2)
    assert place.counts.tolist() == [0, 0, 0, 1, 1, 0, 0, 0]
    assert place.name == "Gowalla, latitude 37.7 to 37.8, longitude -122.5 to -122.3"
    assert place.source.endswith("2 of them in the zone")


def test_edges_belong_to_the_zone(tmp_path: Path) -> None:
    """All four edges are in it; between cells, the point belongs to the cell in the east or north."""
    inside = {(0, 24): 23, (16, 0): 360, (16, 24): 383, (1, 1): 25, (0.5, 1): 1, (1, 0.5): 24, (15, 23.5): 383}
    for point, cell in inside.items():
        assert np.flatnonzero(read(snap(tmp_path / "a.txt", [point]), DEGREES).counts).tolist() == [cell]
    beyond = [
        (math.nextafter(0, -1), 3),
        (3, math.nextafter(0, -1)),
        (math.nextafter(16, 17), 3),
        (3, math.nextafter(24, 25)),
    ]
    assert read(snap(tmp_path / "a.txt", [(1, 1), *beyond]), DEGREES).users == 1
    south, west, north, east = PAPER_ZONE[:4]
    corners = read(snap(tmp_path / "a.txt", [(south, west), (south, east), (north, west), (north, east)]))
    assert np.flatnonzero(corners.counts).tolist() == [0, 23, 360, 383]


def test_what_is_left_out_is_told(tmp_path: Path) -> None:
    good = [check_in(37.75, -122.45)] * 1_000
    bad = [
        "1\t2\t37.75\n",
        check_in("north", -122.45),
        check_in(37.75, ""),
        check_in("nan", -122.45),
        check_in(1, "1_0"),
    ]
    bad += [check_in("inf", 1), "1\t2\t37.75\t-122.45\t5\t6\n"]
    unusable = [check_in("0.0", "0.0"), check_in(90.5, 0), check_in(37.75, "-180.1")]
    text = "".join([*good[:500], *bad[:6], "\n", *good[500:], bad[6], *unusable])
    place = read(save(tmp_path / "some.txt", text))
    assert place.users == 1_000
    assert place.source == (
        "some.txt: 1,010 check-ins, 6,441,880 fewer than the 6,442,890 that SNAP publishes, 1,000 of them in the zone "
        "(the paper counts 123,273); left out: 7 malformed lines (501, 502, 503, 504, 505, …) and "
        "3 unusable positions (0 and 0, or beyond 90 or 180 degrees)"
    )


def test_the_first_malformed_lines_are_named_however_far_apart(tmp_path: Path) -> None:
    """They are met in several batches: what is not plain is read some tens of kilobytes at a time."""
    lines = ["1\t2\n" if line % 1_000 == 7 else check_in(37.75, -122.45) for line in range(1, 8_001)]
    place = read(save(tmp_path / "some.txt", "".join(lines)))
    assert place.users == 7_992
    assert place.source.endswith("; left out: 8 malformed lines (7, 1,007, 2,007, 3,007, 4,007, …)")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1\t2\n", "; left out: 1 malformed line (1,001)"),
        (check_in(0, 0), "; left out: 1 unusable position (0 and 0, or beyond 90 or 180 degrees)"),
        (check_in(0, 1), "(the paper counts 123,273)"),  # far away, but a place on the map
        (check_in(1, 0), "(the paper counts 123,273)"),
    ],
)
def test_one_line_that_is_left_out(tmp_path: Path, line: str, words: str) -> None:
    place = read(save(tmp_path / "some.txt", check_in(37.75, -122.45) * 1_000 + line))
    assert place.source.endswith(words)


def test_exactly_one_in_a_hundred_may_be_malformed(tmp_path: Path) -> None:
    lines = [check_in(37.75, -122.45)] * 99
    assert read(save(tmp_path / "some.txt", "".join([*lines, "1\n"]))).users == 99
    with pytest.raises(hb.IntakeError, match="2 of 101 lines"):
        read(save(tmp_path / "some.txt", "".join([*lines, "1\n", "2\n"])))


# -- points ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["points.csv", "points.csv.gz"])
@pytest.mark.parametrize(
    ("header", "line"),
    [
        ("lat,lon", "{a},{b}"),
        ("name,LNG,when,Latitude", '"Pier 39, north",{b},2020,{a}'),
        ('"Longitude","note"," lat "', '{b},"two\nlines",{a}'),
        ("id\tlon\tlat", "7\t{b}\t{a}"),
        ("id,lat,lon,lat2", "7, {a} ,+{b},x"),
    ],
)
def test_points(tmp_path: Path, name: str, header: str, line: str) -> None:
    points = [(latitude, abs(longitude) - 122) for latitude, longitude in drawn(500)]
    zone = Zone(37.7228, 0.3789, 37.7946, 0.5153)
    text = "\n".join([header, *(line.format(a=a, b=b) for a, b in points)])
    place = read(save(tmp_path / name, text), zone)
    over = zone.over()
    inside = [(a, b) for a, b in points if zone.south <= a <= zone.north and zone.west <= b <= zone.east]
    assert place.counts.tolist() == np.bincount([over.locate(a, b) for a, b in inside], minlength=384).tolist()
    assert place.source == f"{name}: 500 points, {len(inside)} of them in the zone"
    assert place.name == "points, latitude 37.7228 to 37.7946, longitude 0.3789 to 0.5153"


def test_a_file_whose_name_is_no_text_has_one_that_can_be_written(tmp_path: Path) -> None:
    table = save(tmp_path / os.fsdecode(b"caf\xe9.csv"), "x,y,count\n0,0,5\n")
    points = snap(tmp_path / os.fsdecode(b"caf\xe9.txt"), [(37.75, -122.45)])
    for place in (read_counts(table), read(points)):
        assert "caf\ufffd" in place.source
        assert (place.name + place.source).encode()


def test_points_in_the_papers_zone_have_its_name(tmp_path: Path) -> None:
    assert read(save(tmp_path / "night.csv", "lat,lon\n37.75,-122.45\n")).name == "San Francisco (night)"


# -- counts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["some.counts.csv", "some.counts.csv.gz"])
def test_counts(tmp_path: Path, name: str) -> None:
    path = save(tmp_path / name, "x,y,count\n3,0,5\n0,2,7\n23,15,0\n")
    place = read_counts(path)
    assert place.grid == hb.Grid(24, 16, cell=0.5)
    assert {int(cell): int(place.counts[cell]) for cell in np.flatnonzero(place.counts)} == {3: 5, 48: 7}
    assert (place.name, place.synthetic, place.users, place.holes) == ("some.counts", False, 12, 382)
    assert place.source == f"{name}: 12 people counted, all in the 24 x 16 cells of the zone; 382 cells are empty"
    assert place.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("line", "size"), [("23,15,1", (24, 16)), ("24,0,1", (25, 2)), ("0,16,1", (2, 17)), ("30,20,0", (31, 21))]
)
def test_the_grid_is_as_large_as_needed(tmp_path: Path, line: str, size: tuple[int, int]) -> None:
    place = read_counts(save(tmp_path / "counts.csv", f"x,y,count\n1,1,9\n{line}\n"))
    assert place.grid == hb.Grid(*size, cell=0.5)
    assert place.counts[place.grid.cell(1, 1)] == 9


def test_the_counts_of_gowalla() -> None:
    if not GOWALLA.exists():
        pytest.skip("needs the counts of Gowalla check-ins, beside the repository")
    place = read_counts(GOWALLA)
    assert (place.users, place.holes, len(place.grid)) == (123_026, 50, 384)


# -- mistakes ----------------------------------------------------------------------------------------------

UNNAMED = "the first line does not name the columns"
HEADED = "write that line above the counts; points with lat and lon are read by --data instead"
WHOLE = "a whole number, 0 or more, of at most 15 digits"
PEOPLE = "count people, not shares; leave a cell without people out"
CELLS = "count cells from 0, from the west and from the south"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", (UNNAMED, ", the first line", "an empty file", "x,y,count", HEADED)),
        ("0,0,5\n", (UNNAMED, ", the first line", "'0,0,5'", "x,y,count", HEADED)),
        ("y,x,count\n", (UNNAMED, ", the first line", "'y,x,count'", "x,y,count", HEADED)),
        (
            "x,y,count\n0,0,1\n\n0,0,2\n",
            (
                "a cell is listed twice", ", line 4", "x 0, y 0, as on line 2", "each cell once",
                "add the two counts up, or correct the cell",
            ),
        ),
        ("x,y,count\n0,0,-1\n", ("count is negative", ", line 2", "'-1'", WHOLE, PEOPLE)),
        ("x,y,count\n0,0,1\n0,-3,1\n", ("y is negative", ", line 3", "'-3'", WHOLE, CELLS)),
        ("x,y,count\n0,0,0.5\n", ("count is not a whole number", ", line 2", "'0.5'", WHOLE, PEOPLE)),
        ("x,y,count\n1.0,0,5\n", ("x is not a whole number", ", line 2", "'1.0'", WHOLE, CELLS)),
        ("x,y,count\n1,,5\n", ("y is not a whole number", ", line 2", "''", WHOLE, CELLS)),
        (
            f"x,y,count\n1,1,{10**15}\n",
            ("count is not a whole number", ", line 2", "'1000000000000000'", WHOLE, PEOPLE),
        ),
        (
            "x,y,count\n0,0,1\n0,1\n",
            (
                "the row has too few fields", ", line 3", "2 in the row '0,1'",
                "three whole numbers: x,y,count", "correct the row; put quotes around a text that contains commas",
            ),
        ),
        (
            "x,y,count\n0,0,0\n",
            ("nobody is counted", "", "1 cell, 0 people", "at least 1 person", "check the column count"),
        ),
        ("x,y,count\n", ("nobody is counted", "", "0 cells, 0 people", "at least 1 person", "check the column count")),
        (
            "x,y,count\n" + "".join(f"{x},0,{10**15 - 1}\n" for x in range(10)),
            (
                "too many people", "", "10 cells, 9,999,999,999,999,990 people", "fewer than 2^53 people",
                "check the column count",
            ),
        ),
        (
            "x,y,count\n0,0,1\n3,377228,5\n",
            (
                "a cell is too far away", ", line 3", "x 3, y 377228: a grid of 4 x 377,229 cells",
                "at most 1,000,000 cells",
                "number the columns and rows from 0; coordinates on the map are read by --data instead",
            ),
        ),
    ],
)  # fmt: skip
def test_mistakes_in_counts(tmp_path: Path, text: str, expected: tuple[str, str, str, str, str]) -> None:
    path = save(tmp_path / "counts.csv", text)
    with pytest.raises(hb.IntakeError) as caught:
        read_counts(path)
    assert parts(caught.value) == (expected[0], f"{path}{expected[1]}", *expected[2:])


FIRST = "the first line is neither a check-in nor a header that names lat and lon"
NAME_THEM = (
    "name the two columns lat and lon in the first line, with commas between columns; "
    "a table x,y,count is read by --counts instead"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", (FIRST, ", the first line", "an empty file", FORMATS, NAME_THEM)),
        ("x,y,count\n1,2,3\n", (FIRST, ", the first line", "'x,y,count'", FORMATS, NAME_THEM)),
        ("lat,x\n1,2\n", (FIRST, ", the first line", "'lat,x'", FORMATS, NAME_THEM)),
        ("1\t2\tnorth\twest\t5\n", (FIRST, ", the first line", r"'1\t2\tnorth\twest\t5'", FORMATS, NAME_THEM)),
        (
            "lat,lon,Latitude\n1,2,3\n",
            (
                "two columns could be the same coordinate", ", the first line", "lat, Latitude",
                "one latitude and one longitude", "rename the column that is not meant, or leave it out",
            ),
        ),
        (
            check_in(37.75, -122.45) + "1\t2\n" + check_in("a", "b"),
            (
                "too many lines cannot be read", ", first at lines 2, 3", "2 of 3 lines",
                "user, time, latitude, longitude, location between tabs; at most 1% of the lines otherwise",
                "correct these lines, or leave them out on purpose",
            ),
        ),
        (
            "id,LAT,Lng\n1,37.75,-122.45\n2,,\n",
            (
                "too many lines cannot be read", ", first at line 3", "1 of 2 lines",
                "numbers in the columns LAT and Lng; at most 1% of the lines otherwise",
                "correct these lines, or leave them out on purpose",
            ),
        ),
        (
            "lat,lon\n37.75,122.45\n37.9,-122.45\n0,0\n",
            (
                "no point lies in the zone", "", "2 points within latitude 37.75 to 37.9, longitude -122.45 to 122.45",
                "points within latitude 37.7228 to 37.7946, longitude -122.5153 to -122.3789",
                "name the zone that your points lie in: --zone SOUTH,WEST,NORTH,EAST",
            ),
        ),
        (
            "lat,lon\n",
            (
                "no point lies in the zone", "", "no usable point in 0 lines",
                "points within latitude 37.7228 to 37.7946, longitude -122.5153 to -122.3789",
                "name the zone that your points lie in: --zone SOUTH,WEST,NORTH,EAST",
            ),
        ),
    ],
)  # fmt: skip
def test_mistakes_in_points(tmp_path: Path, text: str, expected: tuple[str, str, str, str, str]) -> None:
    path = save(tmp_path / "points.csv", text)
    with pytest.raises(hb.IntakeError) as caught:
        read(path)
    assert parts(caught.value) == (expected[0], f"{path}{expected[1]}", *expected[2:])


@pytest.mark.parametrize(("reader", "wanted"), [(read, FORMATS), (read_counts, TABLE)])
def test_what_is_no_file(tmp_path: Path, reader: object, wanted: str) -> None:
    assert callable(reader)
    with pytest.raises(hb.IntakeError) as caught:
        reader(tmp_path / "nothing.txt")
    where, remedy = str(tmp_path / "nothing.txt"), "check the path; nothing is downloaded for you"
    assert parts(caught.value) == ("no such file", where, "nothing at that path", wanted, remedy)
    with pytest.raises(hb.IntakeError) as caught:
        reader(tmp_path)
    got = "a folder, a device or a pipe"
    assert parts(caught.value) == ("not a plain file", str(tmp_path), got, wanted, "name the file itself")


@pytest.mark.parametrize(
    ("name", "content", "got", "remedy"),
    [
        ("a.txt.gz", b"1\t2\t3\t4\t5\n", "not compressed by gzip", "rename it a.txt, or copy it again"),
        ("a.txt", gzip.compress(b"1\t2\t3\t4\t5\n", mtime=0), "compressed by gzip", "rename it a.txt.gz"),
    ],
)
def test_a_name_that_does_not_agree(tmp_path: Path, name: str, content: bytes, got: str, remedy: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(hb.IntakeError) as caught:
        read(path)
    expected = "a name that ends in .gz if and only if the file is compressed"
    assert parts(caught.value) == ("the file name does not match its content", str(path), got, expected, remedy)


def test_a_file_that_is_cut_short(tmp_path: Path) -> None:
    path = snap(tmp_path / "a.txt.gz", drawn(1_000))
    path.write_bytes(path.read_bytes()[:-2_000])
    with pytest.raises(hb.IntakeError, match="the compressed file is damaged or truncated"):
        read(path)


# -- zones -------------------------------------------------------------------------------------------------


def test_zones() -> None:
    assert parse_zone("37.7228, -122.5153, 37.7946, -122.3789") == PAPER_ZONE
    assert PAPER_ZONE.over().unit == "km"
    assert PAPER_ZONE.grid() == hb.Grid(24, 16, cell=0.5)
    assert parse_zone("-33.9,151,-33.8,151.3").grid().box is not None


@pytest.mark.parametrize("text", ["", "1,2,3", "1,2,3,4,5", "south,2,3,4", "1;2;3;4"])
def test_a_zone_is_four_numbers(text: str) -> None:
    with pytest.raises(hb.SettingError) as caught:
        parse_zone(text)
    assert parts(caught.value) == (
        "the zone is not four numbers",
        "--zone",
        repr(text),
        "SOUTH,WEST,NORTH,EAST in decimal degrees",
        "write it like the paper's: 37.7228,-122.5153,37.7946,-122.3789",
    )


@pytest.mark.parametrize(
    ("text", "what", "expected", "remedy"),
    [
        (
            "37.8,-122.5,37.7,-122.3", "south must be below north", "south < north",
            "swap the two (a box across the 180th meridian is not supported)",
        ),
        (
            "37.7,-222.5,37.8,-122.3", "west must be degrees from -180 to 180", "degrees from -180 to 180",
            "give decimal degrees, negative for south and west",
        ),
        (
            "nan,-122.5,37.8,-122.3", "south must be degrees from -90 to 90", "degrees from -90 to 90",
            "give decimal degrees, negative for south and west",
        ),
    ],
)  # fmt: skip
def test_a_zone_is_a_box(text: str, what: str, expected: str, remedy: str) -> None:
    with pytest.raises(hb.SettingError) as caught:
        parse_zone(text)
    assert parts(caught.value) == (what, "--zone", repr(text), f"SOUTH,WEST,NORTH,EAST: {expected}", remedy)
