"""What real reports are drawn from, in exact fractions: every ratio at most exp(epsilon d), with no tolerance.

Probabilities are rebuilt from the whole numbers of each law (tests/exactly.py) and compared by Arb's balls. The gate
takes a few small parameter sets of every mechanism; `make slow` takes two hundred each, up to 1,000 values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from numpy.typing import NDArray

import hubbub as hb
from exactly import (
    Table,
    ball,
    broken_pairs,
    clipped_rows,
    is_near,
    keeps,
    limit,
    planar_chance,
    reaches_alike,
    rows_of,
    squared_length,
    stair_chance,
    steps_of,
    sums_to_one,
    violations,
    whole_below,
    worst_excess,
)
from hubbub import client
from hubbub.client import acceptance_probability, axis_noise, exp_minus, line_noise
from hubbub.mechanisms import exponential, geometric, laplace
from hubbub.sampling import LineNoiseLaw, PlanarGeometricLaw, RandomSource, TableLaw

Draw = np.random.Generator
Builder = Callable[[Draw, int], hb.Mechanism]


# -- parameter sets ---------------------------------------------------------------------------------------


def epsilon(rng: Draw) -> float:
    """Return an epsilon from 0.01 to 20, each order of magnitude as likely."""
    return float(np.exp(rng.uniform(math.log(0.01), math.log(20))))


def size(rng: Draw, most: int) -> int:
    """Return a number of values from 2 to `most`, small ones as likely as large ones."""
    return int(np.exp(rng.uniform(math.log(2), math.log(most + 1))))


def integers(rng: Draw, most: int) -> hb.Integers:
    low = int(rng.integers(-50, 50))
    return hb.Integers(low, low + size(rng, most) - 1)


def bins(rng: Draw, most: int) -> hb.Bins:
    return hb.Bins(np.cumsum(np.exp(rng.uniform(-3, 1, size=size(rng, most) + 1))))


def grid(rng: Draw, most: int) -> hb.Grid:
    """Return a grid whose cells are not square; now and then a third of them is missing."""
    columns = size(rng, max(2, most // 2))
    rows = max(1, min(size(rng, most), most // columns))
    sides = tuple(np.exp(rng.uniform(-2, 1, size=2)).tolist())
    cells = None
    if columns * rows >= 6 and rng.random() < 0.5:
        cells = np.sort(rng.choice(columns * rows, size=columns * rows * 2 // 3, replace=False))
    return hb.Grid(columns, rows, cell=(sides[0], sides[1]), cells=cells)


def subset_selection(rng: Draw, most: int) -> hb.Mechanism:
    domain = integers(rng, most)
    chosen = None if rng.random() < 0.5 else int(rng.integers(1, len(domain)))
    return hb.SubsetSelection(domain, epsilon(rng), chosen)


def square_wave(rng: Draw, most: int) -> hb.Mechanism:
    domain = integers(rng, most) if rng.random() < 0.5 else bins(rng, most)
    return hb.SquareWave(domain, epsilon(rng), None if rng.random() < 0.5 else int(rng.integers(0, len(domain) + 1)))


def staircase(rng: Draw, most: int) -> hb.Mechanism:
    domain, rate = integers(rng, most), max(epsilon(rng), 1e-6)
    return hb.Staircase(domain, rate, None if rng.random() < 0.5 else max(float(rng.random()), 1e-9))


def unary(rng: Draw, most: int) -> hb.Mechanism:
    """Return unary encoding with fractions of small and of large numbers."""
    low, high = sorted(rng.choice(10**6, size=2, replace=False) + 1)
    return hb.Unary(integers(rng, most), f"{high}/{10**6 + 7}", f"{low}/{10**6 + 7}")


def hadamard(rng: Draw, most: int) -> hb.Mechanism:
    domain = integers(rng, most)
    blocks = None if rng.random() < 0.3 else 1 << int(rng.integers(0, (2 * len(domain) - 1).bit_length()))
    return hb.HadamardResponse(domain, epsilon(rng), blocks)


def projective(rng: Draw, most: int) -> hb.Mechanism:
    """Return projective response with any prime, or the best one where that leaves few enough outputs."""
    domain, rate = integers(rng, most), epsilon(rng)
    prime = None if rng.random() < 0.5 else int(rng.choice([2, 3, 5, 7, 31]))
    return hb.ProjectiveResponse(domain, rate, prime)


def sketch(rng: Draw, most: int) -> hb.Mechanism:
    if rng.random() < 0.5:
        return hb.CountMeanSketch(integers(rng, most), epsilon(rng), int(rng.integers(1, 99)), int(rng.integers(2, 99)))
    width = 1 << int(rng.integers(1, 9))
    return hb.HadamardCountMeanSketch(integers(rng, most), epsilon(rng), int(rng.integers(1, 99)), width)


def two_epsilons(rng: Draw) -> tuple[float, float]:
    """Return epsilon, and what one report tells: anything from nearly nothing to nearly all."""
    rate = epsilon(rng)
    return rate, rate * float(rng.choice([1e-6, rng.uniform(0.01, 0.99), 1 - 1e-12]))


def remembering(rng: Draw, most: int) -> hb.Mechanism:
    """Return RAPPOR with memory."""
    return hb.LongitudinalRappor(integers(rng, most), *two_epsilons(rng))


def unary_with_memory(rng: Draw, most: int) -> hb.Mechanism:
    """Return any of the four kinds of unary encoding with memory; optimized reports cannot tell more than 2/3 of it."""
    (rate, first), stages = two_epsilons(rng), (str(rng.choice(["oue", "sue"])), str(rng.choice(["oue", "sue"])))
    return hb.LongitudinalUnary(integers(rng, most), rate, first * (0.3 if stages[1] == "oue" else 1.0), *stages)


def asked_bits(rng: Draw, most: int) -> hb.Mechanism:
    """Return dBitFlip with any numbers of buckets and bits; few buckets where the values are few."""
    domain = integers(rng, most)
    buckets = int(rng.integers(2, min(len(domain), 5 if len(domain) <= 8 else 300) + 1))
    return hb.DBitFlip(domain, epsilon(rng), buckets, int(rng.integers(1, buckets + 1)))


def filters(rng: Draw, most: int) -> hb.Mechanism:
    """Return Bloom-filter RAPPOR by f, p and q or by epsilons, with and without a label for other texts."""
    count = max(2, min(size(rng, most), 60))
    texts = hb.Categories([f"text {place}" for place in range(count)])
    small = most <= 8
    sizes = int(rng.integers(1, 4)), int(rng.integers(4, 7 if small else 100)), int(rng.integers(1, 4 if small else 9))
    rest = "text 0" if rng.random() < 0.4 else None
    if rng.random() < 0.3:
        return hb.BloomRappor(
            texts, *sizes, epsilon=(rate := epsilon(rng)), first=rate * rng.uniform(0.1, 1), rest=rest
        )
    p = Fraction(int(rng.integers(0, 50)), 100)
    q = p + Fraction(int(rng.integers(1, 50)), 100)
    return hb.BloomRappor(texts, *sizes, f=Fraction(int(rng.integers(1, 90)), 97), p=p, q=q, rest=rest)


def matrix(rng: Draw, most: int) -> hb.Mechanism:
    """Return any matrix; its epsilon is its own affair, and must be true as well."""
    domain = integers(rng, min(most, 30))
    outputs = size(rng, 60)
    return hb.Matrix(
        domain, range(outputs), rng.dirichlet(np.full(outputs, float(rng.choice([2.0, 1e4]))), size=len(domain))
    )


def planar_laplace(rng: Draw, most: int) -> hb.Mechanism:
    """Return planar Laplace noise on few cells; with cells missing only where the noise does not reach far."""
    domain, rate = grid(rng, min(most, 20)), epsilon(rng)
    if domain.cells is not None and rate * min(domain.sides) < 2:
        domain = hb.Grid(domain.columns, domain.rows, cell=domain.sides)
    return hb.PlanarLaplace(domain, rate)


KINDS: dict[str, Builder] = {
    "randomized response": lambda rng, most: hb.RandomizedResponse(integers(rng, most), epsilon(rng)),
    "rappor": lambda rng, most: hb.Rappor(integers(rng, most), epsilon(rng)),
    "rappor with memory": remembering,
    "unary with memory": unary_with_memory,
    "response with memory": lambda rng, most: hb.LongitudinalResponse(integers(rng, most), *two_epsilons(rng)),
    "hashing with memory": lambda rng, most: hb.LongitudinalHashing(
        integers(rng, most), *two_epsilons(rng), None if rng.random() < 0.3 else size(rng, most)
    ),
    "dBitFlip": asked_bits,
    "Bloom filters": filters,
    "optimized unary": lambda rng, most: hb.OptimizedUnary(integers(rng, most), epsilon(rng)),
    "subset selection": subset_selection,
    "local hashing": lambda rng, most: hb.LocalHashing(integers(rng, most), epsilon(rng), size(rng, most)),
    "square wave": square_wave,
    "duchi": lambda rng, most: hb.Duchi(integers(rng, most), epsilon(rng)),
    "staircase": staircase,
    "unary": unary,
    "hadamard response": hadamard,
    "projective response": projective,
    "sketch": sketch,
    "piecewise": lambda rng, most: hb.Piecewise(integers(rng, most), epsilon(rng)),
    "geometric": lambda rng, most: hb.Geometric(integers(rng, most), epsilon(rng)),
    "truncated geometric": lambda rng, most: hb.TruncatedGeometric(integers(rng, most), epsilon(rng)),
    "laplace on integers": lambda rng, most: hb.Laplace(integers(rng, most), epsilon(rng)),
    "laplace on uneven bins": lambda rng, most: hb.Laplace(bins(rng, most), epsilon(rng)),
    "exponential on bins": lambda rng, most: hb.Exponential(bins(rng, most), epsilon(rng)),
    "exponential on a map": lambda rng, most: hb.Exponential(grid(rng, most), epsilon(rng)),
    "exponential on categories": lambda rng, most: hb.Exponential(
        hb.Categories([f"c{place}" for place in range(size(rng, most))]), epsilon(rng)
    ),
    "planar geometric": lambda rng, most: hb.PlanarGeometric(
        grid(rng, most), epsilon(rng), truncated=bool(rng.random() < 0.5)
    ),
    "planar laplace": planar_laplace,
    "matrix": matrix,
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", KINDS)
def test_the_promise_is_kept_exactly(kind: str) -> None:
    for seed in range(3):
        rng = np.random.default_rng([seed, 17])
        mechanism = KINDS[kind](rng, 8)
        assert violations(mechanism) == [], mechanism
    mechanism = KINDS[kind](np.random.default_rng(99), 40)
    assert violations(mechanism) == [], mechanism


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", range(4))
def test_the_promise_is_kept_exactly_for_two_hundred_sets(kind: str, part: int) -> None:
    refused = 0
    for seed in range(50 * part, 50 * part + 50):
        try:
            mechanism = KINDS[kind](np.random.default_rng([seed, 23]), 1000)
            law = mechanism.law
        except hb.MechanismError:  # distances too large for epsilon, or noise that reaches too far beyond missing cells
            refused += 1
            continue
        assert violations(mechanism, law) == [], (seed, mechanism)
    assert refused <= 5


LISTED = [kind for kind in KINDS if kind not in ("geometric", "staircase", "planar geometric", "planar laplace")]


def few(kind: str, seed: int) -> tuple[hb.Mechanism, Table]:
    """Return a small mechanism with its exact rows."""
    mechanism = KINDS[kind](np.random.default_rng(seed), 5)
    return mechanism, rows_of(mechanism.law, len(mechanism.domain))


@pytest.mark.parametrize("kind", LISTED)
def test_rows_sum_to_one_and_all_values_reach_the_same_outputs(kind: str) -> None:
    for seed in range(2):
        mechanism, table = few(kind, seed)
        assert sums_to_one(table), mechanism
        assert reaches_alike(table), mechanism


@pytest.mark.parametrize("kind", LISTED)
def test_the_matrix_is_the_one_that_draws_realise(kind: str) -> None:
    for seed in range(2):
        mechanism, table = few(kind, seed)
        floats = mechanism.matrix(5) if isinstance(mechanism, hb.LocalHashing) else mechanism.matrix()
        assert worst_excess(floats, table) < 1e-13, mechanism


def test_the_matrix_of_endless_noise_is_the_one_that_draws_realise() -> None:
    for rate in (0.05, 0.7, 3.0):
        mechanism = hb.Geometric(hb.Integers(-3, 1), rate)
        outputs = mechanism.outputs
        assert outputs is not None
        table = [
            [mechanism.law.noise.probability(abs(value - z)) for z in outputs.tolist()]
            for value in mechanism.domain.labels.tolist()
        ]
        assert worst_excess(mechanism.matrix(), table) < 1e-13


@pytest.mark.parametrize("gamma", [None, "1/4", 1])
def test_the_matrix_of_stairs_is_the_one_that_draws_realise(gamma: str | int | None) -> None:
    for rate in (0.3, 0.7, 3.0):
        mechanism = hb.Staircase(hb.Integers(-3, 1), rate, gamma)
        outputs = mechanism.outputs
        assert outputs is not None
        table = [
            [stair_chance(mechanism.law, value - z) for z in outputs.tolist()]
            for value in mechanism.domain.labels.tolist()
        ]
        assert worst_excess(mechanism.matrix(), table) < 1e-13


def remapped(mechanism: hb.PlanarGeometric, reach: int) -> list[list[float]]:
    """Return rows of planar geometric noise, each displacement of a window sent to its nearest cell one by one."""
    grid, law = mechanism.domain, mechanism.law
    steps = grid.steps.tolist()
    chances = {(column, row): float(planar_chance(law, column, row)) for column in range(reach) for row in range(reach)}
    total = math.fsum(chances[abs(c), abs(r)] for c in range(1 - reach, reach) for r in range(1 - reach, reach))
    rows = []
    for column, row in steps:
        parts: list[list[float]] = [[] for _ in steps]
        for c in range(1 - reach, reach):
            for r in range(1 - reach, reach):
                away = [squared_length((column + c - x, row + r - y), grid.sides) for x, y in steps]
                parts[away.index(min(away))].append(chances[abs(c), abs(r)])
        rows.append([math.fsum(part) / total for part in parts])
    return rows


@pytest.mark.parametrize("cells", [None, [0, 1, 5]], ids=["all cells", "missing cells"])
def test_the_matrix_of_remapped_noise_is_the_one_that_draws_realise(cells: list[int] | None) -> None:
    mechanism = hb.PlanarGeometric(hb.Grid(3, 2, cell=(1.5, 1.0), cells=cells), 2.0)
    # exp(-2 * 22) lies beyond the window.
    np.testing.assert_allclose(mechanism.matrix(), remapped(mechanism, 23), rtol=1e-13, atol=1e-17)


@pytest.mark.parametrize("cells", [None, [0, 1, 5]], ids=["all cells", "missing cells"])
def test_the_matrix_of_planar_laplace_noise_is_the_one_that_draws_realise(cells: list[int] | None) -> None:
    mechanism = hb.PlanarLaplace(hb.Grid(3, 2, cell=(1.5, 1.0), cells=cells), 3.0)
    table = clipped_rows(mechanism.law, mechanism.domain)
    assert sums_to_one(table)
    assert reaches_alike(table)
    # exp(-45) of the noise lies beyond what the matrix counts where cells are missing.
    np.testing.assert_allclose(mechanism.matrix(), np.array(table, dtype=np.float64), rtol=1e-12, atol=1e-17)


def test_a_long_truncated_geometric_has_no_empty_cells() -> None:
    mechanism = hb.TruncatedGeometric(hb.Integers(0, 99), 1.0)
    table = rows_of(mechanism.law, 100)
    assert min(min(row) for row in table) > 0
    assert sums_to_one(table)
    assert violations(mechanism) == []
    far = hb.TruncatedGeometric(hb.Integers(0, 999), 20.0).law.noise  # exp(-19980)
    assert min(steps_of(far, 999)) > 0


# -- the check can fail -----------------------------------------------------------------------------------


def test_without_the_shrink_the_promise_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (client, exponential, geometric, laplace):
        monkeypatch.setattr(module, "EPSILON_SHRINK", Fraction(1))
    acceptance_probability.cache_clear()
    line, uneven, plane = hb.Integers(0, 6), hb.Bins([0, 1, 1.5, 4, 7]), hb.Grid(3, 2, cell=(1.0, 0.7))
    broken = [
        hb.Geometric(line, 0.7),
        hb.TruncatedGeometric(line, 0.7),
        hb.Laplace(line, 0.7),
        hb.Laplace(uneven, 0.7),
        hb.PlanarGeometric(plane, 0.7),
    ]
    try:
        kept = [type(mechanism).__name__ for mechanism in broken if violations(mechanism) == []]
    finally:
        acceptance_probability.cache_clear()  # what was computed without the shrink must not stay
    assert kept == []


@pytest.mark.parametrize("kind", LISTED)
def test_a_smaller_claim_is_found_broken(kind: str) -> None:
    mechanism, table = few(kind, 0)
    if mechanism.epsilon == 0:
        pytest.skip("nothing to claim")
    # The exponential mechanism pays half of its epsilon for sums, which on few values do not differ by as much.
    claim = mechanism.spent(1)  # with memory, one report tells less than all; see below
    share = 0.49 if isinstance(mechanism, hb.Exponential | hb.Laplace) else 1 - 1e-9
    assert broken_pairs(mechanism, table, claim * share)


def test_one_report_with_memory_that_tells_more_than_first_is_found() -> None:
    mechanism = hb.LongitudinalRappor(hb.Integers(0, 3), 2.0, 0.5)
    assert violations(mechanism) == []
    less = mechanism.law.raised - 1
    assert violations(mechanism, replace(mechanism.law, lost=less, raised=less)) == [1]
    permanent = mechanism.law.permanent  # both chances rounded down instead of up
    down = replace(permanent, own=permanent.own + 1, other=permanent.other - 1)
    assert violations(mechanism, replace(mechanism.law, permanent=down)) != []


def test_comparisons_are_certain() -> None:
    two = limit(Fraction(1), Fraction(1))  # e
    close = Fraction(271828182845904523536028747135266249775724709369995, 10**50)
    assert keeps(close, 1, two)
    assert not keeps(close + Fraction(1, 10**50), 1, two)
    assert not keeps(1, 0, two)
    assert keeps(0, 0, two)
    assert Fraction(whole_below(two), 2**300) < close + Fraction(1, 10**50)
    assert Fraction(whole_below(two), 2**300) > close - Fraction(1, 10**50)


# -- the numbers underneath -------------------------------------------------------------------------------


def test_exponentials_are_bounded_from_both_sides() -> None:
    rng = np.random.default_rng(2)
    for _ in range(300):
        x = Fraction(float(np.exp(rng.uniform(-60, 13)))) * int(rng.integers(1, 100)) / int(rng.integers(1, 10**6))
        bits = int(rng.choice([64, 100, 256, 320, 1000, 4096]))
        low, high, q = exp_minus(x, bits)
        assert high - low <= 3
        assert low.bit_length() >= bits - 1
        with ctx.workprec(bits + 200):
            ideal = (-ball(x)).exp() * arb(2) ** (bits + q)
            assert ball(low) <= ideal <= ball(high), (x, bits)
    low, high, q = exp_minus(Fraction(0))
    assert low <= 1 << (256 + q) <= high


def test_displacements_are_taken_with_the_ideal_probability() -> None:
    rng = np.random.default_rng(3)
    sides = [(1.0, 1.0), (0.3, 0.7), (1e-3, 2.0), (5.0, 1e-4), (0.5683, 0.4988)]
    for side in sides:
        for rate in (0.01, 1.0, 20.0):
            law = PlanarGeometricLaw(rate, side, np.zeros((1, 2), dtype=np.int64), np.asarray)
            shrunk = Fraction(rate) * (1 - Fraction(1, 2**50))
            places = [(1, 1), (0, 1), (1, 0), (round(side[1] * 50), round(side[0] * 50))]
            places += np.exp(rng.uniform(0, math.log(1e5), size=(4, 2))).astype(np.int64).tolist()
            for columns, rows in places:
                if rate * math.hypot(columns * side[0], rows * side[1]) > 3000:  # never drawn, and slow to compute
                    continue
                chance = acceptance_probability(rate, side, columns, rows)
                assert 0 < chance <= 1
                assert chance.denominator & (chance.denominator - 1) == 0
                none = axis_noise(rate, side[0]).probability(0) * axis_noise(rate, side[1]).probability(0)
                found = planar_chance(law, columns, rows) / none
                with ctx.workprec(500):
                    ideal = (-ball(shrunk) * ball(squared_length((columns, rows), side)).sqrt()).exp()
                    assert abs(ball(found) / ideal - 1) < arb(2) ** -100


def test_no_displacement_is_impossible_where_floats_underflow() -> None:
    law = PlanarGeometricLaw(500.0, (1.0, 1.0), np.zeros((1, 2), dtype=np.int64), np.asarray)
    chance = acceptance_probability(500.0, (1.0, 1.0), 6, 0)
    assert chance < Fraction(2.0**-1074)

    class Zeros(RandomSource):
        secure = True

        def words(self, count: int) -> NDArray[np.uint64]:
            return np.zeros(count, dtype=np.uint64)

    assert law._take(np.array([[6, 0]]), Zeros()).tolist() == [True]


def test_noise_that_goes_beyond_one_block_goes_on_as_it_began() -> None:
    rate = Fraction(1, 20)
    law = line_noise(rate)
    block = len(law.steps)
    chances = steps_of(law, 3 * block)
    left = Fraction(law.side, 1 << law.width)
    for step in range(1, 3 * block):
        assert law.probability(step) == chances[step]
        assert law.beyond(step) == left
        left -= chances[step]
        assert is_near(chances[0] / chances[step], limit(rate * step, Fraction(1)), 100)


# -- what cannot be realised is refused -------------------------------------------------------------------


@pytest.mark.parametrize(
    "mechanism",
    [
        hb.Geometric(hb.Integers(0, 3), 1e-9),
        hb.PlanarGeometric(hb.Grid(2, 2, cell=1.0), 1e-9),
        hb.PlanarGeometric(hb.Grid(2, 2, cell=(1.0, 1e-9)), 1.0),
        hb.Exponential(hb.Integers(0, 9_999), 1.0),
        hb.Laplace(hb.Bins(np.cumsum(np.linspace(1, 2, 8_000))), 1.0),
        hb.Laplace(hb.Bins([0, 1e6, 2e6, 3e6]), 500.0),
        hb.Laplace(hb.Bins([0, 1e6, 2.5e6, 2.6e6]), 500.0),
        hb.Exponential(hb.Bins([0, 1e6, 2.5e6, 2.6e6]), 500.0),
        hb.PlanarGeometric(hb.Grid(2, 2, cell=1e6), 500.0),
        hb.Laplace(hb.Bins([0, 1e-320, 2e-320]), 1e-12),
        hb.Laplace(hb.Bins([0, 1e-320, 3e-320]), 1e-12),
        hb.Exponential(hb.Grid(2, 2, cell=1e-60), 1e-12),
        hb.PlanarLaplace(hb.Grid(2, 2, cell=1.0), 1e-9),
        hb.PlanarLaplace(hb.Grid(2, 2, cell=1e6), 500.0),
        hb.PlanarLaplace(hb.Grid(300, 300, cell=1.0), 1.0),
    ],
    ids=lambda mechanism: f"{type(mechanism).__name__} {mechanism.epsilon:g} {len(mechanism.domain)}",
)
def test_what_cannot_be_realised_is_refused(mechanism: hb.Mechanism) -> None:
    with pytest.raises(hb.MechanismError) as caught:
        mechanism.privatize(mechanism.domain.labels[:1])
    assert caught.value.remedy


def test_laws_are_of_the_kind_that_this_file_takes_apart() -> None:
    assert isinstance(hb.Laplace(hb.Integers(0, 5), 1.0).law, LineNoiseLaw)
    assert isinstance(hb.Laplace(hb.Bins([0, 1, 3]), 1.0).law, LineNoiseLaw)
    assert isinstance(hb.Laplace(hb.Bins([0, 1, 3, 3.5]), 1.0).law, TableLaw)
