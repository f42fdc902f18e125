"""Words that nobody can list: intervals of all found words at once, the most frequent words against PEM, and time.

Run: python benchmarks/discovery.py [--runs N]

PEM is that of Wang, Li and Jha (2018), written here by itself: words are rows of bits, each group of users reports a
longer prefix by local hashing, and the k prefixes with the largest estimates go on. Both searches may test as many
candidates in a round. Shares are Zipf's.
"""

from __future__ import annotations

import argparse
import math
import string
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hubbub as hb
from hubbub.discovery.prefix_search import USUAL_CANDIDATES
from hubbub.discovery.support_counts import count_supports
from hubbub.mechanisms.local_hashing import hash_v1
from measure import row, save, seconds
from zipf_words import zipf_words

Floats = NDArray[np.float64]
Bits = NDArray[np.uint64]
LETTERS, LENGTH, EPSILON, TOP = string.ascii_lowercase, 6, 4.0, 32
LETTER_BITS = 5
WORDS = 20_000
LEVEL = 0.95
LEAST_AGAINST_PEM = 1.0  # times its F1


def coded(words: list[str]) -> Bits:
    """Return words as whole numbers of 30 bits: five for each letter, zeros behind the last."""
    codes = [[1 + LETTERS.index(letter) for letter in word] + [0] * (LENGTH - len(word)) for word in words]
    places = np.uint64(1) << (np.uint64(LETTER_BITS) * np.arange(LENGTH - 1, -1, -1, dtype=np.uint64))
    return np.array(codes, dtype=np.uint64) @ places


def pem(values: Bits, epsilon: float, k: int, rng: np.random.Generator) -> Bits:
    """Return the k most frequent values of 30 bits."""
    bits, start = LETTER_BITS * LENGTH, math.ceil(math.log2(k))
    step = int(math.log2(USUAL_CANDIDATES / k))
    groups = math.ceil((bits - start) / step)
    lengths = [start + round((turn + 1) * (bits - start) / groups) for turn in range(groups)]
    g = round(math.exp(epsilon)) + 1
    keep = math.exp(epsilon) / (math.exp(epsilon) + g - 1)
    group = rng.integers(groups, size=values.size)
    candidates, known = np.zeros(1, dtype=np.uint64), 0
    for turn, length in enumerate(lengths):
        own = values[group == turn] >> np.uint64(bits - length)
        seeds = rng.integers(0, 2**64, own.size, dtype=np.uint64)
        told = hash_v1(seeds, own.astype(np.int64), g)
        lies = (told + rng.integers(1, g, own.size).astype(np.uint64)) % np.uint64(g)
        told = np.where(rng.random(own.size) < keep, told, lies)
        more = np.arange(1 << (length - known), dtype=np.uint64)
        candidates = ((candidates[:, None] << np.uint64(length - known)) | more).ravel()
        counts = count_supports(np.stack([seeds, told], axis=1), candidates, g)
        estimates = (counts / own.size - 1 / g) / (keep - 1 / g)
        candidates, known = candidates[np.argsort(-estimates, kind="stable")[:k]], length
    return candidates


def f1(found: set[Any], wanted: set[Any]) -> float:
    """Return the harmonic mean of precision and recall."""
    return 2 * len(found & wanted) / (len(found) + len(wanted))


def against_pem(users: int, runs: int) -> list[dict[str, Any]]:
    """Compare the words that both find, from the same people."""
    words, shares = zipf_words(np.random.default_rng(0), WORDS, LETTERS, LENGTH)
    codes, texts = coded(words), np.array(words, dtype=object)
    search = hb.PrefixSearch(LETTERS, LENGTH, EPSILON)
    ours, theirs, spent, errors = [], [], [], []
    for run in range(runs):
        rng = np.random.default_rng([users, run])
        people = rng.choice(WORDS, size=users, p=shares)
        outputs = search.privatize(texts[people], rng=rng)
        start = time.perf_counter()
        found = hb.discover(search, outputs, most=TOP)
        spent.append(time.perf_counter() - start)
        ours.append(f1(set(found.words), set(words[:TOP])))
        theirs.append(f1(set(pem(codes[people], EPSILON, TOP, rng).tolist()), set(codes[:TOP].tolist())))
        known = dict(zip(words, shares, strict=True))
        errors += [abs(e - known.get(w, 0.0)) for w, e in zip(found.words, found.estimates, strict=True)]
    ratio = float(np.mean(ours) / np.mean(theirs))
    setting = f"{TOP} most frequent of {WORDS:,} words, {users:,} users, epsilon {EPSILON:g}"
    return [
        row(
            f"F1, {setting}",
            f"{runs} searches; F1 {np.mean(ours):.2f}, PEM {np.mean(theirs):.2f}; "
            f"error of a share {np.mean(errors):.4f}; {np.median(spent):.1f} s",
            f"{ratio:.2f} times that of PEM",
            f">= {LEAST_AGAINST_PEM:g}",
            holds=ratio >= LEAST_AGAINST_PEM,
        )
    ]


def coverage(search: hb.PrefixSearch, words: list[str], shares: Floats, users: int, runs: int) -> dict[str, Any]:
    """Count the searches in which all intervals hold, and in which no missed word is more frequent than stated."""
    known, texts = dict(zip(words, shares.tolist(), strict=True)), np.array(words, dtype=object)
    held = bounded = found_words = 0
    for run in range(runs):
        rng = np.random.default_rng([users, run, 3])
        outputs = search.privatize(texts[rng.choice(len(words), size=users, p=shares)], rng=rng)
        found = hb.discover(search, outputs, level=LEVEL)
        true = np.array([known.get(word, 0.0) for word in found.words])
        held += bool(((found.low <= true) & (true <= found.high)).all())
        missed = max((share for word, share in known.items() if word not in found.words), default=0.0)
        bounded += missed <= found.missed_at_most
        found_words += len(found.words)
    lowest = LEVEL - 3 * math.sqrt(LEVEL * (1 - LEVEL) / runs)
    return row(
        f"coverage, {len(search.alphabet)} letters, words of up to {search.length}, {users:,} users, "
        f"epsilon {search.epsilon:g}",
        f"{runs} searches, {found_words / runs:.0f} words each; no missed word above its bound in {bounded / runs:.1%}",
        f"all intervals hold in {held / runs:.1%}",
        f">= {lowest:.1%}",
        holds=held / runs >= lowest and bounded / runs >= lowest,
    )


def compiled_counts() -> dict[str, Any]:
    """Time supports of many candidates, compiled, and by arrays of NumPy."""
    rng = np.random.default_rng(1)
    users, candidates, g = 20_000, 2_000, 56
    codes = np.stack([rng.integers(0, 2**64, users, dtype=np.uint64), rng.integers(0, g, users).astype(np.uint64)], 1)
    keys = rng.integers(0, 2**64, candidates, dtype=np.uint64)

    def by_arrays() -> NDArray[np.int64]:
        return np.array([(hash_v1(codes[:, 0], key.astype(np.int64), g) == codes[:, 1]).sum() for key in keys])

    count_supports(codes, keys, g)  # compiles
    ours, counts = seconds(lambda: count_supports(codes, keys, g), 5)
    theirs, others = seconds(by_arrays)
    return row(
        f"supports of {candidates:,} candidates among {users:,} reports",
        f"{ours:.3f} s, {1e9 * ours / users / candidates:.2f} ns for each; by arrays {theirs:.2f} s",
        f"{theirs / ours:.0f} times as fast as by arrays",
        ">= 3 times, the same counts",
        holds=theirs >= 3 * ours and bool((counts == others).all()),
    )


def main() -> None:
    """Measure everything and save the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    runs = parser.parse_args().runs
    rows = []
    small = zipf_words(np.random.default_rng(2), 60, "abcd", 4)
    for epsilon in (1.0, 2.0, 4.0):
        search = hb.PrefixSearch("abcd", 4, epsilon, prefix_lengths=[1, 2, 3, 4], keep=16)
        rows.append(coverage(search, *small, users=5_000, runs=runs))
    large = zipf_words(np.random.default_rng(0), WORDS, LETTERS, LENGTH)
    search = hb.PrefixSearch(LETTERS, LENGTH, EPSILON, prefix_lengths=[2, 3, 4, 5, 6])
    rows.append(coverage(search, *large, users=20_000, runs=runs))
    for users, searches in ((100_000, 10), (300_000, 4), (1_000_000, 2)):
        rows += against_pem(users, searches)
    rows.append(compiled_counts())
    save("discovery", rows)


if __name__ == "__main__":
    main()
