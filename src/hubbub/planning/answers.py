"""The two questions of a plan: how large the error will be, and what it takes to make it small enough."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import partial

from hubbub.core import validation
from hubbub.core.arrays import Positions, as_real
from hubbub.core.errors import SettingError, shorten
from hubbub.core.progress import Progress
from hubbub.planning.candidate import Candidate
from hubbub.planning.interval_widths import widths_of
from hubbub.planning.parallel import STEPS, Task, working
from hubbub.planning.repeated_studies import SimulatedStudies, Tell
from hubbub.planning.requirements import epsilon_needed, users_needed
from hubbub.planning.result import Needed, SettingResult
from hubbub.planning.simulator import Simulator
from hubbub.planning.truths import AssumedTruth
from hubbub.planning.validation import check_distance, check_runs, check_users
from hubbub.sampling import Randomness

PREPARING = "listing what can be reported"
WIDTHS = 0.1  # the share of a setting's work that its widths are


def simulating(
    candidates: Sequence[Candidate],
    users: Sequence[int],
    truths: Sequence[AssumedTruth],
    *,
    method: str = "auto",
    distance: str = "tv",
    runs: int | None = None,
    rng: Randomness = None,
    level: float = 0.95,
    widths: bool = True,
    places: Positions | None = None,
) -> Generator[Progress, None, tuple[SettingResult, ...]]:
    """Return the error of every candidate with every number of users, yielding progress on the way.

    Of several truths the worst counts, by the median of `distance`; the others are kept in its `others`. `runs` fixes
    the number of simulated studies; left out, there are as many as it takes to know the median to 2.5%, or as some
    seconds allow. The same seed gives the same answer, and that of one setting does not depend on which others are
    asked for. `places` are those of the values whose widths are told.
    """
    yield Progress(0, STEPS, PREPARING)
    level = validation.level(level, "plan")
    validation.boolean(widths, "widths", "plan")
    counts = [_one_count(count) for count in users]
    studies = _studies(candidates, truths, method, distance, runs, _seed(rng))
    asked = [(study, count) for own in studies for count in counts for study in own]
    found = yield from working(_settings(asked, level if widths else None, places))
    step = len(truths)
    return tuple(_worst(found[first : first + step], distance) for first in range(0, len(found), step))


def simulating_each(
    asked: Sequence[tuple[Candidate, int, AssumedTruth]],
    *,
    method: str = "auto",
    distance: str = "tv",
    runs: int | None = None,
    rng: Randomness = None,
    level: float = 0.95,
    places: Positions | None = None,
) -> Generator[Progress, None, tuple[SettingResult, ...]]:
    """Return the error of each candidate with a number of users and a truth of its own, as `simulating` does."""
    yield Progress(0, STEPS, PREPARING)
    level, seed = validation.level(level, "plan"), _seed(rng)
    tasks = [
        (_studies([candidate], [truth], method, distance, runs, seed)[0][0], _one_count(count))
        for candidate, count, truth in asked
    ]
    return tuple((yield from working(_settings(tasks, level, places))))


def _settings(
    asked: Sequence[tuple[SimulatedStudies, int]], level: float | None, places: Positions | None
) -> list[Task[SettingResult]]:
    return [
        Task(
            partial(_setting, study, count, level, places),
            study.cost(count),
            f"{study.simulator.candidate.words}, {count:,} users, {study.truth.name}",
        )
        for study, count in asked
    ]


def _setting(
    study: SimulatedStudies, users: int, level: float | None, places: Positions | None, tell: Tell
) -> SettingResult:
    simulator, truth = study.simulator, study.truth
    prediction = study.predict(users, lambda share: tell((1.0 - WIDTHS) * share))
    near, candidate = prediction.near, simulator.candidate
    widths = None
    if level is not None:
        widths = widths_of(simulator, users, truth, level, study.generator(users, -1), places)
    return SettingResult(
        candidate=candidate.name,
        epsilon=candidate.epsilon,
        privacy=candidate.privacy,
        reports_per_user=candidate.reports_per_user,
        users=users,
        truth=truth.name,
        tv=prediction.spread("tv"),
        emd=None if near.emd is None else prediction.spread("emd"),
        widths=widths,
        closed=simulator.closed(near.squares, truth.probabilities, near.users),
        runs=near.tv.size,
        extrapolated=prediction.extrapolated,
    )


def _worst(settings: Sequence[SettingResult], distance: str) -> SettingResult:
    def error(setting: SettingResult) -> float:
        spread = setting.emd if distance == "emd" else setting.tv
        return 0.0 if spread is None else spread.median

    worst = max(settings, key=error)
    return replace(worst, others=tuple(setting for setting in settings if setting is not worst))


def needing(
    candidates: Sequence[Candidate],
    target: float,
    truths: Sequence[AssumedTruth],
    *,
    users: int | None = None,
    method: str = "auto",
    distance: str = "tv",
    confidence: float = 0.5,
    runs: int | None = None,
    rng: Randomness = None,
) -> Generator[Progress, None, tuple[Needed, ...]]:
    """Return the users that every candidate needs for a target, or the epsilon where `users` is given.

    The target is reached where a share `confidence` of the studies has an error of at most `target`. To look for an
    epsilon takes candidates of one name at several epsilons (the range to look in), or at one (ten times less or more).
    Of several truths the one that needs most counts.
    """
    yield Progress(0, STEPS, PREPARING)
    aim = as_real(target)
    if not (math.isfinite(aim) and aim > 0.0):
        raise SettingError(
            "the target is no error",
            where="plan(target=)",
            got=shorten(target),
            expected="a number above 0, such as 0.05",
            remedy="give the error that is small enough, in the distance asked for",
        )
    seed = _seed(rng)
    share = validation.share(confidence, "confidence", "plan")
    if users is not None:
        count = _one_count(users)
        groups: dict[tuple[str, int], list[Candidate]] = {}
        for candidate in candidates:
            groups.setdefault((candidate.name, candidate.reports_per_user), []).append(candidate)
        _studies(candidates, truths, method, distance, runs, seed)  # what is wrong is said at once

        def make(truth: AssumedTruth, candidate: Candidate) -> SimulatedStudies:
            return SimulatedStudies(Simulator(candidate, method), truth, seed, distance=distance, runs=runs)

        tasks = [
            Task(
                partial(epsilon_needed, group, partial(make, truth), count, aim, share, truth),
                4.0 * make(truth, group[0]).cost(count),
                f"{group[0].name}, {truth.name}",
            )
            for group in groups.values()
            for truth in truths
        ]
    else:
        tasks = [
            Task(
                partial(users_needed, study, aim, share),
                4.0 * study.cost(10_000),
                f"{study.simulator.candidate.words}, {study.truth.name}",
            )
            for own in _studies(candidates, truths, method, distance, runs, seed)
            for study in own
        ]
    found = yield from working(tasks)
    step = len(truths)
    return tuple(_dearest(found[first : first + step]) for first in range(0, len(found), step))


def _dearest(found: Sequence[Needed]) -> Needed:
    dearest = max(found, key=lambda one: math.inf if one.value is None else one.value)
    return replace(dearest, others=tuple(one for one in found if one is not dearest))


def _studies(
    candidates: Sequence[Candidate],
    truths: Sequence[AssumedTruth],
    method: str,
    distance: str,
    runs: int | None,
    seed: int,
) -> list[list[SimulatedStudies]]:
    """Return the studies of every candidate under every truth."""
    check_distance(distance)
    if distance == "emd" and any(candidate.domain.is_equidistant for candidate in candidates):
        raise SettingError(
            "categories have no distances",
            where="plan(distance=)",
            got="'emd'",
            expected="'tv'",
            remedy="leave distance out, or use Integers, Bins or Grid for values that have places",
        )
    runs = None if runs is None else check_runs(runs)
    found = []
    for candidate in candidates:
        simulator = Simulator(candidate, method)
        found.append([SimulatedStudies(simulator, truth, seed, distance=distance, runs=runs) for truth in truths])
    return found


def _seed(rng: Randomness) -> int:
    generator, seed = validation.generator(rng, "plan")
    return seed if isinstance(seed, int) else int(generator.integers(2**63))


def _one_count(users: int) -> int:
    (count,) = check_users(users)
    return count
