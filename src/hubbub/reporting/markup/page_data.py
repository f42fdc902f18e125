"""What the page's scripts work with: one JSON document inside of the HTML."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import numpy as np

from hubbub.domains import Domain
from hubbub.reporting.markup.array_text import packed_bounds, packed_floats, packed_numbers, packed_sets
from hubbub.reporting.markup.escaping import file_name, shown
from hubbub.reporting.page import Bounds, Page

LONG = 10_000  # characters of a file from which it is worth compressing

# Whatever could end the block of data, begin a comment, or be a line's end to somebody.
_UNSAFE = {ord(one): f"\\u{ord(one):04x}" for one in "<>&'`\u2028\u2029\x7f"}


def document(page: Page) -> str:
    """Return the JSON, in ASCII, with nothing in it that means something to HTML."""
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
        "reason": shown(page.sets.reason) if isinstance(page.sets, Bounds) else "",
        "files": [_file(name, text) for name, text in page.texts.items()],
    }
    return json.dumps(content, allow_nan=False, separators=(",", ":")).translate(_UNSAFE)


def _values(domain: Domain) -> dict[str, Any]:
    """Return the kind of chart, and how to name and place each value."""
    count = {"count": len(domain)}
    if domain.grid is not None:
        grid = domain.grid
        sides = {"columns": grid.columns, "rows": grid.rows, "width": grid.width, "height": grid.height}
        return {"kind": "map", **count, **packed_numbers(domain.labels), **sides, "unit": shown(grid.unit)}
    if domain.places is not None:
        line = {"kind": "line", **count, **packed_numbers(domain.labels)}
        if domain.intervals is None and np.array_equal(domain.places, domain.labels):
            return line
        line["places"] = packed_floats(domain.places)
        if domain.intervals is not None:
            line["widths"] = packed_floats(domain.intervals[:, 1] - domain.intervals[:, 0])
        return {**line, "titles": [shown(domain.title(position)) for position in range(len(domain))]}
    labels = [str(label) for label in domain.labels]
    titles = {place: shown(label) for place, label in enumerate(labels) if shown(label) != label}
    wholes = [place for place, label in enumerate(domain.labels) if not isinstance(label, str)]
    return {"kind": "categories", **count, "labels": labels, "shown": titles, "wholes": wholes}


def _file(name: str, text: str) -> dict[str, str]:
    found = {"name": file_name(name, "file"), "shown": shown(name)}
    if len(text) < LONG:
        return {**found, "text": text}
    packed = zlib.compress(text.encode("utf-8", "replace"), 9)
    return {**found, "deflated": base64.b64encode(packed).decode("ascii")}
