"""Numbers and files as people have them: what is read, and what is rejected with which remedy; nothing is guessed."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import hubbub as hb
from hubbub.core.number_advice import number_advice
from hubbub.intake.privatizing.api import privatize_file
from hubbub.intake.sources import text_files

DIGITS = hb.Integers(0, 9)
STUDY = hb.Study(DIGITS, {"m": hb.TruncatedGeometric(DIGITS, 0.5)})
MINUTES = hb.Bins([0, 5, 10, 2000])
DELAYS = hb.Study(MINUTES, {"m": hb.RandomizedResponse(MINUTES, 40.0)})  # so private that reports are the values
CITY = hb.Grid.over(south=48.0, west=11.0, north=48.3, east=11.8, columns=4, rows=3)
PLACES = hb.Study(CITY, {"m": hb.RandomizedResponse(CITY, 40.0)})

# What is wrong with an entry, and a word of the remedy that only this mistake has.
NEARLY_NUMBERS = {
    "decimal comma": ("3,5", "semicolons separate the columns"),
    "comma that may be either": ("1,234", "nothing between thousands"),
    "point and comma": ("1.234,5", "separates the thousands"),
    "comma and point": ("1,234.5", "separates the thousands"),
    "several points": ("1.234.567", "separates the thousands"),
    "space between thousands": ("1 234", "separates the thousands"),
    "narrow space that does not break": ("1\u202f234", "separates the thousands"),
    "apostrophe of Swiss banks": ("1'234", "separates the thousands"),
    "underscore of programs": ("1_000", "separates the thousands"),
    "unit": ("3 km", "alone, in the unit"),
    "unit without a space": ("3km", "alone, in the unit"),
    "currency": ("€ 3", "alone, in the unit"),
    "answer of a questionnaire": ("3 - often", "alone, in the unit"),
    "open end": (">3", "alone, in the unit"),
    "percent": ("50 %", "percent sign"),
    "ISO date": ("2024-01-02", "a date: write the number that the study counts"),
    "German date": ("02.01.2024", "a date: write the number that the study counts"),
    "American date": ("1/2/2024", "a date: write the number that the study counts"),
    "date and time": ("2024-01-02T08:30", "a date: write the number that the study counts"),
    "number that a spreadsheet made a date": ("3-Mar", "made of a number by a spreadsheet"),
    "time": ("8:30", "a time: write the number"),
    "degrees, minutes": ("37° 46′ N", "decimal degrees"),
    "error of a spreadsheet": ("#REF!", "spreadsheet's formula"),
    "formula": ("=1+2", "save the values"),
    "apostrophe of a spreadsheet": ("'3", "quote or apostrophe"),
    "word for a missing number": ("N/A", "missing number"),
    "dash for a missing number": ("-", "missing number"),
    "typographic minus": ("−3", "as a hyphen"),
    "minus behind": ("3-", "minus in front"),
    "brackets for a minus": ("(3)", "minus in front"),
    "full-width digit": ("３", "digits 0 to 9"),
    "Arabic digit": ("٣", "digits 0 to 9"),
    "fraction": ("½", "digits 0 to 9"),
    "hexadecimal": ("0x1F", "decimal digits"),
    "space in front": (" 3", "spaces around"),
}
NOT_WHOLE = {
    "two zeros": ("3.00", "without a point"),
    "decimals": ("3.5", "must be whole"),
    "exponent": ("1e3", "without an exponent"),
}


@pytest.mark.parametrize("name", [*NEARLY_NUMBERS, *NOT_WHOLE])
def test_an_output_that_is_nearly_a_whole_number_is_rejected_with_its_remedy(name: str, tmp_path: Path) -> None:
    text, words = (NEARLY_NUMBERS | NOT_WHOLE)[name]
    path = tmp_path / "r.tsv"
    path.write_text(f"output\n3\n{text}\n", encoding="utf-8")
    with pytest.raises(hb.IntakeError) as caught:
        hb.read_reports(path, STUDY)
    assert caught.value.code == "not-a-number"
    assert caught.value.where.startswith(f"{path}, line 3")
    assert text.strip() in caught.value.got or text.encode("ascii", "backslashreplace").decode() in caught.value.got
    assert words in caught.value.remedy


@pytest.mark.parametrize("name", NEARLY_NUMBERS)
def test_other_columns_of_numbers_say_the_same(name: str, tmp_path: Path) -> None:
    text, words = NEARLY_NUMBERS[name]
    values, weights = tmp_path / "v.tsv", tmp_path / "w.tsv"
    values.write_text(f"value\n3\n{text}\n", encoding="utf-8")
    weights.write_text(f"output\tweight\n3\t1\n4\t{text}\n", encoding="utf-8")
    if name != "space in front":  # which other columns allow
        with pytest.raises(hb.IntakeError) as caught:
            privatize_file(values, DELAYS, None, tmp_path / "out.csv")
        assert (caught.value.code, words in caught.value.remedy) == ("not-a-number", True)
        with pytest.raises(hb.IntakeError) as caught:
            hb.read_reports(weights, STUDY)
        assert (caught.value.code, words in caught.value.remedy) == ("not-a-weight", True)
    else:
        assert hb.read_reports(weights, STUDY).users == 2


def test_advice_is_for_what_looks_like_a_number() -> None:
    for text in ("blue", "Yes", "Mary-Ann", "", "a1b2c3", "3" * 100 + " km", "3.5", "-2", "1e3"):
        assert number_advice(text, "otherwise") == "otherwise", text
    for other in (None, 3.5, b"3,5"):
        assert number_advice(other, "otherwise") == "otherwise"


def test_a_file_with_semicolons_has_decimal_commas(tmp_path: Path) -> None:
    texts = ["0,5", "1", "1.234,5", "2,25"]
    comma, point = tmp_path / "comma.csv", tmp_path / "point.csv"
    comma.write_text("output;weight\n" + "".join(f"{n};{text}\n" for n, text in enumerate(texts)))
    point.write_text("output,weight\n0,0.5\n1,1\n2,1234.5\n3,2.25\n")
    with pytest.warns(hb.HubbubWarning, match=r"separated by semicolons, so that a comma in a number \(weight\)"):
        found = hb.read_reports(comma, STUDY)
    assert found == hb.read_reports(point, STUDY)


def test_decimal_points_in_a_file_with_semicolons_stay(tmp_path: Path) -> None:
    path, same = tmp_path / "r.csv", tmp_path / "same.csv"
    path.write_text("output;weight\n3;0.5\n4;1.25\n")
    same.write_text("output,weight\n3,0.5\n4,1.25\n")
    with pytest.warns(hb.HubbubWarning, match="semicolons"):
        found = hb.read_reports(path, STUDY)
    assert found == hb.read_reports(same, STUDY)


@pytest.mark.parametrize("piece", [64, 1 << 25])
def test_both_decimal_signs_are_refused_wherever_they_are(
    piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_files, "PIECE_BYTES", piece)
    path = tmp_path / "r.csv"
    rows = [f"{n % 10};1.5" for n in range(200)]
    for place in (0, 100, 199):
        mixed = [*rows[:place], "3;1,5", *rows[place:]]
        path.write_text("\n".join(["output;weight", *mixed, ""]))
        with pytest.raises(hb.IntakeError) as caught:
            hb.read_reports(path, STUDY)
        assert caught.value.code == "mixed-decimals"
        assert caught.value.got == "'1,5' and '1.5'"


def test_outputs_and_labels_keep_their_commas(tmp_path: Path) -> None:
    """Only columns of numbers with decimals are read otherwise: a label may have a comma, a whole number has none."""
    sizes = hb.Categories(["1,5", "2,0"])
    study = hb.Study(sizes, {"m": hb.RandomizedResponse(sizes, 1.0)})
    path = tmp_path / "r.csv"
    path.write_text("output;size\n1,5;3\n2,0;4\n")
    with pytest.warns(hb.HubbubWarning, match="not used"):
        assert hb.read_reports(path, study) == hb.Reports.from_outputs(study.mechanisms["m"], ["1,5", "2,0"])
    path.write_text("output;user\n3,0;7\n")
    with pytest.raises(hb.IntakeError) as caught:
        hb.read_reports(path, STUDY)
    assert caught.value.code == "not-a-number"


def test_values_with_decimal_commas_are_privatized(tmp_path: Path) -> None:
    values = tmp_path / "v.csv"
    values.write_text("sep=;\r\nvalue;who\r\n4,99;a\r\n5,0;b\r\n1.000,5;c\r\n", newline="")
    with pytest.warns(hb.HubbubWarning, match="semicolons"):
        privatize_file(values, DELAYS, None, tmp_path / "out.csv", rng=1)
    assert (tmp_path / "out.csv").read_text().split() == ["output", "0", "1", "2"]
    places = tmp_path / "p.csv"
    places.write_text("lat;lon\n48,05;11,1\n48,25;11,7\n")
    with pytest.warns(hb.HubbubWarning, match=r"\(lat and lon\)"):
        privatize_file(places, PLACES, None, tmp_path / "places.csv", rng=1)
    cells = [int(cell) for cell in (tmp_path / "places.csv").read_text().split()[1:]]
    assert cells == CITY.locate(np.array([48.05, 48.25]), np.array([11.1, 11.7])).tolist()


TABLE = "user,output\nann,3\nbob,5\nžofie,5\n"


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("name", "content"),
    {
        "UTF-8 with a mark": b"\xef\xbb\xbf" + TABLE.encode(),
        "UTF-16": TABLE.encode("utf-16"),
        "UTF-16, large end first": b"\xfe\xff" + TABLE.encode("utf-16-be"),
        "Windows": TABLE.replace("\n", "\r\n").encode(),
        "old Macintosh": TABLE.replace("\n", "\r").encode(),
        "semicolons": TABLE.replace(",", ";").encode(),
        "tabs": TABLE.replace(",", "\t").encode(),
        "vertical bars": TABLE.replace(",", "|").encode(),
        "sep= of Excel": b"sep=;\r\n" + TABLE.replace(",", ";").encode(),
        "sep= in quotes, behind a mark": b'\xef\xbb\xbf"sep=,"\n' + TABLE.encode(),
        "sep= and tabs in UTF-16": ("sep=\t\r\n" + TABLE.replace(",", "\t").replace("\n", "\r\n")).encode("utf-16"),
        "quotes and semicolons": TABLE.replace(",", '";"').replace("\n", '"\n"').encode().join([b'"', b""])[:-1],
        "blank lines in front": b"\r\n\n" + TABLE.replace(",", ";").encode(),
    }.items(),
    ids=lambda case: case if isinstance(case, str) else "",
)
@pytest.mark.parametrize("piece", [7, 1 << 25])
def test_forms_of_one_table(
    name: str, content: bytes, piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, path = tmp_path / "plain.csv", tmp_path / "r.csv"
    plain.write_text(TABLE, encoding="utf-8")
    path.write_bytes(content)
    expected = hb.read_reports(plain, STUDY)
    monkeypatch.setattr(text_files, "PIECE_BYTES", piece)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert hb.read_reports(path, STUDY) == expected, name


def test_json_lines_in_utf16(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes('{"output": 3}\r\n{"output": 4}\r\n'.encode("utf-16"))
    assert hb.read_reports(path, STUDY).users == 2
