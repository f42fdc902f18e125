"""Whether outputs are independent of each other: of earlier ones, and of those about other attributes.

Each output is turned into a normal number that has the same distribution whatever the value is. The correlation of
these numbers at any lag then has mean 0 and variance 1 over the number of products, and a generator that starts again,
a memory that is used twice, or a seed that depends on the time, shows at one of the lags.
"""

from __future__ import annotations

import numpy as np

from hubbub.auditing.count_tests import LawTest, Sensitivity, one_test, several_tests
from hubbub.core.arrays import Floats

MIN_SERIES = 200  # outputs
SMALLEST_SCORE = 1e-15  # numbers are kept that far from 0 and 1


def serial_tests(scores: Floats) -> list[LawTest]:
    """Test the correlation of outputs with earlier ones, up to half the series apart."""
    from scipy.fft import irfft, next_fast_len, rfft
    from scipy.special import ndtr

    if scores.size < MIN_SERIES:
        return []
    normal = _normal(scores)
    length = next_fast_len(2 * normal.size, real=True)
    spectrum = rfft(normal, length)
    lags = np.arange(1, normal.size // 2 + 1)
    sums = irfft(spectrum * spectrum.conj(), length)[lags]
    p_values = 2 * ndtr(-np.abs(sums) / np.sqrt(normal.size - lags))

    def text(place: int) -> str:
        lag = int(lags[place])
        apart = "outputs that follow each other" if lag == 1 else f"outputs {lag:,} apart"
        return f"{apart}, in the order in which they were drawn"

    least = Sensitivity(normal.size // 2, 1, 1.0)
    return several_tests("independence of earlier outputs", p_values, least, text)


def correlation_test(first: Floats, second: Floats, about: str) -> list[LawTest]:
    """Test the correlation of two scores of each output."""
    from scipy.special import ndtr

    if first.size < MIN_SERIES:
        return []
    score = float(_normal(first) @ _normal(second)) / np.sqrt(first.size)
    return [one_test(about, float(2 * ndtr(-abs(score))), first.size, variance=1.0)]


def _normal(scores: Floats) -> Floats:
    from scipy.special import ndtri

    return np.asarray(ndtri(np.clip(scores, SMALLEST_SCORE, 1 - SMALLEST_SCORE)))
