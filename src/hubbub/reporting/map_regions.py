"""The regions of a page: districts that readers know, with outlines, the region of each cell, and shares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.errors import SettingError, shorten
from hubbub.core.serialization import Portable
from hubbub.core.text import percent
from hubbub.domains import Domain, Grid
from hubbub.estimators import Estimate
from hubbub.reports import Reports

Ring = Sequence[tuple[float, float]]  # corners, longitude first
MIN_INSIDE = 0.995  # a region with less of its area on the map than this is told to be partly outside


class RegionRow(Protocol):
    """One region and its share; NaN: not known."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def estimate(self) -> float: ...  # noqa: D102
    @property
    def low(self) -> float: ...  # noqa: D102
    @property
    def high(self) -> float: ...  # noqa: D102


class RegionShares(Protocol):
    """The shares of all regions."""

    @property
    def rows(self) -> Iterable[RegionRow]: ...  # noqa: D102


class NamedRegions(Protocol):
    """What a page asks of regions: `hubbub.regions` returns such."""

    @property
    def grid(self) -> Grid: ...  # noqa: D102
    @property
    def names(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def weights(self) -> Any: ...  # noqa: D102  # regions by cells: the part of each cell's area in the region
    @property
    def inside(self) -> Sequence[float] | Floats: ...  # noqa: D102  # the part of each region's area on the grid
    @property
    def outlines(self) -> Sequence[Sequence[Ring]]: ...  # noqa: D102
    @property
    def main_region(self) -> Sequence[str | None]: ...  # noqa: D102  # of each cell, in the order of the grid's labels

    def shares(self, reports: Reports, *, level: float, estimate: Estimate) -> RegionShares:
        """Return the share of each region with its interval."""


@dataclass(frozen=True, eq=False)
class MapRegions(Portable):
    """The regions as the page shows them; cells in the order of the page's domain."""

    names: tuple[str, ...]
    outlines: tuple[tuple[tuple[tuple[float, float], ...], ...], ...]  # of each region its rings, longitude first
    of_cell: tuple[int, ...]  # the number of each cell's region; -1: in none
    estimate: Floats  # NaN: not known, because the region is not on the map
    low: Floats  # NaN: not computed
    high: Floats
    inside: Floats

    @property
    def cell_names(self) -> tuple[str | None, ...]:
        """The region of each cell; None: in none."""
        return tuple(None if number < 0 else self.names[number] for number in self.of_cell)

    def largest_first(self) -> list[int]:
        """Return the numbers of all regions, those with the largest shares first and those without one last."""
        order: list[int] = np.argsort(-np.nan_to_num(self.estimate, nan=-1.0), kind="stable").tolist()
        return order

    def note(self, number: int) -> str:
        """Return what readers must know about a region that is not wholly on the map; empty for all others."""
        inside = float(self.inside[number])
        if inside >= MIN_INSIDE:
            return ""
        return "outside the map" if inside <= 0.0 else f"{percent(inside)} of its area is on the map"


def map_regions(
    regions: NamedRegions, domain: Domain, shown: Estimate, reports: Reports | None, level: float
) -> MapRegions:
    """Return regions with their shares: with intervals where there are reports, otherwise of the estimate alone."""
    check_regions(regions, domain)
    number_of = {name: number for number, name in enumerate(regions.names)}
    positions = regions.grid.index(domain.labels).tolist()
    main = [regions.main_region[position] for position in positions]
    if reports is not None:
        rows = {row.name: row for row in regions.shares(reports, level=level, estimate=shown).rows}
        ordered = [rows[name] for name in regions.names]
        estimate, low, high = (
            np.array([getattr(row, part) for row in ordered], dtype=np.float64) for part in ("estimate", "low", "high")
        )
    else:
        everywhere = np.zeros(len(regions.grid))
        everywhere[positions] = shown.probabilities
        estimate = np.asarray(regions.weights @ everywhere, dtype=np.float64)
        low = high = np.full(len(regions.names), np.nan)
    return MapRegions(
        tuple(regions.names),
        tuple(tuple(tuple((float(x), float(y)) for x, y in ring) for ring in rings) for rings in regions.outlines),
        tuple(-1 if name is None else number_of[name] for name in main),
        np.where(np.asarray(regions.inside) > 0.0, estimate, np.nan),
        low,
        high,
        np.asarray(regions.inside, dtype=np.float64),
    )


def check_regions(regions: object, domain: Domain) -> None:
    """Refuse what is not regions, and regions of another map than the page's."""
    missing = [name for name in ("grid", "names", "outlines", "main_region", "shares") if not hasattr(regions, name)]
    if missing:
        raise SettingError(
            "regions must be what hubbub.regions returns",
            where="report(regions=)",
            got=shorten(regions),
            expected="regions of the study's grid",
            remedy="pass hubbub.regions(grid, 'districts.geojson')",
        )
    grid = regions.grid  # type: ignore[attr-defined]  # checked above
    if domain.grid is None or domain.grid != grid or not domain.is_on_map:
        raise SettingError(
            "the regions belong to another map",
            where="report(regions=)",
            got=shorten(grid),
            expected=f"regions of the page's own grid: {shorten(domain.grid)}"
            if domain.is_on_map
            else "a page about a grid over a box on the map",
            remedy="make them for the study's grid: hubbub.regions(study.domain, 'districts.geojson')",
        )
