"""Matrix inversion: solve theta A = q, then make the solution a distribution (INV-N, INV-P)."""

from __future__ import annotations

import numpy as np

from hubbub.core.arrays import Array, Floats, Positions
from hubbub.core.errors import EstimateError
from hubbub.core.text import plural
from hubbub.mechanisms.frequency_oracle import FrequencyOracle
from hubbub.reports import BitSums, Joint, Reports, Singles


def invert(reports: Reports) -> Floats:
    """Return the unconstrained solution v, which may have negative entries and, for bits, any sum.

    For a mechanism with a square matrix A, v = q A^-1 with q the shares of the outputs. For frequency oracles, whose
    outputs support sets of values (unary, hashed, subsets, and k-RR itself), inversion works value by value: if the
    outputs of a share c_x of the users support x, which happens with probability p for the true value and q for
    another, then v_x = (c_x - q) / (p - q).
    """
    if reports.domain.among is not None:
        raise _not_invertible(
            "inversion works on the whole domain only",
            got=f"{len(reports.domain)} of {len(reports.domain.unrestricted)} values",
            expected="reports that are not restricted",
            reason=", which accept any subset of values",
        )
    block = reports.blocks[0]
    if len(reports.blocks) > 1 or not isinstance(block, Singles | BitSums):
        raise _not_invertible(
            "inversion needs one mechanism and one output for each user",
            got=_mixture_text(reports),
            expected="one mechanism, one output for each user",
            reason=", which accept any mixture of mechanisms",
        )
    if isinstance(block, BitSums):
        support, shares = block.mechanism.support, block.ones / block.senders
    elif isinstance(block.mechanism, FrequencyOracle):
        support = block.mechanism.support
        shares = block.mechanism.support_counts(block.codes, reports.weights) / reports.weights.sum()
    else:
        return _solve(block, reports.weights)
    return (shares - support.other) / (support.true - support.other)


def _not_invertible(
    what: str, *, got: str, expected: str, reason: str, where: str = 'estimate(method="inv-n" or "inv-p")'
) -> EstimateError:
    remedy = f'use method="ibu" or "mle"{reason}'
    return EstimateError(what, where=where, got=got, expected=expected, remedy=remedy)


def _mixture_text(reports: Reports) -> str:
    """Return what the reports hold, for the message that says why inversion does not apply."""
    contents = [plural(len(reports.mechanisms), "mechanism")]
    if any(isinstance(block, Joint) for block in reports.blocks):
        contents.append("some users with several outputs")
    if any(isinstance(block, BitSums) for block in reports.blocks):
        contents.append("sums of bits beside other reports")
    return ", ".join(contents)


def _solve(block: Singles, weights: Floats) -> Floats:
    name, values = type(block.mechanism).__name__, len(block.mechanism.domain)
    outputs = block.mechanism.outputs
    is_endless = outputs is None or (block.codes.ndim != 1 and block.mechanism.domain.product is None)
    if outputs is None or is_endless or len(outputs) != values:
        raise _not_invertible(
            "only a square matrix can be inverted",
            where=name,
            got=f"{values} values and {'infinitely many' if outputs is None or is_endless else len(outputs)} outputs",
            expected="as many outputs as values",
            reason=", which need no inverse",
        )
    matrix = block.mechanism.checked_matrix()
    shares = np.zeros(values)
    shares[_columns(block, outputs)] = weights / weights.sum()
    scale = np.linalg.svd(matrix, compute_uv=False)
    rank = int(np.count_nonzero(scale > scale[0] * values * np.finfo(np.float64).eps))
    if rank < values:
        raise _not_invertible(
            "the matrix is singular: it has no inverse",
            where=name,
            got=f"rank {rank} for {values} values",
            expected=f"rank {values}",
            reason="; several distributions may fit equally well",
        )
    solution: Floats = np.linalg.solve(matrix.T, shares).astype(np.float64)
    return solution


def _columns(block: Singles, outputs: Array) -> Positions:
    """Return the column of the matrix of each pattern."""
    if block.codes.ndim == 1:
        return block.codes
    codes = block.mechanism.output_space.encode(outputs)
    column_of = {tuple(code): column for column, code in enumerate(codes.tolist())}
    columns = [column_of.get(tuple(code)) for code in block.codes.tolist()]
    if None in columns:
        raise _not_invertible(
            "a report lacks an attribute",
            where=type(block.mechanism).__name__,
            got=block.mechanism.output_space.write(
                block.mechanism.output_space.decode(block.codes[[columns.index(None)]])[0]
            ),
            expected="reports with an output for every attribute",
            reason=", which take reports with some attributes",
        )
    return np.array(columns, dtype=np.int64)


def normalised(solution: Floats) -> Floats:
    """Set negative entries to 0 and divide by the sum (INV-N)."""
    positive = np.maximum(solution, 0.0)
    total = positive.sum()
    if total == 0.0:  # possible for bits only: every value is below its expected noise
        return np.full(solution.size, 1.0 / solution.size)
    normal: Floats = positive / total
    return normal


def projected(solution: Floats) -> Floats:
    """Return the nearest distribution in Euclidean distance (INV-P).

    It is max(v - t, 0) with the t that makes the sum 1, found by sorting (Wang and Carreira-Perpinan).
    """
    falling = np.sort(solution)[::-1]
    excess = (np.cumsum(falling) - 1.0) / np.arange(1, solution.size + 1)
    last = int(np.flatnonzero(falling > excess)[-1])
    nearest: Floats = np.maximum(solution - excess[last], 0.0)
    nearest /= nearest.sum()
    return nearest
