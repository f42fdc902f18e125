"""Checks of the periods of a trend: their names, their order in time, and when they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime

import numpy as np

from hubbub.comparison.validation import check_groups
from hubbub.core.arrays import Floats, as_real
from hubbub.core.errors import SettingError, shorten
from hubbub.estimators.validation import refuse_weights
from hubbub.reports import Reports
from hubbub.trends.small_periods import JOINED

MAX_PERIODS = 400  # a year of days; spans of them are tested


def check_periods(periods: object) -> tuple[list[str], list[Reports]]:
    """Return names and reports over one domain, in the order of time."""
    pairs = list(periods.items()) if isinstance(periods, Mapping) else _pairs(periods)
    if len(pairs) < 2:
        raise SettingError(
            "there are not several periods",
            where="trend(periods)",
            got=shorten(periods),
            expected="a dictionary from names of periods to reports, in the order of time, with two or more",
            remedy="write {'January': reports_january, 'February': reports_february}",
        )
    if len(pairs) > MAX_PERIODS:
        raise SettingError(
            "there are too many periods",
            where="trend(periods)",
            got=f"{len(pairs):,} periods",
            expected=f"at most {MAX_PERIODS}",
            remedy="join them to longer ones: weeks instead of days",
        )
    names = [str(name) for name, _ in pairs]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise SettingError(
            "two periods have the same name",
            where="trend(periods)",
            got=shorten(repeated[0]),
            expected="a different name for each period",
            remedy="add up the reports of a period before, or rename one",
        )
    checked = check_groups([reports for _, reports in pairs], "trend")
    refuse_weights(checked[0], "trend", "compare two periods at a time, with hubbub.compare")
    return names, checked


def _pairs(periods: object) -> list[tuple[object, object]]:
    given = list(periods) if isinstance(periods, Sequence) and not isinstance(periods, str) else []
    if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in given):
        return []
    return [(name, reports) for name, reports in given]


def check_times(times: object, names: Sequence[str]) -> Floats:
    """Return when the periods were: as given, as their names say if all are dates or numbers, or evenly spaced."""
    given: list[object] = []
    if times is None:
        given = [_number(name) for name in names]
        if np.isnan(np.array(given, dtype=np.float64)).any():
            return np.arange(len(names), dtype=np.float64)
    elif isinstance(times, Sequence | np.ndarray) and not isinstance(times, str):
        given = list(times)
    numbers = np.array([_number(each) for each in given], dtype=np.float64)
    if numbers.size != len(names) or not np.isfinite(numbers).all() or not (np.diff(numbers) > 0.0).all():
        raise SettingError(
            "the periods are not in the order of time",
            where="trend(periods)" if times is None else "trend(times=)",
            got=shorten(list(names) if times is None else times),
            expected=f"{len(names)} dates or numbers, each later than the one before",
            remedy="sort the periods by time; times are a number or a date for each of them",
        )
    return numbers


def _number(time: object) -> float:
    if isinstance(time, np.datetime64):
        time = time.astype("datetime64[s]").item()
    if isinstance(time, datetime):
        return time.toordinal() + (time.hour + time.minute / 60 + time.second / 3600) / 24
    if isinstance(time, date):
        return float(time.toordinal())
    if isinstance(time, str):
        return _number_in(time)
    return as_real(time)


def _number_in(name: str) -> float:
    """Return the day that a name is, the first one of a month, a number, or the middle of two; nan if it is none."""
    if JOINED in name:
        first, _, last = name.partition(JOINED)
        return 0.5 * (_number_in(first) + _number_in(last))
    for text in (name, f"{name}-01"):
        try:
            return float(date.fromisoformat(text).toordinal())
        except ValueError:
            continue
    try:
        return float(name)
    except ValueError:
        return float("nan")
