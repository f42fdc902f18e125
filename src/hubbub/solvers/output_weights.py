"""What users sent, by mechanism, and how much each output counts where some users sent several.

Let the noise of an output be the variance of the unbiased estimate that follows from it alone, over that of the value
itself, less 1: r, so that 0 is no noise. The outputs of one user are about one value, which many outputs do not make
more people. If a user's outputs have the noises r_j, independent given the value, their best average has the noise
R = 1 / sum_j 1 / r_j, so that the user as a whole deserves 1 / (1 + R), of which output j has the part R / r_j. Where
each output by itself would get 1 / (1 + r_j), it therefore gets

    w_j = (R / r_j) (1 + r_j) / (1 + R)

times as much: 1 for a single output. Outputs that share a part c of their noise, because the device remembers (a
permanent response), count as one with the noise r (c + (1 - c) / m).

Such weights follow from the mechanisms alone, never from what was sent: inversion stays unbiased.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from hubbub.core.arrays import Codes, Floats
from hubbub.mechanisms import Mechanism
from hubbub.reports import BitSums, Joint, Reports, Singles

MIN_NOISE = 1e-9  # relative to the variance of a value: less is no noise

Noise = Callable[[Mechanism, Codes], float]


class WeightedOutputs(NamedTuple):
    """What users sent by one mechanism, as their only outputs or together with others."""

    mechanism: Mechanism
    codes: Codes | None  # the distinct outputs; None where only the sums of bits were kept
    counts: Floats  # the weight of each of them; of sums of bits, how many users sent a one for each value
    total: float  # the weight of all outputs
    spread: float  # the sum over users of squared weights: the variance of `total` outputs' noise, relative to one's

    @property
    def mean_spread(self) -> float:
        """The variance of the mean noise of all outputs, relative to that of one."""
        return self.spread / self.total**2


def outputs_by_mechanism(reports: Reports, noise: Noise) -> list[WeightedOutputs]:
    """Return the outputs of each mechanism in each block, weighted; `noise` says how noisy one output is."""
    sent: list[WeightedOutputs] = []
    start = 0
    for block in reports.blocks:
        users = reports.weights[start : (start := start + block.weights.size)]
        if isinstance(block, BitSums):
            total = float(block.senders)
            sent.append(WeightedOutputs(block.mechanism, None, block.ones.astype(np.float64), total, total))
        elif isinstance(block, Singles):
            total = float(users.sum())
            sent.append(WeightedOutputs(block.mechanism, block.codes, users, total, total))
        else:
            assert isinstance(block, Joint)  # noqa: S101  # there are three kinds of blocks
            sent += _of_several(block, users, noise)
    return sent


def _of_several(block: Joint, users: Floats, noise: Noise) -> list[WeightedOutputs]:
    """Return the outputs of each mechanism, of users who sent several."""
    ends = np.cumsum([0, *(len(codes) for _, codes in block.sources)])
    repeats: Any = block.repeats  # the types of sparse indices would keep a type checker busy
    parts = [sparse.csr_array(repeats[:, first:last]) for first, last in pairwise(ends)]
    numbers = np.stack([np.asarray(part.sum(axis=1)).ravel() for part in parts], axis=1).astype(np.float64)
    noises = [noise(mechanism, codes) for mechanism, codes in block.sources]
    shared = [mechanism.shared_noise for mechanism in block.mechanisms]
    weights = weights_of_outputs(numbers, noises, shared)
    sent = []
    for (mechanism, codes), part, own, count, common in zip(
        block.sources, parts, weights.T, numbers.T, shared, strict=True
    ):
        spread = users * own**2 * count * (1.0 + np.maximum(count - 1.0, 0.0) * common)
        counts = np.asarray((users * own) @ part)
        sent.append(WeightedOutputs(mechanism, codes, counts, float((users * own) @ count), float(spread.sum())))
    return sent


def weights_of_outputs(numbers: Floats, noises: Sequence[float], shared: Sequence[float]) -> Floats:
    """Return the weight of each output by patterns and mechanisms, given how many outputs of each are in a pattern."""
    single = np.maximum(np.asarray(noises, dtype=np.float64), MIN_NOISE)
    common = np.asarray(shared, dtype=np.float64)
    several = single * (common + (1.0 - common) / np.maximum(numbers, 1.0))  # of all outputs of one mechanism
    is_sent = numbers > 0
    all_of_user = 1.0 / np.where(is_sent, 1.0 / several, 0.0).sum(axis=1, keepdims=True)
    part = all_of_user / (several * np.maximum(numbers, 1.0))
    return np.where(is_sent, part * (1.0 + single) / (1.0 + all_of_user), 0.0)
