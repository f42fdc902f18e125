"""`plan` itself: the three questions, and what they have in common."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.planning import Plan

COLOURS = hb.Categories(["red", "green", "blue"])
COLOUR = hb.RandomizedResponse(COLOURS, 1.0)
FAST: dict[str, Any] = {"truth": "bell", "method": "inv-p", "runs": 20}


def test_users_alone_give_errors() -> None:
    plan = hb.plan(COLOUR, users=[1000, 100, 100], truth="bell", method="mle", runs=7, rng=3, level=0.9)
    assert [(setting.candidate, setting.users, setting.truth) for setting in plan.settings] == [
        ("randomized-response", 100, "bell"),
        ("randomized-response", 1000, "bell"),
    ]
    for setting in plan.settings:
        assert setting.runs == 7
        assert setting.emd is None
        assert setting.widths is not None
        assert setting.widths.level == 0.9
    assert plan.needed == ()
    assert plan.question.looks_for == "error"
    assert (plan.method, plan.distance, plan.runs, plan.seed) == ("mle", "tv", 7, 3)
    assert [truth.name for truth in plan.truths] == ["bell"]


def test_a_target_alone_gives_users_and_the_error_with_them() -> None:
    candidates = {"a": COLOUR, "b": hb.Rappor(COLOURS, 2.0)}
    plan = hb.plan(candidates, target=0.1, confidence=0.8, **FAST)
    assert plan.question.looks_for == "users"
    assert [(need.candidate, need.what, need.truth) for need in plan.needed] == [
        ("a", "users", "bell"),
        ("b", "users", "bell"),
    ]
    assert [setting.users for setting in plan.settings] == [math.ceil(need.value or 0.0) for need in plan.needed]
    for need, half in zip(plan.needed, hb.plan(candidates, target=0.1, **FAST).needed, strict=True):
        assert need.value is not None
        assert half.value is not None
        assert need.value > half.value  # the median asks for fewer users


def test_both_give_the_epsilon_for_each_number_of_users() -> None:
    kinds = ["randomized-response", hb.Rappor]
    plan = hb.plan(kinds, users=[100, 1000], target=0.1, domain=COLOURS, epsilon=[0.1, 8], **FAST)
    assert plan.question.looks_for == "epsilon"
    assert [(need.candidate, need.users) for need in plan.needed] == [
        (name, users) for users in (100, 1000) for name in ("randomized-response", "rappor")
    ]
    assert len(plan.settings) == 2 * 2 * 2
    assert plan.sentence.count("With ") == 2


def test_a_study_brings_its_mechanisms() -> None:
    study = hb.Study(COLOURS, {"strong": COLOUR, "light": hb.RandomizedResponse(COLOURS, 3.0)})
    plan = hb.plan(study, users=100, truth={"red": 1, "blue": 3}, method="inv-p", runs=2)
    assert [setting.candidate for setting in plan.settings] == ["strong", "light"]
    assert plan.truths[0].probabilities.tolist() == [0.25, 0.0, 0.75]
    with pytest.raises(hb.SettingError, match="different domains"):
        hb.plan(study, users=100, domain=hb.Categories(["yes", "no"]))


def medians(plan: Plan) -> list[tuple[Any, ...]]:
    return [(setting.tv, setting.emd, setting.closed, setting.truth) for setting in plan.settings]


def test_the_same_seed_gives_the_same_plan_with_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    ages = hb.Integers(0, 9)

    def plan(rng: Any) -> Plan:
        mechanisms = [hb.RandomizedResponse(ages, 1.0), hb.TruncatedGeometric(ages, 1.0)]
        return hb.plan(mechanisms, users=300, truth=["bell", "zipf"], method="ibu", runs=10, rng=rng, values=[0])

    first = plan(0)
    assert first.seed == 0
    monkeypatch.setattr("hubbub.planning.parallel.processors", lambda: 1)
    assert medians(plan(None)) == medians(first)
    assert medians(plan(1)) != medians(first)
    drawn, again = (plan(np.random.default_rng(3)) for _ in range(2))
    assert drawn.seed == "a generator"
    assert medians(drawn) == medians(again)
    assert medians(drawn) != medians(first)


def test_widths_are_predicted_for_the_values_that_were_passed() -> None:
    ages = hb.Integers(0, 39)
    mechanism = hb.TruncatedGeometric(ages, 0.5)

    def widths(values: object) -> list[int]:
        own = hb.plan(mechanism, users=1_000, truth="bell", method="ibu", runs=2, values=values).settings[0].widths
        assert own is not None
        assert (own.widths > 0).all()
        return list(own.values.tolist())

    assert len(widths(None)) == 3
    assert widths([7, 3, 7]) == [3, 7]
    assert widths(12) == [12]
    assert widths("all") == ages.labels.tolist()
    with pytest.raises(hb.SettingError, match="values must be values of the domain"):
        hb.plan(mechanism, users=1_000, values=[40])


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"users": -5}, "users must be"),
        ({"users": iter([100, -5])}, "users must be"),
        ({"method": "magic"}, "method must be 'auto'"),
        ({"distance": "far"}, "distance must be 'tv' or 'emd'"),
        ({"distance": "emd"}, "these values have no distances"),
        ({"runs": 0}, "runs must be a whole number of studies from 2"),
        ({"runs": 10**7}, "runs must be a whole number of studies from 2"),
        ({"level": 2.0}, "level must be"),
        ({"rng": "dice"}, "not a source of randomness"),
        ({"target": 0.0}, "target must be a total variation between 0 and 1"),
        ({"target": 0.1, "confidence": 1.0}, "confidence must be a number between 0 and 1"),
    ],
)
def test_wrong_keywords_are_refused_before_any_work(keywords: dict[str, Any], words: str) -> None:
    with pytest.raises(hb.SettingError, match=words):
        hb.plan.steps(COLOUR, **({"users": 100} | keywords))


@pytest.mark.parametrize(
    ("keywords", "parts"), [({"users": 100}, 1), ({"target": 0.2}, 2), ({"users": [100, 1000], "target": 0.2}, 3)]
)
def test_progress_grows_to_its_end(keywords: dict[str, Any], parts: int) -> None:
    steps = list(hb.plan.steps(COLOUR, **keywords, **FAST))
    done = [step.done / step.total for step in steps]
    assert done == sorted(done)
    assert done[-1] == 1.0
    assert ("part" in steps[-1].what) == (parts > 1)
    assert {step.what.split(":")[0] for step in steps if "part" in step.what} == {
        f"part {number + 1} of {parts}" for number in range(parts) if parts > 1
    }


def test_a_plan_can_be_left() -> None:
    steps = hb.plan.steps(COLOUR, users=[100, 1_000], truth="bell", method="mle", runs=100_000)
    next(steps)
    next(steps)
    steps.close()  # ends the work that nobody waits for
