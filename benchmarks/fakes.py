"""Coverage of 95% intervals that allow for 1% of fakes, under the strongest attacks we know, over simulated studies.

Each attack is one output that all fakes send: that of the target value; the one with the largest or the least score in
the unbiased linear estimate of the target's share; and the one that moves the target's share in `auto` most. Attacks
that come to the same output share a row. Fakes are as many as allowed, twice and five times as many.

As in `intervals.py`, an interval is first computed with the chi-square cutoff in place of the calibrated one, which can
only make it shorter. Where that misses the truth and fakes are as many as allowed, it is computed as by `hb.interval`.
What fakes explain of the noise is simulated once for each row, not for each study.

Run: python benchmarks/fakes.py [--runs 200] [--only NAME] [--counts FILE]
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import hubbub as hb
from hubbub.core.progress import finish
from hubbub.core.threads import threads_for
from hubbub.intervals.contaminated_region import ContaminatedRegion, Explained
from hubbub.intervals.deviance_cutoff import chi_square
from hubbub.intervals.interval_endpoints import Endpoints, LikelihoodRegion, profile_endpoints
from hubbub.intervals.linear_statistic import Statistic
from hubbub.intervals.robust_intervals import FakesAllowed
from hubbub.intervals.robust_scores import RobustScores
from measure import row, save, stored_rows, study_parser
from problems import residents

LEVEL, LEAST, ALLOWED = 0.95, 0.94, 0.01
RUNS = 200
FACTORS = (1, 2, 5)  # fakes, relative to those allowed
RUNS_BEYOND = 0.1  # of the runs, with more fakes than allowed: there is no level to hold
MAX_TRIED = 20  # outputs, against auto
SLIP = 1e-9  # ends that are exactly 0 are computed up to rounding


@dataclass(frozen=True)
class Setting:
    """A study to be simulated again and again, and the values whose shares fakes aim at."""

    name: str
    mechanism: hb.Mechanism
    truth: np.ndarray
    users: int
    targets: dict[str, list[int]]  # of a set, the first is the one whose output fakes send
    share: float = 1.0  # of the runs, where a run is long

    def draw(self, fakes: int, output: object, rng: np.random.Generator) -> hb.Reports:
        """Return reports of which `fakes` are this output."""
        honest = rng.choice(self.mechanism.domain.labels, size=self.users - fakes, p=self.truth)
        reports = hb.Reports.from_outputs(self.mechanism, self.mechanism.privatize(honest, rng=rng))
        return reports + same(self.mechanism, output, fakes)


def same(mechanism: hb.Mechanism, output: object, users: int) -> hb.Reports:
    """Return the reports of users who all sent one output."""
    space = mechanism.output_space
    return hb.Reports.from_outputs(mechanism, np.repeat(space.decode(space.encode([output])), users, axis=0))


def settings(counts: Path | None) -> list[Setting]:
    """Return all settings."""
    rng = np.random.default_rng(22)
    twenty, thirty = hb.Integers(0, 19), hb.Integers(0, 29)
    even, few = rng.dirichlet(np.ones(20)), rng.dirichlet(np.full(30, 0.5))
    hump = np.exp(-0.5 * ((np.arange(20) - 7) / 2.0) ** 2)
    hump[hump < 0.05] = 0.0
    hump /= hump.sum()
    cells = np.random.default_rng(5).dirichlet(np.full(20, 0.4))
    cells[cells < 0.01] = 0.0
    cells /= cells.sum()
    found = [
        Setting("k-RR, 20 values", hb.RandomizedResponse(twenty, 1.0), even, 100_000, extremes(even)),
        Setting("line, a hump between zeros", hb.TruncatedGeometric(twenty, 0.5), hump, 10_000, extremes(hump)),
        Setting(
            "planar, 5 x 4 cells", hb.PlanarGeometric(hb.Grid(5, 4, cell=0.5), 1.5), cells, 20_000, extremes(cells)
        ),
        Setting("RAPPOR, 30 values", hb.Rappor(thirty, 2.0), few, 5_000, extremes(few)),
        Setting("local hashing, 30 values", hb.LocalHashing(thirty, 2.0), few, 5_000, extremes(few)),
    ]
    if counts is not None:
        grid, people = residents(counts)
        town = people / people.sum()
        noise = hb.PlanarGeometric(grid, 1.0)
        found.append(Setting("San Francisco, 384 cells", noise, town, int(people.sum()), extremes(town), share=0.1))
    return found


def extremes(truth: np.ndarray) -> dict[str, list[int]]:
    """Return the largest share, the least, and the joint share of the six least."""
    order = np.argsort(truth, kind="stable").tolist()
    return {"the largest share": order[-1:], "the least share": order[:1], "the six least": order[:6]}


def attacks(setting: Setting, target: list[int]) -> dict[str, object]:
    """Return the output that fakes send in each attack; attacks with the same output have one name."""
    mechanism = setting.mechanism
    candidates = outputs(mechanism, target)
    codes = mechanism.output_space.encode(candidates)
    scores = linear_scores(setting, target, codes)
    chosen = {
        "the value itself": 0,
        "largest linear score": int(np.argmax(scores)),
        "least linear score": int(np.argmin(scores)),
        "against auto": against_auto(setting, target, candidates),
    }
    names: dict[int, list[str]] = {}
    for name, place in chosen.items():
        names.setdefault(place, []).append(name)
    return {", ".join(own): candidates[place] for place, own in names.items()}


def outputs(mechanism: hb.Mechanism, aims: list[int]) -> list[Any]:
    """Return what fakes may send: all outputs if there is one for each value, otherwise some sets; the target first."""
    size, labels, target = len(mechanism.domain), mechanism.domain.labels.tolist(), aims[0]
    if isinstance(mechanism, hb.LocalHashing):
        rng = np.random.default_rng(target)
        sent = [mechanism.privatize([labels[target]] * 400, rng=rng)]
        sets = np.unpackbits(mechanism.sets(mechanism.output_space.encode(sent[0])), axis=1, count=size)
        holding = np.where(sets[:, target] == 1, sets.sum(axis=1), size + 1)
        without = np.where(sets[:, target] == 0, -sets.sum(axis=1), 1)
        return [sent[0][int(np.argmin(holding))], sent[0][int(np.argmin(without))]]
    if isinstance(mechanism, hb.Rappor):
        one = "".join("1" if place == target else "0" for place in range(size))
        all_of_them = "".join("1" if place in aims else "0" for place in range(size))
        flipped = all_of_them.translate(str.maketrans("01", "10"))
        return [mechanism.output_space.parse(text) for text in (one, all_of_them, "0" * size, flipped)]
    return [labels[target], *(label for place, label in enumerate(labels) if place != target)]


def linear_scores(setting: Setting, target: list[int], codes: np.ndarray) -> np.ndarray:
    """Return the score of each output in the linear estimate of the target: sum of u_x, or of H^-1 s."""
    mechanism, size = setting.mechanism, setting.truth.size
    if isinstance(mechanism, hb.Rappor | hb.LocalHashing):
        return np.asarray(np.unpackbits(mechanism.sets(codes), axis=1, count=size)[:, target].sum(axis=1))
    base = 0.9 * setting.truth + 0.1 / size
    table, full = np.exp(mechanism.log_columns(codes)), mechanism.matrix()
    information = (full / (base @ full)) @ full.T
    scores = np.linalg.lstsq(information, table / (base @ table), rcond=1e-12)[0]
    return np.asarray(scores[target].sum(axis=0))


def against_auto(setting: Setting, target: list[int], candidates: Sequence[object]) -> int:
    """Return the place of the output that moves the target's share in `auto` most."""
    fakes = round(ALLOWED * setting.users)
    honest = setting.draw(1, candidates[0], np.random.default_rng(1))
    before = float(hb.estimate(honest).probabilities[target].sum())
    places = list(range(0, len(candidates), max(1, len(candidates) // MAX_TRIED)))
    shifts = [
        abs(
            float(hb.estimate(honest + same(setting.mechanism, candidates[place], fakes)).probabilities[target].sum())
            - before
        )
        for place in places
    ]
    return places[int(np.argmax(shifts))]


def quick(allowed: FakesAllowed, region: LikelihoodRegion, statistic: Statistic) -> Endpoints:
    """Return the robust interval with the chi-square cutoff in place of the calibrated one."""
    cutoff, weights = chi_square(LEVEL), statistic.weights
    low, high = region.least(weights, cutoff).limit, -region.least(-weights, cutoff).limit
    return allowed.widen(Endpoints(low, high, (cutoff, cutoff), ""), statistic, LEVEL, simultaneous=False)


def study(
    setting: Setting, target: list[int], output: object, factor: int, runs: int
) -> tuple[float, float, float, float]:
    """Return the coverage of robust and plain intervals, and their mean widths."""
    rng, fakes = np.random.default_rng(2_226 + factor), round(factor * ALLOWED * setting.users)
    statistic, true = Statistic.share_of(setting.mechanism.domain, target), float(setting.truth[target].sum())
    held = plainly = 0
    widths, explained = np.zeros(2), None
    for _ in range(runs):
        reports = setting.draw(fakes, output, rng)
        region = LikelihoodRegion.of(reports)
        allowed, explained = prepared(reports, region, explained)
        interval = quick(allowed, region, statistic)
        low, high = (sign * region.least(sign * statistic.weights, chi_square(LEVEL)).limit for sign in (1.0, -1.0))
        plainly += low - SLIP <= true <= high + SLIP
        widths += [(interval.high - interval.low) / runs, (high - low) / runs]
        if not interval.low - SLIP <= true <= interval.high + SLIP and factor == 1:
            (plain,) = finish(profile_endpoints(region, [statistic], LEVEL))
            interval = allowed.widen(plain, statistic, LEVEL, simultaneous=False)
        held += interval.low - SLIP <= true <= interval.high + SLIP
    return held / runs, plainly / runs, float(widths[0]), float(widths[1])


def prepared(
    reports: hb.Reports, region: LikelihoodRegion, explained: Explained | None
) -> tuple[FakesAllowed, Explained | None]:
    """Return what all statistics have in common; what fakes explain is simulated only if it is not known yet."""
    if explained is None:
        allowed = FakesAllowed.of(reports, region, ALLOWED)
        return allowed, None if isinstance(allowed.likely, RobustScores) else allowed.likely.explained
    return FakesAllowed(ALLOWED, ContaminatedRegion.of(reports, region.top, ALLOWED, explained)), explained


def rows(setting: Setting, runs: int) -> list[dict[str, Any]]:
    """Return a row for each target and attack."""
    runs, found, start = max(20, round(setting.share * runs)), [], time.perf_counter()
    error = 2.0 * math.sqrt(LEAST * (1 - LEAST) / runs)
    for title, target in setting.targets.items():
        for attack, output in attacks(setting, target).items():
            beyond = max(20, round(RUNS_BEYOND * runs))
            results = [study(setting, target, output, factor, runs if factor == 1 else beyond) for factor in FACTORS]
            held, plain, width, plain_width = results[0]
            more = ", ".join(
                f"{one[0]:.3f} with {factor}%" for one, factor in zip(results[1:], FACTORS[1:], strict=True)
            )
            found.append(
                row(
                    f"{setting.name}: {title}, {attack}",
                    f"{runs:,} studies, 1% fakes; plain intervals {plain:.3f}; mean width {width:.3g} instead of "
                    f"{plain_width:.3g}; with more fakes than allowed, {beyond:,} studies: {more}",
                    f"{held:.3f}",
                    f">= {LEAST} - {error:.3f}",
                    holds=bool(held >= LEAST - error),
                )
            )
    print(f"     {setting.name}: {time.perf_counter() - start:.0f} s", flush=True)
    return found


def main() -> None:
    """Print and keep the table, in the order of the settings."""
    given = study_parser(__doc__, RUNS).parse_args()
    kept = stored_rows("fakes") if given.only else []
    everything = settings(given.counts)
    found: dict[str, list[dict[str, Any]]] = {each.name: [] for each in everything}
    for one in kept:  # those of San Francisco, too, when its counts are not there
        found.setdefault(one["problem"].split(": ")[0], []).append(one)
    chosen: Callable[[Setting], bool] = lambda each: each.name.startswith(given.only)  # noqa: E731
    with threads_for(1):
        for setting in filter(chosen, everything):
            found[setting.name] = rows(setting, given.runs)
            save("fakes", [one for own in found.values() for one in own])


if __name__ == "__main__":
    main()
