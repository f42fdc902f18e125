"""What is asked for: a value, a set of values, or any weighted sum, as weights over the domain."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass

import numpy as np

from hubbub.core.arrays import Floats, as_array, as_real, frozen
from hubbub.core.errors import SettingError, shorten
from hubbub.core.portable import Portable
from hubbub.domains import Domain

LARGEST = 1e100  # of a weight: differences and products of weights are still numbers
MOST_NAMED = 4  # values that are named in a sentence


@dataclass(frozen=True, eq=False)
class Statistic(Portable):
    """A weighted sum of probabilities, and its name."""

    weights: Floats
    words: str
    single: int | None = None  # the position of the value, where it is one value's share


def statistic(domain: Domain, of: object, where: str) -> Statistic:
    """Return weights for a value, a list or set of values (their sum), or {value: weight}."""
    if isinstance(of, Mapping):
        return _weighted(domain, of, where)
    if isinstance(of, Set):
        of = list(of)
    if isinstance(of, list | tuple | np.ndarray | range) or (hasattr(of, "__array__") and np.ndim(as_array(of)) > 0):
        positions = np.unique(np.atleast_1d(domain.index(as_array(of))))
        if positions.size == 0:
            raise SettingError(
                "no values to speak of",
                where=f"{where}(of)",
                got="an empty list",
                expected="a value, a list of values, or {value: weight}",
                remedy="name at least one value of the domain",
            )
        weights = np.zeros(len(domain))
        weights[positions] = 1.0
        single = int(positions[0]) if positions.size == 1 else None
        return Statistic(frozen(weights), name_values(domain, positions.tolist()), single)
    position = int(np.asarray(domain.index(np.atleast_1d(as_array([of]))))[0])
    weights = np.zeros(len(domain))
    weights[position] = 1.0
    return Statistic(frozen(weights), domain.title(position), position)


def _weighted(domain: Domain, of: Mapping[object, object], where: str) -> Statistic:
    weights = np.zeros(len(domain))
    for value, weight in of.items():
        number = as_real(weight)
        if not abs(number) <= LARGEST:
            raise SettingError(
                "a weight is not a number" if math.isnan(number) else "a weight is too large",
                where=f"{where}(of), value {shorten(value)}",
                got=shorten(weight),
                expected=f"a number between -{LARGEST:g} and {LARGEST:g} for each value",
                remedy="write {value: weight}; values that are left out have weight 0",
            )
        weights[int(np.asarray(domain.index(as_array([value])))[0])] = number
    if not weights.any():
        raise SettingError(
            "a sum without weights",
            where=f"{where}(of)",
            got=shorten(dict(of)),
            expected="at least one weight other than 0",
            remedy="write {value: weight}",
        )
    used = np.flatnonzero(weights)
    if used.size == 1 and weights[used[0]] == 1.0:
        return Statistic(frozen(weights), domain.title(int(used[0])), int(used[0]))
    if (weights[used] == 1.0).all():
        return Statistic(frozen(weights), name_values(domain, used.tolist()))
    return Statistic(frozen(weights), f"the weighted sum over {name_values(domain, used.tolist())}")


def name_values(domain: Domain, positions: list[int]) -> str:
    """Return the values as people list them."""
    named = [domain.title(position) for position in positions[:MOST_NAMED]]
    rest = len(positions) - len(named)
    if rest:
        return ", ".join(named) + f" and {rest:,} more"
    return named[0] if len(named) == 1 else ", ".join(named[:-1]) + " and " + named[-1]
