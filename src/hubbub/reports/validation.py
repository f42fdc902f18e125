"""Checks of what reports are built from: mechanisms, counts, and that anybody sent anything."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import as_integers
from hubbub.core.errors import HubbubError, ReportsError, shorten
from hubbub.mechanisms import Mechanism

MAX_COUNTED_USERS = 2**53  # the largest count that floats represent exactly


def check_mechanism(mechanism: object, where: str, error: type[HubbubError] = ReportsError) -> None:
    """Refuse anything but a mechanism that can be compared with others."""
    if not isinstance(mechanism, Mechanism):
        raise error(
            "not a mechanism",
            where=where,
            got=shorten(mechanism),
            expected="a hubbub mechanism",
            remedy="pass the mechanism that users ran, for example hubbub.RandomizedResponse(domain, epsilon)",
        )
    if type(mechanism).__hash__ is None:
        raise error(
            "a mechanism cannot be compared with others",
            where=where,
            got=f"{type(mechanism).__name__}, which has no hash",
            expected="a frozen value",
            remedy="write @dataclass(frozen=True) above the class",
        )


def check_counts(counts: object, where: str) -> NDArray[np.int64]:
    """Return numbers of users as integers that are at least 0."""
    remedy = "count users: shares, percentages and missing counts are not numbers of users"
    checked = as_integers(counts, ReportsError, where=where, expected="numbers of users", remedy=remedy)
    if checked.size and checked.min() < 0:
        raise ReportsError(
            "a count is negative",
            where=where,
            got=int(checked.min()),
            expected="numbers of users, at least 0",
            remedy="count users; noise added to counts is not part of this model",
        )
    users = checked.sum(dtype=np.float64)
    if users > MAX_COUNTED_USERS:
        raise ReportsError(
            "the counts add up to more users than can be counted exactly",
            where=where,
            got=f"{users:.3g} users",
            expected=f"at most {MAX_COUNTED_USERS:.3g}",
            remedy="check the counts: they exceed the population of the world",
        )
    return checked


def check_shape(array: NDArray[np.int64], size: int, where: str, *, what: str, expected: str, remedy: str) -> None:
    """Refuse an array that does not have one number for each of `size` outputs or values."""
    if array.shape != (size,):
        raise ReportsError(what, where=where, got=f"shape {array.shape}", expected=expected, remedy=remedy)


def no_reports(where: str, got: str = "0 users") -> ReportsError:
    """Return the error for reports without users."""
    return ReportsError(
        "there are no reports",
        where=where,
        got=got,
        expected="at least one user",
        remedy="check that the file or list holds what you meant to read",
        code="no-reports",
    )
