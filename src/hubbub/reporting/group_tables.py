"""The tables of the page of groups: the groups, what differs, and all numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hubbub.comparison import Comparison, GroupComparison
from hubbub.comparison.comparison_sentences import p_text
from hubbub.comparison.many_groups import group_statistic
from hubbub.core.text import percent, plural, whole_percent
from hubbub.reporting.group_panels import difference_interval, share_interval, signed_points
from hubbub.reporting.groups_page import GroupsPage

MAX_CHANGES = 20  # that are listed
MAX_ROWS = 4_000  # of the table of all numbers
DIFFERS = "differs"
WRITE_ALL = "hubbub compare -o comparison.csv writes all of them."


class TableCell(NamedTuple):
    """A text, the exact number behind it for programs that read the page, and what stands beside it: an interval."""

    text: str
    number: float | None = None
    aside: str = ""


class PageTable(NamedTuple):
    """A table for readers, the first columns of which hold names."""

    caption: str
    head: list[str]
    rows: list[list[TableCell]]
    names: int = 1


def groups_table(page: GroupsPage) -> PageTable:
    """Return a row for each group: users, one statistic with its interval, the pooled one, and its rank."""
    own, statistic = page.comparison, page.statistic
    if statistic is None:
        users = [
            [TableCell(name), TableCell(f"{own:,}", own)] for name, own in zip(page.names, page.users, strict=True)
        ]
        return PageTable(plural(len(users), "group"), ["Group", "Users"], users)
    weights, _ = group_statistic(page.domain)
    is_share = page.domain.places is None
    head = ["Group", "Users", f"{statistic.name}, {whole_percent(page.level)} interval"]
    ranked = own.order if isinstance(own, GroupComparison) else ()
    order = [page.names.index(each.name) for each in ranked] or list(range(len(page.names)))
    rows = []
    for place in order:
        estimate, low, high = (float(each[place]) for each in (statistic.estimate, statistic.low, statistic.high))
        interval = statistic_interval(low, high, is_share=is_share)
        rows.append(
            [
                TableCell(page.names[place]),
                TableCell(f"{page.users[place]:,}", page.users[place]),
                TableCell(statistic_text(estimate, is_share=is_share), estimate, interval),
            ]
        )
    caption = f"{plural(len(rows), 'group')}, with {f'the share of {statistic.name}' if is_share else statistic.name}"
    if isinstance(own, GroupComparison):
        head += ["Partially pooled", "Rank"]
        caption += "; the largest first"
        for row, place, each in zip(rows, order, ranked, strict=True):
            pooled = float(own.pooled.shares[place] @ weights)
            ranks = str(each.first) if each.first == each.last else f"{each.first} to {each.last}"
            row += [TableCell(statistic_text(pooled, is_share=is_share), pooled), TableCell(ranks)]
    return PageTable(caption, head, rows)


def changes_table(page: GroupsPage) -> PageTable:
    """Return the differences that hold for certain, the largest first; the caption says how many there are."""
    contrasts, size = page.contrasts, len(page.domain)
    values = range(size if size > 2 else 1)  # of two values, the second says the same
    every = [(number, value) for number in range(len(contrasts)) for value in values]
    found = [(number, value) for number, value in every if contrasts[number].changed[value]]
    found.sort(key=lambda each: -abs(contrasts[each[0]].difference[each[1]]))
    counts = (
        f"{len(found):,} of {plural(len(every), 'difference')} {'holds' if len(found) == 1 else 'hold'} for certain"
    )
    rows = [
        [
            TableCell(page.domain.title(value)),
            TableCell(contrasts[number].title),
            *_difference_cells(*(each[value] for each in contrasts[number][2:6])),
        ]
        for number, value in found[:MAX_CHANGES]
    ]
    caption = f"{counts}; the {MAX_CHANGES} largest" if len(found) > MAX_CHANGES else counts
    return PageTable(caption, ["Value", "Compared", *_difference_head(page)], rows, 2)


def numbers_table(page: GroupsPage) -> PageTable:
    """Return all shares and differences, a row for each value of each group; of very many, those that tell most."""
    if isinstance(page.comparison, Comparison):
        return _pair_numbers(page, page.comparison)
    return _group_numbers(page, page.comparison)


def statistic_text(number: float, *, is_share: bool) -> str:
    """Return a share, or another number, for readers."""
    return percent(number) if is_share else f"{number:.4g}"


def statistic_interval(low: float, high: float, *, is_share: bool) -> str:
    """Return the interval of a share, or of another number, for readers."""
    if is_share or np.isnan(low) or np.isnan(high):
        return share_interval(low, high)
    return f"{low:.4g} to {high:.4g}"


def _difference_head(page: GroupsPage) -> list[str]:
    return [f"Difference in points, {whole_percent(page.level)} interval", "p, adjusted"]


def _difference_cells(difference: float, low: float, high: float, adjusted: float) -> list[TableCell]:
    if np.isnan(difference):  # the group that all others are compared with
        return [TableCell(""), TableCell("")]
    interval = difference_interval(float(low), float(high))
    p_value = p_text(float(adjusted)).removeprefix("p = ").removeprefix("p ")
    return [
        TableCell(signed_points(float(difference)), float(difference), interval),
        TableCell(p_value, float(adjusted)),
    ]


def _share_cell(page: GroupsPage, group: int, value: int) -> TableCell:
    share, low, high = (float(each[group, value]) for each in (page.shares, page.low, page.high))
    return TableCell(percent(share), share, share_interval(low, high))


def _pair_numbers(page: GroupsPage, own: Comparison) -> PageTable:
    rows = [
        [
            TableCell(page.domain.title(value)),
            _share_cell(page, 0, value),
            _share_cell(page, 1, value),
            *_difference_cells(own.difference[value], own.low[value], own.high[value], own.adjusted[value]),
            TableCell(DIFFERS if own.changed[value] else ""),
        ]
        for value in range(len(page.domain))
    ]
    return PageTable(f"All {plural(len(rows), 'value')}", ["Value", *own.names, *_difference_head(page), ""], rows)


def _group_numbers(page: GroupsPage, own: GroupComparison) -> PageTable:
    groups, values = np.divmod(np.arange(own.shares.size), len(page.domain))
    caption = f"All {plural(groups.size, 'row')}"
    if groups.size > MAX_ROWS:
        size = np.nan_to_num(np.abs(own.difference[groups, values]))
        kept = np.sort(np.lexsort((-size, ~own.changed[groups, values]))[:MAX_ROWS])
        which = "those that differ, then those with the largest differences"
        caption = f"{MAX_ROWS:,} of {groups.size:,} rows: {which}. {WRITE_ALL}"
        groups, values = groups[kept], values[kept]
    rows = []
    for group, value in zip(groups.tolist(), values.tolist(), strict=True):
        pooled = float(own.pooled.shares[group, value])
        numbers = (each[group, value] for each in (own.difference, own.low, own.high, own.adjusted))
        rows.append(
            [
                TableCell(own.names[group]),
                TableCell(page.domain.title(value)),
                _share_cell(page, group, value),
                TableCell(percent(pooled), pooled),
                *_difference_cells(*numbers),
                TableCell(DIFFERS if own.changed[group, value] else ""),
            ]
        )
    share = f"Share, {whole_percent(page.level)} interval"
    return PageTable(caption, ["Group", "Value", share, "Partially pooled", *_difference_head(page), ""], rows, 2)
