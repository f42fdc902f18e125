"""The endpoints of profile intervals: how far a statistic can go among likely distributions, and with which cutoff.

Many endpoints are computed together, in rounds. In each round the endpoints that have not settled are solved for, on
several threads, and then the cutoff of each is simulated at the distribution that attains it. An endpoint moves out
until the cutoff in use is its own: that of the likeliest distribution with its value.

Many low endpoints are the statistic's minimum, usually 0, and need no solving: a likely distribution with that value
proves it. One EM run on all of them together finds most.

Statistics are linear, or smooth (`smooth_statistics`): these are linear at each step of their search. One that is about
some of the users alone, such as a conditional share, can have any value if there may be none of them.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Floats, Positions
from hubbub.core.progress import Progress, finish
from hubbub.core.threads import processors, threads_for
from hubbub.core.validation import DEFAULT_SEED
from hubbub.intervals.deviance_cutoff import (
    MAX_DRAWS,
    MAX_INFORMATION_ENTRIES,
    MAX_SIMULATED_VALUES,
    DevianceSimulation,
    chi_square,
    design_cutoff,
    draws_for,
    information_per_user,
)
from hubbub.intervals.exact_binomial import EXACT_NOTE, TwoOutputs
from hubbub.intervals.linear_statistic import Statistic
from hubbub.intervals.moving_ends import MovingEnd, SmoothEnd
from hubbub.intervals.smooth_statistics import SmoothStatistic
from hubbub.likelihood import Likelihood, Point
from hubbub.reports import Reports
from hubbub.solvers import likeliest_point
from hubbub.solvers.em_batch import em_batch
from hubbub.solvers.local_extremes import LocalRegion
from hubbub.solvers.newton_systems import system_for
from hubbub.solvers.priced_extremes import PricedRegion, region_around
from hubbub.solvers.profile_extremes import Extreme, Region

MAX_GAP = 1e-9  # of the maximum, in nats per user...
MAX_GAP_OF_SLACK = 1e-3  # ...and relative to what a cutoff of 1 allows: the gap widens the region
COARSE_DRAWS = 199  # from which the first cutoffs are simulated...
MAX_COARSE_ROUNDS = 3  # ...in these rounds of moving an endpoint out to its own cutoff...
MAX_ROUNDS = 2  # ...before those with all draws
# A deviance that is more than twice the cutoff by so few draws, or by some more, is not within that by all of them.
SCREENING_DRAWS, MAX_RATIO_OF_CUTOFFS = 59, 2.0
# The cutoff of a single value is simulated as well: with all mass on one value it is not 3.8 but 9, and about 5 for a
# busy cell among empty ones. On large domains that would take too long for every value, and only large shares are.
MAX_VALUES_ALL_SIMULATED = 100
MIN_SHARE_SIMULATED = 0.2
MIN_LOCAL_VALUES = 64  # below, factorising a matrix takes no time, and the interior point is as quick
MAX_SLACK = 0.05  # of the way from the maximum to the limit: a larger distance from limit to attained value is noted
MAX_PROOF_UPDATES = 30  # of EM, in search of a likely distribution without a value...
PROOF_DELTA = 1e-3  # ...which stops where the log-likelihood hardly changes
MIN_MASS_OF_REST = 1e-6  # that a maximum must leave to the other values, for EM to begin there
MAX_BATCH_ENTRIES = 4_000_000  # of distributions and what they predict, in memory at a time
# Entries of the channel between which a thread for each endpoint pays: below, products are too short to share out;
# above, the linear algebra's own threads are better.
MIN_THREADED_ENTRIES, MAX_THREADED_ENTRIES = 50_000, 4_000_000
KNOWN = "It is known."
OUTER = "An endpoint is an outer bound: the interval may be wider than necessary."
NOBODY = "The reports do not show that anybody has the given values: every value is possible."
UNDEFINED = "Likely distributions do not define it: every value is possible."


@dataclass(frozen=True)
class LikelihoodRegion:
    """The region around a maximum. Cutoffs are in units of the deviance, twice a difference of log-likelihoods."""

    top: Point

    @classmethod
    def of(cls, reports: Reports) -> LikelihoodRegion:
        """Find the maximum for these reports."""
        return finish(cls.around(Likelihood.of(reports)))

    @classmethod
    def around(cls, likelihood: Likelihood) -> Generator[Any, None, LikelihoodRegion]:
        """Find the maximum of a likelihood, yielding progress."""
        return cls((yield from likeliest_point.steps(likelihood, _max_gap(likelihood))))

    @cached_property
    def region(self) -> Region | PricedRegion:
        """The solver that finds extremes over the region."""
        return region_around(self.top)

    @cached_property
    def local(self) -> LocalRegion | None:
        """The quicker solver where many values share one matrix, which fails where too few users sent reports."""
        channel = self.top.likelihood.channel
        is_small = channel.entries <= MAX_INFORMATION_ENTRIES and channel.values <= MAX_SIMULATED_VALUES
        if channel.values < MIN_LOCAL_VALUES or not is_small or not system_for(channel).is_dense:
            return None
        return LocalRegion(self.top, information_per_user(self.top))

    @property
    def users(self) -> float:
        """The total weight of the log-likelihood: the users, unless only sums of bits were kept."""
        return self.top.likelihood.total

    def least(self, weights: Floats, cutoff: float) -> Extreme:
        """Return the least `weights` @ theta among distributions whose deviance is at most `cutoff`."""
        slack = cutoff / (2.0 * self.users)
        found = None if self.local is None else self.local.least(weights, slack)
        return self.region.least(weights, slack) if found is None else found

    def likeliest_among(self, allowed: NDArray[np.bool_], largest: float) -> Floats | None:
        """Return the likeliest distribution over some values; None if some report needs another one.

        One whose deviance is more than `largest` need not be the likeliest.
        """
        likelihood, values = self.top.likelihood, np.flatnonzero(allowed)
        if self.local is not None:
            gap, slack = _max_gap(likelihood), largest / (2.0 * self.users)
            found = self.local.likeliest(allowed, gap, slack)
            if found is not None:
                return found.theta
        channel = likelihood.channel.part(values)
        if not (channel.forward(np.full(values.size, 1.0 / values.size))[likelihood.sent] > 0).all():
            return None
        best = finish(LikelihoodRegion.around(Likelihood(channel, likelihood.weights, likelihood.users))).top
        theta = np.zeros(allowed.size)
        theta[values] = best.theta
        return theta

    def twin(self) -> LikelihoodRegion:
        """Return the same region with a workspace of its own, which threads must not share."""
        own = LikelihoodRegion(self.top)
        own.__dict__["local"] = self.local  # it has none
        return own


def _max_gap(likelihood: Likelihood) -> float:
    """Return the largest gap of a maximum, in nats per user."""
    return min(MAX_GAP, MAX_GAP_OF_SLACK / (2.0 * likelihood.users))


class Endpoints(NamedTuple):
    """The interval of one statistic: its low and its high end, the cutoffs that were used, and a note on them."""

    low: float
    high: float
    cutoffs: tuple[float, float] | None
    note: str


def exact_endpoints(study: TwoOutputs, statistics: Sequence[Statistic], level: float) -> list[Endpoints]:
    """Return the interval of each statistic in a study that is small enough for all its outcomes to be listed."""
    shares = study.shares(level)
    thetas = np.array([[share, 1.0 - share] for share in shares])
    note = EXACT_NOTE.format(users=study.users)
    ends = [np.sort(thetas @ statistic.weights) for statistic in statistics]
    return [Endpoints(float(low), float(high), None, note) for low, high in ends]


def profile_endpoints(
    region: LikelihoodRegion,
    statistics: Sequence[Statistic | SmoothStatistic],
    level: float,
    *,
    simultaneous: bool = False,
    rng: np.random.Generator | None = None,
) -> Generator[Progress, None, list[Endpoints]]:
    """Return the interval of each statistic, linear or smooth."""
    shared = _SharedSimulation(region.top, level, rng or np.random.default_rng(DEFAULT_SEED))
    open_groups = yield from _groups_that_may_be_empty(region, statistics, level, simultaneous, shared)
    pairs: list[_Pair | Endpoints] = []
    for statistic in statistics:
        if isinstance(statistic, SmoothStatistic):
            limits = statistic.lowest, statistic.highest
            if statistic.among is not None and statistic.among.tobytes() in open_groups:
                pairs.append(Endpoints(*limits, None, KNOWN if limits[0] == limits[1] else NOBODY))
                continue
            if not np.isfinite(statistic.gradient(region.top.theta)).all():
                pairs.append(Endpoints(*limits, None, UNDEFINED))
                continue
        pairs.append(_pair(region.top, statistic, level, simultaneous, shared))
    ends = [end for pair in pairs if isinstance(pair, _Pair) for end in (pair.low, pair.high)]
    yield Progress(0, len(ends), "intervals")
    running = _without_proven(region, [end for end in ends if not end.is_known])
    yield from _move_out(region, running, level)
    return [pair.endpoints(region.top) if isinstance(pair, _Pair) else pair for pair in pairs]


class _Pair(NamedTuple):
    """Both ends of a statistic's interval, the high one being the least value of its negative."""

    low: MovingEnd
    high: MovingEnd
    note: str

    def endpoints(self, top: Point) -> Endpoints:
        """Return the interval that the ends have come to."""
        low, high, note = self
        if low.is_known:  # the sum over all values
            return Endpoints(low.minimum, low.minimum, (0.0, 0.0), KNOWN)
        if any(_has_slack(top, end) for end in (low, high)):
            note = f"{note} {OUTER}".strip()
        likeliest = low.value(top.theta)  # itself in the interval, up to rounding
        return Endpoints(min(low.limit, likeliest), max(-high.limit, likeliest), (low.cutoff, high.cutoff), note)


def _pair(
    top: Point, statistic: Statistic | SmoothStatistic, level: float, simultaneous: bool, shared: _SharedSimulation
) -> _Pair:
    if isinstance(statistic, Statistic):
        cutoff, simulation, note = _cutoff(top, statistic.weights, statistic.single, level, simultaneous, shared)
        low, high = (MovingEnd(sign * statistic.weights, cutoff, simulation) for sign in (1.0, -1.0))
        return _Pair(low, high, note)
    gradient = statistic.gradient(top.theta)
    cutoff, simulation, note = _cutoff(top, gradient, None, level, simultaneous, shared)
    down, up = (SmoothEnd(statistic, sign, top.theta, cutoff, simulation) for sign in (1.0, -1.0))
    return _Pair(down, up, note)


def _groups_that_may_be_empty(
    region: LikelihoodRegion,
    statistics: Sequence[Statistic | SmoothStatistic],
    level: float,
    simultaneous: bool,
    shared: _SharedSimulation,
) -> Generator[Progress, None, set[bytes]]:
    """Return which of the groups that smooth statistics are about (by their weights) may have a share of 0."""
    groups = {
        statistic.among.tobytes(): statistic.among
        for statistic in statistics
        if isinstance(statistic, SmoothStatistic) and statistic.among is not None
    }
    pairs = {}
    for name, weights in groups.items():
        pairs[name] = _pair(region.top, Statistic(weights, "a group"), level, simultaneous, shared)
    lows = [pair.low for pair in pairs.values() if not pair.low.is_known]
    yield from _move_out(region, _without_proven(region, lows), level)
    return {
        name for name, pair in pairs.items() if not pair.low.is_known and (pair.low.is_minimal or pair.low.limit <= 0.0)
    }


class _SharedSimulation:
    """One simulation of the deviance for all endpoints, made when the first of them asks for it."""

    def __init__(self, top: Point, level: float, rng: np.random.Generator) -> None:
        self._top, self._level, self._rng = top, level, rng

    @cached_property
    def simulation(self) -> DevianceSimulation:
        return DevianceSimulation(self._top, draws_for(self._level), self._rng)

    @cached_property
    def is_away_from_border(self) -> bool:
        return self.simulation.is_away_from_border()


def _cutoff(
    top: Point,
    weights: Floats,
    single: int | None,
    level: float,
    simultaneous: bool,
    shared: _SharedSimulation,
) -> tuple[float, DevianceSimulation | None, str]:
    """Return the cutoff to begin with, the simulation of its own one if that is needed, and a note."""
    values, survey = top.theta.size, top.likelihood.survey
    if survey is None:
        plain, effect, most = chi_square(level), 1.0, 1.0
    elif values > MAX_SIMULATED_VALUES:
        plain, effect, most = design_cutoff(level, survey), 1.0, 1.0
    else:
        effect, most = shared.simulation.design_effect(weights), shared.simulation.design_effect()
        plain = effect * design_cutoff(level, survey)
    if simultaneous and single is not None:
        note = f"Holds for all {values:,} values at once (Bonferroni)."
        return effect * design_cutoff(1.0 - (1.0 - level) / values, survey), None, note
    if simultaneous:
        return most * chi_square(level, values - 1), None, "Holds for all linear statistics at once."
    if single is not None and values > MAX_VALUES_ALL_SIMULATED and top.theta[single] < MIN_SHARE_SIMULATED:
        note = f"One of more than {MAX_VALUES_ALL_SIMULATED} values: the chi-square cutoff, not calibrated."
        return plain, None, note
    if (1.0 - level) * (MAX_DRAWS + 1) < 1.0:
        note = "A level this high is not simulated: the cutoff holds for all linear statistics at once."
        return most * chi_square(level, values - 1), None, note
    if values > MAX_SIMULATED_VALUES:
        note = (
            f"Not calibrated: with more than {MAX_SIMULATED_VALUES:,} values the chi-square cutoff is used, "
            "which is too small where the truth has zeros."
        )
        return plain, None, note
    if shared.is_away_from_border:
        return plain, None, "Every value is clearly present: the chi-square cutoff applies."
    return plain, shared.simulation, "The cutoff is simulated, because the truth may have zeros."


# -- endpoints at the statistic's minimum ------------------------------------------------------------------


def _without_proven(region: LikelihoodRegion, ends: Sequence[MovingEnd]) -> list[MovingEnd]:
    """Return the endpoints of which no distribution shows that they are the statistic's minimum.

    A share is 0 if some likely distribution does without the value. EM, which never gives mass to a value that has
    none, searches for it from the maximum, for many values at once.
    """
    removed = [np.flatnonzero([] if end.face is None else end.face > end.face.min()) for end in ends]
    singles = [(end, int(values[0])) for end, values in zip(ends, removed, strict=True) if values.size == 1]
    channel = region.top.likelihood.channel
    step = max(1, MAX_BATCH_ENTRIES // (channel.values + channel.patterns))
    proven = set[int]()
    for first in range(0, len(singles), step):
        some, values = zip(*singles[first : first + step], strict=True)
        deviances = _deviances_without(region.top, np.array(values))
        proven |= {id(end) for end, deviance in zip(some, deviances, strict=True) if deviance <= end.cutoff}
    return [end for end in ends if id(end) not in proven]


def _deviances_without(top: Point, values: Positions) -> Floats:
    """Return for each value the deviance of some distribution that has no mass there; inf if none was found."""
    likelihood, rows = top.likelihood, np.arange(values.size)
    starts = np.tile(top.theta, (values.size, 1))
    starts[rows, values] = 0.0
    rest = starts.sum(axis=1)
    possible = rest > MIN_MASS_OF_REST
    if not possible.any():
        return np.full(values.size, np.inf)
    starts = starts[possible] / rest[possible, None]
    weights = np.broadcast_to(likelihood.weights, (len(starts), likelihood.weights.size))
    found = em_batch(likelihood.channel, weights, starts, delta=PROOF_DELTA, max_iter=MAX_PROOF_UPDATES)
    deviances = np.full(values.size, np.inf)
    deviances[possible] = np.nan_to_num(2.0 * (top.log_likelihood - found.log_likelihoods), nan=np.inf)
    return deviances


def _move_to_minimum(
    region: LikelihoodRegion, ends: Sequence[MovingEnd], level: float
) -> Generator[Progress, None, None]:
    """Move endpoints to the statistic's minimum over all distributions, where that has a cutoff of its own.

    Few draws are enough to see that a minimum is far too unlikely, which most are.
    """
    faces: list[tuple[MovingEnd, Floats, float]] = []
    for done, end in enumerate(ends):
        yield Progress(done, len(ends), "looking for minima")
        face = _likeliest_minimal(region, end, level)
        if face is not None:
            faces.append((end, *face))
    for draws in (SCREENING_DRAWS, COARSE_DRAWS, None):
        if not faces:
            return
        simulation = faces[0][0].simulation
        assert simulation is not None  # noqa: S101  # as for all open ends
        margin = 1.0 if draws is None else MAX_RATIO_OF_CUTOFFS
        cutoffs = yield from simulation.cutoffs(
            [theta for _, theta, _ in faces],
            [end.weights if end.face is None else end.face for end, _, _ in faces],
            [deviance / margin for _, _, deviance in faces],
            level,
            draws,
        )
        # A cutoff is no less than the least of interest: it counts if it is more.
        faces = [face for face, cutoff in zip(faces, cutoffs, strict=True) if margin * cutoff > face[2]]
    for end, _, _ in faces:
        end.limit = end.minimum


def _likeliest_minimal(region: LikelihoodRegion, end: MovingEnd, level: float) -> tuple[Floats, float] | None:
    """Return the likeliest distribution with the least value, and its deviance; None if no cutoff is that large."""
    top, weights = region.top, end.face
    if weights is None or end.simulation is None:
        return None
    largest = end.simulation.design_effect() * chi_square(level, max(1, weights.size - 1))
    # The deviance is convex along the way from the maximum to the minimum, and has the cutoff at the endpoint.
    own = end.value(top.theta)
    if weights is end.weights and (own - end.minimum) * end.cutoff > largest * (own - end.limit):
        return None
    theta = region.likeliest_among(weights == weights.min(), largest)
    if theta is None:
        return None
    deviance = 2.0 * (top.log_likelihood - top.at(theta).log_likelihood)
    return None if deviance > largest else (theta, deviance)


# -- all other endpoints -----------------------------------------------------------------------------------


def _move_out(region: LikelihoodRegion, ends: Sequence[MovingEnd], level: float) -> Generator[Progress, None, None]:
    """Solve for all endpoints, and again for those whose own cutoff is another one.

    The first rounds simulate cutoffs by few draws, which are enough to come close; the last ones by all draws.
    """
    yield from _solve(region, ends, "solving for endpoints")
    open_ends = [end for end in ends if end.simulation is not None and not end.is_minimal]
    if not open_ends:
        return
    for rounds, draws in ((MAX_COARSE_ROUNDS, COARSE_DRAWS), (MAX_ROUNDS, None)):
        moving = open_ends
        for _ in range(rounds):
            cutoffs = yield from _own_cutoffs(moving, level, draws)
            for end, own in zip(moving, cutoffs, strict=True):
                end.adjust_cutoff(own, is_coarse=draws is not None)
            moving = [end for end in moving if not end.is_settled]
            yield from _solve(region, moving, "moving endpoints")
    yield from _move_to_minimum(region, [end for end in open_ends if not end.is_minimal], level)


def _own_cutoffs(ends: Sequence[MovingEnd], level: float, draws: int | None) -> Generator[Progress, None, list[float]]:
    """Return the cutoffs that belong to the distributions that attain some endpoints."""
    known = [(end, end.extreme.theta) for end in ends if end.extreme is not None]
    simulation = None if not known else known[0][0].simulation  # one for all
    if simulation is None:
        return []
    found = yield from simulation.cutoffs(
        [theta for _, theta in known],
        [end.weights for end, _ in known],
        [end.least_cutoff for end, _ in known],
        level,
        draws,
    )
    return [float(own) for own in found]


def _solve(region: LikelihoodRegion, ends: Sequence[MovingEnd], what: str) -> Generator[Progress, None, None]:
    """Solve for each endpoint with its present cutoff, on several threads where that pays."""
    channel = region.top.likelihood.channel
    entries = channel.entries
    workers = min(processors(), len(ends)) if MIN_THREADED_ENTRIES <= entries <= MAX_THREADED_ENTRIES else 1
    regions: SimpleQueue[LikelihoodRegion] = SimpleQueue()
    for own in (region, *(region.twin() for _ in range(workers - 1))):
        regions.put(own)

    def solve(end: MovingEnd) -> Extreme:
        own = regions.get()
        try:
            with threads_for(entries):
                return end.solve(own.least)
        finally:
            regions.put(own)

    if workers <= 1:
        for done, end in enumerate(ends):
            yield Progress(done, len(ends), what)
            end.put(solve(end))
        return
    with ThreadPoolExecutor(workers) as pool:
        for done, (end, extreme) in enumerate(zip(ends, pool.map(solve, ends), strict=True)):
            end.put(extreme)
            yield Progress(done, len(ends), what)


def _has_slack(top: Point, end: MovingEnd) -> bool:
    """Whether the limit is not known to be attained, or nearly."""
    if end.extreme is None:
        return False
    reach = end.value(top.theta) - end.extreme.limit
    return end.extreme.attained - end.extreme.limit > MAX_SLACK * reach
