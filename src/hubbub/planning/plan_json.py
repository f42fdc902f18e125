"""A plan as one document for JSON; numbers that are not finite are null."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from hubbub.core.arrays import plain
from hubbub.planning.question import Question
from hubbub.planning.result import Needed, Privacy, SettingResult, Spread, Widths


def document_of(
    question: Question, settings: Sequence[SettingResult], needed: Sequence[Needed], sentence: str, notes: Sequence[str]
) -> dict[str, Any]:
    """Return all that a plan knows."""
    return {
        "version": 1,
        "looked_for": question.looks_for,
        "sentence": sentence,
        "notes": list(notes),
        "users": list(question.users),
        "target": question.target,
        "distance": question.distance,
        "unit": question.unit,
        "method": question.method,
        "truths": list(question.truths),
        "confidence": question.confidence,
        "level": question.level,
        "radius": question.radius,
        "runs": question.runs,
        "seed": question.seed,
        "needed": [_needed(one) for one in needed],
        "settings": [_setting(one) for one in settings],
    }


def _setting(one: SettingResult) -> dict[str, Any]:
    return {
        "candidate": one.candidate,
        "epsilon": _finite(one.epsilon),
        "privacy": _privacy(one.privacy),
        "reports_per_user": one.reports_per_user,
        "users": one.users,
        "truth": one.truth,
        "tv": _spread(one.tv),
        "emd": _spread(one.emd),
        "widths": _widths(one.widths),
        "closed": _finite(one.closed),
        "runs": one.runs,
        "extrapolated": one.extrapolated,
        "other_truths": [_setting(other) for other in one.others],
    }


def _needed(one: Needed) -> dict[str, Any]:
    return {
        "candidate": one.candidate,
        "epsilon": _finite(one.epsilon),
        "privacy": _privacy(one.privacy),
        "reports_per_user": one.reports_per_user,
        "truth": one.truth,
        "what": one.what,
        "value": _finite(one.value),
        "low": _finite(one.low),
        "high": _finite(one.high),
        "most": _finite(one.most),
        "users": one.users,
        "extrapolated": one.extrapolated,
        "reason": one.reason or None,
        "other_truths": [_needed(other) for other in one.others],
    }


def _privacy(privacy: Privacy | None) -> dict[str, Any] | None:
    if privacy is None:
        return None
    return {
        "ldp": _finite(privacy.ldp),
        "per_unit": _finite(privacy.per_unit),
        "unit": privacy.unit,
        "plain_equivalent": _finite(privacy.equivalent),
        "radius": _finite(privacy.radius),
    }


def _spread(spread: Spread | None) -> dict[str, float | None] | None:
    if spread is None:
        return None
    return {name: _finite(getattr(spread, name)) for name in ("median", "low", "high", "mean", "ninth")}


def _widths(widths: Widths | None) -> dict[str, Any] | None:
    if widths is None:
        return None
    pairs = zip(widths.values.tolist(), widths.widths.tolist(), strict=True)
    return {
        "level": widths.level,
        "values": [{"value": plain(value), "width": _finite(width)} for value, width in pairs],
    }


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None
