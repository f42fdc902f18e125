"""From the reports of several groups to everything the page of groups shows. Progress is yielded, nothing written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np

from hubbub.comparison import Comparison, GroupComparison
from hubbub.comparison.many_groups import group_statistic
from hubbub.comparison.named_groups import compare_named
from hubbub.comparison.small_groups import MAX_NAMED_GROUPS, fold_small
from hubbub.comparison.validation import check_groups
from hubbub.core import validation
from hubbub.core.arrays import Floats, largest_first
from hubbub.core.errors import SettingError, shorten
from hubbub.core.progress import Progress, stepwise
from hubbub.core.redaction import redact
from hubbub.core.text import listed, whole_percent
from hubbub.estimators.shown_estimate import shown_estimate
from hubbub.goodness_of_fit import fit_test
from hubbub.intake import Tally
from hubbub.intake.reject_causes import rejected_lines
from hubbub.intake.study_input import StudyInput
from hubbub.intake.tallies.tally_summary import Summary
from hubbub.intervals import band, interval
from hubbub.intervals.result import extend
from hubbub.intervals.set_intervals import SetShares, set_shares
from hubbub.rendering import Fact
from hubbub.reporting.computation_facts import source_facts
from hubbub.reporting.groups_page import GroupsPage, GroupStatistic, group_shares
from hubbub.reporting.page_input import WHERE, page_input
from hubbub.reporting.page_values import DEFAULT_LEVEL, DEFAULT_TITLE
from hubbub.reporting.value_intervals import value_bounds
from hubbub.reports import Reports
from hubbub.trust_check import CONTRADICTION, affordable

ReportableGroups = Mapping[str, Reports | Tally | StudyInput]


class _GroupIntervals(NamedTuple):
    """The intervals of one group as they are shown: of each value, and of the mean, where there is one."""

    low: Floats
    high: Floats
    mean: tuple[float, float]
    notes: list[str]


@stepwise
def make_groups_page(
    given: ReportableGroups,
    *,
    level: float | None = None,
    title: str | None = None,
    against: str | None = None,
    min_group: int = 1,
    quick: bool = False,
    by: str = "",
) -> Generator[Any, None, GroupsPage]:
    """Return the content of the page that `report` writes about groups.

    Everything is that of `compare` or `compare_groups`, of `estimate` and of `band` for each group. A test of the fit
    is made once, for all groups together: if each of them fits the study, so do all.
    """
    validation.boolean(quick, "quick", WHERE)
    validation.whole(min_group, "min_group", WHERE)
    if title is not None:
        validation.text(title, "title", WHERE, default="the name of the study")
    level = DEFAULT_LEVEL if level is None else validation.level(level, WHERE)
    everybody, summaries = _read(given)
    groups, notes = fold_small(everybody, min_group, WHERE)
    notes = list(dict.fromkeys([*(note for summary in summaries for note in summary.notes), *notes]))
    comparison = yield from compare_named.steps(groups, against=against, level=level)
    contradiction = ""
    if not quick:
        reports = list(groups.values())
        tested = yield from fit_test.steps(sum(reports[1:], start=reports[0]))
        contradiction = CONTRADICTION if tested.rejected else ""
    found = []
    for place, own in enumerate(groups.values()):
        yield Progress(place, len(groups), "intervals of groups")
        found.append((yield from _intervals(own, level, quick)))
    low, high = (np.array([getattr(each, end) for each in found]) for end in ("low", "high"))
    rejected: Counter[str] = sum((Counter(summary.rejected) for summary in summaries), Counter())
    names = list(dict.fromkeys(summary.study.name for summary in summaries if summary.study.name))
    return GroupsPage(
        title=redact(title or (names[0] if len(names) == 1 else DEFAULT_TITLE)),  # everybody can read it
        summary=f"{contradiction} {comparison.sentence}".strip(),
        by=by,
        comparison=comparison,
        low=low,
        high=high,
        statistic=_statistic(group_shares(comparison), groups, found, low, high),
        facts=(
            *_comparison_facts(comparison),
            *source_facts(summaries),
            Fact("estimates", "of each group by itself, by auto"),
            Fact("confidence level", f"{whole_percent(level)}, of each interval"),
            Fact("hubbub", f"version {version('hubbub')}"),
        ),
        notes=(*notes, *rejected_lines(rejected), *_interval_notes(groups, found)),
    )


def _comparison_facts(comparison: Comparison | GroupComparison) -> list[Fact]:
    """Return what stands nowhere else on the page; on a map, no reader asks for the order by the first cell."""
    elsewhere = {"in short", "groups", "equal?", "test", *(["order"] if comparison.domain.chart == "map" else [])}
    return [fact for fact in comparison.facts() if fact.label not in elsewhere]


def _read(given: object) -> tuple[dict[str, Reports], list[Summary]]:
    """Return the reports of each group, and what was counted to get them."""
    if not isinstance(given, Mapping) or not all(isinstance(name, str) and name for name in given):
        raise SettingError(
            "groups must have names",
            where=f"{WHERE}(groups)",
            got=shorten(given),
            expected="a dictionary from names to reports",
            remedy="write {'north': reports_north, 'south': reports_south}",
        )
    groups, summaries = dict[str, Reports](), list[Summary]()
    for name, own in given.items():
        source = page_input(own, None)
        if source.reports is None or source.summary is None:
            raise SettingError(
                "an estimate cannot be compared",
                where=f"{WHERE}(groups)",
                got=f"{shorten(name)}: {shorten(own)}",
                expected="the reports of each group, or its tally",
                remedy="pass the reports themselves: how certain a difference is depends on them",
            )
        groups[name] = source.reports
        summaries.append(source.summary)
    check_groups(list(groups.values()), WHERE)
    return groups, summaries


def _intervals(reports: Reports, level: float, quick: bool) -> Generator[Any, None, _GroupIntervals]:
    """Return the intervals of a group: those that `estimate` shows, then of the linear estimate."""
    shown = yield from shown_estimate(reports, None, WHERE)
    domain, places = reports.domain, reports.domain.places
    by_profile = None
    if not quick:
        likeliest = domain.labels[largest_first(shown.probabilities)]
        values = domain.labels[affordable(reports, likeliest)]
        by_profile = yield from band.steps(reports, level, values=values, estimate=shown)
    linear = None
    if by_profile is None or np.isnan(by_profile.low).any():
        made = yield from set_shares.steps(reports, shown.probabilities)
        linear = made if isinstance(made, SetShares) else None
    low, high, notes = value_bounds(shown, by_profile, linear, level, quick=quick)
    mean = (np.nan, np.nan)
    if places is not None and not quick:
        weights = dict(zip(domain.labels.tolist(), places.tolist(), strict=True))
        of_mean = yield from interval.steps(reports, weights, level, estimate=shown)
        mean = of_mean.low, of_mean.high
    return _GroupIntervals(*extend(low, high, shown.probabilities), mean, notes)


def _statistic(
    shares: Floats, groups: Mapping[str, Reports], found: list[_GroupIntervals], low: Floats, high: Floats
) -> GroupStatistic | None:
    """Return the number that groups are ordered by: the mean, or the share of the first value; nothing for a map."""
    domain = next(iter(groups.values())).domain
    if domain.chart == "map":
        return None
    weights, name = group_statistic(domain)
    if domain.places is None:
        return GroupStatistic(name, shares[:, 0], low[:, 0], high[:, 0])
    ends = np.array([each.mean for each in found])
    return GroupStatistic(name, shares @ weights, ends[:, 0], ends[:, 1])


def _interval_notes(groups: Mapping[str, Reports], found: list[_GroupIntervals]) -> list[str]:
    """Return what is said of intervals, once for all groups of which it is true."""
    notes: dict[str, list[str]] = {}
    for name, own in zip(groups, found, strict=True):
        for note in own.notes:
            notes.setdefault(note, []).append(name)
    return [
        note if len(names) == len(groups) else f"{listed(names, most=MAX_NAMED_GROUPS)}: {note}"
        for note, names in notes.items()
    ]
