"""What the tests of `auto` and `ems` share: small studies, EM and penalised likelihood written again, and checks."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize

import hubbub as hb
from hubbub.channels import DenseChannel
from hubbub.estimators.auto import Selection
from hubbub.estimators.auto.attribute_candidates import DELTA_RULE
from hubbub.estimators.auto.candidate_weights import (
    HALF_LEANING_GAIN,
    MIN_SPREAD,
    SPREAD_FLOOR,
    SPREAD_POWER,
    min_gain_over_uniform,
)
from hubbub.estimators.auto.fold_scores import Folds, deal_into_folds
from hubbub.estimators.auto.smoothing import HALF_GAIN
from hubbub.solvers.penalties import Penalty

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

ABC = hb.Categories(["a", "b", "c", "d", "e", "f"])
LINE = hb.Integers(0, 7)
MAP = hb.Grid(3, 2, cell=1.0)
HOLED = hb.Grid(4, 3, cells=[0, 1, 3, 4, 6, 9, 11])


def skewed(rng: np.random.Generator, values: int, patterns: int) -> DenseChannel:
    """A channel that is far from symmetric."""
    matrix = rng.gamma(0.7, size=(values, patterns)) + 0.02
    return DenseChannel(matrix / matrix.sum(axis=1, keepdims=True), np.zeros(patterns))


def sent(mechanism: hb.Mechanism, positions: Whole, seed: int = 0) -> hb.Reports:
    """What users with these values send."""
    outputs = mechanism.privatize(mechanism.domain.labels[positions], rng=np.random.default_rng(seed))
    return hb.Reports.from_outputs(mechanism, outputs)


def bump(size: int, users: int, seed: int = 0) -> Whole:
    return np.random.default_rng(seed).binomial(size - 1, 0.4, users)


def tv(one: Floats, other: Floats) -> float:
    return float(0.5 * np.abs(one - other).sum())


def softmax(u: Floats) -> Floats:
    theta: Floats = np.exp(u - u.max(axis=-1, keepdims=True))
    theta /= theta.sum(axis=-1, keepdims=True)
    return theta


def em(matrix: Floats, weights: Floats, updates: int) -> Floats:
    """Plain EM from the uniform distribution."""
    return em_at(matrix, weights, [updates])[updates]


def em_at(matrix: Floats, weights: Floats, stops: list[int]) -> dict[int, Floats]:
    """The iterates of plain EM from the uniform distribution, at some numbers of updates."""
    theta = np.full(len(matrix), 1.0 / len(matrix))
    used, iterates = weights > 0, {0: theta}
    for update in range(1, max(stops) + 1):
        theta = theta * (matrix[:, used] @ (weights[used] / (theta @ matrix[:, used]))) / weights.sum()
        if update in stops:
            iterates[update] = theta
    return iterates


def check_estimate(found: hb.Estimate, reports: hb.Reports) -> None:
    """What holds for whatever `auto` returns."""
    p = found.probabilities
    assert p.shape == (len(reports.domain),)
    assert np.isfinite(p).all()
    assert (p >= 0).all()
    assert p.sum() == pytest.approx(1.0, abs=1e-9)
    assert found.method == "auto"
    assert found.users == reports.users
    assert found.converged or "iteration limit" in found.status
    assert found.gap == pytest.approx(hb.optimality_gap(reports, p), abs=1e-9)
    assert found.settings["rng"] == 0
    assert found.settings["chosen"]
    assert json.loads(found.to_json())["settings"]["chosen"] == found.settings["chosen"]
    if "selection" in found.settings:
        check_selection(found)


def check_selection(found: hb.Estimate) -> None:
    chosen = found.settings["selection"]
    assert isinstance(chosen, Selection)
    count = len(chosen.candidates)
    assert chosen.scores.shape == chosen.spreads.shape == chosen.weights.shape == (count,)
    assert chosen.candidates[0].family == "uniform"
    assert chosen.scores[0] == 0.0
    assert chosen.weights.sum() == pytest.approx(1.0)
    assert np.isfinite(chosen.scores).all()
    assert (chosen.spreads >= 0).all()
    assert found.settings["chosen"] == chosen.chosen.description
    assert found.settings["weight"] == chosen.weights.max()
    assert found.settings["runner_up"] == chosen.runner_up.description
    assert found.settings["folds"] == chosen.folds
    assert chosen.runner_up.family != chosen.chosen.family
    assert found.iterations == chosen.chosen.updates
    assert chosen.chosen.description in found.status
    assert (
        len({candidate.description for candidate in chosen.candidates}) == count
    )  # `reaverage` finds them by their descriptions
    check_weights(chosen, len(found.domain))


def check_weights(chosen: Selection, values: int) -> None:
    """Bayesian curves alone, or their part, and the others as their scores and spreads say."""
    if chosen.folds == 0:
        assert [one.family for one in chosen.candidates] == ["uniform", "Bayesian curves"]
        assert chosen.weights.tolist() in ([1.0, 0.0], [0.0, 1.0])
        return
    part, weights = 0.0, chosen.weights
    if chosen.prior_weights is not None:
        part = float(weights[-1])
        assert part == pytest.approx(1.0 / (1.0 + (chosen.scores[-1] / HALF_GAIN) ** 2))
        assert chosen.candidates[-1].family == "Bayesian curves"
        assert chosen.prior_weights.sum() == pytest.approx(1.0)
        weights = weights[:-1]
    if DELTA_RULE in chosen.candidates:  # several attributes: what the rule gets because the folds tell little
        part = 1.0 / (1.0 + (chosen.scores.max() / HALF_LEANING_GAIN) ** 2)
        weights = weights.copy()
        weights[chosen.candidates.index(DELTA_RULE)] -= part
        weights[np.abs(weights) < 1e-12] = 0.0
    if weights[0] > 0.0:  # uniform is not refuted, where only EM can tell
        assert not chosen.uses_newton
        assert weights.tolist() == [1.0] + [0.0] * (weights.size - 1)
        return
    some = np.flatnonzero(weights)  # of few values, those that were scored once more
    handicaps = np.array([candidate.handicap for candidate in chosen.candidates])[some]
    assert chosen.uses_newton or chosen.scores[some].max() >= min_gain_over_uniform(values)
    expected = (1.0 - part) * written_weights(chosen.scores[some] - handicaps, chosen.spreads[some])
    rounding = 1e-9 + 1e-15 * chosen.scores.max()  # differences of large scores
    smallest = 1e-12 if DELTA_RULE in chosen.candidates else 1e-300
    np.testing.assert_allclose(weights[some], expected, rtol=rounding, atol=smallest)


def written_weights(scores: Floats, spreads: Floats) -> Floats:
    """exp(score) / (spread + floor)^c: the floor is part of the geometric mean spread of what predicts well."""
    chances = np.exp(scores - scores.max())
    floor = SPREAD_FLOOR * np.prod((spreads + MIN_SPREAD) ** (chances / chances.sum()))
    weights: Floats = chances / (spreads + floor) ** SPREAD_POWER
    weights /= weights.sum()
    return weights


def objective(channel: DenseChannel, weights: Floats, penalty: Penalty, u: Floats) -> float:
    return float(weights @ np.log(softmax(u) @ channel.matrix) - penalty.value(u))


def slope(channel: DenseChannel, weights: Floats, penalty: Penalty, u: Floats) -> Floats:
    theta = softmax(u)
    reached = channel.matrix @ (weights / (theta @ channel.matrix))
    result: Floats = theta * (reached - weights.sum()) - penalty.gradient(u)
    return result


def highest(channel: DenseChannel, weights: Floats, penalty: Penalty, start: Floats) -> Floats:
    """Where BFGS ends from a start."""
    ascent: Any = optimize.minimize
    found = ascent(
        lambda u: -objective(channel, weights, penalty, u),
        start,
        jac=lambda u: -slope(channel, weights, penalty, u),
        method="BFGS",
        options={"gtol": 1e-5, "maxiter": 500},
    )
    return np.asarray(found.x)


def categorical() -> hb.Reports:
    rng = np.random.default_rng(5)
    truth = np.array([0.55, 0.3, 0.05, 0.05, 0.03, 0.02])
    return sent(hb.RandomizedResponse(ABC, 1.0), rng.choice(6, 1_500, p=truth))


def lined() -> hb.Reports:
    return sent(hb.TruncatedGeometric(hb.Integers(0, 19), 0.4), bump(20, 2_000))


def mapped() -> hb.Reports:
    rng = np.random.default_rng(2)
    return sent(hb.PlanarGeometric(hb.Grid(4, 3), 1.0), rng.choice(12, 2_000, p=np.arange(1, 13) / 78))


STUDIES = {"categories": categorical, "line": lined, "map": mapped}
SMOOTHED = ["line", "map"]  # those that have a selection: categories are shrunk


@cache
def chosen_of(name: str) -> tuple[hb.Reports, hb.Estimate]:
    reports = STUDIES[name]()
    return reports, hb.estimate(reports)


def all_deals(reports: hb.Reports, count: int) -> list[Folds]:
    """What counts is scored in all of them, the rest in the first."""
    rng = np.random.default_rng(0)
    return [deal_into_folds(reports.weights, 5, rng) for _ in range(count)]
