"""Numbers that pages quote from benchmarks: a comment below a paragraph or table names the rows they come from.

    <!-- measured
    75.9% | intervals | k-RR, six zeros: six values | chi-square alone
    93.3% | intervals | * | lowest
    -->

A line has the number as the page writes it, the table (`benchmarks/results/TABLE.json`), the row's problem, and the
words that stand before the number in the row. Without words, the number is in the column "reached". If the problem has
a `*`, it stands for all rows that match, and the words are `lowest`, `highest` (of the first numbers in "reached") or
`rows`. The number may be rounded, and a share written in percent.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

COMMENT = re.compile(r"^<!-- measured\n(?P<lines>.*?)^-->$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"(?<![\w.,])(?P<digits>\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?)(?P<percent>%?)")
Rows = list[dict[str, Any]]


class Quoted(NamedTuple):
    """A number as a page writes it: its value, how far rounding may have moved it, percent or not, and its unit."""

    value: float
    rounding: float
    percent: bool
    unit: str


def mistakes(page: str, tables: dict[str, Rows]) -> list[str]:
    """Return what is wrong with the numbers that a page quotes: one sentence for each."""
    wrong = []
    for comment in COMMENT.finditer(page):
        above = page[: comment.start()].rstrip().rpartition("\n\n")[2]
        for line in comment["lines"].splitlines():
            number, *source = (part.strip() for part in line.split(" | "))
            if not re.search(rf"(?<![\w.,]){re.escape(number)}(?!\w|[.,]\d)", above):
                wrong.append(f"'{number}' is not in the paragraph or table above its comment")
            try:
                cell = measured(tables, *source)
            except (LookupError, TypeError) as error:
                wrong.append(f"'{line}': {error}")
            else:
                if not agrees(quoted(number), cell):
                    wrong.append(f"the page says {number}, measured was '{cell}' ({' | '.join(source)})")
    return wrong


def measured(tables: dict[str, Rows], table: str, problem: str, words: str | None = None) -> str:
    """Return the part of a row that holds the number, or the lowest, the highest or the number of several rows."""
    rows: list[dict[str, str]] = [
        row for row in tables[table] if fnmatchcase(row["problem"], problem) or row["problem"] == problem
    ]
    if "*" in problem:
        if words == "rows":
            return str(len(rows))
        reached = [row["reached"] for row in rows if NUMBER.search(row["reached"])]
        ordered = sorted(reached, key=_first_number)
        return ordered[{"lowest": 0, "highest": -1}[str(words)]]
    texts = [f"{row['measured']} | {row['reached']}" for row in rows]
    if words is None:
        parts = [row["reached"] for row in rows]
    else:
        after = re.compile(rf"(?<!\w){re.escape(words)}[ |:]+(.*?)(?=; |, | \| |$)")
        parts = [found[1] for found in map(after.search, texts) if found]
    if len(parts) != 1:
        raise LookupError(f"{len(parts)} rows fit instead of one")
    return parts[0]


def quoted(number: str) -> Quoted:
    """Read a number as a page writes it."""
    found = NUMBER.match(number)
    if not found:
        raise ValueError(f"'{number}' does not begin with a number")
    digits = found["digits"].replace(",", "")
    decimals = len(digits.partition(".")[2])
    return Quoted(float(digits), 0.5 * 10.0**-decimals, bool(found["percent"]), number[found.end() :].strip())


def agrees(page: Quoted, cell: str) -> bool:
    """Return whether one of the numbers in a cell is the page's, up to rounding."""
    for found in NUMBER.finditer(cell):
        value = float(found["digits"].replace(",", ""))
        if page.percent and not found["percent"]:
            value *= 100.0
        if abs(value - page.value) <= page.rounding * (1.0 + 1e-9) and page.unit in cell[found.end() :]:
            return True
    return False


def _first_number(cell: str) -> float:
    found = NUMBER.search(cell)
    assert found is not None
    return float(found["digits"].replace(",", ""))
