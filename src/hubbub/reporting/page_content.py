"""From reports to everything the page shows. Nothing is printed or written here: progress is yielded."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from hubbub.attribute_shares import attribute_shares
from hubbub.core import validation
from hubbub.core.arrays import Floats, largest_first
from hubbub.core.errors import SettingError, shorten
from hubbub.core.progress import Progress, stepwise
from hubbub.core.redaction import redact
from hubbub.domains import Domain, NamedPlaces
from hubbub.estimators import Estimate
from hubbub.estimators import estimate as estimate_reports
from hubbub.estimators.validation import check_distribution
from hubbub.intake import Tally
from hubbub.intake.reject_causes import rejected_lines
from hubbub.intake.study_input import StudyInput
from hubbub.intake.tallies.tally_summary import Summary
from hubbub.intervals import Band, Quantile, band, quantile
from hubbub.intervals.result import extend
from hubbub.intervals.set_intervals import NoSetShares, SetShares, set_shares
from hubbub.polygons import Regions
from hubbub.rendering import geojson
from hubbub.reporting.computation_facts import computation_facts
from hubbub.reporting.map_regions import MapRegions, check_regions, map_regions
from hubbub.reporting.noisy_shares import NoisyShares, noisy_shares
from hubbub.reporting.page_input import WHERE, page_input
from hubbub.reporting.page_values import DEFAULT_LEVEL, DEFAULT_TITLE, Bounds, Page, Verdict
from hubbub.reporting.summary import summary_of
from hubbub.reporting.value_intervals import ValueBounds, value_bounds
from hubbub.reporting.verdicts import PRIVACY_QUESTION, privacy_verdict, unchecked_verdicts, verdicts_of
from hubbub.reports import Reports
from hubbub.resolution import MAX_RESOLVED_VALUES, Resolution, renamed, resolve
from hubbub.trust_check import Check, affordable, check

Reportable = Reports | Estimate | Tally | StudyInput

MAX_DOWNLOAD_LETTERS = 200_000  # of a file that the page offers for download
FROM_ESTIMATE_ALONE = "This page was made from an estimate alone."
REMEDY_ESTIMATE_ALONE = f"{FROM_ESTIMATE_ALONE} For an answer, make it from the reports: hubbub.report(reports, path)."
REMEDY_QUICK = "Skipped, because this is a quick page. For an answer, make it without quick=True (--quick)."
REMEDY_EXACT_SET = "For the exact interval of a set, call hubbub.interval(reports, [value, ...])."


class _Trust(NamedTuple):
    """What was computed from the reports besides the estimate: nothing if there are no reports."""

    check: Check | None = None
    set_shares: SetShares | NoSetShares | None = None
    simultaneous: Band | None = None  # computed if there are no set shares
    resolution: Resolution | None = None
    median: Quantile | None = None  # of a line

    @property
    def linear(self) -> SetShares | None:
        """The unbiased linear estimate with its covariance, if the reports allow it."""
        return self.set_shares if isinstance(self.set_shares, SetShares) else None

    @property
    def band(self) -> Band | None:
        """The intervals by profile likelihood, if they were computed."""
        return None if self.check is None else self.check.band


@stepwise
def make_page(
    given: Reportable,
    *,
    method: str | None = None,
    level: float | None = None,
    title: str | None = None,
    estimate: Estimate | None = None,
    quick: bool = False,
    regions: Regions | None = None,
    region_intervals: str = "auto",
) -> Generator[Any, None, Page]:
    """Return the content of the page that `report` writes.

    As many of the largest values get intervals by profile likelihood as time allows, the others by the linear estimate.
    """
    validation.boolean(quick, "quick", WHERE)
    if title is not None:
        validation.text(title, "title", WHERE, default="the name of the study")
    source = page_input(given, estimate)
    if source.estimate is not None and method is not None:
        raise _not_with_an_estimate("method", method, "the estimate has its method already")
    if source.reports is None and level is not None:
        raise _not_with_an_estimate("level", level, "intervals need the reports")
    checked_level = DEFAULT_LEVEL if level is None else validation.level(level, WHERE)
    reports, shown = source.reports, source.estimate
    about = shown or reports
    if regions is not None and about is not None:
        check_regions(regions, about.domain)  # before anything takes long
    if shown is None:
        assert reports is not None  # noqa: S101  # a page has one or the other
        shown = yield from estimate_reports.steps(reports, method or "auto")
    check_distribution(shown, f"{WHERE}({'method' if source.estimate is None else 'estimate'}=)")
    trust, noisy = _Trust(), NoisyShares(None, f"There are no reports to compare with. {FROM_ESTIMATE_ALONE}")
    if reports is not None:
        trust = yield from _check_trust(reports, shown, checked_level, quick)
        yield Progress(0, 1, "noisy shares")
        noisy = noisy_shares(reports)
    domain, on_map = shown.domain, None
    if regions is not None:
        yield Progress(0, 1, "shares of regions")
        on_map = yield from map_regions(regions, shown, reports, checked_level, region_intervals)
        domain = NamedPlaces.of(shown.domain, on_map.cell_names)
        if trust.resolution is not None:
            trust = trust._replace(resolution=renamed(trust.resolution, domain))
    low, high, interval_notes = _intervals(shown, trust, checked_level, quick)
    attributes = None
    if shown.domain.product is not None:
        attributes = yield from attribute_shares.steps(shown, reports, checked_level, linear=trust.linear, quick=quick)
        attributes = attributes.with_joint_intervals(*extend(low, high, shown.probabilities))
        interval_notes = [*interval_notes, *attributes.notes]
    downloads, download_notes = _downloads(shown, *extend(low, high, shown.probabilities))
    summary = source.summary
    name, rejected = ("", []) if summary is None else (summary.study.name, rejected_lines(summary.rejected))
    page = Page(
        title=redact(title or name or DEFAULT_TITLE),  # everybody can read it
        summary="",
        domain=domain,
        users=shown.users,
        method=shown.method,
        level=checked_level,
        estimate=shown.probabilities,
        low=low,
        high=high,
        noisy=noisy.shares,
        noisy_note=noisy.note,
        sets=_sets(len(shown.domain), trust),
        verdicts=_verdicts(summary, trust, domain, on_map),
        facts=computation_facts(summary, shown, trust.band, trust.linear, checked_level),
        notes=(*rejected, *interval_notes, *download_notes),
        texts=downloads,
        resolution=trust.resolution,
        regions=on_map,
        attributes=attributes,
    )
    contradiction = "" if trust.check is None else trust.check.contradiction
    return replace(page, summary=f"{contradiction} {summary_of(page, trust.linear, trust.median)}".strip())


def _not_with_an_estimate(name: str, value: object, reason: str) -> SettingError:
    return SettingError(
        f"{name} cannot be combined with an estimate",
        where=f"{WHERE}({name}=)",
        got=shorten(value),
        expected=f"no {name}: {reason}",
        remedy=f"leave {name} out, or pass the reports alone",
    )


def _check_trust(reports: Reports, shown: Estimate, level: float, quick: bool) -> Generator[Any, None, _Trust]:
    shares = yield from set_shares.steps(reports, shown.probabilities)
    if quick:
        return _Trust(None, shares)
    likeliest = shown.domain.labels[largest_first(shown.probabilities)]
    in_time = affordable(reports, likeliest)
    values = shown.domain.labels[in_time]
    checked = yield from check.steps(reports, level, estimate=shown, values=values)
    simultaneous = None
    if isinstance(shares, NoSetShares) and in_time.size == likeliest.size:
        simultaneous = yield from band.steps(reports, level, simultaneous=True, estimate=shown)
    parts = None
    if isinstance(shares, SetShares) and len(shown.domain) <= MAX_RESOLVED_VALUES:
        parts = yield from _resolution(reports, shown, level)
    median = None
    if shown.domain.chart == "line" and in_time.size == likeliest.size:
        median = yield from quantile.steps(reports, 0.5, level, estimate=shown)
    return _Trust(checked, shares, simultaneous, parts, median)


def _resolution(reports: Reports, shown: Estimate, level: float) -> Generator[Any, None, Resolution | None]:
    """Return the parts that the reports tell apart; None if they are the single values, shown anyway."""
    found = yield from resolve.steps(reports, level=level, estimate=shown)
    return found if any(part.positions.size > 1 for part in found.parts) else None


def _intervals(shown: Estimate, trust: _Trust, level: float, quick: bool) -> ValueBounds:
    """Return the ends of the confidence interval of each value, and notes about them."""
    if trust.set_shares is None:
        unknown = np.full(len(shown.domain), np.nan)
        return ValueBounds(unknown, unknown, [])
    return value_bounds(shown, trust.band, trust.linear, level, quick=quick)


def _downloads(shown: Estimate, low: Floats, high: Floats) -> tuple[dict[str, str], list[str]]:
    """Return the files that the page offers, and a note about one that is too large."""
    if not shown.domain.is_on_map:
        return {}, []
    text = geojson(shown.domain, {"probability": shown.probabilities, "low": low, "high": high})
    if len(text) > MAX_DOWNLOAD_LETTERS:
        return {}, ["The GeoJSON file is too large to include. Write it with hubbub estimate -o estimate.geojson."]
    return {"estimate.geojson": text}, []


def _sets(size: int, trust: _Trust) -> SetShares | Bounds:
    """Return the linear estimate if there is one; otherwise bounds that hold for all values at once."""
    unknown = np.full(size, np.nan)
    shares = trust.set_shares
    if shares is None:
        return Bounds(unknown, unknown, FROM_ESTIMATE_ALONE)
    if isinstance(shares, SetShares):
        return shares
    reason = f"Tighter bounds are not available, because {shares.reason}. {REMEDY_EXACT_SET}"
    band = trust.simultaneous
    return Bounds(unknown, unknown, reason) if band is None else Bounds(band.low, band.high, reason)


def _verdicts(
    summary: Summary | None, trust: _Trust, domain: Domain, regions: MapRegions | None
) -> tuple[Verdict, ...]:
    if trust.check is not None:
        verdicts = verdicts_of(trust.check, domain, regions)
    else:
        verdicts = unchecked_verdicts(REMEDY_ESTIMATE_ALONE if summary is None else REMEDY_QUICK)
    if summary is None or not summary.spent:
        return (*verdicts, Verdict(PRIVACY_QUESTION, "Not known", REMEDY_ESTIMATE_ALONE))
    return (*verdicts, privacy_verdict(summary.spent, summary.study, users_named=summary.named))
