"""Bounds of one's own for pairs of values, proven from the whole numbers that reports are drawn from.

A policy bounds the log-ratio of two values' probabilities, whatever the output and whichever of the two is on top. As
in `exact_epsilon`, no float decides: logarithms in floats with bounded errors leave few outputs that may have a pair's
largest ratio, whole numbers choose among these, and an enclosure compares it with e^bound.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np

from hubbub.auditing.closed_form_ratios import output_text_of
from hubbub.auditing.distinguishing_events import value_text
from hubbub.auditing.exact_ratios import EnclosedRate, OutputRatio, enclose_largest_rate, largest_ratio
from hubbub.auditing.probability_tables import (
    CACHED_ROWS,
    LOG_ERROR,
    MAX_COMPARISONS,
    ProbabilityTable,
    log_probabilities,
    probability_table,
)
from hubbub.core.arrays import Floats, as_real, plain
from hubbub.core.errors import DomainError, HubbubError, MechanismError, SettingError, shorten
from hubbub.core.progress import Progress, stepwise
from hubbub.core.text import plural
from hubbub.domains import Domain
from hubbub.domains.product_labels import json_value
from hubbub.estimators.result import finite
from hubbub.mechanisms import Mechanism

MAX_PAIRS = 1_000_000  # each is enclosed by itself: some minutes
PAIRS_PER_STEP = 256  # between two steps of progress
WHERE = "audit(pairs=)"
FORM = "{(value, other): bound, ...}: pairs of values, each with the largest log-ratio that is allowed"


@dataclass(frozen=True)
class PairBound:
    """What two values of a policy realise: the largest log-ratio of an output, in either direction, against the bound.

    `low` and `high` enclose it, rounded outward to 17 digits; `holds` is decided before that. Both are infinite where
    `output`, which has that ratio, is possible for only one of the two.
    """

    value: object
    other: object
    bound: float
    low: Decimal
    high: Decimal
    output: str
    holds: bool

    @property
    def excess(self) -> float:
        """By how much the log-ratio is above the bound; negative where there is room."""
        return -math.inf if self.bound == math.inf else float(self.high) - self.bound

    def document(self, domain: Domain) -> dict[str, Any]:
        """Return the pair for JSON; what is infinite is None."""
        return {
            "value": json_value(self.value, domain),
            "other": json_value(self.other, domain),
            "bound": finite(self.bound),
            "holds": self.holds,
            "epsilon": {"low": str(self.low), "high": str(self.high)} if self.low.is_finite() else None,
            "output": self.output,
        }


@dataclass(frozen=True)
class PairBounds:
    """A policy of bounds for pairs of values, and whether each of them is proven: the pairs as they were listed."""

    pairs: tuple[PairBound, ...]
    domain: Domain

    @property
    def holds(self) -> bool:
        """Whether every pair keeps its bound."""
        return all(pair.holds for pair in self.pairs)

    @property
    def worst(self) -> PairBound:
        """The pair that exceeds its bound the most, or has the least room below it; of equal ones the first."""
        return max(self.pairs, key=lambda pair: (not pair.holds, pair.excess))

    def text(self) -> str:
        """Return the findings in sentences."""
        worst, count = self.worst, len(self.pairs)
        compared = f"{value_text(worst.value)} with {value_text(worst.other)}"
        failed = sum(not pair.holds for pair in self.pairs)
        if failed:
            found = f"Refuted: {failed:,} of {plural(count, 'pair')} of values {'have' if failed > 1 else 'has'}"
            found += " a larger log-ratio than allowed."
        else:
            listed = "the pair" if count == 1 else f"each of the {count:,} pairs"
            found = f"Proven: {listed} of values keeps its bound, in both directions and for all outputs."
        if worst.bound == math.inf:
            return f"{found} No bound is finite."
        name = "The worst pair" if failed else "The pair with the least room"
        if not worst.low.is_finite():
            only = f"the output {worst.output} is possible for only one of them"
            return f"{found} {name} compares {compared}: {only}, and {worst.bound!r} is allowed."
        return (
            f"{found} {name} compares {compared}: the realised log-ratio is between {worst.low} and {worst.high}, "
            f"{'within' if worst.holds else 'more than'} the allowed {worst.bound!r} (output: {worst.output})."
        )

    def document(self) -> dict[str, Any]:
        """Return the findings for JSON."""
        return {
            "holds": self.holds,
            "worst": self.worst.document(self.domain),
            "pairs": [pair.document(self.domain) for pair in self.pairs],
            "text": self.text(),
        }


@stepwise
def prove_pair_bounds(mechanism: Mechanism, bounds: Mapping[Any, Any]) -> Generator[Progress, None, PairBounds]:
    """Prove or refute bounds on the log-ratios of pairs of values; if that is impossible, an error says why.

    `bounds` maps pairs (value, other) of labels to what is allowed, from 0 to infinity; a pair that is listed once is
    bounded in both directions. A user who sends several reports spends the sum.
    """
    domain = mechanism.domain
    checked = read_bounds(domain, bounds)
    table = _table(mechanism)
    if len(checked) * table.outputs > MAX_COMPARISONS:
        raise SettingError(
            "too many pairs to compare them in every output",
            where=WHERE,
            got=f"{len(checked):,} pairs, {table.outputs:,} outputs",
            expected=f"at most {MAX_COMPARISONS:,} comparisons",
            remedy="list the pairs that decide, such as neighbours",
        )
    logs = yield from log_probabilities(table)
    row = lru_cache(CACHED_ROWS)(table.row)
    largest_log = float(np.abs(logs[np.isfinite(logs)]).max())
    found = []
    for count, ((value, other), bound) in enumerate(checked.items()):
        if count % PAIRS_PER_STEP == 0:
            yield Progress(count, len(checked), "comparing the pairs of the policy")
        outputs = _promising_outputs(logs[value], logs[other], largest_log)
        enclosed = _enclose(row(value), row(other), value, other, outputs, table, bound)
        found.append(
            PairBound(
                value=plain(domain.labels[value]),
                other=plain(domain.labels[other]),
                bound=bound,
                low=enclosed.low,
                high=enclosed.high,
                output=enclosed.worst.output,
                holds=enclosed.holds,
            )
        )
    return PairBounds(tuple(found), domain)


def _promising_outputs(first: Floats, second: Floats, largest_log: float) -> Iterable[int]:
    """Return the outputs that may have the largest ratio of two rows of logarithms.

    Logarithms are off by `LOG_ERROR` each; no output is left out that could be the largest. Differences are infinite
    where only one of the two values can have an output.
    """
    used = np.flatnonzero(np.isfinite(first) | np.isfinite(second))
    apart = np.abs(first[used] - second[used])
    error = 2 * LOG_ERROR * (1 + largest_log)
    near: list[int] = used[apart >= apart.max() - 2 * error].tolist()
    return near


def _enclose(
    first: Any, second: Any, value: int, other: int, outputs: Iterable[int], table: ProbabilityTable, bound: float
) -> EnclosedRate:
    distinct = {(first[output], second[output]): output for output in reversed(list(outputs))}  # the first of each
    ratios = [
        OutputRatio.at_least_one(value, other, table.output_text(output), *weights)
        for weights, output in distinct.items()
    ]
    return enclose_largest_rate([largest_ratio(ratios)], bound)


def _table(mechanism: Mechanism) -> ProbabilityTable:
    law = mechanism.law
    table = probability_table(law, output_text_of(mechanism))
    if table is None:
        raise MechanismError(
            "pairs of values cannot be compared for this kind of law",
            where=WHERE,
            got=f"{type(mechanism).__name__}, {type(law).__name__}",
            expected="a mechanism whose reports are drawn from a table of probabilities, such as Matrix",
            remedy="where outputs can be listed, audit hubbub.Matrix(domain, mechanism.outputs, mechanism.matrix())",
        )
    return table


# -- reading what the caller passed ------------------------------------------------------------------------


def read_bounds(domain: Domain, bounds: object) -> dict[tuple[int, int], float]:
    """Return the bounds by pairs of positions, as they were listed; refuse what is no policy over the domain."""
    if not isinstance(bounds, Mapping) or not bounds:
        empty = isinstance(bounds, Mapping)
        what = "the policy has no pairs" if empty else "a policy maps pairs of values to bounds"
        remedy = "list at least one pair" if empty else "pass a dictionary"
        raise SettingError(what, where=WHERE, got=shorten(bounds), expected=FORM, remedy=remedy)
    if len(bounds) > MAX_PAIRS:
        raise SettingError(
            "the policy has too many pairs",
            where=WHERE,
            got=f"{len(bounds):,} pairs",
            expected=f"at most {MAX_PAIRS:,}",
            remedy="list the pairs that decide, such as neighbours",
        )
    checked: dict[tuple[int, int], float] = {}
    for pair, bound, where in _listed(bounds):
        value, other = (_position(domain, label, where) for label in pair)
        if value == other:
            raise SettingError(
                "a pair needs two different values",
                where=where,
                got=shorten(pair),
                expected="two values of the domain that differ",
                remedy="leave the pair out: a value always looks like itself",
            )
        known = checked.get((value, other), checked.get((other, value)))
        if known is None:
            checked[value, other] = bound
        elif known != bound:
            raise SettingError(
                "a pair is listed twice, with two bounds",
                where=where,
                got=f"{bound!r} and {known!r}",
                expected="one bound for a pair, which counts in both directions",
                remedy="list the pair once, with the smaller bound",
            )
    return checked


def _listed(bounds: Mapping[Any, Any]) -> Iterator[tuple[tuple[Any, Any], float, str]]:
    """Yield each pair of labels with its bound, and its place in messages."""
    for place, (pair, bound) in enumerate(bounds.items()):
        where = f"{WHERE}, pair {place}"
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise SettingError(
                "a policy is about pairs of values",
                where=where,
                got=shorten(pair),
                expected="a tuple of two values of the domain",
                remedy="write (value, other): bound",
            )
        number = as_real(bound)
        if not number >= 0:
            raise SettingError(
                "a bound must be 0 or more",
                where=where,
                got=shorten(bound),
                expected="the largest log-ratio that is allowed: a number from 0; infinity for no bound",
                remedy="state the epsilon of the two values, such as 1.0",
            )
        yield pair, number, where


def _position(domain: Domain, label: object, where: str) -> int:
    try:
        return int(domain.index([label])[0])
    except HubbubError as error:
        raise DomainError(
            "a value of the pair is not in the domain",
            where=where,
            got=error.got,
            expected=domain.describe(),
            remedy="list values of the mechanism's domain, by their labels",
        ) from None
