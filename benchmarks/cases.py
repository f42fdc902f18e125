"""The cases of the accuracy study: truths, mechanisms, epsilons and numbers of users, and which half each is in.

The constants of `method="auto"` were chosen on the cases of the "tune" half, and on random studies of other kinds; the
numbers that count are those of the "report" half. The halves take turns like the fields of a chessboard, so that both
see every size and epsilon; the truths of UNSEEN are in the report half only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import hubbub as hb
from problems import residents

Floats = NDArray[np.float64]
Draw = Callable[[hb.Domain, Floats, float, int, np.random.Generator], hb.Reports]

LINE, DELAYS, WORDS = hb.Integers(0, 99), hb.Bins(np.arange(-60.0, 245.0, 5.0)), hb.Categories(range(100))
FEW, BLOCKS = hb.Categories(range(32)), hb.Grid(12, 8, cell=1.0)
HALVES = ("tune", "report")
UNSEEN = ("heaped ages", "three blocks", "hills")


@dataclass(frozen=True)
class Case:
    """One truth seen through one mechanism by some users."""

    truth: str
    mechanism: str
    epsilon: float
    users: int
    half: str

    @property
    def name(self) -> str:
        """What the case is called in files and tables."""
        return f"{self.truth}, {self.mechanism} {self.epsilon:g}, {self.users:,} users"


def two_humps(places: Floats) -> Floats:
    """Return a wide hump and a narrow one."""
    low, high = places.min(), places.max()
    wide = np.exp(-0.5 * ((places - (0.3 * high + 0.7 * low)) / (0.08 * (high - low))) ** 2)
    narrow = np.exp(-0.5 * ((places - (0.75 * high + 0.25 * low)) / (0.03 * (high - low))) ** 2)
    return 0.6 * wide / wide.sum() + 0.4 * narrow / narrow.sum()


def delays(minutes: Floats) -> Floats:
    """Return departures: most a little early, some late, few very late."""
    early = np.exp(-0.5 * ((minutes + 4.0) / 7.0) ** 2)
    late = np.where(minutes > 0, np.exp(-minutes / 40.0), 0.0)
    return 0.65 * early / early.sum() + 0.35 * late / late.sum()


def heaped(ages: Floats) -> Floats:
    """Return ages as people tell them: a wide hump, and heaps at multiples of ten."""
    smooth = np.exp(-0.5 * ((ages - 42.0) / 18.0) ** 2)
    return smooth * np.where(ages % 10 == 0, 3.0, 0.8)


def truth_of(name: str, counts: Path | None) -> tuple[hb.Domain, Floats]:
    """Return a domain, and how the crowd is distributed over it."""
    from scipy.stats import binom

    places = np.arange(100.0)
    zipf = 1.0 / (1.0 + places) ** 1.2
    city = residents(None)
    spikes, point = np.zeros(100), np.zeros(100)
    spikes[[7, 30, 31, 58, 90]], point[37] = [0.3, 0.25, 0.1, 0.25, 0.1], 1.0
    few = 1.0 / (1.0 + np.arange(32.0))
    x, y = BLOCKS.labels % 12, BLOCKS.labels // 12
    found: dict[str, tuple[hb.Domain, Floats]] = {
        "binomial": (LINE, binom.pmf(np.arange(100), 99, 0.5)),
        "block": (LINE, ((places >= 20) & (places < 40)).astype(np.float64)),
        "two humps": (LINE, two_humps(places)),
        "Zipf": (LINE, zipf),
        "spikes": (LINE, spikes),
        "one point": (LINE, point),
        "uniform": (LINE, np.ones(100)),
        "flight delays": (DELAYS, delays(DELAYS.places)),
        "shuffled Zipf": (LINE, np.random.default_rng(3).permutation(zipf)),
        "words": (WORDS, np.random.default_rng(4).permutation(zipf)),
        "few words": (FEW, np.random.default_rng(5).permutation(few)),
        "few even words": (FEW, np.ones(32)),
        "one word": (WORDS, np.random.default_rng(6).permutation(point)),
        "two towns": (BLOCKS, np.exp(-0.5 * ((x - 3) ** 2 + (y - 5) ** 2)) + 0.5 * (x >= 8) * (y < 3)),
        "heaped ages": (LINE, heaped(places)),
        "three blocks": (LINE, 1.0 * (places < 10) + 3.0 * ((places >= 45) & (places < 55)) + 2.0 * (places >= 85)),
        "hills": (BLOCKS, np.exp(np.sin(0.9 * x) + np.cos(0.7 * y + 0.3 * x))),
        "city": (city[0], city[1].astype(np.float64)),
    }
    if name == "San Francisco":
        grid, people = residents(counts)
        return grid, people / people.sum()
    domain, shape = found[name]
    return domain, shape / shape.sum()


def single(make: Callable[[hb.Domain, float], hb.Mechanism]) -> Draw:
    """Return a study in which each user sends one output."""

    def draw(domain: hb.Domain, truth: Floats, epsilon: float, users: int, rng: np.random.Generator) -> hb.Reports:
        mechanism = make(domain, epsilon)
        values = np.repeat(domain.labels, rng.multinomial(users, truth))
        return hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng))

    return draw


def two_epsilons(domain: hb.Domain, truth: Floats, epsilon: float, users: int, rng: np.random.Generator) -> hb.Reports:
    """Half of the users take four times the noise of the others."""
    noise = noise_of(domain)
    return single(noise)(domain, truth, epsilon, users // 2, rng) + single(noise)(
        domain, truth, epsilon / 4, users - users // 2, rng
    )


def two_reports(domain: hb.Domain, truth: Floats, epsilon: float, users: int, rng: np.random.Generator) -> hb.Reports:
    """Each user runs the mechanism twice."""
    mechanism = noise_of(domain)(domain, epsilon)
    values = np.repeat(domain.labels, rng.multinomial(users, truth))
    first, second = (mechanism.privatize(values, rng=rng) for _ in range(2))
    return hb.Reports.from_users(
        [[(mechanism, one), (mechanism, other)] for one, other in zip(first, second, strict=True)]
    )


def noise_of(domain: hb.Domain) -> Callable[[hb.Domain, float], hb.Mechanism]:
    """Return the usual noise of a domain."""
    kinds = {hb.Categories: hb.RandomizedResponse, hb.Grid: hb.PlanarGeometric, hb.Bins: hb.Laplace}
    return kinds.get(type(domain), hb.TruncatedGeometric)


DRAWS: dict[str, Draw] = {
    "truncated geometric": single(hb.TruncatedGeometric),
    "planar geometric": single(hb.PlanarGeometric),
    "planar Laplace": single(hb.PlanarLaplace),
    "Laplace": single(hb.Laplace),
    "exponential": single(hb.Exponential),
    "k-RR": single(hb.RandomizedResponse),
    "RAPPOR": single(hb.Rappor),
    "two epsilons": two_epsilons,
    "two reports": two_reports,
}
PLAN: tuple[tuple[str, str, tuple[float, ...], tuple[int, ...]], ...] = (
    ("binomial", "truncated geometric", (0.1, 0.5), (1_000, 10_000, 100_000, 1_000_000)),
    ("block", "truncated geometric", (0.1, 0.5), (1_000, 10_000, 100_000, 1_000_000)),
    ("two humps", "truncated geometric", (0.1, 0.5), (1_000, 10_000, 100_000)),
    ("Zipf", "truncated geometric", (0.1, 0.5), (1_000, 10_000, 100_000)),
    ("spikes", "truncated geometric", (0.1, 0.5), (1_000, 10_000, 100_000)),
    ("one point", "truncated geometric", (0.1,), (1_000, 100_000)),
    ("uniform", "truncated geometric", (0.1, 0.5), (1_000, 100_000)),
    ("flight delays", "Laplace", (0.02, 0.1), (1_000, 10_000, 100_000, 1_000_000)),
    ("shuffled Zipf", "truncated geometric", (0.1, 0.5), (10_000, 1_000_000)),
    ("two humps", "exponential", (0.2,), (10_000, 100_000)),
    ("spikes", "exponential", (1.0,), (10_000, 100_000)),
    ("block", "two epsilons", (0.4,), (10_000, 100_000)),
    ("flight delays", "two reports", (0.05,), (1_000, 10_000)),
    ("words", "k-RR", (1.0, 3.0), (1_000, 10_000, 100_000, 1_000_000)),
    ("few words", "k-RR", (0.5, 2.0), (10_000, 100_000)),
    ("one word", "k-RR", (1.0,), (1_000, 100_000)),
    ("few even words", "k-RR", (1.0,), (1_000, 100_000)),
    ("few words", "RAPPOR", (0.5, 2.0), (1_000, 10_000, 100_000)),
    ("few even words", "RAPPOR", (1.0,), (10_000,)),
    ("few words", "two reports", (1.0,), (1_000, 10_000)),
    ("words", "two epsilons", (4.0,), (10_000, 100_000)),
    ("two towns", "planar geometric", (0.5, 1.0), (1_000, 10_000, 100_000)),
    ("two towns", "planar Laplace", (1.0,), (10_000, 1_000_000)),
    ("two towns", "exponential", (1.0,), (10_000, 100_000)),
    ("city", "planar geometric", (0.5, 1.0, 2.0), (10_000, 100_000)),
    ("city", "planar Laplace", (1.0,), (10_000, 100_000)),
    ("heaped ages", "truncated geometric", (0.1, 0.5), (10_000, 1_000_000)),
    ("three blocks", "truncated geometric", (0.2,), (1_000, 10_000, 100_000)),
    ("hills", "planar geometric", (0.7,), (1_000, 100_000)),
    ("hills", "two reports", (0.7,), (3_000,)),
    ("San Francisco", "planar geometric", (0.5, 1.0, 2.0), (123_026,)),
    ("San Francisco", "two epsilons", (2.0,), (123_026,)),
    ("San Francisco", "k-RR", (4.0,), (123_026,)),
    ("San Francisco", "planar Laplace", (1.0,), (10_000,)),
)  # fmt: skip


def cases(*, with_data: bool) -> list[Case]:
    """Return all cases; San Francisco where its counts are at hand."""
    found = []
    for line, (truth, mechanism, epsilons, sizes) in enumerate(PLAN):
        for column, epsilon in enumerate(epsilons):
            for row, users in enumerate(sizes):
                half = "report" if truth in UNSEEN else HALVES[(line + column + row) % 2]
                found.append(Case(truth, mechanism, epsilon, users, half))
    return [case for case in found if with_data or case.truth != "San Francisco"]


def drawn(case: Case, seed: int, counts: Path | None) -> tuple[hb.Domain, Floats, hb.Reports]:
    """Return the domain, the truth, and what a crowd drawn from it sent."""
    domain, truth = _truth(case.truth, counts)
    rng = np.random.default_rng([seed, *case.name.encode()])
    return domain, truth, DRAWS[case.mechanism](domain, truth, case.epsilon, case.users, rng)


_truth = cache(truth_of)
