"""Designs as statisticians state them: published results, exact laws, study files, two samples.

Level: draws are tested by chi-square at the levels of tests/counting.py, next to planted faults that the same test
rejects. The published numbers, with their sources, are in tests/reference/survey_designs.json.
"""

from __future__ import annotations

import itertools
import json
import math
import pickle
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

import hubbub as hb
import strategies as own
from counting import LEVEL, Scripted, counts, drawing, p_value, rest, worst_p_value
from exactly import rows_of, sums_to_one, violations
from hubbub import client
from hubbub.client import MAX_EPSILON, MIN_EPSILON, Client, as_probability, epsilon_of_ratio
from hubbub.mechanisms.survey_designs import SurveyDesign
from hubbub.planning.candidates import candidates_from
from hubbub.sampling import FractionResponseLaw, Law, TwoAnswerLaw

PUBLISHED: dict[str, Any] = json.loads(
    (Path(__file__).parent / "reference" / "survey_designs.json").read_text(encoding="utf-8")
)
COIN = hb.Categories(["yes", "no"])
COLOURS = hb.Categories(["red", "green", "blue", "white", "black"])
SIXTH = Fraction(1, 6)

DESIGNS: dict[str, tuple[SurveyDesign, Fraction, Fraction]] = {  # each with P(first | sensitive), P(first | other)
    "warner": (hb.Warner(COIN, 0.7), Fraction(7, 10), Fraction(3, 10)),
    "warner, reversed": (hb.Warner(COIN, "1/6"), SIXTH, 1 - SIXTH),
    "forced response": (hb.ForcedResponse(COIN, SIXTH, 0.25), Fraction(3, 4), SIXTH),
    "forced yes alone": (hb.ForcedResponse(COIN, 0.5, 0), Fraction(1), Fraction(1, 2)),
    "forced no alone": (hb.ForcedResponse(COIN, 0, 0.3), Fraction(7, 10), Fraction(0)),
    "unrelated question": (hb.UnrelatedQuestion(COIN, "2/3", 0.2), Fraction(11, 15), Fraction(1, 15)),
    "unrelated question that nobody affirms": (hb.UnrelatedQuestion(COIN, 0.5, 0), Fraction(1, 2), Fraction(0)),
    "crosswise": (hb.CrosswiseModel(COIN, "1/6"), SIXTH, 1 - SIXTH),
}
designs = pytest.mark.parametrize("name", DESIGNS)


def likelihood_error(reports: hb.Reports) -> float:
    """Return the standard error of the first share: the curvature of the log-likelihood at its maximum."""
    share, step = float(hb.estimate(reports, "mle").probabilities[0]), 1e-4
    left, middle, right = (hb.log_likelihood(reports, [at, 1 - at]) for at in (share - step, share, share + step))
    return float(step / math.sqrt(2 * middle - left - right))


def textbook_error(design: SurveyDesign, first: int, users: int) -> float:
    """Return sqrt(lambda (1 - lambda) / n) over the difference of the two probabilities."""
    share, (sensitive, other) = first / users, design.chances
    return math.sqrt(share * (1 - share) / users) / abs(float(sensitive - other))


def check_published(design: SurveyDesign, first: int, users: int, estimate: float, digits: float) -> float:
    """Compare the maximum of the likelihood with a published estimate; return the standard error, found in two ways."""
    reports = hb.Reports.from_counts(design, [first, users - first])
    assert hb.estimate(reports, "mle").probabilities[0] == pytest.approx(estimate, abs=digits)
    error = textbook_error(design, first, users)
    assert likelihood_error(reports) == pytest.approx(error, rel=1e-4)
    return error


# -- published results ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "example"),
    [(kind, example) for kind in ("warner", "crosswise-model") for example in PUBLISHED[kind]],
    ids=lambda each: each if isinstance(each, str) else each["source"][:12],
)
def test_published_results_of_warner_and_crosswise(kind: str, example: dict[str, Any]) -> None:
    design = {"warner": hb.Warner, "crosswise-model": hb.CrosswiseModel}[kind](COIN, example["p"])
    first, users = example["first"], example["users"]
    digits = 1e-9 if example["estimate"] != round(example["estimate"], 4) else 5e-7
    error = check_published(design, first, users, example["estimate"], digits)
    if example["divisor"] == "users - 1":
        error *= math.sqrt(users / (users - 1))
    decimals = len(str(example["standard_error"]).partition(".")[2])
    assert round(error, decimals) == example["standard_error"]


def test_the_count_behind_the_published_warner_estimate_is_the_only_one() -> None:
    (example,) = PUBLISHED["warner"]
    p = float(Fraction(example["p"]))
    fitting = [n for n in range(1001) if round((n / 1000 + p - 1) / (2 * p - 1), 6) == example["estimate"]]
    assert fitting == [example["first"]]


def test_published_percentages_of_plagiarism() -> None:
    example = PUBLISHED["plagiarism"]
    design = hb.CrosswiseModel(COIN, example["p"])
    for question in ("passage", "paper"):
        first, (low, high) = example[question]["first"], example[question]["percent"]
        reports = hb.Reports.from_counts(design, [first, example["users"] - first])
        assert low - 0.5 <= 100 * hb.estimate(reports, "mle").probabilities[0] <= high + 0.5


@pytest.mark.parametrize("question", PUBLISHED["unrelated-question"]["questions"], ids=lambda each: each["name"])
def test_published_results_of_the_unrelated_question(question: dict[str, Any]) -> None:
    survey = PUBLISHED["unrelated-question"]
    design = hb.UnrelatedQuestion(COIN, survey["p"], question["prevalence"])
    users, population, first = survey["users"], survey["population"], question["first"]
    error = check_published(design, first, users, question["estimate"], 5e-8)
    # Drawn without replacement: (1 - n/N) s^2 / n for the scores r, and the mean of r (r - 1) over N for the device.
    p, other = float(design.p), float(design.chances[1])
    device = sum(
        count * score * (score - 1) for count, score in ((first, (1 - other) / p), (users - first, -other / p))
    )
    finite = (1 - users / population) * error**2 * users / (users - 1) + device / users / population
    assert finite == pytest.approx(question["variance"], rel=1e-6)
    assert error == pytest.approx(math.sqrt(question["variance"]), rel=0.02)


def test_the_published_formulas_of_forced_response() -> None:
    survey = PUBLISHED["forced-response"]
    design = hb.ForcedResponse(COIN, survey["p_yes"], survey["p_no"])
    truth, share = 1 - Fraction(survey["p_yes"]) - Fraction(survey["p_no"]), Fraction(survey["first"], survey["users"])
    estimate = float((share - Fraction(survey["p_yes"])) / truth)
    error = check_published(design, survey["first"], survey["users"], estimate, 1e-9)
    assert error == pytest.approx(math.sqrt(share * (1 - share) / (survey["users"] * truth**2)), rel=1e-12)


# -- two samples, and a prevalence that is not known --------------------------------------------------------


def two_sample_likelihood(yes: tuple[int, ...], users: tuple[int, ...], p: tuple[float, ...]) -> Callable[..., float]:
    """Return minus the log-likelihood of a sensitive share and a prevalence."""

    def value(shares: Any) -> float:
        total = 0.0
        for said, asked, chance in zip(yes, users, p, strict=True):
            share = min(max(chance * shares[0] + (1 - chance) * shares[1], 1e-300), 1 - 1e-16)
            total -= said * math.log(share) + (asked - said) * math.log1p(-share)
        return total

    return value


@own.examples(60)
@given(
    st.tuples(st.integers(0, 60), st.integers(0, 60)),
    st.tuples(st.integers(0, 60), st.integers(0, 60)),
    st.sampled_from([(0.7, 0.3), (0.8, 0.0), (0.25, 0.9), (1.0, 0.5)]),
)
def test_two_samples_have_the_largest_likelihood(
    yes: tuple[int, int], no: tuple[int, int], p: tuple[float, float]
) -> None:
    users = (yes[0] + no[0] + 1, yes[1] + no[1] + 1)
    found = hb.unrelated_prevalence(yes, users, p)
    value = two_sample_likelihood(yes, users, p)
    best = min(
        float(optimize.minimize(value, start, bounds=[(0, 1), (0, 1)], method="L-BFGS-B").fun)
        for start in itertools.product((0.1, 0.9), repeat=2)
    )
    assert value([found.sensitive, found.prevalence]) <= best + 1e-5
    assert 0 <= found.sensitive <= 1
    assert 0 <= found.prevalence <= 1


def test_two_samples_have_the_textbook_errors() -> None:
    """Greenberg et al. (1969): Var = ((1 - p2)^2 V1 + (1 - p1)^2 V2) / (p1 - p2)^2; and the inverse information."""
    yes, users, p = (240, 310), (600, 500), (0.7, 0.2)
    found = hb.unrelated_prevalence(yes, users, p)
    shares = [said / asked for said, asked in zip(yes, users, strict=True)]
    variances = [share * (1 - share) / asked for share, asked in zip(shares, users, strict=True)]
    assert found.sensitive == pytest.approx((0.8 * shares[0] - 0.3 * shares[1]) / 0.5, rel=1e-12)
    assert found.prevalence == pytest.approx((0.7 * shares[1] - 0.2 * shares[0]) / 0.5, rel=1e-12)
    textbook = [
        (0.8**2 * variances[0] + 0.3**2 * variances[1]) / 0.25,
        (0.2**2 * variances[0] + 0.7**2 * variances[1]) / 0.25,
    ]
    slopes = np.array([[0.7, 0.3], [0.2, 0.8]])  # of the shares that say yes, in both unknowns
    information = slopes.T @ np.diag(1 / np.array(variances)) @ slopes
    assert found.sensitive_error is not None
    assert found.prevalence_error is not None
    errors = [found.sensitive_error**2, found.prevalence_error**2]
    np.testing.assert_allclose(errors, textbook, rtol=1e-12)
    np.testing.assert_allclose(errors, np.diag(np.linalg.inv(information)), rtol=1e-12)


def test_on_the_border_there_is_no_standard_error() -> None:
    found = hb.unrelated_prevalence([30, 310], [600, 600], [0.7, 0.3])
    assert found.sensitive == pytest.approx(0, abs=1e-6)
    assert (found.sensitive_error, found.prevalence_error) == (None, None)


# -- laws ---------------------------------------------------------------------------------------------------


@designs
def test_probabilities_are_those_of_the_design_exactly(name: str) -> None:
    design, sensitive, other = DESIGNS[name]
    assert design.chances == (sensitive, other)
    table = rows_of(design.law, 2)
    assert table == [[sensitive, 1 - sensitive], [other, 1 - other]]
    assert sums_to_one(table)
    np.testing.assert_allclose(design.matrix(), np.array(table, dtype=float), rtol=1e-15)


@designs
def test_the_audit_proves_the_closed_form(name: str) -> None:
    design, *chances = DESIGNS[name]
    result = hb.audit(design, draws=2_000)
    assert result.exact is not None
    assert result.exact.holds
    pairs = [sorted(pair) for pair in (chances, [1 - chance for chance in chances])]
    if any(low == 0 for low, _ in pairs):
        assert (result.exact.ratio, design.epsilon) == (None, math.inf)
        assert "none exists" in result.explain()
    else:
        assert result.exact.ratio == max(high / low for low, high in pairs)
        assert design.epsilon == pytest.approx(math.log(result.exact.ratio), rel=1e-15)
        assert violations(design) == []


@pytest.mark.parametrize("p", [0.75, "2/3", Fraction(1, 4), Decimal("0.21"), 0.999999])
def test_randomized_response_has_the_p_that_is_written(p: Any) -> None:
    exact = Fraction(str(p))
    mechanism = hb.RandomizedResponse(COLOURS, p=p)
    assert mechanism.p == exact
    table = rows_of(mechanism.law, 5)
    assert {row[place] for place, row in enumerate(table)} == {exact}
    assert {table[0][1], table[4][3]} == {(1 - exact) / 4}
    assert sums_to_one(table)
    assert mechanism.matrix()[2, 2] == float(exact)
    np.testing.assert_allclose(np.exp(mechanism.channel(mechanism.outputs).log_dense()), mechanism.matrix(), rtol=1e-15)
    proven = hb.audit(mechanism, draws=200).exact
    assert proven is not None
    assert proven.holds
    assert proven.ratio == 4 * exact / (1 - exact)
    assert mechanism.epsilon == pytest.approx(math.log(4 * exact / (1 - exact)), rel=1e-15)


@own.examples(200)
@given(st.integers(1, 10**12), st.integers(1, 10**12))
def test_epsilon_is_the_smallest_float_that_can_be_claimed(first: int, second: int) -> None:
    ratio = Fraction(max(first, second) + 1, min(first, second))
    epsilon = epsilon_of_ratio(ratio)
    with mpmath.workdps(80):
        exact = mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)
        assert mpmath.mpf(math.nextafter(epsilon, 0)) < exact <= mpmath.mpf(epsilon)


@pytest.mark.parametrize("p", ["1e-999", "1e-400", "0." + "0" * 58 + "1"])
def test_a_question_that_is_never_asked_is_refused_at_once(p: str) -> None:
    assert epsilon_of_ratio(Fraction(1)) == 0.0
    with pytest.raises(hb.MechanismError, match="nothing can be learned"):
        hb.UnrelatedQuestion(COIN, p, 0.5)


def test_a_tie_in_the_first_word_is_decided_by_the_rest_of_the_fraction() -> None:
    law = TwoAnswerLaw((Fraction(7, 10), Fraction(1), Fraction(0)))
    head, left = divmod(7 << 64, 10)
    drawn = [int(law.draw(np.array([0]), Scripted(head, *rest(digit, 68)))[0]) for digit in range(10)]
    assert drawn == [0] * left + [1] * (10 - left)
    assert 0 < left < 10
    for position, always in ((1, 0), (2, 1)):  # certain answers, also by the words that decide nothing at once
        for word in (0, 1, 2**64 - 2, 2**64 - 1):
            tie = rest(0, 65) if word in (0, 2**64 - 1) else []
            assert law.draw(np.array([position]), Scripted(word, *tie)).tolist() == [always]


def test_a_tie_in_randomized_response_is_decided_by_the_rest_of_the_fraction() -> None:
    law = FractionResponseLaw(5, Fraction(3, 7))
    top, left = divmod(3 << 16, 7)  # the first 16 of a person's 32 bits decide
    kept = [
        int(law.draw(np.array([1]), Scripted(top << 16, *rest(digit, 67), *rest(3, 67)))[0]) == 1 for digit in range(7)
    ]
    assert kept == [True] * left + [False] * (7 - left)
    assert 0 < left < 7


# -- draws --------------------------------------------------------------------------------------------------

DRAWN: dict[str, hb.Mechanism] = {name: design for name, (design, *_) in DESIGNS.items()} | {
    "randomized response": hb.RandomizedResponse(COLOURS, p="2/3")
}
FAULTS: dict[str, tuple[hb.Mechanism, Law]] = {  # that the same test rejects
    "values swapped": (DRAWN["forced response"], TwoAnswerLaw((SIXTH, Fraction(3, 4)))),
    "answers swapped": (DRAWN["unrelated question"], TwoAnswerLaw((Fraction(4, 15), Fraction(14, 15)))),
    "a forced yes 1% too often": (DRAWN["forced response"], TwoAnswerLaw((Fraction(3, 4), SIXTH + Fraction(1, 100)))),
    "p for the probability of keeping": (DRAWN["randomized response"], FractionResponseLaw(5, Fraction(2, 3))),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", DRAWN)
def test_real_draws_follow_the_matrix(name: str) -> None:
    assert worst_p_value(DRAWN[name], draws=200_000) > LEVEL


@pytest.mark.parametrize("name", FAULTS)
def test_the_same_test_rejects_planted_faults(name: str) -> None:
    mechanism, law = FAULTS[name]
    assert worst_p_value(mechanism, drawing(mechanism, law), draws=200_000) < LEVEL


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", DRAWN)
def test_simulated_draws_follow_the_matrix(name: str) -> None:
    mechanism = DRAWN[name]
    for position, value in enumerate(mechanism.domain.labels):
        sent = mechanism.privatize(np.repeat(value, 50_000), rng=position)
        assert p_value(counts(mechanism, sent)[:-1], mechanism.matrix()[position]) > LEVEL


# -- values -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "exact"),
    [
        (0.7, "7/10"),
        (np.float64(0.1), "1/10"),
        (1, "1"),
        (0, "0"),
        (np.int64(1), "1"),
        (1e-7, "1/10000000"),
        ("1/6", "1/6"),
        ("2/12", "1/6"),
        ("0.25", "1/4"),
        ("2.5E-1", "1/4"),
        (Decimal("0.70"), "7/10"),
        (Fraction(2, 3), "2/3"),
        (1 / 3, "3333333333333333/10000000000000000"),
    ],
)
def test_probabilities_are_read_as_they_are_written(written: Any, exact: str) -> None:
    assert as_probability(written) == Fraction(exact)


@pytest.mark.parametrize(
    "written",
    [
        -0.1,
        1.1,
        70,
        math.nan,
        math.inf,
        True,
        None,
        "",
        "half",
        "1/0",
        "-1/6",
        "1/6 ",
        "70%",
        "0.7.1",
        "1e-9999",
        1j,
        [0.5],
    ],
)
def test_what_is_no_probability_is_refused(written: Any) -> None:
    assert as_probability(written) is None
    with pytest.raises(hb.MechanismError, match="p is not a probability"):
        hb.Warner(COIN, written)


def test_numbers_of_thousands_of_digits_are_refused() -> None:
    assert as_probability(10**5000) is None
    assert as_probability(Fraction(1, 10**5000)) is None
    assert as_probability(Decimal("1e-999999999")) is None


@pytest.mark.parametrize("name", DRAWN)
def test_mechanisms_are_values(name: str) -> None:
    mechanism = DRAWN[name]
    again = pickle.loads(pickle.dumps(mechanism))  # noqa: S301
    assert mechanism.epsilon == again.epsilon
    assert (again, hash(again), again.content_key) == (mechanism, hash(mechanism), mechanism.content_key)
    assert len({each.content_key for each in DRAWN.values()}) == len(DRAWN)


def test_given_by_p_or_by_epsilon_is_not_the_same() -> None:
    by_p, by_epsilon = hb.RandomizedResponse(COIN, p=0.75), hb.RandomizedResponse(COIN, math.log(3))
    assert by_p == hb.RandomizedResponse(COIN, p="3/4")
    assert by_p != by_epsilon
    assert by_epsilon.p is None
    assert by_p.content_key != by_epsilon.content_key
    assert repr(by_p) == "RandomizedResponse(domain=Categories(['yes', 'no']), p=Fraction(3, 4))"
    assert repr(by_epsilon) == f"RandomizedResponse(domain=Categories(['yes', 'no']), epsilon={math.log(3)!r})"
    np.testing.assert_allclose(by_p.matrix(), by_epsilon.matrix(), rtol=1e-14)
    both = hb.Reports.from_counts(by_p, [60, 40]) + hb.Reports.from_counts(by_epsilon, [60, 40])
    assert hb.estimate(both, "mle").probabilities[0] == pytest.approx(0.7, abs=1e-9)


def test_a_plan_may_vary_the_epsilon_of_one_given_by_p() -> None:
    (candidate,) = candidates_from(hb.RandomizedResponse(COLOURS, p=0.5))
    ((mechanism, _),) = candidate.at(2.0).parts
    assert mechanism == hb.RandomizedResponse(COLOURS, 2.0)
    (fixed,) = candidates_from(hb.Warner(COIN, 0.7))
    with pytest.raises(hb.SettingError, match="no epsilon that can be varied"):
        fixed.at(2.0)
    names = [each.name for each in candidates_from([hb.Warner(COIN, 0.7), hb.Warner(COIN, 0.3)])]
    assert names == ["warner (p 7/10)", "warner (p 3/10)"]


# -- study files --------------------------------------------------------------------------------------------

TABLES = {
    "randomized response": ("kind = 'randomized-response'\np = 0.75", hb.RandomizedResponse(COIN, p="3/4")),
    "warner": ("kind = 'warner'\np = '1/6'", hb.Warner(COIN, SIXTH)),
    "forced response": ("kind = 'forced-response'\np_yes = '1/6'\np_no = 0.25", DRAWN["forced response"]),
    "unrelated question": ("kind = 'unrelated-question'\np = '2/3'\nprevalence = 0.2", DRAWN["unrelated question"]),
    "crosswise": ("kind = 'crosswise-model'\np = '2/12'", DRAWN["crosswise"]),
}


def study_file(folder: Path, *tables: str) -> Path:
    path = folder / "study.toml"
    named = "".join(f"[mechanisms.m{number}]\n{table}\n" for number, table in enumerate(tables))
    path.write_text(f"version = 1\n[domain]\nkind = 'categories'\nlabels = ['yes', 'no']\n{named}")
    return path


def test_studies_hold_designs(tmp_path: Path) -> None:
    path = study_file(tmp_path, *(table for table, _ in TABLES.values()))
    study = hb.read_study(path)
    assert list(study.mechanisms.values()) == [mechanism for _, mechanism in TABLES.values()]
    same = hb.Study(COIN, {f"m{number}": mechanism for number, (_, mechanism) in enumerate(TABLES.values())})
    assert study.fingerprint == same.fingerprint
    written = json.loads(study.canonical)["mechanisms"]
    assert written["m0"] == {"kind": "randomized-response", "p": "3/4"}
    assert written["m2"] == {"kind": "forced-response", "p_yes": "1/6", "p_no": "1/4"}
    device = Client(path)
    for number, (_, mechanism) in enumerate(TABLES.values()):
        assert device.privatize("yes", f"m{number}") in mechanism.output_space.decode(np.arange(2)).tolist()


def test_a_study_by_epsilon_keeps_its_canonical_form() -> None:
    study = hb.Study(COIN, {"m": hb.RandomizedResponse(COIN, 1.0)})
    assert json.loads(study.canonical)["mechanisms"] == {"m": {"epsilon": 1.0, "kind": "randomized-response"}}


@pytest.mark.parametrize("name", TABLES)
def test_reports_of_devices_are_collected(name: str, tmp_path: Path) -> None:
    table, mechanism = TABLES[name]
    path = study_file(tmp_path, table)
    device, draws = Client(path), 4_000
    for position, value in enumerate(("yes", "no")):
        sent = Counter(device.privatize(value) for _ in range(draws))
        listed = [str(output) for output in mechanism.output_space.decode(np.arange(2)).tolist()]
        observed = np.array([sent.pop(output, 0) for output in listed], dtype=float)
        assert not sent
        assert p_value(observed, mechanism.matrix()[position]) > LEVEL
    values = tmp_path / "values.csv"
    values.write_text("value\n" + "yes\nno\n" * 50)
    hb.privatize_file(values, hb.read_study(path), None, tmp_path / "reports.csv")
    assert hb.read_reports(tmp_path / "reports.csv", hb.read_study(path)).users == 100


@pytest.mark.parametrize(
    "table",
    [
        "kind = 'randomized-response'",
        "kind = 'randomized-response'\nepsilon = 1.0\np = 0.75",
        "kind = 'randomized-response'\np = 0.5",
        "kind = 'randomized-response'\np = 1",
        "kind = 'randomized-response'\np = '0.5000000000001'",
        "kind = 'warner'\np = 0.5",
        "kind = 'warner'\np = 0",
        "kind = 'warner'\np = '1e-300'",
        "kind = 'warner'\nepsilon = 1.0",
        "kind = 'warner'\np = '70%'",
        "kind = 'forced-response'\np_yes = 0.5\np_no = 0.5",
        "kind = 'forced-response'\np_yes = 0.5",
        "kind = 'unrelated-question'\np = 1\nprevalence = 0.5",
        "kind = 'unrelated-question'\np = 0.5\nprevalence = 1.5",
        "kind = 'crosswise-model'\np = '1/2'",
    ],
)
def test_library_and_device_refuse_the_same(table: str, tmp_path: Path) -> None:
    path = study_file(tmp_path, table)
    with pytest.raises(hb.StudyError):
        hb.read_study(path)
    with pytest.raises(client.ClientError):
        Client(path)


# -- mixtures -----------------------------------------------------------------------------------------------


@st.composite
def mixtures(draw: st.DrawFn) -> list[tuple[hb.Mechanism, list[int]]]:
    """Several mechanisms over one question, with the counts of their two outputs."""
    domain = draw(st.sampled_from([COIN, hb.Categories(["drinks", "abstains"])]))
    kinds: list[st.SearchStrategy[hb.Mechanism]] = [
        own.survey_designs(domain),
        st.builds(hb.RandomizedResponse, st.just(domain), own.epsilons()),
        st.sampled_from([hb.RandomizedResponse(domain, p=0.75), hb.RandomizedResponse(domain, p="2/3")]),
    ]
    chosen = draw(st.lists(st.one_of(kinds), min_size=1, max_size=4))
    return [(mechanism, [draw(st.integers(1, 60)) for _ in range(2)]) for mechanism in chosen]


@own.examples(60)
@given(mixtures())
def test_designs_mix_with_each_other_and_with_randomized_response(
    parts: list[tuple[hb.Mechanism, list[int]]],
) -> None:
    first, *others = (hb.Reports.from_counts(mechanism, count) for mechanism, count in parts)
    reports = sum(others, start=first)

    def value(share: float) -> float:
        return -sum(float(np.log([share, 1 - share] @ mechanism.matrix()) @ count) for mechanism, count in parts)

    best = optimize.minimize_scalar(value, bounds=(1e-9, 1 - 1e-9), method="bounded", options={"xatol": 1e-10})
    estimate = hb.estimate(reports, "mle")
    assert estimate.converged
    assert estimate.log_likelihood >= -float(best.fun) - 1e-6
    assert estimate.log_likelihood == pytest.approx(-value(float(estimate.probabilities[0])), abs=1e-8)


def test_one_person_may_answer_by_several_designs() -> None:
    warner, forced = hb.Warner(COIN, 0.7), hb.ForcedResponse(COIN, "1/6", "1/6")
    user = [(warner, "yes"), (forced, "yes"), (hb.CrosswiseModel(COIN, 0.25), "different")]
    reports = hb.Reports.from_users([user])
    expected = math.log(0.3 * (0.7 * 5 / 6 * 0.75) + 0.7 * (0.3 / 6 * 0.25))
    assert hb.log_likelihood(reports, [0.3, 0.7]) == pytest.approx(expected, rel=1e-12)


def test_limits_of_epsilon_are_those_of_other_mechanisms() -> None:
    for p in (0.5 + 1e-12, 1 - 1e-15):
        assert MIN_EPSILON <= hb.Warner(COIN, p).epsilon <= MAX_EPSILON
