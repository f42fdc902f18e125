"""Judge claims about single numbers: published values, empty cells, certified maxima."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.text import plural
from hubbub.paper.claims import Certified, Claim, Empty, OneDelta, Published, Turning
from hubbub.paper.figure_specs import Figure
from hubbub.paper.judging.claim_evidence import ClaimEvidence, reporting
from hubbub.paper.judging.finding import (
    EARLY,
    FAILS,
    HOLDS,
    OPEN,
    Finding,
    data_name,
    is_paper_data,
    number,
    spread,
    undecided,
)
from hubbub.paper.judging.judgement import AGREES, REVERSED, Comparison, judge
from hubbub.paper.judging.method_claims import NO_SUCH_SETTING
from hubbub.paper.judging.paired_statistics import min_runs, prediction_interval
from hubbub.paper.method_names import method_in_sentence
from hubbub.paper.places import PAPER_USERS
from hubbub.paper.results import Results
from hubbub.rendering import upper_text


def published(claim: Claim, figures: Mapping[str, Figure], results: Results) -> Finding:
    """Judge whether a number of the paper is one that a run of ours might give."""
    wanted = cast(Published, claim.parameters)
    evidence = ClaimEvidence.of(claim, figures, results)
    if len(evidence.settings) != 1:
        return undecided(claim, NO_SUCH_SETTING)
    if evidence.about_place and not is_paper_data(results.place):
        return undecided(claim, _elsewhere(results))
    setting = evidence.settings[0]
    methods = [*evidence.deltas, "mle"] if wanted.method == "em" else [wanted.method]
    columns = {method: evidence.column(setting, method, wanted.distance) for method in methods}
    columns = {method: column for method, column in columns.items() if len(column)}
    if not columns or (wanted.method == "em" and "mle" not in columns):
        return undecided(claim, f"{method_in_sentence('mle' if columns else methods[0])} was not measured")
    if wanted.within is not None:
        return evidence.marked(_near(claim, wanted, methods[0], columns[methods[0]]))
    fits = {method: _fits(column, wanted.value, wanted.level) for method, column in columns.items()}
    words = {
        HOLDS: "in the range",
        FAILS: "far outside the range",
        OPEN: "outside the range, but these runs do not exclude it",
    }
    details = tuple(
        (
            method_in_sentence(method),
            f"{spread(column)} over {plural(len(column), 'run')}: {number(wanted.value)} is {words[fits[method]]}",
        )
        for method, column in columns.items()
    )
    if wanted.method != "em":
        column = columns[wanted.method]
        measured = f"median {spread(column)} over {plural(len(column), 'run')}; the paper has {wanted.value}"
        return evidence.marked(Finding(claim, fits[wanted.method], measured, details))
    return evidence.marked(Finding(claim, _of_em(fits), _em_sentence(columns, fits, wanted.value), details))


def one_delta(claim: Claim, figures: Mapping[str, Figure], results: Results) -> Finding:
    """Judge whether EM with one delta gives all of its published numbers, and say which deltas do."""
    wanted = cast(OneDelta, claim.parameters)
    if not is_paper_data(results.place):
        return undecided(claim, _elsewhere(results))
    missing = sorted({name for name, _, _ in wanted.numbers} - set(figures))
    if missing:
        return undecided(claim, f"not measured: it needs the figures {', '.join(missing)}, too")
    fits: dict[str, list[tuple[str, str]]] = {}  # by method: each number, and whether it fits
    for name, truth, value in wanted.numbers:
        (setting,) = figures[name].of(truth=truth)
        for method in results.methods(figures[name], setting):
            if method.startswith("em ") or method == "mle":
                column = results.column(figures[name], setting, method, "tv")
                fits.setdefault(method, []).append((value, _fits(column, float(value), wanted.level)))
    every = len(wanted.numbers)
    inside = {method: [value for value, fit in each if fit == HOLDS] for method, each in fits.items()}
    verdicts = {method: _all([fit for _, fit in each], every) for method, each in fits.items()}
    if "mle" not in verdicts:
        return undecided(claim, "the exact maximum was not measured")
    fitting = [method.removeprefix("em ") for method in fits if verdicts[method] == HOLDS and method != "mle"]
    details = tuple(
        (method_in_sentence(m), f"in the range: {', '.join(values) or 'none'}") for m, values in inside.items()
    )
    which = f"delta {' or '.join(fitting)}" if fitting else "no delta that we tried"
    exact = f"the exact maximum gives {len(inside['mle'])} of them"
    measured = f"{which} gives all {every}, each in the range of our runs; {exact}"
    return Finding(claim, _of_em(verdicts), measured, details)


def _all(fits: list[str], every: int) -> str:
    """Return whether one and the same method gives all numbers."""
    if FAILS in fits or len(fits) < every:
        return FAILS
    return OPEN if OPEN in fits else HOLDS


def _near(claim: Claim, wanted: Published, method: str, column: Floats) -> Finding:
    assert wanted.within is not None  # noqa: S101  # the caller has asked
    middle = float(np.median(column))
    verdict = HOLDS if abs(middle - wanted.value) <= wanted.within else FAILS
    if len(column) < min_runs(claim.parameters.level):
        verdict = OPEN
    apart = f"{abs(middle - wanted.value):.4f} apart, {wanted.within:g} allowed"
    measured = f"median {spread(column)} over {plural(len(column), 'run')}; the paper has {wanted.value}: {apart}"
    return Finding(claim, verdict, measured, ((method_in_sentence(method), spread(column)),))


def _fits(column: Floats, value: float, level: float) -> str:
    """Return whether a number is in the range of the runs, or where one more run would hardly be."""
    if column.min() <= value <= column.max():
        return HOLDS
    if len(column) < min_runs(level):
        return OPEN
    low, high = prediction_interval(column, level)
    return OPEN if low <= value <= high else FAILS


def _of_em(fits: Mapping[str, str]) -> str:
    stopped = [fit for method, fit in fits.items() if method != "mle"]
    if HOLDS in stopped:
        return {HOLDS: HOLDS, FAILS: EARLY, OPEN: OPEN}[fits["mle"]]
    return fits["mle"] if OPEN not in stopped else OPEN


def _em_sentence(columns: Mapping[str, Floats], fits: Mapping[str, str], value: float) -> str:
    inside = [method for method, fit in fits.items() if fit == HOLDS]
    nearest = min(
        (method for method in columns if method != "mle"), key=lambda method: abs(np.median(columns[method]) - value)
    )
    deltas = ", ".join(method.removeprefix("em ") for method in inside if method != "mle")
    where = f"in our range with delta {deltas}" if deltas else "in our range with no delta"
    count = plural(len(columns[nearest]), "run")
    best = f"nearest is {method_in_sentence(nearest)}, median {spread(columns[nearest])} over {count}"
    exact = f"the exact maximum has {spread(columns['mle'])} over {plural(len(columns['mle']), 'run')}"
    return f"{value} is {where}; {best}; {exact}"


def empty(claim: Claim, figures: Mapping[str, Figure], results: Results) -> Finding:
    """Judge whether the maximum leaves many cells empty, and say at which delta EM does.

    No exact zero is asked for: EM has none after finitely many updates, and a solver on a computer none either, or by
    luck. Less than half a person is none.
    """
    wanted = cast(Empty, claim.parameters)
    evidence = ClaimEvidence.of(claim, figures, results)
    if len(evidence.settings) != 1:
        return undecided(claim, NO_SUCH_SETTING)
    setting = evidence.settings[0]
    cells = len(setting.truth.domain(results.place))
    many = wanted.share * cells
    judgements, details = {}, []
    for method in (*evidence.deltas, "mle"):
        column = evidence.column(setting, method, "empty_values")
        if len(column):
            asked = Comparison(reporting(setting), ("many", "empty cells"), np.full(len(column), many), column)
            judgements[method] = judge([asked], wanted)
            zeros = evidence.column(setting, method, "zero_values")
            said = {AGREES: "many", REVERSED: "not many"}.get(judgements[method].judged[0].outcome, "not decided")
            count = plural(len(column), "run")
            text = f"{said}: {spread(column)} of {cells} empty, {spread(zeros)} exactly 0, over {count}"
            details.append((method_in_sentence(method), text))
    if "mle" not in judgements:
        return undecided(claim, "the exact maximum was not measured", tuple(details))
    having = [
        method.removeprefix("em ") for method, each in judgements.items() if each.verdict == HOLDS and method != "mle"
    ]
    when = f"with delta {', '.join(having)}" if having else "with no delta that was measured"
    column = evidence.column(setting, "mle", "empty_values")
    measured = (
        f"the exact maximum leaves {spread(column)} of {cells} cells with less than half a person over "
        f"{plural(len(column), 'run')}; EM leaves {wanted.share:.0%} of them so {when}"
    )
    return evidence.marked(Finding(claim, judgements["mle"].verdict, measured, tuple(details)))


def holes(claim: Claim, figures: Mapping[str, Figure], results: Results) -> Finding:  # noqa: ARG001  # called alike
    """Judge whether there are cells without anybody."""
    place = results.place
    measured = f"{data_name(place)}: {place.holes} of {len(place.grid)} cells are empty"
    if not is_paper_data(place):
        return undecided(claim, f"{_elsewhere(results)}; {measured}")
    return Finding(claim, HOLDS if place.holes else FAILS, f"{measured}, {place.users:,} check-ins in the others")


def certified(claim: Claim, figures: Mapping[str, Figure], results: Results) -> Finding:
    """Judge whether the maximum was found, by its certificate: no statistics are needed."""
    wanted = cast(Certified, claim.parameters)
    evidence = ClaimEvidence.of(claim, figures, results)
    gaps = {setting: evidence.column(setting, "mle", "gap") for setting in evidence.settings}
    if not gaps or not all(len(column) for column in gaps.values()):
        return undecided(claim, "the exact maximum was not measured everywhere")
    largest = {setting: np.where(np.isnan(column), np.inf, column).max() for setting, column in gaps.items()}
    good = [setting for setting, gap in largest.items() if gap <= wanted.gap]
    details = tuple(
        (setting.name, f"gap at most {upper_text(gap)}" if np.isfinite(gap) else "no certificate")
        for setting, gap in largest.items()
    )
    count = plural(sum(len(column) for column in gaps.values()), "run")
    measured = (
        f"certified to within {wanted.gap:g} nats per user in {len(good)} of {len(gaps)} settings, {count} altogether"
    )
    return Finding(claim, HOLDS if len(good) == len(gaps) else FAILS, measured, details)


def turning(claim: Claim, figures: Mapping[str, Figure], results: Results) -> Finding:
    """Judge whether EM's distance from the truth, having been smallest, rises again by a stated share."""
    wanted = cast(Turning, claim.parameters)
    evidence = ClaimEvidence.of(claim, figures, results)
    if not evidence.settings:
        return undecided(claim, NO_SUCH_SETTING)
    comparisons, details = [], []
    for setting in evidence.figure.settings:
        path = results.path(evidence.figure, setting)
        errors = np.array(path["tv"], dtype=np.float64)
        best, last = errors.min(axis=1), errors[:, -1]
        at = np.array(path["updates"], dtype=np.float64)[errors.argmin(axis=1)]
        updates = f"{path['updates'][-1]:,}"
        where = f"{setting.name}, TV"
        details.append((where, f"best {spread(best)} after {spread(at)} updates; {spread(last)} after {updates}"))
        if setting in evidence.settings:
            names = (f"{1 + wanted.rise:g} times the best", f"after {updates} updates")
            comparisons.append(Comparison(where, names, (1 + wanted.rise) * best, last))
    judgement = judge(comparisons, wanted)
    details += [(each.comparison.name, each.text) for each in judgement.judged]
    return evidence.marked(Finding(claim, judgement.verdict, judgement.sentence, tuple(details)))


def _elsewhere(results: Results) -> str:
    place = results.place
    kind = "a synthetic city" if place.synthetic else "not the paper's city"
    return (
        f"cannot be compared: {data_name(place)} is {kind} ({place.users:,} people on {place.grid.columns} x "
        f"{place.grid.rows} cells; the paper has {PAPER_USERS:,} on 24 x 16)"
    )
