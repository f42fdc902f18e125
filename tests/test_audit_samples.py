"""`audit_samples` and `hubbub audit --outputs`: clients with faults are refuted, and correct ones pass.

All clients of these tests are seeded, so that they pass always or never.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer
from scipy import stats

import hubbub as hb
from benchmark_modules import benchmark
from hubbub.auditing.bit_row_tests import ones_scores
from hubbub.auditing.count_tests import (
    DETECTION_POWER,
    Sensitivity,
    binomial_test,
    chi_square,
    combined_p_value,
    several_tests,
    sum_p_value,
)
from hubbub.auditing.hashed_output_tests import bucket_scores
from hubbub.auditing.law_tests import law_tests
from hubbub.auditing.listed_output_tests import likelihood_scores, uniform_scores
from hubbub.auditing.output_cells import output_cells
from hubbub.auditing.pooled_events import pooled_event
from hubbub.cli.audit import command

CLIENTS = benchmark("client_faults")
COLOURS = hb.RandomizedResponse(hb.Categories(["red", "green", "blue"]), 1.0)
LINE = hb.Integers(0, 19)
SURE = 1 - 1e-6


def sample(mechanism: hb.Mechanism, outputs: int, seed: int = 0) -> tuple[Any, Any]:
    """Return values and what a correct client sends for them."""
    rng = np.random.default_rng(seed)
    inputs = mechanism.domain.labels[rng.integers(0, len(mechanism.domain), outputs)]
    return inputs, mechanism.privatize(inputs, rng=rng)


def encoded(mechanism: hb.Mechanism, outputs: int, seed: int = 0) -> tuple[Any, Any]:
    inputs, sent = sample(mechanism, outputs, seed)
    return mechanism.domain.index(inputs), mechanism.output_space.encode(sent)


# -- faults and no faults -----------------------------------------------------------------------------------


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fault", CLIENTS.FAULTS, ids=lambda fault: fault.name)
def test_clients_with_a_fault_are_refuted(fault: Any) -> None:
    result = CLIENTS.audited(fault.mechanism, fault.client, fault.outputs, seed=0)
    assert result.verdict == "refuted", result.explain()
    assert "Refuted" in result.explain()


@pytest.mark.parametrize("rows", [2, 5, 20])
@pytest.mark.parametrize("values", [2, 6, 100])
def test_a_coin_that_is_used_again_is_found(values: int, rows: int) -> None:
    """Where values are many, and outputs hardly ever equal, what is used again shows in how likely outputs are."""
    mechanism = hb.RandomizedResponse(hb.Integers(1, values), 3.0 if values > 10 else 1.0)
    result = CLIENTS.audited(mechanism, CLIENTS.coin_reused(rows), 20_000, seed=2)
    assert result.follows_law is False, result.explain()
    assert "how likely outputs are: outputs" in result.explain()


def test_published_faults_break_the_claim_itself() -> None:
    """pure-LDP's own bit and OpenDP's last bit: more than the claimed epsilon is shown, not only another law."""
    for fault in CLIENTS.FAULTS[:3]:
        result = CLIENTS.audited(fault.mechanism, fault.client, 10_000, seed=1)
        assert result.keeps_claim is False, fault.name
        assert result.bound.low > result.claim


@pytest.mark.parametrize("mechanism", CLIENTS.CORRECT, ids=lambda mechanism: type(mechanism).__name__)
def test_correct_clients_pass(mechanism: hb.Mechanism) -> None:
    result = hb.audit_samples(mechanism, *sample(mechanism, 1_500, seed=3), level=SURE)
    assert result.verdict == "no fault found", result.explain()
    assert result.tests
    assert 0.0 < result.p_value <= 1.0
    assert result.bound is not None
    assert result.bound.low <= result.claim
    assert "No fault found in 1,500 outputs" in result.explain()


@pytest.mark.parametrize("epsilon", [1e-9, 8.0, 60.0, 500.0])
def test_correct_clients_pass_at_extreme_epsilons(epsilon: float) -> None:
    """Where hardly anything, or only the unlikeliest, would be a fault: tests of sums must not take over."""
    yes_or_no, three = hb.Categories(["yes", "no"]), hb.Integers(0, 2)
    for mechanism in (
        hb.RandomizedResponse(yes_or_no, epsilon),
        hb.Rappor(yes_or_no, epsilon),
        hb.OptimizedUnary(three, epsilon),
        hb.LongitudinalRappor(three, epsilon, epsilon / 2),
        hb.LongitudinalUnary(three, epsilon, epsilon / 2, "oue", "oue"),
        hb.LongitudinalResponse(three, epsilon, epsilon / 2),
        hb.LongitudinalHashing(three, epsilon, epsilon / 2, buckets=2),
        hb.DBitFlip(three, epsilon, bits=2),
        hb.BloomRappor(yes_or_no, 2, 8, 1, epsilon=epsilon, first=epsilon / 2),
        hb.SubsetSelection(three, epsilon),
        hb.LocalHashing(three, epsilon, buckets=2),
        hb.Duchi(three, epsilon),
        hb.Staircase(three, max(epsilon, 1e-6)),
        hb.Geometric(three, epsilon),
        hb.TruncatedGeometric(three, epsilon),
        hb.Exponential(three, epsilon),
    ):
        result = hb.audit_samples(mechanism, *sample(mechanism, 300, seed=4), level=SURE)
        assert result.holds is None, result.explain()
        json.loads(result.to_json())


@pytest.mark.slow
def test_false_alarms_are_as_rare_as_the_level_says() -> None:
    """At level 0.7 less than 30% of correct clients may be refuted, by laws less than 15%; and some are."""
    mechanisms = [COLOURS, hb.Geometric(LINE, 0.5), hb.OptimizedUnary(LINE, 1.0)]
    results = [
        hb.audit_samples(mechanism, *sample(mechanism, 400, seed), level=0.7)
        for mechanism in mechanisms
        for seed in range(25)
    ]
    by_law = sum(result.follows_law is False for result in results)
    assert 0 < by_law <= stats.binom.ppf(1 - 1e-4, len(results), 0.15)
    assert sum(result.keeps_claim is False for result in results) <= stats.binom.ppf(1 - 1e-4, len(results), 0.15)


def test_the_bound_over_all_values_is_seldom_above_the_truth() -> None:
    wrong = 0
    for seed in range(300):
        event = pooled_event(COLOURS, np.arange(3))
        assert event is not None
        wrong += event.counts(*encoded(COLOURS, 200, seed)).bound(0.7) > 1.0
    assert 0 < wrong <= stats.binom.ppf(1 - 1e-6, 300, 0.3)


def test_outputs_spread_over_many_values_still_bound_epsilon() -> None:
    for mechanism in (hb.RandomizedResponse(hb.Integers(0, 399), 4.0), hb.Rappor(hb.Integers(0, 399), 2.0)):
        result = hb.audit_samples(mechanism, *sample(mechanism, 4_000))
        assert result.bound is not None
        assert result.bound.value is None
        assert result.bound.low > 0.6 * mechanism.epsilon
        assert result.bound.counted <= 2_000  # the other half chose the event
        assert "its partner" in result.explain() or "the value itself" in result.explain()


# -- the tests themselves ------------------------------------------------------------------------------------


def test_chi_square_counts_rare_neighbours_together() -> None:
    rng = np.random.default_rng(0)
    chances = rng.dirichlet(np.full(300, 0.5))
    p_values = np.array([chi_square(rng.multinomial(2_000, chances), chances).p_value for _ in range(500)])
    assert stats.kstest(p_values, "uniform").pvalue > 1e-4
    assert chi_square(rng.multinomial(2_000, chances), chances).freedom > 50
    shifted = chances[::-1]
    assert chi_square(rng.multinomial(2_000, shifted), chances).p_value < 1e-12


def test_sums_have_the_tails_of_their_skewness() -> None:
    """Against the exact binomial law, whose skewness is large for rare events."""
    trials, chance = 2_000, 0.01
    for count in (5, 12, 20, 28, 40):
        variance = trials * chance * (1 - chance)
        found = sum_p_value(count - trials * chance, variance, variance * (1 - 2 * chance))
        tails = stats.binom.cdf(count, trials, chance), stats.binom.sf(count - 1, trials, chance)
        middle = min(tails) - stats.binom.pmf(count, trials, chance) / 2  # half of the count's own probability
        assert found == pytest.approx(2 * middle, rel=0.3)
        assert found > 3 * stats.norm.sf((count - trials * chance) / variance**0.5) or count < 40
    assert sum_p_value(3.0, 1.0, 0.0) == pytest.approx(2 * stats.norm.sf(3.0))
    assert sum_p_value(1.0, 0.0, 0.0) == 1.0


def scores() -> Iterator[tuple[str, Any]]:
    rng = np.random.default_rng(1)
    for mechanism in (COLOURS, hb.Geometric(LINE, 0.5), hb.PlanarGeometric(hb.Grid(5, 4), 1.0, truncated=False)):
        cells = output_cells(mechanism, *encoded(mechanism, 5_000))
        assert cells is not None
        yield type(mechanism).__name__, uniform_scores(cells, rng)
        yield f"{type(mechanism).__name__}, likelihoods", likelihood_scores(cells, rng)
    for bits in (hb.Rappor(LINE, 1.0), hb.SubsetSelection(LINE, 1.0)):
        yield type(bits).__name__, ones_scores(bits, *encoded(bits, 5_000), rng)
    hashed = hb.LocalHashing(LINE, 1.0)
    yield "LocalHashing", bucket_scores(hashed, *encoded(hashed, 5_000), rng)


def test_scores_of_a_correct_client_are_uniform() -> None:
    for name, numbers in scores():
        assert stats.kstest(numbers, "uniform").pvalue > 1e-4, name


def test_likelihood_scores_are_ordered_by_likelihood() -> None:
    """Outputs that are as likely share a range of scores, and less likely ones have lower scores."""
    rows = np.array([[0.2, 0.5, 0.2, 0.1], [0.25, 0.25, 0.25, 0.25], [0.0, 0.0, 0.0, 1.0]])
    mechanism = hb.Matrix(hb.Integers(0, 2), list("abcd"), rows)
    cells = output_cells(mechanism, np.repeat([0, 1], 2_000), np.arange(4_000) % 4)
    assert cells is not None
    numbers = likelihood_scores(cells, np.random.default_rng(0)).reshape(2, -1, 4)
    for output, (low, high) in enumerate([(0.1, 0.5), (0.5, 1.0), (0.1, 0.5), (0.0, 0.1)]):
        own = numbers[0, :, output]
        assert own.min() == pytest.approx(low, abs=0.01)
        assert own.max() == pytest.approx(high, abs=0.01)
    assert stats.kstest(numbers[1].ravel(), "uniform").pvalue > 1e-4


@pytest.mark.slow
def test_tests_of_the_order_have_their_level() -> None:
    """Of correct clients, also with sorted values and with answers that are hardly ever true or nearly always."""
    faint, loud = hb.RandomizedResponse(hb.Integers(0, 99), 0.5), hb.RandomizedResponse(hb.Integers(0, 4), 6.0)
    alarms, tests = 0, 0
    for mechanism in (COLOURS, faint, loud, hb.TruncatedGeometric(LINE, 0.5)):
        for seed in range(60):
            positions, codes = encoded(mechanism, 400, seed)
            order = np.argsort(positions, kind="stable") if seed % 2 else np.arange(400)
            kinds = [test for test in law_tests(mechanism, positions[order], codes[order]) if "earlier" in test.about]
            assert len(kinds) == 2
            alarms += sum(test.p_value < 0.1 for test in kinds)
            tests += len(kinds)
    assert 0 < alarms <= stats.binom.ppf(1 - 1e-4, tests, 0.1)


def test_ties_are_broken_anew_for_other_outputs() -> None:
    """All outputs of cloaking tie: numbers that happen to be correlated must not refute every client."""
    cloaking = hb.Cloaking(hb.Categories(list("abcdef")), list("xxxyyy"))
    results = [hb.audit_samples(cloaking, *sample(cloaking, 30_000, seed), level=0.95) for seed in range(6)]
    assert sum(result.follows_law is False for result in results) <= 1
    inputs, outputs = sample(cloaking, 1_000)
    assert hb.audit_samples(cloaking, inputs, outputs) == hb.audit_samples(cloaking, inputs, outputs)


def test_cells_of_noise_have_its_probabilities() -> None:
    """Of wide noise, ranges have the sums of their probabilities; of narrow noise, each displacement its own."""
    for epsilon in (0.7, 0.0002):
        mechanism = hb.Geometric(LINE, epsilon)
        cells = output_cells(mechanism, np.zeros(3, dtype=np.int64), np.array([0, 1, -1]))
        assert cells is not None
        row = cells.rows(np.arange(1))[0]
        assert row.sum() == pytest.approx(1.0, abs=1e-12)
        assert row.min() >= 0
        centre = row[cells.cell_of[0]]
        if epsilon > 0.1:
            assert centre == pytest.approx(np.tanh(epsilon / 2))
            assert row[cells.cell_of[1]] == pytest.approx(centre * np.exp(-epsilon))
        else:
            assert row.max() < 3 / row.size


@pytest.mark.parametrize(
    ("sensitivity", "chances"),
    [
        (Sensitivity(4_000, 19, 0.25), np.full(20, 0.05)),
        (Sensitivity(4_000, 1, 0.09), np.array([0.9, 0.1])),
    ],
    ids=["many cells", "two cells"],
)
def test_what_is_called_detectable_is_found_as_often(sensitivity: Sensitivity, chances: Any) -> None:
    """A difference of that total variation: the first half of the cells loses what the other half gains."""
    size = sensitivity.detectable(0.001)
    moved, half = chances.copy(), chances.size // 2
    moved[:half] -= size / half
    moved[half:] += size / (chances.size - half)
    rng = np.random.default_rng(2)
    found = [chi_square(own, chances).p_value < 0.001 for own in rng.multinomial(sensitivity.outputs, moved, 400)]
    assert stats.binomtest(sum(found), 400, DETECTION_POWER).pvalue > 1e-3


def test_p_values_are_corrected_for_the_number_of_tests() -> None:
    kinds = several_tests("each", np.array([0.5, 0.01, 0.3]), Sensitivity(10, 1, 0.25), lambda place: f"number {place}")
    assert kinds[0].p_value == pytest.approx(0.03)
    assert kinds[0].worst == "number 1"
    assert several_tests("none", np.array([]), Sensitivity(10, 1, 0.25), str) == []
    single = binomial_test("heads", 60, 100, 0.5)
    assert single.p_value == pytest.approx(stats.binomtest(60, 100).pvalue)
    assert combined_p_value([*kinds, single]) == pytest.approx(0.06)
    assert combined_p_value([]) == 1.0


def test_attributes_are_tested_alone_and_together() -> None:
    names = [test.about for test in law_tests(hb.Split(CLIENTS.PAIR), *encoded(hb.Split(CLIENTS.PAIR), 1_000))]
    assert {
        "age: the amount of noise",
        "sex: how often the value itself is sent",
        "independence of age and sex",
    } <= set(names)


def test_equal_attributes_of_sorted_values_are_independent() -> None:
    """Numbers that break ties must not be the same for both attributes."""
    answer = hb.RandomizedResponse(hb.Categories(["yes", "no"]), 1.0)
    both = hb.Split(first=answer, second=answer)
    inputs = np.repeat(both.domain.labels, 500)
    result = hb.audit_samples(both, inputs, both.privatize(inputs, rng=1), level=SURE)
    assert result.holds is None, result.explain()


# -- what goes in --------------------------------------------------------------------------------------------


def test_texts_are_read_as_reports_hold_them() -> None:
    for mechanism in (COLOURS, hb.TruncatedGeometric(LINE, 0.5), hb.Rappor(LINE, 1.0), hb.LocalHashing(LINE, 1.0)):
        inputs, outputs = sample(mechanism, 300)
        texts = [mechanism.output_space.write(output) for output in outputs]
        assert hb.audit_samples(mechanism, inputs, texts) == hb.audit_samples(mechanism, inputs, outputs)


def test_outputs_that_cannot_be_are_counted() -> None:
    mechanism = hb.LocalHashing(LINE, 1.0)
    inputs, outputs = sample(mechanism, 500)
    outputs["bucket"][[7, 9]] = 4  # of four buckets the last is 3
    result = hb.audit_samples(mechanism, inputs, outputs)
    assert (result.impossible, result.outputs, result.p_value, result.verdict) == (2, 500, 0.0, "refuted")
    assert "2 of 500 outputs are none that the mechanism can send" in result.explain()
    assert "position 7: no such bucket" in result.first_impossible
    words = [mechanism.output_space.write(output) for output in sample(mechanism, 500)[1]]
    assert hb.audit_samples(mechanism, inputs, ["7", *words[1:]]).impossible == 1
    rows = np.unpackbits(sample(hb.Rappor(LINE, 1.0), 200)[1], axis=1, count=20)
    with pytest.raises(hb.OutputError, match="wrong length"):  # all of them: more likely the call is wrong
        hb.audit_samples(hb.Rappor(LINE, 1.0), inputs[:200], np.hstack([rows, rows[:, :1]]))


def test_one_value_has_no_bound() -> None:
    result = hb.audit_samples(COLOURS, ["red"] * 400, COLOURS.privatize(["red"] * 400, rng=1))
    assert result.bound is None
    assert result.detectable_epsilon is None
    assert "No bound on epsilon" in result.explain()
    assert "2 values of 3 had no output" in result.explain()
    assert json.loads(result.to_json())["bound"] is None


# -- what comes out ------------------------------------------------------------------------------------------


def test_results_say_the_same_in_every_form() -> None:
    good = hb.audit_samples(COLOURS, *sample(COLOURS, 9_000))
    inputs, outputs = sample(COLOURS, 9_000)
    bad = hb.audit_samples(COLOURS, inputs, np.where(outputs == "red", inputs, outputs))
    assert (good.holds, bad.holds) == (None, False)
    frame = bad.to_frame()
    assert frame["p_value"].min() * len(frame) == pytest.approx(bad.p_value)
    assert frame["rejected"].any()
    assert not good.to_frame()["rejected"].any()
    document = json.loads(bad.to_json())
    assert document["verdict"] == bad.verdict
    assert [test["p_value"] for test in document["tests"]] == frame["p_value"].tolist()
    assert document["text"] == bad.explain()
    assert good.verdict in good._repr_html_()
    assert str(bad).startswith("RandomizedResponse: refuted\nRefuted: ")
    for result in (good, bad):
        axes = result.plot()
        assert [label.get_text().replace("\n", " ") for label in axes.get_yticklabels()] == result.to_frame()[
            "test"
        ].tolist()
        assert result.summary() in axes.get_title()


def test_more_outputs_find_smaller_faults() -> None:
    few, many = (hb.audit_samples(COLOURS, *sample(COLOURS, count)) for count in (1_000, 16_000))
    for small, large in zip(few.tests, many.tests, strict=True):
        assert small.about == large.about
        assert many.detectable(large) == pytest.approx(few.detectable(small) / 4, rel=0.3)
    assert few.detectable_epsilon is not None
    assert many.detectable_epsilon is not None
    assert few.detectable_epsilon > many.detectable_epsilon > 1.0


# -- files and the terminal ----------------------------------------------------------------------------------


STUDY = """
version = 1
[domain]
kind = "integers"
low = 0
high = 9
[mechanisms.near]
kind = "truncated-geometric"
epsilon = 0.5
[mechanisms.bits]
kind = "rappor"
epsilon = 1.0
"""


def write(folder: Path, frame: pd.DataFrame, study: str = STUDY) -> Path:
    (folder / "study.toml").write_text(study)
    frame.to_csv(folder / "outputs.csv", index=False)
    return folder / "study.toml"


def table(study: hb.Study, outputs: int) -> pd.DataFrame:
    """Return outputs of all mechanisms in turn, as texts."""
    rows: list[Any] = [None] * outputs
    for place, (name, mechanism) in enumerate(study.mechanisms.items()):
        own = range(place, outputs, len(study.mechanisms))
        for row, value, output in zip(own, *sample(mechanism, len(own), place), strict=True):
            rows[row] = value, name, mechanism.output_space.write(output)
    return pd.DataFrame(rows, columns=["value", "mechanism", "output"])


def run(study: Path, capsys: pytest.CaptureFixture[str], **options: Any) -> tuple[int, str]:
    """Run the command on the file beside a study; return its exit code and what it printed."""
    code = 0
    try:
        command(study, outputs=str(study.parent / "outputs.csv"), **options)
    except typer.Exit as exit_:
        code = exit_.exit_code
    return code, capsys.readouterr().out


def test_a_file_is_audited_as_its_arrays_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    study = hb.read_study(tmp_path / "study.toml")
    path = write(tmp_path, table(study, 1_000))
    code, shown = run(path, capsys, as_json=True, level=0.98)
    document = json.loads(shown)
    assert (code, document["holds"], document["fingerprint"]) == (0, None, study.fingerprint)
    for place, (name, mechanism) in enumerate(study.mechanisms.items()):
        alone = hb.audit_samples(mechanism, *sample(mechanism, 500, place), level=0.99)  # two share the error
        assert document["mechanisms"][name] == alone.document()
    code, shown = run(path, capsys, mechanism="bits")
    assert code == 0
    assert "bits: Rappor" in shown
    assert "near" not in shown


def test_a_refuted_file_is_exit_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    frame = table(hb.read_study(tmp_path / "study.toml"), 600)
    frame.loc[4, "output"] = "12"
    frame.loc[7, "output"] = "010"
    code, shown = run(write(tmp_path, frame), capsys)
    assert code == 1
    for words in ("refuted", "line 6: an output is not a value of the domain, got 12", "line 9: not a row of bits"):
        assert words in " ".join(shown.split())
    with pytest.raises(hb.IntakeError, match="a value is not in the domain"):
        run(write(tmp_path, frame.assign(value=frame["value"].where(frame.index != 3, 77))), capsys)
    with pytest.raises(hb.IntakeError, match="no-output"):
        run(write(tmp_path, frame.assign(output=frame["output"].where(frame.index != 3))), capsys)
    with pytest.raises(hb.IntakeError, match="no output is one that near can send"):
        run(write(tmp_path, frame.assign(output="x", mechanism="near")), capsys)


def test_rows_without_a_mechanism_need_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    study = hb.read_study(tmp_path / "study.toml")
    path = write(tmp_path, table(study, 600).query("mechanism == 'near'").drop(columns="mechanism"))
    with pytest.raises(hb.IntakeError, match="--mechanism NAME"):
        run(path, capsys)
    code, shown = run(path, capsys, mechanism="near")
    assert code == 0
    assert "near: TruncatedGeometric" in shown
    with pytest.raises(hb.SettingError, match="mechanism must be"):
        run(path, capsys, mechanism="far")
    with pytest.raises(typer.BadParameter, match="nothing is drawn"):
        run(path, capsys, draws=1_000)
    with pytest.raises(typer.BadParameter, match="for --outputs FILE"):
        command(path, value_column="v")


ATTRIBUTES = """
version = 1
[domain]
kind = "product"
[domain.attributes.sex]
kind = "categories"
labels = ["f", "m"]
[domain.attributes.place]
kind = "grid"
south = 52.48
west = 13.33
north = 52.54
east = 13.45
columns = 3
rows = 2
[mechanisms.both]
kind = "split"
[mechanisms.both.parts.sex]
kind = "randomized-response"
epsilon = 1.0
[mechanisms.both.parts.place]
kind = "planar-geometric"
epsilon = 0.5
"""


def test_attributes_have_a_column_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "study.toml").write_text(ATTRIBUTES)
    study = hb.read_study(tmp_path / "study.toml")
    inputs, outputs = sample(study.mechanisms["both"], 600)
    columns = {
        f"{kind}.{name}": cells[name]
        for kind, cells in (("value", inputs), ("output", outputs))
        for name in cells.dtype.names
    }
    expected = hb.audit_samples(study.mechanisms["both"], inputs, outputs).document()
    by_cell = pd.DataFrame(columns)
    code, shown = run(write(tmp_path, by_cell, ATTRIBUTES), capsys, as_json=True)
    assert code == 0
    assert json.loads(shown)["mechanisms"]["both"] == expected
    centres = [(52.48 + 0.03 * (row + 0.5), 13.33 + 0.04 * (column + 0.5)) for row in range(2) for column in range(3)]
    by_place = by_cell.drop(columns="value.place")
    by_place["value.place.lat"], by_place["value.place.lon"] = np.array(centres)[by_cell["value.place"]].T
    shown = run(write(tmp_path, by_place, ATTRIBUTES), capsys, as_json=True)[1]
    assert json.loads(shown)["mechanisms"]["both"] == expected
    with pytest.raises(hb.IntakeError, match=r"value\.sex"):
        run(write(tmp_path, by_cell.assign(**{"value.sex": "x"}), ATTRIBUTES), capsys)
    with pytest.raises(hb.IntakeError, match=r"there is no column value\.place"):
        run(write(tmp_path, by_cell.drop(columns="value.place"), ATTRIBUTES), capsys)


def test_reports_that_share_a_memory_are_not_audited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        STUDY.partition("[mechanisms.bits]")[0]
        + '[mechanisms.daily]\nkind = "longitudinal-rappor"\nepsilon = 2.0\nfirst = 1.0\n'
    )
    (tmp_path / "study.toml").write_text(text)
    frame = table(hb.read_study(tmp_path / "study.toml"), 300)
    assert run(write(tmp_path, frame, text), capsys)[0] == 0
    with pytest.raises(hb.IntakeError, match="share a memory"):
        run(write(tmp_path, frame.assign(user=1), text), capsys)
