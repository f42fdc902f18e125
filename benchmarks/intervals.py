"""Coverage of 95% intervals: how often they hold the truth, over thousands of simulated studies.

An interval's calibrated ends never lie inside those of the chi-square cutoff. So the quick interval is computed first,
and only where that does not hold the truth the calibrated end on that side; the answer is that of `hb.interval`.

Run: python benchmarks/intervals.py [--runs 2000] [--only NAME] [--counts FILE] [--jobs 2]
"""

from __future__ import annotations

import math
import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np

import hubbub as hb
from hubbub.core.progress import finish
from hubbub.core.threads import threads_for
from hubbub.intervals.deviance_cutoff import chi_square
from hubbub.intervals.interval_endpoints import LikelihoodRegion, profile_endpoints
from hubbub.intervals.linear_statistic import parse_statistic
from measure import row, save, stored_rows, study_parser
from problems import residents

LEVEL, LEAST, MOST = 0.95, 0.94, 0.99
RUNS = 2_000
SLIP = 1e-9  # ends that are exactly 0 are computed up to rounding


@dataclass(frozen=True)
class Setting:
    """A study to be simulated again and again."""

    name: str
    domain: hb.Domain
    truth: np.ndarray
    draw: Callable[[np.random.Generator], hb.Reports]
    of: dict[str, object]
    interior: bool = False  # well conditioned, all values clearly present: intervals must not be too wide either
    share: float = 1.0  # of the runs, where a run is long
    whole: bool = False  # ask hb.interval itself: the quick interval knows neither weights nor enumerated outcomes


def tables(*groups: tuple[hb.Mechanism, np.ndarray, int]) -> Callable[[np.random.Generator], hb.Reports]:
    """Return a study of groups of users with one output each."""
    fitted = [(mechanism, truth @ mechanism.matrix(), users) for mechanism, truth, users in groups]

    def draw(rng: np.random.Generator) -> hb.Reports:
        drawn = (
            hb.Reports.from_counts(mechanism, rng.multinomial(users, shares / shares.sum()))
            for mechanism, shares, users in fitted
        )
        return reduce(add, drawn)

    return draw


def with_pairs(
    single: Callable[[np.random.Generator], hb.Reports], mechanism: hb.Mechanism, truth: np.ndarray, users: int
) -> Callable[[np.random.Generator], hb.Reports]:
    """Add users who send two outputs each."""

    def draw(rng: np.random.Generator) -> hb.Reports:
        values = rng.choice(mechanism.domain.labels, size=users, p=truth)
        outputs = [mechanism.privatize(values, rng=rng) for _ in range(2)]
        people = [[(mechanism, first), (mechanism, second)] for first, second in zip(*outputs, strict=True)]
        return single(rng) + hb.Reports.from_users(people)

    return draw


def privatized(mechanism: hb.Mechanism, truth: np.ndarray, users: int) -> Callable[[np.random.Generator], hb.Reports]:
    """Return a study whose outputs are drawn one by one."""

    def draw(rng: np.random.Generator) -> hb.Reports:
        values = rng.choice(mechanism.domain.labels, size=users, p=truth)
        return hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng))

    return draw


def settings(counts: Path | None) -> list[Setting]:
    """Return all settings."""
    found = [*answers(), *lines(), *maps(), *bits(), unseen(), *untuned(), *surveys()]
    return found if counts is None else [*found, streets(counts)]


def answers() -> list[Setting]:
    """Return k-RR on ten values, alone and among other mechanisms."""
    ten = hb.Integers(0, 9)
    krr = hb.RandomizedResponse(ten, 1.5)
    even = np.array([0.16, 0.14, 0.12, 0.1, 0.1, 0.1, 0.08, 0.08, 0.06, 0.06])
    zeros = np.array([0.4, 0.3, 0.2, 0.1, 0, 0, 0, 0, 0, 0])
    spike = np.eye(10)[0]
    asked: dict[str, object] = {
        "the first value": 0,
        "the last value": 9,
        "a pair": [2, 3],
        "six values": [4, 5, 6, 7, 8, 9],
        "a contrast": {0: 1.0, 5: -1.0},
        "the mean": {value: float(value) for value in range(10)},
    }
    light, strong = hb.RandomizedResponse(ten, 2.5), hb.RandomizedResponse(ten, 1.0)
    mixed = with_pairs(
        tables((light, zeros, 1_500), (strong, zeros, 1_500), (hb.TruncatedGeometric(ten, 0.7), zeros, 1_000)),
        strong,
        zeros,
        300,
    )
    return [
        Setting("k-RR, interior", ten, even, tables((krr, even, 4_000)), asked, interior=True),
        Setting("k-RR, six zeros", ten, zeros, tables((krr, zeros, 4_000)), asked),
        Setting("k-RR, all mass on one value", ten, spike, tables((krr, spike, 4_000)), asked),
        Setting("three mechanisms, some users twice", ten, zeros, mixed, asked),
    ]


def lines() -> list[Setting]:
    """Return truncated geometric noise on twenty values."""
    twenty, line = hb.Integers(0, 19), np.arange(20)
    hump = np.exp(-0.5 * ((line - 7) / 2.0) ** 2)
    hump[hump < 0.05] = 0.0
    hump /= hump.sum()
    flat = np.full(20, 0.05)
    noise = hb.TruncatedGeometric(twenty, 0.5)
    asked: dict[str, object] = {
        "the top value": 7,
        "a value at the end": 15,
        "values up to 7": list(range(8)),
        "values from 12": list(range(12, 20)),
        "neighbours' difference": {7: 1.0, 8: -1.0},
        "the mean": {int(value): float(value) for value in line},
    }
    return [
        Setting("line, uniform", twenty, flat, tables((noise, flat, 50_000)), asked),
        Setting("line, a hump between zeros", twenty, hump, tables((noise, hump, 10_000)), asked),
    ]


def maps() -> list[Setting]:
    """Return planar noise on small maps, most of whose cells are empty or nearly so."""
    grid = hb.Grid(5, 4, cell=0.5)
    cells = np.random.default_rng(5).dirichlet(np.full(20, 0.4))
    cells[cells < 0.01] = 0.0
    cells /= cells.sum()
    order = np.argsort(cells)
    asked: dict[str, object] = {
        "the busiest cell": int(order[-1]),
        "an empty cell": int(order[0]),
        "all empty cells": [int(cell) for cell in np.flatnonzero(cells == 0)],
        "the 12 emptiest cells": [int(cell) for cell in order[:12]],
        "the western two columns": [cell for cell in range(20) if cell % 5 < 2],
        "busiest less emptiest": {int(order[-1]): 1.0, int(order[0]): -1.0},
    }
    wide = hb.Grid(10, 8, cell=0.4)
    town = np.random.default_rng(11).dirichlet(np.full(80, 0.25))
    thin = np.argsort(town)[:50]
    town[thin] = np.minimum(town[thin], 4e-4)
    town /= town.sum()
    of_wide: dict[str, object] = {
        "the busiest cell": int(np.argmax(town)),
        "the 50 emptiest cells": [int(cell) for cell in thin],
        "the ten busiest cells": [int(cell) for cell in np.argsort(town)[-10:]],
    }
    draw, draw_wide = tables((hb.PlanarGeometric(grid, 1.5), cells, 20_000)), hb.PlanarGeometric(wide, 2.0)
    return [
        Setting("planar, 5 x 4 cells", grid, cells, draw, asked),
        Setting(
            "planar, 10 x 8 cells, 50 almost empty", wide, town, tables((draw_wide, town, 50_000)), of_wide, share=0.5
        ),
    ]


def bits() -> list[Setting]:
    """Return RAPPOR on eight values."""
    eight = hb.Integers(0, 7)
    rappor = hb.Rappor(eight, 2.0)
    few = np.array([0.5, 0.3, 0.2, 0, 0, 0, 0, 0])
    flat = np.array([0.2, 0.16, 0.14, 0.12, 0.11, 0.1, 0.09, 0.08])
    asked: dict[str, object] = {
        "the first value": 0,
        "the last value": 7,
        "five values": [3, 4, 5, 6, 7],
        "a contrast": {0: 1.0, 1: -1.0},
    }
    return [
        Setting("RAPPOR, interior", eight, flat, tables((rappor, flat, 4_000)), asked, interior=True),
        Setting("RAPPOR, five zeros", eight, few, tables((rappor, few, 3_000)), asked),
    ]


def unseen() -> Setting:
    """Return a channel that cannot tell some values apart."""
    blind = hb.Matrix(
        hb.Integers(0, 4),
        ["a", "b", "c", "d"],
        [
            [0.6, 0.2, 0.1, 0.1],
            [0.1, 0.6, 0.2, 0.1],
            [0.35, 0.4, 0.15, 0.1],  # half of each of the two before
            [0.1, 0.1, 0.2, 0.6],
            [0.1, 0.1, 0.2, 0.6],  # the same as the one before
        ],
    )
    hidden = np.array([0.3, 0.2, 0.1, 0.25, 0.15])
    asked: dict[str, object] = {
        "an end of the dependence": 0,
        "its middle": 2,
        "a twin": 3,
        "both twins": [3, 4],
        "twins' difference": {3: 1.0, 4: -1.0},
    }
    return Setting("not identifiable", blind.domain, hidden, tables((blind, hidden, 4_000)), asked)


def untuned() -> list[Setting]:
    """Return studies that nothing was ever tuned on: few users, many zeros, and mechanisms that are not used above."""
    grid, halves = hb.Grid(4, 4, cell=1.0), hb.Bins(np.linspace(0.0, 6.0, 13))
    chosen: list[tuple[hb.Mechanism, int]] = [
        (hb.RandomizedResponse(hb.Integers(0, 3), 1.0), 100),
        (hb.RandomizedResponse(hb.Integers(0, 5), 3.0), 60),
        (hb.RandomizedResponse(hb.Integers(0, 24), 4.0), 500),
        (hb.TruncatedGeometric(hb.Integers(0, 11), 0.8), 200),
        (hb.Laplace(halves, 1.5), 1_000),
        (hb.SubsetSelection(hb.Integers(0, 7), 2.0), 1_000),
        (hb.Rappor(hb.Integers(0, 4), 3.0), 100),
        (hb.LocalHashing(hb.Integers(0, 11), 2.0), 2_000),
        (hb.OptimizedUnary(hb.Integers(0, 5), 1.0), 300),
        (hb.PlanarLaplace(grid, 1.0), 400),
        (hb.Exponential(hb.Integers(0, 14), 1.2), 150),
    ]
    found = []
    for seed, (mechanism, users) in enumerate(chosen):
        domain, rng = mechanism.domain, np.random.default_rng([22, seed])
        truth = rng.dirichlet(np.full(len(domain), 0.5))
        truth[truth < 0.02] = 0.0
        truth /= truth.sum()
        labels, order = domain.labels.tolist(), np.argsort(truth, kind="stable").tolist()
        asked: dict[str, object] = {
            "the largest share": labels[order[-1]],
            "the least share": labels[order[0]],
            "the lesser half": [labels[place] for place in order[: len(order) // 2]],
            "a difference": {labels[order[-1]]: 1.0, labels[order[-2]]: -1.0},
            "the mean place": {label: float(place) for place, label in enumerate(labels)},
        }
        name = f"untuned, {type(mechanism).__name__}, {len(domain)} values, {users:,} users"
        found.append(Setting(name, domain, truth, privatized(mechanism, truth, users), asked))
    return found


def surveys() -> list[Setting]:
    """Return yes/no surveys with a die, of 600 people: of equal weight, and with weights that go with the answer."""
    die = hb.ForcedResponse(hb.Categories(["yes", "no"]), p_yes="1/6", p_no="1/6")
    found = []
    for share in (0.02, 0.2):
        truth, asked = np.array([share, 1.0 - share]), {"the share of yes": "yes"}
        name = f"a die, {share:.0%} yes, 600 people"
        found += [
            Setting(name, die.domain, truth, privatized(die, truth, 600), dict(asked), whole=True),
            Setting(f"{name} with weights", die.domain, truth, weighted(die, truth, 600), dict(asked), whole=True),
        ]
    return found


def weighted(mechanism: hb.Mechanism, truth: np.ndarray, users: int) -> Callable[[np.random.Generator], hb.Reports]:
    """Return a survey in which those of the first value answer two thirds as often, which their weights make up for."""
    stands_for = np.where(np.arange(truth.size) == 0, 1.5, 1.0)  # people, on average
    asked = truth / stands_for / (truth / stands_for).sum()

    def draw(rng: np.random.Generator) -> hb.Reports:
        places = rng.choice(truth.size, size=users, p=asked)
        outputs = mechanism.privatize(mechanism.domain.labels[places], rng=rng)
        weights = stands_for[places] * np.exp(rng.normal(0.0, 0.4, users))
        return hb.Reports.from_outputs(mechanism, outputs, weights=weights)

    return draw


def streets(counts: Path) -> Setting:
    """Return San Francisco."""
    grid, people = residents(counts)
    truth, labels = people / people.sum(), grid.labels
    order = np.argsort(truth, kind="stable")
    asked: dict[str, object] = {
        "the busiest cell": labels[int(np.argmax(truth))],
        "137 low-density cells": labels[order[:137]].tolist(),
        "the 20 busiest cells": labels[order[-20:]].tolist(),
    }
    draw = tables((hb.PlanarGeometric(grid, 1.0), truth, int(people.sum())))
    return Setting("San Francisco, 384 cells", grid, truth, draw, asked, share=0.05)


def holds(likely: LikelihoodRegion, reports: hb.Reports, of: object, truth: np.ndarray) -> tuple[bool, bool, float]:
    """Return whether the interval holds the truth, whether that of chi-square does, and the width of the latter."""
    asked = parse_statistic(reports.domain, of)
    true, cutoff = float(asked.weights @ truth), chi_square(LEVEL)
    low, high = likely.least(asked.weights, cutoff).limit, -likely.least(-asked.weights, cutoff).limit
    if low - SLIP <= true <= high + SLIP:
        return True, True, high - low
    (ends,) = finish(profile_endpoints(likely, [asked], LEVEL))
    return ends.low - SLIP <= true <= ends.high + SLIP, False, high - low


def holds_whole(reports: hb.Reports, of: object, truth: np.ndarray) -> tuple[bool, bool, float]:
    """Return the same of the interval of `hb.interval`, which is the only one here."""
    true, found = float(parse_statistic(reports.domain, of).weights @ truth), hb.interval(reports, of, level=LEVEL)
    inside = found.confidence_low - SLIP <= true <= found.confidence_high + SLIP
    return inside, inside, found.confidence_high - found.confidence_low


def study(setting: Setting, runs: int) -> list[dict[str, Any]]:
    """Return a row for each statistic."""
    runs = max(20, round(setting.share * runs))
    rng = np.random.default_rng(20_261)
    held = dict.fromkeys(setting.of, 0)
    plain, widths, start = dict(held), dict.fromkeys(setting.of, 0.0), time.perf_counter()
    with threads_for(1):
        for _ in range(runs):
            reports = setting.draw(rng)
            likely = None if setting.whole else LikelihoodRegion.of(reports)
            for name, of in setting.of.items():
                inside, quick, width = (
                    holds_whole(reports, of, setting.truth)
                    if likely is None
                    else holds(likely, reports, of, setting.truth)
                )
                held[name] += inside
                plain[name] += quick
                widths[name] += width / runs
    found = []
    for name in setting.of:
        share = held[name] / runs
        beside = "" if setting.whole else f"chi-square alone {plain[name] / runs:.3f}, "
        error = 2.0 * math.sqrt(LEAST * (1 - LEAST) / runs)
        good = bool(share >= LEAST - error and (share <= MOST or not setting.interior))
        found.append(
            row(
                f"{setting.name}: {name}",
                f"{runs:,} studies; {beside}mean width {widths[name]:.3g}",
                f"{share:.3f}",
                f">= {LEAST} - {error:.3f}" + (f", <= {MOST}" if setting.interior else ""),
                holds=good,
            )
        )
    print(f"     {setting.name}: {time.perf_counter() - start:.0f} s", flush=True)
    return found


def run(name: str, counts: Path | None, runs: int, singles: bool) -> list[dict[str, Any]]:
    """Study the setting of that name: what a process of its own does."""
    setting = next(setting for setting in settings(counts) if setting.name == name)
    if singles:
        setting = replace(setting, of={name: of for name, of in setting.of.items() if not isinstance(of, list | dict)})
    return study(setting, runs)


def main() -> None:
    """Print and keep the table, in the order of the settings."""
    parser = study_parser(__doc__, RUNS)
    parser.add_argument("--singles", action="store_true", help="single values alone; other rows are kept as they are")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    given = parser.parse_args()
    share = {setting.name: setting.share for setting in settings(given.counts)}
    names = list(share)
    kept = stored_rows("intervals")
    found = {name: [row for row in kept if row["problem"].startswith(f"{name}: ")] for name in names}
    others = [row for row in kept if not any(row["problem"].startswith(f"{name}: ") for name in names)]  # of --counts
    with multiprocessing.get_context("spawn").Pool(given.jobs) as pool:
        waiting = {
            name: pool.apply_async(run, (name, given.counts, given.runs, given.singles))
            for name in sorted(names, key=lambda name: -share[name])  # those that take longest last
            if name.startswith(given.only)
        }
        for name, rows in waiting.items():
            fresh = {row["problem"]: row for row in rows.get()}
            found[name] = [fresh.pop(row["problem"], row) for row in found[name]] + list(fresh.values())
            save("intervals", [*(row for name in names for row in found[name]), *others])


if __name__ == "__main__":
    main()
