"""Matrices whose epsilon is per unit of distance, and where they are from: in studies, on devices, on pages."""

from __future__ import annotations

import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hubbub as hb
from exactly import broken_pairs, rows_of
from hubbub import client
from hubbub.auditing.exact_epsilon import prove_epsilon
from hubbub.intake.study import Study
from hubbub.intake.study_files import write_study
from hubbub.mechanisms import claimed_ratios
from hubbub.planning.candidates import candidates_from
from hubbub.reporting.computation_facts import _mechanism_text
from hubbub.reports.privacy_accounting import Spent, spent_once
from hubbub.serve.noise_words import noise_sentences
from strategies import bins, categories, examples, grids, integers, stochastic
from studies import BASES, METRIC_PARTS, METRIC_TOTAL, PEOPLE, document, split, study_text
from terminal import hubbub

ORIGIN = "hubbub design: posterior risk, epsilon 1 per unit, certified within 0.1%"
LINE = hb.Integers(1, 3)
ROWS = [[2 / 3, 1 / 3], [1 / 2, 1 / 2], [1 / 3, 2 / 3]]


def table(**more: Any) -> hb.Matrix:
    return hb.Matrix(LINE, ["low", "high"], ROWS, **more)


@st.composite
def metric_matrices(draw: st.DrawFn) -> hb.Matrix:
    domain = draw(integers() | bins() | grids() | categories())
    columns = draw(st.integers(2, 6))
    rows = draw(stochastic(len(domain), columns, positive=True))
    return hb.Matrix(domain, [f"out {place}" for place in range(columns)], rows, metric=True)


def rate_of_all_pairs(matrix: hb.Matrix) -> float:
    """Return the largest log-ratio per unit of distance, over all pairs, by the definition."""
    logs, apart = np.log(matrix.probabilities), matrix.domain.distances()
    pairs = np.argwhere(apart > 0).tolist()
    return max(float((logs[here] - logs[there]).max() / apart[here, there]) for here, there in pairs)


@examples(60)
@given(metric_matrices())
def test_epsilon_per_unit_is_the_largest_rate_of_any_pair_and_real_reports_keep_it(matrix: hb.Matrix) -> None:
    if (matrix.probabilities == matrix.probabilities[0]).all():
        assert matrix.epsilon == 0
        return
    # Rounding of logarithms counts for more where values are near each other.
    slack = 1e-14 / matrix.domain.least_distance
    assert matrix.epsilon == pytest.approx(rate_of_all_pairs(matrix), rel=1e-12, abs=slack)
    exact = prove_epsilon(matrix)
    assert exact.holds
    assert float(exact.low) == pytest.approx(matrix.epsilon, rel=1e-12, abs=slack)
    drawn = rows_of(matrix.law, len(matrix.domain))
    assert broken_pairs(matrix, drawn) == []
    assert broken_pairs(matrix, drawn, epsilon=matrix.epsilon * 0.999) != []  # and no smaller claim is kept


@pytest.mark.parametrize("entries", [1, 5, 1 << 15])
def test_blocks_of_any_size_give_the_same_epsilon(entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(3).dirichlet(np.ones(4), size=12)
    grid = hb.Grid(4, 3, cell=0.5)
    whole = hb.Matrix(grid, list("abcd"), rows, metric=True)
    expected = whole.epsilon
    assert expected == pytest.approx(rate_of_all_pairs(whole), rel=1e-12)
    monkeypatch.setattr(claimed_ratios, "COMPARED_ENTRIES", entries)
    assert hb.Matrix(grid, list("abcd"), rows, metric=True).epsilon == expected


def test_on_a_map_any_two_values_are_compared() -> None:
    """The first and the third cell are one above the other, and differ by a factor of 5; others by less."""
    rows = [[0.9, 0.1], [0.75, 0.25], [0.5, 0.5], [0.75, 0.25]]
    assert hb.Matrix(hb.Grid(2, 2, cell=1.0), ["x", "y"], rows, metric=True).epsilon == pytest.approx(math.log(5))


def test_values_of_one_distance_have_one_epsilon_and_others_two() -> None:
    cups = hb.Categories(["tea", "coffee", "water"])
    assert hb.Matrix(cups, ["a", "b"], ROWS).epsilon == hb.Matrix(cups, ["a", "b"], ROWS, metric=True).epsilon
    assert table().epsilon == pytest.approx(math.log(2), rel=1e-14)
    assert table(metric=True).epsilon == pytest.approx(math.log(3 / 2), rel=1e-14)
    equal = hb.Matrix(LINE, ["a", "b"], [[0.5, 0.5]] * 3, metric=True)
    assert equal.epsilon == 0
    assert hb.audit(equal, draws=200).holds


@pytest.mark.parametrize("metric", [False, True])
def test_there_is_no_epsilon_where_an_output_is_possible_for_some_values_alone(metric: bool) -> None:
    rows = [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]
    some = hb.Matrix(hb.Integers(0, 2), ["x", "y", "z"], rows, metric=metric)
    assert some.epsilon == math.inf
    assert hb.audit(some, draws=200).verdict == "no claim"


def test_ratios_beyond_floats_are_compared_by_their_logarithms() -> None:
    tiny = 5e-324
    rows = [[1.0, tiny, 0.5], [tiny, 1.0, 0.5], [0.5, 0.5, 0.5]]
    matrix = hb.Matrix(hb.Integers(0, 2), list("abc"), np.array(rows) / np.sum(rows, axis=1)[:, None], metric=True)
    assert 743 < matrix.epsilon < 746
    assert prove_epsilon(matrix).holds


class TwoPlaces(hb.Domain):
    """Three values, two of them at one place."""

    labels = np.array(["a", "b", "c"])
    unit = "m"
    diameter = 1.0

    def __len__(self) -> int:
        return 3

    def find(self, values: Any) -> Any:
        same = np.asarray(values)[..., None] == self.labels
        return np.where(same.any(axis=-1), same.argmax(axis=-1), -1)

    def distances_between(self, rows: Any, columns: Any) -> Any:
        at = np.array([0.0, 0.0, 1.0])
        return np.abs(at[rows][:, None] - at[columns][None, :])

    def describe(self) -> str:
        return "a, b or c"


def test_values_at_distance_0_must_have_the_same_row() -> None:
    alike = hb.Matrix(TwoPlaces(), ["x", "y"], [[0.5, 0.5], [0.5, 0.5], [0.25, 0.75]], metric=True)
    assert alike.epsilon == pytest.approx(math.log(2), rel=1e-14)
    assert prove_epsilon(alike).holds
    apart = hb.Matrix(TwoPlaces(), ["x", "y"], [[0.5, 0.5], [0.25, 0.75], [0.25, 0.75]], metric=True)
    assert apart.epsilon == math.inf


def test_what_a_matrix_promises_makes_it_another_one_and_where_it_is_from_does_not() -> None:
    plain, metric, named = table(), table(metric=True), table(metric=True, origin=ORIGIN)
    assert plain != metric == named
    assert hash(metric) == hash(named) != hash(plain)
    assert metric.content_key == named.content_key != plain.content_key
    assert repr(plain) == "Matrix(domain=Integers(low=1, high=3))"
    assert repr(named) == f"Matrix(domain=Integers(low=1, high=3), metric=True, origin={ORIGIN!r})"
    reports = hb.Reports.from_outputs(metric, ["low"]) + hb.Reports.from_outputs(named, ["low", "high"])
    assert len(reports.blocks) == 1
    assert (hb.Matrix.metric, plain.metric, metric.metric) == (False, False, True)


def test_pickles_hold_all_of_it() -> None:
    named = table(metric=True, origin=ORIGIN)
    again = pickle.loads(pickle.dumps(named))  # noqa: S301
    assert (again, again.metric, again.origin, again.epsilon) == (named, True, ORIGIN, named.epsilon)


def test_what_a_user_spends_is_counted_per_unit() -> None:
    metric = table(metric=True)
    assert list(spent_once(metric, 5)) == [Spent(0.0, metric.epsilon)]
    audit = hb.audit(metric, draws=500, reports_per_user=3)
    assert (audit.metric, audit.unit, audit.verdict) == (True, "unit", "proven")
    assert audit.budget.plain is None
    assert audit.budget.per_unit == 3 * metric.epsilon
    assert audit.budget.plain_equivalent == 3 * metric.epsilon * 2
    metric_one, plain_one = candidates_from({"metric": metric, "plain": table()}, reports_per_user=3)
    assert (metric_one.privacy.ldp, metric_one.privacy.per_unit) == (None, 3 * metric.epsilon)
    assert metric_one.privacy.equivalent == pytest.approx(6 * math.log(3 / 2), rel=1e-12)
    assert (plain_one.privacy.ldp, plain_one.privacy.per_unit) == (3 * table().epsilon, None)


def test_shuffled_reports_of_it_count_over_the_whole_domain() -> None:
    metric = hb.amplify(table(metric=True), users=10_000, delta=1e-6)
    assert metric.metric
    assert metric.local_epsilon == pytest.approx(math.log(2), rel=1e-8)
    assert metric.epsilon == pytest.approx(hb.amplify(table(), users=10_000, delta=1e-6).epsilon, rel=1e-9)


@pytest.mark.parametrize("mistake", [{"metric": 1}, {"metric": None}, {"origin": None}, {"origin": "a\nb"}])
def test_mistakes_are_refused(mistake: dict[str, Any]) -> None:
    with pytest.raises(hb.MechanismError, match=next(iter(mistake))):
        table(**mistake)


# -- study files -----------------------------------------------------------------------------------------------------


def study_of(mechanism: hb.Mechanism, **more: Any) -> Study:
    return hb.Study(mechanism.domain, {"own": mechanism}, **more)


def test_the_fingerprint_tells_the_promise_and_not_the_origin() -> None:
    plain, metric, named = (study_of(each) for each in (table(), table(metric=True), table(metric=True, origin=ORIGIN)))
    assert plain.fingerprint != metric.fingerprint == named.fingerprint
    assert "origin" not in named.canonical
    assert "metric" not in plain.canonical
    # As before matrices could be metric: reports that were stamped stay readable.
    assert plain.fingerprint == "b34dd5c895e9838e59806fcd00c3b7f72cae0a9a965b1831d58dd4c9ada5fa4b"


def test_a_study_file_gives_back_every_digit(tmp_path: Path) -> None:
    for seed, (values, outputs) in enumerate([(36, 300), (3, 10), (10, 3), (7, 64)]):
        rows = np.random.default_rng(seed).dirichlet(np.ones(outputs), size=values)
        own = hb.Matrix(hb.Integers(0, values - 1), list(range(outputs)), rows, metric=True, origin=ORIGIN)
        study, path = study_of(own, name="a table", max_epsilon_per_unit=99.5), tmp_path / f"{seed}.toml"
        write_study(study, path)
        again = hb.read_study(path)
        read = again.mechanisms["own"]
        assert isinstance(read, hb.Matrix)
        assert read.probabilities.tobytes() == own.probabilities.tobytes()
        assert (read.origin, read.epsilon) == (ORIGIN, own.epsilon)
        assert (again, again.fingerprint, again.name) == (study, study.fingerprint, "a table")
        assert again.to_toml() == path.read_text(encoding="utf-8")


def test_rows_that_would_be_divided_twice_are_written_as_they_were_given(tmp_path: Path) -> None:
    rows = np.random.default_rng(1).dirichlet(np.ones(300), size=36)
    own = hb.Matrix(hb.Integers(0, 35), list(range(300)), rows)
    once_more = hb.Matrix(own.domain, list(range(300)), own.probabilities)
    assert own != once_more  # the reason for all this
    assert (own.rows_to_write == rows).all()
    sent = pickle.loads(pickle.dumps(own))  # noqa: S301
    assert sent.rows_to_write.tobytes() == rows.tobytes()
    column_wise = hb.Matrix(own.domain, list(range(300)), np.asfortranarray(rows))
    assert column_wise == own
    tally = hb.collect(study_of(own), pd.DataFrame({"output": [3, 4, 4]}), tmp_path / "one.tally.parquet")
    assert hb.read_tally(tmp_path / "one.tally.parquet").study == tally.study == study_of(own)


def test_a_tally_keeps_where_a_matrix_is_from(tmp_path: Path) -> None:
    path = tmp_path / "one.tally.parquet"
    hb.collect(study_of(table(origin=ORIGIN)), pd.DataFrame({"output": ["low", "high"]}), path)
    read = hb.read_tally(path).study.mechanisms["own"]
    assert isinstance(read, hb.Matrix)
    assert read.origin == ORIGIN


def test_every_kind_of_study_is_read_as_it_was_written(tmp_path: Path) -> None:
    for place, (fields, _) in enumerate(BASES.values()):
        path, copy = tmp_path / f"{place}.toml", tmp_path / f"{place}-copy.toml"
        path.write_text(study_text(fields), encoding="utf-8")
        study = hb.read_study(path)
        write_study(study, copy)
        again = hb.read_study(copy)
        assert (again, again.canonical) == (study, study.canonical)
        assert (again.columns, again.question, again.collector) == (study.columns, study.question, study.collector)


def test_everything_besides_is_written_too(tmp_path: Path) -> None:
    answer = hb.RandomizedResponse(hb.Categories(['yes \x7f \\ "no"', 7]), epsilon=0.1 + 0.2)
    study = hb.Study(
        answer.domain,
        {"a-b": answer},
        name="Wähler\n",
        max_reports_per_user=2,
        max_epsilon_per_user=0.7,
        columns={"user": "device id", "group": "région"},
        question={"text": "Té?", "mechanism": "a-b"},
        collector={"access": "tokens", "origins": ["https://example.org"]},
    )
    write_study(study, tmp_path / "study.toml")
    again = hb.read_study(tmp_path / "study.toml")
    assert again == study
    assert (again.columns, again.question, again.collector) == (study.columns, study.question, study.collector)


def test_a_study_that_no_file_can_hold_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("hubbub.intake.study.MAX_STUDY_BYTES", 100)
    with pytest.raises(hb.StudyError, match="too large for a study file"):
        write_study(study_of(table()), tmp_path / "study.toml")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("factor", "fits"), [(1, True), (1.001, False)])
def test_devices_count_matrices_per_unit_as_the_library_does(factor: float, fits: bool, tmp_path: Path) -> None:
    """Of several attributes with a total that all make together; `REFUSED` has the other total, too."""
    path = tmp_path / "study.toml"
    path.write_text(study_text(document(PEOPLE, split(METRIC_TOTAL * factor, **METRIC_PARTS))))
    read: list[Any] = [hb.read_study, lambda path: client.parse_laws(path.read_bytes(), str(path))]
    for each in read:
        if fits:
            each(path)
        else:
            with pytest.raises(ValueError, match="do not add up"):
                each(path)


# -- terminal, devices, pages ----------------------------------------------------------------------------------------


def test_the_terminal_says_where_a_matrix_is_from(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    write_study(study_of(table(metric=True, origin=f"[red]{ORIGIN}")), path)
    shown = hubbub("audit", path, "--draws", "500", cwd=tmp_path).stdout
    assert f"[red]{ORIGIN}" in shown
    assert "per unit" in shown
    told = json.loads(hubbub("audit", path, "--draws", "500", "--json", cwd=tmp_path).stdout)["mechanisms"]["own"]
    assert (told["origin"], told["metric"], told["unit"]) == (f"[red]{ORIGIN}", True, "unit")
    assert _mechanism_text(table(metric=True, origin=ORIGIN)) == f"Matrix, epsilon 0.405465 per unit; {ORIGIN}"


def test_clients_promise_per_unit(tmp_path: Path) -> None:
    path, exported = tmp_path / "study.toml", tmp_path / "study.json"
    write_study(study_of(table(metric=True, origin=ORIGIN)), path)
    hb.export_client(path, exported)
    law = json.loads(exported.read_text())["mechanisms"]["own"]
    assert law["unit"] == "unit"
    assert law["epsilon"] == repr(table(metric=True).epsilon)
    assert "two values 1 unit apart by at most a factor of about 1.5" in law["promise"]
    assert "origin" not in law


def test_people_are_not_told_that_near_outputs_are_likelier() -> None:
    """A bound per unit of distance says nothing of that, unlike the noise of other such mechanisms."""
    values = hb.Matrix(LINE, [1, 2, 3], [[0.3, 0.3, 0.4], [0.3, 0.4, 0.3], [0.4, 0.3, 0.3]], metric=True)
    assert "rather a near one" not in " ".join(noise_sentences(values))
    assert "rather a near one" in " ".join(noise_sentences(hb.TruncatedGeometric(LINE, 1.0)))
