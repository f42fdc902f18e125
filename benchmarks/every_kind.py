"""Plans over all kinds of mechanisms: how long they take, which they name as best, and whether fresh studies agree.

Run: python benchmarks/every_kind.py [--runs N]

The best three mechanisms of a plan are measured again: whole reports of new users, drawn and estimated one study at a
time, without anything that makes plans quick.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import wilcoxon

import hubbub as hb
from hubbub.planning.candidates import candidates_from
from hubbub.planning.truths import truths_from
from measure import row, save

Floats = NDArray[np.float64]
RIVALS = 3
MOST_SECONDS = 60.0
MIN_CHANCE = 0.01  # of the test of whether another kind is better than the plan's best
SETTINGS: tuple[tuple[str, hb.Domain, int, str], ...] = (
    ("256 bins, three bells, 20,000 users", hb.Bins(np.linspace(0.0, 24.0, 257)), 20_000, "bells"),
    ("1,000 categories, Zipf, 100,000 users", hb.Categories([f"v{place}" for place in range(1_000)]), 100_000, "zipf"),
)


def fresh_errors(kind: str, domain: hb.Domain, users: int, truth: Floats, runs: int) -> Floats:
    """Return the errors of `auto` in studies of whole reports; all kinds have the same users."""
    ((mechanism, _),) = candidates_from(kind, domain=domain, epsilon=1.0)[0].parts
    errors = np.empty(runs)
    for run in range(runs):
        rng = np.random.default_rng([2028, run])
        values = domain.labels[rng.choice(truth.size, size=users, p=truth)]
        reports = hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng))
        errors[run] = hb.total_variation(hb.estimate(reports).probabilities, truth)
    return errors


def ranking(plan: hb.Plan) -> list[tuple[str, float]]:
    """Return the kinds of a plan with their errors, the best first."""
    return sorted(((each.candidate, each.tv.median) for each in plan.settings), key=lambda pair: pair[1])


def listed(pairs: Sequence[tuple[str, float]]) -> str:
    """Return names and errors in words."""
    return ", ".join(f"{name} {error:.3f}" for name, error in pairs)


def main() -> None:
    """Plan, measure the best again, and save the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    runs = parser.parse_args().runs
    rows = []
    for name, domain, users, shape in SETTINGS:
        start = time.perf_counter()
        plan = hb.plan("all", domain=domain, epsilon=1.0, users=users, truth=shape)
        wall = time.perf_counter() - start
        planned = ranking(plan)
        rows.append(
            row(
                f"{name}: the time of a plan",
                f"{len(planned)} kinds at plain epsilon 1",
                f"{wall:.0f} s",
                f"<= {MOST_SECONDS:.0f} s",
                holds=wall <= MOST_SECONDS,
            )
        )
        truth = truths_from(shape, domain)[0].probabilities
        best = [kind for kind, _ in planned[:RIVALS]]
        fresh = {kind: fresh_errors(kind, domain, users, truth, runs) for kind in best}
        medians = [(kind, float(np.median(errors))) for kind, errors in fresh.items()]
        least = min(error for _, error in medians)
        chance = min(float(wilcoxon(fresh[best[0]], fresh[kind], alternative="greater").pvalue) for kind in best[1:])
        rows.append(
            row(
                f"{name}: the best",
                f"planned: {listed(planned[: RIVALS + 2])}; {runs} fresh studies of whole reports: {listed(medians)}",
                f"{best[0]}, {100 * (medians[0][1] / least - 1.0):.0f}% above the least fresh error; "
                f"no other is better, p = {chance:.2g} (signed ranks, the same users)",
                f"p >= {MIN_CHANCE}",
                holds=chance >= MIN_CHANCE,
            )
        )
        spreads = {each.candidate: each.tv for each in plan.settings}
        inside = [spreads[kind].low <= error <= spreads[kind].high for kind, error in medians]
        rows.append(
            row(
                f"{name}: fresh medians and the plan's 95% ranges",
                "; ".join(f"{kind} {spreads[kind].low:.3f} to {spreads[kind].high:.3f}" for kind in best),
                f"{sum(inside)} of {RIVALS} inside",
                f"all {RIVALS}",
                holds=all(inside),
            )
        )
    save("every_kind", rows)


if __name__ == "__main__":
    main()
