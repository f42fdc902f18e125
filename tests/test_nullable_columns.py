"""Columns with missing entries, in all the types that pandas, polars and Arrow have for them: the same counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.core.progress import finish
from hubbub.intake.in_memory_reading import read
from hubbub.intake.privatizing.api import privatize_file
from hubbub.intake.read_plan import plan_reading

DIGITS = hb.Integers(0, 9)
STUDY = hb.Study(DIGITS, {"m": hb.TruncatedGeometric(DIGITS, 0.5)})
EXPECTED = hb.Reports.from_outputs(STUDY.mechanisms["m"], [3, 4, 4])
NUMBERS = [3, 4, None, 4]
TEXTS = ["3", "4", None, "4"]
ARROW_TYPES: dict[Any, list[Any]] = {
    pa.int8(): NUMBERS,
    pa.uint64(): NUMBERS,
    pa.float64(): NUMBERS,
    pa.decimal128(5, 2): NUMBERS,
    pa.string(): TEXTS,
    pa.large_string(): TEXTS,
    pa.string_view(): TEXTS,
    pa.dictionary(pa.int32(), pa.string()): TEXTS,
}
PANDAS: dict[str, Any] = {
    **{kind: pd.array(NUMBERS, dtype=kind) for kind in ("Int64", "Int8", "UInt16", "Float64", "Float32")},
    **{kind: pd.array(TEXTS, dtype=kind) for kind in ("string", "string[pyarrow]", "string[python]", "str")},
    **{
        f"ArrowDtype {kind}": pd.Series(pa.array(entries, kind), dtype=pd.ArrowDtype(kind))
        for kind, entries in ARROW_TYPES.items()
    },
    "category of texts": pd.Categorical(TEXTS),
    "category of numbers": pd.Categorical(NUMBERS),
    "category of Int64": pd.Series(pd.array(NUMBERS, dtype="Int64")).astype("category"),
    "category of string[pyarrow]": pd.Series(pd.array(TEXTS, dtype="string[pyarrow]")).astype("category"),
    "category of both": pd.Categorical([3, "4", None, "4"]),
    "category with more": pd.Categorical(TEXTS, categories=["9", "4", "3", "blue"]),
    "objects and NA": pd.Series([3, 4, pd.NA, 4], dtype=object),
    "objects and NaT": pd.Series([3, 4, pd.NaT, 4], dtype=object),
    "objects and None": pd.Series([3, "4", None, "4.0"], dtype=object),
    "objects and nan": pd.Series(["3", "4", np.nan, "4"], dtype=object),
    "sparse": pd.arrays.SparseArray([3.0, 4.0, np.nan, 4.0]),
}  # fmt: skip
POLARS: dict[str, Any] = {
    "categorical": pl.Series(TEXTS, dtype=pl.Categorical),
    "enum": pl.Series(TEXTS, dtype=pl.Enum(["4", "9", "3"])),
    "Int8": pl.Series(NUMBERS, dtype=pl.Int8),
    "Int128": pl.Series(NUMBERS, dtype=pl.Int128),
    "Float32": pl.Series(NUMBERS, dtype=pl.Float32),
    "nan": pl.Series([3.0, 4.0, float("nan"), 4.0]),
    "decimal": pl.Series(TEXTS).cast(pl.Decimal(10, 2)),
}
TABLES = {
    **{f"pandas {name}": pd.DataFrame({"output": column}) for name, column in PANDAS.items()},
    **{f"polars {name}": pl.DataFrame({"output": column}) for name, column in POLARS.items()},
    **{f"pyarrow {kind}": pa.table({"output": pa.array(entries, kind)}) for kind, entries in ARROW_TYPES.items()},
}


@pytest.mark.parametrize("name", TABLES)
def test_missing_outputs_are_rejected_rows_and_the_others_count(name: str) -> None:
    reports, summary = finish(read(plan_reading(TABLES[name], STUDY, allow_rejects=1)))
    assert reports == EXPECTED
    assert (summary.rows, dict(summary.rejected)) == (4, {"no-output": 1})
    with pytest.raises(hb.IntakeError) as caught:
        hb.read_reports(TABLES[name], STUDY)
    assert caught.value.code == "no-output"
    assert ", row 3, column output" in caught.value.where


@pytest.mark.parametrize("name", TABLES)
def test_missing_values_stop_privatizing(name: str, tmp_path: Path) -> None:
    table = TABLES[name]
    table = table.rename_columns(["value"]) if isinstance(table, pa.Table) else table.rename(**(
        {"columns": {"output": "value"}} if isinstance(table, pd.DataFrame) else {"mapping": {"output": "value"}}
    ))  # fmt: skip
    with pytest.raises(hb.IntakeError) as caught:
        privatize_file(table, STUDY, None, tmp_path / "out.csv")
    assert caught.value.code == "no-value"
    assert not (tmp_path / "out.csv").exists()


def test_missing_users_mechanisms_and_weights(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {
            "output": [3, 4, 5, 6],
            "user": pd.array([1, 2, None, 4], dtype="Int64"),
            "mechanism": pd.Categorical(["m", None, "m", "m"]),
            "weight": pd.array([1.5, 1.0, 1.0, None], dtype="Float64"),
        }
    )
    _, summary = finish(read(plan_reading(table, STUDY, allow_rejects="90%")))
    assert dict(summary.rejected) == {"no-user": 1, "no-mechanism": 1, "no-weight": 1}


@pytest.mark.parametrize(
    "column",
    [
        pd.to_datetime(["2026-11-17"]),
        pd.to_timedelta([5], unit="s"),
        pl.Series(["2026-11-17"]).str.to_date().to_arrow(),
    ],
    ids=["timestamps", "durations", "dates"],
)
def test_dates_and_times_are_no_outputs(column: Any) -> None:
    table = pa.table({"output": column}) if isinstance(column, pa.Array) else pd.DataFrame({"output": column})
    with pytest.raises(hb.IntakeError) as caught:
        hb.read_reports(table, STUDY)
    assert caught.value.code == "wrong-type"
    assert "days since the first one" in caught.value.remedy


def test_arrays_without_missing_entries_are_plain_arrays() -> None:
    answers = hb.Categories(["a", "b"])
    yes_no, digits = hb.RandomizedResponse(answers, 1.0), STUDY.mechanisms["m"]
    for numbers in (pd.Series([3, 4], dtype="Int64"), pd.Series([3, 4], dtype="float64[pyarrow]"), pl.Series([3, 4])):
        assert hb.Reports.from_outputs(digits, numbers) == hb.Reports.from_outputs(digits, [3, 4])
    for labels in (pd.Series(["a", "b"], dtype="category"), pl.Series(["a", "b"], dtype=pl.Categorical)):
        assert hb.Reports.from_outputs(yes_no, labels) == hb.Reports.from_outputs(yes_no, ["a", "b"])
    with pytest.raises(hb.DomainError, match="a number is missing"):
        hb.Bins([0, 5, 10]).locate(pd.Series([3, None], dtype="Int64"))
