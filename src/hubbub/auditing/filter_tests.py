"""Tests of noisy Bloom filters: how often each cohort comes, and how often bits of the filter and others are ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.auditing.count_tests import (
    LawTest,
    Sensitivity,
    binomial_p_values,
    binomial_test,
    chi_square,
    one_test,
    several_tests,
)
from hubbub.auditing.distinguishing_events import value_text
from hubbub.core.arrays import Codes, Floats, Positions
from hubbub.mechanisms import BloomRappor

MIN_BITS_PER_VALUE = 50  # for a test of its own


class _Bits(NamedTuple):
    """The bits of outputs of listed values, and which of them are in the filter of the value."""

    sent: NDArray[np.bool_]
    own: NDArray[np.bool_]
    cohorts: Positions
    positions: Positions


def filter_tests(mechanism: BloomRappor, positions: Positions, codes: Codes) -> list[LawTest]:
    """Return the tests of cohorts and bits; of outputs for the rest, whose filters are random, those of cohorts."""
    cohorts = mechanism.bits_of(codes)[0]
    tests = []
    count = np.bincount(cohorts, minlength=mechanism.cohorts)
    answer = chi_square(count, np.full(mechanism.cohorts, 1.0 / mechanism.cohorts))
    if answer.freedom:
        tests.append(one_test("how often each cohort comes", answer.p_value, len(codes), answer.freedom))
    zero, one = (float(chance) for chance in mechanism.chances)
    bits = _listed_bits(mechanism, positions, codes)
    for chance, places, what in ((one, bits.own, "bits of the filter"), (zero, ~bits.own, "other bits")):
        trials, ones = places.sum(axis=0), (bits.sent & places).sum(axis=0)
        if not trials.any():
            continue
        tests.append(binomial_test(f"how often {what} are ones", int(ones.sum()), int(trials.sum()), chance))
        tried = np.flatnonzero(trials)
        p_values = binomial_p_values(ones[tried], trials[tried], chance)
        least = Sensitivity(int(trials[tried].min()), 1, chance * (1 - chance))
        tests += several_tests(f"{what}, each", p_values, least, lambda place, tried=tried: f"bit {tried[place]}")  # type: ignore[misc]
    return tests + _value_tests(mechanism, bits, one, zero)


def filter_scores(mechanism: BloomRappor, positions: Positions, codes: Codes, rng: np.random.Generator) -> Floats:
    """Return a number for each output that is uniform on 0 to 1 if as many of the filter's bits are ones as should."""
    from scipy.stats import binom

    bits = _listed_bits(mechanism, positions, codes)
    zero, one = (float(chance) for chance in mechanism.chances)
    sizes, ones = bits.own.sum(axis=1), (bits.own & bits.sent).sum(axis=1)
    others = (~bits.own & bits.sent).sum(axis=1)
    below = binom.cdf(ones - 1, sizes, one) + binom.pmf(ones, sizes, one) * (
        binom.cdf(others - 1, mechanism.bits - sizes, zero)
        + binom.pmf(others, mechanism.bits - sizes, zero) * rng.random(ones.size)
    )
    return np.asarray(below)


def _listed_bits(mechanism: BloomRappor, positions: Positions, codes: Codes) -> _Bits:
    listed = positions != mechanism.rest_position
    cohorts, sent = mechanism.bits_of(codes[listed])
    packed = mechanism.filters[cohorts, positions[listed]]
    own = np.unpackbits(packed, axis=1, count=mechanism.bits).astype(bool)
    return _Bits(sent, own, cohorts, positions[listed])


def _value_tests(mechanism: BloomRappor, bits: _Bits, one: float, zero: float) -> list[LawTest]:
    """Test the bits of the filter of each value, and the others, with enough of them."""
    size, tests = len(mechanism.domain), []
    for chance, places, what in ((one, bits.own, "bits of its filter"), (zero, ~bits.own, "other bits")):
        trials, ones = (
            np.bincount(bits.positions, weights=part.sum(axis=1), minlength=size).astype(np.int64)
            for part in (places, places & bits.sent)
        )
        tested = np.flatnonzero(trials >= MIN_BITS_PER_VALUE)
        if not tested.size:
            continue
        labels = mechanism.domain.labels[tested]
        tests += several_tests(
            f"how often {what} are ones, for each value",
            binomial_p_values(ones[tested], trials[tested], chance),
            Sensitivity(int(trials[tested].min()), 1, chance * (1 - chance)),
            lambda place, labels=labels, what=what: f"{what} of {value_text(labels[place])}",  # type: ignore[misc]
            "the same for a single value, off by more than {} percentage points" if chance == one else "",
        )
    return tests
