"""How lucky the oracle is in small samples: EM stopped where it is best on average, against the best iterate of a draw.

Run: python benchmarks/best_stop.py

A rule for stopping EM can at best know where a truth, a mechanism and a number of users ask it to stop on average. The
oracle of the accuracy study also knows the draw. The ratio of the two is what nobody can avoid.
"""

from __future__ import annotations

import numpy as np

from cases import Case, cases, drawn
from em_path import em_path, total_variations
from hubbub.core.text import plural
from measure import row, save

DRAWS = 30
FAR = 2.0


def measured(case: Case) -> dict[str, object]:
    """Compare the best fixed number of updates with the best of each draw."""
    paths = []
    for seed in range(DRAWS):
        _, truth, reports = drawn(case, seed, None)
        paths.append(total_variations(em_path(reports), truth)[1:])  # the start is not an answer
    longest = max(path.size for path in paths)
    errors = np.stack([np.pad(path, (0, longest - path.size), mode="edge") for path in paths])
    best = int(errors.mean(axis=0).argmin())
    ratios = errors[:, best] / errors.min(axis=1)
    found = f"{ratios.max():.2f} in the worst draw, above {FAR:g} in {int((ratios > FAR).sum())} of {DRAWS}"
    return row(case.name, f"TV after {plural(best + 1, 'update')} / TV(oracle)", found, "shown", holds=True)


def main() -> None:
    """Measure, print and keep."""
    chosen = [case for case in cases(with_data=False) if case.small_sample and case.truth.startswith("short")]
    save("best_stop", [measured(case) for case in chosen if "even" not in case.truth])


if __name__ == "__main__":
    main()
