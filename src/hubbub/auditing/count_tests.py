"""Tests of counts against known probabilities, each with what it would find and what it would not.

A chi-square test whose cells have the probabilities p, where outputs really have p + d, has a statistic with
noncentrality n sum(d^2 / p) >= n (sum |d|)^2 = 4 n t^2, with t the total variation between the two (Cauchy and
Schwarz). So any fault with a total variation of at least t is found with at least the power of that noncentrality:
`detectable` inverts this. For a single probability p, the noncentrality is n d^2 / (p (1 - p)).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Floats

MIN_EXPECTED_OUTPUTS = 10.0  # of a cell; rarer outputs are counted together
DETECTION_POWER = 0.9  # with which a difference is found that is called detectable
MIN_SKEWNESS = 1e-4  # below, sums are normal to all digits that matter
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class LawTest:
    """Tests of one kind: the smallest p-value times their number, and what that one is about.

    `hardest` is the test that finds least. `fault` says in words what a difference in it would be, with a place for
    its size; it is empty where that would say little.
    """

    about: str
    p_value: float
    tests: int
    worst: str
    hardest: Sensitivity
    fault: str = ""

    def detectable(self, error: float) -> float:
        """Return the difference in probability that is found with `DETECTION_POWER` at a probability of false alarm."""
        return self.hardest.detectable(error / self.tests)


class Sensitivity(NamedTuple):
    """How much a test sees; without degrees of freedom, a single impossible output is found whenever it occurs."""

    outputs: int
    freedom: int
    variance: float  # p (1 - p) of a single probability, 1/4 for any difference in many

    def detectable(self, error: float) -> float:
        """Return the difference in probability that is found with `DETECTION_POWER`."""
        from scipy.special import chdtri, chndtrinc

        if self.freedom == 0:
            return -math.expm1(math.log(1 - DETECTION_POWER) / self.outputs)
        critical = float(chdtri(self.freedom, error))
        needed = float(chndtrinc(critical, self.freedom, 1 - DETECTION_POWER))
        return min(1.0, math.sqrt(needed * self.variance / self.outputs))


class ChiSquare(NamedTuple):
    """The statistic of counts in cells, its degrees of freedom, and its p-value."""

    statistic: float
    freedom: int
    p_value: float


def chi_square(observed: Counts, probabilities: Floats) -> ChiSquare:
    """Test counts; neighbours that are expected less than `MIN_EXPECTED_OUTPUTS` times are counted together."""
    from scipy.special import chdtrc

    expected = probabilities * observed.sum()
    if (observed[expected == 0] > 0).any():
        return ChiSquare(math.inf, 1, 0.0)
    cell_of = _pooled_cells(expected)
    means = np.bincount(cell_of, weights=expected)
    if means.size < 2:
        return ChiSquare(0.0, 0, 1.0)
    counts = np.bincount(cell_of, weights=observed)
    statistic, freedom = float(((counts - means) ** 2 / means).sum()), means.size - 1
    return ChiSquare(statistic, freedom, float(chdtrc(freedom, statistic)))


def _pooled_cells(expected: Floats) -> Counts:
    """Return the cell of each output: frequent ones have their own, rare ones share those of at least the minimum.

    A shared cell begins where the running sum of the rare ones passes a multiple of twice the minimum, so that it has
    at least the minimum itself: each rare one has less. What is left at the end joins the cell before, or the smallest.
    """
    rare = expected < MIN_EXPECTED_OUTPUTS
    cell_of = np.zeros(expected.size, dtype=np.int64)
    shared = (np.cumsum(expected[rare]) // (2 * MIN_EXPECTED_OUTPUTS)).astype(np.int64)
    shared = np.unique(shared, return_inverse=True)[1].ravel()
    cell_of[rare] = shared
    groups = int(shared[-1]) + 1 if shared.size else 0
    cell_of[~rare] = groups + np.arange(int((~rare).sum()))
    if groups and expected[rare][shared == groups - 1].sum() < MIN_EXPECTED_OUTPUTS:
        frequent = np.flatnonzero(~rare)
        last = cell_of == groups - 1
        if groups > 1:
            cell_of[last] = groups - 2
        elif frequent.size:
            cell_of[last] = cell_of[frequent[np.argmin(expected[frequent])]]
    return np.unique(cell_of, return_inverse=True)[1].ravel()


def binomial_p_values(happened: Counts, trials: Counts | int, probabilities: Floats | float) -> Floats:
    """Return two-sided p-values of counts: twice the smaller tail."""
    from scipy.stats import binom

    tails = np.minimum(binom.cdf(happened, trials, probabilities), binom.sf(happened - 1, trials, probabilities))
    p_values: Floats = np.minimum(1.0, 2 * np.asarray(tails))
    return p_values


def sum_p_value(deviation: float, variance: float, third_moment: float) -> float:
    """Return the two-sided p-value of a sum's deviation from its mean: a gamma law with the sum's skewness.

    The gamma law's first three moments are those of the sum, so that tails are right to one order more than the normal.
    """
    from scipy.special import gammainc, gammaincc, ndtr

    if variance <= 0:
        return 1.0
    skewness = third_moment / variance**1.5
    score = deviation / math.sqrt(variance) * (1 if skewness >= 0 else -1)
    skewness = abs(skewness)
    if skewness < MIN_SKEWNESS:
        return float(min(1.0, 2 * ndtr(-abs(score))))
    shape = 4 / skewness**2
    at = shape + 2 * score / skewness  # of a gamma law with scale 1, which has the skewness 2 / sqrt(shape)
    below, above = (float(gammainc(shape, at)), float(gammaincc(shape, at))) if at > 0 else (0.0, 1.0)
    return min(1.0, 2 * min(below, above))


def one_test(
    about: str, p_value: float, outputs: int, freedom: int = 1, variance: float = 0.25, fault: str = ""
) -> LawTest:
    """Return a kind of test that consists of one."""
    return LawTest(about, p_value, 1, about, Sensitivity(outputs, freedom, variance), fault)


def binomial_test(about: str, happened: int, trials: int, probability: float, fault: str | None = None) -> LawTest:
    """Test how often something happened."""
    p_value = float(binomial_p_values(np.array([happened]), trials, probability)[0])
    text = f"{about}, off by more than {{}} percentage points" if fault is None else fault
    return one_test(about, p_value, trials, variance=probability * (1 - probability), fault=text)


def several_tests(
    about: str,
    p_values: Floats,
    sensitivities: Sequence[Sensitivity] | Sensitivity,
    text: Callable[[int], str],
    fault: str = "",
) -> list[LawTest]:
    """Return a kind of tests by their p-values, as a list that is empty if there are none; `text` describes each."""
    if not p_values.size:
        return []
    smallest = int(np.argmin(p_values))
    hardest = (
        sensitivities
        if isinstance(sensitivities, Sensitivity)
        else max(sensitivities, key=lambda own: (own.freedom + 10.0) ** 0.5 * own.variance / own.outputs)
    )
    p_value = min(1.0, float(p_values[smallest]) * p_values.size)
    return [LawTest(about, p_value, p_values.size, text(smallest), hardest, fault)]


def combined_p_value(tests: Sequence[LawTest]) -> float:
    """Return the smallest p-value of several kinds of tests, times their number; 1 if there are none."""
    return min([1.0, *(len(tests) * test.p_value for test in tests)])
