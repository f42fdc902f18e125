"""Noise on a line: neighbouring values tell all.

On a line log-ratios add up along the way from one value to another, and so do distances; the rate of a pair is a mean
of the rates of the neighbours between them. The largest rate is therefore that of two neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import accumulate, chain, islice, pairwise

from hubbub.auditing.exact_ratios import Pair
from hubbub.client import Noise
from hubbub.sampling import LineNoiseLaw


def of_line(law: LineNoiseLaw, squared: Fraction, name: Callable[[int], str]) -> Iterator[Pair]:
    """Yield all ratios that neighbours have, at the same distance everywhere, each in the order that makes it large.

    Two neighbours and an output that is no end of the line have a ratio of k steps to k + 1 steps of noise. Where
    outputs are clamped, k is at most values - 3 (the output lies between the ends, both neighbours to one side of it),
    and the ends collect what goes at least so far: ratios of k steps or more to k + 1 steps or more, for k up to
    values - 2. With outputs anywhere, k is any number. Both kinds of ratio are the same again a block of steps
    further out, so that one block and the step into the next show them all.
    """
    noise = law.noise
    most = len(noise.steps) + 1
    for k in range(min(most, law.values - 2) if law.clamped else most):
        near, output = (k + 1, 1) if law.clamped else (0, law.low - k)
        yield _ordered(near, near + 1, name(output), *_weights(noise, k), squared)
    if law.clamped:
        for k, (least, more) in enumerate(islice(pairwise(_tails(noise)), min(most, law.values - 1))):
            yield _ordered(k, k + 1, name(0), least, more, squared)


def _weights(noise: Noise, k: int) -> tuple[int, int]:
    """Return whole numbers that are as the probabilities of k and of k + 1 steps to one side, for k up to a block."""
    one, block = 1 << noise.width, len(noise.steps)
    if k == 0:
        return (one - 2 * noise.side) * one, noise.side * noise.steps[0]
    if k < block:
        return noise.steps[k - 1], noise.steps[k]
    return noise.steps[-1] * one, noise.rest * noise.steps[0]


def _tails(noise: Noise) -> Iterator[int]:
    """Yield whole numbers that are as the probabilities of 0 steps or more to one side, of 1 or more, and so on.

    "0 or more" is all but what goes at least one step to the other side.
    """
    one = 1 << noise.width
    upto = chain([0], accumulate(noise.steps))
    return chain([(one - noise.side) * one], (noise.side * (one - gone) for gone in upto))


def _ordered(near: int, far: int, output: str, first: int, second: int, squared: Fraction) -> Pair:
    if first < second:
        near, far, first, second = far, near, second, first
    return Pair(near, far, output, first, second, squared)


def row_of_line(law: LineNoiseLaw, position: int, width: int) -> list[int]:
    """Return the probabilities of a value's clamped outputs, over 2^width."""
    noise, last = law.noise, law.values - 1
    shares = [noise.probability(abs(output - position)) for output in range(law.values)]
    shares[0] = noise.beyond(position) if position else 1 - noise.beyond(1)
    shares[last] = noise.beyond(last - position) if position < last else 1 - noise.beyond(1)
    return [int(share * (1 << width)) for share in shares]


def width_of_line(law: LineNoiseLaw) -> int:
    """Return a width over which all those probabilities are whole."""
    return law.noise.width * ((law.values - 1) // len(law.noise.steps) + 3)
