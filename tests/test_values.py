"""Values travel between processes, stay as they are, and do not depend on the order in which data came."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hubbub as hb
from hubbub.core.arrays import largest_first
from hubbub.reports import Singles

GRID = hb.Grid(4, 3, cells=[0, 1, 2, 5, 9, 11])
DIGITS = hb.Integers(0, 9)
MECHANISMS: list[hb.Mechanism] = [
    hb.RandomizedResponse(hb.Categories(["a", "b", "c"]), 1.0),
    hb.TruncatedGeometric(DIGITS, 0.5),
    hb.Laplace(hb.Bins([0, 1, 5, 6]), 0.5),
    hb.PlanarLaplace(GRID, 1.0),
    hb.Rappor(DIGITS, 1.0),
    hb.LocalHashing(DIGITS, 1.0),
    hb.SubsetSelection(DIGITS, 1.0),
    hb.Cloaking(DIGITS, [0] * 5 + [1] * 5),
    hb.Matrix(DIGITS, ["u", "v"], np.tile([0.25, 0.75], (10, 1))),
    hb.LongitudinalRappor(DIGITS, 2.0, 1.0),
    hb.LongitudinalUnary(DIGITS, 2.0, 1.0),
    hb.LongitudinalResponse(DIGITS, 2.0, 1.0),
    hb.LongitudinalHashing(DIGITS, 2.0, 1.0),
    hb.DBitFlip(DIGITS, 2.0, 5, 2),
    hb.BloomRappor(hb.Categories(["a", "b", "c"]), 2, 8, 2, f="1/3", p=0.25, q=0.75, rest="c"),
    hb.BloomRappor(hb.Categories(["a", "b", "c"]), 2, 8, 2, epsilon=2.0, first=1.0),
]


def sent_and_received(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301


WAYS: list[Callable[[Any], Any]] = [sent_and_received, copy.deepcopy]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: type(mechanism).__name__)
def test_everything_can_be_sent_and_copied(mechanism: hb.Mechanism) -> None:
    outputs = mechanism.privatize(mechanism.domain.labels.repeat(20), rng=1)
    reports = hb.Reports.from_outputs(mechanism, outputs)
    estimate = hb.estimate(reports, "ibu", max_iter=5, history=True)
    chosen = hb.estimate(reports, max_iter=5)
    study = hb.Study(mechanism.domain, {"m": mechanism})
    for again in WAYS:
        assert again(mechanism) == mechanism
        assert hash(again(mechanism)) == hash(mechanism)
        assert again(mechanism.domain) == mechanism.domain
        assert again(reports) == reports
        assert again(study).fingerprint == study.fingerprint
        sent = again(estimate)
        assert sent.probabilities.tolist() == estimate.probabilities.tolist()
        assert dict(sent.settings) == dict(estimate.settings)
        assert not sent.probabilities.flags.writeable
        assert again(chosen).to_json() == chosen.to_json()
        assert hb.estimate(again(reports), max_iter=5).probabilities.tolist() == chosen.probabilities.tolist()
        assert hb.estimate(again(reports), "ibu", max_iter=5).probabilities.tolist() == estimate.probabilities.tolist()


def test_errors_can_be_sent() -> None:
    with pytest.raises(hb.DomainError) as caught:
        hb.Integers(3, 1)
    assert str(sent_and_received(caught.value)) == str(caught.value)


@pytest.mark.slow
def test_caches_are_not_sent() -> None:
    mechanism = hb.PlanarGeometric(hb.Grid(24, 16, cells=[c for c in range(384) if c % 9]), 1.0)
    reports = hb.Reports.from_outputs(mechanism, mechanism.privatize([1] * 100, rng=1))
    fresh = len(pickle.dumps(reports))
    hb.estimate(reports, max_iter=2)
    assert len(pickle.dumps(reports)) == fresh


def test_reports_cannot_be_edited() -> None:
    for mechanism in MECHANISMS:
        reports = hb.Reports.from_outputs(mechanism, mechanism.privatize(mechanism.domain.labels, rng=1))
        block = reports.blocks[0]
        assert isinstance(block, Singles)
        for array in (reports.weights, block.counts, block.codes, reports.channel.log_scale):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 5
    study_mechanisms = {"m": MECHANISMS[1]}
    study = hb.Study(DIGITS, study_mechanisms)
    study_mechanisms["other"] = MECHANISMS[4]
    assert list(study.mechanisms) == ["m"]


USERS = st.lists(
    st.lists(st.tuples(st.sampled_from([1, 7, 8, 9]), st.integers(0, 1)), min_size=1, max_size=3),
    min_size=1,
    max_size=12,
)
OUTPUTS: dict[int, list[object]] = {1: [3, 7], 7: [0, 1], 8: ["u", "v"], 9: ["1" * 10, "01" * 5]}


@settings(max_examples=60, deadline=None, derandomize=True)
@given(USERS, st.randoms(use_true_random=False))
@pytest.mark.slow
def test_the_order_of_arrival_leaves_no_trace(drawn: list[list[tuple[int, int]]], random: object) -> None:
    # A user in two regions at once is impossible: keep one.
    users = [[(MECHANISMS[m], OUTPUTS[m][0 if m == 7 else which]) for m, which in pairs] for pairs in drawn]
    shuffled = [list(pairs) for pairs in users]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    for pairs in shuffled:
        random.shuffle(pairs)  # type: ignore[attr-defined]
    one, other = hb.Reports.from_users(users), hb.Reports.from_users(shuffled)
    assert one == other
    assert hb.estimate(one, max_iter=3).probabilities.tolist() == hb.estimate(other, max_iter=3).probabilities.tolist()
    cut = len(users) // 2
    if cut:
        parts = [hb.Reports.from_users(users[:cut]), hb.Reports.from_users(users[cut:])]
        assert parts[0] + parts[1] == one
        assert parts[1] + parts[0] == one
        assert sum(parts) == one


def test_different_reports_are_different() -> None:
    m = MECHANISMS[1]
    assert hb.Reports.from_outputs(m, [1, 2]) != hb.Reports.from_outputs(m, [1, 2, 2])
    assert hb.Reports.from_users([[(m, 1), (m, 2)]]) != hb.Reports.from_users([[(m, 1)], [(m, 2)]])
    assert hb.Reports.from_users([[(m, 1), (m, 1)]]) != hb.Reports.from_users([[(m, 1), (m, 2)]])
    assert hb.Reports.from_outputs(m, [1]) != hb.Reports.from_outputs(hb.TruncatedGeometric(DIGITS, 0.6), [1])


def test_zero_and_minus_zero_are_one_matrix() -> None:
    one = hb.Matrix(hb.Integers(0, 1), ["a", "b"], [[1.0, 0.0], [0.5, 0.5]])
    other = hb.Matrix(hb.Integers(0, 1), ["a", "b"], [[1.0, -0.0], [0.5, 0.5]])
    assert one == other
    assert hash(one) == hash(other)


def test_what_is_no_number_comes_last() -> None:
    assert largest_first(np.array([np.nan, -3.0, 2.0, -1.0])).tolist() == [2, 3, 1, 0]
    assert largest_first(np.array([])).tolist() == []


@given(numbers=st.lists(st.integers(0, 5), min_size=1), seed=st.integers(0, 1000))
def test_rounding_does_not_decide_what_comes_first(numbers: list[int], seed: int) -> None:
    """Equal numbers stay in their order, also where they differ in their last bits as on another machine."""
    noise = np.random.default_rng(seed).standard_normal(len(numbers))
    shown = largest_first(np.array(numbers) * (1.0 + 1e-14 * noise)).tolist()
    assert shown == sorted(range(len(numbers)), key=lambda place: -numbers[place])
