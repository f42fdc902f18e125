"""Reports: merging, splitting, restricting, and what cannot have been sent."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import hubbub as hb
import strategies as own
from hubbub.channels import structured_only
from hubbub.mechanisms.packed_outputs import BitRowOutputs
from hubbub.reports import BitSums, Joint, Singles

Floats = NDArray[np.float64]
User = list[tuple[hb.Mechanism, Any]]

LINE = hb.Integers(0, 3)
ABC = hb.Categories(["a", "b", "c"])


def patterns(reports: hb.Reports) -> Counter[frozenset[tuple[tuple[hb.Mechanism, str], int]]]:
    """Return what was sent, as text, and by how many users: a pattern is a set of (item, how often)."""
    found: Counter[frozenset[tuple[tuple[hb.Mechanism, str], int]]] = Counter()
    for block in reports.blocks:
        if isinstance(block, Singles):
            space = block.mechanism.output_space
            for output, count in zip(space.decode(block.codes), block.counts.tolist(), strict=True):
                found[frozenset({((block.mechanism, space.write(output)), 1)})] += count
        elif isinstance(block, Joint):
            items = [
                (mechanism, mechanism.output_space.write(output))
                for mechanism, codes in block.sources
                for output in mechanism.output_space.decode(codes)
            ]
            for row, count in zip(block.repeats.toarray().tolist(), block.counts.tolist(), strict=True):
                sent = [(item, times) for item, times in zip(items, row, strict=True) if times]
                found[frozenset(sent)] += count
        else:
            raise AssertionError("sums of bits have no patterns")
    return found


def expected_patterns(users: list[User]) -> Counter[frozenset[tuple[tuple[hb.Mechanism, str], int]]]:
    """Return the same, counted straight from the users' lists."""
    return Counter(frozenset(Counter((each, written(each, output)) for each, output in user).items()) for user in users)


def written(mechanism: hb.Mechanism, output: Any) -> str:
    space = mechanism.output_space
    return space.write(
        space.decode(space.encode(np.stack([output]) if isinstance(output, np.ndarray) else [output]))[0]
    )


def distinct_rows(reports: hb.Reports) -> int:
    """Return how many patterns the blocks hold."""
    return int(reports.weights.size)


MIXTURE: list[hb.Mechanism] = [
    hb.RandomizedResponse(LINE, 1.0),
    hb.RandomizedResponse(LINE, 2.0),
    hb.Geometric(LINE, 0.7),
    hb.Rappor(LINE, 1.5),
    hb.LocalHashing(LINE, 1.0, buckets=3),
    hb.Matrix(LINE, ["u", "v"], [[0.2, 0.8], [0.9, 0.1], [0.5, 0.5], [0.3, 0.7]]),
]


def _outputs_of(mechanism: hb.Mechanism) -> list[Any]:
    if isinstance(mechanism, hb.LocalHashing):
        return [(seed, bucket) for seed in (0, 2**63 + 5) for bucket in range(3)]
    if isinstance(mechanism, hb.Geometric):
        return [-4, 0, 1, 9]
    outputs = mechanism.outputs
    assert outputs is not None
    return list(outputs[:4])


ITEMS: list[tuple[hb.Mechanism, Any]] = [(each, output) for each in MIXTURE for output in _outputs_of(each)]


def user_lists(least: int = 1, most: int = 12) -> st.SearchStrategy[list[User]]:
    """Users who sent one to four outputs of any mechanisms, equal ones too."""
    item = st.sampled_from(range(len(ITEMS))).map(lambda place: ITEMS[place])
    return st.lists(st.lists(item, min_size=1, max_size=4), min_size=least, max_size=most)


# -- merging ----------------------------------------------------------------------------------------------


@own.examples(80)
@given(user_lists())
def test_patterns_and_counts_are_those_of_the_users(users: list[User]) -> None:
    reports = hb.Reports.from_users(users)
    assert reports.users == len(users)
    assert patterns(reports) == expected_patterns(users)
    assert distinct_rows(reports) == len(expected_patterns(users))  # merged: no pattern is held twice
    assert set(reports.mechanisms) == {mechanism for user in users for mechanism, _ in user}


@own.examples(60)
@given(user_lists(), st.randoms(use_true_random=False))
def test_the_order_of_a_users_outputs_does_not_matter(users: list[User], random: Any) -> None:
    shuffled = [random.sample(user, len(user)) for user in users]
    random.shuffle(shuffled)
    first, second = hb.Reports.from_users(users), hb.Reports.from_users(shuffled)
    assert patterns(first) == patterns(second)
    assert distinct_rows(first) == distinct_rows(second)
    theta = [0.1, 0.2, 0.3, 0.4]
    assert hb.log_likelihood(first, theta) == pytest.approx(hb.log_likelihood(second, theta), rel=1e-12)


@own.examples(80)
@given(user_lists(2), st.data())
def test_splitting_and_merging_changes_nothing(users: list[User], data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(users) - 1))
    whole = hb.Reports.from_users(users)
    first, second = hb.Reports.from_users(users[:cut]), hb.Reports.from_users(users[cut:])
    for merged in (first + second, second + first):
        assert merged.users == whole.users
        assert patterns(merged) == patterns(whole)
        assert distinct_rows(merged) == distinct_rows(whole)
        assert merged.epsilon_per_user() == pytest.approx(whole.epsilon_per_user(), rel=1e-12)
        for theta in ([0.25] * 4, [0.7, 0.1, 0.1, 0.1]):
            expected = hb.log_likelihood(whole, theta)
            assert hb.log_likelihood(merged, theta) == pytest.approx(expected, rel=1e-12)
            assert hb.optimality_gap(merged, theta) == pytest.approx(hb.optimality_gap(whole, theta), abs=1e-12)


@own.examples(40)
@given(user_lists(1, 4), user_lists(1, 4), user_lists(1, 4))
def test_addition_is_associative(first: list[User], second: list[User], third: list[User]) -> None:
    a, b, c = (hb.Reports.from_users(users) for users in (first, second, third))
    assert patterns((a + b) + c) == patterns(a + (b + c)) == expected_patterns(first + second + third)


@own.examples(25)
@given(user_lists(2, 8))
def test_duplicated_data_gives_the_same_estimate(users: list[User]) -> None:
    once, twice = hb.Reports.from_users(users), hb.Reports.from_users(users * 2)
    added = once + once
    assert added.users == twice.users == 2 * once.users
    assert patterns(added) == patterns(twice)
    # By the delta rule the totals matter, hence a delta for each; the steps themselves are the same.
    first = hb.estimate(once, "ibu", delta=1e-6, max_iter=500)
    for double in (added, twice):
        second = hb.estimate(double, "ibu", delta=2e-6, max_iter=500)
        np.testing.assert_allclose(second.probabilities, first.probabilities, atol=1e-9)
        assert second.log_likelihood == pytest.approx(2 * first.log_likelihood, rel=1e-12)
        assert second.gap == pytest.approx(first.gap, abs=1e-9)


@own.examples(80)
@given(own.mechanisms(), st.data())
def test_three_ways_to_say_the_same(mechanism: hb.Mechanism, data: st.DataObject) -> None:
    seed = data.draw(st.integers(0, 99))
    values = np.random.default_rng(seed).choice(len(mechanism.domain), size=30)
    outputs = mechanism.privatize(mechanism.domain.labels[values], rng=seed)
    from_outputs = hb.Reports.from_outputs(mechanism, outputs)
    from_users = hb.Reports.from_users([[(mechanism, output)] for output in outputs])
    keys = [tuple(row.tolist()) if row.ndim else row.item() for row in map(np.asarray, outputs)]
    if isinstance(mechanism.output_space, BitRowOutputs):
        space = mechanism.output_space  # as texts of 0 and 1: packed rows cannot be keys
        keys = [space.write(output) for output in outputs]
    from_counts = hb.Reports.from_counts(mechanism, Counter(keys))
    expected = patterns(from_outputs)
    assert sum(expected.values()) == 30
    assert patterns(from_users) == expected
    assert patterns(from_counts) == expected


@own.examples(60)
@given(own.matrices(), st.data())
def test_counts_follow_the_order_of_the_outputs(mechanism: hb.Matrix, data: st.DataObject) -> None:
    counts = data.draw(own.counts(len(mechanism.outputs)))
    aligned = hb.Reports.from_counts(mechanism, counts)
    named = hb.Reports.from_counts(mechanism, dict(zip(mechanism.outputs.tolist(), counts.tolist(), strict=True)))
    listed = hb.Reports.from_outputs(mechanism, np.repeat(mechanism.outputs, counts))
    assert patterns(aligned) == patterns(named) == patterns(listed)
    assert aligned.users == counts.sum()
    assert distinct_rows(aligned) == np.count_nonzero(counts)


def test_labels_that_repeat_are_added_up() -> None:
    """A pandas Series may hold a label twice, as after the counts of two days were put together."""
    coin = hb.RandomizedResponse(ABC, 1.0)
    days = hb.Reports.from_counts(coin, pd.Series([5, 2, 3], index=["a", "b", "a"]))
    assert days == hb.Reports.from_counts(coin, {"a": 8, "b": 2})


def test_reports_over_different_domains_do_not_merge() -> None:
    first = hb.Reports.from_outputs(hb.RandomizedResponse(LINE, 1.0), [0, 1])
    for other in (hb.Integers(0, 4), hb.Categories([0, 1, 2, 3]), hb.Bins([0, 1, 2, 3, 4])):
        second = hb.Reports.from_outputs(hb.RandomizedResponse(other, 1.0), [0, 1])
        with pytest.raises(hb.ReportsError, match="different domains"):
            first + second
        with pytest.raises(hb.ReportsError, match="different domains"):
            hb.Reports.from_users([[(first.mechanisms[0], 0)], [(second.mechanisms[0], 0)]])
    with pytest.raises(hb.ReportsError, match="different domains"):
        first + first.restrict([0, 1])
    with pytest.raises(TypeError):
        first + 1  # type: ignore[operator]


def test_equal_mechanisms_merge_and_different_ones_do_not() -> None:
    reports = [hb.Reports.from_outputs(hb.RandomizedResponse(LINE, epsilon), [0, 1]) for epsilon in (1.0, 1.0, 1.1)]
    assert distinct_rows(reports[0] + reports[1]) == 2
    assert distinct_rows(reports[0] + reports[2]) == 4
    assert len((reports[0] + reports[2]).mechanisms) == 2


# -- likelihoods ------------------------------------------------------------------------------------------


def log_probability(user: User, position: int) -> float:
    """Return log P(all that a user sent | value), one output after the other."""
    total = 0.0
    for mechanism, output in user:
        codes = mechanism.output_space.encode(output[None] if isinstance(output, np.ndarray) else [output])
        total += float(mechanism.encoded_channel(codes).log_dense()[position, 0])
    return total


@own.examples(50)
@given(user_lists(1, 6))
def test_the_likelihood_is_a_product_over_outputs_and_users(users: list[User]) -> None:
    theta = [0.4, 0.3, 0.2, 0.1]
    expected = 0.0
    for user in users:
        expected += math.log(sum(t * math.exp(log_probability(user, x)) for x, t in enumerate(theta)))
    assert hb.log_likelihood(hb.Reports.from_users(users), theta) == pytest.approx(expected, rel=1e-11)


def test_repeated_equal_outputs_count_each_time() -> None:
    coin = hb.RandomizedResponse(ABC, 1.0)
    once = hb.Reports.from_users([[(coin, "a")]])
    twice = hb.Reports.from_users([[(coin, "a"), (coin, "a")]])
    p = math.e / (2 + math.e)
    q = 1 / (2 + math.e)
    theta = [0.5, 0.3, 0.2]
    assert hb.log_likelihood(once, theta) == pytest.approx(math.log(0.5 * p + 0.5 * q))
    assert hb.log_likelihood(twice, theta) == pytest.approx(math.log(0.5 * p**2 + 0.5 * q**2))
    assert twice.users == 1
    assert patterns(twice) == {frozenset({((coin, "a"), 2)}): 1}


def test_two_thousand_outputs_of_one_user_do_not_underflow() -> None:
    rng = np.random.default_rng(4)
    epsilon, size = 0.8, 5
    coin = hb.RandomizedResponse(hb.Integers(0, 4), epsilon)
    theta = np.array([0.1, 0.2, 0.3, 0.25, 0.15])
    users = [coin.privatize(np.full(2000, value), rng=rng) for value in (0, 3)]
    reports = hb.Reports.from_users([[(coin, output) for output in outputs] for outputs in users])
    # By hand: with m outputs equal to x among 2,000, log g_x = m epsilon - 2,000 log(k - 1 + e^epsilon).
    expected = 0.0
    for outputs in users:
        matches = np.bincount(outputs, minlength=size)
        logs = [
            math.log(share) + m * epsilon - 2000 * math.log(size - 1 + math.exp(epsilon))
            for share, m in zip(theta.tolist(), matches.tolist(), strict=True)
        ]
        top = max(logs)
        expected += top + math.log(sum(math.exp(log - top) for log in logs))
    assert expected < -3000  # exp of it would be 0
    log_likelihood = hb.log_likelihood(reports, theta)
    assert math.isfinite(log_likelihood)
    assert log_likelihood == pytest.approx(expected, rel=1e-12)
    estimate = hb.estimate(reports, "mle")
    np.testing.assert_allclose(estimate.probabilities, [0.5, 0, 0, 0.5, 0], atol=1e-6)


# -- restricting ------------------------------------------------------------------------------------------


@own.examples(40)
@given(user_lists(1, 6), st.sets(st.integers(0, 3), min_size=1))
def test_restricting_keeps_the_reports_and_drops_values(users: list[User], kept: set[int]) -> None:
    whole = hb.Reports.from_users(users)
    part = whole.restrict(sorted(kept, reverse=True))
    assert part.domain.labels.tolist() == sorted(kept)
    assert part.users == whole.users
    assert patterns(part) == patterns(whole)
    shares = {value: 1 / (place + 2) for place, value in enumerate(sorted(kept))}
    total = sum(shares.values())
    theta_part = [shares[value] / total for value in sorted(kept)]
    theta_whole = [shares.get(value, 0.0) / total for value in range(4)]
    assert hb.log_likelihood(part, theta_part) == pytest.approx(hb.log_likelihood(whole, theta_whole), rel=1e-11)
    assert patterns(part + part) == patterns(whole + whole)


def test_restricting_twice_is_restricting_once() -> None:
    whole = hb.Reports.from_outputs(hb.RandomizedResponse(LINE, 1.0), [0, 1, 2, 3, 3])
    twice, once = whole.restrict([1, 2, 3]).restrict([1, 3]), whole.restrict([3, 1, 1])
    assert twice.domain == once.domain
    assert hb.log_likelihood(twice, [0.5, 0.5]) == hb.log_likelihood(once, [0.5, 0.5])
    with pytest.raises(hb.DomainError):
        whole.restrict([1, 2]).restrict([3])
    with pytest.raises(hb.ReportsError):
        whole.restrict([])


def test_a_single_value_may_be_left() -> None:
    part = hb.Reports.from_outputs(hb.RandomizedResponse(LINE, 1.0), [0, 1]).restrict([2])
    assert hb.estimate(part, "mle").probabilities.tolist() == [1.0]


# -- what cannot be ---------------------------------------------------------------------------------------

NEVER = hb.Matrix(ABC, ["x", "y", "never"], [[0.5, 0.5, 0.0], [0.2, 0.8, 0.0], [1.0, 0.0, 0.0]])


def test_an_impossible_output_is_named_with_its_count() -> None:
    with pytest.raises(hb.ImpossibleReportError) as caught:
        hb.Reports.from_counts(NEVER, {"x": 10, "never": 37})
    assert "never" in caught.value.got
    assert "37" in caught.value.got
    with pytest.raises(hb.ImpossibleReportError, match="never"):
        hb.Reports.from_outputs(NEVER, ["x", "never"])
    with pytest.raises(hb.ImpossibleReportError, match="never"):
        hb.Reports.from_users([[(NEVER, "x")], [(NEVER, "never"), (NEVER, "x")]])
    assert hb.Reports.from_counts(NEVER, {"x": 10, "never": 0}).users == 10


def test_two_regions_of_one_user_cannot_both_be() -> None:
    area = hb.Cloaking(LINE, ["south", "south", "north", "north"])
    possible = hb.Reports.from_users([[(area, "south"), (area, "south")], [(area, "north")]])
    assert possible.users == 2
    with pytest.raises(hb.ImpossibleReportError) as caught:
        hb.Reports.from_users([[(area, "south")], *[[(area, "north"), (area, "south")]] * 5])
    for part in ("north", "south", "5"):
        assert part in caught.value.got


def test_restricting_may_make_a_report_impossible() -> None:
    area = hb.Cloaking(LINE, ["south", "south", "north", "north"])
    reports = hb.Reports.from_counts(area, {"south": 3, "north": 4})
    with pytest.raises(hb.ImpossibleReportError) as caught:
        reports.restrict([0, 1])
    assert "north" in caught.value.got
    assert "4" in caught.value.got
    assert reports.restrict([1, 2]).users == 7


def test_possible_for_some_value_is_possible() -> None:
    reports = hb.Reports.from_outputs(NEVER, ["y", "y"])
    assert hb.log_likelihood(reports, [0, 0, 1.0]) == -math.inf
    assert hb.optimality_gap(reports, [0, 0, 1.0]) == math.inf
    assert math.isfinite(hb.log_likelihood(reports, [0.1, 0, 0.9]))


# -- sums of bits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [hb.Rappor, hb.OptimizedUnary])
def test_sums_of_bits_invert_like_full_reports(kind: type[hb.Rappor | hb.OptimizedUnary]) -> None:
    mechanism = kind(hb.Integers(0, 9), 1.5)
    outputs = mechanism.privatize(np.random.default_rng(0).binomial(9, 0.4, size=3000), rng=1)
    ones = np.unpackbits(outputs, axis=1, count=10).sum(axis=0)
    full, sums = hb.Reports.from_outputs(mechanism, outputs), hb.Reports.from_bit_counts(mechanism, ones, 3000)
    assert sums.users == full.users == 3000
    for method in ("inv-n", "inv-p"):
        expected = hb.estimate(full, method)
        estimate = hb.estimate(sums, method)
        np.testing.assert_allclose(estimate.probabilities, expected.probabilities, atol=1e-12)
        assert "approximate" in estimate.status
        assert "approximate" not in expected.status
    assert "approximate" in hb.estimate(sums, "ibu").status
    assert sums.approximate
    assert not full.approximate


@pytest.mark.parametrize(
    "mechanism",
    [
        hb.Rappor(hb.Integers(0, 10), 2.0),
        hb.OptimizedUnary(hb.Integers(0, 10), 2.0),
        hb.Unary(hb.Integers(0, 10), 0.7, 0.1),
        hb.LongitudinalRappor(hb.Integers(0, 10), 3.0, 2.0),
        hb.LongitudinalUnary(hb.Integers(0, 10), 3.0, 1.5),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
@pytest.mark.parametrize("structured", [False, True])
def test_bits_of_outputs_are_added_up(mechanism: Any, structured: bool) -> None:
    outputs = mechanism.privatize(np.arange(1000) % 11, rng=1)
    with structured_only() if structured else contextlib.nullcontext():
        ones = mechanism.bit_counts(outputs)
    assert ones.tolist() == np.unpackbits(outputs, axis=1)[:, :11].sum(axis=0).tolist()
    assert hb.Reports.from_bit_counts(mechanism, ones, 1000).users == 1000
    assert mechanism.bit_counts(outputs[:0]).tolist() == [0] * 11
    with pytest.raises(hb.OutputError, match="wrong length"):
        mechanism.bit_counts(outputs[:, :1])


def test_sums_of_bits_add() -> None:
    mechanism = hb.Rappor(ABC, 1.0)
    total = hb.Reports.from_bit_counts(mechanism, [5, 2, 9], 10) + hb.Reports.from_bit_counts(mechanism, [1, 0, 3], 4)
    (block,) = total.blocks
    assert isinstance(block, BitSums)
    assert block.ones.tolist() == [6, 2, 12]
    assert total.users == 14
    mixed = total + hb.Reports.from_outputs(mechanism, [[0, 1, 0]])
    assert mixed.users == 15
    assert mixed.approximate


def test_the_likelihood_of_sums_treats_bits_as_independent() -> None:
    mechanism = hb.Rappor(ABC, 2.0)
    theta = [0.5, 0.3, 0.2]
    keep = math.e / (1 + math.e)
    expected = 0.0
    for ones, share in zip([5, 2, 9], theta, strict=True):
        one = share * keep + (1 - share) * (1 - keep)
        expected += ones * math.log(one) + (10 - ones) * math.log(1 - one)
    reports = hb.Reports.from_bit_counts(mechanism, [5, 2, 9], 10)
    assert hb.log_likelihood(reports, theta) == pytest.approx(expected, rel=1e-12)
    part = reports.restrict(["a", "c"])
    with_zero = hb.log_likelihood(reports, [0.6, 0.0, 0.4])
    assert hb.log_likelihood(part, [0.6, 0.4]) == pytest.approx(with_zero, rel=1e-12)


@pytest.mark.parametrize(
    ("ones", "users"), [([5, 2], 10), ([5, 2, 11], 10), ([0, 0, 0], 0), ([1, -1, 0], 5), ([0.5, 1, 1], 5)]
)
def test_sums_that_cannot_be(ones: list[float], users: int) -> None:
    with pytest.raises(hb.ReportsError):
        hb.Reports.from_bit_counts(hb.Rappor(ABC, 1.0), ones, users)


def test_only_unary_mechanisms_have_sums_of_bits() -> None:
    for mechanism in (hb.RandomizedResponse(ABC, 1.0), hb.SubsetSelection(ABC, 1.0)):
        with pytest.raises(hb.ReportsError):
            hb.Reports.from_bit_counts(mechanism, [1, 1, 1], 3)


# -- epsilon ----------------------------------------------------------------------------------------------


def test_epsilon_per_user_keeps_plain_and_metric_apart() -> None:
    plain, metric = hb.RandomizedResponse(LINE, 1.0), hb.Geometric(LINE, 0.25)
    assert hb.Reports.from_outputs(plain, [0]).epsilon_per_user() == (1.0, 0.0)
    assert hb.Reports.from_outputs(metric, [0]).epsilon_per_user() == (0.0, 0.25)
    both = hb.Reports.from_users([[(plain, 0), (metric, 5), (metric, 5)], [(plain, 1), (plain, 2), (plain, 2)]])
    assert both.epsilon_per_user() == (3.0, 0.5)  # the largest of each kind, of different users
    assert hb.Reports.from_bit_counts(hb.Rappor(LINE, 2.0), [1, 0, 0, 0], 1).epsilon_per_user() == (2.0, 0.0)
    area = hb.Cloaking(LINE, [1, 1, 2, 2])
    assert hb.Reports.from_users([[(area, 1), (metric, 0)]]).epsilon_per_user() == (math.inf, 0.25)


def test_nobody_is_no_reports() -> None:
    coin = hb.RandomizedResponse(ABC, 1.0)
    with pytest.raises(hb.ReportsError):
        hb.Reports.from_outputs(coin, [])
    with pytest.raises(hb.ReportsError):
        hb.Reports.from_counts(coin, [0, 0, 0])
    with pytest.raises(hb.ReportsError):
        hb.Reports.from_counts(coin, {})
    with pytest.raises(hb.ReportsError):
        hb.Reports.from_users([])
    with pytest.raises(hb.ReportsError):
        hb.Reports.from_users([[(coin, "a")], []])


def test_a_wrong_output_names_its_user() -> None:
    coin = hb.RandomizedResponse(ABC, 1.0)
    with pytest.raises(hb.OutputError, match="user 1"):
        hb.Reports.from_users([[(coin, "a")], [(coin, "b"), (coin, "z")]])
