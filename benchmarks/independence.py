"""The test of independence: how often it rejects independent attributes, what it finds, and coverage of strengths.

Run: python benchmarks/independence.py [--runs N] [--only WORDS] [--no-strengths]

Every row is a number of simulated studies. Of independent attributes the share of p-values below 5% and 1% is told; of
related ones, how often they are found. The intervals of Cramer's V, of the mutual information and of odds ratios are
compared with the true numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import hubbub as hb
from hubbub.association.attribute_pair import AttributePair
from hubbub.association.independence_test import independence_test
from hubbub.association.independent_fit import independent_fit
from hubbub.association.odds_profile import odds_interval
from hubbub.association.strength_interval import TiltedPath, strength_interval
from hubbub.association.strength_measures import cramers_v, mutual_information, odds_ratio
from hubbub.core.progress import finish
from hubbub.intervals.deviance_cutoff import chi_square
from hubbub.intervals.interval_endpoints import LikelihoodRegion
from measure import row, save_merged, study_parser

Floats = NDArray[np.float64]
RUNS, DRAWS = 2_000, 999
LEVEL = 0.95
ERRORS = 3.0  # standard errors of simulation that are allowed for
TOLERANCE = 0.005  # of a size: half a percentage point


class Setting(NamedTuple):
    """Reports of some users whose attributes have a joint distribution."""

    name: str
    draw: Callable[[Floats, np.random.Generator], hb.Reports]
    table: Floats


def categories(size: int) -> hb.Categories:
    """Return some values without an order."""
    return hb.Categories([f"v{place}" for place in range(size)])


def split(sides: tuple[int, int], epsilon: float, kind: Any = hb.RandomizedResponse) -> hb.Mechanism:
    """Return both attributes, each by a mechanism of its own."""
    first, second = (kind(categories(side), epsilon=epsilon) for side in sides)
    return hb.Split(first=first, second=second)


def users_of(*groups: tuple[hb.Mechanism, int]) -> Callable[[Floats, np.random.Generator], hb.Reports]:
    """Return how to draw users of some mechanisms."""

    def draw(table: Floats, rng: np.random.Generator) -> hb.Reports:
        parts = []
        for mechanism, users in groups:
            positions = rng.choice(table.size, size=users, p=table.ravel() / table.sum())
            outputs = mechanism.privatize(mechanism.domain.labels[positions], rng=rng)
            parts.append(hb.Reports.from_outputs(mechanism, outputs))
        total: hb.Reports = sum(parts[1:], parts[0])
        return total

    return draw


def related(first: Floats, second: Floats, strength: float) -> Floats:
    """Return a joint distribution with these marginals and this Cramer's V."""
    noise = np.random.default_rng(5).normal(size=(first.size, second.size))
    path = TiltedPath(first, second, np.outer(first, second) * (1.0 + 0.2 * noise / np.abs(noise).max()))
    low, high = 0.0, path.largest
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if cramers_v(path.at(middle)) < strength else (low, middle)
    return path.at(low)


def settings() -> list[Setting]:
    """Return independent attributes, then related ones."""
    even = np.array([0.3, 0.7]), np.array([0.5, 0.5])
    rare = np.array([0.03, 0.97]), np.array([0.2, 0.8])
    small = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.5, 0.3, 0.2])
    wide = np.arange(8.0, 0.0, -1.0) / 36.0, np.arange(6.0, 0.0, -1.0) / 21.0
    empty = np.array([0.5, 0.3, 0.2, 0, 0, 0, 0, 0]), np.array([0.6, 0.4, 0, 0, 0, 0])
    faint = np.array([0.5, 0.3, 0.15, *[0.01] * 5]), np.array([0.55, 0.4, *[0.0125] * 4])
    bits = np.array([0.4, 0.3, 0.2, 0.1, 0.0]), np.array([0.5, 0.3, 0.2, 0.0])
    one = hb.SampleOne(
        first=hb.RandomizedResponse(categories(4), 2.0), second=hb.RandomizedResponse(categories(3), 2.0)
    )
    fakes = hb.SampleOneWithFakes(dict(one.parts))
    joint = hb.RandomizedResponse(hb.Product(first=categories(4), second=categories(3)), 3.0)
    kinds = [
        ("2 x 2, k-RR epsilon 2, n=500", users_of((split((2, 2), 2.0), 500)), even),
        ("2 x 2 with a rare value, k-RR epsilon 1, n=500", users_of((split((2, 2), 1.0), 500)), rare),
        ("4 x 3, k-RR epsilon 2, n=2,000", users_of((split((4, 3), 2.0), 2_000)), small),
        ("4 x 3, k-RR of combinations, epsilon 3, n=1,000", users_of((joint, 1_000)), small),
        (
            "4 x 3, four mechanisms, n=3,500",
            users_of((split((4, 3), 2.0), 1_000), (one, 500), (fakes, 1_000), (joint, 1_000)),
            small,
        ),
        ("5 x 4 with empty values, RAPPOR epsilon 3, n=2,000", users_of((split((5, 4), 3.0, hb.Rappor), 2_000)), bits),
        ("8 x 6, k-RR epsilon 2, n=20,000", users_of((split((8, 6), 2.0), 20_000)), wide),
        ("8 x 6 with nine empty values, k-RR epsilon 2, n=5,000", users_of((split((8, 6), 2.0), 5_000)), empty),
        ("8 x 6 with nine faint values, k-RR epsilon 2, n=5,000", users_of((split((8, 6), 2.0), 5_000)), faint),
    ]
    found = [Setting(name, draw, np.outer(*margins)) for name, draw, margins in kinds]
    strong = [
        ("2 x 2, k-RR epsilon 2, n=2,000", users_of((split((2, 2), 2.0), 2_000)), even),
        ("2 x 2, k-RR epsilon 1, n=1,000", users_of((split((2, 2), 1.0), 1_000)), even),
        ("4 x 3, k-RR epsilon 2, n=2,000", users_of((split((4, 3), 2.0), 2_000)), small),
        ("4 x 3, k-RR epsilon 3, n=20,000", users_of((split((4, 3), 3.0), 20_000)), small),
    ]
    for strength in (0.05, 0.15, 0.3, 0.6):
        for name, draw, margins in strong:
            found.append(Setting(f"{name}, V = {strength:g}", draw, related(*margins, strength)))
    return found


def studied(setting: Setting, rng: np.random.Generator, *, strengths: bool) -> dict[str, float]:
    """Return the p-value of one simulated study, and whether each interval holds the true number."""
    pair = AttributePair.of(setting.draw(setting.table, rng), ("first", "second"), "benchmark")
    top = finish(LikelihoodRegion.around(pair.likelihood)).top
    fit = finish(independent_fit(pair.likelihood, [pair.margins(top.theta)]))
    test, null = finish(independence_test(pair, fit, top.log_likelihood, rng, DRAWS))
    found = {"p": test.p_value}
    if not strengths:
        return found
    weakest, strongest = finish(strength_interval(test, null, top.theta.reshape(pair.sides), LEVEL))
    for name, measure in (("Cramer's V", cramers_v), ("mutual information", mutual_information)):
        low = 0.0 if weakest is None else measure(weakest)
        high = math.inf if strongest is None else measure(strongest)
        found[name] = float(low - 1e-12 <= measure(setting.table) <= high + 1e-12)
    if pair.sides == (2, 2):
        low, high = finish(odds_interval(top, np.arange(4), chi_square(LEVEL)))
        found["odds ratio"] = float(low <= odds_ratio(setting.table) <= high)
    return found


def judged(setting: Setting, studies: list[dict[str, float]]) -> list[dict[str, Any]]:
    """Return the rows of a setting."""
    runs, p_values = len(studies), np.array([study["p"] for study in studies])
    is_independent = cramers_v(setting.table) < 1e-9
    rows = []
    for level in (0.05, 0.01):
        share = float((p_values <= level).mean())
        allowed = TOLERANCE + ERRORS * math.sqrt(level * (1.0 - level) / runs)
        if is_independent:
            asked = f"{level:.0%}, up to half a point and {ERRORS:g} standard errors"
            measured = f"false alarms at {level:.0%}, {runs:,} studies"
            rows.append(row(setting.name, measured, f"{share:.1%}", asked, holds=abs(share - level) <= allowed))
        elif level == 0.05:
            rows.append(row(setting.name, f"found at 5%, {runs:,} studies", f"{share:.1%}", "told", holds=True))
    for name in [name for name in studies[0] if name != "p"]:
        share = float(np.mean([study[name] for study in studies]))
        least = 0.94 - ERRORS * math.sqrt(0.06 * 0.94 / runs)
        asked = f"94%, less {ERRORS:g} standard errors"
        rows.append(
            row(setting.name, f"coverage of {name}, {runs:,} studies", f"{share:.1%}", asked, holds=share >= least)
        )
    return rows


def main() -> None:
    """Print and keep the rows."""
    parser = study_parser(__doc__, RUNS)
    parser.add_argument("--no-strengths", action="store_true", help="p-values alone")
    asked = parser.parse_args()
    for number, setting in enumerate(settings()):
        if not setting.name.startswith(asked.only):
            continue
        studies = [
            studied(setting, np.random.default_rng([number, run]), strengths=not asked.no_strengths)
            for run in range(asked.runs)
        ]
        save_merged("independence", judged(setting, studies))


if __name__ == "__main__":
    main()
