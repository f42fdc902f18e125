"""Linear statistics: shares of values, of sets of values, or any weighted sums, as weights over the domain.

What `of=` asks for is one of them, or several with names, such as the regions of a map. Of combinations of attributes,
a *slice* names some attributes, with the values of each, and leaves the others open: {"sex": "f", "age": [18, 19]}.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hubbub.core.arrays import Floats, Positions, as_array, as_real, frozen
from hubbub.core.errors import DomainError, SettingError, shorten
from hubbub.core.serialization import Portable
from hubbub.core.text import listed
from hubbub.domains import Domain, Product

MAX_WEIGHT = 1e100  # differences and products of weights are still finite
MAX_NAMED_VALUES = 4  # in a sentence
# What the rows of a table are: every value, the one statistic that was asked for, or several that have names.
VALUE, STATISTIC, SUM, REGION = "value", "statistic", "sum", "region"
NAMED = (SUM, REGION)


@dataclass(frozen=True, eq=False)
class Statistic(Portable):
    """A weighted sum of probabilities, and what it is called."""

    weights: Floats
    title: str
    single: int | None = None  # the position of the value, if the statistic is the share of one value
    is_share: bool = True

    def value(self, theta: Floats) -> float:
        """Return the statistic of a distribution."""
        return float(self.weights @ theta)

    @classmethod
    def share_of(cls, domain: Domain, positions: Iterable[int]) -> Statistic:
        """Return the joint share of the values at some positions."""
        members = list(positions)
        weights = np.zeros(len(domain))
        weights[members] = 1.0
        return cls(frozen(weights), name_values(domain, members), members[0] if len(members) == 1 else None)

    @classmethod
    def weighted(cls, title: str, weights: Floats) -> Statistic:
        """Return the share of a part of some values; that of one value is its share, scaled."""
        used = np.flatnonzero(weights)
        return cls(frozen(weights.copy()), title, int(used[0]) if used.size == 1 else None)


@runtime_checkable
class NamedSums(Protocol):
    """Sums of values that have names: the regions of a map."""

    @property
    def names(self) -> tuple[str, ...]:
        """What they are called."""

    @property
    def caveats(self) -> tuple[str, ...]:
        """What to know about them."""

    def weights_over(self, domain: Domain) -> sparse.csr_array:
        """Return the weight of each value in each sum (sums by values), between 0 and 1."""


@dataclass(frozen=True, eq=False)
class Statistics(Portable):
    """The rows of a table: statistics with their labels, what kind of rows they are, and what to know about them."""

    rows: tuple[Statistic, ...]
    labels: NDArray[np.object_]
    kind: str  # VALUE, STATISTIC, SUM or REGION
    caveats: tuple[str, ...] = ()

    @cached_property
    def weights(self) -> Floats:
        """The weights of all rows (rows by values)."""
        return frozen(np.array([row.weights for row in self.rows]))

    @property
    def are_shares(self) -> bool:
        """Whether all rows are shares."""
        return all(row.is_share for row in self.rows)


def parse_statistics(domain: Domain, of: object) -> Statistics:
    """Return what `of` asks for: every value if it is None, one statistic, or several that have names."""
    if of is None:
        every = tuple(Statistic.share_of(domain, [position]) for position in range(len(domain)))
        return Statistics(every, _objects(domain.labels.tolist()), VALUE)
    if not has_names(of) or _names_attributes(domain, of):
        statistic = parse_statistic(domain, of)
        label = statistic.title if statistic.single is None else domain.labels[statistic.single]
        return Statistics((statistic,), _objects([label]), STATISTIC)
    if isinstance(of, Mapping):
        sums = tuple(_named_sum(domain, name, own) for name, own in of.items())
        return Statistics(sums, _objects([own.title for own in sums]), SUM)
    weights = of.weights_over(domain).toarray()
    known = np.flatnonzero(weights.any(axis=1)).tolist()  # nothing is known about the others, as a caveat says
    if not known:
        raise SettingError(
            "no region has a part of any value",
            where="of",
            got=shorten(of),
            expected="at least one region that the reports are about",
            remedy="use regions of the map that the reports come from",
        )
    regions = tuple(Statistic.weighted(of.names[number], weights[number]) for number in known)
    return Statistics(regions, _objects([region.title for region in regions]), REGION, of.caveats)


def has_names(of: object) -> TypeGuard[NamedSums | Mapping[object, object]]:
    """Whether `of` is several statistics with names: regions, or a mapping from names to lists or sets of values."""
    return isinstance(of, NamedSums) or (isinstance(of, Mapping) and any(map(_is_collection, of.values())))


def _is_collection(of: object) -> bool:
    if isinstance(of, Mapping | Set | list | tuple | np.ndarray | range):
        return True
    return hasattr(of, "__array__") and np.ndim(as_array(of)) > 0


def _named_sum(domain: Domain, name: object, of: object) -> Statistic:
    """Return the sum that a name stands for."""
    if not isinstance(name, str) or not name.strip() or not _is_collection(of):
        raise SettingError(
            "named sums must be lists or sets of values",
            where=f"of, entry {shorten(name)}",
            got=shorten(of),
            expected="a name, and the values that it stands for",
            remedy="write {'name': [value, ...], ...}; one weighted sum is {value: weight, ...}",
        )
    return replace(parse_statistic(domain, of), title=name)


def _objects(labels: list[object]) -> NDArray[np.object_]:
    objects = np.empty(len(labels), dtype=object)
    objects[:] = labels
    return objects


def parse_statistic(domain: Domain, of: object) -> Statistic:
    """Return the statistic for a value, a list or set of values (their joint share), {value: weight}, or a slice."""
    product = domain.product
    if product is not None and _is_attribute(product, of):
        raise SettingError(
            "an attribute is named, and none of its values",
            where="of",
            got=shorten(of),
            expected=f"values of attributes, as in {{'{next(iter(product.attributes))}': [value, ...]}}; a combination "
            "or a list of these; a list for each of several names: {name: [combination, ...]}",
            remedy="name the values; where all values of one attribute are asked for, one after the other",
        )
    if product is not None and isinstance(of, Mapping) and any(isinstance(name, str) for name in of):
        return parse_slice(product, of, "interval(of)")
    if has_names(of):
        raise SettingError(
            "there are several statistics, and one is asked for",
            where="of",
            got=shorten(of),
            expected="a value, a list of values, or {value: weight}",
            remedy="ask for each by itself: of=regions.of(name); regions.shares(reports) has those of all regions",
        )
    if isinstance(of, Mapping):
        return _weighted_sum(domain, of)
    if isinstance(of, Set):
        of = list(of)
    if _is_collection(of):
        positions = positions_of(domain, of)
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


def _is_attribute(product: Product, of: object) -> bool:
    """Whether `of` is a name in place of a value, or a list of names of attributes: values are combinations."""
    if not isinstance(of, list | tuple | Set) or not of:
        return isinstance(of, str)
    return all(isinstance(name, str) and name in product.attributes for name in of)


def _names_attributes(domain: Domain, of: object) -> bool:
    product = domain.product
    return product is not None and isinstance(of, Mapping) and any(name in product.attributes for name in of)


def parse_slice(product: Product, of: Mapping[Any, object], where: str) -> Statistic:
    """Return the share of all combinations with the values, or the sum of weights, that some attributes are to have."""
    weights, titles, is_share = np.ones(len(product)), list[str](), True
    own = dict(zip(product.attributes, product.coordinates_of(np.arange(len(product))), strict=True))
    for name, wanted in of.items():
        attribute = product.margin([name], where).domain
        if isinstance(wanted, Mapping):
            sums = _weighted_sum(attribute, wanted)
            factors, title = sums.weights, f"{name}: {sums.title}"
            is_share = is_share and sums.is_share
        else:
            factors, title = _chosen(attribute, name, wanted, where)
        weights *= factors[own[name]]
        titles.append(title)
    if not weights.any():
        raise SettingError(
            "no combination has these values",
            where=where,
            got=shorten(dict(of)),
            expected="values of some attributes that can meet",
            remedy="ask for other values, or leave out what bars them in impossible=",
        )
    used = np.flatnonzero(weights)
    single = int(used[0]) if used.size == 1 and is_share else None
    return Statistic(frozen(weights), ", ".join(titles), single, is_share)


def _chosen(attribute: Domain, name: str, wanted: object, where: str) -> tuple[Floats, str]:
    """Return 1 for the values of an attribute that are wanted, 0 for others, and these values in words."""
    values = list(wanted) if isinstance(wanted, Set | list | tuple | np.ndarray | range) else [wanted]
    if not values:
        raise SettingError(
            "the list of values is empty",
            where=f"{where}, attribute {name}",
            got="an empty list",
            expected="a value of the attribute, or a list of values",
            remedy=f"name at least one value, or leave {name} out",
        )
    try:
        positions = np.unique(attribute.index(as_array(values)))
    except DomainError as error:
        place = f"{where}, attribute {name}"
        raise DomainError(
            error.what, where=place, got=error.got, expected=error.expected, remedy=error.remedy
        ) from None
    factors = np.zeros(len(attribute))
    factors[positions] = 1.0
    shown = [attribute.title(position) for position in positions[:MAX_NAMED_VALUES].tolist()]
    hidden = positions.size - len(shown)
    return factors, f"{name} {' or '.join([*shown, *([f'{hidden:,} more'] if hidden else [])])}"


def _position(domain: Domain, value: object) -> int:
    return int(positions_of(domain, [value])[0])


def positions_of(domain: Domain, values: object) -> Positions:
    """Return the positions of values, each once and in order."""
    # An array of tuples would have one type for all attributes.
    return np.unique(np.atleast_1d(domain.index(as_array(values) if domain.product is None else values)))


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
    return Statistic(frozen(weights), f"the weighted sum over {name_values(domain, used.tolist())}", is_share=False)


def name_values(domain: Domain, positions: list[int]) -> str:
    """Return the values as a list for a sentence: a few by name, then how many more."""
    shown = [domain.title(position) for position in positions[:MAX_NAMED_VALUES]]
    if domain.is_on_map and len(positions) > 1:
        shown = [f"({place})" for place in shown]  # they have commas of their own
    hidden = len(positions) - len(shown)
    return f"{', '.join(shown)} and {hidden:,} more" if hidden else listed(shown)
