"""Write the least service losses that libqif finds: python service_loss.py > service_loss.json.

Needs the package `qif` (1.6.0), in an environment of its own; nothing of hubbub is used. Every case is a grid of unit
cells or a line, with losses and privacy by Euclidean distance or, where `loss` says so, 0 for the own place and 1 for
others. The prior is uniform, or skewed: proportional to 1 + 7 i modulo 11, at place i. The number is the loss of the
channel that `qif.mechanism.d_privacy.min_loss_given_d` returns, a linear program over all pairs without
approximation.
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import numpy as np

CASES: list[dict[str, Any]] = [
    *(
        {"columns": side, "rows": side, "epsilon": epsilon, "prior": prior, "loss": "distance"}
        for side, epsilons in ((3, (0.1, 0.5, 1.0, 2.0, 5.0)), (4, (0.25, 0.7, 1.5)), (5, (0.5, 1.0)), (6, (0.7,)))
        for epsilon in epsilons
        for prior in ("uniform", "skewed")
    ),
    {"columns": 7, "rows": 7, "epsilon": 0.7, "prior": "skewed", "loss": "distance"},
    {"columns": 10, "rows": 1, "epsilon": 0.99, "prior": "uniform", "loss": "hamming"},
    {"columns": 10, "rows": 1, "epsilon": 0.6, "prior": "skewed", "loss": "distance"},
    {"columns": 4, "rows": 2, "epsilon": 0.8, "prior": "skewed", "loss": "hamming"},
]


def least_loss(columns: int, rows: int, epsilon: float, prior: str, loss: str) -> float:
    """Return the loss of libqif's optimal channel."""
    import qif  # type: ignore[import-not-found]  # here, so that tests may collect this file without it

    places = [(column, row) for row in range(rows) for column in range(columns)]
    weights = np.array([1.0 if prior == "uniform" else 1.0 + 7 * place % 11 for place in range(len(places))])
    shares = weights / weights.sum()

    def distance(first: int, second: int) -> float:
        return math.dist(places[first], places[second])

    def cost(first: int, second: int) -> float:
        return distance(first, second) if loss == "distance" else float(first != second)

    channel = qif.mechanism.d_privacy.min_loss_given_d(
        shares, len(places), lambda first, second: epsilon * distance(first, second), cost
    )
    losses = np.array([[cost(first, second) for second in range(len(places))] for first in range(len(places))])
    return float(shares @ (np.asarray(channel) * losses).sum(axis=1))


if __name__ == "__main__":
    results = [{**case, "least_loss": least_loss(**case)} for case in CASES]
    sys.stdout.write(json.dumps(results, indent=1) + "\n")
