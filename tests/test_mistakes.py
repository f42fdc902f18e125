"""Mistakes that people make, and what they are told.

The mistakes are tables in `mistakes/*.toml`, one file for each part of the library. A table has

- `do`: the mistake itself, an expression over the names of this module;
- `files` (optional): an expression for {name: text}, the files in the folder where the mistake is made;
- `error`, `code` (optional) and `where`: the class of the error, the code of its cause and the place, all exact;
- `words`: what any wording of the message must say, such as the value that was given, the limit and the field. Case
  does not matter, and `a|b` means either. `where` is not searched: it is pinned already.
"""

from __future__ import annotations

import contextlib
import functools
import math
import re
import sqlite3
import sys
import tempfile
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import hubbub
from damaging import parts_of_tally, small_tally, write_forged
from hubbub import HubbubError
from hubbub.auditing import audit_study
from hubbub.cluster import ClusterReports, connect
from hubbub.core.locks import exclusive_lock
from hubbub.intake.design_tables import read_losses, read_pairs
from hubbub.intake.privatizing.api import privatize_file
from hubbub.intake.privatizing.device_tables import export_tables
from hubbub.intake.study_files import write_template
from hubbub.likelihood import ReportsInParts

hb: Any = hubbub  # mistakes are made in notebooks, where no type checker looks on
IN_EXPRESSIONS_ONLY = (math, audit_study, ClusterReports, export_tables, write_template, read_losses, read_pairs)

COIN = hb.Categories(["yes", "no"])
COLOURS = hb.Categories(["red", "green", "blue"])
AGES = hb.Integers(18, 99)
DIGITS = hb.Integers(0, 9)
HOURS = hb.Bins([0, 6, 12, 18, 24])
GRID = hb.Grid(4, 3, cell=1.0)
LAND = hb.Grid(4, 3, cell=1.0, cells=[0, 1, 2, 5])
CITY = hb.Grid.over(south=37.7, west=-122.5, north=37.8, east=-122.4, columns=4, rows=3)
SHORE = hb.Grid.over(south=37.7, west=-122.5, north=37.8, east=-122.4, columns=4, rows=3, cells=[0, 1])

ANSWER = hb.RandomizedResponse(COIN, 1.0)
TABLED = hb.Matrix(COIN, ["x", "y"], [[0.6, 0.4], [0.5, 0.5]])
COLOUR = hb.RandomizedResponse(COLOURS, 1.0)
AGE = hb.TruncatedGeometric(AGES, 0.5)
BOTH = hb.Split(tea=ANSWER, hue=COLOUR)
PAIRS = hb.Reports.from_outputs(BOTH, [("yes", "red"), ("no", "blue"), ("no", "green")])
NOISY = hb.Geometric(DIGITS, 0.5)
PLACE = hb.PlanarGeometric(LAND, 1.0)
PAIR = hb.PlanarGeometric(GRID, 1.0, truncated=False)
BITS = hb.Rappor(DIGITS, 1.0)
HASHED = hb.LocalHashing(DIGITS, 1.0)
SUBSET = hb.SubsetSelection(DIGITS, 1.0)
REGION = hb.Cloaking(hb.Integers(0, 3), ["low", "low", "high", "high"])
TALL = hb.Matrix(hb.Integers(1, 3), [1, 2], [[2 / 3, 1 / 3], [1 / 2, 1 / 2], [1 / 3, 2 / 3]])
SINGULAR = hb.Matrix(COLOURS, ["x", "y", "z"], [[0.5, 0.25, 0.25], [0.5, 0.25, 0.25], [0.25, 0.5, 0.25]])
SKEWED = hb.Matrix(COLOURS, ["x", "y", "z"], [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]])
FAR = hb.PlanarGeometric(hb.Grid(50, 50), 0.01, truncated=False)
UNUSED = hb.Matrix(COIN, ["x", "y", "never"], [[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]])

ANSWERS = hb.Reports.from_counts(ANSWER, {"yes": 600, "no": 400})
THIN = hb.Reports.from_counts(SKEWED, [9, 1, 0])
ALL_COLOURS = hb.Reports.from_counts(COLOUR, [5, 6, 7])
HALVES = ReportsInParts([ANSWERS, ANSWERS])


class Leaky(hubbub.Mechanism):
    """A researcher's own mechanism whose rows do not sum to 1."""

    domain = COIN
    epsilon = 1.0

    @property
    def outputs(self) -> np.ndarray[Any, Any]:
        return np.array(["u", "v"])

    def matrix(self) -> np.ndarray[Any, Any]:
        return np.array([[0.5, 0.6], [0.5, 0.5]])


STUDY = """\
version = 1
[domain]
kind = "integers"
low = 0
high = 9
[mechanisms.light]
kind = "truncated-geometric"
epsilon = 1.0
"""
TWO = STUDY + '[mechanisms.strong]\nkind = "truncated-geometric"\nepsilon = 0.5\n'
RAPPOR = STUDY.replace("truncated-geometric", "rappor")
HASHING = STUDY.replace("truncated-geometric", "local-hashing")
COIN_STUDY = """\
version = 1
[domain]
kind = "categories"
labels = ["yes", "no"]
[mechanisms.coin]
kind = "randomized-response"
epsilon = 1.0
"""
MAP = """\
version = 1
[domain]
kind = "grid"
columns = 4
rows = 3
[mechanisms.map]
kind = "planar-geometric"
epsilon = 1.0
truncated = false
"""
BOX = MAP.replace("columns", "south = 52.4\nwest = 13.2\nnorth = 52.6\neast = 13.6\ncolumns")


RING = [[-122.48, 37.72], [-122.44, 37.72], [-122.44, 37.76], [-122.48, 37.76], [-122.48, 37.72]]


def area(*rings: Any, kind: str = "Polygon", **properties: object) -> dict[str, Any]:
    """A feature; without rings, a square in CITY."""
    return {"type": "Feature", "properties": properties, "geometry": {"type": kind, "coordinates": rings or [RING]}}


def moved(change: Any) -> dict[str, Any]:
    """A feature whose points somebody did something to."""
    return area([list(change(x, y)) for x, y in RING])


def areas(*features: object, **members: object) -> dict[str, Any]:
    return {"type": "FeatureCollection", "features": list(features), **members}


def read_study() -> object:
    return hb.read_study("study.toml")


def read_reports(*paths: str) -> object:
    return hb.read_reports(paths or "reports.csv", hb.read_study("study.toml"))


def study(text: str) -> dict[str, str]:
    return {"study.toml": text}


def reports(text: str, study: str = STUDY) -> dict[str, str]:
    return {"study.toml": study, "reports.csv": text}


def parquet_of(name: str, **columns: list[int]) -> str:
    pd.DataFrame(columns).to_parquet(name)
    return name


def sqlite_of(name: str, column: str) -> str:
    with sqlite3.connect(name) as connection:
        connection.execute(f"CREATE TABLE reports ({column} INTEGER)")
        connection.execute("INSERT INTO reports VALUES (3)")
    connection.close()
    return f"sqlite:///{name}#reports"


def privatize(mechanism: str | None = None, path: str = "r.csv") -> object:
    return privatize_file("v.csv", hb.read_study("study.toml"), mechanism, path)


def privatized_for_another() -> object:
    privatize()
    return hb.read_reports("r.csv", hb.read_study("other.toml"))


def values(text: str, study: str = STUDY) -> dict[str, str]:
    return {"study.toml": study, "v.csv": text}


def without_dask() -> object:
    with mock.patch.dict(sys.modules, {"distributed": None}):
        return connect("tcp://127.0.0.1:8786")


def locked_page() -> None:
    with exclusive_lock(Path("report.html")):
        hb.report(ANSWERS, "report.html", quick=True)


def page_over_a_folder() -> None:
    Path("report.html").mkdir()
    hb.report(ANSWERS, "report.html")


def changed_tally() -> object:
    """Move a user from one output to another, as a flipped bit does."""
    rows, document = parts_of_tally(small_tally("singles", Path()))
    at = rows.column_names.index("users")
    rows = rows.set_column(at, rows.schema.field(at), pa.chunked_array([pa.array([1, 2, 1, 2, 2], pa.int64())]))
    return hb.read_tally(write_forged(Path("changed.tally.parquet"), rows, document)).reports


def renamed_source() -> object:
    rows, document = parts_of_tally(small_tally("singles", Path()))
    document["sources"][0]["name"] = "tuesday.csv"
    return hb.read_tally(write_forged(Path("changed.tally.parquet"), rows, document))


def continued_design(epsilon: float, keep: int | None = None) -> object:
    """Go on with the file of a design for another epsilon, or with what is left of it."""
    path = Path("kept.npz")
    hb.design(COLOURS, 1.0, goal="information", path=path)
    path.write_bytes(path.read_bytes()[:keep])
    return hb.design(COLOURS, epsilon, goal="information", path=path)


class Told(NamedTuple):
    """What an error says. The error itself would keep the frames of its traceback, and the files open in them."""

    error: str
    code: str
    where: str
    parts: tuple[str, ...]
    wording: str


@dataclass(frozen=True)
class Mistake:
    """One table of `mistakes/*.toml`."""

    name: str
    do: str
    error: str
    where: str
    words: tuple[str, ...]
    files: str = "{}"
    code: str = ""

    def lacks(self, told: Told) -> list[str]:
        """The words that the message does not say."""
        return [word for word in self.words if not any(says(told.wording, either) for either in word.split("|"))]

    def is_told_by(self, told: Told) -> bool:
        return (self.error, self.code, self.where) == (told.error, told.code, told.where) and not self.lacks(told)


def says(wording: str, word: str) -> bool:
    """Whether the word occurs; a number must not be a piece of another number."""
    before = r"(?<![\d.,-])" if word[0] in "-0123456789" else ""
    after = r"(?!\d|[.,]\d)" if word[-1].isdigit() else ""
    return re.search(before + re.escape(word) + after, wording, re.IGNORECASE) is not None


MISTAKES = [
    Mistake(name, **{**table, "words": tuple(table["words"])})
    for path in sorted(Path(__file__).with_name("mistakes").glob("*.toml"))
    for name, table in tomllib.loads(path.read_text(encoding="utf-8")).items()
]


def evaluate(expression: str) -> Any:
    return eval(expression, globals())  # noqa: S307  the expressions are this repository's own


@functools.cache
def told_of(mistake: Mistake) -> Told:
    """Make the mistake in a folder of its own, once; anything but a HubbubError passes through and fails the test."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, text in evaluate(mistake.files).items():
            Path(name).write_text(text, encoding="utf-8")
        with pytest.raises(HubbubError) as caught:
            evaluate(mistake.do)
    error = caught.value
    wording = (error.what, error.got, error.expected, error.remedy)
    return Told(type(error).__name__, error.code, error.where, (*wording, error.where), "\n".join(wording))


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_is_told(mistake: Mistake) -> None:
    told = told_of(mistake)
    assert (told.error, told.code, told.where) == (mistake.error, mistake.code, mistake.where)
    assert mistake.lacks(told) == [], told
    for part in told.parts:
        assert part.strip() == part, told
        assert len(part.splitlines()) == 1, told


def test_no_two_mistakes_are_told_alike() -> None:
    times = Counter(told_of(mistake).parts for mistake in MISTAKES)
    assert [mistake.name for mistake in MISTAKES if times[told_of(mistake).parts] > 1] == []
    assert len({mistake.name for mistake in MISTAKES}) == len(MISTAKES)


def test_the_words_of_a_mistake_are_its_own() -> None:
    # Words that another mistake's message would satisfy check nothing. One neighbour is let pass: "3 values are not in
    # the domain" says all that "a value is not in the domain" does.
    for mistake in MISTAKES:
        others = [other.name for other in MISTAKES if other != mistake and mistake.is_told_by(told_of(other))]
        assert len(others) <= 1, f"{mistake.name} has the words of {', '.join(others)}"
        assert 2 <= len(mistake.words) <= 5, mistake.name


def test_a_number_is_not_found_inside_another() -> None:
    assert all(says("from -1 to 9, at most 500.", number) for number in ("-1", "9", "500"))
    assert not any(says("0.1, -2, 10 and 3,000", number) for number in ("0", "1", "2", "3", "000"))


def test_a_message_shows_its_parts_and_the_code_of_a_cause_in_a_file() -> None:
    error = hb.IntakeError("this", where="there", got="3", expected="4", remedy="do", code="odd")
    assert str(error) == "this [odd]\n  where:    there\n  got:      3\n  expected: 4\n  remedy:   do"


def test_every_kind_of_error_is_met() -> None:
    assert {mistake.error for mistake in MISTAKES} == {
        name
        for name in hubbub.__all__
        if isinstance(kind := getattr(hubbub, name), type) and issubclass(kind, HubbubError)
    } - {"HubbubError"}
