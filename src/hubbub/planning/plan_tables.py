"""A plan as tables: one with everything, for files and frames, and short ones that people read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hubbub.planning.number_format import people, told
from hubbub.planning.question import ERROR, USERS, Question, is_least, key_of, label_of, worst_needed, worst_settings
from hubbub.planning.result import Needed, Privacy, SettingResult, Spread

COLUMNS = (
    "candidate", "epsilon", "epsilon_low", "epsilon_high", "ldp", "per_unit", "unit", "plain_equivalent", "radius",
    "reports_per_user", "users", "users_low", "users_high", "truth", "tv", "tv_low", "tv_high", "tv_mean", "tv_ninth",
    "emd", "emd_low", "emd_high", "emd_mean", "emd_ninth", "width_median", "width_largest", "width_level", "closed",
    "runs", "extrapolated", "looked_for", "reason",
)  # fmt: skip
UNKNOWN = "–"


class ShownColumn(NamedTuple):
    """A table that people read: the first `left` columns are texts."""

    title: str
    header: list[str]
    rows: list[list[str]]
    left: int = 1
    keys: int = 1  # columns that must stand in each part where the table is cut

    def fitting(self, width: int, border: int = 3) -> list[ShownColumn]:
        """Return the table in parts that are no wider than a terminal, if headings are folded between words."""
        words = [max(map(len, name.split())) for name in self.header]
        bodies = [max(len(row[place]) for row in self.rows) for place in range(len(self.header))]
        widths = [border + max(sizes) for sizes in zip(words, bodies, strict=True)]
        if sum(widths) + 1 <= width:
            return [self]
        first = sum(widths[: self.keys]) + 1
        parts: list[list[int]] = [[]]
        for place in range(self.keys, len(widths)):
            if parts[-1] and first + sum(widths[one] for one in parts[-1]) + widths[place] > width:
                parts.append([])
            parts[-1].append(place)
        own = list(range(self.keys))
        return [
            self._replace(
                title=self.title if number == 0 else f"{self.title} (continued)",
                header=[self.header[place] for place in own + part],
                rows=[[row[place] for place in own + part] for row in self.rows],
            )
            for number, part in enumerate(parts)
        ]


def rows_of(settings: Sequence[SettingResult], needed: Sequence[Needed]) -> list[dict[str, Any]]:
    """Return one row for each setting; what was looked for stands in the row that it leads to, with its range.

    Of several truths, the worst comes first and the others follow it.
    """
    everything = [each for one in settings for each in (one, *one.others)]
    by_users = {(key_of(one), one.users, one.truth): one for one in everything}
    rows, used = [], set()
    for one in (each for top in needed for each in (top, *top.others)):
        row = _row(one, one.privacy)
        if one.what == USERS:
            value = None if one.value is None else math.ceil(one.value)
            place = key_of(one), value, one.truth
            if value is not None and place in by_users:
                row |= _measured(by_users[key_of(one), value, one.truth])
                used.add(place)
            row |= {"users": value, "users_low": one.low, "users_high": one.high}
        else:
            row |= {"users": one.users, "epsilon": one.value, "epsilon_low": one.low, "epsilon_high": one.high}
        row |= {"extrapolated": one.extrapolated, "looked_for": one.what, "reason": one.reason}
        rows.append(row)
    for place, setting in by_users.items():
        if place not in used:
            row = _row(setting, setting.privacy) | _measured(setting)
            rows.append(row | {"users": setting.users, "extrapolated": setting.extrapolated, "looked_for": ERROR})
    return rows


def _row(found: SettingResult | Needed, privacy: Privacy | None) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(COLUMNS)
    row |= {"candidate": found.candidate, "epsilon": found.epsilon, "reports_per_user": found.reports_per_user}
    row |= {"truth": found.truth, "reason": ""}
    if privacy is not None:
        row |= {"ldp": privacy.ldp, "per_unit": privacy.per_unit, "unit": privacy.unit}
        row |= {"plain_equivalent": privacy.equivalent, "radius": privacy.radius}
    return row


def _measured(setting: SettingResult) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, spread in (("tv", setting.tv), ("emd", setting.emd)):
        if spread is not None:
            row |= {name: spread.median, f"{name}_low": spread.low, f"{name}_high": spread.high}
            row |= {f"{name}_mean": spread.mean, f"{name}_ninth": spread.ninth}
    if setting.widths is not None and setting.widths.widths.size:
        widths = setting.widths.widths
        row |= {"width_median": float(np.median(widths)), "width_largest": float(widths.max())}
        row |= {"width_level": setting.widths.level}
    return row | {"closed": setting.closed, "runs": setting.runs}


def tables_of(question: Question, settings: Sequence[SettingResult], needed: Sequence[Needed]) -> list[ShownColumn]:
    """Return the tables that people read; several truths are shown by their worst."""
    found = []
    worst = worst_settings(settings, question)
    if needed:
        found.append(_needed_table(question, worst, worst_needed(needed)))
    if question.looks_for != USERS and worst:
        users = list(dict.fromkeys(one.users for one in worst))
        found.append(_errors_across(question, worst, users) if len(users) > 1 else _errors(question, worst))
    return found


def _needed_table(question: Question, settings: Sequence[SettingResult], needed: Sequence[Needed]) -> ShownColumn:
    of_users = question.looks_for == USERS
    share = "" if question.confidence == 0.5 else f" in {100 * question.confidence:g}% of studies"
    title = (
        f"{'Users' if of_users else 'Epsilon'} needed for {'a' if question.distance == 'tv' else 'an'} "
        f"{question.distance_name} of {question.target:.3g}{question.distance_unit}{share}"
    )
    at_users = {(key_of(one), one.users): one for one in settings}
    several = len(question.truths) > 1
    header = ["way to report", _epsilon_header(needed) if of_users else "users", "needed", "between"]
    header += (["nine of ten below"] if of_users else ["plain epsilon"]) + (["worst truth"] if several else [])
    rows, number = [], people if of_users else told
    for one in needed:
        row = [label_of(one), epsilon_cell(one) if of_users else f"{one.users:,}"]
        if one.value is None:
            row += ["out of reach", UNKNOWN, UNKNOWN]
        else:
            mark = "*" if one.extrapolated else ""
            least = is_least(one)
            unknown = least or one.low is None or one.high is None
            between = UNKNOWN if unknown else f"{number(one.low or 0.0)} to {number(one.high or 0.0)}"
            row += [("≤ " if least else "") + number(one.value) + mark, between]
            if of_users:
                setting = at_users.get((key_of(one), math.ceil(one.value)))
                row.append(_cell(None if setting is None else question.spread(setting), "ninth"))
            else:
                plain = None if one.privacy is None else one.privacy.equivalent
                row.append(UNKNOWN if plain is None else f"{plain:.3g}")
        rows.append(row + ([one.truth] if several else []))
    return ShownColumn(title, header, rows)


def _errors(question: Question, settings: Sequence[SettingResult]) -> ShownColumn:
    """Return one line for each way to report, where there is one number of users."""
    several = len(question.truths) > 1
    other = [one.emd for one in settings if one.emd is not None]
    level = next((one.widths.level for one in settings if one.widths is not None), None)
    unit = f" ({question.unit})" if question.unit not in (None, "unit") else ""
    header = ["way to report", _epsilon_header(settings), "total variation", "nine of ten below"]
    header += [f"earth mover{unit}"] if other else []
    header += [f"{100 * level:g}% interval"] if level is not None else []
    header += ["worst truth"] if several else []
    rows = []
    for one in settings:
        row = [label_of(one), epsilon_cell(one), _cell(one.tv) + ("*" if one.extrapolated else "")]
        row.append(_cell(one.tv, "ninth"))
        row += [_cell(one.emd)] if other else []
        if level is not None:
            row.append(UNKNOWN if one.widths is None else f"±{told(float(np.median(one.widths.widths)) / 2)}")
        rows.append(row + ([one.truth] if several else []))
    return ShownColumn(f"Errors to expect with {settings[0].users:,} users", header, rows)


def _errors_across(question: Question, settings: Sequence[SettingResult], users: Sequence[int]) -> ShownColumn:
    """Return the error for each way to report (down) and number of users (across)."""
    cells: dict[Any, dict[int, SettingResult]] = {}
    for one in settings:
        cells.setdefault(key_of(one), {})[one.users] = one
    rows = []
    for across in cells.values():
        first = next(iter(across.values()))
        row = [label_of(first), epsilon_cell(first)]
        for count in users:
            there = across.get(count)
            mark = "*" if there is not None and there.extrapolated else ""
            row.append(_cell(None if there is None else question.spread(there)) + mark)
        rows.append(row)
    title = f"{question.distance_name.capitalize()} to expect{_in(question)}, by number of users"
    return ShownColumn(
        title, ["way to report", _epsilon_header(settings), *(f"{count:,}" for count in users)], rows, keys=2
    )


def _in(question: Question) -> str:
    return f" (in{question.distance_unit})" if question.distance_unit else ""


def _epsilon_header(found: Sequence[SettingResult] | Sequence[Needed]) -> str:
    metric = any(one.privacy is not None and one.privacy.per_unit is not None for one in found)
    return "epsilon (plain)" if metric else "epsilon"


def epsilon_cell(found: SettingResult | Needed) -> str:
    """Return the epsilon of a way to report for a table: plain, per unit, or both."""
    privacy = found.privacy
    if privacy is None or (privacy.ldp is None and privacy.per_unit is None):
        return "unbounded"
    plain = [] if privacy.ldp is None else [f"{privacy.ldp:.3g}"]
    unit = privacy.unit or "unit"
    metric = [] if privacy.per_unit is None else [f"{privacy.per_unit:.3g}/{unit}"]
    whole = f" ({privacy.equivalent:.3g})" if metric and privacy.equivalent is not None else ""
    return " or ".join(plain + metric) + whole


def _cell(spread: Spread | None, name: str = "median") -> str:
    return UNKNOWN if spread is None else told(float(getattr(spread, name)))


def as_lines(table: ShownColumn) -> str:
    """Return a table as aligned text."""
    whole = [table.header, *table.rows]
    widths = [max(len(row[place]) for row in whole) for place in range(len(table.header))]

    def line(row: Sequence[str]) -> str:
        cells = zip(row, widths, range(len(row)), strict=True)
        return "  ".join(f"{cell:<{width}}" if at < table.left else f"{cell:>{width}}" for cell, width, at in cells)

    return "\n".join([table.title, *(line(row).rstrip() for row in whole)])
