"""A plan in plain sentences: what to expect or what it takes, how the candidates compare, and what was assumed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from hubbub.core.text import listed, plural
from hubbub.planning.answers import (
    EPSILON,
    SAME_EPSILON,
    USERS,
    Answer,
    AnswerType,
    Needed,
    Question,
    SettingResult,
    by_privacy,
    label_of,
    plain_epsilon,
)
from hubbub.planning.number_format import (
    approximately,
    per_unit_text,
    privacy_text,
    reach_text,
    two_digits,
    user_count,
)

MAX_SENTENCES = 4  # with more answers, only the first and the last get a sentence
MAX_COMPARED = 3  # candidates that one sentence compares with the best
MIN_RATIO = 1.05  # smaller differences are called equal, however precise the simulation is

TRUTH_TEXTS = {
    "uniform": "a uniform truth",
    "bell": "a truth with one bell in the middle",
    "bells": "a truth with three bells",
    "zipf": "a truth that follows Zipf's law",
    "block": "a truth with one flat block and nothing elsewhere",
    "dominant": "a truth with one dominant value",
    "counts": "the counts you passed",
    "given": "the shares you passed",
    "estimate": "the estimate you passed",
}

Interval = tuple[float, float, float]  # a number and its 95% interval, given the number of simulated studies


class CandidateComparison(NamedTuple):
    """The words that compare candidates with the best: "needs 1.6 times as many", "needs about as many"."""

    verbs: tuple[str, str]  # singular, plural
    times_what: str
    about_what: str

    def verb(self, names: Sequence[str]) -> str:
        """Return the verb for one or several names."""
        return self.verbs[len(names) > 1]


COMPARE_USERS = CandidateComparison(("needs", "need"), "as many", "as many")
COMPARE_EPSILON = CandidateComparison(("needs", "need"), "as much", "as much")
COMPARE_ERRORS = CandidateComparison(("has", "have"), "the error", "the same error")


def answer_sentences(question: Question, settings: Sequence[SettingResult], needed: Sequence[Needed]) -> list[str]:
    """Return one sentence for each epsilon and number of users, or for the first and the last of many."""
    if question.looks_for == USERS:
        sentences = [_users_needed(group, question, len(needed) > 1) for group in by_privacy(needed)]
    elif question.looks_for == EPSILON:
        groups = [[need for need in needed if need.users == users] for users in question.users]
        sentences = [_epsilon_needed(group, question, len(group) > 1) for group in groups if group]
    else:
        has_several = len({(setting.candidate, setting.reports_per_user) for setting in settings}) > 1
        by_users = [[setting for setting in settings if setting.users == users] for users in question.users]
        sentences = [_expected(group, question, has_several) for some in by_users for group in by_privacy(some)]
    if len(sentences) > MAX_SENTENCES:
        return [sentences[0], sentences[-1], f"The table shows the {len(sentences) - 2} cases in between."]
    return sentences


def assumption_sentence(question: Question, settings: Sequence[SettingResult]) -> str:
    """Return what the answer assumes: the truth, the method, the simulated studies; and what the distance means."""
    names = question.truths
    if len(names) > 1:
        truth = f"the worst of {len(names)} truths"
    else:
        truth = TRUTH_TEXTS.get(names[0], f"the counts in {names[0]}")
    text = f"This assumes {truth}, estimated by {question.method}"
    runs = sorted({setting.runs for setting in settings})
    if runs:
        number = f"{runs[0]:,}" if runs[0] == runs[-1] else f"{runs[0]:,} to {runs[-1]:,}"
        seed = f"seed {question.seed}" if isinstance(question.seed, int) else "drawn with your generator"
        text += f"; errors are medians of {number} simulated studies ({seed})"
    if question.distance == "tv":
        return f"{text}. Total variation is the share of people whom the estimate puts at a wrong value."
    return f"{text}. The earth mover's distance is how far the estimate misplaces people on average."


def _users_needed(group: Sequence[Needed], question: Question, has_several: bool) -> str:
    start, target = f"With {_common_privacy(group, question)}", question.target_text
    reached, missed = _ranked(group)
    if not reached:
        return f"{start}, {target} is out of reach{_for_names(missed) if has_several else ''}."
    best = reached[0]
    number = f"{_needed_text(best, user_count)} users{' (extrapolated)' if best.extrapolated else ''}"
    compared = _compared(best, reached[1:], lambda need: need.interval, COMPARE_USERS)
    return f"{start}, {_subject(best, group, has_several)} {number} for {target}{compared}{_missed(missed)}."


def _epsilon_needed(group: Sequence[Needed], question: Question, has_several: bool) -> str:
    start, target = f"With {plural(group[0].users or 0, 'user')}", question.target_text
    reached, missed = _ranked(group)
    if not reached:
        return f"{start}, no epsilon tried reaches {target}{_for_names(missed) if has_several else ''}."
    best = reached[0]
    number = _of(_needed_text(best, two_digits)) + (" (extrapolated)" if best.extrapolated else "")
    spends = _spends(best, has_radius=question.radius is not None)
    compared = _compared(best, reached[1:], _as_plain, COMPARE_EPSILON)
    subject = _subject(best, [best], has_several)
    return f"{start}, {subject} an epsilon {number}{spends} for {target}{compared}{_missed(missed)}."


def _expected(group: Sequence[SettingResult], question: Question, has_several: bool) -> str:
    best, *others = sorted(group, key=lambda setting: question.error(setting).median)
    error, unit = question.error(best), question.distance_unit
    article = "a" if question.distance == "tv" else "an"
    most = f"below {two_digits(error.ninth)}{unit}" if error.ninth > 0 else "0"

    def interval(setting: SettingResult) -> Interval:
        spread = question.error(setting)
        return spread.median, spread.low, spread.high

    return (
        f"With {plural(best.users, 'user')} and {_common_privacy(group, question)}, expect {article} "
        f"{question.distance_name} {_of(approximately(*interval(best)))}{unit}"
        f"{f' with {_name(best, group)}' if has_several else ''} "
        f"({most} in 9 of 10 studies{'; extrapolated' if best.extrapolated else ''})"
        f"{_compared(best, others, interval, COMPARE_ERRORS)}."
    )


# -- comparing ---------------------------------------------------------------------------------------------


def _compared(
    best: AnswerType,
    others: Sequence[AnswerType],
    interval: Callable[[AnswerType], Interval],
    words: CandidateComparison,
) -> str:
    """Say how many times more the others need or err; those that the simulation cannot distinguish are called equal."""
    value, _, high = interval(best)
    worse: list[tuple[float, str]] = []
    equal: list[str] = []
    for other in others:
        ratio = interval(other)[0] / value if value > 0 else math.inf
        if interval(other)[1] > high and ratio >= MIN_RATIO:
            worse.append((ratio, label_of(other)))
        else:
            equal.append(label_of(other))
    text = _worse_text(worse, words, "at least " if isinstance(best, Needed) and best.is_upper_bound else "")
    if equal:
        text += f"; {listed(equal, most=MAX_COMPARED - 1)} {words.verb(equal)} about {words.about_what}"
    return text


def _worse_text(worse: Sequence[tuple[float, str]], words: CandidateComparison, at_least: str) -> str:
    """Return how much worse each candidate is than the best; equal ratios are named once."""
    if not worse:
        return ""
    if math.isinf(worse[0][0]):  # the best has no error at all
        names = [name for _, name in worse]
        return f"; {listed(names, most=MAX_COMPARED - 1)} {'does' if len(names) == 1 else 'do'} worse"
    shown = worse if len(worse) <= MAX_COMPARED else worse[: MAX_COMPARED - 1]
    names_by_ratio: dict[str, list[str]] = {}
    for ratio, name in shown:
        names_by_ratio.setdefault(two_digits(ratio), []).append(name)
    parts = [
        f"{listed(names)} {words.verb(names)} {at_least}{ratio} times {words.times_what}"
        for ratio, names in names_by_ratio.items()
    ]
    if len(shown) < len(worse):
        most = f"up to {two_digits(worse[-1][0])} times"
        parts.append(f"the other {len(worse) - len(shown)} {words.verbs[1]} {most} {words.times_what}")
    return f"; {listed(parts)}"


def _ranked(group: Sequence[Needed]) -> tuple[list[Needed], list[Needed]]:
    """Return those that reach the target, the best first, and those that do not."""
    reached = sorted((need for need in group if need.value is not None), key=lambda need: _as_plain(need)[0])
    return reached, [need for need in group if need.value is None]


def _as_plain(need: Needed) -> Interval:
    """Return what is compared: users, or epsilon as plain epsilon where that is known."""
    value, low, high = need.interval
    plain = plain_epsilon(need) if need.what == EPSILON else None
    if plain is None or value <= 0:
        return value, low, high
    return plain, plain * low / value, plain * high / value


# -- pieces of sentences -----------------------------------------------------------------------------------


def _common_privacy(group: Sequence[Answer], question: Question) -> str:
    """Return what every user of a group spends."""
    has_radius = question.radius is not None
    texts = {privacy_text(answer.privacy, has_radius=has_radius) for answer in group}
    if len(texts) == 1:
        return texts.pop()
    metric = next((each.privacy for each in group if each.privacy and each.privacy.per_unit is not None), None)
    reach = "" if metric is None else f" {reach_text(metric, has_radius=has_radius)}"
    return f"plain epsilon {plain_epsilon(group[0]):.3g}{reach}"


def _name(best: Answer, group: Sequence[Answer]) -> str:
    """Return the candidate's label, with its epsilon per unit where the group has different kinds of epsilon."""
    is_mixed = len({privacy_text(answer.privacy, has_radius=True) for answer in group}) > 1
    if is_mixed and best.privacy is not None and best.privacy.per_unit is not None:
        return f"{label_of(best)} at {per_unit_text(best.privacy)}"
    return label_of(best)


def _subject(best: Needed, group: Sequence[Needed], has_several: bool) -> str:
    return f"{_name(best, group)} needs" if has_several else "you need"


def _needed_text(need: Needed, as_text: Callable[[float], str]) -> str:
    return f"at most {as_text(need.value or 0.0)}" if need.is_upper_bound else approximately(*need.interval, as_text)


def _of(number: str) -> str:
    return number if number.startswith("between") else f"of {number}"


def _spends(best: Needed, *, has_radius: bool) -> str:
    """Return what a user spends, unless it is the epsilon itself: that may be for each report, or per unit."""
    spent = plain_epsilon(best)
    if best.privacy is None or spent is None:
        return ""
    if best.privacy.per_unit is not None:
        text = privacy_text(best.privacy, has_radius=has_radius).replace(" (", ", ", 1).removesuffix(")")
        return f" (each user spends {text})"
    return "" if math.isclose(spent, best.value or 0.0, rel_tol=SAME_EPSILON) else f" (each user spends {spent:.3g})"


def _for_names(missed: Sequence[Needed]) -> str:
    return f" for {listed([label_of(need) for need in missed])}"


def _missed(missed: Sequence[Needed]) -> str:
    return f"; {listed([label_of(need) for need in missed])} cannot reach it" if missed else ""
