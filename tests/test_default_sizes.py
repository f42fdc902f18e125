"""Default sizes that follow from e^epsilon: the same whole number on every machine, whatever its `exp` rounds to.

A device and a collector that disagreed on the number of buckets, or on the size of a subset, could not read each
other's reports, and would give one study two fingerprints. References are computed with mpmath at 200 digits and, for
the enclosures, with Arb's balls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath  # type: ignore[import-untyped]
import pytest
from flint import arb, ctx

import hubbub as hb
from hubbub import client
from hubbub.client import Client

DIGITS = 200


def neighbours(number: float) -> list[float]:
    """Return a float and the two next to it on each side."""
    below = math.nextafter(number, 0.0)
    above = math.nextafter(number, math.inf)
    return [math.nextafter(below, 0.0), below, number, above, math.nextafter(above, math.inf)]


def bucket_epsilons() -> Iterator[float]:
    """Yield epsilons at which e^epsilon is as close to a half as a float allows, and others."""
    for whole in [*range(1, 60), 1000, 65_535, 2**20, 2**30, 2**31 - 2, 2**31 - 1, 2**31]:
        yield from neighbours(math.log(whole + 0.5))
        yield from neighbours(math.log(whole + 1))
    yield from (1e-12, 1e-6, 0.1, 22.0, 29.99, 30.0, 30.01, 709.0 / 2, 500.0)


def subset_epsilons(values: int) -> Iterator[float]:
    """Yield epsilons at which values / (e^epsilon + 1) is as close to a half as a float allows, and others."""
    for size in range(1, min(values // 2, 40)):
        yield from neighbours(math.log((2 * values - 2 * size - 1) / (2 * size + 1)))
    for whole in range(2, 30):
        yield from neighbours(math.log(whole))
    yield from (1e-12, 1e-6, 0.1, 30.0, 500.0)


def true_buckets(epsilon: float) -> int:
    with mpmath.workdps(DIGITS):
        return min(int(mpmath.floor(mpmath.exp(mpmath.mpf(epsilon)) + mpmath.mpf(1) / 2)) + 1, 2**31)


def true_size(values: int, epsilon: float) -> int:
    with mpmath.workdps(DIGITS):
        share = values / (mpmath.exp(mpmath.mpf(epsilon)) + 1)
        return max(1, int(mpmath.floor(share + mpmath.mpf(1) / 2)))


def test_the_default_number_of_buckets_is_the_one_that_200_digits_give() -> None:
    domain = hb.Integers(0, 9)
    for epsilon in bucket_epsilons():
        assert hb.LocalHashing(domain, epsilon).buckets == true_buckets(epsilon), epsilon.hex()


@pytest.mark.parametrize("values", [2, 3, 5, 10, 11, 24, 82, 1000, 1023, 99_999_999, 100_000_000])
def test_the_default_size_of_a_subset_is_the_one_that_200_digits_give(values: int) -> None:
    domain = hb.Integers(1, values)
    for epsilon in subset_epsilons(values):
        assert hb.SubsetSelection(domain, epsilon).size == true_size(values, epsilon), epsilon.hex()


def true_reach(values: int, epsilon: float) -> int:
    """Return the published reach, a form that cancels for small epsilon: with as many digits as that takes."""
    with mpmath.workdps(DIGITS):
        rate = mpmath.mpf(epsilon)
        whole = mpmath.exp(rate)
        share = (rate * whole - whole + 1) / (2 * whole * (whole - 1 - rate))
        return int(mpmath.floor(values * share))


@pytest.mark.parametrize("values", [2, 7, 24, 256, 1024, 100_000_000])
def test_the_default_reach_of_a_wave_is_the_one_that_200_digits_give(values: int) -> None:
    domain = hb.Integers(1, values)
    for epsilon in (1e-12, 1e-6, 1e-3, 0.1, 0.5, 1.0, 1.1, 2.0, 3.7, 5.0, 10.0, 30.0, 500.0):
        assert hb.SquareWave(domain, epsilon).reach == true_reach(values, epsilon), epsilon
        with mpmath.workdps(DIGITS):
            half = int(mpmath.floor((values - 1) * mpmath.exp(-mpmath.mpf(epsilon) / 2) / 2))
        assert hb.Piecewise(domain, epsilon).reach == half, epsilon


def stair_variance(values: int, epsilon: float, reach: int) -> Any:
    """Return the variance of staircase noise: over the lowest stair, and over all others by moments of their number."""
    b, stair, near = mpmath.exp(-mpmath.mpf(epsilon)), values - 1, reach + 1
    mass = (2 * near - 1) * (1 - b) + 2 * b * stair
    mean, square = b / (1 - b), b * (1 + b) / (1 - b) ** 2  # of how many stairs lie between the lowest and another
    begin = near**2 + 2 * near * stair * mean + stair**2 * square
    other = begin + (near + stair * mean) * (stair - 1) + mpmath.mpf((stair - 1) * (2 * stair - 1)) / 6
    return ((1 - b) * (near - 1) * near * (2 * near - 1) / mpmath.mpf(3) + 2 * b * stair * other) / mass


@pytest.mark.parametrize("values", [2, 3, 7, 24, 256, 100_000_000])
def test_the_default_stairs_are_those_whose_noise_varies_least_in_200_digits(values: int) -> None:
    domain = hb.Integers(1, values)
    for epsilon in (1e-12, 1e-6, 1e-3, 0.1, 0.5, 1.0, 1.1, 2.0, 3.7, 5.0, 10.0, 30.0, 500.0):
        with mpmath.workdps(DIGITS):
            reach = hb.Staircase(domain, epsilon).reach
            others = range(values - 1) if values < 30 else {max(0, reach - 1), min(values - 2, reach + 1)}
            own = stair_variance(values, epsilon, reach)
            assert all(own <= stair_variance(values, epsilon, other) for other in others), epsilon


def test_the_default_stairs_of_many_values_are_the_published_ones() -> None:
    """Geng and Viswanath's gamma of the least variance, for numbers that are not whole."""
    for epsilon in (0.5, 1.0, 2.0, 5.0, 10.0):
        b = math.exp(-epsilon)
        root = (b - 2 * b**2 + 2 * b**4 - b**5) ** (1 / 3)
        gamma = -b / (1 - b) + root / (2 ** (1 / 3) * (1 - b) ** 2)
        assert float(hb.Staircase(hb.Integers(0, 10**7), epsilon).gamma) == pytest.approx(gamma, abs=2e-7)


@pytest.mark.parametrize("values", [2, 3, 4, 7, 8, 1000, 100_000])
def test_the_default_blocks_and_prime_are_those_that_200_digits_give(values: int) -> None:
    domain = hb.Integers(1, values)
    for epsilon in (1e-12, 0.1, math.log(2), 1.0, math.log(4), 2.0, math.log(8), math.log(9), 3.7, 5.0, 30.0, 500.0):
        with mpmath.workdps(DIGITS):
            whole = mpmath.exp(mpmath.mpf(epsilon))
            most = min(whole, mpmath.mpf(2 * values))
            assert hb.HadamardResponse(domain, epsilon).blocks == 2 ** (int(mpmath.ceil(mpmath.log(most, 2))) - 1)
            limit = next(number for number in range(max(2, values - 1), 10 * values) if by_trial_prime(number))
            primes = [number for number in range(2, limit + 1) if by_trial_prime(number)] if values < 2000 else None
            if primes is not None:
                nearest = primes[-1] if whole > limit else min(primes, key=lambda prime: abs(prime - whole - 1))
                assert hb.ProjectiveResponse(domain, epsilon).prime == nearest


def by_trial_prime(number: int) -> bool:
    return number > 1 and all(number % factor for factor in range(2, math.isqrt(number) + 1))


@pytest.mark.parametrize("towards", [0.0, math.inf])
def test_an_exp_that_rounds_otherwise_changes_no_default(towards: float, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [(values, epsilon) for values in (10, 24, 1023) for epsilon in subset_epsilons(values)]
    exact = math.exp

    def rounded_otherwise(number: float) -> float:
        return math.nextafter(exact(number), towards)

    with monkeypatch.context() as patched:
        patched.setattr(math, "exp", rounded_otherwise)
        buckets = [hb.LocalHashing(hb.Integers(0, 9), epsilon).buckets for epsilon in bucket_epsilons()]
        subsets = [hb.SubsetSelection(hb.Integers(1, values), epsilon).size for values, epsilon in sizes]
    assert buckets == [true_buckets(epsilon) for epsilon in bucket_epsilons()]
    assert subsets == [true_size(values, epsilon) for values, epsilon in sizes]


@pytest.mark.parametrize("towards", [0.0, math.inf])
@pytest.mark.parametrize(("kind", "epsilon"), [("local-hashing", math.log(7.5)), ("subset-selection", math.log(7.0))])
def test_a_device_with_another_exp_sends_what_the_collector_reads(
    kind: str, epsilon: float, towards: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "study.toml"
    path.write_text(
        "version = 1\n[domain]\nkind = 'integers'\nlow = 1\nhigh = 20\n"
        f"[mechanisms.m]\nkind = '{kind}'\nepsilon = {epsilon!r}\n"
    )
    space = hb.read_study(path).mechanisms["m"].output_space
    exact = math.exp
    with monkeypatch.context() as patched:
        patched.setattr(math, "exp", lambda number: math.nextafter(exact(number), towards))
        outputs = [Client(path).privatize(3) for _ in range(200)]
    space.encode([space.parse(output) for output in outputs])


def test_the_precision_grows_until_the_rounding_is_decided() -> None:
    """A border that the first enclosures of e^-epsilon contain: 120 further digits of the number itself."""
    epsilon = 1.0
    with mpmath.workdps(400):
        border = Fraction(int(mpmath.floor(mpmath.exp(-1) * mpmath.mpf(10) ** 350)), 10**350)
    assert client.rounded_exactly(epsilon, lambda decay: 2 * int(decay > border) + 5) == 7
    above = border + Fraction(1, 10**350)
    assert client.rounded_exactly(epsilon, lambda decay: 2 * int(decay > above) + 5) == 5


def test_the_enclosures_of_exp_hold_the_true_number() -> None:
    """Both the default sizes and all probabilities rest on them."""
    with ctx.workprec(2000):
        for epsilon in [*bucket_epsilons(), *subset_epsilons(24)]:
            exact = Fraction(epsilon)
            low, high, steps = client.exp_minus(exact, 128)
            true = (-arb(exact.numerator) / arb(exact.denominator)).exp() * arb(2) ** (128 + steps)
            assert arb(low) <= true <= arb(high)


@pytest.mark.parametrize("build", [hb.LocalHashing, hb.SubsetSelection])
def test_the_fingerprint_of_a_study_does_not_hang_on_exp(
    build: Callable[..., hb.Mechanism], monkeypatch: pytest.MonkeyPatch
) -> None:
    domain, exact = hb.Integers(1, 20), math.exp
    epsilon = math.log(7.5) if build is hb.LocalHashing else math.log(7.0)
    fingerprints = set()
    for towards in (-math.inf, None, math.inf):
        with monkeypatch.context() as patched:
            if towards is not None:
                patched.setattr(math, "exp", lambda number, towards=towards: math.nextafter(exact(number), towards))
            fingerprints.add(hb.Study(domain, {"m": build(domain, epsilon)}).fingerprint)
    assert len(fingerprints) == 1
