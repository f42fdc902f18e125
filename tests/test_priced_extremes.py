"""Extremes over few values with a certificate over all values: the same ones, and never beyond what is possible."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import hubbub as hb
from hubbub.comparison.populations import Populations
from hubbub.core.progress import finish
from hubbub.core.remembering import Remembered
from hubbub.intervals import interval_endpoints
from hubbub.intervals.interval_endpoints import LikelihoodRegion
from hubbub.solvers import priced_extremes
from hubbub.solvers.newton_systems import system_for
from hubbub.solvers.priced_extremes import PricedRegion, region_around
from hubbub.solvers.profile_extremes import Region

TIGHT = 5e-3  # of the way from the maximum's own value to the limit
CUTOFF = 3.84


@pytest.fixture(scope="module")
def city() -> hb.Reports:
    grid = hb.Grid(10, 8, cell=0.5, unit="km")
    mechanism = hb.PlanarGeometric(grid, 1.0)
    rng = np.random.default_rng(4)
    busy = rng.choice(80, 12, replace=False)
    return hb.Reports.from_outputs(mechanism, mechanism.privatize(rng.choice(busy, 20_000), rng=rng))


def test_two_groups_have_the_same_extremes_as_over_all_values(city: hb.Reports) -> None:
    mechanism, rng = city.mechanisms[0], np.random.default_rng(8)
    other = hb.Reports.from_outputs(mechanism, mechanism.privatize(rng.integers(0, 20, 5_000), rng=rng))
    populations = finish(Populations.of([city, other]))
    priced = region_around(populations.stacked, populations.groups)
    assert isinstance(priced, PricedRegion)
    whole = Region(populations.stacked, system_for(populations.stacked.likelihood.channel), populations.groups)
    slack = CUTOFF / (2.0 * populations.users)
    for weights in (np.eye(80)[3], np.eye(80)[50], np.arange(80.0), rng.normal(size=80)):
        for sign in (-1.0, 1.0):
            stacked = sign * np.concatenate([-weights, weights])
            found, expected = priced.least(stacked, slack), whole.least(stacked, slack)
            reach = float(stacked @ populations.stacked.theta) - expected.limit
            assert abs(found.limit - expected.limit) <= TIGHT * reach
            assert found.limit <= expected.attained + 1e-12  # never beyond what is possible
            np.testing.assert_allclose(populations.groups.sums(found.theta), 1.0)


@pytest.mark.parametrize("kind", ["single", "set", "weights"])
def test_the_same_extremes_as_over_all_values(city: hb.Reports, kind: str) -> None:
    top = LikelihoodRegion.of(city).top
    priced, whole = region_around(top), Region(top, system_for(top.likelihood.channel))
    assert isinstance(priced, PricedRegion)
    rng = np.random.default_rng(5)
    slack = CUTOFF / (2.0 * city.users)
    for _ in range(6):
        weights = {
            "single": np.eye(80)[int(rng.integers(80))],
            "set": (rng.random(80) < 0.3).astype(np.float64),
            "weights": rng.normal(size=80),
        }[kind]
        for sign in (1.0, -1.0):
            own = sign * float(weights @ top.theta)
            few, all_values = (region.least(sign * weights, slack) for region in (priced, whole))
            reach = max(own - all_values.limit, 1e-9)
            assert few.limit == pytest.approx(all_values.limit, abs=TIGHT * reach)
            assert few.limit <= all_values.attained + 1e-12  # certified: no likely distribution is beyond it
            assert few.theta.size == 80
            assert few.theta.sum() == pytest.approx(1.0)


def test_all_values_take_part_where_few_do_not_suffice(city: hb.Reports, monkeypatch: pytest.MonkeyPatch) -> None:
    top = LikelihoodRegion.of(city).top
    slack = CUTOFF / (2.0 * city.users)
    expected = PricedRegion(top).least(-np.eye(80)[3], slack)
    monkeypatch.setattr(priced_extremes, "MAX_CHOSEN_SHARE", 0.0)
    found = PricedRegion(top).least(-np.eye(80)[3], slack)
    assert found.limit == pytest.approx(expected.limit, rel=TIGHT)


@pytest.mark.slow
def test_low_ends_of_0_are_proven_without_a_search(city: hb.Reports, monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[float] = []
    least = LikelihoodRegion.least

    def counted(self: LikelihoodRegion, weights: np.ndarray, cutoff: float) -> object:
        searched.append(float(weights.sum()))
        return least(self, weights, cutoff)

    monkeypatch.setattr(LikelihoodRegion, "least", counted)
    some = list(range(0, 80, 20))
    proven = hb.band(city, values=some)
    by_proof = sum(weight > 0 for weight in searched)
    monkeypatch.setattr(interval_endpoints, "MAX_PROOF_UPDATES", 0)
    monkeypatch.setattr(interval_endpoints, "_deviances_without", lambda top, values: np.full(values.size, np.inf))
    searched.clear()
    plain = hb.band(city, values=some)
    assert by_proof < sum(weight > 0 for weight in searched)
    assert proven.confidence_low == pytest.approx(plain.confidence_low, abs=1e-9, nan_ok=True)
    assert proven.confidence_high == pytest.approx(plain.confidence_high, abs=1e-9, nan_ok=True)


class _Owner:
    """Equal to every other one, and not hashable."""

    def __eq__(self, other: object) -> bool:
        return True


def test_what_is_remembered_belongs_to_one_object_and_goes_with_it() -> None:
    remembered: Remembered[str] = Remembered()
    first, second = _Owner(), _Owner()
    assert remembered.put(first, "one") == "one"
    assert remembered.get(second) is None
    assert remembered.get(first) == "one"
    del first
    gc.collect()
    assert remembered._results == {}


def test_the_last_default_estimate_is_the_one_that_is_shown(city: hb.Reports) -> None:
    estimate = hb.estimate(city)
    band = hb.band(city, values=[3, 4])
    assert band.estimate.tolist() == estimate.probabilities.tolist()
    assert estimate.to_frame()["low"].notna().sum() == 2
    hb.band(city, values=[5])
    assert estimate.to_frame()["low"].notna().sum() == 3  # nothing that was computed is lost...
    hb.band(city, 0.9, values=[5])
    assert estimate.to_frame()["low"].notna().sum() == 1  # ...but levels are not mixed
    other = hb.estimate(city, "mle")
    assert "low" not in other.to_frame()
