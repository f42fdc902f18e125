"""The accuracy study itself: its cases, what it measures again, where `auto` stands, and the study of few values."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from benchmark_modules import benchmark


def test_cases_have_names_of_their_own_and_truths_are_distributions() -> None:
    cases = benchmark("cases")
    every = cases.cases(with_data=True)
    assert len({case.name for case in every}) == len(every)
    for truth in {case.truth for case in every if case.truth != "San Francisco"}:
        domain, shares = cases.truth_of(truth, None)
        assert shares.shape == (len(domain),)
        assert shares.min() >= 0.0
        assert shares.sum() == pytest.approx(1.0)
    assert {case.half for case in every if case.truth in cases.UNSEEN} == {"report"}


def test_lines_that_were_added_did_not_move_older_cases_to_another_half() -> None:
    cases = benchmark("cases")
    every = cases.cases(with_data=True)[:121]  # those of the first study
    assert every[-1].name == "San Francisco, planar Laplace 1, 10,000 users"
    assert Counter(case.half for case in every) == {"report": 65, "tune": 56}
    assert [case.half for case in every[:6]] == ["tune", "report", "tune", "report", "report", "tune"]


def test_the_shares_of_few_values_and_held_words() -> None:
    truths = benchmark("truths")
    assert truths.few_values("60/40", 3) == pytest.approx(np.array([0.6, 0.2, 0.2]))
    assert truths.few_values("99/1", 2) == pytest.approx(np.array([0.99, 0.01]))
    assert truths.few_values("one empty", 5) == pytest.approx(np.array([0.25, 0.25, 0.25, 0.25, 0.0]))
    assert truths.few_values("even", 10) == pytest.approx(np.full(10, 0.1))
    falling = np.sort(truths.held_words(5, 100, falling=True))[::-1]
    assert falling[1:5] / falling[:4] == pytest.approx(np.full(4, 0.6))
    assert np.count_nonzero(falling) == 5


def task(old: dict[str, Any] | None) -> Any:
    accuracy, cases = benchmark("accuracy"), benchmark("cases")
    case = cases.Case("short bell", "truncated geometric", 1.0, 200, "tune")
    return accuracy.Task(case, 0, None, "code", "rivals", old)


def test_a_row_that_lacks_the_rivals_gets_them_and_keeps_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    accuracy, rivals = benchmark("accuracy"), benchmark("rivals")
    whole = accuracy.measured(task(None))
    assert set(rivals.RIVALS) < set(whole["tv"])
    older = {**whole, "tv": {name: error for name, error in whole["tv"].items() if name not in rivals.RIVALS}}
    older["emd"] = {name: error for name, error in whole["emd"].items() if name not in rivals.RIVALS}
    del older["rivals"]
    with monkeypatch.context() as patch:
        for name in ("lasting", "choosing"):
            patch.setattr(accuracy, name, lambda *_: pytest.fail("measured again"))
        assert accuracy.measured(task(older)) == whole
    with monkeypatch.context() as patch:
        for name in ("lasting", "rivals"):
            patch.setattr(accuracy, name, lambda *_: pytest.fail("measured again"))
        again = accuracy.measured(task({**whole, "fingerprint": "older code"}))
    assert again["tv"] == whole["tv"]


def test_where_auto_stands() -> None:
    cases, summary, standing = benchmark("cases"), benchmark("accuracy_summary"), benchmark("accuracy_rivals")
    first, second, third = cases.cases(with_data=False)[:3]
    errors = dict.fromkeys(standing.COMPARED, 0.5)
    rows = [
        {"case": first.name, "tv": {**errors, "mle": 0.1, "auto": 0.104, "oracle": 0.1}},
        {"case": second.name, "tv": {**errors, "norm-cut": 0.1, "Tikhonov": None, "auto": 0.2, "oracle": 0.1}},
        {"case": third.name, "tv": {"mle": 0.1, "auto": 0.3, "oracle": 0.1}},  # from before the rivals
    ]
    table = summary.Table(rows, "tv")
    known = [first, second, third]
    near, far = standing.standings(known, table)
    assert (near.best, near.near) == ("mle", True)
    assert (far.best, far.near, far.ratio) == ("norm-cut", False, pytest.approx(2.0))
    assert standing.near_share(known, table) == (0.5, 2)
    text = "\n".join(standing.rivals_section(known, table))
    assert "In 1 of 2 cases another method is ahead" in text
    assert f"| {second.name} | {second.half} | norm-cut | 0.1000 | 0.2000 | 2.00 |" in text


def test_few_values_has_every_cell_once_and_even_halves() -> None:
    few_values = benchmark("few_values")
    cells = few_values.cells()
    assert len({cell.name for cell in cells}) == len(cells) == 4 * 6 * 4 * 4 * 4
    assert Counter(cell.half for cell in cells) == {"tune": 768, "report": 768}


@pytest.mark.parametrize("mechanism", [hb.RandomizedResponse, hb.Rappor, hb.OptimizedUnary, hb.LocalHashing])
def test_few_values_are_drawn_as_the_mechanism_draws_them(mechanism: Any) -> None:
    few_values = benchmark("few_values")
    truth, oracle = np.array([0.6, 0.3, 0.1]), mechanism(hb.Categories(range(3)), 2.0)
    reports = few_values.drawn(oracle, truth, 20_000, np.random.default_rng(1))
    assert reports.users == 20_000
    assert reports.weights.size <= 8
    # Five standard deviations of OLH, the least exact of the four: sqrt(e^2 / 20000) * 2 / (e^2 - 1).
    assert hb.estimate(reports, "mle").probabilities == pytest.approx(truth, abs=0.04)


def test_a_cell_is_biased_where_auto_is_and_the_maximum_is_not() -> None:
    few_values = benchmark("few_values")
    exact = {"tv": 0.1, "bias": [0.01, -0.01], "deviation": [0.1, 0.1]}
    pulled = {"tv": 0.09, "bias": [0.04, -0.04], "deviation": [0.05, 0.05]}
    assert few_values.biased({"auto": pulled, "mle": exact})
    assert not few_values.biased({"auto": exact, "mle": exact})
    assert not few_values.biased({"auto": pulled, "mle": pulled})
    assert few_values.ratio({"auto": pulled, "mle": exact}) == pytest.approx(0.9)


def test_measuring_a_cell() -> None:
    few_values = benchmark("few_values")
    cell = next(one for one in few_values.cells() if one.name == "60/40 of 2 values, k-RR 2, 500 users")
    row = few_values.measured(few_values.Task(cell, 4, "code"))
    assert row["draws"] == 4
    # The share of one of two values has the deviation sqrt(s (1 - s) / n) / (p - q): 0.029; four draws know it roughly.
    assert 0.005 < row["mle"]["deviation"][0] < 0.08
    assert row["mle"]["bias"][0] == pytest.approx(-row["mle"]["bias"][1], abs=1e-6)
