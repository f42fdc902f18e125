"""Covariances of thousands of values: as those of a whole matrix where both can be had, and never less."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import hubbub as hb
import pages
from hubbub import trust_check
from hubbub.core.arrays import Floats, Positions
from hubbub.core.progress import finish
from hubbub.intervals import set_intervals
from hubbub.intervals.compact_covariance import CompactCovariance
from hubbub.intervals.set_intervals import SetShares, set_shares
from hubbub.intervals.window_intervals import FROM_WINDOWS, window_intervals
from hubbub.likelihood import Likelihood
from hubbub.reporting import page_content
from hubbub.reporting.packed_covariance import pack
from hubbub.reporting.page_values import Bounds
from hubbub.reports import Singles
from hubbub.solvers import likeliest_point

MANY = hb.Categories([f"value {number}" for number in range(150)])
LINE = hb.Integers(0, 599)
GRID = hb.Grid(26, 24, cell=1.0)
LAND = hb.Grid(26, 24, cell=1.0, cells=[cell for cell in range(26 * 24) if cell % 7 or cell % 5])


def drawn(mechanism: hb.Mechanism, truth: Floats, users: int, seed: int = 0) -> hb.Reports:
    rng = np.random.default_rng(seed)
    values = mechanism.domain.labels[rng.choice(truth.size, users, p=truth)]
    return hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng))


def both(reports: hb.Reports, truth: Floats) -> tuple[SetShares, SetShares]:
    """Return the estimate by whole matrices, and by structure."""
    base = (1 - set_intervals.EVEN_PART) * truth + set_intervals.EVEN_PART / truth.size
    whole = set_intervals._shares(reports, base, 0.0)
    structured = finish(set_intervals._structured_shares(reports, base))
    assert isinstance(whole, SetShares)
    assert isinstance(structured, SetShares)
    return whole, structured


def some_sets(size: int) -> list[Positions]:
    """Return sets of all sizes: scattered, and one after the other."""
    rng = np.random.default_rng(1)
    scattered = [rng.permutation(size)[:many] for many in (1, 2, 9, size // 4, size // 2 + 3, size - 2)]
    return [*scattered, *(np.arange(first, first + many) for first, many in ((0, 1), (5, 30), (9, size // 2)))]


ZIPF = 1.0 / np.arange(1.0, 151.0)
ZIPF /= ZIPF.sum()
ORACLES: dict[str, hb.Reports] = {
    "k-RR": drawn(hb.RandomizedResponse(MANY, 2.0), ZIPF, 4_000),
    "bits": drawn(hb.Rappor(MANY, 2.0), ZIPF, 4_000),
    "hashes": drawn(hb.LocalHashing(MANY, 2.0), ZIPF, 4_000),
    "subsets": drawn(hb.SubsetSelection(MANY, 1.0), ZIPF, 4_000),
    "sums of bits": hb.Reports.from_bit_counts(hb.Rappor(MANY, 2.0), np.arange(300, 450), 1_500),
    "a mixture": drawn(hb.RandomizedResponse(MANY, 3.0), ZIPF, 3_000)
    + drawn(hb.OptimizedUnary(MANY, 1.0), ZIPF, 3_000),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ORACLES)
def test_a_diagonal_and_dyads_are_the_whole_matrix(name: str) -> None:
    whole, compact = both(ORACLES[name], ZIPF)
    assert compact.centre == pytest.approx(whole.centre, abs=1e-7)
    for chosen in some_sets(150):
        assert compact.deviation(chosen) == pytest.approx(whole.deviation(chosen), rel=5e-3)
    assert compact.matrix == pytest.approx(whole.matrix, abs=1e-7 * float(whole.matrix.max()))


def test_values_that_are_left_out_of_oracles_say_nothing() -> None:
    reports = ORACLES["k-RR"].restrict(list(MANY.labels[:90]))
    whole, compact = both(reports, np.full(90, 1 / 90))
    assert compact.centre == pytest.approx(whole.centre)
    assert compact.matrix == pytest.approx(whole.matrix, abs=1e-9)


def hills(domain: hb.Grid) -> Floats:
    truth = pages.hills(26, 24)[np.asarray(domain.labels)]
    return np.asarray(truth / truth.sum())


BELL = np.exp(-(((np.arange(600) - 200) / 80) ** 2))
BELL /= BELL.sum()
LOCAL: dict[str, tuple[hb.Reports, Floats]] = {
    "map": (drawn(hb.PlanarGeometric(GRID, 0.8), hills(GRID), 60_000), hills(GRID)),
    "land": (drawn(hb.PlanarLaplace(LAND, 1.0), hills(LAND), 60_000), hills(LAND)),
    "all lattice": (drawn(hb.PlanarGeometric(GRID, 1.5, truncated=False), hills(GRID), 60_000), hills(GRID)),
    "two mechanisms": (
        drawn(hb.PlanarGeometric(GRID, 0.8), hills(GRID), 40_000)
        + drawn(hb.Exponential(GRID, 3.0), hills(GRID), 9_000),
        hills(GRID),
    ),
    "line": (drawn(hb.Geometric(LINE, 0.3), BELL, 30_000), BELL),
    "Laplace": (drawn(hb.Laplace(LINE, 0.5), BELL, 30_000), BELL),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", LOCAL)
def test_local_noise_gives_the_same_estimate_and_no_smaller_deviation(name: str) -> None:
    whole, compact = both(*LOCAL[name])
    assert compact.centre == pytest.approx(whole.centre, abs=1e-7)
    exact = compact.covariance
    assert isinstance(exact, CompactCovariance)
    sent = pack(exact, max_bytes=60 * exact.size).covariance  # so little that bands are left out
    assert 0 < len(sent.offsets) < len(exact.offsets)
    for chosen in some_sets(whole.centre.size):
        true = whole.deviation(chosen)
        assert true * (1 - 1e-7) <= compact.deviation(chosen) <= 1.02 * true
        assert compact.deviation(chosen) <= sent.deviation(chosen) * (1 + 1e-9)
        assert sent.deviation(chosen) <= 1.3 * true + 1e-3 * float(whole.deviations.max())


def test_deviations_of_single_values_and_of_all_up_to_a_value() -> None:
    for reports, truth in (LOCAL["line"], (ORACLES["bits"], ZIPF)):
        whole, compact = both(reports, truth)
        assert compact.deviations == pytest.approx(whole.deviations, rel=1e-3)
        assert compact.running_deviations[:-1] == pytest.approx(whole.running_deviations[:-1], rel=1e-3)
        one = np.arange(40)
        assert compact.running_deviations[39] == pytest.approx(compact.deviation(one))


def test_a_bound_that_is_forgotten_would_be_noticed() -> None:
    """Without what was left out, deviations of large sets are understated."""
    whole, compact = both(*LOCAL["map"])
    exact = compact.covariance
    assert isinstance(exact, CompactCovariance)
    cut = exact.offsets <= 1
    bare = CompactCovariance(
        exact.numbers, exact.diagonal, exact.offsets[cut], exact.bands[cut], exact.factors, exact.core,
        np.zeros(exact.size), np.zeros(exact.size),
    )  # fmt: skip
    assert any(bare.deviation(chosen) < 0.99 * whole.deviation(chosen) for chosen in some_sets(exact.size))


def test_thousands_of_values_get_a_compact_covariance() -> None:
    size = set_intervals.MAX_MATRIX_VALUES + 1
    reports = drawn(hb.RandomizedResponse(hb.Integers(1, size), 6.0), np.full(size, 1 / size), 20_000)
    shares = set_shares(reports, np.full(size, 1 / size))
    assert isinstance(shares, SetShares)
    p, q = np.exp(6.0) / (size - 1 + np.exp(6.0)), 1 / (size - 1 + np.exp(6.0))
    half = np.arange(size // 2)
    block = reports.blocks[0]
    assert isinstance(block, Singles)
    share = float(block.weights[block.codes < size // 2].sum()) / 20_000
    expected = np.sqrt(share * (1 - share) / 20_000) / (p - q)
    assert shares.deviation(half) == pytest.approx(expected, rel=1e-3)


# -- single values among tens of thousands --------------------------------------------------------------------


def test_windows_give_single_values_the_intervals_of_the_whole_inverse() -> None:
    reports, truth = LOCAL["map"]
    whole = set_shares(reports, truth)
    assert isinstance(whole, SetShares)
    positions = np.argsort(-truth)[:40]
    base = (1 - set_intervals.EVEN_PART) * truth + set_intervals.EVEN_PART / truth.size
    found = finish(window_intervals(reports, positions, base, set_intervals.ADDED_USERS, pages.Z))
    assert found is not None
    for place, position in enumerate(positions.tolist()):
        low, _, high = whole.interval(np.array([position]), 0.95)
        assert (found.low[place], found.high[place]) == pytest.approx((low, high), abs=1e-6)
        assert found.high[place] >= high - 1e-9
    assert finish(window_intervals(LOCAL["all lattice"][0], positions, base, 4.0, pages.Z)) is None
    assert finish(window_intervals(ORACLES["bits"], positions, ZIPF, 4.0, pages.Z)) is None


def test_a_page_of_too_many_cells_has_intervals_of_the_largest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_intervals, "MAX_VALUES", 50)
    monkeypatch.setattr(trust_check, "MAX_VALUES", 50)
    monkeypatch.setattr(trust_check, "MAX_WINDOW_VALUES", 3)
    reports = drawn(hb.PlanarGeometric(hb.Grid(8, 8, cell=1.0), 1.0), np.full(64, 1 / 64), 2_000)
    page = page_content.make_page(reports, method="ibu")
    assert np.flatnonzero(~np.isnan(page.low)).tolist() == sorted(np.argsort(-page.estimate, kind="stable")[:3])
    assert isinstance(page.sets, Bounds)
    assert "too many to compute how their errors are correlated" in page.sets.reason
    assert all(verdict.answer != "Not checked" for verdict in page.verdicts)
    assert f"{FROM_WINDOWS}, for 3 values" in [fact.text for fact in page.facts]


# -- one maximum for all questions ----------------------------------------------------------------------------


def test_reports_have_one_likelihood_and_it_finds_its_maximum_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reports = ORACLES["bits"]
    point = likeliest_point(Likelihood.of(reports), 1e-7)
    assert likeliest_point(Likelihood.of(reports), 1e-7) is point
    closer = likeliest_point(Likelihood.of(reports), 1e-9)
    assert closer is not point
    assert closer.measured_gap <= 1e-9
    assert likeliest_point(Likelihood.of(reports), 1e-7) is point
    alone = Likelihood(reports.channel, reports.weights, reports.users)
    first = likeliest_point(alone, 1e-8)
    monkeypatch.setattr("hubbub.solvers.maximum_likelihood.maximise", None)
    passed = likeliest_point(Likelihood.of(reports), 1e-8)  # on the way to the closer one
    assert passed.theta.tolist() == first.theta.tolist()
    with pytest.raises(TypeError):
        likeliest_point(Likelihood.of(drawn(hb.Rappor(MANY, 2.0), ZIPF, 100)), 1e-8)


def test_a_likelihood_lives_as_long_as_its_reports() -> None:
    reports = drawn(hb.RandomizedResponse(MANY, 2.0), ZIPF, 100)
    likelihood = weakref.ref(Likelihood.of(reports))
    likeliest_point(Likelihood.of(reports), 1e-6)
    assert likelihood() is not None
    del reports
    gc.collect()
    assert likelihood() is None
