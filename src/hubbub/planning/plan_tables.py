"""The tables of a plan that people read; of several truths they show the worst."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hubbub.planning.answers import GROUP_USERS, POWER, USERS, Answer, Needed, Question, SettingResult, Spread
from hubbub.planning.number_format import epsilon_cell, power_text, two_digits, user_count

UNKNOWN = "–"


class TextTable(NamedTuple):
    """A table of texts; the first column is aligned to the left, the others to the right."""

    title: str
    header: list[str]
    rows: list[list[str]]
    keys: int = 1  # leading columns that are repeated in each part of a split table

    @classmethod
    def of(cls, title: str, columns: Mapping[str, Sequence[str]], keys: int = 1) -> TextTable:
        """Return the table of columns by their headings."""
        return cls(title, list(columns), [list(row) for row in zip(*columns.values(), strict=True)], keys)

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
    columns = {"candidate": [need.label for need in needed]}
    if question.looks_for == GROUP_USERS:
        columns |= _epsilon_column(needed)
        columns["users per group"] = [_needed_cell(need, lambda users: f"{users:,.0f}") for need in needed]
        columns["hardest value"] = [str(need.hardest) for need in needed]
        return TextTable.of(f"Users needed {question.purpose}", columns | _truth_column(question, needed))
    if question.looks_for == POWER:
        columns |= _epsilon_column(needed)
        columns["users per group"] = [f"{need.users:,}" for need in needed]
        columns["power"] = [_needed_cell(need, power_text) for need in needed]
        columns["hardest value"] = [str(need.hardest) for need in needed]
        return TextTable.of(f"Power {question.purpose}", columns | _truth_column(question, needed))
    if question.looks_for == USERS:
        what, as_text = "Users", user_count
        columns |= _epsilon_column(needed)
        ninths = {(setting.key, setting.users): two_digits(question.error(setting).ninth) for setting in settings}
        keys = [(need.key, math.ceil(need.value)) if need.value is not None else None for need in needed]
        last = {"9 of 10 below": [ninths.get(key, UNKNOWN) if key is not None else UNKNOWN for key in keys]}
    else:
        what, as_text = "Epsilon", two_digits
        columns["users"] = [f"{need.users:,}" for need in needed]
        plain = [need.spent.equivalent if need.value is not None else None for need in needed]
        last = {"plain epsilon": [UNKNOWN if epsilon is None else f"{epsilon:.3g}" for epsilon in plain]}
    columns["needed"] = [_needed_cell(need, as_text) for need in needed]
    columns["95% range"] = [_range_cell(need, as_text) for need in needed]
    title = f"{what} needed {question.purpose}"
    return TextTable.of(title, columns | last | _truth_column(question, needed))


def _needed_cell(need: Needed, as_text: Callable[[float], str]) -> str:
    if need.value is None:
        return "out of reach"
    return f"{'≤ ' if need.is_upper_bound else ''}{as_text(need.value)}{_mark(need)}"


def _range_cell(need: Needed, as_text: Callable[[float], str]) -> str:
    if need.is_upper_bound or need.low is None or need.high is None:
        return UNKNOWN
    return f"{as_text(need.low)} to {as_text(need.high)}"


def _errors_table(question: Question, settings: Sequence[SettingResult]) -> TextTable:
    """Return one row for each candidate, where there is one number of users."""
    columns = {"candidate": [setting.label for setting in settings], **_epsilon_column(settings)}
    columns["total variation"] = [_median(setting.tv) + _mark(setting) for setting in settings]
    columns["9 of 10 below"] = [two_digits(setting.tv.ninth) for setting in settings]
    if any(setting.emd is not None for setting in settings):
        unit = f" ({question.unit})" if question.unit not in (None, "unit") else ""
        columns[f"earth mover{unit}"] = [_median(setting.emd) for setting in settings]
    if any(setting.widths is not None for setting in settings):
        halves = [None if each.widths is None else float(np.median(each.widths.widths)) / 2 for each in settings]
        columns[f"{100 * question.level:g}% interval"] = [
            UNKNOWN if half is None else f"±{two_digits(half)}" for half in halves
        ]
    title = f"Errors to expect with {settings[0].users:,} users"
    return TextTable.of(title, columns | _truth_column(question, settings))


def _by_users_table(question: Question, settings: Sequence[SettingResult]) -> TextTable:
    """Return the error for each candidate (down) and number of users (across)."""
    by_key: dict[object, SettingResult] = {}
    for setting in settings:
        by_key.setdefault(setting.key, setting)
    rows = list(by_key.values())
    columns = {"candidate": [row.label for row in rows], **_epsilon_column(rows)}
    cells = {(each.key, each.users): _median(question.error(each)) + _mark(each) for each in settings}
    for count in dict.fromkeys(setting.users for setting in settings):
        columns[f"{count:,}"] = [cells.get((row.key, count), UNKNOWN) for row in rows]
    unit = f" (in{question.distance_unit})" if question.distance_unit else ""
    title = f"{question.distance_name.capitalize()} to expect{unit}, by number of users"
    return TextTable.of(title, columns, keys=2)


def _epsilon_column(answers: Sequence[Answer]) -> dict[str, list[str]]:
    is_metric = any(answer.spent.per_unit is not None for answer in answers)
    return {"epsilon (plain)" if is_metric else "epsilon": [epsilon_cell(answer.spent) for answer in answers]}


def _truth_column(question: Question, answers: Sequence[Answer]) -> dict[str, list[str]]:
    """Return the worst truth of each answer, where several were assumed."""
    return {} if len(question.truths) == 1 else {"worst truth": [answer.truth for answer in answers]}


def _median(spread: Spread | None) -> str:
    return UNKNOWN if spread is None else two_digits(spread.median)


def _mark(answer: Answer) -> str:
    return "*" if answer.extrapolated else ""
