"""Seeded random problems of maximum likelihood, each with its likelihoods written down a second time.

A problem holds reports as hubbub takes them, and beside them the logarithms of the probabilities of what every user
sent, from the formulas themselves and in extended precision (80 bits on x86), before any merging or scaling. Factors
that belong to a pattern alone cancel from the gap and are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

import hubbub as hb
from hubbub.core.arrays import Array

Floats = NDArray[np.float64]
Longs = NDArray[np.longdouble]
Whole = NDArray[np.int64]

LONG = np.longdouble


@dataclass(frozen=True)
class Problem:
    """Reports, and the same likelihood in extended precision."""

    reports: hb.Reports
    logs: Longs  # log P(what user i sent | value x), values by patterns, up to a factor of each pattern's own
    weights: Longs  # how many users sent each pattern

    @property
    def size(self) -> int:
        return int(self.logs.shape[0])

    @cached_property
    def scaled(self) -> Longs:
        """The likelihoods, each pattern's largest being 1."""
        return np.asarray(np.exp(self.logs - self.logs.max(axis=0)))

    def gap(self, probabilities: Floats) -> float:
        """Return log max D at the distribution, in nats per user, anew and in extended precision."""
        theta = probabilities.astype(LONG)
        with np.errstate(divide="ignore"):
            ratio = self.weights / ((theta / theta.sum()) @ self.scaled)
        total = self.weights.sum()
        top = (self.scaled @ ratio).max() / total
        # sum_x theta_x D_x = 1, so that less than 1 is rounding. Sums of bits weigh more than their users.
        return float(np.log(max(top, LONG(1))) * total / self.reports.users)

    def value(self, probabilities: Floats) -> float:
        """Return the mean log-likelihood over users, up to the patterns' own factors."""
        theta = probabilities.astype(LONG)
        with np.errstate(divide="ignore"):
            return float(self.weights @ np.log((theta / theta.sum()) @ self.scaled) / self.reports.users)

    def merged(self) -> tuple[Floats, Floats]:
        """Return the likelihoods of distinct patterns in double precision, and the patterns' shares."""
        columns, which = np.unique(self.scaled.astype(np.float64), axis=1, return_inverse=True)
        shares = np.zeros(columns.shape[1], LONG)
        np.add.at(shares, which.ravel(), self.weights / self.weights.sum())
        return columns, shares.astype(np.float64)

    def __add__(self, other: Problem) -> Problem:
        return Problem(
            self.reports + other.reports,
            np.concatenate([self.logs, other.logs], axis=1),
            np.concatenate([self.weights, other.weights]),
        )

    def restricted(self, kept: Whole) -> Problem:
        labels = self.reports.domain.labels
        return Problem(self.reports.restrict(labels[kept]), self.logs[kept], self.weights)


# -- likelihoods, written again ---------------------------------------------------------------------------


def log_likelihoods(mechanism: hb.Mechanism, outputs: Array) -> Longs:
    """Return log P(output | value), values by outputs."""
    domain = mechanism.domain
    epsilon, size = LONG(mechanism.epsilon), len(domain)
    if isinstance(mechanism, hb.Geometric | hb.TruncatedGeometric):
        labels = domain.labels.astype(LONG)
        return np.asarray(-epsilon * np.abs(labels[:, None] - outputs.astype(LONG)[None, :]))
    if isinstance(mechanism, hb.Laplace):
        return _laplace(mechanism, domain.index(outputs))
    if isinstance(mechanism, hb.Exponential):
        logs = -epsilon * domain.distances().astype(LONG) / 2
        norms = np.log(np.exp(logs).sum(axis=1, keepdims=True))
        return np.asarray((logs - norms)[:, domain.index(outputs)])
    if isinstance(mechanism, hb.RandomizedResponse):
        return np.asarray(epsilon * (np.arange(size)[:, None] == domain.index(outputs)[None, :]))
    if isinstance(mechanism, hb.Rappor | hb.OptimizedUnary | hb.SubsetSelection):
        return np.asarray(epsilon * np.unpackbits(outputs, axis=1, count=size).T)
    if isinstance(mechanism, hb.LocalHashing):
        buckets = int(mechanism.buckets or 2)
        inside = [[_hash(int(seed), x, buckets) == bucket for seed, bucket in outputs.tolist()] for x in range(size)]
        return np.asarray(epsilon * np.array(inside))
    if isinstance(mechanism, hb.PlanarGeometric) and not mechanism.truncated:
        grid = mechanism.domain
        apart = [
            (places[:, None] - outputs[None, :, axis]).astype(LONG) * LONG(side)
            for axis, (places, side) in enumerate(
                [(grid.labels % grid.columns, grid.width), (grid.labels // grid.columns, grid.height)]
            )
        ]
        return np.asarray(-epsilon * np.hypot(*apart))
    listed = mechanism.outputs
    assert listed is not None
    place = {label: column for column, label in enumerate(listed.tolist())}
    columns = [place[label] for label in outputs.tolist()]
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(mechanism.matrix().astype(LONG)[:, columns]))


def _laplace(mechanism: hb.Laplace, codes: Whole) -> Longs:
    """Return the log of the noise's integral over the points nearest to each output."""
    places = mechanism.domain.places.astype(LONG)
    borders = np.concatenate([[LONG(-np.inf)], (places[:-1] + places[1:]) / 2, [LONG(np.inf)]])
    left = LONG(mechanism.epsilon) * (borders[codes][None, :] - places[:, None])
    right = LONG(mechanism.epsilon) * (borders[codes + 1][None, :] - places[:, None])
    below, above = np.exp(np.minimum(left, 0)), np.exp(np.minimum(-right, 0))  # tails, as seen from inside
    inside = 1 - (below + above) / 2
    to_right = (np.exp(-np.maximum(left, 0)) - np.exp(-np.maximum(right, 0))) / 2
    to_left = (np.exp(np.minimum(right, 0)) - np.exp(np.minimum(left, 0))) / 2
    chosen = np.where(left >= 0, to_right, np.where(right <= 0, to_left, inside))
    return np.asarray(np.log(chosen))


def _hash(seed: int, position: int, buckets: int) -> int:
    """Return the bucket of a value: the published hash in whole numbers."""
    word, golden = 2**64 - 1, 0x9E3779B97F4A7C15

    def mix(h: int) -> int:
        h = ((h ^ (h >> 30)) * 0xBF58476D1CE4E5B9) & word
        h = ((h ^ (h >> 27)) * 0x94D049BB133111EB) & word
        return h ^ (h >> 31)

    h = mix((mix((seed + golden) & word) + (position + 1) * golden) & word)
    return ((h >> 32) * buckets) >> 32


# -- from mechanisms and outputs to problems --------------------------------------------------------------


def sent(mechanism: hb.Mechanism, outputs: Array) -> Problem:
    """One output for each user."""
    return Problem(
        hb.Reports.from_outputs(mechanism, outputs), log_likelihoods(mechanism, outputs), np.ones(len(outputs), LONG)
    )


def counted(mechanism: hb.Mechanism, counts: Whole) -> Problem:
    """So many users for each of the listed outputs."""
    listed = mechanism.outputs
    assert listed is not None
    seen = np.flatnonzero(counts)
    return Problem(
        hb.Reports.from_counts(mechanism, counts), log_likelihoods(mechanism, listed[seen]), counts[seen].astype(LONG)
    )


def by_user(users: Sequence[Sequence[tuple[hb.Mechanism, Array]]]) -> Problem:
    """Several outputs for each user: for each mechanism of a user, an array of outputs."""
    listed = [[(mechanism, output) for mechanism, outputs in user for output in outputs] for user in users]
    logs = [np.sum([log_likelihoods(m, outputs).sum(axis=1) for m, outputs in user], axis=0) for user in users]
    return Problem(hb.Reports.from_users(listed), np.stack(logs, axis=1), np.ones(len(users), LONG))


def bit_sums(mechanism: hb.Rappor | hb.OptimizedUnary, ones: Whole, users: int) -> Problem:
    """Only how many ones each bit had: a pattern for the ones and one for the zeros of each bit."""
    epsilon = LONG(mechanism.epsilon)
    if isinstance(mechanism, hb.Rappor):
        own, other = 1 / (1 + np.exp(-epsilon / 2)), 1 / (1 + np.exp(epsilon / 2))
        own_zero, other_zero = other, own
    else:
        own, other = LONG(0.5), 1 / (1 + np.exp(epsilon))
        own_zero, other_zero = own, 1 / (1 + np.exp(-epsilon))
    same = np.eye(ones.size, dtype=bool)
    logs = np.log(np.concatenate([np.where(same, own, other), np.where(same, own_zero, other_zero)], axis=1))
    weights = np.concatenate([ones, users - ones])
    seen = weights > 0
    return Problem(
        hb.Reports.from_bit_counts(mechanism, ones, users), np.asarray(logs[:, seen]), weights[seen].astype(LONG)
    )


def table(rng: np.random.Generator, matrix: Floats) -> hb.Matrix:
    """A mechanism with this matrix, rows divided by their sums."""
    rows, columns = matrix.shape
    domain = hb.Integers(0, rows - 1) if rng.random() < 0.5 else hb.Categories([f"v{x}" for x in range(rows)])
    return hb.Matrix(domain, [f"out {column}" for column in range(columns)], matrix / matrix.sum(axis=1, keepdims=True))


# -- pieces of random problems ----------------------------------------------------------------------------


def between(rng: np.random.Generator, low: float, high: float) -> float:
    """A number between two positive ones, its logarithm being uniform."""
    return float(math.exp(rng.uniform(math.log(low), math.log(high))))


def values(rng: np.random.Generator, domain: hb.Domain, users: int) -> Array:
    """What users truly hold: distributions from nearly flat to a few values."""
    truth = rng.dirichlet(np.full(len(domain), between(rng, 0.1, 3.0)))
    return domain.labels[rng.choice(len(domain), size=users, p=truth)]


def drawn(rng: np.random.Generator, mechanism: hb.Mechanism, users: int) -> Problem:
    """True values, privatized."""
    return sent(mechanism, mechanism.privatize(values(rng, mechanism.domain, users), rng=rng))


def stochastic(rng: np.random.Generator, rows: int, columns: int, *, zeros: float = 0.0) -> Floats:
    """A random matrix, some of its entries 0, though none of its rows and columns."""
    matrix = rng.gamma(between(rng, 0.2, 3.0), size=(rows, columns)) + 1e-6
    matrix[rng.random((rows, columns)) < zeros] = 0.0
    matrix[np.arange(rows), rng.permutation(rows) % columns] += 0.5
    matrix[rng.permutation(columns) % rows, np.arange(columns)] += 0.5
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))


def some(rng: np.random.Generator, size: int, most: int = 60) -> Whole:
    """Counts, some of them 0, not all."""
    counts = rng.integers(0, most + 1, size) * (rng.random(size) < 0.8)
    counts[rng.integers(size)] += 1
    return np.asarray(counts)


def line(rng: np.random.Generator, most: int = 60) -> hb.Integers:
    low = int(rng.integers(-50, 50))
    return hb.Integers(low, low + int(rng.integers(1, most)))


def grid(rng: np.random.Generator, most: int = 7) -> hb.Grid:
    columns, rows = (int(side) for side in rng.integers(2, most + 1, 2))
    return hb.Grid(columns, rows, cell=(float(rng.choice([0.5, 1.0])), float(rng.choice([0.5, 1.0, 1.5]))))


def plain(rng: np.random.Generator, most: int = 60, least: int = 2) -> hb.Domain:
    size = int(rng.integers(least, most + 1))
    return hb.Integers(1, size) if rng.random() < 0.5 else hb.Categories([f"v{x}" for x in range(size)])


# -- kinds of problems ------------------------------------------------------------------------------------

Maker = Callable[[np.random.Generator], Problem]

KINDS: dict[str, Maker] = {}


def kind(name: str) -> Callable[[Maker], Maker]:
    def remember(maker: Maker) -> Maker:
        KINDS[name] = maker
        return maker

    return remember


def problem(name: str, seed: int) -> Problem:
    """Return the problem of this kind and seed, the same each time."""
    return KINDS[name](np.random.default_rng([list(KINDS).index(name), seed]))


@kind("line with epsilon close to 0")
def _(rng: np.random.Generator) -> Problem:
    return drawn(rng, hb.Geometric(line(rng), between(rng, 1e-6, 0.05)), int(rng.integers(20, 1500)))


@kind("line with geometric noise")
def _(rng: np.random.Generator) -> Problem:
    return drawn(rng, hb.Geometric(line(rng), between(rng, 0.05, 5.0)), int(rng.integers(20, 3000)))


@kind("line with clamped noise")
def _(rng: np.random.Generator) -> Problem:
    return drawn(rng, hb.TruncatedGeometric(line(rng), between(rng, 1e-3, 3.0)), int(rng.integers(20, 3000)))


@kind("bins with Laplace noise")
def _(rng: np.random.Generator) -> Problem:
    edges = np.cumsum(rng.uniform(0.05, 3.0, int(rng.integers(3, 50))))
    return drawn(rng, hb.Laplace(hb.Bins(edges), between(rng, 0.01, 3.0)), int(rng.integers(20, 2000)))


@kind("exponential mechanism")
def _(rng: np.random.Generator) -> Problem:
    domain: hb.Domain = [line(rng, 40), grid(rng, 5), plain(rng, 30)][int(rng.integers(3))]
    return drawn(rng, hb.Exponential(domain, between(rng, 0.01, 4.0)), int(rng.integers(20, 2000)))


@kind("map with geometric noise")
def _(rng: np.random.Generator) -> Problem:
    return drawn(rng, hb.PlanarGeometric(grid(rng), between(rng, 0.2, 2.0)), int(rng.integers(50, 2000)))


@kind("map with noise beyond its borders")
def _(rng: np.random.Generator) -> Problem:
    mechanism = hb.PlanarGeometric(grid(rng), between(rng, 0.2, 2.0), truncated=False)
    return drawn(rng, mechanism, int(rng.integers(20, 800)))


@kind("map with Laplace noise")
def _(rng: np.random.Generator) -> Problem:
    return drawn(rng, hb.PlanarLaplace(grid(rng, 6), between(rng, 0.3, 2.0)), int(rng.integers(50, 2000)))


@kind("equal rows")
def _(rng: np.random.Generator) -> Problem:
    rows, columns = (int(size) for size in rng.integers(2, 25, 2))
    matrix = stochastic(rng, rows, columns)
    matrix = matrix[rng.integers(0, rows, int(rng.integers(rows, 2 * rows + 1)))]
    return counted(table(rng, matrix), some(rng, columns))


@kind("equal columns")
def _(rng: np.random.Generator) -> Problem:
    rows, columns = (int(size) for size in rng.integers(2, 30, 2))
    matrix = stochastic(rng, rows, columns)
    matrix = matrix[:, np.concatenate([np.arange(columns), rng.integers(0, columns, columns)])]
    return counted(table(rng, matrix), some(rng, 2 * columns))


@kind("values that give nothing that was seen")
def _(rng: np.random.Generator) -> Problem:
    rows, columns = (int(size) for size in rng.integers(3, 40, 2))
    matrix = np.zeros((rows, columns + 2))
    matrix[:, :columns] = stochastic(rng, rows, columns, zeros=0.3)
    silent = rng.choice(rows, size=int(rng.integers(1, max(2, rows // 2))), replace=False)
    spoken = np.setdiff1d(np.arange(rows), silent)
    matrix[silent] = 0.0
    matrix[silent, columns + rng.integers(0, 2, silent.size)] = 1.0
    counts = np.concatenate([some(rng, columns), [0, 0]])
    counts[:columns] *= matrix[spoken, :columns].max(axis=0) > 0
    counts[int(matrix[spoken[0]].argmax())] += 1
    return counted(table(rng, matrix), counts)


@kind("zeros here and there")
def _(rng: np.random.Generator) -> Problem:
    rows, columns = (int(size) for size in rng.integers(2, 50, 2))
    return counted(table(rng, stochastic(rng, rows, columns, zeros=0.7)), some(rng, columns))


@kind("rows that are mixtures of others")
def _(rng: np.random.Generator) -> Problem:
    rank, more = int(rng.integers(2, 12)), int(rng.integers(1, 30))
    few = stochastic(rng, rank, int(rng.integers(rank, 40)))
    mixed = rng.dirichlet(np.full(rank, 0.5), more) @ few
    matrix = np.concatenate([few, mixed])[rng.permutation(rank + more)]
    return counted(table(rng, matrix), some(rng, matrix.shape[1]))


@kind("fewer outputs than values")
def _(rng: np.random.Generator) -> Problem:
    columns = int(rng.integers(2, 12))
    rows = columns + int(rng.integers(1, 40))
    return counted(table(rng, stochastic(rng, rows, columns)), some(rng, columns))


@kind("one, two or three users")
def _(rng: np.random.Generator) -> Problem:
    domain = line(rng, 30)
    choices: list[hb.Mechanism] = [
        hb.Geometric(domain, between(rng, 0.01, 3.0)),
        hb.RandomizedResponse(domain, between(rng, 0.01, 5.0)),
        hb.Rappor(domain, between(rng, 0.1, 5.0)),
        hb.Exponential(domain, between(rng, 0.01, 3.0)),
        hb.LocalHashing(domain, between(rng, 0.1, 3.0)),
    ]
    parts = [drawn(rng, choices[int(rng.integers(len(choices)))], 1) for _ in range(int(rng.integers(1, 4)))]
    return reduce(lambda one, other: one + other, parts)


@kind("a milliard users")
def _(rng: np.random.Generator) -> Problem:
    rows, columns = (int(size) for size in rng.integers(2, 40, 2))
    return counted(table(rng, stochastic(rng, rows, columns)), rng.integers(1, 10**9, columns))


@kind("counts from one to a milliard")
def _(rng: np.random.Generator) -> Problem:
    if rng.random() < 0.5:
        domain = line(rng, 40)
        mechanism: hb.Mechanism = hb.TruncatedGeometric(domain, between(rng, 0.05, 3.0))
    else:
        rows, columns = (int(size) for size in rng.integers(2, 40, 2))
        mechanism = table(rng, stochastic(rng, rows, columns, zeros=0.2))
    assert mechanism.outputs is not None
    counts = np.exp(rng.uniform(0.0, math.log(1e9), len(mechanism.outputs))).astype(np.int64)
    counts[0], counts[-1] = 1, 10**9
    return counted(mechanism, counts)


@kind("one report that dominates")
def _(rng: np.random.Generator) -> Problem:
    rows, columns = (int(size) for size in rng.integers(2, 40, 2))
    counts = rng.integers(0, 4, columns)
    counts[int(rng.integers(columns))] = 10 ** int(rng.integers(3, 10))
    return counted(table(rng, stochastic(rng, rows, columns)), counts)


@kind("several mechanisms")
def _(rng: np.random.Generator) -> Problem:
    domain = line(rng, 40)
    choices: list[hb.Mechanism] = [
        hb.Geometric(domain, between(rng, 0.02, 3.0)),
        hb.TruncatedGeometric(domain, between(rng, 0.02, 3.0)),
        hb.RandomizedResponse(domain, between(rng, 0.1, 4.0)),
        hb.Rappor(domain, between(rng, 0.2, 4.0)),
        hb.OptimizedUnary(domain, between(rng, 0.2, 4.0)),
        hb.Laplace(domain, between(rng, 0.02, 3.0)),
        hb.RandomizedResponse(domain, between(rng, 0.1, 4.0)),
    ]
    taken = rng.choice(len(choices), size=int(rng.integers(2, 5)), replace=False)
    parts = [drawn(rng, choices[place], int(rng.integers(1, 400))) for place in taken]
    return reduce(lambda one, other: one + other, parts)


@kind("several outputs for each user")
def _(rng: np.random.Generator) -> Problem:
    domain = line(rng, 40)
    choices: list[hb.Mechanism] = [
        hb.Geometric(domain, between(rng, 0.02, 1.0)),
        hb.RandomizedResponse(domain, between(rng, 0.1, 3.0)),
        hb.Exponential(domain, between(rng, 0.05, 2.0)),
        hb.SubsetSelection(domain, between(rng, 0.1, 3.0)),
    ]
    users = []
    for value in values(rng, domain, int(rng.integers(2, 120))):
        taken = rng.choice(len(choices), size=int(rng.integers(1, 4)), replace=False)
        users.append([(choices[c], choices[c].privatize([value] * int(rng.integers(1, 4)), rng=rng)) for c in taken])
    return by_user(users)


@kind("hundreds of outputs for each user")
def _(rng: np.random.Generator) -> Problem:
    domain = line(rng, 25)
    choices: list[hb.Mechanism] = [
        hb.Geometric(domain, between(rng, 0.02, 1.0)),
        hb.RandomizedResponse(domain, between(rng, 0.05, 3.0)),
    ]
    users = []
    for value in values(rng, domain, int(rng.integers(2, 30))):
        mechanism = choices[int(rng.integers(2))]
        users.append([(mechanism, mechanism.privatize([value] * int(rng.integers(2, 400)), rng=rng))])
    return by_user(users)


@kind("k-RR with values that nobody reported")
def _(rng: np.random.Generator) -> Problem:
    domain = plain(rng)
    counts = np.where(rng.random(len(domain)) < 0.3, rng.integers(1, 10 ** int(rng.integers(1, 7)), len(domain)), 0)
    counts[int(rng.integers(len(domain)))] += 1
    return counted(hb.RandomizedResponse(domain, between(rng, 0.01, 20.0)), counts)


@kind("RAPPOR")
def _(rng: np.random.Generator) -> Problem:
    return drawn(rng, hb.Rappor(plain(rng, 40), between(rng, 0.1, 8.0)), int(rng.integers(2, 600)))


@kind("optimized unary encoding")
def _(rng: np.random.Generator) -> Problem:
    return drawn(rng, hb.OptimizedUnary(plain(rng, 40), between(rng, 0.1, 8.0)), int(rng.integers(2, 600)))


@kind("local hashing")
def _(rng: np.random.Generator) -> Problem:
    buckets = None if rng.random() < 0.5 else int(rng.integers(2, 9))
    return drawn(rng, hb.LocalHashing(plain(rng, 40), between(rng, 0.1, 5.0), buckets), int(rng.integers(2, 250)))


@kind("subset selection")
def _(rng: np.random.Generator) -> Problem:
    return drawn(rng, hb.SubsetSelection(plain(rng, 40, 3), between(rng, 0.1, 5.0)), int(rng.integers(2, 600)))


@kind("sums of bits")
def _(rng: np.random.Generator) -> Problem:
    maker = hb.Rappor if rng.random() < 0.5 else hb.OptimizedUnary
    mechanism = maker(plain(rng, 40), between(rng, 0.1, 8.0))
    users = int(between(rng, 1, 1e6))
    truth = rng.dirichlet(np.full(len(mechanism.domain), 0.5))
    own, other = mechanism.support
    ones = rng.binomial(users, truth * own + (1 - truth) * other)
    return bit_sums(mechanism, ones, users)


@kind("part of the domain")
def _(rng: np.random.Generator) -> Problem:
    domain = line(rng, 50)
    choices: list[hb.Mechanism] = [
        hb.Geometric(domain, between(rng, 0.02, 3.0)),
        hb.RandomizedResponse(domain, between(rng, 0.1, 6.0)),
        hb.Rappor(domain, between(rng, 0.2, 4.0)),
        hb.Laplace(domain, between(rng, 0.02, 3.0)),
    ]
    whole = reduce(
        lambda one, other: one + other,
        [
            drawn(rng, choices[place], int(rng.integers(1, 400)))
            for place in rng.choice(4, size=int(rng.integers(1, 3)), replace=False)
        ],
    )
    kept = rng.choice(len(domain), size=int(rng.integers(1, len(domain) + 1)), replace=False)
    return whole.restricted(np.sort(kept))


@kind("regions and noise")
def _(rng: np.random.Generator) -> Problem:
    domain = line(rng, 50)
    regions = rng.integers(0, max(1, len(domain) // 3) + 1, len(domain)).tolist()
    cloak = hb.Cloaking(domain, regions)
    noise = hb.TruncatedGeometric(domain, between(rng, 0.02, 3.0))
    first = drawn(rng, cloak, int(rng.integers(1, 200)))
    if rng.random() < 0.5:
        return first + drawn(rng, noise, int(rng.integers(1, 400)))
    users = [
        [(cloak, cloak.privatize([value])), (noise, noise.privatize([value], rng=rng))]
        for value in values(rng, domain, int(rng.integers(2, 80)))
    ]
    return first + by_user(users)


@kind("entries as small as 1e-300")
def _(rng: np.random.Generator) -> Problem:
    rows, columns = (int(size) for size in rng.integers(2, 30, 2))
    matrix = 10.0 ** -rng.uniform(0, between(rng, 3, 300), (rows, columns))
    matrix[np.arange(rows), rng.integers(0, columns, rows)] = 1.0
    matrix[rng.integers(rows), rng.integers(columns)] = 1e-300
    return counted(table(rng, matrix), some(rng, columns))


@kind("hundreds of values")
def _(rng: np.random.Generator) -> Problem:
    size = int(rng.integers(200, 400))
    choices: list[Callable[[], hb.Mechanism]] = [
        lambda: hb.Geometric(hb.Integers(0, size), between(rng, 0.01, 0.5)),
        lambda: hb.TruncatedGeometric(hb.Integers(0, size), between(rng, 0.01, 0.5)),
        lambda: hb.Laplace(hb.Integers(0, size), between(rng, 0.01, 0.5)),
        lambda: hb.Exponential(hb.Integers(0, size), between(rng, 0.02, 1.0)),
        lambda: hb.Rappor(hb.Integers(0, size), between(rng, 1.0, 4.0)),
        lambda: hb.PlanarGeometric(hb.Grid(20, size // 20, cell=1.0), between(rng, 0.3, 1.5)),
    ]
    return drawn(rng, choices[int(rng.integers(len(choices)))](), int(rng.integers(300, 2000)))


FEW = {"hundreds of values": 8}  # these take longer
SEEDS = 20


def seeds(name: str) -> range:
    return range(FEW.get(name, SEEDS))
