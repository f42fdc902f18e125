"""`plan` itself: which questions go to the engine, with which numbers, and what becomes of the answers."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import pytest

import hubbub as hb
from hubbub.core.progress import Progress
from hubbub.planning import api as study_plan
from hubbub.planning import planning_for
from hubbub.planning.result import Needed, SettingResult
from plans import needed, setting

COLOURS = hb.Categories(["red", "green", "blue"])
COLOUR = hb.RandomizedResponse(COLOURS, 1.0)


class Engine:
    """Answers by a formula, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any, dict[str, Any]]] = []

    def simulating(
        self, candidates: Any, users: Sequence[int], truths: Any, **rest: Any
    ) -> Generator[Progress, None, tuple[SettingResult, ...]]:
        self.asked.append(("simulating", ([one.name for one in candidates], list(users), truths), rest))
        yield Progress(0, 1, "simulating")
        return tuple(
            setting(one.name, one.epsilon, n, (n * one.epsilon) ** -0.5, truth=truth.name,
                    reports_per_user=one.reports_per_user, privacy=one.privacy)
            for one in candidates for n in users for truth in truths
        )  # fmt: skip

    def simulating_each(self, asked: Any, **rest: Any) -> Generator[Progress, None, tuple[SettingResult, ...]]:
        self.asked.append(("simulating_each", [(one.name, n, truth.name) for one, n, truth in asked], rest))
        yield Progress(1, 2, "simulating each")
        return tuple(setting(one.name, one.epsilon, n, 0.1, truth=truth.name) for one, n, truth in asked)

    def needing(
        self, candidates: Any, target: float, truths: Any, **rest: Any
    ) -> Generator[Progress, None, tuple[Needed, ...]]:
        self.asked.append(("needing", ([one.name for one in candidates], target, truths), rest))
        yield Progress(0, 1, "needing")
        if rest["users"] is None:
            return tuple(
                needed(one.name, one.epsilon, target**-2 / one.epsilon + 0.5, truth=truths[0].name, privacy=one.privacy)
                for one in candidates
            )
        names = list(dict.fromkeys(one.name for one in candidates))
        users = rest["users"]
        return tuple(needed(name, None, 1.5, what="epsilon", users=users, truth=truths[0].name) for name in names)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    found = Engine()
    monkeypatch.setattr(study_plan, "simulating", found.simulating)
    monkeypatch.setattr(study_plan, "simulating_each", found.simulating_each)
    monkeypatch.setattr(study_plan, "needing", found.needing)
    return found


def test_users_alone_ask_for_errors(engine: Engine) -> None:
    found = hb.plan(COLOUR, users=[1000, 100, 100], truth="bell", method="mle", runs=7, rng=3, level=0.9)
    ((what, (names, users, truths), rest),) = engine.asked
    assert what == "simulating"
    assert names == ["randomized-response"]
    assert users == [100, 1000]
    assert [truth.name for truth in truths] == ["bell"]
    assert rest == {"method": "mle", "distance": "tv", "runs": 7, "rng": 3, "level": 0.9, "places": None}
    assert [one.users for one in found.settings] == [100, 1000]
    assert found.needed == ()
    assert (found.method, found.distance, found.runs, found.seed) == ("mle", "tv", 7, 3)
    assert found.truths[0].name == "bell"


def test_a_target_alone_asks_for_users_and_then_for_the_error_there(engine: Engine) -> None:
    found = hb.plan({"a": COLOUR, "b": hb.Rappor(COLOURS, 2.0)}, target=0.1, truth="bell", confidence=0.8)
    assert [what for what, _, _ in engine.asked] == ["needing", "simulating_each"]
    assert engine.asked[0][2]["confidence"] == 0.8
    assert engine.asked[0][2]["users"] is None
    assert engine.asked[1][1] == [("a", 101, "bell"), ("b", 51, "bell")]  # rounded up
    assert [one.value for one in found.needed] == [pytest.approx(100.5), pytest.approx(50.5)]
    assert found.question.looks_for == "users"


def test_both_ask_for_the_epsilon_for_each_number_of_users(engine: Engine) -> None:
    kinds = ["randomized-response", hb.Rappor]
    found = hb.plan(kinds, users=[100, 1000], target=0.1, truth="bell", domain=COLOURS, epsilon=[1, 2])
    assert [what for what, _, _ in engine.asked] == ["needing", "needing", "simulating"]
    assert [rest["users"] for _, _, rest in engine.asked[:2]] == [100, 1000]
    assert len(found.settings) == 2 * 2 * 2
    assert found.question.looks_for == "epsilon"
    assert found.sentence.count("With ") == 2


def test_a_study_brings_its_mechanisms(engine: Engine) -> None:
    study = hb.Study(COLOURS, {"strong": COLOUR, "light": hb.RandomizedResponse(COLOURS, 3.0)})
    found = hb.plan(study, users=100, truth={"red": 1, "blue": 3})
    assert [one.candidate for one in found.settings] == ["strong", "light"]
    assert found.truths[0].probabilities.tolist() == [0.25, 0.0, 0.75]
    with pytest.raises(hb.SettingError, match="different domains"):
        hb.plan(study, users=100, domain=hb.Categories(["yes", "no"]))


def test_a_seed_is_recorded_and_a_generator_is_passed_on(engine: Engine) -> None:
    import numpy as np

    assert hb.plan(COLOUR, users=100).seed == 0
    assert engine.asked[-1][2]["rng"] == 0
    generator = np.random.default_rng(5)
    assert hb.plan(COLOUR, users=100, rng=generator).seed == "a generator"
    assert engine.asked[-1][2]["rng"] is generator


def test_widths_are_told_for_the_values_that_are_asked_for() -> None:
    ages = hb.Integers(0, 39)
    mechanism = hb.TruncatedGeometric(ages, 0.5)

    def widths(values: object) -> list[int]:
        found = hb.plan(mechanism, users=1_000, truth="bell", method="ibu", runs=2, values=values).settings[0].widths
        assert found is not None
        assert (found.widths > 0).all()
        return list(found.values.tolist())

    assert len(widths(None)) == 3
    assert widths([7, 3, 7]) == [3, 7]
    assert widths(12) == [12]
    assert widths("all") == ages.labels.tolist()
    with pytest.raises(hb.SettingError, match="not values of the domain"):
        hb.plan(mechanism, users=1_000, values=[40])


def test_mistakes_are_told_before_any_work(engine: Engine) -> None:
    with pytest.raises(hb.SettingError):
        planning_for(COLOUR, users=-5)
    assert engine.asked == []


def test_progress_is_passed_on(engine: Engine) -> None:
    stages = list(planning_for(COLOUR, users=100))
    assert [stage.what for stage in stages] == ["simulating"]


def test_progress_of_several_parts_never_goes_back(engine: Engine) -> None:
    stages = list(planning_for(COLOUR, users=[100, 1000], target=0.1))
    assert [stage.done / stage.total for stage in stages] == pytest.approx([0, 1 / 3, 2 / 3], abs=0.001)
    assert stages[-1].what == "part 3 of 3: simulating"
    stages = list(planning_for(COLOUR, target=0.1))
    assert [stage.done / stage.total for stage in stages] == [0, 0.75]
