"""Do the draws follow the matrix? That finds faults of a sampler that cost no privacy, but spoil estimates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hubbub.auditing.empirical_bounds import DrawnOutputs
from hubbub.auditing.events import Counts, keys, told
from hubbub.core.arrays import Array, Codes, Floats, Positions
from hubbub.mechanisms import LocalHashing, Mechanism
from hubbub.mechanisms.frequency_oracle import SetValuedOracle
from hubbub.mechanisms.local_hashing import hash_v1
from hubbub.mechanisms.packed_outputs import BitRowOutputs

LEVEL = 1e-6  # of all tests together
FEWEST = 10.0  # expected draws of an output; rarer ones are counted together
MOST_BUCKETS = 1_000


@dataclass(frozen=True)
class Fit:
    """The smallest p-value of several tests, times their number, and which test it was."""

    p_value: float
    level: float
    tests: int
    worst: str

    @property
    def rejected(self) -> bool:
        """Whether the sampler does not follow its matrix."""
        return self.p_value < self.level


def fitting(mechanism: Mechanism, drawn: DrawnOutputs) -> Fit | None:
    """Compare the draws of each value with its row; None where the probabilities of outputs are not known."""
    parts = [np.concatenate(both) for both in zip(drawn.first, drawn.second, strict=True)]
    if mechanism.outputs is not None:
        found = list(_listed(mechanism, drawn.positions, parts))
    elif isinstance(mechanism, LocalHashing):
        found = list(_hashed(mechanism, drawn.positions, parts))
    elif isinstance(mechanism, SetValuedOracle) and isinstance(mechanism.output_space, BitRowOutputs):
        found = list(_bits(mechanism, drawn.positions, parts))
    else:
        return None
    smallest, worst = min(found)
    return Fit(min(1.0, smallest * len(found)), LEVEL, len(found), worst)


Tests = Iterator[tuple[float, str]]


def _listed(mechanism: Mechanism, positions: Positions, parts: list[Array]) -> Tests:
    """Test by chi-square over all outputs, and in one more cell all that is not listed."""
    space = mechanism.output_space
    codes: Codes = np.arange(space.size) if space.size is not None else space.encode(mechanism.outputs)
    rows = np.exp(mechanism.log_columns(codes, positions))
    listed = keys(codes)
    order = np.argsort(listed)
    for position, row, part in zip(positions.tolist(), rows, parts, strict=True):
        found = keys(space.encode(part).astype(codes.dtype))
        places = order[np.minimum(np.searchsorted(listed, found, sorter=order), order.size - 1)]
        hit = listed[places] == found
        counts = np.append(np.bincount(places[hit], minlength=order.size), np.count_nonzero(~hit))
        expected = np.append(row, max(0.0, 1 - row.sum()))
        yield chi_square(counts, expected), f"the outputs of {told(mechanism.domain.labels[position])}"


def _bits(mechanism: SetValuedOracle, positions: Positions, parts: list[Array]) -> Tests:
    """Test how often each bit is set."""
    true, other = mechanism.support
    size = len(mechanism.domain)
    for position, part in zip(positions.tolist(), parts, strict=True):
        ones = np.zeros(size, dtype=np.int64)
        for first in range(0, len(part), 4096):
            ones += np.unpackbits(part[first : first + 4096], axis=1, count=size).sum(axis=0, dtype=np.int64)
        shares = np.full(size, other)
        shares[position] = true
        for bit, p_value in enumerate(binomial(ones, len(part), shares).tolist()):
            labels = mechanism.domain.labels
            yield p_value, f"the bit of {told(labels[bit])} where the value is {told(labels[position])}"


def _hashed(mechanism: LocalHashing, positions: Positions, parts: list[Array]) -> Tests:
    """Test how often the bucket is the value's own, and whether other buckets, and bytes of seeds, are even."""
    buckets = int(mechanism.buckets or 2)
    for position, part in zip(positions.tolist(), parts, strict=True):
        value = told(mechanism.domain.labels[position])
        away = (
            part["bucket"].astype(np.int64) - hash_v1(part["seed"], np.array([position]), buckets).astype(np.int64)
        ) % buckets
        own = np.count_nonzero(away == 0)
        yield (
            float(binomial(np.array([own]), len(part), np.array([mechanism.support.true]))[0]),
            f"the bucket of {value}",
        )
        if 2 < buckets <= MOST_BUCKETS:
            others = np.bincount(away[away > 0], minlength=buckets)[1:]
            yield chi_square(others, np.full(buckets - 1, 1 / (buckets - 1))), f"other buckets than that of {value}"
        for byte in range(8):
            counts = np.bincount((part["seed"] >> np.uint64(8 * byte)).astype(np.uint8), minlength=256)
            yield chi_square(counts, np.full(256, 1 / 256)), f"the seeds sent for {value}"


def chi_square(observed: Counts, probabilities: Floats) -> float:
    """Return the p-value of counts; outputs that are expected less than `FEWEST` times are counted together."""
    from scipy.special import chdtrc

    expected = probabilities * observed.sum()
    if (observed[expected == 0] > 0).any():
        return 0.0
    order = np.argsort(expected, kind="stable")
    rare = int(np.searchsorted(expected[order], FEWEST))
    while 0 < rare < expected.size and expected[order[:rare]].sum() < FEWEST:
        rare += 1
    kept = order[rare:]
    seen = np.append(observed[kept], observed[order[:rare]].sum() if rare else [])
    wanted = np.append(expected[kept], expected[order[:rare]].sum() if rare else [])
    if seen.size < 2:
        return 1.0
    return float(chdtrc(seen.size - 1, ((seen - wanted) ** 2 / wanted).sum()))


def binomial(happened: Counts, of: int, shares: Floats) -> Floats:
    """Return two-sided p-values of counts: twice the smaller tail."""
    from scipy.stats import binom

    tails = np.minimum(binom.cdf(happened, of, shares), binom.sf(happened - 1, of, shares))
    p_values: Floats = np.minimum(1.0, 2 * np.asarray(tails))
    return p_values
