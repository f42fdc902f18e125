"""The evidence in reports: tables of counts, sums of bits, known laws and repeated reports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse

from hubbub.core.arrays import Codes, Floats, Positions
from hubbub.core.text import plural
from hubbub.goodness_of_fit.ancillary_statistics import (
    KnownLaw,
    Outputs,
    Repeats,
    SetMechanism,
    agreement_law,
    choice_law,
    pair_probabilities,
    repeats_of,
    set_size_law,
)
from hubbub.goodness_of_fit.count_tables import MIN_CELL_USERS, BitMoments, CountTable, sum_by_position
from hubbub.goodness_of_fit.filter_moments import filter_tables
from hubbub.mechanisms import BloomRappor, DBitFlip, Mechanism
from hubbub.outputs.output_enumeration import can_list_pairs, coarsen
from hubbub.outputs.sent_outputs import AttributeSets, enumerate_sent
from hubbub.reports import BitSums, FilterSums, Joint, Reports, Singles

MAX_COMPARED_VALUES = 1_000  # a matrix over pairs of values is factorised again and again

OutputPairs = dict[tuple[Mechanism, ...], tuple[Codes, Codes, Floats]]  # with how many users sent each pair


class Evidence(NamedTuple):
    """Everything that can be tested, and the limits of the test."""

    tables: tuple[CountTable, ...]
    laws: tuple[KnownLaw, ...]
    repeats: tuple[Repeats, ...]
    limits: tuple[str, ...]  # what is not tested, in words


def collect_evidence(reports: Reports, rng: np.random.Generator) -> Evidence:
    """Return the evidence. Each user counts once in tables and moments, with one output or two."""
    among = reports.domain.among
    values = len(reports.domain)
    one_each: dict[Mechanism, Outputs] = {}  # one output of each user
    every: dict[Mechanism, Outputs] = {}  # all independent outputs
    pairs: OutputPairs = {}
    tables: list[CountTable] = []
    limits: list[str] = []
    agreements: list[KnownLaw] = []

    def add(store: dict[Mechanism, Outputs], mechanism: Mechanism, outputs: Outputs) -> None:
        store[mechanism] = store[mechanism].merged_with(outputs) if mechanism in store else outputs

    for block in reports.blocks:
        if isinstance(block, Singles):
            add(one_each, block.mechanism, Outputs(block.codes, block.weights))
            add(every, block.mechanism, Outputs(block.codes, block.weights))
        elif isinstance(block, BitSums):
            limits.append("only sums of bits were kept, so the number of ones in each report is unknown")
            if values <= MAX_COMPARED_VALUES:
                tables.append(moments_of(block.mechanism, block.ones.astype(np.float64), block.users, among))
        elif isinstance(block, FilterSums):
            limits.append("only sums of bits were kept, so the number of ones in each report is unknown")
            if values <= MAX_COMPARED_VALUES:
                tables += filter_tables(block.mechanism, block.ones.astype(np.float64), block.senders, among)
        elif isinstance(block, Joint):
            for mechanism, codes, often in _by_mechanism(block):
                if mechanism.remembers:
                    sent = np.flatnonzero(often.sum(axis=1))
                    first, second = _draw_two(often, np.repeat(sent, block.counts[sent]), rng)
                    add(every, mechanism, Outputs(codes, np.bincount(first, minlength=len(codes)).astype(np.float64)))
                    agreement = agreement_law(mechanism, codes, first, second)
                    agreements += [] if agreement is None else [agreement]
                    limits += _changed_answers(mechanism, first, second)
                    limits.append(f"at most two {type(mechanism).__name__} reports of each user are used")
                else:
                    add(every, mechanism, Outputs(codes, block.weights @ often))
            for mechanism, single in _split_users(block, rng, pairs):
                add(one_each, mechanism, single)
    if values > MAX_COMPARED_VALUES:
        limits.append(f"shares of outputs are compared for at most {MAX_COMPARED_VALUES:,} values")
    else:
        candidates: list[tuple[tuple[Mechanism, ...], list[CountTable] | None]] = []
        candidates += [
            ((mechanism,), _single_tables(mechanism, outputs, among)) for mechanism, outputs in one_each.items()
        ]
        candidates += [(pair, _pair_tables(pair, *drawn, among)) for pair, drawn in pairs.items()]
        for mechanisms, found in candidates:
            if found is None:
                names = " and ".join(dict.fromkeys(type(mechanism).__name__ for mechanism in mechanisms))
                limits.append(f"the outputs of {names} are too many to list")
            else:
                tables += found
    laws = [law for mechanism, outputs in every.items() if (law := set_size_law(mechanism, outputs)) is not None]
    laws += [law for mechanism, outputs in every.items() if (law := choice_law(mechanism, outputs)) is not None]
    laws += agreements
    repeats = [
        repeated for mechanism, outputs in one_each.items() if (repeated := repeats_of(mechanism, outputs)) is not None
    ]
    # Fewer users cannot fill two cells: pooling for their sake would cost others a pilot sample.
    testable = [table for table in tables if table.users >= 2 * MIN_CELL_USERS]
    return Evidence(tuple(testable or tables), tuple(laws), tuple(repeats), tuple(dict.fromkeys(limits)))


def _by_mechanism(block: Joint) -> Iterator[tuple[Mechanism, Codes, sparse.csr_array]]:
    """Yield each mechanism with its outputs, and how often each occurs in the patterns."""
    start = 0
    for mechanism, codes in block.sources:
        yield mechanism, codes, sparse.csr_array(block.repeats[:, start : start + len(codes)])
        start += len(codes)


def _draw_two(repeats: sparse.csr_array, users: Positions, rng: np.random.Generator) -> tuple[Positions, Positions]:
    """Return two outputs of each user, drawn without replacement; the second is -1 if the user sent only one.

    `users` are rows of `repeats`, which says how often each output occurs.
    """
    lengths = np.asarray(repeats.sum(axis=1)).ravel().astype(np.int64)
    items = np.repeat(repeats.indices.astype(np.int64), repeats.data)
    starts = (np.cumsum(lengths) - lengths)[users]
    first_draw = (rng.random(users.size) * lengths[users]).astype(np.int64)
    second_draw = (rng.random(users.size) * (lengths[users] - 1)).astype(np.int64)
    second_draw += second_draw >= first_draw
    several = lengths[users] > 1
    second = np.full(users.size, -1, dtype=np.int64)
    second[several] = items[(starts + second_draw)[several]]
    return items[starts + first_draw], second


def _split_users(block: Joint, rng: np.random.Generator, pairs: OutputPairs) -> list[tuple[Mechanism, Outputs]]:
    """Put two outputs of each user into `pairs` if both can be listed; return one output of each other user.

    The two are drawn without replacement, so that they are independent runs given the user's value. The order within a
    pattern depends on the outputs, so which of two comes first must be drawn, too.
    """
    first, second, counts = _draw_pairs(block, rng)
    starts = np.cumsum([0] + [len(codes) for _, codes in block.sources])
    can_pair = np.array([can_list_pairs(mechanism) for mechanism in block.mechanisms])
    source, other = (np.searchsorted(starts, items, side="right") - 1 for items in (first, second))
    swapped = (source > other) | ((source == other) & (first > second))
    both = can_pair[source] & can_pair[other]
    swapped &= both
    swapped |= ~both & can_pair[other] & ~can_pair[source]  # an output that can be listed is more informative
    first, second = np.where(swapped, second, first), np.where(swapped, first, second)
    source, other = np.where(swapped, other, source), np.where(swapped, source, other)
    singles: list[tuple[Mechanism, Outputs]] = []
    for number, (mechanism, codes) in enumerate(block.sources):
        alone = (source == number) & ~both
        if alone.any():
            sent = sum_by_position(first[alone] - starts[number], counts[alone], len(codes))
            singles.append((mechanism, Outputs(codes[sent > 0], sent[sent > 0])))
        for partner_number in range(number, len(block.sources)):
            paired = both & (source == number) & (other == partner_number)
            if paired.any():
                partner, partner_codes = block.sources[partner_number]
                pairs[mechanism, partner] = (
                    codes[first[paired] - starts[number]],
                    partner_codes[second[paired] - starts[partner_number]],
                    counts[paired],
                )
    return singles


def _draw_pairs(block: Joint, rng: np.random.Generator) -> tuple[Positions, Positions, Floats]:
    """Return two items of each user; users who sent the same two are counted together if order does not matter."""
    lengths = np.asarray(block.repeats.sum(axis=1)).ravel()
    whole = np.flatnonzero((lengths == 2) & all(can_list_pairs(mechanism) for mechanism in block.mechanisms))
    rest = np.setdiff1d(np.arange(lengths.size), whole)
    first, second = _draw_two(block.repeats, np.repeat(rest, block.counts[rest]), rng)
    pairs = sparse.csr_array(block.repeats[whole])
    items = np.repeat(pairs.indices.astype(np.int64), pairs.data).reshape(-1, 2)
    counts = np.concatenate([block.weights[whole], np.ones(first.size)])
    return np.concatenate([items[:, 0], first]), np.concatenate([items[:, 1], second]), counts


def _single_tables(mechanism: Mechanism, outputs: Outputs, among: Positions | None) -> list[CountTable] | None:
    """Return a table of single outputs for each set of attributes; sums of bits if outputs are too many to list."""
    users = int(outputs.counts.sum())
    listed = enumerate_sent(mechanism, outputs.codes, users, among)
    if listed is not None:
        tallies = [part.tally(*outputs) for part in listed]
        return [
            CountTable(int(counts.sum()), counts, part.outputs.probabilities, part.outputs.text)
            for part, counts in zip(listed, tallies, strict=True)
        ]
    if isinstance(mechanism, DBitFlip):
        return [_answer_moments(mechanism, outputs, among)]
    if isinstance(mechanism, BloomRappor):
        return filter_tables(mechanism, *mechanism.ones_by_cohort(*outputs), among)
    if not isinstance(mechanism, SetMechanism):
        return None
    return [moments_of(mechanism, mechanism.support_counts(outputs.codes, outputs.counts), users, among)]


def moments_of(mechanism: SetMechanism, ones: Floats, users: int, among: Positions | None) -> BitMoments:
    """Return how often each value is in a report's set, with the probability that two are in it together."""
    true, other = mechanism.support
    size, domain = len(mechanism.domain), mechanism.domain
    kept = np.arange(size) if among is None else among
    probabilities = np.full((kept.size, size), other)
    probabilities[np.arange(kept.size), kept] = true
    pair = pair_probabilities(mechanism)

    def text(bit: int) -> str:
        return f"sets with {domain.title(bit)}"

    return BitMoments(users, ones, probabilities, text, own=pair.own, other=pair.neither, kept=among)


def _answer_moments(mechanism: DBitFlip, outputs: Outputs, among: Positions | None) -> BitMoments:
    """Return how often each bucket has a one, with the probability that two have one together."""
    buckets, asked = int(mechanism.buckets or 2), int(mechanism.bits or 1)
    wrong = 1.0 / (1.0 + np.exp(mechanism.nats))
    own = mechanism.bucket_of(np.arange(len(mechanism.domain)) if among is None else among)
    probabilities = np.full((own.size, buckets), wrong * asked / buckets)
    probabilities[np.arange(own.size), own] = (1.0 - wrong) * asked / buckets
    both = asked * (asked - 1.0) / (buckets * (buckets - 1.0))  # are asked
    return BitMoments(
        int(outputs.counts.sum()),
        mechanism.counts_by_bucket(outputs.codes, outputs.counts)[1],
        probabilities,
        lambda bucket: f"ones for bucket {bucket}",
        own=both * wrong * (1.0 - wrong),
        other=both * wrong**2,
        kept=own,
    )


def _changed_answers(mechanism: Mechanism, first: Positions, second: Positions) -> list[str]:
    """Return a note about users whose answers are not always the same: the model has no probability for that."""
    users = int(np.count_nonzero((second >= 0) & (first != second))) if isinstance(mechanism, DBitFlip) else 0
    why = "their values changed, or their devices forgot"
    return [f"of two DBitFlip reports, those of {plural(users, 'user')} differ: {why}"] if users else []


def _pair_tables(
    pair: tuple[Mechanism, ...], first: Codes, second: Codes, counts: Floats, among: Positions | None
) -> list[CountTable] | None:
    """Return a table of pairs for each two sets of attributes, unordered if both are the same set of one mechanism.

    None if outputs are too many to list.
    """
    same = pair[0] == pair[1]
    if same:  # of two outputs with different attributes, that with the lower set comes first
        here, there = AttributeSets.of(pair[0], np.concatenate([first, second])).which.reshape(2, -1)
        lower = (here <= there).reshape(-1, *[1] * (first.ndim - 1))
        first, second = np.where(lower, first, second), np.where(lower, second, first)
        here, there = np.minimum(here, there), np.maximum(here, there)
    else:
        here, there = (AttributeSets.of(one, codes).which for one, codes in zip(pair, (first, second), strict=True))
    tables = []
    for one, other in np.unique(np.stack([here, there], axis=1), axis=0).tolist():
        rows = (here == one) & (there == other)
        unordered = same and one == other
        table = _pair_table(pair, first[rows], second[rows], counts[rows], among, unordered=unordered)
        if table is None:
            return None
        tables.append(table)
    return tables


def _pair_table(
    pair: tuple[Mechanism, ...],
    first: Codes,
    second: Codes,
    counts: Floats,
    among: Positions | None,
    *,
    unordered: bool,
) -> CountTable | None:
    """Return the table of pairs, the outputs on each side with the same attributes; None if these are too many."""
    users = float(counts.sum())
    listed = [enumerate_sent(one, codes, users, among) for one, codes in zip(pair, (first, second), strict=True)]
    sides = [coarsen(part.outputs) for own in listed if own is not None for part in own]
    if len(sides) < 2:
        return None
    left, right = sides
    rows, columns = np.indices((left.probabilities.shape[1], right.probabilities.shape[1])).reshape(2, -1)
    here, there = left.position_of(first), right.position_of(second)
    if unordered:
        rows, columns = rows[rows <= columns], columns[rows <= columns]
        here, there = np.minimum(here, there), np.maximum(here, there)
    cell = np.zeros((left.probabilities.shape[1], right.probabilities.shape[1]), dtype=np.int64)
    cell[rows, columns] = np.arange(rows.size)
    probabilities = left.probabilities[:, rows] * right.probabilities[:, columns]
    if unordered:
        probabilities *= np.where(rows < columns, 2.0, 1.0)
    sums = sum_by_position(cell[here, there], counts, rows.size)

    def text(position: int) -> str:
        return f"{left.text(int(rows[position]))} and {right.text(int(columns[position]))}"

    return CountTable(int(users), sums, probabilities, text)
