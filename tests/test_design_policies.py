"""What every design promises: its privacy, its numbers, its limits, its symmetries, and that it can be interrupted."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hubbub as hb
from design_references import (
    Floats,
    Goal,
    mutual_information,
    risk_goal,
    skewed,
    variance_goal,
    whole_columns,
    width_goal,
)
from hubbub.auditing.exact_epsilon import prove_epsilon
from hubbub.core.errors import SettingError
from hubbub.designing import column_generation
from hubbub.designing.built_in_columns import built_in_mechanisms
from hubbub.designing.column_generation import OptimalColumns
from hubbub.designing.design_question import DesignQuestion
from strategies import bins, categories, examples, integers

LETTERS = hb.Categories(list("abcd"))
CYCLE = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
OWN_BOUNDS = {("a", "b"): 0.5, ("b", "c"): 1.5, ("c", "d"): 0.7, ("a", "d"): 1.1}
UNEVEN = [0.999] + [0.001 / 7] * 7
WITHIN = 1.001  # of the optimum, and so of the best built-in mechanism
LINE = hb.Integers(0, 7)


def assert_promises(design: hb.Design) -> None:
    """Check by the definitions what every mechanism promises."""
    table = design.mechanism.matrix()
    assert table.min() > 0
    np.testing.assert_allclose(table.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    logs = np.log(table)
    rates = np.abs(logs[:, None, :] - logs[None, :, :]).max(axis=2)
    bounds = design.question.policy.bounds
    assert (rates <= bounds + 1e-12).all()
    assert design.keeps_privacy
    best = max if design.goal == "information" else min
    reached = best(design.built_ins.values())
    if design.question.outputs is None and design.question.max_loss is None:
        assert design.value <= reached * WITHIN if best is min else design.value >= reached / WITHIN
    if math.isfinite(design.bound):
        below = design.value >= design.bound * (1 - 1e-6)
        assert design.value <= design.bound * (1 + 1e-6) if best is max else below


CASES: dict[str, tuple[hb.Domain, float | None, dict[str, Any]]] = {
    "two values": (hb.Integers(0, 1), 1.0, {}),
    "two values, little epsilon": (hb.Integers(0, 1), 1e-3, {"goal": "variance"}),
    "plain, little epsilon": (LINE, 1e-3, {}),
    "plain, large epsilon": (LINE, 8.0, {"goal": "variance"}),
    "plain, uneven prior": (LINE, 1.0, {"prior": UNEVEN}),
    "plain information, little epsilon": (LINE, 1e-3, {"goal": "information"}),
    "plain information, uneven prior": (LINE, 1.0, {"goal": "information", "prior": UNEVEN}),
    "line, little epsilon": (LINE, 1e-3, {"privacy": "metric", "goal": "variance"}),
    "line, large epsilon": (LINE, 8.0, {"privacy": "metric"}),
    "line, uneven prior": (LINE, 1.0, {"privacy": "metric", "prior": UNEVEN}),
    "line, one user": (LINE, 0.5, {"privacy": "metric", "users": 1}),
    "line, 1e9 users": (LINE, 0.5, {"privacy": "metric", "users": 10**9}),
    "long line, large epsilon": (hb.Integers(0, 25), 8.0, {"privacy": "metric", "goal": "variance"}),
    "very long line, large epsilon": (hb.Integers(0, 99), 8.0, {"privacy": "metric", "goal": "information"}),
    "bins": (hb.Bins([0, 0.01, 1, 50, 1000]), 0.01, {"privacy": "metric", "goal": "variance"}),
    "bins, beyond all numbers": (hb.Bins([0, 0.01, 1, 50, 1000]), 1.0, {"privacy": "metric", "goal": "variance"}),
    "map": (hb.Grid(3, 3), 1.0, {"privacy": "metric"}),
    "map, large epsilon": (hb.Grid(4, 4), 8.0, {"privacy": "metric", "goal": "variance"}),
    "map information, little epsilon": (hb.Grid(3, 3), 1e-3, {"privacy": "metric", "goal": "information"}),
    "part of a map": (hb.Grid(3, 3, cells=[0, 1, 4, 5, 8]), 0.7, {"privacy": "metric", "goal": "variance"}),
    "attributes": (
        hb.Product({"age": hb.Integers(0, 2), "answer": hb.Categories(["yes", "no"])}),
        1.0,
        {"privacy": "metric", "goal": "variance"},
    ),
    "pairs": (LETTERS, 0.8, {"privacy": CYCLE, "prior": skewed(4)}),
    "own bounds": (LETTERS, None, {"privacy": OWN_BOUNDS, "goal": "variance", "prior": skewed(4)}),
}


SLOW = ("map", "part of a map", "map information, little epsilon")  # a linear program for each column that is tried


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.slow] if case in SLOW else []) for case in CASES]
)
def test_designs_keep_what_they_promise_at_extremes(case: str) -> None:
    domain, epsilon, arguments = CASES[case]
    assert_promises(hb.design(domain, epsilon, **arguments))


@pytest.mark.parametrize("seed", range(4))
def test_columns_that_are_left_out_cost_no_privacy(seed: int) -> None:
    # Sums that are off by 1e-7 were too much for the room that designs leave.
    design = hb.design(LINE, 1.0, privacy="metric", prior=UNEVEN, rng=seed)
    np.testing.assert_allclose(design.question.value_of(whole_columns(design)), design.value, rtol=1e-6)
    assert prove_epsilon(design.mechanism).high <= 1.0


@pytest.mark.slow
@examples(15)
@given(
    integers(6) | bins(5) | categories(6),
    st.sampled_from([0.01, 0.3, 1.0, 4.0]),
    st.sampled_from(["plain", "metric"]),
    st.sampled_from(["risk", "variance", "information"]),
    st.integers(0, 2**32 - 1),
)
def test_designs_for_drawn_domains_keep_what_they_promise(
    domain: hb.Domain, epsilon: float, privacy: str, goal: str, seed: int
) -> None:
    prior = np.random.default_rng(seed).dirichlet(np.ones(len(domain))) + 0.01
    design = hb.design(domain, epsilon, privacy=privacy, goal=goal, prior=prior / prior.sum())
    assert_promises(design)
    assert design.status.startswith("certified")


# -- values ----------------------------------------------------------------------------------------------


DISTRIBUTIONS = np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [0.3, 0.4, 0.2, 0.1], [0.2, 0.2, 0.5, 0.1]])
WIDTHS = np.array([0.0, 1.0, 1.0, 0.0])
RECOMPUTED: dict[str, tuple[Goal, dict[str, Any]]] = {
    "variance": (variance_goal(skewed(4), 500), {"goal": "variance", "prior": skewed(4)}),
    "width": (
        width_goal(skewed(4), 500, WIDTHS, 0.8),
        {"goal": "width", "prior": skewed(4), "of": [1, 2], "level": 0.8},
    ),
    "risk": (risk_goal(DISTRIBUTIONS, 500), {"prior": list(DISTRIBUTIONS)}),
    "information": (
        lambda columns: mutual_information(columns[columns.max(axis=1) > 0], skewed(4)),
        {"goal": "information", "prior": skewed(4)},
    ),
}


@pytest.mark.parametrize("privacy", ["plain", "metric"])
@pytest.mark.parametrize("name", RECOMPUTED)
def test_values_of_designs_and_built_ins_are_those_of_formulas(name: str, privacy: str) -> None:
    goal, arguments = RECOMPUTED[name]
    design = hb.design(hb.Integers(0, 3), 0.9, privacy=privacy, users=500, **arguments)
    mechanisms = built_in_mechanisms(design.question.policy)
    known = {each: np.asarray(mechanisms[each].matrix().T) for each in design.question.built_ins if each != "rappor"}
    values = {each: goal(columns) for each, columns in known.items() if (columns.max(axis=1) > 0).all()}
    unit = min(values.values()) if name == "risk" else 1.0
    assert goal(whole_columns(design)) / unit == pytest.approx(design.value, rel=1e-5)
    assert len(values) >= 4
    for each, value in values.items():
        assert design.built_ins[each] == pytest.approx(value / unit, rel=1e-6), each


def test_the_sums_of_several_widths_are_their_mean() -> None:
    design = hb.design(hb.Integers(0, 3), 1.0, goal="width", of=[[0], [1, 2]], prior=skewed(4), users=500)
    columns = whole_columns(design)
    widths = [width_goal(skewed(4), 500, of)(columns) for of in (np.array([1.0, 0, 0, 0]), WIDTHS)]
    assert np.mean(widths) == pytest.approx(design.value, rel=1e-6)


def test_loss_and_information_of_designs_are_those_of_their_matrices() -> None:
    prior = skewed(5)
    domain = hb.Integers(0, 4)
    design = hb.design(domain, 0.6, privacy="metric", goal="variance", prior=prior)
    columns = whole_columns(design)
    losses = [min(float(prior * column @ domain.distances()[:, place]) for place in range(5)) for column in columns]
    assert design.loss == pytest.approx(sum(losses), rel=1e-9)
    assert design.information == pytest.approx(mutual_information(columns, prior), rel=1e-9)


# -- symmetry, limits ------------------------------------------------------------------------------------


def variances(columns: Floats, shares: Floats) -> Floats:
    size = len(shares)
    rows = np.eye(size)
    return np.array([width_goal(shares, 1.0, row)(columns) for row in rows])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("goal", ["risk", "variance"])
@pytest.mark.parametrize("domain", [hb.Integers(0, 6), hb.Grid(3, 2), hb.Grid(2, 2)], ids=repr)
def test_mirrored_values_are_estimated_alike(domain: hb.Domain, goal: str) -> None:
    design = hb.design(domain, 0.7, privacy="metric", goal=goal)
    each = variances(whole_columns(design), np.full(len(domain), 1 / len(domain)))
    np.testing.assert_allclose(each, each[::-1], rtol=1e-6)


def test_equal_values_are_estimated_alike_under_one_epsilon() -> None:
    design = hb.design(hb.Categories(list(range(6))), 1.0, goal="variance")
    each = variances(whole_columns(design), np.full(6, 1 / 6))
    np.testing.assert_allclose(each, each[0], rtol=1e-6)


def test_plain_risk_on_a_line_has_its_mirror_image() -> None:
    # Shifts do not keep curves, the mirror image does.
    design = hb.design(LINE, 1.0)
    each = variances(whole_columns(design), np.full(8, 1 / 8))
    np.testing.assert_allclose(each, each[::-1], rtol=1e-6)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("outputs", [4, 6, 8, 12])
@pytest.mark.parametrize(("privacy", "epsilon"), [("plain", 2.0), ("metric", 0.5)])
@pytest.mark.parametrize("goal", ["variance", "risk"])
def test_no_more_outputs_are_used_than_allowed(goal: str, privacy: str, epsilon: float, outputs: int) -> None:
    domain = hb.Integers(0, 3)
    free = hb.design(domain, epsilon, privacy=privacy, goal=goal)
    design = hb.design(domain, epsilon, privacy=privacy, goal=goal, outputs=outputs)
    assert_promises(design)
    assert len(design.mechanism.labels) <= outputs
    assert design.value >= free.value * (1 - 1e-9)
    assert design.lost == pytest.approx(max(design.value / free.value - 1, 0.0), rel=1e-3, abs=2e-3)
    small = [name for name, columns in design.question.built_ins.items() if len(columns) <= outputs]
    assert small
    assert design.value <= min(design.built_ins[name] for name in small) * (1 + 1e-8)


@pytest.mark.parametrize("part", [1e-4, 0.1, 0.5])
@pytest.mark.parametrize("goal", ["variance", "risk"])
def test_a_limited_loss_is_kept_and_binding(goal: str, part: float) -> None:
    least = hb.design(LINE, 0.5, privacy="metric", goal="service-loss")
    free = hb.design(LINE, 0.5, privacy="metric", goal="variance")
    limit = least.value + part * (free.loss - least.value)
    design = hb.design(LINE, 0.5, privacy="metric", goal=goal, max_loss=limit)
    assert_promises(design)
    assert design.loss <= limit * (1 + 1e-6)
    assert design.status.startswith("certified")
    assert design.places is not None
    assert len(design.places) == len(design.mechanism.labels)
    if goal == "variance":
        assert design.loss >= limit * (1 - 1e-2)
        assert free.value <= design.value * WITHIN


def test_less_loss_than_possible_is_refused() -> None:
    least = hb.design(LINE, 0.5, privacy="metric", goal="service-loss")
    with pytest.raises(SettingError, match="no mechanism with this privacy has so small a loss"):
        hb.design(LINE, 0.5, privacy="metric", goal="variance", max_loss=least.value * 0.999)


@pytest.mark.parametrize(("privacy", "epsilon"), [("plain", 1.0), ("metric", 0.5)])
def test_no_built_in_mechanism_serves_users_better(privacy: str, epsilon: float) -> None:
    prior = skewed(6)
    design = hb.design(hb.Integers(0, 5), epsilon, privacy=privacy, goal="service-loss", prior=prior)
    assert_promises(design)
    assert design.built_ins
    assert all(design.value <= value * (1 + 1e-9) for value in design.built_ins.values())
    assert design.loss == pytest.approx(design.value, rel=1e-6)


# -- interruption and repetition -------------------------------------------------------------------------


LONG = hb.Integers(0, 9)
QUESTION: dict[str, Any] = {"privacy": "metric", "goal": "variance", "prior": skewed(10)}


def test_the_same_seed_gives_the_same_design() -> None:
    first, second = (
        hb.design(hb.Grid(2, 2), 1.0, privacy="metric", goal="variance", prior=skewed(4), rng=5) for _ in range(2)
    )
    assert first.mechanism == second.mechanism
    assert (first.value, first.bound) == (second.value, second.bound)


def count_rounds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    rounds: list[int] = []
    original = column_generation.OptimalColumns

    def counting(*arguments: Any, **keywords: Any) -> OptimalColumns:
        found = original(*arguments, **keywords)
        rounds.append(found.rounds)
        return found

    monkeypatch.setattr(column_generation, "OptimalColumns", counting)
    return rounds


def test_an_interrupted_design_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = count_rounds(monkeypatch)
    whole = hb.design(LONG, 0.5, **QUESTION)
    needed = max(rounds)
    assert needed >= 3
    file = tmp_path / "columns.npz"
    rounds.clear()
    for _ in hb.design.steps(LONG, 0.5, path=file, **QUESTION):
        if rounds and max(rounds) == needed - 1:
            break
    assert file.exists()
    rounds.clear()
    continued = hb.design(LONG, 0.5, path=file, **QUESTION)
    assert max(rounds) < needed
    assert continued.value == pytest.approx(whole.value, rel=2e-3)
    assert_promises(continued)


def test_the_file_of_another_design_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "columns.npz"
    hb.design(hb.Integers(0, 3), 0.5, privacy="metric", goal="variance", path=file)
    kept = file.read_bytes()
    others: list[tuple[float, dict[str, Any]]] = [
        (0.6, {"goal": "variance"}),
        (0.5, {"goal": "variance", "users": 7}),
        (0.5, {}),
    ]
    for epsilon, arguments in others:
        with pytest.raises(SettingError, match="the file cannot be continued"):
            hb.design(hb.Integers(0, 3), epsilon, privacy="metric", path=file, **arguments)
    assert file.read_bytes() == kept
    file.write_bytes(b"no columns")
    with pytest.raises(SettingError, match="the file cannot be continued"):
        hb.design(hb.Integers(0, 3), 0.5, privacy="metric", goal="variance", path=file)


def test_questions_that_differ_have_keys_that_differ() -> None:
    arguments: list[dict[str, Any]] = [
        {},
        {"privacy": "metric"},
        {"goal": "variance"},
        {"users": 9},
        {"prior": skewed(2)},
    ]
    designs = [hb.design(hb.Integers(0, 1), 0.5, **each) for each in arguments]
    questions: list[DesignQuestion] = [design.question for design in designs]
    assert len({question.content_key for question in questions}) == len(questions)
