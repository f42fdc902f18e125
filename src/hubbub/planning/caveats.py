"""What a reader of a plan must know besides the answer: assumptions, limits, and where numbers are too good."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hubbub.planning.explanation import listed
from hubbub.planning.number_format import many
from hubbub.planning.question import EPSILON, USERS, Question, by_privacy, label_of, worst_needed, worst_settings
from hubbub.planning.result import Needed, SettingResult

TRUTHS = {
    "uniform": "a uniform truth",
    "bell": "a truth of one bell in the middle",
    "bells": "a truth of three bells",
    "zipf": "a truth by Zipf's law",
    "block": "a truth of one block, and nothing elsewhere",
    "dominant": "a truth with one dominant value",
    "counts": "the counts that were given",
    "given": "the shares that were given",
    "estimate": "the estimate that was given",
}
AT_UNIFORM = {"auto": "answers it unless the reports refute it", "ibu": "starts there", "ems": "starts there"}
SIGMAS = 4.0  # by which the check of a closed form may be off before it is told


def assumed(question: Question, settings: Sequence[SettingResult]) -> str:
    """Return what the answer rests on: the truth, the method, the simulated studies."""
    names = question.truths
    truth = TRUTHS.get(names[0], f"the truth of {names[0]}") if len(names) == 1 else f"the worst of {len(names)} truths"
    text = f"This assumes {truth} and estimates by {question.method}"
    runs = sorted({one.runs for one in settings})
    if runs:
        each = f"{runs[0]:,}" if runs[0] == runs[-1] else f"{runs[0]:,} to {runs[-1]:,}"
        text += f"; errors are medians of {each} simulated studies (seed {question.seed})"
    return f"{text}."


def notes(question: Question, settings: Sequence[SettingResult], needed: Sequence[Needed]) -> list[str]:
    """Return the notes, the most important first."""
    found = [_too_good(question), _worst_truth(question, settings, needed), *_out_of_reach(needed)]
    found += [_unequal(question, settings, needed), _extrapolated(settings, needed), _closed(settings)]
    return [note for note in found if note]


def _too_good(question: Question) -> str:
    if question.truths != ("uniform",) or question.method not in AT_UNIFORM:
        return ""
    return (
        f"The truth is assumed to be uniform, and {question.method} {AT_UNIFORM[question.method]}: real errors will be "
        "larger. Assume another shape, such as bells, or worst for all of them."
    )


def _worst_truth(question: Question, settings: Sequence[SettingResult], needed: Sequence[Needed]) -> str:
    if len(question.truths) == 1:
        return ""
    worst: list[SettingResult] | list[Needed] = worst_needed(needed) if needed else worst_settings(settings, question)
    met = list(dict.fromkeys(one.truth for one in worst))
    found = met[0] if len(met) == 1 else f"not always the same: {listed(met)}"
    return f"The worst of the {len(question.truths)} truths that were tried is {found}."


def _out_of_reach(needed: Sequence[Needed]) -> list[str]:
    """Return why something was not found, or what else is to be said of it; alike reasons once."""
    by_reason: dict[str, list[str]] = {}
    for one in worst_needed(needed):
        reason = one.reason or ("" if one.value is not None else _limit(one))
        if reason:
            by_reason.setdefault(reason.rstrip("."), []).append(label_of(one))
    return [f"{listed(list(dict.fromkeys(names)))}: {reason}." for reason, names in by_reason.items()]


def _limit(one: Needed) -> str:
    return f"not even {one.most:,.6g} {'users' if one.what == USERS else 'of epsilon'} would do"


def _unequal(question: Question, settings: Sequence[SettingResult], needed: Sequence[Needed]) -> str:
    """Say that ways to report spend differently, where no two can be compared at equal privacy."""
    if question.looks_for == EPSILON:
        return ""
    groups = by_privacy(worst_needed(needed)) if needed else by_privacy(_at_one(worst_settings(settings, question)))
    names = {label_of(one) for group in groups for one in group}
    if len(names) < 2 or any(len(group) > 1 for group in groups):
        return ""
    return "These ways to report do not spend the same epsilon: they are not compared at equal privacy."


def _at_one(settings: Sequence[SettingResult]) -> list[SettingResult]:
    return [one for one in settings if one.users == settings[0].users]


def _extrapolated(settings: Sequence[SettingResult], needed: Sequence[Needed]) -> str:
    many_users = [one for one in settings if one.extrapolated]
    if not many_users and not any(one.extrapolated for one in needed):
        return ""
    return "Numbers marked * are extrapolated from fewer users than could be simulated."


def _closed(settings: Sequence[SettingResult]) -> str:
    """Say where inversion spreads otherwise than its formula says, by more than so many runs can explain."""
    off = [
        one
        for one in settings
        if one.closed is not None and abs(one.closed - 1.0) > SIGMAS / math.sqrt(2.0 * max(one.runs, 1))
    ]
    if not off:
        return ""
    worst = max(off, key=lambda one: abs((one.closed or 1.0) - 1.0))
    return (
        f"Check: the simulated spread of plain inversion is {worst.closed:.2f} times its closed form "
        f"({label_of(worst)}, {many(worst.users, 'user')}), more than chance explains: do not rely on this plan."
    )
