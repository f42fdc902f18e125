"""Tests of answers about a few buckets: which ones are asked, and how often answers are wrong.

An answer is wrong with the same probability whatever is asked, so that the number of wrong answers of a person is
binomial for every value.
"""

from __future__ import annotations

import math

import numpy as np

from hubbub.auditing.count_tests import (
    LawTest,
    Sensitivity,
    binomial_p_values,
    binomial_test,
    chi_square,
    one_test,
    several_tests,
)
from hubbub.auditing.distinguishing_events import value_text
from hubbub.core.arrays import Codes, Floats, Positions
from hubbub.mechanisms import DBitFlip

MIN_ANSWERS_PER_VALUE = 50  # for a test of its own
UNPACKED_ANSWERS = 40_000_000  # worked on at a time


def asked_bit_tests(mechanism: DBitFlip, positions: Positions, codes: Codes) -> list[LawTest]:
    """Return the tests of what is asked, and of wrong answers."""
    counts = _AnswerCounts(mechanism, positions, codes)
    buckets, asked, wrong = int(mechanism.buckets or 2), int(mechanism.bits or 1), _wrong(mechanism)
    about = "how often the answer about the value's own bucket is wrong"
    tests = [binomial_test(about, int(counts.own_wrong.sum()), int(counts.own_asked.sum()), wrong)]
    others, trials = int(counts.other_wrong.sum()), int(counts.other_asked.sum())
    if trials:
        tests.append(binomial_test("how often answers about other buckets are wrong", others, trials, wrong))
        least = Sensitivity(max(1, int(counts.other_asked.min())), 1, wrong * (1 - wrong))
        p_values = binomial_p_values(counts.other_wrong, counts.other_asked, wrong)
        tests += several_tests("each bucket", p_values, least, lambda bucket: f"bucket {bucket}")
    if asked < buckets:
        chance = asked / buckets
        p_values = binomial_p_values(counts.asked, len(codes), chance)
        least = Sensitivity(len(codes), 1, chance * (1 - chance))
        tests += several_tests("how often each bucket is asked", p_values, least, lambda bucket: f"bucket {bucket}")
    answer = chi_square(np.bincount(counts.wrong, minlength=asked + 1), _wrong_law(asked, wrong))
    if answer.freedom:
        tests.append(one_test("how many answers are wrong", answer.p_value, len(codes), answer.freedom))
    return tests + _value_tests(mechanism, counts, wrong)


def answer_scores(mechanism: DBitFlip, positions: Positions, codes: Codes, rng: np.random.Generator) -> Floats:
    """Return a number for each output that is uniform on 0 to 1 if as many answers are wrong as should be."""
    chances = _wrong_law(int(mechanism.bits or 1), _wrong(mechanism))
    numbers = _AnswerCounts(mechanism, positions, codes).wrong
    return np.asarray((np.cumsum(chances) - chances)[numbers] + chances[numbers] * rng.random(numbers.size))


def _wrong(mechanism: DBitFlip) -> float:
    return 1.0 / (1.0 + math.exp(mechanism.nats))


def _wrong_law(asked: int, wrong: float) -> Floats:
    from scipy.stats import binom

    return np.asarray(binom.pmf(np.arange(asked + 1), asked, wrong))


class _AnswerCounts:
    """Counts over all outputs; the value's own bucket by value, the others by bucket."""

    def __init__(self, mechanism: DBitFlip, positions: Positions, codes: Codes) -> None:
        size, buckets = len(mechanism.domain), int(mechanism.buckets or 2)
        self.own_asked, self.own_wrong = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        self.asked, self.other_asked, self.other_wrong = (np.zeros(buckets, dtype=np.int64) for _ in range(3))
        self.wrong = np.zeros(len(codes), dtype=np.int64)  # answers of each output
        own = mechanism.bucket_of(positions)
        step = max(1, UNPACKED_ANSWERS // buckets)
        for first in range(0, len(codes), step):
            part = slice(first, first + step)
            asked, ones = mechanism.answered(codes[part])
            users = np.arange(len(asked))
            truth = np.zeros(asked.shape, dtype=bool)
            truth[users, own[part]] = True
            wrong = asked & (ones != truth)
            self.wrong[part] = wrong.sum(axis=1)
            self.asked += asked.sum(axis=0)
            is_own = asked[users, own[part]]
            self.own_asked += np.bincount(positions[part][is_own], minlength=size)
            self.own_wrong += np.bincount(positions[part][wrong[users, own[part]]], minlength=size)
            self.other_asked += (asked & ~truth).sum(axis=0)
            self.other_wrong += (wrong & ~truth).sum(axis=0)


def _value_tests(mechanism: DBitFlip, counts: _AnswerCounts, wrong: float) -> list[LawTest]:
    """Test the answers about the own bucket of each value with enough of them."""
    tested = np.flatnonzero(counts.own_asked >= MIN_ANSWERS_PER_VALUE)
    if not tested.size:
        return []
    labels = mechanism.domain.labels
    return several_tests(
        "how often the answer about its own bucket is wrong, for each value",
        binomial_p_values(counts.own_wrong[tested], counts.own_asked[tested], wrong),
        Sensitivity(int(counts.own_asked[tested].min()), 1, wrong * (1 - wrong)),
        lambda place: f"the answer about the bucket of {value_text(labels[tested[place]])}",
        "the same for a single value, off by more than {} percentage points",
    )
