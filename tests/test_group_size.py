"""Users per group for a difference: textbook formulas, simulated power, what is said, and what is refused.

Level: simulated powers are compared within four standard deviations of the number of studies.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import hubbub as hb
from terminal import hubbub

COIN = hb.Categories(["yes", "no"])
LETTERS = hb.Categories(list("abcde"))
Floats = NDArray[np.float64]


def two_proportions(first: float, second: float, level: float = 0.95, power: float = 0.8) -> float:
    """Return the textbook's users per group, with a variance p (1 - p) in each group."""
    quantiles = float(stats.norm.isf((1 - level) / 2) + stats.norm.ppf(power))
    return quantiles**2 * (first * (1 - first) + second * (1 - second)) / (first - second) ** 2


def users_for(mechanisms: object, **keywords: object) -> float:
    (need,) = hb.plan(mechanisms, **keywords).needed  # type: ignore[arg-type]
    assert need.value is not None
    return need.value


# -- textbooks ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("level", "power", "difference"), [(0.95, 0.8, 0.05), (0.99, 0.9, 0.1), (0.9, 0.5, 0.02)])
def test_without_noise_it_is_the_formula_for_two_proportions(level: float, power: float, difference: float) -> None:
    truth = {"yes": 30, "no": 70}
    (need,) = hb.plan(
        hb.RandomizedResponse(COIN, 40.0), difference=difference, power=power, level=level, truth=truth
    ).needed
    expected = {
        label: two_proportions(share, share + difference, level, power) for label, share in (("yes", 0.3), ("no", 0.7))
    }
    assert need.hardest == max(expected, key=lambda label: expected[label])
    assert need.value == math.ceil(expected[need.hardest])


def test_yes_or_no_by_randomized_response_is_two_proportions_of_answers() -> None:
    truthful = math.e / (1 + math.e)
    answers = [1 - truthful + (2 * truthful - 1) * share for share in (0.3, 0.4)]
    found = users_for(hb.RandomizedResponse(COIN, 1.0), difference=0.1, truth=[0.3, 0.7], values=["yes"])
    assert found == math.ceil(two_proportions(*answers))


def test_frequency_oracles_have_their_published_variances() -> None:
    truth, difference = np.array([0.4, 0.3, 0.1, 0.1, 0.1]), 0.05
    shifted = truth * (0.85 / 0.9)
    shifted[2] = 0.15
    quantiles = float(stats.norm.ppf(0.975) + stats.norm.ppf(0.8))
    mechanism = hb.RandomizedResponse(LETTERS, 1.5)
    own, other = math.exp(1.5) / (math.exp(1.5) + 4), 1 / (math.exp(1.5) + 4)
    held = [other + (own - other) * shares[2] for shares in (truth, shifted)]
    variance = sum(each * (1 - each) for each in held) / (own - other) ** 2
    found = users_for(mechanism, difference=difference, truth=truth.tolist(), values=["c"])
    assert found == math.ceil(quantiles**2 * variance / difference**2)


def test_many_values_have_the_same_formula_as_few() -> None:
    """The closed form of a large domain agrees with that of the same kind in a domain whose matrix is computed."""
    for kind in (hb.RandomizedResponse, hb.OptimizedUnary):
        large = kind(hb.Integers(1, 3_000), 2.0)
        true, other = large.support
        held = [other + (true - other) * share for share in (1 / 3_000, 1 / 3_000 + 0.02)]
        variance = sum(each * (1 - each) for each in held) / (true - other) ** 2
        quantiles = float(stats.norm.ppf(0.975) + stats.norm.ppf(0.8))
        assert users_for(large, difference=0.02) == math.ceil(quantiles**2 * variance / 0.02**2)


# -- power -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("reports", "mixed"), [(1, False), (3, False), (1, True), (2, True)])
def test_the_power_is_as_planned(reports: int, mixed: bool) -> None:
    """A z-test on inverted reports of k-RR, or of a mixture of two epsilons weighted by their variances."""
    rng, studies, difference = np.random.default_rng(5), 1_500, 0.15
    strong, light = hb.RandomizedResponse(LETTERS, 1.5), hb.RandomizedResponse(LETTERS, 3.0)
    parts = [(strong, 0.5), (light, 0.5)] if mixed else [(strong, 1.0)]
    truth = [0.3, 0.3, 0.2, 0.1, 0.1]
    users = users_for(
        [parts] if mixed else strong,
        difference=difference,
        truth=truth,
        values=["a"],
        reports_per_user=reports,
    )

    def estimates(share_of_first: float) -> Floats:
        """Return the estimated share of the first value in each study."""
        means, variances = [], []
        for mechanism, share in parts:
            size = round(users * share)
            own, wrong = mechanism.support
            holds = rng.random((studies, size)) < share_of_first
            chances = np.where(holds, own, wrong)
            supports = rng.binomial(reports, chances) / reports
            inverted = (supports - wrong) / (own - wrong)
            means.append(inverted.mean(axis=1))
            variances.append(inverted.var() / size)
        weights = 1.0 / np.array(variances)
        return np.asarray(weights @ np.array(means) / weights.sum())

    first, second = estimates(truth[0]), estimates(truth[0] + difference)
    null = float(np.sqrt(first.var() + second.var()))
    found = float((np.abs(second - first) > stats.norm.ppf(0.975) * null).mean())
    assert found == pytest.approx(0.8, abs=4 * math.sqrt(0.16 / studies))


def powers_of(mechanisms: object, **keywords: object) -> list[float]:
    needed = hb.plan(mechanisms, **keywords).needed  # type: ignore[arg-type]
    assert {need.what for need in needed} == {"power"}
    return [need.value for need in needed if need.value is not None]


@pytest.mark.parametrize(("level", "difference"), [(0.95, 0.05), (0.99, 0.1)])
def test_without_noise_the_power_is_that_of_two_proportions(level: float, difference: float) -> None:
    users = [20, 300, 2_000]
    found = powers_of(
        hb.RandomizedResponse(COIN, 40.0),
        difference=difference,
        users=users,
        level=level,
        truth=[0.3, 0.7],
        values=["yes"],
    )
    for count, power in zip(users, found, strict=True):
        deviation = math.sqrt(sum(share * (1 - share) for share in (0.3, 0.3 + difference)) / count)
        assert power == pytest.approx(stats.norm.sf(stats.norm.isf((1 - level) / 2), loc=difference / deviation))


@pytest.mark.parametrize("power", [0.5, 0.8, 0.99])
def test_the_users_that_a_power_takes_have_that_power(power: float) -> None:
    kinds = ["randomized-response", "optimized-unary"]
    asked: dict[str, object] = {"domain": LETTERS, "epsilon": 1.5, "difference": 0.02, "truth": "worst"}
    for kind in kinds:
        users = int(users_for(kind, power=power, **asked))
        just_enough, too_few = powers_of(kind, users=[users, users - 1], **asked)[::-1]
        assert just_enough == pytest.approx(power, abs=1e-3)
        assert too_few < power <= just_enough


@pytest.mark.parametrize(("points", "users"), [(0.08, 600), (0.12, 300)])
def test_a_test_on_simulated_reports_has_the_power_that_is_said(points: float, users: int) -> None:
    """The z-test of two proportions on the answers to a die, none of whose powers is near the default."""
    rng, studies = np.random.default_rng(11), 20_000
    die = hb.ForcedResponse(COIN, p_yes="1/6", p_no="1/6")
    (said,) = powers_of({"die": die}, difference=points, users=users, truth={"yes": 20, "no": 80})
    shares = [rng.binomial(users, 1 / 6 + 2 / 3 * share, studies) / users for share in (0.2, 0.2 + points)]
    deviations = np.sqrt(sum(share * (1 - share) for share in shares) / users)
    found = float((shares[1] - shares[0] > stats.norm.ppf(0.975) * deviations).mean())
    assert 0.4 < said < 0.65
    assert found == pytest.approx(said, abs=0.01 + 4 * math.sqrt(0.25 / studies))  # 0.01: the formula is for many users


@pytest.mark.slow
def test_compare_has_the_power_that_was_planned() -> None:
    rng, studies = np.random.default_rng(9), 200
    mechanism = hb.RandomizedResponse(COIN, 2.0)
    users = int(users_for(mechanism, difference=0.1, truth=[0.4, 0.6], values=["yes"]))
    own, other = mechanism.support
    found = 0
    for _ in range(studies):
        yes = [int(rng.binomial(users, other + (own - other) * share)) for share in (0.4, 0.5)]
        groups = [hb.Reports.from_counts(mechanism, [count, users - count]) for count in yes]
        found += bool(hb.compare(*groups, of="yes").to_frame()["changed"][0])
    assert found / studies == pytest.approx(0.8, abs=4 * math.sqrt(0.16 / studies))


# -- what is said ------------------------------------------------------------------------------------------


def test_the_answer_is_one_sentence_with_its_assumptions() -> None:
    answer = hb.plan(hb.RandomizedResponse(COIN, 1.0), difference=0.05)
    assert answer.answers == (
        "With epsilon 1, you need about 7,300 users per group to detect a difference of 5 percentage points in one "
        "share with power 80%.",
    )
    assert "a uniform truth in one group" in answer.assumed
    assert "two-sided at level 5%" in answer.assumed
    assert answer.notes == ()
    assert "users per group" in str(answer)
    assert "7,343" in str(answer)
    document = json.loads(answer.to_json())
    assert document["looked_for"] == "users_per_group"
    assert (document["difference"], document["power"], document["level"]) == (0.05, 0.8, 0.95)
    assert document["needed"][0]["value"] == 7343
    assert document["needed"][0]["hardest"] == "yes"
    frame = answer.to_frame()
    assert frame["users"].tolist() == [7343]
    assert frame["looked_for"].tolist() == ["users_per_group"]


def test_candidates_are_compared_at_equal_privacy_and_the_worst_truth_counts() -> None:
    kinds = ["randomized-response", "optimized-unary"]
    answer = hb.plan(kinds, domain=LETTERS, epsilon=[1, 3], difference=0.01, truth=["uniform", "dominant"])
    assert len(answer.answers) == 2
    assert "a difference of 1 percentage point in one share" in answer.answers[0]
    assert "times as many" in answer.answers[1]
    assert {need.truth for need in answer.needed} == {"dominant"}  # shares near one half vary most
    assert all(need.others[0].value < need.value for need in answer.needed if need.value and need.others[0].value)
    axes = answer.plot()
    assert axes.get_ylabel() == "users needed per group"
    assert "1 percentage point" in axes.get_title()


def test_the_power_is_said_for_each_number_of_users_at_equal_privacy() -> None:
    kinds = ["randomized-response", "optimized-unary"]
    answer = hb.plan(kinds, domain=LETTERS, epsilon=2, difference=0.1, users=[500, 200], truth=["uniform", "dominant"])
    values = {(need.candidate, need.users): need.value for need in answer.needed}
    assert list(values) == [(kind, users) for kind in kinds for users in (200, 500)]
    assert all(need.value < need.others[0].value for need in answer.needed if need.value and need.others[0].value)
    assert {need.truth for need in answer.needed} == {"dominant"}  # shares near one half vary most
    assert len(answer.answers) == 2
    best, other = (f"{values[kind, 500]:.0%}" for kind in kinds)
    assert answer.answers[1] == (
        "With 500 users per group and epsilon 2, randomized-response detects a difference of 10 percentage points in "
        f"one share with power {best}; optimized-unary with {other}."
    )
    assert "nothing is simulated" in answer.assumed
    frame = answer.to_frame()
    assert frame["power"].tolist()[::2] == list(values.values())
    assert frame["users"].tolist()[::2] == [200, 500] * 2
    document = json.loads(answer.to_json())
    assert (document["looked_for"], document["power"], document["users"]) == ("power", None, [200, 500])
    assert [need["value"] for need in document["needed"]] == list(values.values())
    axes = answer.plot()
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_ylim()[0]) == ("users per group", "power", 0.0)
    points = hb.plan(kinds, domain=LETTERS, epsilon=2, difference=0.1, users=500).plot()
    assert points.get_xlabel() == "power with 500 users per group"
    assert [text.get_text() for text in points.get_yticklabels()] == kinds[::-1]  # the best on top


def test_a_power_that_reports_do_not_determine_is_out_of_reach() -> None:
    domain = hb.Categories(["a", "b", "c"])
    blind = hb.Matrix(domain, ["u", "v"], [[0.8, 0.2], [0.3, 0.7], [0.3, 0.7]])
    answer = hb.plan(blind, difference=0.1, users=100)
    assert answer.needed[0].value is None
    assert "With 100 users per group and epsilon 1.25, a difference of 10 percentage points in one share is out of" in (
        answer.sentence
    )
    assert any("do not determine the share of" in note for note in answer.notes)
    assert "out of reach for 1" in answer.plot().get_title()
    assert powers_of(blind, difference=0.1, users=100, values=["a"])[0] > 0.025


def test_what_reports_do_not_determine_is_out_of_reach() -> None:
    domain = hb.Categories(["a", "b", "c"])
    blind = hb.Matrix(domain, ["u", "v"], [[0.8, 0.2], [0.3, 0.7], [0.3, 0.7]])
    answer = hb.plan(blind, difference=0.1)
    assert answer.needed[0].value is None
    assert "is out of reach" in answer.sentence
    assert any("do not determine the share of" in note for note in answer.notes)
    assert users_for(blind, difference=0.1, values=["a"]) > 0


def test_a_share_that_cannot_rise_falls() -> None:
    certain = hb.RandomizedResponse(COIN, 40.0)
    assert users_for(certain, difference=0.2, truth=[0.9, 0.1], values=["yes"]) == math.ceil(two_proportions(0.9, 0.7))
    assert users_for(certain, difference=0.2, truth=[1.0, 0.0], values=["yes"]) == math.ceil(two_proportions(1.0, 0.8))
    with pytest.raises(hb.SettingError, match="differ by that much"):
        hb.plan(certain, difference=0.6, truth=[0.5, 0.5])


def test_the_terminal_takes_percentages(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(
        'version = 1\nname = "coin"\n[domain]\nkind = "categories"\nlabels = ["yes", "no"]\n'
        '[mechanisms.coin]\nkind = "randomized-response"\nepsilon = 1.0\n',
        encoding="utf-8",
    )
    said = hubbub("plan", "study.toml", "--difference", "5%", "--power", "80%", "--json", cwd=tmp_path)
    assert json.loads(said.stdout)["needed"][0]["value"] == 7343
    table = hubbub("plan", "study.toml", "--difference", "0.05", cwd=tmp_path).stdout
    assert "users per group" in " ".join(table.split())
    assert "7,343" in table
    asked = ["plan", "study.toml", "--difference", "5%", "--users", "2000,7343"]
    powers = [need["value"] for need in json.loads(hubbub(*asked, "--json", cwd=tmp_path).stdout)["needed"]]
    assert [f"{power:.0%}" for power in powers] == ["31%", "80%"]
    shown = " ".join(hubbub(*asked, cwd=tmp_path).stdout.split())
    assert "Power to detect a difference of 5 percentage points in one share" in shown
    assert "With 2,000 users per group and epsilon 1, you detect" in shown
    assert "with power 31%." in shown
    refused = hubbub(*asked, "--power", "80%", cwd=tmp_path)
    assert refused.returncode == 2
    assert "the power follows from users and difference" in refused.stderr
