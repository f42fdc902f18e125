"""Linear scores of outputs about buckets of values: sketches, and dBitFlip.

A report is about buckets: those of one hash h out of several, or some of the only ones. From its bits follows a vector
u over buckets whose mean is phi, the shares of the buckets, for every theta, and whose covariance at the reference is
C = D - kappa phi phi' with a diagonal D: products of two entries have mean 0, as no value is in two buckets.
With (b - w)/g the bit b without its noise, wrong with probability w and for the own bucket higher by g, u is

* for sketches that number itself in each bucket: kappa = 1, and D is its mean square;
* for dBitFlip, which asks d of B buckets: phi + (B/d) [asked] ((b - w)/g - phi). What was asked says nothing about the
  value, and around the reference it does not add to the variance either. kappa = B (d - 1) / (d (B - 1)), and
  D = (B/d) (the mean square - phi^2) + kappa phi^2.

As for other sets (`linear_scores`), with a = C^-1 phi the best score of a bucket is C^-1 (u - phi) + 1 - a' (u - phi),
and a value has that of its bucket. The information is the mean over hashes: its inverse solves for their collisions.

Outputs are too many to list, and pairs of bits that a report can have at once too many to count: the sums over users
of scores and of their products are taken over the reports themselves, so that the scatter is the empirical one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hubbub.core.arrays import Codes, Floats, Positions
from hubbub.mechanisms import DBitFlip, Mechanism
from hubbub.mechanisms.sketches import Sketch

MAX_HASHED_PAIRS = 2e10  # of values, over all hashes: some ten seconds
CHUNK_ENTRIES = 4_000_000  # of reports and values, or of hashes and buckets, worked on at a time
SPREAD_MORE = 1e-6  # relative: D is larger by so much, so that C has an inverse where reports have no noise
LARGEST_BIT_VARIANCE = 0.25


class _Buckets(NamedTuple):
    """What is known of each value's bucket (columns) under some hashes (rows), at the reference."""

    share: Floats  # phi
    inverse: Floats  # 1 / D
    part: Floats  # 1 / how many values are in it
    tilt: Floats  # a


class BucketScores(ABC):
    """Scores of outputs about buckets of values."""

    def __init__(self, hashes: int, buckets: int, reference: Floats, kept: Positions, correlation: float) -> None:
        self._hashes, self._count, self._reference = hashes, buckets, reference
        self._kept, self._correlation = kept, correlation
        self.information = self._information()

    @abstractmethod
    def _bucket_of(self, hashes: Positions) -> Positions:
        """Return the bucket of each value (columns) under hashes (rows)."""

    @abstractmethod
    def _hash_of(self, codes: Codes) -> Positions:
        """Return the hash of each output."""

    @abstractmethod
    def _deviations(self, codes: Codes, share: Floats) -> Floats:
        """Return u - phi (outputs by values)."""

    @abstractmethod
    def _spread(self, share: Floats) -> Floats:
        """Return D."""

    def _buckets(self, hashes: Positions) -> _Buckets:
        rows = self._bucket_of(hashes) + self._count * np.arange(hashes.size)[:, None]
        cells = self._count * hashes.size
        share = np.bincount(rows.ravel(), np.broadcast_to(self._reference, rows.shape).ravel(), cells)[rows]
        part = 1.0 / np.bincount(rows.ravel(), minlength=cells)[rows]
        inverse = 1.0 / ((1.0 + SPREAD_MORE) * self._spread(share))
        tilt = share * inverse
        left = 1.0 - self._correlation * (part * share * tilt).sum(axis=1, keepdims=True)
        return _Buckets(share, inverse, part, tilt / left)

    def _information(self) -> Floats:
        """Return the mean of C^-1 - a 1' - 1 a' + (1 + phi' a) 1 1' over hashes, for each two values' buckets."""
        size = self._reference.size
        total, kappa = np.zeros((size, size)), self._correlation
        step = max(1, CHUNK_ENTRIES // max(size, self._count))
        for first in range(0, self._hashes, step):
            hashes = np.arange(first, min(first + step, self._hashes))
            own = self._buckets(hashes)
            rows = self._bucket_of(hashes) + self._count * np.arange(hashes.size)[:, None]
            columns = np.broadcast_to(np.arange(size), rows.shape)
            shape = (size, self._count * hashes.size)
            held = sparse.csr_array((np.sqrt(own.inverse).ravel(), (columns.ravel(), rows.ravel())), shape=shape)
            total += (held @ held.T).toarray()
            told = (own.part * own.share * own.tilt).sum(axis=1)  # phi' a
            # C^-1 = 1/D + kappa e e' / (1 - kappa phi' e) with e = phi / D, and a = e / (1 - kappa phi' e).
            total += (own.tilt * (kappa / (1.0 + kappa * told))[:, None]).T @ own.tilt
            tilts = own.tilt.sum(axis=0)
            total += float((1.0 + told).sum()) - tilts[:, None] - tilts[None, :]
        return np.asarray(total / self._hashes)

    def of(self, codes: Codes) -> Floats:
        """Return the score of each output (values by outputs)."""
        parts = [self._scores(codes[part]) for part in self._chunks(len(codes))]
        return np.concatenate(parts, axis=1) if parts else np.zeros((self._reference.size, 0))

    def _chunks(self, outputs: int) -> list[slice]:
        """Return outputs that are worked on at a time."""
        step = max(1, CHUNK_ENTRIES // max(self._entries, self._count))
        return [slice(first, first + step) for first in range(0, outputs, step)]

    def _scores(self, codes: Codes) -> Floats:
        sent, hash_of = np.unique(self._hash_of(codes), return_inverse=True)
        share, inverse, part, tilt = (numbers[hash_of] for numbers in self._buckets(sent))
        away = self._deviations(codes, share)
        inner = (part * tilt * away).sum(axis=1, keepdims=True)  # a' (u - phi)
        told = (part * share * tilt).sum(axis=1, keepdims=True)
        scale = self._correlation / (1.0 + self._correlation * told)
        return np.asarray((inverse * away + inner * (scale * tilt - 1.0) + 1.0).T)

    def tally(self, codes: Codes, counts: Floats) -> Floats:
        """Return the sum of the scores over users (first row), and that of their products (all others)."""
        size = self._reference.size
        tally = np.zeros((1 + size, size))
        for part in self._chunks(len(codes)):
            scores, weights = self._scores(codes[part]), counts[part]
            tally[0] += scores @ weights
            tally[1:] += (scores * weights) @ scores.T
        return tally

    @property
    def _entries(self) -> int:
        """How many numbers a report's score passes through."""
        return self._reference.size

    def total(self, tally: Floats, users: float) -> Floats:  # noqa: ARG002
        """Return the sum of the scores."""
        return np.asarray(tally[0])

    def scatter(self, tally: Floats, users: float, centre: Floats, *, spare: float = 0.0) -> Floats:
        """Return the empirical scatter, with `spare` more users for each bit."""
        mean = self.information @ centre
        cross = np.outer(tally[0], mean)
        scatter = tally[1:] - cross - cross.T + users * np.outer(mean, mean)
        return np.asarray(scatter + self.spare_scatter(spare, centre) if spare else scatter)

    def spare_scatter(self, spare: float, centre: Floats) -> Floats:  # noqa: ARG002
        """Return the scatter of users who answer as the reference does: the more, the less a bit may vary."""
        return np.asarray(spare / LARGEST_BIT_VARIANCE * (self.information - 1.0))


class SketchScores(BucketScores):
    """Scores of sketches."""

    def __init__(self, mechanism: Sketch, reference: Floats, kept: Positions) -> None:
        true, other = mechanism.support  # other = w + g / width: another value may share the bucket
        self._mechanism, self._gain = mechanism, (true - other) * mechanism.width / (mechanism.width - 1.0)
        self._wrong = true - self._gain
        super().__init__(mechanism.hashes, mechanism.width, reference, kept, 1.0)

    @property
    def _entries(self) -> int:
        return len(self._mechanism.domain)

    def _bucket_of(self, hashes: Positions) -> Positions:
        return self._mechanism.bucket_of(hashes[:, None], self._kept[None, :])

    def _hash_of(self, codes: Codes) -> Positions:
        return self._mechanism.hashes_of(codes)

    def _deviations(self, codes: Codes, share: Floats) -> Floats:
        held = np.unpackbits(self._mechanism.sets(codes), axis=1, count=len(self._mechanism.domain))
        return np.asarray((held[:, self._kept] - self._wrong) / self._gain - share)

    def _spread(self, share: Floats) -> Floats:
        return _mean_square(share, self._wrong, self._gain)


class AskedScores(BucketScores):
    """Scores of dBitFlip, whose buckets are those of a single hash."""

    def __init__(self, mechanism: DBitFlip, reference: Floats, kept: Positions) -> None:
        buckets, asked = int(mechanism.buckets or 2), int(mechanism.bits or 1)
        self._mechanism, self._wrong = mechanism, 1.0 / (1.0 + np.exp(mechanism.nats))
        self._asked = buckets / asked
        super().__init__(1, buckets, reference, kept, self._asked * (asked - 1) / (buckets - 1))

    def _bucket_of(self, hashes: Positions) -> Positions:
        return np.tile(self._mechanism.bucket_of(self._kept), (hashes.size, 1))

    def _hash_of(self, codes: Codes) -> Positions:
        return np.zeros(len(codes), dtype=np.int64)

    def _deviations(self, codes: Codes, share: Floats) -> Floats:
        own: Positions = self._mechanism.bucket_of(self._kept)
        asked, ones = self._mechanism.answered(codes)
        told: NDArray[np.bool_] = ones[:, own]
        away = (told - self._wrong) / (1.0 - 2.0 * self._wrong) - share
        return np.asarray(self._asked * asked[:, own] * away)

    def _spread(self, share: Floats) -> Floats:
        square = _mean_square(share, self._wrong, 1.0 - 2.0 * self._wrong)
        return np.asarray(self._asked * (square - share**2) + self._correlation * share**2)


def _mean_square(share: Floats, wrong: float, gain: float) -> Floats:
    """Return the mean square of (b - w)/g, for a bit b that is 1 with probability w + g share."""
    return np.asarray(((wrong + gain * share) * (1.0 - 2.0 * wrong) + wrong**2) / gain**2)


def bucket_scores(mechanism: Mechanism, reference: Floats, among: Positions | None) -> BucketScores | None:
    """Return the scores of outputs about buckets; None for other mechanisms, and where hashes are too many."""
    kept = np.arange(len(mechanism.domain)) if among is None else among
    if isinstance(mechanism, DBitFlip):
        return AskedScores(mechanism, reference, kept)
    if not isinstance(mechanism, Sketch) or float(mechanism.hashes) * kept.size**2 > MAX_HASHED_PAIRS:
        return None
    return SketchScores(mechanism, reference, kept)
