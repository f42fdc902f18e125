"""Which candidates there are for a domain.

On a line or a map values have neighbours, so that a truth can be smooth, or flat with jumps; where values are just
different it can only be that most of them are alike. Lengths are in spacings of the domain. Constants were chosen on
the "tune" half of benchmarks/cases.py and on random studies of other kinds.
"""

from __future__ import annotations

import math

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.estimators.auto.candidates import Even, Field, Recipe, Updates
from hubbub.estimators.auto.domain_shape import Shape
from hubbub.solvers.penalties import Exceptions, Jumps, Penalty, Pseudocounts, Quadratic

STOPS, STOPS_OF_MANY = 36, 18  # the latter where each takes as much memory as the domain
MOST_WIDTHS = 4
WIDTHS_OF_MANY, MANY = (1.0, 2.0, 4.0), 100_000  # of filters along the axes; with more values the second alone
SPREADS = (1.0, 2.0)  # standard deviations of independent logarithms
COUNTS = (10.0, 3.0, 1.0, 0.3)  # for each value, as if so many more users had held it
ROUGH = (2.0, 4.0, 8.0)  # of a rough curve that forgets itself over the whole domain
STIFF = (0.02,)  # of log theta around a plane, or around a parabola
SMOOTH = (0.3, 1.0, 3.0)  # of a smooth curve around a parabola
SHORTEST, FACTOR, MOST_LENGTHS = 2.0, 2.45, 4  # the lengths of smooth curves
LEVELS = ((1.0, (1.0, 0.5, 0.2, 0.05)),)  # strength and scales: alike but for exceptions
FLATS = ((1.0, (1.0, 0.2, 0.05, 0.02)), (0.5, (0.5, 0.1, 0.02)), (2.0, (0.5, 0.1, 0.02)))  # flat but for jumps
QUICK = 400  # values; with more, where a step takes long, only the first of those that jump
LOOSE, BLURRED = 4.0, 2.0  # handicaps where values have neighbours: what ignores them or jumps, what smooths the domain
JITTER = 1e-6  # of the variance of a field, that each value has of its own


def recipes_for(shape: Shape, *, rich: bool, last: int, unit: str | None = None) -> list[Recipe]:
    """Return all candidates; without the `rich` ones, those that need nothing but products with the channel."""
    spaced = np.geomspace(1, last, STOPS if rich else STOPS_OF_MANY)
    stops = tuple(int(stop) for stop in np.unique(spaced.round()))
    found: list[Recipe] = [Even(), Updates(0.0, stops)]
    if shape.lattice is not None and not rich:
        wide = WIDTHS_OF_MANY if shape.values <= MANY else WIDTHS_OF_MANY[1:2]
        found += [Updates(width, stops, _length(width, shape, unit), BLURRED) for width in wide]
    if shape.places is not None and rich:
        found += [Updates(width, stops, _length(width, shape, unit), BLURRED) for width in widths(shape)]
    if not rich:
        return found
    loose = 0.0 if shape.places is None else LOOSE
    gaussian = _gaussian(np.eye(shape.values), _constant(shape), SPREADS)
    apart = Field("independent values", "less pull together", gaussian, loose)
    counts: list[tuple[str, Penalty]] = [(f"{count:g} for each value", Pseudocounts(count)) for count in COUNTS]
    pulled = Field("pseudo-counts", "fewer of them", counts)
    alike = [
        Field("values alike but for exceptions", "smaller exceptions", _heavy(scales, strength), loose)
        for strength, scales in LEVELS
    ]
    if shape.places is None:
        return [*found, apart, pulled, *alike]
    # The quick ones first: those that come after are left early where they cannot win.
    return [*found, apart, *_curves(shape, unit), *alike, *_flats(shape)]


def widths(shape: Shape) -> list[float]:
    """Return widths of smoothing, in spacings: from 1 to a small part of the domain."""
    top = max(2.0, shape.extent / 25.0)
    return [float(width) for width in np.geomspace(1.0, top, min(MOST_WIDTHS, 1 + round(np.log2(top))))]


def lengths(far: float) -> list[float]:
    """Return the lengths of smooth curves, in spacings: up to half of the domain, a constant factor apart."""
    count = 1 + max(0, math.floor(math.log(max(far / 2.0, SHORTEST) / SHORTEST, FACTOR)))
    last = SHORTEST * FACTOR ** (count - 1)
    return [
        float(length) for length in np.geomspace(min(SHORTEST, max(1.0, far / 2.0)), last, min(count, MOST_LENGTHS))
    ]


def _curves(shape: Shape, unit: str | None) -> list[Recipe]:
    far = shape.extent
    found: list[Recipe] = [
        Field(
            "an exponential slope", "more shape", _gaussian(np.eye(shape.values), shape.trends(1), STIFF), smooth=True
        ),
        Field("a bell", "more shape", _gaussian(np.eye(shape.values), shape.trends(2), STIFF), smooth=True),
        Field(
            "a rough curve",
            "less smoothing",
            _gaussian(np.exp(-shape.distances / far), _constant(shape), ROUGH),
            smooth=True,
        ),
    ]
    for length in lengths(far):
        name = f"a smooth curve of length {_length(length, shape, unit)}"
        scaled = np.sqrt(3.0) * shape.distances / length
        matern = _gaussian((1.0 + scaled) * np.exp(-scaled), shape.trends(2), SMOOTH)
        found.append(Field(name, "less smoothing", matern, smooth=True))
    return found


def _flats(shape: Shape) -> list[Recipe]:
    found: list[Recipe] = []
    if shape.neighbours[0].size == 0:  # islands
        return found
    for strength, scales in FLATS if shape.values <= QUICK else FLATS[:1]:
        jumps: list[tuple[str, Penalty]] = [
            (f"strength {strength:g}, steps {scale:g}", Jumps(shape.neighbours, shape.values, scale, strength))
            for scale in scales
        ]
        found.append(Field("flat pieces with jumps", "smaller steps", jumps, LOOSE, smooth=True))
    return found


def _heavy(scales: tuple[float, ...], strength: float) -> list[tuple[str, Penalty]]:
    return [(f"strength {strength:g}, scale {scale:g}", Exceptions(scale, strength)) for scale in scales]


def _gaussian(covariance: Floats, free: Floats, deviations: tuple[float, ...]) -> list[tuple[str, Penalty]]:
    """Return Gaussian fields of several deviations that cost nothing in the directions `free` (orthonormal columns)."""
    size = len(covariance)
    inverse = np.linalg.inv(covariance + JITTER * np.eye(size))
    seen = inverse @ free
    found = inverse - seen @ np.linalg.solve(free.T @ seen, seen.T)
    found = 0.5 * (found + found.T)
    return [(f"deviation {deviation:g}", Quadratic(found / deviation**2)) for deviation in deviations]


def _constant(shape: Shape) -> Floats:
    return np.full((shape.values, 1), shape.values**-0.5)


def _length(spacings: float, shape: Shape, unit: str | None) -> str:
    """Return a length as people read it: in the domain's unit, where it has one of its own."""
    if unit in (None, "unit"):
        return "1 value" if spacings == 1.0 else f"{spacings:.3g} values"
    return f"{spacings * shape.spacing:.3g} {unit}"
