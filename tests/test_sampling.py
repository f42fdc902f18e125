"""Samplers against their matrices, by chi-square tests that also reject planted faults.

Level: each check is made at 1e-8, and there are fewer than 100 of them, so that all together reject a correct
library with probability below 1e-6. Seeds are fixed: a run that passes passes always. Only the test of the
operating system's generator is random; its level is 1e-10.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special, stats

import hubbub as hb
from counting import p_value
from hubbub.mechanisms.frequency_oracle import Support
from hubbub.mechanisms.local_hashing import hash_v1
from hubbub.sampling import RandomSource, SeededSource, SystemSource, source_of

Floats = NDArray[np.float64]
Outputs = NDArray[Any]
Sampler = Callable[[Outputs, np.random.Generator], Outputs]

LEVEL = 1e-8
DRAWS = 200_000


# -- the check --------------------------------------------------------------------------------------------


def keys(outputs: Outputs) -> list[Any]:
    """Return outputs as things that can be counted."""
    outputs = plain(outputs)
    return [tuple(row) for row in outputs.tolist()] if outputs.ndim == 2 else outputs.tolist()


def plain(outputs: Outputs) -> Outputs:
    """Return numbers with their bits as rows of numbers, and other outputs as they are."""
    fields = [outputs[name] for name in outputs.dtype.names or ()]
    return (
        np.column_stack([field.reshape(len(outputs), -1).astype(np.int64) for field in fields]) if fields else outputs
    )


def tally(outputs: Outputs, listed: Outputs) -> Floats:
    """Count each listed output, and in a last entry all others."""
    outputs = plain(outputs)
    counted: Counter[Any] = Counter()
    if outputs.ndim == 2:  # one number for each row: rows themselves are sorted slowly
        least = outputs.min(axis=0).astype(np.int64)
        spans = outputs.max(axis=0) - least + 1
        numbers, times = np.unique(np.ravel_multi_index((outputs - least).T, spans), return_counts=True)
        distinct = np.stack(np.unravel_index(numbers, spans), axis=1) + least
        counted.update(dict(zip(keys(distinct), times.tolist(), strict=True)))
    else:
        counted.update(outputs.tolist())
    inside = [counted.pop(key, 0) for key in keys(listed)]
    return np.array([*inside, sum(counted.values())], dtype=np.float64)


def drawing(mechanism: hb.Mechanism) -> Sampler:
    """Return the mechanism's own sampler."""
    return lambda values, rng: mechanism.privatize(values, rng=rng)


def p_values(
    mechanism: hb.Mechanism, sampler: Sampler | None = None, *, seed: int = 7, draws: int = DRAWS
) -> Iterator[float]:
    """Yield the p-values of several true values: the first, one in the middle, the last."""
    listed, matrix = mechanism.outputs, mechanism.matrix()
    assert listed is not None
    size = len(mechanism.domain)
    for position in sorted({0, size // 2, size - 1}):
        values = np.repeat(mechanism.domain.labels[position : position + 1], draws)
        rng = np.random.default_rng([seed, position])
        outputs = (sampler or drawing(mechanism))(values, rng)
        assert len(outputs) == draws
        row = np.append(matrix[position], max(0.0, 1 - matrix[position].sum()))
        yield p_value(tally(outputs, listed), row)


def is_accepted(mechanism: hb.Mechanism, sampler: Sampler | None = None, **options: int) -> bool:
    """Return whether all true values pass the test; after the first that does not, no more is drawn."""
    return all(p > LEVEL for p in p_values(mechanism, sampler, **options))


# -- every mechanism that lists its outputs ---------------------------------------------------------------

COLOURS = hb.Categories(["red", "green", "blue", "white", "black"])
LINE = hb.Integers(-3, 6)
UNEVEN = hb.Bins([0.0, 0.5, 2.0, 2.25, 6.0, 7.0])
MAP = hb.Grid(4, 3, cell=(1.0, 0.75))
COAST = hb.Grid(4, 3, cell=1.0, cells=[0, 1, 5, 6, 11])
SKEWED = hb.Matrix(LINE, list("abc"), np.random.default_rng(0).dirichlet([1.0, 2.0, 3.0], size=10))


def family(name: str) -> Callable[[float], hb.Mechanism]:
    """Return a mechanism as a function of a factor on its epsilon, so that a fault in epsilon can be planted."""
    return {
        "randomized response": lambda f: hb.RandomizedResponse(COLOURS, 1.0 * f),
        "geometric": lambda f: hb.Geometric(LINE, 0.5 * f),
        "truncated geometric": lambda f: hb.TruncatedGeometric(LINE, 0.4 * f),
        "laplace on integers": lambda f: hb.Laplace(LINE, 0.6 * f),
        "laplace on uneven bins": lambda f: hb.Laplace(UNEVEN, 0.8 * f),
        "exponential on a line": lambda f: hb.Exponential(LINE, 1.0 * f),
        "exponential on a map": lambda f: hb.Exponential(MAP, 1.0 * f),
        "planar geometric": lambda f: hb.PlanarGeometric(MAP, 1.0 * f),
        "planar geometric, wide noise": lambda f: hb.PlanarGeometric(hb.Grid(24, 16, cell=1.0), 0.05 * f),
        "planar geometric, untruncated": lambda f: hb.PlanarGeometric(MAP, 1.0 * f, truncated=False),
        "planar geometric, missing cells": lambda f: hb.PlanarGeometric(COAST, 1.0 * f),
        "planar laplace": lambda f: hb.PlanarLaplace(MAP, 1.0 * f),
        "planar laplace, missing cells": lambda f: hb.PlanarLaplace(COAST, 1.0 * f),
        "rappor": lambda f: hb.Rappor(COLOURS, 2.0 * f),
        "longitudinal rappor": lambda f: hb.LongitudinalRappor(COLOURS, 3.0 * f, 1.5 * f),
        "longitudinal unary": lambda f: hb.LongitudinalUnary(COLOURS, 3.0 * f, 1.5 * f, "oue", "oue"),
        "longitudinal response": lambda f: hb.LongitudinalResponse(COLOURS, 3.0 * f, 1.5 * f),
        "dBitFlip": lambda f: hb.DBitFlip(LINE, 2.0 * f, 4, 3),
        "Bloom filters": lambda f: hb.BloomRappor(COLOURS, 2, 6, 2, epsilon=3.0 * f, first=1.5 * f, rest="blue"),
        "optimized unary": lambda f: hb.OptimizedUnary(COLOURS, 1.0 * f),
        "subset selection": lambda f: hb.SubsetSelection(COLOURS, 1.0 * f, size=2),
        "square wave": lambda f: hb.SquareWave(LINE, 1.0 * f, reach=2),
        "piecewise": lambda f: hb.Piecewise(LINE, 1.5 * f, reach=2),
        "duchi": lambda f: hb.Duchi(LINE, 1.5 * f),
        "staircase": lambda f: hb.Staircase(LINE, 1.0 * f, gamma="1/3"),
        "unary": lambda f: hb.Unary(COLOURS, 0.3 + 0.3 * f, 0.2),
        "hadamard response": lambda f: hb.HadamardResponse(LINE, 1.5 * f, blocks=2),
        "projective response": lambda f: hb.ProjectiveResponse(LINE, 1.5 * f, prime=3),
        "sketch of bits": lambda f: hb.CountMeanSketch(COLOURS, 2.0 * f, hashes=3, width=4),
        "sketch of signs": lambda f: hb.HadamardCountMeanSketch(LINE, 1.5 * f, hashes=3, width=4),
    }[name]


FAMILIES = [
    "randomized response",
    "geometric",
    "truncated geometric",
    "laplace on integers",
    "laplace on uneven bins",
    "exponential on a line",
    "exponential on a map",
    "planar geometric",
    "planar geometric, wide noise",
    "planar geometric, untruncated",
    "planar geometric, missing cells",
    "planar laplace",
    "planar laplace, missing cells",
    "rappor",
    "longitudinal rappor",
    "longitudinal unary",
    "longitudinal response",
    "dBitFlip",
    "Bloom filters",
    "optimized unary",
    "subset selection",
    "square wave",
    "piecewise",
    "duchi",
    "staircase",
    "unary",
    "hadamard response",
    "projective response",
    "sketch of bits",
    "sketch of signs",
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FAMILIES)
def test_draws_follow_the_matrix(name: str) -> None:
    assert is_accepted(family(name)(1.0))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FAMILIES)
def test_an_epsilon_wrong_by_a_tenth_is_rejected(name: str) -> None:
    for factor in (0.9, 1.1):
        assert not is_accepted(family(name)(1.0), drawing(family(name)(factor)), draws=100_000)


@pytest.mark.parametrize("mechanism", [SKEWED, hb.Cloaking(LINE, list("aabbbcccca"))], ids=["matrix", "cloaking"])
def test_draws_of_tables_follow_the_matrix(mechanism: hb.Mechanism) -> None:
    assert is_accepted(mechanism)


@pytest.mark.parametrize("values", ["abcabc", "cba"])
def test_users_keep_their_order(values: str) -> None:
    # A mechanism without noise to speak of: every user must get their own answer back.
    domain = hb.Categories(["a", "b", "c"])
    sure = hb.Matrix(domain, ["x", "y", "z"], [[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    answers = {"a": "y", "b": "z", "c": "x"}
    assert sure.privatize(list(values), rng=0).tolist() == [answers[value] for value in values]
    for mechanism in (hb.RandomizedResponse(domain, 60.0), hb.Exponential(domain, 200.0)):
        assert mechanism.privatize(list(values), rng=0).tolist() == list(values)
    for unary in (hb.Rappor(domain, 100.0), hb.SubsetSelection(domain, 60.0, size=1)):
        bits = np.unpackbits(unary.privatize(list(values), rng=0), axis=1, count=3)
        np.testing.assert_array_equal(bits, np.eye(3)[domain.index(list(values))])


# -- the two ways to draw planar geometric noise ----------------------------------------------------------


def both_ways(mechanism: hb.PlanarGeometric) -> list[Sampler]:
    """Return samplers that force the table and the rejection, whatever epsilon would choose."""
    reach = [math.ceil(45 / (mechanism.epsilon * side)) + 1 for side in mechanism.domain.sides]

    def finish(values: Outputs, noise: Outputs) -> Outputs:
        moved = mechanism.domain.steps[mechanism.domain.index(values)] + noise
        if not mechanism.truncated:
            return moved
        return mechanism.domain.labels[mechanism.domain.nearest(moved[:, 0], moved[:, 1])]

    def table(values: Outputs, rng: np.random.Generator) -> Outputs:
        return finish(values, mechanism._from_table(len(values), SeededSource(rng), reach[0], reach[1]))

    def rejection(values: Outputs, rng: np.random.Generator) -> Outputs:
        return finish(values, mechanism._by_rejection(len(values), SeededSource(rng)))

    return [table, rejection]


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    [
        hb.PlanarGeometric(MAP, 1.0),
        hb.PlanarGeometric(MAP, 1.0, truncated=False),
        hb.PlanarGeometric(COAST, 0.7),
    ],
    ids=["truncated", "untruncated", "missing cells"],
)
def test_planar_geometric_noise_is_the_same_by_table_and_by_rejection(mechanism: hb.PlanarGeometric) -> None:
    for sampler in both_ways(mechanism):
        assert is_accepted(mechanism, sampler, seed=11)


def test_small_epsilon_takes_the_rejection_and_large_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []

    def watch(name: str) -> None:
        original = getattr(hb.PlanarGeometric, name)

        def watched(self: hb.PlanarGeometric, *parts: object) -> object:
            taken.append(name)
            return original(self, *parts)

        monkeypatch.setattr(hb.PlanarGeometric, name, watched)

    watch("_from_table")
    watch("_by_rejection")
    hb.PlanarGeometric(MAP, 1.0).privatize([0], rng=0)
    hb.PlanarGeometric(MAP, 0.05).privatize([0], rng=0)
    assert taken == ["_from_table", "_by_rejection"]


def wide_noise(epsilon: float, reach: int) -> tuple[Outputs, Floats]:
    """Return lattice cells around the origin and their probabilities, for unit cells and a small epsilon.

    The factor comes from Poisson's summation, 1 / lambda = 2 pi / e^2 + e / (4 pi^2) 4 zeta(3/2) beta(3/2) + O(e^3).
    """
    beta = (special.zeta(1.5, 0.25) - special.zeta(1.5, 0.75)) / 4**1.5
    inverse = 2 * math.pi / epsilon**2 + epsilon / (4 * math.pi**2) * 4 * special.zeta(1.5, 1) * beta
    cells = np.stack(np.meshgrid(np.arange(-reach, reach + 1), np.arange(-reach, reach + 1)), axis=-1).reshape(-1, 2)
    return cells, np.exp(-epsilon * np.hypot(cells[:, 0], cells[:, 1])) / inverse


def test_wide_untruncated_noise_by_rejection() -> None:
    cells, probabilities = wide_noise(0.05, 150)
    row = np.append(probabilities, 1 - probabilities.sum())
    results = {}
    for epsilon in (0.05, 0.055, 0.045):
        mechanism = hb.PlanarGeometric(hb.Grid(2, 2, cell=1.0), epsilon, truncated=False)
        outputs = mechanism.privatize(np.zeros(DRAWS, dtype=np.int64), rng=5)
        results[epsilon] = p_value(tally(outputs, cells), row)
    assert results[0.05] > LEVEL
    assert results[0.055] < LEVEL
    assert results[0.045] < LEVEL


# -- hashed outputs, given their seed ---------------------------------------------------------------------


def offsets_p_value(mechanism: hb.LocalHashing, outputs: Outputs, position: int) -> float:
    """Test the step from the value's own bucket to the one reported, given the seed: 0 is the truth."""
    buckets = mechanism.buckets
    assert buckets is not None
    own = hash_v1(outputs["seed"], np.full(len(outputs), position), buckets)
    steps = (outputs["bucket"].astype(np.int64) - own.astype(np.int64)) % buckets
    chances = np.ones(buckets)
    chances[0] = math.exp(mechanism.epsilon)
    return p_value(np.bincount(steps, minlength=buckets).astype(np.float64), chances / chances.sum())


@pytest.mark.parametrize("buckets", [None, 2, 7])
def test_hashed_draws(buckets: int | None) -> None:
    mechanism = hb.LocalHashing(LINE, 1.2, buckets)
    for position in (0, 4, 9):
        values = np.repeat(LINE.labels[position], DRAWS)
        outputs = mechanism.privatize(values, rng=position)
        assert offsets_p_value(mechanism, outputs, position) > LEVEL
        assert len(set(outputs["seed"].tolist())) == DRAWS  # 2^64 seeds: a repetition would be no accident
        # The set of another value holds it by chance, once in g.
        count = mechanism.buckets
        assert count is not None
        other = hash_v1(outputs["seed"], np.full(DRAWS, (position + 3) % 10), count) == outputs["bucket"]
        held = np.array([other.sum(), (~other).sum()], dtype=np.float64)
        assert p_value(held, np.array([1 / count, 1 - 1 / count])) > LEVEL
        for factor in (0.9, 1.1):
            wrong = hb.LocalHashing(LINE, 1.2 * factor, count).privatize(values, rng=position)
            assert offsets_p_value(mechanism, wrong, position) < LEVEL
        assert offsets_p_value(mechanism, outputs, (position + 1) % 10) < LEVEL  # off by one position


# -- planted faults ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SwappedRappor(hb.Rappor):
    """p and q the wrong way round."""

    @property
    def support(self) -> Support:
        true, other = super().support
        return Support(other, true)


@dataclass(frozen=True)
class SwappedUnary(hb.OptimizedUnary):
    """p and q the wrong way round."""

    @property
    def support(self) -> Support:
        true, other = super().support
        return Support(other, true)


@dataclass(frozen=True)
class SwappedSubset(hb.SubsetSelection):
    """The true value is left out as often as it should be taken."""

    @property
    def support(self) -> Support:
        true, other = super().support
        return Support(1 - true, other)


@pytest.mark.parametrize(
    ("honest", "faulty"),
    [
        (hb.Rappor(COLOURS, 2.0), SwappedRappor(COLOURS, 2.0)),
        (hb.OptimizedUnary(COLOURS, 1.0), SwappedUnary(COLOURS, 1.0)),
        (hb.SubsetSelection(COLOURS, 1.0, size=2), SwappedSubset(COLOURS, 1.0, size=2)),
    ],
)
def test_swapped_probabilities_are_rejected(honest: hb.Mechanism, faulty: hb.Mechanism) -> None:
    assert not is_accepted(honest, drawing(faulty))


def test_a_swapped_randomized_response_is_rejected() -> None:
    honest = hb.RandomizedResponse(hb.Categories(["yes", "no"]), 1.0)

    def lie(values: Outputs, rng: np.random.Generator) -> Outputs:
        answers = honest.privatize(values, rng=rng)
        return np.where(answers == "yes", "no", "yes").astype(object)

    assert not is_accepted(honest, lie)


def redraw(mechanism: hb.TruncatedGeometric | hb.PlanarGeometric) -> Sampler:
    """Return a sampler that draws again until the noise stays inside, where it should be remapped."""

    def draw(values: Outputs, rng: np.random.Generator) -> Outputs:
        domain = mechanism.domain
        outputs = np.full(len(values), -1, dtype=np.int64)
        while (missing := np.flatnonzero(outputs < 0)).size:
            if isinstance(mechanism, hb.TruncatedGeometric):
                whole = hb.Geometric(mechanism.domain, mechanism.epsilon)
                outputs[missing] = domain.find(whole.privatize(values[missing], rng=rng))
            else:
                lattice = hb.PlanarGeometric(mechanism.domain, mechanism.epsilon, truncated=False)
                column, row = lattice.privatize(values[missing], rng=rng).T
                size = mechanism.domain.columns, mechanism.domain.rows
                inside = (column >= 0) & (column < size[0]) & (row >= 0) & (row < size[1])
                outputs[missing] = np.where(inside, domain.find(np.where(inside, row * size[0] + column, 0)), -1)
        return domain.labels[outputs]

    return draw


@pytest.mark.parametrize(
    "mechanism", [hb.TruncatedGeometric(LINE, 0.4), hb.PlanarGeometric(MAP, 1.0), hb.PlanarGeometric(COAST, 1.0)]
)
def test_drawing_again_instead_of_remapping_is_rejected(
    mechanism: hb.TruncatedGeometric | hb.PlanarGeometric,
) -> None:
    assert not is_accepted(mechanism, redraw(mechanism))


@pytest.mark.parametrize("name", ["randomized response", "truncated geometric", "laplace on uneven bins"])
def test_an_output_off_by_one_is_rejected(name: str) -> None:
    mechanism = family(name)(1.0)
    labels = mechanism.domain.labels

    def shifted(values: Outputs, rng: np.random.Generator) -> Outputs:
        positions = mechanism.domain.index(mechanism.privatize(values, rng=rng))
        return labels[np.minimum(positions + 1, len(labels) - 1)]

    assert not is_accepted(mechanism, shifted)


def test_a_missing_sign_is_rejected() -> None:
    mechanism = hb.TruncatedGeometric(LINE, 0.4)
    whole = hb.Geometric(LINE, 0.4)

    def one_sided(values: Outputs, rng: np.random.Generator) -> Outputs:
        noise = np.abs(whole.privatize(values, rng=rng) - values)
        clamped: Outputs = np.clip(values + noise, LINE.low, LINE.high)
        return clamped

    assert not is_accepted(mechanism, one_sided)
    planar = hb.PlanarGeometric(MAP, 1.0, truncated=False)

    def north_east(values: Outputs, rng: np.random.Generator) -> Outputs:
        own: Outputs = MAP.steps[MAP.index(values)]
        moved: Outputs = own + np.abs(planar.privatize(values, rng=rng) - own)
        return moved

    assert not is_accepted(planar, north_east)


def test_the_check_itself() -> None:
    rng = np.random.default_rng(3)
    chances = np.array([0.5, 0.3, 0.2 - 1e-5, 1e-5])
    values = [p_value(rng.multinomial(10_000, chances).astype(np.float64), chances) for _ in range(400)]
    assert stats.kstest(values, "uniform").pvalue > 1e-3  # p-values of a true hypothesis are uniform
    assert p_value(np.array([5.0, 5.0, 1.0]), np.array([0.5, 0.5, 0.0])) == 0.0  # what cannot be was seen


# -- where randomness comes from --------------------------------------------------------------------------

EVERY_MECHANISM: list[hb.Mechanism] = [
    *(family(name)(1.0) for name in FAMILIES),
    hb.PlanarGeometric(MAP, 0.05),
    hb.LocalHashing(COLOURS, 1.0),
    SKEWED,
]


@pytest.mark.parametrize("mechanism", EVERY_MECHANISM, ids=lambda each: type(each).__name__)
def test_seeded_draws_repeat(mechanism: hb.Mechanism) -> None:
    values = np.resize(mechanism.domain.labels, 500)
    first = mechanism.privatize(values, rng=17)
    np.testing.assert_array_equal(first, mechanism.privatize(values, rng=17))
    np.testing.assert_array_equal(first, mechanism.privatize(values, rng=np.random.default_rng(17)))
    assert (first != mechanism.privatize(values, rng=18)).any()
    generator = np.random.default_rng(17)
    mechanism.privatize(values, rng=generator)
    assert (first != mechanism.privatize(values, rng=generator)).any()  # a generator moves on


@pytest.mark.parametrize("mechanism", EVERY_MECHANISM, ids=lambda each: type(each).__name__)
def test_nobody_gets_no_outputs(mechanism: hb.Mechanism) -> None:
    outputs = mechanism.privatize(mechanism.domain.labels[:0], rng=0)
    assert len(outputs) == 0
    assert outputs.shape[1:] == mechanism.privatize(mechanism.domain.labels[:1], rng=0).shape[1:]


@pytest.fixture
def system_calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the bytes asked of the operating system; NumPy's generators must not be touched."""

    def explode(*_: object, **__: object) -> None:
        raise AssertionError("a seeded generator was used where the operating system's was asked for")

    asked: list[int] = []
    original = os.urandom

    def counted(size: int) -> bytes:
        asked.append(size)
        return original(size)

    monkeypatch.setattr(os, "urandom", counted)
    monkeypatch.setattr(SeededSource, "words", explode)
    for name in ("default_rng", "rand", "random", "randint", "random_sample", "uniform", "choice", "SeedSequence"):
        monkeypatch.setattr(np.random, name, explode)
    return asked


@pytest.mark.parametrize("mechanism", EVERY_MECHANISM, ids=lambda each: type(each).__name__)
def test_without_a_seed_the_operating_system_is_asked(mechanism: hb.Mechanism, system_calls: list[int]) -> None:
    values = np.resize(mechanism.domain.labels, 300)
    outputs = mechanism.privatize(values)
    assert len(outputs) == 300
    assert sum(system_calls) >= 4 * 300  # at least one number of 32 bits for each user
    again = mechanism.privatize(values)
    assert (outputs != again).any()


def test_draws_from_the_operating_system_follow_the_matrix(system_calls: list[int]) -> None:
    mechanism = hb.TruncatedGeometric(LINE, 0.4)
    outputs = mechanism.privatize(np.full(50_000, 2))
    row = np.append(mechanism.matrix()[LINE.index(2)], 0.0)
    # A truly random test: it fails once in 10^10 runs.
    assert p_value(tally(outputs, LINE.labels), row) > 1e-10
    assert system_calls


def test_kinds_of_sources() -> None:
    assert isinstance(source_of(None), SystemSource)
    assert source_of(None).secure
    assert not source_of(0).secure
    assert not source_of(np.random.default_rng(0)).secure
    for bad in (-1, 1.5, "seed", True, np.random.RandomState(0)):
        with pytest.raises(hb.MechanismError):
            source_of(bad)  # type: ignore[arg-type]


class Scripted(RandomSource):
    """Hands out the words it was given, in order."""

    secure = False

    def __init__(self, *words: int) -> None:
        self._words = list(words)

    def words(self, count: int) -> NDArray[np.uint64]:
        taken, self._words = self._words[:count], self._words[count:]
        return np.array(taken, dtype=np.uint64)


@pytest.mark.parametrize("bound", [2, 3, 7, 10, 1000])
def test_integers_are_uniform(bound: int) -> None:
    drawn = source_of(2).integers(bound, DRAWS)
    assert drawn.min() == 0
    assert drawn.max() == bound - 1
    assert p_value(np.bincount(drawn, minlength=bound).astype(np.float64), np.full(bound, 1 / bound)) > LEVEL


def test_integers_redraw_the_words_that_would_favour_small_numbers() -> None:
    top = 2**64 - 1  # 2^64 = 3 * 6148914691236517205 + 1: this one word is too many
    assert Scripted(top, 5, 7).integers(3, 2).tolist() == [7 % 3, 5 % 3]
    assert Scripted(top - 1, 5).integers(3, 2).tolist() == [(top - 1) % 3, 5 % 3]
    large = 2**62 + 1  # three full rounds fit into 2^64; nearly a quarter of all words is too many
    assert Scripted(3 * large, 8).integers(large, 1).tolist() == [8]
    assert Scripted(3 * large - 1, 8).integers(large, 1).tolist() == [large - 1]


def test_a_bound_of_two_to_a_power_needs_no_redraw() -> None:
    assert Scripted(2**64 - 1, 0).integers(4, 2).tolist() == [3, 0]


def test_uniforms_never_reach_one_and_positive_ones_never_zero() -> None:
    extremes = (0, 2**64 - 1, 2**11 - 1, 2**11)
    assert Scripted(*extremes).uniforms(4).tolist() == [0.0, 1 - 2.0**-53, 0.0, 2.0**-53]
    assert Scripted(*extremes).positive_uniforms(4).tolist() == [1.0, 2.0**-53, 1.0, 1 - 2.0**-53]
    drawn = source_of(0).uniforms(DRAWS)
    assert stats.kstest(drawn, "uniform").pvalue > LEVEL
