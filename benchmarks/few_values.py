"""Few values: `auto` against the exact maximum, where there are two to ten values without order.

Run: python benchmarks/few_values.py [--half report] [--only TEXT] [--draws 30] [--jobs 2] [--fresh]

A cell is a truth (even, 60/40, 90/10, 99/1, Zipf, or even but for a value that nobody holds), a number of values, a
mechanism, an epsilon and a number of users; each is drawn 30 times. Thirty draws show a bias by chance in some of so
many cells: where they show one, the cell is drawn up to 480 times. What was measured is kept in
results/few_values.jsonl, and the next run goes on where the last one ended; where the code of the estimates has changed
since, a cell is measured again. `--draws 0` measures nothing and prints what there is. The halves take turns: a cell is
in the tune half if the sum of its places along the five axes is even.

The ratio of a cell is the mean total variation of `auto` over that of `mle`. The bias of a share is its mean error over
the draws; its standard error is the standard deviation of that share over the draws.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hubbub as hb
from accuracy_summary import fingerprint, mean
from cases import HALVES
from measure import RESULTS, row, save, side_by_side
from truths import FEW_SHAPES, FEW_SIZES, few_values

Floats = NDArray[np.float64]
Row = dict[str, Any]

KEPT = RESULTS / "few_values.jsonl"
MECHANISMS: dict[str, Callable[[hb.Domain, float], hb.Mechanism]] = {
    "k-RR": hb.RandomizedResponse,
    "RAPPOR": hb.Rappor,
    "OUE": hb.OptimizedUnary,
    "OLH": hb.LocalHashing,
}
EPSILONS, USERS = (0.5, 1.0, 2.0, 4.0), (50, 500, 5_000, 50_000)
METHODS = ("auto", "mle")
DRAWS, MOST_DRAWS, MORE = 30, 480, 4  # the latter while a bias shows, so many times as many
FLOOR = 1e-4  # a mean error below counts as this: some cells have no error at all
MOST, MOST_RARE, RARE = 1.10, 1.15, "99/1"  # the largest ratio of a cell, and of one with a rare value
EVEN = {2: 1.0, 3: 1.0, 5: 0.7, 10: 0.4}  # the largest mean ratio of even truths, by the number of values
MOST_BIAS = 0.5  # in standard errors
SHOWN = 20  # cells of a list that is printed


@dataclass(frozen=True)
class Cell:
    """A truth over a few values, seen through a mechanism by some users."""

    size: int
    shape: str
    mechanism: str
    epsilon: float
    users: int
    half: str

    @property
    def name(self) -> str:
        """What the cell is called in files and tables."""
        return f"{self.shape} of {self.size} values, {self.mechanism} {self.epsilon:g}, {self.users:,} users"

    @property
    def limit(self) -> float:
        """The largest ratio that is asked for."""
        return MOST_RARE if self.shape == RARE else MOST


@dataclass(frozen=True)
class Task:
    """A cell to be drawn some times."""

    cell: Cell
    draws: int
    fingerprint: str


def cells() -> list[Cell]:
    """Return all cells."""
    axes = [tuple(enumerate(axis)) for axis in (FEW_SIZES, FEW_SHAPES, MECHANISMS, EPSILONS, USERS)]
    found = []
    for along in product(*axes):
        places, (size, shape, mechanism, epsilon, users) = zip(*along, strict=True)
        found.append(Cell(size, shape, mechanism, epsilon, users, HALVES[sum(places) % 2]))
    return found


def drawn(mechanism: hb.Mechanism, truth: Floats, users: int, rng: np.random.Generator) -> hb.Reports:
    """Return what a crowd sent: counts of outputs at once where these can be listed.

    Seeds of local hashing cannot be listed. Outputs that stand for the same set of values say the same, with any seed:
    one of them is put in the place of all, because a thousand patterns are quicker than fifty thousand.
    """
    if mechanism.outputs is not None:
        expected = truth @ mechanism.matrix()
        return hb.Reports.from_counts(mechanism, rng.multinomial(users, expected / expected.sum()))
    values = np.repeat(mechanism.domain.labels, rng.multinomial(users, truth))
    outputs = mechanism.privatize(values, rng=rng)
    assert isinstance(mechanism, hb.LocalHashing)  # noqa: S101
    sets = mechanism.sets(mechanism.output_space.encode(outputs))
    _, first, of_set = np.unique(sets, axis=0, return_index=True, return_inverse=True)
    return hb.Reports.from_outputs(mechanism, outputs[first[of_set.ravel()]])


def measured(task: Task) -> Row:
    """Draw a cell, and return the mean errors, the biases and the standard errors of both methods."""
    cell = task.cell
    truth = few_values(cell.shape, cell.size)
    mechanism = MECHANISMS[cell.mechanism](hb.Categories(range(cell.size)), cell.epsilon)
    shares: dict[str, list[Floats]] = {method: [] for method in METHODS}
    draws = task.draws
    while True:
        for draw in range(len(shares["mle"]), draws):
            reports = drawn(mechanism, truth, cell.users, np.random.default_rng([draw, *cell.name.encode()]))
            for method in METHODS:
                shares[method].append(hb.estimate(reports, method).probabilities)
        found: Row = {"case": cell.name, "fingerprint": task.fingerprint, "draws": draws}
        for method, own in shares.items():
            estimates = np.stack(own)
            found[method] = {
                "tv": digits(np.abs(estimates - truth).sum(axis=1).mean() / 2),
                "bias": [digits(number) for number in estimates.mean(axis=0) - truth],
                "deviation": [digits(number) for number in estimates.std(axis=0, ddof=1)],
            }
        if not needs_more(found):
            return found
        draws = min(draws * MORE, MOST_DRAWS)


def digits(number: float) -> float:
    """Return six significant digits."""
    return float(f"{number:.6g}")


def read() -> dict[str, Row]:
    """Return the rows in the file, later ones in place of earlier ones."""
    if not KEPT.exists():
        return {}
    rows = map(json.loads, KEPT.read_text(encoding="utf-8").splitlines())
    return {row["case"]: row for row in rows}


def ratio(found: Row) -> float:
    """Return the mean error of `auto` over that of the exact maximum."""
    ours, exact = (max(FLOOR, found[method]["tv"]) for method in METHODS)
    return float(ours / exact)


def biased(found: Row) -> bool:
    """Whether some share of `auto` is off by more than half a standard error, though that of `mle` is not."""
    off = {}
    for method in METHODS:
        bias, deviation = np.abs(found[method]["bias"]), np.array(found[method]["deviation"])
        off[method] = bias > np.maximum(MOST_BIAS * deviation, FLOOR)
    return bool((off["auto"] & ~off["mle"]).any())


def needs_more(found: Row) -> bool:
    """Whether a bias shows that may be chance."""
    return biased(found) and found["draws"] < MOST_DRAWS


def judged(half: str, some: list[Cell], rows: dict[str, Row]) -> list[Row]:
    """Return the rows of one half: what was asked for, and what was reached."""
    ratios = {cell: ratio(rows[cell.name]) for cell in some}
    above = {cell: own for cell, own in ratios.items() if own > cell.limit}
    worst = max(ratios, key=lambda cell: ratios[cell] / cell.limit)
    title = f"{half} half"
    limits = f"{MOST:.2f} ({MOST_RARE} at {RARE})"
    found = [
        row(title, f"cells above {limits}, of {len(some)}", f"{len(above)}", "none", holds=not above),
        row(title, "worst cell", f"{ratios[worst]:.3f} ({worst.name})", f"at most {limits}", holds=not above),
    ]
    if uneven := [own for cell, own in ratios.items() if cell.shape != "even"]:
        total = mean(uneven)
        asked = "at most 1"
        found.append(row(title, "geometric mean over uneven truths", f"{total:.3f}", asked, holds=total <= 1.0))
    for size in FEW_SIZES:
        if even := [own for cell, own in ratios.items() if cell.shape == "even" and cell.size == size]:
            total = mean(even)
            what = f"geometric mean over even truths of {size} values"
            found.append(row(title, what, f"{total:.3f}", f"at most {EVEN[size]:g}", holds=total <= EVEN[size]))
    off = [cell for cell in some if biased(rows[cell.name])]
    what = f"cells in which a share is off by more than {MOST_BIAS} standard errors, and not by mle"
    found.append(row(title, what, f"{len(off)}", "none", holds=not off))
    tell("ratios above their limits", sorted(above, key=lambda cell: -above[cell]), rows)
    tell("biased cells", sorted(off, key=lambda cell: -ratios[cell]), rows)
    return found


def tell(title: str, some: list[Cell], rows: dict[str, Row]) -> None:
    """Print the first cells of a list."""
    if some:
        print(f"  {title}: {len(some)}" + (f", the first {SHOWN}" if len(some) > SHOWN else ""))
    for cell in some[:SHOWN]:
        found = rows[cell.name]
        errors = ", ".join(f"{method} {found[method]['tv']:.4f}" for method in METHODS)
        print(f"    {ratio(found):7.3f}  {cell.name}: {errors}")


def summary(rows: dict[str, Row]) -> None:
    """Print what was found, and keep what is asked for."""
    known = [cell for cell in cells() if cell.name in rows]
    for title, group in (("shape", FEW_SHAPES), ("mechanism", MECHANISMS), ("epsilon", EPSILONS), ("users", USERS)):
        print(f"ratios by {title}: " + ", ".join(by(title, one, known, rows) for one in group))
    found = []
    for half in reversed(HALVES):
        if some := [cell for cell in known if cell.half == half]:
            found += judged(half, some, rows)
    save("few_values", found)
    if older := sum(row["fingerprint"] != fingerprint() for row in rows.values()):
        print(f"{older} of {len(rows)} cells are from older code of the estimates")


def by(title: str, one: Any, known: list[Cell], rows: dict[str, Row]) -> str:
    """Return the geometric mean of the ratios of some cells."""
    ratios = [ratio(rows[cell.name]) for cell in known if getattr(cell, title) == one]
    return f"{one} {mean(ratios):.3f}" if ratios else f"{one} -"


def write(rows: Iterable[Row]) -> None:
    """Write the file anew, in the order of the cells."""
    order = {cell.name: place for place, cell in enumerate(cells())}
    kept = sorted((row for row in rows if row["case"] in order), key=lambda row: order[row["case"]])
    fresh = KEPT.with_suffix(".new")
    fresh.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
    fresh.replace(KEPT)


def arguments() -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=[*HALVES, "both"], default="both")
    parser.add_argument("--only", default="", help="cells whose name holds this")
    parser.add_argument("--draws", type=int, default=DRAWS, help="how often each cell is drawn; 0 only prints")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--fresh", action="store_true", help="measure anew what was measured before")
    return parser.parse_args()


def main() -> None:
    """Measure what is missing, then print and keep what the file says."""
    asked = arguments()
    rows, current = read(), fingerprint()
    waiting = []
    for cell in cells():
        old = rows.get(cell.name)
        done = old is not None and old["fingerprint"] == current and old["draws"] >= asked.draws and not needs_more(old)
        if asked.draws and (asked.fresh or not done) and asked.half in (cell.half, "both") and asked.only in cell.name:
            waiting.append(Task(cell, asked.draws, current))
    if waiting:
        KEPT.parent.mkdir(exist_ok=True)
        with KEPT.open("a", encoding="utf-8") as file:
            for found in side_by_side(measured, waiting, asked.jobs, "cells"):
                file.write(json.dumps(found) + "\n")
                file.flush()
                rows[found["case"]] = found
        write(rows.values())
    if not rows:
        print(f"nothing has been measured yet: {KEPT.name} is empty")
        return
    sys.argv[1:] = ["--draws", str(min(row["draws"] for row in rows.values()))]  # what is kept is about the whole file
    summary(rows)


if __name__ == "__main__":
    main()
