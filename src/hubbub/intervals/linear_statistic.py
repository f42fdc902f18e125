"""Linear statistics: the share of a value, of a set of values, or any weighted sum, as weights over the domain."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

import numpy as np

from hubbub.core.arrays import Floats, as_array, as_real, frozen
from hubbub.core.errors import SettingError, shorten
from hubbub.core.serialization import Portable
from hubbub.core.text import listed
from hubbub.domains import Domain

MAX_WEIGHT = 1e100  # differences and products of weights are still finite
MAX_NAMED_VALUES = 4  # in a sentence


@dataclass(frozen=True, eq=False)
class Statistic(Portable):
    """A weighted sum of probabilities, and what it is called."""

    weights: Floats
    title: str
    single: int | None = None  # the position of the value, if the statistic is the share of one value

    @classmethod
    def share_of(cls, domain: Domain, positions: Iterable[int]) -> Statistic:
        """Return the joint share of the values at some positions."""
        members = list(positions)
        weights = np.zeros(len(domain))
        weights[members] = 1.0
        return cls(frozen(weights), name_values(domain, members), members[0] if len(members) == 1 else None)


def parse_statistic(domain: Domain, of: object) -> Statistic:
    """Return the statistic for a value, a list or set of values (their joint share), or {value: weight}."""
    if isinstance(of, Mapping):
        return _weighted_sum(domain, of)
    if isinstance(of, Set):
        of = list(of)
    if isinstance(of, list | tuple | np.ndarray | range) or (hasattr(of, "__array__") and np.ndim(as_array(of)) > 0):
        positions = np.unique(np.atleast_1d(domain.index(as_array(of))))
        if positions.size == 0:
            raise SettingError(
                "the list of values is empty",
                where="interval(of)",
                got="an empty list",
                expected="a value, a list of values, or {value: weight}",
                remedy="name at least one value of the domain",
            )
        return Statistic.share_of(domain, positions.tolist())
    return Statistic.share_of(domain, [_position(domain, of)])


def _position(domain: Domain, value: object) -> int:
    return int(np.asarray(domain.index(np.atleast_1d(as_array([value]))))[0])


def _weighted_sum(domain: Domain, of: Mapping[object, object]) -> Statistic:
    weights = np.zeros(len(domain))
    for value, weight in of.items():
        number = as_real(weight)
        if not abs(number) <= MAX_WEIGHT:
            raise SettingError(
                "the weight is not a number" if math.isnan(number) else "the weight is too large",
                where=f"interval(of), value {shorten(value)}",
                got=shorten(weight),
                expected=f"a number between -{MAX_WEIGHT:g} and {MAX_WEIGHT:g} for each value",
                remedy="write {value: weight}; values that are left out have weight 0",
            )
        weights[_position(domain, value)] = number
    if not weights.any():
        raise SettingError(
            "the sum has no weights",
            where="interval(of)",
            got=shorten(dict(of)),
            expected="at least one weight other than 0",
            remedy="write {value: weight}",
        )
    used = np.flatnonzero(weights)
    if (weights[used] == 1.0).all():
        return Statistic.share_of(domain, used.tolist())
    return Statistic(frozen(weights), f"the weighted sum over {name_values(domain, used.tolist())}")


def name_values(domain: Domain, positions: list[int]) -> str:
    """Return the values as a list for a sentence: a few by name, then how many more."""
    shown = [domain.title(position) for position in positions[:MAX_NAMED_VALUES]]
    if domain.is_on_map and len(positions) > 1:
        shown = [f"({place})" for place in shown]  # they have commas of their own
    hidden = len(positions) - len(shown)
    return f"{', '.join(shown)} and {hidden:,} more" if hidden else listed(shown)
