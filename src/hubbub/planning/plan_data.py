"""A plan as data: the complete table, for files and frames, and one document for JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from hubbub.core.arrays import plain
from hubbub.planning.answers import (
    ERROR,
    GROUP_USERS,
    POWER,
    USERS,
    Answer,
    Needed,
    Privacy,
    Question,
    SettingResult,
    Spread,
    Widths,
)

COLUMNS = (
    "candidate", "epsilon", "epsilon_low", "epsilon_high", "ldp", "per_unit", "unit", "plain_equivalent", "radius",
    "realised_share", "reports_per_user", "users", "users_low", "users_high", "truth", "tv", "tv_low", "tv_high",
    "tv_mean", "tv_ninth",
    "emd", "emd_low", "emd_high", "emd_mean", "emd_ninth", "width_median", "width_largest", "width_level", "closed",
    "runs", "extrapolated", "looked_for", "power", "hardest", "reason",
)  # fmt: skip
JSON_KEYS = {"equivalent": "plain_equivalent", "others": "other_truths"}  # where they differ from the names of fields


def plan_document(
    question: Question, settings: Sequence[SettingResult], needed: Sequence[Needed], sentence: str, notes: Sequence[str]
) -> dict[str, Any]:
    """Return everything a plan knows; numbers that are not finite are None."""
    return {
        "version": 1,
        "looked_for": question.looks_for,
        "sentence": sentence,
        "notes": list(notes),
        **_fields(question),
        "needed": [_fields(need) for need in needed],
        "settings": [_fields(setting) for setting in settings],
    }


def _fields(record: Answer | Privacy | Spread | Question) -> dict[str, Any]:
    values = {
        JSON_KEYS.get(field.name, field.name): _json_value(getattr(record, field.name)) for field in fields(record)
    }
    return values | ({"reason": record.reason or None} if isinstance(record, Needed) else {})


def _json_value(value: Any) -> Any:
    if isinstance(value, Privacy | Spread | SettingResult | Needed):
        return _fields(value)
    if isinstance(value, Widths):
        pairs = zip(value.values.tolist(), value.widths.tolist(), strict=True)
        widths = [{"value": plain(label), "width": _json_value(width)} for label, width in pairs]
        return {"level": value.level, "values": widths}
    if isinstance(value, tuple):
        return [_json_value(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def plan_rows(question: Question, settings: Sequence[SettingResult], needed: Sequence[Needed]) -> list[dict[str, Any]]:
    """Return one row for each setting; what was searched for shares the row of its setting.

    Of several truths, the worst comes first and the others follow it.
    """
    with_truths = [each for setting in settings for each in (setting, *setting.others)]
    remaining = {(setting.key, setting.users, setting.truth): setting for setting in with_truths}
    rows = []
    for need in (each for worst in needed for each in (worst, *worst.others)):
        row = _row(need) | {"reason": need.reason, "looked_for": need.what, "hardest": need.hardest}
        if need.what == GROUP_USERS:
            row |= {"users": need.value, "power": question.power}
        elif need.what == POWER:
            row |= {"power": need.value}
        elif need.what == USERS:
            users = None if need.value is None else math.ceil(need.value)
            setting = None if users is None else remaining.pop((need.key, users, need.truth), None)
            row |= {} if setting is None else _errors(setting)
            row |= {"users": users, "users_low": need.low, "users_high": need.high}
        else:
            row |= {"epsilon": need.value, "epsilon_low": need.low, "epsilon_high": need.high}
        rows.append(row)
    rows += [_row(setting) | _errors(setting) | {"looked_for": ERROR} for setting in remaining.values()]
    return rows


def _row(answer: Answer) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(COLUMNS)
    copied = ("candidate", "epsilon", "realised_share", "reports_per_user", "users", "truth", "extrapolated")
    return row | {name: getattr(answer, name) for name in copied} | {"reason": ""} | _fields(answer.spent)


def _errors(setting: SettingResult) -> dict[str, Any]:
    row: dict[str, Any] = {"closed": setting.closed, "runs": setting.runs}
    for name, spread in (("tv", setting.tv), ("emd", setting.emd)):
        if spread is not None:
            row |= {name: spread.median, f"{name}_low": spread.low, f"{name}_high": spread.high}
            row |= {f"{name}_mean": spread.mean, f"{name}_ninth": spread.ninth}
    if setting.widths is not None and setting.widths.widths.size:
        widths = setting.widths.widths
        row |= {"width_median": float(np.median(widths)), "width_largest": float(widths.max())}
        row |= {"width_level": setting.widths.level}
    return row
