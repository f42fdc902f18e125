"""A plan in plain sentences: what to expect or what it takes, how the candidates compare, what was assumed, notes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from hubbub.auditing.exact_epsilon import LOOSE_SHARE
from hubbub.core.text import listed, plural, whole_percent
from hubbub.planning.answers import (
    EPSILON,
    ERROR,
    GROUP_USERS,
    MEDIAN,
    POWER,
    SAME_EPSILON,
    USERS,
    Answer,
    Needed,
    Question,
    SettingResult,
    by_privacy,
)
from hubbub.planning.number_format import (
    approximately,
    per_unit_text,
    power_text,
    privacy_text,
    reach_text,
    two_digits,
    user_count,
)
from hubbub.planning.race import ROUNDS

MAX_SENTENCES = 4  # with more answers, only the first and the last get a sentence
MAX_COMPARED = 3  # candidates that one sentence compares with the best
MIN_RATIO = 1.05  # smaller differences are called equal, however precise the simulation is
MAX_CLAIM_ROUNDING = 1e-9  # relative: by which a realised epsilon may exceed a claim that floats have rounded
MAX_SIGMAS = 4.0  # by which the simulation may miss a closed form before a note says so

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
DISTANCE_MEANINGS = {
    "tv": "Total variation is the share of people whom the estimate puts at a wrong value.",
    "emd": "The earth mover's distance is how far the estimate misplaces people on average.",
}
FLATTERED_METHODS = {
    "auto": "returns it unless the reports contradict it",
    "ibu": "starts from it",
    "ems": "starts from it",
}


OTHER_GROUP = (
    "In the other, the share of one value is larger by the difference (smaller, if it would be above 1), and the other "
    "shares change in proportion; the value that is hardest to tell counts."
)


class ComparisonWords(NamedTuple):
    """The words that compare candidates with the best: "needs 1.6 times as many", "needs about as many"."""

    verbs: tuple[str, str]  # singular, plural
    times_what: str
    about_what: str

    def verb(self, names: Sequence[str]) -> str:
        """Return the verb for one or several names."""
        return self.verbs[len(names) > 1]


COMPARISON_WORDS = {
    USERS: ComparisonWords(("needs", "need"), "as many", "as many"),
    GROUP_USERS: ComparisonWords(("needs", "need"), "as many", "as many"),
    EPSILON: ComparisonWords(("needs", "need"), "as much", "as much"),
    ERROR: ComparisonWords(("has", "have"), "the error", "the same error"),
}


def answer_sentences(question: Question, settings: Sequence[SettingResult], needed: Sequence[Needed]) -> list[str]:
    """Return one sentence for each epsilon and number of users, or for the first and the last of many."""
    if question.looks_for in (USERS, GROUP_USERS):
        sentences = [_needed_sentence(group, question, len(needed) > 1) for group in by_privacy(needed, question)]
    elif question.looks_for == POWER:
        has_several = len({need.key for need in needed}) > 1
        of_users = [[need for need in needed if need.users == users] for users in question.users]
        sentences = [
            _power_sentence(group, question, has_several) for some in of_users for group in by_privacy(some, question)
        ]
    elif question.looks_for == EPSILON:
        groups = [[need for need in needed if need.users == users] for users in question.users]
        sentences = [_needed_sentence(group, question, len(group) > 1) for group in groups if group]
    else:
        has_several = len({(setting.candidate, setting.reports_per_user) for setting in settings}) > 1
        by_users = [[setting for setting in settings if setting.users == users] for users in question.users]
        sentences = [
            _error_sentence(group, question, has_several) for some in by_users for group in by_privacy(some, question)
        ]
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
    if question.difference is not None:
        return f"This assumes {truth} in one group. {OTHER_GROUP} {_test(question)}"
    text = f"This assumes {truth}, estimated by {question.method}"
    runs = sorted({setting.runs for setting in settings})
    if runs:
        number = f"{runs[0]:,}" if runs[0] == runs[-1] else f"{runs[0]:,} to {runs[-1]:,}"
        seed = f"seed {question.seed}" if isinstance(question.seed, int) else "drawn with your generator"
        is_median = question.looks_for != USERS or question.confidence == MEDIAN
        numbers = "errors are medians of" if is_median else "the numbers come from"
        text += f"; {numbers} {number} simulated studies ({seed})"
    return f"{text}. {DISTANCE_MEANINGS[question.distance]}"


def _test(question: Question) -> str:
    """Return which test is planned, and where the number comes from."""
    return (
        f"The test is two-sided at level {whole_percent(round(1.0 - question.level, 12))}, and the answer follows from "
        "the variance of the estimate: nothing is simulated."
    )


def _needed_sentence(group: Sequence[Needed], question: Question, has_several: bool) -> str:
    """Return the users that the best candidate of a group needs, or the epsilon, and how the others compare."""
    finds_users, target = question.looks_for != EPSILON, question.target_text
    start = f"With {_common_privacy(group, question) if finds_users else plural(group[0].users or 0, 'user')}"
    reached = sorted((need for need in group if need.value is not None), key=lambda need: question.compared(need)[0])
    missed = [need.label for need in group if need.value is None]
    if not reached:
        failure = f"{target} is out of reach" if finds_users else f"no epsilon tried reaches {target}"
        return f"{start}, {failure}{f' for {listed(missed)}' if has_several else ''}."
    best = reached[0]
    as_text = user_count if finds_users else two_digits
    number = f"at most {as_text(best.interval[0])}" if best.is_upper_bound else approximately(*best.interval, as_text)
    extrapolated = " (extrapolated)" if best.extrapolated else ""
    if finds_users:
        number = f"{number} users{' per group' if question.looks_for == GROUP_USERS else ''}{extrapolated}"
    else:
        number = f"an epsilon {_of(number)}{extrapolated}{_spends(best, question)}"
    subject = f"{_name(best, group if finds_users else [best])} needs" if has_several else "you need"
    unreached = f"; {listed(missed)} cannot reach it" if missed else ""
    return f"{start}, {subject} {number} {question.purpose}{_compared(question, best, reached[1:])}{unreached}."


def _power_sentence(group: Sequence[Needed], question: Question, has_several: bool) -> str:
    """Return the power of each candidate of a group with one number of users, the largest first."""
    start = f"With {plural(group[0].users or 0, 'user')} per group and {_common_privacy(group, question)}"
    known = sorted(((need.value, need) for need in group if need.value is not None), key=lambda pair: -pair[0])
    missed = [need.label for need in group if need.value is None]
    if not known:
        return f"{start}, {question.target_text} is out of reach{f' for {listed(missed)}' if has_several else ''}."
    (power, best), *others = known
    subject = f"{_name(best, group)} detects" if has_several else "you detect"
    shown = others if len(others) <= MAX_COMPARED else others[: MAX_COMPARED - 1]
    compared = [f"{need.label} with {power_text(own)}" for own, need in shown]
    if len(shown) < len(others):
        compared.append(f"the other {len(others) - len(shown)} with {power_text(others[-1][0])} or more")
    also = f"; {listed(compared)}" if compared else ""
    unreached = f"; {listed(missed)} cannot" if missed else ""
    return f"{start}, {subject} {question.target_text} with power {power_text(power)}{also}{unreached}."


def _error_sentence(group: Sequence[SettingResult], question: Question, has_several: bool) -> str:
    best, *others = sorted(group, key=lambda setting: question.error(setting).median)
    ninth, unit = question.error(best).ninth, question.distance_unit
    most = f"below {two_digits(ninth)}{unit}" if ninth > 0 else "0"
    return (
        f"With {plural(best.users, 'user')} and {_common_privacy(group, question)}, expect {question.distance_article} "
        f"{_of(approximately(*question.compared(best)))}{unit}"
        f"{f' with {_name(best, group)}' if has_several else ''} "
        f"({most} in 9 of 10 studies{'; extrapolated' if best.extrapolated else ''})"
        f"{_compared(question, best, others)}."
    )


def _compared(question: Question, best: Answer, others: Sequence[Answer]) -> str:
    """Say how many times more the others need or err; those that the simulation cannot distinguish are called equal."""
    words = COMPARISON_WORDS[question.looks_for]
    value, _, high = question.compared(best)
    worse: list[tuple[float, str]] = []
    equal: list[str] = []
    for other in others:
        number, low, _ = question.compared(other)
        ratio = number / value if value > 0 else math.inf
        if low > high and ratio >= MIN_RATIO:
            worse.append((ratio, other.label))
        else:
            equal.append(other.label)
    text = _worse_text(worse, words, "at least " if isinstance(best, Needed) and best.is_upper_bound else "")
    if equal:
        text += f"; {listed(equal, most=MAX_COMPARED - 1)} {words.verb(equal)} about {words.about_what}"
    return text


def _worse_text(worse: Sequence[tuple[float, str]], words: ComparisonWords, at_least: str) -> str:
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


def _common_privacy(group: Sequence[Answer], question: Question) -> str:
    """Return what every user of a group spends."""
    if question.central_epsilon is not None:
        return f"central epsilon {question.central_epsilon:.3g} (delta {question.delta:.3g})"
    has_radius = question.radius is not None
    texts = {privacy_text(answer.spent, has_radius=has_radius) for answer in group}
    if len(texts) == 1:
        return texts.pop()
    metric = [reach_text(each.spent, has_radius=has_radius) for each in group if each.spent.per_unit is not None]
    return " ".join([f"plain epsilon {group[0].spent.plain:.3g}", *metric[:1]])


def _name(best: Answer, group: Sequence[Answer]) -> str:
    """Return the candidate's label, with its epsilon per unit where the group has different kinds of epsilon."""
    is_mixed = len({privacy_text(answer.spent, has_radius=True) for answer in group}) > 1
    if is_mixed and best.spent.per_unit is None and best.spent.plain is not None:
        return f"{best.label} at epsilon {best.spent.plain:.3g}"
    if is_mixed and best.spent.per_unit is not None:
        return f"{best.label} at {per_unit_text(best.spent)}"
    return best.label


def _of(number: str) -> str:
    return number if number.startswith("between") else f"of {number}"


def _spends(best: Needed, question: Question) -> str:
    """Return what a user spends, unless it is the epsilon itself: that may be for each report, or per unit."""
    plain = best.spent.plain
    if plain is None:
        return ""
    if best.spent.per_unit is not None:
        text = privacy_text(best.spent, has_radius=question.radius is not None).replace(" (", ", ", 1)
        return f" (each user spends {text.removesuffix(')')})"
    return "" if math.isclose(plain, best.value or 0.0, rel_tol=SAME_EPSILON) else f" (each user spends {plain:.3g})"


# -- notes -------------------------------------------------------------------------------------------------


def plan_notes(question: Question, settings: Sequence[SettingResult], needed: Sequence[Needed]) -> list[str]:
    """Return what a reader should know besides the answer, the most important first."""
    answers: Sequence[Answer] = needed or settings
    notes = _claim_notes(answers, compared=question.central_epsilon is None)
    if question.central_epsilon is not None:
        notes.append(
            "The epsilon of each candidate is the largest whose shuffled reports meet the central epsilon: it holds if "
            "everybody uses the same mechanism once, and nobody but a trusted shuffler sees who sent what."
        )
    is_simulated = question.difference is None
    if is_simulated and question.truths == ("uniform",) and question.method in FLATTERED_METHODS:
        notes.append(
            f"A uniform truth flatters {question.method}, which {FLATTERED_METHODS[question.method]}: real errors will "
            "be larger. Assume another shape, such as bells, or worst for all shapes."
        )
    if len(question.truths) > 1:
        worst = list(dict.fromkeys(answer.truth for answer in answers))
        depending = ", depending on the case" if len(worst) > 1 else ""
        notes.append(f"Of the {len(question.truths)} truths tried, the worst is {listed(worst, word='or')}{depending}.")
    labels_by_reason: dict[str, dict[str, None]] = {}
    for need in needed:
        labels_by_reason.setdefault(need.reason, {})[need.label] = None
    notes += [f"{listed(list(labels))}: {reason}." for reason, labels in labels_by_reason.items() if reason]
    if question.looks_for != EPSILON and _are_incomparable(question, settings, needed):
        notes.append("These candidates spend different epsilons, so they are not compared with each other.")
    notes += _search_notes(question, settings)
    if any(setting.extrapolated for setting in settings) or any(need.extrapolated for need in needed):
        notes.append("Numbers marked * are extrapolated: that many users cannot be simulated.")
    return notes + _closed_form_note(settings)


def _search_notes(question: Question, settings: Sequence[SettingResult]) -> list[str]:
    """Say which candidates were left early or not tried, and which were simulated by sums."""
    notes = []
    for runs, factor in ROUNDS:
        if names := list(dict.fromkeys(each.label for each in settings if each.screened and each.runs == runs)):
            notes.append(f"{listed(names)}: left after {_left_after(runs, factor)}.")
    if question.refused_kinds:
        notes.append(f"Not possible on this domain: {listed(list(question.refused_kinds))}.")
    sums = list(dict.fromkeys(setting.label for setting in settings if setting.from_sums))
    if sums:
        notes.append(
            f"{listed(sums)}: estimated from how many reports support each value, because so many whole reports take "
            "too long to simulate; real errors are as large, or up to about an eighth smaller."
        )
    return notes


def _left_after(runs: int, factor: float) -> str:
    times = "larger than" if factor == 1.0 else f"more than {factor:g} times as large as"
    if runs == 1:
        return f"one simulated study each: the error was {times} the best candidate's"
    return f"{runs} simulated studies each: all errors were {times} the largest of the best candidate's"


def _claim_notes(answers: Sequence[Answer], *, compared: bool) -> list[str]:
    """Say which candidates realise another epsilon than they claim, by which they are `compared`."""
    shares_by_label: dict[str, list[float]] = {}
    for answer in answers:
        if answer.realised_share is not None:
            shares_by_label.setdefault(answer.label, []).append(answer.realised_share)
    broken = [label for label, shares in shares_by_label.items() if max(shares) > 1.0 + MAX_CLAIM_ROUNDING]
    notes = []
    if broken:
        notes.append(f"{listed(broken)}: users spend more epsilon than is claimed; an audit says how much.")
    for label, shares in shares_by_label.items() if compared else ():
        if max(shares) < LOOSE_SHARE:
            texts = list(dict.fromkeys(f"{share:.0%}" for share in (min(shares), max(shares))))
            notes.append(
                f"{label} realises {' to '.join(texts)} of the epsilon that it claims: its reports have more noise "
                "than the claim allows, and candidates are compared by their claims."
            )
    return notes


def _are_incomparable(question: Question, settings: Sequence[SettingResult], needed: Sequence[Needed]) -> bool:
    """Whether there are several candidates, and no two of them at equal privacy."""
    first_needed = [need for need in needed if need.users == needed[0].users]
    first_settings = [setting for setting in settings if setting.users == settings[0].users]
    groups: Sequence[Sequence[Answer]] = (
        by_privacy(first_needed, question) if needed else by_privacy(first_settings, question)
    )
    if question.central_epsilon is not None:
        return False
    return len({answer.label for group in groups for answer in group}) > 1 and all(len(group) == 1 for group in groups)


def _closed_form_note(settings: Sequence[SettingResult]) -> list[str]:
    """Warn where simulated inversion misses its closed form by more than the number of runs explains."""
    misses = [
        (abs(setting.closed - 1.0), setting)
        for setting in settings
        if setting.closed is not None and abs(setting.closed - 1.0) > MAX_SIGMAS / math.sqrt(2.0 * max(setting.runs, 1))
    ]
    if not misses:
        return []
    _, worst = max(misses, key=lambda miss: miss[0])
    return [
        f"Do not rely on this plan: the simulated spread of matrix inversion is {worst.closed:.2f} times its closed "
        f"form ({worst.label}, {plural(worst.users, 'user')}), which chance does not explain."
    ]
