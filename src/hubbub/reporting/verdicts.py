"""How far to trust the estimate, for readers who have not read the paper: questions, short answers, and the reasons."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from hubbub.auditing.privacy_budget import privacy_budget
from hubbub.core.text import percent, plural, quoted, times, whole_percent
from hubbub.domains import Domain
from hubbub.goodness_of_fit import FitTest
from hubbub.identifiability import Identification
from hubbub.intake.privacy_loss_summary import EpsilonTotal, totals
from hubbub.intake.study import Study
from hubbub.intervals import Band
from hubbub.poisoning import Shift
from hubbub.reporting.map_regions import MapRegions
from hubbub.reporting.page_values import BAD, GOOD, UNKNOWN, WARNING, Verdict
from hubbub.reports.privacy_accounting import Spent
from hubbub.trust_check import CONTRADICTION, Check

UNIQUENESS_QUESTION = "Is there one answer?"
FIT_QUESTION = "Do the reports fit the study?"
FAKES_QUESTION = "Could fake users change it?"
PRECISION_QUESTION = "How precise is it?"
PRIVACY_QUESTION = "What did it cost in privacy?"

# Half the width of the interval of the largest share, relative to that share, and in shares of all users.
MAX_PRECISE_RELATIVE, MAX_ROUGH_RELATIVE = 0.25, 1.0
MAX_PRECISE_MARGIN, MAX_ROUGH_MARGIN = 0.1, 0.25
MAX_SMALL_SHIFT, MAX_MEDIUM_SHIFT = 3.0, 10.0  # points that each percent of fake users moves the estimate
MAX_MILD_EPSILON, MAX_MEDIUM_EPSILON = 2.0, 8.0  # total plain epsilon: odds change by up to 7.4 or 3,000 times
UNDETECTED = "No test sees everything: fake users whose answers look like those of honest users go unnoticed."


def unchecked_verdicts(remedy: str) -> tuple[Verdict, ...]:
    """Return the verdicts if nothing was checked, and what to do about it."""
    questions = (UNIQUENESS_QUESTION, FIT_QUESTION, FAKES_QUESTION, PRECISION_QUESTION)
    return tuple(Verdict(question, "Not checked", remedy) for question in questions)


def verdicts_of(check: Check, domain: Domain, regions: MapRegions | None = None) -> tuple[Verdict, ...]:
    """Return the verdicts of a check, in the order in which people ask; that nothing fits comes first.

    Values are called as `domain`, which has those of the check, calls them. Where there are regions, they are what
    readers want to know about.
    """
    fit = () if check.fit is None else (_fit_verdict(check.fit),)
    return (
        *(fit if check.contradiction else ()),
        _uniqueness_verdict(check.identification),
        *(() if check.contradiction else fit),
        _fakes_verdict(check.shift, domain, has_regions=regions is not None),
        _precision_verdict(check.band, domain) if regions is None else _regions_precision(regions),
    )


def _uniqueness_verdict(identification: Identification) -> Verdict:
    """Return whether the reports leave only one answer."""
    explanation = identification.explain()
    if identification.unique is None:
        return Verdict(UNIQUENESS_QUESTION, "Not decided", explanation, UNKNOWN)
    if not identification.unique:
        start = "Different distributions explain the reports equally well; the one shown is only an example. "
        return Verdict(UNIQUENESS_QUESTION, "No, several", start + explanation, BAD)
    if identification.practical is False and identification.identifiable is not False:
        start = "In theory the reports determine one answer, but there are too few users to pin down all of it. "
        return Verdict(UNIQUENESS_QUESTION, "In theory only", start + explanation, WARNING)
    return Verdict(UNIQUENESS_QUESTION, "Yes", explanation, GOOD)


def _fit_verdict(fit: FitTest) -> Verdict:
    """Return whether any distribution explains the reports."""
    if fit.p_value is None:
        return Verdict(FIT_QUESTION, "Cannot be tested", f"The fit cannot be tested: {fit.reason}.", UNKNOWN)
    if fit.rejected:
        return Verdict(FIT_QUESTION, "No", f"{CONTRADICTION} " + fit.explain().replace("\n", " "), BAD)
    text = (
        f"The reports look as if the study's mechanisms had produced them (p = {fit.p_value:.2g}; a value below "
        f"{fit.level:g} would be a reason for doubt). {UNDETECTED}"
    )
    return Verdict(FIT_QUESTION, "Yes, apparently", text, GOOD)


def _fakes_verdict(shift: Shift, domain: Domain, *, has_regions: bool) -> Verdict:
    """Return how far a few fake users could move a share."""
    title = domain.title(int(domain.index(shift.value)))
    what = f"one cell, {quoted(title)}," if has_regions else quoted(title)
    points = 100 * float(shift)
    points_per_percent = points / (100 * shift.share)
    text = (
        f"If {whole_percent(shift.share)} of the users were fake and worked together, they could move the "
        f"estimated share of {what} from {percent(shift.before)} to {percent(shift.after)} or "
        f"further: by {times(points_per_percent)} their own share. The more noise protects honest users, the more a "
        f"fake user counts. {UNDETECTED}"
    )
    if has_regions:
        text += " For a region, ask for an interval that holds against them: hubbub.interval with fakes=."
    tone = _tone(points_per_percent, MAX_SMALL_SHIFT, MAX_MEDIUM_SHIFT)
    return Verdict(FAKES_QUESTION, f"By {points:.1f} points", text, tone)


def _precision_verdict(band: Band, domain: Domain) -> Verdict:
    """Return how wide the interval of the largest share is."""
    known = np.flatnonzero(~np.isnan(band.low))
    if known.size == 0:
        return Verdict(PRECISION_QUESTION, "Not checked", "No intervals were computed.", UNKNOWN)
    largest = int(known[np.argmax(band.estimate[known])])
    share, low, high = (float(numbers[largest]) for numbers in (band.estimate, band.low, band.high))
    margins = (band.high - band.low)[known] / 2
    margin = (high - low) / 2
    tone = _precision_tone(margin, share)
    text = (
        f"The largest share, {quoted(domain.title(largest))}, is estimated at {percent(share)}; with "
        f"{whole_percent(band.level)} confidence the true share is between {percent(low)} and {percent(high)}. "
        f"Half of the {known.size:,} intervals extend no more than {100 * float(np.median(margins)):.2g} points to "
        f"either side, the widest {100 * float(margins.max()):.2g}."
    )
    if tone != GOOD:
        text += " More users, less noise, or sets of several values give narrower intervals."
    return Verdict(PRECISION_QUESTION, f"± {100 * margin:.2g} points", text, tone)


def _regions_precision(regions: MapRegions) -> Verdict:
    """Return how wide the interval of the region with the largest share is."""
    largest = regions.largest_first()[0]
    if np.isnan(regions.low[largest]):
        return Verdict(PRECISION_QUESTION, "Not known", regions.precision, UNKNOWN)
    margin = float(regions.high[largest] - regions.low[largest]) / 2
    tone = _precision_tone(margin, float(regions.estimate[largest]))
    text = regions.precision
    if tone != GOOD:
        text += " More users, less noise, or larger regions give narrower intervals."
    return Verdict(PRECISION_QUESTION, f"± {100 * margin:.2g} points", text, tone)


def _precision_tone(margin: float, share: float) -> str:
    return _worst(
        _tone(margin / max(share, 1e-12), MAX_PRECISE_RELATIVE, MAX_ROUGH_RELATIVE),
        _tone(margin, MAX_PRECISE_MARGIN, MAX_ROUGH_MARGIN),
    )


def privacy_verdict(spent: Mapping[Spent, int], study: Study, *, users_named: bool = True) -> Verdict:
    """Return the total epsilon that a user spent; plain epsilon and epsilon per unit of distance are never added.

    If rows do not name their users, nobody knows what a person spent in total, and the verdict is about rows.
    """
    plain, metric = totals(spent, study)
    if math.inf in (plain.largest, metric.largest):
        text = (
            "Some outputs rule out values with certainty (a region, for example, rules out all other regions), so no "
            "epsilon bounds what they reveal about a user."
        )
        return Verdict(PRIVACY_QUESTION, "No bound", text, BAD)
    domain, who = study.domain, "user" if users_named else "row"
    per_unit = f" per {domain.unit or 'unit of distance'}"
    answers, tones, sentences = list[str](), list[str](), list[str]()
    if plain.largest > 0:
        odds = times(math.exp(min(plain.largest, 700.0)))
        what = "what one user sent" if users_named else "what one row says"
        answers.append(f"epsilon {plain.largest:.3g}")
        tones.append(_tone(plain.largest, MAX_MILD_EPSILON, MAX_MEDIUM_EPSILON))
        sentences.append(
            f"{_spent(plain, who, 'plain epsilon')}: {what} changes the odds between any two values by at most {odds}."
        )
    if metric.largest > 0:
        over_domain = metric.largest * domain.diameter
        units = domain.unit if domain.unit not in (None, "unit") else "units of distance"
        answers.append(f"epsilon {metric.largest:.3g}{per_unit}")
        tones.append(_tone(over_domain, MAX_MILD_EPSILON, math.inf))
        sentences.append(
            f"{_spent(metric, who, 'epsilon', per_unit)}: close values stay hard to tell apart, distant ones less so. "
            f"Over the whole domain ({domain.diameter:.3g} {units}) it is a plain epsilon of {over_domain:.3g}."
        )
    if len(answers) == 2:
        sentences.append("These are different kinds of epsilon, which cannot be added.")
    limits = ((plain, study.max_epsilon_per_user, ""), (metric, study.max_epsilon_per_unit, per_unit))
    for total, limit, unit in limits:
        if limit is not None and total.above:
            sentences.append(f"{plural(total.above, who)} spent more than the study's limit of {limit:g}{unit}.")
            tones = [BAD]
        elif limit is not None and users_named:
            sentences.append(f"No user spent more than the study's limit of {limit:g}{unit}.")
    if not users_named:
        sentences.append(
            "Rows do not say who sent them, so each counts as one person. What somebody who sent several of them spent "
            "in total is not known."
        )
    if study.max_reports_per_user is not None:
        budget = privacy_budget(list(study.mechanisms.values()), study.max_reports_per_user)
        sentences.append(f"By the study's limit on reports: {budget.explain()}")
    return Verdict(PRIVACY_QUESTION, " and ".join(answers) or "Nothing", " ".join(sentences), _worst(*tones))


def _spent(total: EpsilonTotal, who: str, kind: str, per_unit: str = "") -> str:
    """Return how much each user or row spent at most, and half of them."""
    median = total.quantiles[0.5]
    half = "" if median == total.largest else f" (half of the {who}s at most {median:.4g})"
    return f"Each {who} spent a total {kind} of at most {total.largest:.4g}{per_unit}{half}"


def _tone(number: float, most_good: float, most_warning: float) -> str:
    return GOOD if number <= most_good else WARNING if number <= most_warning else BAD


def _worst(*tones: str) -> str:
    return next((tone for tone in (BAD, WARNING, GOOD) if tone in tones), UNKNOWN)
