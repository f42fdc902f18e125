"""Checks of arguments: each returns the value in its plain type, or raises an error with all five parts.

`where` is the function as its caller knows it ("estimate"), `name` the keyword ("tol"); together they make
"estimate(tol=)". `default` says what leaving the keyword out means, for the remedy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeVar

import numpy as np

from hubbub.core.arrays import Floats, as_floats, as_real
from hubbub.core.errors import HubbubError, SettingError, shorten
from hubbub.core.text import listed

DEFAULT_SEED = 0  # of simulations, unless the caller brings a generator: the same reports give the same answer
MAX_ROUNDING_OF_SUM = 1e-6  # how far the sum of probabilities may be from 1

Choice = TypeVar("Choice")


def positive(
    value: object, name: str, where: str, *, default: str = "", error: type[HubbubError] = SettingError
) -> float:
    """Return a positive finite number."""
    number = as_real(value)
    if math.isfinite(number) and number > 0:
        return number
    raise wrong(value, name, where, "a positive number", default=default, error=error)


def whole(
    value: object,
    name: str,
    where: str,
    *,
    at_least: int = 1,
    default: str = "",
    error: type[HubbubError] = SettingError,
) -> int:
    """Return a whole number that is not too small."""
    number = int(value) if isinstance(value, int | np.integer) and not isinstance(value, bool) else None
    if number is not None and number >= at_least:
        return number
    raise wrong(value, name, where, f"a whole number, {at_least} or more", default=default, error=error)


def share(
    value: object,
    name: str,
    where: str,
    *,
    expected: str = "a number between 0 and 1",
    error: type[HubbubError] = SettingError,
) -> float:
    """Return a number strictly between 0 and 1; `expected` says what it is a share of, with an example."""
    number = as_real(value)
    if math.isfinite(number) and 0.0 < number < 1.0:
        return number
    raise wrong(value, name, where, expected, remedy="divide percentages by 100", error=error)


def level(value: object, where: str) -> float:
    """Return the level of an interval or test, strictly between 0 and 1."""
    return share(value, "level", where, expected="a probability between 0 and 1, such as 0.95")


def boolean(value: object, name: str, where: str, *, error: type[HubbubError] = SettingError) -> bool:
    """Return True or False; 0 and 1 are not accepted."""
    if isinstance(value, bool):
        return value
    raise wrong(value, name, where, "True or False", remedy=f"write {name}=True or {name}=False", error=error)


def one_of(
    value: object,
    choices: Iterable[Choice],
    name: str,
    where: str,
    *,
    default: str = "",
    error: type[HubbubError] = SettingError,
) -> Choice:
    """Return the choice that equals `value`."""
    allowed = list(choices)
    for choice in allowed:
        if type(choice) is type(value) and choice == value:
            return choice
    names = listed([repr(choice) for choice in allowed], word="or")
    raise wrong(value, name, where, names, default=default, error=error)


def text(value: object, name: str, where: str, *, default: str = "", error: type[HubbubError] = SettingError) -> str:
    """Return a text."""
    if isinstance(value, str):
        return value
    raise wrong(value, name, where, "a text", default=default, error=error)


def generator(rng: object, where: str) -> tuple[np.random.Generator, int | str]:
    """Return a random generator, and what to record about it; None means a fixed seed."""
    if isinstance(rng, np.random.Generator):
        return rng, "a generator"
    if rng is None or (isinstance(rng, int | np.integer) and not isinstance(rng, bool) and rng >= 0):
        seed = DEFAULT_SEED if rng is None else int(rng)
        return np.random.default_rng(seed), seed
    raise SettingError(
        "rng is not a source of randomness",
        where=f"{where}(rng=)",
        got=shorten(rng),
        expected="a numpy.random.Generator, or a seed that is at least 0",
        remedy="leave rng out: the same reports then give the same answer",
    )


def distribution(values: object, length: int | None, where: str, *, error: type[HubbubError] = SettingError) -> Floats:
    """Return probabilities over `length` values, normalised exactly; `where` is the whole place, with its keyword."""
    expected = "probabilities: finite, at least 0, with sum 1"
    array = as_floats(values)
    if array is None:
        remedy = "pass a list in the order of domain.labels; for an estimate, pass its .probabilities"
        raise error("not a list of numbers", where=where, got=shorten(values), expected=expected, remedy=remedy)
    if array.ndim != 1 or array.size == 0 or (length is not None and array.size != length):
        counted = "a flat list" if length is None else f"{length} probabilities, in the order of domain.labels"
        remedy = "give one probability for each value"
        got = f"shape {array.shape}"
        raise error("wrong number of probabilities", where=where, got=got, expected=counted, remedy=remedy)
    good = np.isfinite(array) & (array >= 0)
    if not good.all():
        place = int(np.argmin(good))
        remedy = "replace the entries that are negative or not finite"
        where = f"{where}, position {place}"
        raise error("not a distribution", where=where, got=float(array[place]), expected=expected, remedy=remedy)
    total = float(array.sum())
    if abs(total - 1.0) > MAX_ROUNDING_OF_SUM:
        remedy = "divide by the sum if these are counts"
        raise error("not a distribution", where=where, got=f"sum {total:.6g}", expected=expected, remedy=remedy)
    return array / total


def wrong(
    value: object,
    name: str,
    where: str,
    expected: str,
    *,
    default: str = "",
    remedy: str = "",
    error: type[HubbubError] = SettingError,
) -> HubbubError:
    """Return the error for a keyword that has a wrong value."""
    return error(
        f"{name} must be {expected}",
        where=f"{where}({name}=)",
        got=shorten(value),
        expected=expected,
        remedy=remedy or (f"leave {name} out for {default}" if default else f"pass {expected}"),
    )
