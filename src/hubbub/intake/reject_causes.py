"""Why a row, or a whole source, is not taken: one code for each cause.

A row that is not taken is rejected: counted under its code, written to the file of rejects, and the run stops unless
so many were allowed. A source that cannot be read at all, or that would be counted twice, always stops the run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hubbub.core.errors import HubbubError, IntakeError, shorten

ROWS = {
    "too-few-fields": "the row has fewer fields than the header",
    "too-many-fields": "the row has more fields than the header",
    "bad-quotes": "text follows a closing quote",
    "unclosed-quote": "a quote is opened and never closed",
    "not-utf-8": "the row is not UTF-8",
    "nul-byte": "the row holds a NUL byte",
    "line-too-long": "the line is longer than any report",
    "not-json": "the line is not JSON",
    "not-an-object": "the line is JSON, but no object",
    "repeated-key": "a key occurs twice in the object",
    "nested-entry": "the entry is a list or an object",
    "no-mechanism": "the row names no mechanism",
    "no-output": "the row has no output",
    "no-value": "the row has no value to privatize",
    "no-user": "the row names no user",
    "no-group": "the row does not say which group it belongs to",
    "unknown-mechanism": "the study does not name this mechanism",
    "not-an-output": "the mechanism never sends this",
    "out-of-domain": "the output, or the value to privatize, is not in the domain",
    "not-a-number": "not a number, or a whole number written otherwise (1e3, a space)",
    "rounded-number": "a whole number that came as a float, and so large that it may have been rounded",
    "not-a-pair": "not written as column:row",
    "not-hashed": "not written as seed:bucket",
    "no-such-bucket": "the bucket is beyond the last one",
    "wrong-bits": "bits of the wrong length, or not bits",
    "spare-bits": "bits beyond the last value are set",
    "subset-size": "a subset of the wrong size",
    "number-for-text": "a number where a text or bytes are meant",
    "bad-output": "the output cannot be read",
    "impossible-output": "no value of the domain can have produced this output",
    "impossible-report": "each output is possible, but no value of the domain can have produced all of them",
    "too-many-reports": "the user sent more than the study allows",
    "user-counted-before": "the user is in the tally already",
}

SOURCES = {
    "no-such-file": "there is nothing at the path",
    "not-a-file": "the path is a device, a pipe or a socket",
    "no-files": "the folder or pattern holds no file of reports",
    "unknown-format": "the ending is not one of those that are read",
    "not-readable": "the operating system refuses to read it",
    "corrupt-file": "the file is damaged, cut short, or not what its ending says",
    "corrupt-compression": "the compressed data are damaged or cut short",
    "wrong-encoding": "the file is UTF-16 or UTF-32",
    "no-header": "the first line names no columns",
    "wrong-separator": "the columns are separated by something else than the file's ending says",
    "no-column": "a column that is needed is missing",
    "repeated-column": "a column that is needed is there twice",
    "nearly-a-column": "a column's name is nearly one that means something",
    "weighted-rows": "a column says that rows stand for more or fewer than one person each",
    "nested-column": "a column holds lists or tables",
    "wrong-type": "a column's type cannot hold what it should",
    "no-mechanism-column": "rows do not say which of several mechanisms was used",
    "users-in-some": "some sources say who sent each row and some do not",
    "named-twice": "a source is named several times",
    "same-content": "two files hold exactly the same bytes",
    "changed-meanwhile": "the file changed while it was read",
    "not-a-source": "neither a path, a table nor the address of a database",
    "bad-address": "the address of a database is not complete",
    "no-driver": "the driver of this kind of database is not installed",
    "no-connection": "the database does not answer",
    "no-table": "the table is not there, or the query fails",
    "too-many-groups": "the column to group by has too many values",
    "not-a-tally": "the file is not a tally",
    "unknown-version": "the tally was written by a newer hubbub",
    "damaged-tally": "the tally does not hold what it says",
    "other-study": "the tally is of another study",
    "other-stamp": "the reports are stamped with another study",
    "locked": "another process is writing this file",
    "users-unknown": "the tally does not know who was counted",
    "wrong-key": "the key is not the one the users' digests were made with",
    "counted-twice": "the same users, or the same file, are in both tallies",
    "rejected-rows": "more rows were rejected than allowed",
    "not-written": "the result cannot be written",
    "out-of-space": "the disk, or the memory, is full",
    "rows-lost": "rows were lost on the way: a fault of hubbub, or of a file that is being written",
}

CAUSES = ROWS | SOURCES


class Fault(NamedTuple):
    """Why one entry of a row is not taken: the column at fault ("" for the whole row), and the message."""

    column: str
    error: HubbubError

    @property
    def code(self) -> str:
        """The code of the cause."""
        return self.error.code


def refusal(code: str, what: str, *, where: str, got: object, expected: str, remedy: str) -> IntakeError:
    """Return the error for a source that is not taken."""
    assert code in CAUSES, code  # noqa: S101  # a code that is not listed cannot be looked up
    return IntakeError(what, where=where, got=got, expected=expected, remedy=remedy, code=code)


def empty(column: str) -> Fault:
    """Return the fault of a row with nothing in a column that must be filled."""
    return Fault(
        column,
        refusal(
            f"no-{column}" if f"no-{column}" in ROWS else "no-group",
            f"a row has no {column}",
            where="",
            got="nothing",
            expected=f"the column {column} filled in every row",
            remedy="complete the row, or leave it out on purpose",
        ),
    )


def unnamed(name: object, known: Iterable[str]) -> Fault:
    """Return the fault of a row whose mechanism is none of those that the study names."""
    if name is None or name == "":
        return empty("mechanism")
    return Fault(
        "mechanism",
        refusal(
            "unknown-mechanism",
            "a row names a mechanism that the study does not",
            where="",
            got=shorten(name),
            expected=f"one of {', '.join(known)}",
            remedy="add it to the study, or correct the rows",
        ),
    )


def fields(found: int, expected: int, line: str) -> Fault:
    """Return the fault of a row with too many or too few fields."""
    return Fault(
        "",
        refusal(
            "too-many-fields" if found > expected else "too-few-fields",
            "a row has too many or too few fields",
            where="",
            got=f"{found} in the row {shorten(line)}",
            expected=f"{expected}, as in the first line",
            remedy="correct the row; a text with a comma needs quotes",
        ),
    )
