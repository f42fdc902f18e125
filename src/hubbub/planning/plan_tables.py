"""The tables of a plan that people read; of several truths they show the worst."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hubbub.planning.answers import (
    USERS,
    Answer,
    CandidateKey,
    Needed,
    Question,
    SettingResult,
    Spread,
    key_of,
    label_of,
)
from hubbub.planning.number_format import two_digits, user_count

UNKNOWN = "–"


class TextTable(NamedTuple):
    """A table of texts; the first column is aligned to the left, the others to the right."""

    title: str
    header: list[str]
    rows: list[list[str]]
    keys: int = 1  # leading columns that are repeated in each part of a split table

    def widths(self, *, folded: bool = False) -> list[int]:
        """Return the width of each column; `folded` breaks headings between words."""
        headings = [max(map(len, name.split())) if folded else len(name) for name in self.header]
        bodies = [max(map(len, cells)) for cells in zip(*self.rows, strict=True)]
        return [max(pair) for pair in zip(headings, bodies, strict=True)]

    def fitting(self, width: int, border: int = 3) -> list[TextTable]:
        """Return the table in parts that fit a terminal if headings are folded between words."""
        widths = [border + column for column in self.widths(folded=True)]
        if sum(widths) + 1 <= width:
            return [self]
        keys = list(range(self.keys))
        parts: list[list[int]] = [[]]
        for column in range(self.keys, len(widths)):
            if parts[-1] and 1 + sum(widths[each] for each in [*keys, *parts[-1], column]) > width:
                parts.append([])
            parts[-1].append(column)
        return [
            self._replace(
                title=self.title if number == 0 else f"{self.title} (continued)",
                header=[self.header[column] for column in keys + part],
                rows=[[row[column] for column in keys + part] for row in self.rows],
            )
            for number, part in enumerate(parts)
        ]

    def as_text(self) -> str:
        """Return the table as aligned lines."""
        first, *rest = self.widths()
        lines = [
            "  ".join([f"{row[0]:<{first}}", *(f"{cell:>{width}}" for cell, width in zip(row[1:], rest, strict=True))])
            for row in [self.header, *self.rows]
        ]
        return "\n".join([self.title, *(line.rstrip() for line in lines)])


def plan_tables(question: Question, settings: Sequence[SettingResult], needed: Sequence[Needed]) -> list[TextTable]:
    """Return what is needed for the target, and the errors to expect."""
    tables = [_needed_table(question, settings, needed)] if needed else []
    if question.looks_for != USERS and settings:
        has_several = len({setting.users for setting in settings}) > 1
        tables.append((_by_users_table if has_several else _errors_table)(question, settings))
    return tables


def _needed_table(question: Question, settings: Sequence[SettingResult], needed: Sequence[Needed]) -> TextTable:
    finds_users = question.looks_for == USERS
    as_text = user_count if finds_users else two_digits
    header = ["candidate", _epsilon_header(needed) if finds_users else "users", "needed", "95% range"]
    header.append("9 of 10 below" if finds_users else "plain epsilon")
    by_users = {(key_of(setting), setting.users): setting for setting in settings}
    rows = []
    for need in needed:
        row = [label_of(need), epsilon_cell(need) if finds_users else f"{need.users:,}"]
        if need.value is None:
            rows.append([*row, "out of reach", UNKNOWN, UNKNOWN])
            continue
        _, low, high = need.interval
        has_range = not (need.is_upper_bound or need.low is None or need.high is None)
        row.append(f"{'≤ ' if need.is_upper_bound else ''}{as_text(need.value)}{_mark(need)}")
        row.append(f"{as_text(low)} to {as_text(high)}" if has_range else UNKNOWN)
        if finds_users:
            setting = by_users.get((key_of(need), math.ceil(need.value)))
            row.append(UNKNOWN if setting is None else two_digits(question.error(setting).ninth))
        else:
            plain = None if need.privacy is None else need.privacy.equivalent
            row.append(UNKNOWN if plain is None else f"{plain:.3g}")
        rows.append(row)
    title = f"{'Users' if finds_users else 'Epsilon'} needed for {question.target_text}"
    return _with_truths(question, TextTable(title, header, rows), needed)


def _errors_table(question: Question, settings: Sequence[SettingResult]) -> TextTable:
    """Return one row for each candidate, where there is one number of users."""
    has_emd = any(setting.emd is not None for setting in settings)
    level = next((setting.widths.level for setting in settings if setting.widths is not None), None)
    unit = f" ({question.unit})" if question.unit not in (None, "unit") else ""
    header = ["candidate", _epsilon_header(settings), "total variation", "9 of 10 below"]
    header += [f"earth mover{unit}"] if has_emd else []
    header += [f"{100 * level:g}% interval"] if level is not None else []
    rows = []
    for setting in settings:
        row = [label_of(setting), epsilon_cell(setting), _median(setting.tv) + _mark(setting)]
        row.append(two_digits(setting.tv.ninth))
        row += [_median(setting.emd)] if has_emd else []
        if level is not None:
            widths = setting.widths
            row.append(UNKNOWN if widths is None else f"±{two_digits(float(np.median(widths.widths)) / 2)}")
        rows.append(row)
    title = f"Errors to expect with {settings[0].users:,} users"
    return _with_truths(question, TextTable(title, header, rows), settings)


def _by_users_table(question: Question, settings: Sequence[SettingResult]) -> TextTable:
    """Return the error for each candidate (down) and number of users (across)."""
    users = list(dict.fromkeys(setting.users for setting in settings))
    by_candidate: dict[CandidateKey, list[SettingResult]] = {}
    for setting in settings:
        by_candidate.setdefault(key_of(setting), []).append(setting)
    rows = []
    for own in by_candidate.values():
        cells = {setting.users: _median(question.error(setting)) + _mark(setting) for setting in own}
        rows.append([label_of(own[0]), epsilon_cell(own[0]), *(cells.get(count, UNKNOWN) for count in users)])
    unit = f" (in{question.distance_unit})" if question.distance_unit else ""
    title = f"{question.distance_name.capitalize()} to expect{unit}, by number of users"
    header = ["candidate", _epsilon_header(settings), *(f"{count:,}" for count in users)]
    return TextTable(title, header, rows, keys=2)


def _with_truths(question: Question, table: TextTable, answers: Sequence[Answer]) -> TextTable:
    """Return the table with a column for the worst truth, where several were assumed."""
    if len(question.truths) == 1:
        return table
    rows = [[*row, answer.truth] for row, answer in zip(table.rows, answers, strict=True)]
    return table._replace(header=[*table.header, "worst truth"], rows=rows)


def _epsilon_header(answers: Sequence[Answer]) -> str:
    is_metric = any(answer.privacy is not None and answer.privacy.per_unit is not None for answer in answers)
    return "epsilon (plain)" if is_metric else "epsilon"


def epsilon_cell(answer: Answer) -> str:
    """Return the epsilon of a candidate for a table: plain, per unit, or both."""
    privacy = answer.privacy
    if privacy is None or (privacy.ldp is None and privacy.per_unit is None):
        return "unbounded"
    plain = [] if privacy.ldp is None else [f"{privacy.ldp:.3g}"]
    metric = [] if privacy.per_unit is None else [f"{privacy.per_unit:.3g}/{privacy.unit or 'unit'}"]
    equivalent = f" ({privacy.equivalent:.3g})" if metric and privacy.equivalent is not None else ""
    return " or ".join(plain + metric) + equivalent


def _median(spread: Spread | None) -> str:
    return UNKNOWN if spread is None else two_digits(spread.median)


def _mark(answer: Answer) -> str:
    return "*" if answer.extrapolated else ""
