"""Intervals that hold whatever a share of the users sent: against another solver, brute force and the formulas."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

import hubbub as hb
from hubbub.channels import DenseChannel
from hubbub.channels.contaminated import ContaminatedChannel
from hubbub.intervals.contaminated_region import ContaminatedRegion, Explained, _listed
from hubbub.intervals.interval_endpoints import LikelihoodRegion
from hubbub.intervals.robust_scores import RobustScores
from hubbub.likelihood import Likelihood
from hubbub.solvers.contaminated_system import ContaminatedSystem
from hubbub.solvers.grouped_maximum import grouped_gap, grouped_maximum
from hubbub.solvers.groups import Groups
from hubbub.solvers.profile_extremes import Region

Floats = NDArray[np.float64]

NOTHING = Explained(0.0, 0.0)  # explained by fakes: for tests of the region itself
SIX = hb.Integers(0, 5)


class Problem:
    """A small study with fakes: a drawn, non-symmetric channel, two mechanisms side by side or one."""

    def __init__(self, seed: int, share: float = 0.05) -> None:
        rng = np.random.default_rng(seed)
        values, sizes = int(rng.integers(3, 5)), [4, 3][: 1 + seed % 2]
        tables = [rng.dirichlet(np.ones(size), size=values) for size in sizes]
        self.matrix = np.concatenate(tables, axis=1)
        self.groups = Groups((0, *(values + np.cumsum([0, *sizes[:-1]])).tolist()))
        self.channel = ContaminatedChannel(DenseChannel(self.matrix, np.zeros(sum(sizes))), np.full(sum(sizes), share))
        truth = rng.dirichlet(np.ones(values))
        counts = [
            rng.multinomial(400, (1 - share) * truth @ table + share * np.eye(len(table[0]))[0]) for table in tables
        ]
        self.likelihood = Likelihood(self.channel, np.concatenate(counts).astype(np.float64), 400 * len(sizes))
        self.weights = np.concatenate([rng.normal(size=values), np.zeros(sum(sizes))])
        self.system = ContaminatedSystem(self.channel)
        self.top = grouped_maximum(self.likelihood, self.system, self.groups, 1e-10)

    def mean(self, both: Floats) -> float:
        return float(self.likelihood.shares @ np.log(both @ self.channel.dense()))

    def by_another_solver(self, objective: Any, gradient: Any, slack: float | None = None) -> Floats:
        """Minimise over the same distributions by sequential quadratic programming."""
        dense, q = self.channel.dense(), self.likelihood.shares
        sums = self.groups.borders(self.channel.values)
        limits: list[dict[str, Any]] = [{"type": "eq", "fun": lambda both: sums @ both - 1.0, "jac": lambda _: sums}]
        if slack is not None:
            bound = self.mean(self.top.theta) - slack
            limits.append(
                {
                    "type": "ineq",
                    "fun": lambda both: q @ np.log(np.maximum(both @ dense, 1e-12)) - bound,
                    "jac": lambda both: dense @ (q / np.maximum(both @ dense, 1e-12)),
                }
            )
        start = np.asarray(self.top.theta)
        options = {"maxiter": 1_000, "ftol": 1e-13}
        any_minimize: Any = minimize  # whose types are too narrow for these constraints
        result = any_minimize(
            objective, start, jac=gradient, bounds=[(0, 1)] * start.size, constraints=limits, options=options,
            method="SLSQP",
        )  # fmt: skip
        return np.asarray(np.maximum(result.x, 0.0))


# -- the solver -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_the_channel_and_its_system_are_those_of_the_matrix(seed: int) -> None:
    problem, rng = Problem(seed), np.random.default_rng(seed)
    dense, channel = problem.channel.dense(), problem.channel
    both, ratio = rng.random(channel.values), rng.random(channel.patterns)
    assert channel.forward(both) == pytest.approx(both @ dense)
    assert channel.backward(ratio) == pytest.approx(dense @ ratio)
    assert channel.squares(ratio) == pytest.approx(dense**2 @ ratio)
    barrier = rng.random(channel.values) ** 8  # down to 1e-8
    step = problem.system.factor(ratio, barrier)(both)
    assert (dense * ratio) @ (dense.T @ step) + barrier * step == pytest.approx(both, rel=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_the_maximum_is_that_of_another_solver(seed: int) -> None:
    problem = Problem(seed)
    dense, q = problem.channel.dense(), problem.likelihood.shares
    other = problem.by_another_solver(
        lambda both: -q @ np.log(np.maximum(both @ dense, 1e-12)), lambda both: -dense @ (q / (both @ dense))
    )
    assert grouped_gap(problem.top, problem.groups) <= 1e-9
    assert problem.mean(problem.top.theta) >= problem.mean(problem.groups.normalised(other)) - 1e-9
    assert problem.groups.sums(problem.top.theta) == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(8))
def test_the_extremes_are_those_of_another_solver(seed: int) -> None:
    """No likely point of another solver is beyond the limit, and the best one comes close to it."""
    problem, slack = Problem(seed), 3.84 / 800
    region = Region(problem.top, problem.system, problem.groups)
    for weights in (problem.weights, -problem.weights):
        extreme = region.least(weights, slack)
        other = problem.groups.normalised(
            problem.by_another_solver(lambda both, w=weights: w @ both, lambda _, w=weights: w, slack)
        )
        lacking = problem.mean(problem.top.theta) - slack - problem.mean(other)
        own = float(weights @ problem.top.theta)
        if lacking <= 1e-9:  # otherwise the other solver has left the region
            assert weights @ other >= extreme.limit - 1e-6 * (own - extreme.limit)
            assert weights @ other - extreme.limit <= 0.01 * (own - extreme.limit) + 1e-9
        assert extreme.attained >= extreme.limit - 1e-3 * (own - extreme.limit)  # it may lack a little likelihood


@pytest.mark.parametrize("seed", [1, 4])
def test_the_region_grows_with_the_share(seed: int) -> None:
    """Fakes may imitate honest users: at the same height of the likelihood, more of them only leave more open."""
    limits = []
    bound = None
    for share in (1e-9, 0.01, 0.03, 0.1):
        problem = Problem(seed, 0.05)
        channel = ContaminatedChannel(problem.channel.honest, np.full(problem.channel.patterns, share))
        likelihood = Likelihood(channel, problem.likelihood.weights, problem.likelihood.users)
        system = ContaminatedSystem(channel)
        top = grouped_maximum(likelihood, system, problem.groups, 1e-10)
        bound = top.log_likelihood / likelihood.total - 0.01 if bound is None else bound
        slack = top.log_likelihood / likelihood.total - bound
        limits.append(Region(top, system, problem.groups).least(problem.weights, slack).limit)
    assert limits == sorted(limits, reverse=True)
    assert limits[-1] < limits[0] - 0.01


# -- intervals ------------------------------------------------------------------------------------------


def attacked(
    mechanism: hb.Mechanism, truth: Floats, users: int, share: float, output: int, seed: int = 0
) -> hb.Reports:
    law = (1 - share) * truth @ mechanism.matrix()
    law[output] += share
    return hb.Reports.from_counts(mechanism, np.random.default_rng(seed).multinomial(users, law / law.sum()))


def test_the_trial_of_k_rr() -> None:
    """20 values, epsilon 1, 100,000 users, 1% of them fakes on one value, whose true share is 0.0048."""
    mechanism = hb.RandomizedResponse(hb.Integers(0, 19), 1.0)
    truth = np.full(20, (1 - 0.0048) / 19)
    truth[3] = 0.0048
    reports = attacked(mechanism, truth, 100_000, 0.01, 3)
    plain, robust = hb.interval(reports, 3), hb.interval(reports, 3, fakes=0.01)
    assert plain.low > 0.09  # the truth is far outside
    assert robust.low <= 0.0048
    assert plain.high < robust.high < plain.high + 0.02
    assert (plain.fakes, robust.fakes) == (0.0, 0.01)
    assert "1% of the users are fake" in robust.note


def test_no_fakes_is_the_plain_interval() -> None:
    line = hb.TruncatedGeometric(SIX, 1.0)
    reports = attacked(line, np.array([0.3, 0.3, 0.2, 0.1, 0.1, 0.0]), 2_000, 0.0, 0)
    assert hb.interval(reports, 2, fakes=0.0) == hb.interval(reports, 2)
    with_none, without = hb.band(reports, fakes=0, values=[2]), hb.band(reports, values=[2])
    assert (with_none.low[2], with_none.high[2]) == (without.low[2], without.high[2])


@pytest.mark.slow
def test_more_fakes_leave_more_open() -> None:
    """Intervals by scores grow with the share; those by the likelihood always hold the plain one."""
    truth = np.array([0.3, 0.3, 0.2, 0.1, 0.1, 0.0])
    coin = attacked(hb.RandomizedResponse(SIX, 1.0), truth, 5_000, 0.02, 5)
    intervals = [hb.interval(coin, [2, 5], fakes=share) for share in (0.0, 1e-4, 0.01, 0.05, 0.2)]
    for narrow, wide in itertools.pairwise(intervals):
        assert wide.low <= narrow.low
        assert wide.high >= narrow.high
    line = attacked(hb.TruncatedGeometric(SIX, 1.0), truth, 5_000, 0.02, 5)
    plain, robust = hb.interval(line, 5), hb.interval(line, 5, fakes=0.02)
    assert plain.low > 0.0
    assert robust.low == pytest.approx(0.0, abs=1e-6)  # the truth
    assert robust.high >= plain.high


def test_a_band_is_its_intervals() -> None:
    reports = attacked(hb.TruncatedGeometric(SIX, 1.0), np.full(6, 1 / 6), 3_000, 0.02, 0)
    band, interval = hb.band(reports, fakes=0.02, values=[0, 3]), hb.interval(reports, 3, fakes=0.02)
    assert (interval.low, interval.high) == pytest.approx((band.low[3], band.high[3]), abs=1e-9)
    assert band.fakes == 0.02
    together = hb.band(reports, fakes=0.02, values=[3], simultaneous=True)
    assert together.low[3] <= band.low[3]
    assert together.high[3] >= band.high[3]
    everything = hb.interval(reports, list(range(6)), fakes=0.02)
    assert (everything.low, everything.high) == pytest.approx((1.0, 1.0))


# -- scores ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [hb.Rappor, hb.OptimizedUnary])
def test_the_formula_of_one_value(kind: Any) -> None:
    mechanism = kind(hb.Integers(0, 29), 2.0)
    values = np.random.default_rng(1).integers(0, 10, 4_000)
    reports = hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=2))
    true, other = mechanism.support
    theta, share = np.full(30, 1 / 30), 0.01
    low, high = RobustScores.of(reports, theta).bounds(np.eye(30)[4], 0.95, share)
    held = float(mechanism.support_counts(reports.blocks[0].codes, reports.weights)[4]) / 4_000  # type: ignore[attr-defined]
    predicted = other + (true - other) / 30
    error = 1.959964 * np.sqrt(predicted * (1 - predicted) / 4_000) / (true - other)
    value, most, least = (held - other) / (true - other), (1 - other) / (true - other), -other / (true - other)
    assert low == pytest.approx(max(0.0, (value - error - share * most) / (1 - share)), abs=1e-6)
    assert high == pytest.approx((value + error - share * least) / (1 - share), abs=1e-6)


@pytest.mark.parametrize(
    "mechanism",
    [hb.RandomizedResponse(SIX, 1.0), hb.Rappor(SIX, 1.0), hb.SubsetSelection(SIX, 1.0, 2)],
    ids=lambda each: type(each).__name__,
)
def test_scores_are_unbiased_and_bounded(mechanism: hb.Mechanism) -> None:
    """Over all outputs: the score's mean is the statistic, and its extremes and variance are those that are used."""
    rng = np.random.default_rng(3)
    weights, theta, tilt = rng.normal(size=6), rng.dirichlet(np.ones(6)), 0.3
    assert isinstance(mechanism, hb.RandomizedResponse | hb.Rappor | hb.SubsetSelection)
    codes = mechanism.output_space.encode(mechanism.outputs)
    score = RobustScores((), theta, None)._score(mechanism, weights, tilt)
    one_each = np.eye(len(codes))
    of_outputs = np.array([mechanism.support_counts(codes, each) @ score.slope for each in one_each]) + score.constant
    law = np.exp(mechanism.log_columns(codes))
    assert law @ of_outputs == pytest.approx(weights)
    assert (of_outputs.min(), of_outputs.max()) == pytest.approx((score.low, score.high))
    assert theta @ law @ of_outputs**2 - (weights @ theta) ** 2 == pytest.approx(score.variance)


def test_no_set_of_fakes_gets_past_the_bounds() -> None:
    """Whatever fakes send, and though they see what everybody else sent: a bound that the worst of them reaches."""
    mechanism, users, fakes = hb.Rappor(SIX, 1.0), 2_000, 40
    values = np.random.default_rng(4).integers(0, 3, users - fakes)
    honest = hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=5))
    weights, theta = np.array([1.0, 1.0, 0, 0, 0, 0]), np.array([1, 1, 1, 0, 0, 0]) / 3
    reached = [
        RobustScores.of(honest + hb.Reports.from_outputs(mechanism, [output] * fakes), theta).bounds(
            weights, 0.95, 0.02
        )
        for output in ("".join(bits) for bits in itertools.product("01", repeat=6))
    ]
    without = RobustScores.of(honest, theta).bounds(weights, 0.95, 1e-12)
    slip = 0.02 * (without.high - without.low)  # the error of all users is a little less than that of honest ones
    assert max(bound.low for bound in reached) <= without.low + slip
    assert min(bound.high for bound in reached) >= without.high - slip
    assert max(bound.low for bound in reached) >= without.low - 2 * slip  # not wider than needed


def test_users_with_several_outputs_and_mechanisms() -> None:
    weak, strong = hb.RandomizedResponse(SIX, 0.5), hb.Rappor(SIX, 3.0)
    values = np.random.default_rng(6).choice(6, p=[0.4, 0.3, 0.1, 0.1, 0.1, 0.0], size=3_000)
    singles = hb.Reports.from_outputs(weak, weak.privatize(values[:1_000], rng=1))
    sent = [strong.privatize(values[1_000:], rng=2), weak.privatize(values[1_000:], rng=3)]
    people = [[(strong, a), (weak, b)] for a, b in zip(*sent, strict=True)]
    reports = singles + hb.Reports.from_users(people)
    interval = hb.interval(reports, 0, fakes=0.01)
    assert interval.low <= 0.4 <= interval.high
    assert interval.high - interval.low < hb.interval(singles, 0, fakes=0.01).high  # the others help


def test_sums_of_bits_have_the_bounds_of_their_reports() -> None:
    mechanism = hb.Rappor(SIX, 1.0)
    bits = mechanism.privatize(np.random.default_rng(7).integers(0, 3, 1_000), rng=8)
    ones = np.unpackbits(bits, axis=1, count=6).sum(axis=0).astype(np.int64)
    theta, weights = np.full(6, 1 / 6), np.eye(6)[1]
    whole = RobustScores.of(hb.Reports.from_outputs(mechanism, bits), theta).bounds(weights, 0.95, 0.05)
    sums = RobustScores.of(hb.Reports.from_bit_counts(mechanism, ones, 1_000), theta).bounds(weights, 0.95, 0.05)
    assert whole == pytest.approx(sums)


# -- the region of reports ------------------------------------------------------------------------------


def test_rare_outputs_are_pooled() -> None:
    mechanism = hb.Geometric(hb.Integers(0, 19), 0.3)
    values = np.random.default_rng(9).binomial(19, 0.4, 800)
    reports = hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=10))
    theta = LikelihoodRegion.of(reports).top.theta
    (sent,), note = _listed(reports, theta, 0.01)
    assert sent.counts.sum() == 800
    assert sent.counts.size < reports.weights.size
    expected = 800 * sent.channel.forward(theta) * np.exp(sent.channel.log_scale)
    assert expected.min() >= 5.0
    assert note == ""


def test_one_output_of_each_user() -> None:
    mechanism = hb.TruncatedGeometric(SIX, 1.0)
    values = np.random.default_rng(11).integers(0, 4, 1_500)
    sent = [mechanism.privatize(values, rng=seed) for seed in (1, 2)]
    pairs = hb.Reports.from_users([[(mechanism, a), (mechanism, b)] for a, b in zip(*sent, strict=True)])
    singles = hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=3))
    (listed,), note = _listed(pairs + singles, np.full(6, 1 / 6), 0.01)
    assert listed.counts.sum() == 3_000
    assert "1,500 users who sent several" in note
    expected = singles.weights + np.bincount(np.concatenate(sent), minlength=6) / 2
    assert np.abs(listed.counts - expected).max() < 60  # drawn from what they sent: standard deviations of 10
    assert not np.array_equal(listed.counts, expected)


def test_mechanisms_that_fakes_could_drown_are_left_out() -> None:
    line, other = hb.TruncatedGeometric(SIX, 1.0), hb.TruncatedGeometric(SIX, 0.5)
    truth = np.full(6, 1 / 6)
    reports = attacked(line, truth, 5_000, 0.0, 0) + attacked(other, truth, 60, 0.0, 0)
    region = ContaminatedRegion.of(reports, LikelihoodRegion.of(reports).top, 0.02, NOTHING)
    assert "60 users" in region.note
    assert region.top.likelihood.total == 5_000
    few = ContaminatedRegion.of(reports, LikelihoodRegion.of(reports).top, 0.001, NOTHING)
    channel = few.top.likelihood.channel
    assert isinstance(channel, ContaminatedChannel)
    shares = np.unique(np.round(1 - channel.honest_shares, 6))
    assert shares == pytest.approx([0.001 * 5_060 / 5_000, 0.001 * 5_060 / 60], rel=1e-3)


def test_cutoffs() -> None:
    """Without anything explained by fakes, the cutoff is the plain one; it grows with what they explain."""
    reports = attacked(hb.TruncatedGeometric(SIX, 1.0), np.full(6, 1 / 6), 3_000, 0.02, 0)
    plain = LikelihoodRegion.of(reports)
    nothing, some = (
        ContaminatedRegion.of(reports, plain.top, 0.02, explained) for explained in (NOTHING, Explained(4.0, 8.0))
    )
    assert nothing.cutoff(3.8415, 0.95) == pytest.approx(3.8415, rel=1e-4)
    assert nothing.cutoff(7.0, 0.95) == pytest.approx(7.0, rel=1e-4)
    assert some.cutoff(3.8415, 0.95) == pytest.approx(11.07, rel=1e-3)  # of chi-square with five degrees of freedom
    measured = ContaminatedRegion.of(reports, plain.top, 0.02).explained
    assert 0.0 < measured.mean < 10.0


def test_too_many_values_to_list() -> None:
    mechanism = hb.TruncatedGeometric(hb.Integers(0, 4_999), 0.1)
    reports = hb.Reports.from_outputs(mechanism, np.arange(0, 5_000).repeat(2))
    with pytest.raises(hb.EstimateError) as caught:
        hb.interval(reports, 7, fakes=0.01, simultaneous=True)
    assert caught.value.where == "interval(fakes=)"


@pytest.mark.slow
@pytest.mark.parametrize("target", [7, 0])
def test_coverage_of_an_attacked_line(target: int) -> None:
    """A hump between zeros, 1% of 10,000 users fake, all on one value: at least 94 of 100 intervals hold the truth."""
    mechanism, line = hb.TruncatedGeometric(hb.Integers(0, 19), 0.5), np.arange(20)
    hump = np.exp(-0.5 * ((line - 7) / 2.0) ** 2)
    hump[hump < 0.05] = 0.0
    hump /= hump.sum()
    held = 0
    for seed in range(100):
        interval = hb.interval(attacked(mechanism, hump, 10_000, 0.01, target, seed), target, fakes=0.01)
        held += interval.low - 1e-9 <= hump[target] <= interval.high
    assert held >= 94


def test_the_note_says_what_the_ends_come_from() -> None:
    """Scores have no cutoff, the likelihood's is raised; only outputs that stand for several values make sets worse."""
    counts = {value: 400 + 20 * value for value in range(6)}
    oracle = hb.Reports.from_counts(hb.RandomizedResponse(SIX, 2.0), counts)
    assert "the chi-square cutoff applies" in hb.interval(oracle, 2).note
    robust = hb.interval(oracle, 2, fakes=0.01)
    scored = "whatever they sent: a linear estimate with its normal error, and the most that fakes could move it."
    assert robust.note == f"Holds if up to 1% of the users are fake, {scored}"
    assert robust.cutoffs is None
    assert hb.interval(oracle, [2, 3], fakes=0.01).note == robust.note
    together = hb.interval(oracle, 2, fakes=0.01, simultaneous=True)
    assert together.note == f"Holds for all 6 values at once (Bonferroni). {robust.note}"
    bits = hb.OptimizedUnary(SIX, 2.0)
    unary = hb.Reports.from_outputs(bits, bits.privatize(np.repeat(np.arange(6), 200), rng=1))
    assert (
        hb.interval(unary, [2, 3], fakes=0.01).note == f"{robust.note} What fakes can do grows with the size of a set."
    )
    assert "grows" not in hb.interval(unary, 2, fakes=0.01).note
    line = hb.Reports.from_counts(hb.TruncatedGeometric(SIX, 2.0), counts)
    noise = hb.interval(line, 2, fakes=0.01)
    assert noise.note.endswith(
        "whatever they sent: the cutoff is raised by as much of the noise as fakes could explain."
    )
    plain = hb.interval(line, 2).cutoffs
    assert noise.cutoffs is not None
    assert plain is not None
    assert np.all(np.array(noise.cutoffs) > np.array(plain))
