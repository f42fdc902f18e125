"""Reports on many machines: theta travels to them, sums of the domain's size come back (Dask)."""

from hubbub.cluster.connection import connect
from hubbub.cluster.merging import merge, merges
from hubbub.cluster.reports import ClusterReports

__all__ = ["ClusterReports", "connect", "merge", "merges"]
