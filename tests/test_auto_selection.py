"""What `auto` keeps and says of its choice, its limits and progress."""

from __future__ import annotations

import json
import pickle
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

import hubbub as hb
from auto_studies import (
    ABC,
    SMOOTHED,
    check_estimate,
    chosen_of,
    sent,
    tv,
)
from hubbub.core.progress import Progress, finish
from hubbub.estimators import estimate
from hubbub.estimators.auto import Selection, candidate_fits, model_averaging
from hubbub.estimators.auto.candidate_fits import (
    AutoCandidate,
)

mpl.use("Agg")


# -- large domains, limits, progress, refusals -----------------------------------------------------------


def test_large_maps_are_for_em_alone() -> None:
    grid = hb.Grid(33, 31)
    reports = sent(hb.PlanarGeometric(grid, 1.0), np.random.default_rng(0).integers(0, 300, 4_000))
    answer = hb.estimate(reports, max_iter=20)
    check_estimate(answer, reports)
    selection = answer.settings["selection"]
    assert not selection.uses_newton
    assert selection.folds == 3
    assert selection.max_updates == 20
    assert all(one.family == "uniform" or one.family.startswith("EM") for one in selection.candidates)
    assert any(one.family.startswith("EM smoothed") for one in selection.candidates)
    assert "too large to try more than EM" in answer.status
    assert answer.probabilities[:300].sum() > 0.7


def test_the_filter_on_a_lattice_does_what_the_kernel_does(monkeypatch: pytest.MonkeyPatch) -> None:
    reports, rich = chosen_of("line")
    monkeypatch.setattr(model_averaging, "MAX_DENSE_SYSTEM_VALUES", 5)
    monkeypatch.setattr(candidate_fits, "MAX_DENSE_SYSTEM_VALUES", 5)
    answer = hb.estimate(reports)
    check_estimate(answer, reports)
    assert not answer.settings["selection"].uses_newton
    assert tv(answer.probabilities, rich.probabilities) < 0.06


@pytest.mark.slow
def test_updates_are_limited() -> None:
    reports, found = chosen_of("line")
    assert found.settings["max_iter"] == model_averaging.MAX_UPDATES_BY_SIZE[0][1]
    short = hb.estimate(reports, max_iter=7)
    assert short.settings["max_iter"] == 7
    assert max(one.updates for one in short.settings["selection"].candidates) == 7
    assert hb.estimate(reports, max_iter=10**6).settings["max_iter"] == model_averaging.MAX_UPDATES_BY_SIZE[0][1]
    single = hb.estimate(reports, max_iter=1)
    assert sum(one.family == "EM" for one in single.settings["selection"].candidates) == 1
    with pytest.raises(hb.SettingError, match="max_iter"):
        hb.estimate(reports, max_iter=0)


def test_progress_is_told() -> None:
    reports, found = chosen_of("line")
    told: list[Any] = []
    again_ = finish(estimate.steps(reports), told.append)
    assert again_.probabilities.tolist() == found.probabilities.tolist()
    assert all(isinstance(stage, Progress) for stage in told)
    assert len(told) > len(found.settings["selection"].candidates)
    counted = told[1:]  # after the curves
    assert [stage.done for stage in counted] == sorted(stage.done for stage in counted)
    assert len({stage.total for stage in counted}) == 1
    assert told[0].done == 0
    assert told[-1].done <= told[-1].total
    families = [candidate.family for candidate in found.settings["selection"].candidates[:-1]]
    tried = [f"trying {name}" for name in dict.fromkeys(families)]
    names = ["fitting smooth curves", *tried, "scoring again on new folds"]
    assert list(dict.fromkeys(stage.what for stage in told)) == names


@pytest.mark.parametrize("rng", [-1, True, "seed", 1.5, [1]])
def test_what_is_no_randomness_is_refused(rng: Any) -> None:
    few = sent(hb.RandomizedResponse(ABC, 2.0), np.array([1, 1]))
    for reports in (chosen_of("categories")[0], few):
        with pytest.raises(hb.SettingError, match="not a source of randomness"):
            hb.estimate(reports, rng=rng)


# -- what is kept with the estimate ----------------------------------------------------------------------


@pytest.mark.parametrize("name", SMOOTHED)
def test_the_candidates_are_in_json_and_in_a_table(name: str) -> None:
    _, found = chosen_of(name)
    selection = found.settings["selection"]
    rows = json.loads(found.to_json())["settings"]["selection"]
    assert rows == selection.rows()
    assert [row["candidate"] for row in rows] == [one.description for one in selection.candidates]
    assert sum(row["weight"] for row in rows) == pytest.approx(1.0)
    assert set(rows[0]) == {"candidate", "family", "score", "spread", "weight"}
    table = selection.to_frame()
    assert list(table.columns) == ["candidate", "family", "score", "spread", "weight"]
    assert table["score"].tolist() == selection.scores.tolist()
    back = pickle.loads(pickle.dumps(found))  # noqa: S301
    assert back.settings["selection"].rows() == rows
    with pytest.raises(ValueError, match="read-only"):
        back.settings["selection"].weights[0] = 1.0
    assert selection.chosen.description in repr(selection)


@pytest.mark.parametrize("name", SMOOTHED)
def test_pictures_show_all_families_that_came_close(name: str) -> None:
    import matplotlib.pyplot as plt

    _, found = chosen_of(name)
    selection = found.settings["selection"]
    axes = selection.plot()
    close = selection.scores >= selection.scores.max() - 15.0
    shown = {text.get_text() for text in axes.get_legend().get_texts()}
    assert shown == {one.family for one, near in zip(selection.candidates, close, strict=True) if near}
    points = np.concatenate([np.asarray(marks.get_offsets()) for marks in axes.collections])
    assert len(points) == close.sum()
    heights, scores = np.sort(points[:, 1]), np.sort(selection.scores[close])
    np.testing.assert_allclose(heights - heights[-1], scores - scores[-1], atol=1e-9)  # from whichever level
    assert (points[:, 0] > 0).all()
    assert selection.plot(axes) is axes
    assert found.plot().get_title().endswith("by auto")
    plt.close("all")


def test_a_picture_of_an_even_crowd() -> None:
    import matplotlib.pyplot as plt

    answer = hb.estimate(hb.Reports.from_counts(hb.RandomizedResponse(hb.Integers(0, 5), 1.5), np.full(6, 100)))
    axes = answer.settings["selection"].plot()
    assert "uniform" in {text.get_text() for text in axes.get_legend().get_texts()}
    plt.close("all")


def made_up(weights: list[float], *, rich: bool = True) -> Selection:
    names = ["uniform", "EM", "EM", "a rough curve"]
    candidates = tuple(
        AutoCandidate(name, f"{name} {place}", "more updates" if name == "EM" else "less smoothing", place)
        for place, name in enumerate(names)
    )
    scores = np.array([0.0, 7.0, 9.0, 8.0])
    paths = (0, 1, 1, 2)
    return Selection(candidates, paths, scores, np.array([0.0, 0.1, 0.2, 0.3]), np.array(weights), 5, rich, 100)


def test_what_was_chosen_is_told() -> None:
    made = made_up([0.001, 0.3, 0.4, 0.299])
    assert made.chosen.description == "EM 2"
    assert made.runner_up.description == "a rough curve 3"  # not of the same family
    assert made.counted.tolist() == [2, 1, 3]
    average = "an average of 3 estimates that predict held-out reports well, with most weight on EM 2"
    assert made.explain() == average
    assert made_up([0.001, 0.998, 0.001, 0.0]).explain() == "EM 1, because more updates would fit the noise"
    assert made_up([0.0, 0.0, 1.0, 0.0]).explain() == "EM 2, the limit"
    assert "too large to try more than EM" in made_up([0.1, 0.2, 0.7, 0.0], rich=False).explain()
    assert made_up([1.0, 0.0, 0.0, 0.0]).explain().startswith("uniform 0: the reports do not show")


def test_a_candidate_that_wins_by_far_is_not_said_to_predict_no_better() -> None:
    assert "do not show" not in made_up([0.0, 0.0, 1.0, 0.0]).explain()
