"""Standard errors: textbook formulas, an independent pseudoinverse, simulation, and reasons where there is none.

The simulated standard deviations are compared at a stated level: their ratio to the standard error has a relative
standard deviation of about 1 / sqrt(2 runs).
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import hubbub as hb
from hubbub.intervals.linear_statistic import parse_statistic
from hubbub.intervals.result import WITHOUT_SIGNS
from hubbub.intervals.standard_errors import (
    IMPOSSIBLE_REPORTS,
    INFINITE_INFORMATION,
    MAX_INFORMED_VALUES,
    OF_BOOTSTRAP,
    TOO_MANY_VALUES,
    UNDETERMINED,
    StandardErrors,
    standard_errors,
)
from terminal import hubbub

Floats = NDArray[np.float64]
COIN = hb.Categories(["yes", "no"])
LETTERS = hb.Categories(list("abcde"))


def errors_of(reports: hb.Reports, theta: Floats, *asked: object) -> StandardErrors:
    """Return the standard errors of some statistics; of all values if none are named."""
    statistics = asked or tuple(reports.domain.labels.tolist())
    return standard_errors(reports, theta, [parse_statistic(reports.domain, of).weights for of in statistics])


def by_pseudoinverse(information: Floats, users: int, weights: Floats) -> float:
    """Return sqrt(w' Z (Z' I Z)^+ Z' w / n), Z a basis of the vectors with sum 0."""
    basis = np.linalg.svd(np.ones((1, len(information))))[2][1:].T
    inner = np.linalg.pinv(basis.T @ information @ basis, rcond=1e-12, hermitian=True)
    tangent = basis.T @ weights
    return float(np.sqrt(tangent @ inner @ tangent / users))


# -- textbooks ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_randomized_response_of_yes_or_no_is_warners_formula(epsilon: float) -> None:
    reports = hb.Reports.from_counts(hb.RandomizedResponse(COIN, epsilon), [540, 460])
    shown = hb.estimate(reports, "mle")
    truthful = 1 / (1 + math.exp(-epsilon))
    textbook = math.sqrt(0.54 * 0.46 / 1000) / (2 * truthful - 1)
    answer = hb.interval(reports, "yes", estimate=shown)
    assert answer.standard_error == pytest.approx(textbook, rel=1e-9)
    assert answer.standard_error_reason == ""
    assert f"Standard error {textbook:.4g}." in answer.explain()


def test_published_standard_errors_are_reproduced() -> None:
    path = Path(__file__).parent / "reference" / "survey_designs.json"
    published = json.loads(path.read_text(encoding="utf-8"))
    for kind, design in (("warner", hb.Warner), ("crosswise-model", hb.CrosswiseModel)):
        for example in published[kind]:
            counts = [example["first"], example["users"] - example["first"]]
            reports = hb.Reports.from_counts(design(COIN, example["p"]), counts)
            error = float(errors_of(reports, hb.estimate(reports, "mle").probabilities, "yes").numbers[0])
            if example["divisor"] == "users - 1":
                error *= math.sqrt(example["users"] / (example["users"] - 1))
            decimals = len(str(example["standard_error"]).partition(".")[2])
            assert round(error, decimals) == example["standard_error"]


def test_randomized_response_of_many_values_is_the_variance_of_the_inversion() -> None:
    mechanism = hb.RandomizedResponse(LETTERS, 1.2)
    theta, users = np.array([0.5, 0.3, 0.2, 0.0, 0.0]), 4_000  # zeros count as values like any other
    reports = hb.Reports.from_counts(mechanism, [1000, 900, 800, 700, 600])
    own, other = math.exp(1.2) / (math.exp(1.2) + 4), 1 / (math.exp(1.2) + 4)
    fitted = other + (own - other) * theta
    textbook = np.sqrt(fitted * (1 - fitted) / users) / (own - other)
    assert errors_of(reports, theta).numbers == pytest.approx(textbook, rel=1e-9)
    pair = fitted[0] + fitted[1]
    assert errors_of(reports, theta, ["a", "b"]).numbers[0] == pytest.approx(
        math.sqrt(pair * (1 - pair) / users) / (own - other), rel=1e-9
    )


@pytest.mark.parametrize("epsilon", [12.0, 40.0, 400.0])
def test_without_noise_it_is_that_of_a_multinomial(epsilon: float) -> None:
    counts = np.array([500, 300, 150, 50, 0])
    reports = hb.Reports.from_counts(hb.RandomizedResponse(LETTERS, epsilon), counts)
    shares = counts / 1000
    errors = errors_of(reports, shares)
    assert errors.numbers[:4] == pytest.approx(np.sqrt(shares * (1 - shares) / 1000)[:4], rel=1e-3)
    if epsilon > 30:  # the formula would say 0, as if nothing could be there
        assert math.isnan(errors.numbers[4])
        assert errors.reasons == ("", "", "", "", INFINITE_INFORMATION)


# -- any channel -------------------------------------------------------------------------------------------


def test_drawn_channels_agree_with_the_pseudoinverse() -> None:
    rng = np.random.default_rng(8)
    for outputs in (6, 5, 3):  # with 3 outputs, 5 values are not determined
        matrix = rng.dirichlet(np.full(outputs, 0.7), 5)
        reports = hb.Reports.from_counts(
            hb.Matrix(LETTERS, list(range(outputs)), matrix), rng.integers(50, 200, outputs)
        )
        theta = rng.dirichlet(np.ones(5))
        information = (matrix / (theta @ matrix)) @ matrix.T
        free = rng.normal(size=5)
        determined = matrix @ rng.normal(size=outputs) + 3.0  # a sum over outputs, and a constant
        for weights, is_open in ((free, outputs == 3), (determined, False)):
            (number,), (reason,) = errors_of(reports, theta, dict(zip("abcde", weights.tolist(), strict=True)))
            if is_open:
                assert math.isnan(number)
                assert reason == UNDETERMINED
            else:
                assert number == pytest.approx(by_pseudoinverse(information, reports.users, weights), rel=1e-6)
                assert reason == ""


def test_values_without_effect_leave_the_others_determined() -> None:
    matrix = [[0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8], [0.1, 0.1, 0.8]]  # the last two are the same
    domain = hb.Categories(list("abcd"))
    reports = hb.Reports.from_counts(hb.Matrix(domain, list("uvw"), matrix), [300, 300, 400])
    theta = hb.estimate(reports, "mle").probabilities
    errors = errors_of(reports, theta, "a", "b", "c", "d", ["c", "d"], ["a", "b", "c", "d"])
    merged = hb.Reports.from_counts(hb.Matrix(hb.Categories(list("abc")), list("uvw"), matrix[:3]), [300, 300, 400])
    expected = errors_of(merged, hb.estimate(merged, "mle").probabilities).numbers
    assert errors.numbers[[0, 1, 4]] == pytest.approx(expected, rel=1e-6)
    assert errors.reasons == ("", "", UNDETERMINED, UNDETERMINED, "", "")
    assert errors.numbers[5] == 0.0  # the sum of all shares is known


SLOWLY_SCATTERED = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("several outputs", "hashed")]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["unary", "several mechanisms", "sums of bits", *SLOWLY_SCATTERED])
def test_estimates_scatter_as_the_standard_errors_say(kind: str) -> None:
    rng, runs, users = np.random.default_rng(31), 100, 1_500
    domain = hb.Integers(0, 3 if kind != "unary" else 10)  # 11 bits are too many to list
    truth = rng.dirichlet(np.full(len(domain), 20.0))
    response, unary = hb.RandomizedResponse(domain, 2.0), hb.Rappor(domain, 3.0)

    def study() -> hb.Reports:
        values = rng.choice(domain.labels, users, p=truth)
        if kind == "unary":
            return hb.Reports.from_outputs(unary, unary.privatize(values, rng=rng))
        if kind == "hashed":
            hashing = hb.LocalHashing(domain, 2.0)
            return hb.Reports.from_outputs(hashing, hashing.privatize(values, rng=rng))
        if kind == "several mechanisms":
            parts = ((response, values[: users // 2]), (unary, values[users // 2 :]))
            first, second = (hb.Reports.from_outputs(each, each.privatize(some, rng=rng)) for each, some in parts)
            return first + second
        if kind == "sums of bits":
            bits = np.unpackbits(unary.privatize(values, rng=rng), axis=1, count=len(domain))
            return hb.Reports.from_bit_counts(unary, bits.sum(axis=0), users)
        sent = zip(response.privatize(values, rng=rng), response.privatize(values, rng=rng), strict=True)
        return hb.Reports.from_users([[(response, one), (response, other)] for one, other in sent])

    reports = [study() for _ in range(runs)]
    estimates = np.array([hb.estimate(each, "mle").probabilities for each in reports])
    errors = errors_of(reports[0], truth).numbers
    # Of sums of bits, whose likelihood is approximate, a tenth more. Level: 4 deviations of the pooled variance.
    ratio = float((estimates.var(axis=0, ddof=1) / errors**2).mean())
    slack = 4 * math.sqrt(2 / runs / (len(domain) - 1)) + (0.2 if kind == "sums of bits" else 0.0)
    assert ratio == pytest.approx(1.0, abs=slack)


# -- reasons -----------------------------------------------------------------------------------------------


def test_reasons_are_sentences() -> None:
    certain = hb.Matrix(LETTERS, list("abcde"), np.eye(5))
    reports = hb.Reports.from_counts(certain, [500, 400, 100, 0, 0])
    refuted = errors_of(reports, np.array([0.5, 0.5, 0.0, 0.0, 0.0]), "a")
    assert math.isnan(refuted.numbers[0])
    assert refuted.reasons == (IMPOSSIBLE_REPORTS,)
    large = hb.RandomizedResponse(hb.Integers(1, MAX_INFORMED_VALUES + 1), 9.0)
    many = hb.Reports.from_outputs(large, large.privatize([1, 2, 3], rng=1))
    even = np.full(MAX_INFORMED_VALUES + 1, 1 / (MAX_INFORMED_VALUES + 1))
    assert errors_of(many, even, 1).reasons == (TOO_MANY_VALUES,)
    for reason in (UNDETERMINED, IMPOSSIBLE_REPORTS, INFINITE_INFORMATION, TOO_MANY_VALUES, OF_BOOTSTRAP):
        assert reason[0].isupper()
        assert reason.endswith(".")


def test_the_bootstrap_says_why_it_has_none() -> None:
    reports = hb.Reports.from_counts(hb.RandomizedResponse(COIN, 1.0), [600, 400])
    answer = hb.interval(reports, "yes", method="bootstrap", runs=20)
    assert math.isnan(answer.standard_error)
    assert answer.standard_error_reason == OF_BOOTSTRAP
    assert OF_BOOTSTRAP in answer._repr_html_().replace("&#x27;", "'")


# -- where they are shown ----------------------------------------------------------------------------------


def test_band_and_estimate_show_the_same_numbers() -> None:
    reports = hb.Reports.from_counts(hb.RandomizedResponse(LETTERS, 2.0), [900, 700, 500, 300, 100])
    shown = hb.estimate(reports)
    assert "standard_error" not in shown.to_frame()
    some = hb.band(reports, values=["a", "b"], estimate=shown)
    assert np.isnan(shown.to_frame()["standard_error"]).tolist() == [False, False, True, True, True]
    rest = hb.band(reports, values=["c", "d", "e"], estimate=shown)
    together = np.where(np.isnan(some.low), rest.standard_error, some.standard_error)
    assert shown.to_frame()["standard_error"].tolist() == together.tolist()
    assert rest.to_frame()["standard_error"].tolist()[2:] == together.tolist()[2:]
    assert together == pytest.approx(errors_of(reports, shown.probabilities).numbers)
    one = hb.interval(reports, "c", estimate=shown)
    assert one.standard_error == pytest.approx(together[2])


def test_a_band_says_that_standard_errors_know_no_signs() -> None:
    line = hb.TruncatedGeometric(hb.Integers(0, 30), 0.1)
    weak = hb.band(hb.Reports.from_outputs(line, line.privatize([3, 9, 9, 20] * 10, rng=1)), values=[9, 20])
    assert WITHOUT_SIGNS in weak.errors_note()
    assert WITHOUT_SIGNS in weak._repr_html_()
    clear = hb.Reports.from_counts(hb.RandomizedResponse(LETTERS, 3.0), [900, 700, 500, 300, 200])
    assert hb.band(clear, values=["a", "b"]).errors_note() == ""


def test_terminal_and_files_show_standard_errors_and_reasons(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(
        'version = 1\nname = "letters"\n[domain]\nkind = "categories"\nlabels = ["a", "b", "c"]\n'
        '[mechanisms.form]\nkind = "matrix"\noutputs = ["u", "v"]\n'
        "probabilities = [[0.8, 0.2], [0.3, 0.7], [0.3, 0.7]]\n",  # b and c cannot be told apart
        encoding="utf-8",
    )
    (tmp_path / "reports.csv").write_text("output\n" + "u\n" * 550 + "v\n" * 450, encoding="utf-8")

    def said(command: str, *options: str) -> str:
        return hubbub(command, "study.toml", "reports.csv", *options, cwd=tmp_path).stdout

    estimated = json.loads(said("estimate", "--json", "-o", "estimate.csv"))["estimate"]
    rows = {row["value"]: row for row in estimated}
    textbook = math.sqrt(0.55 * 0.45 / 1000) / 0.5  # of a against the other two, by what is sent
    assert rows["a"]["standard_error"] == pytest.approx(textbook, rel=1e-2)  # at the estimate of auto
    assert rows["a"]["standard_error_reason"] is None
    assert rows["b"]["standard_error"] is None
    assert rows["b"]["standard_error_reason"] == UNDETERMINED
    checked = json.loads(said("check", "--json"))["values"]
    names = ("value", "standard_error", "standard_error_reason")
    assert [[row[name] for name in names] for row in checked] == [[row[name] for name in names] for row in estimated]
    table = said("estimate")
    assert "std. error" in table
    assert f"{rows['a']['standard_error']:.4f}" in table
    assert f"None for 2 values: {UNDETERMINED}" in table
    header = (tmp_path / "estimate.csv").read_text(encoding="utf-8").splitlines()[0]
    assert header == "value,probability,low,high,standard_error"
