"""The cases of the accuracy study: truths, mechanisms, epsilons and numbers of users, and which half each is in.

The constants of `method="auto"` were chosen on the cases of the "tune" half, and on random studies of other kinds; the
numbers that count are those of the "report" half. The halves take turns like the fields of a chessboard, so that both
see every size and epsilon (truths are in benchmarks/truths.py); the truths of UNSEEN are in the report half only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hubbub as hb
from truths import truth_of

Floats = NDArray[np.float64]
Draw = Callable[[hb.Domain, Floats, float, int, np.random.Generator], hb.Reports]
Make = Callable[[Any, float], hb.Mechanism]  # a mechanism refuses domains of other kinds than its own

HALVES = ("tune", "report")
UNSEEN = ("heaped ages", "three blocks", "hills", "round ages", "harbour town")


SMALL_SAMPLE = 500  # users, at most


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

    @property
    def small_sample(self) -> bool:
        """Whether there are so few users that chance decides much."""
        return self.users <= SMALL_SAMPLE

    @property
    def few_values(self) -> bool:
        """Whether there are so few values that the path of EM comes close to almost any truth by itself."""
        return self.truth.endswith(" values")


def single(make: Make) -> Draw:
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
    "OUE": single(hb.OptimizedUnary),
    "OLH": single(hb.LocalHashing),
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
    # New lines go to the end: the halves of a line depend on its place.
    ("even of 2 values", "k-RR", (1.0,), (50, 5_000)),
    ("60/40 of 2 values", "k-RR", (0.5, 2.0), (500, 50_000)),
    ("90/10 of 2 values", "RAPPOR", (1.0,), (50, 5_000)),
    ("99/1 of 2 values", "k-RR", (1.0,), (500, 50_000)),
    ("one empty of 3 values", "OUE", (2.0,), (500, 5_000)),
    ("60/40 of 3 values", "OLH", (1.0,), (500, 5_000)),
    ("Zipf of 5 values", "k-RR", (1.0, 4.0), (50, 5_000)),
    ("90/10 of 5 values", "OUE", (0.5,), (500, 5_000)),
    ("99/1 of 10 values", "OLH", (2.0,), (500, 5_000)),
    ("Zipf of 10 values", "RAPPOR", (1.0,), (500, 50_000)),
    ("5 of 100 words", "k-RR", (0.5, 2.0), (10_000, 100_000)),
    ("falling 5 of 100 words", "k-RR", (1.0, 4.0), (10_000, 100_000)),
    ("20 of 100 words", "k-RR", (1.0, 4.0), (10_000, 100_000)),
    ("falling 20 of 100 words", "k-RR", (0.5, 2.0), (10_000, 100_000)),
    ("5 of 100 words", "RAPPOR", (1.0,), (10_000,)),
    ("falling 20 of 100 words", "RAPPOR", (2.0,), (10_000,)),
    ("1 of 1000 words", "k-RR", (2.0,), (10_000, 100_000)),
    ("falling 5 of 1000 words", "k-RR", (2.0,), (10_000, 100_000)),
    ("20 of 1000 words", "k-RR", (4.0,), (10_000, 100_000)),
    ("5 of 1000 words", "OLH", (1.0,), (10_000,)),
    ("falling 20 of 1000 words", "OLH", (4.0,), (10_000,)),
    ("hours worked", "truncated geometric", (0.1, 0.3), (1_000, 10_000, 100_000)),
    ("round ages", "truncated geometric", (0.1, 0.3), (10_000, 100_000)),
    ("bump with a spike", "truncated geometric", (0.1, 0.3), (1_000, 10_000, 100_000)),
    ("short bell", "truncated geometric", (0.3, 1.0), (50, 200, 500)),
    ("short slope", "truncated geometric", (0.3, 1.0), (50, 200, 500)),
    ("short humps", "truncated geometric", (0.3, 1.0), (50, 200, 500)),
    ("short even", "truncated geometric", (0.3, 1.0), (50, 200, 500)),
    ("twenty words", "k-RR", (1.0, 3.0), (50, 200, 500)),
    ("river town", "planar geometric", (0.5, 1.0, 2.5), (20_000, 100_000)),
    ("river town", "planar Laplace", (0.5, 1.0, 2.5), (20_000, 100_000)),
    ("harbour town", "planar geometric", (0.5, 1.0, 2.5), (20_000, 100_000)),
    ("harbour town", "planar Laplace", (0.5, 1.0, 2.5), (20_000, 100_000)),
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
