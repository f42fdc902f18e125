"""Draw docs/pictures/error_probability.png: how often one value is guessed wrongly, against the reports sent.

Run from the repository's root; the seeds are fixed. Dots are simulated guesses, lines are the two bounds of
`hubbub.auditing.error_probability_bounds`.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

import hubbub as hb
from hubbub.auditing.error_probability_bounds import error_probability
from hubbub.core.arrays import Floats

TARGET = Path("docs/pictures/error_probability.png")
USERS = 20_000  # simulated for each value and number of reports: shares below about 1e-4 cannot be seen
LOWEST = 1e-5  # of the picture
COUNTS = np.unique(np.geomspace(1, 1000, 150).round().astype(int))
SIMULATED = np.unique(np.geomspace(1, 120, 13).round().astype(int))
BLACK, BLUE, VERMILION = "#000000", "#0072b2", "#d55e00"  # of the colour-blind-safe palette of Okabe and Ito

FIVE = hb.Integers(1, 5)
PAIRED = [[0.6, 0.2, 0.2], [0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6], [0.3, 0.1, 0.6]]
CASES = [
    ("k-RR, 5 values, ε = 1.5", hb.RandomizedResponse(FIVE, 1.5)),
    ("truncated geometric, 5 values, ε = 0.8", hb.TruncatedGeometric(FIVE, 0.8)),
    ("a matrix with two equal rows", hb.Matrix(FIVE, ["a", "b", "c"], PAIRED)),
]


def simulated(mechanism: hb.Mechanism, count: int) -> float:
    """Return the share of wrong guesses for the worst true value."""
    worst = 0.0
    for position, value in enumerate(mechanism.domain.labels):
        sums = np.zeros((len(mechanism.domain), USERS))
        for report in range(count):
            outputs = mechanism.privatize(np.full(USERS, value), rng=1_000 * count + report)
            sums += mechanism.channel(outputs).log_dense()
        best = sums >= sums.max(axis=0) - 1e-9  # equally likely up to rounding
        right: Floats = best[position] / best.sum(axis=0)
        worst = max(worst, 1.0 - float(right.mean()))
    return worst


def main() -> None:
    """Draw the three panels."""
    figure, panels = plt.subplots(1, 3, figsize=(11, 3.9), layout="constrained")
    for axes, (title, mechanism) in zip(panels, CASES, strict=True):
        for bound, colour, style, label in (
            ("union", BLUE, "-", "union bound"),
            ("types", VERMILION, "--", "bound by types (the paper's rate)"),
        ):
            axes.plot(COUNTS, error_probability(mechanism, COUNTS, bound=bound), style, color=colour, lw=2, label=label)
        shares = np.array([simulated(mechanism, int(count)) for count in SIMULATED])
        seen = shares > 2 / USERS  # a few wrong guesses at least
        axes.plot(SIMULATED[seen], shares[seen], "o", color=BLACK, ms=5, label=f"simulated, {USERS:,} users each")
        axes.set(title=title, xscale="log", yscale="log", ylim=(LOWEST, 1.6), xlabel="reports of one user (log scale)")
        axes.grid(color="0.9")
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("probability of a wrong guess,\nworst true value (log scale)")
    panels[2].set(yscale="linear", ylim=(0.0, 1.04), ylabel="the same, linear scale")
    panels[2].annotate(
        "tends to 1/2: nothing tells\nthe two equal rows apart", (1.2, 0.3), va="center", fontsize=9, color="0.3"
    )
    panels[2].axhline(0.5, color="0.6", lw=1, zorder=0)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(TARGET, dpi=150)
    print(f"{TARGET}: {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
