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

import hubbub as hb
from hubbub.planning.candidates import candidates_from
from hubbub.planning.truths import truths_from
from measure import row, save

Floats = NDArray[np.float64]
RIVALS = 3
MOST_SECONDS = 60.0
MOST_SURPRISE = 0.05  # how much larger than the least of fresh errors that of the plan's best may be
MOST_LARGER = 1.15  # times the fresh error: oracles are simulated by sums (support_plans.py)
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
        start, processor = time.perf_counter(), time.process_time()
        plan = hb.plan("all", domain=domain, epsilon=1.0, users=users, truth=shape)
        wall, processor = time.perf_counter() - start, time.process_time() - processor
        planned = ranking(plan)
        found = f"{len(planned)} kinds at plain epsilon 1"
        rows.append(
            row(
                f"{name}: the time of a plan",
                f"{found}; {processor:.0f} s of processor time",
                f"{wall:.0f} s",
                f"<= {MOST_SECONDS:.0f} s",
                holds=wall <= MOST_SECONDS,
            )
        )
        truth = truths_from(shape, domain)[0].probabilities
        fresh = [
            (kind, float(np.median(fresh_errors(kind, domain, users, truth, runs)))) for kind, _ in planned[:RIVALS]
        ]
        least = min(error for _, error in fresh)
        surprise = fresh[0][1] / least - 1.0
        rows.append(
            row(
                f"{name}: the best",
                f"planned: {listed(planned[: RIVALS + 2])}; {runs} fresh studies of whole reports: {listed(fresh)}",
                f"{planned[0][0]}, {100 * surprise:.0f}% above the least fresh error",
                f"<= {100 * MOST_SURPRISE:.0f}%",
                holds=surprise <= MOST_SURPRISE,
            )
        )
        ratios = [own / again for (_, own), (_, again) in zip(planned, fresh, strict=False)]
        rows.append(
            row(
                f"{name}: planned over fresh errors",
                f"the best {RIVALS} kinds",
                f"{min(ratios):.2f} to {max(ratios):.2f}",
                f"1 / {MOST_LARGER} to {MOST_LARGER}",
                holds=min(ratios) >= 1.0 / MOST_LARGER and max(ratios) <= MOST_LARGER,
            )
        )
    save("every_kind", rows)


if __name__ == "__main__":
    main()
