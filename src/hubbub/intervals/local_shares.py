"""The linear estimate of thousands of values on a line or a map, where noise is local: `local_shares`.

With A the chances of all outputs (values by outputs, of several mechanisms weighted by their shares of users), the
estimate of `set_intervals` is v = W c / n with W A' = I and c the counts of outputs. For noise that falls off with the
distance, W is local, too, but to invert a matrix over ten thousand values takes minutes. So rows of W are computed for
one tile of values at a time, in a window around it, which gives a W~ with few entries and W~ A' = I + B. B is measured,
not assumed. Then

    v = (I + B)^-1 W~ c / n,

by the series, is the same unbiased estimate as that of the whole inverse, and its covariance is the local part

    (I + B)^-1  W~ Q W~'  (I + B)^-T,      Q = diag(c + 4 f) / n^2,

(four more users, who answer as the reference does) plus few dyads. `CompactCovariance` takes W~ Q W~' and a bound for
the rest: with X = I - (I + B)^-1, |X| is at most |B| + |B|^2 + ...
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.linalg import LinAlgError

from hubbub.core.arrays import Floats, Positions
from hubbub.core.progress import Progress
from hubbub.domains import Domain
from hubbub.intervals.compact_covariance import CompactCovariance


@dataclass(frozen=True)
class Neighbourhood:
    """How values are grouped, in steps along each axis."""

    tile: int  # side of a group of values whose rows are computed together
    margin: int  # of the window around it, from which these rows are computed
    reach: int  # within which covariances are kept one by one


ON_MAP, ON_LINE = Neighbourhood(10, 12, 12), Neighbourhood(100, 300, 100)
MAX_ERROR = 0.25  # of W~ A' = I + B, as a sum over a row of |B|: beyond, noise reaches too far for the window
MAX_SERIES_TERMS = 60  # of the inverse of I + B: 0.25^60 is nothing
ROUNDED_UP = 1.0 + 1e-5  # more than single precision takes away from |B|

Singles32 = npt.NDArray[np.float32]


class ListedOutputs(NamedTuple):
    """The outputs of one mechanism: their chances, values by outputs, and how many users sent each."""

    probabilities: Floats
    counts: Floats


class _Rows(NamedTuple):
    """The rows of W~ for the values of a tile: 0 for all outputs but some."""

    values: Positions
    outputs: Positions
    weights: Floats


class LocalShares(NamedTuple):
    """The estimate and its covariance."""

    centre: Floats
    covariance: CompactCovariance


def local_shares(
    domain: Domain, listed: Sequence[ListedOutputs], base: Floats, added_users: float
) -> Generator[Progress, None, LocalShares | None]:
    """Return the estimate; None where noise reaches too far to compute it from windows."""
    counts = np.concatenate([block.counts for block in listed])
    users = float(counts.sum())
    chances = np.concatenate([(block.counts.sum() / users) * block.probabilities for block in listed], axis=1).T
    fitted = chances @ base
    rows, error = yield from _local_inverse(domain, np.ascontiguousarray(chances), fitted, base)
    if not error.size or not float(np.abs(error).sum(axis=1).max()) <= MAX_ERROR:
        return None

    def exact(sums: Floats) -> Floats:
        return _series(sums, lambda vector: -(error @ vector))

    centre = exact(_product(rows, counts / users))
    starts = np.cumsum([0, *(block.counts.size for block in listed)])
    factors, core = [base], [np.array([[-added_users / users**2]])]
    predicted = chances @ centre
    for start, end in pairwise(starts.tolist()):
        own = np.zeros(counts.size)
        own[start:end] = counts[start:end]
        sent = float(own.sum())
        expected = np.zeros(counts.size)
        expected[start:end] = predicted[start:end] * users / sent  # of one user of this mechanism
        factors += [exact(_product(rows, own)), exact(_product(rows, expected))]
        core.append(np.array([[0.0, -1.0], [-1.0, sent]]) / users**2)
    magnitude = np.abs(error, out=error)
    spread = _series(magnitude.sum(axis=0) * ROUNDED_UP, lambda vector: ROUNDED_UP * (vector @ magnitude))
    local = yield from _local_covariance(domain, rows, (counts + added_users * fitted) / users**2, spread)
    rising = ROUNDED_UP * (magnitude @ local.weighted)
    inexact = _series(rising, lambda vector: ROUNDED_UP * (magnitude @ vector))
    joined = np.zeros((len(factors), len(factors)))
    for place, block in zip(np.cumsum([0, *(len(part) for part in core[:-1])]), core, strict=True):
        joined[place : place + len(block), place : place + len(block)] = block
    covariance = CompactCovariance(
        numbers=_numbers(domain),
        diagonal=local.diagonal,
        offsets=local.offsets,
        bands=local.bands,
        factors=np.stack(factors),
        core=joined,
        left_out=local.left_out,
        inexact=inexact,
    )
    return LocalShares(centre, covariance)


def has_neighbours(domain: Domain) -> bool:
    """Whether the values of a domain are on a line or a map."""
    return domain.grid is not None or domain.places is not None


def _numbers(domain: Domain) -> Positions:
    """Return numbers of the values that differ by the same offset wherever two values lie in the same way."""
    return np.arange(len(domain)) if domain.grid is None else np.asarray(domain.labels, dtype=np.int64)


def _steps(domain: Domain) -> tuple[Positions, Neighbourhood]:
    """Return where values are, in steps along each axis, and how they are grouped."""
    if domain.grid is None or domain.steps is None:
        return np.arange(len(domain))[:, None], ON_LINE
    return domain.steps, ON_MAP


def _local_inverse(
    domain: Domain, chances: Floats, fitted: Floats, base: Floats
) -> Generator[Progress, None, tuple[list[_Rows], Singles32]]:
    """Return W~, a tile after the other, and B; B is empty where some window cannot be solved."""
    home = chances.argmax(axis=1)  # an output belongs to the window of the value that sends it most often
    rows: list[_Rows] = []
    error = np.empty((base.size, base.size), dtype=np.float32)
    for own, values in grouped(domain, np.arange(base.size)):
        yield Progress(sum(each.values.size for each in rows), base.size, "intervals of sets")
        outputs = np.flatnonzero(np.isin(home, values))
        weights = _window(chances, fitted, base, values, outputs, own)
        if weights is None:
            return [], np.empty((0, 0), dtype=np.float32)
        missing = weights @ chances[outputs]
        missing[np.arange(own.size), own] -= 1.0
        error[own] = missing
        rows.append(_Rows(own, outputs, weights))
    return rows, error


def _window(
    chances: Floats, fitted: Floats, base: Floats, values: Positions, outputs: Positions, own: Positions
) -> Floats | None:
    """Return rows of W as if only these values and outputs existed; None where they cannot be told apart."""
    from scipy.linalg import cho_factor, cho_solve

    inner, places = chances[np.ix_(outputs, values)], np.searchsorted(values, own)
    if outputs.size == values.size:
        return solved_rows(inner, places)
    ratio = inner / fitted[outputs, None]
    root = np.sqrt(base[values])[:, None]
    try:
        factor = cho_factor(root * (ratio.T @ inner) * root.T)
    except (LinAlgError, ValueError):
        return None
    return np.asarray((ratio @ (root * cho_solve(factor, root * _units(values.size, places)))).T)


def solved_rows(chances: Floats, places: Positions) -> Floats | None:
    """Return the rows w with w A' = e for values at some places, if outputs are as many as values; None if none."""
    from scipy.linalg import solve

    try:
        return np.asarray(solve(chances, _units(len(chances), places), transposed=True).T)
    except (LinAlgError, ValueError):
        return None


def _units(size: int, places: Positions) -> Floats:
    unit = np.zeros((size, places.size))
    unit[places, np.arange(places.size)] = 1.0
    return unit


def grouped(domain: Domain, positions: Positions) -> Iterator[tuple[Positions, Positions]]:
    """Yield the places, among some positions, of those in one tile, and all values in the window around it."""
    steps, around = _steps(domain)
    tiles, tile_of = np.unique(steps[positions] // around.tile, axis=0, return_inverse=True)
    for number, corner in enumerate(tiles * around.tile):
        inside = ((steps >= corner - around.margin) & (steps < corner + around.tile + around.margin)).all(axis=1)
        yield np.flatnonzero(tile_of.ravel() == number), np.flatnonzero(inside)


def _product(rows: Sequence[_Rows], counts: Floats) -> Floats:
    """Return W~ times a vector over outputs."""
    found = np.empty(sum(own.values.size for own in rows))
    for own in rows:
        found[own.values] = own.weights @ counts[own.outputs]
    return found


def _series(first: Floats, following: Callable[[Floats], Floats]) -> Floats:
    """Return the sum of a series that converges geometrically, each term from the one before."""
    total = term = first
    for _ in range(MAX_SERIES_TERMS):
        term = following(term)
        total = total + term
        if not np.abs(term).max() > np.finfo(np.float64).eps * np.abs(total).max():
            break
    return total


class _Local(NamedTuple):
    """W~ Q W~': the covariances of near pairs, a bound for all others, and its product with a vector."""

    diagonal: Floats
    offsets: Positions
    bands: Floats
    left_out: Floats
    weighted: Floats  # |W~ Q W~'| times the vector


def _local_covariance(
    domain: Domain, rows: Sequence[_Rows], noise: Floats, vector: Floats
) -> Generator[Progress, None, _Local]:
    numbers, size = _numbers(domain), len(domain)
    steps, around = _steps(domain)
    offsets = _near_offsets(domain, around.reach)
    index_of = np.full(int(np.ptp(numbers)) + 1, -1)
    index_of[offsets] = np.arange(offsets.size)
    diagonal, left_out, weighted = np.zeros(size), np.zeros(size), np.zeros(size)
    bands = np.zeros((offsets.size, size))
    lows = np.array([steps[own.values].min(axis=0) for own in rows])
    column = np.full(noise.size, -1)  # of each output among those of a tile
    for here, own in enumerate(rows):
        yield Progress(here, len(rows), "intervals of sets")
        column[:] = -1
        column[own.outputs] = np.arange(own.outputs.size)
        scaled = own.weights * noise[own.outputs]
        touching = (np.abs(lows - lows[here]) < 2 * (around.tile + around.margin)).all(axis=1)
        for there in np.flatnonzero(touching).tolist():
            other = rows[there]
            shared = np.flatnonzero(column[other.outputs] >= 0)
            block = scaled[:, column[other.outputs[shared]]] @ other.weights[:, shared].T
            weighted[own.values] += np.abs(block) @ vector[other.values]
            apart = numbers[other.values][None, :] - numbers[own.values][:, None]
            near = index_of[np.abs(apart)]
            left_out[own.values] += np.where((near < 0) & (apart != 0), np.maximum(block, 0.0), 0.0).sum(axis=1)
            first, second = np.nonzero((apart > 0) & (near >= 0))
            bands[near[first, second], own.values[first]] = block[first, second]
            if here == there:
                diagonal[own.values] = np.diagonal(block)
    return _Local(diagonal, offsets, bands, left_out, weighted)


def _near_offsets(domain: Domain, reach: int) -> Positions:
    """Return the differences between the numbers of values within reach."""
    if domain.grid is None:
        return np.arange(1, min(reach, len(domain) - 1) + 1)
    over, up = np.meshgrid(np.arange(-reach, reach + 1), np.arange(reach + 1))
    offsets = (up * domain.grid.columns + over)[over**2 + up**2 <= reach**2]
    return np.unique(offsets[(offsets > 0) & (offsets <= np.ptp(domain.labels))])
