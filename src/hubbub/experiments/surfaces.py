"""The paper's small examples: a matrix on three values and a handful of observations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.arrays import Floats
from hubbub.domains import Integers
from hubbub.experiments.spec import Figure
from hubbub.mechanisms import Matrix
from hubbub.reports import Reports


@dataclass(frozen=True)
class Surface:
    """A log-likelihood over all distributions on {1, 2, 3}, and where EM is to start."""

    name: str
    matrix: tuple[tuple[Fraction, ...], ...]
    counts: tuple[int, ...]
    starts: tuple[tuple[float, ...], ...]

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


def surfaces_of(figure: Figure) -> tuple[Surface, ...]:
    """Return the surfaces that a figure shows."""
    return tuple(_surface(given) for given in figure.options["surfaces"])


def _surface(given: Mapping[str, Any]) -> Surface:
    matrix = tuple(tuple(Fraction(entry) for entry in row) for row in given["matrix"])
    return Surface(given["name"], matrix, tuple(given["counts"]), tuple(tuple(start) for start in given["starts"]))
