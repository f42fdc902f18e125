"""The columns of a survey: the weight of each row, and the stratum and cluster in which its user was sampled.

Each distinct combination has a number, its tag. While users are merged to patterns, the tag of a user is one more item
of the pattern: users who sent the same with other weights are kept apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Floats, Positions
from hubbub.core.errors import shorten
from hubbub.core.number_advice import number_advice
from hubbub.intake.group_names import entry_name
from hubbub.intake.reject_causes import Fault, missing_entry, row_fault
from hubbub.intake.sources.base import Rows
from hubbub.intake.sources.distinct_entries import entries_of
from hubbub.reports.survey_weights import NO_LABEL

FIRST_TAG = 1 << 40  # as an item: above the number of any output
NUMBER = re.compile(r"\s*(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
Tag = tuple[float, str, str]


class SurveyTags:
    """The combinations of weight, stratum and cluster that were met, by number."""

    def __init__(self, roles: Sequence[str]) -> None:
        self._roles = tuple(roles)
        self._tags: dict[Tag, int] = {}

    def encode(self, rows: Rows) -> tuple[Positions, list[tuple[int, Fault]]]:
        """Return the tag of each row, and which rows have none, and why."""
        entries = {role: _entries(rows, role) for role in self._roles}
        indices = np.column_stack([places for _, places in entries.values()])
        met, which = np.unique(indices, axis=0, return_inverse=True)
        tags, faults = np.empty(len(met), dtype=np.int64), {}
        for number, places in enumerate(met.tolist()):
            found = {role: names[place] for (role, (names, _)), place in zip(entries.items(), places, strict=True)}
            fault = next((entry for entry in found.values() if isinstance(entry, Fault)), None)
            if fault is not None:
                tags[number], faults[number] = -1, fault
                continue
            tag = (found.get("weight", 1.0), found.get("stratum", NO_LABEL), found.get("cluster", NO_LABEL))
            tags[number] = self._tags.setdefault(tag, len(self._tags))
        which = which.ravel()
        bad = np.flatnonzero(tags[which] < 0).tolist()
        return tags[which], [(row, faults[int(which[row])]) for row in bad]

    def number(self, weights: Floats, strata: Sequence[str], clusters: Sequence[str]) -> Positions:
        """Return the tags of users that were counted before."""
        tags = zip(weights.tolist(), strata, clusters, strict=True)
        return np.array([self._tags.setdefault(tag, len(self._tags)) for tag in tags], dtype=np.int64)

    def columns(self, tags: Positions) -> tuple[Floats, NDArray[np.str_], NDArray[np.str_]]:
        """Return the weights, strata and clusters of some tags."""
        listed = list(self._tags)
        weights = np.array([weight for weight, _, _ in listed])
        strata, clusters = (np.array([tag[place] for tag in listed], dtype=np.str_) for place in (1, 2))
        return weights[tags], strata[tags], clusters[tags]


def _entries(rows: Rows, role: str) -> tuple[list[float | str | Fault], Positions]:
    """Return the distinct entries of a column, read, and the index of each row's."""
    entries = entries_of(rows.columns[role], role)
    met, places = np.unique(entries.indices, return_inverse=True)
    read = _weight if role == "weight" else lambda entry: entry_name(entry) or missing_entry(role)
    return [read(entries.values[index]) for index in met.tolist()], places.ravel()


def _weight(entry: object) -> float | Fault:
    if entry is None or entry == "" or entry != entry:
        return missing_entry("weight")
    is_number = not isinstance(entry, bool) and (not isinstance(entry, str) or NUMBER.fullmatch(entry) is not None)
    try:
        weight = float(entry) if is_number else -1.0  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        weight = -1.0
    if not 0.0 < weight < np.inf:
        return row_fault(
            "not-a-weight",
            "the weight is not a positive number",
            got=shorten(entry),
            expected="how many people the row's user stands for, such as 0.83",
            remedy=number_advice(entry, "correct the weight; remove the rows of users who do not count"),
            column="weight",
        )
    return weight


def two_tags(user: object, rows: int) -> Fault:
    """Return the fault of a user whose rows differ in weight, stratum or cluster."""
    return row_fault(
        "two-weights",
        "the rows of a user have different weights, strata or clusters",
        got=f"{rows:,} rows of the user {shorten(user)}",
        expected="the same in all rows of a user",
        remedy="give each user one weight, one stratum and one cluster",
        column="weight",
    )
