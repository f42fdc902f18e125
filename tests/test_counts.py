"""Files of counts: what people may assume of the truth."""

from __future__ import annotations

from pathlib import Path

import pytest

import hubbub as hb
from hubbub.exporting.result_files import write_result
from hubbub.intake.value_counts import read_counts

COLOURS = hb.Categories(["red", "green", "blue"])
GRID = hb.Grid(4, 3, cell=1.0, cells=[0, 1, 2, 5, 11])
CITY = hb.Grid.over(south=37.7, west=-122.5, north=37.8, east=-122.4, columns=4, rows=3)
DOMAINS: dict[str, hb.Domain] = {
    "colours": COLOURS, "ages": hb.Integers(18, 20), "hours": hb.Bins([0, 6, 12, 24]), "grid": GRID, "city": CITY,
}  # fmt: skip


def read(folder: Path, domain: str, text: str, name: str = "counts.csv") -> dict[object, float]:
    (folder / name).write_text(text)
    study = hb.Study(DOMAINS[domain], {"m": hb.RandomizedResponse(DOMAINS[domain], 1.0)})
    return read_counts(folder / name, study)


@pytest.mark.parametrize(
    ("domain", "text", "found"),
    [
        ("colours", "value,count\nred,3\nblue,5\n", {"red": 3, "blue": 5}),
        ("colours", 'count,note,value\n3,"a, b",red\n0,,green\n', {"red": 3}),
        ("colours", "value,probability\nred,0.25\ngreen,0.75\n", {"red": 0.25, "green": 0.75}),
        ("ages", "value,count\n20,1e3\n18,7\n", {20: 1000, 18: 7}),
        ("hours", "value,count\n0,10\n2,30\n", {0: 10, 2: 30}),
        ("grid", "value,count\n11,2\n5,1\n", {11: 2, 5: 1}),
        ("grid", "x,y,count\n3,2,2\n1,1,1\n", {11: 2, 5: 1}),
        ("grid", "column,row,count\n3,2,2\n1,1,1\n", {11: 2, 5: 1}),
        ("city", "lat,lon,count\n37.71,-122.49,2\n37.712,-122.492,3\n37.79,-122.41,1\n", {0: 5, 11: 1}),
    ],
)
def test_counts_are_read(tmp_path: Path, domain: str, text: str, found: dict[object, float]) -> None:
    assert read(tmp_path, domain, text) == found


def test_other_formats_are_read_too(tmp_path: Path) -> None:
    assert read(tmp_path, "colours", '{"value": "red", "count": 4}\n', "c.jsonl") == {"red": 4}


def test_an_estimate_that_was_written_is_a_truth(tmp_path: Path) -> None:
    coin = hb.RandomizedResponse(COLOURS, 1.0)
    estimate = hb.estimate(hb.Reports.from_counts(coin, [40, 32, 28]), "mle")
    estimate.to_frame().to_csv(tmp_path / "e.csv", index=False)
    counts = read_counts(tmp_path / "e.csv", hb.Study(COLOURS, {"m": coin}))
    assert list(counts.values()) == pytest.approx(estimate.probabilities.tolist())


APOSTROPHES = ("=1", "'=1", "''=1", "'a", "plain", "'+x", "-x")


@pytest.mark.parametrize("labels", [APOSTROPHES, APOSTROPHES[:2], APOSTROPHES[1:3], APOSTROPHES[4:]])
def test_labels_that_were_guarded_against_spreadsheets_come_back(tmp_path: Path, labels: tuple[str, ...]) -> None:
    domain = hb.Categories(labels)
    study = hb.Study(domain, {"m": hb.RandomizedResponse(domain, 1.0)})
    estimate = hb.estimate(hb.Reports.from_counts(study.mechanisms["m"], [*range(10, 10 + len(labels))]), "inv-p")
    write_result(estimate, estimate.document(), tmp_path / "e.csv")
    written = (tmp_path / "e.csv").read_text()
    assert "\n=" not in written
    expected = {label: share for label, share in zip(labels, estimate.probabilities, strict=True) if share > 0}
    assert read_counts(tmp_path / "e.csv", study) == pytest.approx(expected)


def test_labels_of_a_table_of_counts_are_taken_as_they_stand(tmp_path: Path) -> None:
    """Only hubbub puts apostrophes before labels, and only beside probabilities; one more is taken off if it must."""
    domain = hb.Categories(["=1", "'=1", "+2", "c"])
    study = hb.Study(domain, {"m": hb.RandomizedResponse(domain, 1.0)})
    (tmp_path / "c.csv").write_text("value,count\n=1,1\n'=1,2\n'+2,3\n")
    assert read_counts(tmp_path / "c.csv", study) == {"=1": 1, "'=1": 2, "+2": 3}


def test_a_label_with_an_apostrophe_that_is_none_is_told_as_it_stands(tmp_path: Path) -> None:
    with pytest.raises(hb.IntakeError) as caught:
        read(tmp_path, "colours", "value,probability\nred,0.5\n'=pink,0.5\n")
    assert caught.value.got == repr("'=pink")


@pytest.mark.parametrize(
    ("domain", "text", "words"),
    [
        ("colours", "value,count\nred,3\npink,5\n", ["line 3", "a value is not in the domain", "pink"]),
        ("colours", "value,count\nred,3\n\nred,5\n", ["line 4", "a value is listed twice", "red, as in line 2"]),
        ("colours", "value,count\nred,-3\n", ["line 2", "not a count", "-3"]),
        ("colours", "value,count\nred,many\n", ["line 2", "not a number", "many"]),
        ("colours", "value,count\nred,\n", ["line 2", "row has no"]),
        ("colours", "value,count\nred,inf\n", ["line 2", "inf"]),
        ("colours", "value,count\nred,1,2\n", ["line 2", "too many fields"]),
        ("colours", "value,count\nred,0\n", ["nobody is counted"]),
        ("colours", "value,count\n", ["nobody is counted"]),
        ("colours", "", ["an empty file", "value,count"]),
        ("colours", "x,y,count\n0,0,1\n", ["do not say how many", "value,count"]),
        ("colours", "value,count,share\nred,1,0.5\n", ["do not say how many"]),
        ("colours", "value,value,count\nred,red,1\n", ["several columns value"]),
        ("ages", "value,count\n18.5,1\n", ["line 2", "18.5"]),
        ("grid", "x,y,count\n0,0,1\n9,0,1\n", ["line 3", "no such cell", "column 9"]),
        ("grid", "x,y,count\n3,0,1\n", ["line 2", "not kept"]),
        ("grid", "x,y,count\n0.5,0,1\n", ["line 2", "not a whole number"]),
        ("grid", "x,y,count\n0,0,1\n0,0,1\n", ["line 3", "listed twice"]),
        ("grid", "lat,lon,count\n0,0,1\n", ["do not say how many"]),
        ("city", "lat,lon,count\n1.0,2.0,5\n", ["line 2", "lat, lon"]),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, domain: str, text: str, words: list[str]) -> None:
    with pytest.raises(hb.IntakeError) as caught:
        read(tmp_path, domain, text)
    for word in words:
        assert word in str(caught.value)


def test_a_value_may_not_be_listed_in_two_files(tmp_path: Path) -> None:
    """Not even on the same line of both."""
    study = hb.Study(COLOURS, {"m": hb.RandomizedResponse(COLOURS, 1.0)})
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for path, count in zip(paths, (3, 4), strict=True):
        path.write_text(f"value,count\nred,{count}\n")
    with pytest.raises(hb.IntakeError, match="a value is listed twice"):
        read_counts(paths, study)
