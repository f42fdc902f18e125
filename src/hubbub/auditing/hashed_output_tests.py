"""Tests of hashed outputs: the reported bucket under its seed, and the seeds themselves."""

from __future__ import annotations

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
from hubbub.mechanisms import LocalHashing
from hubbub.mechanisms.local_hashing import hash_v1

MAX_TESTED_BUCKETS = 1_000
MIN_OUTPUTS_PER_VALUE = 50  # for a test of its own
MIN_OUTPUTS_PER_SEED_TEST = 2_560  # ten for each of 256 bytes
SEED_BYTES = 8


def hashed_output_tests(mechanism: LocalHashing, positions: Positions, codes: Codes) -> list[LawTest]:
    """Return the tests of seeds and buckets."""
    offsets, total = _offsets(mechanism, positions, codes), len(codes)
    buckets, own_chance = int(mechanism.buckets or 2), mechanism.support.true
    own = offsets == 0
    tests = [binomial_test("how often the bucket is the value's own", int(own.sum()), total, own_chance)]
    if 2 < buckets <= MAX_TESTED_BUCKETS:
        counts = np.bincount(offsets[~own] - 1, minlength=buckets - 1)
        answer = chi_square(counts, np.full(buckets - 1, 1 / (buckets - 1)))
        if answer.freedom:
            tests.append(one_test("the buckets that are not the value's own", answer.p_value, total, answer.freedom))
    tests += _bucket_tests(mechanism, positions, codes)
    tests += _value_tests(mechanism, positions, own)
    return tests + _seed_tests(mechanism, positions, codes)


def bucket_scores(mechanism: LocalHashing, positions: Positions, codes: Codes, rng: np.random.Generator) -> Floats:
    """Return a number for each output that is uniform on 0 to 1 if buckets are as they should be under their seeds."""
    offsets, true, buckets = _offsets(mechanism, positions, codes), mechanism.support.true, int(mechanism.buckets or 2)
    other = (1 - true) / (buckets - 1)
    random = rng.random(offsets.size)
    return np.where(offsets == 0, true * random, true + other * (offsets - 1 + random))


def _offsets(mechanism: LocalHashing, positions: Positions, codes: Codes) -> Positions:
    """Return how many buckets beyond the value's own, under its seed, the reported one is."""
    buckets = int(mechanism.buckets or 2)
    own: Positions = hash_v1(codes[:, 0], positions, buckets).astype(np.int64)
    offsets: Positions = (codes[:, 1].astype(np.int64) - own) % buckets
    return offsets


def _bucket_tests(mechanism: LocalHashing, positions: Positions, codes: Codes) -> list[LawTest]:
    """Test how often each bucket is reported, given the seeds."""
    buckets, true = int(mechanism.buckets or 2), mechanism.support.true
    if buckets > MAX_TESTED_BUCKETS:
        return []
    own = np.bincount(hash_v1(codes[:, 0], positions, buckets).astype(np.int64), minlength=buckets)
    other = (1 - true) / (buckets - 1)
    expected = own * true + (len(codes) - own) * other
    answer = chi_square(np.bincount(codes[:, 1].astype(np.int64), minlength=buckets), expected / len(codes))
    return [one_test("how often each bucket is reported", answer.p_value, len(codes), answer.freedom)] * (
        answer.freedom > 0
    )


def _value_tests(mechanism: LocalHashing, positions: Positions, own: Positions) -> list[LawTest]:
    """Test how often the bucket is the value's own, for each value with enough outputs."""
    size, true = len(mechanism.domain), mechanism.support.true
    outputs = np.bincount(positions, minlength=size)
    tested = np.flatnonzero(outputs >= MIN_OUTPUTS_PER_VALUE)
    if not tested.size:
        return []
    happened = np.bincount(positions[own], minlength=size)
    labels = mechanism.domain.labels
    return several_tests(
        "how often the bucket is its own, for each value",
        binomial_p_values(happened[tested], outputs[tested], true),
        Sensitivity(int(outputs[tested].min()), 1, true * (1 - true)),
        lambda place: f"the bucket of {value_text(labels[tested[place]])}",
        "the same for a single value, off by more than {} percentage points",
    )


def _seed_tests(mechanism: LocalHashing, positions: Positions, codes: Codes) -> list[LawTest]:
    """Test the bytes of seeds, of all values together and of each; and seeds that occur twice."""
    from scipy.special import pdtrc

    seeds, total = codes[:, 0], len(codes)
    values, value_of, outputs = np.unique(positions, return_inverse=True, return_counts=True)
    groups = [(np.arange(total), "the seeds")] if total >= MIN_OUTPUTS_PER_SEED_TEST else []
    order = np.argsort(value_of.ravel(), kind="stable")
    ends = np.cumsum(outputs)
    for place in np.flatnonzero(outputs >= MIN_OUTPUTS_PER_SEED_TEST).tolist():
        label = value_text(mechanism.domain.labels[values[place]])
        groups.append((order[ends[place] - outputs[place] : ends[place]], f"the seeds sent for {label}"))
    uniform = np.full(256, 1 / 256)
    p_values = [
        chi_square(np.bincount((seeds[own] >> np.uint64(8 * byte)).astype(np.uint8), minlength=256), uniform).p_value
        for own, _ in groups
        for byte in range(SEED_BYTES)
    ]
    least = Sensitivity(min((own.size for own, _ in groups), default=1), 255, 0.25)
    tests = several_tests("the seeds", np.array(p_values), least, lambda place: groups[place // SEED_BYTES][1])
    frequencies = np.unique(seeds, return_counts=True)[1]
    repeats = int((frequencies * (frequencies - 1) // 2).sum())
    expected = total * (total - 1) / 2 / 2**64
    p_value = 1.0 if repeats == 0 else float(pdtrc(repeats - 1, expected))
    return [*tests, one_test("seeds that occur twice", p_value, total)]
