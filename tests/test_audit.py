"""The exact part of the audit: against brute force on every kind of law, and against faults that are planted."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

import hubbub as hb
from exactly import clipped_rows, hashed_rows, rows_of, steps_of
from hubbub import client
from hubbub.auditing import exact_epsilon, planar_ratios
from hubbub.auditing.exact_epsilon import ExactEpsilon, prove_epsilon
from hubbub.mechanisms import geometric
from hubbub.mechanisms.local_hashing import HashedResponseLaw
from hubbub.mechanisms.output_spaces import IntegerOutputs, OutputSpace
from hubbub.sampling import (
    BitFlipLaw,
    FixedLaw,
    Law,
    LineNoiseLaw,
    PlanarGeometricLaw,
    PlanarTableLaw,
    ResponseLaw,
    SubsetLaw,
    TableLaw,
)
from strategies import bins, categories, examples, grids, integers, matrices, metric_mechanisms, pointing_mechanisms

ONE = 1 << 64


@dataclass(frozen=True)
class Plain(hb.Mechanism):
    """A law under a claim of its own."""

    domain: hb.Domain
    epsilon: float
    given: Law

    @property
    def outputs(self) -> None:
        return

    def matrix(self) -> Any:
        raise NotImplementedError

    @cached_property
    def output_space(self) -> OutputSpace:
        return IntegerOutputs("Plain")

    @cached_property
    def law(self) -> Law:
        return self.given


@dataclass(frozen=True)
class PerUnit(Plain):
    """The same, with a claim per unit of distance."""

    metric: ClassVar[bool] = True


# -- brute force: every output's probabilities under all values, from what laws are said to draw ------------

Column = list[Fraction]  # of one output, by value


def columns(mechanism: hb.Mechanism) -> Iterator[Column]:
    """Yield the column of every output (for endless ones: of all that matter), up to a factor of its own."""
    law, size = mechanism.law, len(mechanism.domain)
    if isinstance(law, LineNoiseLaw) and not law.clamped:
        far = 2 * len(law.noise.steps) + size + 2
        chances = steps_of(law.noise, far + size)
        yield from ([chances[abs(z - x)] for x in range(size)] for z in range(-far, far + size))
    elif isinstance(law, PlanarGeometricLaw):
        yield from _rejected(law)
    elif isinstance(law, HashedResponseLaw):
        for seed in range(200):
            yield from map(list, zip(*hashed_rows(law, size, seed), strict=True))
    elif isinstance(law, PlanarTableLaw):
        assert isinstance(mechanism.domain, hb.Grid)
        yield from map(list, zip(*clipped_rows(law, mechanism.domain), strict=True))
    else:
        yield from map(list, zip(*rows_of(law, size), strict=True))


def _rejected(law: PlanarGeometricLaw) -> Iterator[Column]:
    columns, rows = (law.steps.max(axis=0) + 1).tolist()
    along = [
        steps_of(client.axis_noise(law.epsilon, side), 2 * most)
        for side, most in zip(law.sides, (columns, rows), strict=True)
    ]
    weights: dict[tuple[int, int], Fraction] = {}
    for z in product(range(-columns, 2 * columns), range(-rows, 2 * rows)):
        column = []
        for x in law.steps.tolist():
            away = abs(z[0] - x[0]), abs(z[1] - x[1])
            if away not in weights:
                chance = client.acceptance_probability(law.epsilon, law.sides, *away)
                weights[away] = chance * along[0][away[0]] * along[1][away[1]]
            column.append(weights[away])
        yield column


def brute(mechanism: hb.Mechanism) -> tuple[arb | None, bool]:
    """Return the largest rate (None: infinite), and whether all are within the claim."""
    size, claim, best, holds = len(mechanism.domain), arb(mechanism.epsilon), arb(0), True
    apart = {
        (x, y): mechanism.domain.squared_distance(x, y) if mechanism.metric else Fraction(1)
        for x, y in product(range(size), repeat=2)
    }
    seen = set()
    for column in columns(mechanism):
        for x, y in product(range(size), repeat=2):
            if x == y or column[x] <= column[y]:
                continue
            if column[y] == 0:
                return None, mechanism.epsilon == math.inf
            ratio, squared = column[x] / column[y], apart[x, y]
            if (ratio, squared) in seen:
                continue
            seen.add((ratio, squared))
            rate = (arb(ratio.numerator) / arb(ratio.denominator)).log()
            rate /= (arb(squared.numerator) / arb(squared.denominator)).sqrt()
            holds = holds and bool(rate <= claim)
            if not rate < best:
                best = rate
    return best, holds


def agree(mechanism: hb.Mechanism) -> ExactEpsilon:
    proof = prove_epsilon(mechanism)
    with ctx.workprec(400):
        best, holds = brute(mechanism)
        assert proof.holds == holds
        if best is None:
            assert proof.ratio is None
            assert proof.low == math.inf
            return proof
        assert proof.ratio is not None
        assert arb(str(proof.low)) <= best or not best < arb(str(proof.low))
        assert not best > arb(str(proof.high))
        # The pair that is named attains it.
        rate = (arb(proof.ratio.numerator) / arb(proof.ratio.denominator)).log()
        if mechanism.metric:
            value, other = (int(mechanism.domain.index([label])[0]) for label in (proof.value, proof.other))
            squared = mechanism.domain.squared_distance(value, other)
            rate /= (arb(squared.numerator) / arb(squared.denominator)).sqrt()
            assert proof.distance == pytest.approx(math.sqrt(squared))
        assert abs(rate - best) < arb(2) ** -250
    return proof


# -- laws of any numbers, also such as no mechanism has ----------------------------------------------------

weights = st.integers(1, ONE - 1)
claims = st.floats(0.1, 40.0)


@st.composite
def noises(draw: st.DrawFn) -> client.Noise:
    """Steps of any sizes, the rest too: the worst ratio may be any of them, in either order."""
    *parts, rest = draw(st.lists(st.integers(1, 1000), min_size=2, max_size=5))
    unit = ONE // (sum(parts) + rest)
    return client.Noise(64, draw(st.integers(ONE >> 4, (ONE >> 1) - 1)), tuple(part * unit for part in parts))


@st.composite
def tables_of(draw: st.DrawFn, size: int, least: int = 1) -> TableLaw:
    outputs = draw(st.integers(2, 5))
    rows = []
    for _ in range(size):
        row = draw(st.lists(st.integers(least, 1 << 50), min_size=outputs - 1, max_size=outputs - 1))
        rows.append([*row, ONE - sum(row)])
    return TableLaw(size, outputs, 64, lambda position: rows[position])


@st.composite
def plain_laws(draw: st.DrawFn) -> Plain:
    domain = draw(categories(5))
    size = len(domain)
    kind = draw(st.integers(0, 6))
    law: Law
    if kind == 0:
        law = ResponseLaw(size, 64, draw(weights))
    elif kind == 1:
        law = HashedResponseLaw(ResponseLaw(draw(st.integers(2, 4)), 64, draw(weights)))
    elif kind == 2:
        law = BitFlipLaw(size, 64, own=draw(weights), other=draw(weights))
    elif kind == 3:
        law = SubsetLaw(size, draw(st.integers(1, size - 1)), 64, draw(weights))
    elif kind == 4:
        law = draw(tables_of(size, least=draw(st.integers(0, 1))))
    elif kind == 5:
        law = LineNoiseLaw(draw(noises()), size, 0, clamped=True)
    else:
        law = FixedLaw(np.array(draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))))
    return Plain(domain, draw(claims), law)


@given(plain_laws())
@examples(150)
def test_plain_laws_of_any_numbers(mechanism: Plain) -> None:
    agree(mechanism)


@st.composite
def laws_on_lines(draw: st.DrawFn) -> PerUnit:
    domain: hb.Domain = draw(integers(6) | bins(5))
    size = len(domain)
    law: Law = draw(st.one_of(tables_of(size), noises().map(lambda noise: LineNoiseLaw(noise, size, 0, clamped=True))))
    if isinstance(domain, hb.Integers) and draw(st.booleans()):
        law = LineNoiseLaw(draw(noises()), size, domain.low, clamped=False)
    return PerUnit(domain, draw(claims), law)


@given(laws_on_lines())
@examples(150)
def test_laws_of_any_numbers_on_lines(mechanism: PerUnit) -> None:
    agree(mechanism)


@st.composite
def laws_on_maps(draw: st.DrawFn) -> PerUnit:
    grid = draw(grids(3))
    if draw(st.booleans()):
        return PerUnit(grid, draw(claims), draw(tables_of(len(grid))))
    shape = (grid.columns, grid.rows)
    quarter = [[draw(st.integers(1, 1 << 40)) for _ in range(shape[1] + 1)] for _ in range(shape[0] + 1)]
    several = {(c, r): (1 + (c > 0)) * (1 + (r > 0)) for c in range(shape[0] + 1) for r in range(shape[1] + 1)}
    quarter[0][0] += ONE - sum(many * quarter[c][r] for (c, r), many in several.items())
    window = np.array([0, 0]), np.array(shape) - 1
    law = PlanarTableLaw(64, quarter, grid.steps, window, lambda places: grid.nearest(places[:, 0], places[:, 1]))
    return PerUnit(grid, draw(claims), law)


@given(laws_on_maps())
@examples(60)
def test_laws_of_any_numbers_on_maps(mechanism: PerUnit) -> None:
    agree(mechanism)


@pytest.mark.parametrize("cells", [None, [0, 3, 4, 10]])
def test_planar_noise(cells: list[int] | None) -> None:
    grid = hb.Grid(4, 3, cell=(1.0, 0.75), cells=cells)
    assert agree(hb.PlanarGeometric(grid, 0.8)).holds
    proof = agree(PerUnit(grid, 0.8, PlanarGeometricLaw(0.8, (1.25, 0.75), grid.steps, np.asarray)))
    assert not proof.holds, "noise of longer cells than the grid has"


def test_uneven_weights_prove_nothing_far_from_the_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Near the grid everything is within the claim; further out nothing is proven once the argument fails."""
    grid = hb.Grid(3, 2, cell=1.0)
    even = client.acceptance_probability
    monkeypatch.setattr(
        client, "acceptance_probability", lambda *given: even(*given) * (1 - Fraction(sum(given[2:]) % 2, 1 << 90))
    )
    with pytest.raises(hb.MechanismError, match="far from the grid"):
        prove_epsilon(PerUnit(grid, 0.9, PlanarGeometricLaw(0.8, grid.sides, grid.steps, np.asarray)))


def test_a_displacement_that_is_never_drawn_leaves_no_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = hb.Grid(3, 2, cell=1.0)
    whole = client.acceptance_probability
    monkeypatch.setattr(client, "acceptance_probability", lambda *given: whole(*given) * (given[2:] != (1, 1)))
    proof = agree(PerUnit(grid, 9.0, PlanarGeometricLaw(0.8, grid.sides, grid.steps, np.asarray)))
    assert proof.ratio is None
    assert not proof.holds


# -- hubbub's own mechanisms ------------------------------------------------------------------------------


def has_a_law(mechanism: hb.Mechanism) -> bool:
    return not isinstance(mechanism, hb.PlanarLaplace)


@given((pointing_mechanisms() | metric_mechanisms()).filter(has_a_law))
@examples(60)
def test_mechanisms_keep_their_claim(mechanism: hb.Mechanism) -> None:
    proof = prove_epsilon(mechanism)
    assert proof.holds
    if not isinstance(mechanism, hb.Exponential | hb.Laplace):  # remapping takes part of it
        assert float(proof.low) == pytest.approx(mechanism.epsilon, rel=1e-14)  # and use all of it


@given(matrices())
@examples(60)
def test_a_matrix_keeps_its_epsilon(mechanism: hb.Matrix) -> None:
    assert agree(mechanism).holds


@pytest.mark.parametrize("seed", range(3))
def test_a_wide_matrix_keeps_its_epsilon(seed: int) -> None:
    """What a row of many entries lacks of 1 weighs on a largest entry that is small."""
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.full(2000, 50.0)) * np.exp(rng.uniform(-0.01, 0.01, (4, 2000)))
    mechanism = hb.Matrix(hb.Integers(1, 4), np.arange(2000), table / table.sum(axis=1, keepdims=True))
    proof = prove_epsilon(mechanism)
    assert proof.holds
    assert float(proof.low) == pytest.approx(mechanism.epsilon, rel=1e-11)


KINDS: list[hb.Mechanism] = [
    hb.RandomizedResponse(hb.Integers(0, 6), 1.0),
    hb.Rappor(hb.Integers(0, 6), 1.0),
    hb.OptimizedUnary(hb.Integers(0, 6), 1.0),
    hb.LocalHashing(hb.Integers(0, 6), 1.0),
    hb.SubsetSelection(hb.Integers(0, 6), 1.0),
    hb.Duchi(hb.Integers(0, 6), 1.0),
    hb.Staircase(hb.Integers(0, 6), 1.0),
    hb.Unary(hb.Integers(0, 6), "1/2", "1/6"),
    hb.Geometric(hb.Integers(0, 6), 1.0),
    hb.TruncatedGeometric(hb.Integers(0, 6), 1.0),
    hb.Laplace(hb.Integers(0, 6), 1.0),
    hb.Laplace(hb.Bins([0.0, 1.0, 3.0, 3.5]), 1.0),
    hb.PlanarGeometric(hb.Grid(3, 2, cell=1.0), 1.0),
]


@pytest.mark.parametrize("mechanism", KINDS, ids=lambda mechanism: type(mechanism).__name__)
def test_a_claim_that_is_a_tenth_too_small_is_refuted(mechanism: hb.Mechanism) -> None:
    kind = PerUnit if mechanism.metric else Plain
    proof = prove_epsilon(kind(mechanism.domain, mechanism.epsilon / 1.1, mechanism.law))
    assert not proof.holds
    assert prove_epsilon(kind(mechanism.domain, mechanism.epsilon, mechanism.law)).holds


def test_the_exponential_mechanism_has_more_room_than_it_claims() -> None:
    """Halving the exponent pays for a normalisation that never varies so much: known by brute force."""
    assert agree(hb.Exponential(hb.Grid(3, 2, cell=(1.0, 0.5)), 2.0)).holds
    assert agree(hb.Exponential(hb.Bins([0.0, 1.0, 1.5, 4.0]), 2.0)).holds
    assert float(agree(hb.Exponential(hb.Categories(["a", "b", "c"]), 2.0)).low) == pytest.approx(1.0)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
def test_without_the_shrink_the_check_fails(epsilon: float, monkeypatch: pytest.MonkeyPatch) -> None:
    domain = hb.Integers(0, 99)
    assert prove_epsilon(hb.TruncatedGeometric(domain, epsilon)).holds
    monkeypatch.setattr(geometric, "EPSILON_SHRINK", 1)
    proof = prove_epsilon(hb.TruncatedGeometric(domain, epsilon))
    assert not proof.holds
    assert float(proof.low) == pytest.approx(epsilon, rel=1e-14)  # by rounding alone


def test_without_the_shrink_planar_noise_fails_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "EPSILON_SHRINK", Fraction(1))
    client.acceptance_probability.cache_clear()
    assert not prove_epsilon(hb.PlanarGeometric(hb.Grid(3, 3, cell=1.0), 0.7)).holds
    client.acceptance_probability.cache_clear()


def test_no_cell_is_empty_where_floats_would_underflow() -> None:
    proof = prove_epsilon(hb.TruncatedGeometric(hb.Integers(0, 99), 10.0))
    assert proof.ratio is not None
    assert proof.holds


@pytest.mark.parametrize(
    "law",
    [
        ResponseLaw(3, 64, ONE),
        BitFlipLaw(3, 64, own=ONE, other=ONE >> 1),
        BitFlipLaw(3, 64, own=ONE >> 1, other=0),
        SubsetLaw(3, 1, 64, 0),
        LineNoiseLaw(client.Noise(64, ONE >> 2, (1 << 60, 0)), 3, 0, clamped=False),
        FixedLaw(np.array([0, 0, 1])),
        TableLaw(3, 2, 64, lambda position: [ONE, 0] if position else [ONE - 1, 1]),
    ],
    ids=lambda law: type(law).__name__,
)
def test_an_output_that_only_some_values_can_give_has_no_epsilon(law: Law) -> None:
    for kind in (PerUnit, Plain):
        if kind is Plain and isinstance(law, LineNoiseLaw):
            continue
        if kind is PerUnit and not isinstance(law, LineNoiseLaw | TableLaw | FixedLaw):
            continue
        proof = prove_epsilon(kind(hb.Integers(0, 2), 400.0, law))
        assert proof.ratio is None
        assert not proof.holds
        assert proof.low == math.inf


def test_cloaking_claims_nothing_and_keeps_it() -> None:
    proof = prove_epsilon(hb.Cloaking(hb.Integers(0, 3), ["a", "a", "b", "b"]))
    assert (proof.holds, proof.ratio, proof.value, proof.other, proof.output) == (True, None, 0, 2, "a")
    assert prove_epsilon(hb.Cloaking(hb.Integers(0, 1), ["a", "a"])).ratio == 1


def test_values_at_distance_zero_must_have_equal_outputs() -> None:
    """Two bins so narrow that their centres are one float: distance 0 allows no difference at all."""
    tiny = 2.0**-52
    domain = hb.Bins([1 + tiny, 1 + 2 * tiny, 1 + 3 * tiny, 2.0])
    assert domain.squared_distance(0, 1) == 0
    rows = [[ONE - 3, 3], [ONE - 3, 3], [ONE - 4, 4]]
    assert prove_epsilon(PerUnit(domain, 1.0, TableLaw(3, 2, 64, lambda position: rows[position]))).holds
    rows[1] = [ONE - 4, 4]
    assert not prove_epsilon(PerUnit(domain, 1.0, TableLaw(3, 2, 64, lambda position: rows[position]))).holds


def test_counts_what_was_compared() -> None:
    assert prove_epsilon(hb.RandomizedResponse(hb.Integers(0, 9), 1.0)).compared == 10 * 9 * 10
    assert prove_epsilon(hb.Rappor(hb.Integers(0, 3), 1.0)).compared == 4 * 3 * 16
    assert prove_epsilon(hb.Geometric(hb.Integers(0, 3), 1.0)).compared is None


def test_a_law_that_cannot_be_proven_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Own(Law):
        def draw(self, positions: Any, source: Any) -> Any:
            return positions

    with pytest.raises(hb.MechanismError, match="kind of law cannot be proven"):
        prove_epsilon(Plain(hb.Integers(0, 3), 1.0, Own()))
    with pytest.raises(hb.MechanismError, match="cannot be proven"):
        prove_epsilon(PerUnit(hb.Integers(0, 3), 1.0, ResponseLaw(4, 64, ONE >> 1)))
    grid = hb.Grid(3, 2)
    monkeypatch.setattr(exact_epsilon, "MAX_COMPARISONS", 10)
    monkeypatch.setattr(planar_ratios, "MAX_COMPARISONS", 10)
    with pytest.raises(hb.MechanismError, match="too many pairs"):
        prove_epsilon(hb.Exponential(grid, 1.0))
    with pytest.raises(hb.MechanismError, match="too large"):
        prove_epsilon(hb.PlanarGeometric(grid, 1.0))


def test_a_matrix_with_the_smallest_float_has_an_epsilon() -> None:
    """The quotient of its entries is beyond floats."""
    matrix = hb.Matrix(hb.Integers(0, 1), ["x", "y"], [[1.0, 5e-324], [0.5, 0.5]])
    assert matrix.epsilon == pytest.approx(math.log(0.5) - math.log(5e-324), rel=1e-12)
    assert prove_epsilon(matrix).holds
