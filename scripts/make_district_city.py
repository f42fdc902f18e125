"""Make a fictional city of 50,000 people in 20 districts: study, privatized reports, districts and the page.

For looking at maps, and for trying commands: study.toml, reports.csv, districts.geojson and report.html. The files are
the same in every run, because the noise is drawn from a seed; a real study draws it from the operating system.

Run: python scripts/make_district_city.py FOLDER [--quick]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import districts
import hubbub as hb
from hubbub.domains.geometry import BOX_SIDES
from hubbub.reporting import Page, make_page, write_page

PEOPLE, EPSILON, SEED = 50_000, 1.0, 7  # epsilon for each kilometre
STUDY = """version = 1
name = "Where people of the city spend the evening"

[domain]
kind = "grid"
{box}
columns = {columns}
rows = {rows}

[mechanisms.place]
kind = "planar-geometric"
epsilon = {epsilon}
"""


def write_sources(folder: Path) -> None:
    """Write the study, the reports and the districts."""
    folder.mkdir(parents=True, exist_ok=True)
    grid, rng = districts.city_grid(), np.random.default_rng(SEED)
    box = "\n".join(f"{side} = {getattr(grid.box, side)}" for side in BOX_SIDES)
    text = STUDY.format(box=box, columns=grid.columns, rows=grid.rows, epsilon=EPSILON)
    (folder / "study.toml").write_text(text, encoding="utf-8")
    (folder / "districts.geojson").write_text(json.dumps(districts.districts().geojson()), encoding="utf-8")
    mechanism = hb.PlanarGeometric(grid, EPSILON)
    outputs = mechanism.privatize(rng.choice(grid.labels, PEOPLE, p=districts.population()), rng=rng)
    (folder / "reports.csv").write_text("output\n" + "\n".join(map(str, outputs.tolist())) + "\n", encoding="utf-8")


def city_page(folder: Path, *, quick: bool) -> Page:
    """Return the page of the files in a folder."""
    study = hb.read_study(folder / "study.toml")
    reports = hb.read_reports(folder / "reports.csv", study)
    return make_page(
        reports, title=study.name, regions=hb.regions(study.domain, folder / "districts.geojson"), quick=quick
    )


def main() -> None:
    """Write all four files."""
    folder = Path(sys.argv[1])
    write_sources(folder)
    write_page(city_page(folder, quick="--quick" in sys.argv), folder / "report.html")


if __name__ == "__main__":
    main()
