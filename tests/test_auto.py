"""What `auto` answers: the same for the same reports, right in extreme cases, close to the truth in others."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from auto_studies import (
    ABC,
    HOLED,
    LINE,
    MAP,
    STUDIES,
    Floats,
    bump,
    check_estimate,
    chosen_of,
    sent,
    skewed,
    tv,
)
from hubbub.domains.domain_shape import DomainShape
from hubbub.estimators import reestimate
from hubbub.estimators.auto.trivial_cases import MIN_INFORMATION_NATS, trivial_case
from hubbub.solvers.em_path import em_path

# -- determinism and invariance --------------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", STUDIES)
def test_the_same_reports_give_the_same_answer(name: str) -> None:
    reports, found = chosen_of(name)
    sources: list[Any] = [None, 0, np.int64(0), np.random.default_rng(0)]
    for rng in sources if name == "line" else sources[:2]:
        other = hb.estimate(STUDIES[name](), rng=rng)
        assert other.probabilities.tolist() == found.probabilities.tolist()
        assert other.settings["rng"] == ("a generator" if isinstance(rng, np.random.Generator) else 0)
    seventh = hb.estimate(reports, rng=7)
    assert seventh.settings["rng"] == 7
    if name == "categories":  # nothing is drawn
        assert seventh.probabilities.tolist() == found.probabilities.tolist()
        return
    assert seventh.settings["selection"].scores.tolist() != found.settings["selection"].scores.tolist()
    assert tv(seventh.probabilities, found.probabilities) < 0.06  # far less than other users would move it
    with pytest.raises(ValueError, match="read-only"):
        found.settings["selection"].weights[0] = 1.0


def test_equal_reports_in_whatever_order_give_the_same_answer() -> None:
    mechanism = hb.RandomizedResponse(ABC, 1.0)
    outputs = mechanism.privatize(ABC.labels[bump(6, 800)], rng=np.random.default_rng(3))
    estimate = hb.estimate(hb.Reports.from_outputs(mechanism, outputs))
    shuffled = np.random.default_rng(4).permutation(outputs)
    halves = hb.Reports.from_outputs(mechanism, shuffled[:300]) + hb.Reports.from_outputs(mechanism, shuffled[300:])
    names, counts = np.unique(outputs, return_counts=True)
    counted = hb.Reports.from_counts(mechanism, dict(zip(names.tolist(), counts.tolist(), strict=True)))
    alone = hb.Reports.from_users([[(mechanism, output)] for output in shuffled.tolist()])
    for reports in (halves, counted, alone):
        assert hb.estimate(reports).probabilities.tolist() == estimate.probabilities.tolist()


def skewed_counts(order: list[int], columns: list[int]) -> hb.Reports:
    """One study, with values in the given order and outputs in another."""
    rng = np.random.default_rng(8)
    table = skewed(rng, 6, 6).matrix
    counts = rng.multinomial(3_000, np.array([0.5, 0.3, 0.1, 0.05, 0.05, 0.0]) @ table)
    mechanism = hb.Matrix(
        hb.Categories([f"value {place}" for place in order]),
        [f"output {place}" for place in columns],
        table[np.ix_(order, columns)],
    )
    return hb.Reports.from_counts(mechanism, counts[columns])


def test_relabelling_categories_permutes_the_answer() -> None:
    as_they_are, order = [0, 1, 2, 3, 4, 5], [3, 0, 5, 1, 4, 2]
    estimate = hb.estimate(skewed_counts(as_they_are, as_they_are))
    for columns in (as_they_are, [2, 4, 0, 1, 5, 3]):
        reports = skewed_counts(order, columns)
        moved = hb.estimate(reports)
        np.testing.assert_allclose(moved.probabilities, estimate.probabilities[order], atol=1e-6)
        same = reestimate(reports, reports.weights[None], moved)[0]
        np.testing.assert_allclose(same, moved.probabilities, atol=1e-6)


def test_turning_a_line_round_turns_the_answer_round() -> None:
    rng = np.random.default_rng(8)
    table = skewed(rng, 8, 8).matrix
    counts = rng.multinomial(3_000, np.array([0.3, 0.3, 0.2, 0.1, 0.1, 0, 0, 0]) @ table)
    names = [f"output {place}" for place in range(8)]
    one = hb.estimate(hb.Reports.from_counts(hb.Matrix(LINE, names, table), counts))
    other = hb.estimate(hb.Reports.from_counts(hb.Matrix(LINE, names, table[::-1]), counts))
    np.testing.assert_allclose(other.probabilities, one.probabilities[::-1], atol=1e-5)


def test_the_unit_of_length_does_not_matter() -> None:
    answers = []
    for side in (0.01, 1.0, 1_000.0):
        grid = hb.Grid(4, 3, cell=side, cells=[0, 1, 2, 4, 5, 6, 9, 11])
        reports = sent(hb.RandomizedResponse(grid, 2.0), bump(8, 800))
        answers.append(hb.estimate(reports).probabilities)
    np.testing.assert_allclose(answers[1], answers[0], atol=1e-6)
    np.testing.assert_allclose(answers[2], answers[0], atol=1e-6)


def test_the_unit_of_length_does_not_matter_between_islands() -> None:
    spacings = [
        DomainShape.of(hb.Grid(9, 9, cell=side, cells=[0, 4, 40, 76])).spacing / side for side in (0.01, 1.0, 1_000)
    ]
    assert spacings == pytest.approx([spacings[1]] * 3)


# -- extremes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("users", [240, 24_000, 24 * 10**8])
@pytest.mark.parametrize("domain", [ABC, LINE, MAP, hb.Integers(0, 1)], ids=["abc", "line", "map", "two"])
def test_an_even_crowd_gives_an_even_answer(users: int, domain: hb.Domain) -> None:
    mechanism = hb.RandomizedResponse(domain, 1.5)
    even = np.full(len(domain), users // len(domain))
    reports = hb.Reports.from_counts(mechanism, even)
    estimate = hb.estimate(reports)
    check_estimate(estimate, reports)
    assert np.ptp(estimate.probabilities) < (2e-3 if users == 240 else 1e-9)


@pytest.mark.parametrize("crowds", [40, pytest.param(400, marks=pytest.mark.slow)])
def test_crowds_that_are_even_but_for_chance_are_seldom_taken_for_others(crowds: int) -> None:
    rng, own, exact = np.random.default_rng(0), 0.0, 0.0
    mechanism, even = hb.RandomizedResponse(ABC, 1.0), np.full(6, 1 / 6)
    for _ in range(crowds):
        reports = hb.Reports.from_counts(mechanism, rng.multinomial(2_000, even))
        own += tv(hb.estimate(reports).probabilities, even)
        exact += tv(hb.estimate(reports, "mle").probabilities, even)
    assert own < 0.7 * exact


ONE_POINT = {
    "k-RR": hb.RandomizedResponse(ABC, 1.0),
    "unary": hb.OptimizedUnary(ABC, 1.0),
    "geometric": hb.Geometric(hb.Integers(0, 19), 0.5),
    "map": hb.PlanarGeometric(hb.Grid(4, 4), 1.0),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ONE_POINT)
def test_a_crowd_of_one_value_is_found(name: str) -> None:
    mechanism = ONE_POINT[name]
    place = len(mechanism.domain) // 2
    reports = sent(mechanism, np.full(4_000, place))
    estimate = hb.estimate(reports)
    check_estimate(estimate, reports)
    assert estimate.probabilities[place] > 0.93


@pytest.mark.parametrize("users", [4, 50, 3_000])
def test_where_reports_tell_the_values_the_answer_is_the_maximum(users: int) -> None:
    for mechanism in (
        hb.RandomizedResponse(ABC, 9.0),
        hb.Geometric(LINE, 7.0),
        hb.Cloaking(MAP, ["a", "b", "c", "d", "e", "f"]),
    ):
        reports = sent(mechanism, bump(len(mechanism.domain), users))
        assert trivial_case(reports.channel, reports.weights) == "certain"
        found, best = hb.estimate(reports), hb.estimate(reports, "mle")
        check_estimate(found, reports)
        np.testing.assert_allclose(found.probabilities, best.probabilities, atol=1e-12)
        assert "maximum likelihood" in found.status
        assert found.settings["chosen"] == "maximum likelihood"


def test_many_reports_of_each_user_tell_the_values() -> None:
    mechanism, rng = hb.RandomizedResponse(ABC, 1.0), np.random.default_rng(0)
    users = [
        [(mechanism, output) for output in mechanism.privatize([value] * 150, rng=rng)] for value in ["a", "b", "b"] * 5
    ]
    reports = hb.Reports.from_users(users)
    estimate = hb.estimate(reports)
    check_estimate(estimate, reports)
    np.testing.assert_allclose(estimate.probabilities, [1 / 3, 2 / 3, 0, 0, 0, 0], atol=1e-6)
    assert "maximum likelihood" in estimate.status


def test_with_enough_users_and_little_noise_the_answer_is_close_to_the_maximum() -> None:
    reports = sent(hb.RandomizedResponse(ABC, 4.0), np.random.default_rng(0).choice(6, 200_000, p=np.arange(6) / 15))
    assert trivial_case(reports.channel, reports.weights) is None
    assert tv(hb.estimate(reports).probabilities, hb.estimate(reports, "mle").probabilities) < 1e-3


@pytest.mark.parametrize(
    "mechanism",
    [hb.RandomizedResponse(ABC, 1e-4), hb.Geometric(LINE, 1e-5), hb.PlanarGeometric(MAP, 0.01), hb.Rappor(ABC, 1e-3)],
    ids=["k-RR", "geometric", "planar", "rappor"],
)
def test_where_nothing_can_be_learned_the_status_says_so(mechanism: hb.Mechanism) -> None:
    reports = sent(mechanism, np.zeros(500, dtype=np.int64))
    estimate = hb.estimate(reports)
    check_estimate(estimate, reports)
    assert trivial_case(reports.channel, reports.weights) == "uninformative"
    assert estimate.status.startswith("nothing can be learned")
    assert np.ptp(estimate.probabilities) == 0.0
    assert estimate.settings["chosen"] == "uniform"


def test_reports_that_could_show_something_are_not_called_blind() -> None:
    """What a crowd of one value could tell, at most, must be about a nat."""
    chance = np.exp(0.5) / (np.exp(0.5) + 5)
    other = (1 - chance) / 5
    per_user = ((6 * chance - 1) ** 2 + 5 * (6 * other - 1) ** 2) / 6
    for factor, kind in ((0.8, "uninformative"), (1.25, None)):
        each = round(factor * MIN_INFORMATION_NATS / np.log1p(per_user) / 6)
        reports = hb.Reports.from_counts(hb.RandomizedResponse(ABC, 0.5), np.full(6, each))
        assert trivial_case(reports.channel, reports.weights) == kind


@pytest.mark.parametrize(
    "mechanism",
    [hb.Geometric(LINE, 0.5), hb.Geometric(LINE, 4.0), hb.RandomizedResponse(hb.Categories(range(1_000)), 8.0)],
    ids=["blurred", "nearly clear", "k-RR with many values"],
)
def test_one_user_says_nothing_of_a_crowd(mechanism: hb.Mechanism) -> None:
    reports = sent(mechanism, bump(8, 1))
    estimate = hb.estimate(reports)
    check_estimate(estimate, reports)
    assert estimate.status.startswith("nothing can be learned")


@pytest.mark.parametrize("users", [2, 3, 4, 5, 10])
@pytest.mark.parametrize(
    "mechanism",
    [hb.Geometric(hb.Integers(0, 29), 0.8), hb.RandomizedResponse(ABC, 3.0), hb.SubsetSelection(ABC, 3.0)],
    ids=["geometric", "k-RR", "subset"],
)
def test_a_handful_of_users(users: int, mechanism: hb.Mechanism) -> None:
    reports = sent(mechanism, bump(len(mechanism.domain), users))
    estimate = hb.estimate(reports)
    check_estimate(estimate, reports)
    assert estimate.settings.get("folds", 0) in (0, min(users, 5))


@pytest.mark.parametrize("domain", [ABC, LINE], ids=["categories", "line"])
def test_a_billion_users(domain: hb.Domain) -> None:
    mechanism = hb.RandomizedResponse(domain, 1.0)
    truth = np.arange(1.0, len(domain) + 1)
    truth /= truth.sum()
    counts = np.random.default_rng(0).multinomial(10**9, truth @ mechanism.matrix())
    reports = hb.Reports.from_counts(mechanism, counts)
    estimate = hb.estimate(reports)
    check_estimate(estimate, reports)
    assert tv(estimate.probabilities, truth) < 3e-4


# -- every mechanism -------------------------------------------------------------------------------------

SKEW = np.array([[0.6, 0.3, 0.1], [0.0, 0.8, 0.2], [0.3, 0.3, 0.4], [0.1, 0.1, 0.8]])
PARTS = {"line": hb.TruncatedGeometric(LINE, 0.5), "letter": hb.RandomizedResponse(ABC, 1.0)}
EVERY: list[hb.Mechanism] = [
    hb.RandomizedResponse(ABC, 1.0),
    hb.Rappor(ABC, 2.0),
    hb.OptimizedUnary(ABC, 2.0),
    hb.LongitudinalRappor(ABC, 3.0, 2.0),
    hb.LongitudinalUnary(ABC, 3.0, 2.0),
    hb.LongitudinalResponse(ABC, 3.0, 1.5),
    hb.LongitudinalHashing(ABC, 3.0, 1.5),
    hb.DBitFlip(ABC, 3.0),
    hb.LocalHashing(ABC, 1.5),
    hb.BloomRappor(ABC, 4, 16, 2, epsilon=2.0),
    hb.SubsetSelection(ABC, 1.0),
    hb.HadamardResponse(ABC, 2.0),
    hb.ProjectiveResponse(ABC, 2.0),
    hb.CountMeanSketch(ABC, 2.0, 16, 16),
    hb.HadamardCountMeanSketch(ABC, 2.0, 16, 16),
    hb.Duchi(LINE, 2.0),
    hb.SquareWave(LINE, 1.0),
    hb.Piecewise(LINE, 1.0),
    hb.Staircase(LINE, 2.0),
    hb.Unary(ABC, 0.6, 0.2),
    hb.Geometric(LINE, 0.5),
    hb.TruncatedGeometric(LINE, 0.5),
    hb.Laplace(hb.Bins([0, 1, 1.1, 5, 30]), 0.5),
    hb.Exponential(HOLED, 1.0),
    hb.PlanarGeometric(MAP, 1.0),
    hb.PlanarGeometric(HOLED, 1.0, truncated=False),
    hb.PlanarLaplace(MAP, 1.0),
    hb.Cloaking(LINE, ["n", "n", "s", "s", "s", "e", "e", "e"]),
    hb.Matrix(hb.Categories(["a", "b", "c", "d"]), ["x", "y", "z"], SKEW),
    hb.Warner(hb.Categories(["yes", "no"]), 0.7),
    hb.ForcedResponse(hb.Categories(["yes", "no"]), 0.2, 0.1),
    hb.UnrelatedQuestion(hb.Categories(["yes", "no"]), 0.5, 0.2),
    hb.CrosswiseModel(hb.Categories(["yes", "no"]), 0.25),
    *(kind(PARTS) for kind in (hb.Split, hb.SampleOne, hb.SampleOneWithFakes)),
]


def test_every_mechanism_is_tried() -> None:
    concrete = {
        kind
        for kind in (getattr(hb, name) for name in hb.__all__)
        if isinstance(kind, type) and issubclass(kind, hb.Mechanism) and kind is not hb.Mechanism
    }
    assert {type(mechanism) for mechanism in EVERY} == concrete


@pytest.mark.sampled(5)
@pytest.mark.parametrize("mechanism", EVERY, ids=lambda mechanism: type(mechanism).__name__)
def test_every_mechanism(mechanism: hb.Mechanism) -> None:
    reports = sent(mechanism, bump(len(mechanism.domain), 1_500))
    estimate = hb.estimate(reports)
    check_estimate(estimate, reports)
    assert estimate.log_likelihood > hb.log_likelihood(reports, np.full(len(reports.domain), 1 / len(reports.domain)))


def test_mixed_mechanisms_several_reports_and_sums_of_bits() -> None:
    rng = np.random.default_rng(0)
    geometric, unary, answer = hb.Geometric(LINE, 0.5), hb.Rappor(LINE, 1.0), hb.RandomizedResponse(LINE, 1.0)
    truth = bump(8, 600)
    two = hb.Reports.from_users(
        [
            [(geometric, geometric.privatize([value], rng=rng)[0]), (answer, answer.privatize([value], rng=rng)[0])]
            for value in truth.tolist()
        ]
    )
    ones = np.array([np.sum(truth == value) for value in range(8)]) * 0.25 + 200
    bits = hb.Reports.from_bit_counts(unary, ones.astype(int), 600)
    for reports in (two, bits, two + bits + sent(geometric, truth, 1) + sent(unary, truth, 2)):
        estimate = hb.estimate(reports)
        check_estimate(estimate, reports)
        assert ("approximate" in estimate.status) == reports.approximate
    expected = np.bincount(truth, minlength=8) / 600
    assert tv(estimate.probabilities, expected) < 0.1


def test_restricted_reports() -> None:
    whole = sent(hb.Geometric(hb.Integers(0, 29), 0.5), 10 + bump(8, 1_500))
    for kept in (range(10, 18), [10, 11, 13, 16], [3, 25], [12]):
        reports = whole.restrict(list(kept))
        check_estimate(hb.estimate(reports), reports)
    islands = sent(hb.PlanarGeometric(hb.Grid(6, 6), 1.0), bump(36, 1_500)).restrict([0, 5, 14, 15, 30, 35])
    check_estimate(hb.estimate(islands), islands)


# -- unusual inputs --------------------------------------------------------------------------------------


@cache
def unusual() -> dict[str, hb.Reports]:
    rng = np.random.default_rng(1)
    blocks = hb.Matrix(
        hb.Integers(0, 3),
        ["a", "b", "c", "d"],
        [[0.5, 0.5, 0, 0], [0.3, 0.7, 0, 0], [0, 0, 0.5, 0.5], [0, 0, 0.2, 0.8]],
    )
    cyclic = hb.Matrix(LINE, list("abcdefgh"), 0.6 * np.eye(8) + 0.4 * np.roll(np.eye(8), 1, axis=1))
    hashed = hb.LocalHashing(hb.Categories(list(range(12))), 1.0)
    return {
        "two values": hb.Reports.from_counts(hb.RandomizedResponse(hb.Categories(["y", "n"]), 1.0), [600, 400]),
        "two places": sent(hb.Geometric(hb.Integers(0, 1), 0.7), np.repeat([0, 1], [400, 100])),
        "values without support": hb.Reports.from_counts(blocks, [300, 200, 0, 0]),
        "a value that one user supports": hb.Reports.from_counts(blocks, [300, 200, 1, 0]),
        "impossible outputs": hb.Reports.from_counts(cyclic, [30, 20, 3, 1, 0, 0, 2, 9]),
        "patterns of weight 0": hb.Reports.from_bit_counts(hb.Rappor(ABC, 1.0), [0, 0, 100, 1_000, 0, 3], 1_000),
        "unequal bins": sent(hb.Laplace(hb.Bins([0, 1e-3, 1e-2, 1, 100, 1e4]), 0.5), bump(5, 900)),
        "a bin without end": sent(hb.RandomizedResponse(hb.Bins([0, 1, 2, 3, 1e9]), 2.0), bump(4, 900)),
        "one column": sent(hb.PlanarGeometric(hb.Grid(1, 12), 0.7), bump(12, 900)),
        "one row": sent(hb.PlanarLaplace(hb.Grid(12, 1, cell=2.0), 0.7), bump(12, 900)),
        "islands": sent(hb.Exponential(hb.Grid(9, 9, cells=[0, 2, 4, 18, 20, 80]), 1.0), bump(6, 900)),
        "two islands": sent(hb.Exponential(hb.Grid(9, 9, cells=[0, 1, 9, 10, 70, 71, 79]), 1.0), bump(7, 900)),
        "one pattern": hb.Reports.from_outputs(hb.Geometric(hb.Integers(0, 9), 0.3), [7] * 500),
        "far outputs": hb.Reports.from_outputs(hb.Geometric(LINE, 0.5), [3] * 50 + [10**6] * 20 + [-(10**6)] * 3),
        "only far outputs": hb.Reports.from_outputs(hb.Geometric(LINE, 0.5), [10**6] * 20 + [10**5] * 30),
        "one region": sent(hb.Cloaking(LINE, ["all"] * 8), bump(8, 100)),
        "hashing": hb.Reports.from_outputs(hashed, hashed.privatize(rng.integers(0, 4, 3_000), rng=rng)),
        "the most users": hb.Reports.from_counts(hb.RandomizedResponse(ABC, 1.0), [2 * 10**15] + [10**15] * 5),
    }


@cache
def unusual_answer(name: str) -> hb.Estimate:
    return hb.estimate(unusual()[name])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", unusual())
def test_unusual_inputs(name: str) -> None:
    """Without a warning, too: these are errors in this suite."""
    check_estimate(unusual_answer(name), unusual()[name])


def test_values_without_support_get_nothing() -> None:
    answer = unusual_answer("values without support")
    assert answer.probabilities[2:].sum() < 1e-3
    far = unusual_answer("only far outputs")
    assert far.probabilities[-1] > 0.9
    assert unusual_answer("one region").status.startswith("nothing can be learned")
    one = unusual_answer("one pattern")
    assert one.probabilities[7] > 0.95


# -- accuracy --------------------------------------------------------------------------------------------


def flat_with_peaks() -> Floats:
    truth = np.full(12, 0.02)
    truth[[2, 7]] = 0.5, 0.3
    return np.asarray(truth / truth.sum())


def smooth_bump(size: int = 40) -> Floats:
    truth = np.exp(-0.5 * ((np.arange(size) - 0.4 * size) / (0.12 * size)) ** 2)
    return np.asarray(truth / truth.sum())


def two_quarters() -> Floats:
    x, y = np.meshgrid(np.arange(6), np.arange(6))
    truth = 0.2 + 3.0 * ((x < 3) & (y < 3)) + 1.0 * ((x >= 4) & (y >= 4))
    return np.asarray((truth / truth.sum()).ravel())


ACCURACY: dict[str, tuple[hb.Mechanism, Floats, int]] = {
    "line": (hb.Geometric(hb.Integers(0, 39), 0.2), smooth_bump(), 5_000),
    "categories": (hb.RandomizedResponse(hb.Categories(list(range(12))), 1.0), flat_with_peaks(), 4_000),
    "map": (hb.PlanarGeometric(hb.Grid(6, 6), 0.8), two_quarters(), 5_000),
}


@pytest.mark.parametrize("name", ACCURACY)
def test_the_answer_is_about_as_close_as_the_best_iterate_of_em(name: str) -> None:
    """The best iterate is known only to those who know the truth."""
    mechanism, truth, users = ACCURACY[name]
    rng = np.random.default_rng(11)
    reports = sent(mechanism, rng.choice(truth.size, users, p=truth))
    path = em_path(reports.channel, reports.weights[None], range(1, 1_001))
    best = min(tv(thetas[0], truth) for _, thetas in path)
    estimate = hb.estimate(reports)
    check_estimate(estimate, reports)
    assert tv(estimate.probabilities, truth) <= 1.5 * best
    assert tv(estimate.probabilities, truth) < 0.7 * tv(hb.estimate(reports, "mle").probabilities, truth)


def test_a_few_users_on_a_large_map_give_an_estimate_without_a_warning() -> None:
    response = hb.RandomizedResponse(hb.Grid(24, 20), 3.0)
    found = hb.estimate(hb.Reports.from_counts(response, {5: 9}))  # warnings are errors here
    assert found.probabilities.sum() == pytest.approx(1.0)
    assert found.probabilities.argmax() == 5
