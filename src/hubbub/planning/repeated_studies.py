"""As many simulated studies as it takes: until the error is known well enough, or enough time was spent on it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.domains import Domain
from hubbub.metrics import earth_mover_distance
from hubbub.planning.error_spread import Known, known, spread_of
from hubbub.planning.result import Spread
from hubbub.planning.simulator import Simulator
from hubbub.planning.truths import AssumedTruth

PRECISION = 0.025  # how well the median is known, relative to itself, before simulation ends
CAREFUL_PRECISION = 0.05  # the same for methods that take long
FIRST = 16  # studies of the first batch
FIRST_SLOW = 8  # where one study takes long
MOST_RUNS = 4_000
MOST_WORK, CAREFUL_WORK = 4.0, 40.0  # about seconds for one number, on a machine with nothing else to do
LONG = 0.05  # seconds: a study that takes as long is reported by itself
MANY_CELLS, MOVED = 200, 16  # beyond so many cells of a map the earth mover's distance is computed of so few studies
MOST_CELLS = 4_000  # of a map on which it is computed at all
BACK = 4  # by which users are fewer at the second point from which errors are extrapolated

Tell = Callable[[float], None]  # called with the share of the work that is done


@dataclass(frozen=True, eq=False)
class Errors:
    """Errors of simulated studies with one number of users."""

    users: int
    tv: Floats
    emd: Floats | None
    squares: Floats

    def of(self, distance: str) -> Floats:
        """Return the errors in one distance."""
        if distance == "emd":
            assert self.emd is not None  # noqa: S101  # checked where the distance was asked for
            return self.emd
        return self.tv


@dataclass(frozen=True, eq=False)
class Prediction:
    """What was simulated, or follows from fewer users where these are too many to simulate."""

    near: Errors  # with the users asked for, or the most that are simulated
    far: Errors | None  # with fewer, where errors are extrapolated
    users: int

    @property
    def extrapolated(self) -> bool:
        """Whether so many users were not simulated."""
        return self.far is not None

    def quantile(self, distance: str, share: float) -> Known:
        """Return a quantile of the errors."""
        near = known(self.near.of(distance), share)
        if self.far is None:
            return near
        factor, low, high = _law(near, known(self.far.of(distance), share), self.near.users, self.far.users, self.users)
        return Known(near.value * factor, near.value * low, near.value * high)

    def spread(self, distance: str) -> Spread:
        """Return the spread of the errors."""
        found = spread_of(self.near.of(distance))
        if self.far is None:
            return found
        median = self.quantile(distance, 0.5)
        factor = median.value / found.median if found.median > 0.0 else 1.0
        return Spread(median.value, median.low, median.high, found.mean * factor, found.ninth * factor)


def _law(near: Known, far: Known, users: int, fewer: int, asked: int) -> tuple[float, float, float]:
    """Return by which factor errors change from `users` to `asked`, by the law between two points; and its limits.

    More users make no error larger, and none falls faster than one over their number.
    """
    step, reach = math.log(users / fewer), math.log(asked / users)
    if not (near.value > 0.0 and far.value > 0.0):
        return 1.0, math.exp(-reach), 1.0
    slope = min(max((math.log(near.value) - math.log(far.value)) / step, -1.0), 0.0)
    doubt = math.hypot(near.error * (1.0 + reach / step), far.error * reach / step)  # of the logarithm, at 95%
    low = max(slope * reach - doubt, -reach - near.error)
    high = min(slope * reach + doubt, near.error)
    return math.exp(slope * reach), math.exp(low), math.exp(high)


class SimulatedStudies:
    """Studies of one candidate under one truth, by one method: with any number of users, each number simulated once."""

    def __init__(
        self, simulator: Simulator, truth: AssumedTruth, seed: int, *, distance: str, runs: int | None
    ) -> None:
        self.simulator, self.truth, self.distance, self._runs = simulator, truth, distance, runs
        self._seed = seed
        self._known: dict[tuple[int, float], Errors] = {}

    @property
    def domain(self) -> Domain:
        """The values."""
        return self.simulator.candidate.domain

    def cost(self, users: int) -> float:
        """Return about how long a prediction takes: to share out progress."""
        most = self.simulator.most_users
        each = self.simulator.cost(min(users, most) if most else users)
        if self._runs is not None:
            return each * self._runs
        work = CAREFUL_WORK if self.simulator.careful else MOST_WORK
        return max(each * FIRST_SLOW, min(work, each * 200)) * (1.3 if most and users > most else 1.0)

    def predict(self, users: int, tell: Tell, *, precision: float = PRECISION) -> Prediction:
        """Simulate so many users, or as many as can be and fewer."""
        most = self.simulator.most_users
        if most is None or users <= most:
            return Prediction(self.errors(users, tell, precision=precision), None, users)
        far = self.errors(most // BACK, lambda share: tell(0.3 * share), precision=precision)
        near = self.errors(most, lambda share: tell(0.3 + 0.7 * share), precision=precision)
        return Prediction(near, far, users)

    def errors(self, users: int, tell: Tell, *, precision: float = PRECISION) -> Errors:
        """Simulate until the median is known to `precision`, or as many studies as work allows."""
        if (users, precision) not in self._known:
            self._known[users, precision] = self._simulate(users, tell, precision)
        return self._known[users, precision]

    def _simulate(self, users: int, tell: Tell, precision: float) -> Errors:
        slow = not self.simulator.at_once
        tv, moved, squares = np.zeros(0), np.zeros(0), np.zeros(0)
        emd: Floats | None = moved if self._moves() else None
        wanted, work, turn, share = self._runs or (FIRST_SLOW if slow else FIRST), 0.0, 0, 0.0

        def heard(done: int) -> None:
            """Tell of single studies too: a batch may take minutes, and somebody may not want to wait."""
            tell(share if self._runs is None else (tv.size + done) / wanted)

        while tv.size < wanted:
            alone = slow and self.simulator.cost(users) > LONG
            step = 1 if alone else min(wanted - tv.size, max(FIRST, tv.size), self.simulator.most_at_once)
            found = self.simulator.batch(users, self.truth.probabilities, step, self.generator(users, turn), heard)
            turn, work = turn + 1, work + found.work
            tv = np.concatenate([tv, np.abs(found.thetas - self.truth.probabilities).sum(axis=1) / 2.0])
            squares = np.concatenate([squares, found.squares])
            if emd is not None:
                more, took = self._moving(found.thetas, emd.size)
                emd, work = np.concatenate([emd, more]), work + took
            if self._runs is None:
                share, more_runs = self._enough(tv if self.distance == "tv" or emd is None else emd, work, precision)
                wanted = more_runs if tv.size == wanted else wanted
                tell(share)
            else:
                tell(tv.size / wanted)
        return Errors(users, tv, emd, squares)

    def _enough(self, errors: Floats, work: float, precision: float) -> tuple[float, int]:
        """Return the share of the work that is probably done, and how many studies there should be in all.

        Those are as many as there are, where these are enough; otherwise up to twice as many.
        """
        careful, own = self.simulator.careful, known(errors).error
        enough = max(precision, CAREFUL_PRECISION) if careful else precision
        if own <= enough or errors.size >= MOST_RUNS:
            return 1.0 if errors.size >= FIRST_SLOW else errors.size / FIRST_SLOW, errors.size
        most = CAREFUL_WORK if careful else MOST_WORK
        most *= min(1.0, 2.0 * PRECISION / precision) ** 2  # less for rough answers
        share = max(min(work / most, 1.0), (enough / own) ** 2)  # errors fall with the root of the number
        room = int(errors.size * most / work) if work > 0.0 else MOST_RUNS
        return share, max(errors.size, min(2 * errors.size, room, MOST_RUNS))

    def generator(self, users: int, turn: int) -> np.random.Generator:
        """Return the generator of one batch: decided by the seed and by what is simulated, not by what came before."""
        shares = hashlib.sha256(self.truth.probabilities.tobytes()).hexdigest()
        about = f"{self.simulator.candidate.content_key} {self.simulator.method} {shares} {users} {turn}"
        digest = hashlib.sha256(about.encode()).digest()
        return np.random.default_rng([self._seed, *np.frombuffer(digest, dtype=np.uint32).tolist()])

    def _moves(self) -> bool:
        if self.domain.is_equidistant:
            return False
        return self.domain.places is not None or self.distance == "emd" or len(self.domain) <= MOST_CELLS

    def _moving(self, thetas: Floats, before: int) -> tuple[Floats, float]:
        """Return the earth mover's distances to the truth, and the work."""
        truth, domain = self.truth.probabilities, self.domain
        if domain.places is not None:
            apart = np.abs(np.cumsum(thetas - truth, axis=1)[:, :-1]) @ np.diff(domain.places)
            return np.asarray(apart), 0.0
        few = len(domain) > MANY_CELLS and self.distance != "emd"
        some = thetas[: max(0, MOVED - before)] if few else thetas
        found = np.array([earth_mover_distance(theta, truth, domain) for theta in some])
        return found, 5e-8 * len(domain) ** 2 * len(some)
