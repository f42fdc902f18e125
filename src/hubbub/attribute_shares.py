"""The shares of each attribute of a product, alone and among those with a value of another, with their intervals.

This is what tables and pages show of several attributes. Values that are too many for a table are taken together
(`domains/table_groups.py`): the numbers are those of `interval` for the same values.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from hubbub.core.arrays import Floats, Positions, frozen
from hubbub.core.progress import stepwise
from hubbub.core.serialization import Portable
from hubbub.core.text import listed
from hubbub.core.threads import limit_threads_per_step
from hubbub.domains import Product
from hubbub.domains.table_groups import MAX_GROUPS, ValueGroup, table_groups
from hubbub.estimators import Estimate
from hubbub.intervals.api import statistic_endpoints
from hubbub.intervals.conditional_shares import ConditionalShare
from hubbub.intervals.interval_endpoints import LikelihoodRegion
from hubbub.intervals.linear_statistic import Statistic
from hubbub.intervals.result import extend
from hubbub.intervals.robust_intervals import FakesAllowed
from hubbub.likelihood import Likelihood
from hubbub.reports import Reports
from hubbub.trust_check import affordable_intervals

MAX_CONDITIONAL_INTERVALS = 300  # on one page
COST_OF_A_RATIO = 4  # an interval of a conditional share takes about as long as so many others


class GroupShares(NamedTuple):
    """Shares of the groups of an attribute, and intervals that hold them (NaN: not computed)."""

    estimate: Floats  # NaN among given values that nobody is estimated to have
    low: Floats
    high: Floats

    @classmethod
    def alone(cls, estimate: Floats) -> GroupShares:
        """Return shares without intervals."""
        unknown = np.full(estimate.size, np.nan)
        return cls(estimate, unknown, unknown)


class PairShares(NamedTuple):
    """Two attributes together, each by its groups: the first is that of the rows."""

    rows: str
    columns: str
    joint: Floats  # rows by columns
    possible: Floats  # 0 where every combination is impossible


@dataclass(frozen=True, eq=False)
class AttributeShares(Portable):
    """Tables of all attributes of a product: of each, of each among the groups of another, and of each two."""

    groups: Mapping[str, tuple[ValueGroup, ...]]
    marginals: Mapping[str, GroupShares]
    conditionals: Mapping[tuple[str, str], tuple[GroupShares, ...]]  # of one, among each group of the other
    pairs: tuple[PairShares, ...]
    level: float
    notes: tuple[str, ...] = ()


def attribute_groups(estimate: Estimate, most: int = MAX_GROUPS) -> dict[str, tuple[ValueGroup, ...]]:
    """Return the groups of each attribute of an estimate over a product."""
    product = _product(estimate)
    return {
        name: table_groups(own, product.margin([name]).sums(estimate.probabilities), most)
        for name, own in product.attributes.items()
    }


@stepwise
def attribute_shares(
    estimate: Estimate,
    reports: Reports | None,
    level: float,
    *,
    fakes: float = 0.0,
    conditionals: bool = True,
) -> Generator[Any, None, AttributeShares]:
    """Return the tables of all attributes, with as many intervals as a few minutes allow; without reports there are none.

    Conditional shares get intervals pair by pair, in the order of the attributes.
    """
    product, groups = _product(estimate), attribute_groups(estimate)
    members = _members(product, groups)
    shares = estimate.probabilities
    marginals = {name: np.array([shares[own].sum() for own in members[name]]) for name in groups}
    pairs = tuple(pair_shares(product, groups, shares, *names) for names in combinations(groups, 2))
    given = {order: _given(pair, order) for pair in pairs for order in _orders(pair)}
    result = AttributeShares(
        groups,
        {name: GroupShares.alone(own) for name, own in marginals.items()},
        {order: tuple(map(GroupShares.alone, own)) for order, own in given.items()},
        pairs,
        level,
    )
    if reports is None:
        return result
    chosen, notes = _in_time(reports, groups, pairs if conditionals else ())
    if chosen is None:
        return _replaced(result, {}, {}, notes)
    wanted = [Statistic.share_of(product, own.tolist()) for name in groups for own in members[name]]
    ratios = [
        ConditionalShare.of(Statistic.share_of(product, own.tolist()), _indicator(product, among), "")
        for of, by in chosen
        for among, row in zip(members[by], given[of, by], strict=True)
        if not np.isnan(row).any()
        for own in members[of]
    ]

    def steps() -> Generator[Any, None, list[tuple[float, float]]]:
        region = yield from LikelihoodRegion.around(Likelihood.of(reports))
        allowed = FakesAllowed.of(reports, region, fakes) if fakes else None
        ends = yield from statistic_endpoints(reports, region, [*wanted, *ratios], level, allowed)
        return [(end.low, end.high) for end in ends]

    ends = yield from limit_threads_per_step(steps(), reports.weights.size * len(product))
    low, high = np.array(ends).T
    taken = 0

    def with_intervals(own: Floats) -> GroupShares:
        nonlocal taken
        if np.isnan(own).any():
            return GroupShares.alone(own)
        part = slice(taken, taken := taken + own.size)
        return GroupShares(own, *extend(low[part], high[part], own))

    by_attribute = {name: with_intervals(own) for name, own in marginals.items()}
    by_pair = {order: tuple(map(with_intervals, given[order])) for order in chosen}
    return _replaced(result, by_attribute, by_pair, notes)


def _product(estimate: Estimate) -> Product:
    assert isinstance(estimate.domain, Product)  # noqa: S101  # whoever asks for attributes has looked
    return estimate.domain


def _replaced(
    result: AttributeShares,
    marginals: Mapping[str, GroupShares],
    conditionals: Mapping[tuple[str, str], tuple[GroupShares, ...]],
    notes: Sequence[str],
) -> AttributeShares:
    return AttributeShares(
        result.groups,
        {**result.marginals, **marginals},
        {**result.conditionals, **conditionals},
        result.pairs,
        result.level,
        tuple(notes),
    )


def _members(product: Product, groups: Mapping[str, tuple[ValueGroup, ...]]) -> dict[str, list[Positions]]:
    """Return the positions of the combinations in each group of each attribute."""
    places = dict(zip(product.attributes, product.coordinates_of(np.arange(len(product))), strict=True))
    return {name: [np.flatnonzero(np.isin(places[name], group.positions)) for group in own] for name, own in groups.items()}


def _indicator(product: Product, positions: Positions) -> Floats:
    made = np.zeros(len(product))
    made[positions] = 1.0
    return frozen(made)


def pair_shares(
    product: Product, groups: Mapping[str, tuple[ValueGroup, ...]], shares: Floats, rows: str, columns: str
) -> PairShares:
    """Return two attributes together."""
    places = dict(zip(product.attributes, product.coordinates_of(np.arange(len(product))), strict=True))
    shape = (len(groups[rows]), len(groups[columns]))
    cells = np.ravel_multi_index([group_numbers(groups[name])[places[name]] for name in (rows, columns)], shape)
    joint, possible = (np.bincount(cells, weights=each, minlength=shape[0] * shape[1]) for each in (shares, shares >= 0))
    return PairShares(rows, columns, joint.reshape(shape), possible.reshape(shape))


def group_numbers(groups: Sequence[ValueGroup]) -> Positions:
    """Return the number of the group of each value."""
    numbers = np.empty(sum(group.positions.size for group in groups), dtype=np.int64)
    for number, group in enumerate(groups):
        numbers[group.positions] = number
    return numbers


def _orders(pair: PairShares) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return of which attribute, among the groups of which."""
    return (pair.columns, pair.rows), (pair.rows, pair.columns)


def _given(pair: PairShares, order: tuple[str, str]) -> Floats:
    """Return the conditional shares: a row for each group that is given."""
    joint = pair.joint if order[1] == pair.rows else pair.joint.T
    totals = joint.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return np.where(totals > 0.0, joint / np.where(totals > 0.0, totals, 1.0), np.nan)


def _in_time(
    reports: Reports, groups: Mapping[str, tuple[ValueGroup, ...]], pairs: Sequence[PairShares]
) -> tuple[list[tuple[str, str]] | None, list[str]]:
    """Return of which attributes, among the groups of which others, there is time for intervals; None: for no interval."""
    most, needed = affordable_intervals(reports), sum(map(len, groups.values()))
    if needed > most:
        return None, ["The intervals of attributes were not computed, because they would take too long."]
    left = min(MAX_CONDITIONAL_INTERVALS, (most - needed) // COST_OF_A_RATIO)
    chosen: list[tuple[str, str]] = []
    without: list[str] = []
    for pair in pairs:
        count = 2 * len(groups[pair.rows]) * len(groups[pair.columns])
        if count > left:
            without.append(f"{pair.rows} and {pair.columns}")
            continue
        left -= count
        chosen += _orders(pair)
    if not without:
        return chosen, []
    which = "conditional shares" if not chosen else f"conditional shares of {listed(without, most=3)}"
    remedy = "hubbub.band(reports, of=..., given={...}) computes those of one table"
    return chosen, [f"Intervals of {which} were left out: there are too many of them. {remedy}."]
