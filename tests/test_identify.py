"""What reports determine and what they leave open, against exact enumeration and independent linear programs."""

from __future__ import annotations

import functools
import itertools
import math
import pickle
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

import hubbub as hb
from hubbub.channels import DiagonalPlusConstantChannel
from hubbub.core.errors import EstimateError
from hubbub.core.progress import Progress, finish
from hubbub.core.text import percent
from hubbub.identifiability import all_maxima as maxima
from hubbub.identifiability import rank
from hubbub.identifiability.api import identify
from hubbub.identifiability.rank import has_full_rank, thin_patterns
from hubbub.identifiability.result import Identification, describe_direction, name_values
from hubbub.likelihood import Likelihood
from problems import problem
from strategies import counts, examples, matrices
from test_paper_examples import A_PRIME, TWO_OUTPUTS, A, observe

Floats = NDArray[np.float64]
Row = tuple[Fraction, ...]

NEAR = 1e-7  # what a maximum found to a gap of 1e-13 and programs solved to 1e-10 leave to be desired
LARGEST = 2**50  # of all users together: counts stay exact


# -- exact arithmetic --------------------------------------------------------------------------------------


def solve(rows: Sequence[Row], right: Row) -> list[Fraction] | None:
    """Return the one t with t rows = right, exactly; None if there is none or more than one."""
    size = len(rows)
    system = [[row[column] for row in rows] + [right[column]] for column in range(len(right))]
    done = 0
    for place in range(size):
        pivot = next((line for line in range(done, len(system)) if system[line][place]), None)
        if pivot is None:
            return None
        system[done], system[pivot] = system[pivot], system[done]
        head = [entry / system[done][place] for entry in system[done]]
        system[done] = head
        for line, other in enumerate(system):
            if line != done and other[place]:
                system[line] = [entry - other[place] * lead for entry, lead in zip(other, head, strict=True)]
        done += 1
    return None if any(line[size] for line in system[done:]) else [system[line][size] for line in range(size)]


def exact_rank(rows: Sequence[Sequence[Fraction]]) -> int:
    left, found = [list(row) for row in rows], 0
    for column in range(len(left[0]) if left else 0):
        pivot = next((line for line in range(found, len(left)) if left[line][column]), None)
        if pivot is None:
            continue
        left[found], left[pivot] = left[pivot], left[found]
        for line in range(found + 1, len(left)):
            factor = left[line][column] / left[found][column]
            left[line] = [a - factor * b for a, b in zip(left[line], left[found], strict=True)]
        found += 1
    return found


@dataclass(frozen=True)
class Planted:
    """Reports whose maxima are all known: the conditions for a maximum hold exactly, by construction."""

    reports: hb.Reports
    identifiable: bool
    dimension: int
    lower: Floats
    upper: Floats
    active: list[int]  # where D = 1


@functools.cache
def planted(kind: str, seed: int) -> Planted:
    """Plant a maximum theta0 with given D: rows h_x with h_x r = D_x, f = theta0 h, and q_i = r_i f_i exactly.

    Values with D_x = 1 may have mass in a maximum, the others (D_x < 1) in none. Rows are dependent by construction;
    the maxima are enumerated by their vertices, in whole fractions. What a row lacks to 1 is an output nobody sent.
    """
    rng = np.random.default_rng([seed, *kind.encode()])
    while True:
        patterns = int(rng.integers(2, 5))
        prices = [Fraction(int(price)) for price in rng.integers(1, 4, patterns)]

        def row(size: int = patterns, prices: Sequence[Fraction] = tuple(prices)) -> Row:
            parts = [Fraction(int(part)) for part in rng.integers(0, 5, size)]
            parts[int(rng.integers(size))] += 1
            total = sum((a * b for a, b in zip(parts, prices, strict=True)), Fraction(0))
            return tuple(part / total for part in parts)

        tight: list[Row] = [
            row() for _ in range(patterns + 2 if kind == "wide" else int(rng.integers(2, patterns + 1)))
        ]
        for _ in range(0 if kind == "wide" else int(rng.integers(1, 3))):
            one, other = rng.choice(len(tight), 2, replace=False)
            share = Fraction(int(rng.integers(1, 4)), 4)
            tight.append(
                tight[one]
                if kind == "twins"
                else tuple(share * a + (1 - share) * b for a, b in zip(tight[one], tight[other], strict=True))
            )
        slopes = [Fraction(1)] * len(tight) + [
            Fraction(int(rng.integers(1, 10)), 10) for _ in range(rng.integers(0, 2))
        ]
        rows = tight + [tuple(slope * entry for entry in row()) for slope in slopes[len(tight) :]]
        masses = [Fraction(int(mass)) for mass in rng.integers(1, 4, len(tight))]
        if kind == "face":
            masses = [mass * int(rng.integers(2)) for mass in masses]
        order = rng.permutation(len(rows)).tolist()
        rows = [rows[place] for place in order]
        masses = [(masses + [Fraction(0)] * len(rows))[place] for place in order]
        active = [x for x, place in enumerate(order) if place < len(tight)]
        total = sum(masses, Fraction(0))
        if not total:
            continue
        theta = [mass / total for mass in masses]
        fitted = [sum((t * r[i] for t, r in zip(theta, rows, strict=True)), Fraction(0)) for i in range(patterns)]
        shares = [price * f for price, f in zip(prices, fitted, strict=True)]
        users = math.lcm(*(share.denominator for share in shares))
        if min(fitted) > 0 and users < LARGEST:
            break
    assert sum(shares) == 1
    full = [(*r, Fraction(1)) for r in rows]  # with the sum
    aim = (*fitted, Fraction(1))
    corners: list[list[Fraction]] = []
    for size in range(1, patterns + 2):
        for chosen in itertools.combinations(active, size):
            masses_here = solve([full[x] for x in chosen], aim)
            if masses_here is not None and min(masses_here) >= 0:
                corner = [Fraction(0)] * len(rows)
                for x, mass in zip(chosen, masses_here, strict=True):
                    corner[x] = mass
                corners.append(corner)
    dimension = exact_rank([[a - b for a, b in zip(corner, corners[0], strict=True)] for corner in corners[1:]])
    largest = max(sum(r) for r in rows)
    table = np.array([[*(entry / largest for entry in r), 1 - sum(r) / largest] for r in rows], dtype=np.float64)
    mechanism = hb.Matrix(hb.Integers(0, len(rows) - 1), [*range(patterns), "silence"], table)
    reports = hb.Reports.from_counts(mechanism, [*(int(share * users) for share in shares), 0])
    ends = np.array(corners, dtype=np.float64)
    return Planted(reports, exact_rank(full) == len(rows), dimension, ends.min(axis=0), ends.max(axis=0), active)


SEEDS = {"inside": 60, "face": 120, "twins": 60, "wide": 60}
KINDS = list(SEEDS)
QUICK_SEEDS = 25  # of each kind
PLANTED = [
    pytest.param(kind, seed, marks=[pytest.mark.slow] if seed >= QUICK_SEEDS else [])
    for kind in KINDS
    for seed in range(SEEDS[kind])
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("kind", "seed"), PLANTED)
def test_planted_maxima_are_all_found(kind: str, seed: int) -> None:
    case = planted(kind, seed)
    identification = identify(case.reports)
    assert identification.identifiable is case.identifiable
    assert identification.dimension == case.dimension
    assert identification.unique is (case.dimension == 0)
    assert identification.lower == pytest.approx(case.lower, abs=NEAR)
    assert identification.upper == pytest.approx(case.upper, abs=NEAR)
    if not case.identifiable:
        assert identification.practical is False
        assert identification.blind == math.inf
        check_unseen(case.reports, identification.direction)


def check_unseen(reports: hb.Reports, direction: Floats | None) -> None:
    """A direction that no pattern sees: sum 0, one unit exchanged, every probability unchanged."""
    assert direction is not None
    assert direction.sum() == pytest.approx(0, abs=1e-9)
    assert np.abs(direction).sum() == pytest.approx(2)
    sent = reports.weights > 0
    assert np.abs(reports.channel.forward(direction)[sent]).max() < 1e-9


def test_the_planted_cases_are_of_every_sort() -> None:
    cases = [(kind, planted(kind, seed)) for kind in KINDS for seed in range(SEEDS[kind])]
    assert len(cases) >= 200
    assert {case.dimension for _, case in cases} >= {0, 1, 2, 3}
    # Unique although rows are dependent: what the theorem does not see, and the data decide.
    assert sum(not case.identifiable and case.dimension == 0 for _, case in cases) >= 20
    assert all(case.dimension >= 1 for kind, case in cases if kind in {"inside", "twins", "wide"})
    assert sum(case.identifiable for kind, case in cases if kind == "face") == 0


# -- linear programs, written again ------------------------------------------------------------------------


def programmed(reports: hb.Reports, slack: float = 1e-9) -> tuple[Floats, Floats]:
    """Return the smallest and largest share of each value with theta G = f up to `slack`, relative."""
    best = hb.estimate(reports, "mle", tol=1e-13).probabilities
    sent = reports.weights > 0
    table = (reports.channel.dense() / Likelihood.of(reports).at(best).fitted)[:, sent].T
    size = best.size
    ends = np.zeros((2, size))
    for x, (side, sign) in itertools.product(range(size), enumerate((1.0, -1.0))):
        cost = np.zeros(size)
        cost[x] = sign
        program = linprog(
            cost,
            A_ub=np.vstack([table, -table]),
            b_ub=np.concatenate([np.full(len(table), 1 + slack), np.full(len(table), slack - 1)]),
            A_eq=np.ones((1, size)),
            b_eq=[1.0],
            bounds=(0, None),
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        assert program.x is not None
        ends[side, x] = program.x[x]
    return ends[0], ends[1]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "kind",
    [
        "rows that are mixtures of others",
        "equal rows",
        "fewer outputs than values",
        "values that give nothing that was seen",
        "zeros here and there",
        "regions and noise",
        "one, two or three users",
        "several outputs for each user",
        "part of the domain",
        "sums of bits",
    ],
)
def test_ranges_agree_with_programs_over_all_distributions(kind: str, seed: int) -> None:
    """Random reports: maxima at the border, with values that no maximum uses. Programs allow for some slack."""
    reports = problem(kind, seed).reports
    identification = identify(reports)
    lower, upper = programmed(reports)
    assert identification.lower == pytest.approx(lower, abs=1e-5)
    assert identification.upper == pytest.approx(upper, abs=1e-5)
    assert identification.unique is bool((upper - lower).max() < 1e-5)
    used = np.flatnonzero(upper > 1e-5)
    sent = reports.weights > 0
    table = np.column_stack([reports.channel.dense()[used][:, sent], np.ones(used.size)])
    assert identification.dimension == used.size - np.linalg.matrix_rank(table, rtol=1e-10)


# -- the paper ---------------------------------------------------------------------------------------------


def test_the_paper_s_matrix_has_a_line_of_maxima() -> None:
    """sec:revisiting_ibu_non_unique, eq:mech: all with theta_1 = theta_3, from (0,1,0) to (1/2,0,1/2)."""
    identification = identify(observe(A, [1, 2, 3]))
    assert (identification.identifiable, identification.unique, identification.dimension) == (False, False, 1)
    assert identification.lower == pytest.approx([0, 0, 0], abs=NEAR)
    assert identification.upper == pytest.approx([0.5, 1, 0.5], abs=NEAR)
    assert identification.direction is not None
    assert np.abs(identification.direction) == pytest.approx([0.5, 1, 0.5])
    assert identification.explain() == (
        "Many distributions fit equally well: a family of dimension 1. The reports cannot tell 2 from 1 and 3: people "
        "could move between them, and every report would be as likely as before. Shares that fit equally well: 2 from "
        "0% to 100%, 1 from 0% to 50.0%, 3 from 0% to 50.0%."
    )


def test_the_same_matrix_has_one_maximum_at_a_corner() -> None:
    """eq:mech again: dependent rows, yet (1,0,0) alone is best if output 1 is frequent."""
    identification = identify(observe(A, [1, 1, 1, 2, 3]))
    assert (identification.identifiable, identification.unique, identification.dimension) == (False, True, 0)
    assert identification.lower == pytest.approx([1, 0, 0], abs=1e-4)
    assert identification.explain().endswith("fit equally well: the patterns do not tell 2 from 1 and 3.")


def test_two_outputs_for_three_values() -> None:
    """In the source's comments: the rows sum to the same, so that one dimension of three is seen."""
    identification = identify(observe(TWO_OUTPUTS, [1, 2]))
    assert (identification.identifiable, identification.dimension) == (False, 1)
    assert identification.upper == pytest.approx([0.5, 1, 0.5], abs=NEAR)


@pytest.mark.parametrize("outputs", [(1, 2, 2, 3), (1, 2, 2, 2, 3)])
def test_the_maximum_that_is_not_stationary_is_unique(outputs: tuple[int, ...]) -> None:
    """sec:revisiting_ibu_non_stationary, eq:stoch2: (0,1,0), with D = 1 everywhere or not."""
    identification = identify(observe(A_PRIME, outputs))
    assert (identification.identifiable, identification.unique, identification.dimension) == (True, True, 0)
    assert identification.upper == pytest.approx([0, 1, 0], abs=1e-4)
    assert (identification.lower == identification.upper).all()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("family", [hb.RandomizedResponse, hb.Geometric, hb.TruncatedGeometric])
def test_one_maximum_on_the_observed_values(family: type[hb.Mechanism], seed: int) -> None:
    """thm:mlunique-krr, -geometric and -tgeometric: with gaps between the observed values as well."""
    rng = np.random.default_rng(seed)
    domain = hb.Integers(-30, 29)
    mechanism = family(domain, float(np.exp(rng.uniform(-2.5, 1.5))))  # type: ignore[call-arg]
    observed = np.sort(rng.choice(domain.labels, size=int(rng.integers(2, 40)), replace=False))
    reports = hb.Reports.from_counts(mechanism, dict(zip(observed.tolist(), rng.integers(1, 200, 60), strict=False)))
    identification = identify(reports.restrict(observed))
    assert (identification.identifiable, identification.unique, identification.dimension) == (True, True, 0)
    assert (identification.lower == identification.upper).all()


# -- structure ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0, 1, 2, 5])
def test_randomized_response_needs_all_values_but_one(missing: int) -> None:
    numbers = np.where(np.arange(12) < missing, 0, 50 + np.arange(12))
    reports = hb.Reports.from_counts(hb.RandomizedResponse(hb.Integers(0, 11), 1.0), numbers)
    assert isinstance(reports.channel, DiagonalPlusConstantChannel)
    identification = identify(reports)
    assert identification.identifiable is (missing <= 1)
    assert identification.identifiable is has_full_rank(reports, np.arange(12), np.full(12, 1 / 12))  # by the matrix
    assert identification.unique
    if missing > 1:
        check_unseen(reports, identification.direction)


def test_randomized_response_that_never_names_a_kept_value() -> None:
    """What points outside is flat: every distribution over the kept values fits alike."""
    mechanism = hb.RandomizedResponse(hb.Integers(0, 9), 1.0)
    identification = identify(hb.Reports.from_counts(mechanism, {8: 5, 9: 7}).restrict([1, 2, 3]))
    assert (identification.unique, identification.dimension) == (False, 2)
    assert (identification.lower == 0).all()
    assert (identification.upper == 1).all()


def test_a_million_values_of_randomized_response() -> None:
    mechanism = hb.RandomizedResponse(hb.Integers(0, 999_999), 8.0)
    identification = identify(hb.Reports.from_counts(mechanism, {5: 7000, 900_000: 2000}))
    assert (identification.identifiable, identification.unique) == (False, True)
    assert identification.upper.argmax() == 5


def test_merged_cells_and_their_ranges() -> None:
    cloak = hb.Cloaking(hb.Categories(list("abcdef")), ["x", "x", "x", "y", "y", "z"])
    identification = identify(hb.Reports.from_counts(cloak, {"x": 50, "y": 20, "z": 30}))
    assert (identification.identifiable, identification.unique, identification.dimension) == (False, False, 3)
    assert identification.lower == pytest.approx([0, 0, 0, 0, 0, 0.3], abs=NEAR)
    assert identification.upper == pytest.approx([0.5, 0.5, 0.5, 0.2, 0.2, 0.3], abs=NEAR)
    assert "cannot tell 'a' from 'b'" in identification.explain()
    nobody = identify(hb.Reports.from_counts(cloak, {"x": 50, "z": 30}))
    assert nobody.dimension == 2
    assert nobody.upper[3:5] == pytest.approx([0, 0], abs=NEAR)


def test_a_region_of_one_user_in_a_milliard_counts() -> None:
    """Shares are judged against the patterns that they explain, not against the whole."""
    cloak = hb.Cloaking(hb.Integers(0, 3), ["x", "x", "y", "y"])
    identification = identify(hb.Reports.from_counts(cloak, {"x": 1, "y": 10**9 - 1}))
    assert identification.dimension == 2
    assert identification.upper[:2] == pytest.approx([1e-9, 1e-9], rel=1e-4)


@pytest.mark.parametrize("users", [1, 7])
def test_a_single_pattern(users: int) -> None:
    """thm:single_inp: every distribution on the likeliest values is a maximum."""
    table = np.array([[0.5, 0.5], [0.2, 0.8], [0.5, 0.5], [0.1, 0.9], [0.5, 0.5]])
    reports = hb.Reports.from_outputs(hb.Matrix(hb.Integers(0, 4), ["s", "t"], table), ["s"] * users)
    identification = identify(reports)
    assert (identification.identifiable, identification.unique, identification.dimension) == (False, False, 2)
    assert identification.upper == pytest.approx([1, 0, 1, 0, 1], abs=NEAR)
    assert identification.lower == pytest.approx([0] * 5, abs=NEAR)


def test_one_value_is_determined() -> None:
    identification = identify(hb.Reports.from_outputs(hb.Geometric(hb.Integers(0, 5), 1.0), [1, 2]).restrict([3]))
    assert (identification.identifiable, identification.unique, identification.dimension, identification.practical) == (
        True,
        True,
        0,
        True,
    )
    assert identification.lower.tolist() == identification.upper.tolist() == [1.0]
    assert identification.direction is None
    assert identification.explain() == "The reports determine one distribution: no other fits as well."


def test_several_outputs_of_a_user_tell_more_than_one() -> None:
    """Two mechanisms that merge different cells: apart they leave a line of maxima, from the same users none."""
    square = hb.Integers(0, 3)
    rows, columns = hb.Cloaking(square, ["n", "n", "s", "s"]), hb.Cloaking(square, ["w", "e", "w", "e"])
    truth = [4, 3, 2, 1]
    values = np.repeat(square.labels, truth)
    apart = hb.Reports.from_outputs(rows, rows.privatize(values)) + hb.Reports.from_outputs(
        columns, columns.privatize(values)
    )
    together = hb.Reports.from_users(
        [(rows, r), (columns, c)] for r, c in zip(rows.privatize(values), columns.privatize(values), strict=True)
    )
    one, other = identify(apart), identify(together)
    assert (one.identifiable, one.dimension) == (False, 1)
    lower, upper = programmed(apart)
    assert one.lower == pytest.approx(lower, abs=1e-6)
    assert one.upper == pytest.approx(upper, abs=1e-6)
    assert (other.identifiable, other.dimension) == (True, 0)
    assert other.upper == pytest.approx(np.array(truth) / 10, abs=1e-6)


def test_sums_of_bits_say_that_they_are_approximate() -> None:
    identification = identify(hb.Reports.from_bit_counts(hb.Rappor(hb.Integers(0, 4), 2.0), [50, 0, 40, 30, 100], 100))
    assert (identification.identifiable, identification.unique) == (True, True)
    assert "Approximate" in identification.explain()


def test_few_patterns_of_many_are_enough() -> None:
    rng = np.random.default_rng(3)
    mechanism = hb.OptimizedUnary(hb.Integers(0, 39), 2.0)
    reports = hb.Reports.from_outputs(mechanism, mechanism.privatize(rng.integers(0, 40, 4000), rng=rng))
    thin = thin_patterns(reports, 160)
    assert 160 <= thin.weights.size <= 165
    assert thin.domain == reports.domain
    identification = identify(reports)
    assert (identification.identifiable, identification.unique, identification.practical) == (True, True, True)


def test_patterns_that_were_left_out_at_first_count_in_the_end() -> None:
    """One user in a thousand tells two values apart, in one pattern of many: evenly spaced ones miss it."""
    size = 400
    table = np.full((3, size), 1.0)
    table[0, ::2] += 0.5
    table[1:, 1::2] += 0.5
    table[2, 7] += 0.25
    table[2, 9] -= 0.25
    table /= table.sum(axis=1, keepdims=True)
    reports = hb.Reports.from_counts(hb.Matrix(hb.Integers(0, 2), list(range(size)), table), [3] * size)
    some = thin_patterns(reports, 12)
    assert has_full_rank(some, np.arange(3), np.full(3, 1 / 3)) is False
    assert identify(reports).identifiable is True


# -- what so many users cannot see -------------------------------------------------------------------------


def near_tie(difference: float, users: int = 1_000) -> hb.Reports:
    rows = np.array([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.2 + difference, 0.6 - difference, 0.2], [0.1, 0.1, 0.8]])
    table = np.column_stack([rows * 0.9, [0.02, 0.03, 0.03, 0.04], [0.08, 0.07, 0.07, 0.06]])
    shares = np.array([0.3, 0.2, 0.2, 0.3]) @ table
    return hb.Reports.from_counts(
        hb.Matrix(hb.Categories(list("abcd")), list("vwxyz"), table), np.rint(shares * users).astype(int)
    )


def test_rows_that_nearly_agree_are_practically_not_identifiable() -> None:
    identification = identify(near_tie(1e-7))
    assert (identification.identifiable, identification.unique, identification.dimension) == (True, True, 0)
    assert identification.practical is False
    assert identification.direction is not None
    assert np.abs(identification.direction) == pytest.approx([0, 1, 1, 0], abs=1e-4)
    assert identification.explain().endswith(
        "In practice, the reports of 1,000 users cannot tell 'b' from 'c': "
        "any share could move between them and go unnoticed."
    )


def test_rows_that_agree_up_to_rounding_are_not_identifiable() -> None:
    identification = identify(near_tie(1e-15))
    assert (identification.identifiable, identification.unique, identification.dimension) == (False, False, 1)
    assert (identification.practical, identification.blind) == (False, math.inf)
    assert "cannot tell 'b' from 'c'" in identification.explain()


def test_long_products_that_agree_up_to_rounding_are_the_same() -> None:
    """Three factors, each a hundred times, in another order: equal, though floats differ in the thirteenth digit."""
    table = np.array([[0.1, 0.3, 0.6], [0.6, 0.1, 0.3], [0.3, 0.6, 0.1], [0.05, 0.05, 0.9]])
    mechanism = hb.Matrix(hb.Integers(0, 3), ["a", "b", "c"], table)
    users = [[(mechanism, [letter] * times) for letter in "abc"] for times in (100, 170, 230, 290)]
    reports = hb.Reports.from_users(
        [[(one, output) for one, outputs in pairs for output in outputs] for pairs in users]
    )
    logs = reports.channel.log_dense()
    assert 0 < np.ptp(logs[:3], axis=0).max() < 1e-10
    identification = identify(reports)
    assert (identification.identifiable, identification.unique, identification.dimension) == (False, False, 2)
    assert identification.upper == pytest.approx([1, 1, 1, 0], abs=NEAR)


def test_what_is_noticed_follows_the_formula() -> None:
    """Blind is 1.96 / sqrt(n I(v)), I(v) of the direction written out; more users see more."""
    few, many = identify(near_tie(0.05)), identify(near_tie(0.05, 1_000_000))
    for found, reports in ((few, near_tie(0.05)), (many, near_tie(0.05, 1_000_000))):
        assert found.direction is not None
        assert found.direction.sum() == pytest.approx(0, abs=1e-12)
        assert np.abs(found.direction).sum() == pytest.approx(2)
        table = np.exp(reports.channel.log_dense())
        information = np.sum(reports.weights / reports.users * (found.direction @ table / (found.lower @ table)) ** 2)
        assert found.blind == pytest.approx(1.96 / math.sqrt(reports.users * information), rel=1e-6)
        pairs = [
            np.sum(reports.weights / reports.users * ((table[x] - table[y]) / (found.lower @ table)) ** 2)
            for x, y in itertools.combinations(range(4), 2)
        ]
        assert information < min(pairs)  # as the docstring of least_visible_direction proves
    assert few.practical is False
    assert many.practical is True
    assert many.blind is not None
    assert f"with 1,000,000 users, shares below {percent(many.blind)} could go unnoticed" in many.explain()


def test_of_two_pairs_that_nearly_agree_one_is_named() -> None:
    """The smallest eigenvector would blend them."""
    table = np.array([[0.7, 0.1, 0.1, 0.05, 0.05], [0.1, 0.7, 0.1, 0.05, 0.05]])
    shift = np.array([[0, 0, 0, 1, -1], [0, 0, 1, 0, -1]])
    table = np.concatenate([table, table + 1e-5 * shift])
    reports = hb.Reports.from_counts(
        hb.Matrix(hb.Integers(0, 3), list(range(5)), table), np.rint(table.mean(axis=0) * 2000).astype(int)
    )
    identification = identify(reports)
    assert (identification.identifiable, identification.practical) == (True, False)
    assert identification.direction is not None
    assert np.sort(np.abs(identification.direction)).tolist() == [0, 0, 1, 1]
    assert "cannot tell 0 from 2" in identification.explain() or "cannot tell 1 from 3" in identification.explain()


def test_values_that_cannot_hold_a_fair_share_are_of_no_account() -> None:
    """Two values that nearly agree, but that the reports speak against: nothing is lost if they are confused."""
    table = np.array(
        [[0.7, 0.1, 0.1, 0.1], [0.1, 0.7, 0.1, 0.1], [0.1, 0.1, 0.4, 0.4], [0.1, 0.1, 0.4 + 1e-7, 0.4 - 1e-7]]
    )
    reports = hb.Reports.from_counts(hb.Matrix(hb.Integers(0, 3), list("abcd"), table), [500, 400, 50, 50])
    identification = identify(reports)
    assert (identification.identifiable, identification.practical) == (True, True)
    assert identification.direction is not None
    assert np.abs(identification.direction) == pytest.approx([1, 1, 0, 0], abs=1e-9)
    rng = np.random.default_rng(0)
    best = hb.log_likelihood(reports, identification.lower)
    for other in rng.dirichlet(np.full(4, 0.5), 500):  # what the certificate claims
        assert max(other[2:]) < 0.25 or hb.log_likelihood(reports, other) < best - 1.96**2 / 2


def test_one_value_in_play_has_nothing_to_exchange() -> None:
    identification = identify(hb.Reports.from_counts(hb.RandomizedResponse(hb.Integers(0, 1), 2.0), [1000, 10]))
    assert (identification.identifiable, identification.practical, identification.blind, identification.direction) == (
        True,
        True,
        None,
        None,
    )


def test_what_is_seen_least_may_take_many_values() -> None:
    """Fine noise: neighbours are told apart, an exchange of every second value for the others is not."""
    mechanism = hb.TruncatedGeometric(hb.Integers(0, 29), 0.3)
    shares = np.full(30, 1 / 30) @ mechanism.matrix()
    identification = identify(hb.Reports.from_counts(mechanism, np.rint(shares * 3000).astype(int)))
    assert identification.direction is not None
    assert np.count_nonzero(np.abs(identification.direction) > 1e-3) > 10
    assert (np.diff(np.sign(identification.direction[10:20])) != 0).all()


# -- properties --------------------------------------------------------------------------------------------


@st.composite
def observed(draw: st.DrawFn) -> tuple[hb.Matrix, NDArray[np.int64]]:
    mechanism = draw(matrices(positive=True))
    assert mechanism.outputs is not None
    return mechanism, draw(counts(len(mechanism.outputs)))


def same(one: Identification, other: Identification, order: Sequence[int] | None = None) -> None:
    places = slice(None) if order is None else list(order)
    assert one.identifiable is other.identifiable
    assert one.dimension == other.dimension
    assert one.lower[places] == pytest.approx(other.lower, abs=1e-5)
    assert one.upper[places] == pytest.approx(other.upper, abs=1e-5)


@given(observed(), st.randoms(use_true_random=False))
@examples(60)
def test_permuting_values_permutes_the_answer(case: tuple[hb.Matrix, NDArray[np.int64]], random: object) -> None:
    mechanism, numbers = case
    order = list(range(len(mechanism.domain)))
    random.shuffle(order)  # type: ignore[attr-defined]
    assert mechanism.outputs is not None
    moved = hb.Matrix(mechanism.domain, mechanism.outputs.tolist(), mechanism.matrix()[order])
    one, other = (identify(hb.Reports.from_counts(each, numbers)) for each in (mechanism, moved))
    same(one, other, order)


@given(observed(), st.integers(2, 5))
@examples(40)
def test_duplicating_the_data_changes_nothing_but_what_is_noticed(
    case: tuple[hb.Matrix, NDArray[np.int64]], times: int
) -> None:
    mechanism, numbers = case
    one, other = (identify(hb.Reports.from_counts(mechanism, each)) for each in (numbers, times * numbers))
    same(one, other)
    if one.identifiable and other.blind is not None:  # with more users there may be fewer values in play, never more
        assert one.blind is not None
        assert other.blind <= one.blind / math.sqrt(times) * 1.01
        assert one.direction is not None
        assert other.direction is not None
        if np.abs(np.abs(one.direction) - np.abs(other.direction)).max() < 1e-4:
            assert other.blind == pytest.approx(one.blind / math.sqrt(times), rel=1e-2)


@given(observed(), st.data())
@examples(60)
def test_splitting_a_value_with_mass_adds_one_dimension(
    case: tuple[hb.Matrix, NDArray[np.int64]], data: st.DataObject
) -> None:
    mechanism, numbers = case
    place = data.draw(st.integers(0, len(mechanism.domain) - 1))
    assert mechanism.outputs is not None
    rows = mechanism.matrix()
    split = hb.Matrix(
        hb.Integers(0, len(rows)), mechanism.outputs.tolist(), np.concatenate([rows, rows[place : place + 1]])
    )
    one, other = (identify(hb.Reports.from_counts(each, numbers)) for each in (mechanism, split))
    assert one.dimension is not None
    assert other.identifiable is False
    held = one.upper[place] > 1e-4
    if held or one.upper[place] < 1e-9:
        assert other.dimension == one.dimension + held
        assert other.upper[-1] == pytest.approx(one.upper[place], abs=1e-5)
        assert other.upper[place] == pytest.approx(one.upper[place], abs=1e-5)
        assert other.lower[-1] == pytest.approx(0, abs=1e-5)


# -- size, and what is not decided -------------------------------------------------------------------------


def test_a_city_is_judged_in_seconds() -> None:
    grid = hb.Grid.over(south=37.7228, west=-122.5153, north=37.7946, east=-122.3789, columns=24, rows=16)
    rng = np.random.default_rng(1)
    values = rng.choice(grid.labels, p=rng.dirichlet(np.full(384, 0.3)), size=100_000)
    noise = hb.PlanarGeometric(grid, 1.0)
    start = time.perf_counter()
    identification = identify(hb.Reports.from_outputs(noise, noise.privatize(values, rng=1)))
    cloak = hb.Cloaking(grid, [f"{cell % 24 // 6} {cell // 96}" for cell in grid.labels.tolist()])
    merged = identify(hb.Reports.from_outputs(cloak, cloak.privatize(values)))
    assert time.perf_counter() - start < 10  # under a second alone; machines are shared
    assert (identification.identifiable, identification.dimension) == (True, 0)
    assert (merged.identifiable, merged.dimension) == (False, 384 - 16)


def test_too_large_to_decide_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank, "MAX_RANK_WORK", 10.0)
    identification = identify(observe(A, [1, 2, 3]))
    assert (identification.identifiable, identification.unique, identification.dimension) == (None, None, None)
    assert (identification.practical, identification.direction) == (None, None)
    assert (identification.lower == 0).all()
    assert (identification.upper == 1).all()
    assert identification.explain().startswith(
        "It is not known whether these reports determine one distribution. Whether any two"
    )
    assert "3 values and 3 patterns are too many" in identification.reason


def test_too_many_programs_leave_outer_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maxima, "MAX_PROGRAM_ENTRIES", 1.0)
    identification = identify(observe(A, [1, 2, 3]))
    assert (identification.unique, identification.dimension) == (False, 1)
    assert (identification.lower == 0).all()
    assert (identification.upper >= np.array([0.5, 1, 0.5]) - NEAR).all()
    assert not identification.exact
    assert "outer bounds" in identification.explain()
    assert "Shares that fit equally well" not in identification.explain()


@pytest.mark.parametrize("seed", range(20))
def test_outer_bounds_claim_no_more_than_they_know(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maxima, "MAX_PROGRAM_ENTRIES", 1.0)
    case = planted("face", seed)
    identification = identify(case.reports)
    assert identification.dimension in (None, case.dimension)
    assert identification.unique in (None, case.dimension == 0)
    assert (identification.lower <= case.lower + NEAR).all()
    assert (identification.upper >= case.upper - NEAR).all()
    check_unseen(case.reports, identification.direction)
    assert identification.explain()


def test_too_many_values_for_what_is_seen_least(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank, "MAX_COMPARED_VALUES", 3)
    identification = identify(near_tie(0.05))
    assert (identification.identifiable, identification.practical, identification.blind, identification.direction) == (
        True,
        None,
        None,
        None,
    )
    assert "was not computed: there are too many values" in identification.explain()


def test_excluded_values_are_excluded_at_the_maximum_too() -> None:
    """The bound on D holds at loose solutions: no value with mass at the maximum is ever excluded."""
    for seed in range(30):
        reports = planted("face", seed).reports
        best = hb.estimate(reports, "mle", tol=1e-13).probabilities
        likelihood = Likelihood.of(reports)
        for away in (1e-1, 1e-2, 1e-4, 1e-8):
            kept = maxima.possible_values(likelihood.at((1 - away) * best + away / best.size))
            assert set(np.flatnonzero(best > 1e-4)) <= set(kept.tolist())


@pytest.mark.parametrize("seed", range(30))
def test_values_with_a_small_slope_are_excluded(seed: int) -> None:
    """D is 9/10 at most where it is not 1: close to the maximum just those are excluded."""
    case = planted("inside", seed)
    best = hb.estimate(case.reports, "mle", tol=1e-13).probabilities
    assert maxima.possible_values(Likelihood.of(case.reports).at(best)).tolist() == case.active


def test_neighbours_are_called_neighbours() -> None:
    """On a map and on a line people think of neighbours, not of numbers."""

    def explain(domain: hb.Domain, first: int, second: int, blind: float = 1.5) -> str:
        direction = np.zeros(len(domain))
        direction[[first, second]] = 1.0, -1.0
        even = np.full(len(domain), 1 / len(domain))
        return Identification(domain, 500, True, True, 0, even, even, blind < 1, blind, direction, 0.0).explain()

    grid, line = hb.Grid(4, 3), hb.Integers(20, 30)
    assert explain(grid, 2, 7).endswith(
        "In practice, the reports of 500 users cannot tell neighbouring cells apart: "
        "any share could move from 2 to 7 and go unnoticed."
    )
    assert "neighbouring values apart: any share could move from 23 to 24" in explain(line, 3, 4)
    assert explain(line, 3, 4, 0.0649).endswith(
        "Moves between neighbouring values, such as 23 and 24, are the hardest to notice: "
        "with 500 users, shares below 6.49% could go unnoticed."
    )
    for domain, first, second in ((grid, 3, 4), (grid, 0, 8), (line, 3, 5), (hb.Categories(list("abc")), 0, 1)):
        assert "neighbouring" not in explain(domain, first, second)


# -- words, and the result ---------------------------------------------------------------------------------


def test_directions_in_words() -> None:
    domain = hb.Categories(list("abcdefgh"))
    assert describe_direction(domain, np.array([1.0, -0.6, -0.4, 0, 0, 0, 0, 0])) == "'a' from 'b' and 'c'"
    assert describe_direction(domain, np.array([-0.4, -0.6, 1.0, 0, 0, 0, 0, 0]), "for") == "'c' for 'b' and 'a'"
    assert describe_direction(domain, np.array([1, -1e-9, -1, 0, 0, 0, 0, 0])) == "'a' from 'c'"
    assert name_values(domain, range(4)) == "'a', 'b', 'c' and 'd'"
    assert name_values(domain, range(8)) == "'a', 'b', 'c' and 5 more"
    assert name_values(hb.Integers(3, 9), [0]) == "3"


def test_the_result_travels_and_stays_as_it_is() -> None:
    identification = identify(near_tie(1e-15))
    copy = pickle.loads(pickle.dumps(identification))  # noqa: S301  # our own
    assert copy.explain() == identification.explain()
    assert copy.content_key == identification.content_key
    for array in (
        identification.lower,
        identification.upper,
        identification.direction,
        copy.lower,
        copy.upper,
        copy.direction,
    ):
        assert array is not None
        assert not array.flags.writeable
    assert repr(identification) == "Identification(identifiable=False, unique=False, dimension=1, practical=False)"
    assert str(identification).splitlines()[0].split() == ["identifiable", "no"]
    assert identification.explain() in str(identification)


def test_stages_are_told_and_add_up() -> None:
    """Seven values, three outputs, all used: programs for each value, and as many stages."""
    told: list[Progress] = []
    found = finish(identify.steps(planted("wide", 0).reports), told.append)
    assert isinstance(found, Identification)
    assert {
        "checking which values the patterns distinguish",
        "looking for the values that are hardest to distinguish",
    } <= {stage.what for stage in told}
    reaching = [stage for stage in told if stage.what.startswith("computing the range")]
    assert len(reaching) >= 5
    assert all(0 <= stage.done < stage.total for stage in reaching)


@pytest.mark.parametrize("wrong", ["reports", None, [1, 2]])
def test_something_else_than_reports_is_refused(wrong: object) -> None:
    with pytest.raises(EstimateError, match="not reports") as refusal:
        identify(wrong)  # type: ignore[arg-type]
    assert refusal.value.where == "identify(reports)"
