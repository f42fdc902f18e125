"""Comparisons of two groups over simulated studies: sizes of the test, power, coverage of differences, and time.

* size: how often equal groups are told to differ at 5% and at 1%, in settings with zeros, few users, unlike mechanisms,
  and in surveys with weights;
* power: how often a difference is found at a large epsilon, beside Fisher's and Pearson's tests of the values;
* coverage of differences, means and distances at 95%;
* seconds for two groups of a million users and 100 values, and for 50 groups of 6 categories.

Run: python benchmarks/compare.py [--runs 5000] [--only size|power|coverage|time, or with a setting: "size: unlike"]
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import chi2_contingency, fisher_exact

import hubbub as hb
from hubbub.comparison.equality_test import equality_test
from hubbub.comparison.populations import Populations
from hubbub.core.progress import finish
from hubbub.core.threads import threads_for
from intervals import weighted
from measure import row, save_merged, study_parser

LEVEL, LEAST = 0.95, 0.94
RUNS = 5_000
SHARE_OF_COVERAGE = 0.2  # of the runs: each is a whole comparison
MAX_SIZE_ERROR = 0.005  # of the test, either way
DRAWS = 999
SLIP = 1e-9


@dataclass(frozen=True)
class Setting:
    """Two groups with one truth, or two."""

    name: str
    mechanisms: tuple[hb.Mechanism, hb.Mechanism]
    users: tuple[int, int]
    truths: tuple[np.ndarray, np.ndarray]
    has_weights: bool = False

    def draw(self, rng: np.random.Generator) -> list[hb.Reports]:
        """Return the reports of both groups."""
        reports = []
        for mechanism, users, truth in zip(self.mechanisms, self.users, self.truths, strict=True):
            if self.has_weights:
                reports.append(weighted(mechanism, truth, users)(rng))
                continue
            values = rng.choice(mechanism.domain.labels, size=users, p=truth)
            reports.append(hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng)))
        return reports


def zipf(size: int, zeros: int = 0) -> np.ndarray:
    """Return shares that fall with their rank; the last ones are 0."""
    shares = 1.0 / np.arange(1, size + 1) ** 1.2
    shares[size - zeros :] = 0.0
    return np.asarray(shares / shares.sum())


def hump(size: int, middle: float, width: float) -> np.ndarray:
    """Return a normal bump."""
    shares = np.exp(-0.5 * ((np.arange(size) - middle) / width) ** 2)
    return np.asarray(shares / shares.sum())


def equal_groups() -> Iterator[Setting]:
    """Yield the settings of the test's size."""
    yes_no, line = hb.Categories(["yes", "no"]), hb.Integers(0, 19)
    response = hb.RandomizedResponse

    def names(size: int) -> hb.Categories:
        return hb.Categories([f"v{place}" for place in range(size)])

    def same(name: str, mechanism: hb.Mechanism, users: tuple[int, int], truth: np.ndarray) -> Setting:
        return Setting(name, (mechanism, mechanism), users, (truth, truth))

    yield same("yes or no, 300 + 300 users", response(yes_no, 1.0), (300, 300), np.array([0.3, 0.7]))
    yield same("yes or no, 100 + 150 users, 5% yes", response(yes_no, 3.0), (100, 150), np.array([0.05, 0.95]))
    yield same("k-RR, 6 values, 3 empty, 60 + 60 users", response(names(6), 2.0), (60, 60), zipf(6, 3))
    yield same("k-RR, 40 values, 10 empty", response(names(40), 3.0), (500, 3_000), zipf(40, 10))
    yield same("RAPPOR, 8 values, 3 empty, 150 + 150 users", hb.Rappor(names(8), 2.0), (150, 150), zipf(8, 3))
    yield same("a line of 20, a hump", hb.TruncatedGeometric(line, 0.5), (200, 1_000), hump(20, 7, 2))
    grid = hb.Grid(5, 4, cell=0.5)
    town = np.concatenate([np.full(5, 0.2), np.zeros(15)])
    yield same("5 x 4 cells, 15 empty", hb.PlanarGeometric(grid, 2.0), (1_000, 1_000), town)
    share = np.array([0.3, 0.7])
    yield Setting(
        "unlike: yes or no, epsilon 1 and 3", (response(yes_no, 1.0), response(yes_no, 3.0)), (100, 100), (share,) * 2
    )
    no = np.array([0.0, 1.0])
    yield Setting(
        "unlike: yes or no, nobody says yes", (response(yes_no, 1.0), response(yes_no, 3.0)), (300, 300), (no,) * 2
    )
    ten = (response(names(10), 1.5), response(names(10), 3.0))
    yield Setting("unlike: k-RR, 10 values, 4 empty", ten, (500, 2_000), (zipf(10, 4),) * 2)
    both = (hb.TruncatedGeometric(line, 0.5), response(line, 2.0))
    yield Setting("unlike: a line of 20, k-RR", both, (1_000, 1_000), (hump(20, 7, 2),) * 2)
    planar = (hb.PlanarGeometric(grid, 2.0), hb.PlanarGeometric(grid, 4.0))
    yield Setting("unlike: 5 x 4 cells, 15 empty", planar, (2_000, 500), (town,) * 2)


def different_groups() -> Iterator[Setting]:
    """Yield the settings of coverage: those of the size, and some with a difference."""
    yield from equal_groups()
    yes_no, line = hb.Categories(["yes", "no"]), hb.Integers(0, 19)
    pair = hb.RandomizedResponse(yes_no, 1.0), hb.RandomizedResponse(yes_no, 2.0)
    yield Setting("yes or no, 30% and 45%", pair, (300, 300), (np.array([0.3, 0.7]), np.array([0.45, 0.55])))
    one = hb.RandomizedResponse(hb.Categories([f"v{place}" for place in range(6)]), 2.0)
    yield Setting("k-RR, 6 values, other values empty", (one, one), (200, 400), (zipf(6, 3), zipf(6, 3)[::-1].copy()))
    noise = hb.TruncatedGeometric(line, 0.8)
    yield Setting("a line of 20, moved by 2", (noise, noise), (2_000, 3_000), (hump(20, 7, 2), hump(20, 9, 2)))


def surveys(second: float) -> Iterator[Setting]:
    """Yield surveys with a die: 20% yes in one group and that share in the other, with and without weights."""
    die = hb.ForcedResponse(hb.Categories(["yes", "no"]), p_yes="1/6", p_no="1/6")
    truths = np.array([0.2, 0.8]), np.array([second, 1.0 - second])
    name = f"a die, 20% and {second:.0%} yes, 600 + 600 people"
    yield Setting(name, (die, die), (600, 600), truths)
    yield Setting(f"{name} with weights", (die, die), (600, 600), truths, has_weights=True)


def p_value(reports: list[hb.Reports], seed: int) -> float:
    """Return that of the test of equality."""
    populations = finish(Populations.of(reports))
    return float(finish(equality_test(populations, np.random.default_rng([seed, 23]), DRAWS)).p_value)


def sizes(runs: int, only: str) -> Iterator[dict[str, Any]]:
    """Yield a row for each setting: how often equal groups are told to differ."""
    for number, setting in enumerate([*equal_groups(), *surveys(0.2)]):
        if not setting.name.startswith(only):
            continue
        p_values = np.array([p_value(setting.draw(np.random.default_rng([run, number])), run) for run in range(runs)])
        for level in (0.05, 0.01):
            found, noise = float((p_values <= level).mean()), 2.0 * math.sqrt(level * (1 - level) / runs)
            yield row(
                f"size at {level:.0%}: {setting.name}",
                f"{runs:,} studies",
                f"{100 * found:.2f}%",
                f"{100 * level:g} +- {100 * MAX_SIZE_ERROR:g} points, and {100 * noise:.2f} of noise",
                holds=bool(abs(found - level) <= MAX_SIZE_ERROR + noise),
            )


def power(runs: int, only: str) -> Iterator[dict[str, Any]]:
    """Yield rows: power at a large epsilon, beside that of tests of the values themselves, on the same studies."""
    yes_no, four = hb.Categories(["yes", "no"]), hb.Categories(list("abcd"))
    cases = [
        ("yes or no, 100 + 100 users", yes_no, 100, np.array([0.3, 0.7]), np.array([0.48, 0.52])),
        ("4 values, 200 + 200 users", four, 200, np.full(4, 0.25), np.array([0.33, 0.27, 0.22, 0.18])),
    ]
    for name, domain, users, first, second in cases:
        if not name.startswith(only):
            continue
        for epsilon in (1.0, 2.0, 4.0, 8.0, 16.0):
            mechanism = hb.RandomizedResponse(domain, epsilon)
            found = np.zeros(2)
            for run in range(runs):
                rng = np.random.default_rng([run, users])
                values = [rng.choice(domain.labels, size=users, p=truth) for truth in (first, second)]
                reports = [hb.Reports.from_outputs(mechanism, mechanism.privatize(own, rng=rng)) for own in values]
                table = np.array([[int((own == label).sum()) for label in domain.labels] for own in values])
                textbook = fisher_exact(table) if len(domain) == 2 else chi2_contingency(table)
                found += [p_value(reports, run) <= 0.05, textbook.pvalue <= 0.05]
            ours, theirs = found / runs
            is_large = epsilon >= 8.0
            yield row(
                f"power: {name}, epsilon {epsilon:g}",
                f"{runs:,} studies; {'Fisher' if len(domain) == 2 else 'chi-square'} of the values: {theirs:.3f}",
                f"{ours:.3f}",
                ">= that, less 0.02" if is_large else "shown",
                holds=bool(ours >= theirs - 0.02) or not is_large,
            )


def coverage(runs: int, only: str) -> Iterator[dict[str, Any]]:
    """Yield rows: how often intervals of differences and distances hold the truth."""
    error = 2.0 * math.sqrt(LEAST * (1 - LEAST) / runs)
    for number, setting in enumerate([*different_groups(), *surveys(0.28)]):
        if not setting.name.startswith(only):
            continue
        first, second = setting.truths
        domain = setting.mechanisms[0].domain
        values = np.unique(np.concatenate([np.argsort(first)[[0, -1]], np.argsort(second)[[0, -1]]])).tolist()
        truths = {f"value {place}": float(second[place] - first[place]) for place in values}
        held = dict.fromkeys([*truths, "total variation", "earth mover", "mean"], 0)
        for run in range(runs):
            answer = hb.compare(*setting.draw(np.random.default_rng([run, number, 1])), level=LEVEL)
            for place in values:
                low, high = answer.confidence_low[place], answer.confidence_high[place]
                held[f"value {place}"] += low - SLIP <= truths[f"value {place}"] <= high + SLIP
            distances = [("total variation", answer.total_variation, hb.total_variation(first, second))]
            if not domain.is_equidistant and answer.earth_mover is not None:
                distances.append(("earth mover", answer.earth_mover, hb.earth_mover_distance(first, second, domain)))
            if answer.mean is not None and domain.places is not None:
                distances.append(("mean", answer.mean, float(domain.places @ (second - first))))
            for name, interval, true in distances:
                held[name] += interval.low - SLIP <= true <= interval.high + SLIP
        for name, count in held.items():
            if name in truths or name in [each for each, _, _ in distances]:
                yield row(
                    f"coverage: {setting.name}: {name}",
                    f"{runs:,} studies",
                    f"{count / runs:.3f}",
                    f">= {LEAST} - {error:.3f}",
                    holds=bool(count / runs >= LEAST - error),
                )


def times(_: int, _only: str) -> Iterator[dict[str, Any]]:
    """Yield rows: seconds of two large groups, and of many small ones."""
    rng, line = np.random.default_rng(1), hb.Integers(0, 99)
    truths = [0.6 * hump(100, 30, 8) + 0.4 * hump(100, 65, 12), 0.5 * hump(100, 30, 8) + 0.5 * hump(100, 65, 12)]
    for mechanism in (hb.RandomizedResponse(line, 2.0), hb.TruncatedGeometric(line, 0.3)):
        outputs = [truth @ mechanism.matrix() for truth in truths]
        reports = [hb.Reports.from_counts(mechanism, rng.multinomial(1_000_000, own / own.sum())) for own in outputs]
        estimates = [hb.estimate(own) for own in reports]
        hb.compare(*reports, estimates=estimates)  # compiles
        reports = [hb.Reports.from_counts(mechanism, rng.multinomial(1_000_000, own / own.sum())) for own in outputs]
        start = time.perf_counter()
        hb.compare(*reports)
        seconds = time.perf_counter() - start
        name = f"time: 2 x 1,000,000 users, 100 values, {type(mechanism).__name__} {mechanism.epsilon:g}"
        yield row(name, "with estimates", f"{seconds:.1f} s", "<= 10 s", holds=seconds <= 10.0)
    six = hb.RandomizedResponse(hb.Categories(list("abcdef")), 2.0)
    shares = rng.dirichlet(np.array([30.0, 25.0, 20.0, 15.0, 10.0, 1.0]), size=50)
    counts = [rng.multinomial(int(rng.integers(200, 3_000)), own @ six.matrix()) for own in shares]
    groups = {f"group {place}": hb.Reports.from_counts(six, own) for place, own in enumerate(counts)}
    start = time.perf_counter()
    hb.compare_groups(groups)
    seconds = time.perf_counter() - start
    yield row("time: 50 groups, 6 categories", "with estimates", f"{seconds:.1f} s", "<= 10 s", holds=seconds <= 10.0)


STUDIES = {"size": (sizes, 1.0), "power": (power, 0.2), "coverage": (coverage, SHARE_OF_COVERAGE), "time": (times, 1.0)}


def main() -> None:
    """Print and keep the table."""
    given = study_parser(__doc__, RUNS).parse_args()
    chosen, _, setting = given.only.partition(": ")
    for name, (study, share) in STUDIES.items():
        if name.startswith(chosen):
            runs = max(20, round(share * given.runs))
            with nullcontext() if name == "time" else threads_for(1):
                for found in study(runs, setting):
                    save_merged("compare", [found])


if __name__ == "__main__":
    main()
