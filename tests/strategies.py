"""Hypothesis strategies for everything hubbub is about, in one file.

Drawn matrices are never symmetric: code that reads rows where columns belong passes on symmetric ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

import hubbub as hb
from hubbub.domains import Subset
from hubbub.mechanisms.longitudinal import Longitudinal
from hubbub.mechanisms.text_filters import text_filters

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Test = TypeVar("Test", bound=Callable[..., Any])

# Ties between distances need sides in a simple ratio, which floats drawn at random never have.
SIDES = st.sampled_from([0.25, 0.5, 0.75, 1.0, 1.5])


UNARY_STAGES = [("oue", "sue"), ("sue", "oue"), ("oue", "oue"), ("sue", "sue")]

GATE_PART = 1 if os.environ.get("HUBBUB_EXAMPLES") == "all" else 3  # the gate draws one example of so many
MIN_EXAMPLES = 12


def examples(count: int) -> Callable[[Test], Test]:
    """Draw `count` examples: the same ones everywhere, and no clock (machines are shared).

    The gate draws a part of them. `make slow` runs all tests that have this mark again, with all their examples.
    """
    drawn = settings(
        max_examples=max(count // GATE_PART, min(count, MIN_EXAMPLES)),
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow],
    )

    def mark(test: Test) -> Test:
        marked: Test = pytest.mark.drawn(drawn(test))
        return marked

    return mark


def epsilons(low: float = 0.05, high: float = 4.0) -> st.SearchStrategy[float]:
    return st.floats(low, high)


# -- domains ---------------------------------------------------------------------------------------------


def categories(most: int = 6) -> st.SearchStrategy[hb.Categories]:
    labels = st.integers(-9, 99) | st.text("abxyåλ<&", min_size=1, max_size=3)
    return st.lists(labels, min_size=2, max_size=most, unique=True).map(hb.Categories)


def integers(most: int = 8) -> st.SearchStrategy[hb.Integers]:
    return st.builds(lambda low, size: hb.Integers(low, low + size - 1), st.integers(-20, 20), st.integers(2, most))


def bins(most: int = 7) -> st.SearchStrategy[hb.Bins]:
    """Bins of uneven widths."""
    widths = st.lists(st.floats(0.1, 5.0), min_size=2, max_size=most)
    return st.builds(lambda first, steps: hb.Bins(np.cumsum([first, *steps])), st.floats(-10, 10), widths)


@st.composite
def grids(draw: st.DrawFn, most: int = 4, *, whole: bool = False) -> hb.Grid:
    """Grids with square and other cells, and (unless `whole`) with missing cells."""
    columns = draw(st.integers(1, most))
    rows = draw(st.integers(1 if columns > 1 else 2, most))
    size = columns * rows
    kept = None
    if not whole and draw(st.booleans()):
        kept = draw(st.sets(st.integers(0, size - 1), min_size=2))
    return hb.Grid(columns, rows, cell=(draw(SIDES), draw(SIDES)), unit="km", cells=kept)


@st.composite
def map_grids(draw: st.DrawFn, most: int = 6) -> hb.Grid:
    """Grids over a box on the map."""
    south, west = draw(st.floats(-80, 79)), draw(st.floats(-179, 178))
    return hb.Grid.over(
        south=south,
        west=west,
        north=south + draw(st.floats(0.01, 1.0)),
        east=west + draw(st.floats(0.01, 1.0)),
        columns=draw(st.integers(2, most)),
        rows=draw(st.integers(1, most)),
    )


def whole_domains() -> st.SearchStrategy[hb.Domain]:
    return st.one_of(categories(), integers(), bins(), grids(), map_grids(4))


@st.composite
def subsets(draw: st.DrawFn) -> Subset:
    """Part of a domain, as `Reports.restrict` makes it."""
    whole = draw(whole_domains())
    kept = draw(st.sets(st.integers(0, len(whole) - 1), min_size=1))
    return Subset(whole, tuple(sorted(kept)))


def domains() -> st.SearchStrategy[hb.Domain]:
    """Domains of every kind."""
    return whole_domains() | subsets()


# -- numbers ---------------------------------------------------------------------------------------------


@st.composite
def counts(draw: st.DrawFn, size: int, most: int = 60) -> Integers:
    """How many users sent each of `size` outputs; at least one did."""
    drawn: Integers = draw(hnp.arrays(np.int64, size, elements=st.integers(0, most)))
    if not drawn.any():
        drawn[draw(st.integers(0, size - 1))] = 1
    return drawn


@st.composite
def distributions(draw: st.DrawFn, size: int, *, full: bool = False) -> Floats:
    """Probabilities, some of them 0 unless `full`."""
    parts = draw(hnp.arrays(np.int64, size, elements=st.integers(1 if full else 0, 20)))
    if not parts.any():
        parts[draw(st.integers(0, size - 1))] = 1
    shares: Floats = parts / parts.sum()
    return shares


@st.composite
def stochastic(draw: st.DrawFn, rows: int, columns: int, *, positive: bool = False) -> Floats:
    """A stochastic matrix that is not symmetric (nor are its columns a row's permutation, except by chance)."""
    parts = draw(hnp.arrays(np.int64, (rows, columns), elements=st.integers(1 if positive else 0, 12)))
    parts[np.arange(rows), np.arange(rows) % columns] += 1  # no empty row
    parts[np.arange(columns) % rows, np.arange(columns)] += 1  # no empty column
    matrix: Floats = parts / parts.sum(axis=1, keepdims=True)
    if rows == columns and np.allclose(matrix, matrix.T):
        parts[0, -1] += 7
        matrix = parts / parts.sum(axis=1, keepdims=True)
    return matrix


# -- mechanisms ------------------------------------------------------------------------------------------


@st.composite
def matrices(
    draw: st.DrawFn, *, square: bool = False, positive: bool = False, most: int = 5, least_outputs: int = 2
) -> hb.Matrix:
    """`hb.Matrix` with a drawn matrix, never symmetric, over a drawn domain; outputs are texts."""
    domain = draw(categories(most) | integers(most))
    size = len(domain) if square else draw(st.integers(least_outputs, most + 1))
    table = draw(stochastic(len(domain), size, positive=positive))
    return hb.Matrix(domain, [f"out {place}" for place in range(size)], table)


@st.composite
def cloakings(draw: st.DrawFn) -> hb.Cloaking:
    domain = draw(whole_domains())
    regions = draw(st.lists(st.sampled_from(["north", "south", 3]), min_size=len(domain), max_size=len(domain)))
    return hb.Cloaking(domain, regions)


@st.composite
def subset_selections(draw: st.DrawFn) -> hb.SubsetSelection:
    domain = draw(categories() | integers())
    size = draw(st.none() | st.integers(1, len(domain) - 1))
    return hb.SubsetSelection(domain, draw(epsilons()), size)


@st.composite
def sliding_windows(draw: st.DrawFn) -> hb.SquareWave | hb.Piecewise:
    """Square Wave and the piecewise mechanism, which needs an even line."""
    wave = draw(st.booleans())
    domain = draw(integers() | bins() if wave else integers())
    reach = draw(st.none() | st.integers(0, len(domain)))
    return (hb.SquareWave if wave else hb.Piecewise)(domain, draw(epsilons()), reach)


@st.composite
def staircases(draw: st.DrawFn) -> hb.Staircase:
    """Staircase noise; epsilon is kept where outputs can be listed."""
    domain = draw(integers())
    return hb.Staircase(domain, draw(epsilons(0.2)), draw(st.none() | st.floats(0.01, 1.0)))


@st.composite
def unaries(draw: st.DrawFn) -> hb.Unary:
    """Unary encoding with any two probabilities, in hundredths."""
    q = draw(st.integers(1, 98))
    return hb.Unary(draw(categories() | integers()), Fraction(draw(st.integers(q + 1, 99)), 100), Fraction(q, 100))


@st.composite
def listed_sets(draw: st.DrawFn) -> hb.HadamardResponse | hb.ProjectiveResponse:
    """Hadamard response in any number of blocks, and projective response over small primes."""
    domain, epsilon = draw(categories() | integers()), draw(epsilons())
    if draw(st.booleans()):
        return hb.ProjectiveResponse(domain, epsilon, draw(st.sampled_from([None, 2, 3, 5])))
    exponent = draw(st.none() | st.integers(0, (2 * len(domain) - 1).bit_length() - 1))
    return hb.HadamardResponse(domain, epsilon, None if exponent is None else 1 << exponent)


@st.composite
def sketches(draw: st.DrawFn) -> hb.CountMeanSketch | hb.HadamardCountMeanSketch:
    """Sketches of a few hashes, also of a single one."""
    domain, epsilon, hashes = draw(categories() | integers()), draw(epsilons()), draw(st.integers(1, 6))
    if draw(st.booleans()):
        return hb.CountMeanSketch(domain, epsilon, hashes, draw(st.integers(2, 9)))
    return hb.HadamardCountMeanSketch(domain, epsilon, hashes, draw(st.sampled_from([2, 4, 8])))


@st.composite
def planar(draw: st.DrawFn, *, whole: bool = False) -> hb.Mechanism:
    """Planar mechanisms of all forms; epsilon times the cell is kept where exact sums are quick."""
    grid = draw(grids(whole=whole))
    epsilon = draw(st.floats(0.5, 3.0)) / min(grid.width, grid.height)
    kind: Callable[[], hb.Mechanism] = draw(
        st.sampled_from(
            [
                lambda: hb.PlanarGeometric(grid, epsilon),
                lambda: hb.PlanarGeometric(grid, epsilon, truncated=False),
                lambda: hb.PlanarLaplace(grid, epsilon),
            ]
        )
    )
    return kind()


@st.composite
def longitudinal(draw: st.DrawFn, most: int = 6) -> hb.LongitudinalRappor:
    """RAPPOR with memory; one report may be worth anything from very little to almost all of epsilon."""
    domain, epsilon = draw(categories(most) | integers(most)), draw(epsilons())
    return hb.LongitudinalRappor(domain, epsilon, draw(st.floats(0.01, 0.99)) * epsilon)


@st.composite
def with_memory(draw: st.DrawFn, most: int = 6) -> Longitudinal:
    """Unary, k-RR and hashed reports with memory."""
    domain, epsilon = draw(categories(most) | integers(most)), draw(epsilons())
    first = draw(st.floats(0.01, 0.6)) * epsilon  # optimized reports cannot tell much more
    kinds: list[Callable[[], Longitudinal]] = [
        lambda: hb.LongitudinalUnary(domain, epsilon, first, *draw(st.sampled_from(UNARY_STAGES))),
        lambda: hb.LongitudinalResponse(domain, epsilon, first),
        lambda: hb.LongitudinalHashing(domain, epsilon, first, draw(st.none() | st.integers(2, 5))),
    ]
    kind: Callable[[], Longitudinal] = draw(st.sampled_from(kinds))
    return kind()


@st.composite
def asked_bits(draw: st.DrawFn, most: int = 6) -> hb.DBitFlip:
    """dBitFlip with any numbers of buckets and bits."""
    domain = draw(categories(most) | integers(most))
    buckets = draw(st.integers(2, len(domain)))
    return hb.DBitFlip(domain, draw(epsilons()), buckets, draw(st.integers(1, buckets)))


@st.composite
def bloom_filters(draw: st.DrawFn) -> hb.BloomRappor:
    """RAPPOR with Bloom filters of a few texts, with and without a label for those that are not listed."""
    texts = hb.Categories([f"text {place}" for place in range(draw(st.integers(2, 5)))])
    sizes = draw(st.integers(1, 3)), draw(st.integers(6, 9)), draw(st.integers(1, 3))
    assume(np.ptp(text_filters(list(texts.labels), *sizes), axis=1).any())  # some text differs from the others
    rest = draw(st.sampled_from([None, "text 0"]))
    if draw(st.booleans()):
        epsilon = draw(epsilons())
        return hb.BloomRappor(texts, *sizes, epsilon=epsilon, first=epsilon * draw(st.floats(0.1, 0.9)), rest=rest)
    f, p = (Fraction(draw(st.integers(1, 9)), 10) for _ in range(2))
    return hb.BloomRappor(texts, *sizes, f=f, p=p / 2, q=(p + 1) / 2, rest=rest)


def pointing_mechanisms() -> st.SearchStrategy[hb.Mechanism]:
    """Mechanisms whose outputs point at sets of values."""
    domain = categories() | integers()
    return st.one_of(
        st.builds(hb.RandomizedResponse, domain, epsilons()),
        st.builds(hb.Rappor, domain, epsilons()),
        longitudinal(),
        with_memory(),
        st.builds(hb.OptimizedUnary, domain, epsilons()),
        unaries(),
        st.builds(hb.LocalHashing, domain, epsilons(), st.none() | st.integers(2, 9)),
        subset_selections(),
    )


def metric_mechanisms() -> st.SearchStrategy[hb.Mechanism]:
    """Mechanisms whose epsilon is per unit of distance."""
    return st.one_of(
        st.builds(hb.Geometric, integers(), epsilons(0.2)),
        st.builds(hb.TruncatedGeometric, integers(), epsilons()),
        st.builds(hb.Laplace, integers() | bins(), epsilons()),
        st.builds(hb.Exponential, whole_domains(), epsilons()),
        planar(),
    )


def survey_designs(domain: hb.Categories | None = None) -> st.SearchStrategy[hb.Mechanism]:
    """Designs for a question with two answers; unlike Warner's, most are not symmetric."""
    coin = st.just(domain or hb.Categories(["yes", "no"]))
    tenths, shares = st.integers(1, 9).map(lambda n: Fraction(n, 10)), st.integers(0, 10).map(lambda n: Fraction(n, 10))
    biased = tenths.filter(lambda p: p != Fraction(1, 2))
    return st.one_of(
        st.builds(hb.Warner, coin, biased),
        st.builds(hb.CrosswiseModel, coin, biased),
        st.builds(hb.UnrelatedQuestion, coin, tenths, shares),
        st.builds(lambda domain, p, yes: hb.ForcedResponse(domain, yes * p, (1 - yes) * p), coin, tenths, shares),
    )


def mechanisms() -> st.SearchStrategy[hb.Mechanism]:
    """Mechanisms of every kind on small domains."""
    return st.one_of(
        *(pointing_mechanisms(), asked_bits(), sliding_windows(), metric_mechanisms(), cloakings(), matrices()),
        *(bloom_filters(), staircases(), st.builds(hb.Duchi, integers(), epsilons())),
        *(survey_designs(), listed_sets(), sketches()),
    )


@st.composite
def counted_matrices(draw: st.DrawFn, *, square: bool = False) -> tuple[hb.Matrix, NDArray[np.int64]]:
    """A non-symmetric matrix and counts of its outputs."""
    mechanism = draw(matrices(square=square, positive=draw(st.booleans())))
    return mechanism, draw(counts(len(mechanism.outputs)))
