"""PRIVIC's loop: it finds the truth where its channels allow it, spends what it says, and refuses foreign reports."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import hubbub as hb
from hubbub.core.progress import Progress
from hubbub.designing.blahut_arimoto import epsilon_per_distance
from hubbub.designing.privic_loop import privic

Floats = NDArray[np.float64]

LINE = hb.Integers(0, 4)
TRUTH = np.array([0.05, 0.4, 0.1, 0.15, 0.3])
BETA = 2.5


def expected(truth: Floats, users: int) -> Callable[[hb.Mechanism], hb.Reports]:
    """Return reports without chance: as many of each output as are expected."""

    def collect(mechanism: hb.Mechanism) -> hb.Reports:
        return hb.Reports.from_counts(mechanism, np.rint(users * (truth @ mechanism.matrix())).astype(np.int64))

    return collect


def simulated(truth: Floats, users: int, rng: np.random.Generator) -> Callable[[hb.Mechanism], hb.Reports]:
    """Return reports of users drawn anew in each cycle."""

    def collect(mechanism: hb.Mechanism) -> hb.Reports:
        return hb.Reports.from_counts(mechanism, rng.multinomial(users, truth @ mechanism.matrix()))

    return collect


def maximum(reports: hb.Reports) -> hb.Estimate:
    """Return the maximum of the likelihood."""
    return hb.estimate(reports, "mle")


def test_many_users_lead_to_the_truth() -> None:
    run = privic(LINE, BETA, expected(TRUTH, 10**9), cycles=5, estimator=maximum)
    assert run.estimate.probabilities == pytest.approx(TRUTH, abs=1e-4)
    assert all(cycle.outputs == len(LINE) for cycle in run.cycles)
    assert run.cycles[0].change == pytest.approx(hb.total_variation(TRUTH, np.full(5, 0.2)), abs=1e-4)
    assert run.cycles[-1].change < 1e-4


def test_simulated_users_lead_near_the_truth() -> None:
    run = privic(LINE, BETA, simulated(TRUTH, 100_000, np.random.default_rng(1)), cycles=4)
    assert hb.total_variation(TRUTH, run.estimate.probabilities) < 0.02
    assert len(run.cycles) == 4
    assert not run.settled


def test_the_second_channel_is_that_of_the_first_estimate() -> None:
    run = privic(LINE, BETA, expected(TRUTH, 10**6), cycles=2, estimator=maximum)
    design = run.cycles[1].design
    assert design is not None
    weights = design.weights * np.exp(-BETA * LINE.distances()[:, design.outputs])
    assert design.channel == pytest.approx(weights / weights.sum(axis=1, keepdims=True))
    assert run.cycles[0].estimate.probabilities @ design.channel == pytest.approx(design.weights, abs=1e-6)
    first = run.cycles[0].design
    assert first is not None
    assert np.full(5, 0.2) @ first.channel == pytest.approx(first.weights, abs=1e-6)


@pytest.mark.parametrize("updates", [None, 7])
def test_no_cycle_spends_more_than_twice_beta(updates: int | None) -> None:
    grid = hb.Grid(4, 3, cell=0.5)
    truth = np.random.default_rng(2).dirichlet(np.full(12, 0.5))
    run = privic(grid, 1.5, simulated(truth, 2_000, np.random.default_rng(3)), cycles=4, updates=updates)
    for cycle in run.cycles:
        assert cycle.epsilon == epsilon_per_distance(cycle.mechanism.matrix(), grid.distances())
        assert cycle.epsilon <= 3.0 * (1.0 + 1e-9)
        assert cycle.users == 2_000
    assert run.epsilon == max(cycle.epsilon for cycle in run.cycles)


def test_channels_with_little_information_have_few_outputs() -> None:
    # What the page says: with fewer outputs than values no number of users leads to the truth.
    run = privic(LINE, 0.4, expected(TRUTH, 10**9), cycles=3, estimator=maximum)
    last = run.cycles[-1]
    assert last.design is not None
    assert last.outputs == last.design.outputs.size < len(LINE)
    sent = last.mechanism.outputs
    assert sent is not None
    assert sent.tolist() == last.design.outputs.tolist() != list(range(last.outputs))  # values, of those that are kept
    assert hb.total_variation(TRUTH, run.estimate.probabilities) > 0.05
    early = privic(LINE, 0.4, expected(TRUTH, 10**9), cycles=3, updates=7, estimator=maximum)
    assert early.cycles[-1].outputs == len(LINE)
    assert hb.total_variation(TRUTH, early.estimate.probabilities) < 0.02


def test_the_loop_stops_when_estimates_come_to_rest() -> None:
    run = privic(LINE, BETA, expected(TRUTH, 10**9), cycles=50, tol=1e-3, estimator=maximum)
    assert run.settled
    assert len(run.cycles) < 10
    assert run.cycles[-1].change <= 1e-3 < run.cycles[0].change


def test_the_first_mechanism_and_the_start_can_be_given() -> None:
    noise = hb.TruncatedGeometric(LINE, 2 * BETA)
    run = privic(LINE, BETA, expected(TRUTH, 10**6), cycles=2, first=noise)
    assert run.cycles[0].mechanism == noise
    assert run.cycles[0].design is None
    assert run.cycles[1].design is not None
    known = privic(LINE, BETA, expected(TRUTH, 10**9), cycles=1, start=TRUTH, estimator=maximum)
    assert known.cycles[0].change < 1e-4


def test_reports_of_all_cycles_can_be_estimated_together() -> None:
    seen: list[int] = []

    def counted(reports: hb.Reports) -> hb.Estimate:
        seen.append(reports.users)
        return maximum(reports)

    collect = simulated(TRUTH, 1_000, np.random.default_rng(4))
    privic(LINE, BETA, collect, cycles=3, estimator=counted, pooled=True)
    assert seen == [1_000, 2_000, 3_000]
    seen.clear()
    privic(LINE, BETA, collect, cycles=3, estimator=counted)
    assert seen == [1_000, 1_000, 1_000]


def test_progress_names_the_cycle() -> None:
    steps = list(privic.steps(LINE, BETA, expected(TRUTH, 10**4), cycles=3))
    assert steps == [Progress(place, 3, f"cycle {place + 1}") for place in range(3)]


def test_foreign_reports_are_refused() -> None:
    other = hb.RandomizedResponse(LINE, epsilon=1.0)
    with pytest.raises(hb.ReportsError, match="do not come from its mechanism"):
        privic(LINE, BETA, lambda _: hb.Reports.from_counts(other, [1, 2, 3, 4, 5]))
    with pytest.raises(hb.ReportsError, match="do not come from its mechanism"):
        privic(LINE, BETA, lambda _: None)  # type: ignore[arg-type,return-value]  # the mistake


def test_wrong_arguments_are_refused() -> None:
    collect = expected(TRUTH, 10)
    with pytest.raises(hb.MechanismError, match="another domain"):
        privic(LINE, BETA, collect, first=hb.RandomizedResponse(hb.Integers(0, 5), epsilon=1.0))
    with pytest.raises(hb.SettingError, match="cycles"):
        privic(LINE, BETA, collect, cycles=0)
    with pytest.raises(hb.SettingError, match="tol"):
        privic(LINE, BETA, collect, tol=0.0)
    with pytest.raises(hb.SettingError, match="wrong number of probabilities"):
        privic(LINE, BETA, collect, start=[0.5, 0.5])
