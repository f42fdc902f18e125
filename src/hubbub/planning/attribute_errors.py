"""The errors to expect of marginals and of pairs of attributes, from a few hundred simulated studies.

A study of one attribute, or of a pair, is simulated from what its reports say about them alone: every report where all
attributes are sent, those that name it where one is, a mixture with noise where fakes hide it. Frequency oracles are
inverted and projected to distributions (those whose outputs are too many to list by the closed form of their variance);
other mechanisms by EM from the uniform distribution, as `ibu` does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.mechanisms import Mechanism, RandomizedResponse, SampleOne, SampleOneWithFakes, Split
from hubbub.mechanisms.frequency_oracle import FrequencyOracle, Support
from hubbub.mechanisms.several_attributes import SeveralAttributes
from hubbub.solvers.repairs import projected

EM_UPDATES = 300
MAX_ENTRIES = 4_000_000  # of a matrix of one attribute
NINTH = 0.9
SAME = 1e-12  # probabilities that differ by less are equal


@dataclass(frozen=True)
class AxisLaw:
    """The law of one attribute's outputs: as those of a frequency oracle, by a matrix (values by outputs), or both."""

    support: Support | None
    matrix: Floats | None


@dataclass(frozen=True)
class Told:
    """What reports say about some attributes: for each the law of its outputs, and the share of users who say it."""

    laws: tuple[AxisLaw, ...]
    share: float


@dataclass(frozen=True)
class VariationQuantiles:
    """The total variation to expect: its median, and what nine of ten studies stay below."""

    median: float
    ninth: float


def told_by(mechanism: SeveralAttributes, places: Sequence[int]) -> Told | None:
    """Return what a mechanism's reports say about attributes together; None if nothing."""
    parts = [list(mechanism.parts.values())[place] for place in places]
    if isinstance(mechanism, Split):
        laws = [_law(part) for part in parts]
        return None if any(law is None for law in laws) else Told(tuple(law for law in laws if law is not None), 1.0)
    if len(places) > 1:
        return None  # one attribute of each user: nothing says how two go together
    law, chance = _law(parts[0]), float(mechanism.probabilities_[places[0]])  # type: ignore[attr-defined]
    if law is None:
        return None
    if isinstance(mechanism, SampleOne):
        return Told((law,), chance)
    assert isinstance(mechanism, SampleOneWithFakes)  # noqa: S101 (there are three ways)
    prior = list(mechanism.fakes.values())[places[0]]
    matrix = parts[0].checked_matrix()
    mixed = np.asarray(chance * matrix + (1.0 - chance) * (prior @ matrix))
    alike = np.ptp(prior) < SAME and law.support is not None and law.matrix is not None
    return Told((AxisLaw(Support(float(mixed[0, 0]), float(mixed[0, 1])) if alike else None, mixed),), 1.0)


def _law(part: Mechanism) -> AxisLaw | None:
    if isinstance(part, RandomizedResponse):
        return AxisLaw(part.support, part.checked_matrix())
    if isinstance(part, FrequencyOracle):
        return AxisLaw(part.support, None)
    outputs = part.output_space.size
    if outputs is None or outputs * len(part.domain) > MAX_ENTRIES:
        return None
    return AxisLaw(None, part.checked_matrix())


def expected_error(
    told: Told, truth: Floats, possible: Floats, users: int, runs: int, rng: np.random.Generator
) -> VariationQuantiles:
    """Return the error to expect of the joint shares of attributes; `truth` has an axis for each of them."""
    supports = [law.support for law in told.laws if law.support is not None]
    reporting = max(1, round(users * told.share))
    if len(supports) < len(told.laws):
        matrices = [_matrix(law, side) for law, side in zip(told.laws, truth.shape, strict=True)]
        found = _updated(matrices, _drawn(matrices, truth, reporting, runs, rng), possible)
        errors = 0.5 * np.abs(found - truth).reshape(runs, -1).sum(axis=1)
        return VariationQuantiles(float(np.median(errors)), float(np.quantile(errors, NINTH)))
    matrices = [law.matrix for law in told.laws if law.matrix is not None]
    if len(matrices) == len(told.laws):
        found = _drawn(matrices, truth, reporting, runs, rng)
        for axis, (true, other) in enumerate(supports, start=1):
            found = (found - other * found.sum(axis=axis, keepdims=True)) / (true - other)
    else:
        found = _normal(supports, truth, reporting, runs, rng)
    kept = np.flatnonzero(possible.ravel())
    shares = np.stack([projected(study[kept]) for study in found.reshape(runs, -1)])
    errors = 0.5 * np.abs(shares - truth.ravel()[kept]).sum(axis=1)
    return VariationQuantiles(float(np.median(errors)), float(np.quantile(errors, NINTH)))


def _drawn(matrices: Sequence[Floats], truth: Floats, users: int, runs: int, rng: np.random.Generator) -> Floats:
    """Return the shares of outputs in several studies."""
    chances = _applied(truth[None], matrices)[0]
    counts = rng.multinomial(users, chances.ravel() / chances.sum(), size=runs)
    return np.asarray(counts.reshape(runs, *chances.shape) / users)


def _matrix(law: AxisLaw, side: int) -> Floats:
    """Return values by outputs; a frequency oracle beside another kind of mechanism counts as k-RR of the same odds."""
    if law.matrix is not None:
        return law.matrix
    assert law.support is not None  # noqa: S101 (one of the two is there)
    matrix = np.full((side, side), law.support.other)
    np.fill_diagonal(matrix, law.support.true)
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))


def _normal(supports: Sequence[Support], truth: Floats, users: int, runs: int, rng: np.random.Generator) -> Floats:
    """Return inverted shares of several studies: normal, with the variance of products of unbiased indicators.

    An output supports x or not; (support - q) / (p - q) is an unbiased indicator of x. Its square has the mean A for
    users with x, and B for others.
    """
    squares = truth
    for axis, (true, other) in enumerate(supports):
        at, elsewhere = (
            (chance * (1.0 - other) ** 2 + (1.0 - chance) * other**2) / (true - other) ** 2 for chance in (true, other)
        )
        squares = (at - elsewhere) * squares + elsewhere * squares.sum(axis=axis, keepdims=True)
    deviations = np.sqrt(np.maximum(squares - truth**2, 0.0) / users)
    return np.asarray(truth + deviations * rng.standard_normal((runs, *truth.shape)))


def _updated(matrices: Sequence[Floats], outputs: Floats, possible: Floats) -> Floats:
    """Return shares after EM updates from the uniform distribution, of several studies at once."""
    shares = np.broadcast_to(possible / possible.sum(), (len(outputs), *possible.shape)).copy()
    backs = [matrix.T for matrix in matrices]
    for _ in range(EM_UPDATES):
        fitted = _applied(shares, matrices)
        ratios = np.divide(outputs, fitted, out=np.zeros_like(fitted), where=fitted > 0.0)
        shares *= _applied(ratios, backs)
    return np.asarray(shares / shares.sum(axis=tuple(range(1, shares.ndim)), keepdims=True))


def _applied(table: Floats, matrices: Sequence[Floats]) -> Floats:
    """Return the table multiplied by a matrix along each axis after the first."""
    for axis, matrix in enumerate(matrices, start=1):
        table = np.moveaxis(np.tensordot(table, matrix, axes=(axis, 0)), -1, axis)
    return table


def variance_of_oracle(support: Support, values: int) -> float:
    """Return n times the mean variance of inverted shares, for a uniform truth: what a kind of oracle is chosen by."""
    supported = support.other + (support.true - support.other) / values
    return (
        supported * (1.0 - supported) / (support.true - support.other) ** 2
        if support.true > support.other
        else math.inf
    )
