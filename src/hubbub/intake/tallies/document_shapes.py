"""How a tally's description is checked as it is read: each entry must be there, and be what it must be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hubbub.core.errors import shorten

MAX_COUNT = 2**53  # of users and rows: up to here sums are exact
Shape = dict[str, Callable[[Any], bool]]  # the entries of an object, and what each must be


class DamageError(Exception):
    """What is wrong with a tally; whoever knows its path makes `damaged` of it."""


def refuse_if(wrong: bool | np.bool_, damage: str) -> None:
    """Raise a DamageError if something is wrong."""
    if wrong:
        raise DamageError(damage)


def is_exactly(*kinds: type) -> Callable[[Any], bool]:
    """Return a check that a value is of one of these types."""
    return lambda value: type(value) in kinds  # exactly: true is not a number


def is_count(value: Any) -> bool:
    """Whether this is a number of users or rows."""
    return type(value) is int and 0 <= value <= MAX_COUNT


def are_names(value: Any) -> bool:
    """Whether these are names of columns or groups, at least one."""
    return type(value) is list and bool(value) and all(type(text) is str and text for text in value)


def check_shape(entries: object, shape: Shape, role: str = "a description") -> None:
    """Refuse what is not an object, or an entry of it that is missing or is not what it must be."""
    if not isinstance(entries, dict):
        raise DamageError(f"{shorten(entries)} as {role}")
    for key, is_right in shape.items():
        if key not in entries:
            raise DamageError(f"no {key}")
        if not is_right(entries[key]):
            raise DamageError(f"{shorten(entries[key])} as {key}")
