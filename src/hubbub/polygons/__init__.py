"""Regions of the map, such as districts: polygons as weighted sums of cells, their shares and their intervals."""

from hubbub.polygons.api import regions
from hubbub.polygons.region_intervals import region_shares
from hubbub.polygons.region_set import Regions
from hubbub.polygons.result import RegionShare, RegionShares

__all__ = ["RegionShare", "RegionShares", "Regions", "region_shares", "regions"]
