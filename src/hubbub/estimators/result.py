"""The one result type: the same fields from every method."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.errors import EstimateError
from hubbub.core.portable import Portable, ReadOnly
from hubbub.domains import Domain
from hubbub.estimators.auto import Selection
from hubbub.rendering import Fact, distribution_html, draw_distribution, facts_text, geojson, upper_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class History(Portable):
    """The way of an iterative method: entry t is after t steps, entry 0 the start."""

    log_likelihood: Floats
    probabilities: Floats  # steps by values


@dataclass(frozen=True, eq=False)
class Estimate(Portable):
    """A distribution over the domain, with its status and certificate.

    `probabilities` follows the order of ``domain.labels``. `converged` says whether the method's own rule was
    met. `gap` bounds how far the mean log-likelihood lies below its maximum, in nats per user, whatever the
    method: 0 exactly at a maximum. `status` says all of this in a sentence.
    """

    domain: Domain
    probabilities: Floats
    method: str
    status: str
    converged: bool
    log_likelihood: float
    gap: float
    iterations: int
    users: int
    settings: Mapping[str, Any] = field(default_factory=lambda: ReadOnly({}))
    history: History | None = None

    def facts(self) -> list[Fact]:
        """Return what is worth saying about this estimate."""
        return [
            Fact("method", self.method),
            Fact("status", self.status),
            Fact("users", f"{self.users:,}"),
            Fact("values", f"{len(self.domain):,}"),
            Fact("log-likelihood", f"{self.log_likelihood:,.4f}"),
            Fact("gap", f"at most {upper_text(self.gap, 3)} nats per user (0 at a maximum)"),
            Fact("iterations", f"{self.iterations:,}"),
        ]

    def __repr__(self) -> str:
        return f"Estimate(method={self.method!r}, values={len(self.domain)}, status={self.status!r})"

    def __str__(self) -> str:
        return facts_text(self.facts())

    def _repr_html_(self) -> str:
        return distribution_html(self.facts(), self.domain, self.probabilities)

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table with columns value and probability."""
        import pandas as pd

        return pd.DataFrame({"value": self.domain.labels, "probability": self.probabilities})

    def document(self) -> dict[str, Any]:
        """Return what `to_json` writes; numbers that are not finite are None."""
        return {
            "version": 1,
            "method": self.method,
            "status": self.status,
            "converged": self.converged,
            "users": self.users,
            "log_likelihood": finite(self.log_likelihood),
            "gap": finite(self.gap),
            "iterations": self.iterations,
            "settings": {name: _plain(value) for name, value in self.settings.items()},
            "estimate": [
                {"value": value, "probability": probability}
                for value, probability in zip(self.domain.labels.tolist(), self.probabilities.tolist(), strict=True)
            ],
        }

    def to_json(self) -> str:
        """Return one JSON document."""
        return json.dumps(self.document(), allow_nan=False, ensure_ascii=False)

    def to_geojson(self, *, low: Floats | None = None, high: Floats | None = None) -> str:
        """Return a GeoJSON document for map tools: each cell of a grid over the map, with its probability.

        `low` and `high` are added where they are given: those of a `hubbub.band`, for example. A grid has a place on
        the map if it was made by `Grid.over`.
        """
        columns = {"probability": self.probabilities}
        for name, ends in (("low", low), ("high", high)):
            if ends is None:
                continue
            column = np.asarray(ends, dtype=np.float64)
            if column.shape != self.probabilities.shape:
                raise EstimateError(
                    f"{name} is not about these values",
                    where=f"to_geojson({name}=)",
                    got=f"shape {column.shape}",
                    expected=f"{len(self.domain):,} numbers, in the order of domain.labels",
                    remedy="pass low and high of hubbub.band for the same reports",
                )
            columns[name] = column
        return geojson(self.domain, columns)

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the distribution: a map, a line or bars, as the domain asks; return the axes."""
        if axes is None:
            import matplotlib.pyplot as plt

            _, axes = plt.subplots(layout="constrained")
        draw_distribution(self.domain, self.probabilities, axes)
        axes.set_title(f"{self.method}: {self.users:,} users")
        return axes


def finite(number: float) -> float | None:
    """Return the number, or None where JSON has no word for it."""
    return number if math.isfinite(number) else None


def _plain(value: object) -> object:
    if isinstance(value, Selection):
        return value.rows()
    if isinstance(value, float):
        return finite(value)
    return value if isinstance(value, str | int | bool | None) else str(value)
