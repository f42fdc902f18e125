"""PRIVIC against planar noise: on the terms of its authors' published programs, and at equal geo-indistinguishability.

Biswas and Palamidessi, "PRIVIC: a privacy-preserving method for incremental collection of location data", 2022, and the
programs they published with it. Distances are in cells of the map, beta and epsilon per cell, as theirs (a cell is
0.5 km). Each row compares two ways to report in the same runs, all users of a map once in each:

- published: Blahut's and Arimoto's channel for the true distribution, ten iterations, against discrete Laplace noise on
  the map and five more cells on each side, with the epsilon that the channel realises; IBU, ten updates each.
- as their program measures: the same estimates, with the distances that the program takes for those of Laplace noise:
  to the first cells of the map with its margin, which are not the cells that the estimate is about.
- ten iterations, solved: the same channel, or the one with the least information, against hubbub's planar Laplace with
  the epsilon that the channel realises.
- equal loss, equal information: ten iterations, against planar Laplace with the same expected distance from a place to
  its report, or with the same mutual information of both, which is what the channel keeps small.
- last cycle: PRIVIC's loop with ten cycles of a tenth of the users, planar Laplace with 2 beta in the first and eight
  iterations in the others, its last estimate; against the same tenth of the users with planar Laplace. All cycles: all
  their reports together, against all these users with planar Laplace. Epsilon is the largest that the loop realises.

Run: python benchmarks/privic.py [--counts SAN_FRANCISCO] [--paris PARIS] [--runs 30] [--jobs 1] [--quick] [--save]
Counts of Gowalla are not ours to ship: files with the columns x, y, count. Without them the demo's city stands alone.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import wilcoxon

import hubbub as hb
from hubbub.demo import load_city
from hubbub.designing.blahut_arimoto import (
    RateDistortion,
    blahut_arimoto,
    epsilon_per_distance,
    mutual_information,
    solve_rate_distortion,
)
from hubbub.designing.privic_loop import privic
from measure import row, save, side_by_side

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

PUBLISHED_BETAS = (0.2, 0.4, 0.6, 0.8, 1.0, 2.0)  # of the 25 from 0.2 to 5 of the authors' comparison
BETAS = (0.2, 0.5, 1.0)  # 0.5 and 1 are those of the authors' runs of the loop
MIN_AUTO_BETA = 0.5
MARGIN_CELLS = 5  # around the map, for the authors' Laplace noise
UPDATES, LOOP_UPDATES, IBU_UPDATES = 9, 7, 10  # ten and eight iterations, of which the first has equal weights
CYCLES = 10  # of a tenth of the users each
MAX_P, MAX_QUICK_P = 1e-3, 0.05  # of the signed-rank test, for a difference to count as settled


@dataclass(frozen=True)
class Place:
    """A map with people in its cells."""

    name: str
    columns: int
    rows: int
    people: tuple[int, ...]

    @property
    def grid(self) -> hb.Grid:
        """The cells, with distances in cells."""
        return hb.Grid(self.columns, self.rows, cell=1.0, unit="cells")

    @property
    def counts(self) -> Counts:
        """The people of each cell."""
        return np.array(self.people, dtype=np.int64)

    @property
    def truth(self) -> Floats:
        """Their shares."""
        return np.asarray(self.counts / self.counts.sum())

    @classmethod
    def read(cls, name: str, path: Path) -> Place:
        """Read columns x, y, count; every cell is listed."""
        with path.open(encoding="utf-8") as file:
            cells = {(int(line["x"]), int(line["y"])): int(line["count"]) for line in csv.DictReader(file)}
        columns, rows = (max(cell[axis] for cell in cells) + 1 for axis in (0, 1))
        return cls(name, columns, rows, tuple(cells[x, y] for y in range(rows) for x in range(columns)))


@dataclass(frozen=True)
class Task:
    """One run, in one place with one beta."""

    place: Place
    beta: float
    run: int
    published_only: bool


@dataclass(frozen=True)
class Contenders:
    """The mechanisms of a place and a beta; they are the same in all runs."""

    grid: hb.Grid
    apart: Floats
    early: RateDistortion
    solved: RateDistortion
    mechanisms: dict[str, hb.Mechanism]
    epsilons: dict[str, float]
    losses: dict[str, float]
    outside: Floats  # distances from cells to the first cells of the map with its margin


@cache
def contenders(place: Place, beta: float) -> Contenders:
    """Compute channels, and planar noise to match."""
    grid, truth = place.grid, place.truth
    apart = grid.distances()
    early = blahut_arimoto(truth, apart, beta, tol=0.0, max_iter=UPDATES)
    solved = solve_rate_distortion(truth, apart, beta)
    realised = epsilon_per_distance(early.channel, apart)
    laplace, outside, loss = widened_laplace(place, realised)
    mechanisms: dict[str, hb.Mechanism] = {
        "BA, ten iterations": hb.Matrix(grid, grid.labels[early.outputs], early.channel),
        "BA, solved": hb.Matrix(grid, grid.labels[solved.outputs], solved.channel),
        "LAP": hb.Matrix(grid, [f"cell {place}" for place in range(laplace.shape[1])], laplace),
        "planar, ten iterations": hb.PlanarLaplace(grid, realised),
        "planar, solved": hb.PlanarLaplace(grid, epsilon_per_distance(solved.channel, apart)),
        "planar, equal loss": hb.PlanarLaplace(grid, epsilon_with(place, expected_distance, early.distortion)),
        "planar, equal information": hb.PlanarLaplace(grid, epsilon_with(place, information, early.information)),
    }
    tables = {name: mechanism.matrix() for name, mechanism in mechanisms.items()}
    losses = {
        name: loss if name == "LAP" else float(truth @ (table * apart[:, places(mechanisms[name])]).sum(axis=1))
        for name, table in tables.items()
    }
    epsilons = {name: epsilon_per_distance(table, apart) for name, table in tables.items()}
    return Contenders(grid, apart, early, solved, mechanisms, epsilons, losses, outside)


def places(mechanism: hb.Mechanism) -> Counts:
    """Return the cells that the outputs of a mechanism are, where they are cells."""
    outputs = mechanism.outputs
    cells = outputs if outputs is not None and outputs.dtype.kind == "i" else np.zeros(0)
    return np.asarray(cells, dtype=np.int64)


def widened_laplace(place: Place, epsilon: float) -> tuple[Floats, Floats, float]:
    """Return the authors' Laplace noise: exp(-epsilon d) on the map and its margin, each row divided by its sum.

    Also the distances that their program measures its estimates with: from the cells of the map to as many first cells
    of the map with its margin, in their order (rows from one edge), which are other cells. And the expected distance.
    """
    wide = np.stack(
        np.meshgrid(
            np.arange(-MARGIN_CELLS, place.rows + MARGIN_CELLS),
            np.arange(-MARGIN_CELLS, place.columns + MARGIN_CELLS),
            indexing="ij",
        ),
        axis=-1,
    ).reshape(-1, 2)
    cells = np.stack(np.divmod(np.arange(place.rows * place.columns), place.columns), axis=1)
    apart = np.hypot(*(cells[:, None, :] - wide[None, :, :]).transpose(2, 0, 1))
    table = np.exp(-epsilon * apart)
    table /= table.sum(axis=1, keepdims=True)
    return table, apart[:, : len(cells)], float(place.truth @ (table * apart).sum(axis=1))


def epsilon_with(place: Place, quantity: Callable[[Place, Floats], float], wanted: float) -> float:
    """Return the epsilon with which a quantity of planar Laplace's matrix is as wanted."""

    def excess(log_epsilon: float) -> float:
        return quantity(place, hb.PlanarLaplace(place.grid, float(np.exp(log_epsilon))).matrix()) - wanted

    return float(np.exp(brentq(excess, np.log(0.01), np.log(50.0), xtol=1e-4)))


def expected_distance(place: Place, table: Floats) -> float:
    """Return the expected distance from a place to its report, where the outputs are all cells."""
    return float(place.truth @ (table * place.grid.distances()).sum(axis=1))


def information(place: Place, table: Floats) -> float:
    """Return the mutual information of a place and its report, in nats."""
    return mutual_information(place.truth, table)


def report(mechanism: hb.Mechanism, counts: Counts, rng: np.random.Generator) -> hb.Reports:
    """Simulate one report of everybody."""
    table = mechanism.matrix()
    sent = sum(rng.multinomial(people, chances) for people, chances in zip(counts, table, strict=True) if people)
    return hb.Reports.from_counts(mechanism, sent)


def one_run(task: Task) -> dict[str, Any]:
    """Return all errors of a run: block, method, contender, EMD and TV."""
    place, beta = task.place, task.beta
    ready = contenders(place, beta)
    rng = np.random.default_rng([17, round(1000 * beta), task.run, len(place.people)])
    errors: list[tuple[str, str, str, float, float]] = []

    def judge(block: str, method: str, name: str, estimate: hb.Estimate, truth: Floats) -> None:
        shares = estimate.probabilities
        emd = hb.earth_mover_distance(truth, shares, ready.grid)
        errors.append((block, method, name, emd, hb.total_variation(truth, shares)))

    reports = {name: report(mechanism, place.counts, rng) for name, mechanism in ready.mechanisms.items()}
    for name, published in (("BA, ten iterations", "BA"), ("LAP", "planar")):
        shares = hb.estimate(reports[name], "ibu", max_iter=IBU_UPDATES, delta=1e-12)
        judge("published", "ibu, ten updates", published, shares, place.truth)
    misplaced = transport(place.truth, shares.probabilities, ready.outside)
    errors.append(("as their program measures", "ibu, ten updates", "planar", misplaced, np.nan))
    errors.append(("as their program measures", "ibu, ten updates", "BA", *errors[0][3:]))
    if not task.published_only:
        methods = ("ibu", "auto") if beta >= MIN_AUTO_BETA else ("ibu",)
        for method in methods:
            early = hb.estimate(reports["BA, ten iterations"], method)
            for block in ("ten iterations", "equal loss", "equal information"):
                judge(block, method, "BA", early, place.truth)
                judge(block, method, "planar", hb.estimate(reports[f"planar, {block}"], method), place.truth)
        for name in ("BA", "planar"):
            judge("solved", "ibu", name, hb.estimate(reports[f"{name}, solved"], "ibu"), place.truth)
        for block, method, name, estimate, truth in loops(place, beta, rng, methods):
            judge(block, method, name, estimate, truth)
    return {"place": place.name, "beta": beta, "run": task.run, "errors": errors}


def transport(first: Floats, second: Floats, costs: Floats) -> float:
    """Return the cost of the best way to turn one distribution into another."""
    import ot

    return float(
        ot.emd2(first / first.sum(), second / second.sum(), np.ascontiguousarray(costs), numItermax=10_000_000)
    )


def loops(
    place: Place, beta: float, rng: np.random.Generator, methods: tuple[str, ...]
) -> list[tuple[str, str, str, hb.Estimate, Floats]]:
    """Return estimates of PRIVIC's loop, of its last cycle and of all of them, and of planar noise by the same people.

    The truth is that of the people who report, as the authors have it.
    """
    left, size = place.counts, int(place.counts.sum()) // CYCLES
    groups: list[Counts] = []
    sent: list[hb.Reports] = []

    def collect(mechanism: hb.Mechanism) -> hb.Reports:
        nonlocal left
        groups.append(rng.multivariate_hypergeometric(left, size, method="marginals"))
        left = left - groups[-1]
        sent.append(report(mechanism, groups[-1], rng))
        return sent[-1]

    first = hb.PlanarLaplace(place.grid, 2.0 * beta)
    run = privic(place.grid, beta, collect, cycles=CYCLES, updates=LOOP_UPDATES, first=first)
    noise = hb.PlanarLaplace(place.grid, run.epsilon)
    everybody = np.sum(groups, axis=0)
    pooled = sent[0]
    for more in sent[1:]:
        pooled = pooled + more
    alone = [report(noise, people, rng) for people in (groups[-1], everybody)]
    last, whole = groups[-1] / groups[-1].sum(), everybody / everybody.sum()
    estimates = [
        ("last cycle", "ibu", "BA", run.estimate, last),
        ("last cycle", "ibu", "planar", hb.estimate(alone[0], "ibu"), last),
    ]
    for method in methods:
        estimates.append(("all cycles", method, "BA", hb.estimate(pooled, method), whole))
        estimates.append(("all cycles", method, "planar", hb.estimate(alone[1], method), whole))
    return estimates


def mechanism_rows(place: Place, beta: float) -> list[dict[str, Any]]:
    """Return what the matrices themselves say: outputs, realised epsilon, expected distance, information."""
    ready, rows = contenders(place, beta), []
    for name, mechanism in ready.mechanisms.items():
        table = mechanism.matrix()
        told = information(place, table)
        epsilon = ready.epsilons[name]
        rows.append(
            row(
                f"{place.name}, beta {beta:g}: {name}",
                "outputs of values / epsilon per cell / expected cells to the report / nats told",
                f"{table.shape[1]} of {table.shape[0]} / {epsilon:.4f} / {ready.losses[name]:.3f} / {told:.3f}",
                "epsilon of channels up to 2 beta",
                holds=not name.startswith("BA") or epsilon <= 2.0 * beta * (1 + 1e-9),
            )
        )
    return rows


def comparison_rows(results: list[dict[str, Any]], max_p: float) -> list[dict[str, Any]]:
    """Return medians, paired differences and signed-rank tests of all comparisons."""
    cells: dict[tuple[str, float, str, str], dict[str, dict[int, tuple[float, float]]]] = {}
    for one in results:
        for block, method, name, emd, tv in one["errors"]:
            key = (one["place"], one["beta"], block, method)
            cells.setdefault(key, defaultdict(dict))[name][one["run"]] = (emd, tv)
    rows = []
    for (place, beta, block, method), errors in sorted(cells.items(), key=lambda cell: cell[0][:2]):
        runs = sorted(errors["BA"])
        for column, measure in enumerate(("EMD, cells", "TV")):
            channel, noise = (np.array([errors[name][run][column] for run in runs]) for name in ("BA", "planar"))
            if np.isnan(noise).any():
                continue
            more = channel - noise
            p = float(wilcoxon(more).pvalue) if np.any(more) else 1.0
            rows.append(
                row(
                    f"{place}, beta {beta:g}: {block}, {method}, {measure}",
                    "median of BA / of planar noise / of their difference / planar nearer / p",
                    f"{np.median(channel):.4f} / {np.median(noise):.4f} / {np.median(more):+.4f} / "
                    f"{int((more > 0).sum())} of {len(runs)} / {p:.1e}",
                    f"settled: p up to {max_p:g}",
                    holds=p <= max_p,
                )
            )
    return rows


def is_kept(line: dict[str, Any]) -> bool:
    """Whether a row is one of those that the page of benchmarks has room for: the middle beta, and the largest."""
    problem = str(line["problem"])
    if not any(f"beta {beta:g}: " in problem for beta in (0.5, 1.0)) or "as their program" in problem:
        return False
    if ", EMD" in problem or ", TV" in problem:
        return True
    return "beta 1: " in problem and "LAP" not in problem


def main() -> None:
    """Print the rows, and keep them where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--counts", type=Path, help="the paper's counts of San Francisco: columns x, y, count")
    parser.add_argument("--paris", type=Path, help="the paper's counts of Paris: columns x, y, count")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="six runs, one beta")
    parser.add_argument("--save", action="store_true", help="keep the rows for docs/reference/benchmarks.md")
    parser.add_argument(
        "--raw",
        type=Path,
        help="a file that keeps the errors of all runs, as JSON lines: those it has are not repeated",
    )
    chosen = parser.parse_args()
    grid = load_city().grid
    towns = [Place("fictional city", grid.columns, grid.rows, tuple(load_city().people.tolist()))]
    if chosen.counts is not None:
        towns.append(Place.read("San Francisco", chosen.counts))
    if chosen.paris is not None:
        towns.append(Place.read("Paris", chosen.paris))
    runs = min(chosen.runs, 6) if chosen.quick else chosen.runs
    betas = (1.0,) if chosen.quick else tuple(sorted({*PUBLISHED_BETAS, *BETAS}))
    tasks = [Task(town, beta, run, beta not in BETAS) for run in range(runs) for town in towns for beta in betas]
    kept = chosen.raw is not None and chosen.raw.exists()
    results = [json.loads(line) for line in chosen.raw.read_text().splitlines()] if kept else []
    done = {(found["place"], found["beta"], found["run"]) for found in results}
    tasks = [task for task in tasks if (task.place.name, task.beta, task.run) not in done]
    for found in side_by_side(one_run, tasks, chosen.jobs, "PRIVIC") if tasks else ():
        results.append(found)
        if chosen.raw is not None:
            with chosen.raw.open("a", encoding="utf-8") as file:
                file.write(json.dumps(found) + "\n")
    rows = [line for town in towns for beta in betas for line in mechanism_rows(town, beta)]
    rows += comparison_rows(results, MAX_QUICK_P if chosen.quick else MAX_P)
    if chosen.save:
        save("privic", [line for line in rows if is_kept(line)])


if __name__ == "__main__":
    main()
