"""From reports to all that the page shows. Nothing is printed or written here: progress is yielded."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.progress import Progress
from hubbub.core.redaction import redact
from hubbub.core.text import plural
from hubbub.domains import Domain
from hubbub.estimators import Estimate, estimate
from hubbub.intake import Study
from hubbub.intervals import Band, band
from hubbub.intervals.set_intervals import NoSetShares, SetShares, set_shares
from hubbub.rendering import geojson, is_on_map
from hubbub.reporting.computation_facts import facts_of, rejected_notes
from hubbub.reporting.material import Material, named_by_kind
from hubbub.reporting.naive_shares import Noisy, noisy_shares
from hubbub.reporting.page import Bounds, Covariance, Page, Verdict
from hubbub.reporting.summary import ShownValue, summary_of
from hubbub.reporting.verdicts import PRIVATE, private, unknown, verdicts_of
from hubbub.reports import Reports
from hubbub.trust_check import Check, affordable, check

TITLE = "What the crowd said"
MOST_CARRIED = 400  # values whose covariance the page can carry: a triangle of 24-bit numbers takes 320 kB as text
MOST_TEXT = 200_000  # letters of a file that is offered for download
ALONE = "Only an estimate was given. Make the page from the reports and this is answered: hubbub.report(reports, path)."
QUICK = "Left out, because a quick page was asked for. Make the page without quick=True (--quick) and it is answered."
EXACTLY = "Ask for a set exactly with hubbub.interval(reports, [value, ...])."


class _Computed(NamedTuple):
    """What was computed from the reports, beside the estimate."""

    check: Check | None
    shares: SetShares | NoSetShares | None
    bounds: Band | None  # simultaneous, where no shares are to be had


def gathering(
    material: Material,
    *,
    method: str = "auto",
    level: float = 0.95,
    title: str | None = None,
    quick: bool = False,
    most: int | None = None,
) -> Generator[Any, None, Page]:
    """Yield progress, return the page; `most` limits the values that have intervals by profile likelihood."""
    reports, chosen = material.reports, material.estimate
    if chosen is None:
        assert reports is not None  # noqa: S101  # material has one or the other
        chosen = yield from estimate.steps(reports, method)
    found, noisy = _Computed(None, None, None), Noisy(None, "Only an estimate was given, without its reports.")
    if reports is not None:
        found = yield from _finding(reports, chosen, level, quick, most)
        yield Progress(0, 1, "what the reports look like")
        noisy = noisy_shares(reports)
    return _page(material, chosen, found, noisy, level, title, quick)


def _finding(
    reports: Reports, estimate: Estimate, level: float, quick: bool, most: int | None
) -> Generator[Any, None, _Computed]:
    yield Progress(0, 1, "intervals of sets")
    shares = set_shares(reports, estimate.probabilities)
    if quick:
        return _Computed(None, shares, None)
    wanted = estimate.domain.labels[np.argsort(-estimate.probabilities, kind="stable")]
    places = affordable(reports, wanted)[:most]
    checked = yield from check.steps(reports, level, estimate=estimate, values=estimate.domain.labels[places])
    bounds = None
    if isinstance(shares, NoSetShares) and most is None and affordable(reports, wanted).size == wanted.size:
        bounds = yield from band.steps(reports, level, simultaneous=True, estimate=estimate)
    return _Computed(checked, shares, bounds)


def _page(
    material: Material,
    estimate: Estimate,
    found: _Computed,
    noisy: Noisy,
    level: float,
    title: str | None,
    quick: bool,
) -> Page:
    domain, share, size = estimate.domain, estimate.probabilities, len(estimate.domain)
    shares = found.shares if isinstance(found.shares, SetShares) else None
    low, high = np.full(size, np.nan), np.full(size, np.nan)
    notes = rejected_notes(material)
    if found.check is not None:
        low, high = found.check.band.low.copy(), found.check.band.high.copy()
    if material.reports is not None:
        notes += _filled(domain, low, high, shares, level, quick)
    outside = int(np.count_nonzero((share < low) | (share > high)))
    if outside:
        told = "lies outside its own interval: it is" if outside == 1 else "lie outside their own intervals: they are"
        notes.append(f"{plural(outside, 'estimate')} {told} smoother than the reports alone would say.")
    texts = dict[str, str]()
    if is_on_map(domain):
        text = geojson(domain, {"probability": share, "low": low, "high": high})
        if len(text) <= MOST_TEXT:
            texts["estimate.geojson"] = text
        else:
            notes.append("A GeoJSON file of so many cells is not carried here: hubbub estimate -o estimate.geojson.")
    study = material.study
    return Page(
        title=redact(title or (study.name if study is not None and study.name else TITLE)),  # it is shown to everybody
        summary=summary_of(ShownValue(domain, estimate.users, share, low, high, level, shares)),
        domain=domain,
        users=estimate.users,
        method=estimate.method,
        level=level,
        estimate=share,
        low=low,
        high=high,
        noisy=noisy.shares,
        noisy_note=noisy.note,
        sets=_sets(size, found, level),
        verdicts=_verdicts(material, estimate, found, quick),
        facts=facts_of(material, estimate, None if found.check is None else found.check.band, shares, level),
        notes=tuple(notes),
        texts=texts,
    )


def _filled(
    domain: Domain, low: Floats, high: Floats, shares: SetShares | None, level: float, quick: bool
) -> list[str]:
    """Give values that have no interval that of the linear estimate, in place; say so."""
    missing = np.flatnonzero(np.isnan(low))
    if missing.size == 0:
        return []
    many = "The intervals" if missing.size == len(domain) else f"The intervals of {plural(missing.size, 'value')}"
    if shares is None:
        return [f"{many} were not computed: {'a quick page was asked for' if quick else 'it would take too long'}."]
    for place in missing:
        low[place], _, high[place] = shares.interval(np.array([place]), level)
    why = "a quick page was asked for" if quick else "of the time it takes"
    return [f"{many} are those of the unbiased linear estimate, not of the likelihood, because {why}."]


def _sets(size: int, found: _Computed, level: float) -> Covariance | Bounds:
    """Return the covariance where the page can carry it; otherwise bounds that hold for all values together."""
    from scipy.special import ndtri

    nothing = np.full(size, np.nan)
    shares = found.shares
    if shares is None:
        return Bounds(nothing, nothing, "There are no reports behind this page, only an estimate.")
    if isinstance(shares, SetShares) and size <= MOST_CARRIED:
        return Covariance(shares.centre, shares.matrix, float(ndtri(0.5 + level / 2)))
    if isinstance(shares, SetShares):
        reach = float(ndtri(1.0 - (1.0 - level) / (2.0 * size))) * np.sqrt(np.diag(shares.matrix))
        middle = np.clip(shares.centre, 0.0, 1.0)
        reason = f"{size:,} values are too many for the page to carry how their errors go together. {EXACTLY}"
        return Bounds(np.maximum(middle - reach, 0.0), np.minimum(middle + reach, 1.0), reason)
    reason = f"Nothing tighter is offered, because {shares.reason}. {EXACTLY}"
    if found.bounds is None:
        return Bounds(nothing, nothing, reason)
    return Bounds(found.bounds.low, found.bounds.high, reason)


def _verdicts(material: Material, estimate: Estimate, found: _Computed, quick: bool) -> tuple[Verdict, ...]:
    told: tuple[Verdict, ...]
    if found.check is not None:
        told = verdicts_of(found.check, estimate.domain, estimate.probabilities)
    else:
        told = unknown(QUICK if quick and material.reports is not None else ALONE)
    reports = material.reports
    if reports is None or not material.spent:
        return (*told, Verdict(PRIVATE, "Not known", ALONE))
    study = material.study
    if study is None:
        mechanisms = named_by_kind(reports.mechanisms)
        study = Study(reports.mechanisms[0].domain, mechanisms)
    return (*told, private(material.spent, study, users_named=material.users_named))
