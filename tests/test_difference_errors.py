"""Standard errors of differences between groups: closed forms, simulations, weights, and where there are none.

Level: a simulated standard deviation is compared within four of its own standard deviations.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import hubbub as hb
from terminal import hubbub

COIN = hb.Categories(["yes", "no"])
LETTERS = hb.Categories(["a", "b", "c"])
DIGITS = hb.Integers(1, 4)


def test_yes_or_no_has_the_error_of_two_proportions_of_answers() -> None:
    """The share of yes is (answers - (1 - p)) / (2p - 1), and answers are binomial."""
    groups, variance = [], 0.0
    for epsilon, yes, users in ((1.0, 480, 1_000), (2.0, 1_120, 2_000)):
        groups.append(hb.Reports.from_counts(hb.RandomizedResponse(COIN, epsilon), [yes, users - yes]))
        truthful = math.exp(epsilon) / (1.0 + math.exp(epsilon))
        answers = yes / users
        variance += answers * (1.0 - answers) / users / (2.0 * truthful - 1.0) ** 2
    estimates = [hb.estimate(reports, "mle") for reports in groups]  # whose fit is the data
    frame = hb.compare(*groups, estimates=estimates).to_frame()
    assert frame["standard_error"].tolist() == pytest.approx([math.sqrt(variance)] * 2, rel=1e-6)


def test_simulated_differences_vary_as_much() -> None:
    """Shares of k-RR by inversion, which is the maximum as long as no share is near 0."""
    rng, studies, users = np.random.default_rng(4), 4_000, (900, 1_600)
    mechanism = hb.RandomizedResponse(LETTERS, 1.5)
    own, other = mechanism.support
    truths = np.array([[0.5, 0.3, 0.2], [0.3, 0.4, 0.3]])
    answers = other + (own - other) * truths
    drawn = [rng.multinomial(count, each, studies) / count for count, each in zip(users, answers, strict=True)]
    differences = (drawn[1] - drawn[0]) / (own - other)
    groups = [
        hb.Reports.from_counts(mechanism, np.round(count * each).astype(int))
        for count, each in zip(users, answers, strict=True)
    ]
    comparison = hb.compare(*groups, estimates=[hb.estimate(reports, "mle") for reports in groups])
    allowed = 4.0 / math.sqrt(2.0 * studies)
    np.testing.assert_allclose(comparison.standard_error, differences.std(axis=0), rtol=allowed)
    joint = hb.compare(*groups, of=["a", "b"], estimates=[hb.estimate(reports, "mle") for reports in groups])
    assert joint.standard_error[0] == pytest.approx(differences[:, :2].sum(axis=1).std(), rel=allowed)


@pytest.fixture(scope="module")
def on_a_line() -> list[hb.Reports]:
    """Two groups with unlike mechanisms, over numbers."""
    return [
        hb.Reports.from_counts(hb.TruncatedGeometric(DIGITS, 1.0), [300, 250, 200, 150]),
        hb.Reports.from_counts(hb.RandomizedResponse(DIGITS, 2.0), [150, 250, 300, 350]),
    ]


def test_errors_of_unlike_mechanisms_are_added_as_squares(on_a_line: list[hb.Reports]) -> None:
    comparison = hb.compare(*on_a_line)
    for label, error in zip(DIGITS.labels.tolist(), comparison.standard_error, strict=True):
        own = [hb.interval(reports, label).standard_error for reports in on_a_line]
        assert error == pytest.approx(math.hypot(*own))
    means = [hb.interval(reports, {label: float(label) for label in range(1, 5)}) for reports in on_a_line]
    assert comparison.mean is not None
    error = comparison.mean.standard_error
    assert error == pytest.approx(math.hypot(*(mean.standard_error for mean in means)))
    assert comparison.total_variation is not None
    assert comparison.total_variation.standard_error is None
    facts = {fact.label: fact.text for fact in comparison.facts()}
    assert facts["difference of means"].endswith(f"(standard error {error:.4g})")
    document = comparison.document()
    assert [row["standard_error"] for row in document["values"]] == comparison.standard_error.tolist()
    assert document["mean"]["standard_error"] == error
    assert document["total_variation"]["standard_error"] is None
    assert "std. error" in comparison._repr_html_()


def test_several_groups_have_the_errors_of_each_against_the_rest() -> None:
    mechanism = hb.RandomizedResponse(DIGITS, 2.0)
    counts = {"north": [90, 60, 40, 30], "south": [50, 70, 60, 40], "west": [40, 50, 60, 70]}
    groups = {name: hb.Reports.from_counts(mechanism, own) for name, own in counts.items()}
    found = hb.compare_groups(groups)
    pair = hb.compare(groups["south"] + groups["west"], groups["north"])
    np.testing.assert_allclose(found.standard_error[0], pair.standard_error)
    assert pair.mean is not None
    assert found.means[0].standard_error == pytest.approx(pair.mean.standard_error)
    against = hb.compare_groups(groups, against="west")
    np.testing.assert_allclose(against.standard_error[1], hb.compare(groups["west"], groups["south"]).standard_error)
    assert np.isnan(against.standard_error[2]).all()  # the reference itself
    rows = against.document()["values"]
    assert [row["standard_error"] for row in rows[8:]] == [None] * 4
    assert [row["standard_error_reason"] for row in rows] == [None] * 12
    assert against.to_frame()["standard_error"].tolist()[:8] == against.standard_error[:2].ravel().tolist()
    assert "std. error" in against._repr_html_()


def test_where_there_is_none_the_reason_is_said() -> None:
    blind = hb.Matrix(LETTERS, ["u", "v"], [[0.8, 0.2], [0.3, 0.7], [0.3, 0.7]])
    groups = [
        hb.Reports.from_counts(blind, [300, 400]),
        hb.Reports.from_counts(hb.RandomizedResponse(LETTERS, 1.0), [300, 200, 250]),
    ]
    comparison = hb.compare(*groups)
    assert np.isnan(comparison.standard_error).tolist() == [False, True, True]
    assert comparison.standard_error_reasons[0] == ""
    rows = comparison.document()["values"]
    assert rows[1]["standard_error"] is None
    assert rows[1]["standard_error_reason"].startswith("The reports do not determine it")
    json.dumps(rows, allow_nan=False)
    facts = {fact.label: fact.text for fact in comparison.facts()}
    assert facts["std. error"].startswith("None for 2 values: The reports do not determine it")


@pytest.fixture(scope="module")
def weighted() -> list[hb.Reports]:
    rng = np.random.default_rng(7)
    mechanism = hb.RandomizedResponse(COIN, 2.0)
    return [
        hb.Reports.from_outputs(mechanism, rng.choice(["yes", "no"], 400, p=[p, 1 - p]), weights=rng.uniform(1, 4, 400))
        for p in (0.5, 0.65)
    ]


def test_weighted_reports_have_their_effective_users(weighted: list[hb.Reports]) -> None:
    comparison = hb.compare(*weighted, names=("men", "women"))
    effective = tuple(reports.effective_users for reports in weighted)
    assert comparison.effective_users == effective
    assert all(0 < own < 400 for own in effective)
    own = [hb.interval(reports, "yes").standard_error for reports in weighted]
    assert comparison.standard_error[0] == pytest.approx(math.hypot(*own))
    facts = {fact.label: fact.text for fact in comparison.facts()}
    men, women = (f"400 users, {own:,.0f} effective by their weights" for own in effective)
    assert facts["groups"] == f"men ({men}) and women ({women})"
    assert [group["effective_users"] for group in comparison.document()["groups"]] == list(effective)


def test_without_weights_there_is_no_effective_number(weighted: list[hb.Reports]) -> None:
    plain = hb.compare(*(reports.unweighted for reports in weighted))
    assert plain.effective_users is None
    assert [group["effective_users"] for group in plain.document()["groups"]] == [None, None]
    one = hb.compare(weighted[0], weighted[1].unweighted)
    assert one.effective_users is not None
    assert list(one.effective_users) == pytest.approx([weighted[0].effective_users, 400.0])


def test_the_terminal_shows_them_where_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "study.toml").write_text(
        'version = 1\n[domain]\nkind = "categories"\nlabels = ["yes", "no"]\n'
        '[mechanisms.coin]\nkind = "randomized-response"\nepsilon = 2.0\n'
    )
    rows = [
        f"{sex},{'yes' if k % 10 < yes else 'no'},{1 + k % 2}\n"
        for sex, yes in (("m", 4), ("w", 7))
        for k in range(200)
    ]
    (tmp_path / "r.csv").write_text("sex,output,weight\n" + "".join(rows))
    words = ["compare", "study.toml", "r.csv", "--by", "sex"]
    document = json.loads(hubbub(*words, "--json", "-o", "c.csv", cwd=tmp_path).stdout)
    error = document["values"][0]["standard_error"]
    assert document["groups"][0]["effective_users"] == pytest.approx(180.0)  # (200 * 1.5)^2 / (200 * 2.5)
    head, first, *_ = (tmp_path / "c.csv").read_text().splitlines()
    assert dict(zip(head.split(","), first.split(","), strict=True))["standard_error"] == str(error)
    monkeypatch.setenv("COLUMNS", "90")
    shown = hubbub(*words, cwd=tmp_path).stdout
    assert f"{error:.4f} │ differs" in shown
    assert "m (200 users, 180 effective by their weights)" in shown
    monkeypatch.setenv("COLUMNS", "70")
    narrow = hubbub(*words, cwd=tmp_path).stdout
    assert f"{error:.4f}" not in narrow
    assert "standard errors: in a wider terminal" in " ".join(narrow.split())
    assert "differs" in narrow
