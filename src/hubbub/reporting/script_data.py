"""The data that the page's scripts work with: one JSON document inside the HTML.

Arrays are texts (`packed_arrays`), covariances rounded so that no deviation is understated (`packed_covariance`).
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from hubbub.attribute_shares import AttributeShares, GroupShares
from hubbub.core.arrays import Array, Floats
from hubbub.domains import Domain, Grid
from hubbub.intervals.compact_covariance import CompactCovariance
from hubbub.intervals.set_intervals import SetShares
from hubbub.rendering.margins import MARGIN_BOUNDS, MARGIN_TEXTS
from hubbub.rendering.palette import RAMP
from hubbub.reporting.map_regions import MapRegions
from hubbub.reporting.packed_arrays import base64_text, packed_floats
from hubbub.reporting.packed_covariance import PackedCovariance, pack
from hubbub.reporting.page_values import Bounds, Page
from hubbub.reporting.visible_text import file_name, visible
from hubbub.resolution import Resolution

MAX_OUTLINE_DECIMALS = 12
MIN_COMPRESSED_LETTERS = 10_000  # a shorter file is sent as it is

# Everything that could end the block of data, begin a comment, or be taken for the end of a line.
_UNSAFE = {ord(character): f"\\u{ord(character):04x}" for character in "<>&'`\u2028\u2029\x7f"}


def script_data(page: Page) -> str:
    """Return the JSON, in ASCII, with no character that means something to HTML."""
    from scipy.special import ndtri

    content = {
        "z": float(ndtri(0.5 + page.level / 2)),
        "level": page.level,
        "users": page.users,
        "name": file_name(page.title),
        "values": _values(page.domain),
        "estimate": packed_floats(page.estimate),
        "low": _packed_bounds(page.low),
        "high": _packed_bounds(page.high),
        "noisy": packed_floats(page.noisy),
        "sets": packed_sets(page.sets, page.low, page.high),
        "reason": visible(page.sets.reason) if isinstance(page.sets, Bounds) else "",
        "parts": _packed_parts(page.resolution) if page.resolution is not None and page.has_parts else None,
        "regions": None if page.regions is None else _packed_regions(page.regions, page.domain),
        "attributes": None if page.attributes is None else _packed_attributes(page.attributes),
        "ramp": RAMP,
        "margins": {"bounds": MARGIN_BOUNDS, "texts": MARGIN_TEXTS},
        "files": [_file(name, text) for name, text in page.texts.items()],
    }
    return json.dumps(content, allow_nan=False, separators=(",", ":")).translate(_UNSAFE)


def _packed_parts(resolution: Resolution) -> dict[str, Any]:
    """Return the parts, and for each value the number of its part."""
    part_of = np.empty(len(resolution.domain), dtype="<i4")
    for number, part in enumerate(resolution.parts):
        part_of[part.positions] = number
    return {
        "of": base64_text(part_of),
        **resolution.words._asdict(),
        "all": [
            {
                "title": visible(part.title),
                "estimate": part.estimate,
                "from": part.confidence_low,
                "to": part.confidence_high,
                "told": part.told,
            }
            for part in resolution.parts
        ],
    }


def _values(domain: Domain) -> dict[str, Any]:
    """Return the kind of chart, and the name and place of each value."""
    values: dict[str, Any] = {"kind": domain.chart, "count": len(domain)}
    if (product := domain.product) is not None:
        cells = None if product.cells is None else base64_text(product.cells.astype("<i4"))
        return {**values, "attributes": [_attribute(*each) for each in product.attributes.items()], "cells": cells}
    if domain.grid is not None:
        grid = domain.grid
        shape = {"columns": grid.columns, "rows": grid.rows, "width": grid.width, "height": grid.height}
        return {**values, **_packed_numbers(domain.labels), **shape, "unit": visible(grid.unit), **_place_texts(grid)}
    if domain.places is not None:
        values |= _packed_numbers(domain.labels)
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


def _attribute(name: str, domain: Domain) -> dict[str, Any]:
    """Return the name of an attribute, and the labels and names of its values."""
    labels = domain.labels.tolist()
    return {
        "name": name,
        "labels": [str(label) for label in labels],
        "titles": [visible(domain.title(position)) for position in range(len(labels))],
        "numbers": all(isinstance(label, int) for label in labels),
    }


def _packed_attributes(shares: AttributeShares) -> dict[str, Any]:
    """Return the tables of attributes, by the numbers of the attributes."""
    names = list(shares.groups)
    return {
        "names": names,
        "titles": [[visible(group.title) for group in own] for own in shares.groups.values()],
        "marginals": [_packed_shares([shares.marginals[name]]) for name in names],
        "pairs": [
            {
                "rows": names.index(pair.rows),
                "columns": names.index(pair.columns),
                "joint": {name: packed_floats(getattr(pair, name).ravel()) for name in ("low", "high")}
                | {"estimate": packed_floats(pair.joint.ravel())},
                "possible": None if pair.possible.all() else pair.possible.ravel().astype(int).tolist(),
                "forward": _packed_shares(shares.conditionals[pair.columns, pair.rows]),
                "backward": _packed_shares(shares.conditionals[pair.rows, pair.columns]),
            }
            for pair in shares.pairs
        ],
    }


def _packed_shares(rows: Sequence[GroupShares]) -> dict[str, str | None]:
    """Return shares and intervals, row by row."""
    return {name: packed_floats(np.array([getattr(row, name) for row in rows]).ravel()) for name in GroupShares._fields}


def _place_texts(grid: Grid) -> dict[str, Any]:
    """Return the box of a grid on the map, and the latitudes of its rows and longitudes of its columns in words."""
    if grid.box is None or grid.place_texts is None:
        return {}
    texts = grid.place_texts
    shown = {"latitudes": texts.latitudes, "longitudes": texts.longitudes, "decimals": texts.decimals}
    return {"box": asdict(grid.box), **shown}


def _packed_regions(regions: MapRegions, domain: Domain) -> dict[str, Any]:
    """Return names and outlines of regions, and for each value the number of its region.

    Corners have two decimals more than it takes to tell cells apart: a hundredth of a cell.
    """
    texts = None if domain.grid is None else domain.grid.place_texts
    decimals = MAX_OUTLINE_DECIMALS if texts is None else min(MAX_OUTLINE_DECIMALS, texts.decimals + 2)
    return {
        "names": [visible(name) for name in regions.names],
        "of": base64_text(np.array(regions.of_cell, dtype="<i4")),
        "outlines": [
            [[(round(x, decimals), round(y, decimals)) for x, y in ring] for ring in rings]
            for rings in regions.outlines
        ],
    }


def _file(name: str, text: str) -> dict[str, str]:
    file = {"name": file_name(name, "file"), "shown": visible(name)}
    if len(text) < MIN_COMPRESSED_LETTERS:
        return {**file, "text": text}
    packed = zlib.compress(text.encode("utf-8", "replace"), 9)
    return {**file, "deflated": base64.b64encode(packed).decode("ascii")}


def _packed_bounds(values: Floats) -> str | dict[str, str | None] | None:
    """Return the bounds of single values; if fewer than half are known, only these and their positions."""
    known = np.flatnonzero(~np.isnan(values))
    if 0 < 2 * known.size < values.size:
        return {"at": base64_text(known.astype("<i4")), "known": packed_floats(values[known])}
    return packed_floats(values)


def packed_covariance(sets: SetShares) -> PackedCovariance:
    """Return the covariance as the page has it."""
    known = sets.covariance
    return pack(known if isinstance(known, CompactCovariance) else CompactCovariance.of_matrix(known))


def packed_sets(sets: SetShares | Bounds, low: Floats, high: Floats) -> dict[str, Any]:
    """Return what the intervals of sets are computed from; bounds equal to those of the values are not sent twice."""
    if isinstance(sets, SetShares):
        return {**packed_covariance(sets).data, "centre": packed_floats(sets.centre)}
    return {
        "kind": "bounds",
        "low": _outward(sets.low, low, -np.inf),
        "high": _outward(sets.high, high, np.inf),
    }


def _outward(bound: Floats, own: Floats, towards: float) -> str | None:
    """Return bounds rounded outward to 32 bits; "own" if they equal those of the values."""
    if np.array_equal(bound, own, equal_nan=True):
        return "own"
    if np.isnan(bound).all():
        return None
    short = bound.astype("<f4")
    tighter = short > bound if towards < 0 else short < bound
    return base64_text(np.where(tighter, np.nextafter(short, np.float32(towards)), short).astype("<f4"))


def _packed_numbers(numbers: Array) -> dict[str, Any]:
    """Return labels that are whole numbers: only the first of them if they are consecutive."""
    first = int(numbers[0])
    if np.array_equal(numbers, np.arange(first, first + len(numbers))):
        return {"first": first}
    return {"listed": packed_floats(numbers.astype(np.float64))}
