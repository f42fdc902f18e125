"""From blocks of reports to tables, moments, known laws and repeats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse

from hubbub.core.arrays import Codes, Floats, Positions
from hubbub.goodness_of_fit.count_tables import CountTable, Moments
from hubbub.goodness_of_fit.known_laws import KnownLaw, Outputs, Repeats, agreement_of, law_of, repeats_of, totals
from hubbub.goodness_of_fit.output_enumeration import coarse, in_pairs, listing
from hubbub.mechanisms import LocalHashing, Mechanism, SubsetSelection
from hubbub.mechanisms.unary import UnaryEncoding
from hubbub.reports import BitSums, Joint, Reports, Singles

MOST_VALUES = 1_000  # a matrix over pairs of values is factorised again and again

Twos = dict[tuple[Mechanism, ...], tuple[Codes, Codes, Floats]]  # pairs of outputs, and how many users sent each


class Evidence(NamedTuple):
    """All that is to be held against expectations, and what cannot be."""

    tables: tuple[CountTable, ...]
    laws: tuple[KnownLaw, ...]
    repeats: tuple[Repeats, ...]
    unseen: tuple[str, ...]


def collect(reports: Reports, rng: np.random.Generator) -> Evidence:
    """Return what these reports show. Each user counts once in tables and moments, with one output or two."""
    among = reports.domain.among
    values = len(reports.domain)
    ones: dict[Mechanism, Outputs] = {}
    every: dict[Mechanism, Outputs] = {}
    twos: Twos = {}
    tables: list[CountTable] = []
    unseen: list[str] = []
    agreements: list[KnownLaw] = []

    def add(store: dict[Mechanism, Outputs], mechanism: Mechanism, outputs: Outputs) -> None:
        store[mechanism] = store[mechanism].and_also(outputs) if mechanism in store else outputs

    for block in reports.blocks:
        if isinstance(block, Singles):
            add(ones, block.mechanism, Outputs(block.codes, block.weights))
            add(every, block.mechanism, Outputs(block.codes, block.weights))
        elif isinstance(block, BitSums):
            unseen.append("only sums of bits were kept, so that the number of ones of each report is not known")
            if values <= MOST_VALUES:
                tables.append(moments_of(block.mechanism, block.ones.astype(np.float64), block.users, among))
        elif isinstance(block, Joint):
            for mechanism, codes, often in _by_mechanism(block):
                if mechanism.remembers:
                    one, two = _two_each(often, block.counts, rng)
                    add(every, mechanism, Outputs(codes, totals(one, np.ones(one.size), len(codes))))
                    agreed = agreement_of(mechanism, codes, one, two)
                    agreements += [] if agreed is None else [agreed]
                    unseen.append(f"of each user's reports of {type(mechanism).__name__} two at most are looked at")
                else:
                    add(every, mechanism, Outputs(codes, block.weights @ often))
            for mechanism, single in _split(block, rng, twos):
                add(ones, mechanism, single)
    if values > MOST_VALUES:
        unseen.append(f"shares of outputs are compared for at most {MOST_VALUES:,} values")
    else:
        candidates: list[tuple[tuple[Mechanism, ...], CountTable | None]] = []
        candidates += [((mechanism,), _single(mechanism, outputs, among)) for mechanism, outputs in ones.items()]
        candidates += [(pair, _pairs(pair, *drawn, among)) for pair, drawn in twos.items()]
        for mechanisms, table in candidates:
            if table is None:
                names = " and ".join(dict.fromkeys(type(mechanism).__name__ for mechanism in mechanisms))
                unseen.append(f"the outputs of {names} are too many to list")
            else:
                tables.append(table)
    laws = [law for mechanism, outputs in every.items() if (law := law_of(mechanism, outputs)) is not None]
    laws += agreements
    repeats = [found for mechanism, outputs in ones.items() if (found := repeats_of(mechanism, outputs)) is not None]
    return Evidence(tuple(tables), tuple(laws), tuple(repeats), tuple(dict.fromkeys(unseen)))


def _by_mechanism(block: Joint) -> Iterator[tuple[Mechanism, Codes, sparse.csr_array]]:
    """Yield each mechanism with its outputs, and how often each occurs in the patterns."""
    start = 0
    for mechanism, codes in block.sources:
        yield mechanism, codes, sparse.csr_array(block.repeats[:, start : start + len(codes)])
        start += len(codes)


def _two_each(repeats: sparse.csr_array, counts: Positions, rng: np.random.Generator) -> tuple[Positions, Positions]:
    """Return one output of each user who sent any, and a second one, -1 where there is none; both drawn at random."""
    lengths = np.asarray(repeats.sum(axis=1)).ravel().astype(np.int64)
    items = np.repeat(repeats.indices.astype(np.int64), repeats.data)
    starts = np.cumsum(lengths) - lengths
    sent = np.flatnonzero(lengths)
    users = np.repeat(sent, counts[sent])
    one = (rng.random(users.size) * lengths[users]).astype(np.int64)
    two = (rng.random(users.size) * (lengths[users] - 1)).astype(np.int64)
    two += two >= one
    several = lengths[users] > 1
    second = np.full(users.size, -1, dtype=np.int64)
    second[several] = items[(starts[users] + two)[several]]
    return items[starts[users] + one], second


def _split(block: Joint, rng: np.random.Generator, twos: Twos) -> list[tuple[Mechanism, Outputs]]:
    """Put two outputs of each user into `twos` where both can be listed; return one output of each other user.

    The two are drawn without replacement, so that they are independent runs given the user's value. A pattern has an
    order of its own, which depends on the outputs: which of two comes first must be drawn, too.
    """
    first, second, counts = _drawn(block, rng)
    starts = np.cumsum([0] + [len(codes) for _, codes in block.sources])
    listed = [in_pairs(mechanism) for mechanism in block.mechanisms]
    source, other = (np.searchsorted(starts, items, side="right") - 1 for items in (first, second))
    turned = (source > other) | ((source == other) & (first > second))
    both = np.array(listed)[source] & np.array(listed)[other]
    turned &= both
    turned |= ~both & np.array(listed)[other] & ~np.array(listed)[source]  # an output that can be listed says more
    first, second = np.where(turned, second, first), np.where(turned, first, second)
    source, other = np.where(turned, other, source), np.where(turned, source, other)
    singles: list[tuple[Mechanism, Outputs]] = []
    for place, (mechanism, codes) in enumerate(block.sources):
        alone = (source == place) & ~both
        if alone.any():
            sent = totals(first[alone] - starts[place], counts[alone], len(codes))
            singles.append((mechanism, Outputs(codes[sent > 0], sent[sent > 0])))
        for more in range(place, len(block.sources)):
            mine = both & (source == place) & (other == more)
            if mine.any():
                partner, codes_too = block.sources[more]
                twos[mechanism, partner] = (
                    codes[first[mine] - starts[place]],
                    codes_too[second[mine] - starts[more]],
                    counts[mine],
                )
    return singles


def _drawn(block: Joint, rng: np.random.Generator) -> tuple[Positions, Positions, Floats]:
    """Return two items of each user; users who sent the same two are counted where their order does not matter."""
    lengths = np.asarray(block.repeats.sum(axis=1)).ravel().astype(np.int64)
    items = np.repeat(block.repeats.indices.astype(np.int64), block.repeats.data)
    starts = np.cumsum(lengths) - lengths
    whole = np.flatnonzero((lengths == 2) & all(in_pairs(mechanism) for mechanism in block.mechanisms))
    rest = np.setdiff1d(np.arange(lengths.size), whole)
    users = np.repeat(rest, block.counts[rest])
    one = (rng.random(users.size) * lengths[users]).astype(np.int64)
    two = (rng.random(users.size) * (lengths[users] - 1)).astype(np.int64)
    two += two >= one
    first = np.concatenate([items[starts[whole]], items[starts[users] + one]])
    second = np.concatenate([items[starts[whole] + 1], items[starts[users] + two]])
    return first, second, np.concatenate([block.weights[whole], np.ones(users.size)])


def _single(mechanism: Mechanism, outputs: Outputs, among: Positions | None) -> CountTable | None:
    """Return a table of single outputs, or moments where they are too many to list."""
    users = int(outputs.counts.sum())
    every = listing(mechanism, users, among)
    if every is not None:
        cells = every.chances.shape[1]
        counts = totals(every.place(outputs.codes), outputs.counts, cells)
        return CountTable(users, counts, every.chances, every.text)
    if not isinstance(mechanism, UnaryEncoding | LocalHashing | SubsetSelection):
        return None
    return moments_of(mechanism, mechanism.support_counts(outputs.codes, outputs.counts), users, among)


def moments_of(
    mechanism: UnaryEncoding | LocalHashing | SubsetSelection, ones: Floats, users: int, among: Positions | None
) -> Moments:
    """Return how often each value is in a report's set, with the chance that two are in it together."""
    true, other = mechanism.support
    size, labels = len(mechanism.domain), mechanism.domain
    kept = np.arange(size) if among is None else among
    chances = np.full((kept.size, size), other)
    chances[np.arange(kept.size), kept] = true
    if isinstance(mechanism, SubsetSelection):
        chosen = int(mechanism.size or 1)
        own = true * (chosen - 1) / (size - 1)
        rest = max(1, (size - 1) * (size - 2))
        both = (true * (chosen - 1) * (chosen - 2) + (1 - true) * chosen * (chosen - 1)) / rest
    else:
        own, both = true * other, other**2
    return Moments(users, ones, chances, lambda bit: f"sets with {labels.title(bit)}", own=own, other=both, kept=among)


def _pairs(
    pair: tuple[Mechanism, ...], first: Codes, second: Codes, counts: Floats, among: Positions | None
) -> CountTable | None:
    """Return the table of pairs, of one mechanism without order; None where outputs are too many to list."""
    users, same = float(counts.sum()), pair[0] == pair[1]
    sides = [coarse(side) for mechanism in pair if (side := listing(mechanism, users, among)) is not None]
    if len(sides) < 2:
        return None
    (left, place, text), (right, place_too, text_too) = sides
    rows, columns = np.indices((left.shape[1], right.shape[1])).reshape(2, -1)
    here, there = place(first), place_too(second)
    if same:
        rows, columns = rows[rows <= columns], columns[rows <= columns]
        here, there = np.minimum(here, there), np.maximum(here, there)
    cell = np.zeros((left.shape[1], right.shape[1]), dtype=np.int64)
    cell[rows, columns] = np.arange(rows.size)
    chances = left[:, rows] * right[:, columns]
    if same:
        chances *= np.where(rows < columns, 2.0, 1.0)
    sums = totals(cell[here, there], counts, rows.size)
    return CountTable(
        int(users), sums, chances, lambda place: f"{text(int(rows[place]))} and {text_too(int(columns[place]))}"
    )
