"""The reports of a run, drawn so that runs are paired.

Each draw has a generator of its own, seeded by the benchmark's seed and by what is drawn:

* the users' values of run r by (truth, users, r): all mechanisms meet the same people;
* their reports by (mechanism, truth, users, r): all methods meet the same reports.

Nothing depends on what else is in the benchmark, or on the order of the work.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from hubbub.benchmarking.contenders import Setup, drawn_key, message_of, truth_key
from hubbub.core.arrays import Floats, Positions
from hubbub.mechanisms import Mechanism
from hubbub.planning.candidates import Candidate
from hubbub.planning.pattern_simulation import PatternTable, split_users
from hubbub.planning.user_simulation import reports_of
from hubbub.reports import Reports

MAX_COUNTED_ENTRIES = 1_000_000  # outputs times values up to which counts are drawn, and no single reports


def generator_of(seed: int, *names: object) -> np.random.Generator:
    """Return the generator of a seed and some names; equal names give equal numbers on every machine."""
    words = np.frombuffer(hashlib.sha256(repr(names).encode()).digest(), dtype="<u4").tolist()
    return np.random.default_rng(np.random.SeedSequence([seed, *words]))


def held_values(setup: Setup, run: int, seed: int) -> Positions:
    """Return how many users hold each value in a run: the same whatever they report by."""
    rng = generator_of(seed, "values", truth_key(setup.truth), setup.users, run)
    return rng.multinomial(setup.users, setup.truth.probabilities)


def drawn_reports(setup: Setup, draws: CandidateDraws, run: int, seed: int) -> Reports:
    """Return the reports of a run: the same whatever they are estimated by."""
    rng = generator_of(seed, "reports", draws.key, truth_key(setup.truth), setup.users, run)
    return draws.reports(held_values(setup, run, seed), rng)


class CandidateDraws:
    """Draws the reports of users by one way to report; `failure` says why it cannot."""

    def __init__(self, candidate: Candidate) -> None:
        self.key, self.failure = drawn_key(candidate), ""
        self._shares = [share for _, share in candidate.parts]
        self._parts: list[OutputDraws] = []
        try:
            self._parts += [OutputDraws(mechanism) for mechanism, _ in candidate.parts]
        except Exception as error:  # a mechanism of one's own may fail in its own way
            self.failure = message_of(error)

    @property
    def counts_suffice(self) -> bool:
        """Whether only counts of outputs are drawn, so that any number of users is as quick."""
        return all(part.counts_suffice for part in self._parts)

    def reports(self, held: Positions, rng: np.random.Generator) -> Reports:
        """Return the reports of so many users with each value."""
        groups = zip(self._parts, _dealt(held, self._shares, rng), strict=True)
        first, *others = [part.reports(own, rng) for part, own in groups if own.any()]
        return sum(others, first)


class OutputDraws:
    """Draws the reports of users by one mechanism: as counts of outputs where these are few, else one by one."""

    def __init__(self, mechanism: Mechanism) -> None:
        self._mechanism = mechanism
        table = PatternTable.of(mechanism, 1)
        is_small = table is not None and len(table.codes) * len(mechanism.domain) <= MAX_COUNTED_ENTRIES
        self._table = table if is_small else None
        self._probabilities: Floats | None = None
        if self._table is not None:
            shares = np.exp(mechanism.log_columns(self._table.codes))
            self._probabilities = np.asarray(shares / shares.sum(axis=1, keepdims=True))

    @property
    def counts_suffice(self) -> bool:
        """Whether counts of outputs are drawn."""
        return self._table is not None

    def reports(self, held: Positions, rng: np.random.Generator) -> Reports:
        """Return the reports of so many users with each value."""
        if self._table is None or self._probabilities is None:
            return reports_of(self._mechanism, np.repeat(np.arange(held.size), held), rng)
        block = self._table.block(rng.multinomial(held, self._probabilities).sum(axis=0))
        assert block is not None  # noqa: S101  # there are users, and each of them reports
        return Reports(self._mechanism.domain, (block,))


def _dealt(held: Positions, shares: Sequence[float], rng: np.random.Generator) -> list[Positions]:
    """Deal users with these values to the mechanisms of a mixture."""
    groups, left = [], held
    for members in split_users(int(held.sum()), shares)[:-1]:
        groups.append(rng.multivariate_hypergeometric(left, members, method="marginals"))
        left = left - groups[-1]
    return [*groups, left]
