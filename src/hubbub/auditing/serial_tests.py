"""Whether outputs are independent of each other: of earlier ones, and of those about other attributes.

Each output is turned into a normal number that has the same distribution whatever the value is. These numbers are then
not correlated at any lag, and a generator that starts again, a memory that is used twice, or a seed that depends on the
time, shows at one of the lags.

Outputs are numbered in two ways: in their order, and by how likely they are for their values. A coin "say the truth"
that is used for several outputs shows in the second way alone, where the values differ.
"""

from __future__ import annotations

import numpy as np

from hubbub.auditing.count_tests import LawTest, Sensitivity, one_test, several_tests
from hubbub.core.arrays import Floats, Positions

MIN_SERIES = 200  # outputs
SMALLEST_SCORE = 1e-15  # numbers are kept that far from 0 and 1


def serial_tests(scores: Floats, values: Positions, of: str = "") -> list[LawTest]:
    """Test the correlation of outputs with earlier ones, up to half the series apart, and with the last of a value.

    `of` says what the scores are about, unless it is the outputs themselves.
    """
    from scipy.fft import irfft, next_fast_len, rfft

    if scores.size < MIN_SERIES:
        return []
    normal = _normal(scores)
    length = next_fast_len(2 * normal.size, real=True)
    spectrum = rfft(normal, length)
    lags = np.arange(1, normal.size // 2 + 1)
    products = irfft(spectrum * spectrum.conj(), length)[lags]
    sums = np.append(0.0, np.cumsum(normal**2))  # of the squares, of all outputs before each
    p_values = _correlation_p_values(products, sums[normal.size - lags], sums[-1] - sums[lags], normal.size - lags)

    def text(place: int) -> str:
        lag = int(lags[place])
        apart = "outputs that follow each other" if lag == 1 else f"outputs {lag:,} apart"
        return f"{of}{apart} (in the order in which they were drawn)"

    least = Sensitivity(normal.size // 2, 1, 1.0)
    tests = several_tests(f"{of}independence of earlier outputs", p_values, least, text)
    order = np.argsort(values, kind="stable")
    same = values[order[1:]] == values[order[:-1]]
    pairs = int(np.count_nonzero(same))
    if pairs < MIN_SERIES or pairs == values.size - 1:  # of a single value, they are the outputs one apart
        return tests
    about = f"{of}independence of the last output of the same value"
    return [*tests, _correlation(normal[order[1:]][same], normal[order[:-1]][same], about)]


def correlation_test(first: Floats, second: Floats, about: str) -> list[LawTest]:
    """Test the correlation of two scores of each output."""
    return [] if first.size < MIN_SERIES else [_correlation(_normal(first), _normal(second), about)]


def _correlation(first: Floats, second: Floats, about: str) -> LawTest:
    squares = np.array([first @ first]), np.array([second @ second])
    p_value = float(_correlation_p_values(np.array([first @ second]), *squares, np.array([first.size]))[0])
    return one_test(about, p_value, first.size, variance=1.0)


def _correlation_p_values(products: Floats, squares: Floats, other_squares: Floats, sizes: Positions) -> Floats:
    """Return p-values of sums of products of centred normal numbers, by Student's law of correlations."""
    from scipy.special import stdtr

    correlations = np.clip(products / np.sqrt(squares * other_squares), -1 + 1e-15, 1 - 1e-15)
    return np.asarray(2 * stdtr(sizes - 2, -np.abs(correlations) * np.sqrt((sizes - 2) / (1 - correlations**2))))


def _normal(scores: Floats) -> Floats:
    """Return normal numbers less their mean: outputs that are wrong, but independent, should not fail here."""
    from scipy.special import ndtri

    normal: Floats = ndtri(np.clip(scores, SMALLEST_SCORE, 1 - SMALLEST_SCORE))
    centred: Floats = normal - normal.mean()
    return centred
