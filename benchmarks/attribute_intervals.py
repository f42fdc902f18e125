"""Coverage of 95% intervals of several attributes: slices, cells, conditional shares, moments and correlations.

As in `intervals.py`, the interval by the chi-square cutoff is computed first, and the calibrated one only where that
does not hold the truth: calibrated ends never lie inside it.

Then how long the tables of a page take in one thread, and simulated deviances against programs that are solved one by
one: `--only time`.

Run: python benchmarks/attribute_intervals.py [--runs 400] [--only NAME]
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

import hubbub as hb
from hubbub.attribute_shares import attribute_shares
from hubbub.core.progress import finish
from hubbub.core.threads import threads_for
from hubbub.intervals.attribute_statistics import AnyStatistic, every_value, parse_asked
from hubbub.intervals.conditional_shares import ConditionalShare
from hubbub.intervals.deviance_cutoff import DevianceSimulation, chi_square
from hubbub.intervals.interval_endpoints import LikelihoodRegion, profile_endpoints
from hubbub.intervals.linear_statistic import Statistic
from hubbub.intervals.moment_statistics import Correlation, Variance
from hubbub.intervals.moving_ends import MovingEnd, SmoothEnd
from hubbub.solvers.boundary_deviance import ConePrograms
from hubbub.solvers.deviance_programs import DeviancePrograms
from measure import ONE_THREAD, apart, in_turn, row, save_merged, study_parser

LEVEL, LEAST = 0.95, 0.94
RUNS = 400
DRAWS = 40  # of simulated deviances that are timed
MAX_ERROR = 1e-5  # of them
SLIP = 1e-9  # ends that are exactly 0 are computed up to rounding


@dataclass(frozen=True)
class Setting:
    """A study to be simulated again and again."""

    name: str
    truth: np.ndarray
    draw: Callable[[np.random.Generator], hb.Reports]
    asked: dict[str, AnyStatistic]


def study_of(*groups: tuple[hb.Mechanism, int], truth: np.ndarray) -> Callable[[np.random.Generator], hb.Reports]:
    """Return a study of users of some mechanisms, each by a number of users."""

    def draw(rng: np.random.Generator) -> hb.Reports:
        drawn = []
        for mechanism, users in groups:
            values = mechanism.domain.labels[rng.choice(truth.size, size=users, p=truth)]
            drawn.append(hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng)))
        return reduce(add, drawn)

    return draw


def numbers(product: hb.Product, name: str) -> np.ndarray:
    """Return the number of an attribute in each combination."""
    margin = product.margin([name])
    return np.asarray(margin.domain.places[margin.places])


def moments_of(product: hb.Product, name: str, given: dict[str, object] | None = None) -> dict[str, AnyStatistic]:
    """Return the mean and the variance of an attribute, among those with given values."""
    own, words = numbers(product, name), "" if given is None else " of a group"
    among = None if given is None else product.having(given).astype(float)
    mean = Statistic(own, f"mean of {name}", is_share=False)
    return {
        f"the mean{words}": mean if among is None else ConditionalShare.of(mean, among, "a group"),
        f"the variance{words}": Variance(own, among, "variance"),
    }


def settings() -> list[Setting]:
    """Return all settings."""
    return [*two_by_two(), *three_by_four(), *six_by_two_by_three(), *large_tables()]


def two_by_two() -> list[Setting]:
    """Return two yes/no questions, with all answers and with an empty cell."""
    yes = hb.Categories(["yes", "no"])
    product = hb.Product(tea=yes, milk=yes)
    found = []
    for name, truth in (
        ("interior", np.array([0.4, 0.2, 0.1, 0.3])),
        ("an empty cell", np.array([0.3, 0.5, 0.0, 0.2])),
    ):
        asked = {
            "a marginal share": parse_asked(product, {"tea": "yes"}, None),
            "a cell": parse_asked(product, ("no", "yes"), None),
            "a conditional share": parse_asked(product, {"tea": "yes"}, {"milk": "no"}),
            "a conditional share near the border": parse_asked(product, {"milk": "yes"}, {"tea": "no"}),
        }
        for users in (500, 5_000):
            both = hb.Split(tea=hb.RandomizedResponse(yes, 1.5), milk=hb.RandomizedResponse(yes, 1.5))
            draw = study_of((both, users), truth=truth)
            found.append(Setting(f"2 x 2, {name}, {users:,} users", truth, draw, asked))
    return found


def three_by_four() -> list[Setting]:
    """Return two numbers, correlated, with k-RR; the same with some empty cells, and with three ways to report."""
    rooms, people = hb.Integers(1, 3), hb.Integers(1, 4)
    product = hb.Product(rooms=rooms, people=people)
    full = np.array([[0.16, 0.09, 0.05, 0.03], [0.06, 0.13, 0.09, 0.05], [0.03, 0.06, 0.1, 0.15]]).ravel()
    sparse = np.array([[0.3, 0.1, 0.0, 0.0], [0.0, 0.2, 0.1, 0.0], [0.0, 0.0, 0.1, 0.2]]).ravel()

    def parts(epsilon: float) -> dict[str, hb.Mechanism]:
        return {
            "rooms": hb.RandomizedResponse(rooms, epsilon),
            "people": hb.RandomizedResponse(people, epsilon),
        }

    asked: dict[str, AnyStatistic] = {
        "a marginal share": parse_asked(product, {"people": 4}, None),
        "a cell": parse_asked(product, (1, 1), None),
        "a rare cell": parse_asked(product, (1, 4), None),
        "three cells of a corner": parse_asked(product, [(1, 3), (1, 4), (2, 4)], None),
        "a conditional share": parse_asked(product, {"people": [3, 4]}, {"rooms": 2}),
        "a rare conditional share": parse_asked(product, {"people": 4}, {"rooms": 1}),
        **moments_of(product, "people"),
        **moments_of(product, "people", {"rooms": 1}),
        "the correlation": Correlation(numbers(product, "rooms"), numbers(product, "people"), None, "correlation"),
    }
    split, noisy = hb.Split(**parts(2.0)), hb.Split(**parts(1.0))
    mixed = study_of(
        (noisy, 2_000), (hb.SampleOne(**parts(2.0)), 2_000), (hb.SampleOneWithFakes(**parts(2.0)), 2_000), truth=sparse
    )
    return [
        Setting("3 x 4, 2,000 users", full, study_of((split, 2_000), truth=full), asked),
        Setting("3 x 4, empty cells, 1,000 users", sparse, study_of((split, 1_000), truth=sparse), asked),
        Setting("3 x 4, empty cells, 20,000 users, more noise", sparse, study_of((noisy, 20_000), truth=sparse), asked),
        Setting("3 x 4, three ways to report, 6,000 users", sparse, mixed, asked),
    ]


def six_by_two_by_three() -> list[Setting]:
    """Return three attributes, one of them a number by truncated geometric noise, with a third of the cells empty."""
    age, sex, town = hb.Integers(1, 6), hb.Categories(["f", "m"]), hb.Categories(["a", "b", "c"])
    product = hb.Product(age=age, sex=sex, town=town)
    truth = np.random.default_rng(26).dirichlet(np.full(36, 0.7))
    truth[truth < 0.012] = 0.0
    truth /= truth.sum()
    labels = [tuple(label) for label in product.labels.tolist()]
    asked: dict[str, AnyStatistic] = {
        "a marginal share": parse_asked(product, {"town": "a"}, None),
        "a share of two attributes": parse_asked(product, {"age": [1, 2], "sex": "f"}, None),
        "the largest cell": parse_asked(product, labels[int(truth.argmax())], None),
        "an empty cell": parse_asked(product, labels[int(truth.argmin())], None),
        "a conditional share": parse_asked(product, {"town": "a"}, {"sex": "f"}),
        "a conditional share in a small group": parse_asked(product, {"town": "b"}, {"sex": "m", "age": [5, 6]}),
        **moments_of(product, "age"),
        **moments_of(product, "age", {"sex": "f"}),
    }
    split = hb.Split(
        age=hb.TruncatedGeometric(age, 1.0), sex=hb.RandomizedResponse(sex, 1.5), town=hb.RandomizedResponse(town, 1.5)
    )
    return [
        Setting(f"6 x 2 x 3, a third empty, {users:,} users", truth, study_of((split, users), truth=truth), asked)
        for users in (2_000, 20_000)
    ]


def crossed(sides: tuple[int, int]) -> np.ndarray:
    """Return a table of two attributes that depend on each other, with many rare combinations."""
    rng = np.random.default_rng(26)
    classes = [np.outer(*(rng.dirichlet(np.full(side, 0.3)) for side in sides)) for _ in range(6)]
    return np.asarray(sum(classes) / len(classes)).ravel()


def split_of(sides: tuple[int, int], epsilon: float) -> hb.Split:
    """Return both attributes by k-RR."""
    age, town = (hb.Integers(1, side) for side in sides)
    return hb.Split(age=hb.RandomizedResponse(age, epsilon), town=hb.RandomizedResponse(town, epsilon))


def large_tables() -> list[Setting]:
    """Return tables of more than 100 combinations, of which few have many users."""
    found = []
    for sides, epsilon, users in (((12, 9), 1.5, 20_000), ((20, 10), 2.0, 100_000)):
        truth, split = crossed(sides), split_of(sides, epsilon)
        table, product = truth.reshape(sides), split.domain
        age, town = table.sum(axis=1), table.sum(axis=0)
        common, rare = 1 + int(age.argmax()), 1 + int(age.argmin())
        largest, group = 1 + int(town.argmax()), table[:, town.argmax()]
        asked: dict[str, AnyStatistic] = {
            "a large marginal share": parse_asked(product, {"age": common}, None),
            "the least marginal share": parse_asked(product, {"age": rare}, None),
            "half of the values": parse_asked(product, {"age": list(range(1, sides[0] // 2 + 1))}, None),
            "a large conditional share": parse_asked(product, {"age": 1 + int(group.argmax())}, {"town": largest}),
            "the least conditional share": parse_asked(product, {"age": 1 + int(group.argmin())}, {"town": largest}),
        }
        name = f"{sides[0]} x {sides[1]}, {users:,} users"
        found.append(Setting(name, truth, study_of((split, users), truth=truth), asked))
    return found


def holds(region: LikelihoodRegion, statistic: AnyStatistic, truth: np.ndarray) -> tuple[bool, bool, float]:
    """Return whether the interval holds the truth, whether that of chi-square does, and the width of the latter."""
    true, top, cutoff = statistic.value(truth), region.top.theta, chi_square(LEVEL)
    ends: list[MovingEnd] = []
    for sign in (1.0, -1.0):
        if isinstance(statistic, Statistic):
            ends.append(MovingEnd(sign * statistic.weights, cutoff, None))
        elif np.isfinite(statistic.gradient(top)).all():
            ends.append(SmoothEnd(statistic, sign, top, cutoff, None))
        else:
            return True, True, statistic.highest - statistic.lowest
    low, high = ends[0].solve(region.least).limit, -ends[1].solve(region.least).limit
    if low - SLIP <= true <= high + SLIP:
        return True, True, high - low
    (found,) = finish(profile_endpoints(region, [statistic], LEVEL))
    return found.low - SLIP <= true <= found.high + SLIP, False, high - low


def study(setting: Setting, runs: int) -> list[dict[str, Any]]:
    """Return a row for each statistic."""
    rng = np.random.default_rng(26_118)
    held = dict.fromkeys(setting.asked, 0)
    plain, widths, start = dict(held), dict.fromkeys(setting.asked, 0.0), time.perf_counter()
    with threads_for(1):
        for _ in range(runs):
            region = LikelihoodRegion.of(setting.draw(rng))
            for name, statistic in setting.asked.items():
                inside, quick, width = holds(region, statistic, setting.truth)
                held[name] += inside
                plain[name] += quick
                widths[name] += width / runs
    error, found = 2.0 * math.sqrt(LEAST * (1.0 - LEAST) / runs), []
    for name in setting.asked:
        share = held[name] / runs
        found.append(
            row(
                f"{setting.name}: {name}",
                f"{runs:,} studies; chi-square alone {plain[name] / runs:.3f}, mean width {widths[name]:.3g}",
                f"{share:.3f}",
                f">= {LEAST} - {error:.3f}",
                holds=share >= LEAST - error,
            )
        )
    print(f"     {setting.name}: {time.perf_counter() - start:.0f} s", flush=True)
    return found


def tables(sides: tuple[int, int], epsilon: float, users: int, conditionals: bool) -> dict[str, Any]:
    """Time the intervals of the tables that a page or the terminal shows."""
    truth = crossed(sides)
    reports = study_of((split_of(sides, epsilon), users), truth=truth)(np.random.default_rng(1))
    estimate = hb.estimate(reports, "mle")
    small = study_of((split_of((3, 3), 1.0), 1_000), truth=crossed((3, 3)))(np.random.default_rng(1))
    attribute_shares(hb.estimate(small, "mle"), small, LEVEL)  # compiles
    start, busy = time.perf_counter(), time.process_time()
    shown = attribute_shares(estimate, reports, LEVEL, conditionals=conditionals)
    rows = [*shown.marginals.values(), *(own for rows in shown.conditionals.values() for own in rows)]
    count = sum(int(np.isfinite(own.low).sum()) for own in rows)
    return {"seconds": time.perf_counter() - start, "processor": time.process_time() - busy, "count": count}


def deviances(sides: tuple[int, int], epsilon: float, users: int) -> dict[str, Any]:
    """Time simulated deviances of all marginal shares: together, and one program after the other."""
    reports = study_of((split_of(sides, epsilon), users), truth=crossed(sides))(np.random.default_rng(1))
    top = LikelihoodRegion.of(reports).top
    simulation = DevianceSimulation(top, DRAWS, np.random.default_rng(1))
    lower = simulation.guesses(top.theta)[0]
    weights = np.array([each.weights for each in every_value(reports.domain, "age", None).statistics])
    lowers, nothing = np.tile(lower, (len(weights), 1)), np.zeros(len(weights))
    information, scores = simulation.information, simulation.scores

    def together() -> np.ndarray:
        programs = DeviancePrograms(information, scores, lower, simulation.users)
        return np.asarray(finish(programs.deviances(lowers, weights, nothing)))

    def one_by_one() -> np.ndarray:
        programs = ConePrograms(information, scores, np.ones(lower.size), simulation.users)
        return np.array([programs.deviances(lower, own) for own in weights]).T

    error = float(np.abs(together() - one_by_one()).max())
    own, other = in_turn([together, one_by_one], 3)
    return {"own": own, "other": other, "error": error}


def times() -> list[dict[str, Any]]:
    """Return the rows about time."""
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))  # read by the processes that are started here
    found = []
    for sides, users, conditionals in (((20, 10), 100_000, True), ((32, 20), 100_000, False)):
        one = apart(tables, sides, 2.0, users, conditionals)
        what = "all marginal and conditional shares" if conditionals else "all marginal shares"
        found.append(
            row(
                f"time of {sides[0]} x {sides[1]}, {users:,} users: {what}",
                f"{one['count']} intervals, one thread",
                f"{one['seconds']:.0f} s ({one['processor']:.0f} s of processor time)",
                "60 s of processor time",
                holds=one["processor"] <= 60.0,
            )
        )
    both = apart(deviances, (20, 10), 2.0, 100_000)
    found.append(
        row(
            "time of 20 x 10, 100,000 users: simulated deviances",
            f"of 20 shares in {DRAWS} draws, one by one / together (largest difference {both['error']:.0e})",
            f"{both['other']:.2f} / {both['own']:.2f} s = {both['other'] / both['own']:.0f}",
            ">= 10",
            holds=both["other"] >= 10.0 * both["own"] and both["error"] < MAX_ERROR,
        )
    )
    return found


def main() -> None:
    """Print and keep the table."""
    given = study_parser(__doc__, RUNS).parse_args()
    for setting in settings():
        if setting.name.startswith(given.only):
            save_merged("attribute_intervals", study(setting, given.runs))
    if "time".startswith(given.only) or given.only.startswith("time"):
        save_merged("attribute_intervals", times())


if __name__ == "__main__":
    main()
