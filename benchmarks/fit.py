"""Tests of the fit: false alarms on clean reports, and what is found of fakes, at level 1%.

Run: python benchmarks/fit.py [--quick] [--fresh] [--minutes M] [--only WORD] [--counts FILE]

Every row is a number of simulated data sets, each with its own truth, users and noise. What was measured is kept, and
the next run goes on where the last one ended; --fresh begins anew.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import hubbub as hb
from hubbub.goodness_of_fit.api import fit_test
from hubbub.mechanisms.local_hashing import hash_v1
from hubbub.reports.reports import assemble
from measure import row, save, seconds, stored_rows

LEVEL = 0.01
VALUES, EPSILON, MANY, FEW = 20, 1.0, 100_000, 2_000
CLEAN_SETS, FAKE_SETS, QUICK, BATCH = 1_000, 200, 20, 50
SHARE = 0.01  # of fake users
TARGET = 7
ERRORS = 3.0  # standard errors of simulation that are allowed for

Rng = np.random.Generator
Draw = Callable[[Rng], hb.Reports]
DOMAIN = hb.Integers(0, VALUES - 1)
KRR = hb.RandomizedResponse(DOMAIN, EPSILON)
OUE = hb.OptimizedUnary(DOMAIN, EPSILON)
OLH = hb.LocalHashing(DOMAIN, EPSILON)


def spread(rng: Rng) -> Any:
    """Return a truth with all values."""
    return rng.dirichlet(np.full(VALUES, 2.0))


def three(rng: Rng) -> Any:
    """Return a truth on three values."""
    truth = np.zeros(VALUES)
    truth[rng.choice(VALUES, 3, replace=False)] = rng.dirichlet(np.full(3, 5.0))
    return truth


def uniform(_: Rng) -> Any:
    """Return the uniform truth."""
    return np.full(VALUES, 1.0 / VALUES)


def singles(mechanism: hb.Mechanism, users: int, truth: Callable[[Rng], Any], claimed: Any = None) -> Draw:
    """Return how to draw users who send one output each, and perhaps claim another mechanism."""

    def draw(rng: Rng) -> hb.Reports:
        values = rng.choice(len(mechanism.domain), users, p=truth(rng))
        outputs = mechanism.privatize(mechanism.domain.labels[values], rng=rng)
        return hb.Reports.from_outputs(claimed or mechanism, outputs)

    return draw


def several(mechanisms: list[hb.Mechanism], users: int, truth: Callable[[Rng], Any], fakes: float = 0.0) -> Draw:
    """Return how to draw users who each send one output of every mechanism; fakes send the target each time."""

    def draw(rng: Rng) -> hb.Reports:
        values = rng.choice(VALUES, users, p=truth(rng))
        encoded: dict[hb.Mechanism, Any] = {}
        numbers: dict[hb.Mechanism, Any] = {}
        for mechanism in mechanisms:
            codes = mechanism.output_space.encode(mechanism.privatize(values, rng=rng))
            codes[: round(fakes * users)] = TARGET
            old = (encoded[mechanism], numbers[mechanism]) if mechanism in encoded else (codes[:0], values[:0])
            encoded[mechanism] = np.concatenate([old[0], codes])
            numbers[mechanism] = np.concatenate([old[1], np.arange(users)])
        return assemble(DOMAIN, encoded, numbers, users)

    return draw


def mixed(users: int, truth: Callable[[Rng], Any]) -> Draw:
    """Return how to draw users of four mechanisms, one output each."""
    mechanisms = [KRR, hb.RandomizedResponse(DOMAIN, 2.0), hb.TruncatedGeometric(DOMAIN, 0.5), OUE]

    def draw(rng: Rng) -> hb.Reports:
        chances = truth(rng)
        quarter = users // len(mechanisms)
        parts = [singles(mechanism, quarter, lambda _: chances)(rng) for mechanism in mechanisms]
        total: hb.Reports = sum(parts[1:], parts[0])
        return total

    return draw


def faked(mechanism: hb.Mechanism, fakes: Callable[[Rng, int], Any]) -> Draw:
    """Return how to draw honest users with a share of fakes."""

    def draw(rng: Rng) -> hb.Reports:
        count = round(SHARE * MANY)
        values = rng.choice(VALUES, MANY - count, p=spread(rng))
        outputs = mechanism.privatize(values, rng=rng)
        return hb.Reports.from_outputs(mechanism, outputs) + hb.Reports.from_outputs(mechanism, fakes(rng, count))

    return draw


def one_hot(_: Rng, count: int) -> Any:
    """Return reports with the target's bit alone."""
    bits = np.zeros((count, VALUES), dtype=bool)
    bits[:, TARGET] = True
    return bits


def padded(rng: Rng, count: int) -> Any:
    """Return reports with the target's bit, and others so that the number of ones follows the law."""
    bits = np.zeros((count, VALUES), dtype=bool)
    bits[:, TARGET] = True
    true, other = OUE.support
    number = (rng.random(count) < true) + rng.binomial(VALUES - 1, other, count)
    keys = rng.random((count, VALUES))
    keys[:, TARGET] = -1.0
    order = np.argsort(np.argsort(keys, axis=1), axis=1)
    return order < number[:, None]


def one_seed(rng: Rng, count: int) -> Any:
    """Return hashed reports with one seed and the target's bucket."""
    seeds = np.full(count, rng.integers(0, 2**63, dtype=np.uint64))
    return np.stack([seeds, hash_v1(seeds, np.full(count, TARGET), int(OLH.buckets or 2))], axis=1)


def fresh_seeds(rng: Rng, count: int) -> Any:
    """Return hashed reports with fresh seeds and the target's bucket."""
    seeds = rng.integers(0, 2**63, count, dtype=np.uint64)
    return np.stack([seeds, hash_v1(seeds, np.full(count, TARGET), int(OLH.buckets or 2))], axis=1)


def chosen_seeds(rng: Rng, count: int) -> Any:
    """Return hashed reports whose bucket holds few values but the target: the best of 100 seeds each."""
    seeds = rng.integers(0, 2**63, (count, 100), dtype=np.uint64)
    hashed = hash_v1(seeds[:, :, None], np.arange(VALUES), int(OLH.buckets or 2))
    beside = (hashed == hashed[:, :, [TARGET]]).sum(axis=2)
    best = np.argmin(beside, axis=1)
    every = np.arange(count)
    return np.stack([seeds[every, best], hashed[every, best, TARGET]], axis=1)


def liars(mechanism: hb.Mechanism) -> Callable[[Rng, int], Any]:
    """Return fakes that run the mechanism on a false value."""
    return lambda rng, count: mechanism.privatize(np.full(count, TARGET), rng=rng)


def clean_settings() -> Iterator[tuple[str, Draw]]:
    """Give the settings in which nothing is wrong."""
    small = hb.Grid(5, 4, cell=0.5)
    for users in (FEW, MANY):
        at = f"n={users:,}"
        yield f"k-RR, all values, {at}", singles(KRR, users, spread)
        yield f"k-RR, three values, {at}", singles(KRR, users, three)
        yield f"k-RR, uniform, {at}", singles(KRR, users, uniform)
        yield f"k-RR twice, all values, {at}", several([KRR, KRR], users, spread)
        yield f"k-RR twice, three values, {at}", several([KRR, KRR], users, three)
        yield f"OUE, all values, {at}", singles(OUE, users, spread)
        yield f"OUE, three values, {at}", singles(OUE, users, three)
        yield f"OLH, all values, {at}", singles(OLH, users, spread)
        yield f"OLH, three values, {at}", singles(OLH, users, three)
        yield f"truncated geometric 0.5, three values, {at}", singles(hb.TruncatedGeometric(DOMAIN, 0.5), users, three)
        yield f"geometric 0.5, three values, {at}", singles(hb.Geometric(DOMAIN, 0.5), users, three)
        yield f"planar 5 x 4, 1 per km, all values, {at}", singles(hb.PlanarGeometric(small, 1.0), users, spread)
        yield f"planar 5 x 4, 1 per km, three values, {at}", singles(hb.PlanarGeometric(small, 1.0), users, three)
        yield f"four mechanisms, all values, {at}", mixed(users, spread)
        yield f"four mechanisms, three values, {at}", mixed(users, three)


def fake_settings() -> Iterator[tuple[str, Draw, bool]]:
    """Give the settings with 1% of fakes for one value, or a false claim, and whether a test can see them."""
    yield "1% OUE fakes, target's bit alone", faked(OUE, one_hot), True
    yield "1% k-RR fakes, target twice", several([KRR, KRR], MANY, spread, SHARE), True
    yield "1% OLH fakes, one seed", faked(OLH, one_seed), True
    yield "1% OLH fakes, best of 100 seeds", faked(OLH, chosen_seeds), True
    strong, weak = hb.RandomizedResponse(DOMAIN, 0.5), hb.RandomizedResponse(DOMAIN, 2.0)
    yield "k-RR claimed 0.5, used 2, three values", singles(weak, MANY, three, strong), True
    yield "OUE claimed, RAPPOR used", singles(hb.Rappor(DOMAIN, EPSILON), MANY, spread, OUE), True
    yield "RAPPOR claimed, OUE used", singles(OUE, MANY, spread, hb.Rappor(DOMAIN, EPSILON)), True
    yield "1% OUE fakes, padded to the law", faked(OUE, padded), False
    yield "1% OLH fakes, fresh seeds", faked(OLH, fresh_seeds), False
    yield "1% OUE, honest run on a false value", faked(OUE, liars(OUE)), False
    yield "1% k-RR, honest run on a false value", faked(KRR, liars(KRR)), False


def alarms(draw: Draw, first: int, last: int, seed: int) -> int:
    """Return how many of some data sets are rejected."""
    numbers = range(first, last)
    return sum(fit_test(draw(np.random.default_rng([seed, number])), LEVEL).rejected for number in numbers)


def most_by_chance(sets: int, level: float) -> float:
    """Return the share of alarms that simulation error explains."""
    return level + ERRORS * math.sqrt(level * (1.0 - level) / sets)


def times(counts: Path | None) -> Iterator[dict[str, Any]]:
    """Time single calls."""
    rng = np.random.default_rng(1)
    for name, draw in (("k-RR", singles(KRR, MANY, three)), ("k-RR twice", several([KRR, KRR], MANY, three))):
        reports = draw(rng)
        spent, _ = seconds(partial(fit_test, reports), 3)
        yield row(f"{name}, {VALUES} values, n={MANY:,}", "one call", f"{spent:.2f} s", "under 1 s", holds=spent < 1.0)
    wide = hb.OptimizedUnary(hb.Integers(0, 99), EPSILON)
    reports = hb.Reports.from_outputs(wide, wide.privatize(rng.integers(0, 100, 1_000_000), rng=rng))
    spent, _ = seconds(lambda: fit_test(reports))
    yield row("OUE, 100 values, n=1,000,000", "one call", f"{spent:.1f} s", "under 10 s", holds=spent < 10.0)
    if counts is not None:
        number = np.loadtxt(counts, delimiter=",", skiprows=1, dtype=np.int64)[:, 2]
        grid = hb.Grid.over(south=37.7228, west=-122.5153, north=37.7946, east=-122.3789, columns=24, rows=16)
        for epsilon in (0.5, 1.0, 2.0):
            mechanism = hb.PlanarGeometric(grid, epsilon)
            reports = hb.Reports.from_outputs(
                mechanism, mechanism.privatize(np.repeat(np.arange(384), number), rng=rng)
            )
            spent, found = seconds(partial(fit_test, reports))
            problem = f"San Francisco, planar {epsilon:g} per km"
            yield row(problem, f"one call, p = {found.p_value:.2g}", f"{spent:.1f} s", "under 10 s", holds=spent < 10.0)


def judged(name: str, sets: int, found: int, visible: bool | None) -> dict[str, Any]:
    """Return the row of a setting: clean (None), or with fakes that can be seen or not."""
    share = found / sets
    limit = most_by_chance(sets, LEVEL if visible is None else 2 * LEVEL)
    asked = f"at most {limit:.1%} ({1 if visible is None else 2}% and {ERRORS:g} standard errors)"
    if visible:
        asked = "at least 99%"
    elif visible is False:
        asked = f"cannot be seen: {asked}"
    measured = f"alarms in {sets:,} {'clean' if visible is None else 'faked'} sets"
    kept = row(name, measured, f"{share:.1%}", asked, holds=share >= 0.99 if visible else share <= limit)
    return {**kept, "sets": sets, "alarms": found}


def main() -> None:
    """Print and keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} data sets for each setting, not kept")
    parser.add_argument("--fresh", action="store_true", help="forget what was measured before")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after so long; run again to go on")
    parser.add_argument("--only", default="", help="settings whose name holds this")
    parser.add_argument("--counts", type=Path, help="the paper's counts of San Francisco: columns x, y, count")
    asked = parser.parse_args()
    sys.argv[1:] = ["--counts", str(asked.counts)] if asked.counts else []  # what is kept is about all of it
    old = [] if asked.fresh or asked.quick else stored_rows("fit")
    rows = {kept["problem"]: kept for kept in old}
    end = time.monotonic() + 60 * asked.minutes
    fakes = list(fake_settings())
    settings = [(name, draw, None, CLEAN_SETS) for name, draw in clean_settings()]
    for seed, (name, draw, visible, sets) in enumerate(settings + [(*each, FAKE_SETS) for each in fakes], start=1):
        wanted = (QUICK if asked.quick else sets) if asked.only in name else 0
        done, found = (rows[name]["sets"], rows[name]["alarms"]) if name in rows else (0, 0)
        while done < wanted:
            if time.monotonic() > end:
                return
            more = min(BATCH, wanted - done)
            found += alarms(draw, done, done + more, seed)
            done += more
            rows[name] = judged(name, done, found, visible)
            if not asked.quick:
                save("fit", list(rows.values()))
    if time.monotonic() < end and asked.only in "times":
        for timed in times(asked.counts):
            rows[timed["problem"]] = timed
        if not asked.quick:
            save("fit", list(rows.values()))


if __name__ == "__main__":
    main()
