"""How far plans may rely on sums: errors of `auto` from how many reports support each value, and from whole reports.

Run: python benchmarks/support_plans.py [--runs N]

The same studies are estimated twice. Plans simulate frequency oracles by sums where whole reports would take too long.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from numpy.typing import NDArray

import hubbub as hb
from hubbub.mechanisms.frequency_oracle import FrequencyOracle
from hubbub.planning.support_simulation import supported_reports
from measure import row, save

Floats = NDArray[np.float64]
MOST_LARGER = 1.15  # times the error of whole reports: the median over a setting's studies


def truth_of(values: int, ordered: bool) -> Floats:
    """Return two bells on a line, or Zipf's law."""
    places = np.arange(values) / values
    bells = np.exp(-0.5 * ((places - 0.3) / 0.08) ** 2) + 0.5 * np.exp(-0.5 * ((places - 0.75) / 0.06) ** 2) + 0.05
    shares = bells if ordered else 1.0 / np.arange(1.0, values + 1.0)
    return np.asarray(shares / shares.sum())


def compared(oracle: FrequencyOracle, users: int, truth: Floats, runs: int) -> tuple[Floats, Floats, float]:
    """Return the errors from whole reports and from sums, and how many times as long the whole reports took."""
    errors, spent = np.empty((2, runs)), np.zeros(2)
    for run in range(runs):
        rng = np.random.default_rng([28, run])
        values = oracle.domain.labels[rng.choice(truth.size, size=users, p=truth)]
        whole = hb.Reports.from_outputs(oracle, oracle.privatize(values, rng=rng))
        (block,) = whole.blocks
        support = oracle.support_counts(block.codes, whole.weights)  # type: ignore[union-attr]
        for place, reports in enumerate((whole, supported_reports(oracle, support.astype(np.int64), users))):
            start = time.process_time()
            shares = hb.estimate(reports).probabilities
            spent[place] += time.process_time() - start
            errors[place, run] = np.abs(shares - truth).sum() / 2
    return errors[0], errors[1], float(spent[0] / spent[1])


def main() -> None:
    """Measure all settings and save the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=12)
    runs = parser.parse_args().runs
    rows = []
    for values, users, epsilon in ((32, 3_000, 2.0), (64, 4_000, 1.0), (64, 4_000, 3.0), (128, 3_000, 4.0)):
        for ordered in (True, False):
            domain = hb.Integers(1, values) if ordered else hb.Categories([f"v{place}" for place in range(values)])
            for kind in (hb.OptimizedUnary, hb.Rappor, hb.LocalHashing, hb.SubsetSelection):
                oracle = kind(domain, epsilon)
                whole, sums, times = compared(oracle, users, truth_of(values, ordered), runs)
                ratio = float(np.median(sums / whole))
                values_text = f"{values} {'values of a line' if ordered else 'categories'}"
                rows.append(
                    row(
                        f"{kind.__name__}, {values_text}, {users:,} users, epsilon {epsilon:g}",
                        f"{runs} studies; error of whole reports {np.median(whole):.3f}, which took {times:.1f} times "
                        "as long",
                        f"{ratio:.2f} times the error by sums",
                        f"<= {MOST_LARGER}",
                        holds=ratio <= MOST_LARGER,
                    )
                )
    save("support_plans", rows)


if __name__ == "__main__":
    main()
