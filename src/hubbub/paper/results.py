"""What was measured, by setting and method: for tables, checks and pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.paper.figure_specs import Figure
from hubbub.paper.places import Place
from hubbub.paper.settings import Setting
from hubbub.paper.work_units import WorkUnit, parts_of

# One row of a part's document and of the CSV files. Distances that were not asked for, and what a method does not
# have (inversion has no iterations), are None.
ROW_COLUMNS = ("run", "method", "tv", "emd", "iterations", "gap", "zero_values", "empty_values")

Row = dict[str, Any]


@dataclass(frozen=True)
class Results:
    """All that was measured: documents of parts, looked up by figure, setting and method."""

    place: Place
    seed: int
    quick: bool
    documents: Mapping[WorkUnit, Mapping[str, Any]]

    def rows(self, figure: Figure, setting: Setting) -> list[Row]:
        """Return one row for each run and method: those of every run first, then those of the first runs alone."""
        return [row for part in self._parts(figure, setting) for row in self.documents[part].get("rows", [])]

    def column(self, figure: Figure, setting: Setting, method: str, name: str) -> Floats:
        """Return a column ("tv", "emd", "iterations", ...) of one method, in the order of the runs; NaN where None."""
        rows = [row for row in self.rows(figure, setting) if row["method"] == method]
        values = [row[name] for row in sorted(rows, key=lambda row: int(row["run"]))]
        return np.array(values, dtype=np.float64)  # of None it makes NaN

    def methods(self, figure: Figure, setting: Setting) -> tuple[str, ...]:
        """Return the methods that were measured, in order."""
        return tuple(dict.fromkeys(row["method"] for row in self.rows(figure, setting)))

    def shape(self, figure: Figure, setting: Setting, method: str) -> Floats:
        """Return a method's answer in run 0, the one that is drawn; "truth" is the frequencies of its inputs."""
        for part in self._parts(figure, setting):
            shapes = self.documents[part].get("shapes", {})
            if method in shapes:
                return np.array(shapes[method], dtype=np.float64)
        raise KeyError(f"{method} in {setting.name}")

    def path(self, figure: Figure, setting: Setting) -> Mapping[str, Any]:
        """Return EM's way: "updates" (how many), "tv" (runs by updates), and "stops".

        The last is {method: {"iterations": by run, "tv": by run}}: where each delta rule stops.
        """
        return next(self.documents[part] for part in self._parts(figure, setting) if part.task == "path")

    def guesses(self, figure: Figure) -> list[Mapping[str, Any]]:
        """Return, for each mechanism, "name", "epsilon", "people", "reports" (how many), and how often guesses fail.

        That is, by reports: "wrong" as simulated, and the bounds "union" and "types".
        """
        return [self.documents[part] for part in parts_of(figure)]

    def _parts(self, figure: Figure, setting: Setting) -> list[WorkUnit]:
        own = (setting.truth, setting.users, setting.groups)
        return [
            part
            for part in parts_of(figure)
            if part.setting is not None and (part.setting.truth, part.setting.users, part.setting.groups) == own
        ]
