"""What is said about two attributes in words, the same wherever people read it."""

from __future__ import annotations

import math

from hubbub.comparison.comparison_sentences import p_text

NOT_SEEN = "they say something about each of them, but nothing about the two together"


def verdict_sentence(names: tuple[str, str], p_value: float, *, rejected: bool) -> str:
    """Return the result of the test; no test shows that attributes are independent.

    >>> verdict_sentence(("tea", "town"), 0.003, rejected=True)
    'tea and town are related (p = 0.003).'
    >>> verdict_sentence(("tea", "town"), 0.41, rejected=False)
    'No sign of dependence between tea and town (p = 0.41).'
    """
    first, second = names
    if rejected:
        return f"{first} and {second} are related ({p_text(p_value)})."
    return f"No sign of dependence between {first} and {second} ({p_text(p_value)})."


def strength_sentence(low: float, high: float, *, rejected: bool, is_bounded: bool) -> str:
    """Return how strong the association may be.

    >>> strength_sentence(0.1, 0.31, rejected=True, is_bounded=True)
    "Cramer's V, the strength of the association, is between 0.1 and 0.31."
    >>> strength_sentence(0.0, 0.134, rejected=False, is_bounded=True)
    "An association with a Cramer's V of up to 0.134 could go unnoticed."
    >>> strength_sentence(0.0, 1.0, rejected=False, is_bounded=False)
    'Even the strongest association could go unnoticed: these reports are too few, or too noisy.'
    """
    if rejected:
        return f"Cramer's V, the strength of the association, is between {low:.3g} and {high:.3g}."
    if not is_bounded:
        return "Even the strongest association could go unnoticed: these reports are too few, or too noisy."
    return f"An association with a Cramer's V of up to {high:.3g} could go unnoticed."


def odds_sentence(
    names: tuple[str, str], firsts: tuple[str, str], seconds: tuple[str, str], low: float, high: float
) -> str:
    """Return how the odds of two values of the second attribute differ between two values of the first.

    >>> odds_sentence(("tea", "town"), ("yes", "no"), ("a", "b"), 1.5, 3.42)
    'The odds of town a against b are 1.5 to 3.42 times as high for tea yes as for tea no.'
    """
    first, second = names
    if low <= 0.0 and math.isinf(high):
        times = "any number of times"
    elif math.isinf(high):
        times = f"at least {low:.3g} times"
    elif low <= 0.0:
        times = f"at most {high:.3g} times"
    else:
        times = f"{low:.3g} to {high:.3g} times"
    what = f"The odds of {second} {seconds[0]} against {seconds[1]} are {times} as high"
    return f"{what} for {first} {firsts[0]} as for {first} {firsts[1]}."


def untestable_sentence(names: tuple[str, str], reason: str) -> str:
    """Return that the reports cannot tell.

    >>> untestable_sentence(("tea", "town"), "all reports are about tea alone")
    'These reports cannot tell whether tea and town are related: all reports are about tea alone.'
    """
    return f"These reports cannot tell whether {names[0]} and {names[1]} are related: {reason}."
