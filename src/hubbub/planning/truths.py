"""What is assumed of the truth: a named shape, shares or counts of one's own, or several of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from hubbub.core import validation
from hubbub.core.arrays import Floats, as_array, as_floats, as_real, frozen
from hubbub.core.errors import SettingError, shorten
from hubbub.core.portable import Portable
from hubbub.domains import Domain
from hubbub.estimators import Estimate

WHERE = "plan(truth=)"
WORST = "worst"
DOMINANT = 0.6  # the share of the one value that most people hold
BELLS = ((0.28, 0.25, 0.06, 0.45), (0.7, 0.6, 0.1, 0.35), (0.45, 0.85, 0.05, 0.2))  # west to east, south to north


@dataclass(frozen=True, eq=False)
class AssumedTruth(Portable):
    """The shares of the values, in the order of the domain's labels, from which users are drawn."""

    name: str
    probabilities: Floats


def truths_from(truth: object, domain: Domain) -> tuple[AssumedTruth, ...]:
    """Return the truths that are meant: one, or several of which the worst counts.

    `truth` is the name of a shape, shares in the order of ``domain.labels``, {value: count}, an estimate, a list of
    several of these, or "worst" for all named shapes. The shapes mean the same for all domains, as far as these have
    an order:

    * "uniform": all values alike;
    * "bell": a bell in the middle of the line or the map;
    * "bells": three bells of different sizes, two of them close;
    * "zipf": 1/1, 1/2, 1/3, ... in the order of the labels, on a map by the distance from its middle;
    * "block": equal shares for the values in a block (a quarter of the line, half the width and height of the map), 0
      for all others;
    * "dominant": six users of ten hold one value (that in the middle), the others any other alike.

    Categories have no places: they stand in a row, in the order of their labels.
    """
    found = list(_several(truth, domain))
    names: dict[str, int] = {}
    for place, one in enumerate(found):
        names[one.name] = names.get(one.name, 0) + 1
        if names[one.name] > 1:
            found[place] = replace(one, name=f"{one.name} {names[one.name]}")
    return tuple(found)


def _several(truth: object, domain: Domain) -> Iterable[AssumedTruth]:
    if isinstance(truth, str) and truth == WORST:
        return [_named(name, domain) for name in SHAPES]
    if isinstance(truth, list | tuple) and not all(_is_number(entry) for entry in truth):
        if any(isinstance(entry, str) and entry == WORST for entry in truth):
            raise _no_such_shape(WORST, "'worst' stands alone: it is all of them")
        return [_one(entry, domain) for entry in truth]
    return [_one(truth, domain)]


def _one(truth: object, domain: Domain) -> AssumedTruth:
    if isinstance(truth, AssumedTruth):
        return AssumedTruth(truth.name, _shares(truth.probabilities, domain))
    if isinstance(truth, str):
        return _named(truth, domain)
    if isinstance(truth, Mapping):
        return AssumedTruth("counts", _counts(truth, domain))
    if isinstance(truth, Estimate):
        if truth.domain != domain:
            raise SettingError(
                "the estimate is over another domain",
                where=WHERE,
                got=shorten(truth.domain, 100),
                expected=shorten(domain, 100),
                remedy="plan over the estimate's own domain",
            )
        return AssumedTruth("estimate", _shares(truth.probabilities, domain))
    return AssumedTruth("given", _shares(truth, domain))


def _shares(shares: object, domain: Domain) -> Floats:
    return frozen(validation.distribution(shares, len(domain), WHERE, error=SettingError))


def _counts(counts: Mapping[object, object], domain: Domain) -> Floats:
    numbers = as_floats(list(counts.values()))
    good = np.zeros(0, dtype=bool) if numbers is None else np.isfinite(numbers) & (numbers >= 0)
    if numbers is None or numbers.ndim != 1 or not good.all() or not numbers.sum() > 0:
        bad = (
            "no counts" if not good.size else next((v for v, g in zip(counts.values(), good, strict=True) if not g), 0)
        )
        raise SettingError(
            "these are not counts",
            where=WHERE,
            got=shorten(bad) if good.size and not good.all() else f"{len(counts)} counts, none above 0",
            expected="{value: count}: finite numbers, at least 0, some of them above",
            remedy="give how many people hold each value; values that are left out count as 0",
        )
    positions = np.atleast_1d(domain.index(as_array(list(counts))))
    shares = np.zeros(len(domain))
    np.add.at(shares, positions, numbers)
    return frozen(shares / shares.sum())


def _is_number(entry: object) -> bool:
    return not np.isnan(as_real(entry)) or (isinstance(entry, float) and np.isnan(entry))


# -- shapes ------------------------------------------------------------------------------------------------


def _named(name: str, domain: Domain) -> AssumedTruth:
    if name not in SHAPES:
        raise _no_such_shape(name, "check its spelling, or give shares or counts of your own")
    shares = SHAPES[name](_places(domain))
    return AssumedTruth(name, frozen(shares / shares.sum()))


def _no_such_shape(name: str, remedy: str) -> SettingError:
    return SettingError(
        "no such shape",
        where=WHERE,
        got=shorten(name),
        expected=f"{', '.join(map(repr, SHAPES))} or {WORST!r}",
        remedy=remedy,
    )


def _places(domain: Domain) -> Floats:
    """Return where the values lie, from 0 to 1 along each axis: one column for a line, two for a map."""
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
    return np.asarray(sum(share * _normal(_gauss(places, (x, y), width)) for x, y, width, share in BELLS))


def _gauss(places: Floats, centre: tuple[float, float], width: float) -> Floats:
    apart = places - np.array(centre)[: places.shape[1]]
    squares = (apart**2).sum(axis=1) / (2.0 * width**2)
    return np.asarray(np.exp(squares.min() - squares))  # a bell between two values is still somewhere


def _normal(shares: Floats) -> Floats:
    return np.asarray(shares / shares.sum())


def _zipf(places: Floats) -> Floats:
    # On a map the order is by the distance from the middle, ties by number; on a line it is that of the labels.
    if places.shape[1] == 1:
        ranks = np.arange(len(places))
    else:
        ranks = np.argsort(np.argsort(((places - 0.5) ** 2).sum(axis=1).round(12), kind="stable"))
    return np.asarray(1.0 / (1.0 + ranks))


def _block(places: Floats) -> Floats:
    low, high = (0.25, 0.5) if places.shape[1] == 1 else (0.25, 0.75)
    inside = np.asarray(((places >= low) & (places <= high)).all(axis=1))
    if not inside.any():  # a domain of so few values that none lies there
        inside[_middle(places)] = True
    return inside.astype(np.float64)


def _dominant(places: Floats) -> Floats:
    shares = np.full(len(places), (1.0 - DOMINANT) / (len(places) - 1))
    shares[_middle(places)] = DOMINANT
    return shares


def _middle(places: Floats) -> int:
    return int(np.argmin(((places - 0.5) ** 2).sum(axis=1)))


SHAPES: dict[str, Callable[[Floats], Floats]] = {
    "uniform": _uniform,
    "bell": _bell,
    "bells": _bells,
    "zipf": _zipf,
    "block": _block,
    "dominant": _dominant,
}
