"""The paper's experiments: figures as data, parts of work, and what they measure."""

from __future__ import annotations

import json
import math
import multiprocessing
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.paper import work_units as parts_module
from hubbub.paper.experiment_runs import inputs_of, measure, outputs_of, reports_of, truth_of
from hubbub.paper.figure_specs import figure_names, parse_figure, read_figures
from hubbub.paper.likelihood_surfaces import surfaces_of
from hubbub.paper.places import Place, synthetic_place
from hubbub.paper.runner import KeptParts, measure_all
from hubbub.paper.settings import Group, MeasuredTruth, Setting
from hubbub.paper.work_units import WorkUnit, all_parts, parts_of

SMALL = Place(
    grid=hb.Grid(4, 3, cell=0.5),
    counts=np.array([40, 0, 300, 20, 5, 60, 0, 0, 100, 30, 200, 10]),
    name="small",
    source="made up",
    synthetic=True,
    sha256="",
)


def plain(kind: str, epsilon: float, truth: MeasuredTruth, users: int = 0, **others: Any) -> Setting:
    chosen: dict[str, Any] = {"methods": (), "beyond": (), "distances": ("tv", "emd"), **others}
    return Setting(truth, users, (Group(1.0, ((kind, epsilon),)),), **chosen)


PLACE = MeasuredTruth("place")
LINE = MeasuredTruth("block", 8, 2, 4)
SETTINGS = [
    plain("planar-geometric", 2.0, PLACE),
    plain("planar-laplace", 2.0, PLACE),
    plain("exponential", 3.0, PLACE),
    plain("randomized-response", 2.0, PLACE),
    plain("truncated-geometric", 0.7, LINE, 500),
    plain("rappor", 1.5, LINE, 500),
]


# -- figures -----------------------------------------------------------------------------------------------


def test_every_figure_of_the_paper_is_there() -> None:
    """Labels of all figures that show results; the others are sketches of the model."""
    named = " ".join(figure.where for figure in read_figures())
    for label in [
        "fig:holes",
        "fig:geometric_on_line",
        "fig:ml_non_unique_non_convergent_to_real",
        "fig:ml_non_interior_non_stationary",
        "fig:sf_map",
        "fig:geometric_on_grid",
        "fig:box_estimators_geom",
        "fig:box_estimators_lap_exp",
        "fig:box_estimators_krr",
        "fig:rappor_on_line_em",
        "fig:box_estimators_rappor",
    ]:
        assert label in named


def test_settings_are_the_papers() -> None:
    """sec:experiments: 100 runs each; epsilons from 0.2 to 6 and from 1 to 10; 100,000 inputs on the lines."""
    figures = {figure.name: figure for figure in read_figures()}
    for name in ("line", "maps", "geometric", "laplace-exponential", "krr", "rappor", "rappor-epsilon"):
        assert (figures[name].runs, figures[name].beyond_runs) == (100, 10)
    for name in ("geometric", "laplace-exponential"):
        epsilons = [setting.epsilon for setting in figures[name].settings]
        assert (min(epsilons), max(epsilons)) == (0.2, 6.0)  # type: ignore[type-var]
    assert [setting.epsilon for setting in figures["krr"].settings][:: len(figures["krr"].settings) - 1] == [1.0, 10.0]
    assert {setting.users for setting in figures["line"].settings + figures["rappor"].settings} == {100_000}
    assert {setting.epsilon for setting in figures["line"].settings} == {0.1}
    assert {setting.epsilon for setting in figures["rappor"].settings} == {0.5}


def test_truths_are_the_papers() -> None:
    """Binomial(99, 1/2) and uniform on 20..39; Binomial(9, 1/2) and uniform on 3..6."""
    figures = {figure.name: figure for figure in read_figures()}
    for name, coins, block in (("line", 99, (20, 39)), ("rappor", 9, (3, 6))):
        first, second = (setting.truth for setting in figures[name].settings)
        drawn = first.inputs(SMALL, 40_000, np.random.default_rng(1))
        assert drawn.mean() == pytest.approx(coins / 2, abs=5 * (coins / 4 / 40_000) ** 0.5)
        assert drawn.var() == pytest.approx(coins / 4, rel=0.05)
        assert len(first.domain(SMALL)) == coins + 1
        again = second.inputs(SMALL, 40_000, np.random.default_rng(1))
        assert (again.min(), again.max()) == block


def test_quick_has_less_of_the_same() -> None:
    for full, quick in zip(read_figures(), read_figures(quick=True), strict=True):
        assert (full.name, full.kind, full.show) == (quick.name, quick.kind, quick.show)
        assert quick.runs <= full.runs
        names = {setting.name for setting in full.settings}
        assert {setting.name for setting in quick.settings} <= names


def test_some_figures_by_name() -> None:
    assert [figure.name for figure in read_figures(["krr", "line"])] == ["line", "krr"]
    with pytest.raises(hb.SettingError, match="no such figure") as error:
        read_figures(["lines"])
    assert all(name in str(error.value) for name in figure_names())


@pytest.mark.parametrize("change", [{"kind": "pie"}, {"colour": "red"}, {"measure": [{"truth": {}, "noise": 1}]}])
def test_a_file_with_an_unknown_word_is_refused(change: dict[str, Any]) -> None:
    good = {"title": "t", "where": "w", "shows": "s", "kind": "boxes"}
    assert parse_figure("x", good, quick=False).title == "t"
    with pytest.raises(hb.SettingError, match="not understood"):
        parse_figure("x", {**good, **change}, quick=False)


def test_surfaces_have_the_papers_matrices() -> None:
    """eq:mech and eq:stoch2: stochastic in exact fractions."""
    figures = {figure.name: figure for figure in read_figures()}
    for surface in surfaces_of(figures["ridge"]) + surfaces_of(figures["corner"]):
        assert all(sum(row) == 1 for row in surface.matrix)
        theta = np.array([[0.2, 0.5, 0.3]])
        assert surface.log_likelihood(theta)[0] == pytest.approx(hb.log_likelihood(surface.reports, theta[0]))


# -- parts -------------------------------------------------------------------------------------------------


def test_what_figures_share_is_measured_once() -> None:
    figures = {figure.name: figure for figure in read_figures()}
    costly = [
        {part for part in parts_of(figures[name]) if part.task == "beyond" and part.setting is not None}
        for name in ("maps", "geometric", "iterations")
    ]
    shared = costly[0] & costly[1] & costly[2]
    assert len(shared) == 10  # the map at 1.0 per km, ten runs
    parts = all_parts(tuple(figures.values()))
    assert len(parts) == len(set(parts))


def test_each_run_is_in_exactly_one_part() -> None:
    for figure in read_figures():
        for setting in figure.settings:
            own = [part for part in parts_of(figure) if part.setting and part.setting.name == setting.name]
            for task, runs in (("runs", figure.runs if figure.kind != "paths" else 0), ("beyond", figure.beyond_runs)):
                numbers = [
                    run for part in own if part.task == task for run in range(part.first, part.first + part.count)
                ]
                assert numbers == list(range(runs))


def test_keys_tell_apart_what_gives_different_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    part = WorkUnit("runs", SETTINGS[0], 0, 5)
    line = WorkUnit("runs", SETTINGS[4], 0, 5)
    assert part.key(1, "here") != part.key(2, "here")
    assert part.key(1, "here") != part.key(1, "there")
    assert line.key(1, "here") == line.key(1, "there")  # no map in it
    assert part.key(1, "here") != replace(part, first=5).key(1, "here")
    assert part.key(1, "here") == replace(part, cost=9.0).key(1, "here")
    before = part.key(1, "here")
    monkeypatch.setattr(parts_module, "LIBRARY_VERSIONS", ("9.0", "9.0"))
    assert part.key(1, "here") != before


@pytest.mark.parametrize("damaged", [b"", b'{"rows": [', b"[]", b"null", b"{}", b"\xff\x00"])
def test_a_damaged_part_is_measured_again(tmp_path: Path, damaged: bytes) -> None:
    part, kept = WorkUnit("runs", SETTINGS[0], 0, 1), KeptParts(tmp_path, 1, SMALL)
    assert kept.get(part) is None
    kept.put(part, {"rows": [1], "shapes": {}})
    assert kept.get(part) == {"rows": [1], "shapes": {}}
    (file,) = tmp_path.iterdir()
    file.write_bytes(damaged)
    assert kept.get(part) is None


def test_too_many_people_for_the_memory_are_told(tmp_path: Path) -> None:
    crowd = replace(SMALL, counts=SMALL.counts * 10**12)
    run = measure_all(
        [WorkUnit("runs", replace(SETTINGS[0], methods=("noisy",)), 0, 1)], crowd, 1, KeptParts(tmp_path, 1, crowd), 1
    )
    with pytest.raises(hb.EstimateError, match="not enough memory"):
        list(run)


def test_nobody_waits_for_a_part_that_is_under_way(tmp_path: Path) -> None:
    slow = WorkUnit("path", replace(SETTINGS[0], methods=("em 0.1",)), 0, 2, json.dumps({"updates": 1_000_000}))
    quick = [WorkUnit("runs", replace(SETTINGS[4], methods=("inv-n",)), first, 1) for first in range(2)]
    run = measure_all([slow, *quick], SMALL, 1, KeptParts(tmp_path, 1, SMALL), 2)
    while next(run).done == 0:
        pass
    begun = multiprocessing.active_children()
    run.close()
    for process in begun:
        process.join()
    assert -signal.SIGTERM in [process.exitcode for process in begun]
    assert len(list(tmp_path.glob("*.json"))) == 1


# -- measuring ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.mechanism)
def test_rows_are_what_the_public_functions_say(setting: Setting) -> None:
    """Every number again, by hb.estimate on the same reports, one run after the other."""
    methods = ("inv-n", "inv-p", "em 0.1", "em 0.001", *(("noisy",) if setting.mechanism != "rappor" else ()))
    part = WorkUnit("runs", replace(setting, methods=methods), 3, 4)
    rows = {(row["run"], row["method"]): row for row in measure(part, SMALL, 7)["rows"]}
    assert len(rows) == 4 * len(methods)
    (mechanism,) = setting.built(SMALL)[0]
    for run in range(3, 7):
        inputs = inputs_of(setting, SMALL, 7, run)
        truth = truth_of(inputs, mechanism.domain)
        counts = outputs_of(setting, mechanism, inputs, 7, run)
        assert counts.sum() == len(inputs) == (setting.users or SMALL.users)
        reports = hb.Reports.from_counts(mechanism, counts)
        for method in methods:
            row = rows[run, method]
            if method == "noisy":
                answer = counts / counts.sum()
            else:
                known = {"delta": float(method[3:])} if method.startswith("em ") else {}
                estimate = hb.estimate(reports, "ibu" if known else method, **known)  # type: ignore[arg-type]
                answer = estimate.probabilities
                if known:
                    assert row["iterations"] == estimate.iterations
                    assert row["gap"] == pytest.approx(estimate.gap, abs=1e-9)
            assert row["tv"] == pytest.approx(hb.total_variation(answer, truth), abs=1e-9)
            assert row["emd"] == pytest.approx(hb.earth_mover_distance(answer, truth, mechanism.domain), abs=1e-9)
            assert row["empty_values"] == np.count_nonzero(answer < 0.5 / len(inputs))


def test_the_truth_is_the_frequency_of_the_drawn_inputs() -> None:
    inputs = inputs_of(SETTINGS[4], SMALL, 1, 0)
    shares = truth_of(inputs, hb.Integers(0, 7))
    assert shares.tolist() == [(inputs == value).mean() for value in range(8)]
    assert shares[2] != 1 / 3  # not the distribution behind them
    assert (truth_of(inputs_of(SETTINGS[0], SMALL, 1, 0), SMALL.grid) == SMALL.shares).all()


def test_runs_do_not_depend_on_the_block_they_are_in() -> None:
    setting = replace(SETTINGS[4], methods=("inv-p", "em 0.1"))
    together = measure(WorkUnit("runs", setting, 0, 6), SMALL, 1)["rows"]
    apart = [row for first in (0, 3) for row in measure(WorkUnit("runs", setting, first, 3), SMALL, 1)["rows"]]
    for one, other in zip(together, apart, strict=True):
        assert (one["run"], one["method"]) == (other["run"], other["method"])
        assert one["tv"] == pytest.approx(other["tv"], abs=1e-12)
    assert measure(WorkUnit("runs", setting, 0, 6), SMALL, 2)["rows"] != together


def test_inputs_are_shared_and_noise_is_not() -> None:
    strong, weak = SETTINGS[4], plain("truncated-geometric", 0.9, LINE, 500)
    assert (inputs_of(strong, SMALL, 1, 0) == inputs_of(weak, SMALL, 1, 0)).all()
    assert not (inputs_of(strong, SMALL, 1, 0) == inputs_of(strong, SMALL, 1, 1)).all()
    (mechanism,) = strong.built(SMALL)[0]
    inputs = inputs_of(strong, SMALL, 1, 0)
    first, again, other = (outputs_of(strong, mechanism, inputs, 1, run) for run in (0, 0, 1))
    assert (first == again).all()
    assert not (first == other).all()


def test_outputs_follow_the_mechanism() -> None:
    """RAPPOR's packed outputs land on their own pattern: the shares of ones are the mechanism's, within 5 sigma."""
    setting = plain("rappor", 1.5, LINE, 20_000)
    (mechanism,) = setting.built(SMALL)[0]
    counts = outputs_of(setting, mechanism, np.full(20_000, 2), 1, 0)
    expected = 20_000 * mechanism.matrix()[2]
    assert (np.abs(counts - expected) <= 5 * np.sqrt(expected) + 5).all()


def test_users_who_differ_and_report_twice() -> None:
    groups = (
        Group(0.25, (("truncated-geometric", 0.5), ("laplace", 0.8))),
        Group(0.75, (("randomized-response", 1.0),)),
    )
    setting = Setting(LINE, 400, groups, ("em 0.1",), ("mle",), ("tv",))
    reports = reports_of(setting, SMALL, inputs_of(setting, SMALL, 1, 0), 1, 0)
    assert reports.users == 400
    assert {type(mechanism).__name__ for mechanism in reports.mechanisms} == {
        "TruncatedGeometric",
        "Laplace",
        "RandomizedResponse",
    }
    document = measure(WorkUnit("runs", setting, 0, 2), SMALL, 1)
    assert [row["run"] for row in document["rows"]] == [0, 1]
    estimate = hb.estimate(reports, "ibu", delta=0.1)
    assert document["shapes"]["em 0.1"] == estimate.probabilities.tolist()
    best = measure(WorkUnit("beyond", setting, 0, 1), SMALL, 1)["rows"]
    assert best[0]["gap"] < 1e-8


def test_paths_pass_through_the_stops() -> None:
    """Where a delta rule stops, the path has the error that the rule's own run ends with."""
    setting = replace(SETTINGS[0], methods=("em 0.1", "em 0.01"))
    path = measure(WorkUnit("path", setting, 0, 3, json.dumps({"updates": 300})), SMALL, 1)
    tv = dict(zip(path["updates"], np.array(path["tv"]).T, strict=True))
    seen = 0
    for stop in path["stops"].values():
        for run, (iterations, error) in enumerate(zip(stop["iterations"], stop["tv"], strict=True)):
            if iterations in tv:
                seen += 1
                assert tv[iterations][run] == pytest.approx(error, abs=1e-9)
    assert seen > 0


def test_guesses_fail_as_often_as_they_must() -> None:
    """Two values and one report: randomized response errs with the probability of a lie; twins half of the time."""
    options = {"values": 2, "people": 40_000, "reports": [1, 400], "mechanisms": [["randomized-response", 1.0]]}
    measured = measure(WorkUnit("guesses", None, 0, 1, json.dumps(options)), SMALL, 1)
    lie = 1 / (1 + math.e)
    assert measured["wrong"][0] == pytest.approx(lie, abs=5 * (lie / 20_000) ** 0.5)
    assert measured["wrong"][1] == 0.0
    assert measured["wrong"][0] <= measured["union"][0]
    twins = {**options, "values": 4, "mechanisms": [["twins", 1.0]]}
    measured = measure(WorkUnit("guesses", None, 0, 1, json.dumps(twins)), SMALL, 1)
    assert measured["wrong"][1] == pytest.approx(0.5, abs=5 * 0.5 / 100)  # 10,000 people of each value


def test_everything_measured_is_plain_json() -> None:
    setting = replace(SETTINGS[0], methods=("noisy", "inv-n", "inv-p", "em 0.1"), beyond=("mle",))
    for task in ("runs", "beyond"):
        text = json.dumps(measure(WorkUnit(task, setting, 0, 1), SMALL, 1), allow_nan=False)
        assert json.loads(text)["shapes"]["truth"] == SMALL.shares.tolist()


def test_the_synthetic_city_is_like_the_real_one() -> None:
    """Size, holes and concentration of Gowalla's San Francisco, where its counts are at hand."""
    file = Path(__file__).resolve().parents[2] / "shared" / "data" / "gowalla_sf_24x16.csv"
    if not file.exists():
        pytest.skip("needs the counts of Gowalla check-ins, beside the repository")
    from hubbub.paper.places import read_counts

    real, city = read_counts(file), synthetic_place()
    assert city.users == pytest.approx(real.users, rel=0.05)
    assert 0.5 * real.holes < city.holes < 2 * real.holes
    for top in (1, 10, 100):
        shares = [np.sort(place.shares)[-top:].sum() for place in (real, city)]
        assert shares[0] == pytest.approx(shares[1], rel=0.15)
