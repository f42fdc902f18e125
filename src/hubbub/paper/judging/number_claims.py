"""Judge claims about single numbers: published values, empty cells, certified maxima, shares of wrong guesses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import stats

from hubbub.core.arrays import Floats
from hubbub.core.text import plural
from hubbub.paper.judging.claim_evidence import (
    FAILS,
    HOLDS,
    NO_SUCH_SETTING,
    OPEN,
    ClaimEvidence,
    Finding,
    number,
    spread,
)
from hubbub.paper.judging.paired_comparisons import AGREES, REVERSED, PairedComparison, judge, with_early_stopping
from hubbub.paper.judging.paired_statistics import min_runs, prediction_interval
from hubbub.paper.places import PAPER_USERS, PAPER_ZONE, Place
from hubbub.paper.wording import method_in_sentence
from hubbub.rendering import upper_text

MAXIMUM_NOT_MEASURED = "the exact maximum was not measured"
MAX_CHANCE_WIDTH = 0.1  # of a share of wrong guesses: with more, too few people were simulated to tell
RANGE_WORDS = {
    HOLDS: "in the range",
    FAILS: "far outside the range",
    OPEN: "outside the range, but these runs do not exclude it",
}


# -- the paper's own numbers ---------------------------------------------------------------------------------


def published(evidence: ClaimEvidence) -> Finding:
    """Judge whether a number of the paper is one that a run of ours might give."""
    wanted = evidence.parameters
    if len(evidence.settings) != 1:
        return evidence.undecided(NO_SUCH_SETTING)
    if evidence.about_place and not _is_paper_data(evidence.results.place):
        return evidence.undecided(_elsewhere(evidence.results.place))
    about_em = wanted.method == "em"
    methods = [*evidence.deltas, "mle"] if about_em else [wanted.method]
    columns = evidence.columns(evidence.settings[0], methods, wanted.distance)
    if not columns or (about_em and "mle" not in columns):
        return evidence.undecided(f"{method_in_sentence('mle' if columns else methods[0])} was not measured")
    texts = {method: _over_runs(column) for method, column in columns.items()}
    if wanted.within is not None:
        return _near(evidence, columns[methods[0]], wanted.within)
    fits = {method: _fits(column, wanted.value, wanted.level) for method, column in columns.items()}
    details = [
        (method_in_sentence(method), f"{texts[method]}: {number(wanted.value)} is {RANGE_WORDS[fit]}")
        for method, fit in fits.items()
    ]
    if not about_em:
        measured = f"median {texts[wanted.method]}; the paper has {wanted.value}"
        return evidence.finding(fits[wanted.method], measured, details)
    deltas = ", ".join(_deltas(fits))
    nearest = min(
        (method for method in columns if method != "mle"),
        key=lambda method: abs(np.median(columns[method]) - wanted.value),
    )
    measured = (
        f"{wanted.value} is in our range with {f'delta {deltas}' if deltas else 'no delta'}; nearest is "
        f"{method_in_sentence(nearest)}, median {texts[nearest]}; the exact maximum has {texts['mle']}"
    )
    return evidence.finding(_of_em(fits), measured, details)


def one_delta(evidence: ClaimEvidence) -> Finding:
    """Judge whether EM with one delta gives all of its published numbers, and say which deltas do."""
    wanted, figures, results = evidence.parameters, evidence.figures, evidence.results
    if not _is_paper_data(results.place):
        return evidence.undecided(_elsewhere(results.place))
    missing = sorted({name for name, _, _ in wanted.numbers} - set(figures))
    if missing:
        return evidence.undecided(f"not measured: it needs the figures {', '.join(missing)}, too")
    fits: dict[str, list[tuple[str, str]]] = {}  # by method: each number, and whether it fits
    for name, truth, value in wanted.numbers:
        (setting,) = (setting for setting in figures[name].settings if setting.truth.name == truth)
        for method in results.methods(figures[name], setting):
            if method.startswith("em ") or method == "mle":
                column = results.column(figures[name], setting, method, "tv")
                fits.setdefault(method, []).append((value, _fits(column, float(value), wanted.level)))
    if "mle" not in fits:
        return evidence.undecided(MAXIMUM_NOT_MEASURED)
    every = len(wanted.numbers)
    inside, verdicts = {}, {}
    for method, numbers in fits.items():
        inside[method] = [value for value, fit in numbers if fit == HOLDS]
        outcomes = [fit for _, fit in numbers]
        failed = FAILS in outcomes or len(outcomes) < every
        verdicts[method] = FAILS if failed else OPEN if OPEN in outcomes else HOLDS
    details = [
        (method_in_sentence(method), f"in the range: {', '.join(values) or 'none'}")
        for method, values in inside.items()
    ]
    fitting = _deltas(verdicts)
    which = f"delta {' or '.join(fitting)}" if fitting else "no delta that we tried"
    exact = f"the exact maximum gives {len(inside['mle'])} of them"
    measured = f"{which} gives all {every}, each in the range of our runs; {exact}"
    return evidence.finding(_of_em(verdicts), measured, details)


def _near(evidence: ClaimEvidence, column: Floats, within: float) -> Finding:
    """Return whether our median is near the number, whatever the range of the runs."""
    wanted = evidence.parameters
    apart = abs(float(np.median(column)) - wanted.value)
    verdict = HOLDS if apart <= within else FAILS
    if len(column) < min_runs(wanted.level):
        verdict = OPEN
    measured = f"median {_over_runs(column)}; the paper has {wanted.value}: {apart:.4f} apart, {within:g} allowed"
    return evidence.finding(verdict, measured, [(method_in_sentence(wanted.method), spread(column))])


def _fits(column: Floats, value: float, level: float) -> str:
    """Return whether a number is in the range of the runs, or where one more run would hardly be."""
    if column.min() <= value <= column.max():
        return HOLDS
    if len(column) < min_runs(level):
        return OPEN
    low, high = prediction_interval(column, level)
    return OPEN if low <= value <= high else FAILS


def _of_em(verdicts: Mapping[str, str]) -> str:
    stopped = [verdict for method, verdict in verdicts.items() if method != "mle"]
    if HOLDS in stopped:
        return with_early_stopping(HOLDS, verdicts["mle"])
    return OPEN if OPEN in stopped else verdicts["mle"]


def _deltas(verdicts: Mapping[str, str]) -> list[str]:
    """Return the deltas with which it holds."""
    return [method.removeprefix("em ") for method, verdict in verdicts.items() if verdict == HOLDS and method != "mle"]


def _over_runs(column: Floats) -> str:
    return f"{spread(column)} over {plural(len(column), 'run')}"


def _is_paper_data(place: Place) -> bool:
    """Return whether these are the paper's people, as far as one can tell: its grid, and as many to one percent."""
    same_grid = (place.grid.columns, place.grid.rows) == (PAPER_ZONE.columns, PAPER_ZONE.rows)
    return not place.synthetic and same_grid and abs(place.users - PAPER_USERS) <= PAPER_USERS / 100


def _elsewhere(place: Place) -> str:
    kind = "a synthetic city" if place.synthetic else "not the paper's city"
    return (
        f"cannot be compared: {place.name} is {kind} ({place.users:,} people on {place.grid.columns} x "
        f"{place.grid.rows} cells; the paper has {PAPER_USERS:,} on 24 x 16)"
    )


# -- cells, certificates and paths ---------------------------------------------------------------------------


def empty(evidence: ClaimEvidence) -> Finding:
    """Judge whether the maximum leaves many cells empty, and say at which delta EM does.

    No exact zero is asked for: EM has none after finitely many updates, and a solver on a computer none either, or by
    luck. Less than half a person is none.
    """
    wanted = evidence.parameters
    if len(evidence.settings) != 1:
        return evidence.undecided(NO_SUCH_SETTING)
    setting = evidence.settings[0]
    cells = len(setting.truth.domain(evidence.results.place))
    columns = evidence.columns(setting, (*evidence.deltas, "mle"), "empty_values")
    verdicts, details = {}, []
    for method, column in columns.items():
        many = np.full(len(column), wanted.share * cells)
        judgement = judge([PairedComparison(setting.reporting, ("many", "empty cells"), many, column)], wanted)
        verdicts[method] = judgement.verdict
        answer = {AGREES: "many", REVERSED: "not many"}.get(judgement.judged[0].outcome, "not decided")
        zeros = spread(evidence.column(setting, method, "zero_values"))
        text = f"{answer}: {spread(column)} of {cells} empty, {zeros} exactly 0, over {plural(len(column), 'run')}"
        details.append((method_in_sentence(method), text))
    if "mle" not in verdicts:
        return evidence.undecided(MAXIMUM_NOT_MEASURED, details)
    deltas = ", ".join(_deltas(verdicts))
    measured = (
        f"the exact maximum leaves {spread(columns['mle'])} of {cells} cells with less than half a person over "
        f"{plural(len(columns['mle']), 'run')}; EM leaves {wanted.share:.0%} of them so "
        + (f"with delta {deltas}" if deltas else "with no delta that was measured")
    )
    return evidence.finding(verdicts["mle"], measured, details)


def holes(evidence: ClaimEvidence) -> Finding:
    """Judge whether there are cells without anybody."""
    place = evidence.results.place
    measured = f"{place.name}: {place.holes} of {len(place.grid)} cells are empty"
    if not _is_paper_data(place):
        return evidence.undecided(f"{_elsewhere(place)}; {measured}")
    return evidence.finding(HOLDS if place.holes else FAILS, f"{measured}, {place.users:,} check-ins in the others")


def certified(evidence: ClaimEvidence) -> Finding:
    """Judge whether the maximum was found, by its certificate: no statistics are needed."""
    most = evidence.parameters.gap
    gaps = {setting: evidence.column(setting, "mle", "gap") for setting in evidence.settings}
    if not gaps or not all(len(column) for column in gaps.values()):
        return evidence.undecided(f"{MAXIMUM_NOT_MEASURED} everywhere")
    largest = {setting: np.where(np.isnan(column), np.inf, column).max() for setting, column in gaps.items()}
    good = sum(bool(gap <= most) for gap in largest.values())
    details = [
        (setting.name, f"gap at most {upper_text(gap)}" if np.isfinite(gap) else "no certificate")
        for setting, gap in largest.items()
    ]
    runs = plural(sum(map(len, gaps.values())), "run")
    measured = f"certified to within {most:g} nats per user in {good} of {len(gaps)} settings, {runs} altogether"
    return evidence.finding(HOLDS if good == len(gaps) else FAILS, measured, details)


def turning(evidence: ClaimEvidence) -> Finding:
    """Judge whether EM's distance from the truth, having been smallest, rises again by a stated share."""
    if not evidence.settings:
        return evidence.undecided(NO_SUCH_SETTING)
    factor = 1 + evidence.parameters.rise
    comparisons, details = [], []
    for setting in evidence.figure.settings:
        path = evidence.results.path(evidence.figure, setting)
        errors = np.array(path["tv"], dtype=np.float64)
        best, last = errors.min(axis=1), errors[:, -1]
        at = np.array(path["updates"], dtype=np.float64)[errors.argmin(axis=1)]
        updates = f"{path['updates'][-1]:,}"
        where = f"{setting.name}, TV"
        details.append((where, f"best {spread(best)} after {spread(at)} updates; {spread(last)} after {updates}"))
        if setting in evidence.settings:
            names = (f"{factor:g} times the best", f"after {updates} updates")
            comparisons.append(PairedComparison(where, names, factor * best, last))
    judgement = judge(comparisons, evidence.parameters)
    return evidence.finding(judgement.verdict, judgement.sentence, [*details, *judgement.details])


# -- one person's value, guessed from many simulated reports -------------------------------------------------


def errors_vanish(evidence: ClaimEvidence) -> Finding:
    """Judge whether wrong guesses die out with the number of reports: they become fewer, and stay below the bound.

    The bound falls exponentially, so what stays below it does, too.
    """
    level = evidence.parameters.level
    chosen, values = _guesses(evidence)
    if not chosen:
        return evidence.undecided("not measured")
    tests = sum(len(guesses["reports"]) for guesses in chosen)
    details, above, fewer, ends = [], 0, [], []
    for guesses in chosen:
        people = _people(guesses, values)
        for count, wrong, bound in zip(guesses["reports"], guesses["wrong"], guesses["union"], strict=True):
            missed = round(wrong * people)
            chance = min(1.0, float(stats.binom.sf(missed - 1, people, min(bound, 1.0))) * values * tests)
            above += chance <= level
            details.append((_guess_name(guesses, count), f"wrong {number(wrong)}, bound {number(bound)}"))
        first, last = guesses["wrong"][0], guesses["wrong"][-1]
        table = [[missed := round(share * people), people - missed] for share in (last, first)]
        p_value = float(stats.fisher_exact(np.array(table), alternative="less").pvalue)
        fewer.append(p_value * len(chosen) <= level and guesses["union"][-1] < guesses["union"][0])
        ends.append(
            f"{guesses['name']}: {number(first)} with k = {guesses['reports'][0]}, {number(last)} with "
            f"k = {guesses['reports'][-1]} (bound {number(guesses['union'][-1])})"
        )
    verdict = FAILS if above else HOLDS if all(fewer) else OPEN
    return evidence.finding(verdict, f"share of wrong guesses, {'; '.join(ends)}", details)


def errors_stay(evidence: ClaimEvidence) -> Finding:
    """Judge whether wrong guesses tend to a constant where rows are equal."""
    level, limit = evidence.parameters.level, evidence.parameters.limit
    chosen, values = _guesses(evidence)
    if not chosen:
        return evidence.undecided("not measured")
    (guesses,) = chosen
    people = _people(guesses, values)
    last = guesses["wrong"][-1]
    chance = min(1.0, float(stats.binomtest(round(last * people), people, limit).pvalue) * values)
    width = float(stats.norm.isf(level / (2 * values)) * np.sqrt(limit * (1 - limit) / people))
    verdict = FAILS if chance <= level else HOLDS if width <= MAX_CHANCE_WIDTH else OPEN
    measured = (
        f"{number(last)} of the guesses are wrong with k = {guesses['reports'][-1]}, for the worst of "
        f"{values} values; {limit:g} is expected, within {number(width)} by chance"
    )
    shares = zip(guesses["reports"], guesses["wrong"], strict=True)
    details = [(_guess_name(guesses, count), f"wrong {number(wrong)}") for count, wrong in shares]
    return evidence.finding(verdict, measured, details)


def _guesses(evidence: ClaimEvidence) -> tuple[list[Mapping[str, Any]], int]:
    """Return what was simulated of the claim's mechanisms, and the number of values."""
    simulated = evidence.results.guesses(evidence.figure)
    chosen = [guesses for guesses in simulated if guesses["name"] in evidence.parameters.mechanisms]
    return chosen, int(evidence.figure.options["values"])


def _people(guesses: Mapping[str, Any], values: int) -> int:
    """Return the number of people behind a share of wrong guesses: those with the value guessed worst."""
    return int(guesses["people"]) // values


def _guess_name(guesses: Mapping[str, Any], count: int) -> str:
    return f"{guesses['name']} {guesses['epsilon']:g}, k = {count}"


CHECKS = (published, one_delta, empty, holes, certified, turning, errors_vanish, errors_stay)
