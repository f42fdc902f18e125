"""The JSON documents that commands print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hubbub.association import Independence
from hubbub.attribute_shares import AttributeShares
from hubbub.comparison import Comparison, GroupComparison
from hubbub.domains import Domain
from hubbub.domains.product_labels import json_labels, json_value
from hubbub.estimators import Estimate
from hubbub.estimators.result import attributes_of, finite
from hubbub.goodness_of_fit import FitTest
from hubbub.intake.group_names import group_titles
from hubbub.intake.privacy_loss_summary import epsilon_document
from hubbub.intake.privatizing.api import Privatized
from hubbub.intake.report_dates import ReportDates
from hubbub.intake.tallies.tally import Tally
from hubbub.intake.tallies.tally_summary import CountedSource, Summary
from hubbub.intervals import Band
from hubbub.poisoning import Shift
from hubbub.polygons import RegionShares
from hubbub.resolution import Resolution, suggestion
from hubbub.trends import Trend
from hubbub.trust_check import Check

INTERVAL_FIELDS = ("low", "high", "standard_error", "standard_error_reason")  # of each value of an estimate


def estimate_document(
    summary: Summary,
    estimate: Estimate,
    check: Check | None = None,
    resolution: Resolution | None = None,
    regions: RegionShares | None = None,
    attributes: AttributeShares | None = None,
) -> dict[str, Any]:
    """Return the document that ``hubbub estimate --json`` prints.

    What is not computed (``--quick``; intervals of more values than a few minutes allow) is null, never left out.
    """
    own = estimate.document()
    intervals: list[dict[str, Any]] = [dict.fromkeys(INTERVAL_FIELDS)] * len(estimate.domain)
    if check is not None:
        intervals = interval_rows(check.band)
    return {
        "version": own["version"],
        "fingerprint": summary.study.fingerprint,
        "method": own["method"],
        "status": own["status"],
        "converged": own["converged"],
        "unique": None if check is None else check.identification.unique,
        "users": own["users"],
        "effective_users": own["effective_users"],
        "rejected": sum(summary.rejected.values()),
        "log_likelihood": own["log_likelihood"],
        "gap": own["gap"],
        "iterations": own["iterations"],
        "settings": own["settings"],
        "notes": list(summary.notes),
        "dates": dates_document(summary.known_dates),
        "epsilon_per_user": epsilon_document(summary.spent, summary.study, users_named=summary.named),
        "fit": None if check is None or check.fit is None else fit_document(check.fit),
        "interval": None if check is None else interval_document(check.band),
        "worst_case_shift": None if check is None else shift_document(check.shift, check.band.domain),
        "suggestion": None if check is None or resolution is None else suggestion(resolution, check.band.low),
        **regions_document(regions),
        "marginals": None if attributes is None else marginals_document(estimate, attributes),
        "estimate": [{**entry, **row} for entry, row in zip(own["estimate"], intervals, strict=True)],
    }


def regions_document(shares: RegionShares | None) -> dict[str, Any]:
    """Return the entries about regions; null if nobody asked for any."""
    if shares is None:
        return {"regions": None, "region_rest": None, "region_level": None, "region_notes": None}
    own = shares.document()
    return {
        "regions": own["regions"],
        "region_rest": own["rest"],
        "region_level": own["level"],  # `interval`, which is about values, is null with --quick
        "region_notes": own["notes"],
    }


def marginals_document(estimate: Estimate, shares: AttributeShares) -> list[dict[str, Any]]:
    """Return the shares of each attribute: of single values, or of several together where they are many."""
    attributes = attributes_of(estimate.domain, "marginals").attributes
    return [
        {
            "attribute": name,
            "shares": [
                {
                    "values": attributes[name].labels[group.positions].tolist(),
                    "probability": float(share),
                    "low": finite(float(low)),
                    "high": finite(float(high)),
                }
                for group, share, low, high in zip(shares.groups[name], *own, strict=True)
            ],
        }
        for name, own in shares.marginals.items()
    ]


def dates_document(dates: ReportDates) -> dict[str, Any]:
    """Return the period that reports cover, as of when they were known, and when their files last changed."""
    changed = [{"name": name, "changed": when} for name, when in dates.changed]
    left_out = None if dates.as_of is None else dates.left_out
    return {
        "first": dates.first,
        "last": dates.last,
        "as_of": dates.as_of,
        "rows_left_out": left_out,
        "sources": changed,
    }


def groups_document(by: Sequence[str], documents: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the document of ``--by COLUMN --json``: one document for each group."""
    groups = [{"group": group, **document} for group, document in documents.items()]
    return {"version": 1, "by": ", ".join(by), "groups": groups}


def check_document(summary: Summary, check: Check) -> dict[str, Any]:
    """Return the document that ``hubbub check --json`` prints."""
    identified, fit, labels = check.identification, check.fit, json_labels(check.band.domain)
    direction = identified.direction
    return {
        "version": 1,
        "fingerprint": summary.study.fingerprint,
        "users": check.users,
        "rejected": sum(summary.rejected.values()),
        "notes": list(summary.notes),
        "dates": dates_document(summary.known_dates),
        "epsilon_per_user": epsilon_document(summary.spent, summary.study, users_named=summary.named),
        "identify": {
            "identifiable": identified.identifiable,
            "unique": identified.unique,
            "dimension": identified.dimension,
            "practical": identified.practical,
            "blind": None if identified.blind is None else finite(identified.blind),
            "direction": None
            if direction is None
            else [{"value": labels[x], "mass": float(direction[x])} for x in direction.nonzero()[0]],
            "text": identified.explain(),
        },
        "fit": None if fit is None else fit_document(fit),
        "worst_case_shift": shift_document(check.shift, check.band.domain),
        "interval": interval_document(check.band),
        **regions_document(check.regions),
        "values": values_document(check),
        "verdicts": [{"question": fact.label, "text": fact.text} for fact in check.facts()],
    }


def fit_document(fit: FitTest) -> dict[str, Any]:
    """Return whether any distribution explains the reports."""
    return {
        "testable": fit.testable,
        "p_value": fit.p_value,
        "level": fit.level,
        "rejected": fit.rejected,
        "reason": fit.reason,
        "parts": [
            {**vars(part), "statistic": finite(part.statistic), "p_value": finite(part.p_value)} for part in fit.parts
        ],
        "worst": [
            {name: finite(each) if isinstance(each, float) else each for name, each in output._asdict().items()}
            for output in fit.worst
        ],
        "text": fit.explain(),
    }


def result_document(summary: Summary, result: Resolution | Independence) -> dict[str, Any]:
    """Return the document that ``hubbub resolve --json`` and ``hubbub independence --json`` print."""
    own = result.document()
    return {
        "version": own.pop("version"),
        "fingerprint": summary.study.fingerprint,
        "users": summary.users,
        "rejected": sum(summary.rejected.values()),
        "notes": list(summary.notes),
        "epsilon_per_user": epsilon_document(summary.spent, summary.study, users_named=summary.named),
        **own,
    }


def comparison_document(
    summaries: Mapping[str, Summary], notes: Sequence[str], comparison: Comparison | GroupComparison
) -> dict[str, Any]:
    """Return the document that ``hubbub compare --json`` prints."""
    own = comparison.document()
    _add_sources(own["groups"], "group", summaries)
    return {"version": own.pop("version"), "notes": list(notes), **own}


def trend_document(summaries: Mapping[str, Summary], notes: Sequence[str], trend: Trend) -> dict[str, Any]:
    """Return the document that ``hubbub trend --json`` prints."""
    own = trend.document()
    _add_sources(own["periods"], "period", summaries)
    return {"version": own.pop("version"), "notes": list(notes), **own}


def _add_sources(entries: list[dict[str, Any]], name: str, summaries: Mapping[str, Summary]) -> None:
    """Add to each group what its study is, and how many rows were rejected; null for groups that were joined."""
    for entry in entries:
        summary = summaries.get(entry[name])
        entry["fingerprint"] = None if summary is None else summary.study.fingerprint
        entry["rejected"] = None if summary is None else sum(summary.rejected.values())


def values_document(check: Check) -> list[dict[str, Any]]:
    """Return for each value the range over all maxima, and the interval of its true share."""
    band, identified = check.band, check.identification
    columns = {
        "lowest": identified.lower,
        "highest": identified.upper,
        "low": band.low,
        "estimate": band.estimate,
        "high": band.high,
        "likeliest": band.likeliest,
        "confidence_low": band.confidence_low,
        "confidence_high": band.confidence_high,
        "standard_error": band.standard_error,
    }
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [
        {
            "value": value,
            **{name: finite(number) for name, number in zip(columns, row, strict=True)},
            "standard_error_reason": reason or None,
        }
        for value, row, reason in zip(json_labels(band.domain), rows, band.standard_error_reasons, strict=True)
    ]


def interval_rows(band: Band) -> list[dict[str, Any]]:
    """Return what is known about the precision of each value's share, in the order of the domain."""
    columns = (band.low, band.high, band.standard_error)
    numbers = ([finite(number) for number in column.tolist()] for column in columns)
    reasons = (reason or None for reason in band.standard_error_reasons)
    return [dict(zip(INTERVAL_FIELDS, row, strict=True)) for row in zip(*numbers, reasons, strict=True)]


def interval_document(band: Band) -> dict[str, Any]:
    """Return what the intervals are."""
    return {
        "level": band.level,
        "method": "profile",
        "simultaneous": band.simultaneous,
        "fakes": band.fakes,
        "values": int((band.low == band.low).sum()),  # the others are null: not requested, or too many
    }


def shift_document(shift: Shift, domain: Domain) -> dict[str, Any]:
    """Return how far fake users could move a value."""
    return {
        "share": shift.share,
        "shift": float(shift),
        "value": json_value(shift.value, domain),
        "output": shift.output,
        "before": shift.before,
        "after": shift.after,
        "method": shift.method,
    }


def tally_document(tally: Tally) -> dict[str, Any]:
    """Return the document that ``hubbub collect --json`` and ``hubbub merge --json`` print."""
    summary = tally.summary
    titles = group_titles(group.entries for group in summary.groups)
    return {
        "version": 1,
        "fingerprint": summary.study.fingerprint,
        "tally": str(tally.path),
        "users": summary.users,
        "rows": summary.rows,
        "rejected": sum(summary.rejected.values()),
        "rejected_by_cause": dict(sorted(summary.rejected.items())),
        "sources": [_source_document(source) for source in summary.sources],
        "weight": summary.weight,
        "by": list(summary.by),
        "groups": [
            {"group": title, "users": group.users, "rejected": sum(group.rejected.values())}
            for group, title in zip(summary.groups, titles.values(), strict=True)
        ],
        "skipped": list(summary.skipped),
        "notes": list(summary.notes),
        "dates": dates_document(summary.known_dates),
        "epsilon_per_user": epsilon_document(summary.spent, summary.study, users_named=summary.named),
    }


def _source_document(source: CountedSource) -> dict[str, Any]:
    """Return what was counted of a source, and how far."""
    mark = source.mark
    reached = None
    if mark is not None:
        reached = {
            "column": mark.column,
            "value": mark.value,
            "first": mark.type.text(mark.first),
            "late": mark.late,
            "rows_added": source.added,
            "rows_left_out": source.left_out,
        }
    return {"name": source.name, "sha256": source.digest, "rows": source.rows, "watermark": reached}


def privatized_document(privatized: Privatized) -> dict[str, Any]:
    """Return the document that ``hubbub privatize --json`` prints."""
    return {
        "version": 1,
        "fingerprint": privatized.study.fingerprint,
        "mechanism": privatized.mechanism,
        "rows": privatized.rows,
        "randomness": privatized.randomness,
        "output": str(privatized.path),
        "columns_left_out": list(privatized.columns_left_out),
        "notes": list(privatized.notes),
    }
