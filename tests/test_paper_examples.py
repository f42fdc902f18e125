"""The paper's counterexamples: the section "Revisiting the properties of IBU and MLEs", and where to start.

Each test cites the label of the statement it checks. Where the paper errs, the page of errata says what is right.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

import hubbub as hb
from hubbub.likelihood import Likelihood, Point
from hubbub.solvers import em_step

Floats = NDArray[np.float64]
Table = tuple[tuple[Fraction, ...], ...]


def table(*rows: str) -> Table:
    return tuple(tuple(Fraction(entry) for entry in row.split()) for row in rows)


A = table("1/2 1/3 1/6", "1/3 1/3 1/3", "1/6 1/3 1/2")  # eq:mech
A_PRIME = table("1/2 1/4 1/4", "1/4 1/2 1/4", "1/4 1/4 1/2")  # eq:stoch2
TWO_OUTPUTS = table("2/3 1/3", "1/2 1/2", "1/3 2/3")  # in the comments of the paper's source

FULL_STARTS = [[1 / 3, 1 / 3, 1 / 3], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8], [0.9, 0.01, 0.09], [0.01, 0.98, 0.01]]
EQUAL_ENDS = [[a, 1 - 2 * a, a] for a in (0.0, 0.1, 0.25, 1 / 3, 0.45, 0.5)]


def floats(rows: Table) -> Floats:
    return np.array(rows, dtype=np.float64)


def matrix(rows: Table) -> hb.Matrix:
    return hb.Matrix(hb.Integers(1, len(rows)), list(range(1, len(rows[0]) + 1)), floats(rows))


def observe(rows: Table, outputs: Sequence[int]) -> hb.Reports:
    return hb.Reports.from_outputs(matrix(rows), outputs)


def point(reports: hb.Reports, theta: Sequence[float]) -> Point:
    return Likelihood.of(reports).at(np.array(theta, dtype=np.float64))


def slopes(rows: Table, outputs: Sequence[int], theta: Sequence[Fraction]) -> list[Fraction]:
    """Return dL/dtheta_x for each x, exactly, all components of theta free."""
    fitted = [sum(weight * row[z - 1] for weight, row in zip(theta, rows, strict=True)) for z in outputs]
    return [sum((row[z - 1] / f for z, f in zip(outputs, fitted, strict=True)), Fraction(0)) for row in rows]


def slopes_in_plane(outputs: Sequence[int], theta: Sequence[Fraction]) -> list[Fraction]:
    """Return dL/dtheta_1 and dL/dtheta_3 for A', with theta_2 = 1 - theta_1 - theta_3."""
    first, second, third = slopes(A_PRIME, outputs, theta)
    return [first - second, third - second]


# -- the MLE may not be unique (sec:revisiting_ibu_non_unique) ---------------------------------------------


@pytest.mark.parametrize("theta", EQUAL_ENDS)
def test_every_distribution_with_equal_ends_is_a_maximum(theta: list[float]) -> None:
    """sec:revisiting_ibu_non_unique, eq:mech: theta_1 = theta_3 is enough, (0,1,0) and (1/2,0,1/2) included."""
    assert hb.optimality_gap(observe(A, [1, 2, 3]), theta) <= 1e-12


@pytest.mark.parametrize("theta", [*FULL_STARTS[1:4], [1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
def test_unequal_ends_are_no_maximum(theta: list[float]) -> None:
    """sec:revisiting_ibu_non_unique: the maxima are those distributions and no others."""
    assert hb.optimality_gap(observe(A, [1, 2, 3]), theta) > 1e-3


def test_the_written_log_likelihood_of_the_example() -> None:
    """sec:revisiting_ibu_non_unique: L as the paper writes it out."""
    for one, two, three in FULL_STARTS:
        written = math.log(one / 2 + two / 3 + three / 6) + math.log(1 / 3) + math.log(one / 6 + two / 3 + three / 2)
        assert hb.log_likelihood(observe(A, [1, 2, 3]), [one, two, three]) == pytest.approx(written, abs=1e-12)


def test_ibu_ends_at_different_maxima_from_different_starts() -> None:
    """sec:revisiting_ibu_non_unique: infinitely many MLEs, and the start decides which one comes out."""
    ends = [hb.estimate(observe(A, [1, 2, 3]), "ibu", start=start, delta=1e-15) for start in FULL_STARTS]
    for end in ends:
        assert end.converged
        assert end.gap < 1e-7
        assert end.probabilities[0] == pytest.approx(end.probabilities[2], abs=1e-6)
    for one, other in itertools.combinations(ends, 2):
        assert hb.total_variation(one.probabilities, other.probabilities) > 0.02


def test_two_outputs_for_three_values_have_many_maxima() -> None:
    """The 3 x 2 matrix in the source's comments, observations 1 and 2: infinitely many MLEs again."""
    reports = observe(TWO_OUTPUTS, [1, 2])
    assert all(hb.optimality_gap(reports, theta) <= 1e-12 for theta in EQUAL_ENDS)
    assert all(hb.optimality_gap(reports, theta) > 1e-3 for theta in FULL_STARTS[1:4])


# -- the IBU may not approximate the truth (sec:not-approximate) -------------------------------------------


def test_all_distributions_with_equal_ends_give_the_same_outputs() -> None:
    """sec:not-approximate: theta A = q for all of them, exactly."""
    for theta in (table("0 1 0"), table("1/2 0 1/2"), table("1/5 3/5 1/5")):
        assert [sum(theta[0][x] * A[x][z] for x in range(3)) for z in range(3)] == [Fraction(1, 3)] * 3


def test_ibu_misses_the_truth_with_ideal_data() -> None:
    """sec:not-approximate: the truth is (0,1,0) and q = theta A, yet no full-support start leads there."""
    ideal = hb.Reports.from_counts(matrix(A), [1000, 1000, 1000])
    assert hb.optimality_gap(ideal, [0, 1, 0]) <= 1e-12
    for start in FULL_STARTS:
        end = hb.estimate(ideal, "ibu", start=start, delta=1e-12)
        assert end.gap < 1e-7
        assert hb.total_variation(end.probabilities, [0, 1, 0]) > 0.01


@pytest.mark.parametrize("theta", EQUAL_ENDS)
def test_distributions_with_equal_ends_are_fixed_points(theta: list[float]) -> None:
    """sec:not-approximate: theta^{t+1} = theta^t for q uniform, on the update step itself."""
    assert em_step(point(observe(A, [1, 2, 3]), theta)).theta == pytest.approx(theta, abs=1e-15)


def test_the_middle_value_never_loses_mass() -> None:
    """Erratum to sec:not-approximate: from a full-support start the IBU cannot tend to (1/2,0,1/2)."""
    # theta_2 is multiplied by D_2 = (1/9)(1/f_1 + 3 + 1/f_3), and f_1 + f_3 = 2/3 makes that at least 1.
    for one, two in itertools.product(range(11), repeat=2):
        if one + two <= 10:
            theta = (Fraction(one, 10), Fraction(two, 10), Fraction(10 - one - two, 10))
            assert slopes(A, [1, 2, 3], theta)[1] / 3 >= 1
    for start in FULL_STARTS:
        path = hb.estimate(observe(A, [1, 2, 3]), "ibu", start=start, delta=1e-15, history=True).history
        assert path is not None
        assert (np.diff(path.probabilities[:, 1]) >= -1e-15).all()


# -- the MLE may not be stationary (sec:revisiting_ibu_non_stationary) -------------------------------------

MIDDLE = (Fraction(0), Fraction(1), Fraction(0))


def test_a_prime_is_randomized_response() -> None:
    """eq:stoch2: A' is 3-RR with epsilon = log 2."""
    mechanism = hb.RandomizedResponse(hb.Integers(1, 3), math.log(2))
    assert mechanism.matrix() == pytest.approx(floats(A_PRIME), abs=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("outputs", [(1, 2, 2, 3), (1, 2, 2, 2, 3)])
def test_the_maximum_of_a_prime_is_the_middle_value(outputs: tuple[int, ...]) -> None:
    """sec:revisiting_ibu_non_stationary: (0,1,0) is the MLE, by the exact condition D_x <= 1 and numerically."""
    assert all(slope / len(outputs) <= 1 for slope in slopes(A_PRIME, outputs, MIDDLE))
    reports = observe(A_PRIME, outputs)
    assert hb.optimality_gap(reports, [0, 1, 0]) <= 1e-12
    estimate = hb.estimate(reports, "mle")
    assert estimate.converged
    assert estimate.probabilities == pytest.approx([0, 1, 0], abs=1e-4)
    # Plain IBU gets there too, in the limit only: it has no zeros after any number of steps.
    stopped = hb.estimate(reports, "ibu", delta=1e-8)
    assert stopped.probabilities == pytest.approx([0, 1, 0], abs=0.01)
    assert (stopped.probabilities > 0).all()


def test_the_maximum_of_a_prime_is_unique() -> None:
    """sec:revisiting_ibu_non_stationary: A' is invertible, so L is strictly concave; it falls in every direction."""
    (a, b, c), (d, e, f), (g, h, i) = A_PRIME
    assert a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g) == Fraction(1, 16)
    reports = observe(A_PRIME, [1, 2, 2, 3])
    top = hb.log_likelihood(reports, [0, 1, 0])
    for other in np.random.default_rng(1).dirichlet(np.ones(3), 200):
        along = [hb.log_likelihood(reports, (1 - t) * np.array([0, 1, 0]) + t * other) for t in (0.01, 0.1, 0.5, 1)]
        assert (np.diff([top, *along]) < 0).all()


def test_the_derivatives_at_the_maximum_are_zero() -> None:
    """Erratum to sec:revisiting_ibu_non_stationary: with 1,2,2,3 the derivatives are 0, not -0.5."""
    assert slopes_in_plane((1, 2, 2, 3), MIDDLE) == [0, 0]


def test_one_more_observation_makes_the_maximum_non_stationary() -> None:
    """Repair of sec:revisiting_ibu_non_stationary: with 1,2,2,2,3 the derivatives are -0.5."""
    assert slopes_in_plane((1, 2, 2, 2, 3), MIDDLE) == [Fraction(-1, 2), Fraction(-1, 2)]


def test_where_the_surface_is_stationary() -> None:
    """Erratum to "no stationary points at all": with 1,2,2,3 it is (0,1,0) itself, with 1,2,2,2,3 it is outside."""
    # Strict concavity leaves room for one point of the plane at most; outputs at their shares make it stationary.
    outside = (Fraction(-1, 5), Fraction(7, 5), Fraction(-1, 5))
    assert slopes_in_plane((1, 2, 2, 2, 3), outside) == [0, 0]
    assert slopes_in_plane((1, 2, 2, 3), MIDDLE) == [0, 0]


def test_the_ibu_is_slow_at_a_stationary_border_point() -> None:
    """Consequence of the erratum: with 1,2,2,3 theta_1 falls like 2/t; with 1,2,2,2,3 it falls geometrically."""
    slow, fast = (point(observe(A_PRIME, outputs), [1 / 3] * 3) for outputs in ([1, 2, 2, 3], [1, 2, 2, 2, 3]))
    for _ in range(1000):
        slow, fast = em_step(slow), em_step(fast)
    assert 1000 * slow.theta[0] == pytest.approx(2, rel=0.05)
    assert fast.theta[0] < 1e-12


# -- where to start (the remark after Theorem mstep) -------------------------------------------------------


def test_zeros_persist_in_the_update() -> None:
    """The remark after thm:mstep: theta^0_x = 0 implies theta^t_x = 0 for all t."""
    now = point(observe(A_PRIME, [1, 1, 1, 2, 3]), [0, 0.5, 0.5])
    for _ in range(20):
        now = em_step(now)
    assert now.theta[0] == 0
    assert now.gap > 0.1  # and the algorithm is stuck below the maximum


def test_estimate_refuses_a_start_with_zeros_and_says_why() -> None:
    """The remark after thm:mstep, and Algorithm 1's condition theta^0_x > 0."""
    for method in ("ibu", "mle"):
        with pytest.raises(hb.SettingError, match="a zero stays zero") as refusal:
            hb.estimate(observe(A_PRIME, [1, 2, 3]), method, start=[0, 0.5, 0.5])
        assert refusal.value.got.endswith("probability 0 for 1 of 3 values, such as 1")


def test_starting_with_the_shares_of_the_outputs() -> None:
    """sec:mul_inp_single_mech_fixed: theta^0 = q is valid if every value was observed, refused otherwise."""
    estimate = hb.estimate(observe(A_PRIME, [1, 1, 2, 3]), "ibu", start="empirical", history=True)
    assert estimate.history is not None
    assert estimate.history.probabilities[0] == pytest.approx([0.5, 0.25, 0.25])
    with pytest.raises(hb.SettingError, match="gives some values probability 0"):
        hb.estimate(observe(A_PRIME, [1, 1, 2]), "ibu", start="empirical")
