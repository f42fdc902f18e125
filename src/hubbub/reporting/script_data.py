"""The data that the page's scripts work with: one JSON document inside the HTML."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import numpy as np

from hubbub.domains import Bins, Domain, Grid, Integers, LineDomain, Subset
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


def chart_kind(domain: Domain) -> str:
    """Return which chart shows the values: "categories", "line" or "map"."""
    whole = domain.whole if isinstance(domain, Subset) else domain
    return "map" if isinstance(whole, Grid) else "line" if isinstance(whole, LineDomain) else "categories"


def _values(domain: Domain) -> dict[str, Any]:
    """Return the kind of chart, and the name and place of each value."""
    whole = domain.whole if isinstance(domain, Subset) else domain
    positions = domain.positions if isinstance(domain, Subset) else np.arange(len(domain))
    values: dict[str, Any] = {"kind": chart_kind(domain), "count": len(domain)}
    if isinstance(whole, Grid):
        grid = {"columns": whole.columns, "rows": whole.rows, "width": whole.width, "height": whole.height}
        return {**values, **packed_numbers(domain.labels), **grid, "unit": visible(whole.unit)}
    if isinstance(whole, Integers):
        return {**values, **packed_numbers(domain.labels)}
    if isinstance(whole, LineDomain):
        values |= {**packed_numbers(domain.labels), "places": packed_floats(whole.places[positions])}
        if isinstance(whole, Bins):
            values["widths"] = packed_floats(np.diff(whole.edges)[positions])
        return {**values, "titles": [visible(domain.title(position)) for position in range(len(domain))]}
    labels = [str(label) for label in domain.labels]
    titles = {position: visible(label) for position, label in enumerate(labels) if visible(label) != label}
    wholes = [position for position, label in enumerate(domain.labels) if not isinstance(label, str)]
    return {**values, "labels": labels, "shown": titles, "wholes": wholes}


def _file(name: str, text: str) -> dict[str, str]:
    file = {"name": file_name(name, "file"), "shown": visible(name)}
    if len(text) < MIN_COMPRESSED_LETTERS:
        return {**file, "text": text}
    packed = zlib.compress(text.encode("utf-8", "replace"), 9)
    return {**file, "deflated": base64.b64encode(packed).decode("ascii")}
