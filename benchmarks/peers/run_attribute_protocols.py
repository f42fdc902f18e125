"""Run multi-freq-ldpy's clients and aggregators on a problem: python run_attribute_protocols.py FOLDER.

The folder has `problem.npz`: `values` (users by attributes), `reports` that another simulator drew (-1 for an attribute
that was not sent), `sides`, `epsilon` and `way` (SPL, SMP or RSpFD). It receives `answer.npz`: `reports` that the
clients here drew, and `shares0`, `shares1`, ... that the aggregator finds from the other simulator's reports.
"""

from __future__ import annotations

import importlib
import sys
import types
from pathlib import Path

import numba
import numpy as np

SEED = 11

# Its hashing needs a package that nothing here calls.
sys.modules.setdefault("xxhash", types.ModuleType("xxhash"))


@numba.njit
def seed_compiled(seed: int) -> None:
    """Seed the generator of compiled code, which is not the one of NumPy."""
    np.random.seed(seed)  # noqa: NPY002


def main() -> None:
    """Read the problem, write the answer."""
    folder = Path(sys.argv[1])
    problem = np.load(folder / "problem.npz")
    way, epsilon = str(problem["way"]), float(problem["epsilon"])
    sides = [int(side) for side in problem["sides"]]
    module = importlib.import_module(f"multi_freq_ldpy.mdim_freq_est.{way}_solution")
    client, aggregator = (getattr(module, f"{way}_GRR_{role}") for role in ("Client", "Aggregator_MI"))
    np.random.seed(SEED)  # noqa: NPY002  # it draws from global generators
    seed_compiled(SEED)
    drawn = np.full((len(problem["values"]), len(sides)), -1, dtype=np.int64)
    for place, value in enumerate(problem["values"].tolist()):
        sent = client(value, sides, len(sides), epsilon)
        if way == "SMP":
            drawn[place, sent[0]] = sent[1]
        else:
            drawn[place] = sent
    given = problem["reports"].tolist()
    if way == "SMP":
        given = [next((place, entry) for place, entry in enumerate(line) if entry >= 0) for line in given]
    shares = aggregator(given, sides, len(sides), epsilon)
    found = {f"shares{place}": np.asarray(own, dtype=np.float64) for place, own in enumerate(shares)}
    np.savez(folder / "answer.npz", reports=drawn, **found)


if __name__ == "__main__":
    main()
