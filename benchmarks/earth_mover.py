"""How long an exact earth mover's distance takes: moving only the difference, against moving all mass.

Run: python benchmarks/earth_mover.py
"""

from __future__ import annotations

import time

import numpy as np
import ot

import hubbub as hb


def seconds(function: object, repeats: int) -> tuple[float, float]:
    """Return the median time and the last result."""
    times, result = [], 0.0
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()  # type: ignore[operator]
        times.append(time.perf_counter() - start)
    return float(np.median(times)), result


def main() -> None:
    """Print one line for each problem."""
    rng = np.random.default_rng(1)
    grid = hb.Grid(24, 16)
    truth, other = rng.dirichlet(np.full(384, 0.3), size=2)
    distances = grid.distances()
    hb.earth_mover_distance(truth, other, grid)  # loads the solver
    print(f"{'problem':<32}{'only the difference':>22}{'all mass':>14}{'ratio':>8}  result")
    for name, q in (("24 x 16, unrelated", other), ("24 x 16, 90% in common", 0.9 * truth + 0.1 * other)):
        ours, value = seconds(lambda q=q: hb.earth_mover_distance(truth, q, grid), 9)
        whole, check = seconds(lambda q=q: ot.emd2(truth, q, distances, numItermax=10_000_000), 9)
        show(
            name,
            ours,
            f"{1000 * whole:.1f} ms",
            f"{whole / ours:.1f}",
            f"{value:.4f} km, agree to {abs(value - check):.0e}",
        )
    large = hb.Grid(512, 512)
    p = rng.dirichlet(np.full(len(large), 0.5))
    for moved in (500, 2000, 4000):
        q = p.copy()
        cells = rng.choice(len(large), size=moved, replace=False)
        q[cells] = rng.permutation(q[cells])
        took, value = seconds(lambda q=q: hb.earth_mover_distance(p, q, large), 1)
        show(f"512 x 512, {moved:,} cells differ", took, "does not fit", "", f"{value:.3e} km")


def show(problem: str, ours: float, whole: str, ratio: str, result: str) -> None:
    """Print one line of the table."""
    print(f"{problem:<32}{1000 * ours:>19.1f} ms{whole:>14}{ratio:>8}  {result}")


if __name__ == "__main__":
    main()
