"""What reports show whose probability is known: counts to hold against what a distribution, or any, lets expect.

* A `Table`: each user fell into one cell; the counts are multinomial with chances theta A. Outputs that can be listed,
  those nobody sent included, and pairs of outputs of one user, whose column is the product of two columns.
* `Moments`: for each bit, how many reports have a one there. Unary, hashed and subset reports are too many to list, but
  their sets hold value j with chance q + (p - q) theta_j, and the covariance of two bits is known as well.
* A `Law` does not depend on theta at all: the number of values in a unary or hashed report's set is the value's
  own bit and k - 1 independent others, whatever the value.
* `Repeats`: pairs of equal reports, or seeds, of which there can be few.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import sparse

from hubbub.arrays import Codes, Floats, Positions
from hubbub.domains import Subset
from hubbub.mechanisms import Geometric, LocalHashing, Mechanism, PlanarGeometric, SubsetSelection
from hubbub.mechanisms.outputs import index_codes
from hubbub.mechanisms.pointing import Encoded
from hubbub.mechanisms.unary import Unary
from hubbub.reports import BitSums, Joint, Reports, Singles

ENOUGH = 5.0  # users expected in a cell from which chi-square is close (Cochran); cells with fewer are pooled
MOST_VALUES = 1_000  # a matrix over pairs of values is factorised again and again
MOST_ENTRIES = 10_000_000  # of a table's chances (80 MB)
MOST_SETS = 1_000  # outputs up to which unary and subset reports are told apart one by one
MOST_SIDE = 100  # groups of outputs on each side of a table of pairs
SEEDS = 2.0**64
LONGEST = 60  # characters of a report that are shown
BITS_AT_ONCE = 80_000_000
PLAIN = 1e-10  # eigenvalues of a covariance, relative to the largest, below which it is 0: a sum that is fixed

Text = Callable[[int], str]


class Whitened(NamedTuple):
    """What one table says of theta: residual = design' h + standard normal noise, in so many dimensions."""

    design: Floats  # values by coordinates
    residual: Floats
    dimensions: int


@dataclass(frozen=True, eq=False)
class Table:
    """Users in cells: counts are multinomial with chances theta @ chances."""

    users: int
    counts: Floats
    chances: Floats  # values by cells
    text: Text  # of one cell as it was before pooling
    pool: Positions | None = None  # the cell that each of those went into

    def likelihood(self) -> tuple[Floats, Floats]:
        """Return columns and their weights, for an estimate of theta."""
        return self.chances, self.counts

    def expected(self, theta: Floats) -> Floats:
        """Return the counts that theta lets expect."""
        return self.users * (theta @ self.chances)

    def variance(self, theta: Floats) -> Floats:
        """Return the variances of the counts."""
        fitted = theta @ self.chances
        return self.users * fitted * (1.0 - fitted)

    def pooled(self, theta: Floats) -> Table | None:
        """Return the table with small cells pooled, by what theta lets expect; None where fewer than two remain.

        Adding columns of a channel gives a channel: the model stays exact.
        """
        pool = pools(self.expected(theta))
        size = int(pool.max()) + 1
        if size < 2:
            return None
        if size == pool.size:
            return self
        gather = sparse.csr_array((np.ones(pool.size), (np.arange(pool.size), pool)), shape=(pool.size, size))
        counts, chances = np.asarray(self.counts @ gather), np.asarray(self.chances @ gather)
        return replace(self, counts=counts, chances=chances, pool=pool)

    def whitened(self, theta: Floats) -> Whitened:
        """Return design and residual of Pearson's chi-square: covariance diag(f) - ff', on vectors with sum 0."""
        root = np.sqrt(np.maximum(theta @ self.chances, 1.0 / self.users))  # a new fit may have emptied a cell
        residual = (self.counts - self.expected(theta)) / (math.sqrt(self.users) * root)
        return Whitened(self.chances / root, residual, root.size - 1)

    def words(self, cell: int) -> str:
        """Return what a cell holds."""
        if self.pool is None:
            return self.text(cell)
        members = np.flatnonzero(self.pool == cell)
        few = ", ".join(self.text(int(member)) for member in members[:3])
        return few if members.size <= 3 else f"{few}, ... ({members.size} together)"

    @property
    def explains_anything(self) -> bool:
        """Whether every distribution of cells has a theta: some value gives each cell with certainty."""
        certain = self.chances.max(axis=0) > 1.0 - PLAIN
        return bool((certain | (self.chances.max(axis=0) == 0.0)).all())


@dataclass(frozen=True, eq=False)
class Moments(Table):
    """Ones of each bit over users: means theta @ chances, and known covariances.

    Bits i and j are both one with chance other + (own - other) (theta_i + theta_j): `own` where one of them is the
    value's own bit, `other` where none is.
    """

    own: float = 0.0
    other: float = 0.0
    kept: Positions | None = None  # the bits of the values that theta is over

    def likelihood(self) -> tuple[Floats, Floats]:
        """Return columns as if each bit came from a user of its own: consistent, and all that is needed."""
        columns = np.concatenate([self.chances, 1.0 - self.chances], axis=1)
        return columns, np.concatenate([self.counts, self.users - self.counts])

    def _covariance(self, theta: Floats) -> Floats:
        mean = theta @ self.chances
        shares = np.zeros(mean.size)
        shares[slice(None) if self.kept is None else self.kept] = theta
        both = self.other + (self.own - self.other) * (shares[:, None] + shares[None, :])
        np.fill_diagonal(both, mean)
        return both - mean[:, None] * mean[None, :]

    def variance(self, theta: Floats) -> Floats:
        """Return the variances of the sums."""
        mean = theta @ self.chances
        return self.users * mean * (1.0 - mean)

    def pooled(self, theta: Floats) -> Moments | None:
        """Leave out bits with too few ones, or zeros, for sums to be near normal; None where none remains."""
        return self if (self.variance(theta) >= ENOUGH).any() else None

    def whitened(self, theta: Floats) -> Whitened:
        """Return design and residual divided by a root of the covariance."""
        useful = self.variance(theta) >= ENOUGH
        sizes, axes = np.linalg.eigh(self._covariance(theta)[np.ix_(useful, useful)])
        free = sizes > PLAIN * sizes[-1]
        root = axes[:, free] / np.sqrt(sizes[free])
        residual = (self.counts - self.expected(theta))[useful] @ root / math.sqrt(self.users)
        return Whitened(self.chances[:, useful] @ root, residual, int(free.sum()))

    @property
    def explains_anything(self) -> bool:
        """Sums of noisy bits have limits."""
        return False


class Law(NamedTuple):
    """Counts with chances that do not depend on theta."""

    name: str
    counts: Floats
    chances: Floats
    noun: str


class Repeats(NamedTuple):
    """Reports that repeat each other: how many pairs, and the chance of a pair, and of three, at most."""

    name: str
    users: int
    pairs: float
    two: float
    three: float
    most: int  # users behind the most frequent one...
    text: str  # ...and what it is


class Evidence(NamedTuple):
    """All that is to be held against expectations, and what cannot be."""

    tables: tuple[Table, ...]
    laws: tuple[Law, ...]
    repeats: tuple[Repeats, ...]
    unseen: tuple[str, ...]


def pools(expected: Floats) -> Positions:
    """Return for each cell where it goes: those with fewer than ENOUGH are joined with the next such ones."""
    pool = np.full(expected.size, -1, dtype=np.int64)
    large = np.flatnonzero(expected >= ENOUGH)
    pool[large] = np.arange(large.size)
    last, held, count = -1, 0.0, large.size
    for cell in np.flatnonzero(expected < ENOUGH):
        pool[cell] = count
        held += float(expected[cell])
        if held >= ENOUGH:
            last, held, count = count, 0.0, count + 1
    if (pool == count).any():  # what remains is too little: it joins the pool before, or the smallest cell
        pool[pool == count] = last if last >= 0 else (int(np.argmin(expected[large])) if large.size else 0)
    return pool


# -- from blocks to evidence ---------------------------------------------------------------------------------


class Outputs(NamedTuple):
    """Encoded outputs of one mechanism, with how many users sent each."""

    codes: Codes
    counts: Floats

    def and_also(self, other: Outputs) -> Outputs:
        """Return both together."""
        return Outputs(np.concatenate([self.codes, other.codes]), np.concatenate([self.counts, other.counts]))


Twos = dict[tuple[Mechanism, ...], tuple[Codes, Codes, Floats]]  # pairs of outputs, and how many users sent each


class Listing(NamedTuple):
    """All outputs of a mechanism in a row: their chances, where a code stands, and what it is called."""

    chances: Floats  # values by outputs
    place: Callable[[Codes], Positions]
    text: Text


def collect(reports: Reports, rng: np.random.Generator) -> Evidence:
    """Return what these reports show. Each user counts once in tables and moments, with one output or two."""
    among = reports.domain.positions if isinstance(reports.domain, Subset) else None
    values = len(reports.domain)
    ones: dict[Mechanism, Outputs] = {}
    every: dict[Mechanism, Outputs] = {}
    twos: Twos = {}
    tables: list[Table] = []
    unseen: list[str] = []

    def add(store: dict[Mechanism, Outputs], mechanism: Mechanism, outputs: Outputs) -> None:
        store[mechanism] = store[mechanism].and_also(outputs) if mechanism in store else outputs

    for block in reports.blocks:
        if isinstance(block, Singles):
            add(ones, block.mechanism, Outputs(block.codes, block.weights))
            add(every, block.mechanism, Outputs(block.codes, block.weights))
        elif isinstance(block, BitSums):
            unseen.append("only sums of bits were kept, so that the number of ones of each report is not known")
            if values <= MOST_VALUES:
                tables.append(_moments(block.mechanism, block.ones.astype(np.float64), block.users, among))
        elif isinstance(block, Joint):
            for mechanism, codes, times in _all_outputs(block):
                add(every, mechanism, Outputs(codes, times))
            for mechanism, single in _split(block, rng, twos):
                add(ones, mechanism, single)
    if values > MOST_VALUES:
        unseen.append(f"shares of outputs are compared for at most {MOST_VALUES:,} values")
    else:
        candidates: list[tuple[tuple[Mechanism, ...], Table | None]] = []
        candidates += [((mechanism,), _single(mechanism, outputs, among)) for mechanism, outputs in ones.items()]
        candidates += [(pair, _pairs(pair, *drawn, among)) for pair, drawn in twos.items()]
        for mechanisms, table in candidates:
            if table is None:
                names = " and ".join(dict.fromkeys(type(mechanism).__name__ for mechanism in mechanisms))
                unseen.append(f"the outputs of {names} are too many to list")
            else:
                tables.append(table)
    laws = [law for mechanism, outputs in every.items() if (law := _law(mechanism, outputs)) is not None]
    repeats = [found for mechanism, outputs in ones.items() if (found := _repeats(mechanism, outputs)) is not None]
    return Evidence(tuple(tables), tuple(laws), tuple(repeats), tuple(dict.fromkeys(unseen)))


def _totals(places: Positions, counts: Floats, size: int) -> Floats:
    """Add up counts by place."""
    return np.bincount(places, weights=counts, minlength=size).astype(np.float64)


def _all_outputs(block: Joint) -> list[tuple[Mechanism, Codes, Floats]]:
    """Return how often each item was sent, over all users."""
    times = block.weights @ block.repeats
    found, start = [], 0
    for mechanism, codes in block.sources:
        found.append((mechanism, codes, times[start : start + len(codes)]))
        start += len(codes)
    return found


def _split(block: Joint, rng: np.random.Generator, twos: Twos) -> list[tuple[Mechanism, Outputs]]:
    """Put two outputs of each user into `twos` where both can be listed; return one output of each other user.

    The two are drawn without replacement, so that they are independent runs given the user's value. A pattern has an
    order of its own, which depends on the outputs: which of two comes first must be drawn, too.
    """
    first, second, counts = _drawn(block, rng)
    starts = np.cumsum([0] + [len(codes) for _, codes in block.sources])
    listed = [_in_pairs(mechanism) for mechanism in block.mechanisms]
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
            totals = _totals(first[alone] - starts[place], counts[alone], len(codes))
            singles.append((mechanism, Outputs(codes[totals > 0], totals[totals > 0])))
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
    whole = np.flatnonzero((lengths == 2) & all(_in_pairs(mechanism) for mechanism in block.mechanisms))
    rest = np.setdiff1d(np.arange(lengths.size), whole)
    users = np.repeat(rest, block.counts[rest])
    one = (rng.random(users.size) * lengths[users]).astype(np.int64)
    two = (rng.random(users.size) * (lengths[users] - 1)).astype(np.int64)
    two += two >= one
    first = np.concatenate([items[starts[whole]], items[starts[users] + one]])
    second = np.concatenate([items[starts[whole] + 1], items[starts[users] + two]])
    return first, second, np.concatenate([block.weights[whole], np.ones(users.size)])


def _in_pairs(mechanism: Mechanism) -> bool:
    """Whether pairs of this mechanism's outputs can be listed (sets are too many)."""
    return not isinstance(mechanism, Encoded) and _can_list(mechanism)


def _can_list(mechanism: Mechanism) -> bool:
    """Whether all outputs, but for those far away, are few enough for a table."""
    if isinstance(mechanism, Unary):
        return len(mechanism.domain) <= math.log2(MOST_SETS)
    if isinstance(mechanism, SubsetSelection):
        return math.comb(len(mechanism.domain), int(mechanism.size or 1)) <= MOST_SETS
    if isinstance(mechanism, Geometric) or (isinstance(mechanism, PlanarGeometric) and not mechanism.truncated):
        return True
    outputs = mechanism.outputs
    return outputs is not None and int(outputs.shape[0]) * len(mechanism.domain) <= MOST_ENTRIES


def _listing(mechanism: Mechanism, users: float, among: Positions | None) -> Listing | None:
    """Return all outputs; None where they are too many."""
    space = mechanism.output_space
    values = len(mechanism.domain) if among is None else among.size

    def text(codes: Codes) -> Text:
        return lambda place: space.write(space.decode(codes[place : place + 1])[0])

    if not _can_list(mechanism):
        return None
    if isinstance(mechanism, Geometric):
        # Beyond this reach fewer than one user is expected; outputs there are clamped, which has an exact chance.
        reach = math.ceil(math.log(users + 1.0) / mechanism.epsilon)
        low, high = mechanism.domain.low - reach, mechanism.domain.high + reach
        if (high - low + 1) * values > MOST_ENTRIES:
            return None
        codes = np.arange(low, high + 1)
        logs = mechanism.log_columns(codes, among)
        logs[:, [0, -1]] -= math.log(-math.expm1(-mechanism.epsilon))
        return Listing(np.exp(logs), lambda asked: np.clip(asked, low, high) - low, text(codes))
    if isinstance(mechanism, PlanarGeometric) and not mechanism.truncated:
        return _around(mechanism, users, among, text)
    codes = space.encode(mechanism.outputs)

    def place(asked: Codes) -> Positions:
        distinct, back = index_codes(np.concatenate([codes, asked]))
        places = np.empty(len(distinct), dtype=np.int64)
        places[back[: len(codes)]] = np.arange(len(codes))
        return places[back[len(codes) :]]

    return Listing(np.exp(mechanism.log_columns(codes, among)), place, text(codes))


def _around(
    mechanism: PlanarGeometric, users: float, among: Positions | None, text: Callable[[Codes], Text]
) -> Listing | None:
    """Return the lattice around a grid, and all that is farther away in one."""
    grid = mechanism.domain
    falling = math.log(users + 1.0)
    reach = [math.ceil((falling + math.log1p(falling)) / (mechanism.epsilon * side)) for side in grid.sides]
    shape = (grid.columns + 2 * reach[0], grid.rows + 2 * reach[1])
    if shape[0] * shape[1] * (len(grid) if among is None else among.size) > MOST_ENTRIES:
        return None
    codes = np.indices(shape).reshape(2, -1).T - np.array(reach)
    near = np.exp(mechanism.log_columns(codes, among))
    beyond = np.maximum(1.0 - near.sum(axis=1, keepdims=True), 0.0)
    names = text(codes)

    def place(asked: Codes) -> Positions:
        steps = asked + np.array(reach)
        inside = ((steps >= 0) & (steps < np.array(shape))).all(axis=1)
        return np.where(inside, steps[:, 0] * shape[1] + steps[:, 1], len(codes))

    return Listing(
        np.concatenate([near, beyond], axis=1), place, lambda cell: names(cell) if cell < len(codes) else "far away"
    )


def _single(mechanism: Mechanism, outputs: Outputs, among: Positions | None) -> Table | None:
    """Return a table of single outputs, or moments where they are too many to list."""
    users = int(outputs.counts.sum())
    listing = _listing(mechanism, users, among)
    if listing is not None:
        cells = listing.chances.shape[1]
        counts = _totals(listing.place(outputs.codes), outputs.counts, cells)
        return Table(users, counts, listing.chances, listing.text)
    if not isinstance(mechanism, Unary | LocalHashing | SubsetSelection):
        return None
    return _moments(mechanism, mechanism.support_counts(outputs.codes, outputs.counts), users, among)


def _moments(
    mechanism: Unary | LocalHashing | SubsetSelection, ones: Floats, users: int, among: Positions | None
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
) -> Table | None:
    """Return the table of pairs, of one mechanism without order; None where outputs are too many to list."""
    users, same = float(counts.sum()), pair[0] == pair[1]
    sides = [_coarse(side) for mechanism in pair if (side := _listing(mechanism, users, among)) is not None]
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
    totals = _totals(cell[here, there], counts, rows.size)
    return Table(
        int(users), totals, chances, lambda place: f"{text(int(rows[place]))} and {text_too(int(columns[place]))}"
    )


def _coarse(listing: Listing) -> Listing:
    """Return a listing with neighbouring outputs joined to groups of about equal weight, where they are many."""
    chances, place, text = listing
    size = chances.shape[1]
    if size <= MOST_SIDE:
        return listing
    weight = np.cumsum(chances.mean(axis=0))
    _, group = np.unique(
        np.minimum((MOST_SIDE * weight / weight[-1]).astype(np.int64), MOST_SIDE - 1), return_inverse=True
    )
    starts = np.append(np.flatnonzero(np.diff(group, prepend=-1)), size)
    joined = np.add.reduceat(chances, starts[:-1], axis=1)

    def words(place: int) -> str:
        start, end = int(starts[place]), int(starts[place + 1]) - 1
        return text(start) if start == end else f"{text(start)} to {text(end)}"

    return Listing(joined, lambda asked: group[place(asked)], words)


def _law(mechanism: Mechanism, outputs: Outputs) -> Law | None:
    """Return the law of the number of values in a report's set: own bit and k - 1 others."""
    if not isinstance(mechanism, Unary | LocalHashing):
        return None
    from scipy.special import gammaln, xlog1py, xlogy

    size, (true, other) = len(mechanism.domain), mechanism.support
    many = np.arange(size, dtype=np.float64)
    logs = gammaln(size) - gammaln(many + 1) - gammaln(size - many) + xlogy(many, other)
    rest = np.exp(logs + xlog1py(size - 1 - many, -other))
    chances = true * np.append(0.0, rest) + (1.0 - true) * np.append(rest, 0.0)
    counts = np.zeros(size + 1)
    step = max(1, BITS_AT_ONCE // size)
    for start in range(0, len(outputs.codes), step):
        part = slice(start, start + step)
        sizes = np.bitwise_count(mechanism.sets(outputs.codes[part])).sum(axis=1, dtype=np.int64)
        counts += np.bincount(sizes, weights=outputs.counts[part], minlength=size + 1)
    name, noun = ("number of ones", "ones") if isinstance(mechanism, Unary) else ("size of sets", "values in the set")
    return Law(f"{name}, {type(mechanism).__name__}", counts, chances, noun)


def _short(text: str) -> str:
    """Cut the text of a long report."""
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def _repeats(mechanism: Mechanism, outputs: Outputs) -> Repeats | None:
    """Return how many pairs of users sent the same report (of hashed ones: drew the same seed).

    Sum over outputs of f^2, and of f^3, are convex in theta: largest where all users have one value.
    """
    if not isinstance(mechanism, Unary | LocalHashing | SubsetSelection) or _can_list(mechanism):
        return None
    codes, counts, name = outputs.codes, outputs.counts, f"repeated reports, {type(mechanism).__name__}"
    size = len(mechanism.domain)
    if isinstance(mechanism, LocalHashing):
        codes, name = codes[:, 0], f"repeated seeds, {type(mechanism).__name__}"
        two, three = 1.0 / SEEDS, 1.0 / SEEDS**2
    elif isinstance(mechanism, Unary):
        true, other = mechanism.support
        two, three = (
            (true**power + (1 - true) ** power) * (other**power + (1 - other) ** power) ** (size - 1)
            for power in (2, 3)
        )
    else:
        chosen = int(mechanism.size or 1)
        with_it, without = math.comb(size - 1, chosen - 1), math.comb(size - 1, chosen)
        two, three = (
            with_it * (mechanism.support.true / with_it) ** power
            + without * ((1 - mechanism.support.true) / without) ** power
            for power in (2, 3)
        )
    distinct, back = index_codes(codes)
    times = _totals(back, counts, len(distinct))
    top = int(np.argmax(times))
    space = mechanism.output_space
    text = f"seed {distinct[top]}" if isinstance(mechanism, LocalHashing) else _short(space.write(distinct[top]))
    pairs = float((times * (times - 1)).sum() / 2)
    return Repeats(name, int(counts.sum()), pairs, two, three, int(times[top]), text)
