"""Coverage of the intervals of sets: how often they hold the true share of sets chosen in advance.

Each study is simulated again and again; the reference is the maximum of the likelihood of the same reports, which is
the hardest one, because it follows their accidents (on the city, where no reference matters, the quickest).

Run: python benchmarks/sets.py [--runs 1000] [--only NAME] [--narrow 1.0] [--against-likelihood]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

import hubbub as hb
from hubbub.demo import load_city
from hubbub.intervals.set_intervals import SetShares, set_shares
from measure import row, save, stored_rows

LEVEL, LEAST = 0.95, 0.93
RUNS = 1_000
MOST_COMPARED = 100  # values, beyond which intervals by the likelihood take a minute each
Draw = Callable[[np.ndarray, np.random.Generator], hb.Reports]


@dataclass(frozen=True)
class Setting:
    """A study to be simulated: a truth, and how users report."""

    name: str
    truth: np.ndarray
    users: int
    draw: Draw
    method: str = "mle"  # of the reference

    def sets(self) -> dict[str, np.ndarray]:
        """Return sets of positions that were chosen in advance."""
        size = self.truth.size
        order = np.argsort(-self.truth, kind="stable")
        every = np.arange(size)
        rare = order[-max(1, size // 4) :]
        return {
            "most common value": order[:1],
            "rarest value": order[-1:],
            "top fifth": order[: max(1, size // 5)],
            "rarest quarter": rare,
            "first half": every[: size // 2],
            "every other": every[::2],
            "all but the commonest": order[1:],
        }


def smooth(size: int) -> np.ndarray:
    """Return a truth with mass everywhere."""
    shares = 1.2 + np.sin(np.linspace(0, 5, size))
    return np.asarray(shares / shares.sum())


def spiky(size: int) -> np.ndarray:
    """Return a truth with most values at 0."""
    shares = np.zeros(size)
    for place, weight in ((1, 5.0), (2, 2.0), (size // 2, 3.0), (size - 2, 1.0)):
        shares[place] += weight
    return np.asarray(shares / shares.sum())


def one_each(mechanism: hb.Mechanism) -> Draw:
    """Return a study in which each user sends one output."""

    def draw(positions: np.ndarray, rng: np.random.Generator) -> hb.Reports:
        return hb.Reports.from_outputs(mechanism, mechanism.privatize(mechanism.domain.labels[positions], rng=rng))

    return draw


def several_each(*mechanisms: hb.Mechanism) -> Draw:
    """Return a study in which each user sends one output of each mechanism (the same one may be named twice)."""

    def draw(positions: np.ndarray, rng: np.random.Generator) -> hb.Reports:
        values = mechanisms[0].domain.labels[positions]
        columns = [list(mechanism.privatize(values, rng=rng)) for mechanism in mechanisms]
        return hb.Reports.from_users(
            [list(zip(mechanisms, outputs, strict=True)) for outputs in zip(*columns, strict=True)]
        )

    return draw


def groups(*draws: Draw) -> Draw:
    """Return a study in which users are dealt out over others."""

    def draw(positions: np.ndarray, rng: np.random.Generator) -> hb.Reports:
        return reduce(add, (one(positions[place :: len(draws)], rng) for place, one in enumerate(draws)))

    return draw


def settings() -> Iterator[Setting]:
    """Yield all studies."""
    names, few = hb.Categories([f"v{place}" for place in range(30)]), hb.Categories(list("abcde"))
    line, grid = hb.Integers(0, 29), hb.Grid(7, 6, cell=0.5)
    answer, bits = hb.RandomizedResponse(names, 2.0), hb.Rappor(names, 2.0)
    steps = hb.TruncatedGeometric(line, 0.5)
    kinds: list[tuple[str, int, int, Draw]] = [
        ("k-RR, epsilon 1", 30, 5_000, one_each(hb.RandomizedResponse(names, 1.0))),
        ("k-RR, epsilon 4, few users", 30, 300, one_each(hb.RandomizedResponse(names, 4.0))),
        ("k-RR, five values, 100 users", 5, 100, one_each(hb.RandomizedResponse(few, 1.0))),
        ("truncated geometric, 0.5", 30, 5_000, one_each(steps)),
        ("geometric, 0.5, few users", 30, 300, one_each(hb.Geometric(line, 0.5))),
        ("planar geometric, 1 per km", 42, 5_000, one_each(hb.PlanarGeometric(grid, 1.0))),
        ("planar geometric, all lattice", 42, 2_000, one_each(hb.PlanarGeometric(grid, 2.0, truncated=False))),
        ("RAPPOR, epsilon 1", 30, 3_000, one_each(hb.Rappor(names, 1.0))),
        ("RAPPOR, epsilon 5, few users", 30, 300, one_each(hb.Rappor(names, 5.0))),
        ("RAPPOR, five values", 5, 1_000, one_each(hb.Rappor(few, 1.0))),
        ("OLH, epsilon 2", 30, 3_000, one_each(hb.LocalHashing(names, 2.0))),
        ("subset selection, epsilon 1", 30, 3_000, one_each(hb.SubsetSelection(names, 1.0))),
        ("two geometric reports", 30, 1_500, several_each(steps, steps)),
        ("k-RR and OUE of one user", 30, 1_500, several_each(answer, hb.OptimizedUnary(names, 1.0))),
        ("mixture: k-RR or RAPPOR", 30, 3_000, groups(one_each(answer), one_each(bits))),
        ("mixture: one or two reports", 30, 2_000, groups(one_each(steps), several_each(steps, steps))),
    ]
    for name, size, users, draw in kinds:
        for shape, truth in (("smooth", smooth(size)), ("spiky", spiky(size))):
            yield Setting(f"{name}, {shape}", truth, users, draw)
    city = load_city()
    planar = one_each(hb.PlanarGeometric(city.grid, 1.0))
    yield Setting("the demo's city, 1 per km", city.shares, 120_000, planar, method="inv-n")
    yield Setting("the demo's city, few users", city.shares, 2_000, planar, method="inv-n")


def coverage(setting: Setting, runs: int, narrow: float = 1.0) -> dict[str, tuple[float, float]]:
    """Return for each set how often its interval held the truth, and the median width."""
    sets = setting.sets()
    held = dict.fromkeys(sets, 0)
    widths: dict[str, list[float]] = {name: [] for name in sets}
    for run in range(runs):
        rng = np.random.default_rng([run, setting.users, setting.truth.size])
        positions = rng.choice(setting.truth.size, size=setting.users, p=setting.truth)
        reports = setting.draw(positions, rng)
        found = set_shares(reports, hb.estimate(reports, setting.method).probabilities)
        if not isinstance(found, SetShares):
            raise SystemExit(f"{setting.name}: {found.reason}")
        found = SetShares(found.centre, narrow**2 * found.matrix, found.condition)
        for name, places in sets.items():
            low, _, high = found.interval(places, LEVEL)
            truth = float(setting.truth[places].sum())
            held[name] += low - 1e-12 <= truth <= high + 1e-12
            widths[name].append(high - low)
    return {name: (held[name] / runs, float(np.median(widths[name]))) for name in sets}


def against_likelihood(setting: Setting) -> dict[str, float]:
    """Return for each set how much wider the interval by the likelihood is, in one study."""
    rng = np.random.default_rng([0, setting.users, setting.truth.size])
    reports = setting.draw(rng.choice(setting.truth.size, size=setting.users, p=setting.truth), rng)
    own = set_shares(reports, hb.estimate(reports, setting.method).probabilities)
    assert isinstance(own, SetShares)  # noqa: S101
    ratios = {}
    for name, places in setting.sets().items():
        low, _, high = own.interval(places, LEVEL)
        other = hb.interval(reports, reports.domain.labels[places].tolist(), LEVEL)
        ratios[name] = (other.high - other.low) / (high - low)
    return ratios


def main() -> None:
    """Run all settings and write a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--only", default="")
    parser.add_argument("--narrow", type=float, default=1.0, help="A planted fault: deviations times this.")
    parser.add_argument("--against-likelihood", action="store_true", help="Compare widths with hubbub.interval's.")
    options = parser.parse_args()
    wanted = [setting for setting in settings() if options.only in setting.name]
    if options.against_likelihood:
        few = [setting for setting in wanted if setting.truth.size <= MOST_COMPARED]
        save("sets_against_likelihood", [{"problem": one.name, "wider": against_likelihood(one)} for one in few])
        return
    rows = []
    for setting in wanted:
        found = coverage(setting, options.runs, options.narrow)
        worst = min(found, key=lambda name: found[name][0])
        reached = f"{100 * found[worst][0]:.1f}% at worst ({worst})"
        measured = f"coverage of {len(found)} sets at 95%, {options.runs:,} runs"
        rows.append(row(setting.name, measured, reached, f"at least {100 * LEAST:g}%", holds=found[worst][0] >= LEAST))
        rows[-1]["sets"] = {name: {"coverage": share, "width": width} for name, (share, width) in found.items()}
    if options.narrow == 1.0:
        kept = stored_rows("sets") if options.only else []
        mine = {one["problem"] for one in rows}
        save("sets", [*(one for one in kept if one["problem"] not in mine), *rows])


if __name__ == "__main__":
    main()
