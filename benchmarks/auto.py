"""The cost of `auto`, from a line to a map too large for most candidates; and two of its weaknesses.

Run: python benchmarks/auto.py [--counts FILE]
"""

from __future__ import annotations

import numpy as np

import hubbub as hb
from measure import counts_argument, in_turn, row, save
from problems import Problem, city, line

LINE, MAP, LONG = 0.5, 3.0, 5.0  # seconds asked for, on two cores
WORDS, WORD_USERS = 1_000_000, 1_000_000
STUDIES = 200
SIDE, PEOPLE = 320, 200_000  # a map of 102,400 cells


def timed(problem: Problem, asked: float, repeats: int) -> dict[str, object]:
    """Return the time of `auto`, beside that of the exact maximum."""
    own, exact = in_turn(
        [lambda: hb.estimate(problem.reports), lambda: hb.estimate(problem.reports, "mle")], repeats=repeats
    )
    return row(
        problem.name,
        "auto, median",
        f"{own:.2f} s ({own / exact:.0f} times mle)",
        f"at most {asked:g} s",
        holds=own <= asked,
    )


def bits() -> dict[str, object]:
    """Measure reports that cannot be merged: 100,000 patterns."""
    rng = np.random.default_rng(0)
    mechanism = hb.Rappor(hb.Categories(range(32)), 2.0)
    values = np.minimum(rng.geometric(0.1, 100_000) - 1, 31)
    reports = hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng))
    (own,) = in_turn([lambda: hb.estimate(reports)], repeats=1)
    return row("RAPPOR, 32 values, 100,000 users", "auto", f"{own:.1f} s", "shown", holds=True)


def words(epsilon: float) -> dict[str, object]:
    """Measure k-RR over a million categories: in closed form and by empirical Bayes, which end by themselves."""
    rng, mechanism = np.random.default_rng(0), hb.RandomizedResponse(hb.Categories(range(WORDS)), epsilon)
    values = np.minimum(rng.zipf(1.3, WORD_USERS) - 1, WORDS - 1)
    truth = np.bincount(values, minlength=WORDS) / WORD_USERS
    reports = hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng))
    found: dict[str, hb.Estimate] = {}

    def run(method: str) -> None:
        found[method] = hb.estimate(reports, method)

    own, exact = in_turn([lambda: run("auto"), lambda: run("mle")], repeats=1)
    errors = [hb.total_variation(found[method].probabilities, truth) for method in ("auto", "mle")]
    return row(
        f"k-RR {epsilon:g}, {WORDS:,} categories, {WORD_USERS:,} users",
        "auto: seconds (of mle), and total variation (of mle)",
        f"{own:.1f} s ({exact:.2f}), {errors[0]:.3f} ({errors[1]:.3f})",
        "closer than mle",
        holds=errors[0] < errors[1],
    )


def large() -> dict[str, object]:
    """Measure a map on which only EM is affordable, by FFT."""
    rng = np.random.default_rng(0)
    grid = hb.Grid(SIDE, SIDE, cell=0.1)
    mechanism = hb.PlanarGeometric(grid, 2.0)
    places = np.clip(rng.normal(SIDE / 2, SIDE / 8, (PEOPLE, 2)), 0, SIDE - 1).astype(int)
    truth = np.bincount(places[:, 0] + SIDE * places[:, 1], minlength=len(grid)) / PEOPLE
    outputs = mechanism.privatize(places[:, 0] + SIDE * places[:, 1], rng=rng)
    reports = hb.Reports.from_outputs(mechanism, outputs)
    found: list[hb.Estimate] = []
    (own,) = in_turn([lambda: found.append(hb.estimate(reports))], repeats=1)
    counted = np.bincount(grid.index(outputs), minlength=len(grid)) / PEOPLE
    noisy, ours = hb.total_variation(counted, truth), hb.total_variation(found[0].probabilities, truth)
    return row(
        f"map of {len(grid):,} cells, {PEOPLE:,} users",
        "auto: seconds, and total variation (of the noisy reports)",
        f"{own:.0f} s, {ours:.3f} ({noisy:.3f})",
        "only EM, and says so",
        holds="more than EM" in found[0].status and ours < noisy,
    )


def not_exactly_even(name: str, mechanism: hb.Mechanism, users: int) -> dict[str, object]:
    """Count how often an even crowd gets shares that differ, by however little."""
    rng, found = np.random.default_rng(0), 0
    for _ in range(STUDIES):
        values = rng.choice(mechanism.domain.labels, users)
        estimate = hb.estimate(hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng)))
        found += bool(np.ptp(estimate.probabilities) > 0)
    return row(
        name,
        f"an even crowd of {users:,} does not get exactly equal shares",
        f"{found} of {STUDIES} studies",
        "shown",
        holds=True,
    )


def two_values(share: float, users: int) -> dict[str, object]:
    """Compare with the maximum of the likelihood where there is nothing to smooth: a yes or no."""
    rng, mechanism = np.random.default_rng(0), hb.RandomizedResponse(hb.Categories(["yes", "no"]), 1.0)
    errors: dict[str, list[float]] = {"auto": [], "mle": []}
    for _ in range(STUDIES):
        values = np.where(rng.random(users) < share, "yes", "no")
        reports = hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng))
        for method, own in errors.items():
            own.append(abs(float(hb.estimate(reports, method).probabilities[0]) - share))
    auto, mle = float(np.mean(errors["auto"])), float(np.mean(errors["mle"]))
    return row(
        f"k-RR 1, two values, {share:.0%} yes, {users:,} users",
        f"mean error of auto (of mle), {STUDIES} studies",
        f"{auto:.4f} ({mle:.4f})",
        "shown",
        holds=True,
    )


def main() -> None:
    """Measure, print and keep."""
    counts = counts_argument(__doc__)
    hb.estimate(line(20).reports)  # what is loaded at the first call is loaded once...
    hb.estimate(line(1_000).reports, "mle")  # ...and so are the compiled loops of long lines
    rows = [
        timed(line(100), LINE, 5),
        timed(city(counts), MAP, 3),
        timed(line(1_000), LONG, 1),
        words(5.0),
        words(14.0),
        bits(),
        large(),
        not_exactly_even("k-RR 1, 32 values", hb.RandomizedResponse(hb.Categories(range(32)), 1.0), 1_000),
        not_exactly_even("truncated geometric 0.5, 20 values", hb.TruncatedGeometric(hb.Integers(0, 19), 0.5), 1_000),
        two_values(0.7, 1_000),
        two_values(0.55, 10_000),
        two_values(0.7, 100_000),
    ]
    save("auto", rows)


if __name__ == "__main__":
    main()
