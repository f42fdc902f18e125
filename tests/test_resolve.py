"""What the reports can resolve: bounds that hold for all parts at once, the most told parts, coverage."""

from __future__ import annotations

import itertools
import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hubbub as hb
from hubbub.core.progress import Progress
from hubbub.exporting.result_files import write_resolution
from hubbub.intervals.set_intervals import SetShares, set_shares
from hubbub.resolution import MAX_RESOLVED_VALUES, group_division, lattice_division, rectangle_bounds, suggestion
from hubbub.resolution import compiled_rectangles as compiled
from hubbub.resolution.api import CONTRADICTION
from hubbub.resolution.halves import split_users
from hubbub.resolution.lattice import Lattice
from hubbub.resolution.pieces import is_told
from hubbub.resolution.rectangle_bounds import Criticals, RectangleSums, normal_draws, quantile, soft_steps
from hubbub.resolution.rectangle_cuts import cut, possible_parts
from hubbub.resolution.result import is_mostly_unknown
from studies import LIGHT_TOML
from terminal import hubbub

Floats = NDArray[np.float64]
LINE = hb.Integers(0, 19)
GRID = hb.Grid(6, 5, cell=0.5)
NAMES = hb.Categories([f"v{place}" for place in range(12)])
HUMP = np.where(np.abs(np.arange(20) - 8) < 5, np.exp(-0.1 * (np.arange(20) - 8.0) ** 2), 0.0)
TOWN = np.random.default_rng(3).dirichlet(np.full(30, 0.4))
ZIPF = 1.0 / np.arange(1, 13) ** 1.5
ZIPF[8:] = 0.0
STUDIES: dict[str, tuple[hb.Mechanism, Floats, int]] = {
    "line": (hb.TruncatedGeometric(LINE, 0.5), HUMP / HUMP.sum(), 3_000),
    "map": (hb.PlanarGeometric(GRID, 2.0), TOWN, 3_000),
    "categories": (hb.RandomizedResponse(NAMES, 1.5), ZIPF / ZIPF.sum(), 2_000),
    "many parts": (hb.TruncatedGeometric(LINE, 1.0), np.full(20, 0.05), 20_000),
    "few users": (hb.TruncatedGeometric(LINE, 1.0), HUMP / HUMP.sum(), 100),
}


RUNS = 30
LEAST = 0.95 - 2.0 * np.sqrt(0.05 * 0.95 / RUNS)


def drawn(name: str, seed: object = 0) -> hb.Reports:
    mechanism, truth, users = STUDIES[name]
    outputs = truth @ mechanism.matrix()
    counts = np.random.default_rng(seed).multinomial(users, outputs / outputs.sum())  # type: ignore[arg-type]
    return hb.Reports.from_counts(mechanism, counts)


def sent(mechanism: hb.Mechanism, values: NDArray[Any], rng: np.random.Generator) -> hb.Reports:
    return hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng))


def resolved(reports: hb.Reports, **keywords: Any) -> hb.Resolution:
    quick = hb.estimate(reports, "auto" if reports.domain.places is None and reports.domain.grid is None else "ems")
    return hb.resolve(reports, estimate=quick, **keywords)


# -- the answer --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STUDIES)
def test_parts_are_a_division_and_say_what_they_promise(name: str) -> None:
    reports = drawn(name)
    answer = resolved(reports)
    assert sorted(np.concatenate([part.positions for part in answer.parts])) == list(range(len(reports.domain)))
    assert sum(part.estimate for part in answer.parts) == pytest.approx(1.0)
    for part in answer.parts:
        assert part.low <= part.estimate <= part.high
        assert part.low == min(part.confidence_low, part.estimate)
        assert part.told == is_told(part.low, part.high, 0.5)
        assert part.values.tolist() == reports.domain.labels[part.positions].tolist()
    assert len(answer.told) > (0 if name == "few users" else 1)
    frame = answer.to_frame()
    assert list(frame.columns) == ["part", "values", "estimate", "low", "high", "told"]
    assert len(frame) == len(answer.parts)
    assert json.loads(json.dumps(answer.document(), allow_nan=False))["told"] == len(answer.told)
    assert answer.summary() in answer.explain()
    assert answer.parts[0].title in answer._repr_html_()
    assert resolved(reports).document() == answer.document()  # the same reports give the same answer
    answer.plot()


def test_a_smaller_width_gives_fewer_parts_and_more_users_give_more() -> None:
    reports = drawn("line")
    assert len(resolved(reports, relative=0.2).told) < len(resolved(reports, relative=0.8).told)
    mechanism, truth, _ = STUDIES["line"]
    many = hb.Reports.from_counts(mechanism, np.rint(1e6 * truth @ mechanism.matrix()).astype(int))
    assert len(resolved(many).told) > len(resolved(reports).told)


def test_an_estimate_outside_its_interval_extends_what_is_shown() -> None:
    reports = drawn("categories")
    away = hb.estimate(hb.Reports.from_counts(STUDIES["categories"][0], np.eye(12, dtype=int)[3] * 900))
    answer = hb.resolve(reports, estimate=away)
    assert any(part.extended for part in answer.parts)
    assert all(part.low <= part.estimate <= part.high for part in answer.parts)
    assert all(part.told == is_told(part.low, part.high, 0.5) for part in answer.parts)


def test_areas_are_connected_on_a_map_with_holes() -> None:
    cells = [cell for cell in range(30) if cell % 6 != 2 or cell >= 24]  # two halves and a bridge in the north
    grid = hb.Grid(6, 5, cell=0.5, cells=cells)
    mechanism = hb.PlanarGeometric(grid, 4.0)
    reports = hb.Reports.from_counts(mechanism, np.full(mechanism.matrix().shape[1], 2_000))
    answer = resolved(reports)
    assert len(answer.told) > 5
    for part in answer.parts:
        reached, left = set(), [part.values.tolist()[0]]
        while left:
            cell = left.pop()
            reached.add(cell)
            near = {cell - 6, cell + 6} | ({cell - 1} if cell % 6 else set()) | ({cell + 1} if cell % 6 < 5 else set())
            left += [one for one in near & set(part.values.tolist()) if one not in reached]
        assert reached == set(part.values.tolist())


def test_sentences() -> None:
    answer = resolved(drawn("map"))
    told = len(answer.told)
    assert answer.summary().startswith(f"These reports tell {told} areas apart")
    lows = np.where(np.arange(len(answer.domain)) < 21, 0.01, 0.0)
    assert suggestion(answer, lows) == (
        f"These reports tell {told} areas apart; of single cells 21 are known not to be empty."
    )
    assert is_mostly_unknown(np.zeros(len(answer.domain)))
    assert not is_mostly_unknown(np.ones(len(answer.domain)))
    some = np.where(np.arange(len(answer.domain)) < 3, lows, np.nan)
    assert "of the 3 cells with intervals 3 are known" in suggestion(answer, some)
    line = resolved(drawn("line"))
    assert "of single values none is known" in suggestion(line, np.zeros(len(line.domain)))
    nothing = resolved(hb.Reports.from_counts(STUDIES["categories"][0], np.ones(12, dtype=int)))
    assert nothing.summary() == "These reports tell no groups apart."
    rest = nothing.rest
    assert rest is not None
    assert rest[1] == 1.0


def test_what_has_no_linear_estimate_is_one_rest_with_the_reason() -> None:
    blind = hb.Matrix(hb.Integers(0, 2), ["a", "b"], [[0.5, 0.5], [0.5, 0.5], [0.2, 0.8]])
    answer = resolved(hb.Reports.from_counts(blind, [500, 500]))
    assert len(answer.parts) == 1
    assert not answer.parts[0].told
    assert "because the reports cannot tell" in answer.note
    assert answer.explain() == f"These reports were not divided. {answer.note}"
    assert not answer.document()["divided"]
    assert suggestion(answer, np.zeros(3)) == f"Of single values none is known not to be empty. {answer.note}"


def test_reports_about_buckets_are_divided_and_spoil_no_others() -> None:
    rng, line = np.random.default_rng(0), hb.Integers(0, 11)
    values = rng.binomial(11, 0.3, 20_000)
    kinds = (hb.CountMeanSketch(line, 3.0), hb.HadamardCountMeanSketch(line, 3.0), hb.DBitFlip(line, 3.0, 12, 7))
    plain = hb.RandomizedResponse(line, 3.0)
    told = {type(kind).__name__: sent(kind, values, rng) for kind in (plain, *kinds)}
    widths = {}
    for name, reports in told.items():
        both = resolved(reports if name == "RandomizedResponse" else reports + told["RandomizedResponse"])
        assert len(resolved(reports).told) > 4
        assert len(both.told) > 5
        assert "left out" not in both.note
        widths[name] = both.parts[0].confidence_high - both.parts[0].confidence_low
    assert widths["CountMeanSketch"] < widths["RandomizedResponse"]


def test_reports_without_a_linear_estimate_are_left_out_and_named() -> None:
    rng = np.random.default_rng(1)
    texts = hb.BloomRappor(NAMES, cohorts=4, bits=32, hashes=2, f=0.5, p=0.25, q=0.75)
    values = NAMES.labels[rng.choice(12, 2_000, p=STUDIES["categories"][1])]
    alone = resolved(sent(texts, values, rng))
    assert not alone.divided
    assert alone.summary() == "These reports were not divided."
    assert alone.note == (
        "Nothing is divided, because the outputs of BloomRappor are too many to list. hubbub.interval gives the share "
        "of any group that you choose beforehand."
    )
    with_others = resolved(sent(texts, values, rng) + drawn("categories"))
    assert len(with_others.told) > 1
    assert with_others.note.startswith("Reports by BloomRappor are left out here, because their outputs are too many")
    kept, uniform = set_shares(drawn("categories"), np.full(12, 1 / 12)), np.full(12, 1 / 12)
    partly = set_shares(sent(texts, values, rng) + drawn("categories"), uniform, partly=True)
    assert isinstance(kept, SetShares)
    assert isinstance(partly, SetShares)
    assert partly.centre.tolist() == pytest.approx(kept.centre.tolist())
    assert partly.matrix.ravel().tolist() == pytest.approx(kept.matrix.ravel().tolist())


def test_reports_that_contradict_the_study_are_said_to() -> None:
    counts = np.zeros(20, dtype=int)
    counts[::2] = 5_000  # no distribution has such waves after this noise
    answer = resolved(hb.Reports.from_counts(STUDIES["line"][0], counts))
    assert CONTRADICTION in answer.explain()
    assert all(part.low <= part.estimate <= part.high for part in answer.parts)


def test_one_value_is_known() -> None:
    answer = resolved(drawn("categories").restrict(["v0"]))
    assert [(part.low, part.high, part.told) for part in answer.parts] == [(1.0, 1.0, False)]


def test_fine_domains_are_joined_to_blocks() -> None:
    lattice = Lattice.of(hb.Grid(50, 40))
    assert lattice is not None
    assert (lattice.rows, lattice.columns) == (20, 25)
    assert lattice.cell_of.size == 2_000
    covariance = np.random.default_rng(0).random((2_000, 2_000))
    first, second = 3, lattice.size - 2
    block = covariance[np.ix_(lattice.values_in(np.array([first])), lattice.values_in(np.array([second])))]
    assert lattice.covariance(covariance)[first, second] == pytest.approx(block.sum())


# -- halves ------------------------------------------------------------------------------------------------


def test_halves_are_disjoint_and_complete() -> None:
    people = [[(STUDIES["line"][0], 3), (STUDIES["line"][0], one % 20)] for one in range(50)]
    reports = drawn("line") + hb.Reports.from_users(people)
    halves = split_users(reports, np.random.default_rng(0))
    assert halves is not None
    assert halves[0] + halves[1] == reports
    assert abs(halves[0].users - halves[1].users) < 6 * np.sqrt(reports.users)


def test_halves_tell_parts_too() -> None:
    answer = resolved(drawn("categories"), method="halves")
    assert answer.method == "halves"
    assert len(answer.told) > 1
    sums = hb.Reports.from_bit_counts(hb.Rappor(NAMES, 1.0), np.full(12, 400), 1_000)
    assert "cannot be split" in resolved(sums, method="halves").note


# -- the bounds --------------------------------------------------------------------------------------------


def test_weights_are_0_outside_a_rectangle_and_1_inside() -> None:
    for ramp in rectangle_bounds.RAMPS:
        steps = soft_steps(9, ramp)
        for first, last in itertools.combinations(range(10), 2):
            weights = steps[last] - steps[first]
            assert weights.min() >= 0.0
            assert weights.max() <= 1.0
            half = ramp // 2
            outside = np.ones(9, dtype=bool)
            outside[max(0, first - half) : last + half] = False
            assert not weights[outside].any()
            inside = weights[0 if first == 0 else first + half : 9 if last == 9 else max(0, last - half)]
            assert (inside == 1.0).all()


def test_bounds_of_each_rectangle_hold_if_those_of_its_weights_do() -> None:
    """The compiled loops against the definition: one rectangle at a time, on a lattice of 3 x 4."""
    rng, lattice = np.random.default_rng(0), Lattice(3, 4, np.arange(12))
    root = rng.normal(size=(12, 12))
    covariance, centre = root @ root.T, rng.normal(size=12)
    for ramp in (0, 2):
        corners = np.kron(soft_steps(3, ramp), soft_steps(4, ramp))
        deviations = compiled.deviations(corners @ covariance @ corners.T, 3, 4, ramp, 0.0)
        low, high = np.full((4, 4, 5, 5), -np.inf), np.full((4, 4, 5, 5), np.inf)
        sums = (corners @ centre).reshape(4, 5)
        compiled.narrow(sums, deviations, ramp, 2.0, 3.0, 0.5, low, high)
        for top, bottom in itertools.combinations(range(4), 2):
            for left, right in itertools.combinations(range(5), 2):
                rows, columns = (soft_steps(size, ramp) for size in (3, 4))
                weights = np.kron(rows[bottom] - rows[top], columns[right] - columns[left])
                deviation = deviations[top, bottom, left, right]
                if deviation == 0.0:
                    assert ramp > min(bottom - top, right - left)
                    continue
                assert deviation == pytest.approx(np.sqrt(weights @ covariance @ weights))
                if ramp == 0:
                    share = float(centre[lattice.cells_in((top, bottom, left, right))].sum())
                    reach = (2.0 if 0.5 * share >= 2.0 * deviation else 3.0) * deviation
                    assert low[top, bottom, left, right] == pytest.approx(share - reach)
                    assert high[top, bottom, left, right] == pytest.approx(share + reach)


def rectangle_sums(cells: Floats) -> Floats:
    """Return the sums over all rectangles."""
    rows, columns = cells.shape
    sums = np.zeros((rows + 1, rows + 1, columns + 1, columns + 1))
    for top, bottom in itertools.combinations(range(rows + 1), 2):
        for left, right in itertools.combinations(range(columns + 1), 2):
            sums[top, bottom, left, right] = cells[top:bottom, left:right].sum()
    return sums


def test_tightened_bounds_are_narrower_and_lose_no_distribution() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        sums = rectangle_sums(rng.dirichlet(np.full(20, 0.5)).reshape(4, 5))
        low, high = np.maximum(sums - rng.exponential(0.1, sums.shape), 0.0), sums + rng.exponential(0.1, sums.shape)
        before = low.copy(), high.copy()
        compiled.tighten(low, high)
        assert (low <= sums + 1e-9).all()
        assert (high >= sums - 1e-9).all()
        assert (low >= before[0]).all()
        assert (high <= before[1]).all()
        assert (low > before[0] + 1e-6).any()


def test_a_line_is_divided_into_as_many_told_ranges_as_any_cuts_give() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        sums = rectangle_sums(rng.dirichlet(np.ones(8))[None])
        low, high = np.maximum(sums - rng.exponential(0.04, sums.shape), 0.0), sums + rng.exponential(0.04, sums.shape)
        shown = np.stack([np.zeros(9), sums[0, 1, 0]])
        told, left = cut(low, high, shown, possible_parts(Lattice(1, 8, np.arange(8))), 0.5)
        ends = sorted([(first, last) for _, _, first, last in told + left])
        assert [last for _, last in ends[:-1]] == [first for first, _ in ends[1:]]
        assert all(is_told(float(low[one]), float(high[one]), 0.5) for one in told)
        most = max(
            sum(is_told(low[0, 1, a, b], high[0, 1, a, b], 0.5) for a, b in itertools.pairwise([0, *cuts, 8]))
            for count in range(1, 8)
            for cuts in itertools.combinations(range(1, 8), count)
        )
        assert len(told) == most


def test_needed_critical_values_are_those_at_which_bounds_hold() -> None:
    lattice, rng = Lattice(3, 4, np.arange(12)), np.random.default_rng(0)
    sums = RectangleSums(lattice, np.diag(rng.random(12)), rng)
    truth, centre = rng.dirichlet(np.ones(12)), rng.normal(size=12)
    needed, true = sums.needed(centre, sums.corner_sums(truth)), rectangle_sums(truth.reshape(3, 4))
    for factor, holds in ((1.001, True), (0.999, False)):
        for one in itertools.product(range(3), range(1, 4), range(4), range(1, 5)):
            if needed[one] > 0.0:
                critical = factor * needed[one]
                low, high = np.full(needed.shape, -np.inf), np.full(needed.shape, np.inf)
                sums.narrow(centre, Criticals(critical, critical), 0.5, low, high)
                assert (low[one] <= true[one] <= high[one]) == holds


def test_errors_of_groups_bound_those_of_all_sets() -> None:
    """In draws of its own, all sets of five values are within their bounds as often as asked for."""
    root = np.random.default_rng(0).normal(size=(5, 5))
    covariance = root @ root.T
    covariance -= np.outer(covariance.sum(axis=1), covariance.sum(axis=0)) / covariance.sum()  # entries add up to 0
    single, by_size = group_division._errors(covariance, 0.9, np.random.default_rng(0))
    draws = normal_draws(covariance, 4_000, np.random.default_rng(1))
    held = (np.abs(draws) <= single[:, None]).all(axis=0)
    for size in range(1, 5):
        for members in itertools.combinations(range(5), size):
            held &= np.abs(draws[list(members)].sum(axis=0)) <= by_size[size]
    assert 0.88 < held.mean() < 0.93


# -- coverage ----------------------------------------------------------------------------------------------


def coverage(name: str, runs: int) -> float:
    truth, held = STUDIES[name][1], 0
    for run in range(runs):
        answer = resolved(drawn(name, [run, 22]))
        held += all(
            part.confidence_low - 1e-9 <= truth[part.positions].sum() <= part.confidence_high + 1e-9
            for part in answer.parts
        )
    return held / runs


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", STUDIES)
def test_all_parts_hold_together_although_the_reports_chose_them(name: str) -> None:
    assert coverage(name, RUNS) >= LEAST


def test_bounds_at_the_level_of_single_intervals_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: choosing and bounding by the same users without paying for the choice."""

    def unpaid(*_: object) -> Generator[Progress, None, float]:
        yield Progress(0, 1, "")
        return 1.96

    monkeypatch.setattr(lattice_division, "told_critical", unpaid)
    monkeypatch.setattr(lattice_division, "CHOICE_CRITICAL", 0.4)
    assert coverage("many parts", RUNS) < LEAST


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_all_parts_hold_together_in_many_studies(name: str) -> None:
    assert coverage(name, 1_000) >= 0.95 - 2.0 * np.sqrt(0.05 * 0.95 / 1_000)


def test_spare_users_widen_and_change_no_estimate() -> None:
    for reports in (
        drawn("line"),
        hb.Reports.from_outputs(rappor := hb.Rappor(NAMES, 1.0), rappor.privatize(["v1"] * 90, rng=0)),
    ):
        reference = np.full(len(reports.domain), 1.0 / len(reports.domain))
        plain, spare = set_shares(reports, reference), set_shares(reports, reference, spare=2.0)
        assert isinstance(plain, SetShares)
        assert isinstance(spare, SetShares)
        assert plain.centre.tolist() == spare.centre.tolist()
        assert np.linalg.eigvalsh(spare.matrix - plain.matrix).min() > -1e-12
        assert (spare.matrix.diagonal() > plain.matrix.diagonal()).all()


def test_quantiles_have_the_rank_of_simulations() -> None:
    assert quantile(np.arange(1.0, 20.0), 0.95) == 19.0
    assert quantile(np.arange(1.0, 100.0), 0.95) == 95.0


# -- the terminal ------------------------------------------------------------------------------------------


def test_the_terminal_shows_and_writes_parts(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(LIGHT_TOML)
    (tmp_path / "reports.csv").write_text("user,output\n" + "".join(f"u{one},{one % 3 + 2}\n" for one in range(300)))
    shown = hubbub("resolve", "study.toml", "reports.csv", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "These reports tell" in shown.stdout
    done = hubbub("resolve", "study.toml", "reports.csv", "--json", "-o", "parts.csv", cwd=tmp_path)
    document = json.loads(done.stdout)
    assert {"version", "fingerprint", "users", "parts", "rest", "told"} <= set(document)
    lines = (tmp_path / "parts.csv").read_text().splitlines()
    assert lines[0] == "value,part,estimate,low,high,told"
    assert len(lines) == 1 + sum(len(part["values"]) for part in document["parts"])
    refused = hubbub("resolve", "study.toml", "reports.csv", "-o", "parts.geojson", cwd=tmp_path)
    assert refused.returncode == 2
    assert ".png" in refused.stderr


def test_files_of_a_division(tmp_path: Path) -> None:
    answer = resolved(drawn("map"))
    for ending in ("json", "png", "svg"):
        write_resolution(answer, answer.document(), tmp_path / f"parts.{ending}")
        assert (tmp_path / f"parts.{ending}").stat().st_size > 500
    assert json.loads((tmp_path / "parts.json").read_text()) == answer.document()


def test_too_many_values_are_not_divided() -> None:
    size = MAX_RESOLVED_VALUES + 1
    words = hb.RandomizedResponse(hb.Integers(1, size), 12.0)
    reports = hb.Reports.from_outputs(words, words.privatize(np.arange(1, size + 1), rng=1))
    answer = hb.resolve(reports, estimate=hb.estimate(reports, "inv-p"))
    assert [part.positions.size for part in answer.parts] == [size]
    assert answer.note == (
        f"Nothing is divided, because {size:,} values are too many for bounds on all of their parts. "
        "hubbub.interval gives the share of any range that you choose beforehand."
    )
