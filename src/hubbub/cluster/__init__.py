"""Reports on many machines: theta travels to them, sums of the domain's size come back (Dask)."""

from hubbub.cluster.cluster_reports import ClusterReports
from hubbub.cluster.connection import connect
from hubbub.cluster.remote_merging import merge, merges

__all__ = ["ClusterReports", "connect", "merge", "merges"]
