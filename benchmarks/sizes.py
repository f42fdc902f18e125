"""What a certified maximum costs as domains and crowds grow: seconds and memory, as a picture.

Run: python benchmarks/sizes.py
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

import hubbub as hb
from measure import apart, row, save, seconds

PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "benchmarks.png"
DOMAINS = (100, 1_000, 10_000, 100_000, 1_000_000)
CROWDS = tuple(10**power for power in range(3, 10))
SIDES = (10, 32, 100, 316)


def line(size: int, users: int) -> hb.Reports:
    """Binomial values with truncated geometric noise that reaches a hundredth of the line."""
    mechanism = hb.TruncatedGeometric(hb.Integers(0, size - 1), 100.0 / size)
    rng = np.random.default_rng(0)
    return hb.Reports.from_outputs(mechanism, mechanism.privatize(rng.binomial(size - 1, 0.5, users), rng=rng))


def response(size: int, users: int) -> hb.Reports:
    """Randomized response, epsilon 5."""
    rng = np.random.default_rng(0)
    mechanism = hb.RandomizedResponse(hb.Integers(0, size - 1), 5.0)
    truth = rng.multinomial(users, rng.dirichlet(np.full(size, 0.3)))
    own, other = mechanism.support
    kept = rng.binomial(truth, own - other)
    return hb.Reports.from_counts(mechanism, kept + rng.multinomial(users - kept.sum(), np.full(size, 1.0 / size)))


def plane(side: int, users: int) -> hb.Reports:
    """Planar geometric noise of ten cells on a square grid."""
    rng = np.random.default_rng(0)
    mechanism = hb.PlanarGeometric(hb.Grid(side, side, cell=0.1), 2.0)
    places = np.clip(np.rint(rng.normal(side / 2, side / 8, (users, 2))), 0, side - 1).astype(np.int64)
    return hb.Reports.from_outputs(mechanism, mechanism.privatize(places[:, 1] * side + places[:, 0], rng=rng))


def crowd(size: int, users: int) -> hb.Reports:
    """Draw the counts of a line at once, as many users as there may be."""
    mechanism = hb.TruncatedGeometric(hb.Integers(0, size - 1), 0.1)
    rng = np.random.default_rng(0)
    truth = rng.multinomial(users, rng.dirichlet(np.full(size, 5.0)))
    counts = sum(rng.multinomial(int(many), p) for many, p in zip(truth, mechanism.matrix(), strict=True))
    return hb.Reports.from_counts(mechanism, counts)


KINDS: dict[str, Callable[[int, int], hb.Reports]] = {"line": line, "k-RR": response, "plane": plane, "crowd": crowd}


def cost(kind: str, size: int, users: int) -> dict[str, Any]:
    """Solve once to warm up where that is quick, then measure."""
    reports = KINDS[kind](size, users)
    spent, found = seconds(lambda: hb.estimate(reports, method="mle"))
    if spent < 2.0:
        spent, found = seconds(lambda: hb.estimate(reports, method="mle"), 3)
    return {"seconds": spent, "gap": found.gap, "solver": found.settings["solver"], "converged": found.converged}


def main() -> None:
    """Measure, draw and keep the rows."""
    rows, points = [], []
    for kind, sizes, users in (
        ("line", DOMAINS, (1_000_000,)),
        ("k-RR", DOMAINS, (10_000_000,)),
        ("plane", SIDES, (1_000_000,)),
        ("crowd", (100,), CROWDS),
    ):
        for size in sizes:
            for many in users:
                found = apart(cost, kind, size, many)
                values = size**2 if kind == "plane" else size
                points.append({"kind": kind, "values": values, "users": many, **found})
                rows.append(
                    row(
                        f"{kind}, {values:,} values, {many:,} users",
                        f"mle ({found['solver']})",
                        f"gap {found['gap']:.0e} in {found['seconds']:.3g} s, peak {found['peak MiB']:.0f} MiB",
                        "shown",
                        holds=bool(found["converged"]),
                    )
                )
    save("sizes", rows)
    draw(points)


def draw(points: list[dict[str, Any]]) -> None:
    """Draw seconds and memory on logarithmic axes."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    names = {
        "line": "line, truncated geometric, 1e6 users",
        "k-RR": "k-RR, 1e7 users",
        "plane": "grid, planar geometric, 1e6 users",
    }
    figure, axes = plt.subplots(2, 2, figsize=(9, 6), sharey="row", sharex="col", layout="constrained")
    for kind, name in names.items():
        own = [point for point in points if point["kind"] == kind]
        for axis, what in zip(axes[:, 0], ("seconds", "peak MiB"), strict=True):
            axis.loglog([p["values"] for p in own], [p[what] for p in own], "o-", label=name)
    own = [point for point in points if point["kind"] == "crowd"]
    for axis, what in zip(axes[:, 1], ("seconds", "peak MiB"), strict=True):
        axis.loglog(
            [p["users"] for p in own], [p[what] for p in own], "o-", color="C3", label="line of 100 values, counts"
        )
    for axis in axes.flat:
        axis.grid(visible=True, alpha=0.3)
    axes[0, 0].set_ylabel("seconds to a certified maximum")
    axes[1, 0].set_ylabel("peak memory of the process, MiB")
    axes[1, 0].set_xlabel("values of the domain")
    axes[1, 1].set_xlabel("users")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), fontsize=8, loc="outside lower left")
    figure.legend(*axes[0, 1].get_legend_handles_labels(), fontsize=8, loc="outside lower right")
    figure.suptitle('hubbub.estimate(reports, method="mle"), gap at most 1e-9 nats per user')
    figure.savefig(PICTURE, dpi=110)


if __name__ == "__main__":
    main()
