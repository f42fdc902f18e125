"""Tests of outputs that are cells with known probabilities: value by value, and all values together.

Where counts of all values are added up, inputs are what they were: the expected counts are sums of rows. Sums of
different rows vary less than draws from their average, so that a chi-square test is at most too careful.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hubbub.auditing.count_tests import (
    Counts,
    LawTest,
    Sensitivity,
    chi_square,
    one_test,
    several_tests,
    sum_p_value,
)
from hubbub.auditing.distinguishing_events import value_text
from hubbub.auditing.output_cells import OutputCells
from hubbub.core.arrays import Floats, Positions
from hubbub.mechanisms import Mechanism, RandomizedResponse

ALL_VALUES = "more than {}% of the outputs of every value elsewhere than they should be"
ONE_VALUE = "more than {}% of the outputs of a single value elsewhere than they should be"
MIN_LOG_VARIANCE = 1e-10  # of an output's log-probability; what is less may be rounding
MAX_LIKELIHOOD_ROUNDING = 1e-9  # relative: probabilities that differ by less are the same
MAX_SKEWNESS = 0.3  # of a sum over all outputs: that of about eleven rare events
CHUNK_PROBABILITIES = 2_000_000  # that are in memory at a time


def listed_output_tests(mechanism: Mechanism, cells: OutputCells) -> list[LawTest]:
    """Return the tests of each value's outputs, of all together, of displacements, and of the amount of noise."""
    sums = _Sums(cells)
    labels = mechanism.domain.labels

    def text(place: int) -> str:
        return f"the outputs of {value_text(labels[cells.values[sums.tested[place]]])}"

    which = "each value" if cells.is_complete else f"each of the {cells.values.size:,} most frequent values"
    tests = several_tests(f"the outputs of {which}", np.array(sums.p_values), sums.sensitivities, text, ONE_VALUE)
    total = int(sums.outputs.sum())
    freedom = sum(own.freedom for own in sums.sensitivities)
    if len(sums.tested) > 1 and freedom:
        tests.append(_pooled("the outputs of all values, each by itself", sums.statistic, freedom, total))
    where = "the noise added to values" if cells.is_noise else "how often each output is sent"
    for about, observed, expected in (
        (where, sums.counts, sums.expected),
        ("how far outputs are from their values", sums.distance_counts, sums.distance_expected),
    ):
        if observed.size:
            answer = chi_square(observed, expected / total)
            if answer.freedom:
                tests.append(one_test(about, answer.p_value, total, answer.freedom))
    if sums.is_regular and not isinstance(mechanism, RandomizedResponse):  # there, it is how often values are kept
        p_value = sum_p_value(sums.deviation, sums.variance, sums.third_moment)
        tests.append(one_test("the amount of noise", p_value, total))
    return tests


def uniform_scores(cells: OutputCells, rng: np.random.Generator) -> Floats:
    """Return a number for each output: uniform on 0 to 1 if outputs follow their law, and independent if they are.

    It is the probability of lower cells, and a random part of that of its own.
    """
    scores = np.empty(cells.kept.size)
    for places, own in _chunks(cells):
        rows = cells.rows(places)
        at = cells.value_of[own] - places[0], cells.cell_of[own]
        scores[own] = np.cumsum(rows, axis=1)[at] - rows[at] * rng.random(own.size)
    return scores


def likelihood_scores(cells: OutputCells, rng: np.random.Generator) -> Floats:
    """Return the same by how likely each output is for its value: the probability of less likely ones, and a part.

    All outputs that are as likely count together, such as all that are not the value itself.
    """
    scores = np.empty(cells.kept.size)
    for places, own in _chunks(cells):
        rows = cells.rows(places)
        at = cells.value_of[own] - places[0], cells.cell_of[own]
        order = np.argsort(rows, axis=1, kind="stable")
        ranked = np.take_along_axis(rows, order, axis=1)
        rises = ranked[:, 1:] > ranked[:, :-1] * (1 + MAX_LIKELIHOOD_ROUNDING)
        starts = np.hstack([np.ones((len(rows), 1), dtype=bool), rises])
        group = np.cumsum(starts, axis=1) - 1 + cells.cells * np.arange(len(rows))[:, None]
        shares = np.bincount(group.ravel(), weights=ranked.ravel(), minlength=rows.size)
        below = (np.cumsum(shares.reshape(rows.shape), axis=1) - shares.reshape(rows.shape)).ravel()
        group_of = np.empty_like(group)
        np.put_along_axis(group_of, order, group, axis=1)
        which = group_of[at]
        scores[own] = below[which] + shares[which] * rng.random(own.size)
    return scores


class _Sums:
    """What is added up over values, a few at a time."""

    def __init__(self, cells: OutputCells) -> None:
        self.outputs = np.bincount(cells.value_of, minlength=cells.values.size)
        self.tested: list[int] = []  # places of values with enough outputs for a test of their own
        self.p_values: list[float] = []
        self.sensitivities: list[Sensitivity] = []
        self.statistic = self.deviation = self.variance = self.third_moment = 0.0
        self.counts, self.expected = np.zeros(cells.cells, dtype=np.int64), np.zeros(cells.cells)
        self.distance_counts, self.distance_expected = np.zeros(0, dtype=np.int64), np.zeros(0)
        for places, own in _chunks(cells):
            rows = cells.rows(places)
            entries = (cells.value_of[own] - places[0]) * cells.cells + cells.cell_of[own]
            counts = np.bincount(entries, minlength=rows.size).reshape(rows.shape)
            self._add(cells, places, rows, counts)

    @property
    def is_regular(self) -> bool:
        """Whether the sum of log-probabilities varies by more than rounding, and no few outputs decide about it."""
        varies = self.variance > MIN_LOG_VARIANCE * float(self.outputs.sum())
        return bool(varies and abs(self.third_moment) <= MAX_SKEWNESS * self.variance**1.5)

    def _add(self, cells: OutputCells, places: Positions, rows: Floats, counts: Counts) -> None:
        outputs = self.outputs[places]
        for place, row, own in zip(places.tolist(), rows, counts, strict=True):
            answer = chi_square(own, row)
            if answer.freedom or (row == 0).any():
                self.tested.append(place)
                self.p_values.append(answer.p_value)
                self.sensitivities.append(Sensitivity(int(own.sum()), answer.freedom, 0.25))
                self.statistic += answer.statistic
        expected = outputs[:, None] * rows
        self.counts += counts.sum(axis=0)
        self.expected += expected.sum(axis=0)
        if cells.displacements is not None:
            numbers = cells.displacements(places).ravel()
            size = max(int(numbers.max()) + 1, self.distance_counts.size)
            more = size - self.distance_counts.size
            self.distance_counts = np.pad(self.distance_counts, (0, more)) + np.bincount(
                numbers, weights=counts.ravel(), minlength=size
            ).astype(np.int64)
            self.distance_expected = np.pad(self.distance_expected, (0, more)) + np.bincount(
                numbers, weights=expected.ravel(), minlength=size
            )
        with np.errstate(divide="ignore"):
            logs = np.where(rows > 0, np.log(rows), 0.0)
        centred = logs - (rows * logs).sum(axis=1, keepdims=True)
        self.deviation += float((counts * centred).sum())
        self.variance += float((expected * centred**2).sum())
        self.third_moment += float((expected * centred**3).sum())


def _pooled(about: str, statistic: float, freedom: int, total: int) -> LawTest:
    from scipy.special import chdtrc

    return one_test(about, float(chdtrc(freedom, statistic)), total, freedom, fault=ALL_VALUES)


def _chunks(cells: OutputCells) -> Iterator[tuple[Positions, Positions]]:
    """Yield the places of some values, and the numbers of their outputs among those that are tested."""
    order = np.argsort(cells.value_of, kind="stable")
    ends = np.cumsum(np.bincount(cells.value_of, minlength=cells.values.size))
    step = max(1, CHUNK_PROBABILITIES // cells.cells)
    for first in range(0, cells.values.size, step):
        places = np.arange(first, min(first + step, cells.values.size))
        yield places, order[ends[first - 1] if first else 0 : ends[places[-1]]]
