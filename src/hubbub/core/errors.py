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
    """A domain that cannot be built, or a value that is not in it."""


class MechanismError(HubbubError):
    """Invalid parameters of a mechanism, or a request that it cannot meet."""


class OutputError(HubbubError):
    """An output that its mechanism can never send."""


class ReportsError(HubbubError):
    """Reports that cannot be built or merged."""


class ImpossibleReportError(ReportsError):
    """Well-formed outputs that no value of the domain can produce."""


class EstimateError(HubbubError):
    """A method that these reports do not allow."""


class SettingError(HubbubError):
    """A keyword or option that does not apply, or has a wrong value."""


class RegionsError(HubbubError):
    """Polygons that cannot be read, or do not fit the grid."""


class DistanceError(HubbubError):
    """Vectors that are not distributions, or a distance too large to compute."""


class StudyError(HubbubError):
    """A study file with a mistake."""


class IntakeError(HubbubError):
    """A file that cannot be read or written; the message ends its first line with the code of the cause."""

    def __str__(self) -> str:
        first, *rest = super().__str__().split("\n")
        return "\n".join([f"{first} [{self.code}]" if self.code else first, *rest])


class ClusterError(HubbubError):
    """A cluster that cannot be reached, or does not do what was asked."""


class HubbubWarning(UserWarning):
    """Something that was not used, or could not be checked."""


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
