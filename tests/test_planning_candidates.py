"""Candidates at equal privacy, and assumed truths."""

import math
from collections.abc import Callable

import numpy as np
import pytest

import hubbub as hb
from hubbub.planning.candidates import candidates_from
from hubbub.planning.truths import SHAPES, truths_from

LINE = hb.Integers(0, 19)
KINDS = [
    "randomized-response",
    "rappor",
    "optimized-unary",
    "local-hashing",
    "subset-selection",
    "geometric",
    "truncated-geometric",
    "laplace",
    "exponential",
    "square-wave",
    "piecewise",
    "hadamard-response",
    "projective-response",
    "count-mean-sketch",
    "hadamard-count-mean-sketch",
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reports", [1, 3])
@pytest.mark.parametrize("radius", [None, 5.0])
def test_kinds_spend_the_same_budget_whatever_they_are(kind: str, reports: int, radius: float | None) -> None:
    (candidate,) = candidates_from(kind, domain=LINE, epsilon=2.0, reports_per_user=reports, radius=radius)
    assert candidate.epsilon == 2.0
    assert candidate.privacy.equivalent == pytest.approx(2.0)
    ((mechanism, share),) = candidate.parts
    assert share == 1.0
    reach = (radius or LINE.diameter) if mechanism.metric else 1.0
    assert mechanism.epsilon * reports * reach == pytest.approx(2.0)
    assert (candidate.privacy.ldp is None) == mechanism.metric
    assert (candidate.privacy.per_unit is None) != mechanism.metric
    assert candidate.privacy.radius == (reach if mechanism.metric else None)


def test_classes_and_several_epsilons_and_reports_make_one_candidate_each() -> None:
    candidates = candidates_from(
        [hb.RandomizedResponse, "rappor"], domain=LINE, epsilon=[1, 2], reports_per_user=[1, 2]
    )
    assert [(candidate.name, candidate.reports_per_user, candidate.epsilon) for candidate in candidates] == [
        (name, reports, epsilon)
        for name in ("randomized-response", "rappor")
        for reports in (1, 2)
        for epsilon in (1, 2)
    ]


def test_mechanisms_keep_their_epsilon_and_show_what_all_reports_spend() -> None:
    memory = hb.LongitudinalRappor(LINE, epsilon=2.0, first=0.75)
    first, second, third = candidates_from(
        [hb.RandomizedResponse(LINE, 1.0), hb.TruncatedGeometric(LINE, 0.5), memory], reports_per_user=4
    )
    assert (first.epsilon, first.privacy.ldp) == (1.0, 4.0)
    assert (second.privacy.ldp, second.privacy.per_unit, second.privacy.equivalent) == (None, 2.0, 38.0)
    assert (second.privacy.unit, second.privacy.radius) == ("unit", 19.0)
    assert third.privacy.ldp == memory.spent(4) < 2.0  # however many reports


def test_unbounded_privacy_is_none() -> None:
    (candidate,) = candidates_from(hb.Cloaking(LINE, [0] * 10 + [1] * 10))
    assert (candidate.epsilon, candidate.privacy.ldp, candidate.privacy.equivalent) == (None, None, None)


def test_a_mixture_spends_as_much_as_its_most_exposed_user() -> None:
    parts = [(hb.RandomizedResponse(LINE, 1.0), 0.25), (hb.Geometric(LINE, 0.1), 0.75)]
    for given in ({"both": parts}, [parts], parts):
        (candidate,) = candidates_from(given)
        assert candidate.epsilon is None
        assert (candidate.privacy.ldp, candidate.privacy.per_unit) == (1.0, 0.1)
        assert candidate.privacy.equivalent == pytest.approx(1.9)
    (candidate,) = candidates_from([[("rappor", 0.5), ("geometric", 0.5)]], domain=LINE, epsilon=1.0)
    assert candidate.epsilon == 1.0
    assert candidate.privacy.equivalent == pytest.approx(1.0)


def test_names_are_unique() -> None:
    candidates = candidates_from(
        [hb.LocalHashing(LINE, 1.0), hb.LocalHashing(LINE, 1.0, 2), hb.LocalHashing(LINE, 2.0)]
    )
    assert [candidate.name for candidate in candidates] == [
        "local-hashing (buckets 4)",
        "local-hashing (buckets 2)",
        "local-hashing",
    ]


def test_another_epsilon_rebuilds_kinds_and_scales_mechanisms() -> None:
    (kind,) = candidates_from("subset-selection", domain=LINE, epsilon=1.0, reports_per_user=2)
    again = kind.at(4.0).parts[0][0]
    assert again == hb.SubsetSelection(LINE, 2.0)  # with the best size for its epsilon
    (own,) = candidates_from(hb.SubsetSelection(LINE, 1.0))
    assert own.at(4.0).parts[0][0] == hb.SubsetSelection(LINE, 4.0, size=5)
    (memory,) = candidates_from(hb.LongitudinalRappor(LINE, 2.0, 0.5))
    assert memory.at(4.0).parts[0][0] == hb.LongitudinalRappor(LINE, 4.0, 1.0)


MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "no mechanism": (lambda: candidates_from(3), "these are not mechanisms"),
    "nothing": (lambda: candidates_from([]), "no mechanisms to plan with"),
    "unknown kind": (lambda: candidates_from("rapport", domain=LINE, epsilon=1), "no such kind"),
    "kind without domain": (lambda: candidates_from("rappor", epsilon=1), "need a domain"),
    "kind without epsilon": (lambda: candidates_from("rappor", domain=LINE), "need an epsilon"),
    "kind that needs more": (lambda: candidates_from("cloaking", domain=LINE, epsilon=1), "needs more than an epsilon"),
    "kind on a wrong domain": (lambda: candidates_from("planar-laplace", domain=LINE, epsilon=1), "another domain"),
    "epsilon of a mechanism": (lambda: candidates_from(hb.Rappor(LINE, 1), epsilon=1), "already have an epsilon"),
    "bad epsilon": (lambda: candidates_from("rappor", domain=LINE, epsilon=[1, -1]), "epsilon must be positive"),
    "shares": (lambda: candidates_from([[(hb.Rappor(LINE, 1), 0.5)]]), "do not sum to 1"),
    "both": (
        lambda: candidates_from([[(hb.Rappor(LINE, 1), 0.5), ("rappor", 0.5)]], domain=LINE, epsilon=1),
        "either mechanisms or kinds",
    ),
    "no reports": (lambda: candidates_from(hb.Rappor(LINE, 1), reports_per_user=0), "reports_per_user must be"),
    "half a report": (lambda: candidates_from(hb.Rappor(LINE, 1), reports_per_user=1.5), "reports_per_user must be"),
    "radius": (lambda: candidates_from(hb.Geometric(LINE, 1), radius=20), "radius must be a positive distance"),
    "two domains": (
        lambda: candidates_from([hb.Rappor(LINE, 1), hb.Rappor(hb.Integers(0, 3), 1)]),
        "different domains",
    ),
    "no such shape": (lambda: truths_from("ball", LINE), "no such shape"),
    "worst among others": (lambda: truths_from(["bell", "worst"], LINE), "no such shape"),
    "negative counts": (lambda: truths_from({3: -1, 4: 2}, LINE), "not counts"),
    "no counts": (lambda: truths_from({}, LINE), "not counts"),
    "counts of nobody": (lambda: truths_from({3: 0}, LINE), "not counts"),
    "words as counts": (lambda: truths_from({3: "many"}, LINE), "not counts"),
    "a value that is none": (lambda: truths_from({20: 3}, LINE), "not in the domain"),
    "too few shares": (lambda: truths_from([0.5, 0.5], LINE), "wrong number of probabilities"),
    "shares of more": (lambda: truths_from(np.ones(20), LINE), "not a distribution"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_refused_with_all_five_parts(name: str) -> None:
    call, words = MISTAKES[name]
    with pytest.raises(hb.HubbubError, match=words) as caught:
        call()
    error = caught.value
    assert all([error.what, error.where, error.got, error.expected, error.remedy])


DOMAINS = [LINE, hb.Integers(0, 1), hb.Bins([0, 1, 5, 9]), hb.Categories(["a", "b", "c", "d", "e"]), hb.Grid(24, 16)]
DOMAINS += [hb.Grid(3, 1), hb.Grid(6, 5, cells=[0, 7, 8, 20, 29])]


@pytest.mark.parametrize("domain", DOMAINS, ids=str)
def test_shapes_are_distributions_over_all_domains(domain: hb.Domain) -> None:
    truths = truths_from("worst", domain)
    assert [truth.name for truth in truths] == list(SHAPES)
    for truth in truths:
        assert truth.probabilities.shape == (len(domain),)
        assert truth.probabilities.min() >= 0.0
        assert truth.probabilities.sum() == pytest.approx(1.0)
    uniform, _, _, zipf, _, dominant = (truth.probabilities for truth in truths)
    assert np.ptp(uniform) == 0.0
    assert zipf.max() / np.sort(zipf)[-2] == pytest.approx(2.0)
    assert dominant.max() == pytest.approx(0.6)


def test_bells_and_blocks_are_where_they_should_be() -> None:
    grid = hb.Grid(24, 16)
    (bell,) = truths_from("bell", grid)
    centre = bell.probabilities @ grid.steps
    assert np.allclose(centre, [11.5, 7.5], atol=1e-9)
    (block,) = truths_from("block", hb.Integers(0, 8))
    assert block.probabilities.tolist() == [0, 0, 1 / 3, 1 / 3, 1 / 3, 0, 0, 0, 0]


def test_truths_that_the_caller_passes() -> None:
    shares = np.full(20, 0.05)
    coin = hb.RandomizedResponse(LINE, 1.0)
    estimate = hb.estimate(hb.Reports.from_outputs(coin, [3] * 50), "mle")
    truths = truths_from([{3: 1, 5: 3}, "bell", shares, {4: 1}, estimate], LINE)
    assert [truth.name for truth in truths] == ["counts", "bell", "given", "counts 2", "estimate"]
    assert truths[0].probabilities[[3, 5]].tolist() == [0.25, 0.75]
    assert math.fsum(truths[0].probabilities) == 1.0
    assert truths_from(shares.tolist(), LINE)[0].name == "given"
    with pytest.raises(hb.SettingError, match="another domain"):
        truths_from(estimate, hb.Integers(0, 3))
