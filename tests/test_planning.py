"""Simulated studies of a plan: their distribution, the precision of errors, the widths of intervals."""

import math

import numpy as np
import pytest
from scipy import stats

import hubbub as hb
from hubbub.planning.candidates import Candidate, candidates_from
from hubbub.planning.expected_errors import interval_widths
from hubbub.planning.pattern_simulation import PatternTable, PatternTables, split_users
from hubbub.planning.repeated_studies import (
    FIRST_RUNS,
    PRECISION,
    Prediction,
    SimulatedStudies,
    StudyErrors,
    error_quantile,
)
from hubbub.planning.simulator import Simulator
from hubbub.planning.support_simulation import draw_support
from hubbub.planning.truths import AssumedTruth, truths_from
from hubbub.planning.user_simulation import draw_reports
from hubbub.solvers import invert

TEN = hb.Integers(0, 9)
TOWN = hb.Grid(5, 4, cell=0.5)
SKEW = np.array([0.24, 0.2, 0.16, 0.12, 0.08, 0.06, 0.05, 0.04, 0.03, 0.02])
LEVEL = 1e-4  # of the statistical tests here: all seeds are fixed


def quiet(_: float) -> None:
    pass


def candidate_of(mechanism: object, reports: int = 1) -> Candidate:
    (candidate,) = candidates_from(mechanism, reports_per_user=reports)
    return candidate


def study(
    candidate: Candidate, method: str, truth: np.ndarray = SKEW, *, runs: int | None = None, seed: int = 0
) -> SimulatedStudies:
    return SimulatedStudies(Simulator(candidate, method), AssumedTruth("given", truth), seed, distance="tv", runs=runs)


# -- the law of what is drawn --------------------------------------------------------------------------------


@pytest.mark.parametrize("reports", [1, 2, 3])
def test_patterns_of_several_reports_have_the_likelihood_of_users(reports: int) -> None:
    mechanism = hb.Exponential(hb.Integers(0, 3), 0.7)
    table = PatternTable.of(mechanism, reports)
    assert table is not None
    logs = table.channel.log_dense()
    assert np.allclose(np.exp(logs).sum(axis=1), 1.0)
    counts = np.arange(1, logs.shape[1] + 1)
    block = table.block(counts)
    assert block is not None
    sent = table.members if table.members is not None else np.arange(4)[:, None]
    users = [
        [(mechanism, int(item)) for item in row] for row, count in zip(sent, counts, strict=True) for _ in range(count)
    ]
    assert hb.Reports(mechanism.domain, (block,)) == hb.Reports.from_users(users)
    # The likelihoods differ by the orders in which reports can come, which say nothing of the value.
    theta = np.array([0.4, 0.3, 0.2, 0.1])
    other = np.array([0.1, 0.1, 0.4, 0.4])
    reports_ = hb.Reports.from_users(users)
    change = hb.log_likelihood(reports_, theta) - hb.log_likelihood(reports_, other)
    ours = counts @ (np.log(theta @ np.exp(logs)) - np.log(other @ np.exp(logs)))
    assert ours == pytest.approx(change)


def test_users_of_a_mixture_are_split_without_a_loss() -> None:
    assert split_users(10, [0.5, 0.25, 0.25]) == [5, 3, 2]
    assert split_users(7, [1 / 3, 1 / 3, 1 / 3]) == [3, 2, 2]
    assert split_users(1_000_000_007, [0.1] * 10).count(100_000_001) == 7


@pytest.mark.parametrize("reports", [1, 2])
def test_counts_and_users_follow_the_same_law(reports: int) -> None:
    """The mean of a log-likelihood ratio, over users drawn one by one and over counts, against its expected value."""
    parts = [(hb.RandomizedResponse(hb.Integers(0, 3), 1.0), 0.5), (hb.Rappor(hb.Integers(0, 3), 1.0), 0.5)]
    candidate, truth = candidate_of({"both": parts}, reports), np.array([0.5, 0.3, 0.15, 0.05])
    tables = PatternTables.of(candidate)
    assert tables is not None
    users, rng = 60_000, np.random.default_rng(3)
    drawn = draw_reports(candidate, users, truth, rng)
    counted = tables.reports(tables.draw(users, truth, 1, rng)[0])
    whole = tables.reports(np.ones(tables.channel.patterns, dtype=np.int64))
    expected = tables.expected(users, truth)
    assert expected.sum() == pytest.approx(users)
    order = [block.weights.size for block in whole.blocks]
    for study_reports in (drawn, counted):
        assert [block.weights.size for block in study_reports.blocks] == order  # every pattern was sent
    # Both studies have the law of the tables, so that their log-likelihood ratios scatter around the same mean.
    tilted = np.array([0.05, 0.15, 0.3, 0.5])
    fitted, away = (tables.channel.forward(theta) for theta in (truth, tilted))
    gains = np.log(fitted / away)
    shares = expected / users
    mean, deviation = shares @ gains, math.sqrt(shares @ gains**2 - (shares @ gains) ** 2)
    for study_reports in (drawn, counted):
        gain = (hb.log_likelihood(study_reports, truth) - hb.log_likelihood(study_reports, tilted)) / users
        assert abs(gain - mean) < stats.norm.isf(LEVEL / 2) * deviation / math.sqrt(users)
    planted = draw_reports(candidate, users, np.array([0.45, 0.3, 0.15, 0.1]), rng)  # five of a hundred moved
    gain = (hb.log_likelihood(planted, truth) - hb.log_likelihood(planted, tilted)) / users
    assert abs(gain - mean) > stats.norm.isf(LEVEL / 2) * deviation / math.sqrt(users)


@pytest.mark.parametrize("mechanism", [hb.OptimizedUnary(TEN, 1.0), hb.LocalHashing(TEN, 1.0)], ids=["OUE", "OLH"])
def test_support_counts_are_drawn_as_users_would(
    mechanism: hb.OptimizedUnary | hb.LocalHashing,
) -> None:
    users, runs, rng = 400, 400, np.random.default_rng(8)
    quick = draw_support(mechanism, users, SKEW, runs, rng)
    blocks = [draw_reports(candidate_of(mechanism), users, SKEW, rng).blocks[0] for _ in range(runs)]
    slow = np.stack([mechanism.support_counts(block.codes, block.weights) for block in blocks])  # type: ignore[attr-defined]
    for place in range(10):
        assert stats.ks_2samp(quick[:, place], slow[:, place]).pvalue > LEVEL
    # Also together: the total over values, whose variance would show what hangs together.
    assert stats.ks_2samp(quick.sum(axis=1), slow.sum(axis=1)).pvalue > LEVEL
    assert stats.ks_2samp(quick.sum(axis=1), slow.sum(axis=1) + 30).pvalue < LEVEL


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "method"),
    [(name, method) for name in ("k-RR", "OUE", "subsets", "noise") for method in ("ibu", "mle", "inv-p", "inv-n")]
    + [("noise", "auto")],
)
def test_batches_estimate_what_estimate_does(name: str, method: str) -> None:
    mechanism = {
        "k-RR": hb.RandomizedResponse(TEN, 1.0),
        "OUE": hb.OptimizedUnary(hb.Integers(0, 4), 1.0),
        "subsets": hb.SubsetSelection(hb.Integers(0, 5), 1.0),
        "noise": hb.TruncatedGeometric(TEN, 0.8),
    }[name]
    truth = SKEW[: len(mechanism.domain)] / SKEW[: len(mechanism.domain)].sum()
    simulator = Simulator(candidate_of(mechanism), method)
    assert simulator.tables is not None
    runs = 2 if method == "auto" else 5
    batch = simulator.batch(900, truth, runs, np.random.default_rng(1))
    counts = simulator.tables.draw(900, truth, runs, np.random.default_rng(1))
    for row, theta, squares in zip(counts, batch.thetas, batch.squares, strict=True):
        reports = simulator.tables.reports(row)
        assert np.allclose(theta, hb.estimate(reports, method).probabilities, atol=1e-6)
        assert squares == pytest.approx(float(((invert(reports) - truth) ** 2).sum()))


def test_reports_with_a_memory_are_drawn_with_it() -> None:
    candidate = candidate_of(hb.LongitudinalRappor(hb.Integers(0, 3), 3.0, 1.0), 2)
    assert PatternTables.of(candidate) is None
    users = 4_000
    reports = draw_reports(candidate, users, np.array([0.7, 0.1, 0.1, 0.1]), np.random.default_rng(4))
    assert reports.users == users
    assert reports.epsilon_per_user() == (candidate.parts[0][0].spent(2), 0.0)
    probabilities = hb.estimate(reports, "mle").probabilities
    assert abs(probabilities[0] - 0.7) < 0.1


@pytest.mark.parametrize("count", [1, 2])
def test_inversion_of_mixtures_and_several_reports_is_simulated(count: int) -> None:
    light, heavy = hb.RandomizedResponse(TEN, 2.0), hb.TruncatedGeometric(TEN, 0.5)
    (candidate,) = candidates_from([(light, 0.5), (heavy, 0.5)], reports_per_user=count)
    truth = np.arange(1.0, 11.0) / 55.0
    batch = Simulator(candidate, "norm-sub").batch(2_000, truth, 20, np.random.default_rng(3))
    assert batch.thetas.shape == (20, 10)
    assert np.abs(batch.thetas.sum(axis=1) - 1.0).max() < 1e-12
    assert np.abs(batch.thetas.mean(axis=0) - truth).max() < 0.05


def test_plain_inversion_has_no_plan() -> None:
    with pytest.raises(hb.SettingError, match="no distribution"):
        hb.plan(hb.RandomizedResponse(TEN, 1.0), users=100, method="inv")


# -- how well errors are known -------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_the_interval_of_a_quantile_holds_it(share: float) -> None:
    rng, held, studies = np.random.default_rng(6), 0, 1_000
    true = -math.log(1.0 - share)
    for _ in range(studies):
        quantile = error_quantile(rng.exponential(size=25), share)
        held += quantile.low <= true <= quantile.high
    assert held / studies > 0.95 - stats.norm.isf(LEVEL) * math.sqrt(0.95 * 0.05 / studies)
    assert held / studies < 0.995  # not so wide that it says nothing


def test_errors_of_zero_are_known_exactly() -> None:
    assert error_quantile(np.zeros(8)).relative_error == 0.0
    assert error_quantile(np.array([0.0] * 5 + [1.0] * 3)).relative_error == math.inf
    errors = StudyErrors(10, np.arange(1.0, 101.0), None, np.zeros(0))
    spread = Prediction(errors, None, 10).spread("tv")
    assert (spread.median, spread.low, spread.high, spread.mean) == (50.5, 40.0, 61.0, 50.5)
    assert spread.ninth == pytest.approx(90.1)


def test_studies_are_repeated_until_the_error_is_known() -> None:
    loose = study(candidate_of(hb.RandomizedResponse(TEN, 1.0)), "ibu")
    errors = loose.errors(1_000, quiet)
    assert error_quantile(errors.tv).relative_error <= PRECISION
    assert errors.tv.size > FIRST_RUNS
    assert loose.errors(1_000, quiet) is errors  # once is enough
    assert study(candidate_of(hb.RandomizedResponse(TEN, 1.0)), "ibu", runs=37).errors(1_000, quiet).tv.size == 37


def test_too_many_users_are_extrapolated(monkeypatch: pytest.MonkeyPatch) -> None:
    candidate = candidate_of(hb.LocalHashing(hb.Integers(0, 4), 2.0))
    truth = SKEW[:5] / SKEW[:5].sum()
    whole = study(candidate, "mle", truth, runs=40).predict(8_000, quiet)
    assert not whole.extrapolated
    monkeypatch.setattr(Simulator, "max_users", 1_000)
    some = study(candidate, "mle", truth, runs=40).predict(8_000, quiet)
    assert some.extrapolated
    assert (some.near.users, some.far and some.far.users) == (1_000, 250)
    real, guess = whole.spread("tv"), some.spread("tv")
    assert guess.low < real.median < guess.high
    assert guess.median == pytest.approx(real.median, rel=0.3)
    assert guess.high - guess.low > 1.5 * (real.high - real.low)  # its own doubt is in it


# -- settings ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("distance", ["tv", "emd"])
def test_the_worst_truth_counts_and_the_others_are_kept(distance: str) -> None:
    mechanisms = [hb.RandomizedResponse(TEN, 1.0), hb.TruncatedGeometric(TEN, 1.0)]
    plan = hb.plan(
        mechanisms, users=[300, 3_000], truth=["bell", "zipf"], method="ibu", runs=50, distance=distance, values=[0]
    )
    assert [(setting.candidate, setting.users) for setting in plan.settings] == [
        (name, users) for name in ("randomized-response", "truncated-geometric") for users in (300, 3_000)
    ]
    for setting in plan.settings:
        (other,) = setting.others
        assert {setting.truth, other.truth} == {"bell", "zipf"}
        assert plan.question.error(setting).median >= plan.question.error(other).median


def test_distances_are_those_of_the_metrics() -> None:
    for mechanism in (hb.TruncatedGeometric(TEN, 1.0), hb.PlanarGeometric(TOWN, 2.0)):
        (truth,) = truths_from("bells", mechanism.domain)
        simulator = Simulator(candidate_of(mechanism), "ibu")
        own = SimulatedStudies(simulator, truth, 0, distance="tv", runs=3)
        errors = own.errors(500, quiet)
        thetas = simulator.batch(500, truth.probabilities, 3, own.generator(500, 0)).thetas
        p = truth.probabilities
        assert np.allclose(errors.tv, [hb.total_variation(theta, p) for theta in thetas])
        assert errors.emd is not None
        assert np.allclose(errors.emd, [hb.earth_mover_distance(theta, p, mechanism.domain) for theta in thetas])


def test_auto_has_no_error_under_a_uniform_truth() -> None:
    many = hb.Categories(list(range(60)))
    (setting,) = hb.plan(hb.RandomizedResponse(many, 0.5), users=500, truth="uniform", runs=2, values=[0]).settings
    assert setting.tv.median == 0.0
    assert setting.tv.low == 0.0


def test_widths_are_those_of_real_intervals() -> None:
    mechanism, users = hb.RandomizedResponse(TEN, 3.0), 40_000
    widths = interval_widths(
        Simulator(candidate_of(mechanism), "ibu"), users, AssumedTruth("given", SKEW), 0.9, np.random.default_rng(0)
    )
    assert widths is not None
    assert widths.level == 0.9
    assert widths.values.tolist() == list(range(10))
    rng, real = np.random.default_rng(7), np.zeros(10)
    for _ in range(4):
        values = rng.choice(TEN.labels, size=users, p=SKEW)
        band = hb.band(hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng)), 0.9)
        real += (band.high - band.low) / 4
    assert np.allclose(widths.widths, real, rtol=0.05)
    drawn = interval_widths(
        Simulator(candidate_of(hb.LocalHashing(TEN, 2.0)), "ibu"), 4_000, AssumedTruth("given", SKEW), 0.9, rng
    )
    assert drawn is not None
    assert np.all(drawn.widths < 0.2)


def test_of_many_values_three_stand_for_all() -> None:
    wide = hb.Integers(0, 59)
    (truth,) = truths_from("zipf", wide)
    widths = interval_widths(
        Simulator(candidate_of(hb.TruncatedGeometric(wide, 1.0)), "ibu"), 1_000, truth, 0.95, np.random.default_rng(0)
    )
    assert widths is not None
    assert widths.values.tolist() == [0, 29, 59]


# -- progress ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", [hb.RandomizedResponse(TEN, 1.0), hb.Rappor(hb.Integers(0, 19), 1.0)])
def test_every_long_study_reports_progress(mechanism: hb.Mechanism) -> None:
    """So that a long batch neither seems stuck nor has to be waited for."""

    class Enough(Exception):  # noqa: N818
        pass

    shares: list[float] = []

    def report(share: float) -> None:
        shares.append(share)
        if len(shares) == 40:
            raise Enough

    truth = np.full(len(mechanism.domain), 1.0 / len(mechanism.domain))
    with pytest.raises(Enough):
        study(candidate_of(mechanism), "mle", truth, runs=100).errors(50, report)
    assert shares == sorted(shares)
    assert 0.3 < shares[-1] < 0.4
