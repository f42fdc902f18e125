"""Notes on a plan: where its numbers are too good, why a target is out of reach, what is not compared."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hubbub.core.text import listed, plural
from hubbub.planning.answers import EPSILON, Answer, Needed, Question, SettingResult, by_privacy, label_of

FLATTERED_METHODS = {
    "auto": "returns it unless the reports contradict it",
    "ibu": "starts from it",
    "ems": "starts from it",
}
MAX_SIGMAS = 4.0  # by which the simulation may miss a closed form before a note says so


def plan_notes(question: Question, settings: Sequence[SettingResult], needed: Sequence[Needed]) -> list[str]:
    """Return the notes, the most important first."""
    answers: Sequence[Answer] = needed or settings
    notes = [_flattering_truth(question), _worst_truth(question, answers), *_reasons(needed)]
    notes += [_different_epsilons(question, settings, needed), _extrapolated([*settings, *needed])]
    notes += [_closed_form(settings)]
    return [note for note in notes if note]


def _flattering_truth(question: Question) -> str:
    if question.truths != ("uniform",) or question.method not in FLATTERED_METHODS:
        return ""
    return (
        f"A uniform truth flatters {question.method}, which {FLATTERED_METHODS[question.method]}: real errors will be "
        "larger. Assume another shape, such as bells, or worst for all shapes."
    )


def _worst_truth(question: Question, answers: Sequence[Answer]) -> str:
    if len(question.truths) == 1:
        return ""
    worst = list(dict.fromkeys(answer.truth for answer in answers))
    depending = ", depending on the case" if len(worst) > 1 else ""
    return f"Of the {len(question.truths)} truths tried, the worst is {listed(worst, word='or')}{depending}."


def _reasons(needed: Sequence[Needed]) -> list[str]:
    """Return why targets are out of reach or already reached; equal reasons once."""
    names_by_reason: dict[str, list[str]] = {}
    for need in needed:
        if need.reason:
            names_by_reason.setdefault(need.reason, []).append(label_of(need))
    return [f"{listed(list(dict.fromkeys(names)))}: {reason}." for reason, names in names_by_reason.items()]


def _different_epsilons(question: Question, settings: Sequence[SettingResult], needed: Sequence[Needed]) -> str:
    """Say that candidates spend differently, where no two can be compared at equal privacy."""
    if question.looks_for == EPSILON:
        return ""
    first_users = [setting for setting in settings if setting.users == settings[0].users]
    groups: Sequence[Sequence[Answer]] = by_privacy(needed) if needed else by_privacy(first_users)
    names = {label_of(answer) for group in groups for answer in group}
    if len(names) < 2 or any(len(group) > 1 for group in groups):
        return ""
    return "These candidates spend different epsilons, so they are not compared with each other."


def _extrapolated(answers: Sequence[Answer]) -> str:
    if not any(answer.extrapolated for answer in answers):
        return ""
    return "Numbers marked * are extrapolated: that many users cannot be simulated."


def _closed_form(settings: Sequence[SettingResult]) -> str:
    """Warn where simulated inversion misses its closed form by more than the number of runs explains."""
    misses = [
        (abs(setting.closed - 1.0), setting)
        for setting in settings
        if setting.closed is not None and abs(setting.closed - 1.0) > MAX_SIGMAS / math.sqrt(2.0 * max(setting.runs, 1))
    ]
    if not misses:
        return ""
    _, worst = max(misses, key=lambda miss: miss[0])
    return (
        f"Do not rely on this plan: the simulated spread of matrix inversion is {worst.closed:.2f} times its closed "
        f"form ({label_of(worst)}, {plural(worst.users, 'user')}), which chance does not explain."
    )
