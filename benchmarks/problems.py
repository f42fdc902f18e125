"""The problems that several benchmarks share, as reports or as a bare likelihood matrix with counts.

San Francisco needs the paper's counts, which are not ours to ship: name the file (columns x, y, count) with
`--counts`, or the benchmarks use the fictional city of the demo, on the same 24 x 16 cells.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

import hubbub as hb
from hubbub.demo.city import load_city

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """Reports to estimate from, and the same as a matrix (values by patterns) with the number of users of each."""

    name: str
    reports: hb.Reports
    matrix: Floats
    counts: Floats


def line(size: int, users: int = 100_000, seed: int = 0) -> Problem:
    """Binomial values on 0 .. size - 1 with truncated geometric noise that reaches a tenth of the line."""
    rng = np.random.default_rng(seed)
    mechanism = hb.TruncatedGeometric(hb.Integers(0, size - 1), 10.0 / size)
    reports = hb.Reports.from_outputs(mechanism, mechanism.privatize(rng.binomial(size - 1, 0.5, users), rng=rng))
    return _problem(f"line {size} x {size}", mechanism, reports)


def comb(size: int, users: int = 100_000, seed: int = 0) -> Problem:
    """Every fourth value of 0 .. size - 1 is equally frequent, the others never occur; geometric noise blurs them."""
    rng = np.random.default_rng(seed)
    mechanism = hb.TruncatedGeometric(hb.Integers(0, size - 1), 1.0)
    values = rng.choice(np.arange(0, size, 4), users)
    return _problem(
        f"comb {size} x {size}", mechanism, hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng))
    )


def city(counts: Path | None = None, epsilon: float = 1.0, seed: int = 0) -> Problem:
    """Planar geometric noise, epsilon per kilometre, on 24 x 16 cells."""
    rng = np.random.default_rng(seed)
    grid, people = residents(counts)
    name = "fictional city" if counts is None else "San Francisco"
    mechanism = hb.PlanarGeometric(grid, epsilon)
    reports = hb.Reports.from_outputs(mechanism, mechanism.privatize(np.repeat(grid.labels, people), rng=rng))
    return _problem(f"{name} 384 x 384", mechanism, reports)


def residents(counts: Path | None = None) -> tuple[hb.Grid, NDArray[np.int64]]:
    """Return the map, and how many people are in each cell."""
    if counts is None:
        return load_city().grid, load_city().people
    grid = hb.Grid.over(south=37.7228, west=-122.5153, north=37.7946, east=-122.3789, columns=24, rows=16)
    people = np.zeros(len(grid), dtype=np.int64)
    with counts.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            people[grid.cell(int(row["x"]), int(row["y"]))] = int(row["count"])
    return grid, people


def normal_mixture(components: int = 200, points: int = 20_000, seed: int = 0) -> Problem:
    """Points from a mixture of normal distributions with mean 0, whose deviation is one of `components`.

    Each point is an output of its own, sent once: a likelihood matrix of 200 x 20,000 without structure.
    """
    rng = np.random.default_rng(seed)
    spread = np.where(rng.random(points) < 0.6, 0.3, np.where(rng.random(points) < 0.7, 1.5, 4.0))
    draws = rng.normal(0.0, np.hypot(1.0, spread))
    deviations = np.hypot(1.0, np.geomspace(0.05, 12.0, components))
    density = norm.pdf(draws[None, :], scale=deviations[:, None])
    # Reports need a stochastic matrix: a factor for each point changes no estimate, and what is left over
    # goes to an output that nobody sends.
    density /= density.max(axis=0)
    rows = density / (1.01 * density.sum(axis=1).max())
    table = np.concatenate([rows, 1.0 - rows.sum(axis=1, keepdims=True)], axis=1)
    mechanism = hb.Matrix(hb.Integers(0, components - 1), np.arange(points + 1), table)
    reports = hb.Reports.from_counts(mechanism, np.append(np.ones(points, dtype=np.int64), 0))
    return Problem(f"normal mixture {components} x {points:,}", reports, rows, np.ones(points))


def _problem(name: str, mechanism: hb.Mechanism, reports: hb.Reports) -> Problem:
    matrix = mechanism.matrix()
    counts = np.zeros(matrix.shape[1])
    for block in reports.blocks:
        counts[block.codes] = block.weights  # type: ignore[attr-defined]
    return Problem(name, reports, matrix, counts)


def gap(problem: Problem, probabilities: Floats) -> float:
    """Return the certified gap of anybody's answer, in nats per user, computed from the bare matrix."""
    theta = np.maximum(probabilities, 0.0)
    theta = theta / theta.sum()
    sent = problem.counts > 0
    fitted = theta @ problem.matrix[:, sent]
    return float(np.log(np.max(problem.matrix[:, sent] @ (problem.counts[sent] / fitted)) / problem.counts.sum()))
