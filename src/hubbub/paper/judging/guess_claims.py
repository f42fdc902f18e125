"""Judge claims about guesses of one person's value from many simulated reports, by binomial tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np
from scipy import stats

from hubbub.paper.claims import Claim, Guessing
from hubbub.paper.figure_specs import Figure
from hubbub.paper.judging.finding import FAILS, HOLDS, OPEN, Finding, number, undecided
from hubbub.paper.results import Results


def errors_vanish(claim: Claim, figures: Mapping[str, Figure], results: Results) -> Finding:
    """Judge whether wrong guesses die out with the number of reports: they become fewer, and stay below the bound.

    The bound falls exponentially, so what stays below it does, too.
    """
    figure, level = figures[claim.figure], claim.parameters.level
    chosen = [each for each in results.guesses(figure) if each["name"] in claim.parameters.mechanisms]
    if not chosen:
        return undecided(claim, "not measured")
    tests = sum(len(each["reports"]) for each in chosen)
    details, above, fewer = [], 0, []
    for each in chosen:
        values = int(figure.options["values"])
        people = int(each["people"]) // values  # "wrong" is that of the value where it is most frequent
        for count, wrong, bound in zip(each["reports"], each["wrong"], each["union"], strict=True):
            missed = round(wrong * people)
            chance = min(1.0, float(stats.binom.sf(missed - 1, people, min(bound, 1.0))) * values * tests)
            above += chance <= level
            details.append(
                (f"{each['name']} {each['epsilon']:g}, k = {count}", f"wrong {number(wrong)}, bound {number(bound)}")
            )
        first, last = (round(each["wrong"][place] * people) for place in (0, -1))
        p = float(
            stats.fisher_exact(np.array([[last, people - last], [first, people - first]]), alternative="less").pvalue
        )
        fewer.append(p * len(chosen) <= level and each["union"][-1] < each["union"][0])
    ends = "; ".join(
        f"{each['name']}: {number(each['wrong'][0])} with k = {each['reports'][0]}, {number(each['wrong'][-1])} with "
        f"k = {each['reports'][-1]} (bound {number(each['union'][-1])})"
        for each in chosen
    )
    verdict = FAILS if above else HOLDS if all(fewer) else OPEN
    return Finding(claim, verdict, f"share of wrong guesses, {ends}", tuple(details))


def errors_stay(claim: Claim, figures: Mapping[str, Figure], results: Results) -> Finding:
    """Judge whether wrong guesses tend to a constant where rows are equal."""
    wanted = cast(Guessing, claim.parameters)
    figure = figures[claim.figure]
    chosen = [each for each in results.guesses(figure) if each["name"] in wanted.mechanisms]
    if not chosen:
        return undecided(claim, "not measured")
    (each,) = chosen
    values = int(figure.options["values"])
    people = int(each["people"]) // values
    missed = round(each["wrong"][-1] * people)
    chance = min(1.0, float(stats.binomtest(missed, people, wanted.limit).pvalue) * values)
    details = tuple(
        (f"{each['name']} {each['epsilon']:g}, k = {count}", f"wrong {number(wrong)}")
        for count, wrong in zip(each["reports"], each["wrong"], strict=True)
    )
    width = float(stats.norm.isf(wanted.level / (2 * values)) * np.sqrt(wanted.limit * (1 - wanted.limit) / people))
    measured = (
        f"{number(each['wrong'][-1])} of the guesses are wrong with k = {each['reports'][-1]}, for the worst of "
        f"{values} values; {wanted.limit:g} is expected, within {number(width)} by chance"
    )
    if chance <= wanted.level:
        return Finding(claim, FAILS, measured, details)
    return Finding(claim, HOLDS if width <= 0.1 else OPEN, measured, details)
