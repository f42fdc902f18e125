"""Local hashing (OLH), 1,000 values, 1,000,000 users: sets as bits where they fit, hashed on the fly where not.

Run: python benchmarks/hashing.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import hubbub as hb
from hubbub.mechanisms import local_hashing as hashing
from measure import apart, row, save, seconds

VALUES, USERS, EPSILON = 1_000, 1_000_000, 2.0


def solve(fly: bool, method: str) -> dict[str, Any]:
    """Collect and estimate, in a process of its own."""
    if fly:
        hashing.MAX_SET_BITS = 0
    rng = np.random.default_rng(0)
    mechanism = hb.LocalHashing(hb.Integers(0, VALUES - 1), EPSILON)
    truth = np.minimum(rng.geometric(0.01, USERS), VALUES) - 1
    reports = hb.Reports.from_outputs(mechanism, mechanism.privatize(truth, rng=rng))
    built, channel = seconds(lambda: reports.channel)
    hb.estimate(reports, method="ibu", max_iter=1)
    keywords: dict[str, Any] = {"tol": 1e-6} if method == "mle" else {"max_iter": 3}
    spent, found = seconds(lambda: hb.estimate(reports, method=method, **keywords))
    update, _ = seconds(lambda: hb.estimate(reports, method="ibu", max_iter=1), 3)
    return {
        "built": built,
        "update": update,
        "seconds": spent,
        "status": found.status,
        "gap": found.gap,
        "channel": type(channel).__name__,
        "how": f"{found.settings['solver']}, {found.iterations} iterations",
    }


def main() -> None:
    """Print and keep the rows."""
    problem = f"OLH, {VALUES:,} values, {USERS:,} users"
    dense = 8 * VALUES * USERS / 2**20
    rows = []
    bits, fly = apart(solve, False, "mle"), apart(solve, True, "ibu")
    rows += [
        row(
            problem,
            f"per-report mle ({bits['how']}; {bits['channel']})",
            f"{bits['status']} in {bits['seconds']:.1f} s",
            "solved to 1e-6",
            holds=bits["gap"] <= 1e-6,
        ),
        row(
            problem,
            "sets of 1e6 seeds as bits (125 MB)",
            f"{bits['built']:.2f} s once, then {bits['update']:.2f} s an update",
            "materialised where they fit",
            holds=bits["channel"] == "BitSetChannel",
        ),
        row(
            problem,
            "hashed on the fly",
            f"{fly['update']:.2f} s an update, peak {fly['peak MiB']:.0f} MiB",
            "rehashed where not",
            holds=fly["channel"] == "HashedSetChannel",
        ),
        row(
            problem,
            "peak memory / a matrix of floats",
            f"{bits['peak MiB']:.0f} / {dense:,.0f} MiB",
            "never a matrix of floats",
            holds=bits["peak MiB"] < dense / 10,
        ),
    ]
    save("hashing", rows)


if __name__ == "__main__":
    main()
