"""Plans for a central target, in Python and at the terminal; and the attacker of an audit at the terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hubbub as hb
from hubbub.planning.candidates import candidates_from
from terminal import hubbub

DRINKS = hb.Categories(["tea", "coffee", "water", "juice"])
USERS, DELTA, CENTRAL = 3_000, 1e-6, 0.4
KINDS = ["randomized-response", "rappor", "local-hashing"]
STUDY = """
version = 1
name = "drinks"
max_reports_per_user = 2
[domain]
kind = "integers"
low = 0
high = 4
[mechanisms.steps]
kind = "truncated-geometric"
epsilon = 0.5
[mechanisms.bits]
kind = "rappor"
epsilon = 1.0
"""


@pytest.fixture(scope="module")
def central_plan() -> hb.Plan:
    return hb.plan(
        KINDS, domain=DRINKS, users=USERS, central_epsilon=CENTRAL, delta=DELTA, truth="zipf", method="inv-p", runs=20
    )


def test_each_kind_has_the_largest_epsilon_that_meets_the_target(central_plan: hb.Plan) -> None:
    assert [setting.candidate for setting in central_plan.settings] == KINDS
    assert len({setting.epsilon for setting in central_plan.settings}) == 3
    for setting in central_plan.settings:
        assert setting.epsilon is not None
        assert setting.spent.plain == pytest.approx(setting.epsilon)
        own, more = (
            candidates_from({setting.candidate: setting.candidate}, domain=DRINKS, epsilon=factor * setting.epsilon)
            for factor in (1.0, 1.01)
        )
        assert hb.amplify(own[0].parts[0][0], USERS, DELTA).epsilon <= CENTRAL * 1.0002
        assert hb.amplify(more[0].parts[0][0], USERS, DELTA).epsilon > CENTRAL


def test_kinds_are_compared_with_each_other(central_plan: hb.Plan) -> None:
    (answer,) = central_plan.answers
    assert "central epsilon 0.4 (delta 1e-06)" in answer
    best = min(central_plan.settings, key=lambda setting: setting.tv.median)
    assert f"{best.candidate} at epsilon {best.epsilon:.3g}" in answer
    assert all(setting.candidate in answer for setting in central_plan.settings)
    assert not any("different epsilons" in note for note in central_plan.notes)
    assert any("trusted shuffler" in note for note in central_plan.notes)
    document = json.loads(central_plan.to_json())
    assert (document["central_epsilon"], document["delta"]) == (CENTRAL, DELTA)


def test_an_ordinary_plan_has_no_central_epsilon() -> None:
    plan = hb.plan("rappor", domain=DRINKS, epsilon=1.0, users=100, method="inv-p", runs=2)
    assert json.loads(plan.to_json())["central_epsilon"] is None
    assert "central" not in plan.explain()


def test_epsilon_per_unit_counts_over_the_whole_domain() -> None:
    line = hb.Integers(0, 9)
    plan = hb.plan(
        "truncated-geometric", domain=line, users=USERS, central_epsilon=CENTRAL, delta=DELTA, method="inv-p", runs=2
    )
    (setting,) = plan.settings
    assert setting.spent.per_unit is not None
    near = hb.plan(
        "truncated-geometric",
        domain=line,
        users=USERS,
        central_epsilon=CENTRAL,
        delta=DELTA,
        radius=3.0,
        method="inv-p",
        runs=2,
    )
    # the radius says how epsilon is told; what the shuffled reports may tell is the same
    assert near.settings[0].spent.per_unit == pytest.approx(setting.spent.per_unit, rel=2e-3)
    steps = hb.TruncatedGeometric(line, setting.spent.per_unit)
    assert CENTRAL * 0.98 < hb.amplify(steps, USERS, DELTA).epsilon <= CENTRAL * 1.0002


def test_power_for_groups_that_are_shuffled_apart() -> None:
    plan = hb.plan(KINDS, domain=DRINKS, users=USERS, difference=0.05, central_epsilon=CENTRAL, delta=DELTA)
    (answer,) = plan.answers
    assert "per group and central epsilon 0.4 (delta 1e-06)" in answer


def test_progress_names_the_kinds() -> None:
    steps = list(hb.plan.steps(KINDS, domain=DRINKS, users=100, difference=0.2, central_epsilon=1.0, delta=1e-4))
    assert [kind for kind in KINDS if any(kind in step.what for step in steps)] == KINDS


@pytest.mark.slow
def test_all_kinds_race_at_one_central_epsilon(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    options = "--kind all --users 2000 --central-epsilon 0.5 --delta 1e-6 --truth bells --method inv-p --json"
    done = hubbub("plan", "study.toml", *options.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["central_epsilon"] == 0.5
    assert len(document["settings"]) > 8
    assert any(setting["screened"] for setting in document["settings"])
    epsilons = {setting["candidate"]: setting["epsilon"] for setting in document["settings"]}
    assert epsilons["optimized-unary"] > epsilons["randomized-response"] > 0.5


def test_the_terminal_refuses_what_python_refuses(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    done = hubbub("plan", "study.toml", "--users", "100", "--central-epsilon", "0.5", "--delta", "1e-6", cwd=tmp_path)
    assert done.returncode == 2
    assert "hb.amplify" in done.stderr
    options = ["--kind", "rappor", "--users", "100", "--central-epsilon", "0.5"]
    done = hubbub("plan", "study.toml", *options, cwd=tmp_path)
    assert done.returncode == 2
    assert "a central epsilon needs a delta" in done.stderr


def test_audits_say_what_an_attacker_guesses(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "known.csv").write_text("value,count\n0,10\n1,40\n2,5\n3,25\n4,20\n")
    done = hubbub("audit", "study.toml", "--draws", "200", "--prior", "known.csv", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    mechanisms = json.loads(done.stdout)["mechanisms"]
    own = hb.attacker(
        hb.TruncatedGeometric(hb.Integers(0, 4), 0.5), prior=[0.1, 0.4, 0.05, 0.25, 0.2], reports_per_user=2
    )
    told = mechanisms["steps"]["attacker"]
    assert told["prior"] == "known.csv"
    assert told["reports_per_user"] == 2
    assert told["vulnerability"] == pytest.approx(own.vulnerability)
    assert told["distance"] == pytest.approx(own.distance)
    assert mechanisms["bits"]["attacker"]["prior_vulnerability"] == pytest.approx(0.4)
    done = hubbub("audit", "study.toml", "--draws", "200", "--prior", "uniform", cwd=tmp_path)
    assert done.stdout.count("An attacker who knows that all values are equally frequent") == 2
    assert "after 2 reports of that person" in done.stdout


def test_without_a_prior_audits_are_silent_about_attackers(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    done = hubbub("audit", "study.toml", "--draws", "200", "--json", cwd=tmp_path)
    assert all(audit["attacker"] is None for audit in json.loads(done.stdout)["mechanisms"].values())
    done = hubbub("audit", "study.toml", "--prior", "uniform", "--outputs", "sent.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert "--prior" in done.stderr
