"""RAPPOR, 1,000 values, 1,000,000 users: packed bits against dense float32 products, memory, and the maximum.

Run: python benchmarks/unary.py
"""

from __future__ import annotations

import gc
from typing import Any

import numpy as np

import hubbub as hb
from hubbub.likelihood import Likelihood
from hubbub.reports import Singles
from measure import apart, in_turn, row, save, seconds

VALUES, USERS, EPSILON = 1_000, 1_000_000, 2.0


def collect() -> hb.Reports:
    """Simulate the reports of users with a skewed distribution."""
    rng = np.random.default_rng(0)
    mechanism = hb.Rappor(hb.Integers(0, VALUES - 1), EPSILON)
    truth = np.minimum(rng.geometric(0.01, USERS), VALUES) - 1
    return hb.Reports.from_outputs(mechanism, mechanism.privatize(truth, rng=rng))


def packed() -> dict[str, Any]:
    """Collect, run EM updates and solve, in a process of its own: its peak memory holds the reports, too."""
    reports = collect()
    first, _ = seconds(lambda: hb.estimate(reports, method="ibu", max_iter=1))
    spent, found = seconds(lambda: hb.estimate(reports, method="mle", tol=1e-6))
    return {
        "first": first,
        "mle": spent,
        "gap": found.gap,
        "status": found.status,
        "how": f"{found.settings['solver']}, {found.settings.get('linear algebra', '')}, {found.iterations} iterations",
    }


def side_by_side() -> dict[str, Any]:
    """Time EM updates of both kinds, and check that they agree.

    Ours are timed before the dense matrix is built and after it is gone: beside four gigabytes that have just been
    written and read, everything else is slower.
    """
    reports = collect()
    likelihood = Likelihood.of(reports)
    start = np.full(VALUES, 1.0 / VALUES)

    def ours() -> Any:
        return likelihood.at(start).update

    mine = ours()
    before = in_turn([ours], 9)[0]
    dense, other = dense_updates(reports, likelihood.shares, start)
    gc.collect()
    after = in_turn([ours], 9)[0]
    return {"ours": (before + after) / 2, "dense": dense, "differ": float(np.abs(mine - other / other.sum()).max())}


def dense_updates(reports: hb.Reports, shares: Any, start: Any) -> tuple[float, Any]:
    """Return the seconds of an update by products with a float32 matrix of the same bits, and its result."""
    block = reports.blocks[0]
    assert isinstance(block, Singles)  # noqa: S101
    bits = np.unpackbits(block.codes, axis=1, count=VALUES)
    matrix = np.empty((VALUES, USERS), dtype=np.float32)
    for value in range(VALUES):
        matrix[value] = np.where(bits[:, value], 1.0, np.exp(-EPSILON))
    del bits
    single, theta = shares.astype(np.float32), start.astype(np.float32)

    def update() -> Any:
        return theta * (matrix @ (single / (theta @ matrix)))

    found = update()
    return in_turn([update], 9)[0], found


def main() -> None:
    """Print and keep the rows."""
    problem = f"RAPPOR, {VALUES:,} values, {USERS:,} users"
    alone, both = apart(packed), apart(side_by_side)
    kept, floats = (VALUES + 7) // 8 * USERS / 1e6, 4 * VALUES * USERS / 1e6
    rows = [
        row(
            problem,
            "EM update: dense float32 / packed bits",
            f"{both['dense']:.2f} / {both['ours']:.2f} s = {both['dense'] / both['ours']:.1f}",
            ">= 2 times",
            holds=both["dense"] >= 2 * both["ours"],
        ),
        row(
            problem,
            "bits kept / dense float32 matrix",
            f"{kept:,.0f} / {floats:,.0f} MB",
            "1/25",
            holds=25 * kept <= floats,
        ),
        row(
            problem,
            "peak memory: collecting, EM and mle",
            f"{alone['peak MiB']:.0f} MiB",
            "under 400 MiB",
            holds=alone["peak MiB"] < 400,
        ),
        row(
            problem,
            f"mle ({alone['how']})",
            f"{alone['status']} in {alone['mle']:.1f} s",
            "solved to 1e-6",
            holds=alone["gap"] <= 1e-6,
        ),
        row(problem, "first EM update of a process, kernels read", f"{alone['first']:.2f} s", "shown", holds=True),
        row(
            problem,
            "largest difference of one update",
            f"{both['differ']:.0e}",
            "float32 rounding",
            holds=both["differ"] < 1e-5,
        ),
    ]
    save("unary", rows)


if __name__ == "__main__":
    main()
