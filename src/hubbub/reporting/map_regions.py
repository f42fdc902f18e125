"""The regions of a page: districts that readers know, with outlines, the region of each cell, and shares."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.core.arrays import Floats, largest_first
from hubbub.core.errors import SettingError, shorten
from hubbub.core.serialization import Portable
from hubbub.core.text import percent
from hubbub.domains import Domain
from hubbub.estimators import Estimate
from hubbub.polygons import Regions, RegionShare, region_shares
from hubbub.reports import Reports

MIN_INSIDE = 0.995  # a region with less of its area on the map than this is told to be partly outside


@dataclass(frozen=True, eq=False)
class MapRegions(Portable):
    """The regions as the page shows them; cells in the order of the page's domain."""

    names: tuple[str, ...]
    outlines: tuple[tuple[tuple[tuple[float, float], ...], ...], ...]  # of each region its rings, longitude first
    of_cell: tuple[int, ...]  # the number of each cell's region; -1: in none
    estimate: Floats  # NaN: not known, because the region is not on the map
    low: Floats  # NaN: not computed
    high: Floats
    low_together: Floats  # of intervals that hold for all regions
    high_together: Floats
    inside: Floats
    notes: tuple[str, ...] = ()  # what to know about them and their intervals
    rest: RegionShare | None = None  # what no region covers; None: nothing, or its interval was not computed
    precision: str = ""  # how well the shares are determined, in sentences; empty: intervals were not computed

    @property
    def cell_names(self) -> tuple[str | None, ...]:
        """The region of each cell; None: in none."""
        return tuple(None if number < 0 else self.names[number] for number in self.of_cell)

    def largest_first(self) -> list[int]:
        """Return the numbers of all regions, those with the largest shares first and those without one last."""
        order: list[int] = largest_first(self.estimate).tolist()
        return order

    def note(self, number: int) -> str:
        """Return what readers must know about a region that is not wholly on the map; empty for all others."""
        inside = float(self.inside[number])
        if inside >= MIN_INSIDE:
            return ""
        return "outside the map" if inside <= 0.0 else f"{percent(inside)} of its area is on the map"


def map_regions(
    regions: Regions, shown: Estimate, reports: Reports | None, level: float, method: str
) -> Generator[Any, None, MapRegions]:
    """Return regions with their shares: with intervals where there are reports, otherwise of the estimate alone."""
    domain = shown.domain
    number_of = {name: number for number, name in enumerate(regions.names)}
    main = [regions.main_region[position] for position in regions.grid.find(domain.labels).tolist()]
    if reports is not None:
        shares = yield from region_shares.steps(regions, reports, level=level, estimate=shown, method=method)
        ends = ("low", "high", "simultaneous_low", "simultaneous_high")
        estimate = np.array([row.estimate for row in shares.rows])
        low, high, low_together, high_together = (
            np.array([getattr(row, end) for row in shares.rows], dtype=np.float64) for end in ends
        )
        notes, rest, precision = tuple(shares.notes()), shares.rest, shares.precision()
    else:
        estimate = np.where(regions.inside > 0.0, regions.weights_over(domain) @ shown.probabilities, np.nan)
        low = high = low_together = high_together = np.full(len(regions), np.nan)
        notes, rest, precision = regions.notes, None, ""
    return MapRegions(
        regions.names,
        tuple(tuple(tuple(map(tuple, ring.tolist())) for ring in rings) for rings in regions.outlines),
        tuple(-1 if name is None else number_of[name] for name in main),
        estimate,
        low,
        high,
        low_together,
        high_together,
        regions.inside,
        notes,
        rest,
        precision,
    )


def check_regions(regions: object, domain: Domain) -> None:
    """Refuse what is not regions, and regions of another map than the page's."""
    if not isinstance(regions, Regions):
        raise SettingError(
            "regions must be what hubbub.regions returns",
            where="report(regions=)",
            got=shorten(regions),
            expected="regions of the study's grid",
            remedy="pass hubbub.regions(grid, 'districts.geojson')",
        )
    if not domain.is_on_map:
        raise SettingError(
            "the page's map has no place in the world",
            where="report(regions=)",
            got=shorten(domain),
            expected="a page about a grid over a box on the map",
            remedy="build the study's grid with Grid.over(south=, west=, north=, east=, ...); without a page, "
            "regions.shares(reports) has the shares",
        )
    if domain.grid != regions.grid:
        raise SettingError(
            "the regions belong to another map",
            where="report(regions=)",
            got=shorten(regions.grid),
            expected=f"regions of the page's own grid: {shorten(domain.grid)}",
            remedy="make them for the study's grid: hubbub.regions(study.domain, 'districts.geojson')",
        )
