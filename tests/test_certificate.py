"""The certified gap is an upper bound to the last digit: held against exact fractions, on every kind of channel.

The exact gap of a distribution is log max_x (1/n) sum_i w_i g_xi / f_i with f = theta G, computed here from the floats
of theta and G as fractions, without any rounding. G is the channel's own matrix, and for single outputs also the one
that the mechanism shows; for some mechanisms the law itself, to 60 digits.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from numpy.typing import NDArray

import hubbub as hb
from hubbub.channels import (
    Channel,
    ConcatenatedChannel,
    ConvolutionChannel,
    DecayChannel,
    DiagonalPlusConstantChannel,
    ProductChannel,
    ReindexedChannel,
    RestrictedChannel,
)
from hubbub.channels.bit_sets import BitSetChannel, HashedSetChannel
from hubbub.likelihood import Likelihood, PooledLikelihood, ReportsInParts
from hubbub.rendering import upper_text
from hubbub.reporting import computation_facts as page_facts
from hubbub.reports.blocks import Joint
from hubbub.reports.pattern_rows import log_items

Floats = NDArray[np.float64]
pytestmark = pytest.mark.usefixtures("no_dense_channels")
mpmath.mp.dps = 60


# -- the exact gap ------------------------------------------------------------------------------------------------


def exact_gap(columns: list[list[Any]], weights: Floats, theta: Floats, users: int) -> Any:
    """Return the gap of theta as it is, and of theta divided by its sum, whichever is larger.

    `columns` has the probabilities of each pattern, one for each value: fractions, or numbers of mpmath.
    """
    shares = [Fraction(share) if isinstance(columns[0][0], Fraction) else mpmath.mpf(share) for share in theta.tolist()]
    sent = [i for i, weight in enumerate(weights.tolist()) if weight > 0]
    total = sum(int(weight) for weight in weights.tolist())
    gradient = [shares[0] * 0 for _ in shares]
    for i in sent:
        fitted = sum(share * entry for share, entry in zip(shares, columns[i], strict=True) if share)
        if fitted == 0:
            return mpmath.inf
        factor = int(weights[i]) / fitted
        gradient = [sum_ + factor * entry for sum_, entry in zip(gradient, columns[i], strict=True)]
    top = max(gradient) / total
    number = mpmath.mpf(top.numerator) / top.denominator if isinstance(top, Fraction) else top
    mass = sum(shares)
    mass = mpmath.mpf(mass.numerator) / mass.denominator if isinstance(mass, Fraction) else mass
    return max(mpmath.log(number), mpmath.log(number * mass)) * total / users


def stored_columns(channel: Channel) -> list[list[Fraction]]:
    return [[Fraction(entry) for entry in column] for column in channel.dense().T.tolist()]


def shown_columns(reports: hb.Reports) -> list[list[Fraction]] | None:
    """Return the columns of the mechanisms' own matrices, where all reports are single outputs that are listed."""
    columns: list[list[Fraction]] = []
    for block in reports.blocks:
        if type(block).__name__ != "Singles" or reports.domain != block.mechanisms[0].domain:
            return None
        mechanism = block.mechanisms[0]
        size = mechanism.output_space.size
        if size is None:
            return None
        matrix = mechanism.matrix()
        columns += [[Fraction(entry) for entry in matrix[:, code].tolist()] for code in block.codes.tolist()]  # type: ignore[attr-defined]
    return columns


# -- problems -----------------------------------------------------------------------------------------------------


def drawn(mechanism: hb.Mechanism, rng: np.random.Generator, users: int = 60) -> hb.Reports:
    truth = rng.dirichlet(np.full(len(mechanism.domain), 0.4))
    values = mechanism.domain.labels[rng.choice(len(mechanism.domain), users, p=truth)]
    return hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng))


def matrix(rng: np.random.Generator, size: int | None = None) -> hb.Matrix:
    """Any stochastic matrix, never symmetric, with entries over many orders of magnitude."""
    values, outputs = (size, size) if size else rng.integers(2, 12, 2)
    entries = rng.gamma(rng.uniform(0.05, 2.0), size=(values, outputs)) + 1e-12
    return hb.Matrix(
        hb.Integers(0, int(values) - 1), list(range(outputs)), entries / entries.sum(axis=1, keepdims=True)
    )


def line(rng: np.random.Generator) -> hb.Integers:
    return hb.Integers(0, int(rng.integers(2, 14)))


def grid(rng: np.random.Generator) -> hb.Grid:
    columns, rows = (int(number) for number in rng.integers(2, 6, 2))
    kept = (
        None if rng.random() < 0.6 else sorted(rng.permutation(columns * rows)[: max(2, columns * rows // 2)].tolist())
    )
    return hb.Grid(columns, rows, cell=(0.5, 0.75), cells=kept)


def joint(rng: np.random.Generator) -> hb.Reports:
    domain = line(rng)
    ways = [hb.TruncatedGeometric(domain, 0.7), hb.RandomizedResponse(domain, 1.2), hb.Rappor(domain, 2.0)]
    values = rng.integers(0, len(domain), 25)
    users = []
    for value in values:
        chosen = [ways[number] for number in rng.integers(0, 3, rng.integers(1, 5))]
        users.append([(way, way.privatize([domain.labels[value]], rng=rng)[0]) for way in chosen])
    return hb.Reports.from_users(users)


def bit_sums(rng: np.random.Generator) -> hb.Reports:
    mechanism = (hb.Rappor if rng.random() < 0.5 else hb.OptimizedUnary)(line(rng), rng.uniform(0.3, 4.0))
    ones = rng.integers(0, 80, len(mechanism.domain))
    return hb.Reports.from_bit_counts(mechanism, ones, 80)


PROBLEMS: dict[str, Callable[[np.random.Generator], hb.Reports]] = {
    "matrix": lambda rng: drawn(matrix(rng), rng),
    "k-RR": lambda rng: drawn(hb.RandomizedResponse(line(rng), rng.uniform(0.1, 5.0)), rng),
    "geometric": lambda rng: drawn(hb.Geometric(line(rng), rng.uniform(0.05, 3.0)), rng),
    "truncated geometric": lambda rng: drawn(hb.TruncatedGeometric(line(rng), rng.uniform(0.05, 3.0)), rng),
    "Laplace on bins": lambda rng: drawn(
        hb.Laplace(hb.Bins(np.cumsum(rng.uniform(0.1, 2.0, 9))), rng.uniform(0.1, 3.0)), rng
    ),
    "exponential": lambda rng: drawn(hb.Exponential(line(rng), rng.uniform(0.1, 3.0)), rng),
    "planar geometric": lambda rng: drawn(hb.PlanarGeometric(grid(rng), rng.uniform(0.5, 3.0)), rng),
    "planar Laplace": lambda rng: drawn(hb.PlanarLaplace(grid(rng), rng.uniform(0.5, 3.0)), rng),
    "untruncated": lambda rng: drawn(
        hb.PlanarGeometric(hb.Grid(4, 3, cell=1.0), rng.uniform(0.5, 3.0), truncated=False), rng
    ),
    "RAPPOR": lambda rng: drawn(hb.Rappor(line(rng), rng.uniform(0.3, 4.0)), rng, 30),
    "unary": lambda rng: drawn(hb.OptimizedUnary(line(rng), rng.uniform(0.3, 4.0)), rng, 30),
    "hashed": lambda rng: drawn(hb.LocalHashing(line(rng), rng.uniform(0.3, 4.0)), rng, 30),
    "subsets": lambda rng: drawn(hb.SubsetSelection(line(rng), rng.uniform(0.3, 4.0), size=2), rng, 30),
    "cloaking": lambda rng: drawn(hb.Cloaking(hb.Integers(0, 11), [place // 3 for place in range(12)]), rng),
    "sums of bits": bit_sums,
    "several outputs": joint,
    "two mechanisms": lambda rng: (
        lambda domain: drawn(hb.TruncatedGeometric(domain, 0.8), rng) + drawn(hb.RandomizedResponse(domain, 1.5), rng)
    )(line(rng)),
    "some values": lambda rng: drawn(hb.Geometric(hb.Integers(0, 9), 0.8), rng).restrict([1, 2, 5, 8]),
    "some cells": lambda rng: drawn(hb.PlanarGeometric(hb.Grid(4, 4, cell=1.0), 1.0), rng).restrict([0, 3, 5, 6, 15]),
}


def thetas(reports: hb.Reports, rng: np.random.Generator) -> Iterator[Floats]:
    """Solved, stopped early, drawn, with zeros, and with a sum that is not quite 1."""
    yield hb.estimate(reports, "mle").probabilities
    yield hb.estimate(reports, "ibu", delta=0.05).probabilities
    theta = rng.dirichlet(np.full(len(reports.domain), 0.3))
    yield theta
    yield theta * (1 + 4 * np.finfo(np.float64).eps * rng.integers(-3, 4))


EVERY = 4  # problems of each kind; all but the first of them in make slow
FOURIER = ("planar geometric", "planar Laplace", "untruncated", "some cells")  # whose sums are made by FFT


@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(1, EVERY), marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", PROBLEMS)
def test_no_exact_gap_is_above_the_certified_one(kind: str, seeds: range) -> None:
    checks, excess = 0, []
    for seed in seeds:
        rng = np.random.default_rng([seed, len(kind)])
        reports = PROBLEMS[kind](rng)
        likelihood = Likelihood.of(reports)
        laws = [stored_columns(likelihood.channel)]
        shown = shown_columns(reports)
        laws += [] if shown is None else [shown]
        for theta in thetas(reports, rng):
            certified = likelihood.at(theta).gap
            for columns in laws:
                exact = exact_gap(columns, likelihood.weights, theta, likelihood.users)
                assert exact <= certified
                checks += 1
                excess.append(float(certified - exact - exact / 100))  # of an FFT, more would not be worth its time
    assert checks >= 4 * len(seeds)
    assert max(excess) < (1e-10 if kind in FOURIER else 2e-12)  # it is a bound, not a surrender


def test_without_the_bound_on_rounding_many_would_be_above() -> None:
    """What floats give alone is below the exact gap about as often as above it."""
    above = checks = 0
    for seed in range(EVERY):
        rng = np.random.default_rng(seed)
        reports = PROBLEMS["matrix"](rng)
        likelihood = Likelihood.of(reports)
        columns = stored_columns(likelihood.channel)
        for theta in thetas(reports, rng):
            exact = exact_gap(columns, likelihood.weights, theta, likelihood.users)
            above += bool(exact > likelihood.at(theta).measured_gap)
            checks += 1
    assert checks / 5 < above < checks


def test_the_gap_of_an_estimate_is_the_certified_one() -> None:
    rng = np.random.default_rng(0)
    for reports in (
        drawn(matrix(rng, 7), rng),
        *(PROBLEMS[kind](rng) for kind in ("k-RR", "truncated geometric", "planar geometric")),
    ):
        likelihood = Likelihood.of(reports)
        columns = stored_columns(likelihood.channel)
        for method in ("mle", "ibu", "inv-p", "auto"):
            estimate = hb.estimate(reports, method)
            exact = exact_gap(columns, likelihood.weights, estimate.probabilities, reports.users)
            assert exact <= estimate.gap
            assert estimate.gap == pytest.approx(
                hb.optimality_gap(reports, estimate.probabilities), rel=1e-9, abs=1e-13
            )


def test_the_certificate_of_a_hundred_by_a_hundred_is_tight() -> None:
    rng = np.random.default_rng(3)
    reports = drawn(matrix(rng, 100), rng, 5_000)
    likelihood = Likelihood.of(reports)
    theta = hb.estimate(reports, "mle", tol=1e-12).probabilities
    point = likelihood.at(theta)
    assert point.gap - point.measured_gap < 1e-12
    exact = exact_gap(stored_columns(likelihood.channel), likelihood.weights, theta, reports.users)
    assert exact <= point.gap < exact + 1e-12


def test_what_is_missing_to_the_maximum_is_at_most_the_gap() -> None:
    """The log-likelihood itself, in 60 digits, against that of a distribution solved far more closely."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        reports = PROBLEMS["matrix"](rng)
        likelihood = Likelihood.of(reports)
        columns = stored_columns(likelihood.channel)
        best = hb.estimate(reports, "mle", tol=1e-13).probabilities
        for tol in (1e-2, 1e-5, 1e-9):
            estimate = hb.estimate(reports, "mle", tol=tol)
            lacking = value(columns, likelihood.weights, best) - value(
                columns, likelihood.weights, estimate.probabilities
            )
            assert lacking / reports.users <= estimate.gap


def value(columns: list[list[Fraction]], weights: Floats, theta: Floats) -> Any:
    mass = sum(map(Fraction, theta.tolist()), Fraction(0))
    total = mpmath.mpf(0)
    for column, weight in zip(columns, weights.tolist(), strict=True):
        fitted = sum(
            (Fraction(share) * entry for share, entry in zip(theta.tolist(), column, strict=True)), Fraction(0)
        )
        total += int(weight) * mpmath.log(mpmath.mpf((fitted / mass).numerator) / (fitted / mass).denominator)
    return total


# -- the laws themselves --------------------------------------------------------------------------------------------


def k_rr(mechanism: hb.RandomizedResponse) -> list[list[Any]]:
    odds, size = mpmath.exp(mpmath.mpf(mechanism.epsilon)), len(mechanism.domain)
    return [[(odds if x == z else 1) / (odds + size - 1) for x in range(size)] for z in range(size)]


def truncated_geometric(mechanism: hb.TruncatedGeometric) -> list[list[Any]]:
    size, alpha = len(mechanism.domain), mpmath.exp(-mpmath.mpf(mechanism.epsilon))
    inner = [[(1 - alpha) / (1 + alpha) * alpha ** abs(x - z) for x in range(size)] for z in range(size)]
    for end, z in ((0, 0), (size - 1, size - 1)):
        inner[end] = [alpha ** abs(x - z) / (1 + alpha) for x in range(size)]
    return inner


@pytest.mark.parametrize("law", [k_rr, truncated_geometric])
def test_the_certificate_holds_for_the_law_itself(law: Callable[[Any], list[list[Any]]]) -> None:
    """Probabilities that no float holds: the mechanism's floats are a few units in the last place away."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        kind = hb.RandomizedResponse if law is k_rr else hb.TruncatedGeometric
        mechanism = kind(line(rng), rng.uniform(0.05, 4.0))
        reports = drawn(mechanism, rng)
        (block,) = reports.blocks
        columns = [law(mechanism)[code] for code in block.codes.tolist()]  # type: ignore[attr-defined]
        for theta in thetas(reports, rng):
            exact = exact_gap(columns, reports.weights, theta, reports.users)
            assert exact <= hb.optimality_gap(reports, theta)


# -- likelihoods in parts, underflow, and channels of channels --------------------------------------------------------


@pytest.mark.parametrize("kind", ["matrix", "truncated geometric", "RAPPOR", "planar geometric", "sums of bits"])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_the_certificate_holds_in_parts(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    first = PROBLEMS[kind](rng)
    parts = [first, first, first]  # three parts whose sums are added up
    whole = reduce(add, parts)
    likelihood = Likelihood.of(whole)
    columns = stored_columns(likelihood.channel)
    for theta in thetas(whole, rng):
        exact = exact_gap(columns, likelihood.weights, theta, whole.users)
        assert exact <= PooledLikelihood(ReportsInParts(parts)).at(theta).gap


def test_the_certificate_holds_where_probabilities_are_below_all_floats() -> None:
    far = hb.Geometric(hb.Integers(0, 9), 2.0)
    reports = hb.Reports.from_counts(far, {-600: 3, 700: 2, 4: 5})
    theta = np.zeros(10)
    theta[[3, 9]] = 0.25, 0.75
    point = Likelihood.of(reports).at(theta)
    alpha = mpmath.exp(-mpmath.mpf(2))
    columns = [[alpha ** abs(x - z) for x in range(10)] for z in (-600, 4, 700)]
    exact = exact_gap(columns, np.array([3.0, 5.0, 2.0]), theta, 10)
    assert exact <= point.gap < exact + 1e-11
    chained = hb.Reports.from_users([[(hb.Geometric(hb.Integers(0, 9), 2.0), 4)] * 400] * 3)
    lonely = np.zeros(10)
    lonely[0] = 1.0
    point = Likelihood.of(chained).at(lonely)
    assert point.underflow is not None
    exact = exact_gap([[alpha ** (400 * abs(x - 4)) for x in range(10)]], np.array([3.0]), lonely, 3)
    assert exact <= point.gap < exact * (1 + 1e-9)


def test_products_and_choices_of_channels_are_certified_too() -> None:
    rng = np.random.default_rng(9)
    reports = PROBLEMS["planar geometric"](rng)
    whole = Likelihood.of(reports)
    positions = np.arange(0, whole.channel.values, 2)
    repeated = joint(rng)
    (block,) = (block for block in repeated.blocks if isinstance(block, Joint))
    made = ProductChannel(*log_items(block.sources, block.repeats, None))
    for channel, weights in (
        (RestrictedChannel(whole.channel, positions), whole.weights),
        (ReindexedChannel(whole.channel, np.arange(whole.channel.patterns)[::-1].copy()), whole.weights[::-1].copy()),
        (ConcatenatedChannel([whole.channel, whole.channel]), np.concatenate([whole.weights, whole.weights])),
        (made, block.weights),
    ):
        likelihood = Likelihood(channel, weights, int(weights.sum()))
        for theta in (np.full(channel.values, 1 / channel.values), rng.dirichlet(np.full(channel.values, 0.2))):
            exact = exact_gap(stored_columns(channel), weights, theta, likelihood.users)
            assert exact <= likelihood.at(theta).gap < exact + 1e-11


def test_every_structure_was_met() -> None:
    met: set[type[Channel]] = set()

    def collect(channel: Channel) -> None:
        met.add(type(channel))
        for part in getattr(channel, "parts", ()):
            collect(part)
        inner = getattr(channel, "_whole", None)
        if isinstance(inner, Channel):
            collect(inner)

    for kind, make in PROBLEMS.items():
        for seed in range(EVERY // 2):
            collect(Likelihood.of(make(np.random.default_rng([seed, len(kind)]))).channel)
    assert {DiagonalPlusConstantChannel, DecayChannel, ConvolutionChannel, BitSetChannel, ConcatenatedChannel} <= met


# -- rounding that is planted ---------------------------------------------------------------------------------------


def test_a_channel_that_rounds_more_than_it_says_is_found_out() -> None:
    """The exact check has the power to see what the bound is about."""
    rng = np.random.default_rng(1)
    reports = drawn(matrix(rng, 10), rng, 500)
    likelihood = Likelihood.of(reports)
    theta = hb.estimate(reports, "mle", tol=1e-12).probabilities
    careless = Likelihood.of(reports).at(theta)
    careless.__dict__["fitted"] = careless.fitted * (1 + 1e-12)
    exact = exact_gap(stored_columns(likelihood.channel), likelihood.weights, theta, reports.users)
    assert exact > careless.gap


def test_bounds_of_products_hold_and_are_not_wasteful() -> None:
    """Forward and backward sums against exact ones, for a theta and a ratio of every channel."""
    for kind, make in PROBLEMS.items():
        rng = np.random.default_rng([2, len(kind)])
        reports = make(rng)
        channel = reports.channel
        columns = stored_columns(channel)
        theta = rng.dirichlet(np.full(channel.values, 0.3))
        fitted = channel.forward(theta)
        bound = channel.forward_rounding(theta, fitted)
        allowed = fitted * bound.relative + np.broadcast_to(bound.absolute, fitted.shape)
        for i, column in enumerate(columns):
            exact = sum(Fraction(share) * entry for share, entry in zip(theta.tolist(), column, strict=True))
            assert abs(Fraction(float(fitted[i])) - exact) <= Fraction(float(allowed[i])), kind
        ratio = rng.exponential(size=channel.patterns)
        gathered = channel.backward(ratio)
        bound = channel.backward_rounding(ratio)
        allowed = gathered * bound.relative + np.broadcast_to(bound.absolute, gathered.shape)
        for x in range(channel.values):
            exact = sum(Fraction(number) * column[x] for number, column in zip(ratio.tolist(), columns, strict=True))
            assert abs(Fraction(float(gathered[x])) - exact) <= Fraction(float(allowed[x])), kind
        assert float(np.max(allowed / gathered.max())) < (1e-10 if kind in FOURIER else 1e-12), kind


def test_a_hashed_channel_that_is_never_written_down_is_bounded() -> None:
    rng = np.random.default_rng(4)
    codes = np.stack([rng.integers(0, 2**63, 30).astype(np.uint64), rng.integers(0, 4, 30).astype(np.uint64)], axis=1)
    channel = HashedSetChannel(codes, 17, buckets=4, low=math.exp(-1.3), log_scale=np.zeros(30))
    likelihood = Likelihood(channel, np.ones(30), 30)
    for theta in (np.full(17, 1 / 17), rng.dirichlet(np.full(17, 0.2))):
        exact = exact_gap(stored_columns(channel), likelihood.weights, theta, 30)
        assert exact <= likelihood.at(theta).gap < exact + 1e-12


# -- printed upwards --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "digits", "text"),
    [
        (4.61e-3, 2, "4.7e-03"),
        (4.7e-3, 2, "4.7e-03"),
        (9.99e-10, 2, "1.0e-09"),
        (0.0, 2, "0.0e+00"),
        (math.inf, 2, "inf"),
        (1.0000000000000002e-9, 2, "1.1e-09"),
        (5e-324, 2, "4.9e-324"),
    ],
)
def test_texts_of_upper_bounds_are_rounded_up(number: float, digits: int, text: str) -> None:
    assert upper_text(number, digits) == text


def test_no_text_says_less_than_the_gap() -> None:
    rng = np.random.default_rng(5)
    for _ in range(300):
        number = float(10 ** rng.uniform(-18, 1))
        for digits in (1, 2, 3):
            said = float(upper_text(number, digits))
            assert number <= said <= number * (1 + 10.0 ** (1 - digits))


def test_statuses_facts_and_pages_round_the_gap_up() -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        reports = drawn(matrix(rng, 6), rng)
        for method in ("mle", "ibu", "auto", "inv-n"):
            estimate = hb.estimate(reports, method)
            if method == "auto":  # where it is no error of the answer, it is left to the details
                assert "gap" not in estimate.status
            else:
                (said,) = re.findall(r"gap ([0-9.e+-]+)", estimate.status)
                assert float(said) >= estimate.gap
            facts = {fact.label: fact.text for fact in estimate.facts()}
            for text in (facts["gap"], page_facts._certificate(estimate)):
                (said,) = re.findall(r"at most ([0-9.e+-]+) nats", text)
                assert estimate.gap <= float(said) <= estimate.gap * 1.01 + 1e-300
