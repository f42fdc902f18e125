"""The work in parts: each is done in one go, kept on the disk, and never done again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version

from hubbub.paper.figure_specs import Figure
from hubbub.paper.settings import Setting

HUBBUB_VERSION = version("hubbub")  # what older code measured is measured again
LIBRARY_VERSIONS = (version("numpy"), version("scipy"))  # whose random numbers and rounding are in every result
RUNS_PER_PART = 25  # runs in one part: enough for products of matrices, few enough to lose when stopped


@dataclass(frozen=True)
class WorkUnit:
    """Something to be measured. Equal parts of different figures are measured once."""

    task: str  # "runs", "beyond", "path" or "guesses"
    setting: Setting | None
    first: int  # the first run
    count: int
    options: str = ""  # JSON: what only this task needs
    cost: float = 1.0  # seconds, roughly: for the progress bar alone

    @property
    def name(self) -> str:
        """What is measured, for people."""
        return "one person's reports" if self.setting is None else self.setting.name

    def key(self, seed: int, place: str) -> str:
        """Return a name that is the same exactly if the result is: the place counts only where it is the truth."""
        about = "" if self.setting is None or self.setting.truth.kind != "place" else place
        setting = self.setting and self.setting.as_text()
        decisive = [seed, about, self.task, setting, self.first, self.count, self.options]
        text = json.dumps([HUBBUB_VERSION, LIBRARY_VERSIONS, *decisive])
        return f"{self.task}-{hashlib.sha256(text.encode()).hexdigest()[:24]}"


def parts_of(figure: Figure) -> list[WorkUnit]:
    """Return the work behind one figure."""
    if figure.kind == "guesses":
        by_mechanism = ({**figure.options, "mechanisms": [mechanism]} for mechanism in figure.options["mechanisms"])
        return [WorkUnit("guesses", None, 0, 1, json.dumps(own, sort_keys=True), 3.0) for own in by_mechanism]
    parts: list[WorkUnit] = []
    for setting in figure.settings:
        size = 1.0 if setting.truth.kind == "place" else 0.15
        plain = replace(setting, beyond=())
        if figure.kind == "paths":
            options = json.dumps(dict(figure.options), sort_keys=True)
            parts.append(WorkUnit("path", plain, 0, figure.runs, options, 8.0 * size))
        else:
            for first in range(0, figure.runs, RUNS_PER_PART):
                count = min(RUNS_PER_PART, figure.runs - first)
                parts.append(WorkUnit("runs", plain, first, count, cost=4.0 * size * count / RUNS_PER_PART))
        if setting.beyond:  # a part for each run: figures that agree on the draws share it, whatever else they measure
            costly = replace(setting, methods=(), distances=("tv", "emd"))
            parts += [WorkUnit("beyond", costly, run, 1, cost=7.0 * size) for run in range(figure.beyond_runs)]
    return parts


def all_parts(figures: Sequence[Figure]) -> list[WorkUnit]:
    """Return the work behind some figures, each part once; the longest first, so that all processes end together."""
    parts = {part: None for figure in figures for part in parts_of(figure)}
    return sorted(parts, key=lambda part: -part.cost)
