"""Why a row or a whole source is rejected: one code for each cause, and what it means.

A rejected row is counted under its code and listed in the rejects file; the run stops if more rows are rejected than
were allowed. A source that cannot be read at all, or that would be counted twice, always stops the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from hubbub.core.errors import HubbubError, IntakeError, shorten
from hubbub.core.text import plural

ROWS = {
    "too-few-fields": "the row has fewer fields than the header",
    "too-many-fields": "the row has more fields than the header",
    "bad-quotes": "text follows a closing quote",
    "unclosed-quote": "a quote is opened but never closed",
    "not-utf-8": "the row is not valid UTF-8",
    "nul-byte": "the row contains a NUL byte",
    "line-too-long": "the line is too long for a report",
    "not-json": "the line is not valid JSON",
    "not-an-object": "the line is JSON, but not an object",
    "repeated-key": "the object has the same key twice",
    "nested-entry": "the entry is a list or an object",
    "no-mechanism": "the row names no mechanism",
    "no-output": "the row has no output",
    "attribute-missing": "the row lacks the output of an attribute, and its mechanism sends all of them",
    "several-attributes": "the row has outputs of several attributes, and its mechanism sends one",
    "not-attributes": "the output is not an object with an entry for each attribute",
    "two-outputs": "the row has an output in the column output and in those of attributes",
    "no-place": "the row lacks a coordinate of its place: lat or lon, x or y",
    "not-a-coordinate": "a coordinate is not a finite number",
    "impossible-place": "the latitude is beyond 90 degrees, or the longitude beyond 360",
    "no-value": "the row has no value to privatize",
    "no-user": "the row names no user",
    "no-group": "the row names no group",
    "no-time": "the row has no time",
    "not-a-time": "the time is not an ISO date or time, such as 2026-11-17",
    "no-mark": "the row has no entry in the column of the watermark",
    "no-weight": "the row has no weight",
    "not-a-weight": "the weight is not a positive number",
    "two-weights": "the rows of the user have different weights, strata or clusters",
    "no-stratum": "the row names no stratum",
    "no-cluster": "the row names no cluster",
    "unknown-mechanism": "the study has no mechanism of that name",
    "not-an-output": "the mechanism never sends this output",
    "out-of-domain": "the output, or the value to privatize, is not in the domain",
    "not-a-number": "not a whole number in plain digits (1e3, 34.5 or a space are refused)",
    "spreadsheet-error": "the cell holds an error, such as #REF!",
    "unsaved-formula": "the cell's formula has no saved result",
    "rounded-number": "a whole number stored as a float, and so large that it may have been rounded",
    "not-a-pair": "not of the form column:row",
    "not-hashed": "not of the form seed:bucket",
    "no-such-bucket": "the bucket number is too large",
    "not-a-hash": "not of the form hash:bits",
    "no-such-hash": "the number of the hash is too large",
    "not-a-cohort": "not of the form cohort:bits",
    "no-such-cohort": "the number of the cohort is too large",
    "wrong-bits": "the wrong number of bits, or not bits at all",
    "spare-bits": "bits beyond the last value are set",
    "subset-size": "the subset has the wrong size",
    "number-for-text": "a number where text or bytes are expected",
    "bad-output": "the output cannot be read",
    "impossible-output": "no value of the domain can produce this output",
    "impossible-report": "each output is possible, but no value of the domain can produce all of them",
    "too-many-reports": "the user sent more reports than the study allows",
    "user-counted-before": "the user is already in the tally",
}

SOURCES = {
    "no-such-file": "there is no file at that path",
    "not-a-file": "the path is a folder, a device, a pipe or a socket",
    "no-files": "the folder or pattern contains no file of reports",
    "unknown-format": "files with this extension are not read",
    "not-readable": "the operating system refuses to read the file",
    "corrupt-file": "the file is damaged, truncated, or not what its extension says",
    "corrupt-compression": "the compressed data are damaged or truncated",
    "wrong-encoding": "the file is UTF-32, or damaged UTF-16",
    "no-header": "the header names no columns, or cannot be read",
    "wrong-separator": "it cannot be told what separates the columns",
    "mixed-decimals": "a column has decimal commas and decimal points",
    "no-column": "a required column is missing",
    "unknown-attribute": "a column output.NAME is about an attribute that the study does not have",
    "repeated-column": "a required column is there twice",
    "nearly-a-column": "a column's name is nearly that of a column we read",
    "weighted-rows": "a column seems to say that a row stands for more or fewer than one person",
    "weights-in-some": "some sources have weights, strata or clusters and some do not",
    "nested-column": "a column contains lists or tables",
    "wrong-type": "a column has a type that cannot hold its role",
    "wrong-coordinates": "nearly all places lie far from the study's map: another unit, order or projection",
    "no-mechanism-column": "the study has several mechanisms, and the rows do not say which was used",
    "users-in-some": "some sources name the user of each row and some do not",
    "named-twice": "a source is named several times",
    "same-content": "two files contain exactly the same bytes",
    "changed-meanwhile": "the file changed while it was read",
    "not-a-source": "not a path, a table or the address of a database",
    "bad-address": "the address of the database is incomplete or malformed",
    "no-driver": "the driver for this kind of database is not installed",
    "no-connection": "the database does not answer",
    "no-table": "the table does not exist, or the query fails",
    "not-a-mark": "an entry of the watermark does not sort: not a whole number, date or ISO time",
    "other-mark": "the source was counted with another watermark, other columns, or without a watermark",
    "mark-moved-back": "the source ends before its watermark",
    "rows-changed": "rows at the watermark changed since they were counted",
    "too-many-at-mark": "too many rows at the watermark to be remembered",
    "overlapping-sources": "two sources with a watermark may hold the same rows",
    "too-many-groups": "the column to group by has too many values",
    "not-a-tally": "the file is not a tally",
    "unknown-version": "the tally was written by a newer version of hubbub",
    "damaged-tally": "the content of the tally does not match its description",
    "other-study": "the tally belongs to another study",
    "other-groups": "the tally is divided into other groups, or into none",
    "other-stamp": "the reports are stamped with another study",
    "locked": "another process is writing this file",
    "users-unknown": "the tally does not record which users were counted",
    "wrong-key": "the key is not the one that the user digests were made with",
    "counted-twice": "the same users, or the same file, are in both tallies",
    "no-reports": "there are no reports, or none that can be counted",
    "rejected-rows": "more rows were rejected than allowed",
    "not-written": "the result cannot be written",
    "out-of-space": "the disk or the memory is full",
    "rows-lost": "rows were lost while reading: a bug in hubbub, or a file that is still being written",
}

CAUSES = ROWS | SOURCES


class Fault(NamedTuple):
    """Why a row is rejected: the column at fault ("" for the whole row), and the message."""

    column: str
    error: HubbubError

    @property
    def code(self) -> str:
        """The code of the cause."""
        return self.error.code


def refusal(code: str, what: str, *, where: str, got: object, expected: str, remedy: str) -> IntakeError:
    """Return the error for a source that is refused."""
    assert code in CAUSES, code  # noqa: S101  # an unlisted code could not be looked up
    return IntakeError(what, where=where, got=got, expected=expected, remedy=remedy, code=code)


def near_column(where: str, name: str, role: str, remedy: str) -> IntakeError:
    """Return the error for a column whose name is nearly that of a role; `remedy` is for one that holds just that."""
    return refusal(
        "nearly-a-column",
        f"a column's name is nearly {role}",
        where=where,
        got=shorten(name),
        expected=f"{role}, or a clearly different name",
        remedy=f"{remedy}; otherwise give it another name",
    )


def row_fault(
    code: str, what: str, *, got: object, expected: str, remedy: str, column: str = "", where: str = ""
) -> Fault:
    """Return the fault of a row; its place is added by whoever rejects it."""
    return Fault(column, refusal(code, what, where=where, got=got, expected=expected, remedy=remedy))


def missing_entry(column: str) -> Fault:
    """Return the fault of a row in which a required entry is missing."""
    return row_fault(
        f"no-{column}" if f"no-{column}" in ROWS else "no-group",
        f"the row has no {column}",
        got="nothing",
        expected=f"an entry in the column {column} in every row",
        remedy="complete the row or remove it",
        column=column,
    )


def unknown_mechanism(name: object, known: Iterable[str]) -> Fault:
    """Return the fault of a row whose mechanism is not in the study."""
    if name is None or name == "":
        return missing_entry("mechanism")
    return row_fault(
        "unknown-mechanism",
        "the study has no mechanism of that name",
        got=shorten(name),
        expected=f"one of {', '.join(known)}",
        remedy="add the mechanism to the study, or correct the rows",
        column="mechanism",
    )


def rejected_lines(rejected: Mapping[str, int]) -> list[str]:
    """Return how many rows were rejected, and why: a line for each cause."""
    counted = sorted((code, rows) for code, rows in rejected.items() if rows)
    return [f"{plural(rows, 'row')} rejected ({code}): {CAUSES[code]}" for code, rows in counted]
