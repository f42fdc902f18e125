"""From reports to the content of the page: what it says, and that it says the same for the same reports."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import hubbub as hb
from hubbub.core.progress import Progress
from hubbub.intake.study_input import read_input
from hubbub.intervals.set_intervals import MAX_VALUES, SetShares, set_shares
from hubbub.reporting import Bounds, Page, make_page, write_page
from hubbub.reporting.html_page import render_page
from hubbub.reporting.noisy_shares import noisy_shares
from hubbub.reporting.page_values import BAD, GOOD, UNKNOWN, WARNING, Verdict
from hubbub.reporting.verdicts import privacy_verdict
from hubbub.reports.privacy_accounting import Spent

Floats = NDArray[np.float64]

DRINKS = hb.Categories(["tea", "coffee", "water"])
ANSWER = hb.RandomizedResponse(DRINKS, 1.5)
COUNTS = {"tea": 520, "coffee": 300, "water": 180}
REPORTS = hb.Reports.from_counts(ANSWER, COUNTS)
TOWN = hb.Grid.over(south=37.7, west=-122.5, north=37.8, east=-122.4, columns=4, rows=3)


def verdict(page: Page, start: str) -> Verdict:
    (found,) = [one for one in page.verdicts if one.question.startswith(start)]
    return found


def simulated(mechanism: hb.Mechanism, truth: Floats, users: int, seed: int = 0) -> hb.Reports:
    rng = np.random.default_rng(seed)
    values = mechanism.domain.labels[rng.choice(truth.size, size=users, p=truth)]
    return hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng))


@pytest.fixture(scope="module")
def drinks() -> Page:
    return make_page(REPORTS, title="Drinks")


# -- what is on it ------------------------------------------------------------------------------------------


def test_numbers_are_those_of_the_functions_that_anyone_can_call(drinks: Page) -> None:
    estimate = hb.estimate(REPORTS)
    band = hb.band(REPORTS, estimate=estimate)
    assert (drinks.estimate == estimate.probabilities).all()
    assert (drinks.low == band.low).all()
    assert (drinks.high == band.high).all()
    assert (drinks.title, drinks.users, drinks.method, drinks.level) == ("Drinks", 1_000, "auto", 0.95)
    shares = set_shares(REPORTS, estimate.probabilities)
    assert isinstance(drinks.sets, SetShares)
    assert (drinks.sets.centre == shares.centre).all()  # type: ignore[union-attr]
    assert drinks.noisy == pytest.approx([0.52, 0.3, 0.18])


def test_facts_say_how_it_was_computed(drinks: Page) -> None:
    facts = dict(drinks.facts)
    assert facts["mechanism RandomizedResponse"] == "RandomizedResponse, epsilon 1.5"
    assert facts["hubbub"] == f"version {hb.__version__}"
    assert facts["users"] == "1,000"
    assert "nats per user" in facts["certificate"]
    assert facts["seed"] == "0"
    assert facts["status"] == hb.estimate(REPORTS).status


def test_verdicts_answer_five_questions_in_a_word_or_two(drinks: Page) -> None:
    assert [one.question for one in drinks.verdicts] == [
        "Is there one answer?",
        "Do the reports fit the study?",
        "Could fake users change it?",
        "How precise is it?",
        "What did it cost in privacy?",
    ]
    assert all(len(one.answer.split()) <= 5 and one.text.endswith(".") for one in drinks.verdicts)
    assert (verdict(drinks, "Is there").answer, verdict(drinks, "Is there").tone) == ("Yes", GOOD)
    assert (verdict(drinks, "Do the").answer, verdict(drinks, "Do the").tone) == ("Yes, apparently", GOOD)
    shift = hb.worst_case_shift(REPORTS, 0.01)
    assert verdict(drinks, "Could").answer == f"By {100 * float(shift):.1f} points"
    assert verdict(drinks, "What did").answer == "epsilon 1.5"
    assert "4.5 times" in verdict(drinks, "What did").text  # e^1.5


def test_reports_that_do_not_fit_are_a_bad_sign() -> None:
    wrong = hb.TruncatedGeometric(hb.Integers(0, 9), 0.3)  # far less noise was used than the study says
    page = make_page(hb.Reports.from_counts(wrong, [0, 0, 0, 900, 0, 0, 900, 0, 0, 0]), method="mle")
    found = verdict(page, "Do the")
    assert (found.answer, found.tone) == ("No", BAD)
    assert "Do not rely on the estimate" in found.text
    assert page.verdicts[0] == found  # before anything else
    assert page.summary.startswith("These reports contradict the study")


def test_several_answers_are_a_bad_sign_and_sets_get_outer_bounds() -> None:
    districts = hb.Cloaking(hb.Categories(["a", "b", "c"]), ["north", "north", "south"])
    page = make_page(hb.Reports.from_counts(districts, {"north": 60, "south": 40}), method="mle")
    assert (verdict(page, "Is there").answer, verdict(page, "Is there").tone) == ("No, several", BAD)
    assert (verdict(page, "What did").answer, verdict(page, "What did").tone) == ("No bound", BAD)
    assert isinstance(page.sets, Bounds)
    assert page.sets.low[0] == pytest.approx(0.0, abs=1e-6)
    assert 0.6 <= page.sets.high[0] <= 0.75
    assert "hubbub.interval" in page.sets.reason
    assert page.noisy is None
    assert "Cloaking" in page.noisy_note


def test_an_estimate_alone_has_no_intervals_and_says_what_to_do() -> None:
    page = make_page(hb.estimate(REPORTS, "mle"))
    assert np.isnan(page.low).all()
    assert np.isnan(page.high).all()
    assert isinstance(page.sets, Bounds)
    assert {one.tone for one in page.verdicts} == {UNKNOWN}
    assert all("hubbub.report(reports, path)" in one.text for one in page.verdicts)
    assert page.noisy is None
    assert "confidence" not in page.summary
    assert page.notes == ()  # the verdicts say why there are no intervals


def test_an_estimate_of_other_users_is_refused() -> None:
    others = hb.Reports.from_counts(ANSWER, {"tea": 5, "coffee": 3, "water": 1})
    with pytest.raises(hb.HubbubError, match="does not come from these reports"):
        make_page(REPORTS, estimate=hb.estimate(others, "mle"))


def test_a_quick_page_has_the_linear_intervals_and_no_verdicts() -> None:
    page = make_page(REPORTS, quick=True, method="mle")
    shares = set_shares(REPORTS, page.estimate)
    assert page.low[1] == pytest.approx(shares.interval(np.array([1]), 0.95)[0])  # type: ignore[union-attr]
    assert verdict(page, "Is there").answer == "Not checked"
    assert "--quick" in verdict(page, "Is there").text
    assert verdict(page, "What did").answer == "epsilon 1.5"  # that costs nothing
    assert any("linear" in note for note in page.notes)


def test_values_beyond_what_time_allows_have_those_of_the_linear_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hubbub.trust_check.MAX_SECONDS", 0.0)
    page = make_page(REPORTS, method="mle")
    band = hb.band(REPORTS, values=["tea"])
    assert page.low[0] == band.low[0]
    assert not np.isnan(page.low).any()
    assert any(note.startswith("The intervals of 2 values come from the unbiased") for note in page.notes)


def test_values_that_are_too_many_get_bounds_and_the_reason() -> None:
    size = MAX_VALUES + 1
    mechanism = hb.RandomizedResponse(hb.Integers(1, size), 12.0)
    page = make_page(simulated(mechanism, np.full(size, 1 / size), 5_000), method="inv-p", quick=True)
    assert isinstance(page.sets, Bounds)
    assert f"{size:,} values are too many to compute how their errors are correlated" in page.sets.reason


def test_a_page_with_a_covariance_of_400_cells_is_small(tmp_path: Path) -> None:
    grid = hb.Grid.over(south=37.7, west=-122.5, north=37.8, east=-122.4, columns=20, rows=20)
    reports = simulated(hb.PlanarGeometric(grid, 2.0), np.full(400, 1 / 400), 5_000)
    page = hb.report(reports, tmp_path / "page.html", method="ibu", quick=True)
    assert b"estimate.geojson" in page.read_bytes()
    assert page.stat().st_size < 2_000_000


# -- what the reports tell apart ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hopeless() -> tuple[hb.Reports, Page]:
    """A map whose cells are too small for its noise."""
    truth = np.zeros((5, 6))
    truth[:2, :2], truth[3:, 3:] = 0.12, 0.085
    reports = simulated(hb.PlanarGeometric(hb.Grid(6, 5), 1.0), truth.ravel() / truth.sum(), 5_000)
    return reports, make_page(reports, method="ibu")


def test_a_page_opens_with_areas_where_single_cells_are_hopeless(hopeless: tuple[hb.Reports, Page]) -> None:
    reports, page = hopeless
    expected = hb.resolve(reports, level=0.95, estimate=hb.estimate(reports, "ibu"))
    assert page.resolution is not None
    assert page.resolution.document() == expected.document()
    single = int((page.low > 0).sum())
    assert single < 3
    assert len(expected.told) > 1
    assert page.opens_with_parts
    assert page.suggestion == (
        f"These reports tell {len(expected.told)} areas apart; of single cells "
        f"{['none is', '1 is', '2 are'][single]} known not to be empty."
    )
    text = render_page(page)
    assert page.suggestion in text
    assert 'value="parts" autocomplete="off" checked>What the reports resolve' in text
    assert 'value="values" autocomplete="off">Estimate' in text


def test_a_page_opens_with_single_values_where_a_tenth_of_them_is_known(hopeless: tuple[hb.Reports, Page]) -> None:
    _, page = hopeless
    few, enough = np.zeros(30), np.zeros(30)
    largest = page.largest_first()
    few[largest[:2]], enough[largest[:3]] = 0.001, 0.001
    assert replace(page, low=few).opens_with_parts
    assert not replace(page, low=enough).opens_with_parts
    assert "of single cells 3 are known" in replace(page, low=enough).suggestion
    assert page.resolution is not None
    told = page.resolution.told[0]
    one = tuple(replace(part, told=part is told) for part in page.resolution.parts)
    assert not replace(page, resolution=replace(page.resolution, parts=one)).opens_with_parts
    nothing = replace(page, resolution=replace(page.resolution, parts=tuple(replace(part, told=False) for part in one)))
    assert nothing.suggestion.startswith("These reports tell no areas apart;")
    assert [view.label for view in nothing.views] == ["Estimate", "How sure"]  # there is nothing that is resolved


def test_nothing_is_said_of_parts_that_are_the_values_or_were_not_computed(drinks: Page) -> None:
    assert drinks.resolution is not None
    assert [part.title for part in drinks.resolution.parts] == ["tea", "coffee and water"]
    assert drinks.suggestion == ""  # all three values are known not to be empty
    assert drinks.has_parts
    assert not drinks.opens_with_parts
    more = make_page(hb.Reports.from_counts(ANSWER, {name: 9 * users for name, users in COUNTS.items()}), method="mle")
    for page in (more, make_page(REPORTS, method="mle", quick=True), make_page(hb.estimate(REPORTS, "mle"))):
        assert (page.resolution, page.suggestion, page.opens_with_parts) == (None, "", False)
        assert 'id="suggestion"' not in render_page(page)


# -- what the crowd said --------------------------------------------------------------------------------------


def test_categories_are_told_by_the_largest(drinks: Page) -> None:
    assert drinks.summary.startswith("Among 1,000 users, 'tea' is the most common answer, with about ")
    assert "ahead of 'coffee' with" in drinks.summary
    assert drinks.summary.endswith("Ranges are 95% confidence intervals.")


def test_two_that_cannot_be_ordered_are_not_ordered() -> None:
    even = hb.Reports.from_counts(ANSWER, {"tea": 36, "coffee": 34, "water": 30})
    assert "do not settle which answer is more common" in make_page(even, method="mle").summary


def test_a_tie_has_no_first_and_nothing_comes_before_nobody() -> None:
    yes = hb.RandomizedResponse(hb.Categories(["yes", "no"]), 1.0)
    even = make_page(hb.Reports.from_counts(yes, [50, 50]), method="mle", quick=True).summary
    assert even.startswith("Among 100 users, 'yes' and 'no' are equally common in the estimate, with about 50.0% each.")
    three = make_page(hb.Reports.from_counts(ANSWER, [70, 70, 70]), method="mle", quick=True).summary
    assert three.endswith("3 answers are equally common in the estimate, with about 33.3% each.")  # there is no range
    one = make_page(hb.Reports.from_counts(ANSWER, [990, 5, 5]), method="mle", quick=True).summary
    assert "'tea' is the most common answer, with about 100%" in one
    assert "ahead of" not in one
    town = make_page(hb.Reports.from_counts(hb.RandomizedResponse(TOWN, 2.0), [9] * 12), method="mle", quick=True)
    assert "in 6 of 12 cells. The 12 busiest cells have about 8.33% each." in town.summary


def test_a_line_with_everybody_at_one_place_says_so() -> None:
    ages = hb.RandomizedResponse(hb.Integers(0, 4), 1.0)
    page = make_page(hb.Reports.from_counts(ages, [20, 20, 920, 20, 20]), method="mle", quick=True)
    assert " is 2 (no other median is plausible); the middle half of the users is there, too." in page.summary


def test_a_middle_outside_of_its_own_range_is_not_called_the_only_one() -> None:
    answer = hb.RandomizedResponse(hb.Integers(0, 5), 1.0)
    odd = hb.Reports.from_counts(answer, [30, 20, 10, 5, 1, 1]).restrict([0, 1, 4])  # and these do not fit
    told = make_page(odd, quick=True, estimate=hb.estimate(odd, "ibu", delta=10.0)).summary  # still near uniform
    assert " is 1 (between 0 and 1)" in told


def test_a_line_is_told_by_its_middle() -> None:
    ages = hb.TruncatedGeometric(hb.Integers(10, 19), 1.0)
    truth = np.array([0, 0, 0, 0.2, 0.2, 0.3, 0.3, 0, 0, 0])
    page = make_page(simulated(ages, truth, 20_000), method="mle", quick=True)
    assert "The median of 20,000 users is 15" in page.summary
    assert "the middle half of the users is from 14 to 16" in page.summary
    hours = hb.Laplace(hb.Bins([0, 6, 12, 18, 24]), 0.3)
    told = make_page(simulated(hours, np.array([0.1, 0.6, 0.2, 0.1]), 2_000), method="mle", quick=True).summary
    assert "The median of 2,000 users is 6–12" in told


def test_a_map_is_told_by_where_half_of_the_people_are() -> None:
    truth = np.array([0.4, 0.3, *np.full(10, 0.03)])
    page = make_page(simulated(hb.PlanarGeometric(TOWN, 4.0), truth, 5_000), method="mle", quick=True)
    assert "At least half of the 5,000 users are in 2 of 12 cells." in page.summary
    assert f"The busiest cell is at {TOWN.title(0)} with about" in page.summary
    assert list(page.texts) == ["estimate.geojson"]


# -- the reports at their word -----------------------------------------------------------------------------------


def test_noisy_shares_are_what_was_sent() -> None:
    line = hb.Integers(0, 3)
    wide = hb.Reports.from_outputs(hb.Geometric(line, 1.0), [-5, 0, 1, 9])
    assert noisy_shares(wide).shares == pytest.approx([0.5, 0.25, 0.0, 0.25])
    bits = hb.Reports.from_outputs(hb.Rappor(line, 1.0), [[1, 1, 0, 0], [0, 1, 0, 1]])
    assert noisy_shares(bits).shares == pytest.approx([0.25, 0.5, 0.0, 0.25])
    sums = hb.Reports.from_bit_counts(hb.Rappor(line, 1.0), [1, 2, 0, 1], 2)
    assert noisy_shares(sums).shares == pytest.approx([0.25, 0.5, 0.0, 0.25])
    answer = hb.RandomizedResponse(line, 1.0)
    several = hb.Reports.from_users([[(answer, 0), (answer, 0)], [(answer, 3)]])
    assert noisy_shares(several).shares == pytest.approx([2 / 3, 0.0, 0.0, 1 / 3])
    part = hb.Reports.from_counts(answer, [2, 1, 1, 4]).restrict([0, 1])
    assert noisy_shares(part).shares == pytest.approx([2 / 3, 1 / 3])


def test_noisy_places_beyond_a_map_are_counted_at_its_edge() -> None:
    grid = hb.Grid(2, 2, cells=[0, 1, 3])
    reports = hb.Reports.from_outputs(
        hb.PlanarGeometric(grid, 1.0, truncated=False), [[-3, -2], [5, 5], [1, 0], [1, 1]]
    )
    assert noisy_shares(reports).shares == pytest.approx([0.25, 0.25, 0.5])


def test_hashed_and_subset_reports_count_the_values_they_name() -> None:
    mechanism = hb.SubsetSelection(hb.Integers(0, 3), 1.0, size=2)
    reports = hb.Reports.from_outputs(mechanism, [[1, 1, 0, 0], [1, 0, 1, 0]])
    assert noisy_shares(reports).shares == pytest.approx([0.5, 0.25, 0.25, 0.0])


# -- what it cost ------------------------------------------------------------------------------------------------


def test_privacy_is_never_added_across_kinds() -> None:
    mechanisms = {"a": hb.RandomizedResponse(TOWN, 0.5), "b": hb.PlanarGeometric(TOWN, 2.0)}
    study = hb.Study(TOWN, mechanisms, max_epsilon_per_user=0.25, max_epsilon_per_unit=3.0)
    found = privacy_verdict({Spent(0.5, 2.0): 10, Spent(0.25, 2.0): 90}, study)
    assert found.answer == "epsilon 0.5 and epsilon 2 per km"
    assert "10 users spent more than the study's limit of 0.25." in found.text
    assert "No user spent more than the study's limit of 3 per km." in found.text
    assert "cannot be added" in found.text
    assert f"plain epsilon of {2 * TOWN.diameter:.3g}" in found.text
    assert found.tone == BAD


@pytest.mark.parametrize(("epsilon", "tone"), [(1.0, GOOD), (4.0, WARNING), (9.0, BAD)])
def test_a_larger_epsilon_sounds_worse(epsilon: float, tone: str) -> None:
    found = privacy_verdict({Spent(epsilon, 0.0): 5}, hb.Study(DRINKS, {"a": hb.RandomizedResponse(DRINKS, epsilon)}))
    assert found.tone == tone


# -- from files, and to them -------------------------------------------------------------------------------------

STUDY = """version = 1
name = "drinks"
max_reports_per_user = 2
[domain]
kind = "categories"
labels = ["tea", "coffee", "water"]
[mechanisms.answer]
kind = "randomized-response"
epsilon = 1.5
"""


def written(folder: Path) -> tuple[Path, Path]:
    study, reports = folder / "study.toml", folder / "reports.csv"
    study.write_text(STUDY)
    outputs = [name for name, count in COUNTS.items() for _ in range(count // 10)]
    reports.write_text("output\n" + "\n".join([*outputs, "beer"]) + "\n")
    return study, reports


@pytest.mark.filterwarnings("ignore:rows do not say who sent them")  # the study has a limit
def test_a_study_and_its_tally_give_the_same_page(tmp_path: Path) -> None:
    study, reports = written(tmp_path)
    given = read_input(study, [str(reports)], allow_rejects=5)
    page = make_page(given)
    assert page.title == "drinks"
    facts = dict(page.facts)
    assert facts["study fingerprint"] == hb.read_study(study).fingerprint
    assert (facts["rows read"], facts["rows rejected"]) == ("101", "1")
    assert (
        page.notes[0] == "1 row rejected (out-of-domain): the output, or the value to privatize, is not in the domain"
    )
    assert (
        "By the study's limit on reports: A user who sends 2 reports spends at most epsilon 3."
        in verdict(page, "What did").text
    )
    tally = hb.collect(hb.read_study(study), str(reports), tmp_path / "all.tally.parquet", allow_rejects=5)
    write_page(page, tmp_path / "one.html")
    hb.report(tally, tmp_path / "other.html")
    text = (tmp_path / "one.html").read_bytes()
    assert text == (tmp_path / "other.html").read_bytes()
    assert str(tmp_path).encode() not in text
    assert b"drinks" in text


def test_the_order_of_users_does_not_matter(tmp_path: Path) -> None:
    outputs = [name for name, count in COUNTS.items() for _ in range(count // 10)]
    for name, some in (("one", outputs), ("other", outputs[::-1])):
        page = hb.report(hb.Reports.from_outputs(ANSWER, some), tmp_path / f"{name}.html", quick=True)
        assert page == tmp_path / f"{name}.html"
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "other.html").read_bytes()


def test_progress_is_told() -> None:
    stages = [step.what for step in make_page.steps(REPORTS, method="mle") if isinstance(step, Progress)]
    assert "intervals of sets" in stages
    assert "estimating with fakes" in stages
    assert "intervals" in stages
