"""Survey weights: what is estimated, how it scatters, and that weights that say nothing change nothing."""

from __future__ import annotations

import csv
import json
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import chdtrc

import hubbub as hb
from damaging import parts_of_tally, seal, write_forged
from terminal import hubbub

REFERENCE = Path(__file__).parent / "reference"
ANSWERS = hb.Categories(["no", "unsure", "yes"])
BOTH = {"sex": ["f", "m"], "age": ["o", "y"]}
DESIGNS = {"weights": (), "strata": ("stratum",), "clusters": ("cluster",), "both": ("stratum", "cluster")}


def people() -> dict[str, list[str]]:
    """Return a small survey, column by column."""
    with (REFERENCE / "survey_weights.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


def reference(name: str) -> Any:
    return json.loads((REFERENCE / "survey_weights.json").read_text())[name]


def sampled(design: str, mechanism: hb.Mechanism, outputs: object) -> hb.Reports:
    columns, given = people(), DESIGNS[design]
    return hb.Reports.from_outputs(
        mechanism,
        outputs,
        weights=np.array(columns["weight"], dtype=float),
        strata=columns["stratum"] if "stratum" in given else None,
        clusters=columns["cluster"] if "cluster" in given else None,
    )


@pytest.mark.parametrize("design", DESIGNS)
def test_without_noise_it_is_what_the_survey_package_of_r_says(design: str) -> None:
    """With epsilon 40 a report is the truth; shares, standard errors and degrees of freedom as svymean gives them."""
    expected = reference(design)
    reports = sampled(design, hb.RandomizedResponse(ANSWERS, 40.0), people()["answer"])
    estimate = hb.estimate(reports, "mle")
    np.testing.assert_allclose(estimate.probabilities, expected["shares"], rtol=1e-9)
    band = hb.band(reports, estimate=estimate)
    np.testing.assert_allclose(band.standard_error, expected["standard_errors"], rtol=1e-7)
    assert reports.survey is not None
    assert reports.survey.degrees_of_freedom == expected["degrees_of_freedom"]
    for value, share, error in zip(ANSWERS.labels, expected["shares"], expected["standard_errors"], strict=True):
        interval = hb.interval(reports, value, estimate=estimate)
        assert interval.low < share < interval.high
        assert (interval.high - interval.low) / error == pytest.approx(4.1, abs=0.35)  # two t quantiles, about


def test_raking_is_what_the_survey_package_of_r_says() -> None:
    columns = people()
    margins: dict[str, dict[object, float]] = {
        "sex": {"f": 520, "m": 480},
        "region": {"east": 250, "north": 450, "west": 300},
    }
    raked = hb.rake(np.array(columns["weight"], dtype=float), columns, margins)
    np.testing.assert_allclose(raked, reference("raked"), rtol=1e-8)


@pytest.mark.parametrize("mechanism", [hb.RandomizedResponse(ANSWERS, 1.0), hb.Rappor(ANSWERS, 2.0)])
def test_equal_weights_change_nothing(mechanism: hb.Mechanism) -> None:
    outputs = mechanism.privatize(["no"] * 300 + ["yes"] * 100, rng=1)
    plain = hb.Reports.from_outputs(mechanism, outputs)
    weighted = hb.Reports.from_outputs(mechanism, outputs, weights=np.full(400, 7.5))
    assert weighted.effective_users == pytest.approx(400.0)
    np.testing.assert_allclose(weighted.weights, plain.weights, rtol=1e-12)
    for method in ("auto", "mle", "ibu", "inv-p"):
        shares = [hb.estimate(reports, method).probabilities for reports in (plain, weighted)]
        np.testing.assert_allclose(shares[0], shares[1], atol=1e-6)
    for value in ANSWERS.labels:
        mine, theirs = hb.interval(weighted, value), hb.interval(plain, value)
        assert (mine.low, mine.high) == pytest.approx(
            (theirs.low, theirs.high), abs=0.01
        )  # F, and other draws of the score


def test_a_weight_of_two_is_the_user_twice_for_the_estimate_only() -> None:
    """Shares are those of users who are repeated; intervals are longer, because nobody else was asked."""
    coin = hb.RandomizedResponse(ANSWERS, 2.0)
    outputs = coin.privatize(["no"] * 500 + ["yes"] * 300 + ["unsure"] * 200, rng=1)
    weights = np.where(np.arange(1000) % 3 == 0, 4.0, 1.0)
    weighted = hb.Reports.from_outputs(coin, outputs, weights=weights)
    repeated = hb.Reports.from_outputs(coin, np.repeat(outputs, weights.astype(int)))
    shares = [hb.estimate(reports, "mle").probabilities for reports in (weighted, repeated)]
    np.testing.assert_allclose(shares[0], shares[1], atol=1e-9)
    mine, theirs = hb.interval(weighted, "yes"), hb.interval(repeated, "yes")
    assert mine.high - mine.low > 1.3 * (theirs.high - theirs.low)
    assert weighted.effective_users == pytest.approx(weights.sum() ** 2 / (weights**2).sum())


def test_weights_mend_a_skewed_sample() -> None:
    """Half of the population is young and always says yes, but only a tenth of the sample is."""
    coin, rng = hb.RandomizedResponse(hb.Categories(["yes", "no"]), 1.5), np.random.default_rng(3)
    young = rng.random(20_000) < 0.1
    outputs = coin.privatize(np.where(young | (rng.random(20_000) < 0.2), "yes", "no"), rng=rng)
    weights = hb.rake(np.ones(20_000), {"young": young}, {"young": {True: 0.5, False: 0.5}})
    reports = hb.Reports.from_outputs(coin, outputs, weights=weights)
    interval = hb.interval(reports, "yes")
    assert interval.low < 0.6 < interval.high
    assert not hb.interval(reports.unweighted, "yes").high > 0.4
    check = hb.check(reports)
    assert check.band.low[0] < 0.6 < check.band.high[0]
    assert check.fit is not None
    assert not check.fit.rejected


def test_weighted_reports_add_up() -> None:
    coin, rng = hb.RandomizedResponse(ANSWERS, 1.0), np.random.default_rng(5)
    bits = hb.Rappor(ANSWERS, 1.0)
    users: list[list[tuple[hb.Mechanism, object]]] = [
        [(coin, answer)] if place % 3 else [(coin, answer), (bits, bits.privatize([answer], rng=place)[0])]
        for place, answer in enumerate(rng.choice(ANSWERS.labels, 60).tolist())
    ]
    weights, strata = rng.gamma(2.0, size=60), rng.choice(["a", "b"], 60)
    whole = hb.Reports.from_users(users, weights=weights, strata=strata)
    order = rng.permutation(60)
    parts = [
        hb.Reports.from_users([users[place] for place in own], weights=weights[own], strata=strata[own])
        for own in np.split(order, [10, 35])
    ]
    together = parts[0] + parts[1] + parts[2]
    assert together == whole
    assert whole != hb.Reports.from_users(users, weights=weights)
    np.testing.assert_allclose(together.weights, whole.weights)
    by_hand = [
        sum(weight for user, weight in zip(users, weights, strict=True) if user == [(coin, answer)])
        for answer in ANSWERS.labels
    ]
    singles = np.sort(whole.weights * weights.sum() / whole.effective_users)
    assert all(np.isclose(singles, weight).any() for weight in by_hand)
    with pytest.raises(hb.ReportsError, match="with weights and reports without"):
        whole + hb.Reports.from_users(users)


STUDY = hb.Study(
    ANSWERS, {"coin": hb.RandomizedResponse(ANSWERS, 1.0), "bits": hb.Rappor(ANSWERS, 1.0)}, max_reports_per_user=3
)


@pytest.mark.parametrize("named", [False, True])
def test_weights_are_read_from_files(named: bool, tmp_path: Path) -> None:
    """Rows of coins and bits, of users with one or two rows, against the same reports built in memory."""
    columns, coin, bits = people(), STUDY.mechanisms["coin"], STUDY.mechanisms["bits"]
    users, lines = [], ["user,mechanism,output,w,stratum,psu" if named else "mechanism,output,w,stratum,psu"]
    for place, answer in enumerate(columns["answer"]):
        sent: list[tuple[hb.Mechanism, object]] = [(coin, coin.privatize([answer], rng=place)[0])]
        if place % 2:
            sent = [*(sent if named else []), (bits, bits.privatize([answer], rng=place)[0])]
        users.append(sent)
        rest = f"{columns['weight'][place]},{columns['stratum'][place]},{columns['cluster'][place]}"
        for mechanism, output in sent:
            name = "coin" if mechanism == coin else "bits"
            row = f"{name},{mechanism.output_space.write(output)},{rest}"
            lines.append(f"u{place},{row}" if named else row)
    rng = np.random.default_rng(1)
    (tmp_path / "r.csv").write_text("\n".join([lines[0], *rng.permutation(lines[1:])]) + "\n")
    weights = np.array(columns["weight"], dtype=float)
    expected = hb.Reports.from_users(users, weights=weights, strata=columns["stratum"], clusters=columns["cluster"])
    read = partial(hb.read_reports, tmp_path / "r.csv", STUDY, weight_column="w", cluster_column="psu")
    warned = partial(pytest.warns, hb.HubbubWarning, match="cannot be checked")  # the study's limit
    with nullcontext() if named else warned():
        assert read(stratum_column="stratum") == expected
    lines = (tmp_path / "r.csv").read_text().splitlines()
    halves = [tmp_path / "1.csv", tmp_path / "2.csv"]
    ordered = [lines[0], *sorted(lines[1:])]  # the rows of a user are in one half
    middle = next(place for place in range(120, 200) if not named or ordered[place][:4] != ordered[place - 1][:4])
    for half, own in zip(halves, (ordered[1:middle], ordered[middle:]), strict=True):
        half.write_text("\n".join([lines[0], *own]) + "\n")
    options: dict[str, Any] = {"weight_column": "w", "stratum_column": "stratum", "cluster_column": "psu"}
    with nullcontext() if named else warned():
        for half in halves:
            steps = hb.collect(STUDY, half, tmp_path / "s.tally.parquet", users_complete=True, **options)
        parts = [hb.collect(STUDY, half, half.with_suffix(".tally.parquet"), **options).path for half in halves[::-1]]
        merged = hb.merge(parts, tmp_path / "m.tally.parquet", users_complete=True)
    assert hb.read_tally(steps.path).reports == expected
    assert steps.path.read_bytes() == merged.path.read_bytes()
    assert merged.summary.weight == pytest.approx(weights.sum())
    with nullcontext() if named else warned():
        options = {"by": "stratum", "weight_column": "w", "cluster_column": "psu"}
        by_stratum = hb.collect(STUDY, halves, tmp_path / "g.tally.parquet", **options)
    for stratum, reports in by_stratum.groups().items():
        own = np.array(columns["stratum"]) == stratum
        assert reports.users == own.sum()
        assert reports.effective_users == pytest.approx(weights[own].sum() ** 2 / (weights[own] ** 2).sum())


def test_rows_with_wrong_weights_are_rejected(tmp_path: Path) -> None:
    source = tmp_path / "r.csv"
    source.write_text(
        "user,mechanism,output,weight\na,coin,yes,1.5\nb,coin,no,-1\nc,coin,no,\nd,coin,no,0\ne,coin,yes,much\n"
        "f,coin,yes,1\nf,coin,no,2\ng,coin,maybe,1\nh,coin,yes,1e999\n"
    )
    with pytest.raises(hb.IntakeError, match="not a positive number") as caught:
        hb.read_reports(source, STUDY)
    assert "line 3" in str(caught.value)
    read = hb.read_reports(source, STUDY, allow_rejects=8, rejects=tmp_path / "rejects.csv")
    assert read.users == 1
    with (tmp_path / "rejects.csv").open(newline="") as file:
        causes = [row["code"] for row in csv.DictReader(file)]
    assert sorted(causes) == sorted(["not-a-weight"] * 4 + ["no-weight"] + ["two-weights"] * 2 + ["out-of-domain"])


def test_commands_use_weights(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(
        'version = 1\nname = "answers"\n[domain]\nkind = "categories"\nlabels = ["no", "unsure", "yes"]\n'
        '[mechanisms.truth]\nkind = "randomized-response"\nepsilon = 40.0\n'
    )
    columns = people()
    lines = [f"{answer},{weight}" for answer, weight in zip(columns["answer"], columns["weight"], strict=True)]
    (tmp_path / "r.csv").write_text("\n".join(["output,weight", *lines]) + "\n")
    run = hubbub("estimate", "study.toml", "r.csv", "--method", "mle", "--json", cwd=tmp_path)
    document, expected = json.loads(run.stdout), reference("weights")
    shares = [row["probability"] for row in document["estimate"]]
    np.testing.assert_allclose(shares, expected["shares"], rtol=1e-9)
    weights = np.array(columns["weight"], dtype=float)
    assert document["effective_users"] == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert "effective, by their weights" in hubbub("estimate", "study.toml", "r.csv", "--quick", cwd=tmp_path).stdout
    collected = hubbub("collect", "study.toml", "r.csv", "-o", "t.tally.parquet", cwd=tmp_path)
    assert f"They stand for {weights.sum():,.6g} people" in collected.stdout
    again = hubbub("estimate", "t.tally.parquet", "--method", "mle", "--json", cwd=tmp_path)
    collected_document = json.loads(again.stdout)
    assert [each["name"] for each in collected_document.pop("dates")["sources"]] == ["t.tally.parquet"]
    assert [each["name"] for each in document.pop("dates")["sources"]] == ["r.csv"]
    assert collected_document == document


@pytest.mark.slow
@pytest.mark.parametrize("zeros", [False, True])
def test_weighted_intervals_cover(zeros: bool) -> None:
    """Clusters of ten answer alike, and the weight depends on the answer: 400 studies, 94% less two standard errors."""
    truth = np.array([0.7, 0.3, 0.0]) if zeros else np.array([0.5, 0.3, 0.2])
    coin, covered = hb.RandomizedResponse(ANSWERS, 2.0), []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        chance = truth / np.array([2.0, 1.0, 1.0])  # the first answer is sampled half as often, and has weight 2
        lean = rng.dirichlet(20.0 * chance[chance > 0] / chance.sum(), 60)
        places = np.array([rng.choice(lean.shape[1], p=row) for row in np.repeat(lean, 10, axis=0)])
        outputs = coin.privatize(ANSWERS.labels[places], rng=rng)
        weights = np.where(places == 0, 2.0, 1.0)
        clusters = np.repeat(np.arange(60), 10)
        reports = hb.Reports.from_outputs(coin, outputs, weights=weights, clusters=clusters)
        band = hb.band(reports)
        covered.append((band.low <= truth) & (truth <= band.high))
    assert (np.mean(covered, axis=0) >= 0.94 - 2.0 * np.sqrt(0.94 * 0.06 / 400)).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": [1.0, -1.0]}, "not a positive number"),
        ({"weights": [1.0, 0.0]}, "not a positive number"),
        ({"weights": [1.0, float("nan")]}, "not a positive number"),
        ({"weights": ["1", "much"]}, "not a positive number"),
        ({"weights": [1.0]}, "one for each user"),
        ({"strata": ["a", None]}, "a name is missing"),
    ],
)
def test_wrong_weights_are_explained(arguments: dict[str, list[object]], message: str) -> None:
    coin = hb.RandomizedResponse(ANSWERS, 1.0)
    with pytest.raises(hb.ReportsError, match=message) as caught:
        hb.Reports.from_outputs(coin, ["yes", "no"], **arguments)
    assert "remedy" in str(caught.value)


def test_a_single_cluster_says_nothing_about_clusters() -> None:
    coin = hb.RandomizedResponse(ANSWERS, 1.0)
    one, other = (hb.Reports.from_outputs(coin, ["yes", "no"], clusters=[name, name]) for name in ("a", "b"))
    assert hb.interval(one + other, "yes").high == 1.0
    with pytest.raises(hb.ReportsError, match="a single cluster"):
        hb.interval(one, "yes")


@pytest.mark.parametrize("column", ["weight", "users"])
def test_forged_weights_are_refused(column: str, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("mechanism,output,weight\ncoin,yes,1\ncoin,yes,2\ncoin,no,1\n")
    with pytest.warns(hb.HubbubWarning, match="cannot be checked"):
        path = hb.collect(STUDY, tmp_path / "r.csv", tmp_path / "t.tally.parquet").path
    rows, document = parts_of_tally(path)
    assert rows.column_names[-3:] == ["weight", "stratum", "cluster"]
    numbers = rows[column].to_pylist()
    changed = rows.set_column(
        rows.column_names.index(column), rows.schema.field(column), [[*numbers[:-1], numbers[-1] + 1]]
    )
    for table, is_right in ((rows, True), (changed, False)):
        forged = hb.read_tally(write_forged(tmp_path / "f.tally.parquet", table, seal(document, table)))
        with nullcontext() if is_right else pytest.raises(hb.IntakeError, match="does not match its description"):
            assert forged.reports.users == 3


@pytest.mark.parametrize(
    ("columns", "margins", "message"),
    [
        ({"sex": ["f", "m"]}, {"age": {"old": 1.0}}, "a margin has no column"),
        ({"sex": ["f", "m"]}, {"sex": {"f": 1.0}}, "do not have the same labels"),
        ({"sex": ["f", "f"]}, {"sex": {"f": 0.5, "m": 0.5}}, "do not have the same labels"),
        ({"sex": ["f", "m"]}, {"sex": {"f": 1.0, "m": 0.0}}, "not a positive number"),
        (BOTH, {"sex": {"f": 1, "m": 1}, "age": {"o": 1, "y": 2}}, "same total"),
        (BOTH, {"sex": {"f": 1, "m": 1}, "age": {"o": 0.5, "y": 1.5}}, "no weights meet"),
        ({"sex": ["f"]}, {"sex": {"f": 1.0}}, "one entry for each user"),
        ({}, {}, "nothing to rake to"),
    ],
)
def test_margins_that_cannot_be_met_are_explained(columns: dict, margins: dict, message: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(hb.HubbubError, match=message):
        hb.rake([1.0, 1.0], columns, margins)


def test_differences_are_those_of_the_survey_package_of_r() -> None:
    """Two groups of one sample, without noise: the interval is about two standard errors of svycontrast on each side.

    R takes the groups for parts of one sample, and we for two samples, which is within two percent here.
    """
    columns = people()
    sex, weights = np.array(columns["sex"]), np.array(columns["weight"], dtype=float)
    truth = hb.RandomizedResponse(ANSWERS, 40.0)
    women, men = (
        hb.Reports.from_outputs(truth, np.array(columns["answer"])[sex == own], weights=weights[sex == own])
        for own in ("f", "m")
    )
    estimates = [hb.estimate(reports, "mle") for reports in (women, men)]
    answer = hb.compare(women, men, estimates=estimates)
    for place, value in enumerate(ANSWERS.labels):
        expected = reference(f"m minus f, {value}")
        assert answer.difference[place] == pytest.approx(expected["difference"][0], abs=1e-9)
        half = (answer.high[place] - answer.low[place]) / 2
        assert half / expected["standard_error"][0] == pytest.approx(1.96, rel=0.06)
        chi = (expected["difference"][0] / expected["standard_error"][0]) ** 2
        assert answer.p_values[place] == pytest.approx(float(chdtrc(1, chi)), abs=0.05)


def test_equal_weights_do_not_change_a_comparison() -> None:
    coin, rng = hb.RandomizedResponse(ANSWERS, 2.0), np.random.default_rng(8)
    outputs = [
        coin.privatize(rng.choice(ANSWERS.labels, 800, p=p), rng=rng) for p in ([0.5, 0.3, 0.2], [0.4, 0.3, 0.3])
    ]
    plain = hb.compare(*(hb.Reports.from_outputs(coin, own) for own in outputs))
    weighted = hb.compare(
        hb.Reports.from_outputs(coin, outputs[0], weights=np.full(800, 3.0)), hb.Reports.from_outputs(coin, outputs[1])
    )
    assert weighted.p_value == pytest.approx(plain.p_value, rel=0.3)
    np.testing.assert_allclose(weighted.low, plain.low, atol=0.004)
    np.testing.assert_allclose(weighted.high, plain.high, atol=0.004)


@pytest.mark.slow
def test_weighted_groups_that_are_equal_rarely_differ() -> None:
    """Size of the test with unequal weights and clusters: 300 studies at 5%, within three binomial standard errors."""
    coin, found = hb.RandomizedResponse(ANSWERS, 2.0), []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        groups = []
        for _ in range(2):
            lean = rng.dirichlet([12.0, 6.0, 4.0], 40)
            places = np.array([rng.choice(3, p=row) for row in np.repeat(lean, 8, axis=0)])
            weights = rng.gamma(4.0, size=320)
            outputs = coin.privatize(ANSWERS.labels[places], rng=rng)
            clusters = np.repeat(np.arange(40), 8)
            groups.append(hb.Reports.from_outputs(coin, outputs, weights=weights, clusters=clusters))
        estimates = [hb.estimate(reports, "mle") for reports in groups]
        found.append(hb.compare(*groups, estimates=estimates).p_value <= 0.05)
    assert abs(np.mean(found) - 0.05) <= 3.0 * np.sqrt(0.05 * 0.95 / 300)


def test_the_page_shows_the_weighted_estimate(tmp_path: Path) -> None:
    coin = hb.RandomizedResponse(ANSWERS, 3.0)
    weights = np.where(np.arange(300) % 3 == 0, 3.0, 1.0)  # the users who say no
    reports = hb.Reports.from_outputs(coin, ["no", "yes", "unsure"] * 100, weights=weights)
    hb.report(reports, tmp_path / "page.html")
    share = hb.estimate(reports).probabilities[0]
    assert share > 0.55
    assert f"{100 * share:.1f}%" in (tmp_path / "page.html").read_text()


def test_what_takes_no_weights_says_so() -> None:
    coin = hb.RandomizedResponse(ANSWERS, 1.0)
    weighted = hb.Reports.from_outputs(coin, ["yes", "no"] * 50, weights=[1.0, 2.0] * 50)
    with pytest.raises(hb.EstimateError, match="survey weights are not taken into account"):
        hb.compare_groups({"a": weighted, "b": weighted, "c": weighted})
    with pytest.raises(hb.EstimateError, match="survey weights are not taken into account"):
        hb.interval(weighted, "yes", fakes=0.01)
    sums = hb.Reports.from_bit_counts(hb.Rappor(ANSWERS, 1.0), [40, 30, 50], 100)
    with pytest.raises(hb.ReportsError, match="sums of bits have no weights"):
        hb.compare(weighted, sums)
