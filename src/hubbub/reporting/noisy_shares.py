"""The noisy shares: the outputs as they were sent, counted by value, before anything is estimated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Codes, Floats
from hubbub.domains import Domain
from hubbub.mechanisms import DBitFlip, Geometric, Mechanism, PlanarGeometric, Staircase
from hubbub.mechanisms.frequency_oracle import SetValuedOracle
from hubbub.reports import BitSums, Block, Joint, Reports, Singles

OUTPUT_COUNTS = "how often each value was reported"
CLAMPED_COUNTS = "how often each value was reported (outputs outside the domain count at the nearest value)"
MENTION_COUNTS = "how often each value was among the ones, or in the set, of a report, as a share of all such mentions"

BUCKET_COUNTS = "how often each value's bucket had a one, in equal parts for the values in it"


class NoisyShares(NamedTuple):
    """Shares over the domain, or None, and what they are or why there are none."""

    shares: Floats | None
    note: str


def noisy_shares(reports: Reports) -> NoisyShares:
    """Return how often each value was sent, as shares; all outputs of a user count."""
    shares, notes = np.zeros(len(reports.domain)), dict[str, None]()
    for block in reports.blocks:
        for mechanism, codes, sent in _outputs_sent(block):
            counted = _counts_by_value(mechanism, codes, sent)
            if counted is None:
                kind = type(mechanism).__name__
                return NoisyShares(None, f"The outputs of {kind} are not values, so there is nothing to compare.")
            counts, note = counted
            shares += counts[reports.domain.positions]
            notes[note] = None
    total = float(shares.sum())
    if total == 0.0:
        return NoisyShares(None, "No output names a value that is estimated here, so there is nothing to compare.")
    return NoisyShares(shares / total, f"Noisy shares show the reports before estimation: {'; '.join(notes)}.")


def _outputs_sent(block: Block) -> Iterator[tuple[Mechanism, Codes | None, Floats]]:
    """Yield each mechanism's outputs and how often each was sent; of sums of bits there are only the sums."""
    if isinstance(block, BitSums):
        yield block.mechanism, None, block.ones.astype(np.float64)
    elif isinstance(block, Singles):
        yield block.mechanism, block.codes, block.weights
    elif isinstance(block, Joint):
        sent = np.asarray(block.weights @ block.repeats)
        ends = np.cumsum([len(codes) for _, codes in block.sources])
        for (mechanism, codes), counts in zip(block.sources, np.split(sent, ends[:-1]), strict=True):
            yield mechanism, codes, counts


def _counts_by_value(mechanism: Mechanism, codes: Codes | None, counts: Floats) -> tuple[Floats, str] | None:
    """Return how often each value of the mechanism's domain was sent, and a note; None if outputs are not values."""
    domain: Domain = mechanism.domain
    if codes is None:
        return counts, MENTION_COUNTS
    if isinstance(mechanism, DBitFlip):
        ones, buckets = mechanism.counts_by_bucket(codes, counts)[1], mechanism.bucket_of(np.arange(len(domain)))
        return (ones / np.bincount(buckets))[buckets], BUCKET_COUNTS
    if isinstance(mechanism, SetValuedOracle):
        return mechanism.support_counts(codes, counts), MENTION_COUNTS
    if isinstance(mechanism, Geometric | Staircase):
        low, high = int(mechanism.domain.labels[0]), int(mechanism.domain.labels[-1])
        return _summed(np.clip(codes, low, high) - low, counts, domain), CLAMPED_COUNTS
    if isinstance(mechanism, PlanarGeometric) and not mechanism.truncated:
        grid = mechanism.domain
        steps = np.clip(codes, 0, [grid.columns - 1, grid.rows - 1])
        positions = grid.find(steps[:, 1] * grid.columns + steps[:, 0])
        # A cell that is not kept has no position: a truncated mechanism would send the nearest kept one.
        if (positions < 0).any():
            from hubbub.domains.geometry import nearest

            positions = nearest(grid.steps, steps, grid.sides)
        return _summed(positions, counts, domain), CLAMPED_COUNTS
    if mechanism.answers_in_domain:
        positions = domain.find(mechanism.output_space.decode(codes))
        inside = positions >= 0
        return _summed(positions[inside], counts[inside], domain), OUTPUT_COUNTS
    return None


def _summed(positions: Codes, counts: Floats, domain: Domain) -> Floats:
    return np.bincount(positions, counts, minlength=len(domain)).astype(np.float64, copy=False)
