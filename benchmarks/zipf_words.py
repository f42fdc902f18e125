"""Words for tests and benchmarks of searches: letters that follow others, and few words that are frequent."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def zipf_words(
    rng: np.random.Generator, count: int, alphabet: str, length: int, power: float = 1.0
) -> tuple[list[str], NDArray[np.float64]]:
    """Return different words of 1 to `length` letters, most of them long, and their shares by Zipf's law."""
    letters, size = np.array(list(alphabet)), len(alphabet)
    likely = np.arange(1, size + 1) ** -0.7
    likely /= likely.sum()
    following = [rng.permutation(size) for _ in range(size + 1)]  # which letters are likely after each one, and first
    lengths = np.arange(1, length + 1) / (length * (length + 1) / 2)
    words: dict[str, None] = {}
    while len(words) < count:
        last, word = size, []
        for _ in range(1 + rng.choice(length, p=lengths)):
            last = int(following[last][rng.choice(size, p=likely)])
            word.append(letters[last])
        words.setdefault("".join(word))
    shares = np.arange(1, count + 1, dtype=np.float64) ** -power
    return list(words), shares / shares.sum()
