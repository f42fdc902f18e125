"""Designed mechanisms against the best built-in ones at equal privacy, for truths that no design has seen.

Run: python benchmarks/designs.py [--runs N] [--only NAME] [--folder FOLDER]

Lines and maps keep an epsilon per unit of distance, categories a plain one. Every design is for goal "risk": what
`auto` is expected to get wrong under the families of distributions that it tries, around equal shares. Bells, blocks
and Zipf distributions are simulated, and so are the built-in mechanisms that come nearest by formula, with the same
users. Which of them is best is found in the first studies, and how far apart they are in the others. Finished studies
and columns are kept in the folder: an interrupted run continues, and parts may run side by side (--only).
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hubbub as hb
from hubbub.designing.built_in_columns import listed_columns
from hubbub.planning.truths import truths_from
from measure import row, save_merged

Floats = NDArray[np.float64]
USERS = 100_000
TRUTHS = ("bell", "block", "zipf")
REACHES = (1.0, 2.0, 4.0, 8.0)  # epsilon per unit times the diameter
PLAIN = (0.5, 1.0, 2.0, 4.0)
FEW_RUNS = 12  # studies in which the best rival is chosen
NEAREST = 2
MUCH_NEARER, MAX_FARTHER = 0.9, 1.03


def settings() -> dict[str, tuple[hb.Domain, float, str]]:
    """Return domain, epsilon and kind of privacy by name."""
    found: dict[str, tuple[hb.Domain, float, str]] = {}
    domains: dict[str, hb.Domain] = {f"line of {size}": hb.Integers(0, size - 1) for size in (8, 16, 32)}
    domains["grid of 6 x 6"] = hb.Grid(6, 6, cell=1.0)
    for reach in REACHES:
        for name, domain in domains.items():
            found[f"{name}, reach {reach:g}"] = domain, reach / domain.diameter, "metric"
    categories = hb.Categories([f"c{place}" for place in range(20)])
    for epsilon in PLAIN:
        found[f"20 categories, epsilon {epsilon:g}"] = categories, epsilon, "plain"
    return found


def shares_of(domain: hb.Domain, truth: str) -> Floats:
    """Return the assumed distribution."""
    return truths_from(truth, domain)[0].probabilities


def studies(mechanism: hb.Mechanism, truth: Floats, first: int, last: int) -> list[float]:
    """Return the errors of `auto` in some studies; in each of them all mechanisms have the same users.

    Each user has one uniform number, too, from which any mechanism whose outputs can be listed draws the output: where
    mechanisms are alike, so are their reports, and differences are more precise than errors.
    """
    columns = listed_columns(mechanism)
    ends = None if columns is None else np.cumsum(columns.T, axis=1)
    table = mechanism if columns is None else hb.Matrix(mechanism.domain, np.arange(len(columns)), columns.T)
    errors = []
    for run in range(first, last):
        rng = np.random.default_rng([2029, run])
        users = rng.multinomial(USERS, truth)
        if ends is None:
            outputs = mechanism.privatize(np.repeat(mechanism.domain.labels, users), rng=rng)
            reports = hb.Reports.from_outputs(mechanism, outputs)
        else:
            counts = np.zeros(ends.shape[1], dtype=np.int64)
            for own, count in zip(ends, users, strict=True):
                drawn = np.searchsorted(own / own[-1], rng.random(count), side="right")
                counts += np.bincount(drawn, minlength=counts.size)
            reports = hb.Reports.from_counts(table, counts)
        errors.append(hb.total_variation(hb.estimate(reports).probabilities, truth))
    return errors


def study(name: str, runs: int, folder: Path) -> dict[str, Any]:
    """Design for one setting, simulate it and its rivals, and return the errors."""
    domain, epsilon, privacy = settings()[name]
    place = folder / name.replace(" ", "-").replace(",", "")
    place.mkdir(parents=True, exist_ok=True)
    begun = time.perf_counter()
    design = hb.design(domain, epsilon, privacy=privacy, goal="risk", users=USERS, path=place / "columns.npz")
    seconds = time.perf_counter() - begun
    candidates = {"design": design.mechanism, **design.nearest_built_ins(NEAREST)}
    kept_file = place / "errors.json"
    errors: dict[str, dict[str, list[float]]] = json.loads(kept_file.read_text()) if kept_file.exists() else {}

    def simulate(label: str, truth: str, last: int) -> list[float]:
        own = errors.setdefault(truth, {}).setdefault(label, [])
        if len(own) < last:
            own += studies(candidates[label], shares_of(domain, truth), len(own), last)
            kept_file.write_text(json.dumps(errors))
        return own[:last]

    truths = {}
    for truth in TRUTHS:
        # The best rival is chosen by other studies than those that it is compared in.
        few = {label: float(np.mean(simulate(label, truth, FEW_RUNS))) for label in candidates if label != "design"}
        best = min(few, key=lambda label: few[label])
        ours, theirs = (np.array(simulate(label, truth, FEW_RUNS + runs)[FEW_RUNS:]) for label in ("design", best))
        ratio = ours.mean() / theirs.mean()
        difference = (ours - ratio * theirs).std(ddof=1) / math.sqrt(runs) / theirs.mean()
        truths[truth] = {
            "design": float(ours.mean()),
            "best": best,
            "error": float(theirs.mean()),
            "ratio": float(ratio),
            "standard_error": float(difference),
        }
    return {
        "setting": name,
        "seconds": seconds,
        "status": design.status,
        "value": design.value,
        "outputs": len(design.mechanism.labels),
        "truths": truths,
    }


def main() -> None:
    """Run all settings, or those that were named, and save the rows of all that are done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--only", nargs="*", default=None, help="Parts of names of settings.")
    parser.add_argument("--folder", type=Path, default=Path("designs-runs"))
    arguments = parser.parse_args()
    names = [name for name in settings() if arguments.only is None or any(part in name for part in arguments.only)]
    rows, ratios = [], []
    for name in names:
        found = study(name, arguments.runs, arguments.folder)
        for truth, each in found["truths"].items():
            ratios.append(each["ratio"])
            farther = each["ratio"] - MAX_FARTHER > 2 * each["standard_error"]
            rows.append(
                row(
                    f"{name}, {truth}",
                    f"TV of the design / of {each['best']} / ratio",
                    f"{each['design']:.4f} / {each['error']:.4f} / {each['ratio']:.3f} +- {each['standard_error']:.3f}",
                    "never farther by more than 3%",
                    holds=not farther,
                )
            )
        print(f"  {found['outputs']} outputs, {found['status']}, {found['seconds']:.0f} s", flush=True)
    if arguments.only is None:
        nearer = sum(ratio <= MUCH_NEARER for ratio in ratios)
        farther = sum(ratio > MAX_FARTHER for ratio in ratios)
        found = f"{nearer} of {len(ratios)} nearer by 10% or more, {farther} farther by 3%"
        rows.append(row("all settings", "settings", found, "a third nearer by 10%", holds=3 * nearer >= len(ratios)))
    save_merged("designs", rows)


if __name__ == "__main__":
    main()
