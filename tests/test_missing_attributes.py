"""Reports that lack attributes: what could have been sent in their place, and what follows for tests and intervals.

A report of `Split` may leave attributes out. Which ones depends on no value, so everything is compared with the law
among reports that have the same attributes, written out here as matrices of Kronecker products.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import hubbub as hb
from hubbub.comparison import score_sources
from hubbub.comparison.score_sources import Deals, Simulations, report_kinds, score_source
from hubbub.goodness_of_fit.evidence import collect_evidence
from hubbub.intervals.contaminated_region import _listed
from hubbub.intervals.set_intervals import ADDED_USERS, EVEN_PART, SetShares, set_shares
from hubbub.intervals.standard_errors import UNDETERMINED, fisher_information, standard_errors
from hubbub.likelihood import Likelihood
from hubbub.mechanisms.several_attributes import SeveralAttributes
from hubbub.outputs.sent_outputs import enumerate_sent
from terminal import hubbub

Floats = NDArray[np.float64]
Entries = list[tuple[str | None, str | None]]

SEX, TOWN = hb.Categories(["f", "m"]), hb.Categories(["a", "b", "c"])
PAIRS = list(itertools.product(["f", "m"], ["a", "b", "c"]))
# Not symmetric, and with more outputs than values: a transposed matrix fails, and degrees of freedom remain.
S = hb.Matrix(SEX, list("xyz"), [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
T = hb.Matrix(TOWN, list("pqrs"), [[0.6, 0.2, 0.1, 0.1], [0.1, 0.5, 0.3, 0.1], [0.1, 0.1, 0.2, 0.6]])
SPLIT = hb.Split(s=S, t=T)
ONE = hb.SampleOne(s=S, t=T, probabilities={"s": 0.25, "t": 0.75})
FAKES = hb.SampleOneWithFakes(s=S, t=T)
TRUTH = np.array([0.3, 0.1, 0.1, 0.05, 0.25, 0.2])
TOWN_A = np.array([1.0, 0.0, 0.0, 1.0, 0.0, 0.0])
SEX_F = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])


def lacking(outputs: object, rng: np.random.Generator, s: float, t: float) -> Entries:
    """Leave out a share s of all entries about sex, and a share t of those about town, never both."""
    draws = rng.random(len(list(outputs)))  # type: ignore[call-overload]
    rows = np.asarray(outputs).tolist()
    return [
        (None if draw < s else own[0], None if s <= draw < s + t else own[1])
        for own, draw in zip(rows, draws, strict=True)
    ]


def sent(
    mechanism: SeveralAttributes, users: int, seed: int, *, s: float = 0.0, t: float = 0.0, truth: Floats = TRUTH
) -> Entries:
    """Return what users with values from a distribution sent."""
    rng = np.random.default_rng(seed)
    values = [PAIRS[position] for position in rng.choice(len(PAIRS), users, p=truth)]
    return lacking(mechanism.privatize(values, rng=rng), rng, s, t)


def reports_of(mechanism: SeveralAttributes, users: int, seed: int, *, s: float = 0.0, t: float = 0.0) -> hb.Reports:
    return hb.Reports.from_outputs(mechanism, sent(mechanism, users, seed, s=s, t=t))


def repeated(users: int, seed: int, *mechanisms: SeveralAttributes) -> hb.Reports:
    """Return the reports of users who sent one of each mechanism about the same value; those of `Split` lack some."""
    rng = np.random.default_rng(seed)
    values = [PAIRS[position] for position in rng.choice(len(PAIRS), users, p=TRUTH)]
    columns = []
    for mechanism in mechanisms:
        lacks = (0.2, 0.4) if mechanism is SPLIT else (0.0, 0.0)
        columns.append([(mechanism, own) for own in lacking(mechanism.privatize(values, rng=rng), rng, *lacks)])
    return hb.Reports.from_users([list(row) for row in zip(*columns, strict=True)])


def dense(kind: tuple[bool, bool]) -> Floats:
    """Return P(outputs | combination) of reports of `Split` with some attributes, written out."""
    joint = np.kron(S.matrix() if kind[0] else np.ones((2, 1)), T.matrix() if kind[1] else np.ones((3, 1)))
    return joint.astype(np.float64)


KINDS = {(True, True): (3, 4), (True, False): (3, 1), (False, True): (1, 4)}


def tallies(entries: Entries) -> dict[tuple[bool, bool], Floats]:
    """Return how many users sent each output, for each set of attributes, in the order of `dense`'s columns."""
    counts = {kind: np.zeros(sides) for kind, sides in KINDS.items()}
    for s, t in entries:
        place = "xyz".index(s) if s else 0, "pqrs".index(t) if t else 0
        counts[s is not None, t is not None][place] += 1
    return {kind: own.ravel() for kind, own in counts.items() if own.any()}


def dense_information(entries: Entries, theta: Floats) -> Floats:
    """Return the information per user: the sum over users of E g g' / f^2 among reports with the same attributes."""
    total = np.zeros((6, 6))
    for kind, counts in tallies(entries).items():
        columns = dense(kind)
        total += counts.sum() * (columns / (theta @ columns)) @ columns.T
    return total / len(entries)


def dense_error(information: Floats, users: int, weights: Floats) -> float:
    """Return sqrt(w' Z (Z' I Z)^+ Z' w / n), Z a basis of the vectors with sum 0."""
    basis = np.linalg.svd(np.ones((1, len(information))))[2][1:].T
    inner = np.linalg.pinv(basis.T @ information @ basis, rcond=1e-12, hermitian=True)
    return float(np.sqrt(weights @ basis @ inner @ basis.T @ weights / users))


# -- the outputs that could have been sent -----------------------------------------------------------------------------


def test_outputs_with_the_same_attributes_are_a_distribution() -> None:
    entries = sent(SPLIT, 500, 1, s=0.2, t=0.5)
    (block,) = hb.Reports.from_outputs(SPLIT, entries).blocks
    codes = SPLIT.output_space.encode(entries)
    listed = enumerate_sent(SPLIT, codes, block.users, None)
    assert listed is not None
    assert sorted(row for own in listed for row in own.rows.tolist()) == list(range(500))
    expected = tallies(entries)
    for own in listed:
        kind = entries[own.rows[0]][0] is not None, entries[own.rows[0]][1] is not None
        np.testing.assert_allclose(own.outputs.probabilities, dense(kind), rtol=1e-14)
        np.testing.assert_array_equal(own.tally(codes, np.ones(500)), expected[kind])
        chances = own.outputs.probabilities[:, own.outputs.position_of(codes[own.rows])]
        np.testing.assert_allclose(chances, np.exp(SPLIT.log_columns(codes[own.rows])), rtol=1e-12)
        first = int(own.outputs.position_of(codes[own.rows[:1]])[0])
        words = {name: entry for name, entry in zip("st", entries[own.rows[0]], strict=True) if entry is not None}
        assert json.loads(own.outputs.text(first)) == words


def test_noise_without_end_and_impossible_combinations_are_enumerated_by_attribute() -> None:
    ages = hb.Integers(0, 3)
    domain = hb.Product(age=ages, sex=SEX, impossible=[{"age": [0], "sex": "m"}])
    mechanism = hb.Split(domain, age=hb.Geometric(ages, 1.0), sex=S)
    entries = [(-1, "x"), (1, "z"), (100, "y"), (2, None), (9, None), (None, "y")]
    codes = mechanism.output_space.encode(entries)
    among = np.array([0, 2, 3, 6])  # of the seven possible ones
    for kept in (None, among):
        listed = enumerate_sent(mechanism, codes, 6.0, kept)
        assert listed is not None
        assert len(listed) == 3
        for own in listed:
            assert own.outputs.probabilities.shape[0] == (7 if kept is None else 4)
            np.testing.assert_allclose(own.outputs.probabilities.sum(axis=1), 1.0, rtol=1e-12)
            near = [row for row in own.rows.tolist() if entries[row][0] not in (9, 100)]  # those are clamped
            chances = own.outputs.probabilities[:, own.outputs.position_of(codes[near])]
            np.testing.assert_allclose(chances, np.exp(mechanism.log_columns(codes[near], kept)), rtol=1e-12)


def test_attributes_that_nobody_sent_need_no_list() -> None:
    mechanism = hb.Split(s=S, t=hb.LocalHashing(TOWN, 1.0))
    codes = mechanism.output_space.encode([("x", None), ("y", None)])
    listed = enumerate_sent(mechanism, codes, 2.0, None)
    assert listed is not None
    np.testing.assert_allclose(listed[0].outputs.probabilities, np.kron(S.matrix(), np.ones((3, 1))))
    assert enumerate_sent(mechanism, mechanism.output_space.encode([("x", (7, 1))]), 1.0, None) is None


def test_all_sets_of_attributes_share_one_limit() -> None:
    codes = SPLIT.output_space.encode([("x", "p"), ("x", None), (None, "p")])
    assert enumerate_sent(SPLIT, codes, 3.0, None, max_entries=6 * (12 + 3 + 4)) is not None
    assert enumerate_sent(SPLIT, codes, 3.0, None, max_entries=6 * (12 + 3 + 4) - 1) is None


# -- the fit -----------------------------------------------------------------------------------------------------------

STUDIES: dict[str, Callable[[], hb.Reports]] = {
    "one report lacks an attribute": lambda: reports_of(SPLIT, 400, 1) + hb.Reports.from_outputs(SPLIT, [("x", None)]),
    "many lack one": lambda: reports_of(SPLIT, 800, 2, s=0.2, t=0.4),
    "all lack the same": lambda: reports_of(SPLIT, 400, 3, t=1.0),
    "several reports of a user": lambda: repeated(600, 4, SPLIT, SPLIT),
    "of two mechanisms": lambda: repeated(600, 5, SPLIT, ONE) + reports_of(SPLIT, 200, 6, t=0.5),
    "one attribute each": lambda: reports_of(ONE, 600, 7),
    "three mechanisms": lambda: reports_of(SPLIT, 400, 8, t=0.5) + reports_of(ONE, 300, 9) + reports_of(FAKES, 300, 10),
}


@pytest.mark.slow
@pytest.mark.parametrize("study", STUDIES)
def test_nothing_stops_at_what_is_missing(study: str) -> None:
    reports = STUDIES[study]()
    assert not hb.fit_test(reports).rejected
    assert "users" in str(hb.check(reports))
    assert hb.resolve(reports).explain()
    assert not math.isnan(hb.interval(reports, {"s": "f"}, fakes=0.01).low)
    assert hb.independence(reports, "s", "t").explain()
    assert len(hb.compare(reports, STUDIES["many lack one"]()).to_frame())


def test_reports_are_compared_among_those_with_the_same_attributes() -> None:
    entries = sent(SPLIT, 700, 11, s=0.2, t=0.4)
    evidence = collect_evidence(hb.Reports.from_outputs(SPLIT, entries), np.random.default_rng(0))
    expected = tallies(entries)
    assert sorted(table.users for table in evidence.tables) == sorted(own.sum() for own in expected.values())
    for table in evidence.tables:
        (kind,) = [own for own, counts in expected.items() if np.array_equal(counts, table.counts)]
        np.testing.assert_allclose(table.probabilities, dense(kind), rtol=1e-14)


def test_pairs_of_reports_are_compared_among_those_with_the_same_attributes() -> None:
    reports = repeated(900, 12, SPLIT, SPLIT)
    evidence = collect_evidence(reports, np.random.default_rng(0))
    assert len(evidence.tables) == 6  # three sets of attributes, two at a time without order
    assert sum(table.users for table in evidence.tables) == 900
    for table in evidence.tables:
        np.testing.assert_allclose(table.probabilities.sum(axis=1), 1.0, rtol=1e-12)
        assert table.counts.sum() == table.users


def test_clean_reports_raise_no_more_alarms_than_stated() -> None:
    """60 studies at a level of 10%: more than 15 alarms have a probability of 0.07%."""
    alarms = sum(hb.fit_test(reports_of(SPLIT, 400, seed, s=0.2, t=0.5), level=0.1).rejected for seed in range(60))
    assert alarms <= 15


def test_who_leaves_an_attribute_out_by_its_value_is_seen() -> None:
    """The planted fault: those who say nothing about their town are all men."""
    clean = reports_of(SPLIT, 2_000, 13)
    men = np.array([0.0, 0.0, 0.0, 0.2, 0.4, 0.4])
    silent = [(s, None) for s, _ in sent(SPLIT, 1_000, 14, truth=men)]
    assert hb.fit_test(clean + hb.Reports.from_outputs(SPLIT, silent)).rejected
    assert not hb.fit_test(clean + reports_of(SPLIT, 1_000, 14, t=1.0)).rejected


def test_attributes_that_are_sent_too_often_are_seen() -> None:
    """A report of `SampleOne` is about an attribute with a known probability: 1/4 for sex."""
    fit = hb.fit_test(reports_of(ONE, 2_000, 15))
    assert [part.name for part in fit.parts] == ["attribute that is sent", "shares of outputs"]
    assert not fit.rejected
    wrong = hb.SampleOne(s=S, t=T)  # equally often
    biased = hb.fit_test(hb.Reports.from_outputs(ONE, sent(wrong, 2_000, 16)))
    assert biased.rejected
    assert biased.worst[0].part == "attribute that is sent"
    assert biased.worst[0].text in ("reports about s", "reports about t")


STUDY = """version = 1
name = "sex and town"
[domain]
kind = "product"
[domain.attributes.sex]
kind = "categories"
labels = ["f", "m"]
[domain.attributes.town]
kind = "categories"
labels = ["a", "b", "c"]
[mechanisms.both]
kind = "split"
[mechanisms.both.parts.sex]
kind = "krr"
epsilon = 2.0
[mechanisms.both.parts.town]
kind = "krr"
epsilon = 2.0
"""


def test_the_terminal_takes_reports_that_lack_attributes(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    rows = ["output.sex,output.town", *["f,a"] * 200, *["m,b"] * 200, "m,"]
    (tmp_path / "reports.csv").write_text("\n".join(rows) + "\n")
    for command in (["estimate"], ["check"], ["resolve"], ["report", "-o", "page.html"]):
        done = hubbub(*command, "study.toml", "reports.csv", cwd=tmp_path)
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode in (0, 3), done.stderr


# -- shares of sets ----------------------------------------------------------------------------------------------------


def test_shares_of_sets_are_least_squares_over_what_was_sent() -> None:
    entries = sent(SPLIT, 3_000, 17, s=0.2, t=0.6)
    shares = set_shares(hb.Reports.from_outputs(SPLIT, entries), TRUTH)
    assert isinstance(shares, SetShares)
    base = (1.0 - EVEN_PART) * TRUTH + EVEN_PART / 6
    scores = {kind: dense(kind) / (base @ dense(kind)) for kind in KINDS}
    information = dense_information(entries, base)
    inverse = np.linalg.inv(information)
    total, scatter = np.zeros(6), np.zeros((6, 6))
    for kind, counts in tallies(entries).items():
        total += scores[kind] @ counts
    centre = inverse @ total / 3_000
    for kind, counts in tallies(entries).items():
        apart = scores[kind] - (scores[kind] @ dense(kind).T @ centre)[:, None]
        scatter += (apart * counts) @ apart.T
    covariance = inverse @ (scatter / 3_000) @ inverse / 3_000
    covariance += ADDED_USERS / 3_000**2 * (inverse - np.outer(base, base))
    np.testing.assert_allclose(shares.centre, centre, rtol=1e-9)
    np.testing.assert_allclose(shares.matrix, covariance, rtol=1e-7, atol=1e-12)


def test_shares_of_sets_from_several_reports_of_a_user_hold_the_truth() -> None:
    shares = set_shares(repeated(20_000, 18, SPLIT, SPLIT), TRUTH)
    assert isinstance(shares, SetShares)
    assert (np.abs(shares.centre - TRUTH) < 4.0 * shares.deviations).all()


# -- standard errors ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.5, 0.9])
def test_standard_errors_are_those_of_the_reports_as_they_were_sent(missing: float) -> None:
    entries = sent(SPLIT, 4_000, 19, s=0.1 * (1.0 - missing), t=missing)
    reports = hb.Reports.from_outputs(SPLIT, entries)
    expected = dense_information(entries, TRUTH)
    np.testing.assert_allclose(fisher_information(reports, TRUTH), expected, rtol=1e-12)
    found = standard_errors(reports, TRUTH, [TOWN_A, SEX_F])
    assert found.numbers == pytest.approx([dense_error(expected, 4_000, own) for own in (TOWN_A, SEX_F)], rel=1e-6)


@pytest.mark.slow
def test_estimates_scatter_as_the_standard_errors_say() -> None:
    """300 studies: the ratio has a relative standard deviation of 4%, and 16% are four of these."""
    shares, errors = [], []
    for seed in range(300):
        reports = reports_of(SPLIT, 3_000, 1_000 + seed, t=0.9)
        theta = hb.estimate(reports, "mle").probabilities
        shares.append(float(TOWN_A @ theta))
        errors.append(float(standard_errors(reports, TRUTH, [TOWN_A]).numbers[0]))
    assert np.std(shares) / np.mean(errors) == pytest.approx(1.0, abs=0.16)


@pytest.mark.parametrize("mechanism", [SPLIT, ONE], ids=["split", "one"])
def test_an_attribute_that_nobody_sent_is_not_determined(mechanism: SeveralAttributes) -> None:
    reports = hb.Reports.from_outputs(mechanism, [("x", None)] * 300 + [("z", None)] * 200)
    found = standard_errors(reports, TRUTH, [TOWN_A, SEX_F])
    assert found.reasons == (UNDETERMINED, "")
    assert math.isnan(found.numbers[0])
    of_sex = np.array([SEX_F @ TRUTH, 1.0 - SEX_F @ TRUTH])
    alone = standard_errors(hb.Reports.from_counts(S, [300, 0, 200]), of_sex, [np.array([1.0, 0.0])])
    assert found.numbers[1] == pytest.approx(alone.numbers[0], rel=1e-9)
    frame = hb.compare(reports, reports).to_frame()
    assert frame["standard_error"].isna().all()
    band = hb.band(reports, of="t").to_frame()
    assert band["standard_error"].isna().all()


# -- comparisons -------------------------------------------------------------------------------------------------------


def test_users_are_dealt_among_those_with_the_same_attributes() -> None:
    first, second = reports_of(SPLIT, 9_000, 20, t=0.9), reports_of(SPLIT, 6_000, 21, t=0.1)
    kinds = report_kinds([first, second])
    assert kinds is not None
    assert {int(kind) for own in kinds for kind in own} == {0, 1}
    points = [Likelihood.of(own).at(TRUTH) for own in (first, second)]
    source = score_source(points, [first, second], kinds, 50, np.random.default_rng(0))
    assert isinstance(source, Deals)
    # Few of the first group say anything about towns, and so it stays however users are dealt.
    told = [own @ TOWN_A @ TOWN_A for own in source.informations / np.array([0.6, 0.4])[:, None, None]]
    exact = [fisher_information(own, TRUTH) @ TOWN_A @ TOWN_A for own in (first, second)]
    assert told == pytest.approx(exact, rel=0.1)
    assert report_kinds([first, reports_of(SPLIT, 300, 22)]) is None  # nobody of the second lacks any


def test_the_normal_limit_of_deals_is_for_users_of_one_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_sources, "MAX_DEALT_COUNTS", 10)
    first, second = reports_of(SPLIT, 900, 20, t=0.9), reports_of(SPLIT, 600, 21, t=0.1)
    points = [Likelihood.of(own).at(TRUTH) for own in (first, second)]
    source = score_source(points, [first, second], report_kinds([first, second]), 50, np.random.default_rng(0))
    assert isinstance(source, Simulations)
    for own, information, share in zip((first, second), source.informations, (0.6, 0.4), strict=True):
        np.testing.assert_allclose(information, share * fisher_information(own, TRUTH), rtol=1e-12)


def test_several_reports_of_a_user_are_of_a_kind_with_their_attributes() -> None:
    kinds = report_kinds([repeated(800, 23, SPLIT, SPLIT), repeated(800, 24, SPLIT, SPLIT)])
    assert kinds is not None
    assert len({int(kind) for own in kinds for kind in own}) == 6


def test_differences_have_the_errors_of_each_group() -> None:
    first, second = reports_of(SPLIT, 2_000, 25, t=0.9), reports_of(SPLIT, 2_000, 26, t=0.1)
    frame = hb.compare(first, second).to_frame()
    one, other = (hb.band(own).to_frame()["standard_error"].to_numpy() for own in (first, second))
    np.testing.assert_allclose(frame["standard_error"], np.hypot(one, other), rtol=1e-9)


# -- fakes -------------------------------------------------------------------------------------------------------------


def test_a_fake_claims_any_set_of_attributes() -> None:
    reports = reports_of(SPLIT, 4_000, 27, t=0.5) + hb.Reports.from_outputs(SPLIT, [(None, "p")] * 30)
    listed, note = _listed(reports, TRUTH, 0.02)
    assert sorted(round(own.counts.sum()) for own in listed) == sorted(
        round(counts.sum()) for counts in tallies(sent(SPLIT, 4_000, 27, t=0.5)).values()
    )
    assert note == "30 users were left out: fakes could drown reports like theirs."
    for own in listed:
        assert (own.channel.dense() * np.exp(own.channel.log_scale)).sum(axis=1) == pytest.approx(np.ones(6))


def test_rare_outputs_of_each_set_of_attributes_are_pooled() -> None:
    reports = reports_of(SPLIT, 150, 28, t=0.5)
    listed, _ = _listed(reports, TRUTH, 0.01)
    assert len(listed) == 2
    for own in listed:
        expected = own.counts.sum() * (TRUTH @ (own.channel.dense() * np.exp(own.channel.log_scale)))
        assert expected.min() >= 5.0
