"""What can go wrong, and the one shape in which hubbub says it.

HubbubError (a ValueError)
├── DomainError          a domain that cannot be built, or a value outside it
├── MechanismError       parameters that make no mechanism, or something it cannot give
├── OutputError          an output that its mechanism can never send
├── ReportsError         reports that cannot be built or merged
│   └── ImpossibleReportError   well-formed outputs that no value of the domain can produce
├── EstimateError        a method that does not fit the reports
├── SettingError         a keyword or option that means nothing there, or cannot have that value
├── DistanceError        vectors that are not distributions, or a distance too large to compute
├── StudyError           a study file that does not say what it should
├── IntakeError          a file of reports that cannot be read as it stands
└── ClusterError         a cluster that cannot be reached, or does not do what was asked

HubbubWarning (a UserWarning): what was done is done, but somebody should know
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from typing import TypeVar

from hubbub.core.redaction import redact

ErrorKind = TypeVar("ErrorKind", bound="HubbubError")


class HubbubError(ValueError):
    """A mistake in the input, told in five parts.

    Every message says what is wrong, where, what was found, what was expected and what to do about it.
    The parts are keywords without defaults, so that none of them can be forgotten. What can be wrong with a file or
    with one row of it has a short `code` besides, by which causes are counted and looked up. No part shows a password:
    what was given in the wrong place may be the address of a database.
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
        return _rebuild, (type(self), self.what, self.where, self.got, self.expected, self.remedy, self.code)


class DomainError(HubbubError):
    """A domain that cannot be built, or a value that is not in it."""


class MechanismError(HubbubError):
    """Parameters that make no mechanism, or a request it cannot meet."""


class OutputError(HubbubError):
    """An output that its mechanism can never send."""


class ReportsError(HubbubError):
    """Reports that cannot be built or merged."""


class ImpossibleReportError(ReportsError):
    """Well-formed outputs that no value of the domain can produce."""


class EstimateError(HubbubError):
    """A method that does not fit the reports."""


class SettingError(HubbubError):
    """A keyword or option that means nothing there, or cannot have that value."""


class DistanceError(HubbubError):
    """Vectors that are not distributions, or a distance too large to compute."""


class StudyError(HubbubError):
    """A study file that does not say what it should."""


class IntakeError(HubbubError):
    """A file of reports that cannot be read as it stands; its message shows the code of the cause."""

    def __str__(self) -> str:
        first, *rest = super().__str__().split("\n")
        return "\n".join([f"{first} [{self.code}]" if self.code else first, *rest])


class ClusterError(HubbubError):
    """A cluster that cannot be reached, or does not do what was asked."""


class HubbubWarning(UserWarning):
    """Something that was not used, or could not be checked."""


def warn_of(notes: Iterable[str]) -> None:
    """Warn whoever called into hubbub: the nearest caller outside the package, however deep this call is in it."""
    frame, depth = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "hubbub":
        frame, depth = frame.f_back, depth + 1
    for note in notes:
        warnings.warn(redact(note), HubbubWarning, stacklevel=depth)


def _rebuild(
    kind: type[HubbubError], what: str, where: str, got: str, expected: str, remedy: str, code: str = ""
) -> HubbubError:
    return kind(what, where=where, got=got, expected=expected, remedy=remedy, code=code)


def restated(error: ValueError, kind: type[ErrorKind], **parts: str) -> ErrorKind:
    """Return an error of ours as one of another kind, with some of its parts (`where`, `got`, `code`...) replaced."""
    names = ("what", "where", "got", "expected", "remedy", "code")
    return kind(**{name: getattr(error, name, "") for name in names} | parts)  # the client's errors have no code


def shorten(items: object, limit: int = 60) -> str:
    """Return ``repr(items)`` on one line, cut to `limit` characters, so that a message stays a message.

    Passwords are hidden before anything is cut off: half an address no longer looks like one.
    """
    text = redact(repr(items))
    text = " ".join(text.split()) if "\n" in text else text
    return text if len(text) <= limit else text[: limit - 1] + "…"
