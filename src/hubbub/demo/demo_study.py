"""The demo's study: what client, collector and analyst share."""

from __future__ import annotations

import tomllib

from hubbub.demo.city import CELL_KM, COLUMNS, ROWS
from hubbub.intake.study import Study, parse_study

EPSILON = 1.0  # per kilometre

STUDY = f"""# The study of hubbub's demo: what client, collector and analyst share.
version = 1
name = "demo city"

[domain]
kind = "grid"
columns = {COLUMNS}
rows = {ROWS}
cell = {CELL_KM}   # km

[mechanisms.planar]
kind = "planar-geometric"
epsilon = {EPSILON}   # per km
"""


def demo_study() -> Study:
    """Return the study that the text describes."""
    return parse_study(tomllib.loads(STUDY), "the demo's study")
