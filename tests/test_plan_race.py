"""The race of candidates in a plan, and the studies that it simulates ahead."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import hubbub as hb
from hubbub.core.progress import Progress, finish
from hubbub.estimators import own_estimators
from hubbub.planning import race as racing
from hubbub.planning import repeated_studies, studies_ahead
from hubbub.planning.candidates import candidates_from
from hubbub.planning.race import ROUNDS, race
from hubbub.planning.repeated_studies import SimulatedStudies, StudyErrors
from hubbub.planning.simulator import Simulator, StudyBatch
from hubbub.planning.studies_ahead import simulate_ahead
from hubbub.planning.study_workers import StudyWorkers
from hubbub.planning.truths import AssumedTruth

LINE = hb.Integers(0, 9)
TRUTH = AssumedTruth("falling", np.arange(10.0, 0.0, -1.0) / 55.0)
USERS = 400


def studies_of(kind: str, *, epsilon: float = 1.0, method: str = "auto", runs: int | None = None) -> SimulatedStudies:
    (candidate,) = candidates_from(kind, domain=LINE, epsilon=epsilon)
    return SimulatedStudies(Simulator(candidate, method), TRUTH, 5, distance="tv", runs=runs)


def quiet(_: float) -> None:
    pass


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The candidate and the number of studies of every batch that is simulated from now on."""
    seen = []
    whole = Simulator.batch

    def batch(self: Simulator, users: int, truth: np.ndarray, runs: int, *rest: object) -> StudyBatch:
        seen.append((self.candidate.name, runs))
        return whole(self, users, truth, runs, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Simulator, "batch", batch)
    return seen


@pytest.mark.parametrize("runs", [3, pytest.param(None, marks=pytest.mark.slow)])
def test_what_is_simulated_ahead_is_what_a_prediction_needs(
    runs: int | None, simulated: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeated_studies, "SLOW_METHOD_PRECISION", 0.2)
    plain = studies_of("square-wave", runs=runs).predict(USERS, quiet)
    needed = len(simulated)
    assert needed == plain.near.tv.size >= 3
    ahead = studies_of("square-wave", runs=runs)
    finish(simulate_ahead([(ahead, USERS)], StudyWorkers()))
    assert len(simulated) == 2 * needed
    assert not ahead.waiting(USERS)
    found = ahead.predict(USERS, quiet)
    assert len(simulated) == 2 * needed  # nothing is simulated twice
    np.testing.assert_array_equal(found.near.tv, plain.near.tv)


def test_quick_studies_wait_for_nobody() -> None:
    assert not studies_of("krr", method="ibu").waiting(USERS)


def test_progress_never_goes_back() -> None:
    entrants = [(studies_of(kind), USERS) for kind in ("square-wave", "krr")]
    steps: list[Progress] = []
    run = race(entrants, StudyWorkers(), same_privacy=True)
    while (step := next(run, None)) is not None:
        steps.append(step)
    shares = [step.done / step.total for step in steps]
    assert shares == sorted(shares)
    assert shares[-1] > 0.6


def planted(monkeypatch: pytest.MonkeyPatch, errors: dict[str, list[float]]) -> None:
    """Let the studies of each kind have these errors."""

    def batch(self: SimulatedStudies, users: int, number: int, before: int, runs: int, *_: object) -> StudyErrors:
        own = np.array(errors[self.candidate.name][before : before + runs])
        return StudyErrors(users, own, None, own**2)

    monkeypatch.setattr(SimulatedStudies, "_batch", batch)
    monkeypatch.setattr(racing, "simulate_ahead", lambda *_: iter(()))
    monkeypatch.setattr(racing, "RACE_SECONDS", 0.1)  # so that these studies count as long


@pytest.mark.parametrize(
    ("errors", "runs"),
    [
        ([2.1, 0.9, 0.9, 0.9], 1),  # more than twice as large
        ([1.9, 1.7, 0.9, 0.9], 2),  # more than 1.5 times the largest of the best one's
        ([1.6, 1.7, 1.3, 1.2], 4),  # all larger
        ([1.6, 1.7, 1.3, 1.05], None),
    ],
)
def test_who_falls_behind_is_left(errors: list[float], runs: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    planted(monkeypatch, {"randomized-response": errors, "square-wave": [1.0, 1.1, 0.9, 1.0]})
    entrants = [(studies_of(kind, runs=4), USERS) for kind in ("krr", "square-wave")]
    other, best = finish(race(entrants, StudyWorkers(), same_privacy=False))
    assert not best.left
    assert other.left == (runs is not None)
    if runs is not None:
        assert runs in dict(ROUNDS)
        assert other.studies.predict(USERS, quiet).near.tv.size == runs


def test_quick_studies_are_repeated_before_anyone_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """One study of few values says little: its error may be twice another's by chance."""
    planted(monkeypatch, {"randomized-response": [9.0, 9.0, 9.0, 1.0], "square-wave": [1.0] * 4})
    monkeypatch.setattr(racing, "RACE_SECONDS", 1e6)
    entrants = [(studies_of(kind, runs=4), USERS) for kind in ("krr", "square-wave")]
    assert not any(each.left for each in finish(race(entrants, StudyWorkers(), same_privacy=False)))


@pytest.mark.parametrize(("same_privacy", "left"), [(False, False), (True, True)])
def test_only_the_same_privacy_competes(same_privacy: bool, left: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    planted(monkeypatch, {"randomized-response": [9.0] * 4, "square-wave": [1.0] * 4})
    entrants = [(studies_of("krr", epsilon=0.5, runs=4), USERS), (studies_of("square-wave", runs=4), USERS)]
    assert [each.left for each in finish(race(entrants, StudyWorkers(), same_privacy=same_privacy))] == [left, False]


# -- processes ----------------------------------------------------------------------------------------------


def test_processes_simulate_what_this_one_does(
    monkeypatch: pytest.MonkeyPatch, simulated: list[tuple[str, int]]
) -> None:
    here = [studies_of("square-wave").simulate(USERS, number, quiet) for number in range(3)]
    monkeypatch.setattr(studies_ahead, "WORKERS_FROM_SECONDS", 0.0)
    monkeypatch.setattr(studies_ahead, "processors", lambda: 2)
    elsewhere = studies_of("square-wave", runs=3)
    simulated.clear()
    with StudyWorkers() as workers:
        finish(simulate_ahead([(elsewhere, USERS)], workers))
        assert workers.are_running
        started = list(workers._started)
    assert all(process.returncode is not None for process in started)
    found = elsewhere.predict(USERS, quiet)
    assert not simulated
    np.testing.assert_array_equal(found.near.tv, np.concatenate([errors.tv for errors in here]))
    np.testing.assert_array_equal(found.near.squares, np.concatenate([errors.squares for errors in here]))
    assert found.near.work == pytest.approx(sum(errors.work for errors in here))


def test_studies_of_processes_that_fail_are_simulated_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(studies_ahead, "WORKERS_FROM_SECONDS", 0.0)
    monkeypatch.setattr(studies_ahead, "processors", lambda: 2)
    with StudyWorkers() as workers:
        assert workers.simulate(b"nothing that was pickled", USERS, 0) is None  # and the process goes on
        portable = studies_of("krr").portable
        assert portable is not None
        assert workers.simulate(portable, USERS, 0) is not None
        (process,) = workers._started
        process.kill()
        process.wait()
        assert workers.simulate(portable, USERS, 1) is None
        studies = studies_of("krr", runs=2)
        finish(simulate_ahead([(studies, USERS)], workers))
    assert not studies.waiting(USERS)
    monkeypatch.setattr(sys, "executable", str(Path("no", "python")))
    with StudyWorkers() as workers:
        assert workers.simulate(portable, USERS, 0) is None


def test_what_another_process_cannot_know_stays_here(monkeypatch: pytest.MonkeyPatch) -> None:
    class Own(hb.RandomizedResponse):
        """A mechanism that no other process has."""

    assert studies_of("krr").portable is not None
    (candidate,) = candidates_from(Own(LINE, 1.0))
    assert SimulatedStudies(Simulator(candidate, "auto"), TRUTH, 0, distance="tv", runs=None).portable is None
    Own.__module__, Own.__qualname__ = "__main__", "Own"
    sys.modules["__main__"].Own = Own  # type: ignore[attr-defined]
    try:
        assert SimulatedStudies(Simulator(candidate, "auto"), TRUTH, 0, distance="tv", runs=None).portable is None
    finally:
        del sys.modules["__main__"].Own
    monkeypatch.setattr(own_estimators, "_FUNCTIONS", {})
    hb.register_estimator("of-this-process", lambda reports: hb.estimate(reports, "inv-p").probabilities)
    assert studies_of("krr", method="of-this-process").portable is None
