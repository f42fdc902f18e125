"""Words as rows of code points: their keys, and all continuations of prefixes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.bit_sets import GOLDEN
from hubbub.core.arrays import Positions
from hubbub.mechanisms.local_hashing import mix_words

Words = NDArray[np.uint64]
Letters = NDArray[np.uint32]  # a row for each word: code points, and 0 after the last letter


def letters_of_words(words: Sequence[str], length: int) -> Letters:
    """Return a row of `length` code points for each word, 0 after its last letter."""
    rows = np.zeros((len(words), length), dtype=np.uint32)
    for place, word in enumerate(words):
        rows[place, : len(word)] = np.frombuffer(word.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    return rows


def words_of_letters(rows: Letters) -> list[str]:
    """Return the texts of rows."""
    return [bytes(row[row > 0].astype("<u4").tobytes()).decode("utf-32-le", "surrogatepass") for row in rows]


def prefix_keys(rows: Letters, asked: int) -> Words:
    """Return the keys of the prefixes of `asked` letters; a word that is shorter is followed by its end, once.

    They are those of `hubbub.client.text_key`.
    """
    keys = np.zeros(len(rows), dtype=np.uint64)
    is_open = np.ones(len(rows), dtype=bool)
    golden = np.uint64(GOLDEN)
    with np.errstate(over="ignore"):  # arithmetic modulo 2^64 is meant
        for column in rows[:, :asked].T:
            longer = mix_words(keys + (column.astype(np.uint64) + np.uint64(1)) * golden)
            keys = np.where(is_open, longer, keys)
            is_open &= column > 0
    return keys


def continuations(rows: Letters, known: int, asked: int, alphabet: Letters) -> tuple[Letters, Positions]:
    """Return all words or prefixes of up to `asked` letters that begin with one of the prefixes of `known` letters.

    A prefix that has ended is its own continuation. There is no word without letters. The place of the prefix that each
    continues is returned, too.
    """
    has_ended = (rows[:, :known] == 0).any(axis=1)
    finished, growing = [rows[has_ended]], rows[~has_ended]
    ended, parents = [np.flatnonzero(has_ended)], np.flatnonzero(~has_ended)
    for column in range(known, asked):
        if column:  # those that end here: what follows is 0 already
            finished.append(growing)
            ended.append(parents)
        size = len(growing)
        growing, parents = (np.repeat(each, alphabet.size, axis=0) for each in (growing, parents))
        growing[:, column] = np.tile(alphabet, size)
    return np.concatenate([*finished, growing]), np.concatenate([*ended, parents])


def continuation_count(prefixes: int, steps: int, alphabet_size: int, *, is_first: bool) -> int:
    """Return how many continuations prefixes have that have not ended."""
    return prefixes * sum(int(alphabet_size**j) for j in range(int(is_first), steps + 1))


def places_of(words: Sequence[str], distinct: Sequence[str]) -> Positions:
    """Return the place of each word among the distinct ones."""
    place = {word: number for number, word in enumerate(distinct)}
    return np.fromiter((place[word] for word in words), dtype=np.int64, count=len(words))
