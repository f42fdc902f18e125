"""The paper's EM theory on drawn surveys: every user with outputs of their own, from non-symmetric mechanisms.

The test computes G, Q and H from the paper's definitions, user by user; hubbub sees the reports only. Each
test cites the label of the statement it checks. Where the paper errs, docs/explanation/errata.md says what is right.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import xlogy

import hubbub as hb
from hubbub.likelihood import Likelihood
from hubbub.solvers import em_step
from strategies import examples

Floats = NDArray[np.float64]

drawn = examples(40)


@dataclass(frozen=True)
class Survey:
    """Reports, and the paper's G: one row for each value, one column for each user."""

    reports: hb.Reports
    g: Floats

    @property
    def values(self) -> int:
        return int(self.g.shape[0])

    @property
    def users(self) -> int:
        return int(self.g.shape[1])


@st.composite
def stochastic(draw: st.DrawFn, values: int) -> Floats:
    """A matrix with two to four outputs and no symmetry."""
    outputs = draw(st.integers(2, 4))
    rows = st.lists(st.integers(1, 20), min_size=outputs, max_size=outputs)
    weights = np.array(draw(st.lists(rows, min_size=values, max_size=values)), dtype=np.float64)
    table: Floats = weights / weights.sum(axis=1, keepdims=True)
    return table


@st.composite
def surveys(draw: st.DrawFn, mechanisms: int = 2, most_outputs: int = 3, most_users: int = 8) -> Survey:
    """Draw the local privacy model: some users, each with some outputs of any of the mechanisms."""
    values = draw(st.integers(2, 4))
    tables = [draw(stochastic(values)) for _ in range(mechanisms)]
    domain = hb.Integers(0, values - 1)
    built = [hb.Matrix(domain, list(range(table.shape[1])), table) for table in tables]
    pair = st.sampled_from([(which, z) for which, table in enumerate(tables) for z in range(table.shape[1])])
    users = draw(st.lists(st.lists(pair, min_size=1, max_size=most_outputs), min_size=1, max_size=most_users))
    g = np.array([[math.prod(tables[which][x, z] for which, z in user) for user in users] for x in range(values)])
    return Survey(hb.Reports.from_users([[(built[which], z) for which, z in user] for user in users]), g)


def distributions(values: int) -> st.SearchStrategy[Floats]:
    """Full support, as the paper's Algorithm 1 wants it."""
    weights = st.lists(st.integers(1, 30), min_size=values, max_size=values)
    return weights.map(lambda entries: np.array(entries, dtype=np.float64) / sum(entries))


def posterior(theta: Floats, g: Floats) -> Floats:
    """Return P(X^i = x | Z^i = z^i; theta), values by users."""
    joint = theta[:, None] * g
    shares: Floats = joint / joint.sum(axis=0)
    return shares


def q_function(theta: Floats, given: Floats, g: Floats) -> float:
    """Return Q(theta | given) as in thm:estep, with 0 log 0 = 0."""
    weights = posterior(given, g)
    return float(xlogy(weights.sum(axis=1), theta).sum() + xlogy(weights, g).sum())


def h_function(theta: Floats, given: Floats, g: Floats) -> float:
    """Return H(theta | given), eq:H, summed over the independent users."""
    return float(-xlogy(posterior(given, g), posterior(theta, g)).sum())


def algorithm_one(theta: Floats, g: Floats) -> Floats:
    """Return one update of Algorithm 1, user by user."""
    total = np.zeros(theta.size)
    for column in g.T:
        total += theta * column / sum(theta[u] * column[u] for u in range(theta.size))
    updated: Floats = total / g.shape[1]
    return updated


# -- the likelihood, Q and H (sec:em, thm:estep, thm:mstep) ------------------------------------------------


@drawn
@given(surveys(), st.data())
def test_log_likelihood(survey: Survey, data: st.DataObject) -> None:
    """eq:L_lpm, with g_xi the product over user i's outputs; and L <= 0, outputs being discrete (sec:em)."""
    theta = data.draw(distributions(survey.values))
    log_likelihood = hb.log_likelihood(survey.reports, theta)
    assert log_likelihood == pytest.approx(sum(math.log(theta @ column) for column in survey.g.T), abs=1e-10)
    assert log_likelihood <= np.log(survey.g.max(axis=0)).sum() + 1e-10
    assert log_likelihood <= 0


@drawn
@given(surveys(most_users=3), st.data())
def test_e_step(survey: Survey, data: st.DataObject) -> None:
    """thm:estep against eq:Q, the sum over all hidden vectors of inputs."""
    theta, given = (data.draw(distributions(survey.values)) for _ in range(2))
    weights = posterior(given, survey.g)
    by_definition = 0.0
    for hidden in itertools.product(range(survey.values), repeat=survey.users):
        chance = math.prod(weights[x, i] for i, x in enumerate(hidden))
        by_definition += chance * sum(math.log(theta[x] * survey.g[x, i]) for i, x in enumerate(hidden))
    assert by_definition == pytest.approx(q_function(theta, given, survey.g), abs=1e-9)


@drawn
@given(surveys(), st.data())
def test_likelihood_is_q_plus_h(survey: Survey, data: st.DataObject) -> None:
    """eq:LQH, Gibbs' inequality for H, and eq:dQdL: L gains at least what Q gains."""
    theta, given = (data.draw(distributions(survey.values)) for _ in range(2))
    g = survey.g
    here, there = (hb.log_likelihood(survey.reports, each) for each in (theta, given))
    assert here == pytest.approx(q_function(theta, given, g) + h_function(theta, given, g), abs=1e-9)
    assert h_function(theta, given, g) >= h_function(given, given, g) - 1e-9
    assert here - there >= q_function(theta, given, g) - q_function(given, given, g) - 1e-9


@drawn
@given(surveys(), st.data())
def test_m_step(survey: Survey, data: st.DataObject) -> None:
    """thm:mstep: hubbub's update maximises Q(. | theta), and is the mean of the posteriors."""
    theta, other = (data.draw(distributions(survey.values)) for _ in range(2))
    updated = em_step(Likelihood.of(survey.reports).at(theta)).theta
    assert updated == pytest.approx(posterior(theta, survey.g).mean(axis=1), abs=1e-12)
    assert q_function(updated, theta, survey.g) >= q_function(other, theta, survey.g) - 1e-9


@drawn
@given(surveys(), st.data())
def test_likelihood_is_concave(survey: Survey, data: st.DataObject) -> None:
    """lemma:convexityLPM, and the heart of thm:mlunique: strictly so unless both give the outputs equal chances."""
    theta, phi = (data.draw(distributions(survey.values)) for _ in range(2))
    share = data.draw(st.floats(0.1, 0.9))
    middle = hb.log_likelihood(survey.reports, share * theta + (1 - share) * phi)
    chord = share * hb.log_likelihood(survey.reports, theta) + (1 - share) * hb.log_likelihood(survey.reports, phi)
    assert middle >= chord - 1e-10
    if np.abs(np.log((theta @ survey.g) / (phi @ survey.g))).max() > 0.05:
        assert middle > chord + 1e-6


# -- the update (alg:estimation and its special cases) -----------------------------------------------------


@drawn
@given(surveys(mechanisms=1, most_outputs=1, most_users=20), st.data())
def test_update_with_one_mechanism(survey: Survey, data: st.DataObject) -> None:
    """eq:ibu1 and eq:pre-ibu: summing over distinct outputs with their shares q is summing over users."""
    theta = data.draw(distributions(survey.values))
    columns, counts = np.unique(survey.g, axis=1, return_counts=True)
    shares = counts / survey.users
    grouped = [
        sum(share * theta[x] * column[x] / (theta @ column) for share, column in zip(shares, columns.T, strict=True))
        for x in range(survey.values)
    ]
    updated = em_step(Likelihood.of(survey.reports).at(theta)).theta
    assert updated == pytest.approx(algorithm_one(theta, survey.g), abs=1e-12)
    assert updated == pytest.approx(grouped, abs=1e-12)
    assert survey.reports.weights.size <= 4  # users with equal outputs were merged


@drawn
@given(surveys(mechanisms=3, most_outputs=1, most_users=20), st.data())
def test_update_with_a_mechanism_for_each_user(survey: Survey, data: st.DataObject) -> None:
    """eq:Murakami: one output each, mechanisms differ."""
    theta = data.draw(distributions(survey.values))
    updated = em_step(Likelihood.of(survey.reports).at(theta)).theta
    assert updated == pytest.approx(algorithm_one(theta, survey.g), abs=1e-12)


@drawn
@given(surveys(mechanisms=2, most_outputs=4, most_users=20), st.data())
def test_update_with_several_outputs_for_each_user(survey: Survey, data: st.DataObject) -> None:
    """alg:estimation in full, and one run of hubbub's "ibu" against it."""
    theta = data.draw(distributions(survey.values))
    updated = em_step(Likelihood.of(survey.reports).at(theta)).theta
    assert updated == pytest.approx(algorithm_one(theta, survey.g), abs=1e-12)

    path = hb.estimate(survey.reports, "ibu", start=theta, delta=0.01, history=True)
    expected, change = theta, math.inf
    while change >= 0.01:
        before = np.log(expected @ survey.g).sum()
        expected = algorithm_one(expected, survey.g)
        change = abs(np.log(expected @ survey.g).sum() - before)
    assert path.probabilities == pytest.approx(expected, abs=1e-9)


# -- convergence (thm:alg_conv) ----------------------------------------------------------------------------


@examples(20)
@given(surveys(), st.data())
def test_convergence_to_the_maximum(survey: Survey, data: st.DataObject) -> None:
    """thm:alg_conv: L rises monotonically to the same maximum from every full-support start, at a known rate."""
    best = hb.estimate(survey.reports, "mle", tol=1e-8)
    steps = 600
    for _ in range(2):
        start = data.draw(distributions(survey.values))
        estimate = hb.estimate(survey.reports, "ibu", start=start, delta=1e-300, max_iter=steps, history=True)
        assert estimate.history is not None
        path = estimate.history.log_likelihood
        assert (np.diff(path) >= -1e-12 * survey.users).all()
        assert path[-1] <= best.log_likelihood + 1e-7 * survey.users
        assert estimate.gap < 0.02
        # The sum over t of what is missing is at most n KL(best || start): see the next test.
        budget = survey.users * hb.kl_divergence(best.probabilities, start)
        missing = best.log_likelihood - path
        assert missing[:-1].sum() <= budget + 1e-4
        assert missing[-1] <= budget / max(1, path.size - 1) + 1e-4


@drawn
@given(surveys(), st.data())
def test_each_step_comes_nearer_to_every_maximum(survey: Survey, data: st.DataObject) -> None:
    """Repair of thm:alg_conv: KL(best || theta^t) falls by at least (L(best) - L(theta^t)) / n in each step."""
    best = hb.estimate(survey.reports, "mle", tol=1e-10)
    theta = data.draw(distributions(survey.values))
    for _ in range(5):
        updated = em_step(Likelihood.of(survey.reports).at(theta)).theta
        gain = hb.kl_divergence(best.probabilities, theta) - hb.kl_divergence(best.probabilities, updated)
        missing = best.log_likelihood - hb.log_likelihood(survey.reports, theta)
        assert gain >= missing / survey.users - 1e-5
        theta = updated


@drawn
@given(surveys(), st.data())
def test_derivatives_of_l_and_q_agree_inside(survey: Survey, data: st.DataObject) -> None:
    """prop:LQ-derivatives, at points with full support: n D_x = psi_x / theta_x."""
    theta = data.draw(distributions(survey.values))
    slope = survey.users * Likelihood.of(survey.reports).at(theta).gradient
    assert slope == pytest.approx(posterior(theta, survey.g).sum(axis=1) / theta, rel=1e-9)


# 3-RR with epsilon = log 2 and observations 1, 2, 2, 3 (eq:stoch2): columns of G for the four users.
BORDER = Survey(
    hb.Reports.from_outputs(hb.RandomizedResponse(hb.Integers(1, 3), math.log(2)), [1, 2, 2, 3]),
    np.array([[2, 1, 1, 1], [1, 2, 2, 1], [1, 1, 1, 2]]) / 4,
)
CORNER, ACROSS = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])


def test_derivatives_of_l_and_q_differ_on_the_border() -> None:
    """Erratum to prop:LQ-derivatives: on the way from (1,0,0) to (0,1,0), dL = 3/2 but dQ = -n = -4."""
    step = 1e-7
    moved = (1 - step) * CORNER + step * ACROSS
    rise = hb.log_likelihood(BORDER.reports, moved) - hb.log_likelihood(BORDER.reports, CORNER)
    assert rise / step == pytest.approx(1.5, abs=1e-4)
    fall = q_function(moved, CORNER, BORDER.g) - q_function(CORNER, CORNER, BORDER.g)
    assert fall / step == pytest.approx(-4, abs=1e-4)


def test_a_corner_is_a_fixed_point_without_being_a_maximum() -> None:
    """Erratum to the proof of thm:conv:em: L need not rise outside Gamma, so full support cannot be left out."""
    corner = Likelihood.of(BORDER.reports).at(CORNER)
    assert em_step(corner).theta.tolist() == CORNER.tolist()
    assert math.isfinite(corner.log_likelihood)
    assert corner.gap > 0.1


def test_q_is_not_continuous_on_the_border() -> None:
    """Erratum to the proof of thm:alg_conv: two ways into the same corner, two limits of Q."""
    at_corner = q_function(CORNER, CORNER, BORDER.g)
    for size in (0.1, 0.01, 0.002):
        given = (1 - size) * CORNER + size * ACROSS
        tiny = math.exp(-1 / size)
        theta = (1 - tiny) * CORNER + tiny * ACROSS
        # psi_2(given) log theta_2 stays near -(sum_i g_2i / g_1i) = -(1/2 + 2 + 2 + 1).
        assert q_function(theta, given, BORDER.g) - at_corner < -2
    assert q_function(theta, given, BORDER.g) - at_corner == pytest.approx(-5.5, abs=0.1)


def test_the_delta_rule_does_not_bound_what_is_missing() -> None:
    """alg:estimation stops when L changes little, which is not being near the maximum."""
    mechanism = hb.TruncatedGeometric(hb.Integers(0, 99), 0.1)
    rng = np.random.default_rng(1)
    reports = hb.Reports.from_outputs(mechanism, mechanism.privatize(rng.binomial(99, 0.5, 100_000), rng=rng))
    stopped = hb.estimate(reports, "ibu", delta=0.1)
    assert stopped.converged
    assert hb.estimate(reports, "mle", tol=1e-4).log_likelihood - stopped.log_likelihood > 10 * 0.1
