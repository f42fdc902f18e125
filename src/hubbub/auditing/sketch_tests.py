"""Tests of sketches: which hash is sent, and noisy bits, or one noisy sign, about the value's bucket under it."""

from __future__ import annotations

from functools import cached_property

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
from hubbub.channels.hadamard_sums import parities
from hubbub.core.arrays import Codes, Floats, Positions
from hubbub.mechanisms import CountMeanSketch, HadamardCountMeanSketch
from hubbub.sampling import NUMBER_BYTES, row_numbers

MIN_OUTPUTS_OF_ONE = 50  # value, hash or row, for a test of its own
UNPACKED_BITS = 40_000_000  # worked on at a time

SketchMechanism = CountMeanSketch | HadamardCountMeanSketch


def sketch_tests(mechanism: SketchMechanism, positions: Positions, codes: Codes) -> list[LawTest]:
    """Return the tests of hashes and rows, and of wrong bits or signs."""
    wrong = WrongBits(mechanism, positions, codes)
    hashes, width, total = mechanism.hashes, mechanism.width, len(codes)
    own = "bit of the value's own bucket" if isinstance(mechanism, CountMeanSketch) else "sign"
    tests = [binomial_test(f"how often the {own} is wrong", int(wrong.own.sum()), total, wrong.chance)]
    if isinstance(mechanism, CountMeanSketch):
        trials, others = total - wrong.own_buckets, wrong.buckets
        tests.append(
            binomial_test("how often other bits are wrong", int(others.sum()), int(trials.sum()), wrong.chance)
        )
        p_values = binomial_p_values(others, trials, wrong.chance)
        least = Sensitivity(max(1, int(trials.min())), 1, wrong.chance * (1 - wrong.chance))
        tests += several_tests("each bit", p_values, least, lambda bucket: f"bit {bucket}")
        answer = chi_square(np.bincount(wrong.numbers, minlength=width + 1), wrong.law)
        if answer.freedom:
            tests.append(one_test("how many bits are wrong", answer.p_value, total, answer.freedom))
    else:
        rows = mechanism.parts_of(codes)[1]
        tests += _uniform("how often each row is sent", rows, width)
        tests += _wrong_by(f"how often the {own} is wrong, for each row", rows, width, wrong, "row")
    tests += _uniform("how often each hash is sent", wrong.hashes, hashes)
    tests += _wrong_by(f"how often the {own} is wrong, for each hash", wrong.hashes, hashes, wrong, "hash")
    labels = [value_text(label) for label in mechanism.domain.labels]
    about = f"how often the {own} is wrong, for each value"
    return tests + _wrong_by(about, positions, len(labels), wrong, "value", labels)


def wrong_scores(mechanism: SketchMechanism, positions: Positions, codes: Codes, rng: np.random.Generator) -> Floats:
    """Return a number for each output that is uniform on 0 to 1 if as many bits are wrong as should be."""
    wrong = WrongBits(mechanism, positions, codes)
    below = np.cumsum(wrong.law) - wrong.law
    return np.asarray(below[wrong.numbers] + wrong.law[wrong.numbers] * rng.random(len(codes)))


class WrongBits:
    """What is wrong in each output, given the values."""

    def __init__(self, mechanism: SketchMechanism, positions: Positions, codes: Codes) -> None:
        self.bits = 1
        if isinstance(mechanism, HadamardCountMeanSketch):
            self.chance = 1.0 - mechanism.support.true
            self.hashes, rows, signs = mechanism.parts_of(codes)
            self.own = parities(rows, mechanism.bucket_of(self.hashes, positions)) != signs
            self.numbers: Positions = self.own.astype(np.int64)
            return
        self.bits, self.chance = mechanism.width, 1.0 - mechanism.support.true
        self.hashes = row_numbers(codes)
        own = mechanism.bucket_of(self.hashes, positions)
        self.own_buckets = np.bincount(own, minlength=self.bits)
        self.buckets: Positions = np.zeros(self.bits, dtype=np.int64)  # how often each is wrong that is not the own
        self.own = np.zeros(len(codes), dtype=bool)
        self.numbers = np.zeros(len(codes), dtype=np.int64)
        step = max(1, UNPACKED_BITS // self.bits)
        for first in range(0, len(codes), step):
            part = slice(first, first + step)
            wrong = np.unpackbits(codes[part, NUMBER_BYTES:], axis=1, count=self.bits).astype(bool)
            at = np.arange(len(wrong)), own[part]
            wrong[at] ^= True
            self.numbers[part], self.own[part] = wrong.sum(axis=1), wrong[at]
            wrong[at] = False
            self.buckets += wrong.sum(axis=0)

    @cached_property
    def law(self) -> Floats:
        """The probabilities of so many wrong bits."""
        from scipy.stats import binom

        return np.asarray(binom.pmf(np.arange(self.bits + 1), self.bits, self.chance))


def _uniform(about: str, sent: Positions, count: int) -> list[LawTest]:
    answer = chi_square(np.bincount(sent, minlength=count), np.full(count, 1 / count))
    return [one_test(about, answer.p_value, sent.size, answer.freedom)] if answer.freedom else []


def _wrong_by(
    about: str, group_of: Positions, count: int, wrong: WrongBits, noun: str, labels: list[str] | None = None
) -> list[LawTest]:
    """Test how often the own bit is wrong for each value, hash or row with enough outputs."""
    outputs = np.bincount(group_of, minlength=count)
    tested = np.flatnonzero(outputs >= MIN_OUTPUTS_OF_ONE)
    if not tested.size:
        return []
    happened = np.bincount(group_of[wrong.own], minlength=count)
    return several_tests(
        about,
        binomial_p_values(happened[tested], outputs[tested], wrong.chance),
        Sensitivity(int(outputs[tested].min()), 1, wrong.chance * (1 - wrong.chance)),
        lambda place: labels[tested[place]] if labels is not None else f"{noun} {tested[place]}",
        f"the same for a single {noun}, off by more than {{}} percentage points",
    )
