"""Regions of a grid: what they are called, and how much of each cell lies in them."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from hubbub.core.arrays import Floats
from hubbub.core.errors import RegionsError, shorten
from hubbub.core.serialization import Portable
from hubbub.core.text import listed, plural
from hubbub.domains import Domain, Grid
from hubbub.estimators import Estimate
from hubbub.polygons.region_intervals import region_shares
from hubbub.polygons.result import SPREAD_EVENLY, RegionShares
from hubbub.reports import Reports

MAX_NAMED_REGIONS = 8  # in a message


@dataclass(frozen=True, eq=False)
class Regions(Portable):
    """Regions of the map as weighted sums of a grid's cells, made by `hubbub.regions`.

    Attributes
    ----------
    grid : Grid
        The grid.
    names : tuple of str
        What the regions are called, in the order of the source.
    weights : scipy.sparse.csr_array
        Regions by cells, in the order of ``grid.labels``: the part of the cell's area that lies in the region.
    inside : array
        The part of each region's area that lies on cells of the grid; 0 if nothing is known about it.
    rest : array
        The part of each cell's area that lies in no region.
    polygons : tuple of shapely geometries
        The regions: longitude and latitude, or x and y in the grid's unit if it has no place on the map.
    outlines : tuple of tuples of arrays
        For each region the rings to draw, of polygons and of holes, as points (x, y) in the same coordinates:
        simplified to a twentieth of a cell, and cut off a cell beyond the grid. Polygons run counter-clockwise, holes
        clockwise.
    notes : tuple of str
        What to know about these regions: which are partly outside, which overlap, what was converted.

    Examples
    --------
    >>> import hubbub as hb
    >>> west = {"type": "Polygon", "coordinates": [[[0, 0], [1.5, 0], [1.5, 2], [0, 2], [0, 0]]]}
    >>> west = {"type": "Feature", "geometry": west, "properties": {"name": "west"}}
    >>> districts = hb.regions(hb.Grid(4, 2, cell=1.0), west)
    >>> districts
    Regions(1 region: west)
    >>> districts.rest.tolist()
    [0.0, 0.5, 1.0, 1.0, 0.0, 0.5, 1.0, 1.0]
    """

    grid: Grid
    names: tuple[str, ...]
    weights: sparse.csr_array
    inside: Floats
    rest: Floats
    polygons: tuple[Any, ...]
    outlines: tuple[tuple[Floats, ...], ...]
    notes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"Regions({plural(len(self), 'region')}: {listed(self.names, most=3)})"

    @property
    def caveats(self) -> tuple[str, ...]:
        """What to know about the shares of these regions: `notes`, and how cells that a border cuts are counted."""
        return (*self.notes, SPREAD_EVENLY)

    @cached_property
    def main_region(self) -> tuple[str | None, ...]:
        """For each cell the region that has most of it, in the order of ``grid.labels``; None if none has any."""
        dense = self.weights.toarray()
        largest = dense.argmax(axis=0)
        weights = dense[largest, np.arange(len(self.grid))]
        return tuple(
            self.names[region] if weight > 0.0 else None for region, weight in zip(largest, weights, strict=True)
        )

    def position(self, name: str) -> int:
        """Return the place of a region among `names`.

        Parameters
        ----------
        name : str
            One of `names`.

        Returns
        -------
        int
            Its place, from 0.

        Raises
        ------
        RegionsError
            If no region has this name.
        """
        if name not in self.names:
            close = get_close_matches(str(name), self.names, 3) or list(self.names)
            raise RegionsError(
                "no region has this name",
                where="Regions.names",
                got=shorten(name),
                expected=f"one of {listed(close, most=MAX_NAMED_REGIONS)}",
                remedy="choose one of Regions.names",
            )
        return self.names.index(name)

    def of(self, name: str) -> dict[int, float]:
        """Return a region as {cell: weight}, to be used as `of` in `hubbub.interval`.

        All regions at once are ``of=regions`` in `hubbub.compare`, `hubbub.compare_groups` and `hubbub.trend`.

        Parameters
        ----------
        name : str
            One of `names`.

        Returns
        -------
        dict
            The cells that the region has a part of.

        Raises
        ------
        RegionsError
            If no region has this name, or it lies outside the grid.
        """
        row = self.weights[[self.position(name)], :]
        if row.nnz == 0:
            raise RegionsError(
                "the region has no part of any cell",
                where="Regions.of(name)",
                got=f"{shorten(name)}, which lies outside the grid",
                expected="a region that the grid covers, at least in part",
                remedy="use a study whose box holds the region",
            )
        labels = self.grid.labels[row.indices].tolist()
        return dict(sorted(zip(labels, row.data.tolist(), strict=True)))

    def weights_over(self, domain: Domain) -> sparse.csr_array:
        """Return `weights` for the values of a domain: the grid, or a part of it.

        Parameters
        ----------
        domain : Domain
            The grid, or some of its cells.

        Returns
        -------
        scipy.sparse.csr_array
            Regions by values, in the order of ``domain.labels``.

        Raises
        ------
        RegionsError
            If the domain is another grid.
        """
        if domain.grid != self.grid:
            raise RegionsError(
                "the regions belong to another grid",
                where="Regions.weights_over(domain)",
                got=shorten(domain, 120),
                expected=f"reports about {shorten(self.grid, 120)}",
                remedy="make the regions with hubbub.regions(reports.domain, ...)",
            )
        return sparse.csr_array(self.weights[:, self.grid.find(domain.labels)])

    def rest_over(self, domain: Domain) -> Floats:
        """Return `rest` for the values of a domain: the grid, or a part of it.

        Parameters
        ----------
        domain : Domain
            The grid, or some of its cells.

        Returns
        -------
        array
            The part of each value's cell that lies in no region.
        """
        return np.asarray(self.rest[self.grid.find(domain.labels)])

    def shares(
        self, reports: Reports, *, level: float = 0.95, estimate: Estimate | None = None, method: str = "auto"
    ) -> RegionShares:
        """Return the share of each region, with an interval by itself and one that holds for all of them together.

        Parameters
        ----------
        reports : Reports
            The reports to learn from, about the same grid.
        level : float, default 0.95
            The probability with which each interval, or all of them together, hold the true shares.
        estimate : Estimate, optional
            The estimate whose sums are shown; that of ``hubbub.estimate(reports)`` by default.
        method : {"auto", "profile", "linear"}, default "auto"
            ``"profile"``: as `hubbub.interval` for each region by itself, seconds for each on a grid of hundreds of
            cells. ``"linear"``: by one unbiased estimate that is linear in the reports, for thousands of regions at
            once; wider where neighbours are hard to tell apart. ``"auto"``: profile up to 100 cells and for regions
            within one cell, otherwise linear.

        Returns
        -------
        RegionShares
            With `rows`, `rest`, `to_frame()`, `to_json()`, `to_geojson()`, `explain()` and `plot()`.

        Raises
        ------
        RegionsError
            If the reports are about another grid.
        SettingError
            If a keyword has a wrong value, or the estimate is over another domain.
        EstimateError
            If `reports` are not reports in this process, or ``method="linear"`` does not apply to them.
        """
        return region_shares(self, reports, level=level, estimate=estimate, method=method)
