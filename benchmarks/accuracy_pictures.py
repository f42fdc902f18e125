"""Draw docs/pictures/accuracy-*.png: errors along the path of EM, errors in all cases, and the candidates of one study.

Run: python benchmarks/accuracy_pictures.py [--counts FILE], after benchmarks/accuracy.py
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.lines import Line2D

import hubbub as hb
from accuracy import inverted, noisy_shares
from accuracy_summary import ROOT, Table, by_truth, read
from cases import Case, cases, drawn
from em_path import DELTAS, em_path, total_variations
from measure import counts_argument

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PATHS, ALL_CASES = ROOT / "docs" / "pictures" / "accuracy-path.png", ROOT / "docs" / "pictures" / "accuracy-cases.png"
CANDIDATES = ROOT / "docs" / "pictures" / "accuracy-selection.png"
PEOPLE = 123_026  # in the paper's counts of San Francisco
# Okabe and Ito's colours, which colour-blind readers can tell apart; shapes and dashes say the same once more.
BLUE, ORANGE, GREEN, SKY, RED, PINK = "#0072B2", "#E69F00", "#009E73", "#56B4E9", "#D55E00", "#CC79A7"
MARKS = dict(zip(DELTAS, "osD^", strict=True))
LEVELS = {"mle": (RED, (0, (5, 2))), "inv-p": (PINK, (0, (3, 1, 1, 1))), "noisy": ("#666666", (0, (1, 1.2)))}
NAMES = {"mle": "exact maximum", "inv-p": "INV-P", "noisy": "noisy shares"}
DOTS = {"em 0.1": (BLUE, "o"), "ems": (ORANGE, "s"), "mle": (RED, "^"), "auto": (GREEN, "D")}
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0)
MOST_RATIO = 30.0  # larger ones are drawn at the edge


def experiments(counts: Path | None) -> list[tuple[str, Case]]:
    """Return the paper's experiments, with the fictional city where there are no counts."""
    town, name = ("city", "fictional city") if counts is None else ("San Francisco", "San Francisco")
    found = [
        (f"line 0..99, {truth}, geometric 0.1", Case(truth, "truncated geometric", 0.1, 100_000, ""))
        for truth in ("binomial", "block")
    ]
    for mechanism, epsilon in (("k-RR", 4.0), *(("planar geometric", epsilon) for epsilon in (0.5, 1.0, 2.0))):
        unit = " per km" if mechanism != "k-RR" else ""
        found.append((f"{name}, {mechanism} {epsilon:g}{unit}", Case(town, mechanism, epsilon, PEOPLE, "")))
    return found


def draw_path(axes: Axes, title: str, case: Case, counts: Path | None) -> None:
    """Draw the error of every iterate, where rules stop, and the errors of other methods."""
    _, truth, reports = drawn(case, 0, counts)
    path = em_path(reports)
    errors = total_variations(path, truth)
    axes.plot(np.arange(1, path.steps + 1), errors[1:], color=BLUE, linewidth=1.8)
    for delta, mark in MARKS.items():
        stop = path.stop(delta)
        axes.plot(stop, errors[stop], mark, color=BLUE, markerfacecolor="white", markersize=7, zorder=4)
    levels = {
        "mle": hb.estimate(reports, "mle").probabilities,
        "inv-p": inverted(reports, "inv-p"),
        "noisy": noisy_shares(reports),
    }
    for method, shares in levels.items():
        if shares is not None:
            color, dashes = LEVELS[method]
            axes.axhline(hb.total_variation(shares, truth), color=color, linestyle=dashes, linewidth=1.6)
    automatic = hb.estimate(reports).probabilities
    axes.axhline(hb.total_variation(automatic, truth), color=GREEN, linewidth=2.2, zorder=1)
    axes.set(xscale="log", xlim=(1, 1.1 * path.steps))
    axes.set_ylim(bottom=0.0)
    axes.set_title(title, fontsize=10)
    axes.grid(visible=True, alpha=0.3)


def dot(color: str, mark: str, label: str, inside: str | None = None) -> Line2D:
    """Return a mark for a legend."""
    return Line2D([], [], color=color, linestyle="none", marker=mark, markerfacecolor=inside or color, label=label)


def legend_of_paths() -> list[Line2D]:
    """Return what the lines and marks stand for."""
    return [
        Line2D([], [], color=BLUE, linewidth=1.8, label="EM"),
        *(dot(BLUE, mark, f"stop at delta {delta:g}", "white") for delta, mark in MARKS.items()),
        Line2D([], [], color=GREEN, linewidth=2.2, label="auto"),
        *(
            Line2D([], [], color=color, linestyle=dashes, linewidth=1.6, label=NAMES[method])
            for method, (color, dashes) in LEVELS.items()
        ),
    ]


def draw_paths(counts: Path | None) -> None:
    """Draw the paper's experiments side by side."""
    import matplotlib.pyplot as plt

    figure, grid = plt.subplots(2, 3, figsize=(11, 6.6), layout="constrained")
    for axes, (title, case) in zip(grid.flat, experiments(counts), strict=True):
        draw_path(axes, title, case, counts)
    for axes in grid[:, 0]:
        axes.set_ylabel("total variation to the truth")
    for axes in grid[1]:
        axes.set_xlabel("iterations of EM")
    where = "the paper's experiments" + (", with a fictional city for San Francisco" if counts is None else "")
    figure.suptitle(f"Error along the path of EM: {where}")
    figure.legend(handles=legend_of_paths(), loc="outside lower center", ncols=5, fontsize=9)
    figure.savefig(PATHS, dpi=110)
    plt.close(figure)


def draw_cases() -> None:
    """Draw the ratio to the oracle of some methods in every case, sorted by truth."""
    import matplotlib.pyplot as plt

    rows = read()
    if not rows:
        print("no cases have been measured yet: run benchmarks/accuracy.py")
        return
    names = {name for name, _ in rows}
    known = [case for case in cases(with_data=True) if case.name in names and not case.few_values]
    groups = by_truth(known)
    figure, axes = plt.subplots(figsize=(8.5, 1.8 + 0.095 * len(known)), layout="constrained")
    draw_groups(axes, groups, Table(rows.values(), "tv"))
    dress(axes)
    figure.suptitle("Error relative to the best iterate of EM: report half filled, tune half hollow")
    marks = [dot(color, mark, method) for method, (color, mark) in DOTS.items()]
    figure.legend(handles=marks, loc="outside lower center", ncols=len(marks))
    figure.savefig(ALL_CASES, dpi=110)
    plt.close(figure)


def draw_groups(axes: Axes, groups: list[tuple[str, list[Case]]], table: Table) -> None:
    """Draw one line for each case, and bands that hold the cases of a truth together."""
    first, middles = 0, []
    for number, (_, own) in enumerate(groups):
        if number % 2 == 0:
            axes.axhspan(first - 0.5, first + len(own) - 0.5, color="#f0f0f0", zorder=0)
        draw_group(axes, own, first, table)
        middles.append(first + (len(own) - 1) / 2)
        first += len(own)
    axes.set_yticks(middles, [truth for truth, _ in groups], fontsize=7)
    axes.set_ylim(first - 0.5, -0.5)


def dress(axes: Axes) -> None:
    """Give the ratios their axis."""
    axes.axvline(1.0, color="black", linewidth=0.9, zorder=1)
    axes.set_xscale("log")
    axes.set_xlim(right=1.08 * MOST_RATIO)
    shown = [number for number in TICKS if number >= axes.get_xlim()[0]]
    axes.set_xticks(shown, [f"{number:g}" for number in shown])
    axes.set_xticks([], minor=True)
    axes.grid(visible=True, axis="x", alpha=0.4)
    axes.set_xlabel(f"TV / TV(oracle); {MOST_RATIO:g} and more at the edge")


def draw_group(axes: Axes, own: list[Case], first: int, table: Table) -> None:
    """Draw the cases of one truth."""
    for method, (color, mark) in DOTS.items():
        for case, ratio in table.ratios(own, method).items():
            inside = color if case.half == "report" else "white"
            place = min(MOST_RATIO, ratio), first + own.index(case)
            axes.plot(*place, mark, color=color, markerfacecolor=inside, markersize=4.5, zorder=3)


def draw_selection() -> None:
    """Draw the candidates of `auto` for the example of the page on accuracy: a block through geometric noise."""
    import matplotlib.pyplot as plt

    mechanism = hb.TruncatedGeometric(hb.Integers(0, 99), 0.5)
    values = np.random.default_rng(1).integers(20, 40, 100_000)
    found = hb.estimate(hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=2)))
    figure, axes = plt.subplots(figsize=(8.5, 5.2), layout="constrained")
    found.settings["selection"].plot(axes)
    figure.savefig(CANDIDATES, dpi=110)
    plt.close(figure)


def main() -> None:
    """Draw all."""
    counts = counts_argument(__doc__)
    mpl.use("Agg")
    draw_paths(counts)
    draw_cases()
    draw_selection()


if __name__ == "__main__":
    main()
