"""Shares of regions: how long 500 polygons take on a city of 384 cells, and how often their intervals hold the truth.

The polygons are those nearest to each of some random points. Beside the seconds stands how many times as long as the
exact maximum of the likelihood they take, measured in the same run.

Run: python benchmarks/regions.py [--runs 1000] [--only NAME] [--counts FILE]
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import shapely

import hubbub as hb
from hubbub.demo import load_city
from measure import row, save, seconds, study_parser

LEVEL, LEAST = 0.95, 0.93
SOUTH, WEST, NORTH, EAST = 37.7228, -122.5153, 37.7946, -122.3789
USERS = 50_000
MAX_SECONDS = 10.0
MAX_PROFILE_DISTRICTS = 5
REPEATS = 3


def polygons(count: int, seed: int) -> dict[str, Any]:
    """Return polygons that divide the city."""
    rng = np.random.default_rng(seed)
    points = shapely.MultiPoint(np.c_[rng.uniform(WEST, EAST, count), rng.uniform(SOUTH, NORTH, count)])
    box = shapely.box(WEST, SOUTH, EAST, NORTH)
    parts = shapely.get_parts(shapely.voronoi_polygons(points, extend_to=box))
    features = [
        {
            "type": "Feature",
            "properties": {"name": f"district {place}"},
            "geometry": shapely.geometry.mapping(part.intersection(box)),
        }
        for place, part in enumerate(parts)
    ]
    return {"type": "FeatureCollection", "features": features}


def study(truth: np.ndarray, mechanism: hb.Mechanism, users: int, seed: int) -> hb.Reports:
    """Return the reports of one study."""
    outputs = truth @ mechanism.matrix()
    counts = np.random.default_rng(seed).multinomial(users, outputs / outputs.sum())
    return hb.Reports.from_counts(mechanism, counts)


def speed(grid: hb.Grid, truth: np.ndarray) -> list[dict[str, Any]]:
    """Return the rows about time."""
    reports = study(truth, hb.PlanarGeometric(grid, 1.0), USERS, 0)
    estimate = hb.estimate(reports, "mle")
    many = polygons(500, 1)
    hb.regions(grid, many).shares(reports, estimate=estimate)  # what is compiled or imported is not part of it
    likeliest, _ = seconds(lambda: hb.estimate(reports, "mle"), REPEATS)
    cut, own = seconds(lambda: hb.regions(grid, many), REPEATS)
    shared, _ = seconds(lambda: own.shares(reports, estimate=estimate), REPEATS)
    problem = "the demo's city, 24 x 16 cells, 1 per km"
    return [
        row(
            problem,
            "500 polygons cut, and their shares with intervals of each and of all together",
            f"{cut + shared:.2f} s, {(cut + shared) / likeliest:,.0f} times mle",
            f"< {MAX_SECONDS:g} s",
            holds=cut + shared < MAX_SECONDS,
        )
    ]


def against_profile(grid: hb.Grid, truth: np.ndarray) -> dict[str, Any]:
    """Return the row that compares linear intervals of some districts with profile intervals."""
    reports = study(truth, hb.PlanarGeometric(grid, 1.0), USERS, 0)
    estimate = hb.estimate(reports)
    own = hb.regions(grid, polygons(20, 2))
    linear = own.shares(reports, estimate=estimate, method="linear")
    hb.interval(reports, own.of(own.names[0]), estimate=estimate)  # compiled
    ratios, times = [], []
    for name in own.names[:MAX_PROFILE_DISTRICTS]:
        taken, alone = seconds(lambda name=name: hb.interval(reports, own.of(name), estimate=estimate))
        wide = linear[name].confidence_high - linear[name].confidence_low
        ratios.append((alone.confidence_high - alone.confidence_low) / wide)
        times.append(taken)
    return row(
        "the demo's city, 24 x 16 cells, 1 per km",
        f"profile intervals of {len(ratios)} of 20 districts, relative to linear ones",
        f"{min(ratios):.2f} to {max(ratios):.2f} times as wide, {np.median(times):.1f} s each",
        "narrower on average",
        holds=float(np.mean(ratios)) < 1.0,
    )


def coverage(name: str, grid: hb.Grid, truth: np.ndarray, epsilon: float, users: int, runs: int) -> dict[str, Any]:
    """Return the row of one study: how often intervals hold the truth, one at a time (the worst) and together."""
    mechanism, own = hb.PlanarGeometric(grid, epsilon), hb.regions(grid, polygons(20, 2))
    true = own.weights @ truth
    held, together, widths = np.zeros(len(own)), 0, []
    for seed in range(runs):
        reports = study(truth, mechanism, users, seed)
        answer = own.shares(reports, level=LEVEL, estimate=hb.estimate(reports, "inv-n"), method="linear")
        ends = np.array([[one.confidence_low, one.confidence_high] for one in answer.rows])
        held += (ends[:, 0] - 1e-12 <= true) & (true <= ends[:, 1] + 1e-12)
        together += all(
            one.simultaneous_low - 1e-12 <= share <= one.simultaneous_high + 1e-12
            for one, share in zip(answer.rows, true, strict=True)
        )
        widths.append(float(np.median(ends[:, 1] - ends[:, 0])))
    worst, all_held = float(held.min()) / runs, together / runs
    error = 3.0 * math.sqrt(LEVEL * (1.0 - LEVEL) / runs)
    return row(
        name,
        f"20 districts hold the truth at 95%, {runs:,} studies; median width {np.median(widths):.3f}",
        f"{worst:.3f} at worst, {held.mean() / runs:.3f} on average, {all_held:.3f} all together",
        f">= {LEAST} - {error:.3f}",
        holds=min(worst, all_held) >= LEAST - error,
    )


def main() -> None:
    """Print and keep the rows."""
    given = study_parser(__doc__, 1_000).parse_args()
    city = load_city()
    grid = hb.Grid.over(south=SOUTH, west=WEST, north=NORTH, east=EAST, columns=24, rows=16)
    rows = [] if given.only else [*speed(grid, city.shares), against_profile(grid, city.shares)]
    for epsilon, users in ((1.0, 50_000), (1.0, 2_000), (2.0, 50_000)):
        name = f"the demo's city, {epsilon:g} per km, {users:,} users"
        if name.startswith(given.only or ""):
            rows.append(coverage(name, grid, city.shares, epsilon, users, given.runs))
    if not given.only:
        save("regions", rows)


if __name__ == "__main__":
    main()
