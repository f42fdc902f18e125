"""Probability ratios of noise on a line, where it is enough to compare neighbouring values.

Between two values on a line, log-ratios add up from neighbour to neighbour, and so do distances. The rate of any pair
is therefore a mean of the rates of the neighbours between them, and the largest rate belongs to two neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import accumulate, chain, islice, pairwise

from hubbub.auditing.exact_ratios import OutputRatio
from hubbub.client import Noise
from hubbub.sampling import LineNoiseLaw


def neighbour_ratios(
    law: LineNoiseLaw, squared_distance: Fraction, output_text: Callable[[int], str]
) -> Iterator[OutputRatio]:
    """Yield every ratio of two neighbours, which are at the same distance everywhere, each as a ratio of at least 1.

    For an output that is not an end of the line, the ratio is that of k steps of noise to k + 1 steps. If outputs are
    clamped, k is at most values - 3 (the output lies between the ends, and both neighbours are on one side of it), and
    each end collects all noise that goes at least as far: ratios of k steps or more to k + 1 steps or more, for k up
    to values - 2. If outputs are not clamped, k is any number. Both kinds of ratio repeat a block of steps further
    out, so one block and the step into the next cover them all.
    """
    noise = law.noise
    distinct = len(noise.steps) + 1
    for k in range(min(distinct, law.values - 2) if law.clamped else distinct):
        near, output = (k + 1, 1) if law.clamped else (0, law.low - k)
        weights = _step_weights(noise, k)
        yield OutputRatio.at_least_one(near, near + 1, output_text(output), *weights, squared_distance)
    if law.clamped:
        for k, tails in enumerate(islice(pairwise(_tail_weights(noise)), min(distinct, law.values - 1))):
            yield OutputRatio.at_least_one(k, k + 1, output_text(0), *tails, squared_distance)


def _step_weights(noise: Noise, k: int) -> tuple[int, int]:
    """Return weights proportional to the probabilities of k and of k + 1 steps to one side, for k up to a block."""
    scale, block = 1 << noise.width, len(noise.steps)
    if k == 0:
        return (scale - 2 * noise.side) * scale, noise.side * noise.steps[0]
    if k < block:
        return noise.steps[k - 1], noise.steps[k]
    return noise.steps[-1] * scale, noise.rest * noise.steps[0]


def _tail_weights(noise: Noise) -> Iterator[int]:
    """Yield weights proportional to the probabilities of at least 0, 1, 2, ... steps to one side.

    "At least 0 steps" is everything except noise to the other side.
    """
    scale = 1 << noise.width
    sums = chain([0], accumulate(noise.steps))
    return chain([(scale - noise.side) * scale], (noise.side * (scale - gone) for gone in sums))


def clamped_row(law: LineNoiseLaw, position: int, width: int) -> list[int]:
    """Return the probabilities of the clamped outputs of one value, over 2^width."""
    noise, last = law.noise, law.values - 1
    probabilities = [noise.probability(abs(output - position)) for output in range(law.values)]
    probabilities[0] = noise.beyond(position) if position else 1 - noise.beyond(1)
    probabilities[last] = noise.beyond(last - position) if position < last else 1 - noise.beyond(1)
    return [int(probability * (1 << width)) for probability in probabilities]


def clamped_width(law: LineNoiseLaw) -> int:
    """Return a width at which all probabilities of `clamped_row` are whole numbers."""
    return law.noise.width * ((law.values - 1) // len(law.noise.steps) + 3)
