"""Loops that cannot be array expressions, compiled by Numba at the first call and cached on disk.

Import this module inside the functions that need it: Numba takes longer to load than all of hubbub. Work is
split into a fixed number of parts, so that sums do not depend on the number of threads.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from hubbub.channels import bit_sets as bits
from hubbub.core.arrays import Floats, Positions
from hubbub.core.compiling import compiled, loop

PARTS = bits.PATTERN_PARTS  # of the patterns, for sums over all of them
BLOCK = 128  # patterns worked on at a time: their sets and eight tables fit in the fastest cache
GOLDEN = np.uint64(bits.GOLDEN)

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]


# -- exponential decay along a line ----------------------------------------------------------------------


@compiled
def decayed_sums(weights: Floats, decay: Floats) -> tuple[Floats, Floats]:
    """Return, for each row, the sums up to each place and the sums from each place on, fading with the distance.

    up[j] = weights[j] + decay[j - 1] up[j - 1] and on[j] = weights[j] + decay[j] on[j + 1].
    """
    rows, size = weights.shape
    up, on = np.empty((rows, size)), np.empty((rows, size))
    for row in range(rows):
        running = 0.0
        for place in range(size):
            running = weights[row, place] + (decay[place - 1] * running if place > 0 else 0.0)
            up[row, place] = running
        running = 0.0
        for place in range(size - 1, -1, -1):
            running = weights[row, place] + (decay[place] * running if place < size - 1 else 0.0)
            on[row, place] = running
    return up, on


# -- packed sets -----------------------------------------------------------------------------------------


# Eight byte positions at a time, written out: their tables fit in the fastest cache, and eight sums do not wait for
# each other.


@loop()
def sums_of_sets(sets: Bytes, tables: Floats) -> Floats:
    """Return for each pattern the sum of its bytes' entries: `tables` has 256 of them for each byte position."""
    patterns, width = sets.shape
    sums = np.zeros(patterns)
    for block in prange((patterns + BLOCK - 1) // BLOCK):
        start, end = block * BLOCK, min(patterns, (block + 1) * BLOCK)
        at = 0
        while at + 8 <= width:
            t0, t1, t2, t3 = tables[at], tables[at + 1], tables[at + 2], tables[at + 3]
            t4, t5, t6, t7 = tables[at + 4], tables[at + 5], tables[at + 6], tables[at + 7]
            for i in range(start, end):
                low = t0[sets[i, at]] + t1[sets[i, at + 1]] + t2[sets[i, at + 2]] + t3[sets[i, at + 3]]
                high = t4[sets[i, at + 4]] + t5[sets[i, at + 5]] + t6[sets[i, at + 6]] + t7[sets[i, at + 7]]
                sums[i] += low + high
            at += 8
        while at < width:
            table = tables[at]
            for i in range(start, end):
                sums[i] += table[sets[i, at]]
            at += 1
    return sums


@loop()
def weights_of_bytes(sets: Bytes, weights: Floats) -> Floats:
    """Return for each byte position and byte the total weight of the patterns that have it there."""
    patterns, width = sets.shape
    held = np.zeros((PARTS, width, 256))
    for part in prange(PARTS):
        own, final = held[part], (part + 1) * patterns // PARTS
        for start in range(part * patterns // PARTS, final, BLOCK):
            end, at = min(final, start + BLOCK), 0
            while at + 8 <= width:
                t0, t1, t2, t3 = own[at], own[at + 1], own[at + 2], own[at + 3]
                t4, t5, t6, t7 = own[at + 4], own[at + 5], own[at + 6], own[at + 7]
                for i in range(start, end):
                    weight = weights[i]
                    t0[sets[i, at]] += weight
                    t1[sets[i, at + 1]] += weight
                    t2[sets[i, at + 2]] += weight
                    t3[sets[i, at + 3]] += weight
                    t4[sets[i, at + 4]] += weight
                    t5[sets[i, at + 5]] += weight
                    t6[sets[i, at + 6]] += weight
                    t7[sets[i, at + 7]] += weight
                at += 8
            while at < width:
                table = own[at]
                for i in range(start, end):
                    table[sets[i, at]] += weights[i]
                at += 1
    total = np.zeros((width, 256))
    for part in range(PARTS):
        total += held[part]
    return total


# -- hashed sets -----------------------------------------------------------------------------------------


@njit(inline="always")
def _mix(word: np.uint64) -> np.uint64:
    """Scramble a 64-bit word: the finalizer of SplitMix64."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@njit(inline="always")
def _range(bucket: np.uint64, buckets: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the first hash that falls into a bucket, and how many do less one: a comparison, not a multiplication."""
    half = np.uint64(32)
    first = ((bucket << half) + buckets - np.uint64(1)) // buckets
    beyond = (((bucket + np.uint64(1)) << half) + buckets - np.uint64(1)) // buckets
    return first << half, ((beyond - first) << half) - np.uint64(1)


@loop()
def pack_hashed(seeds: Words, reported: Words, values: int, buckets: int) -> Bytes:
    """Return as packed bits the values that hash into each reported bucket (version 1 of the hash)."""
    patterns, width = seeds.size, (values + 7) // 8
    sets = np.empty((patterns, width), dtype=np.uint8)
    for pattern in prange(patterns):
        key = _mix(seeds[pattern] + GOLDEN)
        first, span = _range(reported[pattern], np.uint64(buckets))
        for byte in range(width):
            bits = np.uint8(0)
            step = key + np.uint64(8 * byte) * GOLDEN
            for _ in range(8):
                step += GOLDEN
                bits = (bits << np.uint8(1)) | np.uint8((_mix(step) - first) <= span)
            sets[pattern, byte] = bits
        if values & 7:  # no value behind the last bits
            sets[pattern, width - 1] &= np.uint8(256 - (256 >> (values & 7)))
    return sets


@loop(fastmath={"reassoc", "nsz"})
def sums_of_hashed(seeds: Words, reported: Words, steps: Words, buckets: int, theta: Floats) -> Floats:
    """Return for each pattern the sum of theta over the values that hash into its bucket, without keeping them."""
    sums = np.empty(seeds.size)
    for pattern in prange(seeds.size):
        key = _mix(seeds[pattern] + GOLDEN)
        first, span = _range(reported[pattern], np.uint64(buckets))
        total = 0.0
        for value in range(steps.size):
            total += theta[value] if (_mix(key + steps[value]) - first) <= span else 0.0
        sums[pattern] = total
    return sums


@loop()
def weights_of_hashed(seeds: Words, reported: Words, steps: Words, buckets: int, weights: Floats) -> Floats:
    """Return for each value the total weight of the patterns whose bucket it hashes into."""
    patterns = seeds.size
    held = np.zeros((PARTS, steps.size))
    for part in prange(PARTS):
        own = held[part]
        for pattern in range(part * patterns // PARTS, (part + 1) * patterns // PARTS):
            key, weight = _mix(seeds[pattern] + GOLDEN), weights[pattern]
            first, span = _range(reported[pattern], np.uint64(buckets))
            for value in range(steps.size):
                own[value] += weight if (_mix(key + steps[value]) - first) <= span else 0.0
    total = np.zeros(steps.size)
    for part in range(PARTS):
        total += held[part]
    return total


# -- sketches --------------------------------------------------------------------------------------------


@loop()
def pack_buckets(bits: Bytes, numbers: Positions, table: NDArray[np.uint16]) -> Bytes:
    """Return as packed bits the values whose bucket, in the row of `table` that a pattern names, has a one."""
    patterns, values = bits.shape[0], table.shape[1]
    width = (values + 7) // 8
    sets = np.empty((patterns, width), dtype=np.uint8)
    for pattern in prange(patterns):
        buckets, own = table[numbers[pattern]], bits[pattern]
        for byte in range(width):
            packed = np.uint8(0)
            for value in range(8 * byte, min(8 * byte + 8, values)):
                bucket = buckets[value]
                packed |= np.uint8(((own[bucket >> 3] << (bucket & 7)) & 128) >> (value & 7))
            sets[pattern, byte] = packed
    return sets


# -- grids -----------------------------------------------------------------------------------------------


@loop()
def sums_on_grid(
    cells: Positions, values: Positions, theta: Floats, table: Floats, across: Positions, along: Positions
) -> Floats:
    """Return for each cell the sum over values of theta times its likelihood, one by one: no digit is lost.

    `table` holds the likelihoods by kinds of strips (rows, then columns); `across` and `along` say which strip
    lies between a value's and an output's column, and row.
    """
    columns = across.shape[0]
    sums = np.empty(cells.size)
    for place in prange(cells.size):
        row, column = cells[place] // columns, cells[place] % columns
        total = 0.0
        for number in range(values.size):
            own_row, own_column = values[number] // columns, values[number] % columns
            total += theta[number] * table[along[own_row, row], across[own_column, column]]
        sums[place] = total
    return sums


@compiled
def products_on_grid(
    values: Positions, weights: Floats, table: Floats, reach: int, across: int
) -> tuple[Positions, Positions, Floats]:
    """Return, for pairs of values that are near, the sum of their likelihoods' products over outputs near both.

    Near means within `reach` rows and `across` columns. `values` rise; pairs come as (first, second, product) with
    first <= second. Outputs at the edges count like others.
    """
    rows, columns = weights.shape
    count = 0
    for keep in range(2):  # once to count, once to fill
        if keep == 1:
            first, second = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
            products = np.empty(count)
            count = 0
        for one in range(values.size):
            row, column = values[one] // columns, values[one] % columns
            for other in range(one, values.size):
                down, over = values[other] // columns, values[other] % columns
                if down - row > 2 * reach:
                    break
                if abs(over - column) > 2 * across:
                    continue
                if keep == 1:
                    total = 0.0
                    left, right = max(0, max(column, over) - across), min(columns - 1, min(column, over) + across)
                    for z in range(max(0, down - reach), min(rows - 1, row + reach) + 1):
                        near, far = table[abs(z - row)], table[abs(z - down)]
                        for place in range(left, right + 1):
                            total += weights[z, place] * near[abs(place - column)] * far[abs(place - over)]
                    first[count], second[count], products[count] = one, other, total
                count += 1
    return first, second, products


@compiled
def sums_at_edges(first: Floats, spectra: Floats) -> Floats:
    """Return for each edge the sum over lines of first times its spectrum: (batch, edges, frequencies).

    Complex numbers come as pairs of floats, since a spectrum's are real: (batch, lines, 2 frequencies).
    """
    batch, lines, width = first.shape
    edges = spectra.shape[0]
    sums = np.zeros((batch, edges, width))
    for each in range(batch):
        for line in range(lines):
            for edge in range(edges):
                own, along, factor = sums[each, edge], first[each, line], spectra[edge, line]
                for place in range(width):
                    own[place] += along[place] * factor[place]
    return sums


@compiled
def spread_from_edges(both: Floats, lines: Floats, spectra: Floats) -> None:
    """Add to every line what each edge's transform contributes, in place; complex numbers as pairs of floats."""
    batch, size, width = both.shape
    for each in range(batch):
        for line in range(size):
            for edge in range(spectra.shape[0]):
                own, along, factor = both[each, line], lines[each, edge], spectra[edge, line]
                for place in range(width):
                    own[place] += along[place] * factor[place]


# -- EM on a small matrix --------------------------------------------------------------------------------


@compiled
def em_updates(
    matrix: Floats, shares: Floats, theta: Floats, users: float, delta: float, most: int
) -> tuple[Floats, Floats, int]:
    """Run up to `most` EM updates, until the log-likelihood moves by less than `delta`.

    Return the last iterate but one, the last, and how many updates were made. Every pattern was sent, and must have a
    probability that floats can hold.
    """
    before, now = theta.copy(), theta.copy()
    fitted = np.dot(now, matrix)
    value = 0.0
    for pattern in range(shares.size):
        value += shares[pattern] * np.log(fitted[pattern])
    done = 0
    while done < most:
        before[:] = now
        for pattern in range(shares.size):
            fitted[pattern] = shares[pattern] / fitted[pattern]
        moved = np.dot(matrix, fitted)
        total = 0.0
        for place in range(now.size):
            moved[place] *= now[place]
            total += moved[place]
        for place in range(now.size):
            now[place] = moved[place] / total
        fitted = np.dot(now, matrix)
        last, value = value, 0.0
        least = fitted[0]
        for pattern in range(shares.size):
            value += shares[pattern] * np.log(fitted[pattern])
            least = min(least, fitted[pattern])
        done += 1
        if abs(value - last) * users < delta or not least > 1e-290:
            break
    return before, now, done
