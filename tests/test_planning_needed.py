"""What it takes to reach a target; and a plan's answers against fresh studies by the public functions alone."""

import math
from collections.abc import Callable

import numpy as np
import pytest

import hubbub as hb
from hubbub.planning.answers import Needed
from hubbub.planning.repeated_studies import ErrorQuantile
from hubbub.planning.target_search import Crossing, find_crossing
from hubbub.planning.truths import truths_from

TEN = hb.Integers(0, 9)


def exactly(law: Callable[[float], float], error: float = 0.0) -> Callable[[float, float], ErrorQuantile]:
    def error_at(x: float, _: float) -> ErrorQuantile:
        value = law(x)
        return ErrorQuantile(value, value * (1.0 - error), value * (1.0 + error))

    return error_at


def solve(error: Callable[[float, float], ErrorQuantile], target: float, guess: float) -> Crossing:
    return find_crossing(error, target, guess, 10.0, 1e9, slope=0.5, spacing=1.6)


@pytest.mark.parametrize("slope", [0.15, 0.5, 1.0])
@pytest.mark.parametrize("guess", [10.0, 1e4, 1e9])
def test_a_power_law_is_solved_from_any_guess(slope: float, guess: float) -> None:
    answer = 54_321.0
    crossing = find_crossing(
        exactly(lambda x: 0.05 * (x / answer) ** -slope), 0.05, guess, 10.0, 1e9, slope=0.5, spacing=1.6
    )
    assert crossing.value == pytest.approx(answer, rel=1e-3)
    assert not crossing.already


def test_a_curve_is_solved_too() -> None:
    # Flat at first, as EM that has not left its start; then a power law, then a floor that is never reached.
    crossing = find_crossing(
        exactly(lambda x: 0.4 / (1.0 + x / 2_000) ** 0.6), 0.05, 10.0, 10.0, 1e9, slope=0.5, spacing=1.6
    )
    assert crossing.value == pytest.approx(2_000 * (8.0 ** (1 / 0.6) - 1.0), rel=0.01)


def test_the_doubt_of_the_answer_follows_from_that_of_the_points() -> None:
    """Points known to 4% each, three of them, slope 1/2: 2 x 4% / sqrt(3) in the middle."""
    crossing = solve(exactly(lambda x: x**-0.5, 0.04), 0.01, 3_000.0)
    assert crossing.value == pytest.approx(10_000.0, rel=1e-3)
    assert crossing.low is not None
    assert crossing.high is not None
    assert math.log(crossing.high / crossing.low) / 2 == pytest.approx(2 * 0.04 / math.sqrt(3), rel=0.05)


def test_the_interval_holds_the_answer_of_noisy_points() -> None:
    rng, held, studies = np.random.default_rng(2), 0, 300
    for _ in range(studies):

        def noisy(x: float, precision: float) -> ErrorQuantile:
            value = x**-0.5 * math.exp(rng.normal() * precision / 1.96)
            return ErrorQuantile(value, value * (1.0 - precision), value * (1.0 + precision))

        crossing = solve(noisy, 0.01, 5_000.0)
        assert crossing.low is not None
        assert crossing.high is not None
        held += crossing.low <= 10_000.0 <= crossing.high
    assert held / studies > 0.9


def test_targets_that_are_never_or_always_met() -> None:
    never = solve(exactly(lambda _: 0.3), 0.05, 1_000.0)
    assert never.value is None
    assert never.last.value == 0.3
    always = solve(exactly(lambda _: 0.0), 0.05, 1_000.0)
    assert (always.value, always.already) == (10.0, True)


@pytest.mark.parametrize(("error", "met"), [(0.0503, False), (0.0497, True)])
def test_errors_that_stay_close_to_the_target_are_followed_to_the_end(error: float, met: bool) -> None:
    crossing = solve(exactly(lambda _: error), 0.05, 2e5)
    assert (crossing.value, crossing.already) == ((10.0, True) if met else (None, False))
    late = solve(exactly(lambda x: 0.0503 if x < 5e8 else 0.01), 0.05, 1e4)
    assert late.value is not None
    assert 1e8 < late.value <= 1e9


@pytest.mark.parametrize("place", [100.0, 2_345.0, 4e6])
def test_the_answer_lies_between_its_ends_even_at_a_cliff(place: float) -> None:
    crossing = solve(exactly(lambda x: 0.4 if x < place else 0.001), 0.05, 1e4)
    assert crossing.value is not None
    assert crossing.low is not None
    assert crossing.high is not None
    assert crossing.low <= crossing.value <= crossing.high
    assert place / 4 < crossing.value < place * 4


def needed(mechanisms: object, target: float, truth: object = "bell", **keywords: object) -> tuple[Needed, ...]:
    return hb.plan(mechanisms, target=target, truth=truth, values=[0], **keywords).needed  # type: ignore[arg-type]


def test_four_times_the_users_halve_the_error_of_inversion() -> None:
    (many,) = needed(hb.RandomizedResponse(TEN, 2.0), 0.01, "zipf", method="inv-p")
    (few,) = needed(hb.RandomizedResponse(TEN, 2.0), 0.02, "zipf", method="inv-p")
    assert many.value is not None
    assert few.value is not None
    assert many.value / few.value == pytest.approx(4.0, rel=0.1)
    assert many.low is not None
    assert many.high is not None
    assert many.low < many.value < many.high
    (sure,) = needed(hb.RandomizedResponse(TEN, 2.0), 0.02, "zipf", method="inv-p", confidence=0.9)
    assert sure.value is not None
    assert sure.value > 1.2 * few.value


def test_regions_that_hide_values_put_a_target_out_of_reach() -> None:
    (need,) = needed(hb.Cloaking(TEN, [0] * 5 + [1] * 5), 0.05, method="ibu")
    assert (need.value, need.low, need.high) == (None, None, None)
    assert "different truths give the same reports (rank 2 for 10 values)" in need.reason


def test_a_target_that_is_met_at_once_says_so() -> None:
    many = hb.Categories(list(range(60)))
    (need,) = needed(hb.RandomizedResponse(many, 1.0), 0.05, "uniform", method="auto", runs=2)
    assert need.value == 10.0
    assert "already" in need.reason


@pytest.mark.slow
def test_epsilon_is_found_for_given_users() -> None:
    needs = needed(["randomized-response", "rappor"], 0.05, domain=TEN, epsilon=[0.5, 4], users=20_000, method="inv-p")
    for need in needs:
        assert need.what == "epsilon"
        assert (need.users, need.most, need.epsilon) == (20_000, 4.0, None)
        assert need.value is not None
        assert need.privacy is not None
        assert need.privacy.equivalent == pytest.approx(need.value)
        kind, budget = need.candidate, need.value
        there = hb.plan(kind, domain=TEN, epsilon=budget, users=20_000, truth="bell", method="inv-p", rng=9).settings[0]
        assert there.tv.median == pytest.approx(0.05, rel=0.04)
    (none,) = needed("rappor", 0.05, domain=TEN, epsilon=[0.1, 0.2], users=1_000, method="inv-p", runs=50)
    assert none.value is None
    assert "with epsilon 0.2, the largest tried" in none.reason
    (at_once,) = needed("rappor", 0.3, domain=TEN, epsilon=[2, 4], users=100_000, method="inv-p", runs=50)
    assert at_once.value == 2.0
    assert "already" in at_once.reason
    (scaled,) = needed(hb.RandomizedResponse(TEN, 3.0), 0.05, users=20_000, method="inv-p", runs=500)
    assert scaled.value == pytest.approx(needs[0].value, rel=0.05)
    subsets = [hb.SubsetSelection(TEN, epsilon) for epsilon in (0.5, 4.0)]
    sets = needed(subsets, 0.05, users=20_000, method="inv-p", runs=500)
    assert sets[0].value is not None  # between the two, the sets of the nearer one
    assert sets[0].value < (needs[0].value or 0.0) * 1.1


def test_no_epsilon_is_tried_that_no_mechanism_takes() -> None:
    (need,) = needed(hb.RandomizedResponse(TEN, 200.0), 1e-5, users=3, method="inv-p", runs=4)
    assert (need.value, need.most) == (None, 500.0)


def test_mixtures_of_mechanisms_have_no_epsilon_to_search_for() -> None:
    mixed = [(hb.RandomizedResponse(TEN, 1.0), 0.5), (hb.Rappor(TEN, 1.0), 0.5)]
    with pytest.raises(hb.SettingError, match="no single epsilon"):
        needed({"both": mixed}, 0.05, users=1_000, method="ibu")
    with pytest.raises(hb.SettingError, match="this mechanism has no epsilon"):
        needed(hb.Cloaking(TEN, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]), 0.05, users=1_000, method="ibu")


def test_the_truth_that_needs_most_counts() -> None:
    (need,) = needed(hb.RandomizedResponse(TEN, 2.0), 0.05, ["dominant", "zipf"], method="inv-p", runs=50)
    (other,) = need.others
    assert {need.truth, other.truth} == {"dominant", "zipf"}
    assert need.value is not None
    assert other.value is not None
    assert need.value >= other.value


# -- against fresh studies: draws of their own, public functions alone ------------------------------------------


def fresh(mechanism: hb.Mechanism, truth: np.ndarray, users: int, method: str, reports: int, runs: int) -> float:
    rng, errors = np.random.default_rng(20_263), []
    for _ in range(runs):
        values = rng.choice(mechanism.domain.labels, size=users, p=truth)
        sent = [mechanism.privatize(values, rng=rng) for _ in range(reports)]
        if reports == 1:
            collected = hb.Reports.from_outputs(mechanism, sent[0])
        else:
            collected = hb.Reports.from_users([[(mechanism, out) for out in outs] for outs in zip(*sent, strict=True)])
        errors.append(hb.total_variation(hb.estimate(collected, method).probabilities, truth))
    return float(np.median(errors))


FRESH: dict[str, tuple[hb.Mechanism, str, str, int]] = {
    "k-RR, ibu": (hb.RandomizedResponse(TEN, 1.0), "bell", "ibu", 1),
    "RAPPOR, inv-p": (hb.Rappor(hb.Integers(0, 19), 2.0), "zipf", "inv-p", 1),
    "OLH, mle": (hb.LocalHashing(TEN, 2.0), "block", "mle", 1),
    "truncated geometric, mle": (hb.TruncatedGeometric(TEN, 1.0), "bells", "mle", 1),
    "planar geometric, ibu": (hb.PlanarGeometric(hb.Grid(5, 4, cell=0.5), 2.0), "bells", "ibu", 1),
    "two reports each, ibu": (hb.RandomizedResponse(TEN, 1.0), "bell", "ibu", 2),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", FRESH)
def test_predicted_errors_are_those_of_fresh_studies(name: str) -> None:
    mechanism, shape, method, reports = FRESH[name]
    (truth,) = truths_from(shape, mechanism.domain)
    (setting,) = hb.plan(
        mechanism, reports_per_user=reports, users=2_000, truth=shape, method=method, runs=150, values=[0]
    ).settings
    # 60 fresh studies know a median that scatters by a quarter to about 5%; benchmarks/plan.py looks closer.
    assert setting.tv.median == pytest.approx(
        fresh(mechanism, truth.probabilities, 2_000, method, reports, 60), rel=0.1
    )


@pytest.mark.slow  # simulates whole studies
def test_users_needed_are_those_of_fresh_studies() -> None:
    mechanism = hb.RandomizedResponse(TEN, 1.0)
    (need,) = needed(mechanism, 0.08, method="ibu")
    (truth,) = truths_from("bell", TEN)
    assert need.value is not None
    there = fresh(mechanism, truth.probabilities, int(need.value), "ibu", 1, 150)
    assert (there / 0.08) ** 2 == pytest.approx(1.0, abs=0.15)  # the slope is about 1/2
