"""Estimate a distribution with one tool, as its own documentation shows: first_use.py TOOL PROBLEM.

PROBLEM is a JSON file with `outputs` of k-ary randomized response over 0 to `values` - 1, one for each user, and
`epsilon`. What is printed is a JSON object from the name of each estimate to its shares.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def multi_freq_ldpy(outputs: list[int], values: int, epsilon: float) -> dict[str, Any]:
    """Matrix inversion, the iterative Bayesian update, and since 0.2.5 the maximum of the likelihood of k-RR."""
    import numpy as np
    from multi_freq_ldpy.pure_frequency_oracles import GRR  # type: ignore[import-not-found]

    reports = np.array(outputs)
    found = {}
    for name in ("GRR_Aggregator_MI", "GRR_Aggregator_IBU", "GRR_Aggregator_MLE"):
        if hasattr(GRR, name):
            found[name] = getattr(GRR, name)(reports, values, epsilon).tolist()
    return found


def pure_ldp(outputs: list[int], values: int, epsilon: float) -> dict[str, Any]:
    """Direct encoding: the unbiased estimate, and what is left of it when it is made a distribution."""
    from pure_ldp.frequency_oracles.direct_encoding import DEServer  # type: ignore[import-not-found]

    server = DEServer(epsilon, values, index_mapper=lambda value: value)
    for output in outputs:
        server.aggregate(output)
    counts = server.estimate_all(range(values), suppress_warnings=True)
    return {"DEServer.estimate_all": [float(count) / len(outputs) for count in counts]}


def pyunfold(outputs: list[int], values: int, epsilon: float) -> dict[str, Any]:
    """D'Agostini's unfolding, as it comes."""
    import numpy as np
    from pyunfold import iterative_unfold  # type: ignore[import-not-found]

    truth = np.exp(epsilon) / (np.exp(epsilon) + values - 1)
    response = np.full((values, values), (1 - truth) / (values - 1))
    np.fill_diagonal(response, truth)
    data = np.bincount(outputs, minlength=values).astype(float)
    found = iterative_unfold(
        data=data,
        data_err=np.sqrt(data),
        response=response,
        response_err=np.zeros_like(response),
        efficiencies=np.ones(values),
        efficiencies_err=np.zeros(values),
    )
    shares = found["unfolded"] / found["unfolded"].sum()
    return {f"iterative_unfold, stopped after {found['num_iterations']} iteration(s)": shares.tolist()}


def opendp(outputs: list[int], values: int, epsilon: float) -> dict[str, Any]:  # noqa: ARG001
    """Privatize one value; what many people sent is estimated for vectors of bits only."""
    import opendp.prelude as dp  # type: ignore[import-not-found]

    dp.enable_features("contrib")
    probability = 2.718281828459045**epsilon / (2.718281828459045**epsilon + values - 1)
    mechanism = dp.m.make_randomized_response(list(range(values)), probability)
    if mechanism(3) not in range(values):
        raise ValueError("a report outside the categories")
    return {"make_randomized_response": None}


def qif(outputs: list[int], values: int, epsilon: float) -> dict[str, Any]:
    """Run the iterative Bayesian update as it comes."""
    import numpy as np
    from qif.channel import iterative_bayesian_update  # type: ignore[import-not-found]

    matrix = np.ones((values, values)) + np.diag(np.full(values, np.exp(epsilon) - 1))
    shares = np.bincount(outputs, minlength=values) / len(outputs)
    return {"iterative_bayesian_update": iterative_bayesian_update(matrix / matrix[0].sum(), shares)[0].tolist()}


if __name__ == "__main__":
    problem = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    print(json.dumps(globals()[sys.argv[1]](problem["outputs"], problem["values"], problem["epsilon"])))
