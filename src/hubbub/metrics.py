"""Distances between distributions."""

from __future__ import annotations

import math

import numpy as np

from hubbub.core import validation
from hubbub.core.arrays import Floats
from hubbub.core.errors import DistanceError, shorten
from hubbub.domains import Domain

MAX_TRANSPORT_PAIRS = 100_000_000  # of cells that give and take mass: 0.8 GB of distances
MAX_RELATIVE_ROUNDING = 1e-13  # entries this close are the same: normalising by two sums leaves such differences


def total_variation(p: object, q: object) -> float:
    r"""Return the total variation: the largest difference between two distributions in the probability of any event.

    It is :math:`\frac{1}{2} \sum_x |p_x - q_x|`, the share of people who would have to change their value to turn one
    distribution into the other.

    Parameters
    ----------
    p, q : array of float
        Distributions over the same values.

    Returns
    -------
    float
        Between 0 and 1.

    Raises
    ------
    DistanceError
        If `p` or `q` is not a distribution, or they have different lengths.

    Examples
    --------
    >>> import hubbub as hb
    >>> hb.total_variation([0.5, 0.5, 0], [0.5, 0, 0.5])
    0.5
    """
    first, second = _pair(p, q, "total_variation")
    return float(np.abs(first - second).sum() / 2)


def kl_divergence(p: object, q: object) -> float:
    r"""Return the Kullback-Leibler divergence of p from q: the mean log-likelihood ratio of values that come from p.

    It is :math:`\sum_x p_x \log (p_x / q_x)`, and not symmetric.

    Parameters
    ----------
    p, q : array of float
        Distributions over the same values.

    Returns
    -------
    float
        In nats, with 0 log 0 = 0; infinite if p has mass where q has none.

    Raises
    ------
    DistanceError
        If `p` or `q` is not a distribution, or they have different lengths.

    Examples
    --------
    >>> import hubbub as hb
    >>> round(hb.kl_divergence([1.0, 0.0], [0.5, 0.5]), 6)
    0.693147
    """
    first, second = _pair(p, q, "kl_divergence")
    held = first > 0
    if (second[held] == 0).any():
        return math.inf
    return max(0.0, float(first[held] @ np.log(first[held] / second[held])))


def earth_mover_distance(p: object, q: object, domain: Domain) -> float:
    """Return the earth mover's distance: the smallest total of mass times distance that turns p into q.

    On a line it is the integral of the absolute difference of the two distribution functions. Categories are at
    distance 1 from each other, so that it is the total variation. On a grid it is a transport problem (solved by
    the network simplex of POT); because distances obey the triangle inequality, mass that both share stays where it is,
    and only the difference is moved. Entries that agree to 13 digits count as the same; with that, and rounding, the
    distance is exact to 1e-12 times the domain's diameter.

    Parameters
    ----------
    p, q : array of float
        Distributions over the values of the domain, in the order of ``domain.labels``.
    domain : Domain
        The values and their distances.

    Returns
    -------
    float
        In the domain's unit of distance.

    Raises
    ------
    DistanceError
        If `p` or `q` is not a distribution over the domain, or too many cells of a grid differ for an exact distance.

    Examples
    --------
    >>> import hubbub as hb
    >>> hb.earth_mover_distance([1, 0, 0], [0, 0, 1], hb.Integers(0, 2))
    2.0
    """
    if not isinstance(domain, Domain):
        raise DistanceError(
            "domain must be a hubbub domain",
            where="earth_mover_distance(p, q, domain)",
            got=shorten(domain),
            expected="a hubbub domain, such as estimate.domain",
            remedy="pass the domain of p and q",
        )
    first, second = _pair(p, q, "earth_mover_distance", len(domain))
    if domain.is_equidistant:
        return total_variation(first, second)
    if domain.places is not None:
        return float(np.abs(np.cumsum(first - second)[:-1]) @ np.diff(domain.places))
    difference = first - second
    difference[np.abs(difference) <= MAX_RELATIVE_ROUNDING * np.maximum(first, second)] = 0.0
    return _transport(difference, domain)


def _transport(difference: Floats, domain: Domain) -> float:
    giving, taking = np.flatnonzero(difference > 0), np.flatnonzero(difference < 0)
    if giving.size == 0 or taking.size == 0:
        return 0.0
    if giving.size * taking.size > MAX_TRANSPORT_PAIRS:
        raise DistanceError(
            "too many cells differ for an exact distance",
            where="earth_mover_distance",
            got=f"{giving.size:,} cells give mass and {taking.size:,} take it",
            expected=f"at most {MAX_TRANSPORT_PAIRS:,} pairs",
            remedy="merge cells into larger ones, or use the total variation",
        )
    import ot

    supply, demand = difference[giving], -difference[taking]
    moved = supply.sum()
    cost = np.ascontiguousarray(domain.distances_between(giving, taking))
    _, log = ot.lp.emd(supply / moved, demand / demand.sum(), cost, numItermax=100_000_000, log=True)
    if log["warning"] is not None:
        raise DistanceError(
            "the transport problem was not solved",
            where="earth_mover_distance",
            got=str(log["warning"]),
            expected="an optimal plan",
            remedy="merge cells into larger ones",
        )
    return float(log["cost"] * moved)


def _pair(p: object, q: object, where: str, length: int | None = None) -> tuple[Floats, Floats]:
    first = validation.distribution(p, length, f"{where}(p)", error=DistanceError)
    second = validation.distribution(q, length, f"{where}(q)", error=DistanceError)
    if first.size != second.size:
        raise DistanceError(
            "p and q have different lengths",
            where=f"{where}(p, q)",
            got=f"{first.size} and {second.size} probabilities",
            expected="two distributions over the same values",
            remedy="pass both over one domain, in the order of its labels",
        )
    return first, second
