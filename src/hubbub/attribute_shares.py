"""The shares of each attribute of a product, alone and among those with a value of another, with their intervals.

This is what tables and pages show of several attributes. Values that are too many for a table are taken together
(`domains/table_groups.py`): the numbers are those of `interval` for the same values.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Floats, Positions, frozen
from hubbub.core.progress import stepwise
from hubbub.core.serialization import Portable
from hubbub.core.threads import limit_threads_per_step
from hubbub.domains import Product
from hubbub.domains.table_groups import ValueGroup, attribute_groups, crossed_shares
from hubbub.estimators import Estimate
from hubbub.estimators.result import attributes_of
from hubbub.intervals.api import statistic_endpoints
from hubbub.intervals.conditional_shares import ConditionalShare
from hubbub.intervals.deviance_cutoff import MAX_SIMULATED_VALUES
from hubbub.intervals.interval_endpoints import Endpoints, LikelihoodRegion
from hubbub.intervals.linear_statistic import Statistic
from hubbub.intervals.result import extend
from hubbub.intervals.robust_intervals import FakesAllowed
from hubbub.intervals.set_intervals import SetShares, normal_quantile
from hubbub.intervals.smooth_statistics import SmoothStatistic
from hubbub.likelihood import Likelihood
from hubbub.reports import Reports

MAX_PROFILE_COMBINATIONS = MAX_SIMULATED_VALUES  # with more, cutoffs of the likelihood are not calibrated
MAX_CONDITIONAL_WORK = 40_000_000  # conditional shares times squared combinations: one or two minutes

Key = tuple[str, str, int]  # of an attribute, among a group of another; marginal shares have no other
_Ratio = tuple[Positions, Positions | None]  # combinations whose share is asked for, among which others


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
    possible: NDArray[np.bool_]  # False where every combination is impossible
    low: Floats  # of intervals; NaN: not computed
    high: Floats


@dataclass(frozen=True, eq=False)
class AttributeShares(Portable):
    """Tables of all attributes of a product: of each, of each among the groups of another, and of each two."""

    groups: Mapping[str, tuple[ValueGroup, ...]]
    marginals: Mapping[str, GroupShares]
    conditionals: Mapping[tuple[str, str], tuple[GroupShares, ...]]  # of one, among each group of the other
    pairs: tuple[PairShares, ...]
    level: float
    notes: tuple[str, ...] = ()

    def with_joint_intervals(self, low: Floats, high: Floats) -> AttributeShares:
        """Return the same tables with the intervals of all combinations, if each combination has a cell of its own."""
        pair = self.pairs[0]
        if len(self.pairs) > 1 or np.count_nonzero(pair.possible) != low.size:
            return self
        ends = [np.full(pair.joint.shape, np.nan) for _ in range(2)]
        for end, own in zip(ends, (low, high), strict=True):
            end[pair.possible] = own
        return replace(self, pairs=(pair._replace(low=ends[0], high=ends[1]),))


@stepwise
def attribute_shares(
    estimate: Estimate,
    reports: Reports | None,
    level: float,
    *,
    linear: SetShares | None = None,
    quick: bool = False,
    fakes: float = 0.0,
    conditionals: bool = True,
) -> Generator[Any, None, AttributeShares]:
    """Return the tables of all attributes, with intervals as far as time allows; without reports there are none.

    Intervals are those of `interval`, by the profile likelihood, or none. On quick pages, and with more combinations
    than cutoffs are calibrated for, they come from the unbiased linear estimate, if there is one.
    """
    product, shares = _product(estimate), estimate.probabilities
    groups = attribute_groups(product, shares)
    members = _members(product, groups)
    marginals = {name: np.array([shares[own].sum() for own in members[name]]) for name in groups}
    pairs = tuple(_pair(product, groups, shares, *names) for names in combinations(groups, 2))
    given = {order: _given(pair, order) for pair in pairs for order in _orders(pair)}
    wanted: dict[Key, list[_Ratio]] = {(name, "", 0): [(own, None) for own in members[name]] for name in groups}
    ratios: dict[Key, list[_Ratio]] = {
        (of, by, number): [(own, among) for own in members[of]]
        for of, by in (given if conditionals else ())
        for number, among in enumerate(members[by])
        if not np.isnan(given[of, by][number]).any()
    }
    ends: dict[Key, tuple[Floats, Floats]] = {}
    notes: list[str] = []
    if reports is not None:
        count = sum(map(len, ratios.values()))
        is_linear = quick or len(product) > MAX_PROFILE_COMBINATIONS
        if is_linear and linear is not None and not fakes:
            ends = {key: _by_linear(linear, sets, level) for key, sets in {**wanted, **ratios}.items()}
            notes.append(_linear_note(quick))
        elif is_linear:
            notes.append(_missing_note("Intervals of attributes", quick))
        else:
            if count * len(product) ** 2 <= MAX_CONDITIONAL_WORK:
                wanted |= ratios
            else:
                notes.append(_missing_note("Intervals of conditional shares", quick))
            ends = yield from _by_profile(reports, product, wanted, level, fakes)

    def known(own: Floats, key: Key) -> GroupShares:
        found = ends.get(key)
        return GroupShares.alone(own) if found is None else GroupShares(own, *extend(*found, own))

    return AttributeShares(
        groups,
        {name: known(own, (name, "", 0)) for name, own in marginals.items()},
        {
            order: tuple(known(own, (*order, number)) for number, own in enumerate(rows))
            for order, rows in given.items()
        },
        pairs,
        level,
        tuple(notes),
    )


def _by_profile(
    reports: Reports, product: Product, wanted: Mapping[Key, Sequence[_Ratio]], level: float, fakes: float
) -> Generator[Any, None, dict[Key, tuple[Floats, Floats]]]:
    """Return the ends of intervals by the profile likelihood, all of them from one search and one simulation."""
    statistics: list[Statistic | SmoothStatistic] = []
    for sets in wanted.values():
        for own, among in sets:
            share = Statistic.share_of(product, own.tolist())
            statistics.append(
                share if among is None else ConditionalShare.of(share, _indicator(len(product), among), "")
            )

    def steps() -> Generator[Any, None, list[Endpoints]]:
        region = yield from LikelihoodRegion.around(Likelihood.of(reports))
        allowed = FakesAllowed.of(reports, region, fakes) if fakes else None
        return (yield from statistic_endpoints(reports, region, statistics, level, allowed))

    ends = yield from limit_threads_per_step(steps(), reports.weights.size * len(product))
    found, taken = {}, 0
    for key, sets in wanted.items():
        part = ends[taken : (taken := taken + len(sets))]
        found[key] = np.array([end.low for end in part]), np.array([end.high for end in part])
    return found


def _by_linear(linear: SetShares, sets: Sequence[_Ratio], level: float) -> tuple[Floats, Floats]:
    """Return the ends of intervals by the unbiased linear estimate; of ratios by Fieller's theorem.

    A ratio r of A to B is not refuted if (A - r B)^2 is at most z^2 times the variance of A - r B.
    """
    size = linear.centre.size
    inside = np.array([_indicator(size, own) for own, _ in sets])
    if sets[0][1] is None:
        return linear.weighted_intervals(inside, level)
    z2 = normal_quantile(level) ** 2
    group = np.broadcast_to(_indicator(size, sets[0][1]), inside.shape)
    own = inside * group
    top, whole = own @ linear.centre, group @ linear.centre
    v_top, v_whole, v_rest = (linear.weighted_deviations(each) ** 2 for each in (own, group, group - own))
    both = (v_top + v_whole - v_rest) / 2.0
    a, b, c = whole**2 - z2 * v_whole, top * whole - z2 * both, top**2 - z2 * v_top
    root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = np.clip((b - root) / a, 0.0, 1.0), np.clip((b + root) / a, 0.0, 1.0)
    is_bounded = a > 0.0  # otherwise nobody may have the given values, and every ratio is possible
    return np.where(is_bounded, low, 0.0), np.where(is_bounded, high, 1.0)


def _linear_note(quick: bool) -> str:
    """Return what to know about intervals that are not by the profile likelihood."""
    limit = f"there are more than {MAX_PROFILE_COMBINATIONS:,} combinations"
    reason = "this is a quick page" if quick else limit
    return f"Intervals of attributes come from the unbiased linear estimate, not from the likelihood, because {reason}."


def _missing_note(which: str, quick: bool) -> str:
    """Return what to know about intervals that are missing."""
    reason = "this is a quick page" if quick else "they would take too long"
    return f"{which} were not computed, because {reason}: hubbub.band(reports, of=..., given=...) computes one table."


def _product(estimate: Estimate) -> Product:
    return attributes_of(estimate.domain, "attribute_shares(estimate)")


def _members(product: Product, groups: Mapping[str, tuple[ValueGroup, ...]]) -> dict[str, list[Positions]]:
    """Return the positions of the combinations in each group of each attribute."""
    places = dict(zip(product.attributes, product.coordinates_of(np.arange(len(product))), strict=True))
    return {
        name: [np.flatnonzero(np.isin(places[name], group.positions)) for group in own] for name, own in groups.items()
    }


def _indicator(size: int, positions: Positions) -> Floats:
    made = np.zeros(size)
    made[positions] = 1.0
    return frozen(made)


def _pair(
    product: Product, groups: Mapping[str, tuple[ValueGroup, ...]], shares: Floats, rows: str, columns: str
) -> PairShares:
    crossed = crossed_shares(product, shares, (rows, groups[rows]), (columns, groups[columns]))
    unknown = np.full(crossed.joint.shape, np.nan)
    return PairShares(rows, columns, *crossed, unknown, unknown)


def _orders(pair: PairShares) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return of which attribute, among the groups of which."""
    return (pair.columns, pair.rows), (pair.rows, pair.columns)


def _given(pair: PairShares, order: tuple[str, str]) -> Floats:
    """Return the conditional shares: a row for each group that is given."""
    joint = pair.joint if order[1] == pair.rows else pair.joint.T
    totals = joint.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return np.where(totals > 0.0, joint / np.where(totals > 0.0, totals, 1.0), np.nan)
