"""All errors, each with a message of five parts.

HubbubError (a ValueError)
├── DomainError          a domain that cannot be built, or a value outside it
├── MechanismError       invalid parameters of a mechanism, or a request that it cannot meet
├── OutputError          an output that its mechanism can never send
├── ReportsError         reports that cannot be built or merged
│   └── ImpossibleReportError   well-formed outputs that no value of the domain can produce
├── EstimateError        a method that these reports do not allow
├── SettingError         a keyword or option that does not apply, or has a wrong value
├── RegionsError         polygons that cannot be read, or do not fit the grid
├── DistanceError        vectors that are not distributions, or a distance too large to compute
├── StudyError           a study file with a mistake
├── IntakeError          a file of reports that cannot be read as it stands
└── ClusterError         a cluster that cannot be reached, or fails

HubbubWarning (a UserWarning): the call succeeded, but something was not used or not checked
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from functools import partial
from typing import TypeVar

from hubbub.core.redaction import redact

PARTS = ("what", "where", "got", "expected", "remedy", "code")  # of a message

ErrorKind = TypeVar("ErrorKind", bound="HubbubError")


class HubbubError(ValueError):
    """A mistake in the input, with a message of five parts.

    Every message says what is wrong, where, what it got, what it expected and how to fix it. The parts are keywords
    without defaults, so that none can be forgotten. Errors in a file or in one of its rows also have a short `code`, by
    which causes are counted and looked up. Passwords are hidden in every part: a wrong argument may be the address of a
    database.

    Parameters
    ----------
    what
        What is wrong, in a few words.
    where
        The place: a keyword, a file and its line, a field of a study.
    got
        What was passed.
    expected
        What could have been passed.
    remedy
        How to correct it.
    code
        A short name for the cause, such as ``out-of-domain``; often empty.

    Examples
    --------
    >>> import hubbub as hb
    >>> try:
    ...     hb.Integers(9, 0)
    ... except hb.HubbubError as error:
    ...     print(error.got, "|", error.remedy)
    9, 0 | swap the two
    """

    def __init__(self, what: str, *, where: str, got: object, expected: str, remedy: str, code: str = "") -> None:
        self.what = redact(what)
        self.where = redact(where)
        self.got = redact(got if isinstance(got, str) else repr(got))
        self.expected = redact(expected)
        self.remedy = redact(remedy)
        self.code = code
        super().__init__(self.what, self.where, self.got, self.expected, self.remedy)

    def __str__(self) -> str:
        return (
            f"{self.what}\n"
            f"  where:    {self.where}\n"
            f"  got:      {self.got}\n"
            f"  expected: {self.expected}\n"
            f"  remedy:   {self.remedy}"
        )

    def __reduce__(self) -> tuple[object, ...]:
        """Rebuild from the parts when sent between processes: the parts are keywords."""
        return partial(type(self), **{name: getattr(self, name) for name in PARTS}), ()


class DomainError(HubbubError):
    """A domain that cannot be built, or a value that is not in it.

    Examples
    --------
    >>> import hubbub as hb
    >>> try:
    ...     hb.Integers(9, 0)
    ... except hb.DomainError as error:
    ...     print(error.what)
    low must be below high
    """


class MechanismError(HubbubError):
    """Invalid parameters of a mechanism, or a request that it cannot meet.

    Examples
    --------
    >>> import hubbub as hb
    >>> try:
    ...     hb.Rappor(hb.Integers(0, 9), epsilon=-1)
    ... except hb.MechanismError as error:
    ...     print(error.what)
    epsilon must be positive
    """


class OutputError(HubbubError):
    """An output that its mechanism can never send.

    Examples
    --------
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> try:
    ...     hb.Reports.from_outputs(coin, ["maybe"])
    ... except hb.OutputError as error:
    ...     print(error.what)
    an output is not a value of the domain
    """


class ReportsError(HubbubError):
    """Reports that cannot be built or merged.

    Examples
    --------
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> try:
    ...     hb.Reports.from_counts(coin, [0, 0])
    ... except hb.ReportsError as error:
    ...     print(error.what)
    there are no reports
    """


class ImpossibleReportError(ReportsError):
    """Well-formed outputs that no value of the domain can produce.

    Examples
    --------
    >>> import hubbub as hb
    >>> half = hb.Cloaking(hb.Integers(0, 3), ["low", "low", "high", "high"])
    >>> try:
    ...     hb.Reports.from_users([[(half, "low"), (half, "high")]])
    ... except hb.ImpossibleReportError as error:
    ...     print(error.what)
    no value can have produced a report
    """


class EstimateError(HubbubError):
    """A method that these reports do not allow.

    Examples
    --------
    >>> import hubbub as hb
    >>> rows = [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]]
    >>> tall = hb.Matrix(hb.Integers(1, 3), [1, 2], rows)
    >>> reports = hb.Reports.from_counts(tall, [30, 40])
    >>> try:
    ...     hb.estimate(reports, method="inv-n")
    ... except hb.EstimateError as error:
    ...     print(error.what)
    these reports have no inverse: they cannot tell all values apart
    """


class SettingError(HubbubError):
    """A keyword or option that does not apply, or has a wrong value.

    Examples
    --------
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> try:
    ...     hb.audit(coin, draws=10)
    ... except hb.SettingError as error:
    ...     print(error.what)
    draws must be a whole number, 100 or more
    """


class RegionsError(HubbubError):
    """Polygons that cannot be read, or do not fit the grid.

    Examples
    --------
    >>> import hubbub as hb
    >>> try:
    ...     hb.regions(hb.Integers(0, 9), "districts.geojson")
    ... except hb.RegionsError as error:
    ...     print(error.what)
    regions need a grid
    """


class DistanceError(HubbubError):
    """Vectors that are not distributions, or a distance too large to compute.

    Examples
    --------
    >>> import hubbub as hb
    >>> try:
    ...     hb.total_variation([0.5, 0.5], [0.5, 0.4])
    ... except hb.DistanceError as error:
    ...     print(error.what)
    not a distribution
    """


class StudyError(HubbubError):
    """A study file with a mistake.

    Examples
    --------
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> try:
    ...     hb.Study(coin.domain, {})
    ... except hb.StudyError as error:
    ...     print(error.what)
    the study names no mechanism
    """


class IntakeError(HubbubError):
    """A file that cannot be read or written; the message ends its first line with the code of the cause.

    Examples
    --------
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> try:
    ...     hb.read_reports("nowhere.csv", hb.Study(coin.domain, {"coin": coin}))
    ... except hb.IntakeError as error:
    ...     print(error.what)
    there is no such file of reports
    """

    def __str__(self) -> str:
        first, *rest = super().__str__().split("\n")
        return "\n".join([f"{first} [{self.code}]" if self.code else first, *rest])


class ClusterError(HubbubError):
    """A cluster that cannot be reached, or does not do what was asked.

    Examples
    --------
    >>> import hubbub as hb
    >>> try:
    ...     hb.ClusterReports("tcp://127.0.0.1:8786", [])
    ... except hb.ClusterError as error:
    ...     print(error.what)
    not a client of a cluster
    """


class HubbubWarning(UserWarning):
    """Something that was not used, or could not be checked: the call succeeded all the same.

    Examples
    --------
    >>> import warnings
    >>> import pandas as pd
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> study = hb.Study(coin.domain, {"coin": coin})
    >>> table = pd.DataFrame({"output": ["yes", "no"], "age": [31, 47]})
    >>> with warnings.catch_warnings(record=True) as notes:
    ...     warnings.simplefilter("always", hb.HubbubWarning)
    ...     reports = hb.read_reports(table, study)
    >>> "column age is not used" in str(notes[0].message)
    True
    """


def warn_caller(notes: Iterable[str]) -> None:
    """Warn whoever called into hubbub: the nearest caller outside the package, however deep this call is in it."""
    frame, depth = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "hubbub":
        frame, depth = frame.f_back, depth + 1
    for note in notes:
        warnings.warn(redact(note), HubbubWarning, stacklevel=depth)


def restated(error: ValueError, kind: type[ErrorKind], **parts: str) -> ErrorKind:
    """Return an error of ours as one of another kind, with some of its parts (`where`, `got`, `code`...) replaced."""
    return kind(**{name: getattr(error, name, "") for name in PARTS} | parts)  # the client's errors have no code


def shorten(items: object, limit: int = 60) -> str:
    """Return ``repr(items)`` on one line, cut to `limit` characters.

    Passwords are hidden before the text is cut: half an address is no longer recognised as one.
    """
    text = redact(repr(items))
    text = " ".join(text.split()) if "\n" in text else text
    return text if len(text) <= limit else text[: limit - 1] + "…"
