"""How far to trust it, for people who have not read the paper: questions, answers in a word or two, and sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from hubbub.auditing.privacy_budget import privacy_budget
from hubbub.core.arrays import Floats
from hubbub.core.text import percent, quoted, times, whole_percent
from hubbub.domains import Domain
from hubbub.goodness_of_fit import FitTest
from hubbub.identifiability import Identification
from hubbub.intake.epsilon_totals import totals
from hubbub.intake.study import Study
from hubbub.poisoning import Shift
from hubbub.reporting.page import BAD, GOOD, UNKNOWN, WARNING, Verdict
from hubbub.reports.privacy_spent import Spent
from hubbub.trust_check import Check

ONE = "Is there one answer?"
FIT = "Do the reports fit the study?"
FAKES = "Could fake users change it?"
PRECISE = "How precise is it?"
PRIVATE = "What did it cost in privacy?"

CLEAR, ROUGH = 0.25, 1.0  # half an interval, relative to the largest share: up to which it is precise, and rough...
NARROW, WIDE = 0.1, 0.25  # ...and as a share of everybody
SMALL, LARGE = 3.0, 10.0  # points that each percent of fakes moves
MILD, STRONG = 2.0, 8.0  # total plain epsilon: odds change by at most 7.4 times; by more than 3,000 times
UNSEEN = "No test sees everything: users who lie in a way that honest users could have answered look honest."


def unknown(remedy: str) -> tuple[Verdict, ...]:
    """Return the verdicts where nothing was checked, and what to do about it."""
    return tuple(Verdict(question, "Not checked", remedy) for question in (ONE, FIT, FAKES, PRECISE))


def verdicts_of(check: Check, domain: Domain, share: Floats) -> tuple[Verdict, ...]:
    """Return the verdicts of a check, in the order in which people ask."""
    found = [one_answer(check.identification)]
    if check.fit is not None:
        found.append(fits(check.fit))
    return (
        *found,
        fakes(check.shift, domain),
        precise(domain, share, check.band.low, check.band.high, check.band.level),
    )


def one_answer(found: Identification) -> Verdict:
    """Return whether the reports leave one answer."""
    told = found.explain()
    if found.unique is None:
        return Verdict(ONE, "Not decided", told, UNKNOWN)
    if not found.unique:
        start = "Different distributions explain the reports equally well; the one shown is an example. "
        return Verdict(ONE, "No, several", start + told, BAD)
    if found.practical is False and found.identifiable is not False:
        start = "In theory the reports leave one answer, but there are too few users for all of it. "
        return Verdict(ONE, "In theory only", start + told, WARNING)
    return Verdict(ONE, "Yes", told, GOOD)


def fits(found: FitTest) -> Verdict:
    """Return whether any distribution explains the reports."""
    if found.p_value is None:
        return Verdict(FIT, "Cannot be tested", f"There is nothing to test: {found.reason}.", UNKNOWN)
    if found.rejected:
        return Verdict(
            FIT,
            "No",
            "No distribution explains these reports under the study's mechanisms: perhaps another epsilon was used, or "
            "reports were made up or counted twice. Do not rely on this page before the cause is known. "
            + found.explain().replace("\n", " "),
            BAD,
        )
    return Verdict(
        FIT,
        "Yes, it seems",
        f"The reports look as the study's mechanisms would make them (p = {found.p_value:.2g}; below {found.level:g} "
        f"would be a reason to doubt). {UNSEEN}",
        GOOD,
    )


def fakes(found: Shift, domain: Domain) -> Verdict:
    """Return how far a few fake users could move a value."""
    title = domain.title(int(domain.index(found.value)))
    points = 100 * float(found)
    each = points / (100 * found.share)
    tone = GOOD if each <= SMALL else WARNING if each <= LARGE else BAD
    return Verdict(
        FAKES,
        f"By {points:.1f} points",
        f"If {whole_percent(found.share)} of the users were fake and worked together, they could move the likeliest "
        f"share of {quoted(title)} from {percent(found.before)} to {percent(found.after)} or further: "
        f"{times(each)} their number. The more noise protects honest users, the more a fake one counts. {UNSEEN}",
        tone,
    )


def precise(domain: Domain, share: Floats, low: Floats, high: Floats, level: float) -> Verdict:
    """Return how wide the interval of the largest share is."""
    asked = np.flatnonzero(~np.isnan(low))
    if asked.size == 0:
        return Verdict(PRECISE, "Not checked", "No intervals were computed.", UNKNOWN)
    place = int(asked[np.argmax(share[asked])])
    half = float(high[place] - low[place]) / 2
    relative = half / max(float(share[place]), 1e-12)
    tone = BAD if relative > ROUGH or half > WIDE else GOOD if relative <= CLEAR and half <= NARROW else WARNING
    widths = (high - low)[asked] / 2
    told = (
        f"The largest share, {quoted(domain.title(place))}, is {percent(share[place])} in the estimate; the truth lies "
        f"between {percent(low[place])} and {percent(high[place])} with {whole_percent(level)} confidence. Half of the "
        f"{asked.size:,} intervals reach no farther than {100 * float(np.median(widths)):.2g} points to either side, "
        f"the widest {100 * float(widths.max()):.2g}."
    )
    if tone != GOOD:
        told += " More users, less noise, or sets of several values give narrower intervals."
    return Verdict(PRECISE, f"± {100 * half:.2g} points", told, tone)


def private(spent: Mapping[Spent, int], study: Study, *, users_named: bool = True) -> Verdict:
    """Return what a user has spent in all; plain epsilon and that per unit of distance are never added.

    Where rows do not name their users, nobody knows what a person spent in all, and only rows are spoken of.
    """
    who, says = ("A user", "sent") if users_named else ("A row", "says")
    plain, metric = totals(spent, study)
    domain = study.domain
    unit = f"per {domain.unit}" if domain.unit else "per unit of distance"
    if math.inf in (plain.largest, metric.largest):
        told = (
            "Some outputs tell values apart with certainty (a region, for example, excludes all others): no epsilon "
            "bounds what they say about a user."
        )
        return Verdict(PRIVATE, "No bound", told, BAD)
    answers, tones, sentences = list[str](), list[str](), list[str]()
    if plain.largest > 0:
        answers.append(f"epsilon {plain.largest:.3g}")
        odds = math.exp(min(plain.largest, 700.0))
        sentences.append(
            f"{who} spent a plain epsilon of {plain.largest:.4g} at most"
            + _median(plain.quantiles[0.5], plain.largest, users_named)
            + f": what {who.lower()} {says} changes anyone's odds between two values by at most {times(odds)}."
        )
        tones.append(GOOD if plain.largest <= MILD else WARNING if plain.largest <= STRONG else BAD)
    if metric.largest > 0:
        answers.append(f"epsilon {metric.largest:.3g} {unit}")
        whole = metric.largest * domain.diameter
        sentences.append(
            f"{who} spent an epsilon of {metric.largest:.4g} {unit} at most"
            + _median(metric.quantiles[0.5], metric.largest, users_named)
            + f": close values stay hard to tell apart, far ones less so. Over the whole domain "
            f"({domain.diameter:.3g} {domain.unit or 'units of distance'}) that is a plain epsilon of {whole:.3g}."
        )
        tones.append(WARNING if whole > MILD else GOOD)
    if len(answers) == 2:
        sentences.append("The two are of different kinds and are not added to each other.")
    for total, limit, words in (
        (plain, study.max_epsilon_per_user, ""),
        (metric, study.max_epsilon_per_unit, f" {unit}"),
    ):
        if limit is None:
            continue
        if total.above:
            people = "users" if users_named else "rows"
            sentences.append(f"{total.above:,} {people} spent more than the study's limit of {limit:g}{words}.")
            tones = [BAD]
        elif users_named:
            sentences.append(f"Nobody spent more than the study's limit of {limit:g}{words}.")
    if not users_named:
        sentences.append(
            "Rows do not say who sent them, and each is counted as one person: what somebody who sent several spent in "
            "all is not known."
        )
    sentences.append(_allowed(study))
    tone = next((tone for tone in (BAD, WARNING, UNKNOWN, GOOD) if tone in tones), UNKNOWN)
    return Verdict(PRIVATE, " and ".join(answers) or "Nothing", " ".join(one for one in sentences if one), tone)


def _median(median: float, largest: float, users_named: bool) -> str:
    who = "users" if users_named else "rows"
    return "" if median == largest else f" (half of the {who} at most {median:.4g})"


def _allowed(study: Study) -> str:
    """Return what the study lets a user spend."""
    if study.max_reports_per_user is None:
        return ""
    return "By the study: " + privacy_budget(list(study.mechanisms.values()), study.max_reports_per_user).explain()
