"""Results as files."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from hubbub.errors import IntakeError
from hubbub.estimation import Estimate
from hubbub.render import draw_whiskers
from hubbub.trust import Band

ENDINGS = (".json", ".csv", ".png", ".svg")


def write_result(found: Estimate, document: dict[str, Any], path: Path, band: Band | None = None) -> None:
    """Write an estimate as .json (everything), .csv (a table), .png or .svg (a picture)."""
    ending = path.suffix.lower()
    try:
        if ending == ".json":
            path.write_text(
                json.dumps(document, allow_nan=False, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
            )
        elif ending == ".csv":
            with path.open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                names = ["value", "probability", *([] if band is None else ["low", "high"])]
                writer.writerow(names)
                writer.writerows([entry[name] for name in names] for entry in document["estimate"])
        else:
            from matplotlib.figure import Figure

            figure = Figure(figsize=(8, 5), layout="constrained")
            axes = found.plot(figure.subplots())
            if band is not None:
                draw_whiskers(found.domain, band.low, band.high, axes)
            figure.savefig(path, dpi=120)
    except OSError as error:
        raise IntakeError(
            "the result cannot be written",
            where=str(path),
            got=error.strerror or str(error),
            expected="a path in a folder that exists",
            remedy="check the folder and its permissions",
        ) from None
