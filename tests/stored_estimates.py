"""Estimates of a dozen small studies, kept in tests/reference/estimates.json: a change of structure must not move them.

``python tests/stored_estimates.py --write`` makes the file anew; without ``--write`` the file is compared with what
this version computes. On the machine that made the file every number is equal to its last digit; elsewhere sums are
rounded differently, and tests/test_stored_estimates.py compares with a tolerance.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import hubbub as hb

FILE = Path(__file__).parent / "reference" / "estimates.json"


def _drawn(mechanism: hb.Mechanism, shares: Any, users: int, seed: int) -> hb.Reports:
    rng = np.random.default_rng(seed)
    weights = np.asarray(shares, dtype=np.float64)
    values = mechanism.domain.labels[rng.choice(len(mechanism.domain), size=users, p=weights / weights.sum())]
    return hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng))


def _bell(size: int, centre: float, width: float) -> Any:
    return np.exp(-0.5 * ((np.arange(size) - centre) / width) ** 2) + 1e-3


def _yes_or_no() -> hb.Reports:
    return hb.Reports.from_counts(hb.RandomizedResponse(hb.Categories(["yes", "no"]), 1.0), {"yes": 600, "no": 400})


def _categories() -> hb.Reports:
    return _drawn(hb.RandomizedResponse(hb.Categories(list("abcdefgh")), 1.5), np.arange(1, 9) ** 2, 3000, 1)


def _geometric() -> hb.Reports:
    return _drawn(hb.Geometric(hb.Integers(0, 30), 0.4), _bell(31, 11, 4), 4000, 2)


def _truncated() -> hb.Reports:
    return _drawn(hb.TruncatedGeometric(hb.Integers(18, 60), 0.3), _bell(43, 30, 5), 2000, 3)


def _laplace_bins() -> hb.Reports:
    return _drawn(hb.Laplace(hb.Bins([0, 1, 2, 4, 6, 9, 12, 16, 24]), 0.5), _bell(8, 3, 2), 2500, 4)


def _planar_geometric() -> hb.Reports:
    grid = hb.Grid(8, 6, cell=0.5)
    return _drawn(hb.PlanarGeometric(grid, 1.2), np.outer(_bell(6, 2, 1.5), _bell(8, 5, 2)).ravel(), 5000, 5)


def _planar_laplace() -> hb.Reports:
    grid = hb.Grid.over(south=37.7, west=-122.5, north=37.8, east=-122.4, columns=6, rows=5, cells=range(4, 30))
    return _drawn(hb.PlanarLaplace(grid, 0.8), _bell(26, 12, 6), 3000, 6)


def _exponential() -> hb.Reports:
    return _drawn(hb.Exponential(hb.Integers(0, 12), 1.0), _bell(13, 9, 2), 1500, 7)


def _rappor() -> hb.Reports:
    return _drawn(hb.Rappor(hb.Categories(list("abcdef")), 1.0), [30, 5, 20, 1, 14, 30], 2000, 8)


def _local_hashing() -> hb.Reports:
    return _drawn(hb.LocalHashing(hb.Integers(0, 19), 1.5), _bell(20, 6, 3), 1200, 9)


def _subsets_and_cloaks() -> hb.Reports:
    domain = hb.Integers(0, 7)
    subsets = _drawn(hb.SubsetSelection(domain, 1.0), _bell(8, 3, 2), 1500, 10)
    regions = hb.Cloaking(domain, ["low"] * 3 + ["middle"] * 2 + ["high"] * 3)
    return subsets + _drawn(regions, _bell(8, 3, 2), 400, 11)


def _several_reports() -> hb.Reports:
    domain = hb.Integers(0, 9)
    strong, light = hb.TruncatedGeometric(domain, 0.4), hb.RandomizedResponse(domain, 1.2)
    rng = np.random.default_rng(12)
    values = rng.choice(10, size=900, p=_bell(10, 4, 2) / _bell(10, 4, 2).sum())
    first, second = strong.privatize(values, rng=rng), light.privatize(values, rng=rng)
    users = [[(strong, a), (light, b)] if a % 2 else [(strong, a)] for a, b in zip(first, second, strict=True)]
    return hb.Reports.from_users(users)


def _bit_sums() -> hb.Reports:
    mechanism = hb.OptimizedUnary(hb.Categories(list("abcde")), 1.0)
    return hb.Reports.from_bit_counts(mechanism, [410, 380, 350, 300, 290], 1000)


PROBLEMS: dict[str, Callable[[], hb.Reports]] = {
    make.__name__.lstrip("_").replace("_", " "): make
    for make in (
        _yes_or_no,
        _categories,
        _geometric,
        _truncated,
        _laplace_bins,
        _planar_geometric,
        _planar_laplace,
        _exponential,
        _rappor,
        _local_hashing,
        _subsets_and_cloaks,
        _several_reports,
        _bit_sums,
    )
}
METHODS = ("auto", "mle", "ibu", "ems", "inv-n", "inv-p")


def answers(reports: hb.Reports) -> dict[str, Any]:
    """Return what hubbub says of the reports, in plain numbers; a refusal is its kind of error."""
    told: dict[str, Any] = {}
    for method in METHODS:
        try:
            estimate = hb.estimate(reports, method)
        except hb.HubbubError as error:
            told[method] = type(error).__name__
            continue
        told[method] = {
            "probabilities": estimate.probabilities.tolist(),
            "log_likelihood": estimate.log_likelihood,
            "iterations": estimate.iterations,
        }
    value = reports.domain.labels[1]
    asked: dict[str, Callable[[], list[Any]]] = {
        "interval": lambda: [(found := hb.interval(reports, value)).low, found.high],
        "bootstrap": lambda: [(found := hb.interval(reports, value, method="bootstrap")).low, found.high],
        "identify": lambda: [hb.identify(reports).dimension],
        "fit": lambda: [hb.fit_test(reports).p_value],
        "shift": lambda: [float(hb.worst_case_shift(reports, 0.01))],
    }
    for name, ask in asked.items():
        try:
            told[name] = [float(number) for number in ask()]
        except hb.HubbubError as error:
            told[name] = type(error).__name__
    return told


def main() -> None:
    """Write the file, or compare with it and name what differs in a digit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="make the file anew")
    wanted = parser.parse_args()
    now = {name: answers(make()) for name, make in PROBLEMS.items()}
    if wanted.write:
        FILE.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
        return
    kept = json.loads(FILE.read_text(encoding="utf-8"))
    moved = [f"{name}: {key}" for name in kept for key in kept[name] if kept[name][key] != now[name][key]]
    sys.exit("\n".join(moved) if moved else 0)


if __name__ == "__main__":
    main()
