"""Plans that look for the best of all kinds: which they try, which they leave early, and what they simulate by sums."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import hubbub as hb
from hubbub.intake.study_entries import MECHANISMS
from hubbub.mechanisms.longitudinal import Longitudinal
from hubbub.planning.candidates import candidates_from
from hubbub.planning.every_kind import every_kind, missing_arguments
from hubbub.planning.plan_sentences import _left_after
from hubbub.planning.simulator import Simulator
from hubbub.planning.support_simulation import draw_support, supported_reports
from terminal import hubbub

LEVEL = 1e-4  # of each test of random numbers
LINE = hb.Bins(np.linspace(0.0, 8.0, 33))
WORDS = hb.Categories(list("abcdefgh"))
FALLING = np.linspace(8.0, 1.0, 8) / 36.0


@pytest.fixture(scope="module")
def line_plan() -> hb.Plan:
    return hb.plan("all", domain=LINE, epsilon=1.0, users=5_000, truth="bells", method="ibu")


def test_all_kinds_are_those_that_a_domain_and_an_epsilon_make(line_plan: hb.Plan) -> None:
    kinds, refused = every_kind(LINE, 1.0, LINE.diameter)
    needing_more = {name for name, kind in MECHANISMS.items() if missing_arguments(kind)}
    with_memory = {name for name, kind in MECHANISMS.items() if issubclass(kind, Longitudinal)}
    telling_means = {name for name, kind in MECHANISMS.items() if kind.means_only}
    assert set(kinds) | set(refused) | needing_more | with_memory | telling_means == set(MECHANISMS)
    assert not (with_memory | telling_means) & set(kinds)
    assert telling_means == {"duchi"}
    assert "d-bit-flip" in every_kind(LINE, 1.0, LINE.diameter, repeated=True).kinds
    assert {"matrix", "cloaking", "warner", "longitudinal-rappor"} <= needing_more
    assert {"geometric", "planar-laplace"} <= set(refused)
    tried = {setting.candidate for setting in line_plan.settings}
    assert tried == set(kinds)
    assert all(setting.spent.plain == pytest.approx(1.0) for setting in line_plan.settings)
    assert any("Not possible on this domain" in note and "planar-laplace" in note for note in line_plan.notes)


def test_those_that_are_clearly_worse_are_left_early_and_told(line_plan: hb.Plan) -> None:
    by_name = {setting.candidate: setting for setting in line_plan.settings}
    best = min(line_plan.settings, key=lambda setting: setting.tv.median)
    assert not best.screened
    assert by_name["randomized-response"].screened
    assert by_name["randomized-response"].runs == 8 < best.runs  # studies of few values are quick
    assert all(setting.tv.median > best.tv.median for setting in line_plan.settings if setting.screened)
    notes = [note for note in line_plan.notes if "left after" in note]
    for setting in line_plan.settings:
        told = [note for note in notes if setting.candidate in re.split(", | and |:", note)]
        assert len(told) == setting.screened
        if told:
            assert "left after 8 simulated studies each: all errors were larger than the largest of" in told[0]


def test_notes_say_how_far_behind_a_candidate_was() -> None:
    assert _left_after(1, 2.0) == (
        "one simulated study each: the error was more than 2 times as large as the best candidate's"
    )
    assert _left_after(2, 1.5) == (
        "2 simulated studies each: all errors were more than 1.5 times as large as the largest of the best candidate's"
    )


def test_a_fresh_simulation_agrees_about_the_best(line_plan: hb.Plan) -> None:
    best = min(line_plan.settings, key=lambda setting: setting.tv.median)
    rivals = [best.candidate, "randomized-response"]
    fresh = hb.plan(rivals, domain=LINE, epsilon=1.0, users=5_000, truth="bells", method="ibu", runs=20, rng=99)
    own, other = (setting.tv.median for setting in fresh.settings)
    assert own < other
    assert best.tv.low / 1.5 < own < best.tv.high * 1.5


def test_candidates_that_are_named_are_not_left() -> None:
    kinds = ["square-wave", "randomized-response"]
    result = hb.plan(kinds, domain=LINE, epsilon=1.0, users=5_000, truth="bells", method="ibu", runs=5)
    assert [setting.runs for setting in result.settings] == [5, 5]
    assert not any(setting.screened for setting in result.settings)


@pytest.mark.parametrize("kind", ["subset-selection", "optimized-unary"])
def test_support_of_sets_is_drawn_as_the_mechanism_sends_it(kind: str) -> None:
    """One value at a time, with the mechanism's own draws beside: also for sets of one size."""
    ((mechanism, _),) = candidates_from(kind, domain=WORDS, epsilon=1.0)[0].parts
    users, runs, rng = 300, 400, np.random.default_rng(3)
    quick = draw_support(mechanism, users, FALLING, runs, rng)  # type: ignore[arg-type]
    slow = np.stack([own_support(mechanism, users, rng) for _ in range(runs)])
    for place in range(len(WORDS)):
        assert stats.ks_2samp(quick[:, place], slow[:, place]).pvalue > LEVEL
    assert stats.ks_2samp(quick[:, 0] + 12, slow[:, 0]).pvalue < LEVEL


def own_support(mechanism: hb.Mechanism, users: int, rng: np.random.Generator) -> NDArray[np.int64]:
    rows = mechanism.privatize(WORDS.labels[rng.choice(8, size=users, p=FALLING)], rng=rng)
    sums: NDArray[np.int64] = np.unpackbits(rows, axis=1, count=8).sum(axis=0, dtype=np.int64)
    return sums


@pytest.mark.parametrize("kind", ["subset-selection", "local-hashing", "rappor"])
def test_sums_of_support_have_the_oracles_probabilities(kind: str) -> None:
    """With expected numbers the truth is where the likelihood of the sums is largest."""
    ((oracle, _),) = candidates_from(kind, domain=WORDS, epsilon=1.5)[0].parts
    true, other = oracle.support  # type: ignore[attr-defined]
    users = 10_000_000
    expected = np.rint(users * (FALLING * true + (1 - FALLING) * other)).astype(np.int64)
    reports = supported_reports(oracle, expected, users)  # type: ignore[arg-type]
    np.testing.assert_allclose(hb.estimate(reports, "mle").probabilities, FALLING, atol=1e-5)
    np.testing.assert_allclose(hb.estimate(reports, "inv-n").probabilities, FALLING, atol=1e-5)


def test_sums_are_used_by_slow_methods_with_many_users_alone() -> None:
    (candidate,) = candidates_from("optimized-unary", domain=LINE, epsilon=1.0)
    assert Simulator(candidate, "auto").uses_sums(20_000)
    assert not Simulator(candidate, "auto").uses_sums(1_000)
    assert not Simulator(candidate, "mle").uses_sums(20_000)
    (listed,) = candidates_from("square-wave", domain=LINE, epsilon=1.0)
    assert not Simulator(listed, "auto").uses_sums(10**9)


@pytest.mark.parametrize("kind", [hb.CountMeanSketch, hb.HadamardCountMeanSketch])
def test_the_work_of_sketches_is_that_of_all_their_buckets(kind: type[hb.Mechanism]) -> None:
    """Or quick methods would repeat studies thousands of times that take a tenth of a second each."""
    mechanism = kind(WORDS, 1.0, hashes=16, width=2_048)  # type: ignore[call-arg]
    simulator = Simulator(candidates_from(mechanism)[0], "inv-p")
    work = simulator.batch(500, FALLING, 2, np.random.default_rng(0)).work
    assert work / 2 == pytest.approx(simulator.cost(500))
    assert work / 2 > 1e-7 * 16 * 2_048  # seconds


def test_plans_by_sums_say_so() -> None:
    result = hb.plan("optimized-unary", domain=LINE, epsilon=1.0, users=20_000, truth="bells", runs=2)
    assert any("how many reports support each value" in note for note in result.notes)
    few = hb.plan("optimized-unary", domain=LINE, epsilon=1.0, users=500, truth="bells", runs=2)
    assert not any("how many reports support each value" in note for note in few.notes)
    assert math.isfinite(result.settings[0].tv.median)


def test_the_terminal_knows_all_kinds(tmp_path: Path) -> None:
    domain = "[domain]\nkind = 'integers'\nlow = 1\nhigh = 6\n"
    study = "[mechanisms.m]\nkind = 'krr'\nepsilon = 1.0\n"
    Path(tmp_path, "study.toml").write_text(f"version = 1\n{domain}{study}")
    asked = ("plan", "study.toml", "--kind", "all", "--users", 500, "--method", "ibu", "--runs", 20)
    done = hubbub(*asked, "--epsilon", 1, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["settings"]
    assert {"square-wave", "truncated-geometric", "randomized-response"} <= {row["candidate"] for row in rows}
    mixed = hubbub(*asked, "--epsilon", 1, "--kind", "krr", cwd=tmp_path)
    assert mixed.returncode == 2
    assert "all kinds are compared with each other alone" in mixed.stderr
    assert hubbub(*asked, cwd=tmp_path).returncode == 2  # without an epsilon
