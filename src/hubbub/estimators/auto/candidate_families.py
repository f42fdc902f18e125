"""Which families of candidates `auto` tries for a domain.

On a line or a map values have neighbours, so that a truth can be smooth, or flat with jumps; on a line, answers may
also heap at single values. Lengths are in spacings of the domain. Constants were chosen on the "tune" half of
benchmarks/cases.py and on random studies of other kinds.
"""

from __future__ import annotations

import math

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.domains.domain_shape import DomainShape
from hubbub.domains.product_shape import ProductShape
from hubbub.estimators.auto.attribute_candidates import attribute_families
from hubbub.estimators.auto.candidate_fits import CandidateFamily, PenalisedFamily, StoppedEM, UniformFamily
from hubbub.estimators.auto.spiked_curves import spiked_curves
from hubbub.solvers.log_linear_model import LogLinearModel
from hubbub.solvers.penalties import DeviationsFromMean, DeviationsFromTrend, Jumps, Penalty, Quadratic

EM_STOPS, EM_STOPS_OF_LARGE = 36, 18  # the latter where each takes as much memory as the domain
MAX_WIDTHS = 4
FILTER_WIDTHS = (1.0, 2.0, 4.0)  # spacings, of filters along the axes of large domains...
MAX_VALUES_OF_ALL_FILTERS = 100_000  # ...with more values the second one alone
LOG_DEVIATIONS = (1.0, 2.0)  # of independent logarithms of probabilities
ROUGH_DEVIATIONS = (2.0, 4.0, 8.0)  # of a rough curve whose correlation extends over the whole domain
STIFF_DEVIATIONS = (0.02,)  # of log theta around a plane, or around a parabola
SMOOTH_DEVIATIONS = (0.3, 1.0, 3.0)  # of a smooth curve around a parabola
MIN_LENGTHS = (5.0, 2.0)  # of smooth curves on a line and on a map, in spacings...
MAX_LENGTHS_OF_DOMAIN = 60.0  # ...or, of long lines, this part of the domain...
LENGTH_FACTOR, MAX_LENGTHS = 2.45, 4  # ...and up to half of it
EXCEPTIONS = ((1.0, (1.0, 0.5, 0.2, 0.05)),)  # strength and scales: values alike but for exceptions
JUMPS = ((1.0, (0.2,)), (0.5, (0.1,)), (2.0, (0.1, 0.02)))  # flat but for jumps: strength and scales
MAX_VALUES_OF_ALL = 400  # with more values, where a step takes long, only the first of these, and fewer widths
LOOSE_HANDICAP = 4.0  # nats, where values have neighbours: for families that ignore them, or jump
SMOOTHED_HANDICAP = 2.0  # nats, for EM on a smoothed domain
RELATIVE_JITTER = 1e-6  # independent variance of each value, relative to the variance of a Gaussian field


def families_for(
    shape: DomainShape,
    *,
    uses_newton: bool,
    max_updates: int,
    unit: str | None = None,
    told: LogLinearModel | None = None,
) -> list[CandidateFamily]:
    """Return all families; without `uses_newton`, those that need nothing but products with the channel.

    `told` is what reports on several attributes tell, where that is not everything.
    """
    if isinstance(shape, ProductShape):
        return attribute_families(shape, uses_newton=uses_newton, max_updates=max_updates, told=told)
    spaced = np.geomspace(1, max_updates, EM_STOPS if uses_newton else EM_STOPS_OF_LARGE)
    stops = tuple(int(stop) for stop in np.unique(spaced.round()))
    if uses_newton:
        smoothing = widths(shape)
    elif shape.lattice is not None:
        smoothing = list(FILTER_WIDTHS if shape.values <= MAX_VALUES_OF_ALL_FILTERS else FILTER_WIDTHS[1:2])
    else:
        smoothing = []
    families: list[CandidateFamily] = [
        UniformFamily(),
        StoppedEM(0.0, stops),
        *(StoppedEM(width, stops, _length_text(width, shape, unit), SMOOTHED_HANDICAP) for width in smoothing),
    ]
    if not uses_newton:
        return families
    gaussian = _around(_constant(shape), LOG_DEVIATIONS)
    independent = PenalisedFamily("independent values", "a weaker penalty", gaussian, LOOSE_HANDICAP)
    alike = [
        PenalisedFamily(
            "values alike but for exceptions", "smaller exceptions", _heavy(scales, strength), LOOSE_HANDICAP
        )
        for strength, scales in EXCEPTIONS
    ]
    # The quick ones first: those that come after are left early where they cannot win.
    return [*families, independent, *_curves(shape, unit), *spiked_curves(shape), *alike, *_flat_pieces(shape)]


def widths(shape: DomainShape) -> list[float]:
    """Return widths of smoothing, in spacings: from 1 to a small part of the domain."""
    top = max(2.0, shape.extent / 25.0)
    most = MAX_WIDTHS if shape.values <= MAX_VALUES_OF_ALL else MAX_WIDTHS - 1
    return [float(width) for width in np.geomspace(1.0, top, min(most, 1 + round(np.log2(top))))]


def lengths(extent: float, dimensions: int) -> list[float]:
    """Return the lengths of smooth curves, in spacings: up to half of the domain, a constant factor apart."""
    least = max(MIN_LENGTHS[dimensions - 1], extent / MAX_LENGTHS_OF_DOMAIN)
    count = 1 + max(0, math.floor(math.log(max(extent / 2.0, least) / least, LENGTH_FACTOR)))
    first, last = min(least, max(1.0, extent / 2.0)), least * LENGTH_FACTOR ** (count - 1)
    return [float(length) for length in np.geomspace(first, last, min(count, MAX_LENGTHS))]


def _curves(shape: DomainShape, unit: str | None) -> list[CandidateFamily]:
    slopes = _around(shape.trends(1), STIFF_DEVIATIONS)
    bells = _around(shape.trends(2), STIFF_DEVIATIONS)
    rough = _field(np.exp(-shape.distances / shape.extent), _constant(shape), ROUGH_DEVIATIONS)
    families: list[CandidateFamily] = [
        PenalisedFamily("an exponential slope", "more shape", slopes, starts_smooth=True),
        PenalisedFamily("a bell", "more shape", bells, starts_smooth=True),
        PenalisedFamily("a rough curve", "less smoothing", rough, starts_smooth=True),
    ]
    for length in lengths(shape.extent, shape.dimensions):
        name = f"a smooth curve of length {_length_text(length, shape, unit)}"
        scaled = np.sqrt(3.0) * shape.distances / length
        matern = _field((1.0 + scaled) * np.exp(-scaled), shape.trends(2), SMOOTH_DEVIATIONS)
        families.append(PenalisedFamily(name, "less smoothing", matern, starts_smooth=True))
    return families


def _flat_pieces(shape: DomainShape) -> list[CandidateFamily]:
    families: list[CandidateFamily] = []
    if shape.neighbours[0].size == 0:  # islands
        return families
    for strength, scales in JUMPS if shape.values <= MAX_VALUES_OF_ALL else JUMPS[:1]:
        jumps: list[tuple[str, Penalty]] = [
            (f"strength {strength:g}, steps {scale:g}", Jumps(shape.neighbours, shape.values, scale, strength))
            for scale in scales
        ]
        families.append(
            PenalisedFamily("flat pieces with jumps", "smaller steps", jumps, LOOSE_HANDICAP, starts_smooth=True)
        )
    return families


def _heavy(scales: tuple[float, ...], strength: float) -> list[tuple[str, Penalty]]:
    return [(f"strength {strength:g}, scale {scale:g}", DeviationsFromMean(scale, strength)) for scale in scales]


def _around(trends: Floats, deviations: tuple[float, ...]) -> list[tuple[str, Penalty]]:
    """Return independent deviations of several sizes around the trends (orthonormal columns)."""
    return [(f"deviation {deviation:g}", DeviationsFromTrend(trends, deviation)) for deviation in deviations]


def _field(covariance: Floats, free: Floats, deviations: tuple[float, ...]) -> list[tuple[str, Penalty]]:
    """Return Gaussian fields of several deviations that cost nothing in the directions `free` (orthonormal columns)."""
    fields = Quadratic.field(covariance + RELATIVE_JITTER * np.eye(len(free)), free, deviations)
    return [(f"deviation {deviation:g}", field) for deviation, field in zip(deviations, fields, strict=True)]


def _constant(shape: DomainShape) -> Floats:
    return np.full((shape.values, 1), shape.values**-0.5)


def _length_text(spacings: float, shape: DomainShape, unit: str | None) -> str:
    """Return a length for people: in the domain's unit if it has one, otherwise in values."""
    if unit in (None, "unit"):
        return "1 value" if spacings == 1.0 else f"{spacings:.3g} values"
    return f"{spacings * shape.spacing:.3g} {unit}"
