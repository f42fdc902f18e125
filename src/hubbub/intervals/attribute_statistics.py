"""Statistics of some attributes of a product: every value of a margin, numbers, and those who have given values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Floats, frozen
from hubbub.core.errors import EstimateError, SettingError, shorten
from hubbub.core.text import listed
from hubbub.domains import Domain, Product
from hubbub.domains.product import Margin
from hubbub.intervals.conditional_shares import ConditionalShare
from hubbub.intervals.linear_statistic import Statistic, parse_slice, parse_statistic
from hubbub.intervals.smooth_statistics import SmoothStatistic

AnyStatistic = Statistic | SmoothStatistic


class Group(NamedTuple):
    """Those who have given values of some attributes: 1 for each of their values, 0 for others; and in words."""

    among: Floats
    title: str


class Asked(NamedTuple):
    """A domain of which every value is asked for, with a statistic for each."""

    domain: Domain
    statistics: tuple[AnyStatistic, ...]
    is_whole: bool  # whether the domain is that of the reports

    def shares(self, theta: Floats) -> Floats:
        """Return the statistic of each value; not a number where it is not defined."""
        if self.is_whole:
            return theta
        return np.array([statistic.value(theta) for statistic in self.statistics])


def product_of(domain: Domain, where: str, remedy: str) -> Product:
    """Return the product whose attributes are asked for, or say that there are none."""
    if isinstance(domain, Product):
        return domain
    raise SettingError(
        "the values are not combinations of attributes",
        where=where,
        got=domain.describe(),
        expected="reports about a Product, such as hubbub.Product(age=..., sex=...)",
        remedy=remedy,
    )


def parse_group(domain: Domain, given: object, where: str) -> Group | None:
    """Return those who have the given values; None where nothing is given."""
    if given is None:
        return None
    product = product_of(domain, f"{where}(given=)", "leave given out")
    if not isinstance(given, Mapping) or not given:
        raise SettingError(
            "attributes and their values are not named",
            where=f"{where}(given=)",
            got=shorten(given),
            expected='a dictionary such as {"sex": "f"}, or {"age": [18, 19]}',
            remedy="write a dictionary from attributes to a value or a list of values",
        )
    weighted = [name for name, values in given.items() if isinstance(values, Mapping)]
    if weighted:
        raise SettingError(
            "given values cannot have weights",
            where=f"{where}(given=), attribute {weighted[0]}",
            got=shorten(given[weighted[0]]),
            expected="a value, or a list of values",
            remedy="list the values",
        )
    share = parse_slice(product, given, f"{where}(given=)")
    return Group(share.weights, share.title)


def parse_asked(domain: Domain, of: object, given: object) -> AnyStatistic:
    """Return the statistic that `of` asks for, among those who have the given values."""
    group = parse_group(domain, given, "interval")
    statistic = parse_statistic(domain, of)
    return statistic if group is None else ConditionalShare.of(statistic, group.among, group.title)


def every_value(domain: Domain, of: object, given: object) -> Asked:
    """Return a statistic for every value of the domain, or of some attributes, among those with given values."""
    if of is None and given is None:
        every = tuple(Statistic.share_of(domain, [position]) for position in range(len(domain)))
        return Asked(domain, every, is_whole=True)
    group = parse_group(domain, given, "band")
    margin, names = _margin(domain, of, given)
    prefix = f"{names[0]} " if len(names) == 1 else ""
    statistics: list[AnyStatistic] = []
    for position in range(len(margin.domain)):
        members = np.flatnonzero(margin.places == position)
        weights = np.zeros(len(domain))
        weights[members] = 1.0
        single = int(members[0]) if members.size == 1 else None
        share = Statistic(frozen(weights), f"{prefix}{margin.domain.title(position)}", single)
        statistics.append(share if group is None else ConditionalShare.of(share, group.among, group.title))
    return Asked(margin.domain, tuple(statistics), is_whole=False)


def _margin(domain: Domain, of: object, given: object) -> tuple[Margin, list[str]]:
    """Return the margin of the attributes that are asked for: of those that are not given, if none is named."""
    product = product_of(domain, "band(of=)", "leave of out for every value")
    if of is None:
        names = [name for name in product.attributes if not isinstance(given, Mapping) or name not in given]
    elif isinstance(of, str):
        names = [of]
    elif isinstance(of, tuple | list) and all(isinstance(name, str) for name in of):
        names = list(of)
    else:
        raise SettingError(
            "of must name attributes",
            where="band(of=)",
            got=shorten(of),
            expected=f"one or more of {listed(list(product.attributes))}",
            remedy='write of="age", or of=("age", "sex")',
        )
    if not names:
        raise SettingError(
            "every attribute is given",
            where="band(given=)",
            got=shorten(given),
            expected="at least one attribute whose values are open",
            remedy="give fewer attributes, or name those to ask about by of=",
        )
    return product.margin(names, "band(of=)"), names


def parse_numbers(domain: Domain, of: object, where: str, name: str = "of") -> Margin:
    """Return the margin of a numeric attribute; that of the domain itself if none is named."""
    place = f"{where}({name}=)" if of is not None else f"{where}(reports)"
    if of is None:
        margin = Margin(domain, np.arange(len(domain)))
        numeric = _numeric(domain)
        remedy = f"name a numeric attribute, as in {name}={numeric!r}" if numeric else ""
    else:
        product = product_of(domain, place, f"leave {name} out")
        if not isinstance(of, str):
            raise SettingError(
                f"{name} must name an attribute",
                where=place,
                got=shorten(of),
                expected=f"one of {listed(list(product.attributes))}",
                remedy="write the name as a text",
            )
        margin, remedy = product.margin([of], place), ""
    if margin.domain.places is None:
        raise EstimateError(
            "these values have no order",
            where=place,
            got=margin.domain.describe(),
            expected="a domain on a line: Integers or Bins",
            remedy=remedy or "ask for the share of a set of values with hubbub.interval",
        )
    return margin


def _numeric(domain: Domain) -> str:
    """Return the first numeric attribute; empty if there is none."""
    attributes = domain.attributes if isinstance(domain, Product) else {}
    return next((name for name, own in attributes.items() if own.places is not None), "")
