"""The data that the page's scripts work with: one JSON document inside the HTML."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import numpy as np

from hubbub.domains import Domain
from hubbub.reporting.packed_arrays import packed_bounds, packed_floats, packed_numbers, packed_sets
from hubbub.reporting.page import Bounds, Page
from hubbub.reporting.visible_text import file_name, visible

MIN_COMPRESSED_LETTERS = 10_000  # a shorter file is sent as it is

# Everything that could end the block of data, begin a comment, or be taken for the end of a line.
_UNSAFE = {ord(character): f"\\u{ord(character):04x}" for character in "<>&'`\u2028\u2029\x7f"}


def script_data(page: Page) -> str:
    """Return the JSON, in ASCII, with no character that means something to HTML."""
    content = {
        "level": page.level,
        "users": page.users,
        "name": file_name(page.title),
        "values": _values(page.domain),
        "estimate": packed_floats(page.estimate),
        "low": packed_bounds(page.low),
        "high": packed_bounds(page.high),
        "noisy": packed_floats(page.noisy),
        "sets": packed_sets(page.sets, page.low, page.high),
        "reason": visible(page.sets.reason) if isinstance(page.sets, Bounds) else "",
        "files": [_file(name, text) for name, text in page.texts.items()],
    }
    return json.dumps(content, allow_nan=False, separators=(",", ":")).translate(_UNSAFE)


def _values(domain: Domain) -> dict[str, Any]:
    """Return the kind of chart, and the name and place of each value."""
    values: dict[str, Any] = {"kind": domain.chart, "count": len(domain)}
    if domain.grid is not None:
        grid = domain.grid
        shape = {"columns": grid.columns, "rows": grid.rows, "width": grid.width, "height": grid.height}
        return {**values, **packed_numbers(domain.labels), **shape, "unit": visible(grid.unit)}
    if domain.places is not None:
        values |= packed_numbers(domain.labels)
        if domain.intervals is not None:
            values["widths"] = packed_floats(np.diff(domain.intervals)[:, 0])
        elif np.array_equal(domain.places, domain.labels):  # the page needs neither places nor titles
            return values
        titles = [visible(domain.title(position)) for position in range(len(domain))]
        return {**values, "places": packed_floats(domain.places), "titles": titles}
    labels = [str(label) for label in domain.labels]
    shown = {position: visible(label) for position, label in enumerate(labels) if visible(label) != label}
    wholes = [position for position, label in enumerate(domain.labels) if not isinstance(label, str)]
    return {**values, "labels": labels, "shown": shown, "wholes": wholes}


def _file(name: str, text: str) -> dict[str, str]:
    file = {"name": file_name(name, "file"), "shown": visible(name)}
    if len(text) < MIN_COMPRESSED_LETTERS:
        return {**file, "text": text}
    packed = zlib.compress(text.encode("utf-8", "replace"), 9)
    return {**file, "deflated": base64.b64encode(packed).decode("ascii")}
