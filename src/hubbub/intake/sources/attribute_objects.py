"""One column with the outputs of all attributes, as JSON objects or as structs, divided into a column for each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hubbub.core.arrays import Positions
from hubbub.core.errors import HubbubError, shorten
from hubbub.core.text import nearest_name
from hubbub.intake.attribute_roles import PREFIX
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.distinct_entries import check_column, entry_type, is_text, one_array
from hubbub.intake.sources.json_lines import SpeltFloat, entry_array
from hubbub.intake.sources.row_batches import plain

if TYPE_CHECKING:
    import pyarrow as pa


class DividedColumn(NamedTuple):
    """The columns of attributes, by their roles, and the rows at fault: which error of a list each has, -1 for none."""

    columns: Mapping[str, pa.ChunkedArray]
    errors: list[HubbubError]
    error_of_row: Positions


def divided(column: pa.ChunkedArray, attributes: list[str]) -> DividedColumn:
    """Return the outputs of a column of structs or JSON texts, attribute by attribute."""
    import pyarrow as pa

    kind = entry_type(column)
    if pa.types.is_struct(kind):
        return _of_structs(column.cast(kind) if kind != column.type else column, attributes)
    check_column(column, "output")
    return _of_texts(column, attributes)


def _of_structs(column: pa.ChunkedArray, attributes: list[str]) -> DividedColumn:
    import pyarrow as pa
    import pyarrow.compute as pc

    array = one_array(column)
    for field in array.type:
        if field.name not in attributes:
            raise refusal(
                "unknown-attribute",
                "the output has a field that is no attribute of the study",
                where="column output",
                got=shorten(field.name),
                expected=f"fields {', '.join(attributes)}",
                remedy=nearest_name(field.name, attributes, "rename the field, or leave it out"),
            )
    columns = {
        PREFIX + field.name: plain(pa.chunked_array([pc.struct_field(array, field.name)])) for field in array.type
    }
    return DividedColumn(columns, [], np.full(len(array), -1, dtype=np.int64))


def _of_texts(column: pa.ChunkedArray, attributes: list[str]) -> DividedColumn:
    """Return the entries of JSON objects; each distinct text is read once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    array = one_array(column.unify_dictionaries())
    texts = array.dictionary.to_pylist()
    indices = np.asarray(pc.fill_null(array.indices.cast(pa.int64()), len(texts)))
    is_json = is_text(entry_type(column))
    read = [_entries(text if is_json else None, text, attributes) for text in texts]
    errors = [entries for entries in read if isinstance(entries, HubbubError)]
    numbers = iter(range(len(errors)))
    error_of_text = [next(numbers) if isinstance(entries, HubbubError) else -1 for entries in read]
    objects = [{} if isinstance(entries, HubbubError) else entries for entries in read] + [{}]
    columns = {}
    for name in attributes:
        entries = entry_array([entry.get(name) for entry in objects], PREFIX + name)
        columns[PREFIX + name] = pa.chunked_array([entries.take(pa.array(indices))])
    return DividedColumn(columns, errors, np.array([*error_of_text, -1], dtype=np.int64)[indices])


def _entries(text: str | None, got: object, attributes: list[str]) -> dict[str, Any] | HubbubError:
    """Return the entries of an object by attribute; an empty text has none."""
    if text is not None and not text.strip():
        return {}
    try:
        entries = json.loads(text or "", parse_float=SpeltFloat)
    except (ValueError, RecursionError):
        entries = None
    names = ", ".join(f'"{name}": ...' for name in attributes)
    if not isinstance(entries, dict):
        what, remedy = "the output is not an object with an entry for each attribute", "write a column for each"
    elif unknown := [name for name in entries if name not in attributes]:
        what = f"{shorten(unknown[0])} is no attribute of the study"
        remedy = nearest_name(unknown[0], attributes, "name the attributes of the study")
    elif any(isinstance(entry, dict | list | bool) for entry in entries.values()):
        what, remedy = "an entry is neither a number nor a text", "write each output as a number or a text"
    else:
        return entries
    return refusal(
        "not-attributes",
        what,
        where="",
        got=shorten(got),
        expected=f"{{{names}}}, or a column {PREFIX}NAME for each attribute",
        remedy=remedy,
    )
