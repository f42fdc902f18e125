"""The shares of regions: rows, tables, documents, map files and a picture."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from hubbub.core.serialization import Portable
from hubbub.core.text import percent, plural, whole_percent
from hubbub.estimators.result import finite
from hubbub.intervals.result import extended_note
from hubbub.rendering import Fact, check_on_map, facts_html, table_html
from hubbub.rendering.new_figure import axes_or_new

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from hubbub.polygons.region_set import Regions

MAX_ROWS_IN_NOTEBOOK = 30
SPREAD_EVENLY = "Cells that a region cuts count by area: people are taken to be spread evenly within a cell."
REST = "in no region"


class RegionShare(NamedTuple):
    """The share of one region.

    Attributes
    ----------
    name : str
        What the region is called; empty for what no region covers.
    estimate : float
        The sum of the estimate over the region's cells, each times its weight; NaN if the region is outside the grid.
    low, high : float
        The ends of the region's own interval: the confidence interval, extended to the estimate where that is outside.
    simultaneous_low, simultaneous_high : float
        The same for intervals that hold for all regions together.
    confidence_low, confidence_high : float
        The ends of the region's own confidence interval itself.
    cells : float
        How many cells the region has, counted by area.
    inside : float
        The part of the region's area that lies on cells of the grid.
    """

    name: str
    estimate: float
    low: float
    high: float
    simultaneous_low: float
    simultaneous_high: float
    confidence_low: float
    confidence_high: float
    cells: float
    inside: float

    @property
    def is_known(self) -> bool:
        """Whether the grid has a part of the region."""
        return not math.isnan(self.estimate)

    @property
    def extended(self) -> bool:
        """Whether the confidence interval was extended to the estimate."""
        return self.low < self.confidence_low or self.high > self.confidence_high

    def document(self) -> dict[str, Any]:
        """Return the row as plain JSON values; null where nothing is known."""
        numbers = {name: finite(number) for name, number in self._asdict().items() if name != "name"}
        return {"region": self.name or None, **numbers, "extended": self.extended}


@dataclass(frozen=True, eq=False)
class RegionShares(Portable):
    """The share of each region, with an interval by itself and one that holds for all of them together.

    Attributes
    ----------
    regions : Regions
        The regions.
    rows : tuple of RegionShare
        A row for each region, in the order of ``regions.names``.
    rest : RegionShare or None
        What no region covers; None if the regions cover the grid.
    level : float
        The probability with which each interval, or all of them together, hold the true shares.
    users : int
        How many users sent the reports.
    note : str
        How the intervals were computed.

    Examples
    --------
    >>> import hubbub as hb
    >>> answer = hb.RandomizedResponse(hb.Grid(4, 2, cell=1.0), epsilon=2.0)
    >>> reports = hb.Reports.from_counts(answer, [300, 100, 100, 100, 100, 100, 100, 100])
    >>> west = {"type": "Polygon", "coordinates": [[[0, 0], [1.5, 0], [1.5, 2], [0, 2], [0, 0]]]}
    >>> west = {"type": "Feature", "geometry": west, "properties": {"name": "west"}}
    >>> districts = hb.regions(reports.domain, west)
    >>> shares = districts.shares(reports, estimate=hb.estimate(reports, "mle"), method="linear")
    >>> row = shares["west"]
    >>> round(row.low, 2), round(row.estimate, 2), round(row.high, 2)
    (0.59, 0.66, 0.72)
    >>> print(shares.summary())
    west has 65.7%, between 59.4% and 71.9% at 95%.
    """

    regions: Regions
    rows: tuple[RegionShare, ...]
    rest: RegionShare | None
    level: float
    users: int
    note: str

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> RegionShare:
        """Return the row of a region; of one outside the grid, a row in which nothing is known."""
        return self.rows[self.regions.position(name)]

    @property
    def largest_first(self) -> tuple[RegionShare, ...]:
        """The rows, those with the largest shares first, unknown ones last."""
        return tuple(sorted(self.rows, key=lambda row: -row.estimate if row.is_known else math.inf))

    def summary(self) -> str:
        """Return the answer in a sentence: the region with the largest share.

        Returns
        -------
        str
            The share, and its interval.
        """
        first = self.largest_first[0]
        text = (
            f"{first.name} has {percent(first.estimate)}, between {percent(first.low)} and {percent(first.high)} "
            f"at {whole_percent(self.level)}"
        )
        return f"{text}." if len(self) == 1 else f"Of {plural(len(self), 'region')}, {text}: the largest share."

    def precision(self) -> str:
        """Return how well the shares are determined, in sentences.

        Returns
        -------
        str
            The region with the largest share, and how wide the intervals are.
        """
        known = [row for row in self.largest_first if row.is_known]
        if not known:
            return "No region has a part of the map."
        first, margins = known[0], [50.0 * (row.high - row.low) for row in known]
        text = (
            f"The largest share of a region, {first.name}, is estimated at {percent(first.estimate)}; with "
            f"{whole_percent(self.level)} confidence the true share is between {percent(first.low)} and "
            f"{percent(first.high)}."
        )
        if len(known) == 1:
            return text
        widest = max(known, key=lambda row: row.high - row.low)
        return (
            f"{text} Half of the {len(known):,} intervals of regions extend no more than "
            f"{statistics.median(margins):.2g} points to either side, the widest, {widest.name}, {max(margins):.2g}."
        )

    def notes(self) -> tuple[str, ...]:
        """Return what to know about these shares.

        Returns
        -------
        tuple of str
            Notes of a sentence or two each.
        """
        extended = sum(row.extended for row in self.rows)
        rest = "" if self.rest is None else f"{percent(self.rest.estimate)} of the people are {REST}."
        every = (rest, *self.regions.caveats, self.note, extended_note(extended) if extended else "")
        return tuple(note for note in every if note)

    def explain(self) -> str:
        """Return the answer with what it means, and what limits it.

        Returns
        -------
        str
            The summary and all notes; what printing shows, too.
        """
        return " ".join([self.summary(), *self.notes()])

    def __str__(self) -> str:
        return self.explain()

    def __repr__(self) -> str:
        return f"RegionShares({plural(len(self), 'region')}, level={self.level:g})"

    def to_frame(self) -> pd.DataFrame:
        """Return the shares as a pandas table, with a row for each region.

        Returns
        -------
        pandas.DataFrame
            Columns ``region``, ``estimate``, ``low``, ``high``, ``simultaneous_low``, ``simultaneous_high``,
            ``confidence_low``, ``confidence_high``, ``cells``, ``inside`` and ``extended``. What no region covers is
            the last row, without a name.
        """
        import pandas as pd

        rows = [row.document() for row in (*self.rows, *([] if self.rest is None else [self.rest]))]
        frame = pd.DataFrame(rows)
        numbers = [name for name in frame.columns if name not in ("region", "extended")]
        return frame.astype(dict.fromkeys(numbers, "float64"))

    def document(self) -> dict[str, Any]:
        """Return what `to_json` writes, as plain Python values.

        Returns
        -------
        dict
            With a version, the notes, and a row for each region; what is not known is None.
        """
        return {
            "version": 1,
            "level": self.level,
            "users": self.users,
            "text": self.summary(),
            "notes": list(self.notes()),
            "regions": [row.document() for row in self.rows],
            "rest": None if self.rest is None else self.rest.document(),
        }

    def to_json(self) -> str:
        """Return the shares as one JSON document.

        Returns
        -------
        str
            What is not known is null.
        """
        return json.dumps(self.document(), allow_nan=False, ensure_ascii=False)

    def to_geojson(self) -> str:
        """Return a GeoJSON document for map tools: each region, as it was given, with its share and intervals.

        Returns
        -------
        str
            A FeatureCollection.

        Raises
        ------
        DomainError
            If the grid has no place on the map.
        """
        import shapely

        check_on_map(self.regions.grid)
        features = [
            {
                "type": "Feature",
                "geometry": json.loads(shapely.to_geojson(shapely.orient_polygons(polygon))),
                "properties": row.document(),
            }
            for polygon, row in zip(self.regions.polygons, self.rows, strict=True)
        ]
        bounds = [float(number) for number in shapely.total_bounds(self.regions.polygons)]
        document = {"type": "FeatureCollection", "bbox": bounds, "features": features}
        return json.dumps(document, allow_nan=False, ensure_ascii=False, separators=(",", ":")) + "\n"

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """Return the rows of the regions as columns, for map files.

        Returns
        -------
        dict
            From names of columns to lists, in the order of ``regions.names``.
        """
        rows = [row.document() for row in self.rows]
        return {name: [row[name] for row in rows] for name in rows[0]}

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the regions in the colour of their shares, with their outlines and names.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw; left out, a new figure is made.

        Returns
        -------
        matplotlib.axes.Axes
            The axes that were drawn on.
        """
        from hubbub.polygons.region_plot import draw_regions

        axes = axes_or_new(axes)
        draw_regions(self, axes)
        return axes

    def _repr_html_(self) -> str:
        shown = self.largest_first[:MAX_ROWS_IN_NOTEBOOK]
        rows = [[row.name, *row_texts(row)] for row in shown]
        facts = [Fact("regions", self.summary()), *(Fact("note", note) for note in self.notes())]
        if len(shown) < len(self):
            facts.append(Fact("shown", f"{len(shown)} of {len(self):,}; to_frame() has all"))
        return facts_html(facts) + table_html(["region", "share", "interval", "together", "cells", "inside"], rows)


def row_texts(row: RegionShare) -> list[str]:
    """Return a row for people: share, interval, interval of all together, cells, part inside the grid."""
    if not row.is_known:
        return ["not known", "", "", "0", percent(row.inside)]
    return [
        f"{row.estimate:.4f}",
        f"{row.low:.4f} to {row.high:.4f}{'*' if row.extended else ' '}",
        f"{row.simultaneous_low:.4f} to {row.simultaneous_high:.4f}",
        f"{row.cells:.4g}",
        percent(row.inside),
    ]
