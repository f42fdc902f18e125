"""Counting draws against exact probabilities.

Level: every check that draws real randomness compares one p-value with `LEVEL` = 1e-9. There are fewer than 1,000 such
p-values in all test files together, so that a correct library fails once in a million runs at most (Bonferroni). Cells
of a test expect at least `FEWEST` draws; rarer outputs are pooled.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import hubbub as hb
from hubbub.mechanisms.local_hashing import hash_v1
from hubbub.mechanisms.unary_encoding import UnaryEncoding
from hubbub.sampling import Law, RandomSource

LEVEL = 1e-9
FEWEST = 50.0
Outputs = NDArray[Any]
Floats = NDArray[np.float64]
Sampler = Callable[[Outputs], Outputs]


def p_value(observed: Floats, probabilities: Floats) -> float:
    """Return the chi-square p-value of counts; 0 if something came that cannot."""
    expected = probabilities * observed.sum()
    if (observed[expected == 0] > 0).any():
        return 0.0
    order = np.argsort(expected)
    rare = int(np.searchsorted(expected[order], FEWEST))
    while 0 < rare < expected.size and expected[order[:rare]].sum() < FEWEST:
        rare += 1
    pooled = [order[:rare]] if rare else []
    seen = np.array([observed[pool].sum() for pool in pooled] + observed[order[rare:]].tolist())
    wanted = np.array([expected[pool].sum() for pool in pooled] + expected[order[rare:]].tolist())
    if seen.size < 2:
        return 1.0
    return float(stats.chi2.sf(((seen - wanted) ** 2 / wanted).sum(), seen.size - 1))


def places(mechanism: hb.Mechanism, outputs: Outputs) -> NDArray[np.int64]:
    """Return the column of the matrix for each output; one beyond the last for outputs that are not listed."""
    listed = mechanism.outputs
    assert listed is not None
    if isinstance(mechanism, UnaryEncoding | hb.SubsetSelection):
        assert len(mechanism.domain) <= 8
        lookup = np.full(256, len(listed))
        lookup[listed[:, 0]] = np.arange(len(listed))
        return lookup[outputs[:, 0]]
    if isinstance(mechanism, hb.DBitFlip):  # up to eight buckets
        lookup = np.full(1 << 16, len(listed))
        keys, sent = (rows[:, 0].astype(np.int64) << 8 | rows[:, 1] for rows in (listed, outputs))
        lookup[keys] = np.arange(len(listed))
        return np.asarray(lookup[sent], dtype=np.int64)
    if isinstance(mechanism, hb.BloomRappor | hb.CountMeanSketch):  # up to eight bits
        name = mechanism.output_space.number
        keys, sent = (rows[name].astype(np.int64) << 8 | rows["bits"][:, 0] for rows in (listed, outputs))
        lookup = np.full(1 << 16, len(listed))
        lookup[keys] = np.arange(len(listed))
        return np.asarray(lookup[sent], dtype=np.int64)
    if listed.ndim == 2:  # pairs: all rows of a column, then the next column
        size = listed[-1] - listed[0] + 1
        away = outputs - listed[0]
        inside = ((away >= 0) & (away < size)).all(axis=1)
        return np.where(inside, away[:, 0] * size[1] + away[:, 1], len(listed))
    if isinstance(mechanism, hb.Geometric | hb.Staircase):
        away = outputs - listed[0]
        return np.where((away >= 0) & (away < len(listed)), away, len(listed))
    if mechanism.answers_in_domain:
        return mechanism.domain.index(outputs)
    lookup_of = {label: place for place, label in enumerate(listed.tolist())}
    return np.array([lookup_of[label] for label in outputs.tolist()])


def counts(mechanism: hb.Mechanism, outputs: Outputs) -> Floats:
    """Count outputs by column, and in a last entry those that are not listed."""
    listed = mechanism.outputs
    assert listed is not None
    return np.bincount(places(mechanism, outputs), minlength=len(listed) + 1).astype(np.float64)


def hashed_p_value(mechanism: hb.LocalHashing, outputs: Outputs, position: int) -> float:
    """Test the step from the value's own bucket to the one reported, given the seed, and the seeds themselves."""
    buckets = int(mechanism.buckets or 2)
    own = hash_v1(outputs["seed"], np.full(len(outputs), position), buckets)
    steps = (outputs["bucket"].astype(np.int64) - own.astype(np.int64)) % buckets
    chances = np.ones(buckets)
    chances[0] = np.exp(mechanism.spent(1))
    parts = [p_value(np.bincount(steps, minlength=buckets).astype(np.float64), chances / chances.sum())]
    for shift in (0, 30, 56):
        digits = (outputs["seed"] >> np.uint64(shift)).astype(np.int64) & 255
        parts.append(p_value(np.bincount(digits, minlength=256).astype(np.float64), np.full(256, 1 / 256)))
    return min(parts)


def ends_and_middle(mechanism: hb.Mechanism) -> list[int]:
    """Return the positions of the first value, one in the middle, and the last."""
    size = len(mechanism.domain)
    return sorted({0, size // 2, size - 1})


def worst_p_value(mechanism: hb.Mechanism, sampler: Sampler | None = None, draws: int = 1_000_000) -> float:
    """Return the smallest p-value of real draws against the matrix, over three true values."""
    worst = 1.0
    chosen = ends_and_middle(mechanism)
    for position in chosen:
        values = np.repeat(mechanism.domain.labels[position : position + 1], draws // len(chosen))
        outputs = (sampler or mechanism.privatize)(values)
        assert len(outputs) == len(values)
        if isinstance(mechanism, hb.LocalHashing):
            worst = min(worst, hashed_p_value(mechanism, outputs, position))
            continue
        row = mechanism.matrix()[position]
        row = np.append(row, max(0.0, 1 - row.sum()) if mechanism.domain.labels is not mechanism.outputs else 0.0)
        worst = min(worst, p_value(counts(mechanism, outputs), row))
    return worst


def pair_p_value(mechanism: hb.Mechanism, sampler: Sampler | None = None, draws: int = 100_000) -> float:
    """Return the p-value of neighbours' outputs against independence: users must share no randomness."""
    position = len(mechanism.domain) // 2
    values = np.repeat(mechanism.domain.labels[position : position + 1], draws)
    found = places(mechanism, (sampler or mechanism.privatize)(values))
    row = mechanism.matrix()[position]
    both = np.bincount(found[::2] * row.size + found[1::2], minlength=row.size**2)
    return p_value(both.astype(np.float64), np.outer(row, row).ravel())


def forked(draw: Callable[[], bytes], children: int) -> list[bytes]:
    """Return what each of so many forked children draws."""
    found = []
    for _ in range(children):
        reader, writer = os.pipe()
        with warnings.catch_warnings():  # newer Pythons warn of threads, of which a child here has no need
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:  # pragma: no cover - a child of its own
            try:
                os.write(writer, draw())
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            found.append(pipe.read())
        os.waitpid(child, 0)
    return found


def drawing(mechanism: hb.Mechanism, law: Law, source: RandomSource | None = None) -> Sampler:
    """Return a sampler that draws from a law of one's own instead of the mechanism's."""
    from hubbub.sampling import SystemSource

    def sampler(values: Outputs) -> Outputs:
        codes = law.draw(mechanism.domain.index(values), source or SystemSource())
        return mechanism.output_space.decode(codes)

    return sampler


class Scripted(RandomSource):
    """Hands out the words it was given, in order, and complains when there are none left."""

    secure = False

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def words(self, count: int) -> NDArray[np.uint64]:
        taken, self.left = self.left[:count], self.left[count:]
        if len(taken) < count:
            raise AssertionError("more words were drawn than the script has")
        return np.array(taken, dtype=np.uint64)


def rest(number: int, bits: int) -> list[int]:
    """Return the words from which `RandomSource.number(bits)` makes a number."""
    words = -(-bits // 64)
    whole = number << (64 * words - bits)
    return [(whole >> (64 * place)) & (2**64 - 1) for place in range(words)]
