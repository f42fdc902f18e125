"""Parts that the reports resolve: how many are told, and how often all their intervals hold the truth.

The division is chosen by the same reports that bound it, study after study; a study counts as held if the interval of
every part, told or left, holds its true share.

Run: python benchmarks/resolve.py [--runs 1000] [--only NAME] [--counts FILE] [--method family] [--fault]
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import hubbub as hb
from hubbub.core.threads import threads_for
from hubbub.resolution import lattice_division
from measure import row, save_merged, study_parser
from problems import residents

LEVEL, LEAST = 0.95, 0.94
RUNS = 1_000
SLIP = 1e-9  # ends that are exactly 0 or 1 are computed up to rounding
SINGLE = 1.96  # the critical value of one interval: the planted fault...
UNPAID_CHOICE = 0.4  # ...and about what it is, relative to that of all rectangles


@dataclass(frozen=True)
class Setting:
    """A study to be simulated: a mechanism, a truth and the number of users."""

    name: str
    mechanism: hb.Mechanism
    truth: np.ndarray
    users: int
    method: str = "ems"  # of the estimate that is shown
    share: float = 1.0  # of the runs, where a run is long
    listed: bool = True  # whether outputs can be listed, and counts drawn

    def draw(self, rng: np.random.Generator) -> hb.Reports:
        """Return the reports of one study."""
        if self.listed:
            outputs = self.truth @ self.mechanism.matrix()
            return hb.Reports.from_counts(self.mechanism, rng.multinomial(self.users, outputs / outputs.sum()))
        values = rng.choice(self.mechanism.domain.labels, size=self.users, p=self.truth)
        return hb.Reports.from_outputs(self.mechanism, self.mechanism.privatize(values, rng=rng))


def bumps(size: int) -> np.ndarray:
    """Return two normal bumps on a line."""
    places = np.arange(size) / size
    shares = (
        0.6 * np.exp(-0.5 * ((places - 0.3) / 0.08) ** 2) / 8 + 0.4 * np.exp(-0.5 * ((places - 0.65) / 0.12) ** 2) / 12
    )
    return np.asarray(shares / shares.sum())


def spikes(size: int) -> np.ndarray:
    """Return a truth of which most values are empty."""
    shares = np.zeros(size)
    shares[[size // 10, size // 10 + 1, 2 * size // 5, 7 * size // 10, 9 * size // 10]] = [2.0, 1.0, 3.0, 1.0, 1.0]
    return np.asarray(shares / shares.sum())


def zipf(size: int) -> np.ndarray:
    """Return shares that fall with their rank; the last third is empty."""
    shares = 1.0 / np.arange(1, size + 1) ** 1.2
    shares[-(size // 3) :] = 0.0
    return np.asarray(shares / shares.sum())


def settings(counts: Path | None) -> Iterator[Setting]:
    """Yield all studies."""
    line, short = hb.Integers(0, 99), hb.Integers(0, 19)
    noise: Callable[[float], hb.Mechanism] = lambda epsilon: hb.TruncatedGeometric(line, epsilon)  # noqa: E731
    yield Setting("line of 100, two bumps", noise(0.3), bumps(100), 20_000)
    yield Setting("line of 100, uniform", noise(0.3), np.full(100, 0.01), 20_000)
    yield Setting("line of 100, five spikes", noise(0.3), spikes(100), 20_000)
    yield Setting("line of 100, few users", noise(1.0), bumps(100), 1_000)
    yield Setting("line of 20, 200 users", hb.TruncatedGeometric(short, 1.0), spikes(20), 200)
    small = hb.Grid(8, 6, cell=0.5)
    town = np.random.default_rng(5).dirichlet(np.full(48, 0.3))
    town = np.where(town < 0.005, 0.0, town)
    town /= town.sum()
    yield Setting("8 x 6 cells, mostly empty", hb.PlanarGeometric(small, 2.0), town, 10_000)
    yield Setting("8 x 6 cells, 500 users", hb.PlanarGeometric(small, 2.0), town, 500)
    names, few = hb.Categories([f"v{place}" for place in range(40)]), hb.Categories(list("abcde"))
    yield Setting("k-RR, 40 categories", hb.RandomizedResponse(names, 2.0), zipf(40), 20_000, "auto")
    yield Setting("k-RR, 40 categories, 500 users", hb.RandomizedResponse(names, 3.0), zipf(40), 500, "auto")
    yield Setting("k-RR, 5 categories, 100 users", hb.RandomizedResponse(few, 1.0), zipf(5), 100, "auto")
    yield Setting("RAPPOR, 40 categories", hb.Rappor(names, 2.0), zipf(40), 3_000, "auto", share=0.3, listed=False)
    yield from fresh()
    grid, people = residents(counts)
    city = "the demo's city" if counts is None else "San Francisco"
    for epsilon in (1.0, 2.0):
        for users in (123_026, 20_000):
            name = f"{city}, {epsilon:g} per km, {users:,} users"
            yield Setting(name, hb.PlanarGeometric(grid, epsilon), people / people.sum(), users, share=0.2)


def fresh() -> Iterator[Setting]:
    """Yield studies that were never looked at while the method was made."""
    rng = np.random.default_rng(22)
    ages, bins = hb.Integers(0, 59), hb.Bins(np.linspace(0.0, 10.0, 41))
    steep = np.where(np.arange(60) < 45, np.exp(-np.arange(60) / 9.0), 0.0)
    yield Setting("fresh: geometric, a steep line", hb.Geometric(ages, 0.4), steep / steep.sum(), 5_000, listed=False)
    yield Setting(
        "fresh: exponential mechanism, 40 bins", hb.Exponential(bins, 2.0), rng.dirichlet(np.full(40, 0.5)), 8_000
    )
    streets = hb.Grid(12, 9, cell=0.4)
    yield Setting("fresh: 12 x 9 cells", hb.PlanarGeometric(streets, 1.5), rng.dirichlet(np.full(108, 0.2)), 30_000)
    many = hb.Categories([f"v{place}" for place in range(200)])
    yield Setting("fresh: k-RR, 200 categories", hb.RandomizedResponse(many, 4.0), zipf(200), 10_000, "auto", share=0.5)
    both = hb.TruncatedGeometric(hb.Integers(0, 29), 0.6)
    yield Setting("fresh: a line of 30, by auto", both, spikes(30), 3_000, "auto", share=0.5)


def study(setting: Setting, runs: int, method: str) -> dict[str, Any]:
    """Return the row of one setting."""
    runs = max(20, round(setting.share * runs))
    held, told, seconds = 0, [], []
    with threads_for(1):
        for run in range(runs):
            reports = setting.draw(np.random.default_rng([run, setting.users, setting.truth.size]))
            shown = hb.estimate(reports, setting.method)
            start = time.perf_counter()
            answer = hb.resolve(reports, level=LEVEL, method=method, estimate=shown)
            seconds.append(time.perf_counter() - start)
            told.append(len(answer.told))
            true = [float(setting.truth[part.positions].sum()) for part in answer.parts]
            held += all(
                part.confidence_low - SLIP <= share <= part.confidence_high + SLIP
                for part, share in zip(answer.parts, true, strict=True)
            )
    share, error = held / runs, 2.0 * math.sqrt(LEAST * (1 - LEAST) / runs)
    return row(
        setting.name,
        f"all parts hold the truth, {runs:,} studies; {np.mean(told):.1f} parts told; {np.median(seconds):.2f} s",
        f"{share:.3f}",
        f">= {LEAST} - {error:.3f}",
        holds=bool(share >= LEAST - error),
    )


def unpaid(*_: object) -> Generator[None, None, float]:
    """Return the critical value of one interval that nobody chose: the planted fault."""
    yield None
    return SINGLE


def main() -> None:
    """Print and keep the table, in the order of the settings."""
    parser = study_parser(__doc__, RUNS)
    parser.add_argument("--method", default="family", help="family or halves; only the first is kept")
    parser.add_argument("--fault", action="store_true", help="a planted fault: bounds as of single intervals")
    given = parser.parse_args()
    if given.fault:
        vars(lattice_division).update(told_critical=unpaid, CHOICE_CRITICAL=UNPAID_CHOICE)
    for setting in settings(given.counts):
        if setting.name.startswith(given.only):
            found = study(setting, given.runs, given.method)
            if given.method == "family" and not given.fault:
                save_merged("resolve", [found])


if __name__ == "__main__":
    main()
