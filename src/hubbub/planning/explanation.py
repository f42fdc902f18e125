"""A plan in plain sentences: what to expect or what it takes, how ways to report compare, and what was assumed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from hubbub.planning.number_format import about, epsilon_words, many, people, reach_words, times, told
from hubbub.planning.question import (
    EPSILON,
    SAME,
    USERS,
    Found,
    Question,
    by_privacy,
    equivalent,
    is_least,
    label_of,
    worst_needed,
    worst_settings,
)
from hubbub.planning.result import Needed, SettingResult, Spread

MOST = 4  # sentences of one kind; beyond, the first and the last are told
NAMED = 3  # ways to report that one sentence compares with the best
EVEN = 1.05  # ratio below which two are as good as each other, whatever the simulation can tell

Value = tuple[float, float, float]  # a number, and its low and high end by the simulation


def main_sentences(question: Question, settings: Sequence[SettingResult], needed: Sequence[Needed]) -> list[str]:
    """Return the answer: one sentence for each privacy, or for the first and the last where there are many."""
    if question.looks_for == USERS:
        groups = by_privacy(worst_needed(needed))
        found = [_users_needed(group, question, len(needed) > 1) for group in groups]
    elif question.looks_for == EPSILON:
        answers = worst_needed(needed)
        grouped = [[one for one in answers if one.users == users] for users in question.users]
        found = [_epsilon_needed(group, question, len(needed) > 1) for group in grouped if group]
    else:
        worst = worst_settings(settings, question)
        several = len({(one.candidate, one.reports_per_user) for one in worst}) > 1
        at_users = [[one for one in worst if one.users == users] for users in question.users]
        found = [_expected(group, question, several) for own in at_users for group in by_privacy(own)]
    if len(found) > MOST:
        return [found[0], found[-1], f"The table has the {len(found) - 2} answers between these."]
    return found


def _users_needed(group: Sequence[Needed], question: Question, several: bool) -> str:
    target = _target(question)
    reached, missed = _ranked(group)
    if not reached:
        return f"With {_privacy(group, question)}, {target} is out of reach{_names(missed, several)}."
    best = reached[0]
    number = f"{_about(best, people)} users{_extrapolated(best)}"
    text = f"With {_privacy(group, question)} you need {number} for {target}{_by(best, group, several)}"
    words = f"needs {_at_least(best)}{{}} times fewer than"
    text += _compared(best, reached[1:], _value, words, ("needs about as many", "need about as many"))
    return f"{text}{_missed(missed)}."


def _epsilon_needed(group: Sequence[Needed], question: Question, several: bool) -> str:
    target, users = _target(question), many(group[0].users or 0, "user")
    reached, missed = _ranked(group)
    if not reached:
        return f"With {users}, {target} is out of reach of any epsilon that was tried{_names(missed, several)}."
    best = reached[0]
    number = f"{_about(best, told)}{_extrapolated(best)}"
    spends = _spends(best, stated=question.radius is not None)
    text = f"With {users} you need an epsilon {_of(number)}{spends} for {target}{_by(best, [best], several)}"
    words = f"needs {_at_least(best)}{{}} times less than"
    text += _compared(best, reached[1:], _spent, words, ("needs about as much", "need about as much"))
    return f"{text}{_missed(missed)}."


def _expected(group: Sequence[SettingResult], question: Question, several: bool) -> str:
    spreads = {id(one): question.spread(one) for one in group}
    ranked = sorted((one for one in group if spreads[id(one)] is not None), key=lambda one: _median(spreads[id(one)]))
    start = f"With {many(group[0].users, 'user')} and {_privacy(group, question)}"
    if not ranked:
        return f"{start}, no {question.distance_name} can be told."
    best, unit = ranked[0], question.distance_unit
    spread = spreads[id(best)]
    assert spread is not None  # noqa: S101  # these were left out
    below = f"below {told(spread.ninth)}{unit}" if spread.ninth > 0 else "none at all"
    text = (
        f"{start}, expect {_article(question)} {question.distance_name} "
        f"{_of(about(spread.median, spread.low, spread.high))}{unit} "
        f"({_who(best, group, several)}nine studies of ten: {below}{_guessed(best)})"
    )

    def value(one: SettingResult) -> Value:
        own = spreads[id(one)]
        assert own is not None  # noqa: S101
        return own.median, own.low, own.high

    text += _compared(best, ranked[1:], value, "errs {} times less than", ("does about as well", "do about as well"))
    return f"{text}."


def _compared(
    best: Found,
    others: Sequence[Found],
    value: Callable[[Found], Value],
    words: str,
    alike_words: tuple[str, str],
) -> str:
    """Say how many times better the best is; what the simulation cannot tell apart is called alike."""
    if not others:
        return ""
    own, _, top = value(best)
    ratios = [(one, value(one)[0] / own if own > 0 else float("inf"), value(one)[1] > top) for one in others]
    clear = [(one, ratio) for one, ratio, apart in ratios if apart and EVEN <= ratio < float("inf")]
    alike = [one for one, ratio, apart in ratios if not apart or ratio < EVEN]
    worse = [label_of(one) for one, ratio, apart in ratios if apart and ratio == float("inf")]  # than no error at all
    text = f"; {listed(worse)} {'does' if len(worse) == 1 else 'do'} worse" if worse else ""
    if clear:
        text += f"; {label_of(best)} {_clearly(clear, words)} here"
    if alike:
        names: list[str] = [label_of(one) for one in alike]
        if len(names) > NAMED:
            names = [*names[: NAMED - 1], f"{len(names) - NAMED + 1} more"]
        text += f"; {listed(names)} {alike_words[len(alike) > 1]}"
    return text


def _clearly(clear: Sequence[tuple[Found, float]], words: str) -> str:
    """Return by how much the best is better than each; equal numbers, and the verb, are said once."""
    shown = clear if len(clear) <= NAMED else clear[: NAMED - 1]
    named: dict[str, list[str]] = {}
    for one, ratio in shown:
        named.setdefault(times(ratio), []).append(label_of(one))
    parts = [f"{words.format(number)} {listed(names)}" for number, names in named.items()]
    if len(shown) < len(clear):
        limit = words.format(f"up to {times(clear[-1][1])}")
        parts.append(f"{limit} the other {len(clear) - len(shown)}")
    parts[1:] = [part.split(" ", 1)[1] for part in parts[1:]]
    return listed(parts)


def listed(names: Sequence[str]) -> str:
    """Return names as a list for a sentence.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _privacy(group: Sequence[SettingResult] | Sequence[Needed], question: Question) -> str:
    """Return what all of a group spend."""
    stated = question.radius is not None
    words = {epsilon_words(one.privacy, stated) for one in group}
    if len(words) == 1:
        return words.pop()
    metric = next((one.privacy for one in group if one.privacy is not None and one.privacy.per_unit is not None), None)
    reach = "" if metric is None else f" {reach_words(metric, stated)}"
    return f"a plain epsilon of {equivalent(group[0].privacy):.3g}{reach}"


def _by(best: SettingResult | Needed, group: Sequence[SettingResult] | Sequence[Needed], several: bool) -> str:
    """Return who is meant, where there are several; with its epsilon per unit where the group has no one epsilon."""
    if not several:
        return ""
    mixed = len({epsilon_words(one.privacy, stated=True) for one in group}) > 1
    if mixed and best.privacy is not None and best.privacy.per_unit is not None:
        return f" ({label_of(best)}, epsilon {best.privacy.per_unit:.3g} per {best.privacy.unit or 'unit'})"
    return f" ({label_of(best)})"


def _who(best: SettingResult | Needed, group: Sequence[SettingResult] | Sequence[Needed], several: bool) -> str:
    """Return the same to stand before more in brackets."""
    name = _by(best, group, several)
    return f"{name[2:-1]}; " if name else ""


def _extrapolated(best: Needed) -> str:
    return " (extrapolated)" if best.extrapolated else ""


def _guessed(best: SettingResult | Needed) -> str:
    return "; extrapolated" if best.extrapolated else ""


def _names(missed: Sequence[Needed], several: bool) -> str:
    return f" ({listed([label_of(one) for one in missed])})" if several and missed else ""


def _of(number: str) -> str:
    return number if number.startswith("between") else f"of {number}"


def _about(one: Needed, words: Callable[[float], str]) -> str:
    return f"at most {words(one.value or 0.0)}" if is_least(one) else about(*_value(one), words)


def _at_least(best: Needed) -> str:
    """Say that the best is better by even more, where it may need even less."""
    return "at least " if is_least(best) else ""


def _spends(best: Needed, *, stated: bool) -> str:
    """Return what a user spends, unless it is the epsilon that was found: that may be of each report, or per unit."""
    spent = equivalent(best.privacy)
    if best.privacy is None or spent is None:
        return ""
    if best.privacy.per_unit is not None:
        words = epsilon_words(best.privacy, stated).replace(" (", ", ", 1).removesuffix(")")
        return f" (a user spends {words})"
    return "" if math.isclose(spent, best.value or 0.0, rel_tol=SAME) else f" (a user spends {spent:.3g} in all)"


def _missed(missed: Sequence[Needed]) -> str:
    return f"; it is out of reach for {listed([label_of(one) for one in missed])}" if missed else ""


def _ranked(group: Sequence[Needed]) -> tuple[list[Needed], list[Needed]]:
    reached = sorted((one for one in group if one.value is not None), key=lambda one: _spent(one)[0])
    return reached, [one for one in group if one.value is None]


def _value(one: Needed) -> Value:
    value = one.value or 0.0
    return value, value if one.low is None else one.low, value if one.high is None else one.high


def _spent(one: Needed) -> Value:
    """Return what is compared: users, or epsilon as plain epsilon where it is known as such."""
    value, low, high = _value(one)
    plain = equivalent(one.privacy) if one.what == EPSILON else None
    if plain is None or value <= 0:
        return value, low, high
    return plain, plain * low / value, plain * high / value


def _median(spread: Spread | None) -> float:
    return float("inf") if spread is None else spread.median


def _target(question: Question) -> str:
    share = "" if question.confidence == 0.5 else f" in {100 * question.confidence:g}% of studies"
    return f"{_article(question)} {question.distance_name} of {question.target:.3g}{question.distance_unit}{share}"


def _article(question: Question) -> str:
    return "a" if question.distance == "tv" else "an"
