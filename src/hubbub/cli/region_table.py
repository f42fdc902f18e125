"""Regions at the terminal: the options that name them, and the table of their shares."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.console import out, printable
from hubbub.cli.progress_bar import follow

if TYPE_CHECKING:
    from hubbub.domains import Domain
    from hubbub.estimators import Estimate
    from hubbub.polygons import Regions, RegionShare, RegionShares
    from hubbub.reports import Reports

MAX_SHOWN_REGIONS = 40
WIDE_LETTERS = 100  # of a terminal on which the table shows how many cells, and how much of a region, are on the grid


@dataclass(frozen=True)
class RegionFile:
    """Which regions."""

    regions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Shares of the regions in this GeoJSON file (how-to page: Shares of districts)."
        ),
    ] = None
    region_name: Annotated[
        str | None, typer.Option(metavar="PROPERTY", help="The property of the GeoJSON file that names the regions.")
    ] = None

    def check_name(self) -> None:
        """Refuse a property of no file before anything is read."""
        if self.region_name is not None and self.regions is None:
            raise typer.BadParameter("there are no regions to name: add --regions FILE", param_hint="--region-name")

    def read(self, domain: Domain) -> Regions | None:
        """Return the regions, if the user asked for any."""
        from hubbub.polygons import regions

        return None if self.regions is None else regions(domain, self.regions, name=self.region_name)


@dataclass(frozen=True)
class RegionOptions(RegionFile):
    """Which regions, and how their intervals are computed."""

    region_intervals: Annotated[
        str, typer.Option(metavar="METHOD", help="auto, linear, or profile: narrower, some seconds for each region.")
    ] = "auto"

    def check(self, command: str) -> None:
        """Refuse a wrong method before anything is read."""
        from hubbub.core import validation
        from hubbub.intervals.weighted_sums import METHODS

        validation.one_of(self.region_intervals, METHODS, "region_intervals", command, default="'auto'")
        self.check_name()

    def refuse_fakes(self, fakes: float) -> None:
        """Refuse a share of fakes that intervals would have to allow for."""
        if self.regions is not None and fakes:
            remedy = (
                "in Python, hb.interval(reports, regions.of(NAME), fakes=0.01) does (how-to page: Shares of districts)"
            )
            raise typer.BadParameter(
                f"these intervals of regions do not allow for fakes; {remedy}", param_hint="--regions with --fakes"
            )

    def shares(self, own: Regions, reports: Reports, estimate: Estimate, level: float) -> RegionShares:
        """Return the shares of the regions."""
        from hubbub.polygons import region_shares

        run = region_shares.steps(own, reports, level=level, estimate=estimate, method=self.region_intervals)
        return follow(run, "shares of regions")


def print_regions(shares: RegionShares) -> None:
    """Print the table of regions, the largest first, and what to know about them."""
    from rich.table import Table

    from hubbub.polygons.result import REST, row_texts

    console = out()
    table = Table()
    table.add_column("region", overflow="fold")
    names = ("share", f"{100 * shares.level:g}% interval", "all together", "cells", "inside")
    # Names need the room more than numbers that every file and document has, too.
    shown = names if console.width >= WIDE_LETTERS else names[:3]
    for name in shown:
        table.add_column(name, justify="right", no_wrap=True)
    for row in shares.largest_first[:MAX_SHOWN_REGIONS]:
        table.add_row(printable(row.name), *row_texts(row)[: len(shown)])
    if shares.rest is not None:
        table.add_row(f"({REST})", *row_texts(shares.rest)[: len(shown)])
    console.print(table)
    hidden = len(shares) - MAX_SHOWN_REGIONS
    if hidden > 0:
        console.print(f"and {hidden:,} more; write them all with -o regions.csv")
    if any(_is_extended(row) for row in shares.largest_first[:MAX_SHOWN_REGIONS]):
        console.print("*: extended to the estimate, which is smoother than the confidence interval alone allows")
    for note in shares.notes():
        console.print(printable(note, most=10 * len(note)), soft_wrap=True)


def _is_extended(row: RegionShare) -> bool:
    return row.is_known and row.extended
