"""The epsilon that real reports have: proven for two hundred random sets of parameters of every mechanism.

Epsilons run from 0.01 to 20 and domains from 2 to 1,000 values; fewer where every pair of values has its own exact
ratios and two hundred sets would take an hour. Proven means that the largest ratio of all pairs of values and all
outputs, computed from the whole numbers that are drawn from, is at most exp(epsilon d), without a tolerance.

Run: python benchmarks/epsilon.py [--sets N]
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import hubbub as hb
from hubbub.auditing.exact_epsilon import prove_epsilon, prove_one_report_epsilon
from measure import row, save

sys.path.append(str(Path(__file__).parent.parent / "tests"))  # the tests draw such parameters, too

from test_exact import KINDS, epsilon, grid  # type: ignore[import-not-found]

SMALLER = {"exponential on a map": 400, "planar laplace": 400, "planar geometric": 250, "laplace on uneven bins": 300}


def built(kind: str, seed: int) -> hb.Mechanism:
    """Return one mechanism with random parameters."""
    rng = np.random.default_rng([seed, 71])
    if kind != "planar laplace":
        mechanism: hb.Mechanism = KINDS[kind](rng, SMALLER.get(kind, 1000))
        return mechanism
    domain = grid(rng, SMALLER[kind])
    return hb.PlanarLaplace(hb.Grid(domain.columns, domain.rows, cell=domain.sides), epsilon(rng))


def proven(kind: str, sets: int) -> dict[str, Any]:
    """Return how many sets of parameters of one kind are proven."""
    held, refused, closest, largest = 0, 0, 0.0, 0
    for seed in range(sets):
        try:
            mechanism = built(kind, seed)
            found = prove_epsilon(mechanism)
        except hb.MechanismError:  # what cannot be drawn exactly is refused, and told
            refused += 1
            continue
        once = prove_one_report_epsilon(mechanism)
        held += found.holds and (once is None or once.holds)
        closest = max(closest, float(found.high) / mechanism.epsilon if mechanism.epsilon else 0.0)
        largest = max(largest, len(mechanism.domain))
    return row(
        f"{kind}, {sets} sets, up to {largest} values",
        "proven, refused; realised over claimed epsilon at most",
        f"{held}, {refused}; {closest:.12f}",
        "none that breaks its claim",
        holds=held + refused == sets and held > 0.8 * sets,
    )


def main() -> None:
    """Prove, and keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sets", type=int, default=200)
    sets = parser.parse_args().sets
    rows = []
    for kind in KINDS:
        start = time.perf_counter()
        rows.append(proven(kind, sets))
        print(f"  {time.perf_counter() - start:.0f} s", flush=True)
    save("epsilon", rows)


if __name__ == "__main__":
    main()
