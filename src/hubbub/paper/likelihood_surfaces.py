"""The paper's small examples: a matrix on three values and a handful of observations."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.domains import Integers
from hubbub.mechanisms import Matrix
from hubbub.paper.figure_specs import Figure
from hubbub.reports import Reports


@dataclass(frozen=True)
class Surface:
    """A log-likelihood over all distributions on {1, 2, 3}, and where EM is to start."""

    name: str
    matrix: tuple[tuple[Fraction, ...], ...]
    counts: tuple[int, ...]
    starts: tuple[tuple[float, ...], ...]
    note: str = ""  # what the picture says of it besides

    @property
    def reports(self) -> Reports:
        """The observations."""
        values = Integers(1, len(self.matrix))
        mechanism = Matrix(values, values.labels, np.array(self.matrix, dtype=np.float64))
        return Reports.from_counts(mechanism, list(self.counts))

    def log_likelihood(self, thetas: Floats) -> Floats:
        """Return the total log-likelihood of each row."""
        values: Floats = np.log(thetas @ np.array(self.matrix, dtype=np.float64)) @ np.array(self.counts)
        return values

    def slopes_at(self, corner: int) -> dict[int, Fraction]:
        """Return dL/dtheta_x at the corner where all are of one value, exactly, as that value's share makes room.

        L = sum_z n_z log sum_x theta_x a_xz with theta_c = 1 - the others: dL/dtheta_x = sum_z n_z (a_xz / a_cz - 1).
        """
        matrix = self.matrix
        return {
            value: sum((n * (a / c - 1) for n, a, c in zip(self.counts, row, matrix[corner], strict=True)), Fraction(0))
            for value, row in enumerate(matrix)
            if value != corner
        }

    def em_iterates(self, start: tuple[float, ...], updates: int) -> Floats:
        """Return EM's distributions from a start on, one row for each update: no rule stops it."""
        matrix = np.array(self.matrix, dtype=np.float64)
        shares = np.array(self.counts) / sum(self.counts)
        thetas = np.empty((updates + 1, len(start)))
        thetas[0] = start
        for update in range(updates):
            theta = thetas[update]
            thetas[update + 1] = theta * (matrix @ (shares / (theta @ matrix)))
        return thetas


def surfaces_of(figure: Figure) -> tuple[Surface, ...]:
    """Return the surfaces that a figure shows."""
    return tuple(
        Surface(
            entry["name"],
            tuple(tuple(map(Fraction, row)) for row in entry["matrix"]),
            tuple(entry["counts"]),
            tuple(map(tuple, entry["starts"])),
            entry.get("note", ""),
        )
        for entry in figure.options["surfaces"]
    )
