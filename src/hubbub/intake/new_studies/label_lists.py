"""Labels of categories: a few, separated by commas, or those of a file, one per line or in a column of a table."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from hubbub.core.errors import IntakeError, restated, shorten
from hubbub.core.text import listed, plural, quoted
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.base import Source, check_counted
from hubbub.intake.sources.column_names import check_columns
from hubbub.intake.sources.distinct_entries import entries_of
from hubbub.intake.sources.file_source import check_file
from hubbub.intake.sources.source_lookup import EXTENSIONS, extension_of, table_source
from hubbub.intake.sources.text_files import read_pieces

LABEL_COLUMNS = frozenset(("label", "labels", "value", "values", "name", "names", "category", "categories", "option"))
MAX_LABELS_BYTES = 1 << 25
MAX_SHOWN = 3


class LabelList(NamedTuple):
    """Labels in the order of the file, and what was done to them."""

    labels: list[str]
    notes: list[str]


def is_list(given: str) -> bool:
    """Say whether labels were given themselves, separated by commas, instead of a file with them."""
    return "," in given and not Path(given).exists()


def split_labels(given: str) -> LabelList:
    """Return labels that are separated by commas."""
    return _cleaned(given.split(","), Path("--labels"))


def read_labels(path: Path, column: str | None = None) -> LabelList:
    """Return the labels in a file; `column` names the column of a table."""
    check_file(path)
    if path.stat().st_size > MAX_LABELS_BYTES:
        raise _unfit(
            "the file is too large for a list of labels",
            path,
            f"{path.stat().st_size:,} bytes",
            f"at most {MAX_LABELS_BYTES:,} bytes",
            "name a file with one label per line",
        )
    if extension_of(path) in EXTENSIONS:
        source = table_source(str(path))
        chosen = _label_column(source, column)
        if chosen is not None:
            return _cleaned(_column(source, chosen), path)
    elif column is not None:
        raise _unfit(
            "a list of lines has no columns",
            path,
            f"--column {column}",
            "a table with a header, such as a .csv file",
            "leave --column out: each line is a label",
        )
    try:
        text = b"".join(read_pieces(path)).decode()
    except UnicodeDecodeError as error:
        raise refusal(
            "not-utf-8",
            "the file is not valid UTF-8",
            where=str(path),
            got=shorten(error.object[error.start : error.end + 20]),
            expected="text in UTF-8",
            remedy="convert the file, for example: iconv -f ISO-8859-1 -t UTF-8",
        ) from None
    return _cleaned(text.splitlines(), path)


def _label_column(source: Source, column: str | None) -> str | None:
    """Return the column of labels; None where a file of one column has no header."""
    names = source.header()
    if column is None:
        known = [name for name in names if name.strip().lower() in LABEL_COLUMNS]
        if len(names) <= 1 and not known and source.unit == "line":
            return None
        if len(known) != 1 and len(names) != 1:
            raise refusal(
                "repeated-column" if known else "no-column",
                "it is not clear which column holds the labels",
                where=source.name,
                got=f"columns {shorten(names, 200)}",
                expected="one column called label, or the name of another one",
                remedy="name it with --column NAME",
            )
        column = known[0] if known else names[0]
    check_columns(source, names, [column])
    return column


def _column(source: Source, name: str) -> list[str]:
    labels: list[str] = []
    for rows in source.rows([name]):
        check_counted(source, rows)
        if rows.faults:
            place, fault = rows.faults[0]
            raise restated(fault.error, IntakeError, where=source.where(place))
        entries = entries_of(rows.columns[name], name)
        labels += ["" if entry is None else str(entry) for entry in entries.take(entries.indices)]
    return labels


def _cleaned(lines: Iterable[str], path: Path) -> LabelList:
    """Return each label once, without spaces around it; say what was left out."""
    given = list(lines)
    stripped = [line.strip() for line in given]
    filled = [label for label in stripped if label]
    labels = list(dict.fromkeys(filled))
    notes = []
    spaces = sum(line != label for line, label in zip(given, stripped, strict=True) if label)
    if spaces:
        notes.append(f"{path.name}: spaces around {plural(spaces, 'label')} were removed")
    if len(filled) < len(given):
        notes.append(f"{path.name}: {plural(len(given) - len(filled), 'empty label')} left out")
    repeated = [label for label, count in Counter(filled).items() if count > 1]
    if repeated:
        shown = listed([quoted(label) for label in repeated], most=MAX_SHOWN)
        notes.append(
            f"{path.name}: {shown} {'is' if len(repeated) == 1 else 'are'} listed several times, and kept once"
        )
    alike: dict[str, list[str]] = {}
    for label in labels:
        alike.setdefault(unicodedata.normalize("NFKC", label).casefold(), []).append(label)
    for same in (each for each in alike.values() if len(each) > 1):
        notes.append(f"{path.name}: {listed([quoted(label) for label in same])} look alike, and are different labels")
    if len(labels) < 2:
        raise _unfit(
            "a study needs at least two labels",
            path,
            f"{plural(len(labels), 'label')}",
            "one label per line",
            "check the file; name the column of a table with --column",
        )
    return LabelList(labels, notes)


def _unfit(what: str, path: Path, got: str, expected: str, remedy: str) -> IntakeError:
    return IntakeError(what, where=str(path), got=got, expected=expected, remedy=remedy)
