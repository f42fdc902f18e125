"""What may be true of a crowd before it reports: families of distributions, as `auto` tries them.

A family is a Gaussian for the logarithms u of the probabilities around a centre m. To first order a distribution is
m + (diag(m) - m m') u, so that u with covariance K gives theta the covariance P K P. Constants are those of the
candidates of `auto` (`estimators/auto/candidate_families.py`): values whose shares have nothing to do with each other,
rough and smooth curves of several lengths, and shapes with few parameters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.domains import Domain
from hubbub.estimators.auto.candidate_families import (
    LOG_DEVIATIONS,
    ROUGH_DEVIATIONS,
    SMOOTH_DEVIATIONS,
    STIFF_DEVIATIONS,
)

TREND_DEVIATION = 3.0  # of the coefficients of a parabola in standardised coordinates: shapes from flat to peaked
SMOOTH_PARTS = (0.5, 0.25)  # lengths of smooth curves, as parts of the diameter
TINY = 1e-8  # relative: variance that every direction has, so that precisions exist


@dataclass(frozen=True, eq=False)
class PriorFamily:
    """A family by name, with the covariance of its distributions around the centre."""

    name: str
    covariance: Floats


def prior_families(domain: Domain, centre: Floats) -> list[PriorFamily]:
    """Return the families that a domain has."""
    size = len(domain)
    to_shares = np.diag(centre) - np.outer(centre, centre)
    logs = [(f"independent values (deviation {each:g})", each**2 * np.eye(size)) for each in LOG_DEVIATIONS]
    if not domain.is_equidistant:
        distances = domain.distances()
        diameter = float(distances.max())
        parabola = TREND_DEVIATION**2 * _parabola(domain, centre)
        rough = np.exp(-distances / diameter)
        logs += [(f"a rough curve (deviation {each:g})", each**2 * rough) for each in ROUGH_DEVIATIONS]
        logs += [(f"a parabola (deviation {each:g})", parabola + each**2 * np.eye(size)) for each in STIFF_DEVIATIONS]
        for part in SMOOTH_PARTS:
            scaled = np.sqrt(3) * distances / (part * diameter)
            smooth = (1 + scaled) * np.exp(-scaled)
            for each in SMOOTH_DEVIATIONS:
                name = f"a smooth curve of length {part * diameter:.3g} (deviation {each:g})"
                logs.append((name, parabola + each**2 * smooth))
    return [PriorFamily(name, _conditioned(to_shares @ covariance @ to_shares)) for name, covariance in logs]


def given_family(distributions: Floats, centre: Floats) -> PriorFamily:
    """Return the family of given distributions (rows): their covariance around the centre."""
    around = distributions - centre
    return PriorFamily("the given distributions", _conditioned(around.T @ around / len(around)))


def _conditioned(covariance: Floats) -> Floats:
    return np.asarray(covariance + TINY * np.trace(covariance) / len(covariance) * np.eye(len(covariance)))


def _parabola(domain: Domain, centre: Floats) -> Floats:
    """Return the covariance of a parabola with independent standardised coefficients."""
    grid = domain.grid
    if grid is not None:
        places = grid.steps.astype(np.float64)
    elif domain.places is not None:
        places = np.asarray(domain.places, dtype=np.float64)[:, None]
    else:
        return np.zeros((len(domain), len(domain)))
    places = places - centre @ places
    products = [places[:, i] * places[:, j] for i in range(places.shape[1]) for j in range(i + 1)]
    terms = np.column_stack([places, *products])
    terms = terms - centre @ terms
    spread = np.sqrt(centre @ terms**2)
    terms = terms[:, spread > 0] / spread[spread > 0]
    return np.asarray(terms @ terms.T)
