"""Matrix inversion: solve theta A = q, for any reports from which that has a single solution."""

from __future__ import annotations

import numpy as np

from hubbub.core.arrays import Array, Floats, Positions
from hubbub.core.errors import EstimateError
from hubbub.reports import Reports, Singles
from hubbub.solvers.weighted_inversion import OTHER_METHODS, LeastSquares, ValueByValue


def invert(reports: Reports) -> Floats:
    """Return the unconstrained solution v, which may have negative entries and, for sets of values, any sum.

    It is linear in the shares of outputs, and unbiased: its mean is the true distribution, whatever that is. For one
    mechanism with a square matrix A, v = q A^-1 with q the shares of the outputs; for all others see
    `weighted_inversion`.
    """
    block = reports.blocks[0]
    if ValueByValue.applies(reports):
        return ValueByValue(reports).shares
    if len(reports.blocks) == 1 and isinstance(block, Singles) and reports.domain.among is None:
        columns = _columns(block)
        if columns is not None:
            return _solve(block, reports.weights, columns)
    return LeastSquares(reports).shares


def null_deviations(reports: Reports) -> Floats:
    """Return the standard deviation of each inverted share, as far as known that of a value that nobody holds."""
    kind = ValueByValue if ValueByValue.applies(reports) else LeastSquares
    return kind(reports).null_deviations


def _solve(block: Singles, weights: Floats, columns: Positions) -> Floats:
    values = len(block.mechanism.domain)
    matrix = block.mechanism.checked_matrix()
    shares = np.zeros(values)
    shares[columns] = weights / weights.sum()
    scale = np.linalg.svd(matrix, compute_uv=False)
    rank = int(np.count_nonzero(scale > scale[0] * values * np.finfo(np.float64).eps))
    if rank < values:
        raise EstimateError(
            "the matrix is singular: it has no inverse",
            where=type(block.mechanism).__name__,
            got=f"rank {rank} for {values} values",
            expected=f"rank {values}",
            remedy=f"{OTHER_METHODS}; several distributions may fit equally well",
        )
    solution: Floats = np.linalg.solve(matrix.T, shares).astype(np.float64)
    return solution


def _columns(block: Singles) -> Positions | None:
    """Return the column of a square matrix of each pattern; None if the matrix is not square, or lacks a column."""
    outputs = block.mechanism.outputs
    if outputs is None or len(outputs) != len(block.mechanism.domain):
        return None
    if block.codes.ndim == 1:
        return block.codes
    return None if block.mechanism.domain.product is None else _listed_columns(block, outputs)


def _listed_columns(block: Singles, outputs: Array) -> Positions | None:
    """Return the place of each pattern in a list of outputs; None if one lacks an attribute, and so has none."""
    codes = block.mechanism.output_space.encode(outputs)
    column_of = {tuple(code): column for column, code in enumerate(codes.tolist())}
    columns = [column_of.get(tuple(code)) for code in block.codes.tolist()]
    return None if None in columns else np.array(columns, dtype=np.int64)
