"""The candidates of `auto`: which there are for a domain, and what each of them fits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hubbub as hb
import strategies as own
from auto_studies import (
    HOLED,
    LINE,
    MAP,
    Floats,
    em,
    skewed,
    softmax,
    tv,
)
from hubbub.channels import Channel, DenseChannel
from hubbub.channels.base import structured_only
from hubbub.domains.domain_shape import DomainShape
from hubbub.estimators.auto import candidate_fits
from hubbub.estimators.auto.candidate_families import families_for
from hubbub.estimators.auto.candidate_fits import (
    PenalisedFamily,
    StoppedEM,
    UniformFamily,
    WeightedPatterns,
)
from hubbub.solvers import em_path as paths
from hubbub.solvers.em_path import SmoothedChannel, em_path, smoothed_by
from hubbub.solvers.penalties import DeviationsFromMean, Penalty

# -- paths -----------------------------------------------------------------------------------------------


@given(st.integers(0, 9_999))
@own.examples(20)
def test_a_path_is_a_plain_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    channel = skewed(rng, 5, 7)
    weights = rng.multinomial(200, np.full(7, 1 / 7), size=3).astype(np.float64)
    weights[1, :5] = 0.0
    weights[1, 5] += 1.0
    stops = [1, 2, 7, 30]
    seen = []
    for updates, thetas in em_path(channel, weights, stops):
        seen.append(updates)
        for theta, row in zip(thetas, weights, strict=True):
            np.testing.assert_allclose(theta, em(channel.matrix, row, updates), rtol=1e-9, atol=1e-15)
    assert seen == stops


def far_path(seed: int) -> list[tuple[int, float]]:
    """How far the path is from plain EM at stops that are far apart, in total variation."""
    rng = np.random.default_rng(seed)
    mechanism = hb.TruncatedGeometric(hb.Integers(0, 39), 0.25)
    truth = rng.dirichlet(np.full(40, 0.3))
    weights = rng.multinomial(5_000, truth @ mechanism.matrix(), size=2).astype(np.float64)
    channel = DenseChannel(mechanism.matrix(), np.zeros(40))
    path = em_path(channel, weights, [10, 40, 60, 90, 130, 200, 300, 450])
    return [
        (updates, max(tv(theta, em(channel.matrix, row, updates)) for theta, row in zip(thetas, weights, strict=True)))
        for updates, thetas in path
    ]


@pytest.mark.parametrize("seed", range(3))
def test_a_path_between_far_stops_is_em(seed: int) -> None:
    for updates, apart in far_path(seed):
        assert apart < (1e-9 if updates <= 40 else 3e-3)


def test_a_path_with_too_few_stages_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = paths.flowed
    monkeypatch.setattr(paths, "flowed", lambda factors, theta, time: plain(factors, theta, 0.9 * time))
    assert max(apart for _, apart in far_path(0)) > 3e-3


def test_a_path_ends_where_em_has_come_to_rest() -> None:
    channel = DenseChannel(np.array([[0.9, 0.1], [0.2, 0.8]]), np.zeros(2))
    stops = [1, 10, 100, 1_000, 10_000]
    seen = list(em_path(channel, np.array([[50.0, 50.0]]), stops))
    assert [updates for updates, _ in seen] == stops[: len(seen)]
    assert 2 < len(seen) < len(stops)
    np.testing.assert_allclose(seen[-1][1], [[3 / 7, 4 / 7]], atol=1e-6)


def test_knots_smooth_like_all_values() -> None:
    line, rng = hb.Integers(0, 199), np.random.default_rng(0)
    shape, mechanism = DomainShape.of(line), hb.TruncatedGeometric(line, 0.1)
    knots = shape.knots(9.0)
    np.testing.assert_array_equal(knots, np.arange(1, 200, 3))
    np.testing.assert_array_equal(shape.knots(5.0), np.arange(200))
    matrix, kernel = mechanism.matrix(), shape.kernel(9.0)
    weights = rng.multinomial(9_000, np.full(200, 1 / 200) @ matrix).astype(np.float64)
    for updates in (5, 30):
        few, all_of_them = (em(rows @ matrix, weights, updates) @ rows for rows in (kernel[knots], kernel))
        assert tv(few, all_of_them) < 2e-3
    assert tv(em(kernel[::30] @ matrix, weights, 30) @ kernel[::30], all_of_them) > 2e-3  # too few would be noticed


def test_narrow_kernels_are_multiplied_by_their_entries() -> None:
    line = hb.Integers(0, 299)
    with structured_only():
        channel = hb.Reports.from_outputs(hb.TruncatedGeometric(line, 0.1), np.arange(300)).channel
    kernel = DomainShape.of(line).kernel(1.0)
    smoothed = smoothed_by(channel, kernel)
    assert isinstance(smoothed, SmoothedChannel)
    rows = np.random.default_rng(0).dirichlet(np.ones(300), size=2)
    np.testing.assert_allclose(smoothed.forward(rows), rows @ kernel @ channel.dense(), rtol=1e-9)
    np.testing.assert_allclose(smoothed.backward(rows), rows @ channel.dense().T @ kernel.T, rtol=1e-9)


def test_em_that_stays_uniform_is_left_by_a_rule() -> None:
    rng = np.random.default_rng(0)
    mechanism = hb.RandomizedResponse(hb.Integers(0, 2_999), 3.0)
    reports = hb.Reports.from_outputs(mechanism, mechanism.privatize(rng.integers(0, 3_000, 30_000), rng=rng))
    found = hb.estimate(reports, max_iter=50)
    selection = found.settings["selection"]
    assert found.probabilities == pytest.approx(1 / 3_000)
    assert max(candidate.updates for candidate in selection.candidates) < selection.max_updates == 50


def test_a_smoothed_path_is_em_behind_the_kernel() -> None:
    rng = np.random.default_rng(0)
    channel, shape = skewed(rng, 8, 9), DomainShape.of(LINE)
    weights = rng.multinomial(500, np.full(9, 1 / 9), size=2).astype(np.float64)
    kernel = shape.kernel(1.5)
    fits = StoppedEM(1.5, (3, 20), "1.5 values").fits(WeightedPatterns(channel, weights, shape))
    for candidate, thetas in fits:
        assert candidate.family == "EM smoothed over 1.5 values"
        for theta, row in zip(thetas, weights, strict=True):
            expected = em(kernel @ channel.matrix, row, candidate.updates) @ kernel
            np.testing.assert_allclose(theta, expected, rtol=1e-9)


def test_a_smoothed_path_on_a_lattice_is_em_behind_the_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidate_fits, "MAX_DENSE_SYSTEM_VALUES", 5)
    rng = np.random.default_rng(0)
    channel, shape = skewed(rng, 6, 9), DomainShape.of(MAP)
    weights = rng.multinomial(500, np.full(9, 1 / 9), size=2).astype(np.float64)
    written = shape.smoothed(np.eye(6), 1.2)
    for candidate, thetas in StoppedEM(1.2, (2, 11), "1.2 km").fits(WeightedPatterns(channel, weights, shape)):
        for theta, row in zip(thetas, weights, strict=True):
            expected = em(written @ channel.matrix, row, candidate.updates) @ written
            np.testing.assert_allclose(theta, expected, rtol=1e-9)


def smoothed_channels() -> list[tuple[Channel, Floats]]:
    """Channels behind a smoothing, and what they are, written out."""
    rng = np.random.default_rng(1)
    line, box = DomainShape.of(hb.Bins([0, 1, 1.5, 4, 5, 9])), DomainShape.of(MAP)
    first, second = skewed(rng, 5, 8), skewed(rng, 6, 8)
    kernel, filtered = line.kernel(1.3), box.smoothed(np.eye(6), 1.3)
    assert not np.allclose(kernel, kernel.T)

    def smooth(rows: Floats) -> Floats:
        return box.smoothed(rows, 1.3)

    return [
        (smoothed_by(first, kernel), kernel @ first.matrix),
        (SmoothedChannel(first, lambda rows: rows @ kernel, lambda rows: rows @ kernel.T), kernel @ first.matrix),
        (SmoothedChannel(second, smooth, smooth), filtered @ second.matrix),
    ]


@pytest.mark.parametrize("which", range(3))
def test_smoothed_channels_are_their_matrices(which: int) -> None:
    channel, matrix = smoothed_channels()[which]
    rng = np.random.default_rng(2)
    theta, ratio = rng.dirichlet(np.ones(len(matrix)), size=3), rng.exponential(size=(3, 8))
    np.testing.assert_allclose(channel.forward(theta), theta @ matrix, rtol=1e-10)
    np.testing.assert_allclose(channel.backward(ratio), ratio @ matrix.T, rtol=1e-10)
    inner = np.einsum("bi,bi->b", channel.forward(theta), ratio)
    np.testing.assert_allclose(inner, np.einsum("bx,bx->b", theta, channel.backward(ratio)), rtol=1e-10)
    np.testing.assert_allclose(channel.dense(), matrix, rtol=1e-10)
    np.testing.assert_allclose(channel.squares(ratio[0]), matrix**2 @ ratio[0], rtol=1e-10)


def test_large_kernels_are_not_multiplied_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "MAX_DENSE_ENTRIES", 3)
    channel, kernel = skewed(np.random.default_rng(1), 8, 4), DomainShape.of(LINE).kernel(2.0)
    behind = smoothed_by(channel, kernel)
    assert isinstance(behind, SmoothedChannel)
    np.testing.assert_allclose(behind.dense(), kernel @ channel.matrix, rtol=1e-12)
    np.testing.assert_allclose(behind.backward(np.eye(4)).T, kernel @ channel.matrix, rtol=1e-12)


def test_knots_of_a_wide_kernel_behind_a_large_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer knots than values: EM is over the knots, also where the product with the kernel is not written down."""
    monkeypatch.setattr(paths, "MAX_DENSE_ENTRIES", 3)
    rng = np.random.default_rng(4)
    shape = DomainShape.of(hb.Integers(0, 59))
    kernel = shape.kernel(12.0)[shape.knots(12.0)]
    assert len(kernel) < 60
    channel, weights = skewed(rng, 60, 70), rng.multinomial(500, np.full(70, 1 / 70), size=2).astype(np.float64)
    behind = smoothed_by(channel, kernel)
    assert isinstance(behind, SmoothedChannel)
    _, phi = next(em_path(behind, weights, [20]))
    np.testing.assert_allclose(phi[0], em(kernel @ channel.matrix, weights[0], 20), rtol=1e-6, atol=1e-11)


@pytest.mark.parametrize("width", [0.0, 2.0])
def test_fields_start_from_em_smoothed_or_not(width: float) -> None:
    rng = np.random.default_rng(3)
    weights = rng.multinomial(500, np.full(9, 1 / 9), size=2).astype(np.float64)
    channel, shape = skewed(rng, 8, 9), DomainShape.of(LINE)
    kernel = shape.kernel(width) if width else np.eye(8)
    start = WeightedPatterns(channel, weights, shape).start(width)
    for u, row in zip(start, weights, strict=True):
        assert u.mean() == pytest.approx(0.0, abs=1e-9)
        expected = em(kernel @ channel.matrix, row, candidate_fits.START_UPDATES) @ kernel
        np.testing.assert_allclose(softmax(u), expected, rtol=1e-6, atol=1e-11)


@pytest.mark.parametrize("smooth", [False, True])
def test_each_field_starts_where_the_one_before_ended(smooth: bool) -> None:
    starts = []

    class Steps:
        def fit(self, penalty: Penalty, u: Floats, can_give_up: object) -> tuple[Floats, Floats]:
            assert can_give_up is None  # there are no held-out reports
            starts.append(u.copy())
            return u + 1.0, softmax(u)

    sample = WeightedPatterns(skewed(np.random.default_rng(0), 8, 9), np.ones((2, 9)), DomainShape.of(LINE))
    vars(sample)["penalised"] = Steps()
    levels = [(f"number {place}", DeviationsFromMean(1.0, 1.0)) for place in range(3)]
    words = [
        candidate.description
        for candidate, _ in PenalisedFamily("steps", "more", levels, starts_smooth=smooth).fits(sample)
    ]
    assert words == ["steps (number 0)", "steps (number 1)", "steps (number 2)"]
    first = sample.start(candidate_fits.START_WIDTH if smooth else 0.0)
    for place, start in enumerate(starts):
        np.testing.assert_allclose(start, first + place, rtol=1e-12)


# -- which candidates there are --------------------------------------------------------------------------


def test_candidates_of_lines_and_of_large_domains() -> None:
    shape = DomainShape.of(hb.Integers(0, 30))
    rich = families_for(shape, uses_newton=True, max_updates=50)
    assert isinstance(rich[0], UniformFamily)
    families = {family.name for family in rich if isinstance(family, StoppedEM)}
    assert families == {"EM", "EM smoothed over 1 value", "EM smoothed over 2 values"}
    assert all(
        family.stops[0] == 1 and family.stops[-1] == 50 and list(family.stops) == sorted(set(family.stops))
        for family in rich
        if isinstance(family, StoppedEM)
    )
    named = {family.name.split(" of length")[0] for family in rich if isinstance(family, PenalisedFamily)}
    assert named == {
        "independent values",
        "an exponential slope",
        "a bell",
        "a rough curve",
        "a smooth curve",
        "values alike but for exceptions",
        "flat pieces with jumps",
    }
    poor = families_for(shape, uses_newton=False, max_updates=50)
    assert not any(isinstance(family, PenalisedFamily) for family in poor)
    smoothed = [family for family in poor if isinstance(family, StoppedEM) and family.width]
    assert smoothed
    assert len(poor) == 2 + len(smoothed)
    assert len(families_for(DomainShape.of(HOLED), uses_newton=False, max_updates=50)) == 2  # holes: no filter
    sample = WeightedPatterns(skewed(np.random.default_rng(0), 31, 9), np.ones((2, 9)), shape)
    for family in rich:
        assert family.count == len(list(family.fits(sample)))


def test_lengths_are_in_the_unit_of_the_map() -> None:
    wide = hb.Grid(20, 20, cell=5.0, unit="m")
    family = families_for(DomainShape.of(wide), uses_newton=False, max_updates=5, unit=wide.unit)[2]
    assert isinstance(family, StoppedEM)
    assert family.name == "EM smoothed over 5 m"


def test_lengths_on_bins_are_counted_in_values() -> None:
    tens = hb.Bins(np.arange(0, 101, 10))
    family = families_for(DomainShape.of(tens), uses_newton=False, max_updates=5, unit=tens.unit)[2]
    assert isinstance(family, StoppedEM)
    assert family.name == "EM smoothed over 1 value"
