"""The truths that a plan assumes: named shapes, or the caller's shares, counts or estimate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hubbub.core import validation
from hubbub.core.arrays import Floats, Positions, as_real, frozen
from hubbub.core.defaults import TRUTH_SHAPES, WORST_SHAPE
from hubbub.core.errors import SettingError, shorten
from hubbub.core.serialization import Portable
from hubbub.core.text import plural
from hubbub.domains import Domain
from hubbub.estimators import Estimate

WHERE = "plan(truth=)"
MAX_ALL_VALUES = 32  # in larger domains, three values stand for all
DOMINANT_SHARE = 0.6
BELLS = ((0.28, 0.25, 0.06, 0.45), (0.7, 0.6, 0.1, 0.35), (0.45, 0.85, 0.05, 0.2))  # x, y, width, share


@dataclass(frozen=True, eq=False)
class AssumedTruth(Portable):
    """The distribution from which users' values are drawn, in the order of the domain's labels."""

    name: str
    probabilities: Floats

    def representative_positions(self) -> Positions:
        """Return those of all values if they are few, else of the largest, the median and the smallest share."""
        shares = self.probabilities
        if shares.size <= MAX_ALL_VALUES:
            return np.arange(shares.size)
        order = np.argsort(shares, kind="stable")
        chosen = [order[-1], order[shares.size // 2], order[0]]
        return np.array(list(dict.fromkeys(int(position) for position in chosen)))


def truths_from(truth: object, domain: Domain, *, where: str = WHERE) -> tuple[AssumedTruth, ...]:
    """Return one truth, or several; the worst of them counts.

    `truth` is the name of a shape, shares in the order of ``domain.labels``, {value: count}, an estimate, a list of
    several of these, or "worst" for all named shapes; `where` is the argument, for messages:

    * "uniform": equal shares;
    * "bell": a bell in the middle of the line or the map;
    * "bells": three bells of different sizes, two of them close to each other;
    * "zipf": 1/1, 1/2, 1/3, ... in the order of the labels; on a map by the distance from its middle;
    * "block": equal shares in a block (a quarter of the line, half the width and height of the map), and 0 elsewhere;
    * "dominant": a share of 0.6 for the value in the middle, and equal shares for the others.

    Categories have no distances; they are placed on a line in the order of their labels.
    """
    if isinstance(truth, str) and truth == WORST_SHAPE:
        entries: Sequence[object] = list(SHAPES)
    elif isinstance(truth, list | tuple) and not all(_is_number(entry) for entry in truth):
        entries = truth
    else:
        entries = [truth]
    truths: list[AssumedTruth] = []
    counts: dict[str, int] = {}
    for each in (_truth(entry, domain, where) for entry in entries):
        number = counts[each.name] = counts.get(each.name, 0) + 1
        truths.append(each if number == 1 else replace(each, name=f"{each.name} {number}"))
    return tuple(truths)


def _truth(truth: object, domain: Domain, where: str) -> AssumedTruth:
    if isinstance(truth, AssumedTruth):
        return AssumedTruth(truth.name, _shares(truth.probabilities, domain, where))
    if isinstance(truth, str):
        return _shape(truth, domain, where)
    if isinstance(truth, Mapping):
        return AssumedTruth("counts", _counts(truth, domain, where))
    if isinstance(truth, Estimate):
        if truth.domain != domain:
            raise SettingError(
                "the estimate has another domain",
                where=where,
                got=shorten(truth.domain, 100),
                expected=shorten(domain, 100),
                remedy="plan over the estimate's own domain",
            )
        return AssumedTruth("estimate", _shares(truth.probabilities, domain, where))
    return AssumedTruth("given", _shares(truth, domain, where))


def _shares(shares: object, domain: Domain, where: str) -> Floats:
    return frozen(validation.distribution(shares, len(domain), where))


def _counts(counts: Mapping[object, object], domain: Domain, where: str) -> Floats:
    numbers = np.array([as_real(count) for count in counts.values()])
    is_count = np.isfinite(numbers) & (numbers >= 0)
    if not is_count.all() or not numbers.sum() > 0:
        wrong = [count for count, is_good in zip(counts.values(), is_count, strict=True) if not is_good]
        raise SettingError(
            "these are not counts",
            where=where,
            got=shorten(wrong[0]) if wrong else f"{plural(len(counts), 'count')}, none of them positive",
            expected="{value: count} with finite numbers, none of them negative and at least one positive",
            remedy="pass how many people hold each value; values left out count as 0",
        )
    positions = np.atleast_1d(domain.index(list(counts)))
    shares = np.zeros(len(domain))
    np.add.at(shares, positions, numbers)
    return frozen(shares / shares.sum())


def _is_number(entry: object) -> bool:
    return not np.isnan(as_real(entry)) or (isinstance(entry, float) and np.isnan(entry))


# -- shapes ------------------------------------------------------------------------------------------------


def _shape(name: str, domain: Domain, where: str) -> AssumedTruth:
    if name not in SHAPES:
        remedy = "check the spelling, or pass shares or counts"
        raise SettingError(
            "no such shape",
            where=where,
            got=shorten(name),
            expected=f"{', '.join(map(repr, SHAPES))} or {WORST_SHAPE!r}",
            remedy="pass 'worst' alone: it already includes all shapes" if name == WORST_SHAPE else remedy,
        )
    shares = SHAPES[name](_places(domain))
    return AssumedTruth(name, frozen(shares / shares.sum()))


def _places(domain: Domain) -> Floats:
    """Return the coordinates of the values, from 0 to 1 along each axis: one column for a line, two for a map."""
    if domain.grid is not None:
        steps = domain.grid.steps.astype(np.float64)
        return np.asarray(steps / np.maximum([domain.grid.columns - 1, domain.grid.rows - 1], 1))
    if domain.places is not None:
        return np.asarray((domain.places - domain.places[0]) / domain.diameter)[:, None]
    return np.linspace(0.0, 1.0, len(domain))[:, None]


def _uniform(places: Floats) -> Floats:
    return np.ones(len(places))


def _bell(places: Floats) -> Floats:
    return _gauss(places, (0.5, 0.5), 0.15)


def _bells(places: Floats) -> Floats:
    shares = np.zeros(len(places))
    for x, y, width, share in BELLS:
        bell = _gauss(places, (x, y), width)
        shares += share * (bell / bell.sum())
    return shares


def _gauss(places: Floats, centre: tuple[float, float], width: float) -> Floats:
    apart = places - np.array(centre)[: places.shape[1]]
    squares = (apart**2).sum(axis=1) / (2.0 * width**2)
    return np.asarray(np.exp(squares.min() - squares))  # a bell between two values does not vanish


def _zipf(places: Floats) -> Floats:
    if places.shape[1] == 1:
        ranks = np.arange(len(places))
    else:
        # By the distance from the middle, ties by the number of the cell.
        ranks = np.argsort(np.argsort(((places - 0.5) ** 2).sum(axis=1).round(12), kind="stable"))
    return np.asarray(1.0 / (1.0 + ranks))


def _block(places: Floats) -> Floats:
    low, high = (0.25, 0.5) if places.shape[1] == 1 else (0.25, 0.75)
    inside = np.asarray(((places >= low) & (places <= high)).all(axis=1))
    if not inside.any():  # a domain with too few values
        inside[_middle(places)] = True
    return inside.astype(np.float64)


def _dominant(places: Floats) -> Floats:
    shares = np.full(len(places), (1.0 - DOMINANT_SHARE) / (len(places) - 1))
    shares[_middle(places)] = DOMINANT_SHARE
    return shares


def _middle(places: Floats) -> int:
    return int(np.argmin(((places - 0.5) ** 2).sum(axis=1)))


SHAPES: dict[str, Callable[[Floats], Floats]] = dict(
    zip(TRUTH_SHAPES, (_uniform, _bell, _bells, _zipf, _block, _dominant), strict=True)
)
