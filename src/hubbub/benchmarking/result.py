"""`Benchmark`, the result of `benchmark`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.benchmarking.benchmark_plot import draw_benchmark
from hubbub.benchmarking.benchmark_sentences import benchmark_sentences
from hubbub.benchmarking.contenders import MethodChoice, RunRow, Setup, truth_key
from hubbub.benchmarking.paired_differences import SettingRanking, rankings
from hubbub.core import validation
from hubbub.core.arrays import Floats, frozen
from hubbub.core.serialization import Portable
from hubbub.domains import Domain
from hubbub.planning.answers import DISTANCE_NAMES
from hubbub.rendering.new_figure import axes_or_new

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

QUANTILES = {"q10": 0.1, "median": 0.5, "q90": 0.9}
STATISTICS = ("mean", "error", *QUANTILES)
COLUMNS = (
    "mechanism", "epsilon", "method", "truth", "users", "runs", "failures", "failure",
    *(f"tv_{name}" for name in STATISTICS), *(f"emd_{name}" for name in STATISTICS), "seconds",
)  # fmt: skip
RUN_COLUMNS = ("mechanism", "epsilon", "method", "truth", "users", "run", "tv", "emd", "seconds", "failure")


@dataclass(frozen=True, eq=False)
class BenchmarkCell(Portable):
    """One mechanism, method, truth and number of users with all its runs; what failed is NaN and has a message."""

    mechanism: str
    epsilon: float | None
    method: str
    truth: str
    users: int
    tv: Floats
    emd: Floats
    seconds: Floats
    messages: tuple[str, ...]  # for each run; empty where it did not fail

    @property
    def mechanism_label(self) -> str:
        """The mechanism with its epsilon."""
        return self.mechanism if self.epsilon is None else f"{self.mechanism} {self.epsilon:g}"

    @property
    def label(self) -> str:
        """The mechanism with its epsilon, and the method."""
        return f"{self.mechanism_label} by {self.method}"

    @property
    def failures(self) -> int:
        """How many runs failed."""
        return sum(map(bool, self.messages))

    @property
    def failure(self) -> str:
        """The first message; empty where no run failed."""
        return next(filter(None, self.messages), "")

    def errors(self, distance: str) -> Floats:
        """Return the errors of all runs in "tv" or "emd"."""
        return self.emd if distance == "emd" else self.tv

    def measured(self, distance: str) -> int:
        """Return how many runs have an error."""
        return int(np.isfinite(self.errors(distance)).sum())

    def mean(self, distance: str) -> float:
        """Return the mean error over the runs that did not fail; infinite without any."""
        errors = self.errors(distance)
        return float(errors[np.isfinite(errors)].mean()) if self.measured(distance) else math.inf

    def statistics(self, distance: str) -> dict[str, float | None]:
        """Return mean, standard error of the mean and quantiles; None where runs are too few."""
        errors = self.errors(distance)
        errors = errors[np.isfinite(errors)]
        found: dict[str, float | None] = dict.fromkeys(f"{distance}_{name}" for name in STATISTICS)
        if errors.size:
            found[f"{distance}_mean"] = float(errors.mean())
            found |= {f"{distance}_{name}": float(np.quantile(errors, share)) for name, share in QUANTILES.items()}
        if errors.size > 1:
            found[f"{distance}_error"] = float(errors.std(ddof=1) / math.sqrt(errors.size))
        return found


def cells_of(
    setups: Sequence[Setup],
    methods: Sequence[MethodChoice],
    keys: Mapping[tuple[str, float | None, int], str],
    runs: int,
    rows: Mapping[Any, RunRow],
) -> tuple[BenchmarkCell, ...]:
    """Return the cells of all runs, in the order in which they were asked for; `keys` are those of the mechanisms."""
    cells = []
    for setup in setups:
        mechanism, truth = keys[setup.candidate.key], truth_key(setup.truth)
        for method in methods:
            own = [rows[mechanism, method.key, truth, setup.users, run] for run in range(runs)]
            tv, emd, seconds = (_floats([getattr(row, name) for row in own]) for name in ("tv", "emd", "seconds"))
            names = (setup.candidate.name, setup.candidate.epsilon, method.name, setup.truth.name, setup.users)
            cells.append(BenchmarkCell(*names, tv, emd, seconds, tuple(row.failure for row in own)))
    return tuple(cells)


def _floats(values: Sequence[float | None]) -> Floats:
    return frozen(np.array([math.nan if value is None else value for value in values]))


@dataclass(frozen=True, eq=False)
class Benchmark(Portable):
    """Errors and times of all cells of a benchmark: each mechanism, method, truth and number of users.

    `explain` says who is best where, and whether it is beyond noise; `to_frame`, `runs_frame`, `plot` and `to_json`
    give the numbers.

    Attributes
    ----------
    domain : Domain
        The values.
    seed : int
        What all draws are made from.
    runs : int
        How often each cell was simulated.
    cells : tuple of BenchmarkCell
        One for each mechanism, method, truth and number of users, with all its runs.

    Examples
    --------
    >>> import hubbub as hb
    >>> kinds = ["randomized-response", "optimized-unary"]
    >>> colours = hb.Categories(["red", "green", "blue"])
    >>> result = hb.benchmark(kinds, "inv-p", "zipf", users=2_000, runs=20, domain=colours, epsilon=1.0)
    >>> ranking = result.rankings()[0]
    >>> ranking.best.label, [each.is_clear for each in ranking.differences]
    ('randomized-response 1 by inv-p', [False])
    """

    domain: Domain
    seed: int
    runs: int
    cells: tuple[BenchmarkCell, ...]

    def rankings(self, distance: str = "tv", level: float = 0.95) -> list[SettingRanking]:
        """Return who is best under each truth and number of users, and the paired difference of each other cell.

        Parameters
        ----------
        distance : {"tv", "emd"}, default "tv"
            The error to compare by.
        level : float, default 0.95
            The probability with which all intervals of one truth and number of users hold together.

        Returns
        -------
        list of SettingRanking
            One for each truth and number of users.

        Raises
        ------
        SettingError
            If nothing was measured by the distance, or the level is not between 0 and 1.
        """
        return rankings(self.cells, _checked(self, distance), validation.level(level, "Benchmark.rankings"))

    def explain(self, distance: str = "tv", level: float = 0.95) -> str:
        """Return in words who is best where, whether that is beyond noise, and what failed.

        Parameters
        ----------
        distance : {"tv", "emd"}, default "tv"
            The error to compare by.
        level : float, default 0.95
            The probability with which all intervals of one truth and number of users hold together.

        Returns
        -------
        str
            One paragraph for each truth and number of users.
        """
        ranked = self.rankings(distance, level)
        return "\n".join(benchmark_sentences(self.cells, ranked, distance, level, self.domain.unit))

    def __str__(self) -> str:
        return self.explain()

    def __repr__(self) -> str:
        return f"Benchmark({len(self.cells)} cells, {self.runs} runs each)"

    def _repr_html_(self) -> str:
        return str(self.to_frame().to_html(index=False))

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each cell.

        Returns
        -------
        list of dict
            The rows of `to_frame`; what is unknown is None.
        """
        return [
            {
                **{name: getattr(cell, name) for name in COLUMNS[:5]},
                "runs": self.runs,
                "failures": cell.failures,
                "failure": cell.failure,
                **cell.statistics("tv"),
                **cell.statistics("emd"),
                "seconds": float(np.nanmedian(cell.seconds)) if cell.failures < self.runs else None,
            }
            for cell in self.cells
        ]

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each cell: means of errors, their standard errors and quantiles, failures, time.

        Returns
        -------
        pandas.DataFrame
            `seconds` is the median time of an estimate on one processor; `failure` the first message.
        """
        import pandas as pd

        return pd.DataFrame(self.rows(), columns=list(COLUMNS))

    def runs_frame(self) -> pd.DataFrame:
        """Return one row for each run of each cell.

        Returns
        -------
        pandas.DataFrame
            Rows with equal truth, users and run are of the same people; with the same mechanism, of the same reports.
        """
        import pandas as pd

        rows = [
            [*(getattr(cell, name) for name in RUN_COLUMNS[:5]), run, *numbers]
            for cell in self.cells
            for run, numbers in enumerate(zip(cell.tv, cell.emd, cell.seconds, cell.messages, strict=True))
        ]
        return pd.DataFrame(rows, columns=list(RUN_COLUMNS))

    def document(self) -> dict[str, Any]:
        """Return what `to_json` writes, as plain Python values.

        Returns
        -------
        dict
            With a version; `values` are the errors of all runs, None where one failed.
        """
        cells = [
            row | {"values": {name: _plain(getattr(cell, name)) for name in ("tv", "emd", "seconds")}}
            for row, cell in zip(self.rows(), self.cells, strict=True)
        ]
        return {
            "version": 1,
            "seed": self.seed,
            "runs": self.runs,
            "unit": self.domain.unit,
            "text": self.explain(),
            "cells": cells,
        }

    def to_json(self) -> str:
        """Return the benchmark as one JSON document.

        Returns
        -------
        str
            What is unknown is null.
        """
        return json.dumps(self.document(), allow_nan=False, ensure_ascii=False)

    def plot(self, axes: Axes | None = None, distance: str = "tv") -> Axes:
        """Draw the mean errors of all cells: against users where there are several numbers, else best on top.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw; left out, a new figure is made.
        distance : {"tv", "emd"}, default "tv"
            The error to draw.

        Returns
        -------
        matplotlib.axes.Axes
            The axes that were drawn on.

        Raises
        ------
        SettingError
            If nothing was measured by the distance.
        """
        checked = _checked(self, distance)
        axes = axes_or_new(axes)
        draw_benchmark(self.cells, checked, self.domain.unit, axes)
        return axes


def _checked(result: Benchmark, distance: str) -> str:
    choices = DISTANCE_NAMES if any(cell.measured("emd") for cell in result.cells) else ("tv",)
    return validation.one_of(distance, choices, "distance", "Benchmark", default="'tv'")


def _plain(numbers: Floats) -> list[float | None]:
    return [float(number) if math.isfinite(number) else None for number in numbers]
