"""New study files from templates: the numbers and labels of the user's own question in their places."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hubbub.client import study_document
from hubbub.core.errors import SettingError, shorten
from hubbub.core.redaction import redact
from hubbub.core.text import plural
from hubbub.intake.new_studies.label_lists import is_list, read_labels, split_labels
from hubbub.intake.new_studies.public_places import box_of_places
from hubbub.intake.new_studies.suggested_grid import SuggestedGrid, suggest_grid
from hubbub.intake.study import parse_study
from hubbub.intake.study_files import template, write_new_study

OPTIONS_BY_KIND = {
    "categories": ("labels", "column"),
    "integers": ("low", "high"),
    "bins": ("edges",),
    "grid": ("places", "cell", "columns", "rows"),
    "product": (),
}
EPSILON_PER_CELL = {"strong": 0.35, "light": 1.0}  # of the two mechanisms of the template, over the side of a cell


@dataclass(frozen=True)
class StudyDraft:
    """The text of a new study file, and what to say about it."""

    text: str
    notes: tuple[str, ...] = ()

    def write(self, path: Path) -> None:
        """Write it to a new file; an existing one is never overwritten."""
        write_new_study(self.text, path)


def draft_study(kind: str, *, name: str | None = None, **given: Any) -> StudyDraft:
    """Return a commented study file for a kind of domain.

    Parameters
    ----------
    kind
        categories, integers, bins, grid or product.
    name
        The title of the study; by default the template's, or the name of the file that is read.
    given
        What the domain is made of: `labels` (separated by commas, or a file) and `column`; `low` and `high`; `edges`;
        `places` (a file of public places), `cell` in kilometres, `columns` and `rows`. None stands for what was not
        given.

    Returns
    -------
    StudyDraft
        The text, which is checked to be a valid study, and notes for the user.
    """
    text = template(kind)
    chosen = {option: value for option, value in given.items() if value is not None}
    for option in chosen:
        if option not in OPTIONS_BY_KIND[kind]:
            known = ", ".join(_option(each) for each in OPTIONS_BY_KIND[kind])
            expected = f"for {kind}: {known or 'no options; describe the attributes in the file'}"
            raise _refused(kind, option, chosen[option], expected, "leave it out")
    notes: list[str] = []
    if kind == "categories":
        text, notes = _with_labels(text, **chosen)
    elif kind == "grid":
        text, notes = _with_grid(text, **chosen)
    else:
        for option, value in chosen.items():
            text = _with_entry(text, option, list(value) if isinstance(value, Sequence) else value)
        if edges := chosen.get("edges"):
            bins = f"# bin 0 is {edges[0]:g} up to {edges[1]:g}, and so on; reports hold" if len(edges) > 1 else "#"
            text = re.sub(r"(?m)^(edges = .*\]).*reports hold", lambda match: f"{match[1]}   {bins}", text)
    path = chosen.get("places") or _file_of_labels(chosen.get("labels"))
    if title := name or (Path(path).stem.replace("_", " ") if path else None):
        text = _with_entry(text, "name", redact(title))
    parse_study(study_document(text, "the new study"), "the new study")  # what is wrong with the numbers is told here
    return StudyDraft(text, tuple(notes))


def _file_of_labels(labels: Path | str | None) -> Path | None:
    return None if labels is None or is_list(str(labels)) else Path(labels)


def _with_labels(text: str, labels: Path | str | None = None, column: str | None = None) -> tuple[str, list[str]]:
    path = _file_of_labels(labels)
    if path is None:
        if column is not None:
            raise _refused(
                "categories", "column", column, "the column of a table of labels", "name the file with --labels"
            )
        if labels is None:
            return text, []
        few = split_labels(str(labels))
        listing = ", ".join(_toml(label) for label in few.labels)
        return re.sub(r"(?m)^labels = .*$", lambda _: f"labels = [{listing}]", text, count=1), few.notes
    read = read_labels(path, column)
    count = plural(len(read.labels), "label")
    lines = "".join(f"  {_toml(label)},\n" for label in read.labels)
    comment = (
        f"# {count} of {path.name}. This file is public: take labels from the question,\n"
        "# never from what people answered.\n"
    )
    text = re.sub(r"(?m)^labels = .*$", lambda _: f"{comment}labels = [\n{lines}]", text, count=1)
    return text, [
        *read.notes,
        f"{count} of {path.name} become public with the study file",
    ]


def _with_grid(
    text: str,
    places: Path | None = None,
    cell: float | None = None,
    columns: int | None = None,
    rows: int | None = None,
) -> tuple[str, list[str]]:
    if places is None:
        for option, number in (("cell", cell), ("columns", columns), ("rows", rows)):
            if number is not None:
                raise _refused("grid", option, number, "a file of public places", "name it with --from FILE")
        return text, []
    found = box_of_places(Path(places))
    grid = suggest_grid(found.box, cell=cell, columns=columns, rows=rows)
    for side in ("south", "west", "north", "east"):
        text = _with_entry(text, side, getattr(grid.box, side))
    text = _with_entry(_with_entry(text, "columns", grid.columns), "rows", grid.rows)
    side_km = (grid.cell[0] * grid.cell[1]) ** 0.5
    for mechanism, nats in EPSILON_PER_CELL.items():
        epsilon = float(f"{nats / side_km:.2g}")
        text = re.sub(rf"(\[mechanisms\.{mechanism}\]\n.*\nepsilon = )[0-9.]+", rf"\g<1>{epsilon}", text)
    size = _size(grid)
    outside = f"; {plural(found.left_out, 'point')} far away from the others left out" if found.left_out else ""
    comment = (
        f"# Suggested from {found.found}{outside}: {grid.columns} x {grid.rows} cells of {size}.\n"
        "# THE BOX IS PUBLIC: everybody gets this file. It must come from public places (addresses, stops, a border),\n"
        "# NEVER from the true places of the people who answer: the box would show where the outermost of them are.\n"
    )
    text = text.replace("[domain]\n", f"{comment}[domain]\n", 1)
    return text, [
        f"{grid.columns} x {grid.rows} cells of {size} around {found.found}{outside}",
        "the box becomes public with the study file: take it from public places (addresses, stops, a city's border), "
        "NEVER from the true places of the people who answer",
    ]


def _size(grid: SuggestedGrid) -> str:
    width, height = grid.cell
    return f"{width:.3g} km" if abs(width / height - 1.0) < 0.005 else f"{width:.3g} x {height:.3g} km"


def _with_entry(text: str, name: str, value: object) -> str:
    """Return a template with another value of an entry; its comment stays."""
    return re.sub(
        rf"(?m)^({name} = )(\"[^\"]*\"|\[[^\]]*\]|[^\s#]+)", lambda match: match[1] + _toml(value), text, count=1
    )


def _toml(value: object) -> str:
    """Return a text, number or list of numbers as TOML writes it."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


def _option(name: str) -> str:
    return "--from" if name == "places" else f"--{name}"


def _refused(kind: str, option: str, got: object, expected: str, remedy: str) -> SettingError:
    return SettingError(
        f"{_option(option)} does not apply",
        where=f"hubbub new {kind}",
        got=f"{_option(option)} {shorten(str(got))}",
        expected=expected,
        remedy=remedy,
    )
