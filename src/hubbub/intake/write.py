"""Results as files."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

from hubbub.estimation import Estimate
from hubbub.intake.tallies.durable import unwritten
from hubbub.render import draw_whiskers, write_row
from hubbub.trust import Band

ENDINGS = (".json", ".csv", ".geojson", ".png", ".svg")


def check_folder(path: Path | None) -> None:
    """Refuse a result in a folder that is not there, before it takes minutes to compute."""
    if path is not None and not path.parent.is_dir():
        raise unwritten(path, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)))


def write_result(found: Estimate, document: dict[str, Any], path: Path, band: Band | None = None) -> None:
    """Write an estimate as .json (everything), .csv (a table), .geojson (a map's cells), .png or .svg (a picture)."""
    ending = path.suffix.lower()
    try:
        if ending == ".json":
            write_json(document, path)
        elif ending == ".csv":
            with path.open("w", encoding="utf-8", newline="") as file:
                names = ["value", "probability", *([] if band is None else ["low", "high"])]
                write_row(file, names)
                for entry in document["estimate"]:
                    write_row(file, (entry[name] for name in names))
        elif ending == ".geojson":
            path.write_text(as_geojson(found, band), encoding="utf-8")
        else:
            from matplotlib.figure import Figure

            figure = Figure(figsize=(8, 5), layout="constrained")
            axes = found.plot(figure.subplots())
            if band is not None:
                draw_whiskers(found.domain, band.low, band.high, axes)
            figure.savefig(path, dpi=120)
    except OSError as error:
        raise unwritten(path, error) from None


def as_geojson(found: Estimate, band: Band | None) -> str:
    """Return the cells of a map with their probabilities, and their intervals where there are any."""
    return found.to_geojson() if band is None else found.to_geojson(low=band.low, high=band.high)


def write_groups(document: dict[str, Any], path: Path) -> None:
    """Write the estimates of several groups as .json (everything) or .csv (one table, with a column for the group)."""
    names = ["group", "value", "probability", "low", "high"]
    try:
        if path.suffix.lower() == ".json":
            write_json(document, path)
            return
        with path.open("w", encoding="utf-8", newline="") as file:
            write_row(file, names)
            for one in document["groups"]:
                for entry in one["estimate"]:
                    write_row(file, (one["group"], *(entry[name] for name in names[1:])))
    except OSError as error:
        raise unwritten(path, error) from None


def write_json(document: dict[str, Any], path: Path) -> None:
    """Write a document for people who open it: a line for each entry."""
    path.write_text(json.dumps(document, allow_nan=False, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
