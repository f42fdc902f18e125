"""What a plan says: sentences, notes, tables, documents and pictures, from results made by hand."""

from __future__ import annotations

import json
import math
import pickle
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from hubbub.planning import Plan
from hubbub.planning.answers import Privacy, Widths
from hubbub.planning.number_format import approximately, two_digits
from hubbub.planning.plan_data import COLUMNS
from plans import UNBOUNDED, needed, per_km, plain, planned, setting, spread

HOSTILE = "<img src=x onerror=alert(1)>"


def first(plan: Plan) -> str:
    """Return the answer itself, without what it assumes."""
    return plan.sentence.split(" This assumes")[0]


# -- sentences -----------------------------------------------------------------------------------------------


def test_users_needed_and_how_many_times_as_many() -> None:
    plan = planned(needs=[needed("k-RR", 1.0, 66_000), needed("RAPPOR", 1.0, 41_234)], target=0.05)
    assert first(plan) == (
        "With epsilon 1, RAPPOR needs about 41,000 users for a total variation of 0.05; k-RR needs 1.6 times as many."
    )
    assert "This assumes a truth with three bells, estimated by ibu." in plan.sentence
    assert plan.sentence.endswith("the share of people whom the estimate puts at a wrong value.")


def test_one_way_to_report_is_not_named() -> None:
    assert first(planned(needs=[needed("RAPPOR", 1.0, 41_234)], target=0.05)) == (
        "With epsilon 1, you need about 41,000 users for a total variation of 0.05."
    )


def test_the_error_to_expect() -> None:
    plan = planned([setting("RAPPOR", 1.0, 10_000, 0.0812)], users=(10_000,))
    assert first(plan) == (
        "With 10,000 users and epsilon 1, expect a total variation of about 0.081 (below 0.097 in 9 of 10 studies)."
    )
    assert "errors are medians of 200 simulated studies (seed 0)." in plan.sentence
    drawn = planned([setting("RAPPOR", 1.0, 10_000, 0.0812)], users=(10_000,), seed="a generator")
    assert "simulated studies (drawn with your generator)." in drawn.sentence


def test_a_target_that_most_studies_reach_is_not_called_a_median() -> None:
    results = [setting("RAPPOR", 1.0, 41_234, 0.05)]
    plan = planned(results, needs=[needed("RAPPOR", 1.0, 41_234)], target=0.05, confidence=0.95)
    assert "; the numbers come from 200 simulated studies (seed 0)." in plan.sentence
    half = planned(results, needs=[needed("RAPPOR", 1.0, 41_234)], target=0.05)
    assert "; errors are medians of 200 simulated studies (seed 0)." in half.sentence


def test_errors_are_compared() -> None:
    both = [setting("k-RR", 1.0, 10_000, 0.13), setting("RAPPOR", 1.0, 10_000, 0.08)]
    assert first(planned(both, users=(10_000,))).endswith(
        "of about 0.080 with RAPPOR (below 0.096 in 9 of 10 studies); k-RR has 1.6 times the error."
    )


def test_the_epsilon_needed() -> None:
    needs = [
        needed("RAPPOR", None, 1.4, what="epsilon", users=10_000, privacy=plain(1.4)),
        needed("k-RR", None, 2.2, what="epsilon", users=10_000, privacy=plain(2.2)),
    ]
    assert first(planned(needs=needs, users=(10_000,), target=0.05)) == (
        "With 10,000 users, RAPPOR needs an epsilon of about 1.4 for a total variation of 0.05; "
        "k-RR needs 1.6 times as much."
    )


def test_what_the_simulation_cannot_distinguish_is_called_equal() -> None:
    needs = [needed("a", 1.0, 41_000), needed("b", 1.0, 46_000, 0.1), needed("c", 1.0, 90_000)]
    assert first(planned(needs=needs, target=0.05)).endswith("; c needs 2.2 times as many; b needs about as many.")


def test_many_ways_are_cut_short() -> None:
    needs = [needed(f"way {place}", 1.0, 10_000 * 2**place) for place in range(7)]
    assert first(planned(needs=needs, target=0.05)).endswith(
        "; way 1 needs 2.0 times as many, way 2 needs 4.0 times as many and the other 4 need up to 64 times as many."
    )


def test_equal_ratios_are_said_once() -> None:
    needs = [needed("a", 1.0, 10_000), needed("b", 1.0, 20_000), needed("c", 1.0, 20_100), needed("d", 1.0, 31_000)]
    assert first(planned(needs=needs, target=0.05)).endswith(
        "; b and c need 2.0 times as many and d needs 3.1 times as many."
    )


def test_a_wide_range_is_written_as_a_range() -> None:
    plan = planned(needs=[needed("a", 1.0, 9_000, relative=0.4)], target=0.05)
    assert "you need between 5,400 and 13,000 users" in plan.sentence
    loose = planned([setting("a", 1.0, 10, 0.1, tv=spread(0.1, 0.4))], users=(10,))
    assert "expect a total variation between 0.060 and 0.14 (below" in loose.sentence


def test_less_than_the_smallest_number_tried_may_be_enough() -> None:
    plan = planned(needs=[needed("a", 1.0, 10, relative=0.0, reason="10 users are already enough")], target=0.5)
    assert "you need at most 10 users" in plan.sentence
    assert "≤ 10" in str(plan)
    assert "10 to 10" not in str(plan)  # nothing is known of what is below
    needs = [needed("a", 1.0, 10, relative=0.0, reason="10 users are already enough"), needed("b", 1.0, 50)]
    assert "; b needs at least 5.0 times as many" in planned(needs=needs, target=0.5).sentence


def test_what_a_user_spends_is_said_where_it_is_not_the_epsilon_itself() -> None:
    twice = needed("k-RR", None, 1.07, what="epsilon", users=2_000, privacy=plain(2.14), reports_per_user=2)
    assert "an epsilon of about 1.1 (each user spends 2.14) for a total" in first(
        planned(needs=[twice], users=(2_000,), target=0.05)
    )
    metric = needed("noise", None, 0.842, what="epsilon", users=2_000, privacy=per_km(0.842, 4.0))
    assert (
        "an epsilon of about 0.84 (each user spends epsilon 0.842 per km, plain epsilon 3.37 over the domain's "
        "diameter of 4 km) for a total"
    ) in first(planned(needs=[metric], users=(2_000,), target=0.05))


def test_no_error_at_all_is_said_as_such() -> None:
    plan = planned([setting("a", 1.0, 10, 0.0)], users=(10,))
    assert "of about 0 (0 in 9 of 10 studies)" in plan.sentence
    both = planned([setting("a", 1.0, 10, 0.0), setting("b", 1.0, 10, 0.1)], users=(10,))
    assert first(both).endswith("with a (0 in 9 of 10 studies); b does worse.")  # no ratio to 0


def test_both_kinds_of_epsilon_are_shown() -> None:
    plan = planned(needs=[needed("strong", 0.7, 41_234, privacy=per_km(0.7))], target=0.3, distance="emd", unit="km")
    assert first(plan) == (
        "With epsilon 0.7 per km (plain epsilon 9.94 over the domain's diameter of 14.2 km), you need about "
        "41,000 users for an earth mover's distance of 0.3 km."
    )
    assert plan.sentence.endswith("how far the estimate misplaces people on average.")
    near = planned(needs=[needed("strong", 0.7, 41_234, privacy=per_km(0.7, 3.0))], target=0.3, radius=3.0)
    assert "(plain epsilon 2.1 within a distance of 3 km)" in near.sentence


def test_kinds_of_epsilon_that_are_worth_the_same_are_compared() -> None:
    both = [setting("planar", 9.94, 10_000, 0.1, privacy=per_km(0.7)), setting("k-RR", 9.94, 10_000, 0.2)]
    plan = planned(both, users=(10_000,))
    assert "and plain epsilon 9.94 over the domain's diameter of 14.2 km, expect" in plan.sentence
    assert "with planar at epsilon 0.7 per km (below" in plan.sentence
    assert "; k-RR has 2.0 times the error." in plan.sentence


def test_a_mixture_of_both_kinds_of_epsilon_spends_one_or_the_other() -> None:
    mixed = Privacy(1.0, 0.7, "km", 9.94, 14.2)
    plan = planned([setting("half and half", None, 100, 0.1, privacy=mixed)], users=(100,))
    assert "and epsilon 1 or epsilon 0.7 per km (plain epsilon 9.94 over" in plan.sentence
    assert plan.tables[0].rows[0][1] == "1 or 0.7/km (9.94)"


def test_other_epsilons_are_not_compared() -> None:
    plan = planned(needs=[needed("a", 1.0, 41_000), needed("b", 2.0, 11_000)], target=0.05)
    assert "times" not in plan.sentence
    assert any("not compared with each other" in note for note in plan.notes)
    alike = planned(needs=[needed("a", 1.0, 41_000), needed("b", 1.0, 11_000)], target=0.05)
    assert not any("not compared" in note for note in alike.notes)


def test_out_of_reach_is_said_with_its_reason() -> None:
    needs = [needed("a", 1.0, 41_000), needed("b", 1.0, None, reason="its reports do not tell all values apart")]
    plan = planned(needs=needs, target=0.05)
    assert first(plan).endswith("; b cannot reach it.")
    assert "b: its reports do not tell all values apart." in plan.notes
    none = planned(needs=needs[1:], target=0.05)
    assert first(none) == "With epsilon 1, a total variation of 0.05 is out of reach."
    much = [needed("b", None, None, what="epsilon", users=100, most=2.0)]
    assert first(planned(needs=much, users=(100,), target=0.05)) == (
        "With 100 users, no epsilon tried reaches a total variation of 0.05."
    )
    several = planned(needs=[needed("b", 1.0, None), needed("c", 1.0, None)], target=0.05)
    assert first(several) == "With epsilon 1, a total variation of 0.05 is out of reach for b and c."


def test_no_bound_is_said() -> None:
    plan = planned([setting("cloaking", None, 100, 0.1, privacy=UNBOUNDED)], users=(100,))
    assert plan.sentence.startswith("With 100 users and no bound on epsilon, expect")


def test_of_many_answers_the_first_and_the_last_are_sentences() -> None:
    table = [setting("a", e, n, 1 / (e * math.sqrt(n))) for e in (1.0, 2.0, 4.0) for n in (100, 1_000)]
    plan = planned(table, users=(100, 1_000))
    assert plan.sentence.count("With ") == 2
    assert "The table shows the 4 cases in between." in plan.sentence


def test_confidence_and_reports_are_said() -> None:
    plan = planned(
        needs=[needed("a", 1.0, 5_000, reports_per_user=2), needed("a", 1.0, 9_000)], target=0.05, confidence=0.9
    )
    assert "a, 2 reports each needs about 5,000 users for a total variation of 0.05 in 90% of studies" in plan.sentence
    assert "; a needs 1.8 times as many." in plan.sentence


def test_what_is_extrapolated_is_marked() -> None:
    plan = planned(needs=[needed("a", 1.0, 5e8, extrapolated=True)], target=0.001)
    assert "500,000,000 users (extrapolated)" in plan.sentence
    assert any("marked *" in note for note in plan.notes)
    assert "500,000,000*" in str(plan)


# -- notes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "warned"), [("auto", True), ("ibu", True), ("mle", False), ("inv-p", False)])
def test_a_uniform_truth_is_too_good_for_methods_that_lean_on_it(method: str, warned: bool) -> None:
    plan = planned([setting("a", 1.0, 100, 0.1, truth="uniform")], users=(100,), truths=("uniform",), method=method)
    assert any("real errors will be larger" in note for note in plan.notes) is warned


def test_the_worst_truth_counts_and_is_named() -> None:
    bell = setting("a", 1.0, 100, 0.1, truth="bell")
    plan = planned([setting("a", 1.0, 100, 0.2, truth="block", others=(bell,))], users=(100,), truths=("bell", "block"))
    assert "about 0.20" in plan.sentence
    assert "the worst of 2 truths" in plan.sentence
    assert "Of the 2 truths tried, the worst is block." in plan.notes
    assert "block" in plan.tables[0].rows[0]
    needs = [needed("a", 1.0, 10_000, truth="bell"), needed("b", 1.0, 20_000, truth="block")]
    (note,) = planned(needs=needs, target=0.1, truths=("bell", "block")).notes
    assert note == "Of the 2 truths tried, the worst is bell or block, depending on the case."


@pytest.mark.parametrize(("closed", "warned"), [(1.0, False), (1.1, False), (1.4, True), (0.6, True), (None, False)])
def test_a_closed_form_that_does_not_agree_is_a_warning(closed: float | None, warned: bool) -> None:
    plan = planned([setting("a", 1.0, 100, 0.1, closed=closed)], users=(100,))
    assert any("closed form" in note for note in plan.notes) is warned


# -- numbers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "text"),
    [(41_234, "41,000"), (999, "1,000"), (0.0999, "0.10"), (0.081, "0.081"), (1, "1.0"), (0, "0"), (12.3, "12"),
     (1e-9, "1e-09"), (1.5e-9, "1.5e-09"), (2.5e9, "2,500,000,000")],
)  # fmt: skip
def test_two_digits_count(number: float, text: str) -> None:
    assert two_digits(number) == text


def test_ends_that_are_not_finite_are_said() -> None:
    assert approximately(100.0, 50.0, math.inf) == "at least 50"
    assert approximately(0.01, 0.0, 0.02) == "at most 0.020"
    assert approximately(0.0, 0.0, 0.0) == "about 0"


# -- tables and documents ------------------------------------------------------------------------------------


def both() -> Plan:
    settings = [setting(name, e, 10_000, f * 0.07 / e) for name, f in (("a", 1), ("b", 1.6)) for e in (0.5, 1.0, 2.0)]
    needs = [
        needed("a", None, 1.4, what="epsilon", users=10_000, privacy=plain(1.4)),
        needed("b", None, None, what="epsilon", users=10_000),
    ]
    return planned(settings, needs, users=(10_000,), target=0.05)


def test_a_table_across_users() -> None:
    plan = planned([setting("a", e, n, e / n) for e in (1.0, 2.0) for n in (10, 100)], users=(10, 100))
    (table,) = plan.tables
    assert table.header == ["candidate", "epsilon", "10", "100"]
    assert table.rows == [["a", "1", "0.10", "0.010"], ["a", "2", "0.20", "0.020"]]


def test_a_table_of_one_number_of_users_has_widths_and_earth_movers() -> None:
    plan = planned([setting("a", 1.0, 10, 0.1, emd=spread(0.5), privacy=per_km(0.7))], users=(10,), unit="km")
    (table,) = plan.tables
    assert table.header[1:] == [
        "epsilon (plain)", "total variation", "9 of 10 below", "earth mover (km)", "95% interval",
    ]  # fmt: skip
    assert table.rows == [["a", "0.7/km (9.94)", "0.10", "0.12", "0.50", "±0.060"]]


def test_the_text_is_aligned() -> None:
    lines = str(both()).splitlines()
    header = next(line for line in lines if line.startswith("candidate"))
    assert len({len(line) for line in lines if re.match(r"[ab]  ", line)} | {len(header)}) <= 3
    assert lines[-1] == both().explain().splitlines()[-1]


def test_the_frame_has_what_was_looked_for_and_what_to_expect() -> None:
    frame = both().to_frame()
    assert list(frame.columns) == list(COLUMNS)
    assert frame.looked_for.tolist() == ["epsilon", "epsilon", *["error"] * 6]
    assert frame.epsilon[0] == 1.4
    assert frame.epsilon_low[0] == pytest.approx(1.33)
    assert frame.tv[2] == pytest.approx(0.14)
    assert frame.width_median[2] == pytest.approx(0.12)
    users = planned([setting("a", 1.0, 41_235, 0.05)], [needed("a", 1.0, 41_234.5)], target=0.05).to_frame()
    assert len(users) == 1
    assert users.users[0] == 41_235
    assert users.tv[0] == 0.05


def test_other_truths_are_kept_below_the_worst() -> None:
    other = setting("a", 1.0, 10, 0.1, truth="bell")
    plan = planned([setting("a", 1.0, 10, 0.2, truth="block", others=(other,))], users=(10,), truths=("bell", "block"))
    assert plan.to_frame()[["truth", "tv"]].to_numpy().tolist() == [["block", 0.2], ["bell", 0.1]]
    (kept,) = json.loads(plan.to_json())["settings"]
    assert [setting["truth"] for setting in kept["other_truths"]] == ["bell"]
    assert len(plan.tables[0].rows) == 1


def test_json_is_one_document_without_odd_numbers() -> None:
    widths = Widths(np.array(["x", "y"]), np.array([0.1, math.nan]), 0.95)
    plan = planned(
        [setting("a", 1.0, 10, math.inf, widths=widths, closed=math.nan)],
        [needed("a", 1.0, 5.0, high=math.inf)], target=0.05,
    )  # fmt: skip
    document = json.loads(plan.to_json())
    assert document["version"] == 1
    assert document["looked_for"] == "users"
    assert document["sentence"] == plan.sentence
    assert document["needed"][0]["high"] is None
    assert document["settings"][0]["tv"]["median"] is None
    assert document["settings"][0]["closed"] is None
    assert document["settings"][0]["widths"]["values"] == [{"value": "x", "width": 0.1}, {"value": "y", "width": None}]


def test_a_plan_travels() -> None:
    plan = both()
    assert plan.sentence
    again = pickle.loads(pickle.dumps(plan))  # noqa: S301
    assert again.to_json() == plan.to_json()


class Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_notebooks_see_tables_and_sentences_and_no_tags_of_names() -> None:
    plan = planned([setting(HOSTILE, 1.0, 10, 0.1), setting("b", 1.0, 10, 0.2)], users=(10,), truths=(HOSTILE,))
    seen = Seen()
    seen.feed(plan._repr_html_())
    assert seen.tags <= {"table", "tr", "td", "th"}
    assert HOSTILE in seen.text
    assert "expect a total variation" in seen.text
    assert "10 users" in seen.text


# -- pictures ------------------------------------------------------------------------------------------------


def picture(plan: Plan) -> Any:
    return plan.plot(Figure().subplots())


def test_errors_against_users_have_bands_and_logarithmic_axes() -> None:
    axes = picture(planned([setting(n, 1.0, u, 1 / u) for n in "ab" for u in (10, 100, 1_000)], users=(10, 100, 1_000)))
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert len(axes.collections) == 2
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b"]
    band = axes.collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == pytest.approx(0.97 / 1_000)
    assert axes.get_xlabel() == "users"


def test_lines_differ_in_more_than_colour() -> None:
    settings = [setting(n, e, u, e / u) for n in "ab" for e in (0.5, 1.0, 2.0) for u in (10, 100)]
    axes = picture(planned(settings, users=(10, 100)))
    looks = [(h.get_color(), h.get_marker(), h.get_linestyle()) for h in axes.get_legend().legend_handles]
    assert len(set(looks)) == 6
    assert len({colour for colour, _, _ in looks}) == 3
    assert len({look[1:] for look in looks}) == 2


def test_the_target_is_drawn() -> None:
    axes = picture(both())
    assert any(line.get_ydata()[0] == 0.05 for line in axes.lines if len(line.get_ydata()) == 2)
    assert axes.get_xlabel() == "plain epsilon"
    assert "target 0.05" in [text.get_text() for text in axes.texts]


def test_dots_where_nothing_varies_and_a_median_of_zero() -> None:
    axes = picture(planned([setting("$x^$", 1.0, 10, 0.0), setting("b", 1.0, 10, 0.2)], users=(10,)))
    assert axes.get_xscale() == "linear"
    assert [label.get_text() for label in axes.get_yticklabels()] == ["b", "$x^$"]
    axes.figure.canvas.draw()  # a name that is no mathematics
    picture(planned([setting("a", 1.0, u, 0.0) for u in (10, 100)], users=(10, 100))).figure.canvas.draw()


def test_an_unbounded_epsilon_is_a_line_across_the_others() -> None:
    settings = [setting("a", 1.0, 10, 0.2), setting("a", 2.0, 10, 0.1), setting("cloaking", None, 10, 0.05)]
    axes = picture(planned(settings, users=(10,)))
    axes.figure.canvas.draw()
    assert axes.get_xlabel() == "plain epsilon"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "cloaking, unbounded"]
    assert [0.05, 0.05] in [list(line.get_ydata()) for line in axes.lines]


def test_users_needed_are_drawn_without_those_out_of_reach() -> None:
    needs = [needed("a", e, 1e4 / e**2) for e in (0.5, 1.0, 2.0)] + [needed("b", 1.0, None)]
    axes = picture(planned(needs=needs, target=0.05))
    assert axes.get_ylabel() == "users needed"
    assert "out of reach for 1" in axes.get_title()
    picture(planned(needs=needs[3:], target=0.05)).figure.canvas.draw()
