"""Trends over simulated studies: false changes, coverage of bands and differences, errors of smoothed estimates, time.

* changes: how often a change is named although there is none, or in a span of periods that holds none; how often all
  changes are found, and at their places;
* coverage of bands (all periods at once) and of the differences at changes, at 95%;
* smoothing: the root mean square error of smoothed estimates, relative to that of each period by itself;
* seconds for 12 periods of 6 categories, and for 52 periods of two.

Run: python benchmarks/trend.py [--runs 1000] [--only changes|coverage|smoothing|time, or "coverage: step"]
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

import hubbub as hb
from hubbub.comparison.populations import Populations
from hubbub.core.progress import finish
from hubbub.core.threads import threads_for
from hubbub.trends.change_search import ChangeSearch, FoundChange
from hubbub.trends.common_patterns import CommonPatterns
from measure import row, save_merged, study_parser

LEVEL, LEAST = 0.95, 0.94
RUNS = 1_000
SHARE_OF_TRENDS = 0.2  # of the runs: each is a whole trend
SLIP = 1e-9


@dataclass(frozen=True)
class Setting:
    """Periods with a mechanism, a number of users and a truth each."""

    name: str
    mechanisms: list[hb.Mechanism]
    users: list[int]
    truths: np.ndarray

    def draw(self, seed: list[int]) -> list[hb.Reports]:
        """Return the reports of all periods."""
        rng = np.random.default_rng(seed)
        counts = [
            rng.multinomial(users, truth @ mechanism.matrix())
            for mechanism, users, truth in zip(self.mechanisms, self.users, self.truths, strict=True)
        ]
        return [hb.Reports.from_counts(each, own) for each, own in zip(self.mechanisms, counts, strict=True)]

    @property
    def places(self) -> list[int]:
        """The last periods before the changes."""
        return np.flatnonzero((np.abs(np.diff(self.truths, axis=0)) > 1e-12).any(axis=1)).tolist()


def same(name: str, mechanism: hb.Mechanism, users: int, truths: list[list[float]]) -> Setting:
    """Return a setting with one mechanism, and the same number of users in all periods."""
    return Setting(name, [mechanism] * len(truths), [users] * len(truths), np.array(truths))


def constant() -> Iterator[Setting]:
    """Yield settings without a change."""
    yes_no, six = hb.Categories(["yes", "no"]), hb.Categories(list("abcdef"))
    coin = hb.RandomizedResponse(yes_no, 1.0)
    zeros = [0.5, 0.3, 0.2, 0.0, 0.0, 0.0]
    yield same("constant: yes or no, 12 x 300", coin, 300, [[0.3, 0.7]] * 12)
    yield same("constant: 5% yes, 8 x 60", hb.RandomizedResponse(yes_no, 3.0), 60, [[0.05, 0.95]] * 8)
    yield same("constant: 6 values, 3 empty, 6 x 200", hb.RandomizedResponse(six, 2.0), 200, [zeros] * 6)
    both = [coin, hb.RandomizedResponse(yes_no, 3.0)]
    yield Setting("constant: epsilons 1 and 3 in turn", both * 4, [150, 400] * 4, np.array([[0.3, 0.7]] * 8))


def changing() -> Iterator[Setting]:
    """Yield settings with changes: steps, a spike, and a drift."""
    yes_no, six = hb.Categories(["yes", "no"]), hb.Categories(list("abcdef"))
    coin = hb.RandomizedResponse(yes_no, 2.0)
    shares = [0.3] * 6 + [0.36] * 6
    yield same("step: yes or no, 12 x 1,000", coin, 1_000, [[share, 1 - share] for share in shares])
    first, second = [0.5, 0.3, 0.2, 0.0, 0.0, 0.0], [0.4, 0.3, 0.2, 0.1, 0.0, 0.0]
    yield same("step: 6 values, 2 empty, 8 x 500", hb.RandomizedResponse(six, 2.0), 500, [first] * 5 + [second] * 3)
    shares = [0.3] * 4 + [0.45] * 4 + [0.3] * 4
    yield same("two steps: yes or no, 12 x 1,000", coin, 1_000, [[share, 1 - share] for share in shares])
    shares = [0.3] * 5 + [0.45] + [0.3] * 6
    yield same("spike: yes or no, 12 x 1,000", coin, 1_000, [[share, 1 - share] for share in shares])


def drifting() -> Iterator[Setting]:
    """Yield settings that change all the time."""
    coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), 2.0)
    shares = [0.3 + 0.01 * place for place in range(12)]
    yield same("drift: yes or no, 12 x 1,000", coin, 1_000, [[share, 1 - share] for share in shares])
    shares = [0.3, 0.5] * 6
    yield same("zigzag: yes or no, 12 x 1,000", coin, 1_000, [[share, 1 - share] for share in shares])


def found_changes(reports: list[hb.Reports], seed: int) -> list[FoundChange]:
    """Return the changes that are named."""
    populations = finish(Populations.of(reports))
    search = ChangeSearch(populations, CommonPatterns.of(reports), LEVEL, np.random.default_rng([seed, 29]))
    finish(search.test_all())
    return finish(search.find())


def changes(runs: int, only: str) -> Iterator[dict[str, Any]]:
    """Yield rows: false changes at most 5%, and how many of the true ones are found."""
    noise = 2.0 * math.sqrt(LEVEL * (1.0 - LEVEL) / runs)
    for number, setting in enumerate([*constant(), *changing()]):
        if not setting.name.startswith(only):
            continue
        false, complete, at_place = 0, 0, 0
        places = setting.places
        for run in range(runs):
            named = found_changes(setting.draw([run, number, 3]), run)
            false += any(not any(each.span.first <= place < each.span.last for place in places) for each in named)
            complete += len(named) == len(places)
            at_place += [each.place for each in named] == places
        told = f"; all found {complete / runs:.2f}, at their places {at_place / runs:.2f}" if places else ""
        yield row(
            f"false changes: {setting.name}",
            f"{runs:,} studies{told}",
            f"{100 * false / runs:.1f}%",
            f"<= {100 * (1 - LEVEL):g}%, and {100 * noise:.1f} of noise",
            holds=false / runs <= 1 - LEVEL + noise,
        )


def coverage(runs: int, only: str) -> Iterator[dict[str, Any]]:
    """Yield rows: how often bands hold all periods of a value, and intervals of differences hold theirs."""
    for number, setting in enumerate([*constant(), *changing(), *drifting()]):
        if not setting.name.startswith(only):
            continue
        held = np.zeros(setting.truths.shape[1])
        differences: list[bool] = []
        for run in range(runs):
            reports = setting.draw([run, number, 4])
            trend = hb.trend([(str(place), own) for place, own in enumerate(reports)], level=LEVEL)
            inside = (trend.band_low - SLIP <= setting.truths) & (setting.truths <= trend.band_high + SLIP)
            held += inside.all(axis=0)
            differences += _held_differences(setting, trend)
        worst = float(held.min()) / runs
        yield _coverage_row(f"bands: {setting.name}", f"{runs:,} studies", worst, runs)
        if len(differences) >= runs:  # otherwise changes are seldom named, or falsely
            share = float(np.mean(differences))
            told = f"{len(differences):,} differences at named changes"
            yield _coverage_row(f"differences: {setting.name}", told, share, len(differences))


def _coverage_row(name: str, measured: str, share: float, runs: int) -> dict[str, Any]:
    noise = 2.0 * math.sqrt(LEAST * (1.0 - LEAST) / runs)
    return row(name, measured, f"{share:.3f}", f">= {LEAST} - {noise:.3f}", holds=share >= LEAST - noise)


def _held_differences(setting: Setting, trend: hb.Trend) -> list[bool]:
    """Return whether each interval at a change holds the true difference of the stretches that were chosen."""
    ends = [0, *(trend.names.index(change.after) for change in trend.changes), len(trend.names)]
    users = np.array(setting.users, dtype=np.float64)
    stretches = [slice(first, last) for first, last in pairwise(ends)]
    means = [users[own] @ setting.truths[own] / users[own].sum() for own in stretches]
    held = []
    for change, before, after in zip(trend.changes, means[:-1], means[1:], strict=True):
        true = after - before
        held += ((change.low - SLIP <= true) & (true <= change.high + SLIP)).tolist()
    return held


def smoothing(runs: int, only: str) -> Iterator[dict[str, Any]]:
    """Yield rows: errors of smoothed estimates, and of each period by itself."""
    for number, setting in enumerate([*constant(), *changing(), *drifting()]):
        if not setting.name.startswith(only):
            continue
        errors = np.zeros(2)
        kinds: dict[str, int] = {}
        for run in range(runs):
            reports = setting.draw([run, number, 5])
            trend = hb.trend([(str(place), own) for place, own in enumerate(reports)], level=LEVEL)
            errors += [np.square(own - setting.truths).sum() for own in (trend.smoothed, trend.estimate)]
            kinds[trend.smoothing.kind] = kinds.get(trend.smoothing.kind, 0) + 1
        ratio = math.sqrt(errors[0] / errors[1])
        chosen = ", ".join(f"{kind} {count / runs:.2f}" for kind, count in sorted(kinds.items()))
        yield row(f"smoothing: {setting.name}", chosen, f"{ratio:.2f} of the error", "<= 1.05", holds=ratio <= 1.05)


def times(_: int, _only: str) -> Iterator[dict[str, Any]]:
    """Yield rows: seconds of a year of months and of weeks."""
    six = hb.RandomizedResponse(hb.Categories(list("abcdef")), 2.0)
    ranks = 1.0 / np.arange(1, 7) ** 1.2
    first = ranks / ranks.sum()
    second = first + np.array([0.06, -0.03, -0.03, 0.0, 0.0, 0.0])
    months = same("", six, 10_000, [first.tolist()] * 7 + [second.tolist()] * 5)
    coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), 1.0)
    weeks = same("", coin, 10_000, [[0.3 + 0.002 * place, 0.7 - 0.002 * place] for place in range(52)])
    limits: list[tuple[str, Setting, float]] = [
        ("12 x 10,000 users, 6 categories, a step", months, 10.0),
        ("52 x 10,000 users, 2 categories, a drift", weeks, 15.0),
    ]
    hb.trend([(str(place), own) for place, own in enumerate(months.draw([1, 1]))])  # compiles
    for name, setting, limit in limits:
        reports = setting.draw([2, 1])
        start = time.perf_counter()
        hb.trend([(str(place), own) for place, own in enumerate(reports)])
        seconds = time.perf_counter() - start
        yield row(f"time: {name}", "with estimates", f"{seconds:.1f} s", f"<= {limit:g} s", holds=seconds <= limit)


STUDIES: dict[str, tuple[Callable[[int, str], Iterator[dict[str, Any]]], float]] = {
    "changes": (changes, 1.0),
    "coverage": (coverage, SHARE_OF_TRENDS),
    "smoothing": (smoothing, SHARE_OF_TRENDS),
    "time": (times, 1.0),
}


def main() -> None:
    """Print and keep the table."""
    given = study_parser(__doc__, RUNS).parse_args()
    chosen, _, setting = given.only.partition(": ")
    for name, (study, share) in STUDIES.items():
        if name.startswith(chosen):
            with threads_for(1):
                for found in study(max(10, round(share * given.runs)), setting):
                    save_merged("trend", [found])


if __name__ == "__main__":
    main()
