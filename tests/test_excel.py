"""Excel workbooks as sources: what a sheet holds is counted like any other table, and nothing of it is lost."""

from __future__ import annotations

import datetime
import json
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from openpyxl import Workbook

import hubbub as hb
from hubbub.core.progress import finish
from hubbub.intake.in_memory_reading import read, read_groups
from hubbub.intake.privatizing.api import privatize_file
from hubbub.intake.read_plan import plan_reading
from hubbub.intake.sources import excel
from hubbub.intake.sources.excel import ExcelSource
from terminal import hubbub

DIGITS = hb.Integers(0, 9)
STUDY = hb.Study(DIGITS, {"m": hb.TruncatedGeometric(DIGITS, 0.5)})


def workbook(path: Path, rows: Iterable[Sequence[Any]], change: Callable[[Workbook], object] = lambda _: None) -> Path:
    """Write a workbook whose first sheet has these rows."""
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "Data"
    for row in rows:
        sheet.append(list(row))
    change(book)
    book.save(path)
    return path


def rejected(path: Path | str, study: hb.Study = STUDY) -> tuple[int, Counter[str]]:
    """Return how many rows were accepted, and the codes of the others."""
    _, summary = finish(read(plan_reading(path, study, allow_rejects="99%")))
    return summary.rows - sum(summary.rejected.values()), Counter(summary.rejected)


def test_a_sheet_is_read_as_the_same_table_in_memory(tmp_path: Path) -> None:
    rows = [("ann", 3), ("bob", 4.0), ("7", 5), (7, 6), (7.0, "5"), ("žofie", "6.0")]
    path = workbook(tmp_path / "r.xlsx", [("user", "output"), *rows])
    table = pd.DataFrame({"user": [str(user).removesuffix(".0") for user, _ in rows], "output": [3, 4, 5, 6, 5, 6]})
    study = hb.Study(DIGITS, STUDY.mechanisms, max_reports_per_user=3)
    assert hb.read_reports(path, study) == hb.read_reports(table, study)
    assert hb.read_reports(f"{path}#Data", study) == hb.read_reports(table, study)
    assert hb.read_reports(Path(f"{path}#Data"), study) == hb.read_reports(table, study)


def test_times_of_a_column_are_written_alike(tmp_path: Path) -> None:
    first = datetime.datetime(2026, 11, 16, 22)
    times = [first + datetime.timedelta(hours=hour) for hour in range(5)]  # midnight is stored as a date
    rows = [(time, time.date(), number) for number, time in enumerate(times)]
    path = workbook(tmp_path / "r.xlsx", [("sent", "day", "output"), *rows])
    (read,) = ExcelSource(path).rows(["sent", "day"])
    assert read.columns["sent"].to_pylist() == [time.isoformat() for time in times]
    assert read.columns["day"].to_pylist() == [time.date().isoformat() for time in times]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hb.HubbubWarning)
        for more in (0, 2):  # so that a sheet can grow
            workbook(path, [("sent", "day", "output"), *rows, *[(times[-1], times[-1].date(), 7)] * more])
            tally = hb.collect(STUDY, path, tmp_path / "t.tally.parquet", watermark="sent")
            assert tally.users == 5 + more
    workbook(path, [("sent",), (first,), (first + datetime.timedelta(seconds=0.25),)])
    (read,) = ExcelSource(path).rows(["sent"])
    assert read.columns["sent"].to_pylist() == ["2026-11-16T22:00:00.000000", "2026-11-16T22:00:00.250000"]


def test_dates_are_dates_and_truth_values_are_what_the_program_shows(tmp_path: Path) -> None:
    answers = hb.Categories(["TRUE", "FALSE"])
    study = hb.Study(answers, {"m": hb.RandomizedResponse(answers, 1.0)})
    days = [datetime.date(2026, 11, 17), datetime.datetime(2026, 11, 17, 8, 30), "2026-11-18"]
    path = workbook(tmp_path / "r.xlsx", [("output", "time"), *zip([True, False, True], days, strict=True)])
    source = ExcelSource(path)
    (batch,) = source.rows(["output", "time"])
    assert batch.columns["output"].to_pylist() == ["TRUE", "FALSE", "TRUE"]
    assert batch.columns["time"].to_pylist() == ["2026-11-17T00:00:00", "2026-11-17T08:30:00", "2026-11-18"]
    groups = finish(read_groups(plan_reading(path, study, by=("day",))))
    assert {group: reports.users for group, (reports, _) in groups.items()} == {("2026-11-17",): 2, ("2026-11-18",): 1}


def test_empty_rows_are_no_rows_and_places_are_those_of_the_sheet(tmp_path: Path) -> None:
    rows: list[Sequence[Any]] = [(), ("", "output"), (), (None, 3), (None, None), (None, "x"), (), ()]
    path = workbook(tmp_path / "r.xlsx", rows, lambda book: book.active.cell(900, 2))
    with pytest.raises(hb.IntakeError) as caught:
        hb.read_reports(path, STUDY)
    assert caught.value.where == f"{path}, row 6, column output, mechanism m"
    assert rejected(path) == (1, Counter({"not-a-number": 1}))


def test_every_kind_of_bad_cell_is_a_rejected_row(tmp_path: Path) -> None:
    rows = ["output", 3, "=1+2", "#REF!", 1e15, None, 3.5, datetime.date(2026, 1, 2), True, "3 km", 4]

    def change(book: Workbook) -> None:
        book.active["B6"] = "a comment in a column without a name"

    path = workbook(tmp_path / "r.xlsx", [(row,) for row in rows], change)
    accepted, codes = rejected(path)
    assert accepted == 2
    assert codes == {
        "unsaved-formula": 1, "spreadsheet-error": 1, "rounded-number": 1, "too-many-fields": 1, "not-a-number": 4
    }  # fmt: skip


def test_formulas_with_saved_results_are_read_and_empty_texts_are_empty(tmp_path: Path) -> None:
    """As Excel saves them; openpyxl saves no results, so that they are put into its XML."""
    path = workbook(tmp_path / "r.xlsx", [("output",), ("=1+2",), ('=""',), (4,)])
    changed = tmp_path / "saved.xlsx"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            content = old.read(name).decode()
            if name.endswith("sheet1.xml"):
                assert content.count("<v />") == 2
                content = content.replace("<v />", "<v>3</v>", 1)
                content = content.replace('<c r="A3">', '<c r="A3" t="str">').replace("<v />", "<v></v>", 1)
            new.writestr(name, content)
    assert hb.read_reports(changed, STUDY) == hb.Reports.from_outputs(STUDY.mechanisms["m"], [3, 4])


def two_sheets(book: Workbook) -> None:
    for name, state in (("Old", "hidden"), ("More", "visible")):
        sheet = book.create_sheet(name, 0 if state == "hidden" else None)
        sheet.sheet_state = state
        sheet.append(["output"])
        sheet.append([9])


def test_the_first_sheet_that_can_be_seen_is_read_and_others_are_told(tmp_path: Path) -> None:
    path = workbook(tmp_path / "r.xlsx", [("output",), (3,), (4,)], two_sheets)
    with pytest.warns(hb.HubbubWarning, match=r"sheet Data of Data and More is read; name another one as r.xlsx#SHEET"):
        assert hb.read_reports(path, STUDY).users == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert hb.read_reports(f"{path}#Old", STUDY).users == 1
        assert hb.read_reports([f"{path}#More", f"{path}#Data"], STUDY).users == 3
    for twice in (f"{path}#Data", str(path)):
        with pytest.raises(hb.IntakeError) as caught:
            hb.read_reports([f"{path}#Data", twice], STUDY)
        assert caught.value.code == "named-twice"
    with pytest.raises(hb.IntakeError) as caught:
        hb.read_reports(f"{path}#Dta", STUDY)
    assert caught.value.code == "no-table"
    assert "'Data'" in caught.value.expected


def test_sheets_are_counted_into_a_tally_once_each(tmp_path: Path) -> None:
    path = workbook(tmp_path / "r.xlsx", [("output",), (3,), (4,)], two_sheets)
    tally = hb.collect(STUDY, f"{path}#Data", tmp_path / "t.tally.parquet")
    tally = hb.collect(STUDY, [f"{path}#Data", f"{path}#More"], tmp_path / "t.tally.parquet")
    assert (tally.users, len(tally.sources)) == (3, 2)


def test_merged_cells_and_hidden_rows_are_told(tmp_path: Path) -> None:
    def change(book: Workbook) -> None:
        book.active.merge_cells("A2:A4")
        book.active.merge_cells("C1:D1")  # of columns that are not read
        book.active.row_dimensions[5].hidden = True

    rows = [("output", "user", "x"), (3, 1), (4, 2), (4, 3), (5, 4)]
    path = workbook(tmp_path / "r.xlsx", rows, change)
    plan = plan_reading(path, STUDY, allow_rejects="99%")
    assert [note for note in plan.notes if note[-1] != "x"][:2] == [
        f"{path}: of merged cells (A2:A4) only the first has an entry, the others are empty",
        f"{path}: 1 hidden row of the sheet is read",
    ]
    assert rejected(path) == (2, Counter({"no-output": 2}))


def test_a_stray_cell_far_away_is_refused_before_room_is_made(tmp_path: Path) -> None:
    path = workbook(tmp_path / "r.xlsx", [("output",), (3,)], lambda book: book.active.cell(1_000_000, 16_000, 1))
    with pytest.raises(hb.IntakeError) as caught:
        hb.read_reports(path, STUDY)
    assert caught.value.code == "corrupt-file"
    assert caught.value.got == "entries up to row 1,000,000 and column WQJ"


def test_a_row_that_the_library_loses_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = workbook(tmp_path / "r.xlsx", [("output",), (3,), (4,)])
    monkeypatch.setattr(excel.ExcelSource, "_row", lambda self, number: [["output"], [3.0], [""]][number - 1])
    with pytest.raises(hb.IntakeError) as caught:
        hb.read_reports(path, STUDY)
    assert caught.value.code == "rows-lost"


@pytest.mark.parametrize("ending", [".xls", ".ods", ".xlsb"])
def test_other_workbooks_get_a_remedy(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"r{ending}"
    path.write_bytes(b"something")
    with pytest.raises(hb.IntakeError) as caught:
        hb.read_reports(path, STUDY)
    assert caught.value.code == "unknown-format"
    assert caught.value.remedy == "open it in its program and save it as .xlsx"


def test_damaged_workbooks_are_refused(tmp_path: Path) -> None:
    good = workbook(tmp_path / "r.xlsx", [("output",), (3,)]).read_bytes()
    middle = good.index(b"xl/worksheets/sheet1.xml") + 60
    contents = [b"", b"PK\3\4", good[:-30], good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1 :]]
    ole = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(1000)  # the container of encrypted workbooks
    for place, content in enumerate([*contents, ole]):
        path = tmp_path / f"{place}.xlsx"
        path.write_bytes(content)
        with pytest.raises(hb.HubbubError) as caught:
            hb.read_reports(path, STUDY)
        assert caught.value.code == "corrupt-file", place


def test_an_empty_sheet_has_no_reports(tmp_path: Path) -> None:
    for rows in ([], [("output",)]):
        with pytest.raises(hb.ReportsError):
            hb.read_reports(workbook(tmp_path / "r.xlsx", rows), STUDY)


def test_values_of_a_workbook_are_privatized(tmp_path: Path) -> None:
    bins = hb.Bins([0, 5, 10])
    study = hb.Study(bins, {"m": hb.RandomizedResponse(bins, 40.0)})
    path = workbook(tmp_path / "v.xlsx", [("value",), (2,), (7.25,), (5,)])
    privatize_file(path, study, None, tmp_path / "out.csv", rng=1)
    assert (tmp_path / "out.csv").read_text().split() == ["output", "0", "1", "1"]


def test_the_terminal_reads_a_workbook(tmp_path: Path) -> None:
    workbook(tmp_path / "r.xlsx", [("output",), *[(3,)] * 20])
    (tmp_path / "study.toml").write_text(
        'version = 1\n[domain]\nkind = "integers"\nlow = 0\nhigh = 9\n[mechanisms.m]\nkind = "krr"\nepsilon = 2.0\n'
    )
    done = hubbub("estimate", "study.toml", "r.xlsx#Data", "--quick", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["users"] == 20
